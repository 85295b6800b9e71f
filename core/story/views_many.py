"""Views of what is read of many sentences: of news, and of the words that weigh most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.errors import ArtifactError
from core.figures.inversion import shipped_scores
from core.rates import rate_of
from core.results import Score
from core.said import guess_said, instead_said, leak_said
from core.story.caveats import CAVEATS
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import Fact, Slide, Table
from core.story.views_read import (
    ENCODER,
    F1_TOLD,
    INTERVAL,
    attacker_facts,
    every_word_said,
    held_out_records,
    listed,
    needs,
    origin,
    versions_of,
)
from core.studies import more_texts, representation_summary
from core.studies.leak_figures import all_words, recall_of
from core.studies.rows import Row
from core.studies.tables import read_rows

__all__ = ["news", "unnamed"]

LISTED = "probe_mlc"
"""The attack whose list bounds what is read."""

_WEIGHTY = {
    "Names and numbers": ("n_names", "name_recall"),
    "Numbers": ("n_numbers", "number_recall"),
    "Rare words": ("n_rare", "rare_recall"),
}


def news() -> Slide:
    """Return what attacks read of news that is of no kind that they learnt from."""
    rows = _news_rows()
    scores = {
        row["attack"]: replace(row.scores["token_set_f1"], chance=float(row["prior_f1"]))
        for row in rows
    }
    best = max(scores, key=lambda name: scores[name].value)
    row = next(row for row in rows if row["attack"] == best)
    top = scores[best]
    return Slide(
        title="Texts of a kind that the attacker never saw are read, too",
        body=f"On {top.n:,} sentences of BBC News, of no kind that the attacks learnt from, the "
        f"{INVERSION_ATTACKS[best].title.lower()} reads "
        f"{leak_said(top, recall_of(row), is_bold=True)}. Guessing without the vector comes to "
        f"{guess_said(top.chance)}. {F1_TOLD}."
        f"{every_word_said(all_words(row))}",
        table=_news_table(rows),
        figure=plain_figure(shipped_scores(scores)),
        alt=f"F1 by attack on news: {listed(scores)}",
        facts=(
            ("Data", "BBC News, sentences"),
            ("n", f"{top.n:,} sentences"),
            ("Interval", INTERVAL),
            *attacker_facts(best, int(row["n_fitted_on"])),
            *_others(rows, row),
            *origin(r.provenance for r in rows),
        ),
        caveat=CAVEATS["overview"],
        commands=(command_of("inversion-bbc"), more_texts.COMMAND),
    )


def _others(rows: Sequence[Row], row: Row) -> tuple[Fact, ...]:
    """Return of how many sentences those bars are that are not of as many as the headline's."""
    told: dict[str, list[str]] = {}
    for each in rows:
        n, n_own = (one.scores["token_set_f1"].n for one in (each, row))
        taught, own = (int(one["n_fitted_on"]) for one in (each, row))
        parts = [f"n = {n:,}"] * (n != n_own) + [f"taught by {taught:,}"] * (taught != own)
        if parts:
            told.setdefault(", ".join(parts), []).append(INVERSION_ATTACKS[each["attack"]].title)
    said = "; ".join(f"{' and '.join(titles)}: {part}" for part, titles in told.items())
    return (("Other bars", said),) if said else ()


def _news_rows() -> list[Row]:
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    rows = read_rows(path, more_texts.STUDY)
    own = [row for row in rows if (row["encoder"], row["domain"]) == (ENCODER, "cross")]
    if not own:
        raise ArtifactError(f"{path} holds no row of {ENCODER} on texts of another kind.")
    return own


def _news_table(rows: Sequence[Row]) -> Table:
    return Table(
        columns=("Attack", "F1", "n", "Guessing", "Taught by", "Needs"),
        rows=tuple(
            (
                INVERSION_ATTACKS[row["attack"]].title,
                row.scores["token_set_f1"].said(0),
                f"{row.scores['token_set_f1'].n:,}",
                f"{row['prior_f1']:.0f}",
                f"{row['n_fitted_on']:,} sentences" if row["n_fitted_on"] else "nothing",
                needs(row["attack"]),
            )
            for row in rows
        ),
    )


def unnamed() -> Slide:
    """Return how much is read of names, numbers and rare words, which weigh most."""
    record = held_out_records().get(LISTED, {})
    held_out = record.get("held_out", {})
    title = INVERSION_ATTACKS[LISTED].title
    try:
        shares = {words: _share(held_out, *told) for words, told in _WEIGHTY.items()}
        named, whole = (Score.of_record(held_out, f"{w}_f1") for w in ("token_set", "unrestricted"))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ArtifactError(
            f"What the {title.lower()} that ships reads of names and numbers is not recorded. "
            "Record it: python -m core.attacks.inversion.rescore"
        ) from error
    return Slide(
        title="What an attack cannot name, no figure counts",
        body=f"The {title.lower()} can only answer words of its list. Others are in no score: they "
        "are **no evidence of safety**. Were they counted as missed, it would read "
        f"{instead_said(whole, named)}, on {named.n:,} sentences kept from it. Of the words that "
        "matter most and that it can name, it reads the shares in the table.",
        table=Table(
            columns=("Words", "Read", "Share"),
            rows=tuple(
                (words, f"{n_read:,} of {share.n:,}", f"{share.said(0)} %")
                for words, (n_read, share) in shares.items()
            ),
        ),
        facts=(
            ("Data", f"{named.n:,} sentences kept from the attack, of the kinds it learnt from"),
            ("n", f"{named.n:,} sentences; of words, as the table says"),
            ("Interval", f"{INTERVAL}; of the shares Wilson's, as if each word stood alone"),
            *attacker_facts(LISTED, int(record["n_texts"]), record),
            *versions_of([record.get("versions", {})]),
        ),
        commands=("python -m core.attacks.inversion.rescore --texts DATA/sentences.parquet",),
    )


def _share(held_out: Mapping[str, Any], of: str, recall: str) -> tuple[int, Score]:
    """Return how many words were read, and their share of all that the record counted.

    Raises
    ------
    ValueError
        Number and share do not belong to each other: no count gives that share.
    """
    n, percent = int(held_out[of]), float(held_out[recall])
    n_read = round(n * percent / 100)
    if abs(100 * n_read / n - percent) > 1e-9:
        raise ValueError(f"no count of {n} words is {percent} % of them")
    return n_read, rate_of(n_read, n)
