"""What an attack reads from the selected vectors of a map, without the defence and with it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from core.attacks.inversion.reading import Reading
from core.defences.registry import DEFENCES
from core.errors import CoreError
from core.intervals import percent_interval
from core.projection.moves import chosen_rows, protected_vectors
from core.protocols import Encoder, Vectors
from core.results import Score
from core.said import leak_said, of_ten
from core.specs import DefenceSpec
from core.studies.tradeoff_summary import strength
from core.units import units_of
from dashboard.inversion import answers
from dashboard.inversion.views import groups_said
from dashboard.projection.drawn import DrawnMap
from dashboard.projection.picked import remember_selection
from dashboard.projection.state import MapRequest

__all__ = ["Readings", "named", "readings_of", "told"]

ATTACK = "probe_mlc"
_MOST_ATTACKED = 50


@dataclass(frozen=True)
class Readings:
    """By the position of a point: what was read from its vector, and from its protected one."""

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
    """Return what the attack reads of at most 50 selected points; nothing for other encoders."""
    if request.on != answers.ENCODER or not rows:
        return Readings()
    # A sample: the points of a loop come in the order of their documents.
    targets = np.array([rows[i] for i in chosen_rows(len(rows), _MOST_ATTACKED)], np.int64)
    texts, key = drawn.points.texts, (request, tuple(targets.tolist()))
    with st.spinner("Attacking the selected vectors"):
        original = remember_selection(
            "original", key, lambda: _read(texts, targets, drawn.vectors[targets])
        )
    if defence is None:
        return Readings(original)

    def attack_protected() -> dict[int, Reading]:
        vectors = protected_vectors(encoder, texts, drawn.vectors, targets, defence)
        return _read(texts, targets, vectors)

    try:
        with st.spinner("Attacking the protected vectors"):
            found = remember_selection("protected", (key, defence), attack_protected)
    except CoreError:  # the page has said why, where it tried to move the points
        return Readings(original)
    return Readings(original, found, defence)


def _read(texts: tuple[str, ...], rows: np.ndarray, vectors: Vectors) -> dict[int, Reading]:
    return {
        int(i): answers.unprepared_reading(ATTACK, texts[i], vectors[[j]])
        for j, i in enumerate(rows)
    }


def named(defence: DefenceSpec) -> str:
    """Return a defence with its strength, such as `Text to text at η 75`."""
    settings = {name: value for name, value in defence.settings if name != "seed"}
    title = DEFENCES[defence.name].title
    return f"{title} at {strength(defence.name, settings)}" if settings else title


def told(n_selected: int, found: Readings) -> str:
    """Return in a few sentences what was recovered, on average; empty where nothing was scored."""
    scored = {i: r for i, r in found.original.items() if r.targets}
    if not scored:
        return ""
    part = ""
    if n_selected > len(found.original):
        part = f" of {len(found.original)} of them, drawn at random,"
    guessed_recall = float(np.mean([r.prior.recall for r in scored.values()]))
    against = f"An attacker who never sees the vectors reads {of_ten(guessed_recall)}."
    own = _mean(list(scored.values()))
    reads = f"From the vectors{part} the probe-started classifier reads"
    if found.defence is None:
        apart = groups_said(list(found.original.values()))
        return f"{reads} {own}, n = {len(scored)}. {against} {apart}"
    protected = _mean([found.protected[i] for i in scored])
    return (
        f"{reads} {own} without the defence, and {protected} with it ({named(found.defence)}), "
        f"n = {len(scored)} both times. {against} The attack was not trained on protected vectors: "
        "one that was may read more."
    )


def _mean(found: list[Reading]) -> str:
    """Return what is read on average: of ten words so many, then the F1."""
    f1 = np.array([reading.scores.f1 for reading in found])
    recall = float(np.mean([reading.scores.recall for reading in found]))
    interval = percent_interval(f1, groups=units_of([reading.text for reading in found]))
    return leak_said(Score(float(f1.mean()), interval, len(f1)), recall, is_bold=True)
