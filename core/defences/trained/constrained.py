"""Privacy-constrained fine-tuning: a classifier of what users send under noise.

Implements Qu et al. (2021), §3.3: null privacy, noise on the vector of the text (sequence
representation), on those of its word pieces (token representation), or other word pieces in their
place (text to text). The user's part of the network is frozen. The noise of a training text is
drawn afresh at every step, as in the paper, or once; that of a test text once.

A guarantee is of one release. With fresh noise at every step a training text is released once per
epoch, k times in all, and the odds compose: exp(k·η·d) instead of exp(η·d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from core.defences.metric_dp.release import release_under_noise
from core.defences.trained.under_noise.pieces import Pieces, lay_out
from core.defences.trained.under_noise.readers import (
    BiLSTMReader,
    Received,
    SequenceReader,
    TransformerReader,
    open_service,
)
from core.defences.trained.under_noise.registry import READERS, RELEASES, usual_epochs
from core.defences.trained.under_noise.user_side import MECHANISMS, UserSide, told_of_device
from core.errors import InvalidInputError, NotFittedError
from core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from core.specs import setting, settings_of, validate_settings
from core.store import digest_of
from core.tasks.examples import Examples
from core.training.by_length import ByLength
from core.training.checkpoint import take_up
from core.training.devices import pick_device
from core.training.loop import train
from core.training.watch import Drawing, LossWatch, Several, or_nothing

__all__ = ["ConstrainedClassifier", "usual_rate"]

_TRAINING, _TEST, _ONE_TEXT = 3, 5, 7
"""Which draws of noise a seed is of."""

_HEAD_RATE = 1e-3
"""Of the small network on whole texts' vectors."""


def usual_rate(mechanism: str, reader: str) -> float:
    """Return the learning rate of what is trained behind a mechanism, unless another is given.

    Examples
    --------
    >>> usual_rate("sequence_representation", "transformer"), usual_rate("none", "transformer")
    (0.001, 0.0001)
    """
    is_head = mechanism == "sequence_representation"
    return _HEAD_RATE if is_head else READERS[reader].learning_rate


class _Sent(Protocol):
    """All that users send of some examples, and what reads it."""

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    def network(self, n_classes: int) -> nn.Module: ...

    def prepare(self, rows: NDArray[np.int64]) -> None:
        """Make once what does not change from step to step."""
        ...

    def logits(
        self, network: nn.Module, rows: NDArray[np.int64], rng: np.random.Generator | None
    ) -> Tensor:
        """Return the logits of some of the texts, as they are released.

        Parameters
        ----------
        rng : Generator or None
            Draws noise now, so that each call is another release; None for the single release of
            each text, whose noise depends on the seed and the text's row alone.
        """
        ...


def _rng_of(seed: int, row: int) -> np.random.Generator:
    """Return the generator of the single release of a text, at its start."""
    return Drawing(seed, _TRAINING, _ONE_TEXT, row).rng


@dataclass
class ConstrainedClassifier:
    """A classifier that is trained and used under a privacy constraint.

    Differs from the paper: MiniLM stands in the place of BERT; learning rates and epochs are those
    of smaller sets of texts (`READERS`); dropout is off.
    """

    mechanism: str = setting("token_representation", "what users send", choices=MECHANISMS)
    eta: float = setting(81.5, "privacy parameter, in 1/distance", low=1e-6, high=1e6)
    reader: str = setting("transformer", "what reads it", choices=tuple(READERS))
    epochs: int = setting(0, "passes over the texts; 0: the reader's own", low=0, high=1000)
    batch_size: int = setting(32, "texts of a step", low=1, high=4096, paper="Q21")
    learning_rate: float = setting(0.0, "of Adam; 0: its own", low=0.0, high=10.0)
    warm_up: float = setting(0.1, "share of the steps before the full rate", low=0.0, high=1.0,
                             paper="Q21")  # fmt: skip
    max_length: int = setting(128, "word pieces that are read", low=5, high=512, paper="Q21")
    is_noisy: bool = setting(True, "draw noise; else the same network on the same without any")
    releases: str = setting(
        "every_epoch",
        "noisy copies of a training text: one, or a fresh one in every epoch, whose odds compose",
        choices=RELEASES,
    )
    seed: int = setting(0, "of weights, order and noise", low=0)
    encoder: str = setting("minilm", "whose word embeddings the user has, and what is fine-tuned")
    network_: nn.Module = field(init=False, repr=False, compare=False)
    classes_: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _last: tuple[Examples, _Sent] = field(init=False, repr=False, compare=False)

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
        """Train on some of the examples; a run that was killed goes on from its checkpoint.

        Parameters
        ----------
        encoder : WhiteBoxEncoder
            The user's embedding; at last layer also what makes vectors of whole texts.
        start : dict of arrays, optional
            Weights of the service's Transformer to begin with, such as adapted ones.

        Raises
        ------
        DivergedError
            The loss went astray; no checkpoint of it is left.
        """
        validate_settings(self)
        self._check(examples, start)
        torch.manual_seed(1000 * self.seed + 17)
        sent = self._sent(encoder, examples, start)
        network = sent.network(len(examples.classes)).to(pick_device())
        known = np.asarray(rows, dtype=np.int64)
        labels = torch.from_numpy(examples.class_ids[known]).to(pick_device())
        sent.prepare(known)
        drawing, watch = Drawing(self.seed, _TRAINING), LossWatch(f"the {self.reader}")
        rng = None if self.releases == "once" else drawing.rng

        def loss_of(batch: NDArray[np.int64]) -> Tensor:
            network.train()
            logits = sent.logits(network, known[batch], rng)
            return watch.check(F.cross_entropy(logits, labels[batch]))

        loop = self._loop(examples, known, sent.lengths[known], start, checkpoint_dir)
        loop.extra_state = Several({"noise": drawing, "watch": watch})
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=self._rate, weight_decay=0.01,
            fused=pick_device().type in ("cpu", "cuda"),
        )  # fmt: skip
        with or_nothing(checkpoint_dir):
            train(network, optimizer, loss_of, lambda: -watch.recent, loop, on_progress)
        self.network_, self.classes_ = network.eval(), examples.classes
        self._last = (examples, sent)
        return self

    @torch.inference_mode()
    def predict(
        self, encoder: WhiteBoxEncoder, examples: Examples, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Return the class of each, as a place among `classes_`; noise is drawn now."""
        if not hasattr(self, "network_"):
            raise NotFittedError("The classifier must be fitted before it answers.")
        seen, sent = self._last
        if seen is not examples:
            sent = self._sent(encoder, examples, None)
        rng = Drawing(self.seed, _TEST).rng
        chosen = np.asarray(rows, dtype=np.int64)
        sent.prepare(chosen)
        order = np.argsort(sent.lengths[chosen], kind="stable")
        found = np.empty(len(chosen), dtype=np.int64)
        for start in range(0, len(order), 128):
            part = order[start : start + 128]
            found[part] = sent.logits(self.network_, chosen[part], rng).argmax(1).cpu().numpy()
        return found

    @property
    def _is_of_sequences(self) -> bool:
        return self.mechanism == "sequence_representation"

    @property
    def _rate(self) -> float:
        return self.learning_rate or usual_rate(self.mechanism, self.reader)

    @property
    def _epochs(self) -> int:
        return self.epochs or usual_epochs(self.mechanism, self.reader)

    def _check(self, examples: Examples, start: Mapping[str, NDArray[Any]] | None) -> None:
        is_pretrained = READERS[self.reader].is_pretrained
        if self._is_of_sequences and not is_pretrained:
            raise InvalidInputError(
                f"The vector of a whole text is the user's, and a {self.reader} has nothing to "
                "make it with. Choose the transformer."
            )
        if start is not None and (self._is_of_sequences or not is_pretrained):
            raise InvalidInputError("Only a transformer of word pieces begins with given weights.")
        if len(examples.classes) < 2:
            raise InvalidInputError(f"{examples.name} holds one class, and a classifier needs two.")

    def _sent(
        self,
        encoder: WhiteBoxEncoder,
        examples: Examples,
        start: Mapping[str, NDArray[Any]] | None,
    ) -> _Sent:
        if self._is_of_sequences:
            eta = self.eta if self.is_noisy else None
            return _SentVectors(encoder, examples, eta, self.seed)
        pieces = lay_out(encoder, examples.first, examples.second, max_length=self.max_length)
        side = UserSide(encoder, self.mechanism if self.is_noisy else "none", self.eta)
        make = partial(self._network, side.dimension, start=start)
        return _SentPieces(side, pieces, make, self.seed)

    def _network(
        self, dimension: int, n_classes: int, *, start: Mapping[str, NDArray[Any]] | None
    ) -> nn.Module:
        if self.reader == "bilstm":
            return BiLSTMReader(dimension, n_classes)
        service = open_service(self.encoder)
        if start is not None:
            take_up(service, start)
        return TransformerReader(service, dimension, n_classes)

    def _loop(
        self, examples: Examples, known: NDArray[np.int64], lengths: NDArray[np.int64],
        start: Mapping[str, NDArray[Any]] | None, folder: Path | None,
    ) -> ByLength:  # fmt: skip
        told = {name: getattr(self, name) for name in settings_of(type(self))}
        told |= {"examples": examples.digest, "rows": digest_of({"rows": known}, 0)[:16],
                 "start": "" if start is None else digest_of(dict(start), 0)[:16],
                 **told_of_device()}  # fmt: skip
        n_steps = self._epochs * -(-len(known) // self.batch_size)
        n_warm = max(1, round(self.warm_up * n_steps))

        def share(step: int) -> float:
            return min((step + 1) / n_warm, max(0.0, (n_steps - step) / max(1, n_steps - n_warm)))

        return ByLength(
            n=len(known), epochs=self._epochs, batch_size=self.batch_size, seed=self.seed,
            identity=told, rate_share=share, clip_norm=1.0, patience=self._epochs,
            keep_best=False, is_half=False, say_score="loss {0:.2f}".format, unit="texts",
            checkpoint_dir=folder, checkpoint_seconds=120.0, lengths=lengths,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _SentPieces:
    """Word pieces of texts, as vectors under noise."""

    side: UserSide
    pieces: Pieces
    make: Callable[[int], nn.Module]
    seed: int
    _released: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Tokens of the single release of a text, by its row; vectors are drawn again instead."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self.pieces.lengths

    def prepare(self, rows: NDArray[np.int64]) -> None:
        """Do nothing: vectors are looked up as they are needed."""

    def network(self, n_classes: int) -> nn.Module:
        return self.make(n_classes)

    def logits(
        self, network: nn.Module, rows: NDArray[np.int64], rng: np.random.Generator | None
    ) -> Tensor:
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
        """Return the vectors of texts, the same at each call."""
        if self.side.mechanism != "text_to_text":
            return self.side.vectors_of_texts(texts, [_rng_of(self.seed, row) for row in rows])[0]
        new = [i for i, row in enumerate(rows) if row not in self._released]
        if new:
            rngs = [_rng_of(self.seed, rows[i]) for i in new]
            changed = self.side.vectors_of_texts([texts[i] for i in new], rngs)[1]
            assert changed is not None
            parts = np.split(changed, np.cumsum([len(texts[i]) for i in new])[:-1])
            self._released.update(zip((rows[i] for i in new), parts, strict=True))
        return self.side.table[np.concatenate([self._released[row] for row in rows])]


class _SentVectors:
    """Vectors of whole texts, each made once by the user's frozen encoder, under noise.

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
        new = rows[~self.is_known[rows]]
        if len(new):
            for vectors, texts in zip(self.vectors, self.sides, strict=True):
                vectors[new] = self.encoder.encode([texts[i] for i in new])
        self.is_known[new] = True

    def network(self, n_classes: int) -> nn.Module:
        return SequenceReader(self.dimension, n_classes, is_paired=len(self.vectors) == 2)

    def logits(
        self, network: nn.Module, rows: NDArray[np.int64], rng: np.random.Generator | None
    ) -> Tensor:
        sent = [side[rows] for side in self.vectors]
        if self.eta is not None:
            sent = self._released(sent, rows.tolist(), self.eta, rng)
        logits: Tensor = network(*(torch.from_numpy(part).to(pick_device()) for part in sent))
        return logits

    def _released(
        self, sent: list[NDArray[np.float32]], rows: list[int], eta: float,
        rng: np.random.Generator | None,
    ) -> list[NDArray[np.float32]]:  # fmt: skip
        """Return the vectors of some texts under noise, for each side."""
        if rng is not None:
            return [release_under_noise(vectors, eta, rng) for vectors in sent]
        own = np.stack(sent, axis=1)
        for i, row in enumerate(rows):
            if row not in self._single:
                self._single[row] = release_under_noise(own[i], eta, _rng_of(self.seed, row))
        return list(np.stack([self._single[row] for row in rows], axis=1))
