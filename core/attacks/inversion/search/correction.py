"""Train the correctors of an answer, one for each round, and rank words with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.attacks.inversion.classifiers.network import WordClassifier
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.attacks.inversion.search.corrector import AnswerCorrector, correction_loss
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.text import Vocabulary
from leakscope.core.training.devices import fast_dtype
from leakscope.core.training.loop import Loop, train

_LISTED = 100
_BLOCK = 256
_VALIDATED = 2000


@dataclass(frozen=True)
class Ranked:
    """The likeliest words of n vectors, at most 100 each, and the number to answer."""

    words: NDArray[np.int64]
    """Positions in V, likeliest first, shape (n, m)."""
    likely: NDArray[np.float32]
    """Their probabilities, shape (n, m)."""
    counts: NDArray[np.int64]
    mass: NDArray[np.float64]
    """Expected number of words of V in each text, shape (n,)."""

    @classmethod
    def of(cls, probabilities: NDArray[np.float32], size_factor: float) -> Ranked:
        """Rank the words by probabilities (n, |V|) and choose how many to answer."""
        m = min(_LISTED, probabilities.shape[1])
        top = torch.topk(torch.from_numpy(probabilities), m, dim=1)
        mass = probabilities.sum(1, dtype=np.float64)
        likely = top.values.numpy()
        return cls(top.indices.numpy(), likely, best_counts(likely, size_factor * mass), mass)

    @classmethod
    def join(cls, parts: Sequence[Ranked]) -> Ranked:
        """Concatenate the rankings of several blocks of vectors."""
        return cls(
            np.concatenate([p.words for p in parts]),
            np.concatenate([p.likely for p in parts]),
            np.concatenate([p.counts for p in parts]),
            np.concatenate([p.mass for p in parts]),
        )

    @property
    def lists(self) -> list[NDArray[np.int64]]:
        """The answered words of each vector."""
        return [w[:k] for w, k in zip(self.words, self.counts, strict=True)]


@dataclass(frozen=True, kw_only=True)
class CorrectionPlan:
    """Training settings of the correctors: rounds, width, epochs and learning rate."""

    n_rounds: int
    hidden: int
    epochs: int
    learning_rate: float = 1e-3
    batch_size: int = 256
    seed: int = 0

    def loop(self, number: int, n: int, facts: dict[str, Any], checkpoint_dir: Path | None) -> Loop:
        """Return the training loop of a round on n samples; `facts` identify the samples."""
        of_round = [number, self.hidden, self.epochs, self.learning_rate, self.batch_size]
        return Loop(
            n=n,
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=self.seed,
            identity={"corrector": [*of_round, self.seed], **facts},
            checkpoint_dir=checkpoint_dir and checkpoint_dir / f"corrector-{number}",
        )


@dataclass
class Corrections:
    """Rounds of correction: encode the answer as a text, then rank the words again given that.

    A round costs one encoder query a vector.
    """

    base: WordClassifier
    vocabulary: Vocabulary
    size_factor: float
    correctors: list[AnswerCorrector] = field(default_factory=list)

    def texts(self, ranked: Ranked) -> list[str]:
        """Write each answer as a text, the likeliest word first."""
        words = self.vocabulary.words
        return [" ".join(words[i] for i in answer) for answer in ranked.lists]

    def first(self, vectors: Vectors) -> Ranked:
        """Return the uncorrected ranking of the classifier."""
        return Ranked.join(
            [
                Ranked.of(self.base.probabilities(vectors[i : i + _BLOCK]), self.size_factor)
                for i in range(0, len(vectors), _BLOCK)
            ]
        )

    def rank(self, encoder: Encoder, vectors: Vectors) -> Ranked:
        """Return the ranking after all rounds of correction."""
        ranked = self.first(vectors)
        for corrector in self.correctors:
            answers = encoder.encode(self.texts(ranked))
            ranked = self._correct(corrector, vectors, answers, ranked.lists)
        return ranked

    def _correct(
        self,
        corrector: AnswerCorrector,
        vectors: Vectors,
        answers: Vectors,
        lists: list[NDArray[Any]],
    ) -> Ranked:
        """Rank the words of vectors by one corrector, given the encoded answers, in blocks."""
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(vectors), _BLOCK)]
        return Ranked.join(
            [
                Ranked.of(
                    corrector.probabilities(vectors[s], answers[s], lists[s]), self.size_factor
                )
                for s in blocks
            ]
        )

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors,
        plan: CorrectionPlan,
        *,
        checkpoint_dir: str | None = None,
        start: Sequence[AnswerCorrector] = (),
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Train one corrector for each round on texts that the classifier was not trained on.

        Each learns from the answers that the rounds before it give, so that it knows their
        mistakes. Minimises Eq. 8 of Song & Raghunathan (2020) with Adam.

        Parameters
        ----------
        start : sequence of AnswerCorrector
            Trained ones of the same shape to go on from, one a round.
        """
        rows = self.vocabulary.rows(texts)
        kept = [i for i, row in enumerate(rows) if len(row)]
        rows, vectors = [rows[i] for i in kept], vectors[kept]
        ranked = self.first(vectors)
        folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        facts = {"encoder": encoder.fingerprint, "n": len(rows)}
        self.correctors = []
        for number in range(plan.n_rounds):

            def progress(f: float, m: str, number: int = number) -> None:
                on_progress((number + f) / plan.n_rounds, m)

            answers = encoder.encode(self.texts(ranked), lambda f, m: progress(0.4 * f, m))
            torch.manual_seed(plan.seed + number)
            corrector = AnswerCorrector(self.base, hidden=plan.hidden).to(self.base.words.device)
            if number < len(start):
                corrector.load_state_dict(start[number].state_dict())
            pairs = _Pairs(vectors, answers, ranked.lists, rows)
            loop = plan.loop(number, pairs.n_trained, facts, folder)
            loop.counts_start = number < len(start)
            self._train(
                corrector, pairs, loop, plan.learning_rate, lambda f, m: progress(0.4 + 0.6 * f, m)
            )
            self.correctors.append(corrector)
            ranked = self._correct(corrector, vectors, answers, ranked.lists)
        return self

    def _train(
        self,
        corrector: AnswerCorrector,
        pairs: _Pairs,
        loop: Loop,
        learning_rate: float,
        on_progress: OnProgress,
    ) -> None:
        """Train one corrector by Adam on pairs of vectors and encoded answers."""
        device = self.base.words.device
        words = self.base.words.detach().to(fast_dtype(device))
        x, h = torch.from_numpy(pairs.vectors), torch.from_numpy(pairs.answers)
        optimizer = torch.optim.Adam(
            corrector.parameters(), lr=learning_rate, fused=device.type != "mps"
        )

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            corrector.train()
            self.base.eval()
            lists, targets = [pairs.lists[i] for i in rows], [pairs.rows[i] for i in rows]
            return correction_loss(
                corrector, x[rows].to(device), h[rows].to(device), lists, targets, words
            )

        train(
            corrector,
            optimizer,
            loss_of,
            lambda: self._validate(corrector, pairs),
            loop,
            on_progress,
        )

    def _validate(self, corrector: AnswerCorrector, pairs: _Pairs) -> float:
        """Return a corrector's mean F1 (×100) on the validation texts."""
        held = slice(pairs.n_trained, None)
        found = self._correct(
            corrector, pairs.vectors[held], pairs.answers[held], pairs.lists[held]
        )
        scores = [
            2 * np.isin(answer, true).sum() / (len(answer) + len(true))
            for answer, true in zip(found.lists, pairs.rows[held], strict=True)
        ]
        return 100 * float(np.mean(scores))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights of all correctors in float16, for storage."""
        return {
            f"correctors.{i}.{name}": tensor.detach().cpu().numpy().astype(np.float16)
            for i, corrector in enumerate(self.correctors)
            for name, tensor in corrector.state_dict().items()
        }

    def load(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the correctors from what `arrays` returned."""
        self.correctors = []
        while (name := f"correctors.{len(self.correctors)}.") and any(
            key.startswith(name) for key in arrays
        ):
            tensors = {
                key.removeprefix(name): torch.from_numpy(np.asarray(a, np.float32))
                for key, a in arrays.items()
                if key.startswith(name)
            }
            corrector = AnswerCorrector(self.base, hidden=len(tensors["residual.0.bias"]))
            corrector.load_state_dict(tensors)
            self.correctors.append(corrector.eval())
        return self


@dataclass(frozen=True)
class _Pairs:
    """The training data of a corrector; the last rows are for validation."""

    vectors: Vectors
    answers: Vectors
    lists: list[NDArray[Any]]
    rows: list[NDArray[np.int32]]

    @property
    def n_trained(self) -> int:
        """The number of training rows; the rest are for validation."""
        n = len(self.rows)
        return n - min(_VALIDATED, max(1, n // 20))
