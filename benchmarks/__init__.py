"""Speed benchmarks, as ratios within one run: `python -m benchmarks [NAME …]`.

A benchmark is a module with a function `measure() -> list[Measurement]`, here or in a folder; its
first docstring line is its title. Absolute times depend on the machine, ratios much less.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass
from functools import partial
from pathlib import Path

__all__ = ["Measurement", "benchmark_modules", "interleaved_medians", "seconds_of"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A measured number and its goal.

    `goal` reads as "at least" or, with `is_upper_bound`, "at most"; `at_most` sets both.
    """

    name: str
    value: float
    unit: str
    goal: float | None = None
    is_upper_bound: bool = False
    n: int = 1
    note: str = ""
    at_most: InitVar[float | None] = None

    def __post_init__(self, at_most: float | None) -> None:
        """Set `at_most`, if given, as the goal and mark the goal as an upper bound."""
        if at_most is not None:
            object.__setattr__(self, "goal", at_most)
            object.__setattr__(self, "is_upper_bound", True)

    @property
    def is_met(self) -> bool | None:
        """Whether the value reaches its goal; None if the measurement has no goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.is_upper_bound else self.value >= self.goal


def seconds_of(work: Callable[[], object]) -> float:
    """Call a function once and return the seconds that it took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved_medians(
    tasks: Mapping[str, Callable[[int], object]], *, repeats: int
) -> dict[str, float]:
    """Time the tasks in turns, so that load affects all alike; return median seconds by task.

    Every task is called with the number of the turn; the first tenth warms up and is not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    warm_up = max(1, repeats // 10)
    for turn in range(repeats + warm_up):
        for name, task in tasks.items():
            taken = seconds_of(partial(task, turn))
            if turn >= warm_up:
                seconds[name].append(taken)
    return {name: statistics.median(values) for name, values in seconds.items()}


def benchmark_modules() -> dict[str, str]:
    """Find every module with a function `measure`; return module paths by benchmark name."""
    root = Path(__file__).parent
    files = [path for path in root.rglob("*.py") if "\ndef measure(" in path.read_text("utf-8")]
    return {
        path.stem: ".".join((__name__, *path.relative_to(root).with_suffix("").parts))
        for path in sorted(files, key=lambda path: path.stem)
    }
