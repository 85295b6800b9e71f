"""Noise that is drawn on the device that computes is the noise of Eq. 3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from core.defences.metric_dp.noise_torch import draw_noise_there
from core.errors import InvalidInputError

_N, _DIMENSION, _ETA = 4000, 24, 8.0


def _drawn(seed: int, eta: float = _ETA) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return draw_noise_there(_N, _DIMENSION, eta, rng=rng, device="cpu")


def test_norms_follow_the_gamma_law_with_mean_n_over_eta() -> None:
    norms = _drawn(1).norm(dim=1).double().numpy()
    law = stats.gamma(_DIMENSION, scale=1 / _ETA)
    assert stats.kstest(norms, law.cdf).pvalue > 1e-3
    assert abs(norms.mean() - _DIMENSION / _ETA) < 5 * law.std() / np.sqrt(_N)


def test_directions_are_uniform_on_the_sphere_and_of_no_norm() -> None:
    noise = _drawn(2)
    norms = noise.norm(dim=1)
    units = (noise / norms[:, None]).double().numpy()
    assert np.abs(units.mean(0)).max() < 5 / np.sqrt(_N * _DIMENSION)
    spread = units.T @ units / _N * _DIMENSION
    assert np.abs(spread - np.eye(_DIMENSION)).max() < 0.15
    assert abs(np.corrcoef(units[:, 0], norms.numpy())[0, 1]) < 5 / np.sqrt(_N)


def test_the_generator_alone_decides_what_is_drawn() -> None:
    assert torch.equal(_drawn(3), _drawn(3))
    assert not torch.equal(_drawn(3), _drawn(4))
    rng = np.random.default_rng(5)
    first, second = (draw_noise_there(9, 4, rng=rng, device="cpu") for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("eta", [0.0, -1.0, float("nan"), float("inf")])
def test_a_parameter_that_is_none_is_refused(eta: float) -> None:
    with pytest.raises(InvalidInputError, match="positive"):
        _drawn(0, eta)
