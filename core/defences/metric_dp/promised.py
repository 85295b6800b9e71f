"""What a mechanism promises on an encoder: for a text's tokens, or for texts' own vectors."""

from __future__ import annotations

from collections.abc import Sequence

from core.corpora import bundled_sentences
from core.defences.metric_dp.distances import (
    TextDistances,
    TokenDistances,
    text_distances,
)
from core.defences.metric_dp.promise import Promises
from core.defences.registry import DEFENCES, entry_of
from core.encoders.white_box import require_white_box
from core.errors import InvalidInputError
from core.protocols import Encoder

__all__ = [
    "EXAMPLE",
    "bundled_distances",
    "distances_in",
    "distances_of",
    "is_promising",
    "measured_distances",
    "promises_at",
]

EXAMPLE = "The patient was given insulin and aspirin."
"""Stands for the texts where those themselves are not to be shown."""

_MOST_TOKENS = 254
_N_TEXTS = 40


def is_promising(mechanism: str) -> bool:
    """Tell whether a defence promises d_χ-privacy, and so has an η."""
    entry = entry_of(mechanism)
    return bool(entry.guarantee) and "eta" in entry.kind.__dataclass_fields__


def bundled_distances(encoder: Encoder) -> TextDistances:
    """Measure the vectors of some bundled sentences, drawn evenly from all."""
    sentences: Sequence[str] = bundled_sentences()
    step = max(1, len(sentences) // _N_TEXTS)
    return text_distances(encoder.encode(list(sentences[::step][:_N_TEXTS])))


def distances_of(
    encoder: Encoder, mechanism: str, text: str = EXAMPLE, candidates: str = "regular"
) -> TokenDistances | TextDistances:
    """Measure what a mechanism's promise is about: tokens of a text, or texts' vectors.

    Raises
    ------
    InvalidInputError
        The mechanism promises nothing, needs a white box, or the text holds no token.
    """
    if not is_promising(mechanism):
        raise InvalidInputError(f"{mechanism} has no η. Choose a mechanism of d_χ-privacy.")
    return measured_distances(encoder, mechanism, text, candidates)


def measured_distances(
    encoder: Encoder, mechanism: str, text: str = EXAMPLE, candidates: str = "regular"
) -> TokenDistances | TextDistances:
    """Measure what a promise of distances is about, whatever the mechanism calls its parameter.

    Raises
    ------
    InvalidInputError
        The mechanism needs a white box, or the text holds no token.
    """
    if DEFENCES[mechanism].acts_on == "vector":
        return bundled_distances(encoder)
    known = require_white_box(encoder, DEFENCES[mechanism].title)
    (ids,) = known.token_ids([text])
    return TokenDistances.of(known, ids[:_MOST_TOKENS], candidates)


def distances_in(
    encoder: Encoder, mechanism: str, texts: Sequence[str], candidates: str = "regular"
) -> TokenDistances | TextDistances | None:
    """Measure what a promise is about for texts of one's own.

    Parameters
    ----------
    texts : sequence of str
        Of token mechanisms, the tokens of the text of median length are measured; of others the
        vectors of all.

    Returns
    -------
    TokenDistances, TextDistances or None
        None where no text holds a token, or where vectors are released of fewer than two texts.

    Raises
    ------
    InvalidInputError
        The mechanism needs a white box.
    """
    if DEFENCES[mechanism].acts_on == "vector":
        return text_distances(encoder.encode(list(texts))) if len(texts) > 1 else None
    known = require_white_box(encoder, DEFENCES[mechanism].title)
    rows = sorted((ids for ids in known.token_ids(list(texts)) if len(ids)), key=len)
    if not rows:
        return None
    return TokenDistances.of(known, rows[len(rows) // 2][:_MOST_TOKENS], candidates)


def promises_at(
    encoder: Encoder, mechanism: str, eta: float, text: str = EXAMPLE, candidates: str = "regular"
) -> Promises:
    """Return what a mechanism promises at η."""
    return distances_of(encoder, mechanism, text, candidates).promises(eta)
