from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, spawn, spawn_and_wait
from processes import kill_session

from leakscope.core.cli import COMMANDS, build_parser, main
from leakscope.core.cli.shared.arguments import parse_settings
from leakscope.core.cli.shared.output import show_table
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.specs import setting

REFUSED = """
 | required: COMMAND
destroy | invalid choice: 'destroy'
invert | required: --text
invert --text fine --attack magic | --attack must be one of prior
invert --text fine --encoder magic | encoder must be one of minilm, st:ID
invert --text fine --set x | --set takes NAME=VALUE, got 'x'
invert --text fine --attack prior --set x=1 | no setting 'x'
invert --text 'a fine' --attack prior --set vocabulary_size=few | must be a whole number, got 'few'
invert --text 'a fine' --attack prior --set vocabulary_size=1 | vocabulary_size must lie in
invert --text fine --attack prior --set keep_stop_words=maybe | true or false, got 'maybe'
invert --text fine --layer deep | --layer: must be a whole number, got 'deep'
invert --text fine --layer 99 | layer must lie in [0, 6]
invert --text fine --device abacus | device 'abacus' is not available
invert --text fine --precision float8 | precision must be one of
invert --text fine --weights /nowhere | /nowhere/model.json does not exist
invert --text fine --text '' | --text 2 is empty
invert --text fine --text '😀 🎉' | --text 2 holds no word
evaluate --attack prior | required: --texts
evaluate --texts x | required: --attack
evaluate --attack prior --texts {corpus} --limit 0 | limit must be at least 1, got 0
evaluate --attack prior --texts {corpus} --max-recovered shoes=1 | KIND one of names, numbers
evaluate --attack prior --texts {corpus} --max-recovered names=x | must be a number
evaluate --attack prior --texts {corpus} --baseline none.json | does not exist
train --attack prior | required: --corpus, --out
train --encoder {encoder} --attack prior --corpus {corpus} --out {corpus} | is a file
train --encoder {encoder} --attack mlc --corpus {corpus} --out {out} --limit 5 | got 5
train --encoder {encoder} --attack mlc --corpus {corpus} --out {out} --held-out 0 | must lie in [1,
list --attack magic | --attack must be one of prior
list --defence int8+santext | Change the order
fit --corpus {corpus} --out {out} --encoder nonsense | --encoder must be one of
fit --corpus {corpus} --out {out} --encoder tfidf --set nothing=1 | no setting 'nothing'
fit --corpus {corpus} --out {out} --encoder tfidf --set max_features=0 | max_features
fit --corpus {corpus} --out {out} --encoder lsa_tfidf --set base=hashing | no setting 'base'
fit --corpus {corpus} --out {out} --encoder tfidf --limit 1 | --limit
fit --corpus nowhere.csv --out {out} --encoder tfidf | corpus must be
study nonsense --target {corpus} --out {out}.json | must be one of
study encoders --target nowhere.csv --out {out}.json | corpus must be
study paragraphs --target {news} --out {out}.json --n-auxiliary 10 20 | arguments: 20
study layers --target {news} --out {out}.json --n-auxiliary 10 20 | arguments: 20
study classification --target {news} --out {out}.json --set a=1 | arguments: --set
study eos --target {news} --out {out}.json --attacks mlc | --attacks mlc
study eos --target {news} --out {out}.json --set epocs=1 | has a setting 'epocs'
study scaling --target {news} --out {out}.json --attacks nonsense | 'nonsense'
study scaling --target {news} --out {out}.json --set end_token=perhaps | must be true or false
study adversarial --target {news} --tasks a={news} --word-weights nan --out {out}.json | weights
deniability --encoder {encoder} --text '' --eta 5 | empty
deniability --encoder {encoder} --text money --eta 5 --n-draws 1 | --n-draws
deniability --encoder {encoder} --text money --eta 5 --candidates some | regular, whole, all
privatize --encoder {encoder} --in {corpus} --out {out}.txt | Give --eta
privatize --encoder {encoder} --in {corpus} --out {out}.txt --mechanism santext | Give --epsilon
privatize --in {corpus} --out {out}.txt --mechanism santext --eta 5 | santext has no setting --eta
privatize --in {corpus} --out {out}.txt --epsilon 5 | text_to_text has no setting --epsilon
privatize --in {corpus} --out {out}.txt --mechanism santex --epsilon 5 | Did you mean 'santext'
privatize --in {corpus} --out {out}.txt --mechanism gaussian | --mechanism must be one of
privatize --in {corpus} --out {out}.txt --mechanism int8+santext --epsilon 1 | Change the order
privatize --in {news} --out {out}.parquet --eta 5 | format of news.csv
tune --attack nonsense --target {corpus} --out {out} | --attack must be one of
tune --attack prior --target {corpus} --out {out} | no setting left to search
tune --attack retrieval --target {corpus} --out {out} --trials 0 | must lie in [1,
membership | Give --probabilities FILE, or --model
membership --probabilities a.csv --model m.onnx | Give --probabilities FILE, or
membership --probabilities a.csv --vectors v.npy | --vectors works only with --model
membership --model m.onnx --vectors v.npy | --model needs --labels
membership --probabilities a.csv --shadow-models m.onnx | works only with --model
membership --probabilities a.csv --prior 1 | --prior must lie between 0 and 1
membership --probabilities a.csv --seed -1 | must lie in [0
membership --probabilities none.csv | does not exist
memorise --corpus {corpus} --canary 'the and with' --json | nothing random
audit-mechanism --no-processes --mechanism text_to_txt | text_to_text
audit-mechanism --no-processes --alpha 2 | alpha
audit-mechanism --mechanism token_representation --dimension 1 | dimension
"""
"""A command line, and a part of what it is refused with."""


@pytest.mark.parametrize(
    ("typed", "says"), [line.split(" | ") for line in REFUSED.splitlines() if line]
)
def test_a_mistake_is_refused_in_one_line_and_leaves_nothing(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path, typed: str, says: str
) -> None:
    news = tmp_path / "news.csv"
    news.write_text("title,text,label_name\nA,The river is wide.,a\nB,The garden is green.,b\n")
    out = tmp_path / "made" / "out"
    places = {"corpus": corpus, "encoder": f"mlm:{tiny_bert}", "news": news, "out": out}
    assert says in core(typed.format(**places)).refusal()
    assert not out.parent.exists() and {*tmp_path.iterdir()} == {corpus, news}


def test_help_is_no_error(core: Any) -> None:
    for arguments in (["--help"], ["train", "--help"]):
        outcome = core(*arguments)
        assert outcome.status == 0
        assert "usage: leakscope" in outcome.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_one_example_that_can_be_typed(core: Any, command: str) -> None:
    example = COMMANDS[command].EXAMPLE
    _, *words = shlex.split(example)
    assert build_parser().parse_args(words).command == command
    assert core(command, "--help").out.count(f"\n  {example}\n") == 1


def test_a_printed_table_has_columns_of_one_width(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("# Rows\n\n| a | b |\n|---|---|\n| long | x\\|y |\n\nA | is no table.\n")
    *before, head, rule, row, _, after = capsys.readouterr().out.splitlines()
    assert (before, after) == (["# Rows", ""], "A | is no table.")
    assert (head, rule, row) == ("| a    | b    |", "|------|------|", "| long | x\\|y |")


@dataclass
class Settings:
    size: int = setting(1, "A size")
    rate: float = setting(0.1, "A rate")
    is_on: bool = setting(False, "A switch")
    mode: str = setting("a", "A mode")
    top: int | None = setting(None, "A number or none")


def test_settings_are_read_in_their_declared_types() -> None:
    pairs = ["size=3", "rate=1e-3", "is_on=yes", "mode=b=c", "top=5"]
    read = parse_settings("settings", Settings, pairs)
    assert read == {"size": 3, "rate": 0.001, "is_on": True, "mode": "b=c", "top": 5}
    assert parse_settings("settings", Settings, ["top=none"]) == {"top": None}
    with pytest.raises(InvalidInputError, match="top must be a whole number or none, got 'x'"):
        parse_settings("settings", Settings, ["top=x"])


@pytest.mark.slow
def test_a_process_keeps_standard_output_for_the_answer(trained: Path, tiny_bert: Path) -> None:
    given = shlex.split(f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained}")
    outcome = spawn_and_wait(*given, "--text", "the minister in Zürich", "--json")
    assert outcome.json()[0]["text"] == "the minister in Zürich"
    assert outcome.err == ""


@pytest.mark.slow
def test_a_process_that_fails_says_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    outcome = spawn_and_wait("invert", "--encoder", f"mlm:{missing}", "--text", "fine words")
    assert "is neither an existing folder" in outcome.refusal()


def test_bytes_that_are_no_utf8_are_refused() -> None:
    command = [sys.executable, "-m", "leakscope", "invert", "--text", b"caf\xe9 au lait"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: --text 1 holds a broken character")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_mistakes_and_help_answer_without_loading_a_model() -> None:
    code = (
        "import sys\nfrom leakscope.core.cli import main\n"
        "try:\n    main(['invert', '--text', ''])\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules, 'torch'\n"
        "assert 'transformers' not in sys.modules, 'transformers'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(trained: Path, tiny_bert: Path) -> None:
    process = spawn("list")
    try:
        process.stdout.close()
        assert process.wait(400) == 0
        assert process.stderr.read() == ""
    finally:
        kill_session(process)


def test_a_fault_of_ours_is_one_line_too(core: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("leakscope.core.cli.listing._list_encoders", fail)
    assert "ZeroDivisionError: a b. This is a bug in Leakscope" in core("list").refusal()
    monkeypatch.setenv("LEAKSCOPE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["list"])


def test_stopped_work_exits_with_130(core: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (KeyboardInterrupt, StoppedError):

        def stop(*_: object, kind: type[BaseException] = kind) -> None:
            raise kind

        monkeypatch.setattr("leakscope.core.cli.listing._list_encoders", stop)
        outcome = core("list")
        assert (outcome.status, outcome.out) == (130, "")
        assert outcome.err == "error: Stopped. Nothing was written.\n"
