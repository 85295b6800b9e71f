"""Paired comparison of attribute attacks with a reference attack on the same targets.

Each attack is measured by itself, and its row stores its answers, target by target. Once all are
measured, they are compared; the written rows omit the answers.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.answers import Answers, difference, ratio
from leakscope.core.attacks.attributes.draw import Draw
from leakscope.core.attacks.attributes.experiment import CaseResult
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes.curves import TOP, tops
from leakscope.core.units import TextUnit, cluster_ids

_KEPT = "answers"


def with_answers(row: Row, found: CaseResult, drawn: Draw) -> Row:
    """Store a case's answers and target digest in its row, for a later paired comparison."""
    targets = drawn.targets[drawn.target_indices(found.case.n_labels)]
    answers = found.answers
    kept = {
        "targets": hashlib.sha256(targets.tobytes()).hexdigest()[:16],
        "ranks": _pack(np.minimum(answers.ranks, max(TOP)).astype(np.uint8)),
        "truth": _pack(answers.truth.astype(np.int32)),
        "groups": None
        if answers.groups is None
        else _pack(cluster_ids(answers.groups, len(targets)).astype(np.int32)),
        "are_texts": answers.groups is not None
        and all(isinstance(unit, TextUnit) for unit in answers.groups),
    }
    return replace(row, facts={**row.facts, _KEPT: kept})


def _pack(numbers: NDArray[Any]) -> str:
    """Compress an array to a base64 string."""
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def _unpack(kept: Mapping[str, Any]) -> Answers:
    """Restore the answers that `with_answers` stored."""

    def numbers(name: str, kind: type) -> NDArray[np.int64]:
        """Decompress one stored array to integers."""
        return np.frombuffer(zlib.decompress(base64.b64decode(kept[name])), kind).astype(np.int64)

    groups = None if kept["groups"] is None else numbers("groups", np.int32).tolist()
    if groups is not None and kept["are_texts"]:
        groups = [TextUnit(number) for number in groups]
    return Answers(numbers("ranks", np.uint8), numbers("truth", np.int32), groups)


def with_gains(rows: Sequence[Row], reference: str, encoder: str) -> list[Row]:
    """Add each attack's gain over the reference attack, paired by target; drop the stored answers.

    Measures `top1_gain` and `top5_gain`: the difference to the reference, paired target by target;
    `top5_ratio`: the ratio to its share (top-5 if there are more than five labels). The fact
    `reference` names it and its encoder. Controls are not compared.

    Parameters
    ----------
    rows : sequence of Row
        Of `with_answers`.
    reference, encoder : str
        The reference attack, and its encoder if it reads vectors.
    """
    against = {_comparison_key(row): row for row in rows if _is_reference(row, reference, encoder)}
    return [_with_gain(row, against.get(_comparison_key(row))) for row in rows]


def _comparison_key(row: Row) -> tuple[Any, ...] | None:
    """Return what two rows must share to be compared; None if a row stores no answers."""
    if _KEPT not in row.facts or row["is_shuffled"]:
        return None
    names = ("split", "labelled_from", "n_labels", "n_per_label", "seed")
    return (*(row[name] for name in names), row.facts[_KEPT]["targets"])


def _is_reference(row: Row, reference: str, encoder: str) -> bool:
    """Return whether a row is of the reference attack on the reference encoder."""
    if _comparison_key(row) is None or row["attribute_attack"] != reference:
        return False
    return bool(row.get("encoder", encoder) == encoder)


def _with_gain(row: Row, other: Row | None) -> Row:
    """Return a row with its paired gain over the reference row, without its stored answers."""
    facts = {name: value for name, value in row.facts.items() if name != _KEPT}
    if other is None or other is row:
        return replace(row, facts=facts)
    one, two = (_unpack(each.facts[_KEPT]) for each in (row, other))
    seed = int(row["seed"])
    ks = tops(int(row["n_labels"]))
    told: dict[str, Score] = {f"top{k}_gain": difference(one, two, k, seed) for k in ks}
    if 5 in ks:
        told["top5_ratio"] = ratio(one, two, 5, seed)
    facts["reference"] = [str(other.get(name, "")) for name in ("attribute_attack", "encoder")]
    return replace(row, facts=facts, scores={**row.scores, **told})
