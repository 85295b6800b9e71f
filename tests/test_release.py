"""What noisy vectors reveal through floating point, and that the fixed grid takes it away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases import release_in_float32
from scipy import sparse
from torch import Tensor

from leakscope.core.attacks.inversion.rounding_grid import RoundingGrid, lowest_bits
from leakscope.core.defences.metric_dp.audit.pairs import audit_pair, half_spaces
from leakscope.core.defences.metric_dp.mechanisms import SequenceRepresentation, TokenRepresentation
from leakscope.core.defences.metric_dp.noise import draw_noise
from leakscope.core.defences.metric_dp.release import (
    FINEST_STEP,
    STEPS_PER_SCALE,
    grid_step,
    release,
    release_under_noise,
)
from leakscope.core.defences.trained.under_noise.user_side import UserSide
from leakscope.core.defences.vectors import GaussianNoise
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import InvalidInputError

ETAS = (0.5, 1.0, 5.0)
Release = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]


@given(scale=st.floats(1e-13, 1e6))
def test_the_step_is_a_power_of_two_well_below_the_noise(scale: float) -> None:
    step = grid_step(scale)
    assert np.frexp(step)[0] == 0.5
    assert step == FINEST_STEP or scale / STEPS_PER_SCALE / 2 < step <= scale / STEPS_PER_SCALE


def test_a_released_number_by_hand() -> None:
    # At η 1 the step is 2^-10: 0.3 + 1.2345 = 1.5345 is 1571.328 steps.
    found = release(np.float32([[0.3]]), np.array([[1.2345]]), 1.0)
    assert found.dtype == np.float32
    assert found.tolist() == [[1571 / 1024]]


def test_noise_of_less_than_float64_is_refused() -> None:
    for kind in (np.float16, np.float32):
        with pytest.raises(TypeError, match="float64"):
            release(np.zeros((1, 3), np.float32), np.zeros((1, 3), kind), 1.0)  # type: ignore[arg-type]


def test_noise_is_released_with_all_its_digits() -> None:
    vectors = np.zeros((300, 384), np.float32)
    noise = draw_noise(300, 384, 1.0, rng=np.random.default_rng(3), dtype=np.float64)
    assert (noise.astype(np.float32) != noise).mean() > 0.999
    found = release_under_noise(vectors, 1.0, np.random.default_rng(3))
    assert (found == release(vectors, noise, 1.0)).all()


@given(value=st.floats(-1e6, 1e6, width=32))
def test_the_lowest_bit_is_the_coarsest_grid_that_holds_a_number(value: float) -> None:
    (bit,) = lowest_bits(np.float32([value])).tolist()
    if value == 0:
        assert bit == 127
    else:
        assert (value / 2.0**bit) % 2 == 1


def everything_that_releases(
    encoder: TransformerEncoder, eta: float, texts: list[str]
) -> dict[str, tuple[np.ndarray, float]]:
    """Return what each mechanism whose output is numbers releases, and the scale of its noise."""
    seen: list[np.ndarray] = []

    class Watched:
        """The encoder, with the token vectors that it goes on from in sight."""

        def __getattr__(self, name: str) -> object:
            return getattr(encoder, name)

        def embed_token_vectors(self, vectors: Tensor, layer: int | None = None) -> Tensor:
            seen.append(vectors.numpy().reshape(-1, vectors.shape[-1]))
            return encoder.embed_token_vectors(vectors, layer)

    TokenRepresentation(eta=eta, seed=1).protect(Watched()).encode(texts)  # type: ignore[arg-type]
    ids = np.arange(len(encoder.tokens))
    side = UserSide(encoder, "token_representation", eta)
    there = UserSide(encoder, "token_representation", eta)
    there.__dict__["_device"] = "cpu:0"  # draws as a GPU does
    rng = np.random.default_rng(2)
    return {
        "token_representation": (np.concatenate(seen), 1 / eta),
        "sequence_representation": (
            SequenceRepresentation(eta=eta, seed=1).protect(encoder).encode(texts),
            1 / eta,
        ),
        "gaussian": (GaussianNoise(sigma=1 / eta, seed=1).protect(encoder).encode(texts), 1 / eta),
        "training under noise": (side.vectors(ids, rng)[0], 1 / eta),
        "training under noise, on a GPU": (there.vectors(ids, rng)[0], 1 / eta),
    }


@pytest.mark.parametrize("eta", [0.5, 75.0, 3000.0])
def test_every_mechanism_that_releases_numbers_does_so_on_the_grid(
    tiny_encoder: TransformerEncoder, small_texts: list[str], eta: float
) -> None:
    for name, (found, scale) in everything_that_releases(
        tiny_encoder, eta, small_texts[:40]
    ).items():
        steps = found.astype(np.float64) / grid_step(scale)
        assert (steps == np.rint(steps)).all(), name
        assert len(np.unique(steps % 2)) == 2, f"{name}: the grid is not coarser than told"


@pytest.fixture(scope="module")
def pair(minilm: TransformerEncoder) -> tuple[np.ndarray, np.ndarray, float]:
    """Two token vectors of the bundled encoder, as far apart as two usual ones."""
    table = token_table(minilm)
    one, other = (table[minilm.tokens.index(word)] for word in ("insulin", "harbour"))
    return one, other, float(np.linalg.norm(one - other))


def is_off_grid(noisy: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return whether each sum has a coordinate that a float32 sum with `vector` cannot have."""
    spacing = np.spacing(np.abs(vector) / 2)
    is_whole = np.rint(noisy / spacing) * spacing == noisy
    return np.asarray(((np.abs(noisy) < np.abs(vector) / 2) & ~is_whole).any(1))


def watched(x: np.ndarray, other: np.ndarray) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return what an attacker may look at in outputs: the grids of both, strips, low bits."""
    return {
        "grids": lambda y: is_off_grid(y, x) + 2 * is_off_grid(y, other),
        "strips": lambda y: half_spaces(y, x, other),
        "low bits": lambda y: lowest_bits(y).min(1).astype(np.int64),
    }


def observed(
    made: Release, pair: tuple[np.ndarray, np.ndarray, float], eta: float
) -> dict[str, tuple[float, float]]:
    """Return, by what is looked at, the 99 % lower bound of the log-odds and what is promised."""
    x, other, distance = pair
    runs = {}
    for i, (first, second) in enumerate(((x, other), (other, x))):
        rng = np.random.default_rng([int(10 * eta), i])
        draws = [made(np.tile(v, (20_000, 1)), eta, rng) for v in (first, first, second, second)]
        for name, look in watched(x, other).items():
            seen = [look(y) for y in draws]
            one, two = iter(seen[:2]), iter(seen[2:])
            found = audit_pair(
                lambda _, one=one: next(one),
                lambda _, two=two: next(two),
                eta * distance,
                n_runs=40_000,
                alpha=0.01,
            )
            runs[f"{name}, {i}"] = found.lower_bound, found.promised
    return runs


@pytest.mark.parametrize("eta", ETAS)
def test_the_odds_of_a_release_are_within_the_promise(
    pair: tuple[np.ndarray, np.ndarray, float], eta: float
) -> None:
    for name, (bound, promised) in observed(release_under_noise, pair, eta).items():
        assert bound < promised, name


def test_a_float32_sum_breaks_the_promise(pair: tuple[np.ndarray, np.ndarray, float]) -> None:
    found = observed(release_in_float32, pair, 1.0)
    bound = max(found[name][0] for name in ("grids, 0", "grids, 1"))
    assert bound > np.log(100) > found["grids, 0"][1]


def test_the_grid_never_excludes_the_input_and_mostly_excludes_others(
    minilm: TransformerEncoder,
) -> None:
    table = token_table(minilm)[2000:6000]
    rng = np.random.default_rng(0)
    own = np.arange(0, 4000, 100)
    old = RoundingGrid(table).excluded(release_in_float32(table[own], 65.0, rng))
    assert not old[np.arange(len(own)), own].any()
    assert old.mean() > 0.9
    noisy = release_in_float32(table[own], 65.0, rng)
    found = RoundingGrid(table[:50]).excluded(noisy)
    assert (found == np.stack([is_off_grid(noisy, v) for v in table[:50]], axis=1)).all()
    assert not RoundingGrid(table).excluded(release_under_noise(table[own], 65.0, rng)).any()


def test_encoders_of_sparse_vectors_are_refused() -> None:
    class Sparse:
        name, dimension, fingerprint = "bag", 8, "f"

        def encode(self, texts: list[str], on_progress: object = None) -> sparse.csr_matrix:
            return sparse.csr_matrix(np.eye(8, dtype=np.float32)[: len(texts)])

    for defence in (SequenceRepresentation(eta=5.0), GaussianNoise()):
        with pytest.raises(InvalidInputError, match="sparse"):
            defence.protect(Sparse()).encode(["a letter"])  # type: ignore[arg-type]
