"""Labelled texts read from a file: each text, its attribute label, and the group it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leakscope.core.corpora import Columns, load_corpus
from leakscope.core.errors import InvalidInputError

MOST_LABELS = 2_000
"""The most labels that one attack distinguishes; the paper tests up to 800."""


@dataclass(frozen=True)
class Examples:
    """Texts with attribute labels and optional groups, in file order.

    Attributes
    ----------
    name : str
        Their name in messages.
    texts, labels : tuple of str
        A text each, and its label: author, gender, topic, user.
    groups : tuple of str or None
        The source of each text, such as a book, an article or a user; None if unknown.
    n_unlabelled : int
        Texts of the file without a label, which are left out.

    Raises
    ------
    InvalidInputError
        Unequal lengths, fewer than two labels, or a group whose texts have different labels.
    """

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    n_unlabelled: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidInputError for unequal lengths, fewer than two labels or mixed groups."""
        lengths = {len(self.texts), len(self.labels)}
        if len(lengths | ({len(self.groups)} if self.groups is not None else set())) > 1:
            raise InvalidInputError(
                f"{self.name}: texts, labels and groups must have the same length."
            )
        if len(set(self.labels)) < 2:
            found = f"only one: {self.labels[0]!r}" if self.labels else "none"
            raise InvalidInputError(
                f"{self.name} must contain texts of at least two labels, but has {found}. Name "
                "another label column, or give more texts."
            )
        if self.groups is not None:
            _check_groups(self.name, self.labels, self.groups)


def _check_groups(name: str, labels: Sequence[str], groups: Sequence[str]) -> None:
    """Raise InvalidInputError if a group has texts of several labels."""
    first: dict[str, str] = {}
    for label, group in zip(labels, groups, strict=True):
        if first.setdefault(group, label) != label:
            raise InvalidInputError(
                f"{name}: group {group!r} contains texts of several labels, {first[group]!r} and "
                f"{label!r}; a split by group needs one label per group. Name another group "
                "column, or none."
            )


def read_examples(
    path: Path,
    *,
    label_column: str,
    group_column: str | None = None,
    text_column: str | None = None,
) -> Examples:
    """Read labelled texts from a table file (such as CSV), one a row; skip rows without label.

    Rows without a label are left out, and counted.

    Parameters
    ----------
    label_column : str
        Column of the attribute.
    group_column : str, optional
        Column of the texts' source; texts of one source are never on both sides of a split.
    text_column : str, optional
        The longest text column by default.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be read, a row has a label and no group, fewer than two labels,
        or a group with several labels.
    """
    # A document has no field for its group: the author's field is used.
    columns = Columns(text=text_column, label=label_column, author=group_column)
    documents = load_corpus(Path(path), columns=columns).documents
    labelled = [d for d in documents if d.label is not None]
    if not labelled:
        raise InvalidInputError(
            f"{path}: column {label_column!r} contains no label. Fill it in, or name another."
        )
    groups: tuple[str, ...] | None = None
    if group_column is not None:
        for d in labelled:
            if d.author is None:
                raise InvalidInputError(
                    f"{path}: text {d.id} has no {group_column!r}. Fill in the cell, or name no "
                    "group column."
                )
        groups = tuple(str(d.author) for d in labelled)
    return Examples(
        Path(path).name,
        tuple(d.text for d in labelled),
        tuple(str(d.label) for d in labelled),
        groups,
        len(documents) - len(labelled),
    )
