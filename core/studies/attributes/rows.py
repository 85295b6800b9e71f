"""Result rows of attribute attacks: accuracy, its topic share, and confused labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakscope.core.attacks.attributes.answers import (
    Answers,
    difference,
    label_ranks,
    most_confused,
    topic_share,
)
from leakscope.core.attacks.attributes.draw import Draw
from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.experiment import Case, CaseResult, SharedVectors
from leakscope.core.attacks.attributes.parts import cross_fitted
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes.curves import tops
from leakscope.core.vectors import is_sparse

N_MIXED = 10
"""How many confused labels and pairs of labels a row lists."""


def rows_from_cases(
    found: Sequence[CaseResult],
    examples: Examples,
    draws: Mapping[int, Draw],
    shared: SharedVectors | None = None,
) -> list[Row]:
    """Convert case results to rows: accuracy, topic and rest parts, and confused labels.

    At the largest size of each seed, a linear probe on dense vectors is also scored on the topic
    part and on the rest; at the first seed, its confused labels are listed.
    """
    by_case = {each.case: each for each in found}
    largest = _largest_case([each.case for each in found])
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
            scores |= _topic_contrast(same.answers, each.answers, case)
        is_largest = case == replace(largest, seed=case.seed, source=case.source)
        if is_largest and each.linear is not None:
            if shared is not None and not is_sparse(shared.vectors):
                parts, told = _part_accuracies(each, examples, drawn, shared)
                scores, facts = scores | parts, facts | told
            if case.seed == first:
                facts |= _confusions(each, drawn)
        rows.append(Row(scores=scores, facts=facts))
    return rows


def _largest_case(cases: Sequence[Case]) -> Case:
    """Return the unshuffled case with the most labels and texts per label."""
    plain = [case for case in cases if not case.is_shuffled]
    return max(plain, key=lambda case: (case.n_labels, case.n_per_label))


def _facts(each: CaseResult, drawn: Draw) -> dict[str, Any]:
    """Return the facts of a case's row: sizes, source, and numbers of targets and groups."""
    tested = drawn.target_indices(each.case.n_labels)
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


def _topic_contrast(same: Answers, other: Answers, case: Case) -> dict[str, Score]:
    """Return the accuracy lost on the same targets when labelled texts come from other groups."""
    ks, seed = tops(case.n_labels), case.seed
    told = {f"top{k}_lost": difference(same, other, k, seed) for k in ks}
    return told | {f"topic_share_top{k}": topic_share(same, other, k, seed) for k in ks}


def _part_accuracies(
    each: CaseResult, examples: Examples, drawn: Draw, shared: SharedVectors
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return the probe's accuracy on the part that content words predict, and on the rest.

    Their paired difference is included.
    """
    assert each.linear is not None
    tested = drawn.target_indices(each.case.n_labels)
    rows, of = drawn.targets[tested], drawn.groups
    groups = None if of is None else [of[i] for i in tested]
    vectors = shared.vectors[shared.places(rows)]
    try:
        predicted, explained = cross_fitted([examples.texts[i] for i in rows], vectors, groups)
    except InvalidInputError:  # too few texts or groups to learn what they are about
        return {}, {}
    linear, seed, scores = each.linear, each.case.seed, dict[str, Score]()
    topic, rest = (
        replace(each.answers, ranks=label_ranks(linear.scores(part), each.answers.truth))
        for part in (predicted, vectors - predicted + linear.centre)
    )
    for k in tops(each.case.n_labels):
        scores |= {f"top{k}_topic": topic.top(k, seed), f"top{k}_rest": rest.top(k, seed)}
        scores[f"top{k}_topic_gain"] = difference(topic, rest, k, seed)
    return scores, {"topic_r2": round(float(explained), 4)}


def _confusions(each: CaseResult, drawn: Draw) -> dict[str, Any]:
    """Return the labels that a probe confuses most, their shares, and the confused pairs."""
    labels = drawn.labels[: each.case.n_labels]
    found = most_confused(each.answers.truth, each.predicted, labels, N_MIXED)
    return {
        "mixed_labels": list(found.labels),
        "mixed_shares": np.round(found.shares, 4).tolist(),
        "mixed_pairs": [[true, said, round(share, 4)] for true, said, share in found.pairs],
    }


def anonymise_labels(rows: Sequence[Row]) -> list[Row]:
    """Replace the confused labels in rows by `label 1`, `label 2`, …."""
    return [_anonymise_row(row) for row in rows]


def _anonymise_row(row: Row) -> Row:
    """Replace the confused labels of one row by numbered ones, and shorten its error."""
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
