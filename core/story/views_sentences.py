"""The view of whole sentences that are read back, words in order."""

from __future__ import annotations

from collections.abc import Mapping

from core.attacks.inversion import shipped as stored
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.figures.reconstruct import grown_figure
from core.results import Score
from core.store import META, read_record
from core.story.caveats import LOWER
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import Slide, Table
from core.story.views_read import ENCODER, INTERVAL, needs, origin
from core.studies.rows import Row
from core.studies.sentence_summary import KINDS, SentencesRead, load_sentences

__all__ = ["sentences"]

ATTACK = "reconstruct"
_OWN = next(iter(KINDS))
"""The kind of text that the attack learnt from."""

_CAVEAT = (
    f"{LOWER} Sentences of up to 32 words; of longer texts nothing was measured. "
    "It has to encode texts with the same model. One encoder, English."
)


def sentences() -> Slide:
    """Return how much of whole sentences comes back in its order, by their length."""
    found = {kind: load_sentences(kind) for kind in KINDS}
    own = found[_OWN]
    short, longest = own.read[0], own.read[-1]
    exact, interval = short.scores["exact"].parts(0)
    title = INVERSION_ATTACKS[ATTACK].title
    return Slide(
        title=f"Of short sentences of Wikipedia {exact} % come back word for word",
        body=f"From the vector alone, and {own.n_queries:,} texts that it encodes itself to "
        f"compare, an attacker writes the sentence. Of {_words(short)}, **{exact} %** "
        f"come back word for word (95 % interval {interval}). "
        f"{_order_said(own)} Sentences of {_words(longest)} come back word for word in "
        f"{longest.scores['exact'].said(0)} % of the cases. Capitals and punctuation do not count.",
        figure=plain_figure(grown_figure(own.rows)),
        alt="ROUGE-L by the queries that the attacker may make, a line each length of sentences: "
        + ", ".join(f"{_words(row)} {_rouge(row).value:.0f}" for row in own.read)
        + f" with {own.n_queries:,}",
        table=_table(found),
        facts=(
            ("Data", f"{'; '.join(KINDS.values())}; the figure: {KINDS[_OWN]}"),
            ("n", f"{sum(_rouge(row).n for row in own.read):,} sentences of {KINDS[_OWN]}"),
            ("Interval", INTERVAL),
            ("Attacker", f"{title}, without a defence"),
            ("Access", needs(ATTACK)),
            ("Cost", _cost(own)),
            *origin(row.provenance for each in found.values() for row in each.rows),
        ),
        caveat=_CAVEAT,
        commands=tuple(command_of(f"reconstruct-{kind}") for kind in KINDS),
    )


def _words(row: Row) -> str:
    """Return a length for a sentence: "4 to 8 words"."""
    return f"{str(row['length']).replace('-', ' to ')} words"


def _rouge(row: Row) -> Score:
    return row.scores["rouge_l"]


def _order_said(own: SentencesRead) -> str:
    """Return how much stands in its order, by length, and what guessing comes to."""
    read = ", ".join(f"**{_rouge(row).value:.0f}** on {_words(row)}" for row in own.read)
    guessed = [score.value for _, score in own.pairs()]
    return (
        "Where 100 is every word in its place and no other (ROUGE-L), it reaches "
        f"{read}; somebody without the vector {min(guessed):.0f} to {max(guessed):.0f}."
    )


def _cost(own: SentencesRead) -> str:
    path = stored.WEIGHTS / ENCODER / ATTACK / META
    n_texts = int(read_record(path, training=dict)["training"]["n_texts"])
    return f"taught by {n_texts:,} sentences; up to {own.n_queries:,} queries a sentence"


def _table(found: Mapping[str, SentencesRead]) -> Table:
    return Table(
        columns=("Texts", "Words", "n", "In order (ROUGE-L)", "Guessing", "Word for word, %"),
        rows=tuple(
            (
                KINDS[kind],
                str(row["length"]),
                f"{_rouge(row).n:,}",
                _rouge(row).said(0),
                guessed.said(0),
                row.scores["exact"].said(0),
            )
            for kind, each in found.items()
            for row, guessed in each.pairs()
        ),
    )
