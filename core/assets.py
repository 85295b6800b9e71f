"""Where the files that ship lie: weights, shipped results, samples, pictures."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ASSETS", "ROOT"]

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds core/, dashboard/, pages/ and assets/ side by side."""

ASSETS = ROOT / "assets"
"""The folder of everything that ships and is no code."""
