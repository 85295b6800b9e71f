"""The page of stories: those that ship, the visitor's own pin by pin, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from core.story.deck import Page, today
from core.story.format import PAGES, Story
from core.story.html import content_policy, html_report
from core.story.prose import Block
from core.story.shipped import shipped_stories, with_use
from dashboard import markup
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.story import state
from dashboard.story.files import deck_of
from dashboard.story.serving import base, show_at
from dashboard.story.state import Placed
from dashboard.tradeoff.state import USE_KEY

__all__ = ["finding", "own_story", "present_button", "shipped"]


def finding(slot: Any, found: Story) -> None:
    """Say what is there to be told."""
    n = len(found.pins)
    if not n:
        slot.title(f"{len(shipped_stories())} stories are ready to be told", anchor=False)
        slot.markdown(
            "Present one as it is, or begin with its slides. **Add to story** on every page pins "
            "what you see there, with the numbers it rests on; here you put it in order."
        )
        return
    slides = f"{n} slide{'' if n == 1 else 's'}"
    slot.title(f"Your story: {slides}, ready to be told", anchor=False)
    slot.markdown(
        "It is in the memory of this computer alone, and ends with your visit: **save it** to keep "
        "it. What you typed on other pages is in it only where you said so."
    )


def shipped() -> None:
    """Draw the stories that ship, each with what can be done with it.

    Their slides about a use of the vectors follow what was chosen on the page of trade-offs.
    """
    stories = shipped_stories()
    if use := st.session_state.get(USE_KEY):
        stories = {name: with_use(story, use) for name, story in stories.items()}
    for place, (name, story) in zip(st.columns(len(stories)), stories.items(), strict=True):
        with place.container(border=True, height="stretch", key=f"story-card-{name}"):
            st.subheader(story.title, anchor=False)
            st.markdown(f"{plain(story.audience)}.")
            st.caption(f"{len(story.pins)} slides and a title, about {story.minutes} minutes")
            with st.container(horizontal=True, gap="xsmall"):
                present_button(name, story, is_primary=not state.placed())
                st.button(
                    "Use its slides",
                    key=f"story-use-{name}",
                    icon=":material/playlist_add:",
                    help="Puts its slides at the end of your story, told from what is measured now",
                    on_click=state.add_all,
                    args=(story,),
                )


def present_button(name: str, story: Story, *, is_primary: bool = False) -> None:
    """Draw the link that opens a presentation in a window of its own."""
    st.link_button(
        f"Present ({story.minutes} min)"
        if story.minutes
        else "Present",  # told apart where links are listed
        show_at(name, partial(_document, story, today())),
        key=f"story-present-{name}",
        type="primary" if is_primary else "secondary",
        icon=":material/slideshow:",
        help="In a tab of its own. Arrows, PageUp and PageDown step; F or Full screen, below the "
        "slide, fills the screen, N opens your notes in a second window, O opens the view live, "
        "Escape leaves.",
    )


def _document(story: Story, date: str, at: str) -> tuple[str, str]:
    """Return a presentation, and what it may do; in the thread of whoever asks for it."""
    deck = deck_of(story, date)
    return html_report(deck, base=at), content_policy(deck)


def own_story() -> None:
    """Draw the visitor's story: its title, and each pin with what they say of it."""
    st.session_state.setdefault(state.TITLE_KEY, state.story().title)
    left, right = st.columns(2)
    left.text_input(
        "Title",
        key=state.TITLE_KEY,
        persist_state="session",
        max_chars=300,
        help="Stands on the first slide",
    )
    right.text_input(
        "For whom",
        key=state.AUDIENCE_KEY,
        persist_state="session",
        max_chars=300,
        help="Stands below the title, such as: for a board",
    )
    deck = deck_of(state.story())
    for lack in deck.lacks:
        st.warning(plain(lack), icon=":material/report:")
    pins = state.placed()
    for i, (each, page) in enumerate(zip(pins, deck.pages, strict=True)):
        with st.container(border=True, key=f"story-pin-{each.number}"):
            _pin(each, page, i, len(pins))


def _pin(each: Placed, page: Page, i: int, n: int) -> None:
    st.subheader(f"{i + 1}. {plain(page.heading)}", anchor=False)
    _buttons(each, page.live, i, n)
    if page.opens:
        st.caption(plain(f"Live: {page.opens}."))
    with st.expander("Heading, remark and notes", icon=":material/edit_note:"):
        _texts(each)
    shown = st.expander(
        "What the slide shows",
        key=f"story-shown-{each.number}",
        icon=":material/visibility:",
        on_change="rerun",
    )
    if shown.open:
        with shown:
            _shown(each, page)


def _buttons(each: Placed, live: str, i: int, n: int) -> None:
    number = each.number
    with st.container(horizontal=True, gap="xsmall"):
        for label, icon, by, stands in (
            ("Up", "arrow_upward", -1, i > 0),
            ("Down", "arrow_downward", 1, i < n - 1),
        ):
            st.button(
                label,
                key=f"story-{label}-{number}",
                icon=f":material/{icon}:",
                help=f"Moves slide {i + 1} {label.lower()}",
                disabled=not stands,
                on_click=state.move,
                args=(number, by),
            )
        st.button(
            "Remove",
            key=f"story-remove-{number}",
            icon=":material/delete:",
            help=f"Takes slide {i + 1} out of the story",
            on_click=state.remove,
            args=(number,),
        )
        if live:
            st.link_button(
                "Open live",
                f"{base()}{live}",
                key=f"story-live-{number}",
                icon=":material/open_in_new:",
                help=f"Opens the page {PAGES.get(each.pin.page, '')} at this view, in a tab",
            )


_PARTS = (
    ("heading", "Heading", "Instead of the finding; leave it empty to show that", 300),
    ("remark", "Remark", "Stands on the slide, above the finding", 4_000),
    ("notes", "Notes for the speaker", "In the window of notes alone, and in PowerPoint", 20_000),
)


def _texts(each: Placed) -> None:
    for part, label, about, most in _PARTS:
        key = f"story-{part}-{each.number}"
        drawn = st.text_input if part == "heading" else st.text_area
        drawn(
            label,
            getattr(each.pin, part),
            key=key,
            max_chars=most,
            help=about,
            on_change=_write,
            args=(each.number, part, key),
        )


def _write(number: int, part: str, key: str) -> None:
    state.write(number, **{part: str(st.session_state[key])})


def _shown(each: Placed, page: Page) -> None:
    """Draw a slide as it will be told; nothing in it is taken for markup."""
    if page.finding:
        st.markdown(f"**{plain(page.finding)}**")
    _prose(page.body)
    if page.sentence:
        st.html(markup.marked_pieces(page.sentence))
    if page.figure:
        _figure(page, f"story-figure-{each.number}")
    if page.table:
        rows = [dict(zip(page.table.columns, row, strict=True)) for row in page.table.rows]
        st.dataframe(rows, key=f"story-table-{each.number}", hide_index=True)
    if page.facts:
        st.html(markup.facts(dict(page.facts)))
    _prose(page.caveat)


def _prose(found: Sequence[Block]) -> None:
    lines = [("- " if block.is_item else "") + _marked(block) for block in found]
    if lines:
        st.markdown("\n\n".join(lines))


def _marked(block: Block) -> str:
    """Return a block as Markdown in which no letter of it is markup."""
    told = ""
    for run in block.runs:
        text = run.text
        before, after = " " * text.startswith(" "), " " * text[1:].endswith(" ")
        inner = plain(text)
        told += f"{before}**{inner}**{after}" if run.is_bold and inner else before + inner + after
    return told


def _figure(page: Page, key: str) -> None:
    try:
        figure = go.Figure(dict(page.figure or {}), skip_invalid=True)
    except (TypeError, ValueError):
        st.caption("The figure of this slide cannot be drawn here.")
        return
    st.plotly_chart(figure, key=key, config=chart_config("leakscope-story"), alt=page.alt)
