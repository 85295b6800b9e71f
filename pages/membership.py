"""Was the model trained on this text? Membership inference, and what a verdict is worth."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.finding import UNMEASURED, Finding
from leakscope.core.findings.membership import QUESTION, members_of, own_members
from leakscope.dashboard import cache
from leakscope.dashboard.membership import explain, measured, own, state, verdicts
from leakscope.dashboard.story.pinning import NOTHING_REPEATS, OWN_FILE, PinnedView, pin_button
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.toolbar import toolbar

headline, bar = st.container(), st.container()
shipped = st.container()
worth, score_tab, frequency, own_place = st.tabs(
    ["What a verdict is worth", "Scores", "Rare and frequent words", "Your own classifier"]
)
try:
    found = cache.membership()
except CoreError as error:
    found = []
    show_error(error, title="The measured results cannot be read")
address = state.address(found)
address.adopt()
own.adopt_own_job()
with bar:
    toolbar(address.show_link)

# With an upload, the page is about the upload. So the upload is processed first, although it is
# drawn below the shipped results.
view = PinnedView(finding=Finding(title=QUESTION, facts=UNMEASURED))
one = outcome = None
with own_place:
    mine = own.attack_result()
    is_own = mine is not None and not mine.is_simulated
    if mine is not None:
        place = headline if is_own else st.container()
        outcome = own.results(mine)
        answer = own_members(mine, outcome, state.curve_of(outcome))
        show_finding(place, answer, "membership-own", is_title=is_own, has_warning=True)
        if is_own:
            answer = replace(answer, commands=(NOTHING_REPEATS,))
            view = PinnedView(finding=answer, opens=OWN_FILE, is_live=False)

with shipped:
    if found:
        if is_own:
            st.header("Measured on other models", anchor=False)
        place = st.container() if is_own else headline
        one = measured.result_picker(found)
        answer = members_of(found, one)
        view = view if is_own else PinnedView(finding=answer)
        show_finding(place, answer, "membership", is_title=not is_own)
        measured.curve_captions(place, one)
        with score_tab:
            measured.score_distributions(one)
            measured.save_curve(one)
        with frequency:
            measured.frequency_deciles(found, one)
    elif not is_own:
        measured.nothing_measured(headline)
    pin_button("membership", [] if is_own else address.query(), lambda _: view)
    command_button("membership", *dict.fromkeys(each.study for each in found))
    address.warn_of_refused()

with worth:
    if one is not None or outcome is not None:
        is_simulated = mine is not None and mine.is_simulated
        verdicts.accusation_worth(one, outcome, is_simulated=is_simulated)
    if mine is not None and outcome is not None:
        st.header("A single verdict", anchor=False)
        verdicts.verdict_card(mine, outcome)
explain.how_it_is_computed()
explain.caveats()
