"""Read a table of the class probabilities of a user's classifier and of its shadow models.

Columns: `member` (0 or 1), `label`, `p_CLASS` for each class; optionally `user`, `shadow` (the
number of a shadow model; blank or -1 for the classifier itself), `sample` (the same for rows of
several models on one sample) and `text` (for the blind baseline).
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.limits import MOST_CELLS, describe_rows
from leakscope.core.attacks.membership.classifiers.outputs import (
    Outputs,
    Shadows,
    probability_faults,
)
from leakscope.core.corpora.labels import near_identical_note
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.raw_files import refusal
from leakscope.core.corpora.readers.tables import open_table
from leakscope.core.errors import similar

PREFIX = "p_"
"""The prefix of a column with the probabilities of a class."""

TEXT = "text"
"""The column of texts for the blind baseline; no attack uses it."""

_OPTIONAL = ("user", "shadow", "sample", TEXT)
_SHOWN = 5
_YES, _NO = {"1", "true", "yes"}, {"0", "false", "no"}


@dataclass(frozen=True, eq=False)
class OwnOutputs:
    """The outputs read from a user's file, with notes on how they were read.

    Attributes
    ----------
    target : Outputs
    shadows : Shadows, list of Outputs or None
        `Shadows` where they answered for the target's samples.
    classes : tuple of str
    notes : tuple of str
        How the file was read, for readers of the result.
    texts : tuple of str (n,), empty where none are given
        Of the target's samples, for the blind baseline.
    """

    target: Outputs
    shadows: Shadows | list[Outputs] | None
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass
class ModelRows:
    """The rows of one model, collected while a file is read."""

    places: list[str] = field(default_factory=list)
    probabilities: list[NDArray[np.float64]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    members: list[bool] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def read_outputs(file: File, *, most_cells: int = MOST_CELLS) -> OwnOutputs:
    """Read the outputs of a classifier and its shadow models from a table, such as CSV.

    Parameters
    ----------
    most_cells : int
        The most probabilities that are read.

    Raises
    ------
    InvalidInputError
        The file, a column or a row cannot be used; the message names it and the remedy.
    """
    table = open_table(file)
    if table is None or not table.names:
        raise refusal(
            file,
            "",
            "is not a table. Give CSV or Parquet with the columns member, label "
            "and p_CLASS for each class.",
        )
    columns = _checked_columns(file, table.names)
    classes = classes_of(file, table.names)
    models: dict[int, ModelRows] = {}
    numbers = {name: i for i, name in enumerate(classes)}
    n_cells = 0
    written: dict[str, dict[str, None]] = {"label": {}, "user": {}}
    for place, cells in table.rows([*columns, *_probability_columns(table.names)]):
        row = dict(zip(columns, cells, strict=False))
        n_cells += len(classes)
        if n_cells > most_cells:
            limit = describe_rows(most_cells, len(classes))
            raise refusal(
                file,
                place,
                f"is beyond {most_cells:,} probabilities (rows times "
                f"classes), the limit: {limit}, with shadow models. Give fewer rows.",
            )
        number = _parse_shadow(file, place, row.get("shadow"))
        rows = models.setdefault(number, ModelRows())
        rows.places.append(place)
        rows.probabilities.append(_parse_probabilities(file, place, classes, cells[len(columns) :]))
        rows.labels.append(_parse_label(file, place, row["label"], numbers))
        rows.members.append(parse_member(file, place, row["member"]))
        for name, kept in (("user", rows.users), ("sample", rows.samples)):
            if name in columns and _is_blank(row[name]):
                raise refusal(
                    file, place, f"has no {name}. Fill it in for each row, or remove the column."
                )
            if name in columns:
                kept.append(label_name(row[name]))
        if TEXT in columns and number == -1:
            rows.texts.append("" if _is_blank(row[TEXT]) else str(row[TEXT]))
        for name, seen in written.items():
            if name in columns:
                seen[str(row[name])] = None
    own = _assemble_models(file, models, classes)
    notes = [*own.notes, *alike_notes(classes, written["label"], written["user"])]
    return replace(own, notes=tuple(notes), texts=tuple(models[-1].texts))


def alike_notes(classes: Sequence[str], labels: Iterable[str], users: Iterable[str]) -> list[str]:
    """Return notes on near-identical class and user names, and on labels that were merged.

    Parameters
    ----------
    classes : sequence of str
    labels, users : iterable of str
        As they are written in the file.
    """
    merged: dict[str, list[str]] = {}
    for label in labels:
        name = label_name(label)
        merged.setdefault(name if name in classes else _without_point(name), []).append(label)
    one = [label for group in merged.values() if len(group) > 1 for label in group]
    found = [
        near_identical_note(classes, what="classes"),
        near_identical_note(one, what="labels", are_merged=True),
        near_identical_note(dict.fromkeys(map(label_name, users)), what="users"),
    ]
    return [note for note in found if note]


def target_column(file: File, name: str) -> tuple[str, ...]:
    """Read one column of the target classifier's rows as strings; () if there is none.

    Empty if the table has no column of that name.
    """
    table = open_table(file)
    if table is None or name not in table.names:
        return ()
    has_shadows = "shadow" in table.names
    found = []
    for place, cells in table.rows([name, *(["shadow"] if has_shadows else [])]):
        if not has_shadows or _parse_shadow(file, place, cells[1]) == -1:
            found.append("" if _is_blank(cells[0]) else str(cells[0]))
    return tuple(found)


def _checked_columns(file: File, names: Sequence[str]) -> list[str]:
    """Check a table's column names; return those to read that are not probabilities."""
    twice = next((name for name, n in Counter(names).items() if name and n > 1), None)
    if twice is not None:
        raise refusal(file, "", f"has two columns {twice!r}. Rename or remove one.")
    for name in ("member", "label"):
        if name not in names:
            raise refusal(
                file,
                "",
                f"has no column {name!r}.{similar(name, names)} It needs "
                "member, label and p_CLASS for each class.",
            )
    return ["member", "label", *(name for name in _OPTIONAL if name in names)]


def _probability_columns(names: Sequence[str]) -> list[str]:
    """Select the column names that start with `p_`, the prefix of class probabilities."""
    return [name for name in names if name.startswith(PREFIX) and len(name) > len(PREFIX)]


def classes_of(file: File, names: Sequence[str]) -> tuple[str, ...]:
    """Parse the class names from a table's column names p_CLASS, normalised as labels are.

    Raises
    ------
    InvalidInputError
        Fewer than two, or two that are one.
    """
    classes = tuple(label_name(name.removeprefix(PREFIX)) for name in _probability_columns(names))
    if len(classes) < 2:
        found = f"only one class, {classes[0]!r}" if classes else "no class"
        raise refusal(
            file,
            "",
            f"has probabilities of {found}. Give one column p_CLASS for each "
            "class: two classes need two columns.",
        )
    twice = next((name for name, n in Counter(classes).items() if n > 1), None)
    if twice is not None:
        raise refusal(file, "", f"has two columns of the class {twice!r}. Rename one.")
    return classes


def label_name(cell: Any) -> str:
    """Return a label as text for comparison: whole numbers without a point, Unicode composed."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return unicodedata.normalize("NFC", str(cell).strip())


def _without_point(text: str) -> str:
    """Return "3" for "3.0", as tables with gaps write whole numbers; other text unchanged."""
    whole, point, rest = text.partition(".")
    return whole if point and whole.lstrip("-").isdigit() and not rest.strip("0") else text


def _is_blank(cell: Any) -> bool:
    """Return whether a cell is missing, NaN or white space."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or not str(cell).strip()


def parse_member(file: File, place: str, cell: Any) -> bool:
    """Parse a cell of the column `member` (such as 1, true or no) as a bool.

    Raises
    ------
    InvalidInputError
        It says neither yes nor no.
    """
    value = _without_point(label_name(cell)).lower()
    if value not in _YES | _NO:
        raise refusal(
            file,
            place,
            f"has {_shorten(cell)} as member. Write 1 for a sample that the "
            "model was trained on, 0 for any other.",
        )
    return value in _YES


def _parse_shadow(file: File, place: str, cell: Any) -> int:
    """Parse a cell of the column `shadow`: a model's number, or -1 for the target."""
    if _is_blank(cell):
        return -1
    try:
        number = int(_without_point(label_name(cell)))
    except ValueError:
        number = -2
    if number < -1:
        raise refusal(
            file,
            place,
            f"has {_shorten(cell)} as shadow. Write the number of the shadow "
            "model, from 0; leave it blank for the classifier itself.",
        )
    return number


def _parse_probabilities(
    file: File, place: str, classes: Sequence[str], cells: Sequence[Any]
) -> NDArray[np.float64]:
    """Parse the probability cells of one row as an array; raise if a cell is no number."""
    found: list[float] = []
    try:
        found.extend(float(cell) for cell in cells)
    except (OverflowError, TypeError, ValueError) as error:
        name, cell = classes[len(found)], cells[len(found)]
        what = "is blank" if _is_blank(cell) else f"is {_shorten(cell)}, which is not a number"
        raise refusal(
            file, place, f"p_{name} {what}. Write a probability with a decimal point."
        ) from error
    return np.array(found)


def _parse_label(file: File, place: str, cell: Any, numbers: dict[str, int]) -> int:
    """Return the class number of a cell of the column `label`; raise for an unknown label."""
    if _is_blank(cell):
        raise refusal(
            file, place, "has no label. Write the true class of each row, or leave the row out."
        )
    name = label_name(cell)
    number = numbers.get(name, numbers.get(_without_point(name)))
    if number is None:
        near = similar(label_name(cell), numbers)
        raise refusal(
            file,
            place,
            f"has the label {_shorten(cell)}, but there is no column "
            f"p_{label_name(cell)[:40]}.{near}",
        )
    return number


def _shorten(cell: Any) -> str:
    """Return a table cell as Python writes it, shortened to 40 characters, for messages."""
    shown = repr(cell)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _assemble_models(
    file: File, models: dict[int, ModelRows], classes: tuple[str, ...]
) -> OwnOutputs:
    """Build the outputs of the target and its shadow models, aligned if possible, from rows."""
    if -1 not in models:
        what = "has only rows of shadow models" if models else "has no rows"
        raise refusal(file, "", f"{what}. Add the classifier's own rows, with shadow left blank.")
    notes = _replace_zeros(models)
    found = {number: _build_outputs(file, rows) for number, rows in models.items()}
    target = found.pop(-1)
    if target.members.all() or not target.members.any():
        kind = "1" if target.members.all() else "0"
        raise refusal(
            file,
            "",
            f"has member {kind} in all {len(target):,} rows of the classifier: "
            "an attack needs members and non-members.",
        )
    numbers = sorted(found)
    if not numbers:
        return OwnOutputs(target, None, classes, tuple(notes))
    aligned = _align_shadows(file, models, found, numbers)
    if aligned is None:
        notes.append(
            f"{file}: the shadow models have other rows than the classifier, so LiRA, RMIA and "
            "BaVarIA are left out; a column `sample` can show which rows belong to one sample"
        )
        return OwnOutputs(target, [found[i] for i in numbers], classes, tuple(notes))
    if not models[-1].samples:
        notes.append(
            f"{file}: reading row n of each shadow model as the sample of row n of the "
            "classifier, because their labels agree; a column `sample` makes this explicit"
        )
    return OwnOutputs(target, aligned, classes, tuple(notes))


def _build_outputs(file: File, rows: ModelRows) -> Outputs:
    """Build the outputs of one model from its rows after checking the probabilities."""
    array = np.stack(rows.probabilities)
    for is_wrong, what in probability_faults(array):
        places = [rows.places[i] for i in np.flatnonzero(is_wrong)]
        if places:
            more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
            where = ", ".join(places[:_SHOWN]) + more
            raise refusal(file, where, f"probabilities {what}")
    return Outputs(array, np.array(rows.labels), np.array(rows.members), tuple(rows.users) or None)


def _replace_zeros(models: dict[int, ModelRows]) -> list[str]:
    """Replace zero probabilities in place by half of the least one written; return a note list."""
    n_zeros, least = 0, 1.0
    for rows in models.values():
        for each in rows.probabilities:
            n_zeros += int((each == 0).sum())
            least = min(least, float(each[each > 0].min(initial=1.0)))
    if not n_zeros:
        return []
    n_classes = len(next(iter(models.values())).probabilities[0])
    half = min(least / 2, 1e-3 / n_classes)
    for rows in models.values():
        for each in rows.probabilities:
            is_zero = each == 0
            if is_zero.any() and np.isfinite(each).all():
                each[is_zero] = half
    return [f"{n_zeros:,} probabilities are 0 or rounded to 0; each counts as {half:.1e}"]


def _align_shadows(
    file: File, models: dict[int, ModelRows], found: dict[int, Outputs], numbers: Sequence[int]
) -> Shadows | None:
    """Stack the shadow models in the order of the target's samples; None if those differ."""
    own = models[-1]
    ordered = []
    for number in numbers:
        rows = models[number]
        if own.samples:
            places = _sample_positions(file, number, rows, own)
            if places is None:
                return None
            ordered.append(found[number].chosen(np.array(places)))
        else:
            ordered.append(found[number])
        users = tuple(own.users) or None
        if ordered[-1].labels.tolist() != own.labels or ordered[-1].users != users:
            if own.samples:
                raise refusal(
                    file,
                    "",
                    f"gives a sample another label or user in shadow model "
                    f"{number} than in the classifier's row.",
                )
            return None
    return Shadows.of(ordered)


def _sample_positions(file: File, number: int, rows: ModelRows, own: ModelRows) -> list[int] | None:
    """Return the position of each target sample in a shadow model's rows; None if none occurs."""
    at = {sample: i for i, sample in enumerate(rows.samples)}
    if len(at) < len(rows.samples) or len(set(own.samples)) < len(own.samples):
        raise refusal(
            file, "", "has a sample twice for one model. Give one row per sample and model."
        )
    missing = [sample for sample in own.samples if sample not in at]
    if len(missing) == len(own.samples):
        return None
    if missing:
        raise refusal(
            file,
            "",
            f"has no row of shadow model {number} for {len(missing):,} of the "
            f"classifier's {len(own.samples):,} samples, such as {missing[0]!r}. Give a "
            "row for each sample, or for none.",
        )
    return [at[sample] for sample in own.samples]
