"""Was it trained on this text? Who is found among a model's texts, and what a verdict is worth."""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from dashboard import cache
from dashboard.calm import show_error
from dashboard.leakage import how_much_leaks
from dashboard.membership import card, explain, measured, own, pinned, scores, state
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

headline = Noted(st.container())
try:
    found = cache.membership()
except CoreError as error:
    found = []
    show_error(error, title="What was measured cannot be read")
address = state.address(found)
address.adopt()
own.adopt_own_job()
toolbar(address.show_link)

one = None
if found:
    one = measured.choice(found)
    alike = [each for each in found if (each.model, each.data) == (one.model, one.data)]
    measured.finding(headline, one, len(alike))
    measured.picture(one)
    scores.picture(one)
    measured.note(headline, one)
    measured.save(one)
    measured.deciles(found, one)
else:
    measured.nothing_measured(headline)
story_button("membership", address.query(), headline, lambda _: pinned.seen(found, one))
how_much_leaks("membership", *measured.commands(found))
address.warn_of_refused()

st.header("A classifier of your own", anchor=False)
mine = own.attacked()
outcome = own.results(mine) if mine is not None else None

if one is not None or outcome is not None:
    st.header("What a verdict is worth", anchor=False)
    card.worth(one, outcome, is_simulated=mine is not None and mine.is_simulated)
if mine is not None and outcome is not None:
    st.header("One after another", anchor=False)
    card.card(mine, outcome)
explain.how_it_is_computed()
explain.caveats()
