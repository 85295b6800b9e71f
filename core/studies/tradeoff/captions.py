"""Descriptions of how the trade-off was measured, for its table and page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.protocols import Access
from leakscope.core.results.rows import Row
from leakscope.core.studies.tradeoff.point import Point

ATTACKERS_SINCE = 3
"""The study version since which trained attackers are unchanged."""

POSTERIOR = "posterior"
OF_TOKENS = ("tokens", POSTERIOR)
"""Attackers on released tokens instead of a text's vector."""
GRID = "grid"
"""The attacker that is added to `posterior` on noisy token vectors."""
FRESH = ("retrieval", "probe_mlc")
"""Additional attackers on trained defences: both see only protected vectors, and no defence's
adversary is of the family of the first."""

_ANSWERS = "the classifier's probabilities for a text and its class"
_SHADOWS = f"{_ANSWERS}, and models trained by the same recipe on the same kind of texts"

_TOLD: Mapping[str, tuple[str, str]] = {
    "tuned": ("probe-started classifier", Access.PAIRS.needs),
    "search": ("re-embedding search", Access.QUERIES.needs),
    "shipped": ("re-embedding search", Access.QUERIES.needs),
    "reconstruct": ("sentence search", Access.QUERIES.needs),
    "tokens": ("token decoder", "the released text, or token vectors and the encoder's own"),
    "posterior": ("token decoder", "the release, the mechanism and its own texts"),
    "grid": (
        "token decoder, by rounding",
        "the release, the mechanism and its floating-point code, and its own texts",
    ),
    "retrieval": ("nearest neighbours", Access.PAIRS.needs),
    "probe_mlc": ("probe-started classifier, retrained", Access.PAIRS.needs),
    "linear": ("linear classifier", Access.PAIRS.needs),
    "mlp": ("network with one hidden layer", Access.PAIRS.needs),
    "knn": ("nearest neighbours", Access.PAIRS.needs),
}
"""Each attacker's family, and its needs in addition to the vector or the model's answer."""


_UNTRAINED = ("feature",)
"""Attacks that need no training."""


def attacker_family(name: str) -> tuple[str, str]:
    """Return an attacker's family, and what it needs; empty strings if unknown."""
    entry = CLASSIFIER_ATTACKS.get(name)
    if entry is None:
        return _TOLD.get(name, ("", ""))
    return entry.title, _ANSWERS if entry.needs == "nothing" else _SHADOWS


def attacker_facts(names: Iterable[str], n_known: int) -> dict[str, dict[str, Any]]:
    """Return each attacker's family, access and number of known texts, as facts of a row."""
    return {
        name: {
            "family": attacker_family(name)[0],
            "access": attacker_family(name)[1],
            "n_known": 0 if name in _UNTRAINED else n_known,
        }
        for name in names
    }


def describe_use(facts: Mapping[str, Any]) -> str:
    """Describe how utility was measured, in a few sentences."""
    if "n_train" not in facts:
        return "Utility was not measured."
    n_train, n_test = facts["n_train"], facts["n_test"]
    part, apart = "the test part", ""
    if "task_near" in facts:
        part = "the development part, or the test part if there is none"
        apart = " No test text nearly repeats a training text."
    sizes = (
        f"{n_train} training and {n_test} test texts (a random subset of each task)"
        if n_train and n_test
        else f"the official split, tested on {part}, or a split of four fifths to one fifth"
    )
    drawn = "".join(
        f" {', '.join(each['tasks'])}: {each['n_train']:,} training and {each['n_test']:,} test "
        f"texts, drawn at random{_describe_precision(each['precision'], facts)}."
        for each in facts.get("subsets", ())
    )
    return (
        f"Accuracy in per cent of a linear classifier on {sizes}; STS-b: Spearman × 100 of "
        "cosine and human scores"
        + (
            f"; search: the right text found first among {facts['n_searched']}, in per cent"
            if "n_searched" in facts
            else ""
        )
        + "".join(
            f"; {name}: nearest training text with the label of the test text, in per cent"
            for name in facts.get("label_searches", ())
        )
        + "."
        + drawn
        + apart
    )


def _describe_precision(precision: str, facts: Mapping[str, Any]) -> str:
    """Return `, encoded in PRECISION` if other tasks use another precision."""
    return "" if precision in ("", facts.get("encoder_precision")) else f", encoded in {precision}"


def describe_attack(facts: Mapping[str, Any]) -> str:
    """Describe the attackers' knowledge, in a few sentences."""
    if "n_auxiliary" not in facts:
        return "no attack was measured."
    start = "start from the shipped weights" if facts.get("start") else "start from scratch"
    n = f"{facts['n_auxiliary']:,}"
    return (
        f"every attacker knows the defence and has {n} sentences of its own. Attackers on vectors "
        f"{start} and train on the defended vectors of their {n} sentences. The targets are "
        f"{facts['n_targets']:,} other sentences, on which no attacker was trained."
    )


def attack_version(rows: Sequence[Row], points: Iterable[Point]) -> int:
    """Return the lowest study version among points whose strongest attacker is trained.

    Later versions changed how classifiers are trained, not the attackers on released tokens. Rows
    without a version are of the first.
    """
    read = {(p.defence, p.settings) for p in points if p.leaks and p.attacker not in OF_TOKENS}
    versions = [
        (row.get("versions") or {}).get("study", 1)
        for row in rows
        if row.get("part", "attack") == "attack"
        and (row["defence"], tuple(row["defence_settings"].items())) in read
    ]
    return min(versions, default=1)
