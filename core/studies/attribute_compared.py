"""Attacks on an attribute held against one of them on the same targets, groups drawn for both.

Each attack is measured by itself, where and when its cell comes up, and its row keeps its answers,
target by target. Once all are there they are compared, and what is written is without them.
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

from core.attacks.attributes.answers import Answers, difference, ratio
from core.attacks.attributes.draw import Draw
from core.attacks.attributes.experiment import Found
from core.results import Score
from core.studies.attribute_curves import TOP, tops
from core.studies.rows import Row
from core.units import TextUnit, unit_rows

__all__ = ["compared", "with_answers"]

_KEPT = "answers"


def with_answers(row: Row, found: Found, drawn: Draw) -> Row:
    """Return a row that keeps the answers of its case, and of which targets they are."""
    targets = drawn.targets[drawn.tested(found.case.n_labels)]
    answers = found.answers
    kept = {
        "targets": hashlib.sha256(targets.tobytes()).hexdigest()[:16],
        "ranks": _packed(np.minimum(answers.ranks, max(TOP)).astype(np.uint8)),
        "truth": _packed(answers.truth.astype(np.int32)),
        "groups": None
        if answers.groups is None
        else _packed(unit_rows(answers.groups, len(targets)).astype(np.int32)),
        "are_texts": answers.groups is not None
        and all(isinstance(unit, TextUnit) for unit in answers.groups),
    }
    return replace(row, facts={**row.facts, _KEPT: kept})


def _packed(numbers: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def _unpacked(kept: Mapping[str, Any]) -> Answers:
    def numbers(name: str, kind: type) -> NDArray[np.int64]:
        return np.frombuffer(zlib.decompress(base64.b64decode(kept[name])), kind).astype(np.int64)

    groups = None if kept["groups"] is None else numbers("groups", np.int32).tolist()
    if groups is not None and kept["are_texts"]:
        groups = [TextUnit(number) for number in groups]
    return Answers(numbers("ranks", np.uint8), numbers("truth", np.int32), groups)


def compared(rows: Sequence[Row], reference: str, encoder: str) -> list[Row]:
    """Return the rows with what each finds more of the same targets than the reference does.

    Measures `top1_gain` and `top5_gain`: the difference to the reference, paired target by target;
    `top5_ratio`: how many times its share (top-5 where there are more than five labels). The fact
    `reference` names it and its encoder. Controls are held against none.

    Parameters
    ----------
    rows : sequence of Row
        Of `with_answers`.
    reference, encoder : str
        The attack that others are held against, and where it reads vectors the encoder.
    """
    against = {_place(row): row for row in rows if _is_reference(row, reference, encoder)}
    return [_held_against(row, against.get(_place(row))) for row in rows]


def _place(row: Row) -> tuple[Any, ...] | None:
    """Return what two rows must have in common to be compared; None where nothing was kept."""
    if _KEPT not in row.facts or row["is_shuffled"]:
        return None
    names = ("split", "labelled_from", "n_labels", "n_per_label", "seed")
    return (*(row[name] for name in names), row.facts[_KEPT]["targets"])


def _is_reference(row: Row, reference: str, encoder: str) -> bool:
    if _place(row) is None or row["attribute_attack"] != reference:
        return False
    return bool(row.get("encoder", encoder) == encoder)


def _held_against(row: Row, other: Row | None) -> Row:
    facts = {name: value for name, value in row.facts.items() if name != _KEPT}
    if other is None or other is row:
        return replace(row, facts=facts)
    one, two = (_unpacked(each.facts[_KEPT]) for each in (row, other))
    seed = int(row["seed"])
    ks = tops(int(row["n_labels"]))
    told: dict[str, Score] = {f"top{k}_gain": difference(one, two, k, seed) for k in ks}
    if 5 in ks:
        told["top5_ratio"] = ratio(one, two, 5, seed)
    facts["reference"] = [str(other.get(name, "")) for name in ("attribute_attack", "encoder")]
    return replace(row, facts=facts, scores={**row.scores, **told})
