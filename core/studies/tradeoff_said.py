"""How the trade-off was measured, in the words of its table and its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["attack_said", "use_said"]


def use_said(facts: Mapping[str, Any]) -> str:
    """Return how usefulness was measured, in a sentence or two."""
    if "n_train" not in facts:
        return "Usefulness was not measured."
    n_train, n_test = facts["n_train"], facts["n_test"]
    sizes = (
        f"{n_train} training and {n_test} test texts (a random subset of each task)"
        if n_train and n_test
        else "the official split, or four fifths of the texts against the fifth"
    )
    return (
        f"Accuracy in per cent of a linear classifier on {sizes}; STS-b: Spearman × 100 of "
        "cosine and human scores"
        + (f"; search: the right one of {facts['n_searched']} first, in per cent"
           if "n_searched" in facts else "")
        + "."
    )  # fmt: skip


def attack_said(facts: Mapping[str, Any]) -> str:
    """Return what the attackers know and have, in a sentence."""
    if "n_auxiliary" not in facts:
        return "no attack was measured."
    begun = "trained on from the weights that ship" if facts.get("start") else "trained anew"
    return (
        f"each knows the defence and is {begun}, on the protected vectors of "
        f"{facts['n_auxiliary']:,} sentences; {facts['n_targets']:,} others are attacked, which no "
        "part of an attacker was trained on."
    )
