"""Was it trained on this text? Who is found among a model's texts, and what a verdict is worth."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.errors import CoreError
from dashboard import cache
from dashboard.calm import show_error
from dashboard.leakage import how_much_leaks
from dashboard.membership import card, explain, measured, own, pinned, scores, state
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

headline, bar, chart = Noted(st.container()), st.container(), st.container()
shipped, own_place = st.container(), st.container()
try:
    found = cache.membership()
except CoreError as error:
    found = []
    show_error(error, title="What was measured cannot be read")
address = state.address(found)
address.adopt()
own.adopt_own_job()
with bar:
    toolbar(address.show_link)

# A file of the visitor's own is what the page is about: it comes first in the script, and stands
# below what was measured here.
with own_place:
    st.header("A classifier of your own", anchor=False)
    mine = own.attacked()
    is_own = mine is not None and not mine.is_simulated
    outcome = own.results(mine, chart if is_own else None) if mine is not None else None

one = None
with shipped:
    if found:
        if is_own:
            st.header("What was measured here", anchor=False)
        place = st.container() if is_own else headline
        one = measured.choice(found)
        alike = [each for each in found if (each.model, each.data) == (one.model, one.data)]
        measured.finding(place, one, len(alike), is_title=not is_own)
        measured.picture(one)
        scores.picture(one)
        measured.note(place, one)
        measured.save(one)
        measured.deciles(found, one)
    elif not is_own:
        measured.nothing_measured(headline)
    if is_own and mine is not None and outcome is not None:
        own.finding(headline, mine)
        see_own = partial(pinned.seen_own, mine, outcome)
        story_button("membership", [], headline, lambda _: see_own(), has_typed=None)
    else:
        story_button("membership", address.query(), headline, lambda _: pinned.seen(found, one))
    how_much_leaks("membership", *measured.commands(found))
    address.warn_of_refused()

if one is not None or outcome is not None:
    st.header("What a verdict is worth", anchor=False)
    card.worth(one, outcome, is_simulated=mine is not None and mine.is_simulated)
if mine is not None and outcome is not None:
    st.header("One after another", anchor=False)
    card.card(mine, outcome)
explain.how_it_is_computed()
explain.caveats()
