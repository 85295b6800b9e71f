"""Result rows of attribute attacks: accuracy, its topic share, and confused labels.

Attacks are compared with a reference attack on the same targets: each is measured by itself, and
its row stores its answers, target by target. Once all are measured, they are compared; the written
rows omit the answers.
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

from leakscope.core.attacks.attributes.answers import (
    Answers,
    difference,
    label_ranks,
    most_confused,
    ratio,
    topic_share,
)
from leakscope.core.attacks.attributes.draw import Draw
from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.experiment import Case, CaseResult, SharedVectors
from leakscope.core.attacks.attributes.parts import cross_fitted
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes.curves import TOP, tops
from leakscope.core.units import TextUnit, cluster_ids
from leakscope.core.vectors import is_sparse

_KEPT = "answers"
"""The fact of a row that holds its answers, until attacks are compared."""

N_MIXED = 10
"""How many confused labels and pairs of labels a row lists."""


def rows_from_cases(
    found: Sequence[CaseResult],
    examples: Examples,
    draws: Mapping[int, Draw],
    shared: SharedVectors | None = None,
) -> list[Row]:
    """Convert case results to rows: accuracies, those of topic and rest, and confused labels.

    At the largest size of each seed, a linear probe on dense vectors is also scored on the topic
    part and on the rest; at the first seed, its confused labels are listed.
    """
    by_case = {each.case: each for each in found}
    plain = [each.case for each in found if not each.case.is_shuffled]
    largest = max(plain, key=lambda case: (case.n_labels, case.n_per_label))
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
                parts, told = _score_topic_and_rest(each, examples, drawn, shared)
                scores, facts = scores | parts, facts | told
            if case.seed == first:
                facts |= _confusion_facts(each, drawn)
        rows.append(Row(scores=scores, facts=facts))
    return rows


def _facts(each: CaseResult, drawn: Draw) -> dict[str, Any]:
    """Return the facts of a case's row as a dict: sizes, source, numbers of targets and groups."""
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
    """Return by name the accuracy lost if labelled texts are of other groups, and its share."""
    ks, seed = tops(case.n_labels), case.seed
    told = {f"top{k}_lost": difference(same, other, k, seed) for k in ks}
    return told | {f"topic_share_top{k}": topic_share(same, other, k, seed) for k in ks}


def _score_topic_and_rest(
    each: CaseResult, examples: Examples, drawn: Draw, shared: SharedVectors
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Score a probe on the vectors that content words predict, and on what remains of them.

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


def _confusion_facts(each: CaseResult, drawn: Draw) -> dict[str, Any]:
    """Return, as facts, the labels that a probe confuses most, their shares, and the pairs."""
    labels = drawn.labels[: each.case.n_labels]
    found = most_confused(each.answers.truth, each.predicted, labels, N_MIXED)
    return {
        "mixed_labels": list(found.labels),
        "mixed_shares": np.round(found.shares, 4).tolist(),
        "mixed_pairs": [[true, said, round(share, 4)] for true, said, share in found.pairs],
    }


def anonymise_labels(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose confused labels are `label 1`, `label 2`, …, with shortened errors."""
    found = []
    for row in rows:
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
        found.append(replace(row, facts=facts, error=row.error.partition(":")[0]))
    return found


def with_answers(row: Row, found: CaseResult, drawn: Draw) -> Row:
    """Return a row that also stores a case's answers, for a later paired comparison."""
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
    """Compress an integer array to a base64 string."""
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def _unpack(kept: Mapping[str, Any]) -> Answers:
    """Decode the answers that `with_answers` stored in a row."""

    def numbers(name: str, kind: type) -> NDArray[np.int64]:
        """Decompress one stored array, given by its name, to integers."""
        return np.frombuffer(zlib.decompress(base64.b64decode(kept[name])), kind).astype(np.int64)

    groups = None if kept["groups"] is None else numbers("groups", np.int32).tolist()
    if groups is not None and kept["are_texts"]:
        groups = [TextUnit(number) for number in groups]
    return Answers(numbers("ranks", np.uint8), numbers("truth", np.int32), groups)


def with_gains(rows: Sequence[Row], reference: str, encoder: str) -> list[Row]:
    """Return rows with paired gains over a reference attack, without the stored answers.

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
    against = {
        _comparison_key(row): row
        for row in rows
        if row["attribute_attack"] == reference and row.get("encoder", encoder) == encoder
    }
    against.pop(None, None)
    return [_with_gain(row, against.get(_comparison_key(row))) for row in rows]


def _comparison_key(row: Row) -> tuple[Any, ...] | None:
    """Return what two rows must share to be compared; None for a control or without answers."""
    if _KEPT not in row.facts or row["is_shuffled"]:
        return None
    names = ("split", "labelled_from", "n_labels", "n_per_label", "seed")
    return (*(row[name] for name in names), row.facts[_KEPT]["targets"])


def _with_gain(row: Row, other: Row | None) -> Row:
    """Return a row with its paired gain over a reference row, without its stored answers."""
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
