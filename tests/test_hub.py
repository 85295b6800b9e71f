from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run_python

from leakscope.core.encoders import hub, load_encoder
from leakscope.core.errors import InvalidInputError, ModelUnavailableError

ROOT = Path(__file__).parent.parent
OFFLINE = "huggingface_hub.constants.HF_HUB_OFFLINE"

Answers = Callable[..., list[str]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Let the hub answer with statuses, or with an error, and return what it was asked."""

    def set_answers(*statuses: int | Exception) -> list[str]:
        asked: list[str] = []

        def ask(model: str) -> int:
            status = statuses[len(asked)]
            asked.append(model)
            if isinstance(status, Exception):
                raise status
            return status

        monkeypatch.setattr(OFFLINE, False)
        monkeypatch.setattr(hub, "_ask_hub", ask)
        return asked

    return set_answers


@pytest.mark.parametrize("family", ["st", "mlm"])
def test_an_unknown_id_without_a_network_asks_once_and_names_the_remedy(
    family: str, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(seconds: float) -> None:
        raise AssertionError("it waits between attempts")

    asked = answers(ConnectionError("no network"), ConnectionError("asked again"))
    monkeypatch.setattr(time, "sleep", never)
    with pytest.raises(ModelUnavailableError) as caught:
        load_encoder(f"{family}:does/not-exist")
    assert asked == ["does/not-exist"]
    for part in (
        f"'{family}:does/not-exist'",
        "could not be reached (ConnectionError)",
        "Check the spelling",
        "local folder",
        "`minilm` always works offline",
    ):
        assert part in str(caught.value)


def test_no_more_than_one_connection_is_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[object] = []

    def refuse(*target: object, **_: object) -> None:
        attempts.append(target)
        raise OSError("no network in this test")

    monkeypatch.setattr(OFFLINE, False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ModelUnavailableError, match="could not be reached"):
        load_encoder("mlm:does/not-exist")
    assert len(attempts) == 1


def test_a_hub_that_never_answers_is_given_up(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Event

    closed = Event()
    answers()
    monkeypatch.setattr(hub, "_ask_hub", lambda _: closed.wait(60))
    monkeypatch.setattr(hub, "SECONDS", 0.05)
    with pytest.raises(ModelUnavailableError, match=r"no answer within 0\.05 s"):
        load_encoder("mlm:does/not-exist")
    closed.set()


def test_offline_nothing_is_asked(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers()
    monkeypatch.setattr(OFFLINE, True)
    with pytest.raises(
        ModelUnavailableError, match=r"HF_HUB_OFFLINE forbids.*unset HF_HUB_OFFLINE"
    ):
        load_encoder("st:does/not-exist")
    assert asked == []


@pytest.mark.parametrize(
    ("status", "says"),
    [(404, "has no such model"), (401, "hf auth login"), (503, "answered 503.*try again later")],
)
def test_what_the_hub_answers_is_told(status: int, says: str, answers: Answers) -> None:
    answers(status)
    with pytest.raises(ModelUnavailableError, match=says):
        hub.must_be_local("mlm:does/not-exist", "does/not-exist")


def test_a_model_of_the_hub_is_fetched_and_a_name_alone_is_tried_under_its_owner(
    answers: Answers,
) -> None:
    asked = answers(404, 200)
    assert not hub.must_be_local("st:short", "short", owner="sentence-transformers")
    assert asked == ["sentence-transformers/short", "short"]


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put files of `known/model` where downloads are kept."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    def put(**files: str) -> None:
        place = tmp_path / "models--known--model"
        (place / "refs").mkdir(parents=True, exist_ok=True)
        (place / "refs" / "main").write_text("a" * 40)
        for name, content in files.items():
            file = place / "snapshots" / ("a" * 40) / name.replace("__", "/").replace("_dot_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    return put


WHOLE = {"config_dot_json": "{}", "tokenizer_config_dot_json": "{}", "model_dot_safetensors": "w"}


def test_a_model_fetched_before_opens_without_asking(
    answers: Answers, fetched: Callable[..., None]
) -> None:
    asked = answers()
    fetched(**WHOLE)
    assert hub.fetched_revision("known/model") == "a" * 40
    assert hub.must_be_local("mlm:known/model", "known/model") and asked == []


def test_one_that_was_fetched_in_part_is_fetched_where_the_hub_answers(
    answers: Answers, fetched: Callable[..., None]
) -> None:
    asked = answers(200, ConnectionError())
    fetched(config_dot_json="{}")
    assert hub.fetched_revision("known/model") == ""
    assert not hub.must_be_local("mlm:known/model", "known/model")
    assert hub.must_be_local("mlm:known/model", "known/model"), "without a network, as it lies"
    assert asked == ["known/model"] * 2


def test_weights_in_parts_are_whole_with_the_last(fetched: Callable[..., None]) -> None:
    index = json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})
    own = {name: each for name, each in WHOLE.items() if name != "model_dot_safetensors"}
    fetched(**own, model_dot_safetensors_dot_index_dot_json=index)
    fetched(**{"1_dot_safetensors": "w"})
    assert hub.fetched_revision("known/model") == ""
    fetched(**{"2_dot_safetensors": "w"})
    assert hub.fetched_revision("known/model") == "a" * 40


def test_a_sentence_encoder_is_whole_with_its_modules(fetched: Callable[..., None]) -> None:
    fetched(**WHOLE)
    assert hub.fetched_revision("known/model", has_modules=True) == ""
    fetched(modules_dot_json=json.dumps([{"path": ""}, {"path": "1_Pooling"}]))
    assert hub.fetched_revision("known/model", has_modules=True) == "", "how it pools is missing"
    fetched(**{"1_Pooling__config_dot_json": "{}"})
    assert hub.fetched_revision("known/model", has_modules=True) == "a" * 40


def test_a_folder_needs_no_hub(answers: Answers, tiny_bert: Path) -> None:
    asked = answers()
    assert load_encoder(f"mlm:{tiny_bert}").dimension == 32
    assert asked == []


@pytest.mark.parametrize(
    "source",
    ["a b/c", "/no/such/folder", "a/b/c", "../no-such", "owner/-name", "owner--x/name", "ö/x"],
)
def test_what_is_no_id_is_refused_before_anything_is_asked(source: str, answers: Answers) -> None:
    asked = answers()
    with pytest.raises(ModelUnavailableError, match=r"neither an existing folder.*OWNER/NAME"):
        load_encoder(f"mlm:{source}")
    assert asked == []


def test_a_misspelt_family_is_recognised() -> None:
    with pytest.raises(InvalidInputError, match=r"got 'minilmm'\. Did you mean 'minilm'\?"):
        load_encoder("minilmm")
    with pytest.raises(InvalidInputError, match=r"got 'mlm'\.$"):
        load_encoder("mlm")


@pytest.mark.parametrize("source", ["does/not-exist", "not an id"])
def test_refusing_an_encoder_imports_no_heavy_library(source: str) -> None:
    code = (
        "import sys\n"
        "from leakscope.core.encoders import load_encoder\n"
        "try:\n"
        f"    load_encoder('st:{source}')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    finished = run_python(code, timeout=120, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert finished.stdout.split("\n")[:2] == ["ModelUnavailableError", "[]"], finished.stderr


@pytest.mark.slow
def test_the_command_line_says_it_in_one_line_long_before_retries_end() -> None:
    # Retries took 48 to 73 s. Starting takes 2 s on a quiet machine; the bound is for busy ones.
    finished = subprocess.run(
        [sys.executable, "-m", "leakscope", "invert", "--encoder", "st:no/such", "--text", "Rain"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=40,
        env=os.environ | {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"},
    )
    assert finished.returncode != 0
    assert "Encoder 'st:no/such' was not found" in finished.stderr
    assert finished.stderr.count("\n") == 1
