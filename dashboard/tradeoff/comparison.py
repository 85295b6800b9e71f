"""Two settings side by side on the visitor's sentence, attacked live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.defences.setting import (
    describe_promise,
    entry_shown,
    training_command,
    why_not_tried,
)
from leakscope.core.defences.stored import find_shipped
from leakscope.core.errors import CoreError
from leakscope.core.findings.reading import untested
from leakscope.core.findings.tradeoff import describe_read
from leakscope.core.formatting import describe_leak, format_percent
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.inversion.listed_summary import describe_shares, shipped_listed
from leakscope.core.studies.tradeoff.choice import leak_of
from leakscope.core.studies.tradeoff.summary import (
    Point,
    Tradeoff,
    describe_milliseconds,
    describe_minutes,
    kept_usefulness,
)
from leakscope.core.tasks.names import describe_task
from leakscope.core.text import check_text
from leakscope.dashboard.deniability.state import draw_again
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.inversion.views import vector_panel
from leakscope.dashboard.tradeoff import controls, state
from leakscope.dashboard.tradeoff.controls import own_setting
from leakscope.dashboard.tradeoff.live_attack import (
    DefendedReading,
    attack_defended,
    setting_guarantees,
)
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.guarantee import show_guarantees


def noise_button(slot: Any) -> None:
    """Draw the button that replaces the random noise of both settings."""
    slot.button(
        "Draw new noise",
        key="draw_again",
        icon=":material/casino:",
        on_click=draw_again,
        help="Both settings use the same draw of noise, so that only the defence differs. This "
        "button replaces it. Release at most one of these outputs: outputs of one draw contain the "
        "same noise, and each further draw weakens the guarantee. With k draws, the odds are "
        "raised to the power k.",
    )


def compare_settings(found: Tradeoff, task: str, reads: str, text: str | None) -> None:
    """Draw sides A and B: setting, defended text and attack; then the words each recovers."""
    st.info(
        "This is a quick attack on one sentence. **A word that it misses is not proven safe**: the "
        "attacks in the figure are stronger. Their F1 on many sentences stands below each result "
        "(its 95 % CI is not corrected for the number of settings).",
        icon=":material/info:",
    )
    seen: dict[str, DefendedReading] = {}
    for side, place in zip(state.SIDES, st.columns(2, gap="medium"), strict=True):
        with place, st.container(border=True, key=f"side-{side}"):
            shown = _setting_card(found, task, reads, side, text)
        if shown is not None:
            seen[side] = shown
    read = {side: each.reading for side, each in seen.items() if each.reading is not None}
    if text is not None and len(read) == len(state.SIDES):
        _shared_words(read)


def _setting_card(
    found: Tradeoff, task: str, reads: str, side: str, text: str | None
) -> DefendedReading | None:
    """Draw a side's setting selector and results; attack the text and return the reading."""
    name: str | None = controls.setting_picker(found, side)
    if name == state.OWN:
        name = own_setting(side)
    if name is None:
        return None
    spec = controls.spec_of(found, name)
    promise = describe_promise(spec)
    st.markdown(f"{entry_shown(spec.name).summary} {promise and f'*Guarantee: {promise}.*'}")
    with st.expander("Measured on many texts", icon=":material/table:"):
        st.html(markup.description_list(_measured_facts(found, name, task, reads)))
    try:
        if reason := why_not_tried(spec, ENCODER.name):
            st.info(reason, icon=":material/model_training:")
            if command := training_command(spec):
                st.code(command, language="sh", wrap_lines=True)
            return None
        measured = _describe_measured_leak(found, name)
        return None if text is None else _attacked_sentence(spec, side, text, measured)
    except CoreError as error:
        show_error(error, title="This defence cannot be tried on the sentence")
    return None


def _measured_facts(found: Tradeoff, name: str, task: str, reads: str) -> Mapping[str, str]:
    """Return a setting's results over many texts as cell texts by label."""
    place = state.point_index(found, name)
    if place is None:
        return {"Measured": "not at this setting"}
    point = found.points[place]
    useful, leak = point.utility.get(task), leak_of(point, reads)
    kept, back = kept_usefulness(point, found.undefended), point.token_inversion
    return {
        "Utility": f"{useful.format()}, {describe_task(task)}" if useful else "not measured",
        **({"Mean utility kept": _describe_mean(kept)} if kept else {}),
        **({"Unchanged tokens": f"{back.format(0)} %"} if back else {}),
        "Leakage": f"{describe_read(leak, reads)}" if point.read_by(reads) else "not measured",
        "Found from a list": _describe_listed_attack(found, point),
        "Training": describe_minutes(point),
        "Time per text": describe_milliseconds(point),
    }


def _describe_measured_leak(found: Tradeoff, name: str) -> str:
    """Describe what the strongest attacker recovers from many sentences with a setting."""
    place = state.point_index(found, name)
    point = None if place is None else found.points[place]
    if point is None or not point.read_by("words"):
        return (
            "**Not measured on many sentences**: what a stronger attacker recovers behind this "
            "setting is unknown."
        )
    leak = leak_of(point)
    return (
        f"**Measured on {leak.n:,} sentences**: the strongest attacker recovers "
        f"{describe_leak(leak, is_bold=True)}."
    )


def _describe_listed_attack(found: Tradeoff, point: Point) -> str:
    """Describe how often an attacker with a candidate list finds each kind of word."""
    own = shipped_listed(str(found.facts.get("encoder", "")))
    shares = "" if own is None else describe_shares(own, point.defence, point.settings)
    return shares or "not tested: no evidence of safety"


def _describe_mean(kept: Mapping[str, float]) -> str:
    """Describe the mean share of utility that is kept, from the shares by task."""
    mean = sum(kept.values()) / len(kept)
    return f"{format_percent(mean)} of the advantage over guessing, over {len(kept)} tasks"


def _attacked_sentence(spec: DefenceSpec, side: str, text: str, measured: str) -> DefendedReading:
    """Defend and attack a text; draw its release, the recovered words and measured leakage."""
    odds = setting_guarantees(spec, text)
    if odds is not None:
        show_guarantees(odds)
    _show_training_note(spec)
    found = attack_defended(spec, text)
    if found.defended.tokens:
        st.html(markup.label(_release_heading(found)))
        before, after = zip(*found.defended.tokens, strict=True)
        st.html(markup.privatised_sentence(before, after))
        st.html(markup.token_legend())
        _show_unknown_tokens(before)
    elif found.defended.text is not None:
        st.html(markup.label(_release_heading(found)) + markup.plain_paragraph(found.defended.text))
    vector_panel(found.defended.vector, lead="Stored vector: ", key=f"vector-{side}")
    if found.reading is None:
        st.html(markup.label("The sentence") + markup.plain_paragraph(text))
        st.caption(
            "No live attack recovers words from these vectors without training on them; the "
            "figure's attacker was trained on them. That is no protection: a few texts with their "
            "vectors are enough for training."
        )
        st.markdown(measured)
        return found
    st.html(markup.label(_attacker_heading(spec, found)))
    st.html(markup.marked_sentence(found.reading))
    st.html(markup.wrong_words(found.reading))
    st.html(markup.legend([found.reading]))
    st.markdown(measured)
    if found.defended.told is not None:
        st.caption(_describe_decoding(found))
    return found


def _describe_decoding(found: DefendedReading) -> str:
    """Describe how the attacker decoded the released tokens, in sentences."""
    if not found.how:
        return (
            "This attacker takes each released token as the original. The figure above also "
            "includes an attacker that knows the mechanism and word frequencies, and may recover "
            "more."
        )
    if found.how == "literal":
        return (
            "This attacker takes each released token as the original. It knows the mechanism, but "
            "nothing else recovered more on its own sentences."
        )
    return (
        "This attacker answers the likeliest original tokens, from the known mechanism and the "
        f"token frequencies in {found.n_known:,} sentences of its own. On average, this recovers "
        "more than the released tokens. None of these sentences nearly repeats yours."
    )


def _show_training_note(spec: DefenceSpec) -> None:
    """Draw on what the shipped trained defence was trained; nothing for an untrained defence."""
    trained: Any = find_shipped(spec, ENCODER.name)
    if trained is None:
        return
    seed = getattr(trained, "seed", None)  # none for LEACE, which has a closed form
    by_chance = f" with random seed {seed}" if seed is not None else ""
    note = (
        f"This is the shipped defence, trained on {trained.training_['n_texts']:,} "
        f"sentences{by_chance}. The defences measured on many texts were trained on other "
        "sentences."
    )
    if getattr(trained, "against", "attribute") == "attribute":
        note += " It was trained to hide who wrote a sentence; the attack below recovers words."
    st.caption(note)


def _release_heading(found: DefendedReading) -> str:
    """Return the heading above the released tokens or text."""
    if found.defended.text is None:
        return "Released, one draw: each token's vector, shown as its nearest token"
    return f"{'Encoded' if found.defended.told is None else 'Released'}, one draw"


def _attacker_heading(spec: DefenceSpec, found: DefendedReading) -> str:
    """Return the heading above the recovered words: what this attacker knows."""
    if found.defended.told is not None:
        released = "text" if found.defended.text is not None else "vectors of tokens"
        knows = " and knows the mechanism" if found.how else ""
        return f"This quick attacker has the released {released}{knows}. It recovers:"
    if entry_shown(spec.name).is_baseline:
        return "This quick attacker recovers:"
    if found.n_known:
        return (
            f"This quick attacker knows the defence and learned from {found.n_known:,} defended "
            "sentences how to undo it. It recovers:"
        )
    return "This quick attacker was not trained for this defence. It recovers:"


def _show_unknown_tokens(tokens: tuple[str, ...]) -> None:
    """Draw how many tokens are unknown to the encoder, if any."""
    n_unknown = tokens.count("[UNK]")
    if n_unknown:
        what = "1 token is" if n_unknown == 1 else f"{n_unknown} tokens are"
        st.caption(
            f"{what} unknown to the encoder ([UNK]). It encodes only that a token is there, and "
            "only this is what the noise hides."
        )


def _shared_words(read: Mapping[str, Reading]) -> None:
    """Draw which words the quick attack recovers from both sides, or from only one."""
    a, b = (dict.fromkeys(word.word for word in reading.hits) for reading in read.values())
    both = [word for word in a if word in b]
    groups = {
        "Recovered from both": both,
        "Recovered only from A": [word for word in a if word not in b],
        "Recovered only from B": [word for word in b if word not in a],
    }
    with st.container(border=True, key="side-words"):
        for place, (title, words) in zip(st.columns(len(groups)), groups.items(), strict=True):
            none = "none of the words that this attacker can name"
            place.html(markup.recovered_words(title, words, none))
        if not_tested := untested([*read.values()], is_defended=True):
            st.caption(not_tested)


def text_or_none(text: str) -> str | None:
    """Check a text and return it; if it cannot be attacked, draw why and return None."""
    try:
        return check_text(text)
    except CoreError as error:
        show_error(error, title="There is no text to protect")
        return None
