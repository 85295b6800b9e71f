"""Disjoint texts for a defence, for later attackers, and under attack, with labels.

Each book is cut into runs of consecutive sentences. Half of the runs of each label train the
defence; the other half are the attacker's, and some of these are attacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.examples import Examples, read_examples
from leakscope.core.corpora import split_reference
from leakscope.core.corpora.near_duplicates import THRESHOLD, near_duplicates
from leakscope.core.errors import InvalidInputError
from leakscope.core.storage.artifacts import digest_file

RUN = 50
"""The number of consecutive texts that stay together."""

LEAST = 20
"""The fewest texts per label, and the fewest targets."""


@dataclass(frozen=True)
class Sizes:
    """The numbers of labels and texts to draw."""

    n_labels: int
    n_defence: int
    n_known: int
    n_targets: int


@dataclass(frozen=True)
class Sides:
    """Labelled texts of the defence and of the attacker, and targets, without overlap.

    Attributes
    ----------
    defence, defence_labels : tuple of str
        To train the defence on.
    pairs, pair_labels : tuple
        Neighbours (x_a, x_b) among them, and the label of each x_b.
    known, known_labels : tuple of str
        The attacker's own, to train on.
    targets, target_labels, target_groups : tuple of str
        Under attack, with the source of each.
    n_near_duplicates : int
        Texts left out of the targets because they nearly repeat a training text.
    """

    defence: tuple[str, ...]
    defence_labels: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    pair_labels: tuple[str, ...]
    known: tuple[str, ...]
    known_labels: tuple[str, ...]
    targets: tuple[str, ...]
    target_labels: tuple[str, ...]
    target_groups: tuple[str, ...]
    n_near_duplicates: int

    def __post_init__(self) -> None:
        """Raise InvalidInputError if a text is in two of the three sets."""
        sides = [set(self.defence), set(self.known), set(self.targets)]
        if sum(map(len, sides)) > len(set.union(*sides)):
            raise InvalidInputError(
                "A text is both trained on and attacked. Provide texts without repetitions."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The labels in alphabetical order."""
        return tuple(sorted(set(self.known_labels)))

    @property
    def label_ids(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The label numbers (places in `names`) of the known texts, and those of the targets."""
        places = {name: i for i, name in enumerate(self.names)}
        known, targets = (
            np.array([places[label] for label in labels], np.int64)
            for labels in (self.known_labels, self.target_labels)
        )
        return known, targets


def table_digest(place: str) -> str:
    """Return a digest of the file of a table, given as FILE or FILE#COLUMN.

    Raises
    ------
    InvalidInputError
        There is no such file.
    """
    path = Path(split_reference(place)[0])
    if not path.is_file():
        raise InvalidInputError(
            f"{path} is not a file. The target must be a table of texts with the attribute, and "
            "each task a table of texts with classes."
        )
    return digest_file(path)[:16]


@lru_cache(maxsize=1)
def load_examples(place: str, label: str, group: str, digest: str) -> Examples:
    """Read the labelled texts of a table, once per process.

    Parameters
    ----------
    digest : str
        What `table_digest` says of it.
    """
    path, column = split_reference(place)
    return read_examples(
        Path(path), label_column=label, group_column=group or None, text_column=column
    )


def part_texts(examples: Examples, sizes: Sizes, seed: int, near: float = THRESHOLD) -> Sides:
    """Draw labels, and split their texts by runs into `Sides`: defence, attacker and targets.

    Parameters
    ----------
    near : float
        From where on a text nearly repeats another; see `leakscope.core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        Too few labels with enough texts, or too few texts of a drawn label.
    """
    rng = np.random.default_rng([seed, 31])
    chosen = _draw_labels(examples, sizes, rng)
    quota = [-(-n // len(chosen)) for n in (sizes.n_defence, sizes.n_known, sizes.n_targets)]
    runs: dict[str, list[list[int]]] = {"defence": [], "known": [], "targets": []}
    seen = set[str]()
    for label, rows in chosen.items():
        shuffled = [list(run) for run in _cut_runs(examples, rows, seen)]
        if len(shuffled) < len(runs):
            raise InvalidInputError(
                f"{examples.name}: the texts of {label!r} form {len(shuffled)} runs of consecutive "
                f"texts, but {len(runs)} are needed: for the defence, for the attacker, and under "
                "attack. Provide more texts, or choose fewer labels."
            )
        order = [shuffled[i] for i in rng.permutation(len(shuffled))]
        half = len(order) // 2
        # A quarter of the attacker's runs can be attacked: no text of them is known.
        attacked = half + max(1, (len(order) - half) // 4)
        for side, own, n in zip(
            runs, (order[:half], order[attacked:], order[half:attacked]), quota, strict=True
        ):
            runs[side] += _take_texts(own, n)
    mixed = {side: [i for run in own for i in run] for side, own in runs.items()}
    # Shuffled, so that texts held out from the end are of every label.
    mixed["known"] = rng.permutation(mixed["known"]).tolist()
    return _make_sides(examples, mixed, runs["defence"], near)


def _draw_labels(
    examples: Examples, sizes: Sizes, rng: np.random.Generator
) -> dict[str, list[int]]:
    """Draw labels among those with enough texts; return the rows of each, by label."""
    of_label: dict[str, list[int]] = {}
    for i, label in enumerate(examples.labels):
        of_label.setdefault(label, []).append(i)
    least = max(LEAST, (sizes.n_defence + sizes.n_known + sizes.n_targets) // sizes.n_labels)
    enough = [label for label, rows in of_label.items() if len(rows) >= least]
    if len(enough) < sizes.n_labels:
        raise InvalidInputError(
            f"{examples.name}: {len(enough)} of {len(of_label)} labels have {least:,} texts, but "
            f"{sizes.n_labels} are needed. Choose fewer labels or fewer texts."
        )
    drawn = sorted(rng.permutation(len(enough))[: sizes.n_labels].tolist())
    return {enough[i]: of_label[enough[i]] for i in drawn}


def _cut_runs(examples: Examples, rows: Sequence[int], seen: set[str]) -> Iterator[list[int]]:
    """Cut the rows of a label into runs of one group, skipping texts in `seen`, which grows."""
    run: list[int] = []
    for row in rows:
        is_other = run and examples.groups and examples.groups[row] != examples.groups[run[-1]]
        if is_other or len(run) == RUN:
            yield run
            run = []
        if examples.texts[row] not in seen:
            seen.add(examples.texts[row])
            run.append(row)
    if run:
        yield run


def _take_texts(runs: Sequence[list[int]], n: int) -> list[list[int]]:
    """Return the first runs that together hold n texts, the last one shortened."""
    found: list[list[int]] = []
    for run in runs:
        left = n - sum(map(len, found))
        if left <= 0:
            break
        found.append(run[:left])
    return found


def _make_sides(
    examples: Examples, rows: dict[str, list[int]], runs: Sequence[list[int]], near: float
) -> Sides:
    """Build `Sides` from the rows of each set, without targets that nearly repeat others."""
    texts, labels = examples.texts, examples.labels
    learnt = [texts[i] for i in (*rows["defence"], *rows["known"])]
    repeated = near_duplicates([texts[i] for i in rows["targets"]], learnt, near)
    targets = [row for place, row in enumerate(rows["targets"]) if place not in repeated]
    if len(targets) < LEAST:
        raise InvalidInputError(
            f"{examples.name}: only {len(targets)} texts remain to attack that do not repeat a "
            f"training text, but {LEAST} are needed. Provide more texts, or train on fewer."
        )
    neighbours = [pair for run in runs for pair in pairwise(run)]
    groups = examples.groups or [str(i) for i in range(len(texts))]
    return Sides(
        tuple(texts[i] for i in rows["defence"]),
        tuple(labels[i] for i in rows["defence"]),
        tuple((texts[a], texts[b]) for a, b in neighbours),
        tuple(labels[b] for _, b in neighbours),
        tuple(texts[i] for i in rows["known"]),
        tuple(labels[i] for i in rows["known"]),
        tuple(texts[i] for i in targets),
        tuple(labels[i] for i in targets),
        tuple(groups[i] for i in targets),
        len(repeated),
    )
