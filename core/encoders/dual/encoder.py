"""Dual encoders: trained so that consecutive sentences get similar vectors (SR20 §2.1 and §6.1).

Reading order: word_tokens, network, context_pairs, this file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leakscope.core.encoders.dual.context_pairs import ContextPairs
from leakscope.core.encoders.dual.network import (
    DualNetwork,
    LSTMNetwork,
    TransformerNetwork,
    embed_ids,
    pad,
    pool,
)
from leakscope.core.encoders.dual.word_tokens import PAD, UNK, WordTokens
from leakscope.core.encoders.fitted import TrainedEncoder
from leakscope.core.errors import ArtifactError, CoreError, InvalidInputError, NotFittedError
from leakscope.core.intervals import wilson_interval
from leakscope.core.protocols import OnProgress, Restorable, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import setting, validate_settings
from leakscope.core.text import check_texts
from leakscope.core.training.devices import fast_dtype, pick_device, seed_device
from leakscope.core.training.loop import Loop, TrainingLog, train


def context_loss(a: Tensor, b: Tensor, in_context: Tensor) -> Tensor:
    """Return the mean over the batch of −log P(x_b | x_a, X_neg), from embeddings of x_a and x_b.

    Implements Song & Raghunathan (2020), Eq. 2: log P = log exp(Φ(x_b)·Φ(x_a)) −
    log Σ_{x ∈ {x_b} ∪ X_neg} exp(Φ(x)·Φ(x_a)), X_neg being the other x_b of the batch (§6.1).
    Differs from the paper: nothing. It does not state how sentences in context are excluded from
    X_neg; here, `in_context` does this.

    Parameters
    ----------
    a, b : Tensor of float32, shape (n, d)
        Φ(x_a) and Φ(x_b).
    in_context : Tensor of bool, shape (n, n)
        True where x_b of column j must not be a negative of x_a of row i; the diagonal is ignored.
    """
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    scores = (a @ b.T).masked_fill(in_context & ~own, -torch.inf)
    return F.cross_entropy(scores, torch.arange(len(a), device=a.device))


def warm_up(n_warm: int) -> Callable[[int], float]:
    """Return a function from step to learning rate, as a share of its peak (Vaswani 2017, Eq. 3).

    The rate grows linearly for n_warm steps and then falls with the inverse square root of the
    step: lr = d^−½ · min(step^−½, step · n_warm^−3/2), whose peak is (d · n_warm)^−½.
    """

    def share(step: int) -> float:
        """Return the learning rate at a step as a share of the peak."""
        now = (step + 1) / max(1, n_warm)
        return min(now, now**-0.5)

    return share


@dataclass(frozen=True)
class RetrievalAccuracy:
    """Percentage of held-out pairs whose true x_b ranks first for x_a among candidates.

    The true x_b is one of `n_candidates` sentences.
    """

    score: Score
    n_candidates: int

    @classmethod
    def of(cls, accuracy: float, n: int, n_candidates: int) -> RetrievalAccuracy:
        """Build the accuracy over n pairs, in per cent, with its Wilson interval and chance."""
        interval = wilson_interval(round(accuracy * n / 100), n)
        return cls(Score(accuracy, interval, n, 100 / n_candidates), n_candidates)

    def __str__(self) -> str:
        """Format the accuracy as a phrase, with its interval and chance."""
        score = self.score
        value, interval = score.parts()
        return (
            f"finds the next sentence among {self.n_candidates} in {value} % (95 % CI {interval}) "
            f"of {score.n:,} held-out cases (guessing: {score.chance:.1f} %)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return accuracy, interval, sample size and chance as a dictionary for JSON."""
        return {
            **self.score.to_record("accuracy"),
            "n": self.score.n,
            "n_candidates": self.n_candidates,
            "chance": self.score.chance,
        }


def rank_contexts(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return per row i: 1 if row i of b has the highest dot product with row i of a, 1/k if k tie.

    Examples
    --------
    >>> one = np.eye(2, dtype=np.float32)
    >>> rank_contexts(one, one).tolist(), rank_contexts(one, one[[0, 0]]).tolist()
    ([1.0, 1.0], [0.5, 0.5])
    """
    scores = a @ b.T
    best = scores == scores.max(1, keepdims=True)
    shares: NDArray[np.float64] = np.diag(best) / best.sum(1)
    return shares


@torch.inference_mode()
def retrieval_accuracy(
    network: DualNetwork,
    ids: Sequence[NDArray[np.int64]],
    pairs: ContextPairs,
    rows: NDArray[np.int64],
    n_candidates: int,
) -> RetrievalAccuracy:
    """Encode held-out pairs; measure how often the true x_b ranks first in a block of them.

    Parameters
    ----------
    ids : sequence of int arrays
        Tokens of `pairs.texts`.
    rows : ndarray of int64, shape (n,)
        Held-out pairs; a last block that is not full is left out, so that chance is 1 in
        n_candidates for every pair.
    """
    network.eval()
    n_candidates = min(n_candidates, len(rows))
    shares = []
    for start in range(0, len(rows) - n_candidates + 1, n_candidates):
        block = rows[start : start + n_candidates]
        a, b = (
            embed_ids(network, [ids[i] for i in side[block]]).float().cpu().numpy()
            for side in (pairs.first, pairs.second)
        )
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InvalidInputError(
                "Training diverged: the vectors contain NaN or infinity. Lower learning_rate, or "
                "set clip_norm."
            )
        shares.append(rank_contexts(a, b))
    every = np.concatenate(shares)
    return RetrievalAccuracy.of(100 * float(every.mean()), len(every), n_candidates)


_POOLING = ("mean", "last", "max")
_BATCH = 256
_Rows = NDArray[np.int64]


@dataclass
class DualEncoder(TrainedEncoder):
    """Base of both dual encoders: trained to recognise the next sentence among others.

    Implements Song & Raghunathan (2020), Eq. 2 and §6.1: pairs (x_a, x_b) of consecutive
    sentences, the other x_b of the batch as X_neg, Adam, one Φ for both sides.
    Differs from the paper: we chose what it leaves open, namely the tokeniser and its vocabulary
    size, the maximum length of sentences, the pooling, the gradient clipping and the held-out
    pairs. If the processor supports bfloat16, training multiplies in it. The last batch of an epoch
    has fewer negatives.

    Attributes
    ----------
    fingerprint : str
        After `fit`: SHA-256 over settings, vocabulary and weights.
    validation_ : list of RetrievalAccuracy
        After each epoch, on held-out pairs that share no sentence with the others.
    log_ : TrainingLog
        Seconds and pairs of the training itself.
    """

    dimension: int = setting(1200, "d, dimension of the vectors", low=2, high=8192, paper="SR20")
    epochs: int = setting(1, "Passes over the pairs", low=1, high=1000, paper="SR20")
    learning_rate: float = setting(5e-4, "Learning rate of Adam", low=1e-6, high=1.0, paper="SR20")
    n_negatives: int = setting(
        800,
        "Negatives per pair: the other sentences of the batch",
        low=1,
        high=10_000,
        paper="SR20",
    )
    vocabulary_size: int = setting(
        20_000,
        "Maximum words and signs in the vocabulary; others are [UNK]",
        low=10,
        high=1_000_000,
    )
    max_length: int = setting(48, "Maximum words and signs of a sentence", low=1, high=1024)
    pooling: str = setting("mean", "How token states are pooled into one vector", choices=_POOLING)
    dropout: float = setting(
        0.0, "Dropout on word vectors and layers in training", low=0.0, high=0.9
    )
    clip_norm: float = setting(5.0, "Maximum gradient norm; 0 for no clipping", low=0.0)
    n_validation: int = setting(1000, "Held-out pairs, at most a tenth of all", low=2)
    n_candidates: int = setting(100, "Candidate sentences in validation", low=2, high=10_000)
    seed: int = setting(
        0, "Random seed of the initial weights, the order and the held-out pairs", low=0
    )
    device: str = setting("auto", "Device: auto, cpu, cuda or mps")

    name: str = field(default="dual", init=False)
    fingerprint: str = field(init=False, repr=False, compare=False)
    tokens_: WordTokens = field(init=False, repr=False, compare=False)
    network_: DualNetwork = field(init=False, repr=False, compare=False)
    validation_: list[RetrievalAccuracy] = field(init=False, repr=False, compare=False)
    log_: TrainingLog = field(init=False, repr=False, compare=False)

    precision = "float32"

    def new_network(self, n_tokens: int) -> DualNetwork:
        """Build an untrained network for n_tokens tokens; each subclass defines it."""
        raise NotImplementedError

    def rate_share(self, n_steps: int) -> Callable[[int], float] | None:
        """Return a function from step to share of the learning rate; None for a constant rate."""
        return None

    def run_of(
        self,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
    ) -> DualRun:
        """Create a network's training run, not yet started; subclasses may return another kind."""
        return DualRun(self, network, pairs, ids, rows, held)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on texts in document order, each paired with the next.

        Raises
        ------
        InvalidInputError
            Fewer than 20 pairs, a text that cannot be encoded, a setting out of range, or diverging
            training.
        ArtifactError
            The checkpoint is damaged or belongs to another run.
        StoppedError
            Raised by `on_progress` and passed on; the same call resumes from the checkpoint.
        """
        return self._fit(ContextPairs.consecutive(texts), on_progress, checkpoint_dir)

    def fit_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on sentence pairs (x_a, x_b), as `context_pairs.pairs_of` returns; see `fit`."""
        return self._fit(ContextPairs.of(pairs), on_progress, checkpoint_dir)

    def _fit(
        self, pairs: ContextPairs, on_progress: OnProgress, checkpoint_dir: str | None
    ) -> Self:
        """Build the vocabulary, train the network on the pairs, and store the validation scores."""
        validate_settings(self)
        on_progress(0.0, f"Counting the words of {len(pairs.texts):,} sentences")
        rows, held = pairs.split(min(self.n_validation, len(pairs) // 10), self.seed)
        if len(rows) < 2:
            raise InvalidInputError(
                f"Only {len(rows)} pairs share no sentence with the {len(held)} held-out ones. "
                "Provide more distinct sentences."
            )
        known = np.unique([pairs.first[rows], pairs.second[rows]])
        tokens = WordTokens.count((pairs.texts[i] for i in known), self.vocabulary_size)
        ids = [tokens.ids(text, self.max_length) for text in pairs.texts]
        torch.manual_seed(self.seed)
        network = self.new_network(len(tokens)).to(pick_device(self.device))
        run = self.run_of(network, pairs, ids, rows, held)
        self.log_ = run.train(on_progress, checkpoint_dir)
        self.validation_ = [run.score_of(accuracy) for accuracy in self.log_.validation]
        self._set_weights(tokens, network)
        on_progress(1.0, f"Trained on {len(rows):,} pairs; it {self.validation_[-1]}")
        return self

    def _set_weights(self, tokens: WordTokens, network: DualNetwork) -> None:
        """Set vocabulary and weights, and compute the fingerprint."""
        self.tokens_ = tokens
        self.network_ = network.eval().requires_grad_(False)
        self.device = str(network.words.weight.device)
        digest = hashlib.sha256(repr((self.name, sorted(self.settings.items()))).encode())
        digest.update("\n".join(tokens.tokens).encode())
        for key, tensor in sorted(network.state_dict().items()):
            digest.update(key.encode() + tensor.cpu().contiguous().numpy().tobytes())
        self.fingerprint = digest.hexdigest()

    def _network(self) -> DualNetwork:
        """Return the trained network, or raise NotFittedError if there is none."""
        network = getattr(self, "network_", None)
        if network is None:
            raise NotFittedError(
                f"{type(self).__name__} is not trained: call fit with consecutive sentences, or "
                "load a trained encoder."
            )
        return self.network_

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts as (n, d) float32 vectors, not of unit length.

        Raises
        ------
        NotFittedError
            Before `fit` or `load_state`.
        InvalidInputError
            A text that cannot be encoded.
        """
        network = self._network()
        return self._embed_in_batches(texts, self.dimension, embed_ids, network, on_progress)

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Encode n texts as the (n, width) means of their token states at a layer.

        Layer 0 is the mean of word vectors, [UNK] left out (Ψ of SR20 Eq. 7). The last layer is
        `encode` where pooling is `mean`.
        """
        network = self._network()
        if not 0 <= layer <= network.n_layers:
            raise InvalidInputError(
                f"layer must lie in [0, {network.n_layers}] for {self.name}, got {layer}."
            )

        def embed(network: DualNetwork, ids: Sequence[NDArray[np.int64]]) -> Tensor:
            """Average the states at the layer over each text of a batch, given as token ids."""
            batch, mask = pad(ids, network.words.weight.device)
            vectors = network.words(batch)
            if layer == 0:
                return pool(vectors, mask & (batch != UNK), "mean")
            return pool(network.states(vectors, mask, layer), mask, "mean")

        width = self.dimension if layer else network.words.embedding_dim
        return self._embed_in_batches(texts, width, embed, network, on_progress)

    @torch.inference_mode()
    def _embed_in_batches(
        self,
        texts: Sequence[str],
        width: int,
        embed: Any,
        network: DualNetwork,
        on_progress: OnProgress,
    ) -> Vectors:
        """Tokenise texts and embed them in batches of similar length; return their vectors."""
        ids = self._tokenize(check_texts(texts))
        order = np.argsort([-len(row) for row in ids], kind="stable")
        out = np.empty((len(ids), width), dtype=np.float32)
        for start in range(0, len(ids), _BATCH):
            rows = order[start : start + _BATCH]
            out[rows] = embed(network, [ids[i] for i in rows]).cpu().numpy()
            done = start + len(rows)
            on_progress(done / len(ids), f"Encoded {done:,} of {len(ids):,} texts")
        return out

    def _tokenize(self, texts: Sequence[str], *, is_whole: bool = False) -> list[NDArray[np.int64]]:
        """Tokenise texts; return each one's token ids, cut at `max_length` unless `is_whole`."""
        limit = None if is_whole else self.settings["max_length"]
        return [self.tokens_.ids(text, limit) for text in texts]

    @property
    def tokens(self) -> list[str]:
        """The |V| tokens in the order of `token_vectors`."""
        self._network()
        return list(self.tokens_.tokens)

    @property
    def special_token_ids(self) -> list[int]:
        """Positions of [PAD] and [UNK]."""
        return [PAD, UNK]

    @property
    def token_vectors(self) -> Tensor:
        """The word embedding matrix V, float32, shape (|V|, word dimension)."""
        return self._network().words.weight

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Tokenise texts; return each one's token ids, cut at `max_length` unless `is_whole`."""
        self._network()
        return [ids.tolist() for ids in self._tokenize(texts, is_whole=is_whole)]

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Convert token ids to a text, tokens separated by spaces."""
        self._network()
        return self.tokens_.text_of(token_ids)

    def embed_token_vectors(self, vectors: Tensor, layer: int | None = None) -> Tensor:
        """Map (batch, length, word dimension) word vectors to (batch, d), with gradients.

        With `layer=None` this is `encode` for word vectors, else `encode_layer` of that layer.
        """
        network = self._network()
        mask = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        if layer is None:
            embedded: Tensor = network(vectors, mask)
            return embedded
        return pool(network.states(vectors, mask, layer) if layer else vectors, mask, "mean")

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the weights as arrays, and settings, vocabulary and validation for JSON."""
        arrays = {k: v.cpu().numpy() for k, v in self._network().state_dict().items()}
        return arrays, {
            "encoder": self.name,
            "settings": self.settings,
            "tokens": list(self.tokens_.tokens),
            "validation": [score.to_dict() for score in self.validation_],
            "fingerprint": self.fingerprint,
        }

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        """Check the stored settings and weights that `state` returned, and set them."""
        if meta["encoder"] != self.name:
            raise ArtifactError(f"This is the state of {meta['encoder']!r}, not of {self.name!r}.")
        for key in self.settings:
            setattr(self, key, meta["settings"][key])
        try:
            validate_settings(self)
        except CoreError as error:
            raise ArtifactError(f"The state contains an invalid setting: {error}") from error
        tokens = WordTokens(tuple(map(str, meta["tokens"])))
        tensors = {k: torch.from_numpy(v.astype(np.float32)) for k, v in arrays.items()}
        with torch.device("meta"):  # allocate no memory before the shapes are checked
            network = self.new_network(len(tokens))
        network.load_state_dict(tensors, assign=True)
        self.validation_ = [
            RetrievalAccuracy.of(float(s["accuracy"]), int(s["n"]), int(s["n_candidates"]))
            for s in meta["validation"]
        ]
        self._set_weights(tokens, network.to(pick_device(self.device)))


class DualRun:
    """One training run of a dual encoder on numbered pairs.

    Attributes
    ----------
    module : Module
        What is trained: the network, and any adversary.
    clip_norm : float
        Maximum gradient norm of `module`; 0 for no limit.
    extra_state : Restorable or None
        Further state that the run changes and checkpoints must store.
    """

    def __init__(
        self,
        encoder: DualEncoder,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
    ) -> None:
        self.encoder, self.network, self.pairs, self.ids = encoder, network, pairs, ids
        self.rows, self.held = rows, held
        self.n_candidates = min(encoder.n_candidates, len(held))
        self.device = network.words.weight.device
        self.fast = fast_dtype(self.device)
        self.module: nn.Module = network
        self.clip_norm = encoder.clip_norm
        self.extra_state: Restorable | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must match to be resumed: encoder, settings and pairs."""
        encoder = self.encoder
        return {"encoder": encoder.name, "settings": encoder.settings, "pairs": self.pairs.digest}

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the Adam optimiser of the network."""
        return torch.optim.Adam(
            self.network.parameters(),
            lr=self.encoder.learning_rate,
            fused=self.device.type in ("cpu", "cuda"),
        )

    def train(self, on_progress: OnProgress, checkpoint_dir: str | None) -> TrainingLog:
        """Run the training loop and return its log."""
        encoder = self.encoder
        loop = Loop(
            n=len(self.rows),
            epochs=encoder.epochs,
            batch_size=encoder.n_negatives + 1,
            seed=encoder.seed,
            identity=self.identity,
            decay=False,
            clip_norm=self.clip_norm,
            patience=encoder.epochs + 1,
            keep_best=False,
            is_half=False,
            say_score=lambda accuracy: f"it {self.score_of(accuracy)}",
            unit="pairs of sentences",
            checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
            extra_state=self.extra_state,
        )
        loop.rate_share = encoder.rate_share(loop.epochs * loop.n_batches)
        return train(self.module, self.optimizer(), self.loss, self.validate, loop, on_progress)

    def loss(self, batch: _Rows) -> Tensor:
        """Encode a batch of pairs (row numbers) and return its contrastive loss (SR20 Eq. 2)."""
        self.network.train()
        seed_device(self.device)
        rows = self.rows[batch]
        a, b = self.pairs.first[rows], self.pairs.second[rows]
        kind = self.device.type
        with torch.autocast(kind, self.fast, enabled=self.fast != torch.float32):
            both = embed_ids(self.network, [self.ids[i] for i in np.concatenate([a, b])])
        one, two = both.float().split(len(rows))
        in_context = torch.from_numpy(self.pairs.in_context(rows)).to(self.device)
        return self.add_objectives(context_loss(one, two, in_context), two, rows)

    def add_objectives(self, loss: Tensor, vectors: Tensor, rows: _Rows) -> Tensor:
        """Return the loss plus further objectives on vectors of x_b; unchanged in this class."""
        return loss

    def validate(self) -> float:
        """Measure how often the true next sentence ranks first on held-out pairs, in per cent."""
        found = retrieval_accuracy(self.network, self.ids, self.pairs, self.held, self.n_candidates)
        return found.score.value

    def score_of(self, accuracy: float) -> RetrievalAccuracy:
        """Add to a validation accuracy its interval, sample size and chance."""
        n = len(self.held) // self.n_candidates * self.n_candidates
        return RetrievalAccuracy.of(accuracy, n, self.n_candidates)


@dataclass
class LSTMDualEncoder(DualEncoder):
    """The recurrent dual encoder: one LSTM, d 1,200, one epoch, learning rate 5e-4.

    Differs from the paper: see `DualEncoder`; we chose the width of the word vectors.
    """

    word_dimension: int = setting(300, "Dimension of word vectors", low=2, high=4096)

    name: str = field(default="dual_lstm", init=False)
    n_layers: int = field(default=1, init=False)

    def new_network(self, n_tokens: int) -> DualNetwork:
        """Build an untrained LSTM network for n_tokens tokens with these settings."""
        return LSTMNetwork(
            n_tokens,
            self.word_dimension,
            self.dimension,
            pooling=self.pooling,
            dropout=self.dropout,
        )


@dataclass
class TransformerDualEncoder(DualEncoder):
    """The Transformer dual encoder: three layers, d 600, five epochs, warmed-up learning rate.

    Differs from the paper: see `DualEncoder`. The warm-up takes at most a tenth of the steps, so
    that small corpora complete it; the peak is that of Vaswani et al. (2017) for 4,000 steps and
    d = 600, (d · 4,000)^−½; heads, feed-forward width and dropout follow their shape.
    """

    dimension: int = setting(600, "d, dimension of the vectors", low=2, high=8192, paper="SR20")
    epochs: int = setting(5, "Passes over the pairs", low=1, high=1000, paper="SR20")
    learning_rate: float = setting(6.5e-4, "Peak learning rate of Adam", low=1e-6, high=1.0)
    dropout: float = setting(
        0.1, "Dropout on word vectors and layers in training", low=0.0, high=0.9
    )
    warmup_steps: int = setting(4000, "Warm-up steps, at most a tenth of all", low=1, paper="SR20")
    n_layers: int = setting(3, "Transformer layers", low=1, high=24, paper="SR20")
    n_heads: int = setting(6, "Attention heads, a divisor of d", low=1, high=64)
    feed_forward: int = setting(2400, "Feed-forward width, 4 d", low=1, high=65_536)

    name: str = field(default="dual_transformer", init=False)

    def rate_share(self, n_steps: int) -> Callable[[int], float]:
        """Return the function from step to share of the peak learning rate, with warm-up."""
        return warm_up(min(self.warmup_steps, n_steps // 10))

    def new_network(self, n_tokens: int) -> DualNetwork:
        """Build an untrained Transformer network for n_tokens tokens with these settings.

        Raises
        ------
        InvalidInputError
            d is not a multiple of the number of heads.
        """
        if self.dimension % self.n_heads:
            raise InvalidInputError(
                f"dimension must be a multiple of n_heads, got {self.dimension} and "
                f"{self.n_heads}. Change one of them."
            )
        return TransformerNetwork(
            n_tokens,
            self.dimension,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            feed_forward=self.feed_forward,
            pooling=self.pooling,
            dropout=self.dropout,
        )
