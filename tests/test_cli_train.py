from __future__ import annotations

import csv
import shlex
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import spawn
from processes import kill_session

from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.train import (
    HeldOut,
    TrainingPlan,
    held_out_scores,
    split_held_out,
)
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.corpora.splits import hold_out
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import no_progress
from leakscope.core.results import Score
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.core.storage.artifacts import load_artifact
from leakscope.core.text import words
from scripts.model_cards import _scores


def train_arguments(tiny_bert: Path, corpus: Path, out: Path, *more: object) -> list[object]:
    return [
        *shlex.split(
            f"train --encoder mlm:{tiny_bert} --attack mlc --corpus {corpus} --out {out} --seed 7"
        ),
        *more,
    ]


def test_train_writes_an_attack_with_its_record(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "mlc"
    arguments = train_arguments(tiny_bert, corpus, out, "--set", "epochs=2", "--limit", 200)
    outcome = core(*arguments, "--json")
    record = outcome.json()
    assert outcome.err == ""
    assert (record["attack"], record["seed"], record["limit"]) == ("mlc", 7, 200)
    assert (record["n_texts"], record["held_out"]["n"]) == (180, 20)
    assert record["held_out"]["unit"] == "sentence" and "n_documents" not in record["held_out"]
    assert {"corpus", "corpus_hash", "seconds", "hardware", "versions"} <= record.keys()
    assert record["versions"]["torch"]
    _, meta = load_artifact(out)
    assert meta["training"] == {k: v for k, v in record.items() if k != "out"}
    assert meta["settings"]["epochs"] == 2
    assert not (out / "checkpoint").exists()
    # The same command again finds the work done; another run does not overwrite it.
    assert core(*arguments, "--json").json() == record
    line = core(*arguments, "--limit", 300).refusal()
    assert "contains another trained attack" in line
    assert core(*arguments).out.startswith(f"{out}: mlc on mlm:")


LETTERS = [a + b for a in "bcdfghjk" for b in "aeiou"]


def plan(n_held_out: int) -> TrainingPlan:
    prior = AttackSpec(name="prior")
    return TrainingPlan(attack=prior, corpus="c", corpus_hash="h", n_held_out=n_held_out)


def random_texts(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(LETTERS, 12)) for _ in range(n)]


def test_held_out_texts_are_of_other_documents_and_repeat_none() -> None:
    texts = random_texts(300)
    texts += [f"again {text}" for text in texts[:100]]
    documents = [str(i // 8) for i in range(300)] + [f"copy {i}" for i in range(100)]
    own = dict(zip(texts, documents, strict=True))
    known, held = split_held_out(texts, plan(30), documents)
    assert 5 < len(held.texts) <= 30
    assert not {own[t] for t in known} & {own[t] for t in held.texts}
    assert not near_duplicates(held.texts, known)
    assert held.documents == tuple(own[text] for text in held.texts)
    known, held = split_held_out(texts, plan(30))
    assert held.documents is None and not near_duplicates(held.texts, known)
    assert {own[t] for t in known} & {own[t] for t in held.texts}
    known, held = split_held_out(texts[:300], plan(30), ["one"] * 300)
    assert (len(known), len(held.texts)) == (270, 30), "a single document is drawn from by sentence"
    assert held.documents is None, "what is trained on is of the same document"
    with pytest.raises(InvalidInputError, match="is a near-duplicate"):
        split_held_out([f"{texts[0]} {i}" for i in range(10, 40)], plan(30))


def test_held_out_texts_are_of_many_documents() -> None:
    texts = random_texts(5_000)
    documents = [str(max(0, i - 4_000) // 50) for i in range(5_000)]  # one holds 4,050
    known, held = split_held_out(texts, plan(100), documents)
    assert held.documents is not None and len(held.texts) == 100
    assert len(set(held.documents)) == 19 and "0" not in held.documents, "all but the large one"
    assert max(map(held.documents.count, held.documents)) <= 6
    assert len(known) == 4_050, "what is left of a document is not trained on"


def test_what_is_held_out_leaves_most_of_the_texts() -> None:
    documents = [str(i // 100) for i in range(1_000)]
    held, known = hold_out(range(1_000), documents, 100)
    assert {documents[i] for i in held} == {"0", "1"} and len(known) == 800
    assert [documents[i] for i in held].count("0") == 50
    many = [str(i // 100) for i in range(100_000)]
    held, known = hold_out(range(100_000), many, 500)
    counts = Counter(many[i] for i in held)
    assert set(counts.values()) == {25} and len(counts) == 20 and len(known) == 98_000


def test_intervals_ofheld_out_scores_are_of_documents(tiny_bert: Path) -> None:
    encoder = load_encoder(EncoderSpec(name=f"mlm:{tiny_bert}"))
    texts = random_texts(80)
    attack = PriorAttack().fit(encoder, texts[:40])
    told = [
        held_out_scores(attack, encoder, HeldOut(tuple(texts[40:]), documents), 0, no_progress)
        for documents in (None, tuple(str(i // 10) for i in range(40)), ("one",) * 40)
    ]
    assert [t["unit"] for t in told] == ["sentence", "document", "document"]
    assert [t.get("n_documents") for t in told] == [None, 4, 1]
    assert told[0]["token_set_f1_ci95"] != told[1]["token_set_f1_ci95"]
    assert told[2]["token_set_f1_ci95"] is None, "nothing tells how documents differ"
    bare = Score(3.0, n=1).to_record("a")
    assert bare["a_ci95"] is None and not Score.of_record(bare | {"n": 1}, "a").has_interval
    assert "sentences of 4 documents" in _scores(told[1]) and "documents" not in _scores(told[0])


def test_train_takes_the_rows_and_lengths_that_are_asked_for(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    lines = [line for line in corpus.read_text(encoding="utf-8").splitlines() if line.strip()]
    table = tmp_path / "table.csv"
    rows = [[line, "odd" if i % 2 else "even"] for i, line in enumerate(lines)]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["said", "kind"], *rows])
    arguments = train_arguments(tiny_bert, table, tmp_path / "out", "--set", "epochs=1", "--json")
    arguments += ["--text-column", "said", "--min-words", 3, "--max-words", 12]
    record = core(*arguments, "--where", "kind=odd").json()
    chosen = {s for line, kind in rows if kind == "odd" for s in split_sentences(line)}
    n = sum(3 <= len(words(s)) <= 12 for s in chosen)
    assert record["n_texts"] + record["held_out"]["n"] == pytest.approx(n, abs=2)
    assert "no class 'blue'" in core(*arguments, "--where", "kind=blue").refusal()
    assert "--where takes" in core(*arguments, "--where", "kind").refusal()


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 400) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_killed_training_resumes_and_ends_with_the_same_weights(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    more = ["--set", "epochs=60", "--set", "patience=60", "--json"]
    killed = train_arguments(tiny_bert, corpus, tmp_path / "killed", *more)
    process = spawn(*killed)
    try:
        wait_for(tmp_path / "killed" / "checkpoint" / "model.json", process)
        process.kill()
        process.communicate()
    finally:
        kill_session(process)
    assert not (tmp_path / "killed" / "model.json").exists()
    # Another run does not take the checkpoint up.
    assert "another run" in core(*killed, "--limit", 300).refusal()
    resumed = core(*killed).json()
    whole = core(*train_arguments(tiny_bert, corpus, tmp_path / "whole", *more)).json()
    assert resumed["held_out"] == whole["held_out"]
    name = "arrays_sha256"
    assert load_artifact(tmp_path / "killed")[1][name] == load_artifact(tmp_path / "whole")[1][name]


@pytest.mark.slow
def test_interrupted_training_says_that_it_resumes(
    corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    more = ["--set", "epochs=500", "--set", "patience=500"]
    process = spawn(*train_arguments(tiny_bert, corpus, out, *more))
    try:
        wait_for(out / "checkpoint" / "model.json", process)
        process.send_signal(signal.SIGINT)
        outcome = process.communicate(timeout=400)
    finally:
        kill_session(process)
    assert process.returncode == 130
    assert outcome == ("", "error: Stopped. Finished work is saved: the same command resumes.\n")
