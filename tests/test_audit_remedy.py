"""Remedies for audited vectors: defences, redaction, and a secret rotation with known pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_audit_storage import few_pairs, sample_of  # noqa: F401 - a fixture

from leakscope.core.audit.identification import random_rotation
from leakscope.core.audit.remedy import (
    RemedyTable,
    RotationTable,
    measure_redacted,
    measure_remedies,
    measure_rotation,
    partial_rotation,
)
from leakscope.core.audit.sources import Sample
from leakscope.core.audit.summary import comparison_of
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec
from leakscope.core.text import revealing_words

FAST = "probe_mlc"
N = 150


@pytest.fixture(scope="module")
def sample(minilm: TransformerEncoder, bundled: list[str]) -> Sample:
    texts = list(dict.fromkeys(bundled[5::100]))[:N]
    return sample_of(texts, minilm.encode(texts))


@pytest.fixture(scope="module")
def rotations(minilm: TransformerEncoder, sample: Sample) -> RotationTable:
    return measure_rotation(sample, minilm, n_known=(30, 120, 384), attack=FAST, n=80)


@pytest.fixture(scope="module")
def remedies(minilm: TransformerEncoder, sample: Sample) -> RemedyTable:
    told: list[tuple[str, dict[str, Any]]] = [
        ("int8", {}),
        ("gaussian", {"sigma": 0.05}),
        ("gaussian", {"sigma": 1.0}),
        ("text_to_text", {"eta": 60.0}),
        ("leace", {}),
        ("truncation", {"dimension": 999}),
    ]
    defences = [DefenceSpec.of(name, settings) for name, settings in told]
    return measure_remedies(sample, minilm, defences, attack=FAST, n=60, n_taught=0)


@pytest.mark.slow
def test_defences_are_compared_with_none_on_the_same_rows(remedies: RemedyTable) -> None:
    int8, weak, strong, text, trained, wide = remedies.remedies
    assert int8.change is not None and int8.change.ci95.low <= 0 <= int8.change.ci95.high
    assert int8.recall.value > 99 and "not significantly different" in int8.sentence
    for each in (weak, strong, text):
        assert each.f1 is not None and each.change is not None and each.change.ci95.high < 0
        assert each.recall.value < 90 and each.top1.value < 95 and each.attacker == FAST
    assert strong.f1 is not None and weak.f1 is not None and strong.f1.value < weak.f1.value
    assert strong.f1.value < strong.f1.chance + 5
    assert strong.recall.value < weak.recall.value
    assert "privacy" in text.guarantee and not weak.guarantee
    assert trained.f1 is None and "trained first" in trained.not_tested
    assert wide.f1 is None and "384" in wide.not_tested
    assert "3 of 4 tested defences significantly reduce it" in remedies.sentence
    assert weak.defence in remedies.sentence or text.defence in remedies.sentence
    told = " ".join(remedies.caveats)
    assert "study tradeoff" in told and "anyone can read without an attack" in told
    shown = comparison_of("remedy", remedies.to_dict()).alternatives
    assert len(shown) == 7 and shown[0].title == "no defence" and shown[1].title == int8.defence


@pytest.mark.slow
def test_noise_of_the_rows_repeats_under_a_seed_and_is_not_the_attackers(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    defence = [DefenceSpec.of("gaussian", {"sigma": 0.05})]

    def found(seed: int) -> dict[str, Any]:
        part = measure_remedies(sample, minilm, defence, attack=FAST, n=30, n_taught=0, seed=seed)
        return part.to_dict()["remedies"][0]

    assert found(0) == found(0) != found(1)


def test_no_remedy_is_tested_without_texts(minilm: TransformerEncoder, sample: Sample) -> None:
    bare = replace(sample, texts=None)
    found = measure_remedies(bare, minilm, [DefenceSpec.of("int8")], attack=FAST)
    assert found.undefended is None and found.remedies[0].f1 is None
    assert "not tested" in found.sentence and "not tested" in found.remedies[0].sentence
    with pytest.raises(InvalidInputError, match="no row has a text"):
        measure_rotation(bare, minilm, attack=FAST)


def redacted(text: str) -> str:
    named = revealing_words(text)
    return " ".join("someone" if w.strip(".,!?;:'").lower() in named else w for w in text.split())


@pytest.mark.slow
def test_redaction_removes_the_redacted_words_from_what_is_recovered(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    texts = [text or "" for text in sample.texts or ()]
    found = measure_redacted(sample, [redacted(t) for t in texts], minilm, attack=FAST, n=80)
    assert 0 < found.n_listed <= found.n_removed and 0 < found.n_changed < found.n == len(texts)
    assert found.change.ci95.high < 0
    assert found.removed_before.value > 30 and found.removed_after.value < 5
    before, after = (
        part["names"].share for part in (found.recovered_before, found.recovered_after)
    )
    assert after.value < before.value
    assert found.f1_after.value < found.f1_before.value
    assert found.recall.value < 100
    told = found.to_dict()
    before, interval = found.removed_before.parts(0)
    assert f"{before} % (95 % CI {interval}) of the redacted words" in told["answer"]
    assert not any(text in str(told) for text in texts)


@pytest.mark.slow
def test_nothing_redacted_changes_nothing(minilm: TransformerEncoder, sample: Sample) -> None:
    found = measure_redacted(sample, sample.texts or (), minilm, attack=FAST, n=30)
    assert found.n_changed == found.n_removed == 0 and found.recall.value == 100
    assert found.f1_before.value == pytest.approx(found.f1_after.value, abs=1e-6)
    assert "not tested" in found.sentence
    with pytest.raises(InvalidInputError, match="redacted texts for"):
        measure_redacted(sample, (sample.texts or ())[1:], minilm, attack=FAST)
    with pytest.raises(InvalidInputError, match="before and after"):
        measure_redacted(sample, [""] * len(sample.ids), minilm, attack=FAST)


def test_a_rotation_falls_with_as_many_pairs_as_dimensions() -> None:
    rng = np.random.default_rng(0)
    d = 24
    known = rng.standard_normal((d, d)).astype(np.float32)
    key = random_rotation(d, 1)
    np.testing.assert_allclose(key @ key.T, np.eye(d), atol=1e-12)
    back, span = partial_rotation((known @ key).astype(np.float32), known)
    np.testing.assert_allclose(span, np.eye(d), atol=1e-5)
    np.testing.assert_allclose(key @ back, np.eye(d), atol=1e-3)
    few, part = partial_rotation((known[:7] @ key).astype(np.float32), known[:7])
    assert np.linalg.matrix_rank(part) == 7
    other = rng.standard_normal((5, d)).astype(np.float32)
    np.testing.assert_allclose(other @ key @ few, other @ part, atol=1e-3)
    np.testing.assert_allclose(known[:7] @ key @ few, known[:7], atol=1e-3)


@pytest.mark.slow
def test_known_pairs_undo_a_secret_rotation(rotations: RotationTable) -> None:
    blind, few, more, whole = rotations.points
    assert (blind.k, few.k, more.k, whole.k) == (0, 30, 120, 384)
    assert blind.f1.value < blind.f1.chance + 5 and abs(blind.cosine.value) < 0.1
    assert blind.f1.value < few.f1.value < more.f1.value < whole.f1.value
    assert few.cosine.value < more.cosine.value < whole.cosine.value
    assert whole.cosine.value > 0.99
    assert whole.change.ci95.low <= 0 <= whole.change.ci95.high
    assert rotations.greatest_error < 1e-5
    assert "With 384 known pairs" in rotations.sentence and "no rotation" in rotations.sentence
    assert any("without known pairs" in caveat for caveat in rotations.caveats)
    assert rotations.known_from.startswith("bundled") and len(rotations.to_dict()["points"]) == 4


@pytest.mark.slow
def test_rows_that_are_not_attacked_are_the_known_pairs_where_there_are_enough(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    found = measure_rotation(sample, minilm, n_known=(40,), attack=FAST, n=60)
    assert found.known_from.startswith("other rows")
    assert "With 40 known pairs, F1 is" in found.sentence
    for wrong in ((0,), (801,)):
        with pytest.raises(InvalidInputError, match="n_known must be at"):
            measure_rotation(sample, minilm, n_known=wrong, attack=FAST, n=60)
