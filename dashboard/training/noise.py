"""Networks that only ever see noise (Tables 4 and 5): what they are worth at each η."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.defences.registry import DEFENCES
from core.defences.trained.under_noise.registry import READERS
from core.errors import CoreError
from core.figures.training_noise import utility_figure
from core.results import Score
from core.specs import DefenceSpec
from core.spreadsheets import table_csv
from core.studies import read_under_noise
from core.studies.in_order import TEXT, TOKEN, by_order, nothing_learnt
from core.studies.odds import ODDS
from core.studies.privacy_paper import constrained_alike
from core.studies.training_points import Constrained, UnderNoise
from core.tasks.names import task_said
from dashboard import cache
from dashboard.calm import plain, show_error
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.story.pinning import note_figure
from dashboard.tradeoff.promised import HARDLY_ANY, odds_promised, odds_sentence
from dashboard.training.state import offer

__all__ = ["PAPER", "beside", "odds_at", "show"]

PAPER = (
    "Hollow diamonds: Qu et al. (2021), on BERT's word embeddings, at the η of ours at which as "
    "many tokens come back."
)
Read = Mapping[tuple[str, float], Score]
"""What is read, by mechanism and η."""

_NOTHING_LEARNT = "This network learns nothing here, with noise or without"
_NO_PAPER = "Of this task the paper prints nothing."


def show(slot: Any, found: UnderNoise) -> None:
    """Draw the part: its finding in the slot, the curves, and their numbers."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = offer("task", "Task", found.tasks, task_said, "What the texts are sorted by")
        reader = offer(
            "network", "Network", found.readers_of(task), lambda name: READERS[name].title,
            "What is trained on what users send: their word embeddings stay as they are",
        )  # fmt: skip
    points, read = found.of(task, reader), _read_at()
    _finding(slot, task, reader, points)
    alt = "Accuracy by η for each thing that users send, with that without noise"
    note_figure(slot, lambda: utility_figure(points), alt)
    st.plotly_chart(
        utility_figure(points),
        key="training-noise",
        config=chart_config("leakscope-under-noise"),
        alt=f"{alt}; the table below holds the same numbers",
    )
    st.caption(
        "Left is private, up is useful. Filled: measured here, with 95 % intervals. "
        + (
            PAPER
            if any(point.theirs is not None for point in points)
            else beside(constrained_alike(task, reader))
        )
    )
    _say_read(points, read)
    rows = [_row(point, read) for point in points]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-noise-table", hide_index=True)
        save_csv(lambda: table_csv(rows), "under-noise", about="A row for each η")


def _finding(slot: Any, task: str, reader: str, measured: Sequence[Constrained]) -> None:
    points, others = _arms(measured)
    null = next((point for point in points if math.isinf(point.eta)), None)
    guesses = "" if null is None else nothing_learnt(null.accuracy)
    at = {(point.mechanism, point.eta): point for point in points if not guesses}
    etas = sorted({eta for mechanism, eta in at if mechanism == TEXT and (TOKEN, eta) in at})
    pairs = {eta: (at[TEXT, eta], at[TOKEN, eta]) for eta in etas}
    rest = by_order({eta: (text.accuracy, token.accuracy, text.from_token)
                     for eta, (text, token) in pairs.items()})  # fmt: skip
    title = _title(etas, rest.pop("above"))
    slot.title(_NOTHING_LEARNT if guesses else title, anchor=False)
    noisy = [point for point in points if math.isfinite(point.eta)]
    told = []
    if null is not None:
        told.append(f"Without noise the {READERS[reader].title} reaches "
                    f"**{null.accuracy.said()}** %.")  # fmt: skip
    told += [guesses] if guesses else []
    for mechanism in dict.fromkeys(point.mechanism for point in noisy):
        own = [point for point in noisy if point.mechanism == mechanism]
        low, high = own[0], own[-1]
        said = f"{DEFENCES[mechanism].title}: **{low.accuracy.said()}** at η {low.eta:g}"
        said += "" if high is low else f", **{high.accuracy.said()}** at η {high.eta:g}"
        told.append(f"{said}.")
    told += _other_arm(others)
    changes = [f"**{text.from_token.said()}** at η {eta:g}" for eta, (text, _) in pairs.items()
               if text.from_token is not None]  # fmt: skip
    if changes:
        told.append("Text to text above token representation, in points on the same texts: "
                    f"{', '.join(changes)}.")  # fmt: skip
    for how, where in rest.items():
        if where:
            told.append(f"{how.capitalize()} at η {', '.join(f'{eta:g}' for eta in where)}.")
    slot.markdown(f"**{plain(task_said(task))}**: {' '.join(told)}")
    promises = [
        odds_sentence(mechanism, [p.eta for p in own], own[0].releases)
        for mechanism in dict.fromkeys(point.mechanism for point in noisy)
        if (own := [point for point in noisy if point.mechanism == mechanism])
    ]
    if said := " ".join(filter(None, promises)):
        if said.count(HARDLY_ANY) == said.count(" at η "):  # each of them: told once
            said = f"{said.replace(HARDLY_ANY, '')} All of that is almost no promise."
        slot.markdown(f"**What these η promise.** {plain(said)}")
    some = points[0]
    slot.caption(
        f"Trained on {some.n_train:,} texts and tested on {some.accuracy.n:,}; {_seeds(some)}. "
        f"{_how_often(noisy)}Guessing the greater class reaches {some.accuracy.chance:.1f}. 95 % "
        "intervals in brackets."
    )


def _arms(points: Sequence[Constrained]) -> tuple[list[Constrained], list[Constrained]]:
    """Return the points of the arm that was measured at more η, and the rest.

    The arms are noise drawn once for a training text, and drawn afresh in every epoch; points
    without noise belong to the first of the two lists.
    """
    once = [point for point in points if point.releases == 1]
    fresh = [point for point in points if point.releases > 1]
    more, fewer = (once, fresh) if len(once) >= len(fresh) else (fresh, once)
    return [point for point in points if point.releases == 0 or point in more], fewer


def _other_arm(points: Sequence[Constrained]) -> list[str]:
    """Return what the arm that was measured at fewer η reaches, a sentence a mechanism."""
    told = []
    for mechanism in dict.fromkeys(point.mechanism for point in points):
        own = [point for point in points if point.mechanism == mechanism]
        at = ", ".join(f"**{point.accuracy.said()}** at η {point.eta:g}" for point in own)
        told.append(f"{_released(own[0])}: {DEFENCES[mechanism].title} {at} ({_seeds(own[0])}).")
    return told


def _released(point: Constrained) -> str:
    times = "once" if point.releases == 1 else f"{point.releases} times"
    return f"With each training text released {times}"


def _seeds(point: Constrained) -> str:
    return f"{point.n_seeds} seed{'s' * (point.n_seeds != 1)}"


def _how_often(noisy: Sequence[Constrained]) -> str:
    """Return how often a training text is released, for the odds are of all releases."""
    told: dict[int, list[str]] = {}
    for point in noisy:
        told.setdefault(point.releases, []).append(DEFENCES[point.mechanism].title.lower())
    if set(told) == {1}:
        return "Each training text is released once. "
    said = "; ".join(
        f"{', '.join(dict.fromkeys(names))}: {n} times" for n, names in sorted(told.items())
    )
    composed = "the odds are composed over all of them. "
    return f"A training text is released once per epoch ({said}); {composed}" if told else ""


def _title(etas: Sequence[float], above: Sequence[float]) -> str:
    if not etas:
        return "What a network is worth that only ever sees noise"
    if len(above) == len(etas):
        where = {1: "the one", 2: "both"}.get(len(etas), f"all {len(etas)}")
        return f"Replacing words costs less than moving their vectors, at {where} η measured"
    if not above:
        at = f"at none of {len(etas)} η" if len(etas) > 1 else "at the one η measured"
        return f"Replacing words costs not surely less than moving their vectors, {at}"
    return f"Replacing words costs less than moving their vectors at {len(above)} of {len(etas)} η"


def _read_at() -> Read:
    """Return what was measured to be read at each η; nothing where that is missing or damaged."""
    if not read_under_noise.SHIPPED.exists():
        return {}
    try:
        return cache.read_under_noise()
    except CoreError as error:
        show_error(error, title="What is read of what is sent cannot be told")
        return {}


def _say_read(points: Sequence[Constrained], read: Read) -> None:
    """Say what an attacker reads at the least and the greatest η of each mechanism."""
    told = []
    for mechanism in dict.fromkeys(point.mechanism for point in points):
        etas = [p.eta for p in points if p.mechanism == mechanism and (mechanism, p.eta) in read]
        ends = [f"**{read[mechanism, eta].said()}** at η {eta:g}"
                for eta in sorted({*etas[:1], *etas[-1:]})]  # fmt: skip
        if ends:
            told.append(f"{DEFENCES[mechanism].title}: {', '.join(ends)}.")
    if told:
        some = next(iter(read.values()))
        st.markdown(
            "**What is read of what is sent**: F1 of words, by an attacker who knows the mechanism "
            "and takes the likeliest words, on other sentences than these, of which each was sent "
            f"once (guessing reaches {some.chance:.1f}; n {some.n:,} over all seeds). An attacker "
            "who has several releases of a text reads more. "
            f"{' '.join(told)}"
        )


def _row(point: Constrained, read: Read) -> dict[str, Any]:
    leak = read.get((point.mechanism, point.eta))
    return {
        "sends": DEFENCES[point.mechanism].title,
        "η": "none" if math.isinf(point.eta) else f"{point.eta:g}",
        "releases of a text": point.releases,
        ODDS.lower(): odds_at(point.mechanism, point.eta, point.releases),
        "accuracy, %": point.accuracy.said(),
        "words read of one release, F1": "–" if leak is None else leak.said(),
        "change by noise, points": "–" if point.by_noise is None else point.by_noise.said(),
        "beside no constraint, points": "–" if point.change is None else point.change.said(),
        "the paper's η": "–" if point.paper_eta is None else f"{point.paper_eta}",
        "the paper's, %": "–" if point.theirs is None else f"{point.theirs:.1f}",
        "texts trained on": point.n_train,
    }


def beside(alike: str) -> str:
    """Return what stands beside figures of a task that the paper does not have."""
    return plain(f"{_NO_PAPER} {alike}".strip())


def odds_at(mechanism: str, eta: float, releases: int) -> str:
    """Return the odds that a mechanism promises at an η, the best first; nothing without noise.

    They are composed over all releases of a text.
    """
    if math.isinf(eta):
        return "nothing"
    return odds_promised(DefenceSpec.of(mechanism, {"eta": eta}), releases)
