"""Noise that is drawn on the device that computes is the noise of Eq. 3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from leakscope.core.defences.metric_dp.noise_torch import draw_noise_on_device
from leakscope.core.defences.trained.under_noise import user_side
from leakscope.core.defences.trained.under_noise.user_side import UserSide, device_identity
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError

_N, _DIMENSION, _ETA = 4000, 24, 8.0


def _drawn(seed: int, eta: float = _ETA) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return draw_noise_on_device(_N, _DIMENSION, eta, rng=rng, device="cpu")


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
    first, second = (draw_noise_on_device(9, 4, rng=rng, device="cpu") for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("eta", [0.0, -1.0, float("nan"), float("inf")])
def test_a_parameter_that_is_none_is_refused(eta: float) -> None:
    with pytest.raises(InvalidInputError, match="positive"):
        _drawn(0, eta)


def sides(encoder: TransformerEncoder, mechanism: str, eta: float) -> tuple[UserSide, UserSide]:
    """Return one that draws as a processor does, and one that draws as a GPU does."""
    here, there = (UserSide(encoder, mechanism, eta) for _ in range(2))
    there.__dict__["_device"] = "cpu:0"
    return here, there


def test_vectors_are_moved_by_the_noise_of_eq_3(tiny_encoder: TransformerEncoder) -> None:
    here, there = sides(tiny_encoder, "token_representation", 3.0)
    ids = np.full(3000, 7)
    law = stats.gamma(here.dimension, scale=1 / 3.0)
    for side in (here, there):
        moved, changed = side.vectors(ids, np.random.default_rng(1))
        assert changed is None and moved.dtype == np.float32
        norms = np.linalg.norm((moved - side.table[ids]).astype(np.float64), axis=1)
        assert stats.kstest(norms, law.cdf).pvalue > 1e-3


def test_tokens_are_exchanged_as_often_wherever_it_is_drawn(
    tiny_encoder: TransformerEncoder,
) -> None:
    eta = 60.0
    here, there = sides(tiny_encoder, "text_to_text", eta)
    ids, n = np.full(4000, 7), 4000
    counts = []
    for side in (here, there):
        vectors, changed = side.vectors(ids, np.random.default_rng(2))
        assert changed is not None and np.array_equal(vectors, side.table[changed])
        counts.append(int((changed == 7).sum()))
    table = [[each, n - each] for each in counts]
    assert 0 < counts[0] < n, "else nothing is told"
    assert stats.chi2_contingency(table).pvalue > 1e-3
    perturbed = there.perturbed(np.array([7, 9]), 50, np.random.default_rng(3))
    assert perturbed.shape == (2, 50) and len(np.unique(perturbed)) > 1


def test_a_run_tells_where_its_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_side, "pick_device", lambda: torch.device("cpu"))
    assert device_identity() == {}
    monkeypatch.setattr(user_side, "pick_device", lambda: torch.device("cuda"))
    assert device_identity() == {"noise_device": "cuda"}
