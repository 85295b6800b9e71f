"""The attacker with a list of candidates: the experiment, its sentence, and the rows that ship."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memorising_models import MemorisingAttributeAttack, MemorisingWordEncoder, is_at_chance

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.defences.registry import entry_of
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import read_rows, rows_to_json
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.inversion import listed, listed_texts
from leakscope.core.studies.inversion.listed import ListedStudy, listed_scores, measure
from leakscope.core.studies.inversion.listed_summary import (
    SHIPPED,
    Listed,
    describe_listed_leak,
    load_listed,
    markdown,
    shipped_listed,
    summarise,
)
from leakscope.core.studies.inversion.listed_texts import (
    KINDS,
    MOST_CANDIDATES,
    TEMPLATES,
    FilledTexts,
    draw_candidates,
    insert_candidates,
)
from leakscope.core.studies.registry import cells_of
from leakscope.core.studies.tradeoff import texts as tradeoff_texts
from leakscope.core.studies.tradeoff.defence_grid import GRID
from leakscope.core.studies.tradeoff.guards import Guard
from leakscope.core.studies.tradeoff.texts import AttackersTexts, fold_text

RESULTS = Path(__file__).parents[1] / "results"


# The candidates and the texts


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_holds_different_candidates_and_another_seed_gives_another(kind: str) -> None:
    for seed in range(20):
        found = draw_candidates(kind, MOST_CANDIDATES, seed)
        assert len(set(found)) == MOST_CANDIDATES
        assert found == draw_candidates(kind, MOST_CANDIDATES, seed)
    one, other = draw_candidates(kind, 40, 0), draw_candidates(kind, 40, 1)
    assert len(set(one) & set(other)) < 3


def test_names_share_no_part_and_numbers_all_but_their_own_digits() -> None:
    first, last = zip(*(name.split() for name in draw_candidates("name", 40, 3)), strict=True)
    assert len(set(first)) == len(set(last)) == 40 and not set(first) & set(last)
    assert {number[:5] for number in draw_candidates("telephone", 40, 3)} == {"0550 "}
    ibans = [iban.replace(" ", "") for iban in draw_candidates("iban", 40, 3)]
    assert {(iban[:2], iban[4:12], len(iban)) for iban in ibans} == {("DE", "05550000", 22)}
    for iban in ibans:
        moved = iban[4:] + iban[:4]
        assert int("".join(str(int(each, 36)) for each in moved)) % 97 == 1, "ISO 13616"


@pytest.mark.parametrize("kind", KINDS)
def test_each_copy_of_a_text_has_another_candidate_before_or_after_it(kind: str) -> None:
    carriers, candidates = [f"Text {i} of many." for i in range(300)], draw_candidates(kind, 40, 0)
    found = insert_candidates(carriers, candidates, kind, 2, (0, 8))
    assert found.carriers == tuple(text for text in carriers for _ in range(2))
    for text, label, carrier in zip(found.texts, found.labels, found.carriers, strict=True):
        assert candidates[label] in text and carrier in text
        assert sum(each in text for each in candidates) == 1
    pairs = found.labels.reshape(-1, 2)
    assert (pairs[:, 0] != pairs[:, 1]).all() and set(found.labels.tolist()) == set(range(40))
    is_first = [t.startswith(c) for t, c in zip(found.texts, found.carriers, strict=True)]
    assert 0.4 < np.mean(is_first) < 0.6
    assert {t.format(text="", who="") for t in TEMPLATES[kind]} == {
        text.replace(carrier, "").replace(candidates[label], "")
        for text, carrier, label in zip(found.texts, found.carriers, found.labels, strict=True)
    }


# The experiment


@dataclass
class Seen:
    """What an attacker was given, who answers at random."""

    filled: list[FilledTexts] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    vectors: list[Any] = field(default_factory=list)

    def fit(self, texts: Any, labels: Any, vectors: Any, *, n_labels: int, seed: int) -> Seen:
        assert np.array_equal(labels, self.filled[-2].labels)
        self.n_labels = n_labels
        self.texts, self.vectors = [texts], [vectors]
        return self

    def scores(self, texts: Any, vectors: Any) -> Any:
        self.texts.append(texts)
        self.vectors.append(vectors)
        return np.random.default_rng(0).random((len(texts), self.n_labels), np.float32)


@pytest.fixture
def study(
    small_texts: list[str], tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ListedStudy]:
    distinct = list(dict.fromkeys(small_texts))
    monkeypatch.setattr(tradeoff_texts, "bundled_sentences", lambda: distinct)
    forget_texts()
    yield ListedStudy(
        encoder=f"mlm:{tiny_bert}",
        defences=("none",),
        kinds=("name",),
        n_candidates=10,
        n_auxiliary=100,
        n_targets=40,
        near=1.0,
        seeds=(0,),
    )
    forget_texts()


def forget_texts() -> None:
    tradeoff_texts.auxiliary_texts.cache_clear()
    tradeoff_texts._split_rows.cache_clear()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found, whole = Seen(), listed.insert_candidates

    def look(*given: Any) -> FilledTexts:
        found.filled.append(whole(*given))
        return found.filled[-1]

    monkeypatch.setattr(listed, "insert_candidates", look)
    monkeypatch.setattr(listed, "make_attribute_attack", lambda name: found)
    return found


def faults(study: ListedStudy, defence: str, seen: Seen) -> list[str]:
    """Return what is wrong with what an attacker learns from and attacks behind a noise."""
    (cell,) = replace(study, defences=(defence,), attackers=("linear",)).cells()
    (row,) = measure(cell, Path())
    encoder = load_encoder(EncoderSpec(name=study.encoder))
    known, targets = seen.filled
    assert [known.texts, targets.texts] == seen.texts
    assert row["n_vectors"] == len(known.texts) == 200 and len(targets.texts) == 40
    found = []
    if {fold_text(text) for text in known.carriers} & {
        fold_text(text) for text in targets.carriers
    }:
        found.append("targets are known")
    noise = [v - encoder.encode(t) for v, t in zip(seen.vectors, seen.texts, strict=True)]
    sigma = dict(cell["defence_settings"])["sigma"]
    if min(map(np.std, noise)) < sigma / 2:
        found.append("undefended")
    both = np.concatenate(noise)
    apart = np.linalg.norm(both[:, None] - both[None], axis=2) + 99 * np.eye(len(both))
    if apart.min() < sigma:
        found.append("the same noise twice")
    return found


def _undefended(self: Guard, encoder: Any) -> Any:
    return encoder


def _of_one_seed(self: Guard, encoder: Any) -> Any:
    """Return an encoder that begins its noise again at each call."""

    class Again:
        def encode(_: Any, texts: Any) -> Any:
            return self.protect(encoder).encode(texts)

    return Again()


def test_who_attacks_learns_from_defended_vectors_each_with_noise_of_its_own(
    study: ListedStudy, seen: Seen
) -> None:
    assert faults(study, "gaussian:sigma=0.5", seen) == []


@pytest.mark.parametrize(
    ("over", "said"), [(_undefended, "undefended"), (_of_one_seed, "the same noise twice")]
)
def test_undefended_vectors_and_noise_that_comes_again_would_be_found(
    study: ListedStudy, seen: Seen, monkeypatch: pytest.MonkeyPatch, over: Any, said: str
) -> None:
    monkeypatch.setattr(Guard, "over", over)
    assert said in faults(study, "gaussian:sigma=0.5", seen)


def test_targets_that_are_known_would_be_found(
    study: ListedStudy, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AttackersTexts, "__post_init__", lambda self: None)
    whole = listed.draw_word_texts

    def leaky(*given: Any) -> AttackersTexts:
        found = whole(*given)
        return replace(found, known=(*found.known[:-1], found.targets[0]))

    monkeypatch.setattr(listed, "draw_word_texts", leaky)
    assert faults(study, "gaussian:sigma=0.5", seen) == ["targets are known"]


@pytest.mark.parametrize(
    ("defence", "protects"),
    [
        ("truncation:dimension=8", lambda v: v[:, :8]),
        ("binary", lambda v: np.where(v >= 0, 1, -1) / np.sqrt(v.shape[1])),
        ("truncation:dimension=8+rounding:decimals=1", lambda v: np.round(v[:, :8], 1)),
    ],
)
def test_each_vector_is_the_one_that_the_defence_releases(
    study: ListedStudy, seen: Seen, defence: str, protects: Callable[[Any], Any]
) -> None:
    (cell,) = replace(study, defences=(defence,), attackers=("linear",)).cells()
    measure(cell, Path())
    encoder = load_encoder(EncoderSpec(name=study.encoder))
    for texts, vectors in zip(seen.texts, seen.vectors, strict=True):
        np.testing.assert_allclose(vectors, protects(encoder.encode(texts)), atol=1e-5)


def texts_of(small_texts: list[str], documents: tuple[str, ...] | None = None) -> AttackersTexts:
    distinct = list({fold_text(text): text for text in small_texts}.values())
    return AttackersTexts(tuple(distinct[:200]), (), tuple(distinct[200:300]), documents)


def cell_of(defence: str, **more: Any) -> Cell:
    (cell,) = ListedStudy(defences=(defence,), kinds=("name",), seeds=(0,), **more).cells()
    return cell


def test_a_name_of_the_list_is_found_without_a_defence_and_not_behind_much_noise(
    small_texts: list[str],
) -> None:
    texts = texts_of(small_texts)
    for defence, is_found in (("none", True), ("gaussian:sigma=200", False)):
        cell = cell_of(defence, n_candidates=20)
        scores = listed_scores(cell, Guard(cell).protect(MemorisingWordEncoder()), texts)
        assert [*scores] == ["hits_1: linear", "hits_1: discriminant"]
        for score in scores.values():
            assert (score.n, score.chance) == (100, 5.0), "always the same candidate"
            assert score.ci95.low <= score.value <= score.ci95.high
            assert (score.value > 80) if is_found else is_at_chance(score)


def test_intervals_are_over_the_documents_of_targets(
    small_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OfHalf(Seen):
        def fit(self, *_: Any, **__: Any) -> OfHalf:
            return self

        def scores(self, texts: Any, vectors: Any) -> Any:
            """Know the candidates of targets in the documents of even number alone."""
            own = draw_candidates("name", 40, 0)
            return np.float32(
                [[(c in t) == (i // 10 % 2 == 0) for c in own] for i, t in enumerate(texts)]
            )

    monkeypatch.setattr(listed, "make_attribute_attack", lambda name: OfHalf())
    widths = []
    for documents in (None, tuple(f"d{i // 10}" for i in range(100))):
        cell = cell_of("none", attackers=("linear",))
        scores = listed_scores(cell, MemorisingWordEncoder(), texts_of(small_texts, documents))
        score = scores["hits_1: linear"]
        assert score.value == 50 and score.chance == 2.5
        widths.append(score.ci95.high - score.ci95.low)
    assert widths[1] > 2 * widths[0]


@pytest.fixture
def by_heart(
    study: ListedStudy, small_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Score]:
    """Return what an attacker finds who says the candidate of a text that it nearly meets again."""
    distinct = list(dict.fromkeys(small_texts))
    texts = [*distinct, *(f"Truly {text}" for text in distinct[::2])]
    monkeypatch.setattr(tradeoff_texts, "bundled_sentences", lambda: texts)
    tradeoff_texts.auxiliary_texts.cache_clear()
    monkeypatch.setitem(listed_texts.TEMPLATES, "name", ("{text} {who}",))  # type: ignore[arg-type]
    monkeypatch.setattr(listed, "make_attribute_attack", lambda name: MemorisingAttributeAttack())

    def find() -> Score:
        tradeoff_texts._split_rows.cache_clear()
        asked = replace(
            study, attackers=("linear",), n_candidates=2, n_auxiliary=250, n_targets=60, near=0.25
        )
        (cell,) = asked.cells()
        (row,) = measure(cell, Path())
        return row.scores["hits_1: linear"]

    return find


def test_who_knows_by_heart_finds_no_candidate(by_heart: Callable[[], Score]) -> None:
    assert is_at_chance(by_heart())


def test_texts_that_are_nearly_known_would_be_found(
    by_heart: Callable[[], Score], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tradeoff_texts, "near_duplicates", lambda texts, known, near: frozenset())
    assert not is_at_chance(by_heart())


def test_every_defence_of_vectors_is_measured_unless_told() -> None:
    asked = {
        (cell["defence"], *cell["defence_settings"].values()) for cell in ListedStudy().cells()
    }
    assert asked == {(spec.name, *dict(spec.settings).values()) for spec in of_vectors()}
    assert len(ListedStudy().cells()) == 3 * 3 * len(asked)


def of_vectors() -> list[Any]:
    return [spec for spec in GRID if entry_of(spec.name).acts_on == "vector"]


def test_what_cannot_be_attacked_is_refused_by_name(tiny_encoder: TransformerEncoder) -> None:
    for defence in ("leace", "adversarial", "private_head"):
        with pytest.raises(InvalidInputError, match=f"--defences: {defence} needs training.* int8"):
            ListedStudy(defences=(defence,)).cells()
    with pytest.raises(InvalidInputError, match=r"--n-copies must be at most .* \(2\)"):
        ListedStudy(n_candidates=2, n_copies=3).cells()


def test_a_later_version_of_any_attacker_makes_another_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in listed.ATTACKERS:
        before = cells_of("listed", ListedStudy())
        entry = ATTRIBUTE_ATTACKS[name]
        monkeypatch.setitem(ATTRIBUTE_ATTACKS, name, replace(entry, version=entry.version + 1))
        assert all(a != b for a, b in zip(before, cells_of("listed", ListedStudy()), strict=True))


# What is said of it


def row_of(defence: str, kind: str, seed: int = 0, **values: float) -> Row:
    cell = {
        "study": "listed",
        "encoder": "minilm",
        "n_candidates": 40,
        "n_targets": 300,
        "n_auxiliary": 4000,
        "defence": defence,
        "defence_settings": {},
        "kind": kind,
        "seed": seed,
    }
    scores = {
        f"hits_1: {name}": Score(value, Interval(value - 4, value + 4), 300, 2.5)
        for name, value in values.items()
    }
    return Row(cell, scores, {"unit": "sentence", "n_vectors": 8000})


def test_the_strongest_attacker_is_the_one_whose_interval_ends_highest() -> None:
    row = row_of("int8", "name", linear=50, discriminant=49)
    wide = Score(49, Interval(40, 60), 300, 2.5)
    row = replace(row, scores={**row.scores, "hits_1: discriminant": wide})
    found = summarise([row])
    assert found.strongest("int8", {}, "name") == ("discriminant", wide)
    assert found.score("int8", (), "name") == wide
    assert found.score("int8", {}, "iban") is None and found.score("binary", {}, "name") is None


def test_scores_are_means_over_seeds() -> None:
    found = summarise([row_of("int8", "name", seed, linear=40 + 10 * seed) for seed in range(3)])
    score = found.score("int8", {}, "name")
    assert score is not None and (score.value, score.n, score.n_seeds) == (50, 900, 3)
    with pytest.raises(InvalidInputError, match="twice"):
        summarise([row_of("int8", "name", linear=40)] * 2)


def test_one_sentence_tells_what_is_found_of_each_kind() -> None:
    rows = [
        row_of("int8", kind, linear=value)
        for kind, value in (("name", 79), ("telephone", 20), ("iban", 90))
    ]
    assert describe_listed_leak(summarise(rows), "int8", {}) == (
        "With a list of 40 candidates, an attacker still finds 79 % of names (95 % CI 75–83), 20 % "
        "of telephone numbers (95 % CI 16–24) and 90 % of IBANs (95 % CI 86–94); guessing finds "
        "2.5 %. This was measured with invented candidates (n = 300 tests, one random seed). A "
        "better attacker may find more."
    )
    assert describe_listed_leak(summarise(rows), "binary", {}) == ""
    without = summarise([row_of("none", "name", linear=79)])
    told = describe_listed_leak(without, "none", {})
    assert "an attacker finds 79 % of names (95 % CI 75–83); guessing" in told
    assert "Without" not in told
    both = summarise([row_of("none", "name", linear=79), row_of("int8", "name", linear=20)])
    told = describe_listed_leak(both, "int8", {})
    assert " Without a defence, it finds 79 % of names (95 % CI 75–83)." in told
    told = describe_listed_leak(both, "int8", {}, is_brief=True)
    assert told == (
        "With a list of 40 candidates, 20 % of names are still found (79 % without a defence)."
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(study="names"),
        lambda data: data.update(rows=[]),
        lambda data: data["rows"][0].pop("kind"),
        lambda data: data["rows"][0].update(kind="street"),
        lambda data: data["rows"][0].update(n_candidates=50),
        lambda data: data["rows"][0].pop("hits_1: linear"),
        lambda data: data["rows"].append(data["rows"][0]),
    ],
)
def test_a_file_of_something_else_is_refused_by_name(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], Any]
) -> None:
    path = tmp_path / "listed.json"
    data = rows_to_json("listed", [row_of("int8", kind, linear=20) for kind in KINDS])
    path.write_text(json.dumps(data))
    assert load_listed(path).kinds == [*KINDS]
    spoil(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ArtifactError, match=r"listed\.json does not contain rows .*study listed"):
        load_listed(path)


# What ships


@pytest.fixture(scope="module")
def shipped() -> Listed:
    found = shipped_listed("minilm")
    assert found is not None
    return found


def test_what_ships_is_of_every_defence_of_vectors_and_of_every_kind(shipped: Listed) -> None:
    assert {*shipped.defences} == {(spec.name, spec.settings) for spec in of_vectors()}
    for defence, settings in shipped.defences:
        for kind in KINDS:
            score = shipped.score(defence, settings, kind)
            assert score is not None and score.chance == 2.5 and score.n >= 300
            assert score.ci95.low <= score.value <= score.ci95.high
        told = describe_listed_leak(shipped, defence, settings)
        assert "; guessing finds 2.5 %." in told
        assert "with invented candidates (n = 300 tests, one random seed)." in told
    assert shipped_listed("tfidf") is None and shipped_listed("../tradeoff") is None


def test_what_ships_is_the_table_of_the_docs_measured_as_it_is_today() -> None:
    rows = read_rows(SHIPPED, "listed")
    assert rows == read_rows(RESULTS / "listed.json", "listed")
    assert markdown(rows) == (RESULTS / "listed.md").read_text(encoding="utf-8")
    assert all(row["n_vectors"] >= 8000 and not row.error for row in rows)
    assert all(row.provenance and not row.provenance.is_changed for row in rows)


def test_a_defence_that_loses_most_words_still_gives_names_away(shipped: Listed) -> None:
    """Why the study is there: few words that leak are no evidence that a listed name is safe."""
    score = shipped.score("truncation", {"dimension": 48}, "name")
    assert score is not None and score.ci95.low > 10 * score.chance
