"""The inputs of `tests/cases` on small and repeated samples, each with what it must give."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.attributes.draw import Plan, draw
from leakscope.core.attacks.attributes.examples import read_examples
from leakscope.core.attacks.attributes.experiment import Case, run_cases
from leakscope.core.attacks.attributes.registry import make_attribute_attack
from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.cli import attributes
from leakscope.core.corpora.files import read_texts
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.white_box import parts_read, read_and_unread
from leakscope.core.text import STOP_WORDS, word_set

CASES = Path(__file__).parent / "cases"
MEASURES = ("precision", "recall", "token_set_f1", "weighted_f1")


def evaluated(core: Any, name: str) -> Any:
    return core("evaluate", "--attack", "probe_mlc", "--texts", CASES / "texts" / name)


def test_a_file_repeated_a_hundred_times_has_the_same_intervals() -> None:
    encoder = load_encoder()
    attack = open_attack("probe_mlc", encoder)
    texts = [read_texts(CASES / "texts" / f"{name}.txt") for name in ("once", "hundred")]
    assert [len(each) for each in texts] == [8, 800]
    assert texts[1] == texts[0] * 100
    vectors = encoder.encode(texts[0])
    once, hundred = (
        evaluate(attack, encoder, each, vectors=np.tile(vectors, (len(each) // 8, 1))).scores
        for each in texts
    )
    assert (once.n, hundred.n, once.n_distinct, hundred.n_distinct) == (8, 800, 8, 8)
    for measure in MEASURES:
        assert hundred.score(measure).format(6) == once.score(measure).format(6)
    low, high = once.token_set_f1_ci95.low, once.token_set_f1_ci95.high
    assert high - low > 10, "of eight texts little is known"


@pytest.mark.slow
def test_the_command_says_how_many_texts_are_distinct(core: Any) -> None:
    told = evaluated(core, "once.txt").out
    assert "8 texts of once.txt\n" in told
    told = evaluated(core, "hundred.txt").out
    assert "800 texts of hundred.txt, 8 distinct: the unit of intervals" in told


def test_one_text_has_a_score_and_no_interval(core: Any) -> None:
    found = core(f"evaluate --attack probe_mlc --texts {CASES / 'texts/short.txt'} --json")
    result = found.json()
    assert result["n"] == 1 and result["token_set_f1"] > 0
    for measure in MEASURES[:3]:
        assert result[f"{measure}_ci95"] == [None, None]
    assert result["unrestricted_f1_ci95"] is None
    told = evaluated(core, "short.txt").out
    assert "[" not in told and "1 text of" in told


@pytest.mark.slow
def test_words_beyond_the_window_are_in_no_score_of_documents(core: Any) -> None:
    path = CASES / "texts" / "documents.txt"
    texts, encoder = read_texts(path), load_encoder()
    read = parts_read(encoder, texts)
    words = [word_set(text) - STOP_WORDS for text in texts]
    kept = [word_set(text) - STOP_WORDS for text in read]
    n_unread = sum(len(whole - part) for whole, part in zip(words, kept, strict=True))
    found = core("evaluate", "--attack", "probe_mlc", "--texts", path, "--json").json()
    assert found["n_unread_words"] == n_unread > 1000 and found["n_texts_cut"] == 12
    assert found["n_words"] == sum(map(len, words))
    # Of the same vectors, every score is the one over the words that were read.
    attack = open_attack("probe_mlc", encoder)
    of_parts = evaluate(attack, encoder, read, vectors=encoder.encode(texts))
    assert of_parts.n_unread == 0
    for measure in MEASURES:
        assert found[measure] == pytest.approx(getattr(of_parts.scores, measure))
        assert found["baseline"][measure] == pytest.approx(getattr(of_parts.baseline, measure))
    assert found["unrestricted_f1"] == pytest.approx(of_parts.unrestricted.value)
    assert found["token_set_f1_ci95"][0] > found["baseline"]["token_set_f1"]
    told = evaluated(core, "documents.txt").out
    assert f"{n_unread:,} of {found['n_words']:,} words (53.3 %), in 12 of the texts" in told


@pytest.mark.parametrize("name", ["long", "short"])
def test_invert_counts_unread_words_apart(core: Any, name: str) -> None:
    text = (CASES / "texts" / f"{name}.txt").read_text(encoding="utf-8").strip()
    asked = ("invert", "--attack", "probe_mlc", "--text", text)
    (found,) = core(*asked, "--json").json()
    read, unread = read_and_unread(load_encoder(), text)
    assert set(found["encoded_words"]) == read
    assert set(found["unread_words"]) == unread - STOP_WORDS
    assert bool(found["unread_words"]) == (name == "long")
    assert not set(found["unread_words"]) & {*found["cannot_be_named"], *found["encoded_words"]}
    told = core(*asked).out
    n_named = len(read - STOP_WORDS) - len(found["cannot_be_named"])
    assert re.search(rf"The attacker recovered (\d+|none) of {n_named} words?\n", told)
    assert ("Beyond the encoder's input limit, not tested: " in told) == (name == "long")


@pytest.mark.slow
def test_unread_words_are_told_behind_a_defence_too(core: Any) -> None:
    path = CASES / "texts" / "documents.txt"
    asked = ("evaluate", "--attack", "probe_mlc", "--texts", path, "--limit", 2, "--json")
    plain = core(*asked).json()
    guarded = core(*asked, "--defence", "rounding").json()
    assert guarded["n_unread_words"] == plain["n_unread_words"] > 0


def test_the_majority_is_the_label_most_frequent_among_the_targets() -> None:
    found = read_examples(CASES / "labels" / "imbalance.csv", label_column="author")
    for seed in range(4):
        drawn = draw(found, Plan(n_per_label=10, n_targets=250, seed=seed))
        (of,) = drawn.known
        case = Case(seed, of, 2, 10)
        (majority,) = run_cases(make_attribute_attack("majority"), [case], found, {seed: drawn})
        answers = majority.answers
        assert answers.is_unequal
        one, balanced = answers.top(1), answers.balanced()
        assert one.value == one.chance > 0.9
        assert (balanced.value, balanced.chance) == (0.5, 0.5)
        sizes = np.bincount(drawn.truth)
        assert one.value == sizes.max() / sizes.sum()


def test_the_command_tells_balanced_accuracy_and_no_top_5_of_two_labels(
    core: Any, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = shlex.split(
        f"attributes --texts {CASES / 'labels/imbalance.csv'} "
        f"--encoder mlm:{tiny_bert} --n-targets 40"
    )
    found = core(*asked, "--json").json()
    for record in (found, found["majority"], found["words"]):
        assert "top5" not in record and "chance_top5" not in record
        assert record["chance_balanced"] == 0.5 < record["chance"]
    assert found["majority"]["top1"] == found["chance"] and found["majority"]["balanced"] == 0.5
    low, high = found["balanced_ci95"]
    assert low <= found["balanced"] <= high
    wide = found["top1_ci95"]
    assert high - low > wide[1] - wide[0], "the rarer label has few targets"
    attributes._print_accuracies(found, ["majority", "words"])
    told = capsys.readouterr().out
    assert "balanced [95 % CI]" in told and "top-5" not in told and "Labels differ in size" in told
