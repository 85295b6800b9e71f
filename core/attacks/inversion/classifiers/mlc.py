"""Multi-label classification: one binary classifier per word, trained on pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.attacks.fitted import bind, bound_meta, check_fitted, check_shapes, rebind
from leakscope.core.attacks.inversion import shared_settings as shared
from leakscope.core.attacks.inversion.classifiers.network import Teacher, WordClassifier, word_bce
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.attacks.inversion.pairs import (
    TrainingPairs,
    collect_pairs,
    mean_f1,
    training_loop,
)
from leakscope.core.attacks.inversion.sparse_input import (
    from_stored,
    input_layer,
    stored_layer,
    to_stored,
    training_input,
)
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import Vocabulary
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import TrainingLog, train
from leakscope.core.vectors import n_rows

_LISTED = 100
"""Number of words ranked per vector: the maximum length of an answer."""


@dataclass
class MLCAttack:
    """An attack with |V| independent binary classifiers on the vector.

    Implements Eq. 8 of Song & Raghunathan (2020): L = −Σ_w [y_w log ŷ_w + (1−y_w) log(1−ŷ_w)],
    ŷ = σ(W·s(e − μ) + b), with their 30 epochs, Adam at 1e-3 and batch of 256.
    Differs from the paper: vectors are centred and scaled to unit variance (unit-length vectors
    would otherwise train very slowly), b starts at the words' log-odds, training stops early, and
    the number of words may be chosen to maximise the expected F1 instead of by a threshold.
    """

    batch_size: int = shared.BATCH_SIZE(256, paper="SR20", search=Categorical((64, 128, 256)))
    learning_rate: float = shared.LEARNING_RATE(
        1e-3, paper="SR20", search=Uniform(1e-4, 1e-2, is_log=True)
    )
    epochs: int = shared.EPOCHS(30, paper="SR20")
    patience: int = shared.PATIENCE(3)
    decay: bool = shared.DECAY(True)
    validation_share: float = shared.VALIDATION_SHARE()
    vocabulary_size: int = shared.VOCABULARY_SIZE(paper="C22")
    keep_stop_words: bool = shared.KEEP_STOP_WORDS()
    answer_count: str = setting(
        "expected_f1",
        "How many words to answer: the number that maximises the expected F1, or all above a "
        "threshold",
        choices=("expected_f1", "threshold"),
        at="answer",
    )
    threshold: float = setting(
        0.5, "Minimum probability of an answered word", low=0.0, high=1.0, at="answer"
    )
    size_factor: float = shared.SIZE_FACTOR(search=Uniform(0.75, 2.0))
    substitutions: int = shared.SUBSTITUTIONS(0)
    bottleneck: int = setting(
        512, "Units between sparse vectors and words; not used for dense vectors", low=1
    )
    seed: int = shared.SEED()
    device: str = shared.DEVICE()

    reads_sparse = True

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
        torch.manual_seed(self.seed)
        model = self._new_model(encoder, pairs, on_progress)
        self.model_ = model.to(pick_device(self.device))
        self.log_ = self._train(pairs, encoder, on_progress, checkpoint_dir)
        return self

    def _new_model(
        self, encoder: Encoder, pairs: TrainingPairs, on_progress: OnProgress
    ) -> WordClassifier:
        """Build the untrained word classifier for training pairs, with random word weights."""
        entry = input_layer(pairs.vectors, self.bottleneck)
        d = encoder.dimension if entry is None else self.bottleneck
        shape = (len(pairs.vocabulary), d)
        start = np.random.default_rng(self.seed).normal(0, d**-0.5 / 10, shape)
        if entry is not None:
            none = np.zeros(d, np.float32)
            scale = d**0.5  # entries of about unit variance, as dense vectors are scaled to
            return WordClassifier(start, pairs.vocabulary.log_odds, none, scale=scale, entry=entry)
        spread = float(pairs.vectors.std(0).mean())
        return WordClassifier(
            start, pairs.vocabulary.log_odds, pairs.vectors.mean(0), scale=1 / max(spread, 1e-6)
        )

    def _parameters(self) -> list[dict[str, Any]]:
        """Return the classifier's weights and their learning rate, as Adam's parameter groups."""
        return [{"params": list(self.model_.parameters()), "lr": self.learning_rate}]

    def _train(
        self,
        pairs: TrainingPairs,
        encoder: Encoder,
        on_progress: OnProgress,
        checkpoint_dir: str | None,
        *,
        counts_start: bool = False,
        teacher: Teacher | None = None,
    ) -> TrainingLog:
        """Train the classifier on pairs by Adam, with early stopping and checkpoints."""
        model = self.model_
        batch_of = training_input(model.entry, pairs.vectors, model.words.device)
        optimizer = torch.optim.Adam(self._parameters(), fused=model.words.device.type != "mps")

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            """Return the loss of the training pairs in the given rows."""
            model.train()
            taught = None if teacher is None else teacher.probabilities(rows)
            return word_bce(model, batch_of(rows), [pairs.rows[i] for i in rows], taught)

        name = type(self).__name__
        loop = training_loop(self, name, encoder, pairs, checkpoint_dir, counts_start=counts_start)
        return train(model, optimizer, loss_of, lambda: self._validate(pairs), loop, on_progress)

    def _validate(self, pairs: TrainingPairs) -> float:
        """Invert at most 2,000 validation vectors and return the mean F1 (×100)."""
        return self.mean_f1(pairs.validation_vectors[:2000], pairs.validation_rows[:2000])

    def mean_f1(self, vectors: Vectors, rows: Sequence[NDArray[np.int32]]) -> float:
        """Invert n vectors and return the answers' mean F1 (×100) against the texts' words.

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, d)
        rows : sequence of n ndarray of int32
            Vocabulary positions of each text's words.
        """
        ranked, _, counts = self.rank(vectors)
        return mean_f1((words[:n] for words, n in zip(ranked, counts, strict=True)), rows)

    def rank(
        self, vectors: Vectors
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Rank words for each vector; return positions, probabilities and how many to answer."""
        parts = [self._rank_block(vectors[i : i + 256]) for i in range(0, n_rows(vectors), 256)]
        ranked, likely, counts = (np.concatenate(p) for p in zip(*parts, strict=True))
        return ranked, likely, counts

    def _rank_block(
        self, vectors: Vectors
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Rank words for one block of vectors; return three arrays as `rank` does."""
        p = self.model_.probabilities(vectors)
        listed = min(_LISTED, p.shape[1])
        top = torch.topk(torch.from_numpy(p), listed, dim=1)
        ranked, likely = top.indices.numpy(), top.values.numpy()
        if self.answer_count == "threshold":
            return ranked, likely, (likely >= self.threshold).sum(1)
        return ranked, likely, best_counts(likely, self.size_factor * p.sum(1))

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: its likeliest words, likeliest first."""
        vectors = check_fitted(self, encoder, vectors)
        if not n_rows(vectors):
            return []
        recoveries = []
        for ranked, likely, count in zip(*self.rank(vectors), strict=True):
            listed = tuple(
                RecoveredWord(self.vocabulary_.words[w], float(p))
                for w, p in zip(ranked, likely, strict=True)
            )
            recoveries.append(Recovery(listed[:count], runners_up=listed[count : count + 25]))
        return recoveries

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: the network's float16 arrays; metadata with the vocabulary."""
        arrays = {name: to_stored(tensor) for name, tensor in self.model_.state_dict().items()}
        return arrays, bound_meta(self) | {"scale": self.model_.scale}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        rebind(self, meta)
        check_shapes(self, arrays, {"words": "V f", "bias": "V", "center": "f"})
        tensors = {name: from_stored(array) for name, array in arrays.items()}
        hidden = tensors["residual.enter.bias"].shape[0] if "residual.enter.bias" in tensors else 0
        model = WordClassifier(
            tensors["words"].numpy(),
            tensors["bias"].numpy(),
            tensors["center"].numpy(),
            scale=float(meta["scale"]),
            hidden=hidden,
            entry=stored_layer(tensors, "entry."),
            blocks=sum(name.endswith(".weight") for name in tensors if "residual.blocks" in name),
        )
        model.load_state_dict(tensors)
        self.model_ = model.eval()
        return self
