"""The finding of the inversion page, for the page, the overview and stories."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.reading import sentence_finding, strongest
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import answers, state
from leakscope.dashboard.inversion.cost import cost_in_words
from leakscope.dashboard.story.pinning import PinnedView
from leakscope.dashboard.ui.leakage import invert_command

_OPENS = "with the default settings of the attacks, since a link does not contain changed settings"


def is_typed(text: str) -> bool:
    """Return whether the visitor typed the sentence, that is, it is not a sample."""
    return text not in [sample["text"] for sample in cache.samples()]


def finding(readings: Sequence[Reading], *, with_text: bool = True) -> Finding:
    """Build the finding on the recovered words; `with_text=False` leaves the text out."""
    text = readings[0].text if with_text else "YOUR SENTENCE"
    return sentence_finding(
        readings,
        cost=cost_in_words(strongest(readings)),
        commands=[command_of(reading.attack, text) for reading in readings],
        with_text=with_text,
    )


def pinned(readings: Sequence[Reading], with_text: bool) -> PinnedView:
    """Build the finding on the recovered words for a story, without the text unless `with_text`."""
    is_changed = any(state.settings_of_attack(reading.attack) for reading in readings)
    return PinnedView(
        finding=finding(readings, with_text=with_text), opens=_OPENS if is_changed else ""
    )


def command_of(attack: str, text: str) -> str:
    """Return the `leakscope invert` command of a named attack with the visitor's settings."""
    return invert_command(text, attack, dict(answers.request_for(attack, text).spec.settings))
