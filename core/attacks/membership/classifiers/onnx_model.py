"""One's own classifier as ONNX: asked for its probabilities, with nothing unpickled or run but it.

The file is read as bytes and runs on the processor alone, without custom operators, and in bounded
memory: a few bytes of it may ask for all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.limits import MOST_CELLS
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.probabilities_file import (
    TEXT,
    OwnOutputs,
    alike_notes,
    label_name,
    member_of,
)
from core.corpora.apart import bounded_memory
from core.corpora.raw_files import refusal
from core.corpora.tables import open_table
from core.errors import InvalidInputError, MissingDependencyError, install
from core.protocols import OnProgress, no_progress

__all__ = ["OnnxClassifier", "outputs_of_models", "read_vectors", "require_onnx"]

MOST_BYTES = 2**30
"""Largest model that is opened."""

WORKING_BYTES = 2 * 2**30 + 3 * 8 * MOST_CELLS
"""Memory that asking any model may take: its steps, and the answers, put together."""

_BYTES_A_BYTE = 20  # measured: 15, of forests; networks take less
"""Memory that a model may take for each byte of its file."""

_OF_MEMORY = ("allocate memory", "bad_alloc", "bad allocation", "exceeds the supported maximum")
"""What onnxruntime says where memory is short."""

BATCH_ROWS = 1024
_SHOWN = 5
_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def require_onnx() -> None:
    """Raise MissingDependencyError, naming the remedy, where onnxruntime is not installed."""
    if find_spec("onnxruntime") is None:
        raise MissingDependencyError(
            f"a model as ONNX needs the `onnxruntime` package: {install('onnxruntime')}"
        )


class OnnxClassifier:
    """A classifier of vectors that gives the probability of each class.

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
        content = _content(path)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong is raised, and told in our words
        try:
            self._session = onnxruntime.InferenceSession(
                content,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=0,  # which would print that it tries again
            )
        except Exception as error:  # its errors share no other base
            raise _too_large(path, error) or refusal(
                path, "", f"is no model that onnxruntime opens ({_first(error)}). Export it again, "
                "its weights within the file."
            ) from error  # fmt: skip
        self._input = self._checked_input()
        self._output = self._checked_output()

    def _checked_input(self) -> Any:
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _FLOATS or len(inputs[0].shape) != 2:
            told = ", ".join(f"{i.name}: {i.type} {list(i.shape)}" for i in inputs)
            raise refusal(self.path, "", f"takes {told or 'nothing'}; it must take one matrix of "
                          "floating-point numbers, a row for each vector.")  # fmt: skip
        return inputs[0]

    def _checked_output(self) -> Any:
        outputs = self._session.get_outputs()
        fits = [o for o in outputs if o.type in _FLOATS and len(o.shape) == 2]
        fits += [o for o in outputs if o.type.startswith("seq(map(")]
        named = [o for o in fits if "prob" in o.name.lower()]
        if not fits:
            told = ", ".join(f"{o.name}: {o.type}" for o in outputs)
            raise refusal(self.path, "", f"gives {told or 'nothing'}, and no probabilities. Export "
                          "it with them (predict_proba).")  # fmt: skip
        return (named or fits)[0]

    def probabilities(
        self, vectors: NDArray[Any], on_progress: OnProgress = no_progress
    ) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
        """Return the probabilities (n, n_classes) and the classes, where the model names them.

        Raises
        ------
        InvalidInputError
            Vectors of another dimension, or the model fails.
        """
        rows, dimension = self._input.shape
        if isinstance(dimension, int) and dimension != vectors.shape[1]:
            raise refusal(self.path, "", f"takes vectors of {dimension} dimensions, got "
                          f"{vectors.shape[1]}.")  # fmt: skip
        step = rows if isinstance(rows, int) and rows > 0 else BATCH_ROWS
        parts: list[NDArray[np.float64]] = []
        classes: tuple[str, ...] | None = None
        for first in range(0, len(vectors), step):
            batch = np.asarray(vectors[first : first + step], dtype=_FLOATS[self._input.type])
            n = len(batch)
            if isinstance(rows, int) and 0 < n < step:  # it takes so many rows and no fewer
                batch = np.concatenate([batch, np.repeat(batch[-1:], step - n, axis=0)])
            found, classes = self._answer(batch, classes)
            if len(found) != len(batch) or (parts and found.shape[1:] != parts[0].shape[1:]):
                raise refusal(self.path, "", f"gives {found.shape} for {len(batch)} vectors.")
            parts.append(found[:n])
            on_progress((first + n) / len(vectors), f"{self.path.name}: {first + n:,} vectors")
        return np.concatenate(parts), classes

    def _answer(
        self, batch: NDArray[Any], classes: tuple[str, ...] | None
    ) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
        try:
            (found,) = self._session.run([self._output.name], {self._input.name: batch})
        except Exception as error:
            raise _too_large(self.path, error) or refusal(
                self.path, "", f"fails on these vectors ({_first(error)})."
            ) from error
        if isinstance(found, list):
            keys = list(found[0])
            classes = classes or tuple(map(label_name, keys))
            return np.array([[row[key] for key in keys] for row in found], np.float64), classes
        return np.asarray(found, dtype=np.float64), None


def _bound(path: Path) -> int:
    """Return the bytes that asking a model may take."""
    with suppress(OSError):  # opening it says why
        return WORKING_BYTES + _BYTES_A_BYTE * path.stat().st_size
    return WORKING_BYTES


def _too_large(path: Path, error: Exception) -> InvalidInputError | None:
    """Return what to say of a model that asked for more memory than it may take."""
    said = str(error)
    if not isinstance(error, MemoryError) and not any(each in said for each in _OF_MEMORY):
        return None
    return refusal(path, "", f"asks for more than {_bound(path) / 2**30:.1f} GB of memory. Export "
                   "the classifier alone, without what makes vectors, or ask about fewer "
                   "vectors.")  # fmt: skip


def _first(error: Exception) -> str:
    """Return the first line of an error of the library, cut."""
    said = " ".join(str(error).split("\n")[0].split())
    return said if len(said) <= 160 else f"{said[:159]}…"


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist or is no ordinary file"
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
    """Return the vectors of a .npy file, (n, dimension), read where they lie.

    Raises
    ------
    InvalidInputError
        It is no such file, or holds NaN or infinity.
    """
    try:
        if path.is_file() is False:
            raise refusal(path, "", "does not exist or is no ordinary file. Check the path.")
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except InvalidInputError:
        raise
    except Exception as error:  # a header is read by Python's own parser, with errors of its own
        raise refusal(path, "", "is no NumPy array of numbers. Save it by numpy.save, as an array "
                      "of numbers, with the ending .npy.") from error  # fmt: skip
    is_matrix = isinstance(vectors, np.ndarray) and vectors.ndim == 2
    if not is_matrix or vectors.dtype.kind not in "fiu" or 0 in vectors.shape:
        told = getattr(vectors, "shape", "several arrays")
        raise refusal(path, "", f"must hold a row of numbers for each vector, got {told}.")
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
    """Ask a classifier, and its shadows if there are any, about the same vectors.

    Meanwhile the memory of this process is bounded, on Linux (`core.corpora.apart`).

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
    told = _read_labels(labels, len(models) - 1)
    if len(told["label"]) != len(array):
        raise refusal(labels, "", f"has {len(told['label']):,} rows for {len(array):,} vectors. "
                      "Give one for each, in the same order.")  # fmt: skip
    users = tuple(told["user"]) if "user" in told else None
    found: list[Outputs] = []
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    for i, path in enumerate(models):
        values, own = _asked(path, array, on_progress)
        if i == 0:
            names = own or _guessed(labels, told["label"], values.shape[1])
            if own is None:
                shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
                notes = (f"{path}: names no classes; taking its columns to be {shown}",)
        elif own is not None and own != names:
            raise refusal(path, "", f"has other classes than {models[0]}, or another order.")
        numbers = _numbered(labels, told["label"], names or ())
        members = np.array(told["member" if i == 0 else f"member_{i}"])
        found.append(_outputs(path, values, numbers, members, users))
    notes = (*notes, *alike_notes(names or (), told["written"], told.get("user", ())))
    texts = tuple(told.get(TEXT, ()))
    shadows = Shadows.of(found[1:]) if found[1:] else None
    return OwnOutputs(found[0], shadows, names or (), notes, texts)


def _asked(
    path: Path, vectors: NDArray[Any], on_progress: OnProgress
) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    try:
        with bounded_memory(_bound(path)):
            return OnnxClassifier(path).probabilities(vectors, on_progress)
    except MemoryError as error:
        raise _too_large(path, error) or error from error


def _outputs(
    path: Path,
    values: NDArray[np.float64],
    numbers: NDArray[np.int64],
    members: NDArray[np.bool_],
    users: tuple[str, ...] | None,
) -> Outputs:
    try:
        return Outputs(values, numbers, members, users)
    except InvalidInputError as error:
        raise refusal(path, "", str(error)) from error


def _read_labels(path: Path, n_shadows: int) -> dict[str, list[Any]]:
    table = open_table(path)
    if table is None or not table.names:
        raise refusal(path, "", "is no table. Give CSV or Parquet with the columns member, label.")
    yes_no = ["member", *(f"member_{i + 1}" for i in range(n_shadows))]
    for name in (*yes_no, "label"):
        if name not in table.names:
            raise refusal(path, "", f"has no column {name!r}. It needs {', '.join(yes_no)} and "
                          "label.")  # fmt: skip
    columns = [*yes_no, "label", *(name for name in ("user", TEXT) if name in table.names)]
    found: dict[str, list[Any]] = {name: [] for name in columns}
    written: dict[str, None] = {}
    for place, cells in table.rows(columns):
        for name, cell in zip(columns, cells, strict=True):
            if name in yes_no:
                found[name].append(member_of(path, place, cell))
                continue
            if name == TEXT:
                found[name].append("" if cell is None else str(cell))
                continue
            if name == "label":
                written[str(cell)] = None
            said = "" if cell is None else label_name(cell)
            if not said:
                raise refusal(path, place, f"has no {name}. Write one in each row.")
            found[name].append(said)
    members = found["member"]
    if all(members) or not any(members):
        kind = "1" if members and all(members) else "0"
        raise refusal(path, "", f"has member {kind} in all {len(members):,} rows: an attack is "
                      "measured on members and others.")  # fmt: skip
    return {**found, "written": list(written)}


def _guessed(path: Path, labels: Sequence[str], n_classes: int) -> tuple[str, ...]:
    """Return the classes of a model that does not name them: numbers, or its labels in order."""
    numbers = [str(i) for i in range(n_classes)]
    known = sorted(set(labels), key=_in_order)
    if set(known) <= set(numbers):
        return tuple(numbers)
    if len(known) == n_classes:
        return tuple(known)
    raise refusal(path, "", f"has {len(known):,} labels for a model of {n_classes:,} classes that "
                  "names none. Write the number of the class as label, from 0.")  # fmt: skip


def _in_order(label: str) -> tuple[int, str]:
    """Return what sorts numbers by their size, and words after them by the alphabet."""
    return (int(label), "") if label.isdecimal() and len(label) < 20 else (10**20, label)


def _numbered(path: Path, labels: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    numbers = {name: i for i, name in enumerate(names)}
    unknown = sorted(set(labels) - set(numbers))
    if unknown:
        raise refusal(
            path, "", f"has the label {unknown[0][:40]!r}, which the model does not know."
        )
    return np.array([numbers[label] for label in labels], dtype=np.int64)
