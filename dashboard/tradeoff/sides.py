"""Two settings side by side on one's own sentence, attacked anew as one types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.attacks.inversion.reading import Reading
from core.defences.shipped import find_shipped
from core.errors import CoreError
from core.said import percent_said
from core.specs import DefenceSpec
from core.studies.eta_outlook import kept_of
from core.studies.listed_summary import shares_said, shipped_listed
from core.studies.tradeoff_choice import leak_of
from core.studies.tradeoff_setting import (
    entry_shown,
    milliseconds_said,
    minutes_said,
    promise_said,
    training_command,
    why_not_tried,
)
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said
from core.text import check_text
from dashboard import markup
from dashboard.calm import show_error
from dashboard.deniability.state import draw_again
from dashboard.inversion.answers import ENCODER
from dashboard.inversion.views import untested, vector_panel
from dashboard.promise import show_promises
from dashboard.tradeoff import controls, state
from dashboard.tradeoff.finding import read_said
from dashboard.tradeoff.own import own_setting
from dashboard.tradeoff.promised import promised
from dashboard.tradeoff.tried import Tried, tried

__all__ = ["noise_button", "side_by_side", "text_or_none"]


def noise_button(slot: Any) -> None:
    """Draw the button that draws the noise anew."""
    slot.button(
        "Draw the noise again",
        key="draw_again",
        icon=":material/casino:",
        on_click=draw_again,
        help="Noise is drawn once for both settings and stays, so that what differs is the "
        "defence; this draws another. Release one of these outputs at most: two of one draw share "
        "their noise, and k draws put the odds to the power k.",
    )


def side_by_side(found: Tradeoff, task: str, reads: str, text: str | None) -> None:
    """Draw both settings, and which words both give away; the text is None where it is bad."""
    st.caption(
        "Of one sentence, read live by a quick attacker, who is weaker than those of the figure "
        "above. A word that is not read here is not thereby safe."
    )
    seen: dict[str, Tried] = {}
    for side, place in zip(state.SIDES, st.columns(2, gap="medium"), strict=True):
        with place, st.container(border=True, key=f"side-{side}"):
            shown = _side(found, task, reads, side, text)
        if shown is not None:
            seen[side] = shown
    read = {side: each.reading for side, each in seen.items() if each.reading is not None}
    if text is not None and len(read) == len(state.SIDES):
        _words(read)


def _side(found: Tradeoff, task: str, reads: str, side: str, text: str | None) -> Tried | None:
    name: str | None = controls.setting_picker(found, side)
    if name == state.OWN:
        name = own_setting(side)
    if name is None:
        return None
    spec = controls.spec_of(found, name)
    st.markdown(_about(spec))
    st.html(markup.facts(_facts(found, name, task, reads)))
    try:
        if told := why_not_tried(spec, ENCODER.name):
            st.info(told, icon=":material/model_training:")
            if command := training_command(spec):
                st.code(command, language="sh", wrap_lines=True)
            return None
        return None if text is None else _shown(spec, side, text)
    except CoreError as error:
        show_error(error, title="This cannot be tried on the sentence")
    return None


def _about(spec: DefenceSpec) -> str:
    promise = promise_said(spec)
    return f"{entry_shown(spec.name).summary} {promise and f'*Promises {promise}.*'}"


def _facts(found: Tradeoff, name: str, task: str, reads: str) -> Mapping[str, str]:
    """Return what was measured of a setting, over many texts."""
    place = state.place_of(found, name)
    if place is None:
        return {"Measured": "not at this setting"}
    point = found.points[place]
    useful, leak = point.utility.get(task), leak_of(point, reads)
    kept, back = kept_of(point, found.undefended), point.token_inversion
    return {
        "Useful": f"{useful.said()}, {task_said(task)}" if useful else "not measured",
        **({"Left, mean of tasks": _mean_said(kept)} if kept else {}),
        **({"Tokens back": f"{back.said(0)} %"} if back else {}),
        "Leaks": f"{read_said(leak, reads)}" if point.read_by(reads) else "not measured",
        "Found from a list": _listed(found, point),
        "Training": minutes_said(point),
        "A text takes": milliseconds_said(point),
    }


def _listed(found: Tradeoff, point: Point) -> str:
    """Return what an attacker with a list of candidates finds, of each kind."""
    own = shipped_listed(str(found.facts.get("encoder", "")))
    shares = "" if own is None else shares_said(own, point.defence, point.settings)
    return shares or "not tested: no evidence of safety"


def _mean_said(kept: Mapping[str, float]) -> str:
    mean = sum(kept.values()) / len(kept)
    return f"{percent_said(mean)} of the way from guessing to no defence, of {len(kept)}"


def _shown(spec: DefenceSpec, side: str, text: str) -> Tried:
    """Draw what is released or stored of the sentence, and what is read from it."""
    odds = promised(spec, text)
    if odds is not None:
        show_promises(odds)
    _say_trained(spec)
    found = tried(spec, text)
    if found.defended.tokens:
        st.html(markup.label(_what(found)))
        before, after = zip(*found.defended.tokens, strict=True)
        st.html(markup.privatised_sentence(before, after))
        st.html(markup.token_legend())
        _say_unknown(before)
    elif found.defended.text is not None:
        st.html(markup.label(_what(found)) + markup.quoted(found.defended.text))
    vector_panel(found.defended.vector, lead="What is stored: ", key=f"vector-{side}")
    if found.reading is None:
        st.html(markup.label("The sentence") + markup.quoted(text))
        st.caption(
            "No attack here reads words from such vectors without having learnt from them; the "
            "figure's attacker has. That is no protection: some texts with their vectors are "
            "enough to learn from."
        )
        return found
    st.html(markup.label(_who(spec, found)))
    st.html(markup.marked_sentence(found.reading))
    st.html(markup.wrong_words(found.reading))
    st.html(markup.legend([found.reading]))
    if found.defended.told is not None:
        st.caption(_how_read(found))
    return found


def _how_read(found: Tried) -> str:
    """Return how released tokens were read."""
    if not found.how:
        return (
            "Each token is taken as it was released. The figure above also has an attacker who "
            "knows how the mechanism draws and how words are used, and may read more."
        )
    if found.how == "literal":
        return (
            "Each token is taken as it was released: the attacker knows the mechanism, and on "
            "sentences of their own nothing brought back more."
        )
    return (
        "The likeliest tokens are read, by what the mechanism is known to do and by how "
        f"{found.n_known:,} sentences of the attacker's own use tokens, which on the whole brings "
        "back more than was released. None of them nearly repeats yours."
    )


def _say_trained(spec: DefenceSpec) -> None:
    """Say which training a sentence goes through: not that of what was measured."""
    trained: Any = find_shipped(spec, ENCODER.name)
    if trained is None:
        return
    seed = getattr(trained, "seed", None)  # LEACE is a closed form
    by_chance = f" with seed {seed}; " if seed is not None else "; "
    told = (
        f"The sentence goes through the one that ships, trained on "
        f"{trained.training_['n_texts']:,} sentences{by_chance}what was measured over many texts "
        "was trained on others."
    )
    if getattr(trained, "against", "attribute") == "attribute":
        told += " It was trained to hide who wrote a sentence; below, its words are read."
    st.caption(told)


def _what(found: Tried) -> str:
    """Return what the tokens are that are shown."""
    if found.defended.text is None:
        return "What is released, one draw: each token's vector, shown as the token nearest to it"
    return f"What is {'encoded' if found.defended.told is None else 'released'}: one draw"


def _who(spec: DefenceSpec, found: Tried) -> str:
    """Return who reads the sentence."""
    if found.defended.told is not None:
        released = "text" if found.defended.text is not None else "vectors of tokens"
        knows = ", knowing the mechanism" if found.how else ""
        return f"What an attacker reads off the released {released}{knows}"
    if entry_shown(spec.name).is_baseline:
        return "What an attacker reads"
    if found.n_known:
        return (
            "What an attacker reads who knows this defence, and undoes it as well as "
            f"{found.n_known:,} defended sentences teach"
        )
    return "What an attacker reads who was not trained for this defence"


def _say_unknown(tokens: tuple[str, ...]) -> None:
    n_unknown = tokens.count("[UNK]")
    if n_unknown:
        what = "1 token is" if n_unknown == 1 else f"{n_unknown} tokens are"
        st.caption(
            f"{what} unknown to the encoder ([UNK]): it reads nothing of them but that they are "
            "there, and this alone is what the noise hides."
        )


def _words(read: Mapping[str, Reading]) -> None:
    """Draw which words both settings give away, and which only one."""
    a, b = (dict.fromkeys(word.word for word in reading.hits) for reading in read.values())
    both = [word for word in a if word in b]
    told = {
        "Both give away": both,
        "Only A gives away": [word for word in a if word not in b],
        "Only B gives away": [word for word in b if word not in a],
    }
    with st.container(border=True, key="side-words"):
        for place, (title, words) in zip(st.columns(len(told)), told.items(), strict=True):
            place.html(markup.read_words(title, words, "no word that this attacker can name"))
        if not_tested := untested([*read.values()], is_defended=True):
            st.caption(not_tested)


def text_or_none(text: str) -> str | None:
    """Return a text that can be attacked; draw why another cannot."""
    try:
        return check_text(text)
    except CoreError as error:
        show_error(error, title="There is nothing to protect")
        return None
