"""A study described by a file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.cli import build_parser
from leakscope.core.cli.shared.spec_file import with_spec
from leakscope.core.cli.study import spec_of
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.inversion.representations import EncoderStudy


def written(tmp_path: Path, spec: Any) -> str:
    path = tmp_path / "spec.json"
    path.write_text(spec if isinstance(spec, str) else json.dumps(spec))
    return str(path)


def test_an_equals_sign_does_as_well(tmp_path: Path) -> None:
    path = written(tmp_path, {"study": "encoders", "target": "a.csv", "n_targets": 7})
    apart = with_spec(["study", "--spec", path, "--out", "t.json"])
    assert with_spec(["study", f"--spec={path}", "--out", "t.json"]) == apart


def test_a_specification_of_another_study_is_refused(core: Any, tmp_path: Path) -> None:
    path = written(tmp_path, {"study": "encoders", "target": "a.csv"})
    line = core("study", "eos", "--spec", path, "--out", tmp_path / "t.json").refusal()
    assert "belongs to the study encoders, not to eos" in line


def test_several_values_of_one_setting_come_back(tmp_path: Path) -> None:
    study = EncoderStudy(target="a.csv", variants=(("epochs", 5), ("epochs", 10)))
    spec = spec_of("encoders", study)
    assert spec["variant"] == {"epochs": [5, 10]}
    given = with_spec(["study", "--spec", written(tmp_path, spec), "--out", "t.json"])
    assert [word for word in given if word.startswith("epochs")] == ["epochs=5", "epochs=10"]


def test_a_file_says_the_same_as_arguments(tmp_path: Path) -> None:
    spec = {
        "study": "names",
        "target": "news.csv",
        "encoders": ["tfidf", "minilm"],
        "n_auxiliary": 100,
        "set": {"epochs": 6, "start": "encoder"},
        "anonymous": False,
        "seeds": [3, 4],
    }
    given = with_spec(["study", "--spec", written(tmp_path, spec), "--out", "table.json"])
    by_hand = shlex.split(
        "study names --target news.csv --encoders tfidf minilm --n-auxiliary 100 "
        "--set epochs=6 --set start=encoder --no-anonymous --seeds 3 4 "
        "--out table.json"
    )
    parser = build_parser()
    assert parser.parse_args(given) == parser.parse_args(by_hand)


@pytest.mark.parametrize("order", ["name first", "name last", "name in the file"])
def test_a_list_at_the_end_of_the_file_takes_no_name(tmp_path: Path, order: str) -> None:
    spec = {"target": "news.csv", "out": "t.json", "attacks": ["prior"]}
    if order == "name in the file":
        spec = {**spec, "study": "scaling"}
    given = ["--spec", written(tmp_path, spec)]
    if order != "name in the file":
        given.insert(0 if order == "name first" else 2, "scaling")
    arguments = build_parser().parse_args(with_spec(["study", *given]))
    assert (arguments.name, arguments.attacks) == ("scaling", ["prior"])


def test_what_is_given_besides_wins(tmp_path: Path) -> None:
    spec = {"study": "eos", "target": "news.csv", "n_targets": 5, "seeds": [1, 2]}
    given = ["study", "--n-targets", "7", "--spec", written(tmp_path, spec), "--out", "t.json"]
    arguments = build_parser().parse_args(with_spec(given))
    assert (arguments.n_targets, arguments.seeds) == (7, [1, 2])


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("{", "is not JSON: .* in line 1"),
        ({"study": "eos", "n_auxilary": 5}, "no argument 'n_auxilary'.* mean 'n_auxiliary'"),
        ("[]", "must contain a JSON object"),
        ({"study": "eos", "seeds": [[1]]}, "seeds in"),
        ({"study": "eos", "seeds": None}, "seeds in"),
        ({"study": "eos", "seeds": []}, "seeds in .* is an empty list. .* or leave it out"),
    ],
)
def test_wrong_files_are_told(tmp_path: Path, spec: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        with_spec(["study", "--spec", written(tmp_path, spec)])


def test_mistakes_reach_the_user_in_a_line(core: Any, tmp_path: Path) -> None:
    assert "takes a JSON file" in core("study", "--spec").refusal()
    assert (
        "cannot be read: No such file" in core("study", "--spec", tmp_path / "none.json").refusal()
    )
    spec = written(tmp_path, {"study": "eos", "target": "x", "encoder": "tfidf"})
    assert "mean 'encoders'" in core("study", "--spec", spec, "--out", tmp_path / "t").refusal()


def test_a_file_that_is_a_text_is_no_spec_of_another_command() -> None:
    given = ["invert", "--text", "--spec"]
    assert with_spec(given) == given
