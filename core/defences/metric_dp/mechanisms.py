"""The mechanisms of d_χ-privacy: text to text, token representation, sequence representation.

Implements Qu et al. (2021), §3 and §4: a mechanism M is η·d_χ-private where
P[M(x) = y] ≤ exp(η·d(x, x'))·P[M(x') = y] for all x, x', y (Eq. 2). Here d is the Euclidean
distance of token vectors, or of sentence vectors; for a text, the sum over its tokens.

What is covered: every word piece of a text, unknown and special tokens typed by hand included, is
replaced or perturbed; nothing passes through. What is not: the *number* of word pieces shows, and
[CLS] and [SEP], which the encoder sets around every text alike, are left as they are.
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

from core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from core.defences.metric_dp.eta_grid import eta_steps
from core.defences.metric_dp.nearest import NearestCandidate
from core.defences.metric_dp.noise import LEAST_ETA, MOST_ETA, check_eta, draw_noise
from core.defences.metric_dp.release import release_under_noise
from core.defences.metric_dp.side_by_side import in_parts
from core.defences.metric_dp.texts import TokenPrivatizer, privatised_texts, protect_texts
from core.defences.protected import ProtectedEncoder, encode_dense, generator_of
from core.encoders.white_box import require_white_box, token_table
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder
from core.ranges import Strength
from core.specs import setting
from core.text import check_texts

__all__ = [
    "ChainedPrivatizer",
    "SequenceRepresentation",
    "TextPrivatizer",
    "TextToText",
    "TokenRepresentation",
    "eta_setting",
    "privatizer_of",
]

_BLOCK = 8192
"""Tokens whose noise is drawn at a time, while those before are compared."""

_ETA_HELP = "Privacy parameter, in 1/distance: the smaller, the more noise"


def _long_eta_steps(dimension: int) -> tuple[float, ...]:
    """Go on to 40 times as much: noise on a whole text's vector needs a greater η."""
    steps = eta_steps(dimension)
    more = np.round(np.geomspace(steps[-1], 40 * steps[-1], 40)[1:])
    return (*steps, *(float(step) for step in more))


_ETA = Strength("η: less noise to the right", 75.0, eta_steps, "η {:g}")
_LONG_ETA = Strength("η: less noise to the right", 75.0, _long_eta_steps, "η {:g}")


def eta_setting(start: float = 75.0, strength: Strength = _ETA) -> float:
    """Declare the η of a mechanism."""
    declared: float = setting(start, _ETA_HELP, low=LEAST_ETA, high=MOST_ETA, strength=strength)
    return declared


class TextPrivatizer:
    """Turns texts into privatised texts (Qu et al. 2021, Eq. 4), token by token.

    Each token's vector is moved by fresh noise, and the nearest candidate is put in its place.

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
        """Return what each of (m,) tokens becomes, each under noise of its own."""
        (changed,) = self.token_batches([np.asarray(token_ids, np.int64)])
        return changed

    def token_batches(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """Give the same for each batch of tokens; the noise of the next is drawn meanwhile."""

        def run(blocks: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
            return self._nearest.of_blocks(map(self._moved, blocks))

        for found in in_parts(run, batches, _blocks):
            yield self.ids[np.concatenate(found)]

    def _moved(self, token_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        noise = draw_noise(len(token_ids), self._vectors.shape[1], self.eta, rng=self._rng)
        noise += self._vectors[token_ids]
        return noise

    def texts(self, texts: Sequence[str], *, is_whole: bool = True) -> list[str]:
        """Return each text privatised; `is_whole=False` reads it as far as the encoder does.

        A text in which the tokenizer finds nothing becomes the empty text.
        """
        return privatised_texts(self, texts, is_whole=is_whole)


def _blocks(token_ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut a batch; one without tokens has a block too, or those before the next would pile up."""
    starts = range(0, max(len(token_ids), 1), _BLOCK)
    return [token_ids[start : start + _BLOCK] for start in starts]


@dataclass(frozen=True, kw_only=True)
class TextToText:
    """Replaces every token by the nearest to its noisy vector (Qu et al. 2021, Eq. 4).

    The protected encoder encodes the privatised text: what is released is a text.
    """

    eta: float = eta_setting()
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> TextPrivatizer:
        """Return what changes the tokens of an encoder."""
        return TextPrivatizer(encoder, self.eta, candidates=self.candidates, rng=rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of privatised texts."""
        return protect_texts(self, encoder)


@dataclass(frozen=True, kw_only=True)
class TokenRepresentation:
    """Adds noise to every token vector, and encodes from there (Qu et al. 2021, Eq. 3)."""

    eta: float = eta_setting()
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of noisy token vectors."""
        check_eta(self.eta)
        known = require_white_box(encoder, "Token-representation privatisation")
        transform = partial(_encode_noisy, known, self.eta, generator_of(self.seed))
        return ProtectedEncoder.of(encoder, self, transform)


@dataclass(frozen=True, kw_only=True)
class SequenceRepresentation:
    """Adds noise to the text's own vector (Qu et al. 2021, Eq. 3, on sequences)."""

    eta: float = eta_setting(200.0, _LONG_ETA)
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of noisy vectors; they are not normalised again."""
        check_eta(self.eta)
        rng = generator_of(self.seed)

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            return release_under_noise(encode_dense(encoder, texts, on_progress), self.eta, rng)

        return ProtectedEncoder.of(encoder, self, transform)


def privatizer_of(
    mechanism: Any, encoder: WhiteBoxEncoder, rng: np.random.Generator
) -> TokenPrivatizer:
    """Return what turns tokens into those that are released.

    Where noisy token vectors are, into those nearest to them: the likeliest that went in.
    """
    if isinstance(mechanism, TokenRepresentation):
        return TextPrivatizer(encoder, mechanism.eta, rng=rng)
    found: TokenPrivatizer = mechanism.privatizer(encoder, rng)
    return found


class ChainedPrivatizer:
    """Changes tokens by several mechanisms, one after the other.

    A text that passes from one to the next is cut into word pieces anew; here the pieces are
    handed on as they are, which is what an attacker reads but for that.
    """

    def __init__(
        self, encoder: WhiteBoxEncoder, mechanisms: Sequence[Any], rng: np.random.Generator
    ) -> None:
        self.encoder = encoder
        self._parts = [privatizer_of(each, encoder, rng) for each in mechanisms]
        self.ids = self._parts[-1].ids

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each of (m,) tokens becomes."""
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
    """Encode texts from noisy token vectors, texts of equal length together."""
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
