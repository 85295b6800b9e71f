"""Guarantees of a mechanism on an encoder, for a text's tokens or for whole-text vectors."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.metric_dp.distances import (
    TextDistances,
    TokenDistances,
    text_distances,
)
from leakscope.core.defences.metric_dp.guarantee import Guarantees
from leakscope.core.defences.registry import DEFENCES, entry_of
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder

EXAMPLE = "The patient was given insulin and aspirin."
"""Example that replaces texts which must not be shown."""

_MOST_TOKENS = 254
_N_TEXTS = 40


def has_d_chi_guarantee(mechanism: str) -> bool:
    """Return whether a defence guarantees d_χ-privacy, and so has a parameter η."""
    entry = entry_of(mechanism)
    return bool(entry.guarantee) and "eta" in entry.kind.__dataclass_fields__


def bundled_distances(encoder: Encoder) -> TextDistances:
    """Measure the distances between vectors of evenly spaced bundled sentences."""
    sentences: Sequence[str] = bundled_sentences()
    step = max(1, len(sentences) // _N_TEXTS)
    return text_distances(encoder.encode(list(sentences[::step][:_N_TEXTS])))


def distances_of(
    encoder: Encoder, mechanism: str, text: str = EXAMPLE, candidates: str = "regular"
) -> TokenDistances | TextDistances:
    """Measure the distances that a d_χ mechanism's guarantee depends on, for one text.

    Raises
    ------
    InvalidInputError
        The mechanism guarantees nothing, needs a white box, or the text holds no token.
    """
    if not has_d_chi_guarantee(mechanism):
        raise InvalidInputError(f"{mechanism} has no η. Choose a mechanism of d_χ-privacy.")
    return measured_distances(encoder, mechanism, text, candidates)


def measured_distances(
    encoder: Encoder, mechanism: str, text: str = EXAMPLE, candidates: str = "regular"
) -> TokenDistances | TextDistances:
    """Measure the distances that any metric-DP guarantee depends on, for one text.

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


def distances_of_texts(
    encoder: Encoder, mechanism: str, texts: Sequence[str], candidates: str = "regular"
) -> TokenDistances | TextDistances | None:
    """Measure the distances that a guarantee depends on, for the texts of a user.

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


def guarantees_at(
    encoder: Encoder, mechanism: str, eta: float, text: str = EXAMPLE, candidates: str = "regular"
) -> Guarantees:
    """Measure the guarantees of a d_χ mechanism at η, for the tokens of a text."""
    return distances_of(encoder, mechanism, text, candidates).guarantees(eta)
