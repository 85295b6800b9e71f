"""Presence in an index and deletion from it: the attack, its controls, and what is certified."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited import write_jsonl

from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import predictive_value
from leakscope.core.audit.deletion import DeletionReport, check_deletion, texts_needed
from leakscope.core.audit.gate import Outcome
from leakscope.core.audit.presence import (
    LEAST_REFERENCES,
    IndexAccess,
    Neighbours,
    Queries,
    Whitening,
    build_queries,
    check_presence,
    crowding,
    nearest_rows,
    presence_features,
)
from leakscope.core.audit.sources import Batch, Sample, read_sample
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.text import words

N = 120
"""Texts of each kind."""


class WordSum:
    """An encoder that adds a random vector for each word, long words the most."""

    name, dimension, fingerprint = "word sum", 64, "word sum"

    def __init__(self) -> None:
        self.seen: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        return np.stack([sum(map(self._vector, words(text))) for text in texts]).astype(np.float32)

    def _vector(self, word: str) -> np.ndarray:
        if word not in self.seen:
            rng = np.random.default_rng(zlib.crc32(word.encode()))
            self.seen[word] = len(word) * rng.standard_normal(self.dimension)
        return self.seen[word]


class Index:
    """Vectors and perhaps texts in batches, as a source gives them."""

    label = "index"

    def __init__(self, vectors: np.ndarray, texts: Sequence[str] | None = None, n: int = 50):
        self.vectors, self.texts, self.n = vectors, texts, n

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        yield self._batches()

    def _batches(self) -> Iterator[Batch]:
        for start in range(0, len(self.vectors), self.n):
            part = slice(start, start + self.n)
            rows = self.vectors[part]
            ids = [f"row {start + i}" for i in range(len(rows))]
            yield Batch(rows, ids, None if self.texts is None else list(self.texts[part]))


@pytest.fixture(scope="module")
def texts(bundled: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(bundled))
    return [distinct[i] for i in np.random.default_rng(0).permutation(len(distinct))[:1000]]


@pytest.fixture(scope="module")
def deleted(texts: list[str]) -> list[str]:
    return texts[:N]


@pytest.fixture(scope="module")
def absent(texts: list[str]) -> list[str]:
    return texts[N : N + 3 * N // 2]


@pytest.fixture(scope="module")
def kept(texts: list[str]) -> list[str]:
    """What the index holds after the deletion."""
    return texts[400:]


ENCODER = WordSum()


def index_of(rows: Sequence[str], *, has_texts: bool = False) -> Index:
    return Index(ENCODER.encode(rows), list(rows) if has_texts else None)


def edited(text: str) -> str:
    """Return a text without its third quarter."""
    parts = text.split()
    return " ".join([*parts[: len(parts) // 2], *parts[3 * len(parts) // 4 :]])


def test_the_nearest_rows_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    stored = rng.standard_normal((230, 12)).astype(np.float16)
    stored[7] = 0
    asked = rng.standard_normal((9, 12)).astype(np.float32)
    found = nearest_rows(Index(stored), asked, 6)
    rows = stored.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked, axis=1)[:, None]
    with np.errstate(invalid="ignore"):
        cosines = np.nan_to_num(asked @ rows.T / lengths, nan=-2)
    known = np.argsort(-cosines, axis=1)[:, :6]
    assert found.rows.tolist() == known.tolist() and found.n_rows == 230
    np.testing.assert_allclose(found.cosines, np.take_along_axis(cosines, known, 1), atol=1e-5)
    assert found.ids[0].tolist() == [f"row {i}" for i in known[0]]
    few = nearest_rows(Index(stored[6:9]), asked, 6)
    assert set(few.rows[0].tolist()) == {0, 2, -1} and (few.cosines[:, 2:] == -1).all()


def test_damaged_indexes_are_refused() -> None:
    asked = np.ones((1, 3), dtype=np.float32)
    for vectors, problem in (
        (np.full((2, 3), np.nan), "NaN"),
        (np.ones((2, 4)), "dimensions"),
        (np.ones((0, 3)), "no vector"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            nearest_rows(Index(vectors), asked)


def test_whitened_rows_spread_alike() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((3000, 5)) * [9, 4, 2, 1, 1] + 3).astype(np.float32)
    found = Whitening.of_index(Index(rows), ridge=0.0)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(found.mean, units.mean(axis=0), atol=1e-6)
    mapped = (units - found.mean) @ found.matrix
    np.testing.assert_allclose(np.cov(mapped.T, bias=True), np.eye(5), atol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(found.apply(rows), axis=1), 1, atol=1e-5)


def test_the_halves_hold_each_word_once() -> None:
    text = "The dog barked at the postman. It rained all day in the old town of Rome."
    asked = build_queries([text, "It rained."], seed=3)
    own = [
        t
        for t, o, k in zip(asked.texts, asked.owners, asked.kinds, strict=True)
        if o == 0 and k == "masked"
    ]
    for one, other in zip(own[::2], own[1::2], strict=True):
        assert sorted([*one.split(), *other.split()]) == sorted(text.split())
    assert asked.texts == build_queries([text, "It rained."], seed=3).texts
    for owner in (0, 1):
        assert set(asked.kinds[asked.owners == owner]) == {"whole", "part", "masked", "quoted"}


def test_features_by_hand() -> None:
    kinds = np.array(["whole", "part", "part", "masked", "quoted"])
    queries = Queries(["x"] * 5, np.zeros(5, dtype=np.int64), kinds)
    cosines = np.array([[0.904, 0.1], [0.5, 0.1], [0.7, 0.1], [0.2, 0.1], [0.6, 0.1]], np.float32)
    rows = np.array([[4, 1], [4, 2], [2, 4], [1, 2], [4, 3]])
    found = Neighbours(cosines, rows, rows.astype(str).astype(object), 9)
    known = np.arctanh([0.904, 0.7, 0.6])
    exact = presence_features(found, queries, IndexAccess.SCORES)[0]
    assert exact[:3] == pytest.approx(known, abs=1e-5)
    assert exact[3:] == pytest.approx([np.arctanh([0.5, 0.7]).mean(), np.arctanh(0.2)], abs=1e-5)
    rounded = presence_features(found, queries, IndexAccess.ROUNDED, n_digits=1)[0]
    assert rounded[0] == pytest.approx(np.arctanh(0.9))
    # Row 4 comes first, second, not at all, and first: (1 + 1/2 + 0 + 1) / 4.
    assert presence_features(found, queries, IndexAccess.IDS).tolist() == [[0.625]]


def test_how_many_texts_a_certificate_needs() -> None:
    for limit in (0.55, 0.6, 0.7):
        n = texts_needed(limit)
        half = [1.96 * np.sqrt((2 * m + 1) / 12) / m for m in (n - 1, n)]
        assert half[1] <= limit - 0.5 < half[0]
    with pytest.raises(InvalidInputError, match="limit"):
        texts_needed(0.5)


@pytest.mark.slow
def test_texts_that_crowd_the_top_are_seen_and_chance_is_not() -> None:
    rng = np.random.default_rng(0)
    members = np.arange(240) < 120
    p_values = [crowding(Ranking(rng.standard_normal(240), members), seed=i) for i in range(200)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.09  # 5 % expected; 18 of 200 come in 1 %
    few = rng.standard_normal(240)
    few[:8] += 4
    assert crowding(Ranking(few, members)) <= 0.01
    assert crowding(Ranking(-few, members)) > 0.5


@pytest.mark.slow
def test_members_are_found_and_permuted_ones_are_not(
    kept: list[str], absent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, members = index_of(kept), kept[:N]
    found = check_presence(index, members, absent, ENCODER)
    at = {attack.access: attack.auc for attack in found.attacks}
    for access in (IndexAccess.VECTORS, IndexAccess.SCORES, IndexAccess.ROUNDED):
        assert at[access].value >= 0.99 and at[access].ci95.low > 0.95
    assert at[IndexAccess.IDS].ci95.low > 0.7
    assert not found.blind.is_above_chance
    attack = found.strongest
    rate = next(r for r in attack.rates if r.fpr == 0.1)
    told = found.to_dict()["attacks"][0]["tpr_at_fpr"]["0.1"]["ppv"]
    assert told["1:100"]["value"] == pytest.approx(predictive_value(rate.tpr.value, 0.1, 1 / 101))
    assert {int(near.row.split()[1]) for near in attack.nearest} == set(range(N))
    monkeypatch.setattr("leakscope.core.audit.presence.blind_baseline", lambda *_, **__: None)
    permuted = [
        check_presence(index, members, absent, ENCODER, access=[IndexAccess.SCORES], seed=seed)
        .attacks[0]
        .permuted.value
        for seed in range(6)
    ]
    assert np.mean(permuted) == pytest.approx(0.5, abs=0.05)


def test_absent_texts_are_not_found(kept: list[str], deleted: list[str], absent: list[str]) -> None:
    found = check_presence(index_of(kept), deleted, absent, ENCODER)
    for attack in found.attacks:
        assert attack.auc.ci95.low <= 0.5 <= attack.auc.ci95.high
        assert attack.p_crowding > 0.01


def deletion_of(
    rows: Sequence[str],
    deleted: Sequence[str],
    absent: Sequence[str],
    *,
    has_texts: bool = False,
    present: Sequence[str] | None = None,
    limit: float = 0.65,
    access: Sequence[IndexAccess] = (IndexAccess.VECTORS,),
) -> DeletionReport:
    return check_deletion(
        index_of(rows, has_texts=has_texts),
        deleted,
        absent,
        ENCODER,
        present=rows[:60] if present is None else present,
        limit=limit,
        access=access,
    )


def test_a_true_deletion_is_certified(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    found = deletion_of(kept, deleted, absent, access=tuple(IndexAccess)[:2])
    assert found.outcome is Outcome.PASSED and "Certificate" in found.sentence
    assert found.comparison.strongest.auc.value <= 0.57 and found.remaining == ()
    assert any("Each single text" in reason for reason in found.not_tested)


def test_rows_that_were_not_deleted_are_named(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    found = deletion_of([*kept, deleted[4]], deleted, absent)
    assert found.outcome is Outcome.FAILED and "same vector as 1 of" in found.sentence
    (row,) = found.remaining
    assert (row.text, row.row, row.is_same) == (5, f"row {len(kept)}", True)


def test_near_duplicates_that_stay_are_found_without_any_text(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    found = deletion_of([*kept, *map(edited, deleted)], deleted, absent)
    attack = found.comparison.strongest
    assert found.outcome is Outcome.FAILED
    assert attack.auc.value >= 0.9 and attack.auc.ci95.low > 0.85
    rows = [int(near.row.split()[1]) - len(kept) + 1 for near in found.remaining]
    assert len(rows) > N / 2
    assert (
        np.mean([near.text == row for near, row in zip(found.remaining, rows, strict=True)]) > 0.9
    )


@pytest.mark.slow
def test_a_few_near_duplicates_among_many_are_no_certificate(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    rows = [*kept, *map(edited, deleted[:12])]
    blind = deletion_of(rows, deleted, absent)
    assert blind.comparison.strongest.p_crowding <= 0.01 and blind.outcome is Outcome.FAILED
    assert len({near.text for near in blind.remaining} & set(range(1, 13))) >= 8
    told = deletion_of([*kept, edited(deleted[3])], deleted, absent, has_texts=True)
    assert told.outcome is Outcome.FAILED and told.comparison.repeated == (4,)
    assert [near.text for near in told.remaining] == [4]


@pytest.mark.slow
def test_members_among_the_references_are_no_certificate(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    few = deletion_of(kept, deleted, [*absent, *kept[:10]])
    assert few.comparison.references.n_present == 10 and few.comparison.references.are_absent
    assert few.outcome is Outcome.PASSED
    many = deletion_of([*kept, *map(edited, deleted)], deleted, [*absent, *kept[:40]])
    assert not many.comparison.references.are_absent
    assert many.outcome is not Outcome.PASSED
    gone = deletion_of(kept, deleted, [*absent, *kept[:40]])
    assert gone.outcome is Outcome.NOT_MEASURED and "in the index" in gone.sentence
    # Where near-duplicates of the references are in the index, they score higher: no certificate.
    shifted = deletion_of([*kept, *map(edited, absent)], deleted, absent)
    assert shifted.outcome is Outcome.NOT_MEASURED and "score higher" in shifted.sentence


@pytest.mark.slow
def test_references_that_repeat_a_row_or_a_deleted_text_are_left_out(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    near = [edited(kept[5]), f"{deleted[7]} So it is."]
    found = deletion_of(kept, deleted, [*absent, *near], has_texts=True).comparison.references
    usual = deletion_of(kept, deleted, absent, has_texts=True).comparison.references
    assert found.n_near == usual.n_near + 2
    assert found.n_compared + found.n_calibrating == usual.n_compared + usual.n_calibrating
    assert usual.n_given == usual.n_near + usual.n_present + usual.n_compared + usual.n_calibrating


def test_references_of_another_kind_are_no_certificate(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    other = [f"dear customer {i} your parcel is late: {text}" for i, text in enumerate(absent)]
    found = deletion_of(kept, deleted, other)
    assert found.comparison.blind.is_above_chance and found.outcome is Outcome.NOT_MEASURED
    assert "of the same kind" in found.sentence


@pytest.mark.slow
def test_too_few_texts_are_no_certificate(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    few = deletion_of(kept, deleted[:20], absent, limit=0.6)
    assert few.outcome is Outcome.NOT_MEASURED
    assert "too few texts" in few.sentence and "At least 65 deleted texts" in few.sentence
    one = deletion_of(kept, deleted[:1], absent)
    assert one.outcome is Outcome.NOT_MEASURED and "single text" in one.not_tested[-1]
    (near,) = one.comparison.strongest.nearest
    assert 1 / 121 <= near.p_value <= 1 and near.row.startswith("row ")
    there = deletion_of([*kept, edited(deleted[0])], deleted[:1], absent)
    assert there.outcome is Outcome.FAILED
    assert there.comparison.strongest.nearest[0].p_value <= 0.05
    with pytest.raises(InvalidInputError, match=f"at least {LEAST_REFERENCES} texts"):
        deletion_of(kept, deleted, absent[:20])


@pytest.mark.slow
def test_an_attack_that_finds_nothing_certifies_nothing(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    without = deletion_of(kept, deleted, absent, present=())
    assert without.outcome is Outcome.NOT_MEASURED and "No text is known" in without.sentence
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((64, 64)))[0]
    rotated = Index((ENCODER.encode(kept) @ turn).astype(np.float32))
    found = check_deletion(rotated, deleted, absent, ENCODER, present=kept[:60], limit=0.65)
    assert found.outcome is Outcome.NOT_MEASURED and "Name the encoder" in found.sentence

    class Rotated(WordSum):
        def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
            return np.asarray(super().encode(texts) @ turn, dtype=np.float32)

    behind = check_deletion(rotated, deleted, absent, Rotated(), present=kept[:60], limit=0.65)
    assert behind.outcome is Outcome.PASSED


def test_a_report_holds_no_text(kept: list[str], deleted: list[str], absent: list[str]) -> None:
    found = deletion_of([*kept, *deleted[:3]], deleted, absent, has_texts=True)
    told = json.dumps(found.to_dict())
    spoken = set(words(told))
    for text in (*deleted, *absent):
        assert text not in told
        rare = {word for word in words(text) if len(word) > 9}
        assert len(rare & spoken) < 2
    assert found.to_dict()["outcome"] == "failed"


def test_only_a_whole_sample_is_an_index(
    kept: list[str], deleted: list[str], absent: list[str]
) -> None:
    index = index_of(kept)
    whole: Sample = read_sample(index)
    found = check_presence(whole, deleted, absent, ENCODER, access=[IndexAccess.SCORES])
    direct = check_presence(index, deleted, absent, ENCODER, access=[IndexAccess.SCORES])
    assert found.attacks[0].auc == direct.attacks[0].auc
    with pytest.raises(InvalidInputError, match="whole index"):
        check_presence(read_sample(index, 50), deleted, absent, ENCODER)


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory,
    minilm: TransformerEncoder,
    kept: list[str],
    deleted: list[str],
    absent: list[str],
) -> Path:
    """An index of 40 rows with texts, and files of texts, all short."""
    folder = tmp_path_factory.mktemp("presence")
    kept, deleted, absent = (sorted(t, key=len) for t in (kept, deleted, absent))
    rows = kept[:40]
    for name, held in (("gone", rows), ("stays", [*rows[2:], *deleted[:2]])):
        write_jsonl(folder / f"{name}.jsonl", held, minilm.encode(held))
    (folder / "deleted.txt").write_text("\n".join(deleted[:12]))
    (folder / "absent.txt").write_text("\n".join(absent[:34]))
    (folder / "present.txt").write_text("\n".join(rows[2:24]))
    return folder


@pytest.mark.slow
def test_the_command(core: Any, files: Path, leakscope_home: Path) -> None:
    given = ["--texts", files / "deleted.txt", "--references", files / "absent.txt"]
    there = core("presence", files / "stays.jsonl", *given, "--access", "scores", "--json")
    told = there.json()
    assert [near["is_same"] for near in told["attacks"][0]["nearest"]].count(True) == 2
    given += ["--deleted", "--present", files / "present.txt"]
    failed = core("presence", files / "stays.jsonl", *given)
    assert failed.status == 1 and failed.out.startswith(
        "Still inferable: a remaining row has the same vector as 2 of 12 deleted"
    )
    unsure = core("presence", files / "gone.jsonl", *given)
    assert unsure.status == 2 and "too few texts" in unsure.out and "not mean safe" in unsure.err
    passed = core("presence", files / "gone.jsonl", *given, "--max-auc", "100")
    assert passed.status == 0 and passed.out.startswith("Certificate")
    assert not (leakscope_home / "embeddings").exists(), "vectors of deleted texts are not kept"


def test_the_command_refuses_in_one_line(core: Any, files: Path, tmp_path: Path) -> None:
    source, given = files / "gone.jsonl", ["--references", files / "absent.txt"]
    assert "--text TEXT or --texts FILE" in core("presence", source, *given).refusal()
    asked = [*given, "--text", "It rained."]
    alone = core("presence", source, *asked, "--present", files / "present.txt")
    assert "works only with --deleted" in alone.refusal()
    assert core("presence", source, *asked, "--max-auc", "40").status == 2
    assert core("presence", source, "--text", "It rained.").status == 2
    assert core("presence", tmp_path / "absent.npy", *asked).status == 2
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal((60, 384)))
    assert "--encoder" in core("presence", tmp_path / "v.npy", *asked).refusal()
