"""Eq. 7 of Song & Raghunathan (2020): the paper's projected Adam against the working-set solver.

Run `python -m benchmarks.sparse_solver`. Both solve the same problems, in turn, in one process:
MiniLM's whole vocabulary and the token means that a map learned on the other half of the
sentences predicts. The ratio is taken round by round, so a busy machine slows both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks import Measurement
from leakscope.core.attacks.inversion.linear_map import LinearMap
from leakscope.core.attacks.inversion.released_tokens.token_words import regular_token_ids
from leakscope.core.attacks.inversion.sparse.solvers import (
    kkt_residual,
    objective,
    projected_adam,
    working_set,
)
from leakscope.core.encoders.minilm import load_minilm

Floats = NDArray[np.float32]


def make_problems(texts: Sequence[str], n: int) -> tuple[Floats, Floats]:
    """Encode texts; return the token matrix V and n target vectors predicted by a linear map."""
    encoder = load_minilm(device="cpu")
    fitted = LinearMap.fit(encoder, texts[n:])
    tokens = encoder.token_vectors.detach().numpy()[regular_token_ids(encoder)]
    return np.ascontiguousarray(tokens), fitted.apply(encoder.encode(texts[:n]))


def compare(
    tokens: Floats, targets: Floats, penalty: float, n_rounds: int
) -> dict[str, float | int | bool]:
    """Solve the same targets by our solver and projected Adam; return times and objectives."""
    solvers: dict[str, Callable[..., Floats]] = {"adam": projected_adam, "ours": working_set}
    seconds: dict[str, list[float]] = {name: [] for name in solvers}
    values: dict[str, list[float]] = {name: [] for name in solvers}
    residuals: dict[str, list[float]] = {name: [] for name in solvers}
    working_set(tokens, targets[:1], penalty)  # the first call loads libraries
    for batch in np.array_split(targets, n_rounds):
        for name, solve in solvers.items():
            start = time.perf_counter()
            z = solve(tokens, batch, penalty)
            seconds[name].append(time.perf_counter() - start)
            values[name] += objective(z, tokens, batch, penalty).tolist()
            residuals[name] += kkt_residual(z, tokens, batch, penalty).tolist()
    ratios = [a / b for a, b in zip(seconds["adam"], seconds["ours"], strict=True)]
    gaps = np.array(values["ours"]) - np.array(values["adam"])
    return {
        "n": len(targets),
        "n_rounds": n_rounds,
        "n_tokens": len(tokens),
        "penalty": penalty,
        "times_faster_median": statistics.median(ratios),
        "times_faster_min": min(ratios),
        "adam_seconds_each": sum(seconds["adam"]) / len(targets),
        "ours_seconds_each": sum(seconds["ours"]) / len(targets),
        "adam_objective": float(np.mean(values["adam"])),
        "ours_objective": float(np.mean(values["ours"])),
        "largest_excess_of_ours": float(gaps.max()),
        "ours_never_higher": bool((gaps <= 1e-6 * np.array(values["adam"])).all()),
        "adam_kkt_residual": max(residuals["adam"]),
        "ours_kkt_residual": max(residuals["ours"]),
    }


def measure() -> list[Measurement]:
    """Measure how many times faster than projected Adam our solver is, at two penalties."""
    texts = sentences(624)
    tokens, targets = make_problems(texts, 24)
    rows = []
    for penalty in (0.03, 0.1):
        found = compare(tokens, targets, penalty, 3)
        never = "never" if found["ours_never_higher"] else "SOMETIMES"
        rows.append(
            Measurement(
                name=f"sparse coding, λ = {penalty:g}",
                value=found["times_faster_median"],
                unit="× projected Adam",
                goal=5.0,
                n=len(targets),
                note=f"{1000 * found['ours_seconds_each']:.0f} ms a vector; objective "
                f"{found['ours_objective']:.6f} against {found['adam_objective']:.6f}, "
                f"{never} higher",
            )
        )
    return rows


def sentences(n: int) -> list[str]:
    """Load n sentences of the bundled corpora."""
    from leakscope.core.corpora import bundled_sentences

    return list(bundled_sentences())[:n]


def main() -> None:
    """Run the comparison and print one JSON object with the results per penalty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=24, help="targets (default: 24)")
    parser.add_argument("--rounds", type=int, default=3, help="batches (default: 3)")
    parser.add_argument("--texts", type=int, default=600, help="sentences of the map's fit")
    parser.add_argument("--penalty", type=float, nargs="+", default=[0.03, 0.1], help="λ")
    arguments = parser.parse_args()
    texts = sentences(arguments.n + arguments.texts)
    tokens, targets = make_problems(texts, arguments.n)
    results = [compare(tokens, targets, p, arguments.rounds) for p in arguments.penalty]
    print(json.dumps({"benchmark": "sparse_solver", "results": results}, indent=1))


if __name__ == "__main__":
    main()
