"""The line on each page that says what its figures of leakage are of, and what repeats them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.assets import ROOT
from core.story.commands import command_of, is_table
from core.studies.leak_figures import F1, LeakFigure, leak_figures, recalls
from dashboard.state import is_presenting

__all__ = [
    "apart_said",
    "command_of",
    "deniability_command",
    "how_much_leaks",
    "invert_command",
    "line_of",
    "memorise_command",
    "train_command",
    "training_said",
    "why_pages_differ",
]

TITLES = {
    "overview": "Overview",
    "inversion": "Inversion",
    "representations": "Representations",
    "names": "Names",
    "tradeoff": "Trade-off",
}
"""Pages that show a mean over many texts."""

_SCALE = "F1 of the words read (0 is none, 100 all and no other)"
"""What stands before figures that are set beside each other: the only one that all pages have."""

_SELDOM = (
    "Telephone and account numbers are rarely on it and are not in these figures: **Trade-off** "
    "says what is found of them from a list."
)

ON_VIEW = {
    "inversion": "A sentence is one example. ",
    "deniability": "This page shows what noise does to words, not what an attacker reads. "
    "Without noise: ",
    "attributes": "This page shows what vectors tell about their authors, not which words are read "
    "from them. Of words: ",
    "projection": "What is read from the points that you select is of those texts alone. "
    "Elsewhere: ",
    "membership": "This page asks whose texts a model was trained on. What is read from vectors: ",
    "memorisation": "This page asks what a model kept of the texts that it was trained on. What is "
    "read from vectors: ",
    "training": "This page asks what training saves, of texts of its own. Without any: ",
}
"""What stands before the line of pages that show something else, or more."""


@st.cache_data(show_spinner=False, max_entries=1)
def _figures() -> dict[str, LeakFigure]:
    return leak_figures()


@st.cache_data(show_spinner=False, max_entries=1)
def _recalls() -> dict[str, float]:
    return recalls()


def how_much_leaks(page: str, *commands: str) -> None:
    """Draw a page's line, and what repeats its figures.

    Parameters
    ----------
    commands : str
        Commands, or names of tables of docs/results, whose specification is run again.
    """
    if told := line_of(page, _figures()):
        st.caption(told)
    if commands and not is_presenting():
        with st.popover("Copy the command", icon=":material/content_copy:", key=f"repeat-{page}"):
            _repeat(commands)


@st.fragment
def why_pages_differ() -> None:
    """Draw what explains why the pages' figures differ, once it is asked for."""
    asked = st.popover(
        "Why pages differ",
        icon=":material/help:",
        key="why-pages-differ",
        on_change="rerun",
        help="Each page's figure of what is read, with its texts and its attacker",
    )
    if asked.open and (figures := _figures()):
        with asked:
            _explain(figures)


def _explain(figures: Mapping[str, LeakFigure]) -> None:
    lines = [
        f"- **{TITLES[figure.page]}, {figure.said}**: {figure.texts}; "
        f"by the {figure.attacker}: {figure.why}."
        for figure in figures.values()
    ]
    if apart := _recalls():
        lines.append(
            f"- On news, the probe-started classifier reads {apart_said(apart)}. Words that it "
            "cannot name count as missed where it says “of every word”, and are in no other of "
            "these figures: they are no evidence of safety."
        )
    st.markdown(
        "**One encoder, several figures.** How much is read depends on the texts and on the "
        "attacker. None of these is the most that could be read.\n\n" + "\n".join(lines)
    )
    # What the keyboard can stand on makes all of it reachable where it has to be scrolled.
    st.page_link(
        str(ROOT / "pages" / "glossary.py"),
        label="What the words mean",
        icon=":material/menu_book:",
    )


def apart_said(apart: Mapping[str, float]) -> str:
    """Return what is read of the words that tell most, such as names, as a clause."""
    return ", ".join(f"{value:.0f} % of {title}" for title, value in apart.items())


def line_of(page: str, figures: Mapping[str, LeakFigure]) -> str:
    """Return which texts and which attacker a page's figure is of, and what others show.

    Empty where nothing was measured.
    """
    own = figures.get(page) or figures.get("inversion")
    if own is None:
        return ""
    others = [figure for figure in figures.values() if figure is not own]
    words = [f"{TITLES[f.page]} {f.score.value:.0f}" for f in others if f.measure == F1]
    rest = [f"{TITLES[f.page]} {f.score.value:.0f} {f.measure}" for f in others if f.measure != F1]
    told = "; ".join([*([f"{_SCALE}: {', '.join(words)}"] if words else []), *rest])
    return (
        f"{ON_VIEW.get(page, '')}**How much leaks: {own.said}**, on "
        f"{own.texts}, by the {own.attacker}."
        + (
            f" It recovers {apart_said(own.apart)}, of those on its word list. {_SELDOM}"
            if own.apart
            else ""
        )
        + (f" On other texts or to other attackers: {told}." if told else "")
    )


def _repeat(commands: Sequence[str]) -> None:
    needs_data = any(is_table(command) or "DATA" in command for command in commands)
    st.markdown(
        "Repeats the figures of this page, in a checkout of Leakscope. `DATA` is a folder with "
        "the collections: `docs/data.md` says where each comes from."
        if needs_data
        else "Repeats the figures of this page."
    )
    for command in commands:
        st.code(command_of(command), language="sh", wrap_lines=True)


def invert_command(text: str, attack: str, settings: Mapping[str, Any]) -> str:
    """Return the command that reads a sentence as the page of inversion does."""
    return shlex.join(
        ["python", "-m", "core", "invert", "--encoder", "minilm", "--attack", attack,
         *_set(settings), "--text", text]
    )  # fmt: skip


def deniability_command(text: str, eta: float, encoder: str) -> str:
    """Return the command that counts what comes back of a sentence at an η."""
    return shlex.join(
        ["python", "-m", "core", "deniability", "--encoder", encoder, "--eta", f"{eta:g}",
         "--text", text]
    )  # fmt: skip


def memorise_command(corpus: str, canary: str, settings: Mapping[str, Any], n_seeds: int) -> str:
    """Return the command that plants a canary as the page of memorisation does."""
    return shlex.join(
        ["python", "-m", "core", "memorise", "--corpus", corpus, f"--canary={canary}",
         *(word for name, value in settings.items()
           for word in (f"--{name.replace('_', '-')}", str(value))),
         "--seed", *map(str, range(n_seeds))]
    )  # fmt: skip


def train_command(attack: str, record: Mapping[str, Any]) -> str:
    """Return the command that trains an attack as its record says, on the sources of those here."""
    sources = ("wikipedia", "novels_other_books", "tatoeba_tanaka")
    where = [word for source in sources for word in ("--where", f"source={source}")]
    held_out = record.get("n_held_out")
    return shlex.join(
        ["python", "-m", "core", "train", "--encoder", "minilm", "--precision", "bfloat16",
         "--attack", attack, "--corpus", "DATA/sentences.parquet", *where,
         "--min-words", "3", "--max-words", "60", "--seed", str(record.get("seed", 0)),
         *(["--held-out", str(held_out)] if held_out else []),
         *_set(record.get("settings", {})), "--out", attack]
    )  # fmt: skip


def training_said(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how long training the attacks that ship took, as the end of a sentence."""
    timed = [record for record in records.values() if {"seconds", "hardware"} <= record.keys()]
    if not timed:
        return ""
    longest = max(timed, key=lambda record: float(record["seconds"]))
    return (
        f", and were trained in at most {float(longest['seconds']) / 60:.0f} minutes on "
        f"{longest['hardware']['n_cpus']} processor cores, once their texts were encoded"
    )


def _set(settings: Mapping[str, Any]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={_plain(value)}")]


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
