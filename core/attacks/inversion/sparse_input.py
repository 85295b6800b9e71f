"""Sparse vectors as the input of a network: a bag of words has too many dimensions for a matrix.

Only columns that some training vector fills have weights: nothing can be learned of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from core.places import places_among
from core.vectors import is_sparse

__all__ = [
    "SparseLinear",
    "SparseRows",
    "half",
    "input_layer",
    "network_input",
    "stored_layer",
    "training_input",
    "unhalved",
]


@dataclass(frozen=True)
class SparseRows:
    """A batch of sparse vectors: places of the filled columns, their values, and where rows begin.

    Attributes
    ----------
    places, values : int64, float32 tensor (filled,)
    starts : int64 tensor (n,)
    """

    places: Tensor
    values: Tensor
    starts: Tensor

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def device(self) -> torch.device:
        """Where the batch lies."""
        return self.values.device


class SparseLinear(nn.Module):
    """x ↦ W x without a bias, W having a row of `n_out` weights for each filled column.

    Parameters
    ----------
    columns : int64 array (C,)
        The filled columns, ascending.
    """

    columns: Tensor

    def __init__(self, columns: NDArray[np.int64], n_out: int) -> None:
        super().__init__()
        self.register_buffer("columns", torch.as_tensor(columns, dtype=torch.int64))
        # Rows of length 1, so that a vector of length 1 has an image of about that length.
        self.weight = nn.Parameter(torch.randn(len(columns), n_out) * n_out**-0.5)

    def forward(self, rows: SparseRows) -> Tensor:
        """Return W x for each row, (n, n_out)."""
        summed: Tensor = F.embedding_bag(
            rows.places, self.weight, rows.starts, per_sample_weights=rows.values, mode="sum"
        )
        return summed

    def rows_of(self, vectors: Any) -> SparseRows:
        """Return the rows of a csr_array as this layer's input; unknown columns are left out."""
        device = self.weight.device
        known = self.columns.cpu().numpy()
        found, is_known = places_among(known, vectors.indices)
        lengths = np.add.reduceat(np.append(is_known, False).astype(np.int64), vectors.indptr[:-1])
        lengths[np.diff(vectors.indptr) == 0] = 0
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return SparseRows(
            torch.as_tensor(found[is_known], dtype=torch.int64, device=device),
            torch.as_tensor(vectors.data[is_known], dtype=torch.float32, device=device),
            torch.as_tensor(starts, dtype=torch.int64, device=device),
        )


def input_layer(vectors: Any, n_out: int) -> SparseLinear | None:
    """Return the layer that sparse vectors need; None for dense ones, which need none."""
    if not is_sparse(vectors):
        return None
    return SparseLinear(np.unique(vectors.indices).astype(np.int64), n_out)


def network_input(layer: Any, vectors: Any, device: torch.device) -> Any:
    """Return vectors as what a layer takes: a tensor, or the rows of a sparse one."""
    if isinstance(layer, SparseLinear):
        return layer.rows_of(vectors)
    return torch.from_numpy(vectors).to(device)


def training_input(
    layer: Any, vectors: Any, device: torch.device
) -> Callable[[NDArray[np.int64]], Any]:
    """Return what gives the rows of a batch to a layer; dense vectors move to the device once."""
    if isinstance(layer, SparseLinear):
        return lambda rows: layer.rows_of(vectors[rows])
    moved = torch.from_numpy(vectors).to(device)
    return lambda rows: moved[rows]


def stored_layer(tensors: dict[str, Tensor], prefix: str) -> SparseLinear | None:
    """Return an empty sparse layer of the form that was stored, or None where none was."""
    if f"{prefix}columns" not in tensors:
        return None
    columns, weight = tensors[f"{prefix}columns"], tensors[f"{prefix}weight"]
    return SparseLinear(columns.numpy(), weight.shape[1])


def half(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as it is stored: numbers in float16, names of columns as they are."""
    array = tensor.detach().cpu().numpy()
    return array.astype(np.float16) if tensor.is_floating_point() else array


def unhalved(array: NDArray[Any]) -> Tensor:
    """Return what `half` stored, numbers in float32."""
    is_number = np.issubdtype(array.dtype, np.floating)
    return torch.from_numpy(np.asarray(array, np.float32 if is_number else array.dtype))
