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

from leakscope.core.defences.trained.under_noise.masked_network import (
    AdaptiveNetwork,
    LossCurve,
    MaskedHead,
    PartedLoop,
)
from leakscope.core.defences.trained.under_noise.masking import Masking
from leakscope.core.defences.trained.under_noise.pieces import Pieces, batch_by_length
from leakscope.core.defences.trained.under_noise.readers import Received, open_service
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.defences.trained.under_noise.split import TrainHeldOut
from leakscope.core.defences.trained.under_noise.user_side import (
    TOKEN_MECHANISMS,
    UserSide,
    device_identity,
)
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress
from leakscope.core.specs import setting, settings_of, validate_settings
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.training.checkpoint import load_weights
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import train
from leakscope.core.training.watch import (
    CombinedState,
    LossWatch,
    RestorableGenerator,
    discard_on_divergence,
)

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
        """Pretrain on texts; an interrupted run resumes from its checkpoint.

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
        """Return the weights of the service's Transformer, to initialise a classifier.

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
        """Validate the settings, and that the mask shares add up to at most 1."""
        validate_settings(self)
        if self.masked + self.replaced > 1:
            raise InvalidInputError("masked and replaced must not add up to more than 1.")

    def split(
        self, encoder: WhiteBoxEncoder, texts: Sequence[str], passed: int = 0
    ) -> TrainHeldOut:
        """Split the texts into those trained on and those held out; see `fit`."""
        return TrainHeldOut.of(
            encoder,
            texts,
            tokens=self.tokens,
            max_length=self.max_length,
            seed=self.seed,
            passed=passed,
        )

    def _plan(self, pieces: Pieces, passed: int) -> list[NDArray[np.int64]]:
        """Return the training's batches, repeating the texts until enough tokens are seen."""
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
        """Return the loss on held-out texts, with the same noise and masks each time."""
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
        identity = {name: getattr(self, name) for name in settings_of(type(self))}
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
