"""What do the vectors of many texts say together? A map, and what it gives away."""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from dashboard import cache, controls, encoder_choice
from dashboard.calm import plain, show_error
from dashboard.projection import controls as map_controls
from dashboard.projection import explain as explain_map
from dashboard.projection import job as map_jobs
from dashboard.projection import selection as map_selection
from dashboard.projection import state as map_state
from dashboard.projection import views as map_views

QUESTION = "Which texts belong together?"

refused = map_state.adopt_map_link(cache.samples()[0]["text"])
refused_encoder = encoder_choice.adopt_encoder_link()
map_jobs.adopt_map_job()

headline = st.container()
asked = map_controls.text_pickers()
map_controls.method_pickers()
if refused_encoder:
    refused = [*refused, f"encoder={refused_encoder}"]
if refused:
    st.warning(
        f"The address asks for what does not exist here: {plain(', '.join(refused))}.",
        icon=":material/link_off:",
    )
if asked is None:
    headline.title(QUESTION, anchor=False)
    st.stop()
request, points = asked

map_jobs.stop_other_job(request)
try:
    with headline.skeleton(height=60):
        drawn = map_jobs.known_map(request)
    drawn = drawn or map_jobs.drawn_map(request, points)
    encoder = cache.encoder(request.on) if drawn else None
except CoreError as error:
    headline.title(QUESTION, anchor=False)
    show_error(error, title="The map cannot be drawn")
    st.stop()
if drawn is None or encoder is None:
    headline.title(QUESTION, anchor=False)
    st.stop()

colour, shape, is_refused = map_controls.colour_pickers(drawn.points.columns)
map_views.finding(headline, drawn, colour)
if is_refused:
    st.warning("These texts have no such column; another one colours the map.",
               icon=":material/link_off:")  # fmt: skip
place = st.container()
st.header("Put a sentence on the map", anchor=False)
controls.sentence_input()
typed = map_views.typed_place(encoder, drawn)
st.header("Move the points by a defence", anchor=False)
defence = map_views.defence_picker(encoder)
moves = map_views.moved_points(encoder, drawn, defence) if defence else None
with place:
    rows = map_views.draw_map(request, drawn, colour, shape, typed, moves)
    map_controls.link_popover()
map_state.drop_stale_map_link()
map_selection.selected_texts(request, drawn, rows, encoder, defence)
explain_map.how_it_is_computed(request.spec)
explain_map.caveats()
