"""Write arrays in safetensors format into an already open file.

`safetensors.numpy.save_file` writes into a file of its own and renames that: a kill leaves it, and
whoever is to force the result to the disk holds another one. The bytes are those of the library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError

_TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
"""The format's type names, in its order: the widest types come first in a file."""

_ORDER = {name: i for i, name in enumerate(_TYPES)}


def write_arrays(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to an open file in safetensors format.

    Raises
    ------
    InvalidInputError
        An array of a type that the format does not have.
    """
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES:
            raise InvalidInputError(f"{name!r} is of type {array.dtype}, which cannot be stored.")
    names = sorted(arrays, key=lambda name: (-_ORDER[arrays[name].dtype.name], name))
    header, at = {}, 0
    for name in names:
        array = arrays[name]
        header[name] = {
            "dtype": _TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at := at + array.nbytes],
        }
    told = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    told += b" " * (-len(told) % 8)
    file.write(len(told).to_bytes(8, "little") + told)
    for name in names:
        little = arrays[name].dtype.newbyteorder("<")
        whole = np.ascontiguousarray(arrays[name], dtype=little)
        file.write(whole.reshape(-1).view(np.uint8).data)
