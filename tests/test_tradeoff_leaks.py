"""The trade-off as an experiment: nobody is scored on what they know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from memorising_models import GuessingMemorisingAttack, MemorisingWordEncoder

from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.lifted import Lift
from leakscope.core.attacks.inversion.shipped import load_attack, shipped_folder, text_mark
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.tradeoff import attack as tradeoff_attack
from leakscope.core.studies.tradeoff import texts as tradeoff_texts
from leakscope.core.studies.tradeoff.attack import attack_scores
from leakscope.core.studies.tradeoff.guards import Guard
from leakscope.core.studies.tradeoff.study import TradeoffStudy, part_entries
from leakscope.core.studies.tradeoff.summary import OF_TOKENS
from leakscope.core.studies.tradeoff.texts import AttackersTexts, draw_texts, fold_text
from leakscope.core.studies.tradeoff.use import use_scores
from leakscope.core.tasks.labelled import LabelledTask
from leakscope.core.text import Vocabulary

SMALL = (("vocabulary_size", 40), ("hidden", 8), ("epochs", 2), ("device", "cpu"))


def cell_of(defence: str, attackers: tuple[str, ...] = ("tuned",), **settings: Any) -> Cell:
    study = TradeoffStudy(defences=(defence,), attackers=attackers, attack_settings=SMALL)
    attacked = part_entries(study, DefenceSpec(name=defence))["attack"]
    cell = {**attacked, "defence": defence, "defence_settings": settings, "seed": 0}
    return {**cell, "n_auxiliary": 200}


@pytest.fixture(scope="module")
def distinct(small_texts: list[str]) -> list[str]:
    """The small texts, each once."""
    return list({fold_text(text): text for text in small_texts}.values())


@pytest.fixture
def texts(distinct: list[str]) -> AttackersTexts:
    return draw_texts(distinct, 200, 60, 0)


def test_nothing_that_is_attacked_or_set_aside_is_trained_on(texts: AttackersTexts) -> None:
    known, held, targets = ({fold_text(t) for t in part} for part in texts.parts)
    assert (len(known), len(targets)) == (200, 60) and len(held) >= 40
    assert not (known & targets or known & held or held & targets)


@pytest.mark.parametrize("parts", [("known", "targets"), ("held", "targets"), ("known", "held")])
def test_a_text_on_two_sides_is_refused(texts: AttackersTexts, parts: tuple[str, str]) -> None:
    one, other = parts
    shouted = getattr(texts, one)[0].upper().replace(" ", ", ")
    with pytest.raises(InvalidInputError, match="1 texts are"):
        replace(texts, **{other: (*getattr(texts, other), shouted)})


def test_the_seed_changes_the_targets_not_what_is_known(distinct: list[str]) -> None:
    one, other = draw_texts(distinct, 200, 60, 0), draw_texts(distinct, 200, 60, 1)
    assert one.known == other.known and one.targets != other.targets


@pytest.mark.parametrize("starts", [True, False])
def test_what_nearly_repeats_another_side_is_not_attacked(
    distinct: list[str], starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*distinct, *(f"Truly {text}" for text in distinct[::4])]
    marks = {text_mark(text) for text in texts[: len(distinct) // 2]} if starts else None

    def repeated(found: AttackersTexts) -> int:
        known = [text for text in texts if text not in {*found.targets, *found.held}]
        return len(near_duplicates([*found.targets, *found.held], known)) + len(
            near_duplicates(found.held, found.targets)
        )

    found = draw_texts(texts, 150, 40, 0, held_out=marks)
    known = near_duplicates([*found.targets, *found.held], found.known)
    assert not known and found.n_near_duplicates > 10
    assert not near_duplicates(found.held, found.targets)
    monkeypatch.setattr(tradeoff_texts, "near_duplicates", lambda texts, known, near: frozenset())
    tradeoff_texts._split_rows.cache_clear()
    leaky = draw_texts(texts, 150, 40, 0, held_out=marks)
    tradeoff_texts._split_rows.cache_clear()
    assert repeated(leaky) > 5, "else the check could not fail"


@pytest.mark.slow
def test_targets_come_from_many_documents_and_few_of_each() -> None:
    words = np.random.default_rng(0).integers(10**6, size=(6000, 6))
    texts = [" ".join(f"w{n}" for n in row) for row in words]
    sizes = [600] * 4 + [20] * 180
    names = [f"document {i}" for i, size in enumerate(sizes) for _ in range(size)]
    documents = dict(zip(texts, names, strict=True))
    found = draw_texts(texts, 2500, 100, 0, documents=documents)
    assert found.facts["n_documents"] >= 40
    assert max(Counter(found.documents or ()).values()) <= 26
    known = {documents[text] for text in found.known}
    apart = {documents[text] for text in (*found.targets, *found.held)}
    assert not known & apart, "also what is left of a document is not known"


def test_articles_are_not_known_in_part(distinct: list[str]) -> None:
    documents = {text: f"article {i // 8}" for i, text in enumerate(distinct)}
    found = draw_texts(distinct, 200, 40, 0, documents=documents)
    known, others = ({documents[t] for t in part} for part in (found.known, found.targets))
    assert found.documents is not None and not known & others
    assert set(found.documents) == others and len(found.documents) == 40
    assert found.facts["unit"] == "document" and found.facts["n_documents"] == len(others)
    elsewhere = draw_texts(distinct, 200, 40, 0, documents={"another text": "a"})
    assert elsewhere.facts["unit"] == "sentence", "of none of these texts is the document known"
    alone = draw_texts(distinct, 200, 40, 0)
    assert alone.documents is None
    assert {documents[t] for t in alone.known} & {documents[t] for t in alone.targets}


def test_of_shipped_weights_only_sentences_held_out_from_them_are_attacked(
    distinct: list[str],
) -> None:
    marks = {text_mark(text) for text in distinct[:100]}
    found = draw_texts(distinct, 200, 50, 0, held_out=marks)
    assert {text_mark(t) for t in (*found.targets, *found.held)} <= marks
    assert not {text_mark(t) for t in found.known} & marks
    with pytest.raises(InvalidInputError, match="--auxiliary"):
        draw_texts(distinct, 200, 90, 0, held_out=marks)


@pytest.fixture
def by_heart(distinct: list[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], Score]:
    """Return what an attacker reads who answers what it nearly meets again, and else guesses."""
    texts = [*distinct, *(f"Truly {text}" for text in distinct[::2])]
    monkeypatch.setattr(
        tradeoff_attack, "make_cell_attack", lambda cell: GuessingMemorisingAttack()
    )

    def read() -> Score:
        tradeoff_texts._split_rows.cache_clear()
        found = draw_texts(texts, 250, 60, 0)
        tradeoff_texts._split_rows.cache_clear()
        scores, _ = attack_scores(cell_of("none"), MemorisingWordEncoder(), found)
        return scores["token_set_f1: tuned"]

    return read


def test_who_knows_by_heart_reads_no_more_than_a_guess(by_heart: Callable[[], Score]) -> None:
    score = by_heart()
    assert score.n > 40 and score.value == pytest.approx(score.chance)


def test_texts_that_are_nearly_known_would_be_read(
    by_heart: Callable[[], Score], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tradeoff_texts, "near_duplicates", lambda texts, known, near: frozenset())
    score = by_heart()
    assert score.ci95.low > score.chance + 5


def test_the_attacker_is_trained_on_protected_vectors(
    tiny_encoder: TransformerEncoder, texts: AttackersTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the attacker's map is fitted on is what the defence makes of the known texts."""
    fitted: list[tuple[Any, Any]] = []
    whole = Lift.fit.__func__

    def fit(cls: type[Lift], changed: Any, unchanged: Any) -> Lift:
        fitted.append((changed, unchanged))
        return whole(cls, changed, unchanged)

    monkeypatch.setattr(Lift, "fit", classmethod(fit))
    attack_scores(cell_of("truncation", dimension=16), tiny_encoder, texts)
    ((changed, unchanged),) = fitted
    clean = tiny_encoder.encode(texts.known)
    np.testing.assert_allclose(unchanged, clean, atol=1e-5)
    np.testing.assert_allclose(changed, clean[:, :16], atol=1e-5)


@pytest.mark.slow
def test_every_attacker_is_scored_on_the_targets_alone(
    tiny_encoder: TransformerEncoder, texts: AttackersTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[tuple[str, ...]] = []

    def look(attack: Any, encoder: Any, given: Any, **more: Any) -> Any:
        scored.append(tuple(given))
        return evaluate(attack, encoder, given, **more)

    monkeypatch.setattr(tradeoff_attack, "evaluate", look)
    names = ("tuned", "search", "tokens")
    scores, told = attack_scores(cell_of("text_to_text", names, eta=50.0), tiny_encoder, texts)
    assert scored == [texts.targets] * 3 and set(told["attacker_seconds"]) == set(names)
    measured = {scores[f"token_set_f1: {name}"].n for name in names}
    chances = {scores[f"token_set_f1: {name}"].chance for name in names}
    assert len(measured) == 1 == len(chances), "all face the same words"


def test_who_reads_released_tokens_alone_encodes_and_trains_nothing(
    tiny_encoder: TransformerEncoder, texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise AssertionError("nobody reads a vector")

    cell = {**cell_of("text_to_text", OF_TOKENS, eta=5000.0), "start": "ships"}
    cell["attackers"] = [*OF_TOKENS]
    ships = SimpleNamespace(vocabulary_=Vocabulary.count(texts.known))
    monkeypatch.setattr(tradeoff_attack, "_shipped_classifier", lambda encoder: ships)
    monkeypatch.setattr(tradeoff_attack._AttackSetup, "of", none)
    scores, told = attack_scores(cell, tiny_encoder, texts)
    assert list(told["attacker_seconds"]) == list(OF_TOKENS)
    assert scores["token_set_f1: tokens"].value > scores["token_set_f1: tokens"].chance
    with pytest.raises(AssertionError, match="nobody reads"):
        attack_scores({**cell, "attackers": ["tuned"]}, tiny_encoder, texts)


@pytest.mark.parametrize(
    ("defence", "settings", "n_copies"),
    [("gaussian", {"sigma": 0.1}, tradeoff_attack.N_COPIES), ("int8", {}, 1)],
)
def test_who_learns_behind_noise_has_several_noisy_copies_of_each_text(
    tiny_encoder: TransformerEncoder,
    texts: AttackersTexts,
    defence: str,
    settings: Any,
    n_copies: int,
) -> None:
    cell = cell_of(defence, ("tuned",), **settings)
    scene = tradeoff_attack._AttackSetup.of(Guard(cell), tiny_encoder, texts)
    assert len(scene.copies) == n_copies
    first = scene.copies[0]
    assert all(np.abs(other - first).max() > 1e-3 for other in scene.copies[1:])


class ByText:
    """Encodes each text as a random vector of its own: a classifier can only learn by heart."""

    name, dimension, fingerprint = "by text", 400, "t"

    def encode(self, texts: Any, on_progress: Any = None) -> Any:
        return np.stack(
            [np.random.default_rng(list(text.encode())).standard_normal(400) for text in texts]
        ).astype(np.float32)


@pytest.mark.parametrize("is_official", [True, False])
def test_what_was_learned_by_heart_is_no_use_on_other_texts(is_official: bool) -> None:
    rng = np.random.default_rng(0)
    texts = tuple(f"text {i}" for i in range(1000, 1600))
    labels = tuple(map(str, rng.integers(0, 2, 600)))
    splits = tuple("train" if i < 350 else "test" for i in range(600)) if is_official else ()
    task = LabelledTask("heart", texts, labels, splits)
    found = task.score(ByText(), seed=1)
    assert found.ci95.low < 50 < found.ci95.high + 3
    known, held = task.parts(seed=1)
    assert not set(known) & set(held) and len(held) == (250 if is_official else 120)


def test_a_text_that_is_on_both_sides_is_not_trained_on() -> None:
    task = LabelledTask(
        "t",
        ("a", "b", "c", "a", "d"),
        ("0", "1", "0", "0", "1"),
        ("train", "train", "train", "test", "test"),
    )
    known, held = task.parts(seed=0)
    assert sorted(known) == [1, 2] and sorted(held) == [3, 4]


def test_folds_are_others_under_each_seed_and_the_same_for_each_defence() -> None:
    task = LabelledTask("t", tuple(map(str, range(100, 200))), ("0", "1") * 50)
    tested = [set(task.parts(seed=seed)[1]) for seed in range(5)]
    assert set.union(*tested) == set(range(100)) and sum(map(len, tested)) == 100
    assert all(np.array_equal(*(task.parts(seed=3)[i] for _ in range(2))) for i in range(2))


def test_a_defence_is_held_against_none_on_the_same_texts(
    tiny_encoder: TransformerEncoder, monkeypatch: pytest.MonkeyPatch, small_texts: list[str]
) -> None:
    labels = tuple("yes" if "minister" in text.lower() else "no" for text in small_texts)
    task = LabelledTask("m", tuple(small_texts), labels)
    asked: list[list[str]] = []
    whole = LabelledTask.outcome

    def look(self: LabelledTask, encoder: Any, **sizes: int) -> Any:
        asked.append([self.texts[i] for side in self.parts(**sizes) for i in side])
        return whole(self, encoder, **sizes)

    monkeypatch.setattr(LabelledTask, "outcome", look)
    monkeypatch.setattr("leakscope.core.studies.tradeoff.use.open_tasks", lambda *told: [task])
    cell = {
        "defence": "gaussian",
        "defence_settings": {"sigma": 9.0},
        "seed": 2,
        "tasks": [],
        "pairs": [],
        "searches": [],
        "n_train": 0,
        "n_test": 0,
        "n_searched": 9,
    }
    scores, told = use_scores(cell, tiny_encoder, Guard(cell).over(tiny_encoder))
    assert len(asked) == 2 and asked[0] == asked[1]
    change = scores["change of accuracy: m"]
    assert change.ci95.low <= change.value <= change.ci95.high and change.value < 0
    assert told == {"same_texts": [], "task_near_duplicates": {"m": 0}}


@pytest.mark.slow
def test_a_sentence_is_read_behind_a_defence_on_as_many_texts_as_are_told(
    minilm: TransformerEncoder, bundled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tradeoff_attack, "N_SENTENCES", 4)
    monkeypatch.setattr(tradeoff_attack, "N_SENTENCE_QUERIES", 40)
    short = [text for text in dict.fromkeys(bundled) if 6 <= len(text.split()) <= 14]
    texts = AttackersTexts(tuple(short[:200]), tuple(short[200:240]), tuple(short[240:248]))
    settings = {"vocabulary_size": 400, "epochs": 1, "hidden": 8, "substitutions": 0}
    cell = cell_of("truncation", dimension=192)
    cell |= {"attackers": ["reconstruct"], "settings": settings}
    scores, told = attack_scores(cell, minilm, texts)
    assert set(scores) == {"token_set_f1: reconstruct", "all_words_f1: reconstruct"}
    score = scores["token_set_f1: reconstruct"]
    assert 1 <= score.n <= 4, "those of the four that hold a word that all are judged by"
    assert told["attackers_told"]["reconstruct"]["family"] == "sentence search"


def test_who_reads_sentences_is_refused_without_the_texts_that_were_held_out() -> None:
    for name in ("reconstruct", "shipped"):
        with pytest.raises(InvalidInputError, match=f"{name} .*--auxiliary none"):
            cell_of("none", ("tuned", name))


@pytest.mark.slow
def test_the_search_as_it_ships_reads_as_much_as_it_does_elsewhere(
    minilm: TransformerEncoder, bundled: list[str]
) -> None:
    short = [text for text in dict.fromkeys(bundled) if 6 <= len(text.split()) <= 14]
    texts = AttackersTexts(tuple(short[:500]), tuple(short[500:540]), tuple(short[540:552]))
    cell = cell_of("none") | {"attackers": ["shipped"], "start": "as it ships"}
    scores, told = attack_scores(cell, minilm, texts)
    shipped = load_attack(shipped_folder(minilm, "search"))
    expected = evaluate(shipped, minilm, texts.targets).scores.token_set_f1
    assert scores["token_set_f1: shipped"].value == pytest.approx(expected, abs=3)
    assert told["attackers_told"]["shipped"]["family"] == "re-embedding search"
