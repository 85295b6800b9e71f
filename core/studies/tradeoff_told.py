"""What a choice of a defence comes to, in sentences that the page and its slide share."""

from __future__ import annotations

from core.results import Score
from core.said import in_a_row, instead_said, percent_said
from core.studies.eta_outlook import kept_of
from core.studies.tradeoff_choice import (
    LEAKS_LEAST,
    Choice,
    choose,
    high,
    leak_of,
    low,
    may_lose,
)
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said, use_of

__all__ = [
    "KEEPS",
    "NOTHING_PROMISED",
    "alike_said",
    "beyond_said",
    "elsewhere_said",
    "kept_said",
    "lost_said",
    "others_said",
    "point_said",
    "sentences_said",
    "share_said",
    "store_said",
    "stored",
    "title_said",
    "unproven_said",
    "way_said",
]

NOTHING_PROMISED = "It promises nothing: it was measured against the attackers that were tried."

KEEPS = (
    "the lower end of the 95 % interval of its difference from no defence, on the same texts, does"
)
"""By what a setting counts as keeping so much of the usefulness: `tradeoff_choice.keeps`."""

_MOST_ALIKE = 3

_ALSO = {
    "words": "words",
    "attribute": "an attribute of the texts",
    "membership": "who was in the training of a classifier",
}


def point_said(point: Point) -> str:
    """Return a defence and its strength in words."""
    title = entry_shown(point.defence).title
    return f"{title}, {point.label}" if point.label else title


def title_said(choice: Choice, task: str, share: float) -> str:
    """Return the headline: on which task which setting leaks least.

    Where no defence helps it says what was not shown, never that nothing helps.
    """
    where = f"For {_on(task)}: "
    lost = f"lose at most {lost_said(choice.base, task, share)}"
    if choice.best is None:
        return f"{where}no tested defence is shown to {lost}"
    if choice.helps:
        named = point_said(choice.best)
        return f"{where}{named} {LEAKS_LEAST[choice.reads]} of settings that {lost}"
    own, none = (_amount(f"{choice.leak(point).value:.0f}", choice.reads)
                 for point in (choice.best, choice.base))  # fmt: skip
    return (
        f"{where}no defence that is shown to {lost} leaks significantly less: {own} at the least, "
        f"{none} without"
    )


def lost_said(base: Point, task: str, share: float) -> str:
    """Return how many points of usefulness may be lost.

    Examples
    --------
    >>> from core.results import Score
    >>> base = Point("none", (), {"CR": Score(81.4, chance=63.9)}, {}, None)
    >>> lost_said(base, "CR", 0.9)
    '1.8 points'
    """
    return f"{may_lose(base, task, share):.1f} points"


def share_said(base: Point, task: str, share: float) -> str:
    """Return of what a share of the usefulness is one, and how much that leaves to be lost."""
    return (
        f"{way_said(base, task, share)} is kept where at most {lost_said(base, task, share)} are "
        "lost"
    )


def way_said(base: Point, task: str, share: float) -> str:
    """Return of what a share of the usefulness is one, in figures."""
    useful = base.utility[task]
    return (
        f"{percent_said(share)} of the way from guessing ({useful.chance:.0f}) to no defence "
        f"({useful.value:.0f})"
    )


def _amount(score: str, reads: str) -> str:
    """Return a score of what leaks, with its unit."""
    return {"words": f"F1 {score}", "attribute": f"{score} % of texts"}.get(reads, f"AUC {score}")


def kept_said(point: Point, base: Point, task: str, *, is_brief: bool = False) -> str:
    """Return what of its usefulness a setting keeps, and where not `is_brief` the difference."""
    own, none = point.utility[task], base.utility[task]
    change = None if is_brief else point.change.get(task)
    beside = "" if change is None else f", {change.said(1)} on the same texts"
    return f"**{own.said(0)}** instead of {none.said(0)}{beside}"


def _on(task: str) -> str:
    return task_said(task).removeprefix("search: ")


def elsewhere_said(
    found: Tradeoff, task: str, share: float, reads: str, *, is_brief: bool = False
) -> str:
    """Return what the best setting is on other tasks of the same use, in a sentence or two."""
    use = use_of(found.measures[task])
    others = [name for name in found.tasks
              if name != task and use_of(found.measures[name]) == use]  # fmt: skip
    best = {name: choose(found, name, share, reads) for name in others}
    if not best or (is_brief and len(best) <= _MOST_ALIKE):
        return "The best setting depends on the task."
    if len(best) <= _MOST_ALIKE:
        told = [
            f"for {_on(name)} {point_said(choice.best)} "
            f"({_amount(choice.leak(choice.best).said(0), reads)})"
            if choice.best is not None and choice.helps
            else f"for {_on(name)} none is shown to help"
            for name, choice in best.items()
        ]
        return f"The best setting depends on the task: {in_a_row(told)}."
    n_helped = sum(choice.helps for choice in best.values())
    helped = f"{n_helped or 'none'} of the {len(best)} others"
    return f"The best setting depends on the task: for {helped} of this use one is shown to help."


def unproven_said(choice: Choice, point: Point, task: str) -> str:
    """Return in two sentences what may keep enough, which too few texts show."""
    own, none = leak_of(point, choice.reads), leak_of(choice.base, choice.reads)
    read = (
        f"{instead_said(own, none)} are read"
        if choice.reads == "words"
        else f"what leaks is {_amount(own.said(0), choice.reads)} instead of "
        f"{_amount(none.said(0), choice.reads)}"
    )
    return (
        f"**{point_said(point)}** may keep enough, by its value and not by its interval: "
        f"{kept_said(point, choice.base, task)}, and {read}. Whether it does was not resolvable "
        f"on {point.utility[task].n:,} texts."
    )


def alike_said(choice: Choice) -> str:
    """Return which settings do not leak significantly more than the best; empty for none."""
    if not choice.alike:
        return ""
    named = [point_said(point) for point in choice.alike[:_MOST_ALIKE]]
    more = len(choice.alike) - _MOST_ALIKE
    if more > 0:
        named.append(f"{more} more")
    corrected = ", by corrected intervals" if choice.n_compared > 1 else ""
    return f"Not significantly different{corrected}: {in_a_row(named)}."


def stored(found: Tradeoff, task: str) -> int:
    """Return among how many texts was searched; 0 for other tasks, and where it was not kept."""
    if use_of(found.measures[task]) != "search":
        return 0
    own = (each["n_train"] for each in found.facts.get("subsets", ()) if task in each["tasks"])
    return int(next(own, found.facts.get("n_searched") or 0))


def store_said(found: Tradeoff, task: str) -> str:
    """Return among how many texts was searched, in a sentence; empty where that is not known."""
    if not (n_stored := stored(found, task)):
        return ""
    return f"{n_stored:,} stored texts were searched: what a larger store loses was not measured."


def sentences_said(found: Tradeoff, leak: Score, reads: str) -> str:
    """Return of what the leakage is, which is not the task's own, in a sentence."""
    if reads == "membership":
        named = task_said(str(found.facts.get("task", "")).partition("=")[0])
        return f"Membership is that of texts on which a classifier was trained: {named}."
    if reads == "attribute":
        return f"The attribute is that of {leak.n:,} texts that are none of the task's."
    return f"What leaks was measured on {leak.n:,} sentences that are none of the task's texts."


def beyond_said(point: Point, base: Point, reads: str) -> str:
    """Return what else leaks significantly more behind a setting than without, and what may.

    Empty where all else that was tried without a defence was tried behind it, and none leaks more.
    """
    tried = [what for what in READS if what != reads and base.read_by(what)]
    more = [
        f"{_ALSO[what]} ({_amount(leak_of(point, what).said(0), what)} instead of "
        f"{_amount(leak_of(base, what).said(0), what)})"
        for what in tried
        if point.read_by(what) and low(leak_of(point, what)) > high(leak_of(base, what))
    ]
    untested = [_ALSO[what] for what in tried if not point.read_by(what)]
    told = [f"**More leaks behind it**: {in_a_row(more)}."] if more else []
    if untested:
        told.append(f"Not tested behind it: {in_a_row(untested)}. That is no evidence of safety.")
    return " ".join(told)


def others_said(found: Tradeoff, point: Point, *, is_brief: bool = False) -> str:
    """Return what a setting keeps of all tasks, in a sentence; empty where there is one alone."""
    kept = kept_of(point, found.undefended)
    if len(kept) < 2:
        return ""
    least = min(kept, key=lambda task: kept[task])
    named = "" if is_brief else f" ({task_said(least)})"
    return (
        f"Over all {len(kept)} tasks it keeps {percent_said(sum(kept.values()) / len(kept))} of "
        f"the way from guessing to no defence, at worst {percent_said(kept[least])}{named}."
    )
