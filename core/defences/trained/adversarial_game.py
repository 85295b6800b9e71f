"""Training an encoder against an adversary: joint loss, optimiser, and the adversary's scores.

Shared by the adapter on frozen vectors (`adversarial`) and the dual encoders (`adversarial_dual`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.inversion.classifiers.network import WordClassifier, word_bce
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.ranges import Strength
from leakscope.core.results import Score
from leakscope.core.specs import setting
from leakscope.core.text import Vocabulary
from leakscope.core.training.adversary import (
    Adversary,
    LabelAdversary,
    StandardScale,
    add_gradient_check,
    reverse,
)

_LISTED = 100
"""Words ranked for a vector; no answer is longer."""


class WordAdversary(WordClassifier):
    """Infers the words of a text from its vector: log P_A(W(x)|Φ(x)) of SR20, §7.

    Implements Song & Raghunathan (2020), Eq. 8, as the adversary of §7: |V| independent yes-or-no
    classifiers.
    Differs from the paper: vectors are scaled to unit variance first (see `StandardScale`), and
    with `hidden` there is a layer between the vector and the words.

    Parameters
    ----------
    texts : sequence of str
        In the order of the rows.
    vocabulary : Vocabulary
        V, the words that are to be hidden.
    dimension : int
        Numbers in a vector.
    hidden : int
        Units of a hidden layer; 0 for none.
    """

    def __init__(
        self, texts: Sequence[str], vocabulary: Vocabulary, dimension: int, *, hidden: int
    ) -> None:
        width = hidden or dimension
        shape = (len(vocabulary), width)
        start = torch.randn(shape).numpy() * width**-0.5 / 10
        super().__init__(start, vocabulary.log_odds, np.zeros(width, np.float32), scale=1.0)
        layers: list[nn.Module] = [StandardScale(dimension)]
        if hidden:
            layers += [nn.Linear(dimension, hidden), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self._targets = vocabulary.rows(texts)
        self._vocabulary = vocabulary

    def features(self, vectors: Tensor) -> Tensor:
        """Map (n, d) vectors to the (n, width) inputs of the word classifiers."""
        read: Tensor = self.layers(vectors)
        return read

    def loss(self, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return the mean word-prediction loss (Eq. 8) over the texts with indices `rows`."""
        return word_bce(self, vectors, [self._targets[i] for i in rows])

    @torch.inference_mode()
    def hits(self, vectors: Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Predict each text's words from its vector; return the (n,) F1 scores in per cent."""
        self.eval()
        p = torch.sigmoid(torch.addmm(self.bias, self.features(vectors), self.words.T)).cpu()
        top = torch.topk(p, min(_LISTED, p.shape[1]), dim=1)
        counts = best_counts(top.values.numpy(), p.sum(1).numpy())
        return self._f1(
            [answer[:k] for answer, k in zip(top.indices.numpy(), counts, strict=True)], rows
        )

    def chance(self, rows: NDArray[np.int64]) -> float:
        """Return the best mean F1, in per cent, of one word list answered for every text."""
        n = min(_LISTED, len(self._vocabulary))  # the most frequent words come first
        holds = np.zeros((len(rows), n))
        for place, i in enumerate(rows):
            holds[place, [w for w in self._targets[i] if w < n]] = 1
        n_true = np.array([len(self._targets[i]) for i in rows])[:, None]
        f1 = 200.0 * holds.cumsum(1) / (np.arange(1, n + 1) + n_true)
        return float(f1.mean(0).max())

    def _f1(
        self, answers: Sequence[NDArray[np.int64]], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the F1, in per cent, of each answered word list against its text's words."""
        found = []
        for answer, i in zip(answers, rows, strict=True):
            true = self._targets[i]
            both = np.isin(answer, true, assume_unique=True).sum()
            found.append(200.0 * both / (len(answer) + len(true)))
        return np.array(found)


AGAINST = ("words", "attribute")
"""What is hidden: the words of a text (inversion), or an attribute of it."""


_WEIGHT = Strength("Weight of the adversary", 1.0, (0.0, 0.1, 0.3, 1.0, 3.0), "λ {:g}")


@dataclass
class AdversarialSettings:
    """Settings of the adversary, shared by all defences that are trained against one."""

    against: str = setting("words", "What to hide", choices=AGAINST)
    weight: float = setting(
        1.0,
        "λ_w or λ_s: weight of the adversary; 0 trains without it",
        low=0.0,
        paper="SR20",
        strength=_WEIGHT,
    )
    adversary_hidden: int = setting(
        256, "Units of the adversary's hidden layer; 0: linear, as in the paper", low=0, high=8192
    )
    adversary_rate: float = setting(
        3e-3, "Learning rate of Adam for the adversary", low=1e-6, high=1.0
    )
    n_words: int = setting(
        5000, "Number of words to hide, the most frequent ones", low=10, high=100_000
    )


def make_adversary(
    settings: AdversarialSettings,
    texts: Sequence[str],
    labels: Sequence[str] | None,
    known: NDArray[np.int64],
    dimension: int,
) -> Adversary:
    """Build an untrained adversary that infers a text's words, or its label if labels are hidden.

    Parameters
    ----------
    labels : sequence of str, optional
        The attribute of each text; needed to hide an attribute.
    known : ndarray of int64
        Rows of the training texts, whose words are counted.

    Raises
    ------
    InvalidInputError
        No labels, another number of them than of texts, or one label only.
    """
    if settings.against == "words":
        vocabulary = Vocabulary.count((texts[i] for i in known), size=settings.n_words)
        return WordAdversary(texts, vocabulary, dimension, hidden=settings.adversary_hidden)
    if labels is None or len(labels) != len(texts):
        n = "none" if labels is None else f"{len(labels):,}"
        raise InvalidInputError(
            f"Hiding an attribute needs a label for each of the {len(texts):,} texts, got {n}. "
            "Name the column of the labels, or set against=words."
        )
    names = sorted(set(labels))
    if len(names) < 2:
        raise InvalidInputError(
            f"Hiding an attribute needs at least two labels, got {names}. Name another column."
        )
    places = {name: i for i, name in enumerate(names)}
    numbers = np.array([places[label] for label in labels], np.int64)
    return LabelAdversary(numbers, len(names), dimension, hidden=settings.adversary_hidden)


class AdversarialGame:
    """An encoder's network and its adversary, trained by one joint loss.

    Attributes
    ----------
    module : Module
        Both networks, for a checkpoint.
    scores : list of Score
        What the adversary reads of held-out texts after each epoch, in per cent: the F1 of words,
        or how often it is right about the attribute.
    """

    def __init__(
        self,
        settings: AdversarialSettings,
        network: nn.Module,
        adversary: Adversary,
        device: torch.device,
    ) -> None:
        assert isinstance(adversary, nn.Module)
        self.weight, self._rate = settings.weight, settings.adversary_rate
        self.network, self.adversary = network, adversary
        self.module = nn.ModuleDict({"network": network, "adversary": adversary}).to(device)
        self.scores: list[Score] = []

    def optimizer(self, learning_rate: float, clip: float) -> torch.optim.Optimizer:
        """Build Adam over encoder and adversary; its step raises DivergedError on divergence."""
        groups: list[dict[str, Any]] = [
            {"params": list(self.network.parameters()), "lr": learning_rate},
            {"params": list(self.module["adversary"].parameters()), "lr": self._rate},
        ]
        kind = next(self.module.parameters()).device.type
        optimizer = torch.optim.Adam(groups, fused=kind in ("cpu", "cuda"))
        add_gradient_check(optimizer, self.network.parameters(), clip=clip, weight=self.weight)
        return optimizer

    def loss(self, main: Tensor, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return the main loss plus the adversary's loss on vectors with reversed gradient.

        Implements Song & Raghunathan (2020), §7: min_Φ max_A λ log P_A(·|Φ(x_b)) − log P_Φ; see
        `leakscope.core.training.adversary.reverse`.
        """
        self.module["adversary"].train()
        return main + self.adversary.loss(reverse(vectors, self.weight), rows)

    def record(self, vectors: Tensor, rows: NDArray[np.int64]) -> float:
        """Score the adversary on held-out texts; store the Score and return its value."""
        hits = self.adversary.hits(vectors, rows)
        interval, chance = bootstrap_interval(hits), self.adversary.chance(rows)
        self.scores.append(Score(float(hits.mean()), interval, len(hits), chance))
        return self.scores[-1].value

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the adversary's scores so far, without the networks."""
        return {}, {"scores": [score.to_dict() for score in self.scores]}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the adversary's scores from what `state` returned."""
        self.scores = [Score.from_dict(score) for score in meta["scores"]]
        return self
