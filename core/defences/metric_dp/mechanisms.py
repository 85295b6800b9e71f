"""Mechanisms of d_χ-privacy: text to text (also ranked), token and sequence representation.

Implements Qu et al. (2021), §3 and §4: a mechanism M is η·d_χ-private where
P[M(x) = y] ≤ exp(η·d(x, x'))·P[M(x') = y] for all x, x', y (Eq. 2). Here d is the Euclidean
distance of token vectors, or of sentence vectors; for a text, the sum over its tokens.

Every word piece of a text is replaced or perturbed, including unknown tokens and special tokens
typed by hand. Not covered: the *number* of word pieces is visible, and [CLS] and [SEP], which the
encoder adds to every text, stay unchanged.

Ranked text to text is after Asghar et al. (2024), "d_χ-privacy for text and the curse of
dimensionality" (arXiv 2411.13784): in many dimensions noise returns either the very token or one
unrelated to it, hardly ever a near one. Their remedy is a post-processing: all candidates are
ranked by their distance to the noisy vector, and that of rank i = 0, 1, … is released with
probability ∝ exp(−c·ε·i). As neither rank nor draw depends on the input, the noise's d_χ-privacy
guarantee (Qu et al. 2021, Eq. 2) still holds.
Differs from the paper: η is its ε, and c has a default of our own. The form of the probability is
that of code which its authors published with later work: docs/decisions/0024 says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from leakscope.core.defences.metric_dp.eta_grid import eta_steps
from leakscope.core.defences.metric_dp.neighbours.nearest import NearestCandidate, map_parts
from leakscope.core.defences.metric_dp.noise import LEAST_ETA, MOST_ETA, check_eta, draw_noise
from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.metric_dp.texts import TextMechanism, TokenPrivatizer, privatise_texts
from leakscope.core.defences.protected import ProtectedEncoder, encode_dense, generator_of
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting
from leakscope.core.text import check_texts

_BLOCK = 8192
"""Tokens whose noise is drawn at a time, while those before are compared."""

_ETA_HELP = "Privacy parameter, in 1/distance: a smaller value adds more noise"


def _long_eta_steps(dimension: int) -> tuple[float, ...]:
    """Return the values of η to offer for whole-text noise: up to 40 times those for tokens."""
    steps = eta_steps(dimension)
    more = np.round(np.geomspace(steps[-1], 40 * steps[-1], 40)[1:])
    return (*steps, *(float(step) for step in more))


_ETA = Strength("η: less noise to the right", 75.0, eta_steps, "η {:g}")
_LONG_ETA = Strength("η: less noise to the right", 75.0, _long_eta_steps, "η {:g}")


def eta_setting(start: float = 75.0, strength: Strength = _ETA) -> float:
    """Declare a mechanism's dataclass field for η, with its default and values to try."""
    declared: float = setting(start, _ETA_HELP, low=LEAST_ETA, high=MOST_ETA, strength=strength)
    return declared


class TextPrivatizer:
    """Privatises texts token by token (Qu et al. 2021, Eq. 4).

    Fresh noise is added to each token's vector, and the nearest candidate replaces the token.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose tokens and token vectors are used.
    eta : float
        Privacy parameter, 1/distance.
    candidates : str
        Which tokens may be returned: see `candidate_ids`.
    rng : Generator
        Source of the noise: `secure_generator()` for what is released.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        eta: float,
        *,
        candidates: str = "regular",
        rng: np.random.Generator,
    ) -> None:
        self.encoder, self.eta, self._rng = encoder, check_eta(eta), rng
        self.ids = candidate_ids(encoder, candidates)
        self._vectors = token_table(encoder)
        self._nearest = NearestCandidate(
            self._vectors[self.ids], device=str(encoder.token_vectors.device)
        )

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add fresh noise to each of (m,) tokens' vectors; return the nearest candidates' ids."""
        (changed,) = self.token_batches([np.asarray(token_ids, np.int64)])
        return changed

    def token_batches(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """Yield the replacements of each batch of token ids, adding noise to the next meanwhile."""

        def run(blocks: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
            return self._nearest.of_blocks(map(self._add_noise, blocks))

        for found in map_parts(run, batches, _cut_into_blocks):
            yield self.ids[np.concatenate(found)]

    def _add_noise(self, token_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Look up the vectors of tokens and return them with fresh noise added."""
        noise = draw_noise(len(token_ids), self._vectors.shape[1], self.eta, rng=self._rng)
        noise += self._vectors[token_ids]
        return noise

    def texts(self, texts: Sequence[str], *, is_whole: bool = True) -> list[str]:
        """Privatise texts and return the new ones; `is_whole=False` cuts overlong texts.

        A text in which the tokenizer finds nothing becomes the empty text.
        """
        return privatise_texts(self, texts, is_whole=is_whole)


def _cut_into_blocks(token_ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut a batch of tokens into blocks; an empty batch gives one empty block.

    Without that block, the batches before an empty one would wait for the next.
    """
    starts = range(0, max(len(token_ids), 1), _BLOCK)
    return [token_ids[start : start + _BLOCK] for start in starts]


@dataclass(frozen=True, kw_only=True)
class TextToText(TextMechanism):
    """Replaces every token by the nearest to its noisy vector (Qu et al. 2021, Eq. 4).

    The protected encoder encodes the privatised text: what is released is a text.
    """

    eta: float = eta_setting()
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> TextPrivatizer:
        """Build the object that replaces an encoder's tokens, with noise from `rng`."""
        return TextPrivatizer(encoder, self.eta, candidates=self.candidates, rng=rng)


@dataclass(frozen=True, kw_only=True)
class TokenRepresentation:
    """Adds noise to every token vector before the encoder reads them (Qu et al. 2021, Eq. 3)."""

    eta: float = eta_setting()
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that adds noise to its token vectors before it combines them."""
        check_eta(self.eta)
        known = require_white_box(encoder, "Token-representation privatisation")
        transform = partial(_encode_noisy, known, self.eta, generator_of(self.seed))
        return ProtectedEncoder.of(encoder, self, transform)


@dataclass(frozen=True, kw_only=True)
class SequenceRepresentation:
    """Adds noise to the vector of the whole text (Qu et al. 2021, Eq. 3, on sequences)."""

    eta: float = eta_setting(200.0, _LONG_ETA)
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that adds noise to its vectors, without normalising them again."""
        check_eta(self.eta)
        rng = generator_of(self.seed)

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            return release_under_noise(encode_dense(encoder, texts, on_progress), self.eta, rng)

        return ProtectedEncoder.of(encoder, self, transform)


def make_privatizer(
    mechanism: Any, encoder: WhiteBoxEncoder, rng: np.random.Generator
) -> TokenPrivatizer:
    """Build the object that replaces an encoder's tokens by a mechanism, with draws from `rng`.

    For noisy token vectors it returns the token nearest to each: the likeliest original.
    """
    if isinstance(mechanism, TokenRepresentation):
        return TextPrivatizer(encoder, mechanism.eta, rng=rng)
    found: TokenPrivatizer = mechanism.privatizer(encoder, rng)
    return found


class ChainedPrivatizer:
    """Replaces tokens by several mechanisms in sequence.

    A text that passes from one mechanism to the next is tokenised again; here the tokens are passed
    on directly, which is what an attacker reads apart from that difference.
    """

    def __init__(
        self, encoder: WhiteBoxEncoder, mechanisms: Sequence[Any], rng: np.random.Generator
    ) -> None:
        self.encoder = encoder
        self._parts = [make_privatizer(each, encoder, rng) for each in mechanisms]
        self.ids = self._parts[-1].ids

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Replace (m,) tokens by each mechanism in turn; return the final token ids."""
        for part in self._parts:
            token_ids = part.tokens(token_ids)
        return token_ids


@torch.inference_mode()
def _encode_noisy(
    encoder: WhiteBoxEncoder,
    eta: float,
    rng: np.random.Generator,
    texts: Sequence[str],
    on_progress: OnProgress,
) -> Vectors:
    """Add noise to texts' token vectors and encode them, in batches of texts of equal length."""
    ids = encoder.token_ids(check_texts(texts))
    table, device = token_table(encoder), encoder.token_vectors.device
    released = release_under_noise(table[np.fromiter(chain.from_iterable(ids), int)], eta, rng)
    starts = np.cumsum([0, *map(len, ids)])
    out = np.empty((len(ids), encoder.dimension), np.float32)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]), reverse=True)
    done = 0
    while done < len(order):
        length = len(ids[order[done]])
        batch = [i for i in order[done : done + 64] if len(ids[i]) == length]
        moved = np.stack([released[starts[i] : starts[i + 1]] for i in batch])
        vectors = torch.as_tensor(moved, device=device)
        out[batch] = encoder.embed_token_vectors(vectors).float().cpu().numpy()
        done += len(batch)
        on_progress(done / len(order), f"Encoded {done:,} of {len(order):,} texts")
    return out


_RANKED_BLOCK = 512


def draw_ranks(n: int, fall: float, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw n independent ranks from 0 to most − 1 with P[i] ∝ exp(−fall·i).

    Drawn by the inverse of the cumulative distribution, (1 − exp(−fall·(i+1)))/(1 −
    exp(−fall·most)).
    """
    drawn = rng.random(n)
    if fall * most < 1e-9:
        return (drawn * most).astype(np.int64)
    ranks = np.log1p(drawn * np.expm1(-fall * most)) / -fall
    return np.minimum(ranks, most - 1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class TextToTextRanked(TextMechanism):
    """Replaces every token by one of those nearest to its noisy vector (Asghar et al. 2024)."""

    eta: float = eta_setting()
    c: float = setting(
        0.005,
        "How fast the chance of a rank falls, times η; 0: all ranks are equally likely",
        low=0,
        high=1e6,
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _RankedPrivatizer:
        """Build the object that replaces an encoder's tokens, with draws from `rng`."""
        check_eta(self.eta)
        if not self.c >= 0:
            raise InvalidInputError(f"c must be at least 0, got {self.c!r}.")
        return _RankedPrivatizer(self, encoder, rng)


class _RankedPrivatizer:
    """Adds noise to each token's vector and releases the candidate at a random rank."""

    def __init__(
        self, mechanism: TextToTextRanked, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> None:
        self.encoder, self._rng, self._mechanism = encoder, rng, mechanism
        self.ids = candidate_ids(encoder, mechanism.candidates)
        self._vectors = token_table(encoder)
        self._nearest = NearestCandidate(
            self._vectors[self.ids], device=str(encoder.token_vectors.device)
        )

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise to each token and draw a rank; return the ids of candidates at these ranks."""
        token_ids = np.asarray(token_ids, np.int64)
        n, eta = len(token_ids), self._mechanism.eta
        fall = self._mechanism.c * eta
        ranks = draw_ranks(n, fall, len(self.ids), self._rng)
        changed = np.empty(n, np.int64)
        order = np.argsort(ranks, kind="stable")  # like ranks need lists of like length
        for start in range(0, n, _RANKED_BLOCK):
            places = order[start : start + _RANKED_BLOCK]
            own = self._vectors[token_ids[places]]
            noise = draw_noise(len(places), own.shape[1], eta, rng=self._rng)
            changed[places] = self._nearest.of_ranks(own + noise, ranks[places])
        return self.ids[changed]
