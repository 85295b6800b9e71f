"""Command lines: a valid one for each command, and mutations of it."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from leakscope.core.cli import COMMANDS, build_parser
from leakscope.core.defences.registry import DEFENCES, all_defences
from leakscope.core.specs import settings_of
from leakscope.core.studies.registry import STUDIES
from leakscope.dashboard.server import command as command_of_server
from tools.fuzz.damage import TEXTS, WORDS, bytes_from, json_from
from tools.fuzz.kit import Kit
from tools.fuzz.play import Case

_SENTENCE = "The minister met the doctor near the market."


def lines_of(kit: Kit) -> dict[str, list[str]]:
    """Return a valid command line, as words, for each command and study by name."""
    bert, weights = shlex.join(kit.encoder), shlex.join(kit.weights)
    encoder, text = shlex.join(kit.encoder[:2]), shlex.quote(_SENTENCE)
    news = "--texts news.csv --label-column label"
    lines = {
        "invert": f"{bert} {weights} --text {text} --json",
        "evaluate": f"{bert} {weights} --texts texts.txt --json",
        "audit": f"rows.jsonl {encoder} --attack prior --max-f1 100 --json -",
        "presence": f"rows.jsonl {encoder} --texts texts.txt --references absent.txt --json",
        "attributes": f"{bert} {news} --n-per-label 3 --n-targets 4 --json",
        "train": f"{bert} --attack prior --corpus texts.txt --min-words 4 --out out --json",
        "fit": "--encoder tfidf --corpus texts.txt --out out --json",
        "defend": f"{bert} --defence leace {news} --out out --json",
        "train-private": f"{bert} {news} --delta 0.001 --out out --json",
        "deniability": f"{bert} --text {text} --eta 20 --n-draws 20 --json",
        "privatize": f"{bert} --eta 20 --in news.csv --text-column text --out out.csv --json",
        "audit-mechanism": "--no-processes --json",
        "membership": "--probabilities answers.csv --json",
        "memorise": "--corpus texts.txt --canary 'my pin is {digits:4}' --epochs 2 --json",
        "tune": "--attack prior --target news.csv --other news.csv --encoder hashing "
        "--out out.json --json",
        "report": "story.json --out out.html",
        "cache list": "--json",
        "cache clear": "--kind embeddings --older-than 2 --json",
        "list": "--json",
        "serve": "--allow-host leakscope.example.org --base-path /a",
    }
    return {name: shlex.split(f"{name} {words}") for name, words in lines.items()} | {
        f"study {name}": _line_of_study(name) for name in STUDIES
    }


def _line_of_study(name: str) -> list[str]:
    """Return a valid command line, as words, for a study."""
    settings = STUDIES[name].kind.__dataclass_fields__
    given = [f"--{file} news.csv" for file in ("target", "other") if file in settings]
    if name == "membership-classifiers":
        given.append("--corpora news=news.csv:label --user-column text")
    elif "corpora" in settings:
        given.append("--corpora news=news.csv")
    if "label_column" in settings:
        given.append("--label-column label")
    if name in ("private-training", "constrained", "adaptive", "tradeoff"):
        given.append("--tasks news=news.csv")
    if name == "tradeoff":
        given.append("--auxiliary news.csv")
    return f"study {name} {' '.join(given)} --out out.json --json".split()


_Options = dict[str, tuple[str, ...] | None]
"""By name, what may follow that is likely right; None where nothing follows."""


def options() -> dict[str, _Options]:
    """Return the plausible values of each command's options, by command and option name."""
    parser = build_parser(commands={**COMMANDS, "serve": command_of_server})
    return dict(_leaf_parsers(parser, ""))


def _leaf_parsers(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, _Options]]:
    """Yield the name and the options, with plausible values, of each leaf command of a parser."""
    if hasattr(parser, "declare"):
        parser.declare()
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in below:
        for part, child in action.choices.items():
            yield from _leaf_parsers(child, f"{name} {part}".strip())
    if not below:
        yield (
            name,
            {
                o: _plausible_values(a)
                for a in parser._actions
                for o in a.option_strings
                if o != "--ray"
            },
        )


def _plausible_values(action: argparse.Action) -> tuple[str, ...] | None:
    """Return plausible values of a command-line option; None for a flag, which takes none."""
    if action.nargs == 0:
        return None
    if action.choices:
        return tuple(map(str, action.choices))
    if action.type in (int, float) or "number" in str(action.type):
        return ("1", "2", "3", "8", "20", "0", "-1", "0.5")
    return WORDS


def command_lines(kit: Kit) -> dict[str, st.SearchStrategy[Case]]:
    """Return, per command, a Hypothesis strategy for its valid line with some words changed."""
    known = options()
    return {
        name: st.one_of(
            _mutated_line(name, line, known[name], kit), _replaced_texts(name, line, kit)
        )
        for name, line in lines_of(kit).items()
    }


@st.composite
def _mutated_line(
    draw: Callable[..., Any], name: str, line: list[str], known: _Options, kit: Kit
) -> Case:
    """Draw a case: a valid command line with up to three words changed."""
    words, first = list(line), len(name.split())
    n_changes = draw(st.sampled_from([0, 1, 1, 1, 2, 3]))
    for _ in range(n_changes):
        how = draw(st.sampled_from(["replace", "replace", "drop", "add", "add", "insert"]))
        at = draw(st.integers(first if len(words) > first else 0, max(first, len(words) - 1)))
        word = draw(st.sampled_from(WORDS))
        if how == "replace" and at < len(words):
            likely = known.get(words[at - 1]) or (word,)
            words[at] = draw(st.one_of(st.just(word), st.sampled_from(likely)))
        elif how == "drop" and at < len(words):
            del words[at]
        elif how == "insert":
            words.insert(at, word)
        else:
            option = draw(st.sampled_from(sorted(known)))
            values = known[option]
            words.append(option)
            if values is not None:
                words.append(draw(st.one_of(st.sampled_from(values), st.just(word))))
    return Case(name, tuple(words), files=kit.files, is_whole=not n_changes)


@st.composite
def _replaced_texts(draw: Callable[..., Any], name: str, line: list[str], kit: Kit) -> Case:
    """Draw a case: a valid command line whose text and numbers are replaced."""
    words = list(line)
    for i, word in enumerate(line):
        if word == _SENTENCE:
            words[i] = draw(st.one_of(st.sampled_from(TEXTS), st.text(max_size=60)))
        elif word.isdigit():
            number = st.one_of(st.integers(), st.floats()).map(str)
            words[i] = draw(st.one_of(st.just(word), number, st.sampled_from(WORDS)))
    return Case(name, tuple(words), files=kit.files, is_whole=words == line)


_READ_BY = {
    "texts.txt": ("evaluate", "train", "fit", "privatize"),
    "news.csv": ("evaluate", "attributes", "train", "fit", "privatize", "tune", "study encoders"),
    "news.tsv": ("evaluate", "fit", "privatize"),
    "news.jsonl": ("evaluate", "attributes", "fit", "privatize"),
    "news.parquet": ("evaluate", "attributes", "fit", "privatize", "tune"),
    "answers.csv": ("membership",),
    "story.json": ("report",),
}


@st.composite
def given_files(draw: Callable[..., Any], kit: Kit, name: str) -> Case:
    """Draw a case: one of the kit's files damaged, and a command that reads it."""
    command = draw(st.sampled_from(_READ_BY[name]))
    content = draw(bytes_from(kit.files[name]))
    ending = name.partition(".")[2]
    line = [word for word in lines_of(kit)[command] if word not in ("--text-column", "text")]
    renamed = {"texts.txt": name, "news.csv": name, "out.csv": f"out.{ending}"}
    words = [renamed.get(word, word) for word in line]
    kind = {"answers.csv": "of answers", "story.json": "of a story"}.get(name, ending)
    return Case(f"file {kind}", tuple(words), files={**kit.files, name: content})


@st.composite
def classifiers(draw: Callable[..., Any], kit: Kit) -> Case:
    """Draw a case: a command on an ONNX model, vectors and labels, one of the files damaged."""
    name = draw(st.sampled_from(CLASSIFIER))
    content = draw(bytes_from(kit.files[name]))
    model, vectors, labels = CLASSIFIER
    words = ["membership", "--model", model, "--vectors", vectors, "--labels", labels, "--json"]
    return Case(
        "file onnx",
        tuple(words),
        files={**kit.files, name: content},
        is_whole=content == kit.files[name],
    )


CLASSIFIER = ("model.onnx", "vectors.npy", "labels.csv")
"""What `membership --model` reads; in a kit where onnx is installed."""

_SPEC = {
    "study": "encoders",
    "target": "news.csv",
    "other": "news.csv",
    "encoders": ["tfidf"],
    "attacks": ["prior", "mlc"],
    "set": {"epochs": 2},
    "n_targets": 5,
    "json": True,
    "out": "out.json",
}
_FIT_SPEC = {"encoder": "tfidf", "corpus": "texts.txt", "out": "out", "limit": 10, "json": True}


@st.composite
def specifications(draw: Callable[..., Any], kit: Kit) -> Case:
    """Draw a case: a command on a damaged specification of a study or of `fit`."""
    of_study = draw(st.booleans())
    spec, words = (_SPEC, ["study"]) if of_study else (_FIT_SPEC, ["fit"])
    told = draw(json_from(spec))
    content = json.dumps(told).encode()
    if draw(st.integers(0, 3)) == 0:
        content = draw(bytes_from(content))
    words += ["--spec", "a.spec.json"]
    return Case(
        "specification",
        tuple(words),
        files={**kit.files, "a.spec.json": content},
        is_whole=content == json.dumps(spec).encode(),
    )


RIGHT = (
    "int8",
    "gaussian:sigma=0.1+int8",
    "text_to_text:eta=60+int8",
    "santext:epsilon=9+rounding:decimals=2",
    "custext:epsilon=4,k=8+token_representation:eta=1e3+truncation:dimension=4",
    "tem:epsilon=12+text_to_text:eta=90+gaussian:sigma=0.2+binary",
)
"""Chains that nothing is wrong with."""

_NUMBERS = ("0.1", "1", "2", "8", "60", "1e3", "0", "-1", "nan", "inf", "1e308", "1e-320")
_JOINTS = ("+", "+", "+", "+", "+", "++", "+ ", " ", ",", "")

_OPTIONS: Mapping[str, str] = {
    "invert": "--defence",
    "evaluate": "--defence",
    "attributes": "--defence",
    "train": "--defence",
    "list": "--defence",
    "privatize": "--mechanism",
    "study tradeoff": "--defences",
}
"""Each command that takes a chain, and by what."""


@st.composite
def defence_chains(draw: Callable[..., Any]) -> str:
    """Draw the text of a chain of one to four stages, some of them no defence, with settings."""
    known = all_defences()
    by_name, others = sorted(DEFENCES), sorted(known.keys() - DEFENCES.keys())
    names = st.one_of(
        st.sampled_from(by_name),
        st.sampled_from(by_name),
        st.sampled_from(others),
        st.sampled_from(WORDS),
    )
    told = ""
    for i in range(draw(st.integers(1, 4))):
        name = draw(names)
        kind = known[name].kind if name in known else None
        told += (draw(st.sampled_from(_JOINTS)) if i else "") + name + draw(_draw_settings(kind))
    return told


@st.composite
def _draw_settings(draw: Callable[..., Any], kind: type[Any] | None) -> str:
    """Draw the text of settings after a defence's name, mostly its own; or ""."""
    if draw(st.integers(0, 2)) == 0:
        return ""
    own = sorted(settings_of(kind)) if kind is not None else []
    value = st.one_of(
        st.sampled_from(_NUMBERS),
        st.sampled_from(_NUMBERS),
        st.sampled_from(WORDS),
        st.floats().map(str),
    )
    name = st.sampled_from([*own, *own, "seed", "eta", ""])
    pairs = draw(st.lists(st.tuples(name, st.sampled_from("===:"), value), min_size=1, max_size=2))
    return ":" + ",".join("".join(pair) for pair in pairs)


@st.composite
def chains(draw: Callable[..., Any], kit: Kit, lines: Mapping[str, list[str]]) -> Case:
    """Draw a case: a command with a chain of defences, valid in a quarter of the cases.

    Parameters
    ----------
    lines : mapping
        A right line of each command.
    """
    command = draw(st.sampled_from(sorted(_OPTIONS)))
    is_right = draw(st.integers(0, 3)) == 0
    told = draw(st.sampled_from(RIGHT)) if is_right else draw(defence_chains())
    line = lines[command]
    if command == "privatize":  # its own option for the noise stands aside
        line = [word for word in line if word not in ("--eta", "20")]
        is_right = False  # what releases no text is refused
    words = (*line, f"{_OPTIONS[command]}={told}")
    return Case("chain of defences", words, files=kit.files, is_whole=is_right)
