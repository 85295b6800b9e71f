"""Distances between a mechanism's inputs, which turn η into a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.guarantee import Guarantee, Guarantees
from leakscope.core.defences.registry import DEFENCES, entry_of
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, WhiteBoxEncoder

_PAIRS = 20_000
"""Pairs drawn for a median: its standard error is then below 1 % of the distances' spread."""


@dataclass(frozen=True, eq=False)
class TokenDistances:
    """Distances from the tokens of a text to all candidate tokens.

    Attributes
    ----------
    tokens, nearest : tuple of str
        The tokens, and the nearest other candidate of each.
    to_nearest, to_median, to_farthest : float64 array (tokens,)
        Euclidean, among the candidates other than the token itself.
    farthest : tuple of str
        The farthest candidate of each.
    median_pair : float
        Median distance of two candidates drawn at random.
    n_candidates : int
        Tokens that can be returned.
    """

    tokens: tuple[str, ...]
    nearest: tuple[str, ...]
    farthest: tuple[str, ...]
    to_nearest: NDArray[np.float64]
    to_median: NDArray[np.float64]
    to_farthest: NDArray[np.float64]
    median_pair: float
    n_candidates: int

    @classmethod
    def of(
        cls, encoder: WhiteBoxEncoder, token_ids: Sequence[int], candidates: str = "regular"
    ) -> TokenDistances:
        """Measure each token's distance to its nearest, median and farthest candidate.

        The median pair is of the whole vocabulary.

        Raises
        ------
        InvalidInputError
            No token, or fewer than two candidates.
        """
        known = candidate_ids(encoder, candidates)
        if not len(token_ids) or len(known) < 2:
            raise InvalidInputError(
                "A guarantee needs at least one token, and two tokens that can be returned."
            )
        table = token_table(encoder)
        others, names = table[known], encoder.tokens
        distinct, which = np.unique(np.asarray(token_ids, np.int64), return_inverse=True)
        squares = np.square(others).sum(1)
        rows = [_measure_token(table[i], others, squares, known != i) for i in distinct]
        near, far = known[np.array([row[:2] for row in rows], np.int64)][which].T
        nearest, median, farthest = np.array([row[2:] for row in rows], np.float64)[which].T
        return cls(
            tuple(names[i] for i in token_ids),
            tuple(names[i] for i in near),
            tuple(names[i] for i in far),
            nearest,
            median,
            farthest,
            _measure_median_pair(encoder, candidates, others),
            len(known),
        )

    def guarantees(self, eta: float) -> Guarantees:
        """Compute the guarantees at η from the distances, for token pairs and the whole text.

        The bound of the whole text is η·Σᵢ max_w d(xᵢ, w), which holds for every other text of as
        many tokens.
        """
        worst, far = int(self.to_nearest.argmax()), int(self.to_farthest.argmax())
        n = len(self.tokens)
        whole = None
        if n > 1:
            what = f"this text of {n} tokens and any other text of {n} tokens"
            whole = Guarantee(what, eta, float(self.to_farthest.sum()))
        return Guarantees(
            _make_pair_guarantee(
                self.tokens[worst],
                self.nearest[worst],
                eta,
                float(self.to_nearest[worst]),
                "its nearest neighbour ",
            ),
            Guarantee("two words a typical (median) distance apart", eta, self.median_pair),
            whole,
            _make_pair_guarantee(
                self.tokens[far], self.farthest[far], eta, float(self.to_farthest[far])
            ),
            n_tokens=n,
        )


def _make_pair_guarantee(
    token: str, other: str, eta: float, distance: float, role: str = ""
) -> Guarantee:
    """Build the Guarantee for two tokens at a distance; `role` describes the other."""
    return Guarantee(f"{_quote_token(token)} and {role}{_quote_token(other)}", eta, distance)


def _quote_token(token: str) -> str:
    """Return a token in quotes; a word piece inside a word begins with an ellipsis."""
    return f"“…{token[2:]}”" if token.startswith("##") and token != "##" else f"“{token}”"


def _measure_token(
    vector: NDArray[np.float32],
    others: NDArray[np.float32],
    squares: NDArray[np.float32],
    is_other: NDArray[np.bool_],
) -> tuple[int, int, float, float, float]:
    """Return a token's nearest and farthest candidate, and nearest, median, farthest distance."""
    halves = squares / 2 - others @ vector  # of the squared distances, but for a constant
    near = int(np.where(is_other, halves, np.inf).argmin())
    far = int(np.where(is_other, halves, -np.inf).argmax())
    middle = np.median(halves[is_other]) * 2 + vector @ vector
    exact = (float(np.linalg.norm(others[i] - vector)) for i in (near, far))
    nearest, farthest = exact
    return near, far, nearest, float(np.sqrt(max(middle, 0))), farthest


_MEDIANS: dict[tuple[str, str], float] = {}


def _measure_median_pair(
    encoder: WhiteBoxEncoder, candidates: str, vectors: NDArray[np.float32]
) -> float:
    """Measure the median distance of two random candidates, once per encoder."""
    key = (encoder.fingerprint, candidates)
    if key not in _MEDIANS:
        _MEDIANS[key] = median_distance(vectors)
    return _MEDIANS[key]


def median_distance(vectors: NDArray[np.float32], *, n_pairs: int = _PAIRS, seed: int = 0) -> float:
    """Estimate the median Euclidean distance of two different rows from random pairs."""
    rng, n, found = np.random.default_rng(seed), len(vectors), []
    for start in range(0, n_pairs, 4096):
        m = min(4096, n_pairs - start)
        one = rng.integers(n, size=m)
        other = (one + rng.integers(1, n, size=m)) % n
        found.append(np.linalg.norm(vectors[one] - vectors[other], axis=1))
    return float(np.median(np.concatenate(found)))


@dataclass(frozen=True)
class TextDistances:
    """Distances between the vectors of whole texts.

    Attributes
    ----------
    to_nearest : float
        Of a text to the nearest other, median over the texts.
    median_pair, widest : float
        Of two texts.
    """

    n_texts: int
    to_nearest: float
    median_pair: float
    widest: float

    def guarantees(self, eta: float) -> Guarantees:
        """Compute the guarantees at η of noise on whole-text vectors, from the distances."""
        texts = f"{self.n_texts:,} texts"
        return Guarantees(
            Guarantee(
                f"a typical (median) text and the most similar one among {texts}",
                eta,
                self.to_nearest,
            ),
            Guarantee(f"two of {texts} a typical (median) distance apart", eta, self.median_pair),
            None,
            Guarantee(f"the farthest two of {texts}", eta, self.widest),
            is_of_texts=True,
            pairs=(
                "between a typical (median) text and its nearest neighbour",
                "between two texts a typical (median) distance apart",
            ),
        )


def text_distances(vectors: NDArray[np.float32], *, most: int = 500) -> TextDistances:
    """Measure the nearest, median and widest distance among the first `most` vectors.

    Raises
    ------
    InvalidInputError
        Fewer than two texts.
    """
    rows = vectors[:most]
    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)
    if len(dense) < 2:
        raise InvalidInputError("A guarantee between texts needs at least two texts.")
    squares = (dense**2).sum(1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * dense @ dense.T, 0))
    pairs = distances[np.triu_indices(len(dense), 1)]
    np.fill_diagonal(distances, np.inf)
    nearest = float(np.median(distances.min(1)))
    return TextDistances(len(dense), nearest, float(np.median(pairs)), float(pairs.max()))


EXAMPLE = "The patient was given insulin and aspirin."
"""Example that replaces texts which must not be shown."""

_MOST_TOKENS = 254
_N_TEXTS = 40


def has_d_chi_guarantee(mechanism: str) -> bool:
    """Return whether the defence of a name guarantees d_χ-privacy, and so has a parameter η."""
    entry = entry_of(mechanism)
    return bool(entry.guarantee) and "eta" in entry.kind.__dataclass_fields__


def bundled_distances(encoder: Encoder) -> TextDistances:
    """Encode some bundled sentences and measure the distances between their vectors."""
    sentences: Sequence[str] = bundled_sentences()
    step = max(1, len(sentences) // _N_TEXTS)
    return text_distances(encoder.encode(list(sentences[::step][:_N_TEXTS])))


def distances_of(
    encoder: Encoder, mechanism: str, text: str = EXAMPLE, candidates: str = "regular"
) -> TokenDistances | TextDistances:
    """Measure the distances that a d_χ mechanism's guarantee needs; raise if it has no η.

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
    """Measure a text's token distances; for vector mechanisms, those of bundled sentences.

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
    """Measure the distances that a guarantee needs on a user's texts; None if too few.

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
    """Measure a text's token distances; return a d_χ mechanism's guarantees at η."""
    return distances_of(encoder, mechanism, text, candidates).guarantees(eta)
