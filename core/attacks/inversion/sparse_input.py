"""Input layers for sparse vectors, such as bags of words, with too many dimensions for a matrix.

Only columns that some training vector fills have weights: nothing can be learned about others.
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

from leakscope.core.lookup import lookup_sorted
from leakscope.core.vectors import is_sparse


@dataclass(frozen=True)
class SparseRows:
    """A batch of sparse vectors: the filled columns' positions and values, and the row starts.

    Attributes
    ----------
    places, values : int64, float32 tensor (filled,)
    starts : int64 tensor (n,)
    """

    places: Tensor
    values: Tensor
    starts: Tensor

    def __len__(self) -> int:
        """Return the number of vectors in the batch."""
        return len(self.starts)

    @property
    def device(self) -> torch.device:
        """The device that the batch is on."""
        return self.values.device


class SparseLinear(nn.Module):
    """A linear layer without bias for sparse input: `n_out` weights for each filled column.

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
        """Return W x for each sparse row, (n, n_out)."""
        summed: Tensor = F.embedding_bag(
            rows.places, self.weight, rows.starts, per_sample_weights=rows.values, mode="sum"
        )
        return summed

    def rows_of(self, vectors: Any) -> SparseRows:
        """Convert a csr_array to a batch of this layer; columns without weights are dropped."""
        device = self.weight.device
        known = self.columns.cpu().numpy()
        found, is_known = lookup_sorted(known, vectors.indices)
        lengths = np.add.reduceat(np.append(is_known, False).astype(np.int64), vectors.indptr[:-1])
        lengths[np.diff(vectors.indptr) == 0] = 0
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return SparseRows(
            torch.as_tensor(found[is_known], dtype=torch.int64, device=device),
            torch.as_tensor(vectors.data[is_known], dtype=torch.float32, device=device),
            torch.as_tensor(starts, dtype=torch.int64, device=device),
        )


def input_layer(vectors: Any, n_out: int) -> SparseLinear | None:
    """Build an untrained input layer for sparse training vectors; return None for dense ones."""
    if not is_sparse(vectors):
        return None
    return SparseLinear(np.unique(vectors.indices).astype(np.int64), n_out)


def network_input(layer: Any, vectors: Any, device: torch.device) -> Any:
    """Convert vectors to a layer's input: a dense tensor, or `SparseRows` for a sparse layer."""
    if isinstance(layer, SparseLinear):
        return layer.rows_of(vectors)
    return torch.from_numpy(vectors).to(device)


def training_input(
    layer: Any, vectors: Any, device: torch.device
) -> Callable[[NDArray[np.int64]], Any]:
    """Return a function from row numbers to a batch of these vectors as the layer's input."""
    if isinstance(layer, SparseLinear):
        return lambda rows: layer.rows_of(vectors[rows])
    moved = torch.from_numpy(vectors).to(device)
    return lambda rows: moved[rows]


def stored_layer(tensors: dict[str, Tensor], prefix: str) -> SparseLinear | None:
    """Build a sparse layer of the stored shape, weights not loaded; None if none was stored."""
    if f"{prefix}columns" not in tensors:
        return None
    columns, weight = tensors[f"{prefix}columns"], tensors[f"{prefix}weight"]
    return SparseLinear(columns.numpy(), weight.shape[1])


def to_stored(tensor: Tensor) -> NDArray[Any]:
    """Convert a tensor to an array for storage: floats to float16, integers unchanged."""
    array = tensor.detach().cpu().numpy()
    return array.astype(np.float16) if tensor.is_floating_point() else array


def from_stored(array: NDArray[Any]) -> Tensor:
    """Convert an array stored by `to_stored` back to a tensor, floats to float32."""
    is_number = np.issubdtype(array.dtype, np.floating)
    return torch.from_numpy(np.asarray(array, np.float32 if is_number else array.dtype))
