"""Privacy-adaptive pretraining: tokens per second against a plain transformers training loop.

Both adapt MiniLM by denoising MLM under the same noise, the user's embedding frozen, and are held
against each other at the same tokens seen: how fast, and which loss on the same held-out texts. The
plain loop is what one would first write: BertForMaskedLM in float32, batches as they are drawn,
padded to their longest text, logits everywhere. It is also timed in bfloat16. Its head begins as
ours does, so that the losses tell the loops apart and not how they begin, and both see enough
tokens for it to fall well below that of frequencies.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks import Measurement
from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.trained.adaptive import AdaptivePretraining, MaskedHead
from leakscope.core.defences.trained.under_noise.masking import Masking
from leakscope.core.defences.trained.under_noise.pieces import Pieces
from leakscope.core.defences.trained.under_noise.readers import Received
from leakscope.core.defences.trained.under_noise.user_side import UserSide
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.minilm import minilm_folder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.specs import EncoderSpec
from leakscope.core.training.devices import autocast, pick_device

ETA, TOKENS, BATCH, REPEATS = 98.5, 100_000, 64, 2
GOAL, MOST_LOSS = 2.0, 0.05


def measure() -> list[Measurement]:
    """Compare adaptive pretraining with a plain loop: tokens per second and held-out loss."""
    encoder = require_white_box(load_encoder(EncoderSpec(name="minilm")), "Pretraining")
    texts = list(bundled_sentences())
    speeds: dict[str, list[float]] = {"ours": [], "float32": [], "bfloat16": []}
    losses: dict[str, list[float]] = {name: [] for name in speeds}
    for seed in range(REPEATS):  # in turns, so that a slow moment of the machine hits all
        pretraining = AdaptivePretraining(eta=ETA, tokens=TOKENS, n_checks=1, seed=seed)
        pretraining.fit(encoder, texts)
        speeds["ours"].append(pretraining.tokens_seen_ / pretraining.seconds_)
        losses["ours"].append(pretraining.curve_[-1]["loss"])
        for precision in ("float32", "bfloat16"):
            speed, loss = train_plain_loop(pretraining, encoder, texts, precision)
            speeds[precision].append(speed)
            losses[precision].append(loss)
    fast = {name: statistics.median(found) for name, found in speeds.items()}
    mean = {name: statistics.mean(found) for name, found in losses.items()}
    rows = [
        Measurement(
            name=f"Pretraining, tokens/s against a plain {precision} loop",
            value=fast["ours"] / fast[precision],
            unit="×",
            goal=GOAL if precision == "float32" else None,
            n=REPEATS,
            note=f"{fast['ours']:.0f} against {fast[precision]:.0f} tokens/s",
        )
        for precision in ("float32", "bfloat16")
    ]
    more = Measurement(
        name="Held-out loss less that of the plain loop",
        value=mean["ours"] - mean["float32"],
        unit="nats",
        at_most=MOST_LOSS,
        n=REPEATS,
        note=f"{mean['ours']:.2f} against {mean['float32']:.2f} after {TOKENS:,} tokens",
    )
    return [*rows, more]


class PlainMaskedLM(nn.Module):
    """BertForMaskedLM with MiniLM's weights, a frozen embedding and a tied head."""

    def __init__(self, precision: str, head: MaskedHead) -> None:
        super().__init__()
        from transformers import AutoModel, BertForMaskedLM

        source: Any = minilm_folder()
        base = AutoModel.from_pretrained(source, use_safetensors=True, local_files_only=True)
        self.model = BertForMaskedLM(base.config)
        self.model.bert.load_state_dict(base.state_dict(), strict=False)
        self.model.tie_weights()
        self._initialise_head(head)
        self.model.get_input_embeddings().weight.requires_grad_(False)
        self.precision = precision

    @torch.no_grad()
    def _initialise_head(self, head: MaskedHead) -> None:
        """Copy our initial prediction head into the model."""
        predictions = self.model.cls.predictions
        predictions.transform.transform_act_fn = nn.Identity()
        predictions.transform.dense.load_state_dict(head.transform.state_dict())
        predictions.transform.LayerNorm.load_state_dict(head.norm.state_dict())
        predictions.decoder.bias.copy_(head.bias)

    def logits(self, received: Received) -> Tensor:
        """Run the model on token vectors; return (texts, length, |V|) logits."""
        with autocast(pick_device(), self.precision):
            found: Tensor = self.model(
                inputs_embeds=received.vectors, attention_mask=received.is_there.long()
            ).logits
        return found.float()

    def forward(self, received: Received, places: Tensor) -> Tensor:
        """Run the model on token vectors; return the logits at the given positions only."""
        found = self.logits(received)
        return found.reshape(-1, found.shape[-1])[places]


def train_plain_loop(
    ours: AdaptivePretraining, encoder: WhiteBoxEncoder, texts: list[str], precision: str
) -> tuple[float, float]:
    """Train the baseline model with a plain loop; return tokens per second and held-out loss."""
    split = ours.split(encoder, texts)
    pieces, held = split.pieces, split.held
    side, rng = UserSide(encoder, ours.mechanism, ETA), np.random.default_rng(ours.seed)
    torch.manual_seed(ours.seed)
    counts = np.bincount(np.concatenate(pieces.rows), minlength=len(side.table))
    network = PlainMaskedLM(precision, MaskedHead(side.table, counts)).to(pick_device()).train()
    weights = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=ours.learning_rate)
    order, seen = rng.permutation(len(pieces)), 0
    start = time.perf_counter()
    for begin in range(0, len(order), BATCH):
        rows = order[begin : begin + BATCH]
        optimizer.zero_grad()
        step_loss(network, side, pieces, rows, rng).backward()
        optimizer.step()
        seen += int(pieces.lengths[rows].sum())
        if seen >= TOKENS:
            break
    speed = seen / (time.perf_counter() - start)
    return speed, ours._held_out_loss(network, side, held)


def step_loss(
    network: PlainMaskedLM,
    side: UserSide,
    pieces: Pieces,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
) -> Tensor:
    """Mask tokens of a batch of texts and return the loss of predicting them."""
    batch = pieces.batch(rows)
    task = Masking("denoising").task(batch, side, pieces.marks, rng)
    labels = torch.full((batch.ids.size,), -100)
    labels[torch.from_numpy(task.places)] = torch.from_numpy(task.targets[:, 0])
    logits = network.logits(Received(batch, task.vectors))
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)
