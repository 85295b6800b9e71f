"""Constants of `more-texts.json`: results of attacks trained on far more texts."""

from __future__ import annotations

STUDY = "more_texts"
COMMAND = (
    "python -m scripts.more_texts "
    "--results results/inversion-bbc.json --out results/more-texts.json"
)
"""The command that makes the file from the rows of the attack study."""

RECALLS = ("name_recall", "number_recall", "rare_recall")
"""Recall of names and numbers, of numbers, and of rare words; old rows have only the first."""
