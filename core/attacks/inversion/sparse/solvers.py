"""Two solvers for the non-negative lasso of SR20 Eq. 7, on many targets at once.

Both minimise f(z) = ‖Vᵀz − t‖² + λ‖z‖₁ over z ≥ 0. At the optimum the pull of token j,
h_j = v_j·(t − Vᵀz) − λ/2, is 0 where z_j > 0 and at most 0 elsewhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from leakscope.core.protocols import OnProgress, no_progress

Floats = NDArray[np.float32]


def objective(z: Floats, tokens: Floats, targets: Floats, lambda_: float) -> NDArray[np.float64]:
    """Compute the lasso objective ‖Vᵀz − t‖² + λ‖z‖₁ of each row of z.

    Examples
    --------
    >>> objective(np.array([[2.0, 0.0]]), np.eye(2), np.array([[3.0, 1.0]]), 0.5)
    array([3.])
    """
    wide = z.astype(np.float64)
    misfit = wide @ tokens.astype(np.float64) - targets
    return np.asarray((misfit**2).sum(1) + lambda_ * np.abs(wide).sum(1))


def kkt_residual(z: Floats, tokens: Floats, targets: Floats, lambda_: float) -> NDArray[np.float64]:
    """Compute how far each row of z violates the optimality (KKT) conditions; 0 at the optimum.

    The maximum of h_j, and of |h_j| where z_j > 0. A token enters at a pull of λ/2, so a residual
    of a thousandth of λ is small.
    """
    wide = tokens.astype(np.float64)
    pull = (targets - z.astype(np.float64) @ wide) @ wide.T - lambda_ / 2
    return np.asarray(np.where(z > 0, np.abs(pull), np.maximum(pull, 0)).max(1))


def projected_adam(
    tokens: Floats,
    targets: Floats,
    lambda_: float,
    *,
    learning_rate: float = 1e-3,
    max_steps: int = 3000,
    tolerance: float = 1e-5,
    on_progress: OnProgress = no_progress,
) -> Floats:
    """Solve Eq. 7 for all targets as in the paper: Adam, with negative coordinates set to 0.

    Implements Song & Raghunathan (2020), Alg. 1 lines 5–9.
    Differs from the paper: it stops when the summed objective has fallen by less than the share
    `tolerance` over 50 steps.

    Returns
    -------
    ndarray of float32, shape (n, |V|)
    """
    basis, goal = torch.from_numpy(tokens), torch.from_numpy(targets)
    z = torch.zeros(len(targets), len(tokens))
    optimizer = torch.optim.Adam([z], lr=learning_rate)
    before = np.inf
    for step in range(max_steps):
        misfit = z @ basis - goal
        z.grad = 2 * misfit @ basis.T + lambda_
        if step % 50 == 0:
            value = float((misfit.double() ** 2).sum() + lambda_ * z.sum())
            if before - value <= tolerance * value and step:
                break
            before = value
            on_progress(step / max_steps, f"Projected gradient, step {step:,} of {max_steps:,}")
        optimizer.step()
        z.clamp_(min=0)
    return z.numpy()


def working_set(
    tokens: Floats,
    targets: Floats,
    lambda_: float,
    *,
    tolerance: float = 2e-3,
    size: int = 128,
    max_rounds: int = 50,
    on_progress: OnProgress = no_progress,
) -> Floats:
    """Solve Eq. 7 for all targets exactly on few tokens, adding tokens until none violates it.

    Each round computes the pulls of all tokens for all targets in one matrix product, adds the
    `size` strongest to each target's working set, and solves on that set by coordinate descent
    on its Gram matrix. A target is done when no pull exceeds `tolerance`·λ/2: since tokens
    outside the set are checked as well, that certifies the optimum over the whole vocabulary.
    Differs from the paper: the solver alone; problem and optimum are those of Eq. 7.

    Returns
    -------
    ndarray of float32, shape (n, |V|)
    """
    z = np.zeros((len(targets), len(tokens)), dtype=np.float32)
    if not lambda_ > 0:
        raise ValueError("lambda_ must be positive; at 0, every token may be selected.")
    open_rows = np.arange(len(targets))
    basis = torch.from_numpy(tokens)
    allowed = tolerance * lambda_ / 2
    for turn in range(max_rounds):
        current = torch.from_numpy(z[open_rows])
        pull = (torch.from_numpy(targets[open_rows]) - current @ basis) @ basis.T - lambda_ / 2
        is_on = current > 0
        residual = torch.where(is_on, pull.abs(), pull).amax(1)
        is_open = (residual > allowed).numpy()
        on_progress(1 - is_open.sum() / max(1, len(targets)), "Sparse coding")
        if not is_open.any():
            break
        entering = pull.masked_fill(is_on, -torch.inf).topk(min(size, len(tokens)), dim=1)
        for row, i in enumerate(open_rows):
            if is_open[row]:
                new = entering.indices[row][entering.values[row] > 0].numpy()
                chosen = np.concatenate([np.flatnonzero(z[i]), new])
                z[i, chosen] = _descend(
                    tokens[chosen], targets[i], z[i, chosen], lambda_, max(1e-5 * 0.1**turn, 1e-14)
                )
        open_rows = open_rows[is_open]
    return z


def _descend(
    tokens: Floats, target: Floats, start: Floats, lambda_: float, tolerance: float
) -> Floats:
    """Solve Eq. 7 for one target on its working set: coordinate descent, then an exact step.

    scikit-learn minimises ‖…‖²/(2d) + α‖z‖₁, so α = λ/(2d).
    """
    gram, pull = (tokens @ tokens.T).astype(np.float64), (tokens @ target).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the outer loop checks the gradients
        _, path, _ = enet_path(
            np.asfortranarray(tokens.T, dtype=np.float64),
            target.astype(np.float64),
            l1_ratio=1.0,
            alphas=[lambda_ / (2 * len(target))],
            precompute=gram,
            Xy=pull,
            coef_init=start.astype(np.float64),
            positive=True,
            check_input=False,
            tol=tolerance,
            max_iter=2000,
        )
    z = np.asarray(path[:, 0])
    kept = np.flatnonzero(z)
    try:
        exact = np.linalg.solve(gram[np.ix_(kept, kept)], pull[kept] - lambda_ / 2)
    except np.linalg.LinAlgError:  # tokens with equal vectors: descent has split them somehow
        return z.astype(np.float32)
    if (exact > 0).all():
        z[kept] = exact
    return z.astype(np.float32)


SOLVERS: dict[str, Callable[[Floats, Floats, float], Floats]] = {
    "working_set": working_set,
    "projected_adam": projected_adam,
}
"""The solvers by their setting name."""
