"""The story page: the shipped stories, and the visitor's own story with its pins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from streamlit.components.v2 import component

from leakscope.core.assets import ROOT
from leakscope.core.findings.prose import Block, plain
from leakscope.core.pages import PAGES
from leakscope.core.story.deck import Page, today
from leakscope.core.story.format import Story
from leakscope.core.story.html import content_policy, html_report
from leakscope.core.story.shipped import shipped_stories, with_use
from leakscope.dashboard.story import state
from leakscope.dashboard.story.files import build_deck
from leakscope.dashboard.story.serving import presentation_address, root_path
from leakscope.dashboard.story.state import NumberedPin
from leakscope.dashboard.tradeoff.state import USE_KEY
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config

MOST_IN_HEADING = 300
"""The most characters of a heading."""

_HERE = ROOT / "dashboard" / "story"
_KEY = "story-slides"
_DONE = "_story_events_done"
"""Session key of the last event that was applied: the browser repeats those after it."""
_list = component(
    "leakscope_slide_list",
    html='<div class="slide-list"><ol></ol><div class="spoken" aria-live="polite"></div></div>',
    css=(_HERE / "slide_list.css").read_text(encoding="utf-8"),
    js=(_HERE / "slide_list.js").read_text(encoding="utf-8"),
)


def slide_list(pins: Sequence[NumberedPin], pages: Sequence[Page], shown: int) -> None:
    """Draw the list of slides; the visitor's moves, edits and selections change the story.

    Parameters
    ----------
    shown : int
        The number of the pin whose slide is shown beside the list.
    """
    slides = [
        {
            "number": each.number,
            "heading": page.heading,
            "finding": page.finding or page.heading,
            "most": MOST_IN_HEADING,
        }
        for each, page in zip(pins, pages, strict=True)
    ]
    _list(
        key=_KEY,
        data={"slides": slides, "shown": shown, "done": st.session_state.get(_DONE, 0)},
        on_events_change=_apply_events,
    )


def _apply_events() -> None:
    """Apply the visitor's new events in the slide list to the story, as a callback."""
    for event in st.session_state[_KEY].events or ():
        if event["id"] > st.session_state.get(_DONE, 0):
            st.session_state[_DONE] = event["id"]
            apply_event(event)


def apply_event(event: Mapping[str, Any]) -> None:
    """Move a slide, rename it or show it, as one event of the slide list says."""
    number = int(event["number"])
    if event["kind"] == "moved":
        state.move(number, int(event["to"]))
    elif event["kind"] == "edited":
        heading = " ".join(str(event["heading"]).split())[:MOST_IN_HEADING]
        state.edit_pin(number, heading=heading)
    else:
        state.show(number)


def headline(slot: Any, found: Story) -> None:
    """Draw the page's headline: how many stories ship, or the visitor's number of slides."""
    n = len(found.pins)
    if not n:
        slot.title(f"{len(shipped_stories())} stories are ready to present", anchor=False)
        slot.markdown(
            "Present one as it is, or choose **Use these slides** to change it and download it as "
            "a report. The button **Add to story** on every page saves the current view, with its "
            "numbers, as a slide of your own story."
        )
        return
    slides = f"{n} slide{'' if n == 1 else 's'}"
    slot.title(f"Your story: {slides}, ready to present", anchor=False)
    slot.markdown(
        "It exists only in the memory of this computer and ends with your visit: **save it** to "
        "keep it. What you typed on other pages is included only where you chose so."
    )


def shipped_story_cards() -> None:
    """Draw a card for each shipped story, with buttons to present it and to use its slides.

    Slides about a use of the vectors show the use that was chosen on the trade-off page.
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
                present_button(name, story, is_primary=not state.numbered_pins())
                st.button(
                    "Use these slides",
                    key=f"story-use-{name}",
                    icon=":material/playlist_add:",
                    help="Adds these slides to the end of your story, with the current results",
                    on_click=state.add_all,
                    args=(story,),
                )


def present_button(name: str, story: Story, *, is_primary: bool = False) -> None:
    """Draw the link that opens a story's presentation in another tab."""
    st.link_button(
        # The minutes give each link of a list its own name.
        f"Present ({story.minutes} min)" if story.minutes else "Present",
        presentation_address(name, partial(_render_presentation, story, today())),
        key=f"story-present-{name}",
        type="primary" if is_primary else "secondary",
        icon=":material/slideshow:",
        help="Opens in a new tab. Arrow keys, PageUp and PageDown: step. F: full screen. N: your "
        "notes in a second window. O: the live view. Escape: leave.",
    )


def _render_presentation(story: Story, date: str, at: str) -> tuple[str, str]:
    """Render a story's presentation; return the HTML and its content security policy."""
    deck = build_deck(story, date)
    return html_report(deck, base=at), content_policy(deck)


def own_story() -> None:
    """Draw the visitor's story: inputs of title and audience, the list and the shown slide."""
    st.session_state.setdefault(state.TITLE_KEY, state.story().title)
    left, right = st.columns(2)
    left.text_input(
        "Title",
        key=state.TITLE_KEY,
        persist_state="session",
        max_chars=300,
        help="Shown on the first slide",
    )
    right.text_input(
        "Audience",
        key=state.AUDIENCE_KEY,
        persist_state="session",
        max_chars=300,
        help="Shown below the title, for example: for a board",
    )
    deck = build_deck(state.story())
    for lack in deck.lacks:
        st.warning(plain(lack), icon=":material/report:")
    pins, at = state.numbered_pins(), state.shown_place()
    each, page = pins[at], deck.pages[at]
    order, slide = st.columns([2, 3], gap="medium")
    with order:
        st.caption("Drag a number to move its slide. Click a heading to edit it.")
        slide_list(pins, deck.pages, each.number)
        _slide_buttons(each, page.live, at)
        if page.opens:
            st.caption(plain(f"Live: {page.opens}."))
        _text_inputs(each, at)
    with slide.container(border=True, key="story-slide"):
        st.subheader(f"{at + 1}. {plain(page.heading)}", anchor=False)
        _draw_prose(page.remark)
        _slide_preview(each, page)


def _slide_buttons(each: NumberedPin, live: str, i: int) -> None:
    """Draw the buttons that open a slide's page and remove the slide."""
    number = each.number
    with st.container(horizontal=True, gap="xsmall"):
        if live:
            st.link_button(
                "Open live",
                f"{root_path()}{live}",
                key=f"story-live-{number}",
                icon=":material/open_in_new:",
                help=f"Opens this view on the page {PAGES[each.pin.page].title}, in a new tab",
            )
        st.button(
            "Remove",
            key=f"story-remove-{number}",
            icon=":material/delete:",
            help=f"Removes slide {i + 1} from the story",
            on_click=state.remove,
            args=(number,),
        )


_PARTS = (
    ("remark", "Remark on slide {}", "Shown on the slide, above the finding", 4_000),
    (
        "notes",
        "Speaker notes of slide {}",
        "Shown only in the notes window, and saved in PowerPoint",
        20_000,
    ),
)


def _text_inputs(each: NumberedPin, i: int) -> None:
    """Draw the inputs of a slide's remark and speaker notes."""
    for part, label, about, most in _PARTS:
        key = f"story-{part}-{each.number}"
        st.text_area(
            label.format(i + 1),
            getattr(each.pin, part),
            key=key,
            max_chars=most,
            help=about,
            on_change=_save_text,
            args=(each.number, part, key),
        )


def _save_text(number: int, part: str, key: str) -> None:
    """Store an edited text of a numbered pin in the story, as a callback."""
    state.edit_pin(number, **{part: str(st.session_state[key])})


def _slide_preview(each: NumberedPin, page: Page) -> None:
    """Draw a slide's content; its texts are never interpreted as markup."""
    if page.finding:
        st.markdown(f"**{plain(page.finding)}**")
    _draw_prose(page.body)
    if page.sentence:
        st.html(markup.marked_pieces(page.sentence))
    if page.figure:
        _draw_figure(page, f"story-figure-{each.number}")
    if page.table:
        rows = [dict(zip(page.table.columns, row, strict=True)) for row in page.table.rows]
        st.dataframe(rows, key=f"story-table-{each.number}", hide_index=True)
    if page.facts:
        st.html(markup.description_list(dict(page.facts)))
    _draw_prose(page.caveat)


def _draw_prose(found: Sequence[Block]) -> None:
    """Draw blocks of prose as paragraphs and list items."""
    lines = [("- " if block.is_item else "") + _as_markdown(block) for block in found]
    if lines:
        st.markdown("\n\n".join(lines))


def _as_markdown(block: Block) -> str:
    """Convert a block to Markdown, with bold runs and all other characters escaped."""
    markdown = ""
    for run in block.runs:
        text = run.text
        before, after = " " * text.startswith(" "), " " * text[1:].endswith(" ")
        inner = plain(text)
        bold = f"{before}**{inner}**{after}"
        markdown += bold if run.is_bold and inner else before + inner + after
    return markdown


def _draw_figure(page: Page, key: str) -> None:
    """Draw a slide's figure, or a caption if it cannot be drawn."""
    try:
        figure = go.Figure(dict(page.figure or {}), skip_invalid=True)
    except (TypeError, ValueError):
        st.caption("The figure of this slide cannot be drawn here.")
        return
    st.plotly_chart(figure, key=key, config=chart_config("leakscope-story"), alt=page.alt)
