"""Files that hold arrays: NumPy's .npy and .npz, and safetensors.

Read in parts, so that a file larger than memory can be audited. Nothing is unpickled: a file that
asks for it is refused.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from core.audit.sources.protocol import ROWS, Batch, refusal, undamaged

MOST_DIMENSIONS = 65_536
"""Far more than any encoder of texts has; a file may claim any number."""

_MOST_FORTRAN_BYTES = 2 * 2**30


class NpySource:
    """A matrix in NumPy's own format, a vector a row."""

    def __init__(self, path: Path, collection: str = "") -> None:
        self.label = f"{path}"
        self.path = path
        if collection:
            raise refusal(self.label, f"holds one array; leave out #{collection}.")

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the rows of the matrix."""
        with self.path.open("rb") as file:
            yield _npy_batches(self.label, file)


class NpzSource:
    """A matrix among the arrays of a .npz; the collection is its name."""

    def __init__(self, path: Path, collection: str = "") -> None:
        self.label = f"{path}" + f"#{collection}" * bool(collection)
        self.path, self.array = path, collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the rows of the matrix."""
        with ExitStack() as stack:
            with undamaged(self.label, "an archive of NumPy's"):
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
                name = self.array or _only(self.label, names, archive)
                if name not in names:
                    raise refusal(self.label, f"has no array {name!r}; it has {_list(names)}.")
                file = stack.enter_context(archive.open(f"{name}.npy"))
            yield _npy_batches(self.label, cast(BinaryIO, file))


def _only(label: str, names: list[str], archive: zipfile.ZipFile) -> str:
    """Return the one array that is a matrix."""
    if len(names) == 1:
        return names[0]
    matrices = []
    for name in names:
        with archive.open(f"{name}.npy") as file:
            shape, _, _ = _npy_header(label, cast(BinaryIO, file))
        if len(shape) == 2:
            matrices.append(name)
    if len(matrices) != 1:
        raise refusal(
            label, f"holds the arrays {_list(names)}. Name that of the vectors: {label}#NAME."
        )
    return matrices[0]


def _list(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:10]))
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown or "none"


def _npy_header(label: str, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and type of the array that follows."""
    with undamaged(label, "NumPy's"):
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, kind = read(file)
    if kind.hasobject:
        raise refusal(
            label,
            "holds Python objects, which would have to be unpickled. Save the vectors as numbers: "
            "numpy.save(path, numpy.stack(vectors)).",
        )
    return shape, is_fortran, kind


def _npy_batches(label: str, file: BinaryIO) -> Iterator[Batch]:
    shape, is_fortran, kind = _npy_header(label, file)
    check_matrix(label, shape, kind)
    n, width = shape
    if is_fortran:
        if n * width * kind.itemsize > _MOST_FORTRAN_BYTES:
            raise refusal(
                label,
                "is in Fortran order and too large to transpose in memory. Save it with "
                "numpy.save(path, numpy.ascontiguousarray(vectors)).",
            )
        whole = _numbers(label, file, n * width, kind).reshape(width, n).T
        yield from sliced(whole)
        return
    for start in range(0, n, ROWS):
        rows = min(ROWS, n - start)
        part = _numbers(label, file, rows * width, kind).reshape(rows, width)
        yield Batch(as_float(part), numbered(start, rows))


def _numbers(label: str, file: BinaryIO, n: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Read n numbers; a file that ends before them is truncated."""
    wanted = n * kind.itemsize
    parts: list[bytes] = []
    with undamaged(label, "NumPy's"):  # what is compressed may be broken anywhere
        while wanted > 0 and (part := file.read(min(wanted, 2**24))):
            parts.append(part)
            wanted -= len(part)
    if wanted:
        raise refusal(label, "ends before its last vector: it is truncated. Copy it again.")
    return np.frombuffer(b"".join(parts), dtype=kind)


def check_matrix(label: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    """Check that an array is a matrix of numbers.

    Raises
    ------
    InvalidInputError
        It has another number of axes, or holds something other than real numbers.
    """
    if kind.kind not in "fiu":
        raise refusal(label, f"holds {kind}, not real numbers. Save the vectors as float32.")
    if len(shape) == 2 and shape[1] > MOST_DIMENSIONS:
        raise refusal(
            label,
            f"its vectors have {shape[1]:,} dimensions; at most {MOST_DIMENSIONS:,} are read.",
        )
    if len(shape) != 2:
        told = "×".join(map(str, shape)) or "a single number"
        raise refusal(label, f"holds an array of {told}, not a matrix with a vector a row.")


def as_float(part: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the machine's byte order; whole numbers as float32."""
    if part.dtype.kind != "f" or part.dtype.itemsize > 8:
        return part.astype(np.float64 if part.dtype.itemsize > 8 else np.float32)
    return part.astype(part.dtype.newbyteorder("="), copy=False)


def numbered(start: int, n: int) -> list[str]:
    """Return names of rows that have none: their numbers from 0."""
    return [str(i) for i in range(start, start + n)]


def sliced(whole: NDArray[Any]) -> Iterator[Batch]:
    """Give a matrix that is in memory in batches."""
    for start in range(0, len(whole), ROWS):
        part = whole[start : start + ROWS]
        yield Batch(as_float(part), numbered(start, len(part)))


class SafetensorsSource:
    """A matrix among the tensors of a safetensors file; the collection is its name."""

    def __init__(self, path: Path, collection: str = "") -> None:
        self.label = f"{path}" + f"#{collection}" * bool(collection)
        self.path, self.tensor = path, collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the rows of the matrix."""
        with self.path.open("rb") as file:
            header, start = _tensors(self.label, file)
            matrices = [n for n, told in header.items() if len(told["shape"]) == 2]
            name = self.tensor or (matrices[0] if len(matrices) == 1 else "")
            if name not in header:
                which = f"has no tensor {name!r}; it holds" if name else "holds the tensors"
                raise refusal(
                    self.label, f"{which} {_list(list(header))}. Name one: {self.path}#NAME."
                )
            yield self._batches(file, header[name], start)

    def _batches(self, file: BinaryIO, told: dict[str, Any], start: int) -> Iterator[Batch]:
        stored, shape = told["dtype"], tuple(told["shape"])
        if stored not in _TENSOR_KINDS:
            raise refusal(self.label, f"holds {stored}, not real numbers. Save it as float32.")
        kind = np.dtype(_TENSOR_KINDS[stored])
        check_matrix(self.label, shape, kind)
        n, width = shape
        file.seek(start + told["data_offsets"][0])
        for first in range(0, n, ROWS):
            rows = min(ROWS, n - first)
            part = _numbers(self.label, file, rows * width, kind).reshape(rows, width)
            if stored == "BF16":  # the upper half of a float32
                part = (part.astype(np.uint32) << 16).view(np.float32)
            yield Batch(as_float(part), numbered(first, rows))


_TENSOR_KINDS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "I8": "<i1", "U8": "<u1"}


def _tensors(label: str, file: BinaryIO) -> tuple[dict[str, dict[str, Any]], int]:
    """Return what each tensor is, by its name, and where the numbers begin.

    The library checks the header; it would map the whole file into memory to read a part.
    """
    from safetensors import safe_open

    with undamaged(label, "safetensors"):
        with safe_open(file.name, framework="np"):
            pass
        n = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(n))
    header.pop("__metadata__", None)
    return header, 8 + n
