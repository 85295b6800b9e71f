"""Which texts belong together? A map of many vectors, and what an attacker recovers from them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NoReturn

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.dashboard import cache
from leakscope.dashboard.projection import (
    controls,
    explain,
    job,
    pinned,
    selection,
    sentences,
    state,
    views,
)
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.ui import encoder_choice
from leakscope.dashboard.ui.controls import sentence_input, show_encoded_words
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_answer, show_numbers
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.state import text
from leakscope.dashboard.ui.toolbar import toolbar

QUESTION = "Which texts belong together?"

address = state.adopt_address()
encoder_choice.adopt_encoder_link()
job.adopt_map_job()
sentences.adopt_sentences_job()

headline, bar = st.container(), st.container(key="bar")


def offer_view() -> None:
    """Draw the toolbar, after all controls, since its link contains their values."""
    with bar:
        toolbar(partial(controls.show_link, address))


def stop_without_map() -> NoReturn:
    """Draw the headline and the toolbar, and stop the page's script: there is no map."""
    headline.title(QUESTION, anchor=False)
    offer_view()
    st.stop()


with st.container(key="map-frame"):
    picture, rail = st.columns([2.2, 1], gap="medium")
with rail:
    asked = controls.text_pickers()
    controls.method_pickers()
address.warn_of_refused()
encoder_choice.address().warn_of_refused()
if asked is None:
    stop_without_map()
request, points = asked
if state.is_upload_lost() and not request.is_upload:
    st.warning(
        "Reloading the page removed your file, so the map below does not show it. Choose “Your own "
        "file” to upload it again.",
        icon=":material/upload_file:",
    )
state.mark_own_in_url(request.is_upload)

job.stop_other_job(request)
try:
    with headline.skeleton(height=60):
        drawn = job.cached_map(request)
    with picture:
        drawn = drawn or job.drawn_map(request, points)
    encoder = cache.encoder(request.on) if drawn else None
except CoreError as error:
    show_error(error, title="The map cannot be drawn")
    stop_without_map()
if drawn is None or encoder is None:
    stop_without_map()

with rail:
    colour, shape, is_refused = controls.colour_pickers(drawn.points.columns, address)
    found = views.search_hits(drawn)
shown = pinned.ShownMap(request=request, drawn=drawn, colour=colour, shape=shape)
show_answer(headline, pinned.finding(shown))
if is_refused:
    st.warning(
        "These texts do not have the column in the link; another column colours the map.",
        icon=":material/link_off:",
    )
titles = ["Place a sentence on the map", "Apply a defence"]
is_defended = state.choice("defence") != "none"
facts = st.container()
on_map, defended = st.tabs(titles, default=titles[is_defended])
with on_map:
    sentence_input()
    encoded = st.container()
    typed = views.place_sentence(encoder, drawn, is_upload=request.is_upload)
    if typed is not None:
        show_encoded_words(encoded, encoder, text())
with defended:
    defence = views.defence_picker(encoder)
    moves = views.displaced_points(encoder, drawn, defence) if defence else None
with picture:
    views.draw_map(request, drawn, colour, shape, typed, moves, found)
rows = state.selected_rows(request)
with rail:
    selection.selected_texts(request, drawn, rows, encoder, defence)
offer_view()
shown = replace(shown, typed=typed, defence=defence, moves=moves)
with facts:
    views.map_facts(drawn.points, drawn.layout)
    show_numbers(st.container(), pinned.finding(shown), "map-finding")
    sentences.show_reconstruction(request, drawn, rows)
pin_button(
    "projection",
    [*address.query(), *encoder_choice.address().query()],
    partial(pinned.pinned, shown),
    has_typed=pinned.has_typed(request),
)
selection.save_map(drawn)
repeats = (each for each in pinned.commands(shown) if not each.startswith("none:"))
command_button("projection", *repeats)
explain.how_it_is_computed(request.spec, defence)
explain.caveats()
