"""What is no strength, no chain or no defence is refused by every command that takes defences.

A line that names what is allowed or what to do, status 2, no traceback, and no file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from leakscope.core.cli import build_parser
from leakscope.core.cli.privatize import MECHANISMS
from leakscope.core.cli.study import options_of
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import settings_of
from leakscope.core.studies.registry import STUDIES

BAD = ("0", "-1", "nan", "inf", "-inf", "1e308", "1e400", "", "much")
REMEDIES = ("must lie in [", "must be one of", "must be a number", "must be a whole number")

LINES: Mapping[str, list[str]] = {
    "invert": ["--text", "The doctor", "--defence"],
    "evaluate": ["--attack", "prior", "--texts", "{corpus}", "--defence"],
    "audit": ["{corpus}", "--defence"],
    "attributes": ["--texts", "{corpus}", "--defence"],
    "privatize": ["--in", "{corpus}", "--out", "{out}", "--mechanism"],
    "list": ["--defence"],
    "train": ["--attack", "prior", "--corpus", "{corpus}", "--out", "{out}", "--defence"],
    "study tradeoff": ["--out", "{out}.json", "--defences"],
    "study listed": ["--auxiliary", "{corpus}", "--out", "{out}.json", "--defences"],
    "study replacements": ["--out", "{out}.json", "--defences"],
    "study reconstruct": ["--target", "{corpus}", "--out", "{out}.json", "--defences"],
}
"""A right line of each command that takes a defence or a chain, up to the option that names it."""

DIVERGES = {("adversarial", "weight"), ("adversarial", "clip_norm")}
"""Where 1e308 is a number like another: what comes of it is stopped in training, or clips none."""


def options_that_name_defences() -> Iterator[tuple[str, str]]:
    """Return each command with its option for a defence that needs no training of its own."""
    (choice,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, parser in choice.choices.items():
        if name not in ("study", "defend", "audit-mechanism"):
            for action in parser._actions:
                if {"--defence", "--mechanism"} & set(action.option_strings):
                    yield name, action.option_strings[0]
    for name in STUDIES:
        if "--defences" in options_of(name):
            yield f"study {name}", "--defences"


def test_every_command_that_takes_a_defence_is_tried_here() -> None:
    found = dict(options_that_name_defences())
    assert found == {command: line[-1] for command, line in LINES.items()}


def bad_values(name: str, entry: Any) -> Iterator[tuple[str, str]]:
    """Return the settings of a defence with values that none of them can have."""
    hints = get_type_hints(entry.kind)
    for setting, field in settings_of(entry.kind).items():
        for bad in BAD:
            is_zero = bad == "0" and field.metadata["low"] is not None
            if is_zero and field.metadata["low"] <= 0:
                continue
            is_free = hints[setting] is str and field.metadata["choices"] is None
            if is_free or ((name, setting) in DIVERGES and bad == "1e308"):
                continue
            yield setting, bad


def refused(core: Any, command: str, told: str, corpus: Path, out: Path) -> str:
    """Return why a command refused a defence."""
    line = [word.format(corpus=corpus, out=out) for word in (*command.split(), *LINES[command])]
    found: str = core(*line[:-1], f"{line[-1]}={told}").refusal()
    assert not list(out.parent.glob(f"{out.name}*")), "it wrote a file"
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [(c, n) for c in LINES for n in DEFENCES if c != "privatize" or n in MECHANISMS],
)
def test_a_value_that_a_setting_cannot_have_is_refused_with_what_it_can(
    core: Any, command: str, name: str, corpus: Path, tmp_path: Path
) -> None:
    known = DEFENCES[name].strengths  # all bad values are tried below, without a command
    strengths = [
        (s, bad) for s, bad in bad_values(name, DEFENCES[name]) if s in known and bad in ("nan", "")
    ]
    assert bool(strengths) == bool(known)
    for setting, bad in strengths:
        for told in (f"{name}:{setting}={bad}", f"{name}:{setting}={bad}+gaussian"):
            if name != "gaussian" or "+" not in told:
                found = refused(core, command, told, corpus, tmp_path / "out")
                assert setting in found and any(each in found for each in REMEDIES), found


@pytest.mark.parametrize("name", DEFENCES)
def test_no_setting_takes_what_is_no_value_of_it(name: str) -> None:
    for setting, bad in bad_values(name, DEFENCES[name]):
        with pytest.raises(InvalidInputError) as refusal:
            read_defence(f"{name}:{setting}={bad}")
        said = str(refusal.value)
        assert setting in said and any(each in said for each in REMEDIES), said


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED_DEFENCES)
def test_no_setting_of_a_trained_defence_takes_what_is_no_value_of_it(
    core: Any, name: str, corpus: Path, tmp_path: Path
) -> None:
    given = ["defend", "--defence", name, "--texts", corpus, "--out", tmp_path / "out"]
    for setting, bad in bad_values(name, TRAINED_DEFENCES[name]):
        found = core(*given, "--set", f"{setting}={bad}").refusal()
        assert setting in found and any(each in found for each in REMEDIES), found
    known = ", ".join(settings_of(TRAINED_DEFENCES[name].kind)) or "none"
    assert f"it has {known}" in core(*given, "--set", "strength=1").refusal()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("text_to_text:eta=60+santex", "Did you mean 'santext'"),
        ("text_to_text:eta=60+", "must be"),
        ("text_to_text:eta=60+none", "Remove it"),
        (
            "token_representation:eta=60+text_to_text:eta=60",
            "Change the order: text_to_text+token_representation",
        ),
    ],
)
@pytest.mark.parametrize("command", LINES)
def test_a_chain_that_cannot_be_is_refused_with_the_remedy(
    core: Any, command: str, told: str, said: str, corpus: Path, tmp_path: Path
) -> None:
    assert said in refused(core, command, told, corpus, tmp_path / "out")


@pytest.mark.parametrize("name", TRAINED_DEFENCES)
def test_what_is_trained_is_no_defence_of_a_name_alone(name: str) -> None:
    for told in (name, f"text_to_text:eta=60+{name}", f"{name}+gaussian", f"{name}:seed=2"):
        with pytest.raises(InvalidInputError, match=f"defend --defence {name}.*defended:FOLDER"):
            read_defence(told)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "1e308"])
def test_the_options_of_a_mechanism_are_refused_as_its_settings_are(
    core: Any, name: str, bad: str, corpus: Path, tmp_path: Path
) -> None:
    (strength,) = DEFENCES[name].strengths
    given = ["--mechanism", name, f"--{strength}={bad}"]
    out = tmp_path / "out.txt"
    for line in (["privatize", "--in", corpus, "--out", out], ["audit-mechanism"]):
        found = core(*line, *given).refusal()
        assert strength in found and any(each in found for each in ("number", "[", " from "))
    assert not out.exists()


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "1e308", "1e-300"])
def test_an_eta_that_shows_nothing_is_none_of_deniability(core: Any, bad: str) -> None:
    refusal = core("deniability", "--text", "A doctor", f"--eta={bad}").refusal()
    assert "--eta must be a positive number, from 1e-06 to 1e+12" in refusal


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "1e308"])
@pytest.mark.parametrize("study", ["constrained", "adaptive"])
def test_an_eta_that_is_none_begins_no_study(
    core: Any, study: str, bad: str, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    found = core("study", study, "--tasks", f"toy={corpus}", f"--etas={bad}", "--out", out)
    assert "etas must lie in [1e-06, " in found.refusal() and not out.exists()
