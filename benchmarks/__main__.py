"""Run benchmarks, print a table and write benchmarks/results.json."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import platform
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import Measurement, benchmark_modules
from leakscope.core.storage.artifacts import read_json, write_json

RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    """Run the chosen benchmarks, print their rows and write results.json."""
    names = list(benchmark_modules())
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    chosen = parser.parse_args().names or names
    unknown = set(chosen) - set(names)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    results = read_json(RESULTS) if RESULTS.exists() else {}
    for name in chosen:
        results[name] = run(name)
        write_json(RESULTS, results, is_public=True)
    return 0


def run(name: str) -> dict[str, Any]:
    """Run the named benchmark, print its rows, and return them with date, hardware and versions."""
    module = import_module(benchmark_modules()[name])
    print(f"\n{(module.__doc__ or name).splitlines()[0]}", flush=True)
    start = time.perf_counter()
    rows = module.measure()
    for row in rows:
        print(describe(row), flush=True)
    if not rows:
        print("  nothing measured: no trained weights ship for it", flush=True)
    return {
        "rows": [dataclasses.asdict(row) | {"is_met": row.is_met} for row in rows],
        "seconds": round(time.perf_counter() - start, 1),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "hardware": {"chip": platform.machine(), "n_cpus": os.cpu_count()},
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in ("numpy", "torch", "transformers")},
    }


def describe(row: Measurement) -> str:
    """Format a measurement as a line of the table."""
    goal = ""
    if row.goal is not None:
        sign = "≤" if row.is_upper_bound else "≥"
        goal = f"goal {sign} {row.goal:g}: {'met' if row.is_met else 'MISSED'}"
    return f"  {row.name:<44}{row.value:10.2f} {row.unit:<20}{goal:<18} {row.note}"


if __name__ == "__main__":
    sys.exit(main())
