"""The answer of the page of trade-offs: what surely leaks less and stays surely useful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.results import Score
from core.said import instead_said, leak_said, percent_said
from core.specs import DefenceSpec
from core.studies.tradeoff_choice import Choice, beside_none, choose, reads_of, untimed
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import ATTACKERS_SINCE
from core.studies.tradeoff_setting import promise_said
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said
from dashboard.promise import is_hardly_any, show_promises
from dashboard.tradeoff.controls import point_said
from dashboard.tradeoff.promised import promised

if TYPE_CHECKING:
    from core.defences.metric_dp.promise import Promises

__all__ = ["finding", "missing_said", "read_said", "time_said"]

_MOST_ALIKE = 3
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


def finding(slot: Any, found: Tradeoff, task: str, share: float, reads: str) -> None:
    """Draw the answer to the page's question."""
    choice = choose(found, task, share, reads)
    best = choice.best
    if best is None or not choice.helps:
        slot.title("No defence here helps much", anchor=False)
        slot.markdown(
            f"{_no_help(choice, task, share)} What is no mathematics stands below: access, "
            "encryption, retention."
        )
        _say_if_weak(slot, found, reads)
        return
    own, base = choice.leak(best), choice.leak(choice.base)
    odds = _odds(choice)
    is_weak = odds is not None and is_hardly_any(odds)
    but = ", and promises almost nothing" if is_weak and choice.promising is best else ""
    slot.title(f"{point_said(best)} leaks least of what stays useful{but}", anchor=False)
    kept = f"**{best.utility[task].said(0)}** of {choice.base.utility[task].said(0)}"
    slot.markdown(
        f"{_read_instead(own, base, reads)}{_guessing(reads, base)}; {task_said(task)} keeps "
        f"{kept} (95 % intervals in brackets). {_alike(choice)}"
    )
    if odds is None or choice.promising is not best:
        slot.markdown(_promised_or_not(choice, share))
    if odds is not None:
        it = "It" if choice.promising is best else "That one"
        show_promises(
            odds, slot, lead=f"{it} promises {'almost nothing' if is_weak else 'something'}."
        )
    _say_if_weak(slot, found, reads)


def _odds(choice: Choice) -> Promises | None:
    """Return what the best that promises something promises, as far as it can be told."""
    if choice.promising is None:
        return None
    return promised(DefenceSpec.of(choice.promising.defence, dict(choice.promising.settings)))


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
            f"None of the settings measured surely keeps {percent_said(share)} of the usefulness "
            f"for {task_said(task)}: the lower end of each interval lies below. "
            "Ask for less, or more texts would have to be measured."
        )
    own, base = (read_said(choice.leak(p), choice.reads) for p in (best, choice.base))
    return (
        f"None of the settings that surely keep {percent_said(share)} of the usefulness for "
        f"{task_said(task)} surely leaks less than no defence. Nearest comes {point_said(best)}: "
        f"**{own}** to the strongest attacker, against **{base}** without a defence, "
        f"{beside_none(best, choice.base, choice.reads)}."
    )


def _alike(choice: Choice) -> str:
    """Say what cannot be told apart from the best."""
    if not choice.alike:
        return ""
    named = ", ".join(point_said(point) for point in choice.alike[:_MOST_ALIKE])
    more = len(choice.alike) - _MOST_ALIKE
    return f"Not told apart from it: {named}{f' and {more} more' if more > 0 else ''}."


def _promised_or_not(choice: Choice, share: float) -> str:
    """Say whether the best promises anything, and what the best that does comes to."""
    if choice.promising is None:
        return (
            "It promises nothing: it was measured against the attackers that were tried. No "
            f"defence that promises something surely keeps {percent_said(share)}."
        )
    promising: Point = choice.promising
    if choice.best is promising:
        said = promise_said(DefenceSpec.of(promising.defence, dict(promising.settings)))
        return f"It promises something: {said}."
    nothing = "It promises nothing: it was measured against the attackers that were tried."
    read = read_said(choice.leak(promising), choice.reads)
    if told := beside_none(promising, choice.base, choice.reads):
        return (
            f"{nothing} Of the defences with a promise that keep as much, none surely leaks less "
            f"than no defence; nearest comes {point_said(promising)}: {read}, {told}."
        )
    return f"{nothing} Of the defences with a promise, {point_said(promising)} leaks least: {read}."
