"""Attribute inference: all sizes and seeds over shared features against fits one by one.

Run `python -m benchmarks attribute_sweep`. The features are planted: classes as points in 384
dimensions with noise around them. Each way learns linear classifiers for every N_s × |S| × 5 seeds
and is tested on the same targets. Ours: the discriminant in closed form, and the steps of the
paper's probe for all of them as one tensor program. One by one: scikit-learn's logistic regression
and its discriminant, and the same steps by its network without a hidden layer and by PyTorch's
layer, Adam and gradients.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import Measurement
from leakscope.core.attacks.attributes.linear import fit_discriminant
from leakscope.core.attacks.attributes.program import (
    Linear,
    Problem,
    Recipe,
    centre_and_scale,
    train_many,
)

Floats = NDArray[np.float32]
Fit = Callable[[Floats, Problem], Callable[[Floats], NDArray[np.int64]]]

DIMENSION, N_CLASSES, N_KNOWN, N_TARGETS = 384, 91, 50, 50
LABELS, SIZES, SEEDS = (20, 50, 91), (10, 20, 30, 40, 50), (0, 1, 2, 3, 4)
SPREAD = 8.0
"""Of the noise, against a distance of the classes of about 1.4."""

RECIPE = Recipe()


def draw_features() -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Draw synthetic features; return them with the labelled and target row numbers per class."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((N_CLASSES, 1, DIMENSION)) / np.sqrt(DIMENSION)
    noise = rng.standard_normal((N_CLASSES, N_KNOWN + N_TARGETS, DIMENSION)) / np.sqrt(DIMENSION)
    rows = np.arange(N_CLASSES * (N_KNOWN + N_TARGETS)).reshape(N_CLASSES, -1)
    found = (centres + SPREAD * noise).reshape(-1, DIMENSION).astype(np.float32)
    return found, rows[:, :N_KNOWN], rows[:, N_KNOWN:]


def draw_problems(known: NDArray[np.int64]) -> list[Problem]:
    """Draw from labelled rows one classification problem per number of labels, size and seed."""
    found = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        order = rng.permutation(N_CLASSES)
        drawn = known[order][:, rng.permutation(N_KNOWN)]
        for n_labels in LABELS:
            for n in SIZES:
                labels = np.repeat(np.arange(n_labels), n)
                found.append(Problem(drawn[:n_labels, :n].ravel(), labels, n_labels, seed))
    return found


def fit_with_network(vectors: Floats, problem: Problem) -> Callable[[Floats], NDArray[np.int64]]:
    """Fit scikit-learn's network without a hidden layer to one problem; return its predictor."""
    from sklearn.neural_network import MLPClassifier

    fitted = MLPClassifier(
        hidden_layer_sizes=(),
        alpha=0.0,
        batch_size=min(RECIPE.batch_size, len(vectors)),
        learning_rate_init=RECIPE.rate,
        max_iter=RECIPE.epochs,
        tol=0.0,
        n_iter_no_change=RECIPE.epochs + 1,
        random_state=problem.seed,
    ).fit(vectors, problem.labels)
    return lambda targets: np.asarray(fitted.predict(targets))


def fit_with_regression(vectors: Floats, problem: Problem) -> Callable[[Floats], NDArray[np.int64]]:
    """Fit scikit-learn's logistic regression to one problem; return its predictor."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(vectors, problem.labels)
    return lambda targets: np.asarray(fitted.predict(targets))


def fit_with_discriminant(
    vectors: Floats, problem: Problem
) -> Callable[[Floats], NDArray[np.int64]]:
    """Fit scikit-learn's shrinkage linear discriminant to one problem; return its predictor."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    fitted = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(
        vectors, problem.labels
    )
    return lambda targets: np.asarray(fitted.predict(targets))


def fit_with_layer(vectors: Floats, problem: Problem) -> Callable[[Floats], NDArray[np.int64]]:
    """Fit PyTorch's linear layer to one problem by a standard loop; return its predictor."""
    torch.manual_seed(problem.seed)
    data = torch.utils.data.TensorDataset(
        torch.from_numpy(vectors), torch.from_numpy(problem.labels)
    )
    loader = torch.utils.data.DataLoader(data, RECIPE.batch_size, shuffle=True)
    layer = torch.nn.Linear(vectors.shape[1], problem.n_labels)
    optimizer = torch.optim.Adam(layer.parameters(), lr=RECIPE.rate)
    for _ in range(RECIPE.epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(layer(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def predict(targets: Floats) -> NDArray[np.int64]:
        """Return the class number that the layer predicts for each row of features."""
        with torch.no_grad():
            return np.asarray(layer(torch.from_numpy(targets)).argmax(1).numpy())

    return predict


PEERS: dict[str, Fit] = {
    "scikit-learn's logistic regression": fit_with_regression,
    "scikit-learn's discriminant": fit_with_discriminant,
    "the same steps by scikit-learn's network": fit_with_network,
    "the same steps by PyTorch's layer": fit_with_layer,
}


def fit_separately(
    fit: Fit, features: Floats, problems: Sequence[Problem], targets: Sequence[NDArray[np.int64]]
) -> tuple[float, float]:
    """Fit each problem by itself; return total seconds and mean accuracy on the targets."""
    seconds, right = 0.0, []
    for problem, tested in zip(problems, targets, strict=True):
        start = time.perf_counter()
        vectors = features[problem.rows]
        centre, scale = centre_and_scale(vectors)
        predict = fit((vectors - centre) * np.float32(scale), problem)
        seconds += time.perf_counter() - start
        asked = (features[tested.ravel()] - centre) * np.float32(scale)
        truth = np.repeat(np.arange(problem.n_labels), tested.shape[1])
        right.append(float((predict(asked) == truth).mean()))
    return seconds, float(np.mean(right))


def fit_jointly(
    features: Floats,
    problems: Sequence[Problem],
    targets: Sequence[NDArray[np.int64]],
    learn: Callable[[Floats, Sequence[Problem]], Sequence[Linear]],
) -> tuple[float, float]:
    """Fit all problems in one call of `learn`; return seconds and mean accuracy on the targets."""
    start = time.perf_counter()
    fitted = learn(features, problems)
    seconds, right = time.perf_counter() - start, []
    for linear, tested in zip(fitted, targets, strict=True):
        truth = np.repeat(np.arange(linear.weights.shape[1]), tested.shape[1])
        right.append(float((linear.scores(features[tested.ravel()]).argmax(1) == truth).mean()))
    return seconds, float(np.mean(right))


OURS: dict[str, tuple[Callable[[Floats, Sequence[Problem]], Sequence[Linear]], float | None]] = {
    "in closed form": (lambda x, problems: [fit_discriminant(x, p) for p in problems], 10.0),
    "step by step": (lambda x, problems: train_many(x, problems, RECIPE), None),
}
"""How all are learned, and the goal: steps are bound by their arithmetic on a processor."""


def measure() -> list[Measurement]:
    """Compare the time of our joint fits of all probes with each peer's one-by-one fits."""
    warnings.simplefilter("ignore")  # thirty epochs are no convergence, and shall not be
    features, known, held = draw_features()
    problems = draw_problems(known)
    targets = [
        held[np.random.default_rng(p.seed).permutation(N_CLASSES)[: p.n_labels]] for p in problems
    ]
    ours = {}
    for way, (learn, _) in OURS.items():
        fit_jointly(features, problems[:3], targets[:3], learn)
        ours[way] = fit_jointly(features, problems, targets, learn)
    rows = []
    for name, fit in PEERS.items():
        fit_separately(fit, features, problems[:1], targets[:1])
        theirs, reached = fit_separately(fit, features, problems, targets)
        for way, (seconds, accuracy) in ours.items():
            rows.append(
                Measurement(
                    name=f"{len(problems)} probes {way}, against {name}",
                    value=theirs / seconds,
                    unit="× faster",
                    goal=OURS[way][1],
                    n=len(problems),
                    note=f"{seconds:.1f} s against {theirs:.1f} s; accuracy {accuracy:.3f} "
                    f"against {reached:.3f}",
                )
            )
    return rows
