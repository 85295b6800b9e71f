"""The finding on whole sentences, reconstructed in word order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.inversion import shipped as stored
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.reconstruct import grown_figure
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.findings.shared import ENCODER, INTERVAL, needs, provenance_facts
from leakscope.core.pages import LOWER
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.storage.artifacts import META, read_record
from leakscope.core.studies.inversion.reconstruct_tables import parse_length

SHIPPED = RESULTS

KINDS: Mapping[str, str] = {
    "wikipedia": "Wikipedia (other sentences of it are training texts)",
    "bbc": "BBC News",
    "reviews": "reviews on the web",
}
"""The texts of each file; only the first is of the kind that the attack was trained on."""


@dataclass(frozen=True)
class SentencesRead:
    """Rows on one kind of text without a defence, in order of sentence length.

    Attributes
    ----------
    read : tuple of Row
        Of `reconstruct`, with the most queries that were allowed.
    blind : tuple of Row
        Of a reader without the vector, by the same lengths.
    rows : tuple of Row
        All of them: every reader and budget.
    """

    read: tuple[Row, ...]
    blind: tuple[Row, ...]
    rows: tuple[Row, ...]

    @property
    def n_queries(self) -> int:
        """The query budget per sentence."""
        return int(self.read[0]["budget"])

    def pairs(self) -> list[tuple[Row, Score]]:
        """Pair each length's result row with the ROUGE-L of the baseline without the vector."""
        guessed = (row.scores["rouge_l"] for row in self.blind)
        return list(zip(self.read, guessed, strict=True))


def load_sentences(kind: str, folder: Path = SHIPPED) -> SentencesRead:
    """Read the shipped results on reconstructing sentences of one kind of text, one of `KINDS`.

    Raises
    ------
    ArtifactError
        Missing, damaged, or without rows of both readers for every length.
    """
    path = folder / f"reconstruct-{kind}.json"
    rows = read_rows(path, "reconstruct").measured.where(guarded_by="none")
    asked = rows.where(reader="reconstruct")
    read = _sort_by_length(asked.where(budget=max(asked.column("budget"), default=0)))
    blind = _sort_by_length(rows.where(reader="blind"))
    if not read or [r["length"] for r in read] != [r["length"] for r in blind]:
        raise ArtifactError(
            f"{path} lacks rows with and without the vector for the same sentences."
        )
    return SentencesRead(read, blind, tuple(rows))


def _sort_by_length(rows: ResultTable) -> tuple[Row, ...]:
    """Sort result rows by sentence length; return them as a tuple."""
    return tuple(sorted(rows, key=lambda row: parse_length(row["length"])))


ATTACK = "reconstruct"
_OWN = next(iter(KINDS))
"""The kind of text that the attack was trained on."""

_CAVEAT = (
    f"{LOWER} Sentences of up to 32 words; longer texts were not measured. The attacker must be "
    "able to encode texts with the same model. One encoder, English."
)


def sentences() -> Finding:
    """Build the finding on reconstructed sentences by length, from the shipped results."""
    found = {kind: load_sentences(kind) for kind in KINDS}
    own = found[_OWN]
    short, longest = own.read[0], own.read[-1]
    exact, interval = short.scores["exact"].parts(0)
    title = INVERSION_ATTACKS[ATTACK].title
    return Finding(
        title=f"The attacker recovered {exact} % of short Wikipedia sentences word for word",
        body="The attacker has the vector alone and encodes "
        f"{own.n_queries:,} texts of its own to compare. It recovered **{exact} %** of sentences "
        f"of {_format_length(short)} word for word (95 % CI {interval}), and "
        f"{longest.scores['exact'].parts(0)[0]} % of sentences of {_format_length(longest)} "
        f"(95 % CI {longest.scores['exact'].parts(0)[1]}). {_describe_order(own)} Capitals and "
        "punctuation do not count.",
        figure=grown_figure(own.rows),
        alt="ROUGE-L by number of queries, one line per sentence length: "
        + ", ".join(f"{_format_length(row)} {_rouge_l(row).value:.0f}" for row in own.read)
        + f" with {own.n_queries:,} queries",
        table=_length_table(found),
        facts=(
            ("Data", f"{'; '.join(KINDS.values())}; the figure shows {KINDS[_OWN]}"),
            ("n", f"{sum(_rouge_l(row).n for row in own.read):,} sentences of {KINDS[_OWN]}"),
            ("Interval", INTERVAL),
            ("Attacker", f"{title}, without a defence"),
            ("Access", needs(ATTACK)),
            ("Cost", _describe_cost(own)),
            *provenance_facts(row.provenance for each in found.values() for row in each.rows),
        ),
        caveat=_CAVEAT,
        commands=tuple(command_of(f"reconstruct-{kind}") for kind in KINDS),
    )


def _format_length(row: Row) -> str:
    """Format a row's range of sentence lengths, such as "4 to 8 words"."""
    return f"{str(row['length']).replace('-', ' to ')} words"


def _rouge_l(row: Row) -> Score:
    """Return a row's ROUGE-L score."""
    return row.scores["rouge_l"]


def _describe_order(own: SentencesRead) -> str:
    """Describe ROUGE-L by sentence length, and the range that guessing reaches."""
    read = ", ".join(f"**{_rouge_l(row).value:.0f}** on {_format_length(row)}" for row in own.read)
    guessed = [score.value for _, score in own.pairs()]
    return (
        "ROUGE-L (100: every word, in order) is "
        f"{read}; without the vector it is {min(guessed):.0f} to {max(guessed):.0f}."
    )


def _describe_cost(own: SentencesRead) -> str:
    """Describe the attack's training size and queries."""
    path = stored.WEIGHTS / ENCODER / ATTACK / META
    n_texts = int(read_record(path, training=dict)["training"]["n_texts"])
    return f"trained on {n_texts:,} sentences; up to {own.n_queries:,} queries per sentence"


def _length_table(found: Mapping[str, SentencesRead]) -> Table:
    """Build the table of ROUGE-L by text kind and sentence length."""
    return Table(
        columns=("Texts", "Words", "n", "ROUGE-L", "Guessing", "Word for word, %"),
        rows=tuple(
            (
                KINDS[kind],
                str(row["length"]),
                f"{_rouge_l(row).n:,}",
                _rouge_l(row).format(0),
                guessed.format(0),
                row.scores["exact"].format(0),
            )
            for kind, each in found.items()
            for row, guessed in each.pairs()
        ),
    )
