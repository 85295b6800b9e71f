"""Operations on embedding matrices, dense or sparse.

Bags of words have up to 2^18 dimensions of which a sentence fills a dozen, so their rows stay
sparse. Everything else is a dense float32 array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def is_sparse(vectors: Any) -> bool:
    """Return whether an embedding matrix is sparse."""
    return bool(sparse.issparse(vectors))


def n_rows(vectors: Any) -> int:
    """Return the number of rows of dense or sparse vectors (`len` fails on sparse ones)."""
    return int(vectors.shape[0])


def stack(parts: Sequence[Any]) -> Any:
    """Concatenate matrices of vectors row-wise; the result is sparse if any of them is."""
    if any(is_sparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def mean_norm(vectors: Any) -> float:
    """Return the mean Euclidean norm of the rows; 1 if all are zero.

    Examples
    --------
    >>> mean_norm(np.array([[3.0, 4.0], [0.0, 1.0]]))
    3.0
    """
    if is_sparse(vectors):
        norms = np.sqrt(vectors.multiply(vectors).sum(1))
    else:
        norms = np.linalg.norm(vectors, axis=1)
    return float(np.mean(norms)) or 1.0


def unit(vectors: Any) -> Any:
    """Return the vectors with each row scaled to unit Euclidean norm; zero rows stay zero.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    if is_sparse(vectors):
        norms = np.sqrt(vectors.multiply(vectors).sum(1))
        return sparse.csr_array(vectors.multiply(1 / np.maximum(norms, 1e-12)[:, None]))
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def dot(left: Any, right: Any) -> NDArray[np.float32]:
    """Return left @ right.T as a dense float32 array (n, m)."""
    product = left @ right.T
    return np.asarray(product.toarray() if is_sparse(product) else product, dtype=np.float32)


def sparse_parts(rows: Any) -> dict[str, NDArray[Any]]:
    """Return the data, column and row-start arrays of a sparse matrix, by name, for storage."""
    return {"data": rows.data, "columns": rows.indices, "starts": rows.indptr}


def sparse_from_parts(parts: Mapping[str, NDArray[Any]], dimension: int) -> Any:
    """Rebuild a sparse matrix from the arrays of `sparse_parts`, ignoring other entries.

    Raises
    ------
    KeyError
        A part is missing.
    ValueError
        The parts do not fit each other or the dimension. A column beyond it would have products
        read and write memory that is not theirs, so each one is looked at.

    Examples
    --------
    >>> parts = {"data": np.ones(2), "columns": np.array([0, 2]), "starts": np.array([0, 1, 2])}
    >>> sparse_from_parts(parts, 3).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    data, columns, starts = parts["data"], parts["columns"], parts["starts"]
    if not all(np.issubdtype(part.dtype, np.integer) for part in (columns, starts)):
        raise ValueError("columns and starts of sparse rows must be whole numbers")
    rows = sparse.csr_array((data, columns, starts), shape=(len(starts) - 1, dimension))
    rows.check_format(full_check=True)
    return rows
