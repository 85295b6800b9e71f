"""Whose texts a defence is trained on, and those of the attackers that come after it: new ones.

Each book is cut into runs of consecutive sentences. Half of the runs of each label are the
defence's; the other half are the attacker's, some of them under attack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from core.attacks.attributes.examples import Examples, read_examples
from core.corpora import split_reference
from core.corpora.near_duplicates import THRESHOLD, near_duplicates
from core.errors import InvalidInputError
from core.store import digest_file

__all__ = ["Sides", "Sizes", "open_examples", "part_texts", "table_digest"]

RUN = 50
"""Consecutive texts that stay on one side."""

LEAST = 20
"""Texts of each side of each label at least, over all labels."""


@dataclass(frozen=True)
class Sizes:
    """How many labels and texts are drawn."""

    n_labels: int
    n_defence: int
    n_known: int
    n_targets: int


@dataclass(frozen=True)
class Sides:
    """The texts of the defence, and those of the attacker.

    Attributes
    ----------
    defence, defence_labels : tuple of str
        To train the defence on.
    pairs, pair_labels : tuple
        Neighbours (x_a, x_b) among them, and the label of each x_b.
    known, known_labels : tuple of str
        The attacker's own, to train on.
    targets, target_labels, target_groups : tuple of str
        Under attack, and what each comes from.
    n_near_duplicates : int
        Texts that could not be attacked: they nearly repeat one that a side was trained on.
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
        """Check that no text is on two sides."""
        sides = [set(self.defence), set(self.known), set(self.targets)]
        if sum(map(len, sides)) > len(set.union(*sides)):
            raise InvalidInputError(
                "A text is trained on and attacked. Give texts without repetitions."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The labels in a fixed order."""
        return tuple(sorted(set(self.known_labels)))


def table_digest(place: str) -> str:
    """Return what identifies the content of a table of texts, told as FILE or FILE#COLUMN.

    Raises
    ------
    InvalidInputError
        There is no such file.
    """
    path = Path(split_reference(place)[0])
    if not path.is_file():
        raise InvalidInputError(
            f"{path} is no file: the target is a table of texts with the attribute, and each task "
            "a table of texts with classes."
        )
    return digest_file(path)[:16]


@lru_cache(maxsize=1)
def open_examples(place: str, label: str, group: str, digest: str) -> Examples:
    """Return the labelled texts of a table, read once a process.

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
    """Draw labels, and part their texts by runs.

    Parameters
    ----------
    near : float
        From where on a text nearly repeats another; see `core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        Too few labels with enough texts, or too few texts of one that is drawn.
    """
    rng = np.random.default_rng([seed, 31])
    chosen = _labels_of(examples, sizes, rng)
    quota = [-(-n // len(chosen)) for n in (sizes.n_defence, sizes.n_known, sizes.n_targets)]
    runs: dict[str, list[list[int]]] = {"defence": [], "known": [], "targets": []}
    seen = set[str]()
    for label, rows in chosen.items():
        shuffled = [list(run) for run in _runs(examples, rows, seen)]
        if len(shuffled) < len(runs):
            raise InvalidInputError(
                f"{examples.name}: the texts of {label!r} make {len(shuffled)} runs of texts that "
                f"stand together, and {len(runs)} are needed: for the defence, for the attacker, "
                "and under attack. Give more texts, or ask for fewer labels."
            )
        order = [shuffled[i] for i in rng.permutation(len(shuffled))]
        half = len(order) // 2
        # A quarter of the attacker's runs can be attacked: neighbours of none that is known.
        attacked = half + max(1, (len(order) - half) // 4)
        for side, own, n in zip(
            runs, (order[:half], order[attacked:], order[half:attacked]), quota, strict=True
        ):
            runs[side] += _first(own, n)
    mixed = {side: [i for run in own for i in run] for side, own in runs.items()}
    # Whoever sets some of his texts aside takes them of every label.
    mixed["known"] = rng.permutation(mixed["known"]).tolist()
    return _sides(examples, mixed, runs["defence"], near)


def _labels_of(examples: Examples, sizes: Sizes, rng: np.random.Generator) -> dict[str, list[int]]:
    """Return the rows of the labels that are drawn among those with the most texts needed."""
    of_label: dict[str, list[int]] = {}
    for i, label in enumerate(examples.labels):
        of_label.setdefault(label, []).append(i)
    least = max(LEAST, (sizes.n_defence + sizes.n_known + sizes.n_targets) // sizes.n_labels)
    enough = [label for label, rows in of_label.items() if len(rows) >= least]
    if len(enough) < sizes.n_labels:
        raise InvalidInputError(
            f"{examples.name}: {len(enough)} of {len(of_label)} labels have {least:,} texts, and "
            f"{sizes.n_labels} are asked for. Ask for fewer labels or fewer texts."
        )
    drawn = sorted(rng.permutation(len(enough))[: sizes.n_labels].tolist())
    return {enough[i]: of_label[enough[i]] for i in drawn}


def _runs(examples: Examples, rows: Sequence[int], seen: set[str]) -> Iterator[list[int]]:
    """Cut the rows of a label into runs of one group; a text that came before is left out."""
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


def _first(runs: Sequence[list[int]], n: int) -> list[list[int]]:
    """Return runs until there are n texts, the last cut short."""
    found: list[list[int]] = []
    for run in runs:
        left = n - sum(map(len, found))
        if left <= 0:
            break
        found.append(run[:left])
    return found


def _sides(
    examples: Examples, rows: dict[str, list[int]], runs: Sequence[list[int]], near: float
) -> Sides:
    texts, labels = examples.texts, examples.labels
    learnt = [texts[i] for i in (*rows["defence"], *rows["known"])]
    repeated = near_duplicates([texts[i] for i in rows["targets"]], learnt, near)
    targets = [row for place, row in enumerate(rows["targets"]) if place not in repeated]
    if len(targets) < LEAST:
        raise InvalidInputError(
            f"{examples.name}: {len(targets)} texts are left to attack that repeat none, and "
            f"{LEAST} are needed. Give more texts, or ask for fewer to train on."
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
