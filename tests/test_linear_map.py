from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leakscope.core.attacks.inversion import linear_map
from leakscope.core.attacks.inversion.linear_map import LinearMap, Moments
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError


def test_solves_the_hand_worked_line() -> None:
    # Through (0, 1), (1, 3), (2, 5): y = 2x + 1.
    sums = Moments(1, 1)
    sums.add(np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]]))
    sums.add(np.array([[2.0]]), np.array([[5.0]]))
    solution = sums.solve(0.0)
    np.testing.assert_allclose(solution, [[2.0], [1.0]], atol=1e-12)
    assert sums.r_squared(solution) == pytest.approx(1.0)


def test_ridge_shrinks_slopes_by_the_hand_worked_amount() -> None:
    # Centred Σx² = 2, Σxy = 4, variance 2/3: slope 4 / (2 + 3·2/3) = 1, through the mean (1, 3).
    sums = Moments(1, 1)
    sums.add(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]))
    np.testing.assert_allclose(sums.solve(3.0), [[1.0], [2.0]], atol=1e-12)


def test_r_squared_of_the_mean_is_zero_and_of_nothing_is_nan() -> None:
    sums = Moments(1, 1)
    sums.add(np.array([[0.0], [1.0]]), np.array([[2.0], [6.0]]))
    assert sums.r_squared(np.array([[0.0], [4.0]])) == pytest.approx(0.0)
    assert np.isnan(Moments(1, 1).r_squared(np.zeros((2, 1))))


def test_constant_inputs_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    x = np.c_[rng.standard_normal((50, 2)), np.full(50, 7.0)]
    sums = Moments(3, 1)
    sums.add(x, x[:, :1] * 2 + 1)
    solution = sums.solve(1e-6)
    np.testing.assert_allclose(np.c_[x, np.ones(50)] @ solution, x[:, :1] * 2 + 1, atol=1e-3)


def test_maps_the_lowest_layer_to_itself(tiny_bert: Path, small_texts: list[str]) -> None:
    lowest = TransformerEncoder(tiny_bert, name="mlm:tiny@0", layer=0, device="cpu")
    fitted = LinearMap.fit(lowest, small_texts, layer=0, ridge=1e-9)
    vectors = lowest.encode(small_texts[:20])
    np.testing.assert_allclose(fitted.apply(vectors), vectors, atol=1e-4)
    assert fitted.r_squared > 0.999


def test_equals_least_squares_of_all_rows_at_once(
    tiny_encoder: TransformerEncoder, small_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_map, "CHUNK", 37)
    fitted = LinearMap.fit(tiny_encoder, small_texts, layer=1, ridge=1e-9, held_out=0.0)
    x, y = tiny_encoder.encode(small_texts), tiny_encoder.encode_layer(small_texts, 1)
    expected, *_ = np.linalg.lstsq(np.c_[x, np.ones(len(x))].astype(np.float64), y, rcond=None)
    expected_y = np.c_[x, np.ones(len(x))] @ expected
    np.testing.assert_allclose(fitted.apply(x), expected_y, atol=2e-3)
    assert np.isnan(fitted.r_squared)


def test_resumes_after_a_stop_with_the_same_result(
    tiny_encoder: TransformerEncoder,
    small_texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear_map, "CHUNK", 50)

    def stop(fraction: float, message: str) -> None:
        if fraction > 0.5:
            raise StoppedError("enough")

    folder = str(tmp_path / "run")
    with pytest.raises(StoppedError):
        LinearMap.fit(tiny_encoder, small_texts, on_progress=stop, checkpoint_dir=folder)
    seen: list[float] = []
    resumed = LinearMap.fit(
        tiny_encoder,
        small_texts,
        on_progress=lambda fraction, _: seen.append(fraction),
        checkpoint_dir=folder,
    )
    assert len(seen) == 3 and seen[-1] == 1.0
    whole = LinearMap.fit(tiny_encoder, small_texts)
    np.testing.assert_array_equal(resumed.weight, whole.weight)
    np.testing.assert_array_equal(resumed.intercept, whole.intercept)
    assert resumed.r_squared == whole.r_squared
    with pytest.raises(ArtifactError, match="another run"):
        LinearMap.fit(tiny_encoder, small_texts, layer=1, checkpoint_dir=folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layer": 4}, r"layer must lie in \[0, 3\]"),
        ({"vectors": np.zeros((3, 32), np.float32)}, r"shape \(400, 32\)"),
        ({"texts": ["alone"]}, "at least 2"),
    ],
)
def test_refuses_what_does_not_fit(
    tiny_encoder: TransformerEncoder, small_texts: list[str], change: dict, says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        LinearMap.fit(tiny_encoder, **({"texts": small_texts} | change))
