"""What an attack recovers from the selected vectors of a map, with and without a defence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import strength
from leakscope.core.errors import CoreError
from leakscope.core.formatting import describe_leak, format_out_of_ten
from leakscope.core.intervals import percent_interval
from leakscope.core.projection.displacement import protected_vectors, sample_rows
from leakscope.core.projection.job import MapRequest
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Score
from leakscope.core.specs import DefenceSpec
from leakscope.core.units import units_of
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion.views import describe_groups
from leakscope.dashboard.projection.drawn_map import DrawnMap
from leakscope.dashboard.projection.selected_points import cached_result

ATTACK = "probe_mlc"
_MOST_ATTACKED = 50


@dataclass(frozen=True)
class Readings:
    """Readings by point, from the original vectors and from the protected ones."""

    original: dict[int, Reading] = field(default_factory=dict)
    protected: dict[int, Reading] = field(default_factory=dict)
    defence: DefenceSpec | None = None


def readings_of(
    request: MapRequest,
    drawn: DrawnMap,
    rows: list[int],
    encoder: Encoder,
    defence: DefenceSpec | None,
) -> Readings:
    """Attack at most 50 selected points, with and without the defence; empty for other encoders."""
    if request.on != answers.ENCODER or not rows:
        return Readings()
    # A random sample, since selected points come in the order of their documents.
    targets = np.array([rows[i] for i in sample_rows(len(rows), _MOST_ATTACKED)], np.int64)
    texts, key = drawn.points.texts, (request, tuple(targets.tolist()))
    with st.spinner("Attacking the selected vectors"):
        original = cached_result(
            "original", key, lambda: _attack_rows(texts, targets, drawn.vectors[targets])
        )
    if defence is None:
        return Readings(original)

    def attack_protected() -> dict[int, Reading]:
        """Attack the protected vectors of the targets."""
        vectors = protected_vectors(encoder, texts, drawn.vectors, targets, defence)
        return _attack_rows(texts, targets, vectors)

    try:
        with st.spinner("Attacking the protected vectors"):
            found = cached_result("protected", (key, defence), attack_protected)
    except CoreError:  # the page has already shown it
        return Readings(original)
    return Readings(original, found, defence)


def _attack_rows(texts: tuple[str, ...], rows: np.ndarray, vectors: Vectors) -> dict[int, Reading]:
    """Attack each vector; return the readings by point."""
    return {
        int(i): answers.uncached_reading(ATTACK, texts[i], vectors[[j]]) for j, i in enumerate(rows)
    }


def defence_label(defence: DefenceSpec) -> str:
    """Return a defence's title and strength, such as `Text to text at η 75`."""
    settings = {name: value for name, value in defence.settings if name != "seed"}
    title = DEFENCES[defence.name].title
    return f"{title} at {strength(defence.name, settings)}" if settings else title


def describe_readings(n_selected: int, found: Readings) -> str:
    """Describe what was recovered on average; empty if no text can be scored."""
    scored = {i: r for i, r in found.original.items() if r.targets}
    if not scored:
        return ""
    part = ""
    if n_selected > len(found.original):
        part = f" of {len(found.original)} texts, chosen at random,"
    guessed_recall = float(np.mean([r.prior.recall for r in scored.values()]))
    against = (
        f"An attacker who never sees the vectors gets {format_out_of_ten(guessed_recall)} right."
    )
    own = _describe_mean(list(scored.values()))
    recovers = f"From the vectors{part} the probe-started classifier recovers"
    if found.defence is None:
        groups = describe_groups(list(found.original.values()))
        return f"{recovers} {own}, n = {len(scored)}. {against} {groups}"
    protected = _describe_mean([found.protected[i] for i in scored])
    return (
        f"{recovers} {own} without the defence, and {protected} with it "
        f"({defence_label(found.defence)}), n = {len(scored)} in both cases. {against} "
        "The attack was not trained on protected vectors: one that was may recover more."
    )


def _describe_mean(found: list[Reading]) -> str:
    """Describe the mean recall as words out of ten, and the mean F1 with its interval."""
    f1 = np.array([reading.scores.f1 for reading in found])
    recall = float(np.mean([reading.scores.recall for reading in found]))
    interval = percent_interval(f1, groups=units_of([reading.text for reading in found]))
    return describe_leak(Score(float(f1.mean()), interval, len(f1)), recall, is_bold=True)
