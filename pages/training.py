"""Does training for privacy withstand new attackers? Leakage in training, and afterwards."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.finding import UNMEASURED, Finding
from leakscope.core.findings.training import QUESTION
from leakscope.core.studies.training import summary as training_summary
from leakscope.core.studies.training.summary import (
    TABLES,
    Adversarial,
    Pretrained,
    Summary,
    UnderNoise,
)
from leakscope.dashboard import cache
from leakscope.dashboard.story.pinning import PinnedView, pin_button
from leakscope.dashboard.training import (
    adversary,
    explain,
    live_training,
    missing,
    noise,
    private,
    state,
)
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.toolbar import toolbar

headline, bar = st.container(), st.container()
found: dict[str, Summary] = {}
damaged: dict[str, CoreError] = {}
for part, study in state.STUDIES.items():
    if (training_summary.SHIPPED / f"{TABLES[study][0]}.json").exists():
        try:
            found[part] = cache.training(study)
        except CoreError as error:
            damaged[part] = error

address = state.address(found)
address.adopt()
live_training.adopt_trial()
address.warn_of_refused()
with bar:
    toolbar(address.show_link)
part = state.part_picker()
answer = Finding(title=QUESTION, facts=UNMEASURED)
if part in damaged:
    headline.title(QUESTION, anchor=False)
    show_error(damaged[part], title="The results cannot be read")
    missing.show_commands(part)
elif part not in found:
    missing.unmeasured(headline, part)
else:
    shown = found[part]
    if isinstance(shown, Adversarial):
        answer = adversary.show_adversarial(headline, shown)
    elif isinstance(shown, UnderNoise):
        answer = noise.show_under_noise(headline, shown)
    elif isinstance(shown, Pretrained):
        answer = noise.show_pretraining(headline, shown)
    else:
        answer = private.show_private(headline, shown)
    missing.warn_if_outdated(part, shown.versions)
if part == "adversary":
    st.header("Try it: train against an attacker", anchor=False)
    live_training.trial_card()
commands = answer.commands or tuple(missing.commands_of(part, found.get(part)))
answer = replace(answer, commands=commands)
pin_button("training", address.query(), lambda _: PinnedView(finding=answer))
command_button("training", *(c for each in found for c in missing.commands_of(each, found[each])))
explain.how_it_is_computed(part)
explain.caveats(part)
