"""One contract over every entry of the registry of defences.

The checks are plain functions, so that a defence of a test can be put to them as well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leakscope.core.defences.registry import DEFENCES, make_defence
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec, settings_of

TEXTS = ["the money river", "doctor", "the minister and the garden with winter"]
SMALL = {"dimension": 12}


def spec_of(name: str, **more: object) -> DefenceSpec:
    fields = DEFENCES[name].kind.__dataclass_fields__
    settings = {k: v for k, v in {**SMALL, "seed": 4, **more}.items() if k in fields}
    return DefenceSpec.of(name, settings)


def a_protected_encoder_is_an_encoder(name: str, encoder: TransformerEncoder) -> None:
    protected = make_defence(spec_of(name)).protect(encoder)
    vectors = protected.encode(TEXTS)
    assert vectors.shape == (3, protected.dimension) and vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert encoder.name in protected.name
    assert protected.fingerprint != encoder.fingerprint


def it_repeats_under_a_seed_and_reports_progress(name: str, encoder: TransformerEncoder) -> None:
    seen: list[float] = []
    one, other = (make_defence(spec_of(name)).protect(encoder) for _ in range(2))
    first = one.encode(TEXTS, lambda fraction, _: seen.append(fraction))
    assert first == pytest.approx(other.encode(TEXTS), abs=1e-6)
    assert one.fingerprint == other.fingerprint
    assert seen and seen[-1] == 1.0 and all(0 <= s <= 1 for s in seen)


def settings_are_documented_and_checked(name: str, encoder: TransformerEncoder) -> None:
    entry = DEFENCES[name]
    assert entry.title and entry.summary.endswith(".") and entry.kind.__doc__ and entry.cost
    for key, field in settings_of(entry.kind).items():
        assert field.metadata["help"]
        if field.metadata["low"] is not None:
            with pytest.raises(InvalidInputError, match=key):
                make_defence(DefenceSpec.of(name, {key: field.metadata["low"] - 1}))
    with pytest.raises(InvalidInputError, match="no setting 'nonsense'"):
        make_defence(DefenceSpec.of(name, {"nonsense": 1}))


CHECKS = (
    a_protected_encoder_is_an_encoder,
    it_repeats_under_a_seed_and_reports_progress,
    settings_are_documented_and_checked,
)


@pytest.mark.parametrize("name", DEFENCES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_defence(
    check: Callable[..., None], name: str, tiny_encoder: TransformerEncoder
) -> None:
    check(name, tiny_encoder)


class Known:
    """Gives each text the vector that it spells."""

    name, dimension, fingerprint = "known", 4, "f"

    def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
        return np.array([text.split() for text in texts], np.float32)


@pytest.mark.parametrize(
    "name",
    [name for name, each in DEFENCES.items() if each.acts_on == "vector" and not each.draws_noise],
)
def test_a_vector_is_protected_alike_whatever_stands_beside_it(name: str) -> None:
    protected = make_defence(spec_of(name, dimension=2)).protect(Known())  # type: ignore[arg-type]
    texts = ["0.26 -1.27 0.1 0.634", "30 -20 10 5", "0.001 0.002 -0.003 0.004"]
    alone = np.concatenate([protected.encode([text]) for text in texts])
    assert protected.encode(texts).tolist() == alone.tolist()


def test_an_unknown_defence_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="text_to_text"):
        make_defence("magic")


def test_vector_defences_by_hand() -> None:
    class Fixed:
        name, dimension, fingerprint = "fixed", 4, "f"

        def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
            return np.array([[0.26, -1.27, 0.0, 0.634]], np.float32)

    def protect(name: str, **settings: object) -> np.ndarray:
        return make_defence(DefenceSpec.of(name, settings)).protect(Fixed()).encode(["x"])[0]

    assert protect("none").tolist() == Fixed().encode([])[0].tolist()
    assert protect("rounding", decimals=1) == pytest.approx([0.3, -1.3, 0.0, 0.6])
    assert protect("int8") == pytest.approx([0.26, -1.27, 0.0, 0.63], abs=1e-6)
    assert protect("binary") == pytest.approx([0.5, -0.5, 0.5, 0.5])
    assert protect("truncation", dimension=2) == pytest.approx([0.26, -1.27])
    assert protect("gaussian", sigma=0.0, seed=0) == pytest.approx(Fixed().encode([])[0])
    with pytest.raises(InvalidInputError, match=r"\[1, 4\]"):
        protect("truncation", dimension=5)


def test_gaussian_noise_has_its_deviation_and_projections_keep_lengths(
    tiny_encoder: TransformerEncoder,
) -> None:
    plain = tiny_encoder.encode(TEXTS[:1] * 500)
    noise = make_defence(DefenceSpec.of("gaussian", {"sigma": 0.2, "seed": 0}))
    moved = noise.protect(tiny_encoder).encode(TEXTS[:1] * 500) - plain
    assert moved.std() == pytest.approx(0.2, rel=0.02) and abs(moved.mean()) < 0.01
    lengths = [
        np.linalg.norm(
            make_defence(DefenceSpec.of("random_projection", {"dimension": 24, "seed": s}))
            .protect(tiny_encoder)
            .encode(TEXTS[:1])
        )
        for s in range(200)
    ]
    assert np.mean(np.square(lengths)) == pytest.approx(np.square(plain[0]).sum(), rel=0.15)
