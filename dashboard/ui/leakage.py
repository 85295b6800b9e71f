"""Why the pages' leakage figures differ, and the commands that reproduce a page's figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from leakscope.core.assets import ROOT
from leakscope.core.findings.commands import command_of, is_table
from leakscope.core.studies.leak_figures import LeakFigure, leak_figures, recalls
from leakscope.dashboard.ui.state import is_presenting

TITLES = {
    "overview": "Overview",
    "inversion": "Inversion",
    "representations": "Representations",
    "names": "Names",
    "tradeoff": "Trade-off",
}
"""Titles of the pages that show a mean over many texts."""

_SELDOM = (
    "Telephone and account numbers are rarely in its vocabulary: **Trade-off** shows how often an "
    "attacker finds them in a list of candidates."
)


@st.cache_data(show_spinner=False, max_entries=1)
def _cached_figures() -> dict[str, LeakFigure]:
    """Read the leakage figure of each page from the shipped results, by page; cached."""
    return leak_figures()


@st.cache_data(show_spinner=False, max_entries=1)
def _cached_recalls() -> dict[str, float]:
    """Read the recall of names, numbers and rare words from shipped results, by kind; cached."""
    return recalls()


def command_button(page: str, *commands: str, about: str = "") -> None:
    """Draw the popover with commands that reproduce a page's figures; nothing without any.

    Parameters
    ----------
    commands : str
        Commands, or names of tables in results/, whose specification is run again.
    """
    if commands and not is_presenting():
        with st.popover("Copy the command", icon=":material/content_copy:", key=f"repeat-{page}"):
            _show_commands(commands, about)


@st.fragment
def why_pages_differ() -> None:
    """Draw the popover that explains why the pages' leakage figures differ."""
    asked = st.popover(
        "Why pages differ",
        icon=":material/help:",
        key="why-pages-differ",
        on_change="rerun",
        help="The leakage figure of each page, with its texts and its attacker",
    )
    if asked.open and (figures := _cached_figures()):
        with asked:
            _explain_differences(figures)


def _explain_differences(figures: Mapping[str, LeakFigure]) -> None:
    """Draw a list of each page's leakage figure with its texts, attacker and reason."""
    lines = [
        f"- **{TITLES[figure.page]}, {figure.leak}**: {figure.texts}; "
        f"by the {figure.attacker}: {figure.why}."
        for figure in figures.values()
    ]
    if apart := _cached_recalls():
        lines.append(
            f"- On news, the probe-started classifier recovers {describe_recalls(apart)}. Words "
            "outside its vocabulary count as missed only in a figure marked “of every word”. The "
            f"other figures leave them out, which is no evidence of safety. {_SELDOM}"
        )
    st.markdown(
        "**One encoder, several figures.** How much leaks depends on the texts and on the "
        "attacker. Each figure is a lower bound: a better attacker may recover more.\n\n"
        + "\n".join(lines)
    )
    # A focusable element lets keyboard users scroll the popover to its end.
    st.page_link(
        str(ROOT / "pages" / "glossary.py"),
        label="What the terms mean",
        icon=":material/menu_book:",
    )


def describe_recalls(by_kind: Mapping[str, float]) -> str:
    """List recalls by kind of word in a clause, such as "40 % of names, 10 % of numbers"."""
    return ", ".join(f"{value:.0f} % of {title}" for title, value in by_kind.items())


def _show_commands(commands: Sequence[str], about: str) -> None:
    """Draw what commands do, and each one; a table's name stands for the command that makes it."""
    needs_data = any(is_table(command) or "DATA" in command for command in commands)
    st.markdown(
        about
        or (
            "Reproduces the figures of this page, in a checkout of Leakscope. `DATA` is a folder "
            "with the corpora: `docs/data.md` lists where to get them."
            if needs_data
            else "Reproduces the figures of this page."
        )
    )
    for command in commands:
        st.code(command_of(command), language="sh", wrap_lines=True)


def _join_command(words: str, *more: object) -> str:
    """Join words and further arguments to a command line, quoted where needed."""
    return shlex.join([*words.split(), *map(str, more)])


def invert_command(text: str, attack: str, settings: Mapping[str, Any]) -> str:
    """Return the `leakscope invert` command that attacks a text with the given settings."""
    words = "leakscope invert --encoder minilm --attack"
    return _join_command(words, attack, *_set_options(settings), "--text", text)


def deniability_command(text: str, eta: float, encoder: str) -> str:
    """Return the `leakscope deniability` command for a text, an η and an encoder."""
    words = "leakscope deniability --encoder"
    return _join_command(words, encoder, "--eta", f"{eta:g}", "--text", text)


def memorise_command(corpus: str, canary: str, settings: Mapping[str, Any], n_seeds: int) -> str:
    """Return the `leakscope memorise` command that plants a canary with the given settings."""
    options = (
        word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)
    )
    return _join_command(
        "leakscope memorise --corpus",
        corpus,
        f"--canary={canary}",
        *options,
        "--seed",
        *range(n_seeds),
    )


def train_command(attack: str, record: Mapping[str, Any]) -> str:
    """Return the `leakscope train` command that reproduces an attack's training record."""
    sources = ("wikipedia", "novels_other_books", "tatoeba_tanaka")
    where = " ".join(f"--where source={source}" for source in sources)
    held_out = record.get("n_held_out")
    return _join_command(
        "leakscope train --encoder minilm --precision bfloat16 --attack",
        attack,
        *f"--corpus DATA/sentences.parquet {where} --min-words 3 --max-words 60 --seed".split(),
        record.get("seed", 0),
        *(("--held-out", held_out) if held_out else ()),
        *_set_options(record.get("settings", {})),
        "--out",
        attack,
    )


def describe_training(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Describe how long the longest training of the shipped attacks took; "" if not recorded."""
    timed = [record for record in records.values() if {"seconds", "hardware"} <= record.keys()]
    if not timed:
        return ""
    longest = max(timed, key=lambda record: float(record["seconds"]))
    return (
        f" Their training took at most {float(longest['seconds']) / 60:.0f} minutes on "
        f"{longest['hardware']['n_cpus']} processor cores, not counting the time to encode texts."
    )


def _set_options(settings: Mapping[str, Any]) -> list[str]:
    """Convert settings to `--set name=value` command-line arguments."""
    values = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in settings.items()
    }
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
