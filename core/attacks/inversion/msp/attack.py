"""Multi-set prediction: a recurrent network predicts the words one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from leakscope.core.attacks.fitted import bind, bound_meta, check_fitted, check_shapes, rebind
from leakscope.core.attacks.inversion import shared_settings as shared
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.attacks.inversion.msp.network import (
    Candidates,
    MSPNetwork,
    all_candidates,
    decode,
    draw_candidates,
    msp_loss,
    rare_word_weights,
    stored_network,
)
from leakscope.core.attacks.inversion.pairs import (
    TrainingPairs,
    collect_pairs,
    mean_f1,
    training_loop,
)
from leakscope.core.attacks.inversion.probe import encode_words
from leakscope.core.attacks.inversion.sparse_input import (
    input_layer,
    network_input,
    to_stored,
    training_input,
)
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Categorical, Fixed, Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import Vocabulary
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import TrainingLog, train
from leakscope.core.vectors import is_sparse, mean_norm, n_rows

_MAX_STEPS = 30  # words predicted for a sentence; for longer texts L
_WORD_SCALE, _VECTOR_SCALE = 3.0, 8.0
"""Lengths at which an encoder's start gives first logits of the size of log-odds, for vectors of
length 1."""


@dataclass
class MSPAttack:
    """An attack that predicts the set of words greedily, one after another, by an LSTM.

    Implements Eq. 9 of Song & Raghunathan (2020) with the network and the tuned settings of
    Corò (2022, Alg. 1 and §4.3.3). Differs from the papers where a setting says so: the number of
    words may be chosen per text, the softmax may be sampled, and word vectors may start from the
    encoder's own encodings (both proposed in C22 §6.1). The mean of the training vectors is taken
    off dense ones: with some encoders it is nearly all of a vector, and hides the rest.
    """

    hidden: int = setting(
        512,
        "Units H of the LSTM and of the word vectors",
        low=8,
        paper="C22",
        search=Categorical((384, 512, 768)),
    )
    batch_size: int = shared.BATCH_SIZE(64, paper="C22", search=Categorical((64, 128, 256)))
    learning_rate: float = shared.LEARNING_RATE(
        4e-4, paper="C22", search=Uniform(1e-4, 1e-2, is_log=True)
    )
    weight_decay: float = setting(
        1e-4,
        "L2 penalty; decoupled from Adam if the softmax is sampled",
        low=0.0,
        paper="C22",
        search=Uniform(1e-5, 1e-2, is_log=True),
    )
    dropout: float = setting(
        0.2,
        "Dropout before each LSTM input",
        low=0.0,
        high=0.9,
        paper="C22",
        search=Categorical((0.1, 0.2, 0.3)),
    )
    # For a search, Corò (2022, §4.3.3) prefers more trials to longer ones.
    epochs: int = shared.EPOCHS(100, paper="C22", search=Fixed(30))
    decay: bool = shared.DECAY(False)
    patience: int = shared.PATIENCE(10, paper="C22")
    validation_share: float = shared.VALIDATION_SHARE(paper="C22")
    vocabulary_size: int = shared.VOCABULARY_SIZE(paper="C22")
    keep_stop_words: bool = shared.KEEP_STOP_WORDS()
    end_token: bool = setting(False, "Train with [EOS] among the words to predict (C22 §A.1)")
    rare_weight: float = setting(
        0.0, "Power of the inverse frequency that weights words in the loss (C22 §6.1)", low=0.0
    )
    start: str = setting(
        "random",
        "Initial word vectors: random, or the encoder's encoding of each word (C22 §6.1)",
        choices=("random", "encoder"),
    )
    n_negatives: int = setting(
        1000, "Random words in the sampled softmax; 0 for the papers' full softmax", low=0
    )
    train_steps: int = setting(0, "L in training; 0 for the mean |W(x)| (C22)", low=0, high=64)
    answer_count: str = setting(
        "expected_f1",
        "How many words to answer: the number that maximises the expected F1, or L for every text "
        "(C22)",
        choices=("expected_f1", "mean"),
        at="answer",
    )
    size_factor: float = shared.SIZE_FACTOR()
    substitutions: int = shared.SUBSTITUTIONS(0)
    shortlist: int = setting(1000, "Words scored after the first step", low=10, at="answer")
    seed: int = shared.SEED()
    device: str = shared.DEVICE()

    reads_sparse = True
    answers_in_order = True

    vocabulary_: Vocabulary = field(init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Encode auxiliary texts unless vectors are given, train on them, and return self."""
        pairs = collect_pairs(self, encoder, texts, vectors, on_progress)
        bind(self, encoder, pairs.vocabulary)
        self.n_steps_ = self.train_steps or max(1, round(pairs.mean_words))
        self.network_ = self._new_network(encoder, pairs, on_progress).to(pick_device(self.device))
        self.log_ = self._train(pairs, encoder, on_progress, checkpoint_dir)
        self._calibrate(pairs)
        return self

    def _new_network(
        self, encoder: Encoder, pairs: TrainingPairs, on_progress: OnProgress
    ) -> MSPNetwork:
        """Build the untrained network: random, or started from the encodings of the words."""
        torch.manual_seed(self.seed)
        n_words = len(self.vocabulary_)
        shape = (n_words + self.end_token, self.hidden)
        table = np.random.default_rng(self.seed).normal(0, self.hidden**-0.5, shape)
        centre = None if is_sparse(pairs.vectors) else pairs.vectors.mean(0)
        network = MSPNetwork(
            encoder.dimension,
            table.astype(np.float32),
            np.zeros(len(table), dtype=np.float32),
            dropout=self.dropout,
            first=input_layer(pairs.vectors, self.hidden),
            centre=None if centre is None else torch.as_tensor(centre),
        )
        if self.start == "encoder":
            words = encode_words(encoder, self.vocabulary_, on_progress)
            length = mean_norm(pairs.vectors if centre is None else pairs.vectors - centre)
            network.start_as_probe(
                words, self.vocabulary_.log_odds, _WORD_SCALE / length, _VECTOR_SCALE / length
            )
        return network

    def _train(
        self,
        pairs: TrainingPairs,
        encoder: Encoder,
        on_progress: OnProgress,
        checkpoint_dir: str | None,
    ) -> TrainingLog:
        """Train the network on pairs with early stopping and checkpoints; return the log."""
        network = self.network_
        device = network.words.device
        batch_of = training_input(network.first, pairs.vectors, device)
        share = np.asarray(self.vocabulary_.document_frequency) / self.vocabulary_.n_texts
        share = np.append(share, 0.0) if self.end_token else share
        weights = None
        if self.rare_weight:
            weights = rare_word_weights(
                self.vocabulary_, self.rare_weight, end_token=self.end_token
            ).to(device)
        end = np.array([len(self.vocabulary_)] if self.end_token else [], dtype=np.int32)

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            """Return the loss of the training pairs in the given rows."""
            network.train()
            targets = [np.append(pairs.rows[i], end) for i in rows]
            drawn = self._candidates(targets, share)
            return msp_loss(network, batch_of(rows), targets, drawn, self.n_steps_, weights)

        loop = training_loop(self, "msp", encoder, pairs, checkpoint_dir)
        # Adam's own L2 penalty would wipe out the rows that a sampled softmax does not touch.
        kind = torch.optim.AdamW if self.n_negatives else torch.optim.Adam
        optimizer = kind(
            network.parameters(),
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            fused=device.type in ("cpu", "cuda"),
        )
        return train(network, optimizer, loss_of, lambda: self._validate(pairs), loop, on_progress)

    def _candidates(
        self, targets: list[NDArray[np.int32]], share: NDArray[np.float64]
    ) -> Candidates:
        """Choose the words to score in one step: all, or a sample with the batch's own words."""
        if self.n_negatives == 0:
            return all_candidates(len(share))
        # Seeded by PyTorch's generator, whose state is in the checkpoint: a resumed run draws
        # the same words.
        rng = np.random.default_rng(int(torch.randint(2**62, (1,))))
        return draw_candidates(targets, share, self.n_negatives, rng)

    def _decode(self, vectors: Vectors, n_steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predict `n_steps` words of each vector greedily, with their probabilities, in batches."""
        network = self.network_
        parts = [
            decode(
                network,
                network_input(network.first, vectors[i : i + 64], network.words.device),
                n_steps,
                shortlist=self.shortlist,
            )
            for i in range(0, n_rows(vectors), 64)
        ]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _validate(self, pairs: TrainingPairs) -> float:
        """Predict L words for at most 2,000 validation vectors; return the mean F1 (×100)."""
        rows = pairs.validation_rows[:2000]
        named, _ = self._decode(pairs.validation_vectors[:2000], self.n_steps_)
        counts = self._before_end(named, np.full(len(named), named.shape[1]))
        return mean_f1((words[:n] for words, n in zip(named, counts, strict=True)), rows)

    def _before_end(self, named: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Lower each vector's number of words to answer to those named before [EOS], if any."""
        ends = np.equal(named, len(self.vocabulary_))
        return np.where(ends.any(1), np.minimum(counts, ends.argmax(1)), counts)

    def _calibrate(self, pairs: TrainingPairs) -> None:
        """Decode the validation vectors and fit the calibration of the step probabilities."""
        named, p = self._decode(pairs.validation_vectors, max(_MAX_STEPS, self.n_steps_))
        right = np.stack([np.isin(a, t) for a, t in zip(named, pairs.validation_rows, strict=True)])
        self.calibration_ = StepCalibration.fit(p, right)

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: words in the order in which the network named them."""
        vectors = check_fitted(self, encoder, vectors)
        if not n_rows(vectors):
            return []
        named, p = self._decode(vectors, max(_MAX_STEPS, self.n_steps_))
        words = [*self.vocabulary_.words, ""]  # the last one is [EOS]
        recoveries = []
        for own, scores, count in zip(named, p, self._counts(named, p), strict=True):
            found = [RecoveredWord(words[w], float(s)) for w, s in zip(own, scores, strict=True)]
            rest = tuple(word for word in found[count:] if word.word)
            recoveries.append(Recovery(tuple(found[:count]), runners_up=rest))
        return recoveries

    def _counts(self, named: NDArray[Any], p: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many of its predicted words to answer for each vector."""
        if self.answer_count == "mean":
            counts = np.full(len(named), min(self.n_steps_, named.shape[1]))
        else:
            right = self.calibration_(p)
            counts = best_counts(right, self.size_factor * right.sum(1))
        return self._before_end(named, counts)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: the network in float16; metadata with words and calibration."""
        arrays = {name: to_stored(tensor) for name, tensor in self.network_.state_dict().items()}
        extra = {"n_steps": self.n_steps_, "calibration": asdict(self.calibration_)}
        return arrays, bound_meta(self) | extra

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        rebind(self, meta)
        is_dense = "first.columns" not in arrays
        first = {"first.weight": "h d", "centre": "d"} if is_dense else {}
        check_shapes(self, arrays, {"words": "V w", "bias": "V", **first})
        self.n_steps_ = int(meta["n_steps"])
        a, b, c = meta["calibration"]["weights"]
        self.calibration_ = StepCalibration((a, b, c), meta["calibration"]["intercept"])
        self.network_ = stored_network(arrays, self.dropout)
        return self


@dataclass(frozen=True)
class StepCalibration:
    """Calibrated probability that the word of step t is right: logistic in log p_t and log t.

    The network's softmax shares its mass among all words left, so p_t falls short of the
    probability of being right and falls with t; validation texts correct for that.
    """

    weights: tuple[float, float, float]
    intercept: float

    @classmethod
    def fit(cls, probability: NDArray[Any], is_right: NDArray[np.bool_]) -> StepCalibration:
        """Fit on (n, n_steps) step probabilities and whether each predicted word is in its text."""
        x, y = _step_features(probability).reshape(-1, 3), is_right.ravel()
        if y.min() == y.max():
            return cls((0.0, 0.0, 0.0), 20.0 if y[0] else -20.0)
        model = LogisticRegression(C=100.0).fit(x, y)
        a, b, c = (float(v) for v in model.coef_[0])
        return cls((a, b, c), float(model.intercept_[0]))

    def __call__(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """Convert step probabilities to calibrated probabilities of being right, same shape."""
        z = _step_features(probability) @ np.array(self.weights) + self.intercept
        calibrated: NDArray[np.float64] = 1 / (1 + np.exp(-z))
        return calibrated


def _step_features(probability: NDArray[Any]) -> NDArray[np.float64]:
    """Return the features log p, log t and their product of each step, (n, n_steps, 3)."""
    p = np.log(np.clip(np.asarray(probability, dtype=np.float64), 1e-9, 1.0))
    step = np.log(np.arange(1, p.shape[1] + 1))
    return np.stack([p, np.broadcast_to(step, p.shape), p * step], axis=-1)
