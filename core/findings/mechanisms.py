"""Findings on η: a mechanism's utility and leakage at each measured η, and which η to choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakscope.core.defences.setting import describe_promise, entry_shown, setting_name
from leakscope.core.defences.trained.registry import is_of_network
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.figures.tradeoff import tradeoff_figure
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.findings.registry import check_choice
from leakscope.core.findings.shared import provenance_facts
from leakscope.core.findings.tradeoff import (
    SHARES,
    commands,
    describe_change_in_utility,
    describe_kept,
    describe_lost,
    describe_usefulness_share,
    encoder_of,
    facts_of,
    odds_fact,
)
from leakscope.core.formatting import format_f1_change, format_percent, join_words
from leakscope.core.results import Score
from leakscope.core.studies.deniability.odds import (
    ODDS,
    describe_guarantee,
    format_odds_cell,
    guarantees_of_setting,
)
from leakscope.core.studies.tradeoff.choice import (
    beside_none,
    high,
    keeps_share,
    leak_of,
    low,
    simultaneous_leaks,
)
from leakscope.core.studies.tradeoff.summary import (
    OF_TOKENS,
    Point,
    Tradeoff,
    kept_usefulness,
    measured_etas,
    shipped_tradeoff,
)
from leakscope.core.tasks.names import describe_task

_WHOLE = (0, 104)
"""Range of an F1 axis, with room for a mark at its upper end."""
_ROOM = 8
"""Margin of the utility axis in per cent, so that the line of chance is off the axis."""


_KEEP = "80"
"""Per cent of the utility to keep; all slides on η use the same, so they name the same η."""


def mechanism(defence: str = "text_to_text", task: str = "TREC", keep: str = _KEEP) -> Finding:
    """Build the finding on one mechanism's utility and leakage at each η, from shipped results."""
    found = shipped_tradeoff()
    check_choice("task", task, tuple(found.tasks))
    share = int(check_choice("keep", keep, SHARES)) / 100
    known = _mechanisms_with_etas(found)
    if defence not in known:
        raise InvalidInputError(f"defence must be one of {', '.join(known)}, got {defence[:60]!r}.")
    verdict = _choose_eta(found, defence, task, share)
    title, points = verdict.title, verdict.points
    if not points:
        raise ArtifactError(f"The rows of {defence} have no utility for {describe_task(task)}.")
    useful = f"Utility for {describe_task(task)}"
    columns = ("η", "Mean utility kept", useful, "Words recovered, F1", "Unchanged tokens, %", ODDS)
    base, encoder = found.undefended, encoder_of(found)
    rows = [
        (
            f"{eta:g}",
            _format_mean_kept(p, base),
            p.utility[task].format(0),
            p.leakage.format(0),
            p.token_inversion.format(0) if p.token_inversion else "–",
            format_odds_cell(p.spec, encoder),
        )
        for eta, p in points.items()
    ]
    whole = (base.utility[task].format(0), base.leakage.format(0))
    rows.append(("no defence", format_percent(1), *whole, "–", "–"))
    figure = tradeoff_figure(found, task, defences=(defence,))
    # The same range for each mechanism, so that figures are comparable.
    figure.update_yaxes(range=_WHOLE)
    figure.update_xaxes(range=_usefulness_range(found, known, task))
    described = points[verdict.eta or max(verdict.private or points)]
    return Finding(
        title=_eta_title(verdict, base, task, share),
        body=f"{_describe_extremes(points, base)}{_describe_more_leakage(points, base, defence)} "
        f"{_describe_usefulness(points, base, task)} "
        f"{describe_guarantee(described.spec, encoder)} Values of η apply only to this mechanism "
        "and this encoder.",
        figure=figure,
        alt=f"Words recovered against utility for {describe_task(task)}, for {title} at η from "
        f"{min(points):g} to {max(points):g}, and without a defence",
        table=Table(columns=columns, rows=tuple(rows)),
        facts=(
            *facts_of(found, points[max(points)], task),
            ("Guarantee", describe_promise(described.spec)),
            ("Kept", describe_usefulness_share(base, task, share)),
            *odds_fact(points.values(), found),
            *provenance_facts(each for p in points.values() for each in p.provenances),
        ),
        commands=commands(),
        live=(("task", task), ("point", setting_name(defence, dict(described.settings)))),
    )


def _mechanisms_with_etas(found: Tradeoff) -> list[str]:
    """Return the names of mechanisms measured at several η, except those that train a network."""
    without = {
        p.defence for p in found.points if "eta" not in dict(p.settings) or is_of_network(p.defence)
    }
    named = dict.fromkeys(p.defence for p in found.points)
    return [n for n in named if n not in without and len(measured_etas(found, n)) > 1]


def _format_mean_kept(point: Point, base: Point) -> str:
    """Format the mean share of utility that a point keeps over all tasks; a dash without tasks."""
    kept = kept_usefulness(point, base)
    return format_percent(sum(kept.values()) / len(kept)) if kept else "–"


def _describe_usefulness(points: dict[float, Point], base: Point, task: str) -> str:
    """Describe a task's utility at the smallest and the greatest η, and without a defence."""
    least, most = (points[eta].utility[task].value for eta in (min(points), max(points)))
    return (
        f"Utility for {describe_task(task)} is {least:.0f} to {most:.0f} at these η, and "
        f"{base.utility[task].value:.0f} without a defence."
    )


def _usefulness_range(found: Tradeoff, names: Sequence[str], task: str) -> tuple[float, float]:
    """Return the lowest and highest utility of a task over the named mechanisms, with a margin."""
    shown = [p for p in found.points if p.defence in names and task in p.utility]
    ends = [p.utility[task].ci95 for p in (*shown, found.undefended)]
    chance = found.undefended.utility[task].chance
    lowest = min(each for each in (chance, *(end.low for end in ends)) if not math.isnan(each))
    return lowest - _ROOM, max(end.high for end in ends) + _ROOM


def _describe_more_leakage(points: dict[float, Point], base: Point, defence: str) -> str:
    """Describe from which η on more leaks than without a defence, and why; empty if none."""
    more = [eta for eta, p in points.items() if low(leak_of(p)) > high(leak_of(base))]
    if not more or not all(points[eta].attacker in OF_TOKENS for eta in more):
        return ""
    released = (
        "noisy token vectors are released, which reveal the tokens one by one"
        if entry_shown(defence).acts_on == "tokens"
        else "the tokens themselves are released, and anyone can read them"
    )
    return (
        f" From η {min(more):g} on, that is **more than without a defence**: without a defence, "
        f"only a vector is stored; here, {released}."
    )


def _eta_title(verdict: _EtaChoice, base: Point, task: str, share: float) -> str:
    """Return the headline on which η of a mechanism leak less, and whether they stay useful."""
    less = verdict.private
    if not less:
        return f"{verdict.title}: no measured η leaks significantly less"
    where = "at every measured η" if len(less) == len(verdict.points) else f"up to η {max(less):g}"
    kept = f"was shown to keep {format_percent(share)} of its advantage over guessing"
    if verdict.eta is not None:
        change = describe_change_in_utility(verdict.points[verdict.eta], base, task)
        rest = f"and {kept} at η {verdict.eta:g} (it {change})"
    elif verdict.useful:
        rest = f"but {kept} only from η {min(verdict.useful):g} on"
    else:
        rest = f"but no measured η {kept}"
    return f"{verdict.title} leaks significantly less {where}, {rest}"


def _describe_extremes(points: dict[float, Point], base: Point) -> str:
    """Describe what the strongest attacker recovers at the smallest and the greatest η."""
    first, last, none = (
        point.leakage.format(0, is_bold=True)
        for point in (points[min(points)], points[max(points)], base)
    )
    return (
        f"The strongest attacker recovers words with an F1 of {first} at η {min(points):g}, "
        f"{last} at η {max(points):g} and {none} without a defence (95 % CI in brackets). "
        f"Guessing reaches {base.leakage.chance:.0f}."
    )


@dataclass(frozen=True)
class _EtaChoice:
    """A mechanism's η that leak less, those that stay useful, and the best of both."""

    title: str
    private: tuple[float, ...]
    useful: tuple[float, ...]
    points: dict[float, Point]
    leaks: dict[float, Score]
    """What the strongest attacker recovers at each η, with simultaneous intervals."""

    @property
    def eta(self) -> float | None:
        """The η with the least leakage among those that are both private and useful."""
        both = [eta for eta in self.private if eta in self.useful]
        return min(both, key=lambda eta: high(self.leaks[eta]), default=None)

    @property
    def named(self) -> list[float]:
        """The η on a slide: the last that leaks less, the first that is useful, the chosen."""
        ends = {*self.private[-1:], *self.useful[:1]}
        return sorted(ends if self.eta is None else {*ends, self.eta})


def etas(task: str = "TREC", keep: str = _KEEP) -> Finding:
    """Build the finding on which η of each mechanism leak less yet stay useful, as shipped."""
    found = shipped_tradeoff()
    check_choice("task", task, tuple(found.tasks))
    share = int(check_choice("keep", keep, SHARES)) / 100
    base, encoder = found.undefended, encoder_of(found)
    measured = (_choose_eta(found, name, task, share) for name in _mechanisms_with_etas(found))
    verdicts = [verdict for verdict in measured if verdict.points]  # others know other tasks
    taken = [(v.title, v.eta) for v in verdicts if v.eta is not None]
    sentences = [_describe_choice(v, task, base) for v in verdicts if v.eta is not None]
    rest = [v.title for v in verdicts if v.eta is None]
    or_last = " or ".join(filter(None, [", ".join(rest[:-1]), *rest[-1:]]))
    none = f"No measured η of {or_last} qualifies." if rest else ""
    lost = describe_lost(base, task, share)
    last = next(v for v in verdicts if not taken or v.eta is not None)
    point = last.points[last.eta if last.eta is not None else max(last.points)]
    return Finding(
        title=_etas_title(taken, task, share),
        body="An η qualifies if it leaks significantly less and was shown to lose at most "
        f"{lost} of utility on the same texts. The rule chooses the η that leaks least even at the "
        "upper end of its interval, which is corrected for the number of η. "
        f"{' '.join(filter(None, [*sentences, none, _best_guarantee(verdicts, encoder)]))} Values "
        "of η apply only to their mechanism and encoder.",
        table=_rule_table(verdicts, lost, encoder),
        facts=(
            ("Kept", describe_usefulness_share(base, task, share)),
            *facts_of(found, point, task),
            *odds_fact([p for v in verdicts for p in v.points.values()], found),
            *provenance_facts(
                each for v in verdicts for p in v.points.values() for each in p.provenances
            ),
        ),
        commands=commands(),
        live=(("task", task), ("point", setting_name(point.defence, dict(point.settings)))),
    )


def _rule_table(verdicts: Sequence[_EtaChoice], lost: str, encoder: str) -> Table:
    """Build a table with a row for each mechanism: its private, useful and chosen η, and odds."""
    return Table(
        columns=(
            "Mechanism",
            "Leaks significantly less",
            f"Loses at most {lost}",
            "η by the rule",
            ODDS,
        ),
        rows=tuple(
            (
                v.title,
                f"up to η {max(v.private):g}" if v.private else "at no measured η",
                f"from η {min(v.useful):g}" if v.useful else "at no measured η",
                f"{v.eta:g}" if v.eta is not None else "none",
                "; ".join(
                    f"η {e:g}: {format_odds_cell(v.points[e].spec, encoder)}" for e in v.named
                ),
            )
            for v in verdicts
        ),
    )


def _describe_choice(verdict: _EtaChoice, task: str, base: Point) -> str:
    """Describe leakage and utility at the η that the rule chose for a mechanism."""
    assert verdict.eta is not None
    point = verdict.points[verdict.eta]
    return (
        f"**{verdict.title}, η {verdict.eta:g}**: the strongest attacker recovers "
        f"{format_f1_change(verdict.leaks[verdict.eta], base.leakage)}. Utility is "
        f"{describe_kept(point, base, task)}."
    )


def _best_guarantee(verdicts: list[_EtaChoice], encoder: str) -> str:
    """Describe the strongest guarantee among the η that the slide shows; "" for none."""
    found = [
        (guarantees.nearest.epsilon, f"{v.title} at η {eta:g}", guarantees.all_odds)
        for v in verdicts
        for eta in v.named
        if (guarantees := guarantees_of_setting(v.points[eta].spec, encoder)) is not None
    ]
    if not found:
        return ""
    _, named, odds = min(found)
    return (
        f"The strongest guarantee is that of {named}: the output can distinguish two "
        f"inputs with odds of up to {odds}."
    )


def _choose_eta(found: Tradeoff, defence: str, task: str, share: float) -> _EtaChoice:
    """Find the η of a mechanism that leak significantly less, and those that stay useful."""
    base = found.undefended
    points = {e: p for e, p in measured_etas(found, defence).items() if task in p.utility}
    # With intervals that are corrected for the number of η.
    leaks = dict(zip(points, simultaneous_leaks(list(points.values())), strict=True))
    return _EtaChoice(
        entry_shown(defence).title,
        tuple(eta for eta, leak in leaks.items() if not beside_none(leak, base.leakage)),
        tuple(eta for eta, point in points.items() if keeps_share(point, base, task, share)),
        points,
        leaks,
    )


def _etas_title(taken: list[tuple[str, float]], task: str, share: float) -> str:
    """Return the headline that lists the η chosen for each mechanism."""
    kept = f"{format_percent(share)} of the advantage over guessing"
    if not taken:
        return f"No measured η leaks significantly less and was shown to keep {kept}"
    text = join_words([f"{title} at η {eta:g}" for title, eta in taken])
    leaks, keeps = ("leaks", "keeps") if len(taken) == 1 else ("leak", "keep")
    return f"{text} {leaks} significantly less and {keeps} {kept} for {describe_task(task)}"
