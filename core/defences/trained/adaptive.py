"""Privacy-adaptive pretraining: a masked language model that learns to read noisy token vectors.

Implements Qu et al. (2021), §3.4: from given weights, with the user's embedding frozen, one of the
losses of Eqs. 5 to 7, and new noise at every step. Then the weights are fine-tuned under the same
noise (`constrained`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leakscope.core.defences.trained.under_noise.masking import Masking
from leakscope.core.defences.trained.under_noise.pieces import (
    Pieces,
    batch_by_length,
    tokenise_texts,
)
from leakscope.core.defences.trained.under_noise.readers import Received, open_service, states_of
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.defences.trained.under_noise.user_side import (
    TOKEN_MECHANISMS,
    UserSide,
    device_identity,
)
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from leakscope.core.specs import setting, setting_values, validate_settings
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.training.checkpoint import load_weights
from leakscope.core.training.devices import autocast, fast_dtype, pick_device
from leakscope.core.training.loop import Loop, train
from leakscope.core.training.watch import (
    CombinedState,
    LossWatch,
    RestorableGenerator,
    discard_on_divergence,
)

_FIRST_SCALE = 0.25
"""Initial scale of the untrained head's output."""


class MaskedHead(nn.Module):
    """Predicts tokens from states; its output layer is the user's frozen embedding.

    It is initialised to the tokens' frequencies and unchanged states.
    """

    table: Tensor

    def __init__(self, table: NDArray[np.float32], counts: NDArray[np.int64]) -> None:
        super().__init__()
        n = table.shape[1]
        self.transform = nn.Linear(n, n)
        nn.init.eye_(self.transform.weight)
        nn.init.zeros_(self.transform.bias)
        self.norm = nn.LayerNorm(n)
        nn.init.constant_(self.norm.weight, _FIRST_SCALE)
        share = (counts + 0.1) / (counts + 0.1).sum()
        self.bias = nn.Parameter(torch.from_numpy(np.log(share)).float())
        fixed = torch.from_numpy(table).to(fast_dtype(pick_device()))
        self.register_buffer("table", fixed, persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Return (m, |V|) logits of (m, n) states."""
        normalised = self.norm(self.transform(states))
        logits: Tensor = F.linear(normalised.to(self.table.dtype), self.table)
        return logits + self.bias.to(logits.dtype)


class AdaptiveNetwork(nn.Module):
    """The service's Transformer with a head that predicts masked tokens."""

    def __init__(self, service: nn.Module, head: MaskedHead) -> None:
        super().__init__()
        self.service, self.head = service, head

    def forward(self, received: Received, places: Tensor) -> Tensor:
        """Return (m, |V|) logits at the masked places only."""
        states = states_of(self.service, received)
        chosen = states.reshape(-1, states.shape[-1])[places]
        device = chosen.device
        is_quick = fast_dtype(device) == torch.bfloat16
        with autocast(device, "bfloat16" if is_quick else "float32"):
            logits: Tensor = self.head(chosen)
        return logits


@dataclass(kw_only=True)
class PartedLoop(Loop):
    """A training loop over precomputed batches, validated after each of `epochs` equal parts."""

    plan: list[NDArray[np.int64]]

    @property
    def n_batches(self) -> int:
        """Number of batches in a part."""
        return len(self.plan) // self.epochs

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return the batches of row indices of the part with the number `epoch`."""
        return self.plan[epoch * self.n_batches : (epoch + 1) * self.n_batches]


class LossCurve:
    """The held-out loss by number of tokens seen, stored in checkpoints."""

    def __init__(self) -> None:
        self.points: list[dict[str, float]] = []

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the points of the curve as checkpoint state, without arrays."""
        return {}, {"points": self.points}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the points of the curve from what `state` returned."""
        self.points = list(meta["points"])
        return self


_N_HELD_OUT = 300
_CHUNK = 5_000
_ORDER = 12
"""Streams of random numbers under one seed."""


@dataclass(frozen=True, eq=False)
class TrainHeldOut:
    """Texts to train on, enough for the tokens to see, and held-out texts.

    Attributes
    ----------
    pieces, held : Pieces
        The latter are the same for all neighbours.
    is_new : bool array (n,)
        Which of the former no neighbour has taken before.
    passed : int
        Texts that this one and its neighbours have taken: the next takes those after them.
    """

    pieces: Pieces
    held: Pieces
    is_new: NDArray[np.bool_]
    passed: int

    @classmethod
    def of(
        cls,
        encoder: WhiteBoxEncoder,
        texts: Sequence[str],
        *,
        tokens: int,
        max_length: int,
        seed: int,
        passed: int = 0,
    ) -> Self:
        """Split texts at random and tokenise them; train on those after the first `passed`.

        Parameters
        ----------
        passed : int
            Texts that neighbours have taken.

        Raises
        ------
        InvalidInputError
            Too few texts.
        """
        order = np.random.default_rng([seed, _ORDER]).permutation(len(texts))
        n_held = min(_N_HELD_OUT, len(order) // 10)
        if n_held < 1:
            raise InvalidInputError(f"Pretraining needs at least 10 texts, got {len(texts)}.")
        held, _ = _tokenise_nonempty(encoder, [texts[i] for i in order[:n_held]], max_length)
        rest = order[n_held:]
        n_new, rest = max(0, len(rest) - passed), np.roll(rest, -passed)
        parts, is_new, n_tokens, n_taken = [], [], 0, 0
        while n_taken < len(rest) and n_tokens < tokens:
            chunk = [texts[i] for i in rest[n_taken : n_taken + _CHUNK]]
            part, kept = _tokenise_nonempty(encoder, chunk, max_length)
            parts.append(part)
            is_new.append(n_taken + kept < n_new)
            n_tokens += int(part.lengths.sum())
            n_taken += len(chunk)
        return cls(_concatenate(parts), held, np.concatenate(is_new), passed + n_taken)

    def new_tokens(self, batches: Sequence[NDArray[np.int64]]) -> int:
        """Count the tokens of the rows in batches that no earlier run has taken."""
        rows = np.unique(np.concatenate(batches))
        return int(self.pieces.lengths[rows][self.is_new[rows]].sum())


def _tokenise_nonempty(
    encoder: WhiteBoxEncoder, texts: Sequence[str], max_length: int
) -> tuple[Pieces, NDArray[np.intp]]:
    """Tokenise texts and drop those without a word piece; return the rest and their indices."""
    whole = tokenise_texts(encoder, texts, max_length=max_length)
    kept = np.flatnonzero(whole.n_first > 0)
    rows = [whole.rows[i] for i in kept]
    return Pieces(rows, whole.n_first[kept], whole.lengths[kept], whole.marks), kept


def _concatenate(parts: Sequence[Pieces]) -> Pieces:
    """Join several sets of tokenised texts into one Pieces."""
    n_first, lengths = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("n_first", "lengths")
    )
    return Pieces([row for part in parts for row in part.rows], n_first, lengths, parts[0].marks)


PAPER_TOKENS = 1_000_000 * 256 * 128
"""Most tokens of Qu et al. (2021), §6.1: steps × texts × length; best of five checkpoints."""

_MOST = 1.5
"""Multiple of the first loss at which training stops; predicting frequencies alone gives less."""
_HEAD_RATE = 5.0
"""Factor by which the untrained head learns faster."""
_NOISE, _PLAN, _HELD_OUT = 11, 12, 13
"""Streams of random numbers under one seed."""


@dataclass
class AdaptivePretraining:
    """Continues the pretraining of a masked language model on texts under noise.

    Differs from the paper: MiniLM replaces BERT, and there is no next-sentence loss; texts are
    sentences, a batch has `batch_tokens` places; the learning rate is greater and the tokens far
    fewer (`PAPER_TOKENS`); dropout is off; the head is linear.
    """

    objective: str = setting("denoising", "what to predict", choices=tuple(OBJECTIVES))
    mechanism: str = setting(
        "token_representation", "mechanism that protects the input", choices=TOKEN_MECHANISMS
    )
    eta: float = setting(81.5, "privacy parameter, in 1/distance", low=1e-6, high=1e6)
    tokens: int = setting(2_000_000, "word pieces to train on, special tokens included", low=1000)
    mask_rate: float = setting(0.15, "share of tokens to predict", low=0.01, high=0.9, paper="Q21")
    masked: float = setting(0.8, "share of the chosen tokens to mask", low=0.0, high=1.0)
    replaced: float = setting(
        0.1, "share of the chosen tokens to replace by others", low=0.0, high=1.0
    )
    n_perturbations: int = setting(
        10, "perturbations of a masked token, in probability MLM", low=1, high=1000, paper="Q21"
    )
    batch_tokens: int = setting(2048, "word pieces per step", low=128, high=2**20)
    learning_rate: float = setting(3e-4, "learning rate of Adam", low=1e-8, high=10.0)
    warm_up: float = setting(
        0.05, "share of the steps before the full learning rate", low=0.0, high=1.0
    )
    max_length: int = setting(128, "most word pieces per text", low=5, high=512, paper="Q21")
    n_checks: int = setting(8, "number of measurements of the held-out loss", low=1, high=1000)
    seed: int = setting(0, "random seed of texts, order and noise", low=0)
    encoder: str = setting("minilm", "encoder whose weights it starts from: minilm or mlm:ID")
    network_: AdaptiveNetwork = field(init=False, repr=False, compare=False)
    curve_: list[dict[str, float]] = field(init=False, repr=False, compare=False)
    tokens_seen_: int = field(init=False, repr=False, compare=False)
    new_tokens_: int = field(init=False, repr=False, compare=False)
    passed_: int = field(init=False, repr=False, compare=False)
    seconds_: float = field(init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: WhiteBoxEncoder,
        texts: Sequence[str],
        *,
        start: Mapping[str, NDArray[Any]] | None = None,
        passed: int = 0,
        checkpoint_dir: Path | None = None,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Pretrain the network on texts under noise; resume an interrupted run's checkpoint.

        Parameters
        ----------
        start : dict of arrays, optional
            What `state` of a neighbouring η returned; else it begins with the encoder's weights.
        passed : int
            Texts that neighbouring runs have taken, `passed_` of the last run: the texts after them
            are taken, in a new random order with new masks and noise. The texts that are
            held out are the same.

        Raises
        ------
        InvalidInputError
            Too few texts, or shares that add up to more than one.
        DivergedError
            The loss diverged; its checkpoint is deleted.
        """
        self._check()
        split = self.split(encoder, texts, passed)
        pieces, held = split.pieces, split.held
        side = UserSide(encoder, self.mechanism, self.eta)
        torch.manual_seed(self.seed)
        network = self._network(side, pieces, start).to(pick_device())
        plan = self._plan(pieces, passed)
        loop = self._loop(split, plan, start, checkpoint_dir)
        used = plan[: loop.n_batches * loop.epochs]
        seen = np.cumsum([int(pieces.lengths[rows].sum()) for rows in used])
        noise, curve = RestorableGenerator(self.seed, _NOISE, passed), LossCurve()
        watch = LossWatch(self.objective, most=_MOST)
        loop.extra_state = CombinedState({"noise": noise, "watch": watch, "curve": curve})

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            network.train()
            return watch.check(self._loss(network, side, pieces, rows, noise.rng))

        def validate() -> float:
            at = loop.n_batches * len(curve.points)
            loss = self._held_out_loss(network, side, held)
            curve.points.append({"tokens": int(seen[at - 1]) if at else 0, "loss": loss})
            return -loss

        with discard_on_divergence(checkpoint_dir):
            log = train(network, self._optimizer(network), loss_of, validate, loop, on_progress)
        self.network_, self.curve_ = network.eval(), curve.points
        self.tokens_seen_, self.seconds_ = int(seen[-1]), log.seconds
        self.new_tokens_, self.passed_ = split.new_tokens(used), split.passed
        return self

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the trained Transformer's weights by name, to initialise a classifier.

        Raises
        ------
        NotFittedError
            It was not trained.
        """
        arrays, _ = self.state()
        return {
            k.removeprefix("service."): v for k, v in arrays.items() if k.startswith("service.")
        }

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return all weights, and the training record: loss curve, tokens seen, seconds.

        Raises
        ------
        NotFittedError
            It was not trained.
        """
        if not hasattr(self, "network_"):
            raise NotFittedError("The network must be trained before its weights can be exported.")
        state = self.network_.state_dict()
        arrays = {k: v.detach().float().cpu().numpy() for k, v in state.items()}
        record = {
            "curve": self.curve_,
            "tokens_seen": self.tokens_seen_,
            "seconds": self.seconds_,
            "new_tokens": self.new_tokens_,
            "passed": self.passed_,
        }
        return arrays, record

    def _check(self) -> None:
        """Raise InvalidInputError if a setting is invalid or the mask shares exceed 1."""
        validate_settings(self)
        if self.masked + self.replaced > 1:
            raise InvalidInputError("masked and replaced must not add up to more than 1.")

    def split(
        self, encoder: WhiteBoxEncoder, texts: Sequence[str], passed: int = 0
    ) -> TrainHeldOut:
        """Tokenise texts and split them into those trained on and those held out."""
        return TrainHeldOut.of(
            encoder,
            texts,
            tokens=self.tokens,
            max_length=self.max_length,
            seed=self.seed,
            passed=passed,
        )

    def _plan(self, pieces: Pieces, passed: int) -> list[NDArray[np.int64]]:
        """Group rows into batches, repeating the texts until enough tokens are seen."""
        plan: list[NDArray[np.int64]] = []
        left, n_round = self.tokens, 0
        while left > 0:
            rng = np.random.default_rng([self.seed, _PLAN, n_round, passed])
            for rows in batch_by_length(pieces.lengths, self.batch_tokens, rng):
                plan.append(rows)
                left -= int(pieces.lengths[rows].sum())
                if left <= 0 and len(plan) >= self.n_checks:
                    break
            n_round += 1
        return plan

    def _network(
        self, side: UserSide, pieces: Pieces, start: Mapping[str, NDArray[Any]] | None
    ) -> AdaptiveNetwork:
        """Build the Transformer with a masked-token head, from `start` weights if given."""
        counts = np.bincount(np.concatenate(pieces.rows), minlength=len(side.table))
        head = MaskedHead(side.table, counts)
        network = AdaptiveNetwork(open_service(self.encoder), head)
        if start is not None:
            load_weights(network, start)
        return network

    def _optimizer(self, network: AdaptiveNetwork) -> torch.optim.Optimizer:
        """Build AdamW with a higher learning rate for the head."""
        rate = self.learning_rate
        parts = [
            {"params": list(network.service.parameters()), "lr": rate},
            {"params": list(network.head.parameters()), "lr": _HEAD_RATE * rate},
        ]
        return torch.optim.AdamW(
            parts,
            lr=rate,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=pick_device().type in ("cpu", "cuda"),
        )

    def _loss(
        self,
        network: nn.Module,
        side: UserSide,
        pieces: Pieces,
        rows: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Tensor:
        """Mask a batch under fresh noise and return the objective's loss."""
        batch = pieces.batch(rows)
        masking = Masking(
            self.objective, self.mask_rate, self.masked, self.replaced, self.n_perturbations
        )
        task = masking.task(batch, side, pieces.marks, rng)
        device = pick_device()
        logits = network(Received(batch, task.vectors), torch.from_numpy(task.places).to(device))
        loss: Tensor = OBJECTIVES[self.objective].kind(
            logits, torch.from_numpy(task.targets).to(device)
        )
        return loss

    @torch.no_grad()
    def _held_out_loss(self, network: nn.Module, side: UserSide, held: Pieces) -> float:
        """Compute the mean loss on held-out texts, with the same noise and masks each time."""
        network.eval()
        rng = np.random.default_rng([self.seed, _HELD_OUT])
        batches = batch_by_length(held.lengths, self.batch_tokens, rng)
        losses = [float(self._loss(network, side, held, rows, rng)) for rows in batches]
        return float(np.average(losses, weights=[held.lengths[rows].sum() for rows in batches]))

    def _loop(
        self,
        split: TrainHeldOut,
        plan: list[NDArray[np.int64]],
        start: Mapping[str, NDArray[Any]] | None,
        folder: Path | None,
    ) -> PartedLoop:
        """Build the training loop: identity, learning-rate schedule, checkpoints."""
        identity = setting_values(self)
        identity |= {
            "texts": digest_of({"pieces": np.concatenate(split.pieces.rows)}, 0)[:16],
            "passed": split.passed,
            "start": "" if start is None else digest_of(dict(start), 0)[:16],
            **device_identity(),
        }
        n_steps = len(plan)
        n_warm = max(1, round(self.warm_up * n_steps))

        def share(step: int) -> float:
            return min((step + 1) / n_warm, max(0.1, 1 - step / n_steps))

        return PartedLoop(
            n=len(split.pieces),
            epochs=min(self.n_checks, n_steps),
            batch_size=1,
            seed=self.seed,
            identity=identity,
            rate_share=share,
            clip_norm=1.0,
            patience=self.n_checks + 1,
            keep_best=False,
            is_half=True,
            counts_start=True,
            unit="texts",
            say_score=lambda score: f"held-out loss {-score:.2f}",
            checkpoint_dir=folder,
            checkpoint_seconds=120.0,
            plan=plan,
        )
