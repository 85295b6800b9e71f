"""Labelled texts of any file: the text, the attribute that is inferred, and what it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.corpora import Columns, load_corpus
from core.errors import InvalidInputError

__all__ = ["Examples", "read_examples"]


@dataclass(frozen=True)
class Examples:
    """Texts with an attribute, in the order of their file.

    Attributes
    ----------
    name : str
        How messages call them.
    texts, labels : tuple of str
        A text each, and its label: author, gender, topic, user.
    groups : tuple of str or None
        What each text comes from, such as a book, an article or a user; None where it is not known.
    n_unlabelled : int
        Texts of the file that have no label, and are not among these.

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
        lengths = {len(self.texts), len(self.labels)}
        if len(lengths | ({len(self.groups)} if self.groups is not None else set())) > 1:
            raise InvalidInputError(
                f"{self.name}: texts, labels and groups must be as many as each other."
            )
        if len(set(self.labels)) < 2:
            told = f"one alone: {self.labels[0]!r}" if self.labels else "none"
            raise InvalidInputError(
                f"{self.name} must hold texts of at least two labels, and holds {told}. Name "
                "another column of labels, or give more texts."
            )
        if self.groups is not None:
            _check_groups(self.name, self.labels, self.groups)


def _check_groups(name: str, labels: Sequence[str], groups: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for label, group in zip(labels, groups, strict=True):
        if first.setdefault(group, label) != label:
            raise InvalidInputError(
                f"{name}: group {group!r} holds texts of several labels, {first[group]!r} and "
                f"{label!r}, so that a split by group would not be one by label. Name another "
                "column of groups, or none."
            )


def read_examples(
    path: Path,
    *,
    label_column: str,
    group_column: str | None = None,
    text_column: str | None = None,
) -> Examples:
    """Read labelled texts of a table (CSV, TSV, JSON, JSONL, Parquet), a row each.

    Rows without a label are left out, and counted.

    Parameters
    ----------
    label_column : str
        Of the attribute.
    group_column : str, optional
        Of what several texts come from; such texts never stand on both sides of a split.
    text_column : str, optional
        The longest text column by default.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be read, a row has a label and no group, fewer than two labels,
        or a group with several labels.
    """
    # A document has no field for what it is a part of: the author's stands in.
    columns = Columns(text=text_column, label=label_column, author=group_column)
    documents = load_corpus(Path(path), columns=columns).documents
    labelled = [d for d in documents if d.label is not None]
    if not labelled:
        raise InvalidInputError(
            f"{path}: column {label_column!r} holds no label. Fill it in, or name another."
        )
    groups: tuple[str, ...] | None = None
    if group_column is not None:
        for d in labelled:
            if d.author is None:
                raise InvalidInputError(
                    f"{path}: text {d.id} has no {group_column!r}. Fill the cell in, or name no "
                    "column of groups."
                )
        groups = tuple(str(d.author) for d in labelled)
    return Examples(
        Path(path).name,
        tuple(d.text for d in labelled),
        tuple(str(d.label) for d in labelled),
        groups,
        len(documents) - len(labelled),
    )
