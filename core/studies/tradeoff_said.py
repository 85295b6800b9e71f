"""How the trade-off was measured, in the words of its table and its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.protocols import Access
from core.studies.rows import Row
from core.studies.tradeoff_point import Point

__all__ = [
    "ATTACKERS_SINCE",
    "FRESH",
    "GRID",
    "OF_TOKENS",
    "POSTERIOR",
    "attack_said",
    "attack_version",
    "attackers_told",
    "told_of",
    "use_said",
]

ATTACKERS_SINCE = 3
"""The version of the study since which those who learn have been what they are today."""

POSTERIOR = "posterior"
OF_TOKENS = ("tokens", POSTERIOR)
"""Those read what is released, no vector of a text."""
GRID = "grid"
"""Comes to noisy token vectors wherever `posterior` does."""
FRESH = ("retrieval", "probe_mlc")
"""Who comes to defences that are trained: both read of what was defended alone, and the first is of
another family than the adversary of any defence."""

_ANSWERS = "the classifier's probabilities for a text and its class"
_SHADOWS = f"{_ANSWERS}, and models trained by the same recipe on the same kind of texts"

_TOLD: Mapping[str, tuple[str, str]] = {
    "tuned": ("probe-started classifier", Access.PAIRS.needs),
    "search": ("re-embedding search", Access.QUERIES.needs),
    "shipped": ("re-embedding search", Access.QUERIES.needs),
    "reconstruct": ("search for the sentence", Access.QUERIES.needs),
    "tokens": ("reader of tokens", "the released text, or token vectors and the encoder's own"),
    "posterior": ("reader of tokens", "what is released, the mechanism and texts of its own"),
    "grid": (
        "reader of tokens, by rounding",
        "what is released, the mechanism, how it computes, and texts of its own",
    ),
    "retrieval": ("neighbours", Access.PAIRS.needs),
    "probe_mlc": ("probe-started classifier, trained anew", Access.PAIRS.needs),
    "linear": ("linear classifier", Access.PAIRS.needs),
    "mlp": ("network of one hidden layer", Access.PAIRS.needs),
    "knn": ("neighbours", Access.PAIRS.needs),
}
"""Of each attacker its family, and what it needs beside the vector, or the model's answer."""


_UNTRAINED = ("feature",)
"""Who learns from nothing."""


def told_of(name: str) -> tuple[str, str]:
    """Return an attacker's family, and what it needs; empty where it is not known."""
    entry = CLASSIFIER_ATTACKS.get(name)
    if entry is None:
        return _TOLD.get(name, ("", ""))
    return entry.title, _ANSWERS if entry.needs == "nothing" else _SHADOWS


def attackers_told(names: Iterable[str], n_known: int) -> dict[str, dict[str, Any]]:
    """Return what a row says of its attackers: family, access, and texts that each learns from."""
    return {
        name: {
            "family": told_of(name)[0],
            "access": told_of(name)[1],
            "n_known": 0 if name in _UNTRAINED else n_known,
        }
        for name in names
    }


def use_said(facts: Mapping[str, Any]) -> str:
    """Return how usefulness was measured, in a sentence or two."""
    if "n_train" not in facts:
        return "Usefulness was not measured."
    n_train, n_test = facts["n_train"], facts["n_test"]
    part, apart = "its test part", ""
    if "task_near" in facts:
        part = "its part to develop on, else on its test part"
        apart = " No text is tested on that nearly repeats a training text."
    sizes = (
        f"{n_train} training and {n_test} test texts (a random subset of each task)"
        if n_train and n_test
        else f"the official split, tested on {part}, or four fifths of the texts against the fifth"
    )
    drawn = "".join(
        f" {', '.join(each['tasks'])}: {each['n_train']:,} training and {each['n_test']:,} test "
        f"texts, drawn at random{_in_precision(each['precision'], facts)}."
        for each in facts.get("subsets", ())
    )
    return (
        f"Accuracy in per cent of a linear classifier on {sizes}; STS-b: Spearman × 100 of "
        "cosine and human scores"
        + (f"; search: the right one of {facts['n_searched']} first, in per cent"
           if "n_searched" in facts else "")
        + "".join(f"; {name}: the nearest training text has the label of the test text, in per cent"
                  for name in facts.get("label_searches", ()))
        + "."
        + drawn
        + apart
    )  # fmt: skip


def _in_precision(precision: str, facts: Mapping[str, Any]) -> str:
    """Return in which arithmetic the encoder ran, where that differs from the other tasks."""
    return "" if precision in ("", facts.get("encoder_precision")) else f", encoded in {precision}"


def attack_said(facts: Mapping[str, Any]) -> str:
    """Return what the attackers know and have, in a few sentences."""
    if "n_auxiliary" not in facts:
        return "no attack was measured."
    begun = "goes on from the weights that ship" if facts.get("start") else "begins anew"
    n = f"{facts['n_auxiliary']:,}"
    return (
        f"every attacker knows the defence and has {n} sentences of its own. Whoever reads vectors "
        f"{begun}, and learns from what the defence makes of these {n}. Attacked are "
        f"{facts['n_targets']:,} other sentences, on which no attacker was trained."
    )


def attack_version(rows: Sequence[Row], points: Iterable[Point]) -> int:
    """Return the least version of the study that measured a point whose strongest attacker learns.

    What a later version teaches its classifiers changes nothing of who reads released tokens.
    Rows that tell no version are of the first.
    """
    read = {(p.defence, p.settings) for p in points if p.leaks and p.attacker not in OF_TOKENS}
    versions = [
        (row.get("versions") or {}).get("study", 1)
        for row in rows
        if row.get("part", "attack") == "attack"
        and (row["defence"], tuple(row["defence_settings"].items())) in read
    ]
    return min(versions, default=1)
