"""A decoder from vectors to sentences: a causal Transformer conditioned on the vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.reconstruct.quantization import dequantize, quantize
from leakscope.core.attacks.inversion.reconstruct.tokens import BEGIN, END, UNKNOWN, Lexicon
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.training.devices import autocast, fast_dtype, pick_device
from leakscope.core.training.loop import LengthBatchedLoop, train

N_EVIDENCE_WORDS = 32
"""The most words of evidence for each vector."""

_MOST = 12.0


@dataclass(frozen=True)
class TokenEvidence:
    """Likely words of n vectors as lexicon tokens, with their evidence in nats."""

    tokens: NDArray[np.int64]
    """Shape (n, k), the likeliest first; padded with the unknown token."""
    nats: NDArray[np.float32]
    """Log-odds that the text holds each token, less its prior log-odds; at least 0."""

    @classmethod
    def empty(cls, n: int) -> TokenEvidence:
        """Return the evidence of n vectors if no word is known: unknown tokens with 0 nats."""
        return cls(np.full((n, 1), UNKNOWN, np.int64), np.zeros((n, 1), np.float32))


class ClassifierEvidence:
    """Computes a word classifier's evidence as tokens that a decoder knows."""

    def __init__(self, base: ProbeMLCAttack, lexicon: Lexicon, size: int) -> None:
        places = lexicon.places(base.vocabulary_.words)
        self._model: Any = base.model_
        self._known = np.flatnonzero((places >= 0) & (places < size))
        self._tokens = places[self._known]
        self._usual = base.vocabulary_.log_odds[self._known].astype(np.float32)

    def of(self, vectors: Vectors) -> TokenEvidence:
        """Classify n vectors (n, d); return their likely words with the evidence in nats.

        log [p / (1 − p)] − log [q / (1 − q)], where p is the classifier's probability that the text
        holds a word and q the share of texts that do: what the vector adds to a language model.
        """
        if not len(self._known):
            return TokenEvidence.empty(len(vectors))
        likely = self._model.probabilities(vectors)[:, self._known]
        n = min(N_EVIDENCE_WORDS, likely.shape[1])
        top = np.argpartition(-likely, n - 1, axis=1)[:, :n]
        believed = np.take_along_axis(likely, top, 1)
        order = np.argsort(-believed, axis=1, kind="stable")
        top, believed = np.take_along_axis(top, order, 1), np.take_along_axis(believed, order, 1)
        p = np.clip(believed, 1e-6, 1 - 1e-6)
        nats = np.log(p / (1 - p)) - self._usual[top]
        return TokenEvidence(self._tokens[top], np.clip(nats, 0.0, _MOST).astype(np.float32))


_Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer for earlier positions, shape (b, heads, t, width / heads)."""

_HEAD_WIDTH = 64
_LISTENS = 0.5
"""The initial weight λ of the classifier's evidence."""
_LEANING = 0.8
"""Sentences are compared by log P / length^0.8: by log P alone the shortest would win."""


class _Block(nn.Module):
    """A Transformer layer: causal attention and a feed-forward network with one hidden layer."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = max(1, width // _HEAD_WIDTH)
        self.before_attending, self.before_changing = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.gather = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, before: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Apply the layer to x (b, t, width); also return the keys and values so far."""
        b, t, width = x.shape
        parts = self.attend(self.before_attending(x)).view(b, t, 3, self.n_heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if before is not None:  # then x is one position, which sees all
            key, value = torch.cat([before[0], key], 2), torch.cat([before[1], value], 2)
        seen = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=before is None
        )
        x = x + self.dropout(self.gather(seen.transpose(1, 2).reshape(b, t, width)))
        changed = self.narrow(nn.functional.gelu(self.widen(self.before_changing(x))))
        return x + self.dropout(changed), (key, value)


class DecoderNetwork(nn.Module):
    """A causal Transformer whose prefix is linear in the vector, with tied output weights.

    The words w that a classifier recovers from the vector, with E_w nats of evidence, raise the
    logits: z_w = ⟨h, token_w⟩ + λ(h) · E_w. Their weight λ is linear in the hidden state, so that
    a word is not written repeatedly.

    Parameters
    ----------
    size : int
        Tokens that it reads and writes: the first of a lexicon.
    dimension : int
        Of the vectors.
    width, n_layers : int
        Of the Transformer.
    n_first : int
        Positions of the prefix that holds the vector.
    longest : int
        Tokens of a sentence at most, its end included.
    """

    def __init__(
        self,
        size: int,
        dimension: int,
        *,
        width: int = 256,
        n_layers: int = 4,
        n_first: int = 8,
        longest: int = 64,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.n_first, self.longest = n_first, longest
        self.tokens = nn.Embedding(size, width)
        self.places = nn.Embedding(n_first + longest, width)
        self.enter = nn.Linear(dimension, n_first * width)
        self.blocks = nn.ModuleList(_Block(width, dropout) for _ in range(n_layers))
        self.leave = nn.LayerNorm(width)
        self.listen = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)
        for weights in (self.tokens.weight, self.places.weight):
            nn.init.normal_(weights, std=width**-0.5 / 2)
        nn.init.zeros_(self.listen.weight)
        nn.init.constant_(self.listen.bias, _LISTENS)

    def begin(self, vectors: Tensor) -> Tensor:
        """Compute the prefix (b, n_first, width) that stands for vectors (b, d) in the input."""
        unit = nn.functional.normalize(vectors, dim=1) * vectors.shape[1] ** 0.5
        first: Tensor = self.enter(unit).view(len(vectors), self.n_first, -1)
        return first

    def forward(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """Compute the hidden states that predict each of t + 1 tokens, (b, t + 1, width)."""
        x = torch.cat([self.begin(vectors), self.tokens(ids)], 1)
        seen, _ = self.advance(x, 0, None)
        return seen[:, self.n_first - 1 :]

    def advance(self, x: Tensor, place: int, before: _Cache | None) -> tuple[Tensor, _Cache]:
        """Process inputs x at positions `place`, `place` + 1, …; return states and the cache."""
        x = self.dropout(x + self.places.weight[place : place + x.shape[1]])
        kept: _Cache = []
        for i, block in enumerate(self.blocks):
            x, own = block(x, None if before is None else before[i])
            kept.append(own)
        return self.leave(x), kept

    def scores(self, known: Tensor, tokens: Tensor, nats: Tensor) -> Tensor:
        """Compute the logit of every token from m hidden states and the evidence, shape (m, size).

        Parameters
        ----------
        known : Tensor, shape (m, width)
        tokens, nats : Tensor, shape (m, k)
            Of `TokenEvidence`, for each row.
        """
        logits = known @ self.tokens.weight.T
        raised = self.listen(known) * nats
        return logits.scatter_add(-1, tokens, raised.to(logits.dtype))


@dataclass(frozen=True)
class Decoder:
    """A trained decoder, stored with one byte per weight."""

    network: DecoderNetwork

    @property
    def size(self) -> int:
        """The number of tokens that the decoder can write."""
        return self.network.tokens.num_embeddings

    @torch.inference_mode()
    def write(
        self,
        vectors: Vectors,
        evidence: TokenEvidence,
        *,
        n_beams: int = 8,
        longest: int | None = None,
    ) -> list[list[NDArray[np.int32]]]:
        """Write likely sentences of each vector by beam search, the likeliest first.

        Parameters
        ----------
        vectors : float32 array of shape (n, d)
        evidence : TokenEvidence
            The word classifier's evidence on them.
        n_beams : int
            Sentences written in parallel, and returned at most; at least one is returned.
        longest : int, optional
            Tokens of a sentence at most; by default the network's maximum.

        Returns
        -------
        list of list of int32 array
            Never an unknown token, and never an empty sentence.
        """
        if not len(vectors):
            return []
        network = self.network.eval()
        beams = _Beams(len(vectors), min(n_beams, self.size - 3), self.size)
        given = torch.as_tensor(vectors, dtype=torch.float32)
        tokens, nats = torch.from_numpy(evidence.tokens), torch.from_numpy(evidence.nats)
        known, cache = network.advance(network.begin(given), 0, None)
        beams.extend(network.scores(known[:, -1], tokens, nats)[:, None])
        cache = [
            (k.repeat_interleave(beams.width, 0), v.repeat_interleave(beams.width, 0))
            for k, v in cache
        ]
        tokens, nats = (each.repeat_interleave(beams.width, 0) for each in (tokens, nats))
        n_steps = min(longest or network.longest, network.longest) - 1
        for step in range(n_steps):
            x = network.tokens(beams.last)[:, None]
            known, cache = network.advance(x, network.n_first + step, cache)
            scores = network.scores(known[:, -1], tokens, nats)
            came_from = beams.extend(scores.view(len(vectors), -1, self.size))
            if beams.is_over:
                break
            cache = [(k[came_from], v[came_from]) for k, v in cache]
        return beams.sentences()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the network's weights to store, by name; matrices as bytes with row scales."""
        found: dict[str, NDArray[Any]] = {}
        for name, tensor in self.network.state_dict().items():
            values = tensor.numpy()
            if values.ndim < 2:
                found[name] = values
                continue
            found[f"{name}.codes"], found[f"{name}.scale"] = quantize(values)
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], dimension: int) -> Self:
        """Build the decoder from what `arrays` returned.

        Raises
        ------
        InvalidInputError
            Arrays are missing, or of shapes or numbers that no decoder has.
        """
        try:
            (size, width), (n_places, _) = (
                arrays[f"{name}.weight.codes"].shape for name in ("tokens", "places")
            )
            n_first = arrays["enter.weight.codes"].shape[0] // width
            n_layers = len({n.split(".")[1] for n in arrays if n.startswith("blocks.")})
            network = DecoderNetwork(
                size,
                dimension,
                width=width,
                n_layers=n_layers,
                n_first=n_first,
                longest=n_places - n_first,
                dropout=0.0,
            )
            state = {name: _restored(arrays, name, t) for name, t in network.state_dict().items()}
        except (KeyError, ValueError, ZeroDivisionError, RuntimeError) as error:
            raise InvalidInputError(
                "The decoder's arrays are inconsistent. Restore the file or train the attack again."
            ) from error
        network.load_state_dict(state)
        return cls(network.eval())

    def rounded(self) -> Decoder:
        """Return a copy of the decoder whose weights are rounded as storage rounds them."""
        return Decoder.from_arrays(self.arrays(), self.network.enter.in_features)


def _restored(arrays: dict[str, NDArray[Any]], name: str, like: Tensor) -> Tensor:
    """Convert one stored weight to a tensor of the shape of `like`, or raise ValueError."""
    if like.ndim < 2:
        values = arrays[name].astype(np.float32)
    else:
        values = dequantize(arrays[f"{name}.codes"], arrays[f"{name}.scale"])
    if values.shape != tuple(like.shape) or not np.isfinite(values).all():
        raise ValueError(name)
    return torch.from_numpy(values)


class _Beams:
    """Beam-search state of n vectors: unfinished beams, and the best finished sentences."""

    def __init__(self, n: int, width: int, size: int) -> None:
        self.n, self.width, self._size = n, max(1, width), size
        self._written = torch.zeros(n, 1, 0, dtype=torch.long)
        self._scores = torch.zeros(n, 1)
        self._done: list[list[tuple[float, NDArray[np.int32]]]] = [[] for _ in range(n)]

    @property
    def last(self) -> Tensor:
        """The last token of each beam, shape (n · width,)."""
        return self._written[..., -1].reshape(-1)

    def extend(self, scores: Tensor) -> Tensor:
        """Extend the beams in place by the best next tokens, given logits (n, beams, size).

        Returns
        -------
        Tensor
            The beam that each new beam extends, shape (n · width,).
        """
        logs = torch.log_softmax(scores.float(), -1)
        logs[..., [BEGIN, UNKNOWN]] = -torch.inf
        total = self._scores[..., None] + logs
        n_written = self._written.shape[-1]
        if n_written:
            self._finish(total[..., END], n_written + 1)
        total[..., END] = -torch.inf
        self._scores, places = total.flatten(1).topk(self.width)
        came_from, token = places // self._size, places % self._size
        rows = torch.arange(self.n)[:, None]
        self._written = torch.cat([self._written[rows, came_from], token[..., None]], -1)
        return (rows * total.shape[1] + came_from).reshape(-1)

    def _finish(self, scores: Tensor, length: int) -> None:
        """Keep beams that end here among the best finished sentences, by normalised score."""
        values = (scores / length**_LEANING).tolist()
        for done, own, written in zip(self._done, values, self._written, strict=True):
            for value, tokens in zip(own, written, strict=True):
                if len(done) < self.width or value > done[-1][0]:
                    done.append((value, tokens.numpy().astype(np.int32)))
                    done.sort(key=lambda each: -each[0])
                    del done[self.width :]

    @property
    def is_over(self) -> bool:
        """Whether no unfinished beam can beat the finished sentences, since log P only falls."""
        length = (self._written.shape[-1] + 1) ** _LEANING
        best = (self._scores.amax(1) / length).tolist()
        return all(
            len(done) == self.width and done[-1][0] >= value
            for done, value in zip(self._done, best, strict=True)
        )

    def sentences(self) -> list[list[NDArray[np.int32]]]:
        """Return the finished sentences of each vector, best first; if none, the best beam."""
        best = self._written[:, 0].numpy().astype(np.int32)
        pairs = zip(self._done, best, strict=True)
        return [[tokens for _, tokens in done] or [own] for done, own in pairs]


_IGNORED = -100
_SORTED_TOGETHER = 50
"""Batches whose sentences are sorted by length together, to reduce padding."""


@dataclass(frozen=True, kw_only=True)
class DecoderPlan:
    """Training settings of a decoder.

    Attributes
    ----------
    size : int
        Its vocabulary: the first tokens of the lexicon.
    blur : float
        Length of the Gaussian noise on a vector, which regularises.
    told_blur : float
        The same for the classifier's input. The classifier was trained on these texts and recovers
        as much from them under noise of a third of their length as from others without noise.
    n_validation : int
        Validation pairs, by which the epoch is chosen; a tenth at most.
    """

    size: int
    epochs: int
    width: int = 256
    n_layers: int = 4
    longest: int = 64
    dropout: float = 0.1
    blur: float = 0.1
    told_blur: float = 0.33
    batch_size: int = 128
    learning_rate: float = 1e-3
    warm_up: int = 500
    n_validation: int = 2000
    seed: int = 0
    device: str = "auto"


def train_decoder(
    sentences: Sequence[NDArray[np.int32]],
    vectors: Vectors,
    plan: DecoderPlan,
    *,
    evidence_of: Callable[[Vectors], TokenEvidence] | None = None,
    identity: dict[str, Any] | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> Decoder:
    """Train a decoder to predict each sentence from its vector, token by token.

    Minimises −Σ log P(x_t | e, x_1 … x_{t−1}) over tokens, the end included. Sentences that are too
    long are left out; unknown tokens are inputs but never outputs.

    Parameters
    ----------
    sentences : sequence of int32 array
        Tokens of each text.
    vectors : float32 array of shape (n, d)
    evidence_of : callable, optional
        The word classifier's evidence on vectors, such as `ClassifierEvidence.of`.
    identity : dict, optional
        The identity of the run: a checkpoint of another run is refused.

    Raises
    ------
    InvalidInputError
        Fewer than ten sentences of a suitable length.
    """
    fits = [i for i, ids in enumerate(sentences) if 0 < len(ids) < plan.longest]
    if len(fits) < 10:
        raise InvalidInputError(
            f"The decoder needs at least ten sentences of 1 to {plan.longest - 1} tokens, got "
            f"{len(fits)}. Give other texts, or set decoder_epochs=0."
        )
    order = np.random.default_rng([plan.seed, 7]).permutation(fits)
    n_held = min(plan.n_validation, len(fits) // 10)
    held, known = order[:n_held], order[n_held:]
    torch.manual_seed(plan.seed)
    device = pick_device(plan.device)
    network = DecoderNetwork(
        plan.size,
        vectors.shape[1],
        width=plan.width,
        n_layers=plan.n_layers,
        longest=plan.longest,
        dropout=plan.dropout,
    ).to(device)
    loss = _DecoderLoss(network, sentences, vectors, plan, evidence_of)
    loop = LengthBatchedLoop(
        n=len(known),
        epochs=plan.epochs,
        batch_size=plan.batch_size,
        seed=plan.seed,
        identity={**vars(plan), **(identity or {})},
        clip_norm=1.0,
        is_half=False,
        say_score=lambda score: f"perplexity {math.exp(-score):.1f}",
        checkpoint_dir=checkpoint_dir,
        lengths=np.array([len(sentences[i]) for i in known]),
        pool=_SORTED_TOGETHER,
    )
    n_steps = plan.epochs * loop.n_batches
    loop.rate_share = lambda step: min((step + 1) / plan.warm_up, max(0.02, 1 - step / n_steps))
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=plan.learning_rate,
        weight_decay=0.01,
        betas=(0.9, 0.98),
        fused=device.type in ("cpu", "cuda"),
    )
    train(
        network,
        optimizer,
        lambda rows: loss.batch_loss(known[rows], is_training=True),
        lambda: -loss.mean_loss(held),
        loop,
        on_progress,
    )
    return Decoder(network.cpu()).rounded()


class _DecoderLoss:
    """The cross-entropy loss of a decoder on batches of training pairs."""

    def __init__(
        self,
        network: DecoderNetwork,
        sentences: Sequence[NDArray[np.int32]],
        vectors: Vectors,
        plan: DecoderPlan,
        evidence_of: Callable[[Vectors], TokenEvidence] | None,
    ) -> None:
        self._network, self._sentences, self._vectors = network, sentences, vectors
        self._plan = plan
        self._evidence_of = evidence_of or (lambda rows: TokenEvidence.empty(len(rows)))
        self._device = network.tokens.weight.device
        self._precision = str(fast_dtype(self._device)).removeprefix("torch.")

    def batch_loss(self, rows: NDArray[np.int64], *, is_training: bool) -> Tensor:
        """Compute the mean loss per token of the training pairs in the given rows."""
        self._network.train(is_training)
        ids = self._padded(rows)
        clean = nn.functional.normalize(torch.from_numpy(self._vectors[rows]).float(), dim=1)
        vectors = _blurred(clean, self._plan.blur) if is_training else clean
        evidence = self._evidence_of(_blurred(clean, self._plan.told_blur).numpy())
        targets = torch.cat([ids, torch.full((len(ids), 1), _IGNORED)], 1)
        ends = torch.tensor([len(self._sentences[i]) for i in rows])
        targets[torch.arange(len(ids)), ends] = END
        counts = (targets != _IGNORED).to(self._device)
        inputs = ids.clamp(min=0).to(self._device)
        with autocast(self._device, self._precision):
            known = self._network(vectors.to(self._device), inputs)[counts]
            own = counts.nonzero()[:, 0].cpu()  # the evidence of a row, for each of its tokens
            arrays = (evidence.tokens, evidence.nats)
            tokens, nats = (torch.from_numpy(a)[own].to(self._device) for a in arrays)
            scores = self._network.scores(known, tokens, nats)
        return nn.functional.cross_entropy(scores.float(), targets.to(self._device)[counts])

    def _padded(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the tokens of the given rows as (b, t); unknown and padding are `_IGNORED`."""
        own = [self._sentences[i] for i in rows]
        ids = np.full((len(own), max(map(len, own))), _IGNORED, np.int64)
        for row, tokens in zip(ids, own, strict=True):
            row[: len(tokens)] = np.where(tokens < self._plan.size, tokens, UNKNOWN)
        return torch.from_numpy(ids)

    @torch.inference_mode()
    def mean_loss(self, rows: NDArray[np.int64]) -> float:
        """Compute the mean loss per token over validation rows, without noise on the vectors."""
        ordered = rows[np.argsort([len(self._sentences[i]) for i in rows], kind="stable")]
        size = self._plan.batch_size
        total = n_tokens = 0.0
        for start in range(0, len(ordered), size):
            part = ordered[start : start + size]
            n = sum(len(self._sentences[i]) + 1 for i in part)
            total += float(self.batch_loss(part, is_training=False)) * n
            n_tokens += n
        return total / n_tokens


def _blurred(vectors: Tensor, length: float) -> Tensor:
    """Return vectors with Gaussian noise of about the given length added."""
    return vectors + torch.randn_like(vectors) * length * vectors.shape[1] ** -0.5
