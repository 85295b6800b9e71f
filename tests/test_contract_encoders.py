"""One contract over every encoder that is fitted on a corpus here.

The checks are plain functions, so that an encoder of a test can be put to them as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_python

from leakscope.core.attacks.inversion import (
    INVERSION_ATTACKS,
    load_attack,
    make_attack,
    save_attack,
)
from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.defences.registry import make_defence
from leakscope.core.encoders import ENCODERS, load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.fitted import load_fitted, make_encoder, save_encoder
from leakscope.core.encoders.registry import FITTED_ENCODERS
from leakscope.core.errors import (
    ArtifactError,
    CoreError,
    InvalidInputError,
    NotFittedError,
    StoppedError,
)
from leakscope.core.protocols import Encoder, FittedEncoder
from leakscope.core.specs import AttackSpec, DefenceSpec, FittedEncoderSpec, settings_of
from leakscope.core.text import word_set
from leakscope.core.vectors import is_sparse

# Applied where an encoder declares a setting of that name.
TINY: dict[str, Any] = {
    "n_components": 12,
    "vector_size": 16,
    "epochs": 3,
    "negative": 3,
    "n_cells": 512,
    "sample": 1e-2,
    "dimension": 16,
    "n_negatives": 20,
    "n_candidates": 5,
    "n_validation": 20,
    "max_length": 12,
    "word_dimension": 16,
    "feed_forward": 32,
    "n_heads": 2,
    "n_layers": 1,
}
NAMES = sorted(FITTED_ENCODERS)
UNSEEN = ["The doctor crossed the river in winter.", "A ticket to Lisbon, please."]


def tiny(name: str, **more: Any) -> FittedEncoder:
    known = settings_of(FITTED_ENCODERS[name].kind)
    settings = {key: value for key, value in TINY.items() if key in known}
    return make_encoder(FittedEncoderSpec.of(name, settings | more))


@pytest.fixture(scope="module")
def bases(tiny_bert: Path) -> dict[str, dict[str, Any]]:
    """What some encoders need besides settings that hold for all."""
    return {"sbert": {"base": str(tiny_bert), "epochs": 1}}


def learn(encoder: FittedEncoder, texts: list[str], **more: Any) -> FittedEncoder:
    """Fit on texts, or on neighbouring texts with the share of words that both hold."""
    if FITTED_ENCODERS[encoder.name].learns_from != "scores":
        return encoder.fit(texts, **more)
    first, second = texts[:100], texts[1:101]
    shared = [len(word_set(a) & word_set(b)) for a, b in zip(first, second, strict=True)]
    scores = [5 * n / max(shared) for n in shared]
    return encoder.fit_pairs(first, second, scores, **more)  # type: ignore[attr-defined]


def dense(vectors: Any) -> np.ndarray:
    return vectors.toarray() if is_sparse(vectors) else vectors


@dataclass
class Case:
    """A fitted encoder, what it was fitted on, and what its kind needs besides."""

    name: str
    encoder: FittedEncoder
    texts: list[str]
    more: dict[str, Any]


class FittedByName(dict[str, FittedEncoder]):
    """Encoders by name, each fitted when it is first asked for."""

    def __init__(self, texts: list[str], bases: dict[str, Any]) -> None:
        self.texts, self.bases = texts, bases

    def __missing__(self, name: str) -> FittedEncoder:
        self[name] = learn(tiny(name, **self.bases.get(name, {})), self.texts)
        return self[name]


@pytest.fixture(scope="module")
def fitted(small_texts: list[str], bases: dict[str, Any]) -> dict[str, FittedEncoder]:
    return FittedByName(small_texts, bases)


def vectors_have_the_promised_form(case: Case, tmp_path: Path) -> None:
    name, encoder = case.name, case.encoder
    assert isinstance(encoder, Encoder) and encoder.name == name
    vectors = encoder.encode(case.texts[:5])
    assert vectors.shape == (5, encoder.dimension) and vectors.dtype == np.float32
    assert np.isfinite(dense(vectors)).all() and (np.abs(dense(vectors)).sum(1) > 0).all()
    assert encoder.encode([]).shape == (0, encoder.dimension)
    one_by_one = [dense(encoder.encode([text]))[0] for text in case.texts[:5]]
    np.testing.assert_allclose(np.stack(one_by_one), dense(vectors), atol=1e-6)


def saved_and_loaded_it_answers_the_same(case: Case, tmp_path: Path) -> None:
    name, encoder = case.name, case.encoder
    save_encoder(encoder, tmp_path / "e")
    again = load_encoder(f"{name}:{tmp_path / 'e'}")
    assert again.fingerprint == encoder.fingerprint and again.dimension == encoder.dimension
    np.testing.assert_array_equal(dense(again.encode(UNSEEN)), dense(encoder.encode(UNSEEN)))
    assert not list((tmp_path / "e").glob("*.pkl")) and name in ENCODERS


@pytest.mark.slow
def test_another_process_answers_the_same(fitted: dict[str, FittedEncoder], tmp_path: Path) -> None:
    for name in NAMES:
        save_encoder(fitted[name], tmp_path / name)
    code = (
        "import json, sys\n"
        "from leakscope.core.encoders import load_encoder\n"
        "folder, texts = sys.argv[1], json.loads(sys.argv[2])\n"
        "for name in sys.argv[3:]:\n"
        "    rows = load_encoder(f'{name}:{folder}/{name}').encode(texts)\n"
        "    rows = rows.toarray() if hasattr(rows, 'toarray') else rows\n"
        "    print(name, repr(float((rows * (1 + rows)).sum())))\n"
    )
    done = run_python(code, tmp_path, json.dumps(UNSEEN), *NAMES, check=True)
    for line in done.stdout.splitlines():
        name, value = line.split()
        rows = dense(fitted[name].encode(UNSEEN))
        assert float((rows * (1 + rows)).sum()) == pytest.approx(float(value), rel=1e-5), name
    assert len(done.stdout.splitlines()) == len(NAMES)


def a_seed_decides(case: Case, tmp_path: Path) -> None:
    name, more = case.name, case.more
    first, second = case.encoder, learn(tiny(name, **more), case.texts)
    assert first.fingerprint == second.fingerprint
    np.testing.assert_array_equal(dense(first.encode(UNSEEN)), dense(second.encode(UNSEEN)))
    has_seed = "seed" in settings_of(type(first)) and not name.startswith("lsa")
    if has_seed:
        assert learn(tiny(name, seed=1, **more), case.texts).fingerprint != first.fingerprint


def what_it_cannot_take_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    for texts in ([""], ["a\0b"], ["x" * 100_001], "one string", [3]):
        with pytest.raises(CoreError):
            case.encoder.encode(texts)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"texts|pairs"):
        tiny(case.name).fit(["only one"])
    with pytest.raises(NotFittedError, match=r"is not (fitted|trained)"):
        tiny(case.name).encode(["text"])
    with pytest.raises(NotFittedError, match=r"is not (fitted|trained)"):
        save_encoder(tiny(case.name), Path("/nonexistent"))


def a_text_without_known_words_has_a_finite_vector(case: Case, tmp_path: Path) -> None:
    for text in ["\N{GRINNING FACE}", "the of and", "قطار الصباح", "!!!"]:
        assert np.isfinite(dense(case.encoder.encode([text]))).all()


def an_altered_file_is_refused(case: Case, tmp_path: Path) -> None:
    folder = save_encoder(case.encoder, tmp_path / "e")
    weights = next(folder.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match="safetensors"):
        load_fitted(folder)
    save_encoder(case.encoder, folder)
    meta = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(meta | {"encoder": "nonsense"}))
    with pytest.raises(ArtifactError, match="an encoder written by `fit`"):
        load_fitted(folder)
    (folder / "model.json").write_text(json.dumps(meta | {"fingerprint": "0" * 64}))
    with pytest.raises(ArtifactError, match="fingerprint"):
        load_fitted(folder)


def the_cache_returns_what_the_encoder_does(case: Case, tmp_path: Path) -> None:
    encoder, texts = case.encoder, [*case.texts[:20], *case.texts[:3]]
    cached = CachedEncoder(encoder, tmp_path, block_size=7)
    for asked in (texts[:10], texts, texts[::-1], []):
        found, wanted = cached.encode(asked), encoder.encode(asked)
        assert is_sparse(found) == is_sparse(wanted)
        np.testing.assert_allclose(dense(found), dense(wanted), atol=1e-6)
    again = CachedEncoder(encoder, tmp_path).encode(texts)
    np.testing.assert_array_equal(dense(again), dense(cached.encode(texts)))


CHECKS = (
    vectors_have_the_promised_form,
    saved_and_loaded_it_answers_the_same,
    a_seed_decides,
    what_it_cannot_take_is_refused_by_name,
    a_text_without_known_words_has_a_finite_vector,
    an_altered_file_is_refused,
    the_cache_returns_what_the_encoder_does,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_encoder(
    check: Callable[..., None],
    fitted: dict[str, FittedEncoder],
    name: str,
    small_texts: list[str],
    bases: dict[str, Any],
    tmp_path: Path,
) -> None:
    check(Case(name, fitted[name], small_texts, bases.get(name, {})), tmp_path)


@pytest.mark.slow
def test_a_folder_of_another_encoder_is_told(
    fitted: dict[str, FittedEncoder], tmp_path: Path
) -> None:
    save_encoder(fitted["tfidf"], tmp_path / "e")
    with pytest.raises(InvalidInputError, match="tfidf:"):
        load_encoder(f"hashing:{tmp_path / 'e'}")


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"tfidf", "hashing"}))
def test_training_can_be_stopped(name: str, small_texts: list[str], bases: dict[str, Any]) -> None:
    def stop(fraction: float, message: str) -> None:
        raise StoppedError("Stopped.")

    with pytest.raises(StoppedError):
        learn(tiny(name, **bases.get(name, {})), small_texts, on_progress=stop)


# Sparse vectors through cache and attacks.

BAGS = ["tfidf", "hashing"]
READERS = [name for name, entry in INVERSION_ATTACKS.items() if entry.reads_sparse]


@pytest.mark.slow
@pytest.mark.parametrize("attack_name", READERS)
@pytest.mark.parametrize("name", BAGS)
def test_attacks_read_bags_of_words(
    fitted: dict[str, FittedEncoder],
    name: str,
    attack_name: str,
    small_texts: list[str],
    tmp_path: Path,
) -> None:
    encoder = fitted[name]
    known = settings_of(INVERSION_ATTACKS[attack_name].kind)
    given = {
        "epochs": 25,
        "hidden": 64,
        "bottleneck": 64,
        "learning_rate": 0.01,
        "batch_size": 32,
        "vocabulary_size": 60,
        "n_neighbors": 5,
    }
    spec = AttackSpec.of(attack_name, {k: v for k, v in given.items() if k in known})
    attack = make_attack(spec).fit(encoder, small_texts[:350])
    result = evaluate(attack, encoder, small_texts[350:])
    least = {"prior": 0, "retrieval": 25, "probe": 99, "mlc": 80, "msp": 60}[attack_name]
    assert result.scores.token_set_f1 >= least, result.scores
    save_attack(attack, tmp_path / "a")
    vectors = encoder.encode(small_texts[350:])
    again = load_attack(tmp_path / "a").invert(encoder, vectors)
    for one, other in zip(attack.invert(encoder, vectors), again, strict=True):
        assert one.word_set == other.word_set


@pytest.mark.parametrize("attack_name", ["probe_mlc", "search", "relaxation"])
def test_other_attacks_refuse_sparse_vectors_and_say_which_do_not(
    fitted: dict[str, FittedEncoder], attack_name: str, small_texts: list[str]
) -> None:
    with pytest.raises(InvalidInputError, match=r"sparse|white.box|open"):
        make_attack(attack_name).fit(fitted["tfidf"], small_texts)


def test_sparse_vectors_with_a_nan_are_refused(
    fitted: dict[str, FittedEncoder], small_texts: list[str]
) -> None:
    encoder = fitted["tfidf"]
    attack = make_attack("probe").fit(encoder, small_texts)
    vectors = encoder.encode(small_texts[:3])
    vectors.data[vectors.indptr[1]] = np.nan
    with pytest.raises(InvalidInputError, match="row 1"):
        attack.invert(encoder, vectors)
    with pytest.raises(InvalidInputError, match="shape"):
        attack.invert(encoder, encoder.encode(small_texts[:3])[:, :5])


@pytest.mark.parametrize("name", ["gaussian", "int8", "random_projection"])
def test_vector_defences_refuse_sparse_vectors_by_name(
    fitted: dict[str, FittedEncoder], name: str
) -> None:
    settings = {"dimension": 4} if name == "random_projection" else {}
    protected = make_defence(DefenceSpec.of(name, settings)).protect(fitted["tfidf"])
    with pytest.raises(InvalidInputError, match="tfidf gives sparse"):
        protected.encode(UNSEEN)
    dense_one = make_defence(DefenceSpec.of(name, settings)).protect(fitted["lsa_tfidf"])
    assert np.isfinite(dense_one.encode(UNSEEN)).all()
