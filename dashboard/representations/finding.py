"""The answer to the question of the page of representations, in words, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.attacks.inversion import INVERSION_ATTACKS
from core.figures.representations import collection_title, encoder_title
from core.results import Score
from core.said import guess_said, leak_said
from core.studies.representation_order import Finding, least_leaking
from core.studies.representation_summary import AttackScore, Leak, Point, Representations
from dashboard.calm import plain
from dashboard.representations.controls import VIEW_NAMES
from dashboard.representations.state import chosen

__all__ = ["QUESTION", "attack_name", "finding", "title_of"]

QUESTION = "Which way of turning text into vectors leaks least at equal usefulness?"


def finding(slot: Any, below: Any, found: Representations, points: Sequence[Point]) -> None:
    """Draw the answer to the page's question, and below the figure what it rests on."""
    best = least_leaking(points)
    if best is None:
        slot.title(QUESTION, anchor=False)
        slot.info(_why_none(points), icon=":material/ads_click:")
        return
    slot.title(_verdict(best), anchor=False)
    leak, useful = best.best.leak, best.best.useful
    assert useful is not None
    slot.markdown(_compared(best, points))
    below.markdown(f"- {_useful(useful)}\n- {_leaks(found, leak)}")
    if more := found.taught_more(leak):
        below.info(_with_more(found, best.best, more), icon=":material/trending_up:")
    if others := _others(best):
        below.markdown(others)
    below.caption(
        "95 % intervals in brackets. As useful: the interval reaches that of the most useful "
        "encoder shown. What is read is a lower bound: another attack, or more texts, may read "
        "more."
    )


def _why_none(points: Sequence[Point]) -> str:
    """Say why the rows chosen answer nothing."""
    if points:
        names = list(dict.fromkeys(map(title_of, points)))
        they, are = ("it", "is") if len(names) == 1 else ("they", "are")
        return (
            f"What leaks was measured, what {they} {are} good for was not: {'; '.join(names)}. So "
            f"{they} cannot be compared at equal usefulness; the numbers stand below. Choose "
            "another encoder, too."
        )
    if not chosen("encoder") or not chosen("attack"):
        return "Choose at least one encoder and one attack."
    return (
        "None of the chosen encoders was measured under the chosen attacks. Choose at least one "
        "encoder and one attack that were."
    )


def _verdict(best: Finding) -> str:
    name = title_of(best.best)
    if best.n_compared == 1:
        return f"{name} leaks, and no other is there to set beside it"
    if best.tied:
        n = len(best.tied)
        others = f"{n} other{'s' if n > 1 else ''}"
        return f"Under these attacks, {name} and {others} leak least of the most useful"
    if len(best.as_useful) > 1:
        return f"Under these attacks, {name} leaks least of the most useful"
    if not best.leak_less:
        return f"{name} is the most useful, and under these attacks none leaks less"
    return f"{name} is the most useful; what leaks less is less useful"


def _compared(best: Finding, points: Sequence[Point]) -> str:
    """Say among how many the answer was found, and which of those chosen are not among them."""
    name, n, left_out = title_of(best.best), len(best.as_useful), _left_out(best, points)
    if best.n_compared == 1:
        return f"{name} stands alone here: choose another encoder beside it.{left_out}"
    if n == 1:
        return f"{QUESTION} Of {best.n_compared} compared, none is as useful as {name}.{left_out}"
    return (
        f"{QUESTION} Of {best.n_compared} compared, {n} are as useful as the best; of these, the "
        f"least is read from {name}.{left_out}"
    )


def _useful(score: Score) -> str:
    return (
        f"**Useful: {score.said(0)}.** Its macro-F1 when it sorts {VIEW_NAMES[chosen('view')]} of "
        "news by topic: from 0 to 100, how well the topics are told apart, each counting alike, "
        f"on {score.n:,} articles."
    )


def _left_out(best: Finding, points: Sequence[Point]) -> str:
    """Say which chosen encoders are not among those compared, and why."""
    n = len(chosen("encoder"))
    if n == best.n_compared:
        return ""
    no_use = dict.fromkeys(p.leak.encoder for p in points if p.useful is None)
    measured = {p.leak.encoder for p in points}
    no_leak = [name for name in chosen("encoder") if name not in measured]
    why = [
        f"{' and '.join(plain(encoder_title(name)) for name in names)}, whose {what} was not "
        "measured"
        for names, what in ((no_use, "usefulness"), (no_leak, "leakage under these attacks"))
        if names
    ]
    return f" Of the {n} chosen, it leaves out {'; and '.join(why)}."


def _leaks(found: Representations, leak: Leak) -> str:
    by = attack_name(leak).lower()
    if len(chosen("attack")) > 1:
        by += ", of the chosen attacks the one that reads most from it"
    target = plain(collection_title(found.targets["encoders"]))
    return (
        f"**Leaks under these attacks: {leak_said(leak.f1, leak.recall)}.** The F1, from 0 to 100, "
        "says how well the words that are read from its vectors match those of the text, on "
        f"{leak.f1.n:,} sentences of {target}. "
        f"By the {by}. Guessing without the vectors comes to {guess_said(leak.f1.chance)}."
    )


def _with_more(found: Representations, point: Point, more: Sequence[AttackScore]) -> str:
    """Set what attacks read that learnt from more texts beside the figure of the page."""
    told = []
    for score in more:
        is_same = score.attack == point.leak.attack
        told.append(
            f"{'the same attack' if is_same else f'the {attack_name(score).lower()}'} read "
            f"{leak_said(score.f1, score.recall, is_bold=True)}, n = {score.f1.n:,}"
        )
    n = max(score.n_fitted_on for score in more)
    is_same = any(score.attack == point.leak.attack for score in more)
    lead = "Attacks that learnt from more text read more" if is_same else "Another attack read more"
    target = plain(collection_title(found.targets["encoders"]))
    alone = {score.encoder for score in found.more_texts} == {point.leak.encoder}
    return (
        f"**{lead}.** The F1 of {point.leak.f1.value:.0f} is that of an attack that learnt from "
        f"{point.leak.n_fitted_on:,} sentences. Having learnt from {n:,}, "
        f"{', and '.join(told)} from {title_of(point)}, on sentences of {target} too."
        + (" For the other encoders this was not measured." if alone else "")
    )


def _others(best: Finding) -> str:
    """Tell the others: as useful, not told apart, and less useful but less read."""
    name, told = title_of(best.best), []
    if rest := [p for p in best.as_useful if p is not best.best]:
        listed = "; ".join(f"{title_of(p)} {leak_said(p.leak.f1, p.leak.recall)}" for p in rest)
        told.append(f"As useful: {listed}, each under the attack that reads most from it.")
    if best.tied:
        names = "; ".join([name, *map(title_of, best.tied)])
        told.append(f"The intervals overlap, so that these rows do not tell them apart: {names}.")
    if best.leak_less:
        listed = "; ".join(
            f"{title_of(p)} {leak_said(p.leak.f1, p.leak.recall)}, useful {p.useful.said(0)}"
            for p in best.leak_less if p.useful
        )  # fmt: skip
        told.append(f"Less useful, but less is read: {listed}.")
    return " ".join(told)


def title_of(point: Point) -> str:
    """Return the encoder's title as Markdown."""
    return plain(encoder_title(point.leak.encoder))


def attack_name(score: AttackScore) -> str:
    """Return the attack's title."""
    return INVERSION_ATTACKS[score.attack].title
