"""Findings of the overview: what each shipped attack recovers, and why pages' numbers differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.inversion import shipped_scores
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Fact, Finding, Table
from leakscope.core.findings.shared import (
    F1_EXPLAINED,
    INTERVAL,
    attacker_facts,
    describe_every_word,
    held_out_records,
    list_f1_scores,
    needs,
    versions_of,
)
from leakscope.core.formatting import (
    describe_leak,
    format_guess,
    format_out_of_ten,
    format_recall,
)
from leakscope.core.pages import PAGES
from leakscope.core.results import Score
from leakscope.core.studies.leak_figures import LeakFigure, leak_figures


def shipped() -> Finding:
    """Read the training records; build the finding on what each shipped attack recovers."""
    return shipped_of(held_out_records())


def shipped_of(records: Mapping[str, Mapping[str, Any]]) -> Finding:
    """Build the finding on what attacks recover from held-out sentences, from training records.

    Parameters
    ----------
    records : mapping
        Training records of at least one attack, each with its held-out score.
    """
    scores = held_out_scores(records)
    best = max(scores, key=lambda name: scores[name].value)
    top, guess = scores[best], scores[best].chance
    rows = [
        (INVERSION_ATTACKS[name].title, score.format(0), f"{score.n:,}", needs(name))
        for name, score in scores.items()
    ]
    recalls = {name: record["held_out"].get("recall") for name, record in records.items()}
    recall = recalls[best]
    limit = "" if recall is None else " that it can name"
    every = records[best]["held_out"].get("unrestricted_f1")
    return Finding(
        title=f"From vectors, an attacker recovers {format_recall(top, recall)}{limit}",
        body=f"On {top.n:,} sentences, an attack (the {INVERSION_ATTACKS[best].title.lower()}) "
        f"recovers {describe_leak(top, recall, is_bold=True)} on average. These sentences are of "
        "the kinds that the attacks were trained on, but neither they nor near-duplicates of them "
        "were in the training. Guessing without the vector gets "
        f"{format_guess(guess)}. {F1_EXPLAINED}.{describe_every_word(every)}",
        figure=shipped_scores(scores),
        alt=f"F1 by attack: {list_f1_scores(scores)}; guessing {guess:.0f}",
        table=Table(columns=("Attack", "F1", "n", "Needs"), rows=tuple(rows)),
        facts=(
            (
                "Data",
                f"{top.n:,} held-out sentences, of the kinds that the attacks were trained on",
            ),
            ("n", f"{top.n:,} sentences"),
            ("Interval", INTERVAL),
            *attacker_facts(best, int(records[best]["n_texts"]), dict(records[best])),
            *_seeds_fact(records.values()),
            *versions_of([records[best].get("versions", {})]),
        ),
        commands=("python -m scripts.rescore --texts DATA/sentences.parquet",),
    )


def held_out_scores(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Score]:
    """Return each attack's held-out F1 from its training record; guessing is its `chance`."""
    return {
        name: Score.of_record(record["held_out"], "token_set_f1", chance="prior_f1")
        for name, record in records.items()
    }


def _seeds_fact(records: Iterable[Mapping[str, Any]]) -> tuple[Fact, ...]:
    """Return a fact that lists the seeds of the attacks' training; () if none are recorded."""
    seeds = {record["seed"] for record in records if "seed" in record}
    if not seeds:
        return ()
    text = f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, sorted(seeds)))}"
    return (
        (
            "Training runs",
            f"one per attack ({text}): the interval covers sentences, not training runs",
        ),
    )


def pages() -> Finding:
    """Build the finding on why pages' numbers differ: each has its own texts and attacker."""
    found = leak_figures()
    if not found:
        raise ArtifactError("None of the files with the pages' results can be read.")
    return Finding(
        title=f"One encoder, several figures{_describe_range(found.values())}",
        body="How much an attacker recovers depends on the texts and on the attacker. **Each "
        "figure is a lower bound.**",
        table=Table(
            columns=("Page", "Recovered", "n", "Texts", "Attacker"),
            rows=tuple(
                (PAGES[f.page].title, f.leak, f"{f.score.n:,}", f.texts, f.attacker)
                for f in found.values()
            ),
        ),
        facts=(
            ("Data", "see the table: each page has its own"),
            ("n", "see the table: each page has its own"),
            ("Interval", INTERVAL),
            ("Attacker", "see the table: the strongest of each page"),
            ("Access", "the vectors, and the attacker's own texts with their vectors"),
            ("Cost", "see the table: the number of training texts"),
        ),
        commands=tuple(command_of(t) for t in ("inversion-bbc", "representations", "tradeoff")),
    )


def _describe_range(figures: Iterable[LeakFigure]) -> str:
    """Return the range of recall over the pages that count words, as a title's end; "" for none."""
    recalls = [figure.recall for figure in figures if figure.recall is not None]
    if not recalls:
        return ""
    least, most = format_out_of_ten(min(recalls)), format_out_of_ten(max(recalls))
    if least == most:
        return f": {most}"
    return f": from {least.removesuffix(' of 10 words')} to {most}"
