"""Who knows the attacker's own records by heart finds no member in the studies of membership.

What an attack learnt of must not be scored: neither texts and users of shadow models, nor windows
and pairs of documents that are labelled. The models under attack know nothing here, so that
whatever is found was known before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from memorising_models import (
    MemorisingPairAttack,
    MemorisingWindowAttack,
    classifier_entry_of,
    is_at_chance,
    memory_entry,
)
from test_membership_studies import (
    N_BOOKS,
    KnowsPairs,
    Memory,
    sentences_study,
    words_study,
    write_books,
    write_posts,
)

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.attacks.membership.registry import (
    SENTENCE_ATTACKS,
    WORD_ATTACKS,
    MembershipEntry,
)
from leakscope.core.attacks.membership.sentences.scoring import BookPairs
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies import named_texts
from leakscope.core.studies.membership import classifiers as membership_classifiers
from leakscope.core.studies.membership import sentences as membership_sentences
from leakscope.core.studies.membership import trained_classifiers
from leakscope.core.studies.membership import words as membership_words
from leakscope.core.studies.membership.classifiers import MembershipClassifierStudy
from leakscope.core.studies.membership.halves import Scored

KINDS = [
    (level, needs) for level in ("sample", "user") for needs in ("shadows", "the same samples")
]


class KnowNothing:
    """Classifiers whose answers are drawn, whatever they were trained on."""

    def fit(self, lesson: TrainingBatch, **more: Any) -> Self:
        size = (lesson.n_models, len(lesson.texts))
        drawn = np.random.default_rng(0).dirichlet(np.ones(lesson.n_classes), size)
        self.answers_ = drawn.astype(np.float32)
        return self


@pytest.fixture
def posts(tmp_path: Path, small_texts: list[str]) -> Path:
    """Three texts each of a hundred and thirty users."""
    texts = [f"{text} {i}" for i, text in enumerate(small_texts[:390])]
    return write_posts(tmp_path / "posts.csv", texts, n_users=130, classes="ab")


Measured = Callable[[str, str, str], dict[str, Score]]


@pytest.fixture
def classifiers(posts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Measure a cell of a split with an attack that knows by heart what shadows learnt of."""
    monkeypatch.setattr(trained_classifiers, "make_classifiers", lambda *_: KnowNothing())
    for cached in (named_texts.open_classed, membership_classifiers.content_of):
        cached.cache_clear()

    def measured(split: str, level: str, needs: str) -> dict[str, Score]:
        entry = classifier_entry_of(level, needs)
        monkeypatch.setitem(CLASSIFIER_ATTACKS, "records", entry)  # type: ignore[arg-type]
        study = MembershipClassifierStudy(
            corpora=(f"posts={posts}:topic",),
            classifier_attacks=("records",),
            splits=(split,),
            n_shadows=4,
            seeds=(0,),
            least=2,
        )
        (cell,) = study.cells()
        (row,) = membership_classifiers.measure(cell, tmp_path / "study")
        return dict(row.scores)

    return measured


@pytest.mark.parametrize(("level", "needs"), KINDS)
def test_who_knows_by_heart_whom_shadows_learnt_of_finds_no_member(
    classifiers: Measured, level: str, needs: str
) -> None:
    for split in ("user", "sample")[: 1 if level == "user" else 2]:
        scores = classifiers(split, level, needs)
        assert is_at_chance(scores["auc"]) and is_at_chance(scores["null_auc"])
        assert scores["auc"].value < 0.65


@pytest.mark.parametrize(("level", "needs"), KINDS)
def test_shadows_that_learn_of_the_targets_members_would_tell_them(
    classifiers: Measured, level: str, needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacker's users are those of the target; one shadow's half is the target's."""
    draw, halves = trained_classifiers.draw_parts, trained_classifiers.random_halves
    drawn: list[Any] = []

    def leaking(units: Any, seed: int) -> Any:
        parts = draw(units, seed)
        drawn.append(parts)
        return replace(parts, shadow_members=parts.members, shadow_outsiders=parts.outsiders)

    def repeating(units: Any, n_models: int, seed: int) -> Any:
        found = halves(units, n_models, seed)
        found[0] = np.isin(drawn[-1].attacked, drawn[-1].members)
        return found

    monkeypatch.setattr(trained_classifiers, "draw_parts", leaking)
    monkeypatch.setattr(trained_classifiers, "random_halves", repeating)
    monkeypatch.setattr(trained_classifiers, "check_disjoint", lambda *_: None)  # it refuses them
    assert classifiers("user", level, needs)["auc"].value == 1.0


# Labelled documents

STUDIES = {"words": membership_words, "sentences": membership_sentences}


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return write_books(tmp_path / "books.csv")


def repeat(books: Path) -> None:
    """Let books end as one other does."""
    ends = ["river silver doctor lisbon ticket winter garden", "madrid butter pencil turtle violin"]
    with books.open("a", encoding="utf-8") as file:
        for book in range(N_BOOKS):
            file.writelines(f"b{book},{end} x{book // 2}.\n".capitalize() for end in ends)


Documents = Callable[[str], list[Row]]


@pytest.fixture
def documents(books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """Measure a study with an attack that knows labelled documents by heart, of blind vectors."""
    for entries, kind in (
        (WORD_ATTACKS, MemorisingWindowAttack),
        (SENTENCE_ATTACKS, MemorisingPairAttack),
    ):
        entry = memory_entry(MembershipEntry, kind, needs="some labelled documents")
        monkeypatch.setitem(entries, "memory", entry)
    blind = {"words": Memory(is_blind=True), "sentences": KnowsPairs(is_blind=True)}
    for of, module in STUDIES.items():
        monkeypatch.setattr(
            module, "trained_encoder", lambda *given, of=of: given[3](blind[of], "")
        )

    def measured(of: str) -> list[Row]:
        own = {"words": words_study, "sentences": sentences_study}[of]
        more: dict[str, Any] = {"similarities": ("memory",)}
        if of == "words":
            more |= {"has_control": False, "n_words": (5,), "n_windows": 60}
        (cell,) = own(books, **more).cells()
        return STUDIES[of].measure(cell, tmp_path)

    return measured


def found_out(rows: Sequence[Row]) -> list[Score]:
    """Return what rows say of members that is not what guessing says."""
    true = [row for row in rows if row["labels"] == "true"]
    assert {row["decile"] for row in true} == set(range(11))
    scores = [row.scores[name] for row in true for name in ("auc", "advantage")]
    return [score for score in scores if score.value != pytest.approx(score.chance)]


@pytest.mark.parametrize("of", STUDIES)
def test_who_knows_labelled_documents_by_heart_finds_no_member(
    documents: Documents, of: str
) -> None:
    assert found_out(documents(of)) == []


@pytest.mark.slow
@pytest.mark.parametrize("of", STUDIES)
def test_what_stands_in_a_labelled_document_too_is_not_scored(
    documents: Documents, books: Path, of: str
) -> None:
    repeat(books)
    assert found_out(documents(of)) == []


def test_windows_that_are_labelled_and_scored_would_be_found(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = membership_words.group_rows

    def leaking(found: Scored, *rest: Any, **more: Any) -> list[Row]:
        is_left = found.labelled & (found.units % 2 == 0)
        return whole(replace(found, labelled=is_left), *rest, **more)

    monkeypatch.setattr(membership_words, "group_rows", leaking)
    overall = next(row for row in documents("words") if row["decile"] == 0)
    assert not is_at_chance(overall.scores["auc"])


def test_pairs_that_are_learnt_of_and_scored_would_be_found(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaking(attack: Any, vectors: Any, pairs: BookPairs, members: Any, labelled: Any) -> Any:
        first, second = vectors[pairs.first], vectors[pairs.second]
        return attack().fit(first, second, members).score(first, second)

    monkeypatch.setattr(membership_sentences, "cross_fitted_scores", leaking)
    assert {
        row.scores["auc"].value for row in documents("sentences") if row["labels"] == "true"
    } == {1.0}
