from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, spawn, spawn_and_wait
from processes import end

from core.cli import main
from core.cli.arguments import parse_settings
from core.errors import InvalidInputError, StoppedError
from core.specs import setting


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required: COMMAND"),
        (["destroy"], "invalid choice: 'destroy'"),
        (["invert"], "required: --text"),
        (["invert", "--text", "fine", "--attack", "magic"], "--attack must be one of prior, "),
        (
            ["invert", "--text", "fine", "--encoder", "magic"],
            "encoder must be one of minilm, st:ID",
        ),
        (["invert", "--text", "fine", "--set", "x"], "--set takes NAME=VALUE, got 'x'"),
        (["invert", "--text", "fine", "--attack", "prior", "--set", "x=1"], "no setting 'x'"),
        (
            ["invert", "--text", "a fine", "--attack", "prior", "--set", "vocabulary_size=few"],
            "--set vocabulary_size must be a whole number, got 'few'",
        ),
        (
            ["invert", "--text", "a fine", "--attack", "prior", "--set", "vocabulary_size=1"],
            "vocabulary_size must lie in",
        ),
        (
            ["invert", "--text", "fine", "--attack", "prior", "--set", "keep_stop_words=maybe"],
            "--set keep_stop_words must be true or false, got 'maybe'",
        ),
        (
            ["invert", "--text", "fine", "--layer", "deep"],
            "--layer: must be a whole number, got 'deep'",
        ),
        (["invert", "--text", "fine", "--layer", "99"], "layer must lie in [0, 6]"),
        (["invert", "--text", "fine", "--device", "abacus"], "device 'abacus' is not available"),
        (["invert", "--text", "fine", "--precision", "float8"], "precision must be one of"),
        (
            ["invert", "--text", "fine", "--weights", "/nowhere"],
            "/nowhere/model.json does not exist",
        ),
        (["evaluate", "--attack", "prior"], "required: --texts"),
        (["evaluate", "--texts", "x"], "required: --attack"),
        (["train", "--attack", "prior"], "required: --corpus, --out"),
        (["list", "--attack", "magic"], "--attack must be one of prior, "),
    ],
)
def test_mistakes_in_arguments_are_one_line(core: Any, arguments: list[str], says: str) -> None:
    assert says in core(*arguments).refusal()


def test_help_is_no_error(core: Any) -> None:
    for arguments in (["--help"], ["train", "--help"]):
        outcome = core(*arguments)
        assert outcome.status == 0
        assert "usage: python -m core" in outcome.out


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


def test_list_tells_encoders_attacks_and_corpora(core: Any) -> None:
    listed = core("list", "--json").json()
    encoders = [entry["name"] for entry in listed["encoders"]]
    assert encoders[:3] == ["minilm", "st:ID", "mlm:ID"] and "tfidf:FOLDER" in encoders
    by_name = {entry["name"]: entry for entry in listed["attacks"]}
    size = {"name": "vocabulary_size", "default": 20_000, "low": 10, "high": None}
    assert size.items() <= by_name["prior"]["settings"][0].items()
    assert "bundled" in [entry["name"] for entry in listed["corpora"]]
    assert {"lira_online", "user_inference"} <= {entry["name"] for entry in listed["membership"]}
    assert {"head", "language_model"} == {entry["name"] for entry in listed["private_training"]}
    text = core("list").out
    assert "vocabulary_size = 20000: " in text
    assert list(core("list", "--attack", "prior", "--json").json()) == ["attacks"]


def test_a_process_keeps_standard_output_for_the_answer(trained: Path, tiny_bert: Path) -> None:
    outcome = spawn_and_wait(
        "invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights", trained,
        "--text", "the minister in Zürich", "--json",
    )  # fmt: skip
    assert outcome.json()[0]["text"] == "the minister in Zürich"
    assert outcome.err == ""


def test_a_process_that_fails_says_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    outcome = spawn_and_wait("invert", "--encoder", f"mlm:{missing}", "--text", "fine words")
    assert "is neither a folder that exists" in outcome.refusal()


def test_bytes_that_are_no_utf8_are_refused() -> None:
    command = [sys.executable, "-m", "core", "invert", "--text", b"caf\xe9 au lait"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: --text 1 holds a broken character")
    assert done.stderr.count(b"\n") == 1


def test_mistakes_and_help_answer_without_loading_a_model() -> None:
    code = (
        "import sys\nfrom core.cli import main\n"
        "try:\n    main(['invert', '--text', ''])\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules, 'torch'\n"
        "assert 'transformers' not in sys.modules, 'transformers'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_closed_pipe_is_no_error(trained: Path, tiny_bert: Path) -> None:
    process = spawn("list")
    try:
        process.stdout.close()
        assert process.wait(400) == 0
        assert process.stderr.read() == ""
    finally:
        end(process)


def test_a_fault_of_ours_is_one_line_too(core: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("core.cli.listing._encoders", fail)
    assert "ZeroDivisionError: a b. This is a fault of ours" in core("list").refusal()
    monkeypatch.setenv("LEAKSCOPE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["list"])


def test_stopped_work_exits_with_130(core: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (KeyboardInterrupt, StoppedError):

        def stop(*_: object, kind: type[BaseException] = kind) -> None:
            raise kind

        monkeypatch.setattr("core.cli.listing._encoders", stop)
        outcome = core("list")
        assert (outcome.status, outcome.out) == (130, "")
        assert outcome.err == "error: Stopped. Nothing was written.\n"
