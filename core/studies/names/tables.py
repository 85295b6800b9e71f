"""Rows of the name study: anonymised, as Markdown tables, and shipped for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from leakscope.core.assets import RESULTS
from leakscope.core.errors import ArtifactError
from leakscope.core.formatting import format_rate
from leakscope.core.names.probing import KNOWLEDGE
from leakscope.core.results import NO_INTERVAL, Interval, Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows

SHIPPED = RESULTS / "names.json"
"""The shipped rows of the bundled encoder."""

PAPER = (
    (77.27, 68.33, 60.14, 74.83),
    (82.23, 81.29, 78.45, 82.42),
    (72.57, 81.94, 88.54, 82.64),
    (72.37, 77.64, 76.12, 83.01),
)
"""Corò (2022), Table 5.6, one row per original name, in the thesis's order;
287 to 679 Italian sentences each, MSP, names in 287 to 17,116 of 850,000 training sentences."""

_MOST_COLUMNS = 12


def anonymise_names(rows: Sequence[Row]) -> list[Row]:
    """Return rows with people's names replaced by `name 1`, …, without the list of names."""
    return [_anonymise_row(row) for row in rows]


def _anonymise_row(row: Row) -> Row:
    """Return a row with numbers for people's names, and a shortened error."""
    cell = {name: value for name, value in row.cell.items() if name != "names"}
    facts = {name: value for name, value in row.facts.items() if name != "names"}
    if "people" in facts:
        first = 1 if facts["kind"] == "substitution" else len(facts["people"]) + 1
        facts["people"] = [f"name {first + i}" for i in range(len(facts["people"]))]
    # A message may quote a name.
    return replace(row, cell=cell, facts=facts, error=row.error.partition(":")[0])


def load_rows(path: Path = SHIPPED) -> ResultTable:
    """Read the measured rows of `leakscope study names` from a file.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = read_rows(path, "names").measured
    if not all(map(_is_complete, rows)):
        raise ArtifactError(
            f"{path} does not contain rows of `leakscope study names`. Run the study again."
        )
    return rows


def _is_complete(row: Row) -> bool:
    """Return whether a row has the entries of its kind, probing or substitution."""
    kind = row.facts.get("kind")
    return kind == "probing" or (kind == "substitution" and "found_between" in row.facts)


def format_score(rate: Score, *, decimals: int = 0) -> str:
    """Format a rate in per cent with its interval and the number of trials."""
    return rate.format(decimals, with_n=True)


def matrix_of(row: Row) -> list[list[Score]]:
    """Return a row's matrix of recovery rates: lines by original name, columns by inserted name."""
    counts = zip(row["n_sentences"], row["found"], row["found_between"], strict=True)
    return [
        [
            Score(100 * count / n, Interval(*ends) if ends else NO_INTERVAL, n)
            for count, ends in zip(found, within, strict=True)
        ]
        for n, found, within in counts
    ]


def describe_counted(rate: Score, of: str) -> str:
    """Describe a rate in words: count, total, per cent and interval.

    Examples
    --------
    >>> from leakscope.core.intervals import rate_of
    >>> describe_counted(rate_of(8, 15), "sentences")
    '**8 of 15 sentences** (53 %, 95 % CI 30–75)'
    """
    return format_rate(rate, of, count=round(rate.value * rate.n / 100), is_bold=True)


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: rates of each matrix, small matrices, and probes."""
    table = ResultTable(rows)
    good = table.measured
    matrices = good.where(kind="substitution")
    lines = ["# Names of people", "", *_introduction(good), *_rate_table(matrices)]
    for row in matrices:
        if row["n_names"] <= _MOST_COLUMNS:
            lines += _matrix_table(row)
    lines += _probe_table(good.where(kind="probing"))
    lines += [f"Failed: {row['domain']}, {row['attack']}: {row['error']}" for row in table.failed]
    return "\n".join(lines).rstrip() + "\n"


def _setting_cells(row: Row) -> str:
    """Format a row's attack, domain and numbers of training sentences as table cells."""
    return f"{row['attack']} | {row['domain']} | {row['n_fitted_on']:,} | {row['n_added']:,}"


def _introduction(rows: Sequence[Row]) -> list[str]:
    """Return the lines above the tables: a paragraph and a command; empty without rows."""
    if not rows:
        return []
    row = rows[0]
    return [
        f"Encoder: {row['encoder']}. Attacked: {Path(row['target']).name}, the sentences of "
        f"{row['held_share']:.0%} of its documents, seed {row['seed']}. In-domain attacks were "
        f"trained on its other documents, cross-domain attacks on {Path(row['other']).name}. "
        "*Added*: the attacker looks for these people and inserts their names into this many "
        "training sentences. All figures are per cent, with 95 % CIs in brackets; n counts "
        "sentences. Intervals are from a bootstrap over documents, because sentences of one "
        "document depend on each other. They are Wilson intervals where no surname or every "
        "surname was recovered, and where each sentence comes from a different document and "
        "counts once. No person is named.",
        "",
        "```sh",
        "leakscope study names --spec results/names.spec.json",
        "```",
        "",
    ]


def _rate_table(matrices: Sequence[Row]) -> list[str]:
    """Return the Markdown section with the rates of each matrix."""
    lines = [
        "## How often the surname is recovered (Corò 2022, §5.2.3)",
        "",
        "*Own*: unchanged sentences, the diagonal. *Exchanged*: another listed name is inserted. "
        "*Same section*, *other section*: only names from the same, or from another, section of "
        "the news. *False positives*: of the listed surnames that are not in a sentence, the "
        "share that the attack answered anyway. *Ranked first*: the attacker knows the list and "
        "takes the name that the attack ranks highest. *Prior*: an attacker who never sees the "
        "vector.",
        "",
        "| names | attack | trained | sentences | added | own | exchanged | same section "
        "| other section | false positives | ranked first | prior |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in matrices:
        parts = [
            f"**{format_score(row.scores['diagonal'])}**",
            format_score(row.scores["exchanged"]),
            *(
                format_score(row.scores[name]) if name in row.scores else ""
                for name in ("same_section", "other_section")
            ),
            row.format("wrongly_said"),
            format_score(row.scores["ranked_first"]),
            f"{row.scores['prior'].value:.0f}",
        ]
        lines.append(f"| {row['n_names']} | {_setting_cells(row)} | {' | '.join(parts)} |")
    own = [PAPER[i][i] for i in range(4)]
    rest = [value for i, row in enumerate(PAPER) for j, value in enumerate(row) if i != j]
    theirs = (
        "The thesis reports, for four names of Italian politics, Sentence-BERT and MSP trained on "
        f"850,000 sentences: own {', '.join(f'{value:.0f}' for value in own)}; exchanged "
        f"{min(rest):.0f} to {max(rest):.0f}."
    )
    return [*lines, "", theirs, ""]


def _matrix_table(row: Row) -> list[str]:
    """Return the Markdown table of a small matrix: names in sentences by names inserted."""
    people = row["people"]
    added = f", {row['n_added']:,} sentences added" if row["n_added"] else ""
    lines = [
        f"### {row['n_names']} names, {row['attack']}, {row['domain']}-domain{added}",
        "",
        "Rows: original name. Columns: inserted name.",
        "",
        f"| | {' | '.join(people)} |",
        "|---|" + "---|" * len(people),
        f"| *training sentences* | {' | '.join(f'{n:,}' for n in row['training'])} |",
    ]
    if row["n_added"]:
        lines.append(f"| *added sentences* | {' | '.join(f'{n:,}' for n in row['added'])} |")
    for name, found in zip(people, matrix_of(row), strict=True):
        lines.append(f"| {name} | {' | '.join(map(format_score, found))} |")
    return [*lines, ""]


def _probe_table(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown section on probes by what the attacker knows; duplicates occur once."""
    if not rows:
        return []
    n = rows[0]["n_candidates"]
    lines = [
        f"## Probing for {n} names that no attack was trained on",
        "",
        f"One of {n} candidate names, first name and surname, was inserted into each sentence. No "
        "training sentence of any attack contains its surname. The attacker knows the candidates' "
        "surnames, can use the encoder, and picks the candidate with the greatest cosine. "
        f"Guessing: {100 / n:.1f} at 1, {500 / n:.1f} at 5.",
        "",
        "| what the attacker knows | attack | trained | sentences | added | at 1 | at 5 |",
        "|---|---|---|---|---|---|---|",
    ]
    seen = set()
    for row in rows:
        setting = _setting_cells(row) if row["knows"] == "recovered" else "– | – | – | –"
        line = (
            f"| {KNOWLEDGE[row['knows']].assumes} | {setting} "
            f"| **{format_score(row.scores['hits_1'])}** "
            f"| {format_score(row.scores['hits_5'])} |"
        )
        if row["knows"] == "recovered" or line not in seen:
            lines.append(line)
        seen.add(line)
    return [*lines, ""]
