"""Findings on inversion: what attacks recover from news, and which words they cannot name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.inversion import shipped_scores
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Fact, Finding, Table
from leakscope.core.findings.shared import (
    ENCODER,
    F1_EXPLAINED,
    INTERVAL,
    attacker_facts,
    describe_every_word,
    held_out_records,
    list_f1_scores,
    needs,
    provenance_facts,
    versions_of,
)
from leakscope.core.formatting import (
    describe_leak,
    format_f1_change,
    format_guess,
)
from leakscope.core.intervals import rate_of
from leakscope.core.pages import PAGES
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.inversion import more_texts, representation_summary
from leakscope.core.studies.leak_figures import all_words_f1, recall_of

LISTED = "probe_mlc"
"""The attack whose vocabulary limits what it can recover."""


_WEIGHTY = {
    "Names and numbers": ("n_names", "name_recall"),
    "Numbers": ("n_numbers", "number_recall"),
    "Rare words": ("n_rare", "rare_recall"),
}


def news() -> Finding:
    """Load the shipped rows; build the finding on attacks on news, on which none was trained."""
    rows = _news_rows()
    scores = {
        row["attack"]: replace(row.scores["token_set_f1"], chance=float(row["prior_f1"]))
        for row in rows
    }
    best = max(scores, key=lambda name: scores[name].value)
    row = next(row for row in rows if row["attack"] == best)
    top = scores[best]
    return Finding(
        title="Attacks also work on a kind of text that they were not trained on: "
        f"F1 {top.value:.0f}",
        body=f"No attack was trained on news. On {top.n:,} sentences of BBC News, an attack (the "
        f"{INVERSION_ATTACKS[best].title.lower()}) recovers "
        f"{describe_leak(top, recall_of(row), is_bold=True)}. Guessing without the vector gets "
        f"{format_guess(top.chance)}. {F1_EXPLAINED}."
        f"{describe_every_word(all_words_f1(row))}",
        table=_news_table(rows),
        figure=shipped_scores(scores),
        alt=f"F1 by attack on news: {list_f1_scores(scores)}",
        facts=(
            ("Data", "BBC News, sentences"),
            ("n", f"{top.n:,} sentences"),
            ("Interval", INTERVAL),
            *attacker_facts(best, int(row["n_fitted_on"])),
            *_other_bars_fact(rows, row),
            *provenance_facts(r.provenance for r in rows),
        ),
        caveat=PAGES["overview"].caveat,
        commands=(command_of("inversion-bbc"), more_texts.COMMAND),
    )


def _other_bars_fact(rows: Sequence[Row], row: Row) -> tuple[Fact, ...]:
    """Return a fact on rows whose n or training size differs from the headline's; () for none."""
    groups: dict[str, list[str]] = {}
    for each in rows:
        n, n_own = (one.scores["token_set_f1"].n for one in (each, row))
        n_texts, own = (int(one["n_fitted_on"]) for one in (each, row))
        parts = [f"n = {n:,}"] * (n != n_own) + [f"trained on {n_texts:,}"] * (n_texts != own)
        if parts:
            groups.setdefault(", ".join(parts), []).append(INVERSION_ATTACKS[each["attack"]].title)
    text = "; ".join(f"{' and '.join(titles)}: {part}" for part, titles in groups.items())
    return (("Other bars", text),) if text else ()


def _news_rows() -> list[Row]:
    """Load the shipped rows of attacks on news by the bundled encoder."""
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    rows = read_rows(path, more_texts.STUDY)
    own = [row for row in rows if (row["encoder"], row["domain"]) == (ENCODER, "cross")]
    if not own:
        raise ArtifactError(f"{path} contains no row of {ENCODER} on texts of another kind.")
    return own


def _news_table(rows: Sequence[Row]) -> Table:
    """Build the table of attacks on news from result rows."""
    return Table(
        columns=("Attack", "F1", "n", "Guessing", "Trained on", "Needs"),
        rows=tuple(
            (
                INVERSION_ATTACKS[row["attack"]].title,
                row.scores["token_set_f1"].format(0),
                f"{row.scores['token_set_f1'].n:,}",
                f"{row['prior_f1']:.0f}",
                f"{row['n_fitted_on']:,} sentences" if row["n_fitted_on"] else "nothing",
                needs(row["attack"]),
            )
            for row in rows
        ),
    )


def unnamed() -> Finding:
    """Build the finding on words outside an attack's vocabulary, and on its names and numbers."""
    record = held_out_records().get(LISTED, {})
    held_out = record.get("held_out", {})
    title = INVERSION_ATTACKS[LISTED].title
    try:
        shares = {words: _recovered_share(held_out, *fields) for words, fields in _WEIGHTY.items()}
        named, whole = (Score.of_record(held_out, f"{w}_f1") for w in ("token_set", "unrestricted"))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ArtifactError(
            f"The shipped {title.lower()} has no recorded score on names and numbers. "
            "Record it: python -m scripts.rescore --texts FILE"
        ) from error
    return Finding(
        title="Words outside an attack's vocabulary are not tested",
        body=f"An attack (the {title.lower()}) can name only the words of its vocabulary. No score "
        "counts other words: this is **no evidence of safety**. With these words counted as "
        f"missed, the attack would recover {format_f1_change(whole, named)}, on {named.n:,} "
        "sentences that it had never seen. The table shows how many of the names, numbers and rare "
        "words in its vocabulary it recovers.",
        table=Table(
            columns=("Words", "Recovered", "Share"),
            rows=tuple(
                (words, f"{n_read:,} of {share.n:,}", f"{share.format(0)} %")
                for words, (n_read, share) in shares.items()
            ),
        ),
        facts=(
            (
                "Data",
                f"{named.n:,} held-out sentences, of the kinds that the attack was trained on",
            ),
            ("n", f"{named.n:,} sentences; the table gives the number of words"),
            ("Interval", f"{INTERVAL}; for shares Wilson's, which treats words as independent"),
            *attacker_facts(LISTED, int(record["n_texts"]), record),
            *versions_of([record.get("versions", {})]),
        ),
        commands=("python -m scripts.rescore --texts DATA/sentences.parquet",),
    )


def _recovered_share(held_out: Mapping[str, Any], of: str, recall: str) -> tuple[int, Score]:
    """Return how many words of a kind were recovered, and their share, from a training record.

    Raises
    ------
    ValueError
        Number and share are inconsistent: no count gives that share.
    """
    n, percent = int(held_out[of]), float(held_out[recall])
    n_read = round(n * percent / 100)
    if abs(100 * n_read / n - percent) > 1e-9:
        raise ValueError(f"no number of words is {percent} % of {n}")
    return n_read, rate_of(n_read, n)
