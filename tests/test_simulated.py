"""An attack trained on simulated vectors of an encoder that nobody can query."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from audited import write_jsonl

from leakscope.core.audit.alignment.simulated import (
    LEAST_SIMULATED_PAIRS,
    Surrogate,
    _Terms,
    shrinkage,
    train_simulated,
)
from leakscope.core.audit.audit import AuditSpec, audit
from leakscope.core.audit.sources.registry import open_source
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Vectors
from leakscope.core.text import words
from leakscope.core.vectors import unit

N_WORDS, D, WIDTH = 60, 20, 48


def foreign(texts: Sequence[str], width: int = WIDTH) -> Vectors:
    """Encode texts by an encoder of another family: a random direction a word, added up."""

    def of(word: str) -> np.ndarray:
        return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(width)

    rows = [np.sum([of(word) for word in words(text)], axis=0) for text in texts]
    return np.asarray(unit(np.stack(rows)), dtype=np.float32)


def sentences(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    names = [f"w{chr(97 + i % 26)}{chr(97 + i // 26)}{i}" for i in range(N_WORDS)]
    return [" ".join(rng.choice(names, 8)) for _ in range(n)]


def known(texts: Sequence[str]) -> Vectors:
    return foreign([" ".join(word + "x" for word in words(text)) for text in texts], D)


def test_a_surrogate_predicts_more_by_words_than_a_map_of_vectors() -> None:
    pairs, others = sentences(150, 0), sentences(100, 1)
    surrogate = Surrogate.fit(pairs, known(pairs), foreign(pairs), others)
    predicted, true = surrogate.predict(others, known(others)), foreign(others)
    spread = ((true - foreign(pairs).mean(axis=0)) ** 2).sum()
    explained = 1 - ((true - predicted) ** 2).sum() / spread
    x = np.c_[known(pairs), np.ones(len(pairs))]
    line, *_ = np.linalg.lstsq(x, foreign(pairs), rcond=None)
    linear = 1 - ((true - np.c_[known(others), np.ones(100)] @ line) ** 2).sum() / spread
    assert explained > linear + 0.2
    assert surrogate.explained == pytest.approx(explained, abs=0.08), "as on pairs left out"


def test_the_noise_of_a_surrogate_is_that_of_pairs_left_out() -> None:
    pairs, others = sentences(150, 0), sentences(400, 1)
    surrogate = Surrogate.fit(pairs, known(pairs), foreign(pairs), others)
    errors = foreign(others) - surrogate.predict(others, known(others))
    noise = surrogate.noise(20_000, np.random.default_rng(0))
    assert (noise**2).sum(axis=1).mean() == pytest.approx((errors**2).sum(axis=1).mean(), rel=0.1)
    fitted = foreign(pairs) - surrogate.predict(pairs, known(pairs))
    assert (fitted**2).mean() < 0.8 * (noise**2).mean(), "residuals of the fit are too small"


def test_left_out_residuals_are_those_of_a_fit_without_the_pair() -> None:
    pairs = sentences(60, 0)
    whole = Surrogate.fit(pairs, known(pairs), foreign(pairs), [])
    rest = pairs[:-1]
    alone = Surrogate.fit(rest, known(rest), foreign(rest), [])
    error = foreign(pairs[-1:]) - alone.predict(pairs[-1:], known(pairs[-1:]))
    left_out = whole.residuals[-1]
    cosine = float(unit(error)[0] @ unit(left_out[None])[0])
    assert cosine > 0.97 and np.linalg.norm(error) == pytest.approx(
        np.linalg.norm(left_out), rel=0.1
    )


def test_shrinkage_falls_with_more_rows_and_structure() -> None:
    rng = np.random.default_rng(0)
    axes = np.diag(np.linspace(3, 0.1, 40))
    few, many = rng.standard_normal((30, 40)), rng.standard_normal((3_000, 40))
    assert shrinkage(few) > shrinkage(few @ axes) > shrinkage(many @ axes)
    assert shrinkage(many @ axes) < 0.05


def test_terms_are_rows_of_unit_length_and_forms_of_a_word_are_alike() -> None:
    terms = _Terms.count(["the minister of finance", "ministers met", "a red apple"])
    rows = terms.rows(["minister", "ministers", "apple", "zzz"]).toarray()
    assert np.linalg.norm(rows, axis=1).round(6).tolist() == [1, 1, 1, 0]
    assert rows[0] @ rows[1] > 0.4 > 0.05 > rows[0] @ rows[2]


@pytest.mark.slow
def test_an_audit_with_pairs_trains_its_attack_and_recovers_more(
    minilm: TransformerEncoder, bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text for text in dict.fromkeys(bundled) if 8 <= len(words(text)) <= 16][::7][:700]
    read, paired, corpus = texts[:100], texts[100:300], texts[300:]
    bundle, own = corpus[:200] + paired + read[:9], corpus[200:] + read[9:12]
    monkeypatch.setattr("leakscope.core.audit.aligned.bundled_sentences", lambda: bundle)
    turned = np.random.default_rng(0).standard_normal((384, 128)) / 128**0.5
    vectors = minilm.encode(texts[:300])
    theirs = (vectors - vectors.mean(axis=0)) @ turned + 0.6 * foreign(texts[:300], 128)
    source = open_source(str(write_jsonl(tmp_path / "read.jsonl", read, theirs[:100])))
    pairs = open_source(str(write_jsonl(tmp_path / "pairs.jsonl", paired, theirs[100:])))
    plain = audit(source, AuditSpec(attack="probe_mlc"), pairs=pairs)
    trained = audit(source, AuditSpec(), pairs=pairs, like=own)
    assert plain.alignment is not None and trained.alignment is not None
    assert plain.alignment.method == "ridge" and trained.alignment.method == "simulation"
    assert plain.leakage is not None and trained.leakage is not None
    assert trained.leakage.f1.value > 1.1 * plain.leakage.f1.value
    reason = f"trained on {len(corpus)} simulated vectors"
    assert reason in trained.identification.reason, "attacked texts are not in the corpus"
    told = trained.to_dict()["alignment"]
    assert told["method"] == "simulation"
    curve = {each["n_pairs"]: each["agreement"]["value"] for each in told["learning_curve"]}
    assert list(curve) == [10, 30, 100] and curve[10] < curve[100]
    assert f"{curve[100]:.2f} with 100" in trained.identification.reason


def test_pairs_that_cannot_train_are_told(minilm: TransformerEncoder) -> None:
    texts = sentences(200, 0)
    few = slice(0, LEAST_SIMULATED_PAIRS - 1)
    rows = np.zeros((200, 384), np.float32)
    theirs = foreign(texts)
    small = train_simulated(minilm, (texts[few], rows[few], theirs[few]), (texts[100:], rows[100:]))
    assert small is None
    with pytest.raises(InvalidInputError, match="Remove it from the corpus"):
        train_simulated(minilm, (texts, rows, theirs), (texts, rows))
    with pytest.raises(InvalidInputError, match="at least 100"):
        train_simulated(minilm, (texts, rows, theirs), (sentences(5, 1), rows[:5]))
