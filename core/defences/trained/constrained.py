"""Privacy-constrained fine-tuning: a classifier of noisy texts or vectors.

Implements Qu et al. (2021), §3.3: null privacy, noise on the vector of the text (sequence
representation), on those of its word pieces (token representation), or other word pieces in their
place (text to text). The user's part of the network is frozen. The noise of a training text is
drawn at every step, as in the paper, or once; that of a test text once.

A guarantee is of one release. With fresh noise at every step a training text is released once per
epoch, k times in all, and the odds compose: exp(k·η·d) instead of exp(η·d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.trained.under_noise.pieces import Pieces, tokenise_texts
from leakscope.core.defences.trained.under_noise.readers import (
    BiLSTMReader,
    Received,
    SequenceReader,
    TransformerReader,
    open_service,
)
from leakscope.core.defences.trained.under_noise.registry import READERS, RELEASES, default_epochs
from leakscope.core.defences.trained.under_noise.user_side import (
    MECHANISMS,
    UserSide,
    device_identity,
)
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from leakscope.core.specs import setting, setting_values, validate_settings
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.tasks.examples import Examples
from leakscope.core.training.checkpoint import load_weights
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import LengthBatchedLoop, train
from leakscope.core.training.watch import (
    CombinedState,
    LossWatch,
    RestorableGenerator,
    discard_on_divergence,
)

_TRAINING, _TEST, _ONE_TEXT = 3, 5, 7
"""Streams of noise under one seed."""

_HEAD_RATE = 1e-3
"""Learning rate of the small network on whole-text vectors."""


def default_rate(mechanism: str, reader: str) -> float:
    """Return the default learning rate of a reader behind a mechanism.

    Examples
    --------
    >>> default_rate("sequence_representation", "transformer"), default_rate("none", "transformer")
    (0.001, 0.0001)
    """
    is_head = mechanism == "sequence_representation"
    return _HEAD_RATE if is_head else READERS[reader].learning_rate


def _single_release_rng(seed: int, row: int) -> np.random.Generator:
    """Return a generator that always draws the same noise for a row: its single release."""
    return RestorableGenerator(seed, _TRAINING, _ONE_TEXT, row).rng


@dataclass
class ConstrainedClassifier:
    """A classifier that is trained and used on texts under a privacy mechanism.

    Differs from the paper: MiniLM replaces BERT; learning rates and epochs are those of smaller
    sets of texts (`READERS`); dropout is off.
    """

    mechanism: str = setting(
        "token_representation", "mechanism that protects the input", choices=MECHANISMS
    )
    eta: float = setting(81.5, "privacy parameter, in 1/distance", low=1e-6, high=1e6)
    reader: str = setting("transformer", "network that reads it", choices=tuple(READERS))
    epochs: int = setting(
        0, "passes over the texts; 0: the default of the network", low=0, high=1000
    )
    batch_size: int = setting(32, "texts per step", low=1, high=4096, paper="Q21")
    learning_rate: float = setting(0.0, "learning rate of Adam; 0: the default", low=0.0, high=10.0)
    warm_up: float = setting(
        0.1, "share of the steps before the full learning rate", low=0.0, high=1.0, paper="Q21"
    )
    max_length: int = setting(128, "most word pieces per text", low=5, high=512, paper="Q21")
    is_noisy: bool = setting(True, "draw noise; otherwise the same network without noise")
    releases: str = setting(
        "every_epoch",
        "noisy copies of a training text: one, or a fresh one per epoch, whose odds compose",
        choices=RELEASES,
    )
    seed: int = setting(0, "random seed of weights, order and noise", low=0)
    encoder: str = setting(
        "minilm", "encoder whose word embeddings users have, and which is fine-tuned"
    )
    network_: nn.Module = field(init=False, repr=False, compare=False)
    classes_: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _last: tuple[Examples, _NoisyPieces | _NoisyVectors] = field(
        init=False, repr=False, compare=False
    )

    def fit(
        self,
        encoder: WhiteBoxEncoder,
        examples: Examples,
        rows: NDArray[np.intp],
        *,
        start: Mapping[str, NDArray[Any]] | None = None,
        checkpoint_dir: Path | None = None,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Train on the given rows of the examples under noise; resume an interrupted run.

        Parameters
        ----------
        encoder : WhiteBoxEncoder
            The user's embedding; at last layer also what makes vectors of whole texts.
        start : dict of arrays, optional
            Weights of the service's Transformer to begin with, such as adapted ones.

        Raises
        ------
        DivergedError
            The loss diverged; its checkpoint is deleted.
        """
        validate_settings(self)
        self._check(examples, start)
        torch.manual_seed(1000 * self.seed + 17)
        sent = self._noisy_inputs(encoder, examples, start)
        network = sent.network(len(examples.classes)).to(pick_device())
        known = np.asarray(rows, dtype=np.int64)
        labels = torch.from_numpy(examples.class_ids[known]).to(pick_device())
        sent.prepare(known)
        drawing, watch = RestorableGenerator(self.seed, _TRAINING), LossWatch(f"the {self.reader}")
        rng = None if self.releases == "once" else drawing.rng

        def loss_of(batch: NDArray[np.int64]) -> Tensor:
            network.train()
            logits = sent.logits(network, known[batch], rng)
            return watch.check(F.cross_entropy(logits, labels[batch]))

        loop = self._loop(examples, known, sent.lengths[known], start, checkpoint_dir)
        loop.extra_state = CombinedState({"noise": drawing, "watch": watch})
        optimizer = torch.optim.AdamW(
            network.parameters(),
            lr=self.learning_rate or default_rate(self.mechanism, self.reader),
            weight_decay=0.01,
            fused=pick_device().type in ("cpu", "cuda"),
        )
        with discard_on_divergence(checkpoint_dir):
            train(network, optimizer, loss_of, lambda: -watch.recent, loop, on_progress)
        self.network_, self.classes_ = network.eval(), examples.classes
        self._last = (examples, sent)
        return self

    @torch.inference_mode()
    def predict(
        self, encoder: WhiteBoxEncoder, examples: Examples, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Predict the class index of each example, with fresh noise on its text."""
        if not hasattr(self, "network_"):
            raise NotFittedError("The classifier must be fitted before it predicts.")
        seen, sent = self._last
        if seen is not examples:
            sent = self._noisy_inputs(encoder, examples, None)
        rng = RestorableGenerator(self.seed, _TEST).rng
        chosen = np.asarray(rows, dtype=np.int64)
        sent.prepare(chosen)
        order = np.argsort(sent.lengths[chosen], kind="stable")
        found = np.empty(len(chosen), dtype=np.int64)
        for start in range(0, len(order), 128):
            part = order[start : start + 128]
            found[part] = sent.logits(self.network_, chosen[part], rng).argmax(1).cpu().numpy()
        return found

    @property
    def _sends_whole_vectors(self) -> bool:
        """Whether whole-text vectors are sent instead of word pieces."""
        return self.mechanism == "sequence_representation"

    @property
    def _epochs(self) -> int:
        """The number of epochs, by default that of the mechanism and reader."""
        return self.epochs or default_epochs(self.mechanism, self.reader)

    def _check(self, examples: Examples, start: Mapping[str, NDArray[Any]] | None) -> None:
        """Raise InvalidInputError if reader, mechanism, start weights and examples do not fit."""
        is_pretrained = READERS[self.reader].is_pretrained
        if self._sends_whole_vectors and not is_pretrained:
            raise InvalidInputError(
                f"A {self.reader} cannot produce the vector of a whole text. Choose the "
                "transformer."
            )
        if start is not None and (self._sends_whole_vectors or not is_pretrained):
            raise InvalidInputError(
                "Only a transformer on word pieces can start from given weights."
            )
        if len(examples.classes) < 2:
            raise InvalidInputError(
                f"{examples.name} has one class, but a classifier needs at least two."
            )

    def _noisy_inputs(
        self,
        encoder: WhiteBoxEncoder,
        examples: Examples,
        start: Mapping[str, NDArray[Any]] | None,
    ) -> _NoisyPieces | _NoisyVectors:
        """Build the object that yields noisy vectors of whole texts or of word pieces."""
        if self._sends_whole_vectors:
            eta = self.eta if self.is_noisy else None
            return _NoisyVectors(encoder, examples, eta, self.seed)
        pieces = tokenise_texts(
            encoder, examples.first, examples.second, max_length=self.max_length
        )
        side = UserSide(encoder, self.mechanism if self.is_noisy else "none", self.eta)
        make = partial(self._network, side.dimension, start=start)
        return _NoisyPieces(side, pieces, make, self.seed)

    def _network(
        self, dimension: int, n_classes: int, *, start: Mapping[str, NDArray[Any]] | None
    ) -> nn.Module:
        """Build the network that reads word pieces, from `start` weights if given."""
        if self.reader == "bilstm":
            return BiLSTMReader(dimension, n_classes)
        service = open_service(self.encoder)
        if start is not None:
            load_weights(service, start)
        return TransformerReader(service, dimension, n_classes)

    def _loop(
        self,
        examples: Examples,
        known: NDArray[np.int64],
        lengths: NDArray[np.int64],
        start: Mapping[str, NDArray[Any]] | None,
        folder: Path | None,
    ) -> LengthBatchedLoop:
        """Build the training loop: identity, learning-rate schedule, checkpoints."""
        identity = setting_values(self)
        identity |= {
            "examples": examples.digest,
            "rows": digest_of({"rows": known}, 0)[:16],
            "start": "" if start is None else digest_of(dict(start), 0)[:16],
            **device_identity(),
        }
        n_steps = self._epochs * -(-len(known) // self.batch_size)
        n_warm = max(1, round(self.warm_up * n_steps))

        def share(step: int) -> float:
            return min((step + 1) / n_warm, max(0.0, (n_steps - step) / max(1, n_steps - n_warm)))

        return LengthBatchedLoop(
            n=len(known),
            epochs=self._epochs,
            batch_size=self.batch_size,
            seed=self.seed,
            identity=identity,
            rate_share=share,
            clip_norm=1.0,
            patience=self._epochs,
            keep_best=False,
            is_half=False,
            say_score="loss {0:.2f}".format,
            unit="texts",
            checkpoint_dir=folder,
            checkpoint_seconds=120.0,
            lengths=lengths,
        )


@dataclass(frozen=True, eq=False)
class _NoisyPieces:
    """Noisy word-piece vectors of texts."""

    side: UserSide
    pieces: Pieces
    make: Callable[[int], nn.Module]
    seed: int
    _released: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Tokens of each text's single release, by row; vectors are drawn again instead."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of word pieces of each text."""
        return self.pieces.lengths

    def prepare(self, rows: NDArray[np.int64]) -> None:
        """Do nothing: word-piece vectors, unlike whole-text ones, are looked up when needed."""

    def network(self, n_classes: int) -> nn.Module:
        """Build the network that reads word pieces, before its training on this task."""
        return self.make(n_classes)

    def logits(
        self, network: nn.Module, rows: NDArray[np.int64], rng: np.random.Generator | None
    ) -> Tensor:
        """Run the network on texts with fresh noise from `rng`, or on their single release."""
        batch = self.pieces.batch(rows)
        vectors = self.side.table[batch.ids]
        if rng is None:
            texts = [ids[is_user] for ids, is_user in zip(batch.ids, batch.is_user, strict=True)]
            vectors[batch.is_user] = self._single_release(rows.tolist(), texts)
        else:
            vectors[batch.is_user] = self.side.vectors(batch.ids[batch.is_user], rng)[0]
        logits: Tensor = network(Received(batch, vectors))
        return logits

    def _single_release(
        self, rows: list[int], texts: list[NDArray[np.int64]]
    ) -> NDArray[np.float32]:
        """Return the token vectors of texts under each row's fixed noise, the same at each call."""
        if self.side.mechanism != "text_to_text":
            return self.side.vectors_of_texts(
                texts, [_single_release_rng(self.seed, row) for row in rows]
            )[0]
        new = [i for i, row in enumerate(rows) if row not in self._released]
        if new:
            rngs = [_single_release_rng(self.seed, rows[i]) for i in new]
            changed = self.side.vectors_of_texts([texts[i] for i in new], rngs)[1]
            assert changed is not None
            parts = np.split(changed, np.cumsum([len(texts[i]) for i in new])[:-1])
            self._released.update(zip((rows[i] for i in new), parts, strict=True))
        return self.side.table[np.concatenate([self._released[row] for row in rows])]


class _NoisyVectors:
    """Noisy vectors of whole texts, encoded once by the user's frozen encoder.

    Parameters
    ----------
    eta : float or None
        None draws none.
    seed : int
        Of the single release of each text.
    """

    def __init__(
        self, encoder: WhiteBoxEncoder, examples: Examples, eta: float | None, seed: int
    ) -> None:
        self.encoder, self.dimension, self.eta = encoder, encoder.dimension, eta
        self.seed = seed
        self._single: dict[int, NDArray[np.float32]] = {}
        self.sides = (examples.first, examples.second) if examples.is_paired else (examples.first,)
        shape = (len(examples), encoder.dimension)
        self.vectors = [np.zeros(shape, np.float32) for _ in self.sides]
        self.is_known = np.zeros(len(examples), dtype=bool)
        self.lengths = np.ones(len(examples), dtype=np.int64)

    def prepare(self, rows: NDArray[np.int64]) -> None:
        """Encode the texts of rows that are not encoded yet, and store their vectors."""
        new = rows[~self.is_known[rows]]
        if len(new):
            for vectors, texts in zip(self.vectors, self.sides, strict=True):
                vectors[new] = self.encoder.encode([texts[i] for i in new])
        self.is_known[new] = True

    def network(self, n_classes: int) -> nn.Module:
        """Build an untrained reader of whole-text vectors."""
        return SequenceReader(self.dimension, n_classes, is_paired=len(self.vectors) == 2)

    def logits(
        self, network: nn.Module, rows: NDArray[np.int64], rng: np.random.Generator | None
    ) -> Tensor:
        """Run the network on texts with fresh noise from `rng`, or on their single release."""
        sent = [side[rows] for side in self.vectors]
        if self.eta is not None:
            sent = self._released(sent, rows.tolist(), self.eta, rng)
        logits: Tensor = network(*(torch.from_numpy(part).to(pick_device()) for part in sent))
        return logits

    def _released(
        self,
        sent: list[NDArray[np.float32]],
        rows: list[int],
        eta: float,
        rng: np.random.Generator | None,
    ) -> list[NDArray[np.float32]]:
        """Return the vectors with noise: fresh from `rng`, else each row's single fixed release."""
        if rng is not None:
            return [release_under_noise(vectors, eta, rng) for vectors in sent]
        own = np.stack(sent, axis=1)
        for i, row in enumerate(rows):
            if row not in self._single:
                self._single[row] = release_under_noise(
                    own[i], eta, _single_release_rng(self.seed, row)
                )
        return list(np.stack([self._single[row] for row in rows], axis=1))
