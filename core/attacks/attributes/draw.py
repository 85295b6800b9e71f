"""What the attacker has labelled, and what is attacked: drawn by group, never by sentence.

A text and its neighbour are about the same. Were one labelled and the other attacked, the attack
would find the chapter, not the author. So what is parted are units of several texts: groups
(books, articles, users), or runs of consecutive texts of a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.examples import Examples
from core.attacks.attributes.limits import MOST_LABELS
from core.corpora.near_duplicates import THRESHOLD, near_duplicates
from core.errors import InvalidInputError
from core.units import units_or_none

__all__ = ["GAP", "MOST_LABELS", "SPLITS", "Draw", "Plan", "draw"]

SPLITS = {
    "row": "every text stands for itself",
    "run": "other runs of consecutive texts, of the same groups or of others",
    "group": "other groups than those attacked",
    "contrast": "twice for the same targets: other runs of their groups, and other groups",
}
"""Where the labelled texts come from, beside those that are attacked."""

GAP = 5
"""Texts at the start of a run that are left out: they go on from the run before."""

Rows = list[int]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many labels and texts are drawn, and how they are parted.

    Attributes
    ----------
    n_labels : int
        |S|; 0 for all that have enough texts.
    n_per_label : int
        N_s, labelled texts of each.
    n_targets : int
        Texts under attack of each label at most (SR20: 250).
    split : str
        One of SPLITS.
    run_length : int
        Consecutive texts of a group that are one run.
    near : float
        From where on a target nearly repeats a labelled text, and is left out; see
        `core.corpora.near_duplicates`.
    """

    n_labels: int = 0
    n_per_label: int = 10
    n_targets: int = 250
    split: str = "row"
    run_length: int = 50
    near: float = THRESHOLD
    seed: int = 0


@dataclass(frozen=True)
class Draw:
    """Rows of examples: labelled ones and targets.

    Attributes
    ----------
    labels : tuple of str
        S, in an order of chance: the first |S| of them are a draw of |S|.
    known : mapping of str to ndarray of int64, shape (|S|, N_s)
        Rows of the labelled texts of each label, the first N_s of which are a draw of N_s; by
        where they come from: `run`, `group` and so on, and of a contrast `same_group` and `group`.
    targets, truth : ndarray of int64, shape (n,)
        Rows of the targets, and the number of each one's label in `labels`.
    groups : tuple of str or None
        What each target comes from.
    units : tuple or None
        The unit of each target (`core.units.units_or_none`); None where each target is its own.
    n_drawn : tuple of int
        How many targets of each label were drawn, before any was left out: how frequent labels are
        among the texts attacked.
    n_left_out : int
        Labels that have too few texts.
    n_near_duplicates : int
        Targets that were left out, since they nearly repeat a labelled text.
    """

    labels: tuple[str, ...]
    known: Mapping[str, NDArray[np.int64]]
    targets: NDArray[np.int64]
    truth: NDArray[np.int64]
    groups: tuple[str, ...] | None
    units: tuple[Hashable, ...] | None = None
    n_drawn: tuple[int, ...] = ()
    n_left_out: int = 0
    n_near_duplicates: int = 0

    def training(
        self, source: str, n_labels: int, n_per_label: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows and label numbers of the labelled texts of a smaller draw."""
        rows = self.known[source][:n_labels, :n_per_label]
        return rows.ravel(), np.repeat(np.arange(len(rows)), rows.shape[1])

    def tested(self, n_labels: int) -> NDArray[np.intp]:
        """Return which of the targets belong to a draw of fewer labels."""
        return np.flatnonzero(self.truth < n_labels)


@dataclass(frozen=True)
class _Parted:
    """The rows of one label: labelled ones by where they come from, and those to attack."""

    known: Mapping[str, Rows]
    held: Rows


def draw(examples: Examples, plan: Plan) -> Draw:
    """Draw labels, labelled texts and targets.

    The targets are the same whatever N_s is of a smaller draw, and in a contrast they are the same
    for both sources.

    Raises
    ------
    InvalidInputError
        No such split; a split by group of texts without groups; fewer labels with enough texts
        than asked for; or more than MOST_LABELS.
    """
    _check(examples, plan)
    rng = np.random.default_rng([plan.seed, 11])
    of_label: dict[str, Rows] = {}
    for i, label in enumerate(examples.labels):
        of_label.setdefault(label, []).append(i)
    names = list(of_label)
    order = rng.permutation(len(names))
    parted: dict[str, _Parted] = {}
    n_tried = 0
    for i in order.tolist():
        if plan.n_labels and len(parted) == plan.n_labels:
            break
        n_tried += 1
        # Each label has its own chance: it does not hang on those before it.
        own = np.random.default_rng([plan.seed, 12, i])
        found = _part_label(examples, of_label[names[i]], plan, own)
        if found is not None:
            parted[names[i]] = found
        if len(parted) > MOST_LABELS:
            raise InvalidInputError(
                f"{examples.name} has {len(names):,} labels, and more than {MOST_LABELS:,} of them "
                f"have enough texts. At most {MOST_LABELS:,} are told apart at once: ask for fewer "
                "labels, which are then drawn, or name another column."
            )
    n_left_out = n_tried - len(parted)
    _check_enough(examples, plan, n_found=len(parted), n_all=len(names))
    return _without_repetitions(examples, plan, parted, n_left_out)


def _check(examples: Examples, plan: Plan) -> None:
    if plan.split not in SPLITS:
        raise InvalidInputError(f"split must be one of {', '.join(SPLITS)}, got {plan.split!r}.")
    if plan.split != "row" and examples.groups is None:
        raise InvalidInputError(
            f"A split by {plan.split} needs to know what each text comes from. Name a column of "
            "groups, or split by row."
        )
    for name, low in (("n_labels", 0), ("n_per_label", 1), ("n_targets", 1), ("run_length", 1)):
        if getattr(plan, name) < low:
            raise InvalidInputError(f"{name} must be at least {low}, got {getattr(plan, name)}.")
    if plan.n_labels == 1 or plan.n_labels > MOST_LABELS:
        raise InvalidInputError(
            f"Between 2 and {MOST_LABELS:,} labels are told apart, not {plan.n_labels:,}."
        )


def _check_enough(examples: Examples, plan: Plan, *, n_found: int, n_all: int) -> None:
    wanted = plan.n_labels or 2
    if n_found >= wanted:
        return
    of_groups = " of two groups" if plan.split in ("group", "contrast") else ""
    raise InvalidInputError(
        f"{examples.name}: {n_found:,} of {n_all:,} labels have {plan.n_per_label} labelled texts "
        f"and others to attack{of_groups} (split by {plan.split}), and {wanted:,} are needed. Ask "
        "for fewer texts per label, for fewer labels, or give more texts."
    )


def _part_label(
    examples: Examples, rows: Rows, plan: Plan, rng: np.random.Generator
) -> _Parted | None:
    """Part the rows of one label; None where they are too few."""
    groups = examples.groups if plan.split != "row" else None
    units: dict[str, Rows] = {}
    for row in rows:
        units.setdefault(f"{row}" if groups is None else groups[row], []).append(row)
    n = plan.n_per_label
    if plan.split == "run":
        by_run = [run for unit in units.values() for run in _runs(unit, plan.run_length)]
        known, held = _part(by_run, n, rng)
        found = {"run": known}
    elif plan.split == "contrast":
        other_groups, target_groups = _part_units(list(units.values()), n, rng)
        by_run = [run for unit in target_groups for run in _runs(unit, plan.run_length)]
        same, held = _part(by_run, n, rng)
        found = {"same_group": same, "group": list(chain(*other_groups))}
    else:
        known_rows, held = _part(list(units.values()), n, rng)
        found = {plan.split: known_rows}
    if not held or any(len(rows) < n for rows in found.values()):
        return None
    drawn = {source: _some(rows, n, rng) for source, rows in found.items()}
    return _Parted(drawn, _some(held, plan.n_targets, rng))


def _runs(rows: Rows, length: int) -> Iterator[Rows]:
    """Cut the rows of a group into runs; the first texts of each but the first are left out."""
    for start in range(0, len(rows), length):
        run = rows[start + (min(GAP, length - 1) if start else 0) : start + length]
        if run:
            yield run


def _part_units(
    units: Sequence[Rows], n: int, rng: np.random.Generator
) -> tuple[list[Rows], list[Rows]]:
    """Part units by chance: half of them known, or more where n rows need more; one is held."""
    order = [units[i] for i in rng.permutation(len(units))]
    n_known = len(order) // 2
    while n_known < len(order) - 1 and sum(map(len, order[:n_known])) < n:
        n_known += 1
    return order[:n_known], order[n_known:]


def _part(units: Sequence[Rows], n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    known, held = _part_units(units, n, rng)
    return list(chain(*known)), list(chain(*held))


def _some(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    return [rows[i] for i in rng.permutation(len(rows))[:n]]


def _without_repetitions(
    examples: Examples, plan: Plan, parted: Mapping[str, _Parted], n_left_out: int
) -> Draw:
    """Return the draw without targets that nearly repeat what is labelled, whatever its label.

    Labels of which no target is left come last: they can be answered, and however few labels take
    part, somebody is attacked.
    """
    texts = examples.texts
    targets = [row for part in parted.values() for row in part.held]
    truth = [i for i, part in enumerate(parted.values()) for _ in part.held]
    rows = {row for part in parted.values() for known in part.known.values() for row in known}
    repeated = near_duplicates(
        [texts[row] for row in targets], (texts[row] for row in sorted(rows)), plan.near
    )
    kept = [i for i in range(len(targets)) if i not in repeated]
    if not kept:
        raise InvalidInputError(
            f"{examples.name}: each of the {len(targets):,} texts that could be attacked nearly "
            "repeats a labelled one. Give other texts."
        )
    has_targets = {truth[i] for i in kept}
    order = sorted(range(len(parted)), key=lambda label: label not in has_targets)
    place = {label: new for new, label in enumerate(order)}
    names, parts = list(parted), list(parted.values())
    names, parts = [names[i] for i in order], [parts[i] for i in order]
    of_group = examples.groups
    groups = None if of_group is None else tuple(of_group[targets[i]] for i in kept)
    return Draw(
        tuple(names),
        {s: np.array([p.known[s] for p in parts], np.int64) for s in parts[0].known},
        np.array([targets[i] for i in kept], np.int64),
        np.array([place[truth[i]] for i in kept], np.int64),
        groups,
        units_or_none([texts[targets[i]] for i in kept], groups),
        tuple(len(part.held) for part in parts),
        n_left_out,
        len(repeated),
    )
