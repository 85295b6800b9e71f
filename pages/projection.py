"""What do the vectors of many texts say together? A map, and what it gives away."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import streamlit as st

from core.errors import CoreError
from dashboard import cache, encoder_choice
from dashboard.calm import show_error
from dashboard.controls import sentence_input, words_encoded
from dashboard.leakage import how_much_leaks
from dashboard.projection import controls, explain, job, pinned, selection, sentences, state, views
from dashboard.state import text
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

QUESTION = "Which texts belong together?"

address = state.adopt()
encoder_choice.adopt_encoder_link()
job.adopt_map_job()
sentences.adopt_sentences_job()

headline, bar = Noted(st.container()), st.container(key="bar")


def offer_view() -> None:
    """Draw Present, Link and Save: last, since the address holds what stands below."""
    with bar:
        toolbar(partial(controls.show_link, address))


def stop_without_map() -> NoReturn:
    """End the page where there is no map, or not yet."""
    headline.title(QUESTION, anchor=False)
    offer_view()
    st.stop()


asked = controls.text_pickers()
controls.method_pickers()
address.warn_of_refused()
encoder_choice.address().warn_of_refused()
if asked is None:
    stop_without_map()
request, points = asked
if state.is_own_forgotten() and not request.is_upload:
    st.warning(
        "Your file was kept for this visit alone and is forgotten since the page was reloaded: "
        "the map below is not of it. Choose “Your own file” to draw it again.",
        icon=":material/upload_file:",
    )
state.tell_own(request.is_upload)

job.stop_other_job(request)
try:
    with headline.skeleton(height=60):
        drawn = job.known_map(request)
    drawn = drawn or job.drawn_map(request, points)
    encoder = cache.encoder(request.on) if drawn else None
except CoreError as error:
    show_error(error, title="The map cannot be drawn")
    stop_without_map()
if drawn is None or encoder is None:
    stop_without_map()

colour, shape, is_refused = controls.colour_pickers(drawn.points.columns, address)
views.finding(headline, drawn, colour)
if is_refused:
    st.warning(
        "These texts have no such column; another one colours the map.",
        icon=":material/link_off:",
    )
place = st.container()
st.header("Put a sentence on the map", anchor=False)
sentence_input()
encoded = st.container()
typed = views.typed_place(encoder, drawn)
if typed is not None:
    words_encoded(encoded, encoder, text())
st.header("Move the points by a defence", anchor=False)
defence = views.defence_picker(encoder)
moves = views.moved_points(encoder, drawn, defence) if defence else None
with place:
    rows = views.draw_map(request, drawn, colour, shape, typed, moves)
offer_view()
shown = pinned.Shown(
    request=request,
    drawn=drawn,
    colour=colour,
    shape=shape,
    typed=typed,
    defence=defence,
    moves=moves,
)
story_button(
    "projection",
    [*address.query(), *encoder_choice.address().query()],
    headline,
    partial(pinned.seen, shown),
    has_typed=pinned.has_typed(request),
)
selection.save_map(drawn)
selection.selected_texts(request, drawn, rows, encoder, defence)
repeats = (each for each in pinned.commands(shown) if not each.startswith("none:"))
how_much_leaks("projection", *repeats)
explain.how_it_is_computed(request.spec, defence)
explain.caveats()
