"""Adversarial training of a small adapter on frozen vectors, to hide words or an attribute.

Implements Song & Raghunathan (2020), §7, for an encoder whose weights stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.defences.trained.adversarial_game import (
    AdversarialGame,
    AdversarialSettings,
    make_adversary,
)
from leakscope.core.errors import EncoderMismatchError, InvalidInputError, NotFittedError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import setting, validate_settings
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.text import check_texts
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import Loop, TrainingLog, train
from leakscope.core.training.watch import discard_on_divergence
from leakscope.core.vectors import is_sparse

LEAST_TEXTS = 40
"""Fewest texts, training and held-out together."""

MOST_HELD = 1000
"""Most held-out texts, on which the adversary is scored after each epoch."""


def similarity_loss(own: Tensor, frozen: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy between frozen and adapted vectors' similarity distributions.

    −(1/n) Σ_a Σ_{b≠a} P(x_b|x_a) log P_f(x_b|x_a), with P_f(x_b|x_a) = exp(f(x_b)·f(x_a)/τ) /
    Σ_{x≠x_a} exp(f(x)·f(x_a)/τ) over the batch, and P the same of the frozen vectors.
    It holds the place of −log P_Φ(x_b|x_a, X_neg) in Song & Raghunathan (2020), §7: there x_b is
    the sentence that follows x_a, here a text is as much x_a's x_b as the frozen encoder finds
    the two alike. So what the encoder is useful for stays, and texts in any order will do.

    Parameters
    ----------
    own, frozen : Tensor of float32, shapes (n, m) and (n, d)
        Unit vectors.
    temperature : float
        τ.
    """
    itself = torch.eye(len(own), dtype=torch.bool, device=own.device)
    wanted = (frozen @ frozen.T / temperature).masked_fill(itself, -torch.inf).softmax(1)
    found = (own @ own.T / temperature).masked_fill(itself, -1e9).log_softmax(1)
    return -(wanted * found).sum(1).mean()


class AdapterNetwork(nn.Module):
    """The adapter f(e) = W e + B relu(A e), normalised to unit length.

    W starts as the principal directions of the vectors (the identity where m = d), and B at 0, so
    that before any training nothing is hidden that fewer numbers do not hide.
    """

    def __init__(self, start: NDArray[np.float32], hidden: int) -> None:
        super().__init__()
        m, d = start.shape
        self.direct = nn.Linear(d, m, bias=False)
        self.direct.weight.data = torch.from_numpy(start.copy())
        self.enter, self.leave = nn.Linear(d, hidden), nn.Linear(hidden, m)
        self.enter.weight.data *= d**0.5  # a unit vector has entries of 1/√d
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the (n, m) adapted vectors of (n, d) frozen vectors."""
        changed = self.direct(vectors) + self.leave(torch.relu(self.enter(vectors)))
        return nn.functional.normalize(changed)


def _principal_directions(vectors: Vectors, m: int) -> NDArray[np.float32]:
    """Compute the m principal directions of vectors, shape (m, d); the identity if m = d."""
    d = vectors.shape[1]
    if m == d:
        return np.eye(d, dtype=np.float32)
    _, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    return np.ascontiguousarray(axes[:, ::-1][:, :m].T, dtype=np.float32)


@dataclass
class AdversarialAdapter(AdversarialSettings):
    """Changes vectors so that an adversary recovers less from them while they stay useful.

    Implements Song & Raghunathan (2020), §7, by gradient reversal.
    Differs from the paper: the encoder is frozen, and a small network on its vectors is trained in
    its place; `similarity_loss` keeps utility instead of the next sentence; the adversary
    sees scaled vectors and may have a hidden layer.

    Attributes
    ----------
    during_ : list of Score
        The training adversary's score on held-out texts after each epoch.
    seconds_ : float
        Training time, including interrupted runs.
    """

    dimension: int = setting(0, "Numbers of an adapted vector; 0: as many as before", low=0)
    hidden: int = setting(512, "Units of the adapter's hidden layer", low=1, high=8192)
    temperature: float = setting(0.05, "τ of the loss that keeps utility", low=1e-3, high=10.0)
    epochs: int = setting(15, "Passes over the texts", low=1, high=1000)
    batch_size: int = setting(256, "Texts per step", low=8, high=2**14)
    learning_rate: float = setting(
        2e-4, "Learning rate of Adam for the adapter", low=1e-6, high=1.0
    )
    clip_norm: float = setting(5.0, "Longest gradient of the adapter; 0: no limit", low=0.0)
    seed: int = setting(0, "Random seed of weights, order and held-out texts", low=0)
    device: str = setting("auto", "Where to train: auto, cpu, cuda or mps")

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        labels: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train the adapter against its adversary on texts, encoding them if no vectors are given.

        Parameters
        ----------
        labels : sequence of str, optional
            The attribute of each text, where it is what is hidden.

        Raises
        ------
        InvalidInputError
            Too few texts, no labels, sparse vectors, or a setting outside its range.
        DivergedError
            The training diverged; nothing of it is stored.
        """
        validate_settings(self)
        texts = check_texts(texts)
        if len(texts) < LEAST_TEXTS:
            raise InvalidInputError(
                f"The adapter needs at least {LEAST_TEXTS} texts, got {len(texts)}. Give more."
            )
        vectors = encoder.encode(texts, on_progress) if vectors is None else vectors
        if is_sparse(vectors):
            raise InvalidInputError(
                f"{encoder.name} gives sparse vectors, which the adapter cannot use. Choose an "
                "encoder of dense vectors."
            )
        with discard_on_divergence(checkpoint_dir):
            run = _Run(self, texts, np.asarray(vectors, np.float32), labels)
            log = run.train(encoder, on_progress, checkpoint_dir)
        self.seconds_ = log.seconds
        self.network_ = run.network.eval().requires_grad_(False).cpu()
        self.during_ = run.game.scores
        self.encoder_name_, self.encoder_fingerprint_ = encoder.name, encoder.fingerprint
        return self

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors pass through the trained adapter, to unit length."""
        network = self._network()
        if encoder.fingerprint != self.encoder_fingerprint_:
            raise EncoderMismatchError(
                f"This adapter was trained on {self.encoder_name_!r}, not on {encoder.name!r}. "
                "Protect that encoder, or train an adapter on this one."
            )

        @torch.inference_mode()
        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            vectors = torch.from_numpy(np.asarray(encoder.encode(texts, on_progress), np.float32))
            adapted: Vectors = network(vectors).numpy()
            return adapted

        m = network.direct.weight.shape[0]
        return ProtectedEncoder.of(encoder, self, transform, m)

    def _network(self) -> AdapterNetwork:
        """Return the trained adapter network; raise NotFittedError if there is none."""
        if not hasattr(self, "network_"):
            raise NotFittedError("AdversarialAdapter is not trained: call fit, or load one.")
        return self.network_

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the adapter's weights, its encoder, and the adversary's scores during training."""
        arrays = {k: v.numpy() for k, v in self._network().state_dict().items()}
        return arrays, {
            "encoder_name": self.encoder_name_,
            "encoder_fingerprint": self.encoder_fingerprint_,
            "during": [score.to_dict() for score in self.during_],
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the adapter's network and scores from what `state` returned."""
        tensors = {k: torch.from_numpy(v.astype(np.float32)) for k, v in arrays.items()}
        start = np.zeros(tensors["direct.weight"].shape, np.float32)
        network = AdapterNetwork(start, len(tensors["enter.bias"]))
        network.load_state_dict(tensors)
        self.network_ = network.eval().requires_grad_(False)
        self.during_ = [Score.from_dict(score) for score in meta["during"]]
        self.encoder_name_ = str(meta["encoder_name"])
        self.encoder_fingerprint_ = str(meta["encoder_fingerprint"])
        return self


class _Run:
    """One training run of an adapter: split, networks, loss and validation."""

    def __init__(
        self,
        adapter: AdversarialAdapter,
        texts: Sequence[str],
        vectors: Vectors,
        labels: Sequence[str] | None,
    ) -> None:
        self.adapter = adapter
        self.device = pick_device(adapter.device)
        order = np.random.default_rng([adapter.seed, 21]).permutation(len(texts))
        n_held = min(MOST_HELD, len(texts) // 10)
        self.held, self.known = np.sort(order[:n_held]), np.sort(order[n_held:])
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        self.vectors = torch.from_numpy(vectors)
        self.units = torch.from_numpy(vectors / lengths)
        m = adapter.dimension or vectors.shape[1]
        if m > vectors.shape[1]:
            raise InvalidInputError(
                f"dimension must lie in [0, {vectors.shape[1]}] for this encoder, got {m}."
            )
        torch.manual_seed(adapter.seed)
        self.network = AdapterNetwork(_principal_directions(vectors[self.known], m), adapter.hidden)
        adversary = make_adversary(adapter, texts, labels, self.known, m)
        self.game = AdversarialGame(adapter, self.network, adversary, self.device)
        contents = ["\0".join(texts), "\0".join(labels or ())]
        self.digest = digest_of({"vectors": vectors}, contents)

    def train(
        self, encoder: Encoder, on_progress: OnProgress, checkpoint_dir: str | None
    ) -> TrainingLog:
        """Train the adapter and its adversary; return the log."""
        adapter = self.adapter
        settings = {k: v for k, v in asdict(adapter).items() if k != "device"}
        loop = Loop(
            n=len(self.known),
            epochs=adapter.epochs,
            batch_size=adapter.batch_size,
            seed=adapter.seed,
            identity={"settings": settings, "encoder": encoder.fingerprint, "texts": self.digest},
            patience=adapter.epochs + 1,
            keep_best=False,
            is_half=False,
            say_score="the adversary recovers {:.1f} %".format,
            unit="texts",
            checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
            extra_state=self.game,
        )
        optimizer = self.game.optimizer(adapter.learning_rate, adapter.clip_norm)
        return train(self.game.module, optimizer, self.loss, self.validate, loop, on_progress)

    def loss(self, batch: NDArray[np.int64]) -> Tensor:
        """Compute the similarity loss plus the adversary's loss of a batch of row indices."""
        rows = self.known[batch]
        own = self.network(self.vectors[rows].to(self.device))
        kept = similarity_loss(own, self.units[rows].to(self.device), self.adapter.temperature)
        return self.game.loss(kept, own, rows)

    def validate(self) -> float:
        """Score the adversary on held-out texts; record and return the score."""
        with torch.inference_mode():
            own = self.network(self.vectors[self.held].to(self.device))
        return self.game.record(own, self.held)
