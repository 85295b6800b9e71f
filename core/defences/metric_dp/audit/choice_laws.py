"""Reference distributions of the mechanisms that sample a token, computed from their definitions.

For a vocabulary of a few tokens the chance of every output is written down from the definition,
with loops and nothing of the mechanism's own code: what is audited cannot pass by its own mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Chances = NDArray[np.float64]
"""Of each output for each input, (V, V); rows sum to one."""

Table = NDArray[np.float64]
Settings = Mapping[str, Any]

N_FREQUENT = 4
"""The first tokens of the vocabulary, which the probe takes all usual words for."""

_SIMULATED = 100_000


def distance(table: Table, x: int, y: int) -> float:
    """Return the Euclidean distance of tokens x and y, which are rows of a table of vectors."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(table[x], table[y], strict=True)))


def _normalise_rows(table: Table, weight: Callable[[int, int], float]) -> Chances:
    """Build the (V, V) matrix of weight(x, y) over all tokens; scale its rows to sum to one."""
    n = len(table)
    found = np.array([[weight(x, y) for y in range(n)] for x in range(n)])
    scaled: Chances = found / found.sum(1, keepdims=True)
    return scaled


def _santext_chances(table: Table, epsilon: float, settings: Settings) -> Chances:
    """Compute SanText's exact P[output | token] for all tokens of a table, (V, V)."""
    return _normalise_rows(table, lambda x, y: math.exp(-epsilon * distance(table, x, y) / 2))


def _santext_plus_chances(table: Table, epsilon: float, settings: Settings) -> Chances:
    """Compute SanText+'s exact P[output | token] for all tokens of a table, (V, V)."""
    n = len(table)
    drawn = _normalise_rows(
        table,
        lambda x, y: math.exp(-epsilon * distance(table, x, y) / 2) if y >= N_FREQUENT else 0.0,
    )
    stays = np.eye(n)
    share = np.where(np.arange(n) < N_FREQUENT, settings["p"], 1.0)[:, None]
    mixed: Chances = share * drawn + (1 - share) * stays
    return mixed


def reference_sets(table: Table, k: int) -> list[list[int]]:
    """Partition the rows of a table into CusText's sets of k tokens, in plain loops (reference)."""
    left, sets = list(range(len(table))), []
    while len(left) >= 2 * k:
        near = sorted(left, key=lambda y: distance(table, left[0], y))[:k]
        sets.append(near)
        left = [token for token in left if token not in near]
    return [*sets, left]


def _custext_chances(table: Table, epsilon: float, settings: Settings) -> Chances:
    """Compute CusText's exact P[output | token] for all tokens of a table, (V, V)."""
    chances = np.zeros((len(table), len(table)))
    for members in reference_sets(table, settings["k"]):
        for x in members:
            far = max(distance(table, x, y) for y in members)
            for y in members:
                chances[x, y] = math.exp(-epsilon / 2 * distance(table, x, y) / far)
    scaled: Chances = chances / chances.sum(1, keepdims=True)
    return scaled


def _gamma(n: int, epsilon: float, beta: float) -> float:
    """Return TEM's distance threshold γ = (2/ε)·ln((1−β)(n−1)/β)."""
    return 2 / epsilon * math.log((1 - beta) * (n - 1) / beta)


def _tem_chances(table: Table, epsilon: float, settings: Settings) -> Chances:
    """Compute TEM's exact P[output | token] for all tokens, (V, V), by the paper's two steps.

    Near tokens compete with one candidate for all others; if that wins, one of the others is drawn
    evenly.
    """
    n = len(table)
    gamma, chances = _gamma(n, epsilon, settings["beta"]), np.zeros((n, n))
    for x in range(n):
        near = [y for y in range(n) if distance(table, x, y) <= gamma]
        far = [y for y in range(n) if y not in near]
        scores = {y: -distance(table, x, y) for y in near}
        weights = {y: math.exp(epsilon / 2 * score) for y, score in scores.items()}
        others = 0.0
        if far:
            others = math.exp(epsilon / 2 * (-gamma + 2 / epsilon * math.log(len(far))))
        total = sum(weights.values()) + others
        for y, weight in weights.items():
            chances[x, y] = weight / total
        for y in far:
            chances[x, y] = others / total / len(far)
    return chances


def _ranked_chances(table: Table, eta: float, settings: Settings) -> Chances:
    """Estimate ranked text to text's P[output | token], (V, V), by a long simulation."""
    n, dimension = table.shape
    rng = np.random.default_rng(20_241_113)
    fall = np.exp(-settings["c"] * eta * np.arange(n))
    ways = rng.standard_normal((_SIMULATED, dimension))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    lengths = rng.exponential(1 / eta, (_SIMULATED, dimension)).sum(1, keepdims=True)
    ranks = rng.choice(n, _SIMULATED, p=fall / fall.sum())
    chances = np.empty((n, n))
    for x in range(n):
        moved = table[x] + ways * lengths
        order = np.argsort(np.square(table).sum(1) - 2 * moved @ table.T, axis=1)
        found = order[np.arange(_SIMULATED), ranks]
        chances[x] = np.bincount(found, minlength=n) + 0.5
    scaled: Chances = chances / chances.sum(1, keepdims=True)
    return scaled


LAWS: dict[str, Callable[[Table, float, Settings], Chances]] = {
    "text_to_text_ranked": _ranked_chances,
    "santext": _santext_chances,
    "santext_plus": _santext_plus_chances,
    "custext": _custext_chances,
    "tem": _tem_chances,
}

PROMISES: dict[str, Callable[[Table, float, Settings, int, int], float]] = {
    "text_to_text_ranked": lambda t, e, s, x, y: e * distance(t, x, y),
    "santext": lambda t, e, s, x, y: e * distance(t, x, y),
    "santext_plus": lambda t, e, s, x, y: e * distance(t, x, y) + math.log(1 / s["p"]),
    "custext": lambda t, e, s, x, y: e,
    "tem": lambda t, e, s, x, y: e * min(distance(t, x, y), _gamma(len(t), e, s["beta"])),
}
"""The most that the logarithm of a ratio of chances may be, for two tokens of the guarantee."""
