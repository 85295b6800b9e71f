"""Does training for privacy hold? What it promised, and what attackers read who came after it."""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from core.studies import training_summary
from core.studies.training_points import Adversarial, Pretrained, UnderNoise
from core.studies.training_summary import FILES, Summary
from dashboard import cache
from dashboard.calm import show_error
from dashboard.leakage import how_much_leaks
from dashboard.origin import show_origin
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar
from dashboard.training import (
    adversary,
    explain,
    live,
    missing,
    noise,
    pinned,
    pretraining,
    private,
    state,
)

headline, bar = Noted(st.container()), st.container()
found: dict[str, Summary] = {}
damaged: dict[str, CoreError] = {}
for part, study in state.STUDIES.items():
    if (training_summary.SHIPPED / FILES[study]).exists():
        try:
            found[part] = cache.training(study)
        except CoreError as error:
            damaged[part] = error

address = state.address(found)
address.adopt()
live.adopt_trial()
address.warn_of_refused()
with bar:
    toolbar(address.show_link)
part = state.part_picker()
if part in damaged:
    headline.title(missing.QUESTION, anchor=False)
    show_error(damaged[part], title="What was measured cannot be read")
    missing.show_commands(part)
elif part not in found:
    missing.unmeasured(headline, part)
else:
    shown = found[part]
    if isinstance(shown, Adversarial):
        adversary.show(headline, shown)
    elif isinstance(shown, UnderNoise):
        noise.show(headline, shown)
    elif isinstance(shown, Pretrained):
        pretraining.show(headline, shown)
    else:
        private.show(headline, shown)
    missing.say_if_former(part, shown.versions)
    show_origin(shown.provenances)
if part == "adversary":
    st.header("Spring the trap here", anchor=False)
    live.trial()
story_button("training", address.query(), headline, lambda _: pinned.seen(part, found.get(part)))
how_much_leaks("training", *(c for each in found for c in missing.commands_of(each, found[each])))
explain.how_it_is_computed(part)
explain.caveats(part)
