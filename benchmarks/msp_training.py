"""Training multi-set prediction: ours against a plain per-step PyTorch loop, at C22's settings.

Speed is measured at C22's full vocabulary; the F1 that both reach after the same epochs on the same
texts is compared at a small one, where the plain loop ends within minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from benchmarks import Measurement
from leakscope.core.attacks.inversion.msp.attack import MSPAttack
from leakscope.core.attacks.inversion.msp.network import MSPNetwork, draw_candidates, msp_loss
from leakscope.core.attacks.inversion.pairs import TrainingPairs, collect_pairs
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import no_progress

V, H, D, BATCH, STEPS = 20_000, 512, 384, 64, 9
N_BATCHES = 12
GOAL = 5.0
SMALL_V, SMALL_N, EPOCHS = 2_000, 8_000, 12

_Batch = tuple[torch.Tensor, list[NDArray[np.int32]]]


def measure() -> list[Measurement]:
    """Compare our training of multi-set prediction with a plain loop: speed and F1."""
    return [speed(), quality()]


def speed() -> Measurement:
    """Measure how many times faster our training step is than the plain one."""
    batches = problems(seed=0)
    tasks = {"ours": our_step(), "plain": plain_step(new_network(), STEPS)}
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for batch in batches:  # interleaved, so that a slow moment of the machine hits both
        for name, step in tasks.items():
            start = time.perf_counter()
            step(*batch)
            seconds[name].append(time.perf_counter() - start)
    median = {name: float(np.median(times[2:])) for name, times in seconds.items()}
    return Measurement(
        name="MSP training, sentences/s against a plain loop",
        value=median["plain"] / median["ours"],
        unit="×",
        goal=GOAL,
        n=N_BATCHES - 2,
        note=(
            f"V = {V:,}, H = {H}, batch {BATCH}, {STEPS} steps; "
            f"{BATCH / median['ours']:.0f} against {BATCH / median['plain']:.0f} sentences/s"
        ),
    )


def quality() -> Measurement:
    """Train with both loops for the same epochs and compare their validation F1."""
    encoder = CachedEncoder(load_encoder("minilm"))
    texts = bundled_sentences()[:SMALL_N]
    settings: dict[str, Any] = {
        "vocabulary_size": SMALL_V,
        "epochs": EPOCHS,
        "hidden": H,
        "batch_size": BATCH,
        "learning_rate": 4e-4,
        "dropout": 0.2,
        "patience": EPOCHS,
    }
    ours = MSPAttack(**settings).fit(encoder, texts)
    plain = MSPAttack(**settings).fit(encoder, texts[:40])
    pairs = collect_pairs(ours, encoder, texts)
    plain.vocabulary_, plain.n_steps_ = pairs.vocabulary, ours.n_steps_
    plain.network_ = plain._new_network(encoder, pairs, no_progress)
    best = train_plain_loop(plain, pairs)
    theirs, own = best, max(ours.log_.validation)
    return Measurement(
        name="MSP training, F1 over that of the plain loop",
        value=own - theirs,
        unit="points",
        goal=-1.0,
        n=min(2000, len(pairs.validation_rows)),
        note=(
            f"{own:.1f} against {theirs:.1f} on validation, best of {EPOCHS} epochs each, "
            f"{len(pairs.rows):,} sentences, V = {SMALL_V:,}"
        ),
    )


def train_plain_loop(attack: MSPAttack, pairs: TrainingPairs) -> float:
    """Train the attack's network with the plain loop; return the best epoch's validation F1."""
    step = plain_step(attack.network_, attack.n_steps_)
    x = torch.from_numpy(pairs.vectors)
    scores = []
    for epoch in range(EPOCHS):
        order = np.random.default_rng([0, epoch]).permutation(len(pairs.rows))
        attack.network_.train()
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            step(x[rows], [pairs.rows[i] for i in rows])
        attack.network_.eval()
        scores.append(attack._validate(pairs))
    return max(scores)


def problems(seed: int) -> list[_Batch]:
    """Draw random batches of vectors, each with Zipf-distributed word sets of about STEPS words."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, V + 1)
    weights /= weights.sum()
    batches: list[_Batch] = []
    for _ in range(N_BATCHES):
        x = rng.normal(size=(BATCH, D)).astype(np.float32)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        sizes = rng.integers(STEPS - 5, STEPS + 6, BATCH)
        words = [
            np.sort(rng.choice(V, s, replace=False, p=weights)).astype(np.int32) for s in sizes
        ]
        batches.append((torch.from_numpy(x), words))
    return batches


def new_network() -> MSPNetwork:
    """Build an untrained network of the benchmark's size."""
    torch.manual_seed(0)
    table = np.random.default_rng(0).normal(0, H**-0.5, (V, H)).astype(np.float32)
    return MSPNetwork(D, table, np.zeros(V, np.float32), dropout=0.2)


def our_step() -> Callable[[torch.Tensor, list[NDArray[np.int32]]], None]:
    """Build a network and return a function that trains it on one batch, as this project does."""
    network = new_network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-4, weight_decay=1e-4, fused=True)
    rng = np.random.default_rng(0)
    share = np.minimum(STEPS / np.arange(1, V + 1) / 10, 0.5)

    def step(x: torch.Tensor, words: list[NDArray[np.int32]]) -> None:
        """Train on one batch of vectors and word sets."""
        optimizer.zero_grad(set_to_none=True)
        msp_loss(network, x, words, draw_candidates(words, share, 1000, rng), STEPS).backward()
        optimizer.step()

    return step


def plain_step(
    network: MSPNetwork, n_steps: int
) -> Callable[[torch.Tensor, list[NDArray[np.int32]]], None]:
    """Return a function that trains a network on one batch by Algorithm 1 of Corò (2022)."""
    size = len(network.words)
    optimizer = torch.optim.Adam(network.parameters(), lr=4e-4, weight_decay=1e-4)

    def step(x: torch.Tensor, words: list[NDArray[np.int32]]) -> None:
        """Train on one batch of vectors and word sets."""
        left = torch.zeros(len(words), size)
        for i, w in enumerate(words):
            left[i, w] = 1
        u, h, c = network.start(x)
        named = torch.zeros(len(words), size, dtype=torch.bool)
        loss = torch.zeros(())
        for _ in range(n_steps):
            h, c = network.cell(F.dropout(u, 0.2, training=True), (h, c))
            logits = h @ network.words.T + network.bias
            count = left.sum(1)
            log_p = torch.log_softmax(logits, 1)
            loss = loss - ((left * log_p).sum(1) / count.clamp(min=1) * (count > 0)).mean()
            best = logits.masked_fill(named, -1e9).argmax(1, keepdim=True)
            named = named.scatter(1, best, value=True)
            left = left.scatter(1, best, 0.0)
            u = network.words[best[:, 0]]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
