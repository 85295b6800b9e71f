"""16 shadow LSTMs, against training one: by a plain loop, and by our loop.

The plain loop takes batches as they are drawn and pads them to their longest text. Ours draws
texts of about one length together and trains as many models at a time as there are processors.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks import Measurement, seconds_of
from benchmarks.shadow_classifiers import N_CLASSES, sentences
from leakscope.core.attacks.membership.classifiers.splits import random_halves
from leakscope.core.attacks.membership.classifiers.targets.lstm import LSTMClassifier, LSTMs
from leakscope.core.attacks.membership.classifiers.targets.tokens import token_rows
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.encoders.dual.word_tokens import PAD

N_MODELS, EPOCHS, REPEATS, MOST = 16, 2, 3, 8.0
KIND = LSTMs(epochs=EPOCHS, patience=0)


def measure() -> list[Measurement]:
    """Compare the time of training 16 shadow LSTMs together with that of training one."""
    texts, labels = sentences()
    trained = random_halves(range(len(texts)), N_MODELS, 0)
    held = np.zeros_like(trained)
    for model in range(N_MODELS):  # patience 0: they stop nothing
        held[model, np.flatnonzero(~trained[model])[:50]] = True
    whole = TrainingBatch(tuple(texts), labels, N_CLASSES, trained, held, 0)
    alone = TrainingBatch(tuple(texts), labels, N_CLASSES, trained[:1], held[:1], 0)
    tasks = {
        "all": lambda: KIND.fit(whole),
        "one": lambda: KIND.fit(alone),
        "plain": lambda: train_plain_loop(alone),
    }
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    with all_processors():
        for _ in range(REPEATS):
            for name, task in tasks.items():
                seconds[name].append(seconds_of(task))
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    told = {"plain": "a plain loop", "one": "our loop"}
    return [
        Measurement(
            name=f"{N_MODELS} shadow LSTMs against one by {said}",
            value=median["all"] / median[name],
            unit="× the time",
            at_most=MOST,
            n=REPEATS,
            note=f"{median['all']:.1f} s against {median[name]:.1f} s, {os.cpu_count()} processors",
        )
        for name, said in told.items()
    ]


@contextmanager
def all_processors() -> Iterator[None]:
    """Let torch use every processor within the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train_plain_loop(lesson: TrainingBatch) -> None:
    """Train one LSTM with a plain loop and predict all texts, for timing; return nothing."""
    rows, n_tokens = token_rows(
        lesson.texts, KIND.tokenisation, KIND.vocabulary_size, KIND.max_length
    )
    ids, labels = torch.from_numpy(rows), torch.from_numpy(lesson.labels)
    lengths = (rows != PAD).sum(1)
    network = LSTMClassifier(n_tokens, lesson.n_classes, KIND.dimension, KIND.hidden)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a step is too small to be shared out: two are slower than one
    optimizer = torch.optim.Adam(network.parameters(), lr=KIND.learning_rate)
    known = np.flatnonzero(lesson.trained[0])
    for epoch in range(KIND.epochs):
        order = np.random.default_rng(epoch).permutation(known)
        for start in range(0, len(order), KIND.batch_size):
            batch = order[start : start + KIND.batch_size]
            optimizer.zero_grad()
            logits = network(ids[batch, : int(lengths[batch].max())])
            F.cross_entropy(logits, labels[batch]).backward()
            optimizer.step()
    with torch.inference_mode():
        for start in range(0, len(rows), 256):
            network(ids[start : start + 256])
    torch.set_num_threads(threads)
