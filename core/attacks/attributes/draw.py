"""Split labelled texts into the attacker's training texts and the targets, by group.

Neighbouring texts share their topic. If one were labelled and the other attacked, the attack would
recognise the chapter, not the author. So the split is by units of several texts: groups (books,
articles, users), or runs of consecutive texts of a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.examples import MOST_LABELS, Examples
from leakscope.core.corpora.near_duplicates import THRESHOLD, near_duplicates
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import setting, validate_settings
from leakscope.core.units import units_or_none

SPLITS = {
    "row": "other texts, whatever their group",
    "run": "other runs of consecutive texts, of the same or other groups",
    "group": "other groups than the targets",
    "contrast": "twice for the same targets: other runs of their groups, and other groups",
}
"""Where the labelled texts come from, relative to the targets."""

GAP = 5
"""Texts left out at the start of a run, because they continue the run before."""

Rows = list[int]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many labels, labelled texts and targets to draw, and how to split them.

    In SR20, `n_labels` is |S| (0 for all labels with enough texts) and `n_per_label` is N_s. A
    target with a similarity of `near` or more (`leakscope.core.corpora.near_duplicates`) is left
    out.
    """

    n_per_label: int = setting(10, "labelled texts per label", low=1)
    n_labels: int = setting(
        0,
        f"labels, drawn at random, 2 to {MOST_LABELS:,}; a file may have more; 0: all with enough "
        f"texts, refused if these are more than {MOST_LABELS:,}",
        low=0,
        high=MOST_LABELS,
    )
    n_targets: int = setting(250, "targets per label at most", low=1, paper="SR20")
    split: str = setting("row", "where labelled texts come from", choices=tuple(SPLITS))
    run_length: int = setting(50, "consecutive texts of a group that are one run", low=1)
    near: float = setting(THRESHOLD, "similarity from which a target repeats a labelled text")
    seed: int = setting(0, "random seed of the draw", low=0)


@dataclass(frozen=True)
class Draw:
    """A drawn split: row numbers of the labelled examples and of the targets.

    Attributes
    ----------
    labels : tuple of str
        S, in random order: the first |S| of them are a draw of |S|.
    known : mapping of str to ndarray of int64, shape (|S|, N_s)
        Rows of the labelled texts of each label, the first N_s of which are a draw of N_s, by
        source: `run`, `group` and so on; `same_group` and `group` for a contrast.
    targets, truth : ndarray of int64, shape (n,)
        Rows of the targets, and the number of each one's label in `labels`.
    groups : tuple of str or None
        The source of each target.
    units : tuple or None
        The sampling unit of each target (`leakscope.core.units.units_or_none`); None if each target
        is its own unit.
    n_drawn : tuple of int
        Targets drawn of each label, before any was left out: how frequent each label is among the
        texts attacked.
    n_left_out : int
        Labels with too few texts.
    n_near_duplicates : int
        Targets left out because they nearly repeat a labelled text.
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
        """Return the training texts' rows and labels, cut to fewer labels or texts per label."""
        rows = self.known[source][:n_labels, :n_per_label]
        return rows.ravel(), np.repeat(np.arange(len(rows)), rows.shape[1])

    def target_indices(self, n_labels: int) -> NDArray[np.intp]:
        """Return the indices of the targets whose label is among the first n_labels."""
        return np.flatnonzero(self.truth < n_labels)


_LabelSplit = tuple[Mapping[str, Rows], Rows]
"""The rows of one label: labelled rows by their source, and the targets."""


def draw(examples: Examples, plan: Plan) -> Draw:
    """Draw labels at random, then labelled texts and targets of each label, by a plan.

    The targets do not depend on the N_s of a smaller draw. In a contrast they are the same for both
    sources.

    Raises
    ------
    InvalidInputError
        No such split; a split by group of texts without groups; fewer labels with enough texts
        than asked for; or more than MOST_LABELS.
    """
    validate_settings(plan)
    if plan.split != "row" and examples.groups is None:
        raise InvalidInputError(
            f"A split by {plan.split} needs the source of each text. Name a column of groups, or "
            "split by row."
        )
    if plan.n_labels == 1:
        raise InvalidInputError(f"Ask for 2 to {MOST_LABELS:,} labels, not 1.")
    rng = np.random.default_rng([plan.seed, 11])
    of_label: dict[str, Rows] = {}
    for i, label in enumerate(examples.labels):
        of_label.setdefault(label, []).append(i)
    names = list(of_label)
    order = rng.permutation(len(names))
    parted: dict[str, _LabelSplit] = {}
    n_tried = 0
    for i in order.tolist():
        if plan.n_labels and len(parted) == plan.n_labels:
            break
        n_tried += 1
        # Each label has its own generator, so its draw does not depend on earlier labels.
        own = np.random.default_rng([plan.seed, 12, i])
        found = _split_label(examples, of_label[names[i]], plan, own)
        if found is not None:
            parted[names[i]] = found
        if len(parted) > MOST_LABELS:
            raise InvalidInputError(
                f"{examples.name} has {len(names):,} labels, and more than {MOST_LABELS:,} of them "
                f"have enough texts. At most {MOST_LABELS:,} are distinguished at once: ask for "
                "fewer labels, which are then drawn at random, or name another column."
            )
    n_left_out = n_tried - len(parted)
    _check_enough(examples, plan, n_found=len(parted), n_all=len(names))
    return _build_draw(examples, plan, parted, n_left_out)


def _check_enough(examples: Examples, plan: Plan, *, n_found: int, n_all: int) -> None:
    """Raise InvalidInputError if too few labels have the texts that the plan asks for."""
    wanted = plan.n_labels or 2
    if n_found >= wanted:
        return
    of_groups = " of two groups" if plan.split in ("group", "contrast") else ""
    raise InvalidInputError(
        f"{examples.name}: {n_found:,} of {n_all:,} labels have {plan.n_per_label} labelled texts "
        f"and more to attack{of_groups} (split by {plan.split}); {wanted:,} are needed. Ask for "
        "fewer texts per label or fewer labels, or give more texts."
    )


def _split_label(
    examples: Examples, rows: Rows, plan: Plan, rng: np.random.Generator
) -> _LabelSplit | None:
    """Draw labelled rows and targets from the rows of one label; None if they are too few."""
    groups = examples.groups if plan.split != "row" else None
    units: dict[str, Rows] = {}
    for row in rows:
        units.setdefault(f"{row}" if groups is None else groups[row], []).append(row)
    n = plan.n_per_label
    if plan.split == "run":
        by_run = [run for unit in units.values() for run in _cut_runs(unit, plan.run_length)]
        known, held = _split_rows(by_run, n, rng)
        found = {"run": known}
    elif plan.split == "contrast":
        other_groups, target_groups = _split_units(list(units.values()), n, rng)
        by_run = [run for unit in target_groups for run in _cut_runs(unit, plan.run_length)]
        same, held = _split_rows(by_run, n, rng)
        found = {"same_group": same, "group": list(chain(*other_groups))}
    else:
        known_rows, held = _split_rows(list(units.values()), n, rng)
        found = {plan.split: known_rows}
    if not held or any(len(rows) < n for rows in found.values()):
        return None
    drawn = {source: _sample(rows, n, rng) for source, rows in found.items()}
    return drawn, _sample(held, plan.n_targets, rng)


def _cut_runs(rows: Rows, length: int) -> Iterator[Rows]:
    """Yield the rows of a group in runs; drop the first GAP rows of every run but the first."""
    for start in range(0, len(rows), length):
        run = rows[start + (min(GAP, length - 1) if start else 0) : start + length]
        if run:
            yield run


def _split_units(
    units: Sequence[Rows], n: int, rng: np.random.Generator
) -> tuple[list[Rows], list[Rows]]:
    """Split groups of rows at random: half labelled, or more if n rows need it; rest targets."""
    order = [units[i] for i in rng.permutation(len(units))]
    n_known = len(order) // 2
    while n_known < len(order) - 1 and sum(map(len, order[:n_known])) < n:
        n_known += 1
    return order[:n_known], order[n_known:]


def _split_rows(units: Sequence[Rows], n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Split groups of rows at random; return all labelled rows and all target rows."""
    known, held = _split_units(units, n, rng)
    return list(chain(*known)), list(chain(*held))


def _sample(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    """Draw n rows at random without replacement; all rows if they are fewer."""
    return [rows[i] for i in rng.permutation(len(rows))[:n]]


def _build_draw(
    examples: Examples, plan: Plan, parted: Mapping[str, _LabelSplit], n_left_out: int
) -> Draw:
    """Build the draw, leaving out targets that nearly repeat any labelled text.

    Labels with no target left come last, so that the first labels always have targets.
    """
    texts = examples.texts
    targets = [row for _, own in parted.values() for row in own]
    truth = [i for i, (_, own) in enumerate(parted.values()) for _ in own]
    rows = {
        row for by_source, _ in parted.values() for known in by_source.values() for row in known
    }
    repeated = near_duplicates(
        [texts[row] for row in targets], (texts[row] for row in sorted(rows)), plan.near
    )
    kept = [i for i in range(len(targets)) if i not in repeated]
    if not kept:
        raise InvalidInputError(
            f"{examples.name}: each of the {len(targets):,} possible targets nearly repeats a "
            "labelled text. Give other texts."
        )
    has_targets = {truth[i] for i in kept}
    order = sorted(range(len(parted)), key=lambda label: label not in has_targets)
    place = {label: new for new, label in enumerate(order)}
    names, parts = list(parted), [list(parted.values())[i] for i in order]
    of_group = examples.groups
    groups = None if of_group is None else tuple(of_group[targets[i]] for i in kept)
    return Draw(
        tuple(names[i] for i in order),
        {s: np.array([known[s] for known, _ in parts], np.int64) for s in parts[0][0]},
        np.array([targets[i] for i in kept], np.int64),
        np.array([place[truth[i]] for i in kept], np.int64),
        groups,
        units_or_none([texts[targets[i]] for i in kept], groups),
        tuple(len(own) for _, own in parts),
        n_left_out,
        len(repeated),
    )
