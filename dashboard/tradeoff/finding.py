"""The answer of the page of trade-offs: what leaks significantly less and stays useful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.results import Score
from core.said import instead_said, leak_said
from core.specs import DefenceSpec
from core.studies.tradeoff_choice import (
    Choice,
    choose,
    high,
    leak_of,
    listed_said,
    low,
    reads_of,
    unproven,
    untimed,
)
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import ATTACKERS_SINCE
from core.studies.tradeoff_setting import promise_said
from core.studies.tradeoff_summary import Point, Tradeoff
from core.studies.tradeoff_told import (
    NOTHING_PROMISED,
    alike_said,
    beyond_said,
    elsewhere_said,
    kept_said,
    others_said,
    point_said,
    sentences_said,
    share_said,
    store_said,
    title_said,
    unproven_said,
)
from core.tasks.names import task_said
from dashboard.promise import is_hardly_any, show_promises
from dashboard.tradeoff.promised import promised

if TYPE_CHECKING:
    from core.defences.metric_dp.promise import Promises

__all__ = ["corrected_said", "finding", "missing_said", "read_said", "time_said"]

_ENOUGH = 20_000
"""Sentences from which an attacker is not called weak for what it was taught."""

_READS = {
    "words": "The strongest attacker who knows the defence reads {}",
    "attribute": "The strongest attacker who knows the defence names the attribute of {} % of "
    "texts instead of {} %",
    "membership": "The strongest attack tells texts of the training from others with an AUC of {} "
    "instead of {}",
}
_MEASURES = {
    "attribute": "an attribute named in {} % of texts",
    "membership": "an AUC of {}",
}
_UNMEASURED = {
    "attribute": "an attribute inferred through it",
    "membership": "members of the training told apart",
}


def finding(
    slot: Any, found: Tradeoff, task: str, share: float, reads: str, *, is_own: bool = False
) -> None:
    """Draw the answer to the page's question.

    Parameters
    ----------
    is_own : bool
        The rows are the visitor's own: the answer says that it is about these.
    """
    choice = choose(found, task, share, reads)
    best = choice.best
    if best is None or not choice.helps:
        slot.title(_title(choice, task, share, is_own=is_own), anchor=False)
        maybe = unproven(found, task, share, reads)
        if maybe is not None:
            told = unproven_said(choice, maybe, task)
            listed = listed_said(str(found.facts.get("encoder", "")), maybe)
            slot.markdown(f"{told} {beyond_said(maybe, choice.base, reads)} {listed}")
        slot.markdown(
            f"{_no_help(choice, task, share)} Access control, encryption and retention come first; "
            f"what they save was not measured. {elsewhere_said(found, task, share, reads)}"
        )
        _say_if_weak(slot, found, reads)
        return
    own, base = choice.leak(best), choice.leak(choice.base)
    odds = _odds(choice)
    is_weak = odds is not None and is_hardly_any(odds)
    but = ", and promises almost nothing" if is_weak and choice.promising is best else ""
    slot.title(f"{_title(choice, task, share, is_own=is_own)}{but}", anchor=False)
    slot.markdown(
        f"{_read_instead(own, base, reads)}{_guessing(reads, base)}. Usefulness for "
        f"{task_said(task)} is {kept_said(best, choice.base, task)} (95 % intervals in "
        f"brackets{corrected_said(choice)}): {share_said(choice.base, task, share)}. "
        f"{beyond_said(best, choice.base, reads)} {sentences_said(found, own, reads)} "
        f"{store_said(found, task)} {others_said(found, best)} {alike_said(choice)} "
        f"{elsewhere_said(found, task, share, reads)}"
    )
    maybe = unproven(found, task, share, reads)
    if maybe is not None and high(leak_of(maybe, reads)) < low(own):
        beyond = beyond_said(maybe, choice.base, reads)
        slot.markdown(f"{unproven_said(choice, maybe, task)} {beyond}")
    slot.markdown(listed_said(str(found.facts.get("encoder", "")), best))
    if odds is None or choice.promising is not best:
        slot.markdown(_promised_or_not(choice, share))
    if odds is not None:
        held = choice.promising
        it = "It" if held is None or held is best else point_said(held)
        show_promises(
            odds, slot, lead=f"{it} promises {'almost nothing' if is_weak else 'something'}."
        )
    _say_if_weak(slot, found, reads)


def _title(choice: Choice, task: str, share: float, *, is_own: bool) -> str:
    told = title_said(choice, task, share)
    return f"In your study, {told[:1].lower()}{told[1:]}" if is_own else told


def corrected_said(choice: Choice) -> str:
    """Return that leakage was corrected for the number of settings compared, as a clause."""
    n = choice.n_compared
    return f"; leakage corrected for choosing among {n} settings" if n > 1 else ""


def _odds(choice: Choice) -> Promises | None:
    """Return what the best that promises something promises, as far as it can be told."""
    if choice.promising is None:
        return None
    found = promised(choice.promising.spec)
    return found and found.after(choice.promising.releases)


def read_said(score: Score, reads: str) -> str:
    """Return what is read as a clause, such as `about 1 of 10 words (F1 12 [10, 14])`."""
    if reads == "words":
        return leak_said(score)
    return _MEASURES[reads].format(score.said(0))


def _read_instead(own: Score, base: Score, reads: str) -> str:
    """Return what is read through a defence beside what is read without."""
    if reads == "words":
        return _READS[reads].format(instead_said(own, base))
    told = _READS[reads].format(f"**{own.said(0)}**", f"**{base.said(0)}**")
    return f"{told}, {base.value - own.value:.0f} points less"


def missing_said(found: Tradeoff) -> str:
    """Return what was not measured of these defences, in a sentence; empty where all was."""
    missing = [told for what, told in _UNMEASURED.items() if what not in reads_of(found)]
    if all(p.milliseconds is None and p.training_minutes is None for p in found.points):
        missing.append("what it costs in time")
    if not missing:
        return ""
    told = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} or {missing[-1]}"
    only = " and ".join(READS[what] for what in reads_of(found))
    return f"Measured behind each defence: {only}. Not measured: {told}."


def time_said(found: Tradeoff, left: Tradeoff, most: float | None, shown: Point) -> str:
    """Return which settings a limit of time leaves out, and which it cannot judge, in a sentence.

    Parameters
    ----------
    left : Tradeoff
        What the limit leaves of `found`.
    shown : Point
        What the headline is of.
    """
    if most is None:
        return ""
    n, n_untimed = len(found.points), len(untimed(left))
    n_slower = n - len(left.points)
    verb, are = ("takes", "is") if n_slower == 1 else ("take", "are")
    base = left.undefended.milliseconds
    told = f"{n_slower} of {n} settings {verb} more than {most:g} ms a text and {are} left out."
    if n_untimed:
        told += (
            f" {n_untimed} {'was' if n_untimed == 1 else 'were'} not timed: kept, drawn hollow and "
            "marked “not timed”."
            + " The one in the headline is among them."
            * (shown.milliseconds is None)
        )
    if base is not None and base > most:
        told += " No defence takes longer, too: it stays, since all are held against it."
    return told


def _guessing(reads: str, base: Score) -> str:
    """Say what guessing reaches where that is no small number."""
    return f" (guessing: {base.chance:.0f})" if reads != "words" and base.chance > 0 else ""


def _say_if_weak(slot: Any, found: Tradeoff, reads: str = "words") -> None:
    """Say where the attacker learnt from few texts: what it does not read is not thereby safe."""
    n_texts = found.facts.get("n_auxiliary", _ENOUGH)
    if reads == "words" and n_texts < _ENOUGH:
        slot.warning(
            f"A lower bound: the attacker of these figures learnt from {n_texts:,} sentences. The "
            "attacks of the inversion page learnt from many times as many and read more without a "
            "defence; behind one they would read more, too.",
            icon=":material/info:",
        )
    elif reads == "words" and found.facts.get("version", ATTACKERS_SINCE) < ATTACKERS_SINCE:
        slot.caption(
            "A lower bound: since these figures were measured the attackers have learnt to read "
            "more from the same texts."
        )


def _no_help(choice: Choice, task: str, share: float) -> str:
    best = choice.best
    if best is None:
        return (
            f"No tested setting is shown to lose so little ({share_said(choice.base, task, share)})"
            f" for {task_said(task)}, by the interval of its difference from no defence. Ask for "
            "less, or measure more texts."
        )
    own, base = (read_said(choice.leak(p), choice.reads) for p in (best, choice.base))
    return (
        f"No tested setting is shown to lose so little ({share_said(choice.base, task, share)}) "
        f"for {task_said(task)} and leaks significantly less than no defence. The nearest is "
        f"{point_said(best)}: "
        f"**{own}** to the strongest attacker, against **{base}** without a defence, "
        f"{choice.beside_none(best)} (95 % intervals{corrected_said(choice)})"
        f"{_guessing(choice.reads, choice.leak(choice.base))}."
    )


def _promised_or_not(choice: Choice, share: float) -> str:
    """Say whether the best has a guarantee, and what the best that has one comes to."""
    if choice.promising is None:
        return f"{NOTHING_PROMISED} No defence that promises something is shown to lose so little."
    promising: Point = choice.promising
    if choice.best is promising:
        said = promise_said(DefenceSpec.of(promising.defence, dict(promising.settings)))
        return f"It promises something: {said}."
    read = read_said(choice.leak(promising), choice.reads)
    if told := choice.beside_none(promising):
        return (
            f"{NOTHING_PROMISED} Of the defences with a promise that keep as much, none leaks "
            f"significantly less than no defence; the nearest is {point_said(promising)}: {read}, "
            f"{told}."
        )
    return (
        f"{NOTHING_PROMISED} Of the useful settings with a promise, {point_said(promising)} leaks "
        f"least: {read}. {beyond_said(promising, choice.base, choice.reads)}"
    )
