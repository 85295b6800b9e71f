"""The linear classifier on sparse features, such as words: the same steps, a few columns each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from core.attacks.attributes.program import Linear, Problem, Recipe, adam_step, batches_of

__all__ = ["train_sparse"]


def train_sparse(features: Any, problem: Problem, recipe: Recipe) -> Linear:
    """Return the classifier of a problem, as `program.train_many` trains it.

    Differs from dense features: nothing is taken from the rows, which would fill them; they are
    scaled so that their mean squared length is the number of columns that the labelled rows fill.
    Other columns have no weight, since no gradient ever reaches them.

    Parameters
    ----------
    features : csr_array of float32, shape (n, d)
    """
    known = sparse.csr_array(features[problem.rows])
    columns = np.unique(known.indices).astype(np.int64)
    if not len(columns):  # not one word is known of any text
        nothing = np.zeros((0, problem.n_labels), np.float32)
        return Linear(nothing, nothing.sum(0), np.zeros(0, np.float32), 1.0, columns)
    squared = float(known.multiply(known).sum()) / known.shape[0]
    scale = float(np.sqrt(len(columns) / max(squared, 1e-12)))
    known = sparse.csr_array(known[:, columns] * np.float32(scale))
    weights = torch.zeros(len(columns), problem.n_labels)
    bias = torch.zeros(problem.n_labels)
    moments = [torch.zeros_like(p) for p in (weights, weights, bias, bias)]
    at_weights, at_bias = weights.numpy(), bias.numpy()  # the same memory
    places, counts = batches_of(problem, recipe)
    for t in range(len(places)):
        n = int((counts[t] > 0).sum())
        rows = places[t, :n]
        x = known[rows]
        error = torch.from_numpy(x @ at_weights + at_bias).softmax(1)
        error[torch.arange(n), torch.from_numpy(problem.labels[rows])] -= 1
        error /= n
        gradient = torch.from_numpy(np.ascontiguousarray(x.T @ error.numpy()))
        adam_step(weights, gradient, moments[0], moments[1], t, recipe.rate)
        adam_step(bias, error.sum(0), moments[2], moments[3], t, recipe.rate)
    centre = np.zeros(len(columns), np.float32)
    return Linear(at_weights.copy(), at_bias.copy(), centre, scale, columns)
