"""Query a user's classifier in ONNX format for probabilities, safely and in bounded memory.

Nothing is unpickled. The file is read as bytes and runs on the CPU, without custom operators and in
bounded memory, since a small file may request any amount.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.limits import MOST_CELLS
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.probabilities_file import (
    TEXT,
    OwnOutputs,
    alike_notes,
    label_name,
    parse_member,
)
from leakscope.core.corpora.readers.bounded_reading import bounded_memory
from leakscope.core.corpora.readers.raw_files import refusal
from leakscope.core.corpora.readers.tables import open_table
from leakscope.core.errors import InvalidInputError, MissingDependencyError, install
from leakscope.core.protocols import OnProgress, no_progress

MOST_BYTES = 2**30
"""The size limit of a model file."""

WORKING_BYTES = 2 * 2**30 + 3 * 8 * MOST_CELLS
"""Memory that querying any model may take: intermediate results and outputs."""

_BYTES_A_BYTE = 20  # measured: 15, of forests; networks take less
"""Memory that a model may take for each byte of its file."""

_OF_MEMORY = ("allocate memory", "bad_alloc", "bad allocation", "exceeds the supported maximum")
"""Phrases in onnxruntime's errors when memory is short."""

BATCH_ROWS = 1024
_SHOWN = 5
_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def require_onnx() -> None:
    """Raise MissingDependencyError with the install command if onnxruntime is missing."""
    if find_spec("onnxruntime") is None:
        raise MissingDependencyError(
            f"an ONNX model needs the `onnxruntime` package: {install('onnxruntime')}"
        )


class OnnxClassifier:
    """An ONNX classifier of vectors that returns class probabilities.

    Parameters
    ----------
    path : Path
        One input of shape (n, dimension); among its outputs probabilities of shape (n, n_classes),
        or a mapping from class to probability for each row, as scikit-learn's converter writes.

    Raises
    ------
    MissingDependencyError
        onnxruntime is not installed.
    InvalidInputError
        The file is no such model.
    """

    def __init__(self, path: Path) -> None:
        require_onnx()
        import onnxruntime

        self.path = path
        content = _read_model(path)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised, with our own message
        try:
            self._session = onnxruntime.InferenceSession(
                content,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=0,  # otherwise onnxruntime prints that it retries
            )
        except Exception as error:  # its errors share no other base
            raise _memory_refusal(path, error) or self._refusal(
                f"is no model that onnxruntime opens ({_first_line(error)}). Export it again, "
                "with its weights within the file."
            ) from error
        self._input = self._check_input()
        self._output = self._find_output()

    def _refusal(self, problem: str) -> InvalidInputError:
        """Build the error that names the model's file and a problem; the caller raises it."""
        return refusal(self.path, "", problem)

    def _check_input(self) -> Any:
        """Return the description of the model's only input after checking it: a float matrix."""
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _FLOATS or len(inputs[0].shape) != 2:
            described = ", ".join(f"{i.name}: {i.type} {list(i.shape)}" for i in inputs)
            raise self._refusal(
                f"takes {described or 'nothing'}; it must take one matrix of floating-point "
                "numbers, one row per vector."
            )
        return inputs[0]

    def _find_output(self) -> Any:
        """Find the model's output of probabilities; return its description or raise an error."""
        outputs = self._session.get_outputs()
        fits = [o for o in outputs if o.type in _FLOATS and len(o.shape) == 2]
        fits += [o for o in outputs if o.type.startswith("seq(map(")]
        named = [o for o in fits if "prob" in o.name.lower()]
        if not fits:
            described = ", ".join(f"{o.name}: {o.type}" for o in outputs)
            raise self._refusal(
                f"outputs {described or 'nothing'}, but no probabilities. Export it with "
                "probabilities (predict_proba)."
            )
        return (named or fits)[0]

    def probabilities(
        self, vectors: NDArray[Any], on_progress: OnProgress = no_progress
    ) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
        """Run the model on vectors; return probabilities (n, n_classes) and any class names.

        Raises
        ------
        InvalidInputError
            Vectors of another dimension, or the model fails.
        """
        rows, dimension = self._input.shape
        if isinstance(dimension, int) and dimension != vectors.shape[1]:
            raise self._refusal(f"takes vectors of {dimension} dimensions, got {vectors.shape[1]}.")
        step = rows if isinstance(rows, int) and rows > 0 else BATCH_ROWS
        parts: list[NDArray[np.float64]] = []
        classes: tuple[str, ...] | None = None
        for first in range(0, len(vectors), step):
            batch = np.asarray(vectors[first : first + step], dtype=_FLOATS[self._input.type])
            n = len(batch)
            if isinstance(rows, int) and 0 < n < step:  # the model needs exactly this many rows
                batch = np.concatenate([batch, np.repeat(batch[-1:], step - n, axis=0)])
            found, classes = self._run_batch(batch, classes)
            if len(found) != len(batch) or (parts and found.shape[1:] != parts[0].shape[1:]):
                raise self._refusal(f"gives {found.shape} for {len(batch)} vectors.")
            parts.append(found[:n])
            on_progress((first + n) / len(vectors), f"{self.path.name}: {first + n:,} vectors")
        return np.concatenate(parts), classes

    def _run_batch(
        self, batch: NDArray[Any], classes: tuple[str, ...] | None
    ) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
        """Run the model on one batch of vectors; return probabilities and any class names."""
        try:
            (found,) = self._session.run([self._output.name], {self._input.name: batch})
        except Exception as error:
            raise _memory_refusal(self.path, error) or self._refusal(
                f"fails on these vectors ({_first_line(error)})."
            ) from error
        if isinstance(found, list):
            keys = list(found[0])
            classes = classes or tuple(map(label_name, keys))
            return np.array([[row[key] for key in keys] for row in found], np.float64), classes
        return np.asarray(found, dtype=np.float64), None


def _memory_limit(path: Path) -> int:
    """Return the memory limit in bytes for querying a model, from its file's size."""
    with suppress(OSError):  # opening the file raises the reason
        return WORKING_BYTES + _BYTES_A_BYTE * path.stat().st_size
    return WORKING_BYTES


def _memory_refusal(path: Path, error: Exception) -> InvalidInputError | None:
    """Build the error for a model that exceeded its memory limit; None for any other error."""
    message = str(error)
    if not isinstance(error, MemoryError) and not any(each in message for each in _OF_MEMORY):
        return None
    return refusal(
        path,
        "",
        f"asks for more than {_memory_limit(path) / 2**30:.1f} GB of memory. Export "
        "only the classifier, without the encoder, or give fewer vectors.",
    )


def _first_line(error: Exception) -> str:
    """Return the first line of an error message, shortened to 160 characters."""
    line = " ".join(str(error).split("\n")[0].split())
    return line if len(line) <= 160 else f"{line[:159]}…"


def _read_model(path: Path) -> bytes:
    """Read a model file's bytes after checking that it is a regular file of allowed size."""
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist or is not an ordinary file"
            raise refusal(path, "", f"{what}. Name an ONNX file.")
        if path.stat().st_size > MOST_BYTES:
            raise refusal(path, "", f"is larger than {MOST_BYTES >> 20} MB. Give a smaller model.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise refusal(path, "", f"cannot be read ({reason}). Check the path.") from error


def read_vectors(path: Path) -> NDArray[Any]:
    """Memory-map the vectors (n, dimension) of a .npy file after checking them.

    Raises
    ------
    InvalidInputError
        It is no such file, or holds NaN or infinity.
    """
    try:
        if not path.is_file():
            raise refusal(path, "", "does not exist or is not an ordinary file. Check the path.")
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except InvalidInputError:
        raise
    except Exception as error:  # the header's parser has its own errors
        raise refusal(
            path,
            "",
            "is no NumPy array of numbers. Save an array of numbers with numpy.save, "
            "as a .npy file.",
        ) from error
    is_matrix = isinstance(vectors, np.ndarray) and vectors.ndim == 2
    if not is_matrix or vectors.dtype.kind not in "fiu" or 0 in vectors.shape:
        shape = getattr(vectors, "shape", "several arrays")
        raise refusal(path, "", f"must hold a row of numbers for each vector, got {shape}.")
    for first in range(0, len(vectors), BATCH_ROWS):
        wrong = np.flatnonzero(~np.isfinite(vectors[first : first + BATCH_ROWS]).all(axis=1))
        if len(wrong):
            row = first + int(wrong[0])
            raise refusal(path, f"row {row}", "holds NaN or infinity. Remove it.")
    found: NDArray[Any] = vectors
    return found


def outputs_of_models(
    models: Sequence[Path], vectors: Path, labels: Path, on_progress: OnProgress = no_progress
) -> OwnOutputs:
    """Read a classifier, its shadow models, vectors and labels; return the models' outputs.

    The memory of this process is bounded meanwhile, on Linux
    (`leakscope.core.corpora.readers.bounded_reading`).

    Parameters
    ----------
    models : sequence of Path
        The classifier, then its shadow models.
    vectors : Path
        A .npy file.
    labels : Path
        A table with a row for each vector, in the same order: `member`, `label`, if known `user`
        and `text`, and `member_1`, `member_2` … for the shadow models.

    Raises
    ------
    MissingDependencyError, InvalidInputError
        As the model, the vectors or the table; or they do not fit each other.
    """
    array = read_vectors(vectors)
    table = _read_labels(labels, len(models) - 1)
    if len(table["label"]) != len(array):
        raise refusal(
            labels,
            "",
            f"has {len(table['label']):,} rows for {len(array):,} vectors. "
            "Give one for each, in the same order.",
        )
    users = tuple(table["user"]) if "user" in table else None
    found: list[Outputs] = []
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    for i, path in enumerate(models):
        try:
            with bounded_memory(_memory_limit(path)):
                values, own = OnnxClassifier(path).probabilities(array, on_progress)
        except MemoryError as error:
            raise _memory_refusal(path, error) or error from error
        if i == 0:
            names = own or _guess_classes(labels, table["label"], values.shape[1])
            if own is None:
                shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
                notes = (f"{path}: names no classes; its columns are taken to be {shown}",)
        elif own is not None and own != names:
            raise refusal(path, "", f"has other classes than {models[0]}, or a different order.")
        numbers = _class_numbers(labels, table["label"], names or ())
        members = np.array(table["member" if i == 0 else f"member_{i}"])
        try:
            found.append(Outputs(values, numbers, members, users))
        except InvalidInputError as error:
            raise refusal(path, "", str(error)) from error
    notes = (*notes, *alike_notes(names or (), table["written"], table.get("user", ())))
    texts = tuple(table.get(TEXT, ()))
    shadows = Shadows.of(found[1:]) if found[1:] else None
    return OwnOutputs(found[0], shadows, names or (), notes, texts)


def _read_labels(path: Path, n_shadows: int) -> dict[str, list[Any]]:
    """Read the labels table as lists by column name, with the distinct labels as written."""
    table = open_table(path)
    if table is None or not table.names:
        raise refusal(
            path, "", "is not a table. Give CSV or Parquet with the columns member, label."
        )
    yes_no = ["member", *(f"member_{i + 1}" for i in range(n_shadows))]
    for name in (*yes_no, "label"):
        if name not in table.names:
            raise refusal(
                path, "", f"has no column {name!r}. It needs {', '.join(yes_no)} and label."
            )
    columns = [*yes_no, "label", *(name for name in ("user", TEXT) if name in table.names)]
    found: dict[str, list[Any]] = {name: [] for name in columns}
    written: dict[str, None] = {}
    for place, cells in table.rows(columns):
        for name, cell in zip(columns, cells, strict=True):
            if name in yes_no:
                found[name].append(parse_member(path, place, cell))
                continue
            if name == TEXT:
                found[name].append("" if cell is None else str(cell))
                continue
            if name == "label":
                written[str(cell)] = None
            value = "" if cell is None else label_name(cell)
            if not value:
                raise refusal(path, place, f"has no {name}. Fill it in for each row.")
            found[name].append(value)
    members = found["member"]
    if all(members) or not any(members):
        kind = "1" if members and all(members) else "0"
        raise refusal(
            path,
            "",
            f"has member {kind} in all {len(members):,} rows: an attack is "
            "measured on members and non-members.",
        )
    return {**found, "written": list(written)}


def _guess_classes(path: Path, labels: Sequence[str], n_classes: int) -> tuple[str, ...]:
    """Guess the class names of a model that names none: numbers, or the sorted labels."""
    numbers = [str(i) for i in range(n_classes)]
    known = sorted(
        set(labels),  # numbers by their size, then words
        key=lambda label: (int(label) if label.isdecimal() and len(label) < 20 else 10**20, label),
    )
    if set(known) <= set(numbers):
        return tuple(numbers)
    if len(known) == n_classes:
        return tuple(known)
    raise refusal(
        path,
        "",
        f"has {len(known):,} labels for a model of {n_classes:,} classes that "
        "names none. Use class numbers as labels, from 0.",
    )


def _class_numbers(path: Path, labels: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Return the class number of each label name; raise InvalidInputError for an unknown one."""
    numbers = {name: i for i, name in enumerate(names)}
    unknown = sorted(set(labels) - set(numbers))
    if unknown:
        raise refusal(
            path, "", f"has the label {unknown[0][:40]!r}, which the model does not know."
        )
    return np.array([numbers[label] for label in labels], dtype=np.int64)
