"""Array files as vector sources: NumPy's .npy and .npz, and safetensors.

Read in parts, so that a file larger than memory can be audited. Nothing is unpickled: a file that
asks for it is refused.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from leakscope.core.audit.sources.protocol import ROWS, Batch, parser_errors, refusal
from leakscope.core.corpora.readers.memory_file import File, MemoryFile

MOST_DIMENSIONS = 65_536
"""More than any text encoder has; guards against files that claim any number."""

_MOST_FORTRAN_BYTES = 2 * 2**30


class ArraySource:
    """A matrix in memory as a vector source, one vector per row.

    Parameters
    ----------
    vectors : array-like of real numbers, shape (n, d)
    label : str
        How messages and reports call it.

    Raises
    ------
    InvalidInputError
        It has another number of axes, or holds something other than real numbers.
    """

    def __init__(self, vectors: ArrayLike, label: str = "array") -> None:
        self.label = label
        try:
            self.vectors = np.asarray(vectors)
        except (TypeError, ValueError) as error:
            raise refusal(label, "is not a matrix. Give vectors of equal length.") from error
        check_matrix(label, self.vectors.shape, self.vectors.dtype)

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Yield an iterator over batches of the matrix's rows."""
        yield matrix_batches(self.vectors)


class NpySource:
    """A .npy file as a vector source, one vector per row."""

    def __init__(self, path: File, collection: str = "") -> None:
        self.label = f"{path}"
        self.path = path
        if collection:
            raise refusal(self.label, f"contains one array; leave out #{collection}.")

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open the file and yield an iterator over batches of its rows."""
        with self.path.open("rb") as file:
            yield _read_npy_batches(self.label, file)


class NpzSource:
    """A matrix in a .npz archive as a vector source; the collection is the array's name."""

    def __init__(self, path: File, collection: str = "") -> None:
        self.label = f"{path}" + f"#{collection}" * bool(collection)
        self.path, self.array = path, collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open the archive and yield an iterator over batches of the matrix's rows."""
        with ExitStack() as stack:
            with parser_errors(self.label, "a NumPy archive"):
                file = stack.enter_context(self.path.open("rb"))
                archive = stack.enter_context(zipfile.ZipFile(file))
                names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
                name = self.array or _find_only_matrix(self.label, names, archive)
                if name not in names:
                    raise refusal(
                        self.label, f"has no array {name!r}; it has {_format_names(names)}."
                    )
                array = stack.enter_context(archive.open(f"{name}.npy"))
            yield _read_npy_batches(self.label, cast(BinaryIO, array))


def _find_only_matrix(label: str, names: list[str], archive: zipfile.ZipFile) -> str:
    """Return the name of an archive's only matrix; raise InvalidInputError if there is not one."""
    if len(names) == 1:
        return names[0]
    matrices = []
    for name in names:
        with archive.open(f"{name}.npy") as file:
            shape, _, _ = _read_npy_header(label, cast(BinaryIO, file))
        if len(shape) == 2:
            matrices.append(name)
    if len(matrices) != 1:
        raise refusal(
            label,
            f"contains the arrays {_format_names(names)}. Name the one with the vectors: "
            f"{label}#NAME.",
        )
    return matrices[0]


def _format_names(names: list[str]) -> str:
    """Join up to ten names for a message, with the number of the rest."""
    shown = ", ".join(map(repr, names[:10]))
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown or "none"


def _read_npy_header(label: str, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read and check the header of a .npy array; return shape, whether in Fortran order, type."""
    with parser_errors(label, "NumPy's"):
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, kind = read(file)
    if kind.hasobject:
        raise refusal(
            label,
            "contains Python objects, which are never unpickled. Save the vectors as numbers: "
            "numpy.save(path, numpy.stack(vectors)).",
        )
    return shape, is_fortran, kind


def _read_npy_batches(label: str, file: BinaryIO) -> Iterator[Batch]:
    """Read an open .npy file and yield its rows in batches."""
    shape, is_fortran, kind = _read_npy_header(label, file)
    check_matrix(label, shape, kind)
    n, width = shape
    if is_fortran:
        if n * width * kind.itemsize > _MOST_FORTRAN_BYTES:
            raise refusal(
                label,
                "is in Fortran order and too large to transpose in memory. Save it with "
                "numpy.save(path, numpy.ascontiguousarray(vectors)).",
            )
        whole = _read_numbers(label, file, n * width, kind).reshape(width, n).T
        yield from matrix_batches(whole)
        return
    for start in range(0, n, ROWS):
        rows = min(ROWS, n - start)
        part = _read_numbers(label, file, rows * width, kind).reshape(rows, width)
        yield Batch(as_float(part), row_numbers(start, rows))


def _read_numbers(label: str, file: BinaryIO, n: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Read n numbers from an open file as an array; raise InvalidInputError if it ends early."""
    wanted = n * kind.itemsize
    parts: list[bytes] = []
    with parser_errors(label, "NumPy's"):  # compressed data may be broken anywhere
        while wanted > 0 and (part := file.read(min(wanted, 2**24))):
            parts.append(part)
            wanted -= len(part)
    if wanted:
        raise refusal(label, "ends before its last vector: it is truncated. Copy it again.")
    return np.frombuffer(b"".join(parts), dtype=kind)


def check_matrix(label: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    """Raise InvalidInputError unless the shape and type are those of a matrix of real numbers.

    Raises
    ------
    InvalidInputError
        It has another number of axes, or holds something other than real numbers.
    """
    if kind.kind not in "fiu":
        raise refusal(label, f"contains {kind}, not real numbers. Save the vectors as float32.")
    if len(shape) == 2 and shape[1] > MOST_DIMENSIONS:
        raise refusal(
            label,
            f"its vectors have {shape[1]:,} dimensions; the limit is {MOST_DIMENSIONS:,}.",
        )
    if len(shape) != 2:
        shape_text = "×".join(map(str, shape)) or "a single number"
        raise refusal(
            label, f"contains an array of {shape_text}, not a matrix with one vector per row."
        )


def as_float(part: NDArray[Any]) -> NDArray[Any]:
    """Return an array as floats in the machine's byte order; integers become float32."""
    if part.dtype.kind != "f" or part.dtype.itemsize > 8:
        return part.astype(np.float64 if part.dtype.itemsize > 8 else np.float32)
    return part.astype(part.dtype.newbyteorder("="), copy=False)


def row_numbers(start: int, n: int) -> list[str]:
    """Return n row numbers from `start` as strings, the names of rows without names."""
    return [str(i) for i in range(start, start + n)]


def matrix_batches(whole: NDArray[Any]) -> Iterator[Batch]:
    """Yield the rows of a matrix in memory in batches."""
    for start in range(0, len(whole), ROWS):
        part = whole[start : start + ROWS]
        yield Batch(as_float(part), row_numbers(start, len(part)))


class SafetensorsSource:
    """A matrix in a safetensors file as a vector source; the collection is its name."""

    def __init__(self, path: File, collection: str = "") -> None:
        self.label = f"{path}" + f"#{collection}" * bool(collection)
        self.path, self.tensor = path, collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open the file and yield an iterator over batches of the matrix's rows."""
        with self.path.open("rb") as file:
            header, start = _read_tensor_header(self.label, self.path, file)
            matrices = [n for n, entry in header.items() if len(entry["shape"]) == 2]
            name = self.tensor or (matrices[0] if len(matrices) == 1 else "")
            if name not in header:
                which = f"has no tensor {name!r}; it contains" if name else "contains the tensors"
                raise refusal(
                    self.label,
                    f"{which} {_format_names(list(header))}. Name one: {self.path}#NAME.",
                )
            yield self._batches(file, header[name], start)

    def _batches(self, file: BinaryIO, entry: dict[str, Any], start: int) -> Iterator[Batch]:
        """Read a tensor from an open file and yield its rows in batches."""
        stored, shape = entry["dtype"], tuple(entry["shape"])
        if stored not in _TENSOR_KINDS:
            raise refusal(self.label, f"contains {stored}, not real numbers. Save it as float32.")
        kind = np.dtype(_TENSOR_KINDS[stored])
        check_matrix(self.label, shape, kind)
        n, width = shape
        file.seek(start + entry["data_offsets"][0])
        for first in range(0, n, ROWS):
            rows = min(ROWS, n - first)
            part = _read_numbers(self.label, file, rows * width, kind).reshape(rows, width)
            if stored == "BF16":  # the upper half of a float32
                part = (part.astype(np.uint32) << 16).view(np.float32)
            yield Batch(as_float(part), row_numbers(first, rows))


_TENSOR_KINDS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "I8": "<i1", "U8": "<u1"}


def _read_tensor_header(
    label: str, path: File, file: BinaryIO
) -> tuple[dict[str, dict[str, Any]], int]:
    """Check and read a safetensors header; return tensor descriptions by name, and data offset.

    The library checks the header; it would map the whole file into memory to read a part.
    """
    from safetensors import deserialize, safe_open

    with parser_errors(label, "safetensors"):
        if isinstance(path, MemoryFile):
            deserialize(path.content)
        else:
            with safe_open(path, framework="np"):
                pass
        n = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(n))
    header.pop("__metadata__", None)
    return header, 8 + n
