"""Views of η: what each mechanism leaves and gives away at each that was measured, and which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import ArtifactError, InvalidInputError
from core.figures.tradeoff import tradeoff_figure
from core.results import Score
from core.said import instead_said, percent_said
from core.story.drawing import plain_figure
from core.story.format import Slide, Table
from core.story.views import chosen
from core.story.views_defend import (
    SHARES,
    commands,
    encoder_of,
    facts_of,
    found_here,
    odds_fact,
)
from core.story.views_read import origin
from core.studies.defence_grid import is_of_network
from core.studies.eta_outlook import measured_etas, outlook
from core.studies.odds import ODDS, kept_odds, odds_of, odds_told
from core.studies.tradeoff_choice import (
    beside_none,
    high,
    keeps,
    leak_of,
    low,
    simultaneous_leaks,
)
from core.studies.tradeoff_said import OF_TOKENS
from core.studies.tradeoff_setting import entry_shown, promise_said, setting_name
from core.studies.tradeoff_summary import Point, Tradeoff
from core.studies.tradeoff_told import lost_said, way_said
from core.tasks.names import task_said

__all__ = ["etas", "mechanism"]

_WHOLE = (0, 104)
"""Of an F1, and room for a mark at its upper end."""
_ROOM = 8
"""Per cent beside the ends of usefulness: the line of chance keeps off the scale of the axis."""


_KEEP = "80"
"""Per cent of the usefulness to keep, on all slides of η: they name the same η."""


def mechanism(defence: str = "text_to_text", task: str = "TREC", keep: str = _KEEP) -> Slide:
    """Return what a mechanism leaves and what is read of it, at each η that was measured."""
    found = found_here()
    chosen("task", task, tuple(found.tasks))
    share = int(chosen("keep", keep, SHARES)) / 100
    known = _with_eta(found)
    if defence not in known:
        raise InvalidInputError(f"defence must be one of {', '.join(known)}, got {defence[:60]!r}.")
    verdict = _verdict_of(found, defence, task, share)
    title, kept = verdict.title, verdict.points
    if not kept:
        raise ArtifactError(f"The rows of {defence} hold no usefulness for {task_said(task)}.")
    useful = f"Useful for {task_said(task)}"
    columns = ("η", "Usefulness left, mean", useful, "Words read, F1", "Tokens back, %", ODDS)
    base, encoder = found.undefended, encoder_of(found)
    rows = [
        (f"{eta:g}", _mean_kept(found, defence, eta), p.utility[task].said(0), p.leakage.said(0),
         p.token_inversion.said(0) if p.token_inversion else "–", kept_odds(p.spec, encoder))
        for eta, p in kept.items()
    ]  # fmt: skip
    whole = (base.utility[task].said(0), base.leakage.said(0))
    rows.append(("no defence", percent_said(1), *whole, "–", "–"))
    figure = tradeoff_figure(found, task, defences=(defence,))
    # The same of each mechanism, to be held side by side.
    figure.update_yaxes(range=_WHOLE)
    figure.update_xaxes(range=_useful_range(found, known, task))
    said_of = kept[verdict.eta or max(verdict.private or kept)]
    return Slide(
        title=_eta_title(verdict, lost_said(found.undefended, task, share)),
        body=f"{title}, at each η that was measured. {_between(kept, base)}"
        f"{_more_read(kept, base, defence)} {_useful_said(kept, base, task)} "
        f"{odds_told(said_of.spec, encoder)} The scale of η is this mechanism's own, on this "
        "encoder.",
        figure=plain_figure(figure),
        alt=f"Words recovered against usefulness for {task_said(task)}, for {title} at η from "
        f"{min(kept):g} to {max(kept):g}, and without a defence",
        table=Table(columns=columns, rows=tuple(rows)),
        facts=(
            *facts_of(found, kept[max(kept)], task),
            ("Promise", promise_said(said_of.spec)),
            ("Kept", way_said(base, task, share)),
            *odds_fact(kept.values(), found),
            *origin(each for p in kept.values() for each in p.provenances),
        ),
        commands=commands(),
        live=(("task", task), ("point", setting_name(defence, dict(said_of.settings)))),
    )


def _with_eta(found: Tradeoff) -> list[str]:
    """Return the mechanisms of which several η were measured; a network releases nothing itself."""
    without = {p.defence for p in found.points
               if "eta" not in dict(p.settings) or is_of_network(p.defence)}  # fmt: skip
    named = dict.fromkeys(p.defence for p in found.points)
    return [n for n in named if n not in without and len(measured_etas(found, n)) > 1]


def _mean_kept(found: Tradeoff, defence: str, eta: float) -> str:
    kept = outlook(found, defence, eta).kept
    return percent_said(sum(kept.values()) / len(kept)) if kept else "–"


def _useful_said(kept: dict[float, Point], base: Point, task: str) -> str:
    least, most = (kept[eta].utility[task].value for eta in (min(kept), max(kept)))
    return (
        f"Usefulness for {task_said(task)} is {least:.0f} to {most:.0f} at these η, "
        f"{base.utility[task].value:.0f} without a defence."
    )


def _useful_range(found: Tradeoff, names: Sequence[str], task: str) -> tuple[float, float]:
    """Return from where to where usefulness lies at all η of all mechanisms, with room beside."""
    shown = [p for p in found.points if p.defence in names and task in p.utility]
    ends = [p.utility[task].ci95 for p in (*shown, found.undefended)]
    chance = found.undefended.utility[task].chance
    lowest = min(each for each in (chance, *(end.low for end in ends)) if not math.isnan(each))
    return lowest - _ROOM, max(end.high for end in ends) + _ROOM


def _more_read(kept: dict[float, Point], base: Point, defence: str) -> str:
    """Return from which η on more is read than without noise, and why that can be."""
    more = [eta for eta, p in kept.items() if low(leak_of(p)) > high(leak_of(base))]
    if not more or not all(kept[eta].attacker in OF_TOKENS for eta in more):
        return ""
    released = (
        "noisy vectors of the tokens are released, from which the tokens can be read"
        if entry_shown(defence).acts_on == "tokens"
        else "the tokens themselves are released, and the attacker reads them off"
    )
    return (
        f" From η {min(more):g} on that is **more than without a defence**: there a vector alone "
        f"is stored, here {released}."
    )


def _eta_title(verdict: _Verdict, lost: str) -> str:
    """Return at which η less is read, and whether enough stays useful there."""
    less = verdict.private
    if not less:
        return f"{verdict.title}: no η measured leaks significantly less"
    where = "at every η measured" if len(less) == len(verdict.points) else f"up to η {max(less):g}"
    if verdict.eta is not None:
        rest = f"and η {verdict.eta:g} is shown to lose at most {lost}"
    elif verdict.useful:
        rest = f"but only from η {min(verdict.useful):g} on is it shown to lose at most {lost}"
    else:
        rest = f"but no η measured is shown to lose at most {lost}"
    return f"{verdict.title}: {where} significantly less is read, {rest}"


def _less_read(kept: dict[float, Point], base: Point) -> list[float]:
    """Return the η at which significantly less is read, corrected for the number of η."""
    leaks = simultaneous_leaks(list(kept.values()))
    return [eta for eta, leak in zip(kept, leaks, strict=True)
            if not beside_none(leak, base.leakage)]  # fmt: skip


def _between(kept: dict[float, Point], base: Point) -> str:
    first, last = kept[min(kept)], kept[max(kept)]
    return (
        f"From η {min(kept):g} to {max(kept):g}, the strongest attacker reads words with a score "
        f"of {first.leakage.said(0, is_bold=True)} to {last.leakage.said(0, is_bold=True)} of 100 "
        f"(F1); without a defence {base.leakage.said(0, is_bold=True)}, by guessing "
        f"{base.leakage.chance:.0f}."
    )


@dataclass(frozen=True)
class _Verdict:
    """What a mechanism's measured η come to; each may be empty."""

    title: str
    private: tuple[float, ...]
    useful: tuple[float, ...]
    points: dict[float, Point]
    leaks: dict[float, Score]
    """What the strongest attacker reads at each η, with intervals that hold together."""

    @property
    def eta(self) -> float | None:
        """Of the η that are both private and useful, the one at which least is read."""
        both = [eta for eta in self.private if eta in self.useful]
        return min(both, key=lambda eta: high(self.leaks[eta]), default=None)

    @property
    def named(self) -> list[float]:
        """The η that a slide names: the last with less read, the first that is useful, its own."""
        ends = {*self.private[-1:], *self.useful[:1]}
        return sorted(ends if self.eta is None else {*ends, self.eta})


def etas(task: str = "TREC", keep: str = _KEEP) -> Slide:
    """Return the η of each mechanism that leaks significantly less and stays useful."""
    found = found_here()
    chosen("task", task, tuple(found.tasks))
    share = int(chosen("keep", keep, SHARES)) / 100
    base, encoder = found.undefended, encoder_of(found)
    measured = (_verdict_of(found, name, task, share) for name in _with_eta(found))
    verdicts = [verdict for verdict in measured if verdict.points]  # others know other tasks
    taken = [(v.title, v.eta) for v in verdicts if v.eta is not None]
    told = [_told_of(v, task, base, encoder) for v in verdicts if v.eta is not None]
    rest = [v.title for v in verdicts if v.eta is None]
    none = f"No η of {_listed(rest)} that was measured does both." if rest else ""
    lost = lost_said(base, task, share)
    last = next(v for v in verdicts if not taken or v.eta is not None)
    point = last.points[last.eta if last.eta is not None else max(last.points)]
    return Slide(
        title=_etas_title(taken, lost, task),
        body="The rule: among the η shown, by the difference on the same texts, to lose at most "
        f"{lost} and to leak significantly less, the one with the least upper end of leakage, "
        "corrected for the number of η. "
        f"{' '.join(filter(None, [*told, none, _best_promise(verdicts, encoder)]))} An η is of "
        "its mechanism and its encoder alone.",
        table=_rule_table(verdicts, lost, encoder),
        facts=(
            ("Kept", way_said(base, task, share)),
            *facts_of(found, point, task),
            *odds_fact([p for v in verdicts for p in v.points.values()], found),
            *origin(each for v in verdicts for p in v.points.values() for each in p.provenances),
        ),
        commands=commands(),
        live=(("task", task), ("point", setting_name(point.defence, dict(point.settings)))),
    )


def _rule_table(verdicts: Sequence[_Verdict], lost: str, encoder: str) -> Table:
    """Return where less is read and where enough stays useful, a line a mechanism."""
    return Table(
        columns=(
            "Mechanism",
            "Less is read",
            f"At most {lost} lost",
            "η by the rule",
            ODDS,
        ),
        rows=tuple(
            (
                v.title,
                f"up to η {max(v.private):g}" if v.private else "at no η measured",
                f"from η {min(v.useful):g}" if v.useful else "at no η measured",
                f"{v.eta:g}" if v.eta is not None else "none",
                "; ".join(f"η {e:g}: {kept_odds(v.points[e].spec, encoder)}" for e in v.named),
            )
            for v in verdicts
        ),
    )


def _told_of(verdict: _Verdict, task: str, base: Point, encoder: str) -> str:
    """Return what the η by the rule leaves and saves; of a mechanism that has one."""
    assert verdict.eta is not None
    point = verdict.points[verdict.eta]
    return (
        f"**{verdict.title}, η {verdict.eta:g}**: the strongest attacker reads "
        f"{instead_said(verdict.leaks[verdict.eta], base.leakage)}; usefulness "
        f"is {point.utility[task].said(0)} instead of "
        f"{base.utility[task].said(0)}. "
        f"{odds_told(point.spec, encoder)}"
    ).strip()


def _best_promise(verdicts: list[_Verdict], encoder: str) -> str:
    """Return what the η promises that promises most, of those that are named."""
    found = [
        (promises.nearest.epsilon, f"{v.title} at η {eta:g}, with {promises.brief}")
        for v in verdicts
        for eta in v.named
        if (promises := odds_of(v.points[eta].spec, encoder)) is not None
    ]
    return f"Of the η named, the strongest promise is that of {min(found)[1]}." if found else ""


def _verdict_of(found: Tradeoff, defence: str, task: str, share: float) -> _Verdict:
    base = found.undefended
    kept = {e: p for e, p in measured_etas(found, defence).items() if task in p.utility}
    return _Verdict(
        entry_shown(defence).title,
        tuple(_less_read(kept, base)),
        tuple(eta for eta, point in kept.items() if keeps(point, base, task, share)),
        kept,
        dict(zip(kept, simultaneous_leaks(list(kept.values())), strict=True)),
    )


def _etas_title(taken: list[tuple[str, float]], lost: str, task: str) -> str:
    if not taken:
        return f"No η measured has less read and is shown to lose at most {lost}"
    told = ", ".join(f"{title} at η {eta:g}" for title, eta in taken)
    return f"{told}: less read, at most {lost} lost for {task_said(task)}"


def _listed(titles: list[str]) -> str:
    *some, last = titles
    return f"{', '.join(some)} or {last}" if some else last
