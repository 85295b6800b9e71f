"""Paths of the files that ship: weights, results, samples, pictures."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds core/, dashboard/, pages/, assets/ and results/ side by side."""

ASSETS = ROOT / "assets"
"""The folder of everything that ships and is neither code nor a result."""

RESULTS = ROOT / "results"
"""The rows, specification and table of every study, by the name of the table."""
