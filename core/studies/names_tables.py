"""The rows of the study of names: without names, as tables, and as they ship for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.assets import ASSETS
from core.errors import ArtifactError
from core.names.probing import KNOWLEDGE
from core.results import NO_INTERVAL, Interval, Score
from core.said import rate_said
from core.studies.rows import Row
from core.studies.tables import read_rows

__all__ = ["PAPER", "SHIPPED", "anonymised", "counted_said", "load_rows",
           "markdown", "matrix_of", "said"]  # fmt: skip

SHIPPED = ASSETS / "names" / "minilm.json"
"""What was measured for the bundled encoder."""

PAPER = (
    (77.27, 68.33, 60.14, 74.83),
    (82.23, 81.29, 78.45, 82.42),
    (72.57, 81.94, 88.54, 82.64),
    (72.37, 77.64, 76.12, 83.01),
)
"""Corò (2022), Table 5.6, a row for each name whose sentences they are, in the thesis's order;
287 to 679 Italian sentences each, MSP, names in 287 to 17,116 of 850,000 training sentences."""

_MOST_COLUMNS = 12


def anonymised(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with `name 1`, `name 2`, … for the people of each, and without the list."""
    return [_without_names(row) for row in rows]


def _without_names(row: Row) -> Row:
    cell = {name: value for name, value in row.cell.items() if name != "names"}
    facts = {name: value for name, value in row.facts.items() if name != "names"}
    if "people" in facts:
        first = 1 if facts["kind"] == "substitution" else len(facts["people"]) + 1
        facts["people"] = [f"name {first + i}" for i in range(len(facts["people"]))]
    # A message may quote a name.
    return replace(row, cell=cell, facts=facts, error=row.error.partition(":")[0])


def load_rows(path: Path = SHIPPED) -> list[Row]:
    """Read what `python -m core study names` wrote.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = [row for row in read_rows(path, "names") if not row.error]
    if not all(_is_of_today(row) for row in rows):
        raise ArtifactError(
            f"{path} does not hold rows of `python -m core study names`. Make it anew."
        )
    return rows


def _is_of_today(row: Row) -> bool:
    kind = row.facts.get("kind")
    return kind == "probing" or (kind == "substitution" and "found_between" in row.facts)


def said(rate: Score, *, decimals: int = 0) -> str:
    """Return a rate with its interval and the number of trials in a few characters."""
    return rate.said(decimals, with_n=True)


def matrix_of(row: Row) -> list[list[Score]]:
    """Return how often each name was read, a line for each name whose sentences they are."""
    counts = zip(row["n_sentences"], row["found"], row["found_between"], strict=True)
    return [
        [
            Score(100 * count / n, Interval(*ends) if ends else NO_INTERVAL, n)
            for count, ends in zip(found, within, strict=True)
        ]
        for n, found, within in counts
    ]


def counted_said(rate: Score, of: str) -> str:
    """Return a share of independent trials in words: the count behind it and the per cent.

    Examples
    --------
    >>> from core.rates import rate_of
    >>> counted_said(rate_of(8, 15), "sentences")
    '**8 of 15 sentences** (53 %, 95 % interval 30 to 75)'
    """
    return rate_said(rate, of, count=round(rate.value * rate.n / 100), is_bold=True)


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown tables: sums of each matrix, small matrices, and probes."""
    failed = [row for row in rows if row.error]
    good = [row for row in rows if not row.error]
    matrices = [row for row in good if row["kind"] == "substitution"]
    lines = ["# Names of people", "", *_intro(good), *_sums(matrices)]
    for row in matrices:
        if row["n_names"] <= _MOST_COLUMNS:
            lines += _matrix(row)
    lines += _probes([row for row in good if row["kind"] == "probing"])
    lines += [f"Failed: {row['domain']}, {row['attack']}: {row['error']}" for row in failed]
    return "\n".join(lines).rstrip() + "\n"


def _setting(row: Row) -> str:
    return f"{row['attack']} | {row['domain']} | {row['n_fitted_on']:,} | {row['n_added']:,}"


def _intro(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    row = rows[0]
    return [
        f"Encoder: {row['encoder']}. Attacked: {Path(row['target']).name}, the sentences of "
        f"{row['held_share']:.0%} of its documents, seed {row['seed']}. In-domain attacks were "
        f"trained on its other documents, cross-domain ones on {Path(row['other']).name}. "
        "*Added* training sentences are ones of the attacker's own into which the names were put: "
        "the attacker is after these people. All figures in per cent with 95 % intervals, a "
        "bootstrap over documents: sentences of one depend on each other. Wilson's where nobody "
        "was read, or everybody, and where each sentence is of a document of its own and counts "
        "once. n is of sentences. Nobody is named.",
        "",
        "```sh",
        "python -m core study names --spec docs/results/names.spec.json",
        "```",
        "",
    ]


def _sums(matrices: Sequence[Row]) -> list[str]:
    """Return a line for each matrix."""
    lines = [
        "## How often the surname is read (Corò 2022, §5.2.3)",
        "",
        "*Own*: sentences as they were written, the diagonal. *Exchanged*: with another of the "
        "names in its place; of the same section of the news, and of another. *Wrongly said*: a "
        "surname of the list that is not in the sentence. *Ranked first*: the attacker knows the "
        "list and takes the name that the attack ranks highest. *Prior*: an attacker who never "
        "sees the vector.",
        "",
        "| names | attack | trained | sentences | added | own | exchanged | same section "
        "| other section | wrongly said | ranked first | prior |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in matrices:
        parts = [
            f"**{said(row.scores['diagonal'])}**",
            said(row.scores["exchanged"]),
            *(
                said(row.scores[name]) if name in row.scores else ""
                for name in ("same_section", "other_section")
            ),
            row.said("wrongly_said"),
            said(row.scores["ranked_first"]),
            f"{row.scores['prior'].value:.0f}",
        ]
        lines.append(f"| {row['n_names']} | {_setting(row)} | {' | '.join(parts)} |")
    own = [PAPER[i][i] for i in range(4)]
    rest = [value for i, row in enumerate(PAPER) for j, value in enumerate(row) if i != j]
    theirs = (
        "The thesis, for four names of Italian politics, Sentence-BERT and MSP trained on 850,000 "
        f"sentences: own {', '.join(f'{value:.0f}' for value in own)}; exchanged "
        f"{min(rest):.0f} to {max(rest):.0f}."
    )
    return [*lines, "", theirs, ""]


def _matrix(row: Row) -> list[str]:
    """Return the cells of a small matrix as a table of its own."""
    people = row["people"]
    added = f", {row['n_added']:,} sentences added" if row["n_added"] else ""
    lines = [
        f"### {row['n_names']} names, {row['attack']}, {row['domain']}-domain{added}",
        "",
        "Rows: whose sentences. Columns: the name put in.",
        "",
        f"| | {' | '.join(people)} |",
        "|---|" + "---|" * len(people),
        f"| *training sentences* | {' | '.join(f'{n:,}' for n in row['training'])} |",
    ]
    if row["n_added"]:
        lines.append(f"| *added sentences* | {' | '.join(f'{n:,}' for n in row['added'])} |")
    for name, found in zip(people, matrix_of(row), strict=True):
        lines.append(f"| {name} | {' | '.join(map(said, found))} |")
    return [*lines, ""]


def _probes(rows: Sequence[Row]) -> list[str]:
    """Return the probes: those without an attack once."""
    if not rows:
        return []
    n = rows[0]["n_candidates"]
    lines = [
        f"## Which of {n} names that nobody trained on?",
        "",
        f"A name of {n} candidates, first name and surname, was put into each sentence; no "
        "training sentence of any attack holds its surname. The attacker knows the candidates' "
        "surnames, may ask the encoder, and takes the candidate with the greatest cosine. "
        f"Guessing: {100 / n:.1f} at 1, {500 / n:.1f} at 5.",
        "",
        "| the attacker also knows | attack | trained | sentences | added | at 1 | at 5 |",
        "|---|---|---|---|---|---|---|",
    ]
    seen = set()
    for row in rows:
        setting = _setting(row) if row["knows"] == "recovered" else "– | – | – | –"
        line = (
            f"| {KNOWLEDGE[row['knows']].assumes} | {setting} | **{said(row.scores['hits_1'])}** "
            f"| {said(row.scores['hits_5'])} |"
        )
        if row["knows"] == "recovered" or line not in seen:
            lines.append(line)
        seen.add(line)
    return [*lines, ""]
