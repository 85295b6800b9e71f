"""The studies of membership against embedding models: nothing leaks in, what is there is found."""

from __future__ import annotations

import csv
import hashlib
import itertools
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from conftest import SMALL_WORDS
from numpy.typing import NDArray
from processes import running_process, wait_until

from leakscope.core.corpora import load_corpus
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.membership import sentences as membership_sentences
from leakscope.core.studies.membership import words as membership_words
from leakscope.core.studies.membership.classifier_rows import NULL
from leakscope.core.studies.membership.compared import GAIN
from leakscope.core.studies.membership.halves import (
    N_DEALS,
    Halves,
    ReferenceScores,
    Scored,
    draw_halves,
    group_rows,
    open_documents,
)
from leakscope.core.studies.membership.sentences import MembershipSentencesStudy, pairs_by_document
from leakscope.core.studies.membership.words import MembershipWordsStudy
from leakscope.core.studies.registry import run_study
from leakscope.core.text import words

ROOT = Path(__file__).parents[1]
N_BOOKS, N_SENTENCES = 60, 24


def write_books(path: Path) -> Path:
    """Write sentences of seven words, drawn alike for each of sixty books."""
    rng = np.random.default_rng(0)
    every = [f"{one}{two}" for one in SMALL_WORDS for two in ("", "s", "ed", "ing")]
    share = 1 / np.arange(2, len(every) + 2)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["book", "text"])
        for book in range(N_BOOKS):
            for _ in range(N_SENTENCES):
                drawn = rng.choice(every, 7, replace=False, p=share / share.sum())
                writer.writerow([f"b{book}", f"{' '.join(drawn).capitalize()}."])
    return path


def write_posts(
    path: Path, texts: Sequence[str], *more: str, n_users: int = 50, classes: str = "abc"
) -> Path:
    """Write texts of users; the class is dealt by lot, so that it can be learnt by heart alone."""
    rng = np.random.default_rng(0)
    lines = [
        f"u{i % n_users},{classes[rng.integers(len(classes))]},{t}" for i, t in enumerate(texts)
    ]
    path.write_text("\n".join(["user_id,topic,text", *lines, *more]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_books(tmp_path_factory.mktemp("books") / "books.csv")


def words_study(books: Path, **more: Any) -> MembershipWordsStudy:
    given = {
        "target": f"{books}#text",
        "document_column": "book",
        "encoders": ("word2vec",),
        "n_words": (3,),
        "n_windows": 200,
        "seeds": (0,),
        "labelled_share": 0.2,
    }
    return MembershipWordsStudy(**(given | more))


def sentences_study(books: Path, **more: Any) -> MembershipSentencesStudy:
    given = {
        "target": f"{books}#text",
        "document_column": "book",
        "encoders": ("dual_lstm",),
        "seeds": (0,),
        "labelled_share": 0.2,
        "dimension": 8,
        "epochs": (2,),
    }
    return MembershipSentencesStudy(**(given | more))


def found_in(rows: Sequence[Row], **wanted: Any) -> Score:
    """Return the area under the curve of the one row that is asked for."""
    (row,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return row.scores["auc"]


class Memory:
    """Word vectors that are alike where words stood in one window of the texts."""

    min_count = 2

    def __init__(self, *, is_blind: bool = False) -> None:
        self.is_blind = is_blind

    def fit(self, texts: Sequence[str]) -> Self:
        cut = [words(text) for text in texts]
        counted: dict[str, int] = {}
        for each in cut:
            for word in each:
                counted[word] = counted.get(word, 0) + 1
        self.words_ = sorted((w for w, n in counted.items() if n >= 2), key=lambda w: -counted[w])
        places = {word: i for i, word in enumerate(self.words_)}
        n = len(places)
        together = np.zeros((n, n))
        for each in cut:
            for one, two in itertools.pairwise(each):
                if one in places and two in places:
                    together[places[one], places[two]] += 1
        rng = np.random.default_rng(1)
        values, axes = np.linalg.eigh(together + together.T + 9 * np.eye(n))
        self.vectors_ = (axes * np.sqrt(np.maximum(values, 0))).astype(np.float32)
        if self.is_blind:
            self.vectors_ = rng.normal(size=(n, 20)).astype(np.float32)
        self.texts = list(texts)
        return self


def use_words(monkeypatch: pytest.MonkeyPatch, encoder: Memory) -> Memory:
    def trained(name: str, settings: Any, told: Any, fit: Any, folder: Path) -> Any:
        return fit(encoder, "")

    monkeypatch.setattr(membership_words, "trained_encoder", trained)
    return encoder


def test_halves_are_of_one_draw_and_labels_are_of_either(books: Path) -> None:
    corpus = open_documents(f"{books}#text", "book")
    halves = draw_halves(corpus, 3, 0.1)
    assert halves.members.sum() == N_BOOKS // 2
    assert (
        (halves.labelled & halves.members).sum() == (halves.labelled & ~halves.members).sum() == 3
    )
    other = draw_halves(corpus, 4, 0.1)
    assert not np.array_equal(halves.members, other.members)


def test_too_few_documents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.txt"
    path.write_text("One two three. Four five six.\nSeven eight nine. Ten eleven twelve.\n")
    with pytest.raises(InvalidInputError, match="too few to train on half"):
        draw_halves(load_corpus(path), 0, 0.1)


@pytest.mark.slow
def test_words_are_trained_on_one_half_and_scored_apart_from_labels(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = use_words(monkeypatch, Memory())
    kept: list[Scored] = []

    def spy(found: Scored, *rest: Any, **more: Any) -> list[Row]:
        kept.append(found)
        return group_rows(found, *rest, **more)

    monkeypatch.setattr(membership_words, "group_rows", spy)
    run_study("membership-words", words_study(books, has_control=False), tmp_path)
    corpus = open_documents(f"{books}#text", "book")
    halves = draw_halves(corpus, 0, 0.2)
    read = set(encoder.texts)
    for document, is_member in zip(corpus.documents, halves.members, strict=True):
        sentences = document.text.split("\n\n")
        assert all((sentence in read) is bool(is_member) for sentence in sentences)
    for found in kept:
        assert np.array_equal(found.members, halves.members[found.units])
        assert np.array_equal(found.labelled, halves.labelled[found.units])


@pytest.mark.slow
def test_vectors_that_know_their_windows_by_heart_are_found_out_and_others_not(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_words(monkeypatch, Memory())
    rows = run_study("membership-words", words_study(books), tmp_path / "a")
    assert [row.error for row in rows if row.error] == []
    for name in ("cosine", "centred"):
        same = {"similarity": name, "decile": 0}
        found = found_in(rows, trained_on="half", labels="true", **same)
        control = found_in(rows, trained_on="both", labels="true", **same)
        dealt = found_in(rows, trained_on="half", labels="shuffled", **same)
        assert found.ci95.low > 0.6 > control.value
        assert control.ci95.low <= 0.5 <= control.ci95.high
        assert abs(dealt.value - 0.5) < 0.02
    assert any(row["decile"] == 10 for row in rows)
    use_words(monkeypatch, Memory(is_blind=True))
    blind = run_study("membership-words", words_study(books), tmp_path / "b")
    for name in ("cosine", "centred"):
        area = found_in(blind, similarity=name, decile=0, trained_on="half", labels="true")
        assert area.ci95.low <= 0.5 <= area.ci95.high


def test_windows_that_stand_in_both_halves_are_not_scored(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were they, members would be called so that are none, and the others with them."""
    use_words(monkeypatch, Memory())
    corpus = open_documents(f"{books}#text", "book")
    halves = draw_halves(corpus, 0, 0.2)
    _, numbered = membership_words._numbered_documents(f"{books}#text", "book")
    windows = membership_words.extract_windows(numbered, 3)
    vectors = membership_words.WordVectors(
        np.ones((len(numbered.words), 2), np.float32), np.arange(len(numbered.words))
    )
    (cell,) = words_study(books, has_control=False).cells()
    left = membership_words._comparable_windows(windows, vectors, halves, cell)
    inside = halves.members[left.documents]
    told = np.column_stack([left.centres, left.contexts])
    assert 0 < len(left) < len(windows)
    assert not {*map(tuple, told[inside])} & {*map(tuple, told[~inside])}
    scored = ~halves.labelled[left.documents]
    for word in np.unique(left.centres[scored]):
        is_word = scored & (left.centres == word)
        assert (is_word & inside).sum() == (is_word & ~inside).sum()
    known = membership_words._comparable_windows(
        windows, vectors, halves, {**cell, "compared": "known"}
    )
    assert len(known) > len(left), "what stands more often on one side is not left out there"


class KnowsPairs:
    """An encoder that gives sentences like vectors which stood in one pair of its texts."""

    n_validation, seed, epochs = 2, 0, 1
    validation_ = (SimpleNamespace(score=Score(50.0)),)

    def __init__(self, *, is_blind: bool = False) -> None:
        self.is_blind = is_blind

    def fit_pairs(self, pairs: Sequence[tuple[str, str]], checkpoint_dir: str) -> Self:
        self.partners: dict[str, list[str]] = {}
        for pair in pairs:
            for text in pair:
                self.partners.setdefault(text, []).append("".join(pair))
        self.pairs = list(pairs)
        return self

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        found = np.stack([_vector(text) for text in texts])
        if not self.is_blind:
            for i, text in enumerate(texts):
                found[i] += sum((_vector(pair) for pair in self.partners.get(text, [])), 0.0)
        return found.astype(np.float32)


def _vector(text: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=16)


@pytest.mark.slow
@pytest.mark.parametrize("is_blind", [False, True])
def test_an_encoder_that_knows_its_pairs_is_found_out_and_a_blind_one_not(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_blind: bool
) -> None:
    encoder = KnowsPairs(is_blind=is_blind)
    monkeypatch.setattr(
        membership_sentences,
        "trained_encoder",
        lambda name, settings, told, fit, folder: fit(encoder, ""),
    )
    rows = run_study("membership-sentences", sentences_study(books), tmp_path)
    assert [row.error for row in rows if row.error] == []
    corpus = open_documents(f"{books}#text", "book")
    halves = draw_halves(corpus, 0, 0.2)
    documents = pairs_by_document(corpus)
    inside = [pair for i in np.flatnonzero(halves.members) for pair in documents[i]]
    assert encoder.pairs == inside, "it is trained on all pairs of its half, and on no other"
    assert all(
        (NULL in row.scores) is (row["labels"] == "true") for row in rows if row["decile"] == 0
    )
    for level in ("pair", "book"):
        for name in ("fixed", "learned"):
            same = {"similarity": name, "decile": 0, "level": level}
            found = found_in(rows, labels="true", **same)
            assert abs(found_in(rows, labels="shuffled", **same).value - 0.5) < 0.03
            (null,) = [
                row.scores[NULL]
                for row in rows
                if row["labels"] == "true" and all(row[key] == value for key, value in same.items())
            ]
            assert null.ci95.low <= 0.5 <= null.ci95.high and null.n < found.n
            if is_blind:
                assert found.ci95.low <= 0.5 <= found.ci95.high
            else:
                assert found.value > (0.7 if level == "pair" else 0.95)
    assert {row["n_documents"] for row in rows if row["decile"] == 0} == {N_BOOKS * 4 // 5}


def many_books(n: int = 1000) -> tuple[list[list[tuple[str, str]]], Halves, KnowsPairs]:
    """Books of three pairs that no other has, and an encoder that knows those of one half."""
    books = [[(f"{book} {i} a", f"{book} {i} b") for i in range(3)] for book in range(n)]
    rng = np.random.default_rng(3)
    members = rng.permutation(np.arange(n) < n // 2)
    encoder = KnowsPairs()
    encoder.fit_pairs([pair for i in np.flatnonzero(members) for pair in books[i]], "")
    return books, Halves(members, rng.random(n) < 0.1), encoder


@pytest.mark.slow
@pytest.mark.parametrize("is_leaky", [False, True])
def test_of_books_that_were_not_trained_on_none_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, is_leaky: bool
) -> None:
    """All of the experiment is run on them: where it reads who is a member, that is seen."""
    documents, halves, encoder = many_books()
    cell = {"seed": 0, "labelled_share": 0.1, "n_pairs": 3, "similarities": ["fixed", "learned"]}
    monkeypatch.setattr(  # one group: all pairs
        membership_sentences,
        "frequency_deciles",
        lambda rarity, seed: np.ones(len(rarity), dtype=np.int64),
    )
    if is_leaky:
        real = membership_sentences.cross_fitted_scores

        def leaky(attack: Any, vectors: Any, pairs: Any, members: Any, labelled: Any) -> Any:
            return real(attack, vectors, pairs, members, labelled) + 0.5 * members

        monkeypatch.setattr(membership_sentences, "cross_fitted_scores", leaky)
    rows = membership_sentences._null_rows(cell, encoder, documents, set(encoder.pairs), halves)
    found = [row for row in rows if row["decile"] == 0 and row["labels"] == "true"]
    assert [(row["similarity"], row["level"]) for row in found] == [
        (name, level) for name in ("fixed", "learned") for level in ("pair", "book")
    ]
    for row in found:
        area = row.scores["auc"]
        assert row["n_documents"] == 450, "500 were not trained on, a tenth is labelled"
        assert area.ci95.high - area.ci95.low < 0.12
        if is_leaky:
            assert area.ci95.low > 0.5
        else:
            assert area.ci95.low <= 0.5 <= area.ci95.high
    mean = np.mean([row.scores["auc"].value for row in found])
    assert mean > 0.55 if is_leaky else abs(mean - 0.5) < 0.02


def test_pairs_that_were_held_out_of_training_are_no_members(books: Path) -> None:
    corpus = open_documents(f"{books}#text", "book")
    halves = draw_halves(corpus, 0, 0.2)
    documents = pairs_by_document(corpus)
    inside = [pair for i in np.flatnonzero(halves.members) for pair in documents[i]]
    cell = {"seed": 0, "n_pairs": 1000}
    pairs, members = membership_sentences._comparable_pairs(
        documents, set(inside[5:]), halves, cell
    )
    told = {
        (pairs.texts[a], pairs.texts[b])
        for a, b in zip(pairs.first[members], pairs.second[members], strict=True)
    }
    assert told == set(inside[5:])
    assert len(pairs.documents) - members.sum() == sum(
        len(documents[i]) for i in np.flatnonzero(~halves.members)
    )


def test_decisions_follow_labelled_samples_and_controls_are_means_of_deals() -> None:
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(100), 5)
    members = units % 2 == 0
    scores = rng.normal(size=500) + members
    found = Scored(scores, members, units < 20, units, np.zeros(500, dtype=np.int64))
    true, dealt = group_rows(found, {0: {"rarest": 4}}, 0, similarity="fixed")
    assert (true["labels"], dealt["labels"], true["rarest"], true["n"]) == (
        "true",
        "shuffled",
        4,
        400,
    )
    assert true.scores["advantage"].value > 0.2 and true["n_documents"] == 80
    assert true["not_resolvable"] == [0.01, 0.001], "forty documents tell no hundredth"
    assert abs(dealt.scores["auc"].value - 0.5) < 0.02
    assert dealt.scores["auc"].ci95.high - dealt.scores["auc"].ci95.low < 4 * 0.1 / N_DEALS**0.5
    upside_down = Scored(
        np.where(units < 20, -scores, scores),
        *[getattr(found, name) for name in ("members", "labelled", "units", "groups")],
    )
    assert group_rows(upside_down, {}, 0)[0].scores["advantage"].value < 0.1, "it was misled"


def test_another_attack_is_held_against_on_the_same_documents() -> None:
    """By hand: of pairs of a member and another the one ranks all right, the other two in three;
    what is labelled counts for neither."""
    units = np.repeat(np.arange(6), [1, 1, 2, 1, 1, 2])
    members = units % 2 == 0
    groups = np.zeros(8, dtype=np.int64)
    own = np.array([9.0, 0.0, 4.0, 4.0, 1.0, 4.0, 1.0, 1.0])
    other = np.array([np.nan, np.nan, 4.0, 0.0, 1.0, 4.0, 1.0, 1.0])
    found = Scored(own, members, units < 2, units, groups)
    true, dealt = group_rows(
        found, {}, 0, beside=ReferenceScores("cosine", other), similarity="centred"
    )
    gain = true.scores[f"{GAIN}: cosine"]
    assert gain.value == pytest.approx(1 - 6 / 9) and gain.n == 6
    assert list(dealt.scores) == ["auc", "advantage"], "of membership by lot nothing is gained"
    assert not any(GAIN in name for name in group_rows(found, {}, 0)[0].scores)

    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(120), 5)
    easy = np.repeat(rng.normal(size=120), 5) + 0.5 * (units % 2 == 0)
    noise = rng.normal(0, 0.3, (2, 600))
    kinds = units % 2 == 0, units < 20, units, np.zeros(600, dtype=np.int64)
    (row, _) = group_rows(
        Scored(easy + noise[0], *kinds), {}, 0, beside=ReferenceScores("cosine", easy + noise[1])
    )
    paired, apart = row.scores[f"{GAIN}: cosine"].ci95, row.scores["auc"].ci95
    assert paired.low <= row.scores[f"{GAIN}: cosine"].value <= paired.high
    assert paired.high - paired.low < (apart.high - apart.low) / 2


def test_a_group_of_too_few_documents_has_no_row() -> None:
    units = np.array([0, 1, 2, 3, 4, 5, 6, 7])
    members = np.array([True, False] * 4)
    groups = np.array([0, 0, 0, 0, 0, 0, 0, 3])
    found = Scored(np.arange(8.0), members, units < 2, units, groups)
    assert {row["decile"] for row in group_rows(found, {}, 0)} == {0}


RUN = """
import sys
sys.path[:0] = ["tests"]
from pathlib import Path
from test_membership_studies import sentences_study, words_study
from leakscope.core.studies.registry import run_study
books, folder = map(Path, sys.argv[1:])
run_study("membership-words", words_study(books, seeds=(0, 1)), folder)
run_study("membership-sentences", sentences_study(books, epochs=(3, 30)), folder)
"""


@pytest.mark.slow
def test_killed_studies_go_on_where_they_were(books: Path, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-c", RUN, books]
    with running_process([*command, killed], cwd=ROOT) as process:
        # In the midst of the second dual encoder's training.
        wait_until(lambda: checkpoint_of_the_last(killed), process, seconds=300)
        process.kill()
    before = {path: path.stat().st_mtime_ns for path in (killed / "cells").glob("*.json")}
    assert len(before) == 4
    studies = {
        "membership-words": words_study(books, seeds=(0, 1)),
        "membership-sentences": sentences_study(books, epochs=(3, 30)),
    }
    for name, study in studies.items():
        again, apart = (run_study(name, study, folder) for folder in (killed, whole))
        assert [row.error for row in again if row.error] == [] and told(again) == told(apart)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert len(list((killed / "cells").glob("*.json"))) == 5


@pytest.mark.slow
def test_a_damaged_encoder_or_checkpoint_is_made_anew(books: Path, tmp_path: Path) -> None:
    study = sentences_study(books)
    first = told(run_study("membership-sentences", study, tmp_path))
    (place,) = tmp_path.glob("encoders/*/model.json")
    assert [path.name for path in place.parent.parent.iterdir()] == [place.parent.name]
    for damaged in (place, place.parent.with_name(f"{place.parent.name}.checkpoint") / place.name):
        shutil.rmtree(tmp_path / "cells")
        if damaged != place:
            shutil.rmtree(place.parent)
            damaged.parent.mkdir()
        damaged.write_text("{}")
        assert told(run_study("membership-sentences", study, tmp_path)) == first


def told(rows: Sequence[Row]) -> list[Any]:
    """Return rows without the seconds that they took."""
    return [(row.cell, row.scores, row.facts) for row in rows]


def checkpoint_of_the_last(folder: Path) -> bool:
    """Return whether the checkpoint of the training of 30 epochs is written."""
    done = len(list((folder / "cells").glob("*.json"))) == 4
    return done and len(list(folder.glob("encoders/*.checkpoint/model.json"))) > 0
