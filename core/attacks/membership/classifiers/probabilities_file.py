"""A table of what one's own classifier answered, and of what its shadows did, as attacks read it.

Columns: `member` (0 or 1), `label`, `p_CLASS` for each class; if there are any, `user`, `shadow`
(the number of a shadow model; blank or -1 for the classifier itself), `sample` (which says
what rows of several models are of one sample) and `text` (what the blind baseline reads).
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

from core.attacks.membership.classifiers.limits import MOST_CELLS, rows_said
from core.attacks.membership.classifiers.outputs import Outputs, Shadows, faults_of
from core.corpora.labels import alike_note
from core.corpora.memory_file import File
from core.corpora.raw_files import refusal
from core.corpora.tables import open_table
from core.errors import similar

__all__ = [
    "ModelRows",
    "OwnOutputs",
    "TEXT",
    "alike_notes",
    "classes_of",
    "label_name",
    "member_of",
    "read_outputs",
    "target_column",
]

PREFIX = "p_"
"""Of a column that holds the probabilities of a class."""

TEXT = "text"
"""Of the column whose words the blind baseline reads; no attack does."""

_OPTIONAL = ("user", "shadow", "sample", TEXT)
_SHOWN = 5
_YES, _NO = {"1", "true", "yes"}, {"0", "false", "no"}


@dataclass(frozen=True, eq=False)
class OwnOutputs:
    """What a file holds.

    Attributes
    ----------
    target : Outputs
    shadows : Shadows, list of Outputs or None
        `Shadows` where they answered for the target's samples.
    classes : tuple of str
    notes : tuple of str
        What a reader of the result should know of how the file was read.
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
    """The rows of one model as they are read."""

    places: list[str] = field(default_factory=list)
    probabilities: list[NDArray[np.float64]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    members: list[bool] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def read_outputs(file: File, *, most_cells: int = MOST_CELLS) -> OwnOutputs:
    """Read a table of probabilities: CSV, TSV, JSON, JSONL or Parquet.

    Parameters
    ----------
    most_cells : int
        Probabilities that are read at most.

    Raises
    ------
    InvalidInputError
        The file, a column or a row cannot be used; the message names it and the remedy.
    """
    table = open_table(file)
    if table is None or not table.names:
        raise refusal(file, "", "is no table. Give CSV or Parquet with the columns member, label "
                      "and p_CLASS for each class.")  # fmt: skip
    columns = _columns(file, table.names)
    classes = classes_of(file, table.names)
    models: dict[int, ModelRows] = {}
    numbers = {name: i for i, name in enumerate(classes)}
    n_cells = 0
    written: dict[str, dict[str, None]] = {"label": {}, "user": {}}
    for place, cells in table.rows([*columns, *(name for name in _of_classes(table.names))]):
        told = dict(zip(columns, cells, strict=False))
        n_cells += len(classes)
        if n_cells > most_cells:
            said = rows_said(most_cells, len(classes))
            raise refusal(file, place, f"is beyond {most_cells:,} probabilities, rows times "
                          f"classes: {said} are read, shadow models' included. Give fewer rows."
                          )  # fmt: skip
        number = _shadow_of(file, place, told.get("shadow"))
        rows = models.setdefault(number, ModelRows())
        rows.places.append(place)
        rows.probabilities.append(_numbers(file, place, classes, cells[len(columns) :]))
        rows.labels.append(_label_of(file, place, told["label"], numbers))
        rows.members.append(member_of(file, place, told["member"]))
        for name, kept in (("user", rows.users), ("sample", rows.samples)):
            if name in columns:
                kept.append(_named(file, place, name, told[name]))
        if TEXT in columns and number == -1:
            rows.texts.append("" if _is_blank(told[TEXT]) else str(told[TEXT]))
        for name, seen in written.items():
            if name in columns:
                seen[str(told[name])] = None
    own = _gathered(file, models, classes)
    notes = [*own.notes, *alike_notes(classes, written["label"], written["user"])]
    return replace(own, notes=tuple(notes), texts=tuple(models[-1].texts))


def alike_notes(classes: Sequence[str], labels: Iterable[str], users: Iterable[str]) -> list[str]:
    """Return notes on classes and users that are alike, and on labels that were read as one.

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
        alike_note(classes, what="classes"),
        alike_note(one, what="labels", are_merged=True),
        alike_note(dict.fromkeys(map(label_name, users)), what="users"),
    ]
    return [note for note in found if note]


def target_column(file: File, name: str) -> tuple[str, ...]:
    """Return another column of the classifier's own rows as text, in the order of its samples.

    Empty where the table has none of that name.
    """
    table = open_table(file)
    if table is None or name not in table.names:
        return ()
    has_shadows = "shadow" in table.names
    found = []
    for place, cells in table.rows([name, *(["shadow"] if has_shadows else [])]):
        if not has_shadows or _shadow_of(file, place, cells[1]) == -1:
            found.append("" if _is_blank(cells[0]) else str(cells[0]))
    return tuple(found)


def _columns(file: File, names: Sequence[str]) -> list[str]:
    twice = next((name for name, n in Counter(names).items() if name and n > 1), None)
    if twice is not None:
        raise refusal(file, "", f"has two columns {twice!r}. Rename one or take it out.")
    for name in ("member", "label"):
        if name not in names:
            raise refusal(file, "", f"has no column {name!r}.{similar(name, names)} It needs "
                          "member, label and p_CLASS for each class.")  # fmt: skip
    return ["member", "label", *(name for name in _OPTIONAL if name in names)]


def _of_classes(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith(PREFIX) and len(name) > len(PREFIX)]


def classes_of(file: File, names: Sequence[str]) -> tuple[str, ...]:
    """Return the classes that a table has probabilities of, as they are compared with labels.

    Raises
    ------
    InvalidInputError
        Fewer than two, or two that are one.
    """
    classes = tuple(label_name(name.removeprefix(PREFIX)) for name in _of_classes(names))
    if len(classes) < 2:
        found = f"one class alone, {classes[0]!r}" if classes else "no class"
        raise refusal(file, "", f"has probabilities of {found}. Give one column p_CLASS for each "
                      "class: with two classes, two columns.")  # fmt: skip
    twice = next((name for name, n in Counter(classes).items() if n > 1), None)
    if twice is not None:
        raise refusal(file, "", f"has two columns of the class {twice!r}. Rename one.")
    return classes


def label_name(cell: Any) -> str:
    """Return a label as it is compared: whole numbers without a point, Unicode composed."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return unicodedata.normalize("NFC", str(cell).strip())


def _without_point(text: str) -> str:
    """Return 3 for 3.0, as tables with gaps have whole numbers."""
    whole, point, rest = text.partition(".")
    return whole if point and whole.lstrip("-").isdigit() and not rest.strip("0") else text


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or not str(cell).strip()


def member_of(file: File, place: str, cell: Any) -> bool:
    """Return whether a cell of the column `member` says yes.

    Raises
    ------
    InvalidInputError
        It says neither yes nor no.
    """
    said = _without_point(label_name(cell)).lower()
    if said not in _YES | _NO:
        raise refusal(file, place, f"has {_cut(cell)} as member. Write 1 for a sample that the "
                      "model was trained on, 0 for another.")  # fmt: skip
    return said in _YES


def _shadow_of(file: File, place: str, cell: Any) -> int:
    """Return the number of a shadow model, or -1 for the target."""
    if _is_blank(cell):
        return -1
    try:
        number = int(_without_point(label_name(cell)))
    except ValueError:
        number = -2
    if number < -1:
        raise refusal(file, place, f"has {_cut(cell)} as shadow. Write the number of the shadow "
                      "model, from 0; leave it blank for the classifier itself.")  # fmt: skip
    return number


def _numbers(
    file: File, place: str, classes: Sequence[str], cells: Sequence[Any]
) -> NDArray[np.float64]:
    try:
        return np.array([float(cell) for cell in cells])
    except (OverflowError, TypeError, ValueError) as error:
        for name, cell in zip(classes, cells, strict=True):
            try:
                float(cell)
            except (OverflowError, TypeError, ValueError):
                what = "is blank" if _is_blank(cell) else f"is {_cut(cell)}, which is no number"
                raise refusal(file, place, f"p_{name} {what}. Write a probability with a decimal "
                              "point.") from error  # fmt: skip
        raise


def _label_of(file: File, place: str, cell: Any, numbers: dict[str, int]) -> int:
    if _is_blank(cell):
        raise refusal(file, place, "has no label. Write the true class of each row, or leave the "
                      "row out.")  # fmt: skip
    name = label_name(cell)
    number = numbers.get(name, numbers.get(_without_point(name)))
    if number is None:
        near = similar(label_name(cell), numbers)
        raise refusal(file, place, f"has the label {_cut(cell)}, of which there is no column "
                      f"p_{label_name(cell)[:40]}.{near}")  # fmt: skip
    return number


def _named(file: File, place: str, column: str, cell: Any) -> str:
    if _is_blank(cell):
        raise refusal(file, place, f"has no {column}. Name one in each row, or take the column "
                      "out.")  # fmt: skip
    return label_name(cell)


def _cut(cell: Any) -> str:
    said = repr(cell)
    return said if len(said) <= 40 else f"{said[:39]}…"


def _gathered(file: File, models: dict[int, ModelRows], classes: tuple[str, ...]) -> OwnOutputs:
    if -1 not in models:
        what = "holds rows of shadow models alone" if models else "holds no row"
        raise refusal(file, "", f"{what}. Give the classifier's own rows, their shadow blank.")
    notes = _fill_zeros(models)
    found = {number: _outputs(file, rows) for number, rows in models.items()}
    target = found.pop(-1)
    if target.members.all() or not target.members.any():
        kind = "1" if target.members.all() else "0"
        raise refusal(file, "", f"has member {kind} in all {len(target):,} rows of the classifier: "
                      "an attack is measured on members and others.")  # fmt: skip
    numbers = sorted(found)
    if not numbers:
        return OwnOutputs(target, None, classes, tuple(notes))
    aligned = _aligned(file, models, found, numbers)
    if aligned is None:
        notes.append(
            f"{file}: the shadow models' rows are not those of the classifier, so that LiRA, RMIA "
            "and BaVarIA are left out; a column `sample` says which rows are of one sample"
        )
        return OwnOutputs(target, [found[i] for i in numbers], classes, tuple(notes))
    if not models[-1].samples:
        notes.append(
            f"{file}: reading row n of each shadow model as the sample of row n of the "
            "classifier, as their labels agree; a column `sample` would say so"
        )
    return OwnOutputs(target, aligned, classes, tuple(notes))


def _outputs(file: File, rows: ModelRows) -> Outputs:
    array = np.stack(rows.probabilities)
    for is_wrong, what in faults_of(array):
        places = [rows.places[i] for i in np.flatnonzero(is_wrong)]
        if places:
            more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
            where = ", ".join(places[:_SHOWN]) + more
            raise refusal(file, where, f"probabilities {what}")
    return Outputs(array, np.array(rows.labels), np.array(rows.members), tuple(rows.users) or None)


def _fill_zeros(models: dict[int, ModelRows]) -> list[str]:
    """Put into each 0 what the file's decimals cannot tell from it: half of the least number."""
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
    return [f"{n_zeros:,} probabilities are 0, or less than is written; each counts as {half:.1e}"]


def _aligned(
    file: File, models: dict[int, ModelRows], found: dict[int, Outputs], numbers: Sequence[int]
) -> Shadows | None:
    """Return the shadow models stacked over the target's samples; None where they have others."""
    own = models[-1]
    ordered = []
    for number in numbers:
        rows = models[number]
        if own.samples:
            places = _places(file, number, rows, own)
            if places is None:
                return None
            ordered.append(found[number].chosen(np.array(places)))
        else:
            ordered.append(found[number])
        users = tuple(own.users) or None
        if ordered[-1].labels.tolist() != own.labels or ordered[-1].users != users:
            if own.samples:
                raise refusal(file, "", f"gives a sample another label or user in shadow model "
                              f"{number} than in the classifier's row.")  # fmt: skip
            return None
    return Shadows.of(ordered)


def _places(file: File, number: int, rows: ModelRows, own: ModelRows) -> list[int] | None:
    """Return where a shadow model's rows of the target's samples stand; None if it has none."""
    at = {sample: i for i, sample in enumerate(rows.samples)}
    if len(at) < len(rows.samples) or len(set(own.samples)) < len(own.samples):
        raise refusal(file, "", "has a sample twice for one model. Give each model one row of it.")
    missing = [sample for sample in own.samples if sample not in at]
    if len(missing) == len(own.samples):
        return None
    if missing:
        raise refusal(file, "", f"has no row of shadow model {number} for {len(missing):,} of the "
                      f"classifier's {len(own.samples):,} samples, such as {missing[0]!r}. Give a "
                      "row for each, or for none.")  # fmt: skip
    return [at[sample] for sample in own.samples]
