from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest


def test_invert_prints_the_documented_json(core: Any, trained: Path, tiny_bert: Path) -> None:
    texts = ["the minister and the river", "زهرة with garden \U0001f600"]
    outcome = core(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} --text '{texts[0]}' "
        f"--text '{texts[1]}' --json"
    )
    answers = outcome.json()
    assert outcome.err == ""
    assert [answer["text"] for answer in answers] == texts
    for answer in answers:
        assert {"text", "encoder", "attack", "words", "seconds"} <= answer.keys()
        assert (answer["encoder"], answer["attack"]) == (f"mlm:{tiny_bert}", "prior")
        assert answer["seconds"] > 0
        assert answer["words"]
        for word in answer["words"]:
            assert set(word) == {"word", "score"}
            assert isinstance(word["score"], float)
    # The prior's answer is constant and its best word is the most frequent one.
    assert answers[0]["words"] == answers[1]["words"]
    assert answers[0]["words"][0]["word"] == "minister"


def test_words_that_cannot_be_named_are_no_evidence_of_safety(
    core: Any, trained: Path, tiny_bert: Path
) -> None:
    arguments = shlex.split(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} "
        "--text 'the minister met Zweigling in 48151 زهرة'"
    )
    told = core(*arguments).out
    assert "Outside the vocabulary, not tested: " in told and "not proven safe" in told
    assert "/names" in told and "48151, " in told
    unnamed = core(*arguments, "--json").json()[0]["cannot_be_named"]
    assert {"zweigling", "48151", "زهرة"} <= set(unnamed) and "minister" not in unnamed


def test_invert_says_when_it_can_only_guess(core: Any, trained: Path, tiny_bert: Path) -> None:
    outcome = core(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} "
        "--text 'مرحبا بالعالم' --json"
    )
    assert len(outcome.json()) == 1
    guess, language = outcome.err.splitlines()
    assert guess.startswith("note: no word of --text 1 is in the attack's vocabulary")
    assert language.startswith("note: --text 1: ") and "English" in language


def test_typed_texts_leave_nothing_on_disk(
    core: Any, trained: Path, tiny_bert: Path, leakscope_home: Path
) -> None:
    before = sorted(leakscope_home.rglob("*"))
    core(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} "
        "--text 'the minister' --json"
    ).json()
    assert sorted(leakscope_home.rglob("*")) == before


def test_weights_of_another_attack_or_encoder_are_refused_by_name(
    core: Any, trained: Path, tiny_bert: Path
) -> None:
    common = ["--weights", trained, "--text", "fine words"]
    line = core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "mlc", *common).refusal()
    assert "contains 'prior', not 'mlc'" in line
    line = core("invert", "--attack", "prior", *common).refusal()
    assert f"mlm:{tiny_bert}" in line
    assert "'minilm'" in line


def test_damaged_weights_are_refused_by_name(core: Any, trained: Path, tiny_bert: Path) -> None:
    (arrays,) = trained.glob("model-*.safetensors")
    os.truncate(arrays, arrays.stat().st_size - 1)
    line = core(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} --text 'fine words'"
    ).refusal()
    assert f"{arrays.name} is truncated or was altered" in line


def test_settings_are_given_to_trained_attacks(core: Any, trained: Path, tiny_bert: Path) -> None:
    line = core(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} "
        "--set vocabulary_size=3 --text 'a fox'"
    ).refusal()
    assert "vocabulary_size must lie in" in line


SENTENCE = "The doctor lost his violin in London."


@pytest.mark.slow
def test_a_sentence_is_read_back_in_order(core: Any) -> None:
    arguments = ("invert", "--attack", "reconstruct", "--set", "n_queries=200", "--text", SENTENCE)
    (answer,) = core(*arguments, "--json").json()
    assert answer["sentence"].startswith("the doctor") and answer["cosine"] > 0.85
    assert 0 < answer["n_queries"] <= 200 and "stopped" not in answer
    told = core(*arguments).out
    assert f"“{answer['sentence']}”" in told and f"cosine {answer['cosine']:.3f}" in told


@pytest.mark.parametrize("value", ["-1", "100001", "many", "nan"])
def test_a_bad_budget_is_refused_by_name(core: Any, value: str) -> None:
    asked = ("invert", "--attack", "reconstruct", "--set", f"n_queries={value}", "--text", SENTENCE)
    assert "n_queries" in core(*asked).refusal()


@pytest.mark.slow
def test_interrupted_it_tells_the_best_so_far(core: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakscope.core.attacks.inversion.reconstruct import search

    encoded, n_calls = search._encode_round, 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls > 1:
            raise KeyboardInterrupt
        return encoded(*arguments)

    monkeypatch.setattr(search, "_encode_round", interrupted)
    outcome = core("invert", "--attack", "reconstruct", "--text", SENTENCE, "--text", SENTENCE)
    assert outcome.status == 130 and "Stopped." in outcome.err
    assert outcome.out.count("“") == 1 and "cosine" in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize("defence", ["binary"])
def test_behind_a_certain_defence_its_guesses_go_through_it(core: Any, defence: str) -> None:
    (answer,) = core(
        "invert --attack reconstruct --set n_queries=30 --text",
        SENTENCE,
        "--defence",
        defence,
        "--json",
    ).json()
    assert answer["sentence"] and 0.3 < answer["cosine"] <= 1.0001
