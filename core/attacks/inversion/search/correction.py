"""Train the correctors of an answer, one for each round, and rank words with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.fitted import arrays_of_part
from leakscope.core.attacks.inversion.classifiers.network import (
    Positions,
    WordClassifier,
    positions,
)
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.attacks.inversion.pairs import mean_f1
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress, part_progress
from leakscope.core.text import Vocabulary
from leakscope.core.training.devices import fast_dtype
from leakscope.core.training.loop import Loop, train


class AnswerCorrector(nn.Module):
    """A network that re-scores all words from the attacked vector and that of an answer.

    Logits W·(f(e) + A[e, h] + MLP([e, h, e − h])) + b + c + s ⊙ 1[w in the answer].

    e is the vector under attack, h that of the answer so far, both centred; W, f and b are the
    trained classifier's and stay as they are. A, the last layer of the MLP, c and s start at 0:
    before training the corrector repeats the classifier. Ours; the idea of looking at the vector
    of the attack's own answer is that of vec2text (Morris et al., 2023), here on sets of words.

    Parameters
    ----------
    base : WordClassifier
        The classifier whose answers are corrected. Not part of the corrector's state.
    hidden : int
        Units of the MLP.
    """

    def __init__(self, base: WordClassifier, *, hidden: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        size, d = base.words.shape
        self._base = (base,)
        self.direct = nn.Linear(2 * d, d, bias=False)
        last = nn.Linear(hidden, d)
        self.residual = nn.Sequential(
            nn.Linear(3 * d, hidden), nn.GELU(), nn.Dropout(dropout), last
        )
        # Unit-variance inputs to the hidden layer: a unit vector has entries of 1/√d.
        self.residual[0].weight.data *= d**0.5
        for layer in (self.direct, last):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(last.bias)
        self.bias = nn.Parameter(torch.zeros(size))
        self.inside = nn.Parameter(torch.zeros(size))

    @property
    def base(self) -> WordClassifier:
        """The frozen classifier whose answers are corrected."""
        return self._base[0]

    def features(self, vectors: Tensor, answers: Tensor) -> Tensor:
        """Compute the features that W multiplies from vectors and their answers' vectors."""
        e, h = vectors - self.base.center, answers - self.base.center
        with torch.no_grad():
            known = self.base.features(vectors)
        return (
            known
            + self.direct(torch.cat([e, h], dim=1))
            + self.residual(torch.cat([e, h, e - h], dim=1))
        )

    @torch.inference_mode()
    def probabilities(
        self, vectors: Vectors, answers: Vectors, lists: list[NDArray[Any]]
    ) -> NDArray[np.float32]:
        """Compute every word's probability from the vectors, the answers' vectors and their words.

        Parameters
        ----------
        vectors, answers : ndarray of float32, shape (n, d)
            The vectors under attack and those of the answers.
        lists : list of n int arrays
            The words of each answer, as positions in V.
        """
        self.eval()
        self.base.eval()
        device = self.bias.device
        x, h = torch.as_tensor(vectors, device=device), torch.as_tensor(answers, device=device)
        logits = torch.addmm(self.base.bias + self.bias, self.features(x, h), self.base.words.T)
        where = positions(lists, device)
        logits[where] += self.inside[where[1]]
        return torch.sigmoid(logits).cpu().numpy()


class _FrozenWordBCE(torch.autograd.Function):
    """Binary cross-entropy over words with frozen W and a manual gradient (see `_WordBCE`)."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        bias: Tensor,
        inside: Tensor,
        words: Tensor,
        where: tuple[Positions, Positions],
    ) -> Tensor:
        """Compute the loss of B texts, and store its gradient by the logits for `backward`."""
        true, listed = where
        logits = (features.to(words.dtype) @ words.T).float().add_(bias)
        logits[listed] += inside[listed[1]]
        positive = logits[true].sum()
        gradient = torch.sigmoid(logits)
        loss = (torch.nn.functional.softplus(logits).sum() - positive) / len(features)
        gradient[true] -= 1
        ctx.save_for_backward(gradient.div_(len(features)), words, *listed)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by features, bias and the bonus of words in the answer."""
        gradient, words, rows, columns = ctx.saved_tensors
        inside = torch.zeros(len(words), device=gradient.device)
        inside.index_add_(0, columns, gradient[rows, columns])
        features = (gradient.to(words.dtype) @ words).float()
        return features * upstream, gradient.sum(0) * upstream, inside * upstream, None, None


def correction_loss(
    corrector: AnswerCorrector,
    vectors: Tensor,
    answers: Tensor,
    lists: list[NDArray[Any]],
    targets: list[NDArray[Any]],
    words: Tensor | None = None,
) -> Tensor:
    """Compute a corrector's multi-label loss (SR20, Eq. 8), averaged over B texts.

    Parameters
    ----------
    vectors, answers : Tensor, shape (B, d)
    lists, targets : list of B int arrays
        Words of the answers, and of the texts, as positions in V.
    words : Tensor, shape (|V|, d), optional
        W in the number format of the product, where it was converted before.
    """
    base = corrector.base
    words = base.words.detach().to(fast_dtype(base.words.device)) if words is None else words
    where = (positions(targets, vectors.device), positions(lists, vectors.device))
    bias = base.bias.detach() + corrector.bias
    features = corrector.features(vectors, answers)
    loss: Tensor = _FrozenWordBCE.apply(features, bias, corrector.inside, words, where)
    return loss


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
        """Rank each row's words by probability (n, |V|) and choose how many to answer."""
        m = min(_LISTED, probabilities.shape[1])
        top = torch.topk(torch.from_numpy(probabilities), m, dim=1)
        mass = probabilities.sum(1, dtype=np.float64)
        likely = top.values.numpy()
        return cls(top.indices.numpy(), likely, best_counts(likely, size_factor * mass), mass)

    @classmethod
    def join(cls, parts: Sequence[Ranked]) -> Ranked:
        """Concatenate the rankings of several blocks of vectors into one."""
        names = ("words", "likely", "counts", "mass")
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    @property
    def lists(self) -> list[NDArray[np.int64]]:
        """The answered words of each vector, as positions in V, likeliest first."""
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
        """Build the training loop of one round on n samples; `facts` identify the samples."""
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
        """Write each ranking's answer as a text of its words, the likeliest first."""
        words = self.vocabulary.words
        return [" ".join(words[i] for i in answer) for answer in ranked.lists]

    def first(self, vectors: Vectors) -> Ranked:
        """Rank the words of each vector by the classifier alone, without correction."""
        starts = range(0, len(vectors), _BLOCK)
        blocks = (self.base.probabilities(vectors[i : i + _BLOCK]) for i in starts)
        return Ranked.join([Ranked.of(block, self.size_factor) for block in blocks])

    def rank(self, encoder: Encoder, vectors: Vectors) -> Ranked:
        """Rank the words of each vector by the classifier, then again in each round."""
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
        """Rank the words of each vector by one corrector, given its encoded answer, in blocks."""
        parts = (slice(i, i + _BLOCK) for i in range(0, len(vectors), _BLOCK))
        blocks = (corrector.probabilities(vectors[s], answers[s], lists[s]) for s in parts)
        return Ranked.join([Ranked.of(block, self.size_factor) for block in blocks])

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
            ends = (number / plan.n_rounds, (number + 1) / plan.n_rounds)
            progress = part_progress(on_progress, *ends)
            answers = encoder.encode(self.texts(ranked), part_progress(progress, 0.0, 0.4))
            torch.manual_seed(plan.seed + number)
            corrector = AnswerCorrector(self.base, hidden=plan.hidden).to(self.base.words.device)
            if number < len(start):
                corrector.load_state_dict(start[number].state_dict())
            pairs = _Pairs(vectors, answers, ranked.lists, rows)
            loop = plan.loop(number, pairs.n_trained, facts, folder)
            loop.counts_start = number < len(start)
            report = part_progress(progress, 0.4, 1.0)
            self._train(corrector, pairs, loop, plan.learning_rate, report)
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
            """Return the corrector's loss on the training pairs in the given rows."""
            corrector.train()
            self.base.eval()
            lists, targets = [pairs.lists[i] for i in rows], [pairs.rows[i] for i in rows]
            return correction_loss(
                corrector, x[rows].to(device), h[rows].to(device), lists, targets, words
            )

        held = slice(pairs.n_trained, None)

        def validate() -> float:
            """Return the mean F1 (×100) of the corrected answers to the validation pairs."""
            given = (pairs.vectors[held], pairs.answers[held], pairs.lists[held])
            return mean_f1(self._correct(corrector, *given).lists, pairs.rows[held])

        train(corrector, optimizer, loss_of, validate, loop, on_progress)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights of all correctors as float16 arrays to store, by name."""
        return {
            f"correctors.{i}.{name}": tensor.detach().cpu().numpy().astype(np.float16)
            for i, corrector in enumerate(self.correctors)
            for name, tensor in corrector.state_dict().items()
        }

    def load(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Build the correctors from what `arrays` returned; return self."""
        self.correctors = []
        while part := arrays_of_part(arrays, f"correctors.{len(self.correctors)}."):
            tensors = {k: torch.from_numpy(np.asarray(a, np.float32)) for k, a in part.items()}
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
