from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.cli import main
from core.cli.arguments import parse_settings
from core.cli.output import jsonable, progress_line
from core.errors import InvalidInputError, StoppedError
from core.specs import setting
from core.store import load_artifact

ROOT = Path(__file__).parent.parent


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)

    def refusal(self) -> str:
        """Return the one line on standard error of a command that failed as it should."""
        assert self.status == 2
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("error: ")
        assert "Traceback" not in line
        return line


@pytest.fixture
def core(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in this process."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse: --help and mistakes in the arguments
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


def spawn(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a process of its own, as users do."""
    return subprocess.Popen(
        [sys.executable, "-m", "core", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **options,
    )


def spawn_and_wait(*arguments: object) -> Outcome:
    process = spawn(*arguments)
    out, err = process.communicate(timeout=240)
    return Outcome(process.returncode, out, err)


@pytest.fixture
def corpus(tmp_path: Path, small_texts: list[str]) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(small_texts), encoding="utf-8")
    return path


@pytest.fixture
def trained(core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path) -> Path:
    """The prior-only attack of the tiny encoder, trained by the command line."""
    out = tmp_path / "prior"
    core("train", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--corpus", corpus,
         "--out", out, "--json").json()  # fmt: skip
    return out


# --- invert -----------------------------------------------------------------------------------


def test_invert_prints_the_documented_json(core: Any, trained: Path, tiny_bert: Path) -> None:
    texts = ["the minister and the river", "زهرة with garden \U0001f600"]
    outcome = core(
        "invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights", trained,
        "--text", texts[0], "--text", texts[1], "--json",
    )  # fmt: skip
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


def test_invert_without_json_marks_what_was_found(
    core: Any, trained: Path, tiny_bert: Path
) -> None:
    outcome = core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights",
                   trained, "--text", "the minister")  # fmt: skip
    assert outcome.status == 0
    assert "● minister" in outcome.out
    assert "✗" in outcome.out


def test_invert_says_when_it_can_only_guess(core: Any, trained: Path, tiny_bert: Path) -> None:
    outcome = core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights",
                   trained, "--text", "مرحبا بالعالم", "--json")  # fmt: skip
    assert len(outcome.json()) == 1
    (note,) = outcome.err.splitlines()
    assert note.startswith("note: no word of --text 1 is among")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "--text 2 is empty"),
        ("  \t", "--text 2 is empty"),
        ("\u200b", "--text 2 is empty"),
        ("word " * 20_000, "--text 2 has 100,000 characters"),
        ("😀 🎉", "--text 2 holds no word"),
        ("a\0b", "--text 2 holds a null byte"),
        ("caf\udce9", "--text 2 holds a broken character"),
    ],
)
def test_invert_refuses_bad_texts_in_one_line(core: Any, text: str, says: str) -> None:
    assert says in core("invert", "--text", "fine", "--text", text).refusal()


def test_typed_texts_leave_nothing_on_disk(
    core: Any, trained: Path, tiny_bert: Path, leakscope_home: Path
) -> None:
    before = sorted(leakscope_home.rglob("*"))
    core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights", trained,
         "--text", "the minister", "--json").json()  # fmt: skip
    assert sorted(leakscope_home.rglob("*")) == before


# --- arguments --------------------------------------------------------------------------------


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
        (["invert", "--text", "fine", "--layer", "deep"], "--layer: invalid int value: 'deep'"),
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


# --- evaluate ---------------------------------------------------------------------------------

SCORE_FIELDS = {
    "n", "precision", "recall", "token_set_f1", "token_set_f1_ci95", "weighted_f1",
    "precision_ci95", "recall_ci95", "weighted_f1_ci95", "exact_set_rate", "name_recall",
}  # fmt: skip


def evaluated(core: Any, trained: Path, tiny_bert: Path, texts: Path, *more: object) -> Outcome:
    outcome: Outcome = core("evaluate", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior",
                            "--weights", trained, "--texts", texts, *more)  # fmt: skip
    return outcome


def test_evaluate_prints_the_documented_json(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path
) -> None:
    outcome = evaluated(core, trained, tiny_bert, corpus, "--limit", 50, "--seed", 3, "--json")
    result = outcome.json()
    assert outcome.err == ""
    assert (result["attack"], result["n"], result["seed"]) == ("prior", 50, 3)
    assert result.keys() >= SCORE_FIELDS
    assert result["baseline"].keys() >= SCORE_FIELDS
    low, high = result["token_set_f1_ci95"]
    assert 0 <= low <= result["token_set_f1"] <= high <= 100
    low, high = result["recall_ci95"]
    assert low <= result["recall"] <= high
    # The prior is its own baseline, and no text holds a capital or a digit.
    assert result["baseline"]["token_set_f1"] == result["token_set_f1"]
    assert result["name_recall"] is None
    assert result["sentences_per_second"] > 0
    assert result["vocabulary_coverage"] == pytest.approx(1, abs=0.01)
    assert result["texts"] == "corpus.txt"
    assert result["training"]["corpus_hash"]
    again = evaluated(core, trained, tiny_bert, corpus, "--limit", 50, "--seed", 3, "--json").json()
    varying = {"sentences_per_second"}
    assert {k: v for k, v in again.items() if k not in varying} == {
        k: v for k, v in result.items() if k not in varying
    }


def test_evaluate_prints_a_table(core: Any, trained: Path, tiny_bert: Path, corpus: Path) -> None:
    outcome = evaluated(core, trained, tiny_bert, corpus, "--limit", 20)
    assert outcome.status == 0
    assert "prior only" in outcome.out
    assert "sentences/s" in outcome.out


def test_evaluate_reads_tables_with_a_text_column(
    core: Any, trained: Path, tiny_bert: Path, small_texts: list[str], tmp_path: Path
) -> None:
    import pandas as pd

    frame = pd.DataFrame({"id": range(20), "text": small_texts[:20]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("\n".join(small_texts[:20]) + "\n\n")
    scores = [
        evaluated(core, trained, tiny_bert, tmp_path / f"a.{kind}", "--json").json()["recall"]
        for kind in ("csv", "jsonl", "parquet", "txt")
    ]
    assert len(set(scores)) == 1


def test_evaluate_can_be_held_to_words_that_two_attacks_know(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path
) -> None:
    result = evaluated(
        core, trained, tiny_bert, corpus, "--limit", 20, "--also-known-to", trained, "--json"
    ).json()
    alone = evaluated(core, trained, tiny_bert, corpus, "--limit", 20, "--json").json()
    assert result["token_set_f1"] == alone["token_set_f1"]


def write_bad_files(folder: Path) -> None:
    (folder / "empty.txt").write_text("")
    (folder / "blank.txt").write_text("\n \n")
    (folder / "latin.txt").write_bytes("caf\xe9 au lait\n".encode("latin-1"))
    (folder / "null.txt").write_bytes(b"fine words\nnot\0fine\n")
    (folder / "long.txt").write_text("word " * 20_000)
    (folder / "stop.txt").write_text("the and\nof the\n")
    (folder / "columns.csv").write_text("a,b\n1,2\n")
    (folder / "broken.jsonl").write_text('{"text": "fine"}\n{"text": \n')
    import pandas as pd

    whole = folder / "whole.parquet"
    pd.DataFrame({"text": ["fine words here"] * 100}).to_parquet(whole)
    (folder / "truncated.parquet").write_bytes(whole.read_bytes()[:-30])
    (folder / "folder.txt").mkdir()


@pytest.mark.parametrize(
    "name",
    ["empty.txt", "blank.txt", "latin.txt", "null.txt", "long.txt", "stop.txt", "columns.csv",
     "broken.jsonl", "truncated.parquet", "folder.txt", "missing.txt"],
)  # fmt: skip
def test_evaluate_refuses_bad_files_in_one_line(
    core: Any, trained: Path, tiny_bert: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    write_bad_files(folder)
    line = evaluated(core, trained, tiny_bert, folder / name).refusal()
    assert "fault of ours" not in line
    assert len(line) > 40


def test_evaluate_refuses_a_limit_below_one(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path
) -> None:
    line = evaluated(core, trained, tiny_bert, corpus, "--limit", 0).refusal()
    assert "limit must be at least 1, got 0" in line


# --- weights ----------------------------------------------------------------------------------


def test_weights_of_another_attack_or_encoder_are_refused_by_name(
    core: Any, trained: Path, tiny_bert: Path
) -> None:
    common = ["--weights", trained, "--text", "fine words"]
    line = core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "mlc", *common).refusal()
    assert "holds 'prior', not 'mlc'" in line
    line = core("invert", "--attack", "prior", *common).refusal()
    assert f"mlm:{tiny_bert}" in line
    assert "'minilm'" in line


def test_damaged_weights_are_refused_by_name(core: Any, trained: Path, tiny_bert: Path) -> None:
    (arrays,) = trained.glob("model-*.safetensors")
    os.truncate(arrays, arrays.stat().st_size - 1)
    line = core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights",
                trained, "--text", "fine words").refusal()  # fmt: skip
    assert f"{arrays.name} is truncated or was altered" in line


def test_settings_are_given_to_trained_attacks(core: Any, trained: Path, tiny_bert: Path) -> None:
    line = core("invert", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--weights",
                trained, "--set", "vocabulary_size=3", "--text", "a fox").refusal()  # fmt: skip
    assert "vocabulary_size must lie in" in line


# --- train ------------------------------------------------------------------------------------


def train_arguments(tiny_bert: Path, corpus: Path, out: Path, *more: object) -> list[object]:
    return ["train", "--encoder", f"mlm:{tiny_bert}", "--attack", "mlc", "--corpus", corpus,
            "--out", out, "--seed", 7, *more]  # fmt: skip


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
    assert {"corpus", "corpus_hash", "seconds", "hardware", "versions"} <= record.keys()
    assert record["versions"]["torch"]
    _, meta = load_artifact(out)
    assert meta["training"] == {k: v for k, v in record.items() if k != "out"}
    assert meta["settings"]["epochs"] == 2
    assert not (out / "checkpoint").exists()
    # The same command again finds the work done; another run does not overwrite it.
    assert core(*arguments, "--json").json() == record
    line = core(*arguments, "--limit", 300).refusal()
    assert "holds another trained attack" in line
    assert core(*arguments).out.startswith(f"{out}: mlc on mlm:")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--limit", 5], "at least 10 different texts, got 5"),
        (["--limit", 0], "limit must be at least 1"),
        (["--held-out", 0], "held-out must be at least 1"),
        (["--set", "epochs=many"], "--set epochs must be a whole number"),
    ],
)
def test_train_refuses_what_cannot_be_trained(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path, more: list[object], says: str
) -> None:
    assert says in core(*train_arguments(tiny_bert, corpus, tmp_path / "out", *more)).refusal()


def test_train_refuses_unusable_places(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    assert "is a file" in core(*train_arguments(tiny_bert, corpus, corpus)).refusal()
    line = core(*train_arguments(tiny_bert, corpus, corpus / "out")).refusal()
    assert "Could not write" in line or "is a file" in line
    line = core(*train_arguments(tiny_bert, tmp_path / "no.txt", tmp_path / "out")).refusal()
    assert "no.txt" in line


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_killed_training_resumes_and_ends_with_the_same_weights(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    more = ["--set", "epochs=60", "--set", "patience=60", "--json"]
    killed = train_arguments(tiny_bert, corpus, tmp_path / "killed", *more)
    process = spawn(*killed)
    wait_for(tmp_path / "killed" / "checkpoint" / "model.json", process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed" / "model.json").exists()
    # Another run does not take the checkpoint up.
    assert "another run" in core(*killed, "--limit", 300).refusal()
    resumed = core(*killed).json()
    whole = core(*train_arguments(tiny_bert, corpus, tmp_path / "whole", *more)).json()
    assert resumed["held_out"] == whole["held_out"]
    name = "arrays_sha256"
    assert load_artifact(tmp_path / "killed")[1][name] == load_artifact(tmp_path / "whole")[1][name]


def test_interrupted_training_says_that_it_resumes(
    corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    more = ["--set", "epochs=500", "--set", "patience=500"]
    process = spawn(*train_arguments(tiny_bert, corpus, out, *more))
    wait_for(out / "checkpoint" / "model.json", process)
    process.send_signal(signal.SIGINT)
    outcome = process.communicate(timeout=120)
    assert process.returncode == 130
    assert outcome == ("", "error: Stopped. What is finished is kept: the same command resumes.\n")


# --- list -------------------------------------------------------------------------------------


def test_list_tells_encoders_attacks_and_corpora(core: Any) -> None:
    listed = core("list", "--json").json()
    assert [entry["name"] for entry in listed["encoders"]] == ["minilm", "st:ID", "mlm:ID"]
    by_name = {entry["name"]: entry for entry in listed["attacks"]}
    size = {"name": "vocabulary_size", "default": 20_000, "low": 10, "high": None}
    assert size.items() <= by_name["prior"]["settings"][0].items()
    assert "bundled" in [entry["name"] for entry in listed["corpora"]]
    text = core("list").out
    assert "vocabulary_size = 20000: " in text
    assert list(core("list", "--attack", "prior", "--json").json()) == ["attacks"]


# --- the process ------------------------------------------------------------------------------


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
    assert "could not be loaded" in outcome.refusal()


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
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(120) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


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


# --- output -----------------------------------------------------------------------------------


def test_json_knows_no_nan() -> None:
    data = {"a": (float("nan"), float("-inf"), 1.5), 2: frozenset({"b", "a"}), "c": None}
    assert jsonable(data) == {"a": [None, None, 1.5], "2": ["a", "b"], "c": None}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_redraws_one_line_of_a_terminal_and_removes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    now = iter([0.0, 0.05, 0.2, 0.4])
    monkeypatch.setattr("core.cli.output.time.monotonic", lambda: next(now))
    stream = Terminal()
    with progress_line(stream) as show:
        for i in range(4):  # the second comes too soon after the first
            show(i / 4, f"step {i}\nof a very long message")
    drawn = stream.getvalue().split("\r\x1b[2K")
    assert drawn == ["", "  0%  step 0 of a ver"[:19], " 50%  step 2 of a ver"[:19],
                     " 75%  step 3 of a ver"[:19], ""]  # fmt: skip


def test_progress_is_quiet_off_a_terminal_unless_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 1.0, 31.0, 40.0, 62.0])
    monkeypatch.setattr("core.cli.output.time.monotonic", lambda: next(now))
    stream = io.StringIO()
    with progress_line(stream) as show:
        for i in range(4):
            show(i / 4, f"step {i}")
    assert stream.getvalue() == " 25%  step 1\n 75%  step 3\n"
