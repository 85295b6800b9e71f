"""What attacks on an attribute found, as rows: accuracy, its topic, and the labels mixed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.attacks.attributes.answers import (
    Answers,
    difference,
    mixed_up,
    ranks_of,
    topic_share,
)
from core.attacks.attributes.draw import Draw
from core.attacks.attributes.examples import Examples
from core.attacks.attributes.experiment import Case, Found, Shared
from core.attacks.attributes.parts import cross_fitted
from core.errors import InvalidInputError
from core.results import Score
from core.studies.attribute_curves import tops
from core.studies.rows import Row
from core.vectors import is_sparse

__all__ = ["anonymised", "rows_of_found"]

N_MIXED = 10
"""Labels and pairs of labels that are told of those that are mixed up."""


def rows_of_found(
    found: Sequence[Found],
    examples: Examples,
    draws: Mapping[int, Draw],
    shared: Shared | None = None,
) -> list[Row]:
    """Return a row a case; of a contrast, what other groups lose stands with other groups.

    At the largest size of each seed a dense linear probe is told apart by the parts of the vector,
    and at the first seed the labels that it mixes up.
    """
    by_case = {each.case: each for each in found}
    largest = _largest([each.case for each in found])
    first = min(draws)
    rows = []
    for each in found:
        case, drawn = each.case, draws[each.case.seed]
        scores = {f"top{k}": each.answers.top(k, case.seed) for k in tops(case.n_labels)}
        if each.answers.is_unequal:
            scores["balanced"] = each.answers.balanced(case.seed)
        facts = _facts(each, drawn)
        same = by_case.get(replace(case, source="same_group"))
        if same is not None and case.source == "group" and not case.is_shuffled:
            scores |= _contrast(same.answers, each.answers, case)
        is_largest = case == replace(largest, seed=case.seed, source=case.source)
        if is_largest and each.linear is not None:
            if shared is not None and not is_sparse(shared.vectors):
                parts, told = _parts(each, examples, drawn, shared)
                scores, facts = scores | parts, facts | told
            if case.seed == first:
                facts |= _mixed(each, drawn)
        rows.append(Row(scores=scores, facts=facts))
    return rows


def _largest(cases: Sequence[Case]) -> Case:
    plain = [case for case in cases if not case.is_shuffled]
    return max(plain, key=lambda case: (case.n_labels, case.n_per_label))


def _facts(each: Found, drawn: Draw) -> dict[str, Any]:
    tested = drawn.tested(each.case.n_labels)
    groups = None if drawn.groups is None else {drawn.groups[i] for i in tested}
    return {
        "seed": each.case.seed,
        "labelled_from": each.case.source,
        "n_labels": each.case.n_labels,
        "n_per_label": each.case.n_per_label,
        "is_shuffled": each.case.is_shuffled,
        "n": len(each.answers.truth),
        "n_groups": None if groups is None else len(groups),
        "n_left_out": drawn.n_left_out,
        "n_near_duplicates": drawn.n_near_duplicates,
    }


def _contrast(same: Answers, other: Answers, case: Case) -> dict[str, Score]:
    """Return what the same targets lose where labelled texts come from other groups."""
    ks, seed = tops(case.n_labels), case.seed
    told = {f"top{k}_lost": difference(same, other, k, seed) for k in ks}
    return told | {f"topic_share_top{k}": topic_share(same, other, k, seed) for k in ks}


def _parts(
    each: Found, examples: Examples, drawn: Draw, shared: Shared
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return the accuracy that the probe has of what content words tell, and of the rest alone.

    And by how much more targets the first tells, of the same ones.
    """
    assert each.linear is not None
    tested = drawn.tested(each.case.n_labels)
    rows, of = drawn.targets[tested], drawn.groups
    groups = None if of is None else [of[i] for i in tested]
    vectors = shared.vectors[shared.places(rows)]
    try:
        predicted, explained = cross_fitted([examples.texts[i] for i in rows], vectors, groups)
    except InvalidInputError:  # too few texts or groups to learn what they are about
        return {}, {}
    linear, seed, scores = each.linear, each.case.seed, dict[str, Score]()
    topic, rest = (
        replace(each.answers, ranks=ranks_of(linear.scores(part), each.answers.truth))
        for part in (predicted, vectors - predicted + linear.centre)
    )
    for k in tops(each.case.n_labels):
        scores |= {f"top{k}_topic": topic.top(k, seed), f"top{k}_rest": rest.top(k, seed)}
        scores[f"top{k}_topic_gain"] = difference(topic, rest, k, seed)
    return scores, {"topic_r2": round(float(explained), 4)}


def _mixed(each: Found, drawn: Draw) -> dict[str, Any]:
    labels = drawn.labels[: each.case.n_labels]
    found = mixed_up(each.answers.truth, each.said, labels, N_MIXED)
    return {
        "mixed_labels": list(found.labels),
        "mixed_shares": np.round(found.shares, 4).tolist(),
        "mixed_pairs": [[true, said, round(share, 4)] for true, said, share in found.pairs],
    }


def anonymised(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with `label 1`, `label 2`, … for the labels that a probe mixes up."""
    return [_without_labels(row) for row in rows]


def _without_labels(row: Row) -> Row:
    facts = row.facts
    if "mixed_labels" in facts:
        labels, pairs = facts["mixed_labels"], facts["mixed_pairs"]
        known = dict.fromkeys([*labels, *(name for pair in pairs for name in pair[:2])])
        named = {name: f"label {i}" for i, name in enumerate(known, 1)}
        facts = {
            **facts,
            "mixed_labels": [named[name] for name in labels],
            "mixed_pairs": [[named[true], named[said], share] for true, said, share in pairs],
        }
    # A message may quote a label.
    return replace(row, facts=facts, error=row.error.partition(":")[0])
