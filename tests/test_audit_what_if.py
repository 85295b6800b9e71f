"""What if vectors were stored otherwise: formats, defences, redaction and a secret rotation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.audit.comparison import (
    describe_change,
    f1_change,
    neighbour_recall,
    rescale_to_encoder,
)
from leakscope.core.audit.identification import random_rotation
from leakscope.core.audit.known_defence import (
    agreement_with_defence,
    describe_defence,
    measure_leakage_behind,
    measure_leakage_known,
    measure_stronger_leakage,
)
from leakscope.core.audit.leakage import measure_leakage
from leakscope.core.audit.remedy import (
    RemedyTable,
    RotationTable,
    measure_redacted,
    measure_remedies,
    measure_rotation,
    partial_rotation,
)
from leakscope.core.audit.sources import Sample
from leakscope.core.audit.storage import (
    FORMATS,
    ProductQuantizer,
    StorageTable,
    StoredFormat,
    measure_storage,
)
from leakscope.core.audit.summary import comparison_of
from leakscope.core.defences import adaptive_attack
from leakscope.core.defences.adaptive_attack import (
    adapt_to_defence,
    attacker_pairs,
    defended_encoder,
    finetune_behind,
)
from leakscope.core.defences.vectors import Truncation
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Interval, Score
from leakscope.core.specs import AttackSpec, DefenceSpec
from leakscope.core.text import revealing_words
from leakscope.core.vectors import unit

FAST = "probe_mlc"
FAST_SPEC = AttackSpec(name=FAST)
N = 150
_ENCODED: dict[tuple[str, ...], Vectors] = {}


def sample_of(texts: list[str], vectors: np.ndarray) -> Sample:
    ids = tuple(f"row {i}" for i in range(len(texts)))
    return Sample(vectors, ids, tuple(texts), len(texts), 0, "float32", (1.0, 1.0), 0)


class Remembering:
    """An encoder that encodes each list of texts once for all tests of this file."""

    def __init__(self, encoder: Encoder) -> None:
        self.base = encoder

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        key = (self.base.fingerprint, *texts)
        if key not in _ENCODED:
            _ENCODED[key] = self.base.encode(texts, on_progress)
        return _ENCODED[key]


@pytest.fixture(scope="module", autouse=True)
def few_pairs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptive_attack, "N_PAIRS", 800)
        patch.setattr(adaptive_attack, "CachedEncoder", Remembering)
        yield


@pytest.fixture(scope="module")
def sample(minilm: TransformerEncoder, bundled: list[str]) -> Sample:
    texts = list(dict.fromkeys(bundled[5::100]))[:N]
    return sample_of(texts, minilm.encode(texts))


@pytest.fixture(scope="module")
def table(minilm: TransformerEncoder, sample: Sample) -> StorageTable:
    pytest.importorskip("faiss")
    return measure_storage(sample, minilm, attack=FAST, n=80, n_taught=0)


def f1_of(found: StoredFormat) -> float:
    assert found.f1 is not None
    return found.f1.value


def test_recall_by_hand() -> None:
    """Row 0 has neighbours 1 and 2; after the change 1 and 3."""
    angles = np.deg2rad([0, 5, 11, 90, 120])
    before = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    moved = np.deg2rad([0, 5, 100, 9, 120])
    after = np.stack([np.cos(moved), np.sin(moved)], axis=1).astype(np.float32)
    # Rows 0 to 4 still find 1, 1, 0, 0 and 2 of 2: 0 {1}, 1 {0}, 2 {}, 3 {}, 4 {2, 3}.
    nearest = {0: {1, 2}, 1: {0, 2}, 2: {1, 0}, 3: {4, 2}, 4: {3, 2}}
    now = {0: {1, 3}, 1: {0, 3}, 2: {4, 3}, 3: {1, 0}, 4: {2, 3}}
    by_hand = 100 * np.mean([len(nearest[i] & now[i]) / 2 for i in range(5)])
    found = neighbour_recall(before, after, 2)
    assert found.value == pytest.approx(by_hand) == 40
    assert found.chance == pytest.approx(50) and found.n == 5
    assert 0 <= found.ci95.low <= found.value <= found.ci95.high <= 100


@pytest.mark.slow
def test_the_same_vectors_find_the_same_rows_also_where_some_are_equal(sample: Sample) -> None:
    doubled = np.concatenate([sample.vectors, sample.vectors[:40]])
    for vectors in (sample.vectors, doubled):
        for k in (1, 10):
            same = neighbour_recall(vectors, 3 * vectors, k)
            assert same.value == 100 and same.ci95.low < 100
    lost = []
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal(sample.vectors.shape)
        lost.append(neighbour_recall(sample.vectors, noise.astype(np.float32)))
    assert np.mean([each.value for each in lost]) == pytest.approx(lost[0].chance, abs=0.7)
    assert np.isnan(neighbour_recall(doubled[:11], doubled[:11]).value)
    with pytest.raises(InvalidInputError, match="same rows"):
        neighbour_recall(doubled, doubled[1:])


def test_changes_are_described_by_their_interval() -> None:
    for low, high, word in ((-3, -1, "significantly less"), (1, 3, "significantly more")):
        change = Score((low + high) / 2, Interval(low, high), 9)
        assert describe_change(change, "x").startswith(word)
    assert "not significantly different" in describe_change(Score(0, Interval(-1, 1), 9), "x")
    assert "not resolvable" in describe_change(Score(0, n=1), "x")


@pytest.mark.slow
def test_lossless_formats_leak_as_float32_and_lossy_ones_no_more(table: StorageTable) -> None:
    found = {each.name: each for each in table.formats}
    assert list(found) == ["float32", *FORMATS] and table.attack == FAST
    plain = f1_of(found["float32"])
    assert found["float32"].recall.value == 100
    for name in ("float16", "int8"):
        change = found[name].change
        assert change is not None and change.ci95.low <= 0 <= change.ci95.high
        assert f1_of(found[name]) == pytest.approx(plain, abs=1)
        assert found[name].recall.value > 99
        assert "not significantly different from float32" in found[name].sentence
    for name in ("binary", "product_quantization", "truncation"):
        change = found[name].change
        assert change is not None and change.ci95.high < 0 and f1_of(found[name]) < plain
        assert f1_of(found[name]) > found[name].f1.chance  # type: ignore[union-attr]
        assert found[name].recall.value < found["int8"].recall.value
    assert {n: f.n_bytes for n, f in found.items()} == {
        "float32": 1536,
        "float16": 768,
        "int8": 388,
        "binary": 48,
        "product_quantization": 48,
        "truncation": 384,
    }
    told = table.to_dict()
    shown = comparison_of("storage", told).alternatives
    assert shown[0].title == "float32, 1,536 bytes" and shown[1].recall == table.formats[1].recall
    assert len(told["formats"]) == 6 and "significantly less" in told["answer"]
    assert any("search is stronger" in caveat for caveat in table.caveats)


@pytest.mark.slow
def test_without_texts_only_what_the_estimate_covers_is_given(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    bare = replace(sample, texts=None)
    other = measure_storage(bare, minilm, attack=FAST, formats=["binary"], n=30, n_taught=0)
    assert other.is_estimate and all(each.f1 is None for each in other.formats)
    assert "not tested" in other.sentence and "not tested" in other.formats[1].sentence
    assert 20 < other.formats[1].recall.value < 100
    found = measure_storage(bare, minilm, formats=["float16", "binary"], n=8, n_taught=0)
    plain, half, binary = found.formats
    assert plain.f1 is not None and half.f1 is not None and half.change is None
    assert half.f1.value == pytest.approx(plain.f1.value, abs=2)
    assert binary.f1 is None and binary.not_tested and "estimated" in found.sentence


@pytest.mark.slow
def test_without_faiss_the_codebook_is_not_tested(
    minilm: TransformerEncoder, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    found = measure_storage(
        sample, minilm, attack=FAST, formats=["product_quantization"], n=20, n_taught=0
    )
    last = found.formats[-1]
    assert last.f1 is None and "faiss-cpu" in last.not_tested and "not tested" in last.sentence


def test_a_codebook_holds_the_nearest_of_256_centroids() -> None:
    pytest.importorskip("faiss")
    rows = np.random.default_rng(0).standard_normal((600, 12)).astype(np.float32)
    made = ProductQuantizer.fit(rows)
    assert made.n_bytes == 2  # parts of 6 numbers: 8 and 7 do not divide 12
    restored = made(rows)
    for part in (slice(0, 6), slice(6, 12)):
        centroids = np.unique(restored[:, part], axis=0)
        assert len(centroids) <= 256
        distance = ((rows[:, None, part] - centroids) ** 2).sum(-1)
        own = ((rows[:, part] - restored[:, part]) ** 2).sum(-1)
        assert own == pytest.approx(distance.min(1), abs=1e-4)
    assert made.digest == ProductQuantizer.fit(rows).digest
    assert made.digest != ProductQuantizer.fit(rows, seed=1).digest


def test_vectors_at_another_scale_are_set_to_that_of_the_encoder(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    for texts in (sample.texts, None):  # of unit vectors the scale is known without texts
        given = replace(sample, vectors=5 * sample.vectors, texts=texts)
        np.testing.assert_allclose(
            rescale_to_encoder(given, minilm).vectors, sample.vectors, atol=1e-6
        )
    assert rescale_to_encoder(sample, minilm) is sample


@pytest.mark.slow
def test_an_attacker_who_knows_the_defence_recovers_more(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    defence = DefenceSpec.of("gaussian", {"sigma": 0.05, "seed": 3})
    stored = replace(sample, vectors=defended_encoder(minilm, defence).encode(list(sample.texts)))  # type: ignore[arg-type]
    plain = open_attack(FAST, minilm)
    naive = measure_leakage(stored, minilm, plain, name="rows")
    informed = adapt_to_defence(plain, minilm, defence, FAST_SPEC)
    found = measure_leakage_behind(stored, minilm, informed, FAST_SPEC, name="rows")
    gain = f1_change(naive, found, stored)
    assert gain.ci95.low > 0
    assert found.attack == FAST and found.result is not None and found.result.attack == FAST
    before = measure_leakage(sample, minilm, plain, name="rows")
    assert f1_change(before, found, sample).ci95.high < 0
    again, attacker = measure_leakage_known(
        stored, minilm, defence, FAST_SPEC, name="rows", n_taught=0, seed=4
    )
    assert attacker == FAST and again.f1.value == pytest.approx(found.f1.value, abs=6)


@pytest.mark.slow
def test_an_attacker_trained_behind_a_format_is_taken_where_it_recovers_more(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    format_ = Truncation(dimension=96)
    stored = replace(sample, vectors=sample.vectors[:, :96])
    known = attacker_pairs(minilm)
    changed = format_.protect(adaptive_attack.KnownVectors(minilm, *known))  # type: ignore[arg-type]
    lifted = adaptive_attack.adapt_to_change(
        open_attack(FAST, minilm),
        minilm,
        changed,  # type: ignore[arg-type]
        FAST_SPEC,
        known,
    )
    trained = finetune_behind(minilm, format_.protect, n=1500)  # type: ignore[arg-type]
    assert trained is not None
    alone = measure_leakage_behind(stored, minilm, lifted, FAST_SPEC, name="rows").f1.value
    found, attacker = measure_stronger_leakage(
        stored, minilm, (lifted, trained), FAST_SPEC, name="rows"
    )
    assert found.f1.value > alone and attacker == "probe_mlc, trained behind the change"
    assert (
        measure_stronger_leakage(stored, minilm, (lifted, None), FAST_SPEC, name="rows")[1] == FAST
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    [("gaussian", {"sigma": 0.1}), ("binary", {}), ("truncation", {"dimension": 96})],
)
def test_a_defence_that_is_there_or_switched_off_is_noticed(
    minilm: TransformerEncoder, sample: Sample, told: tuple[str, dict[str, float]]
) -> None:
    defence = DefenceSpec.of(*told)
    texts = list(sample.texts or ())[:30]
    words = [text or "" for text in texts]
    stored = defended_encoder(minilm, defence).encode(words)
    there = agreement_with_defence(minilm, defence, words, stored)
    assert there.identification.encoder == "minilm" and there.identification.is_certain
    assert not there.is_undefended and there.expected[0] <= there.expected[1]
    one = agreement_with_defence(minilm, defence, words[:1], stored[:1])
    assert one.identification.encoder == "minilm"
    late = agreement_with_defence(minilm, defence, words[:20] + words[21:] + words[20:21], stored)
    assert late.identification.encoder is None and "other rows" in late.identification.reason
    off = agreement_with_defence(minilm, defence, words, sample.vectors[:30])
    assert off.is_undefended and "defence is off" in off.identification.reason
    other = agreement_with_defence(minilm, defence, words[:15], stored[15:])
    assert other.identification.encoder is None and "other rows" in other.identification.reason


@pytest.mark.parametrize("n", [1, 3, 30])
def test_another_draw_of_the_same_noise_is_no_alarm(n: int) -> None:
    rng = np.random.default_rng(n)
    encoder = SimpleNamespace(name="toy", dimension=384, fingerprint="toy")
    defence = DefenceSpec.of("gaussian", {"sigma": 0.1})
    n_alarms = 0
    for _ in range(300):
        clean = unit(rng.standard_normal((n, 384))).astype(np.float32)
        encoder.encode = lambda texts, on_progress=no_progress, clean=clean: clean
        stored = unit(clean + 0.1 * rng.standard_normal(clean.shape)).astype(np.float32)
        found = agreement_with_defence(encoder, defence, ["text"] * n, stored)  # type: ignore[arg-type]
        is_weaker = "weaker" in found.identification.reason
        n_alarms += found.identification.encoder is None or is_weaker
    assert n_alarms <= 2


@pytest.mark.slow
def test_noise_of_other_strength_is_noticed(minilm: TransformerEncoder, sample: Sample) -> None:
    words = [text or "" for text in sample.texts or ()][:40]
    said = DefenceSpec.of("gaussian", {"sigma": 0.1})
    weak = DefenceSpec.of("gaussian", {"sigma": 0.05})
    stored = defended_encoder(minilm, weak).encode(words)
    found = agreement_with_defence(minilm, said, words, stored)
    assert found.identification.is_changed and "weaker" in found.identification.reason
    strong = agreement_with_defence(
        minilm, weak, words, defended_encoder(minilm, said).encode(words)
    )
    assert strong.identification.encoder is None
    assert describe_defence(DefenceSpec.of("gaussian", {"sigma": 0.1, "seed": 1})) == (
        "gaussian:sigma=0.1"
    )
    with pytest.raises(InvalidInputError, match="one text per vector"):
        agreement_with_defence(minilm, said, words[:3], stored)
    void = DefenceSpec.of("gaussian", {"sigma": 1.0})
    lost = agreement_with_defence(minilm, void, words, defended_encoder(minilm, void).encode(words))
    assert lost.identification.encoder == "minilm" and not lost.identification.is_certain
    assert "too much for a comparison" in lost.identification.reason
    short = agreement_with_defence(minilm, said, words, stored[:, :50])
    assert short.identification.encoder is None and "dimensions" in short.identification.reason


@pytest.mark.slow
def test_tables_train_an_attacker_behind_each_change(
    minilm: TransformerEncoder, sample: Sample
) -> None:
    defence = [DefenceSpec.of("gaussian", {"sigma": 0.05})]
    remedy = measure_remedies(sample, minilm, defence, attack=FAST, n=20, n_taught=300)
    stored = measure_storage(sample, minilm, attack=FAST, formats=["binary"], n=20, n_taught=300)
    for found in (remedy.remedies[0], stored.formats[1]):
        assert found.f1 is not None and found.f1.value > found.f1.chance
        assert found.attacker.startswith(FAST)
    for caveats in (remedy.caveats, stored.caveats):
        assert any("trained further on 300" in caveat for caveat in caveats)


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
