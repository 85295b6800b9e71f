"""64 shadow classifiers on shared vectors: solved jointly, against scikit-learn one by one.

Sentences of 20 articles by article, MiniLM's vectors, each shadow trained on a random half. Both
minimise the same penalised cross-entropy; ours ends where accuracy no longer moves.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from benchmarks import Measurement
from leakscope.core.attacks.membership.classifiers.splits import random_halves
from leakscope.core.attacks.membership.classifiers.targets.heads import Solving, fit_heads
from leakscope.core.corpora import load_corpus
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder

N_MODELS, N_CLASSES, PER_CLASS, REPEATS = 64, 20, 200, 3
C = 1.0
GOAL, MOST_POINTS = 10.0, 0.5

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


def measure() -> list[Measurement]:
    """Compare fitting many shadow classifiers jointly and one by one: speed and accuracy."""
    texts, labels = sentences()
    vectors = CachedEncoder(load_encoder("minilm")).encode(texts)
    held = np.random.default_rng(0).permutation(len(texts)) < len(texts) // 4
    trained = np.zeros((N_MODELS, len(texts)), dtype=bool)
    trained[:, ~held] = random_halves(range(int((~held).sum())), N_MODELS, 0)
    for warm_up in (joint_accuracy, separate_accuracy):  # libraries are loaded, and code is made
        warm_up(vectors, labels, trained[:2], held)
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(REPEATS):  # in turns, so that a slow moment of the machine hits both
        start = time.perf_counter()
        ours = joint_accuracy(vectors, labels, trained, held)
        seconds["ours"].append(time.perf_counter() - start)
        start = time.perf_counter()
        theirs = separate_accuracy(vectors, labels, trained, held)
        seconds["theirs"].append(time.perf_counter() - start)
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    off = abs(ours - theirs)
    note = f"{median['theirs']:.1f} s one by one, {median['ours']:.2f} s as one; C = {C:g}"
    return [
        Measurement(
            name=f"{N_MODELS} shadow classifiers against one by one",
            value=median["theirs"] / median["ours"],
            unit="× faster",
            goal=GOAL,
            n=REPEATS,
            note=note,
        ),
        Measurement(
            name=f"{N_MODELS} shadow classifiers, accuracy apart",
            value=off,
            unit="points",
            at_most=MOST_POINTS,
            n=N_MODELS,
            note=f"{ours:.2f} % against {theirs:.2f} % of {int(held.sum()):,} sentences held out",
        ),
    ]


def sentences() -> tuple[list[str], Ids]:
    """Load sentences of the longest bundled articles; return them with their article numbers."""
    found = load_corpus("wikipedia").sentences()
    longest = [name for name, _ in Counter(found.document_ids).most_common(N_CLASSES)]
    texts, labels = [], []
    for label, name in enumerate(longest):
        own = [t for t, of in zip(found.texts, found.document_ids, strict=True) if of == name]
        texts += own[:PER_CLASS]
        labels += [label] * len(own[:PER_CLASS])
    return texts, np.array(labels, dtype=np.int64)


def joint_accuracy(
    vectors: Floats, labels: Ids, trained: NDArray[np.bool_], held: NDArray[np.bool_]
) -> float:
    """Fit all classifiers jointly; return their mean held-out accuracy in per cent."""
    nothing = np.zeros_like(trained)
    heads = fit_heads(vectors, labels, N_CLASSES, trained, nothing, Solving(c=C, patience=0))
    said = heads.probabilities(vectors[held]).argmax(2)
    return 100 * float((said == labels[held]).mean())


def separate_accuracy(
    vectors: Floats, labels: Ids, trained: NDArray[np.bool_], held: NDArray[np.bool_]
) -> float:
    """Fit scikit-learn regressions one by one; return held-out accuracy in per cent."""
    from sklearn.linear_model import LogisticRegression

    right = [
        (
            LogisticRegression(C=C, max_iter=1000)
            .fit(vectors[rows], labels[rows])
            .predict(vectors[held])
            == labels[held]
        ).mean()
        for rows in trained
    ]
    return 100 * float(np.mean(right))
