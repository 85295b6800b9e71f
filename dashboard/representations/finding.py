"""The answer to the question of the page of representations, in words, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.attacks.inversion import INVERSION_ATTACKS
from core.figures.representations import collection_title, encoder_title
from core.results import Score
from core.said import guess_said, leak_said, read_said
from core.studies.own_encoder import OwnLeak
from core.studies.prepared import QUICK
from core.studies.representation_order import Finding, OwnVerdict, judge_own, least_leaking
from core.studies.representation_summary import (
    YOURS,
    AttackScore,
    Leak,
    Point,
    Representations,
)
from dashboard.calm import plain
from dashboard.representations.controls import VIEW_NAMES
from dashboard.representations.state import chosen

__all__ = [
    "QUESTION",
    "attack_name",
    "finding",
    "measured_finding",
    "measured_title",
    "own_title",
    "title_of",
]

QUESTION = "Which way of turning text into vectors leaks least at equal usefulness?"


def finding(slot: Any, below: Any, found: Representations, points: Sequence[Point]) -> None:
    """Draw the answer to the page's question, and below the figure what it rests on."""
    if own := judge_own(points):
        _own_finding(slot, below, own)
        return
    if missing := [name for name in chosen("encoder") if name.startswith(YOURS)]:
        names = "; ".join(plain(encoder_title(name)) for name in missing)
        slot.title(f"{names}: not measured under the chosen attacks", anchor=False)
        slot.info(
            "Your file holds no row for these attacks and texts. Choose an attack that your study "
            "measured, or the other choice of *Fitted on*.",
            icon=":material/ads_click:",
        )
        return
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


def _own_finding(slot: Any, below: Any, own: Sequence[OwnVerdict]) -> None:
    """Draw the verdict on the visitor's own encoder, and on their others below it."""
    first, *others = own
    slot.title(own_title(first), anchor=False)
    slot.markdown(_own_numbers(first))
    for other in others:
        below.markdown(f"- **{own_title(other)}.** {_own_numbers(other)}")
    below.caption(
        "95 % intervals in brackets; significantly more or less where they share no value. What is "
        "read is a lower bound: another attack, or more texts, may read more."
    )


def own_title(found: OwnVerdict) -> str:
    """Return the verdict on an encoder of the visitor's own in one sentence."""
    name = title_of(found.own)
    if found.own.useful is None or not found.n_compared:
        return f"{name} leaks {read_said(found.own.leak.f1, found.own.leak.recall)}"
    if found.rival is None:
        return f"{name} is the most useful; no other shown is as useful"
    rival = title_of(found.rival)
    if found.leaks_more:
        return f"{name} leaks more than {rival}, which is as useful"
    if found.leaks_less:
        return f"{name} leaks less than every other that is as useful"
    return f"{name} does not leak significantly more or less than {rival}, at equal usefulness"


def _own_numbers(found: OwnVerdict) -> str:
    leak, useful = found.own.leak, found.own.useful
    told = (
        f"**Leaks: {leak_said(leak.f1, leak.recall)}**, on {leak.f1.n:,} sentences, by the "
        f"{attack_name(leak).lower()}; guessing comes to {guess_said(leak.f1.chance)}."
    )
    if useful is None:
        return (
            f"{told} Its usefulness is not in your file, so it cannot be compared at equal "
            "usefulness: add the rows of `core study classification`."
        )
    told += f" **Useful: {useful.said(0)}** of 100 (macro-F1), on {useful.n:,} articles."
    if found.rival is None or found.rival.useful is None:
        if not found.n_compared:
            return f"{told} Choose another encoder to compare it with."
        return f"{told} Compared with {found.n_compared} encoders measured here."
    rival = found.rival
    return (
        f"{told} {title_of(rival)}: {leak_said(rival.leak.f1, rival.leak.recall)}, useful "
        f"{found.rival.useful.said(0)}. Of {found.n_compared} encoders measured here, it leaks "
        "least of those that are at least as useful."
    )


def measured_finding(slot: Any, own: OwnLeak, bundled: OwnLeak) -> None:
    """Draw the verdict on an encoder that was measured here."""
    slot.title(measured_title(own, bundled), anchor=False)
    slot.markdown(
        f"The {INVERSION_ATTACKS[QUICK.name].title.lower()} recovers "
        f"{leak_said(own.f1, own.recall, is_bold=True)} from its vectors, "
        f"{leak_said(bundled.f1, bundled.recall)} from those of {plain(bundled.encoder)}; guessing "
        f"comes to {guess_said(own.f1.chance)}. On {own.f1.n:,} sentences of news. It is a weak "
        "attack, the same for every encoder: a trained one recovers more."
    )


def measured_title(own: OwnLeak, bundled: OwnLeak) -> str:
    """Return whether an encoder leaks more than the bundled one, in one sentence."""
    name, other = plain(own.encoder), plain(bundled.encoder)
    if own.encoder == bundled.encoder:
        return f"{name} leaks {read_said(own.f1, own.recall)} to a quick attack"
    if not own.f1.is_resolved_from(bundled.f1):
        return f"{name} does not leak significantly more or less than {other}"
    more = "more" if own.f1.value > bundled.f1.value else "less"
    return f"{name} leaks {more} than {other}"


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
