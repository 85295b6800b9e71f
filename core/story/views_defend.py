"""Views of what defences save and cost, told from the rows of the trade-off."""

from __future__ import annotations

from core.errors import ArtifactError, InvalidInputError
from core.figures.tradeoff import attacker_said, tradeoff_figure
from core.results import Score
from core.specs import DefenceSpec
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import Fact, Slide, Table
from core.story.views import chosen
from core.story.views_read import INTERVAL, origin
from core.studies.eta_outlook import measured_etas, outlook
from core.studies.tradeoff_choice import SHARE, Choice, attacked, beside_none, choose, leak_of
from core.studies.tradeoff_frontier import frontier
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import attack_said, told_of, use_said
from core.studies.tradeoff_setting import (
    entry_shown,
    milliseconds_said,
    promise_said,
    setting_name,
)
from core.studies.tradeoff_summary import SHIPPED, Point, Tradeoff, load_tradeoff
from core.tasks.names import task_said

__all__ = [
    "attackers",
    "defences",
    "facts_of",
    "mechanism",
    "settings_table",
    "told_of_choice",
]

_SHARES = tuple(str(share) for share in range(50, 100))


def _found() -> Tradeoff:
    return load_tradeoff(SHIPPED / "minilm.json")


def defences(task: str = "TREC", keep: str = f"{SHARE:.0%}".rstrip("%")) -> Slide:
    """Return which defence leaks least of what stays useful, with the figure of all."""
    found = _found()
    chosen("task", task, tuple(found.tasks))
    share = int(chosen("keep", keep, _SHARES)) / 100
    choice = choose(found, task, share)
    edge = frontier(found, task)
    place = next(i for i, point in enumerate(found.points) if point is choice.shown)
    figure = tradeoff_figure(found, task, chosen={"A": place}, edge=edge)
    best = ", ".join(said(point) for point in edge.members)
    return Slide(
        title=_title(choice),
        body=_body(choice, task, share),
        figure=plain_figure(figure),
        alt=f"Words recovered against usefulness for {task_said(task)}, a line for each defence; "
        f"no setting surely beats {best}",
        table=settings_table(told_of_choice(choice), choice.base, task),
        facts=(*facts_of(found, choice.shown, task), *origin(found.provenances)),
        commands=(command_of("tradeoff"),),
    )


def said(point: Point) -> str:
    """Return a defence and its strength in words."""
    title = entry_shown(point.defence).title
    return f"{title}, {point.label}" if point.label else title


def _title(choice: Choice) -> str:
    if choice.best is None or not choice.helps:
        return "No defence here helps much"
    return f"{said(choice.best)} leaks least of what stays useful"


def _body(choice: Choice, task: str, share: float) -> str:
    best, base = choice.best, choice.base
    if best is None:
        return (
            f"None of the settings measured surely keeps {share:.0%} of the usefulness for "
            f"{task_said(task)}."
        )
    own, before = choice.leak(best), choice.leak(base)
    told = (
        "The strongest attacker who knows the defence recovers words with an F1 of "
        f"**{own.said(0)}** instead of **{before.said(0)}**. What it costs: usefulness for "
        f"{task_said(task)} is **{best.utility[task].said(0)}** instead of "
        f"{base.utility[task].said(0)}; to keep {share:.0%} of it was asked for."
    )
    if choice.promising is not None:
        spec = DefenceSpec.of(choice.promising.defence, dict(choice.promising.settings))
        beside = beside_none(choice.promising, base)
        return (
            f"{told} Of those that promise something, {said(choice.promising)} leaks least: "
            f"**{choice.leak(choice.promising).said(0)}**{beside and f', {beside}'}. It promises: "
            f"{promise_said(spec)}."
        )
    return f"{told} No defence that promises something surely keeps {share:.0%}."


def told_of_choice(choice: Choice) -> list[Point]:
    """Return the settings that a headline is about: none, the best, and what is like it."""
    shown = [choice.base, choice.best, choice.promising, *choice.alike]
    kept = {id(point): point for point in shown if point is not None}
    return list(kept.values())[:_MOST_ROWS]


_MOST_ROWS = 7


def settings_table(points: list[Point], base: Point, task: str, reads: str = "words") -> Table:
    """Return settings as a table, guessing at its end."""
    rows = []
    for point in points:
        by, leak = point.strongest(reads) or ("", Score(float("nan")))
        useful = point.utility[task].said(0) if task in point.utility else "–"
        promise = promise_said(DefenceSpec.of(point.defence, dict(point.settings)))
        rows.append(
            (said(point), useful, leak.said(0), attacker_said(by), promise or "none",
             milliseconds_said(point))
        )  # fmt: skip
    guess = (
        "Guessing",
        f"{base.utility[task].chance:.0f}",
        f"{leak_of(base, reads).chance:.0f}",
        "nobody: never sees the vector",
        "",
        "",
    )
    columns = (
        "Defence",
        f"Useful ({task})",
        _capital(READS[reads]),
        "By",
        "Promise",
        "A text takes",
    )
    return Table(columns=columns, rows=(*rows, guess))


def facts_of(found: Tradeoff, point: Point, task: str, reads: str = "words") -> tuple[Fact, ...]:
    """Return what a setting's numbers rest on."""
    by, leak = point.strongest(reads) or ("", Score(float("nan")))
    family, access = told_of(by)
    name = attacker_said(by)
    is_news = not set(family.split()) <= set(name.split())
    known = found.facts.get("n_auxiliary")
    return (
        ("Data", f"sentences kept from the attackers; {task_said(task)}"),
        ("n", f"{_attacked(found, leak.n)}; {point.utility[task].n:,} texts of {task}"),
        ("Interval", INTERVAL),
        ("Attacker", f"{name}, who knows the defence{f' ({family})' if is_news else ''}"),
        ("Access", access or "not recorded"),
        *((("Cost", f"taught by {known:,} sentences behind the defence"),) if known else ()),
    )


def _attacked(found: Tradeoff, n: int) -> str:
    """Return how many sentences were attacked: each counts once for every seed."""
    seeds, targets = found.facts["seeds"], int(found.facts.get("n_targets", 0))
    if len(seeds) > 1 and n == targets * len(seeds):
        return f"{n:,}: {targets:,} sentences under each of {len(seeds)} seeds"
    return f"{n:,} sentences"


def mechanism(defence: str = "text_to_text", task: str = "TREC") -> Slide:
    """Return what a mechanism leaves and what is read of it, at each η that was measured."""
    found = _found()
    chosen("task", task, tuple(found.tasks))
    if defence not in {point.defence for point in found.points} or not _has_eta(found, defence):
        known = [n for n in dict.fromkeys(p.defence for p in found.points) if _has_eta(found, n)]
        raise InvalidInputError(f"defence must be one of {', '.join(known)}, got {defence[:60]!r}.")
    etas = measured_etas(found, defence)
    kept = {eta: point for eta, point in etas.items() if task in point.utility}
    if not kept:
        raise ArtifactError(f"The rows of {defence} hold no usefulness for {task}.")
    title = entry_shown(defence).title
    columns = ("η", "Usefulness left, mean", f"Useful ({task})", "Words read, F1", "Tokens back, %")
    base = found.undefended
    rows = [
        (f"{eta:g}", _mean_kept(found, defence, eta), p.utility[task].said(0), p.leakage.said(0),
         p.token_inversion.said(0) if p.token_inversion else "–")
        for eta, p in kept.items()
    ]  # fmt: skip
    rows.append(("no defence", "100%", base.utility[task].said(0), base.leakage.said(0), "–"))
    said_of = kept[_eta_told(kept, base)]
    return Slide(
        title=_eta_title(kept, title, base),
        body=f"{title}, at each η that was measured. {_between(kept, base)} The scale of η is this "
        "mechanism's own, on this encoder.",
        figure=plain_figure(tradeoff_figure(found, task, defences=(defence,))),
        alt=f"Words recovered against usefulness for {task_said(task)}, for {title} at η from "
        f"{min(kept):g} to {max(kept):g}, and without a defence",
        table=Table(columns=columns, rows=tuple(rows)),
        facts=(
            *facts_of(found, kept[max(kept)], task),
            ("Promise", promise_said(DefenceSpec.of(defence, dict(kept[max(kept)].settings)))),
            *origin(each for p in kept.values() for each in p.provenances),
        ),
        commands=(command_of("tradeoff"),),
        live=(("task", task), ("point", setting_name(defence, dict(said_of.settings)))),
    )


def _has_eta(found: Tradeoff, defence: str) -> bool:
    return all("eta" in dict(p.settings) for p in found.points if p.defence == defence)


def _mean_kept(found: Tradeoff, defence: str, eta: float) -> str:
    kept = outlook(found, defence, eta).kept
    return f"{sum(kept.values()) / len(kept):.0%}" if kept else "–"


def _eta_title(kept: dict[float, Point], title: str, base: Point) -> str:
    """Say from which η on more is read than without noise is worth, or that less is."""
    less = _less_read(kept, base)
    if not less:
        return f"{title}: at no η measured is surely less read"
    if len(less) == len(kept):
        return f"{title}: less is read at every η measured, and less stays useful"
    return f"{title}: up to η {max(less):g}, surely less is read"


def _less_read(kept: dict[float, Point], base: Point) -> list[float]:
    return [eta for eta, p in kept.items() if p.leakage.ci95.high < base.leakage.ci95.low]


def _eta_told(kept: dict[float, Point], base: Point) -> float:
    """Return the η that the title names, or the largest where it names none."""
    return max(_less_read(kept, base) or kept)


def _between(kept: dict[float, Point], base: Point) -> str:
    first, last = kept[min(kept)], kept[max(kept)]
    return (
        f"From η {min(kept):g} to {max(kept):g}, words are read with an F1 of "
        f"**{first.leakage.said(0)}** to **{last.leakage.said(0)}**; without a defence "
        f"**{base.leakage.said(0)}**, by guessing {base.leakage.chance:.0f}."
    )


def attackers() -> Slide:
    """Return who attacked in the trade-off, with what access, taught by how much."""
    found = _found()
    known = found.facts.get("n_auxiliary")
    rows = []
    for name in found.attackers:
        family, access = told_of(name)
        own = found.undefended.leaks.get(name)
        rows.append((attacker_said(name), access or "–", own.said(0) if own else "–", family))
    n_settings = len(attacked(found, found.tasks[0]))
    told = attack_said(found.facts)
    return Slide(
        title="Every defence is attacked by those who know it",
        body=f"{n_settings} settings were measured: {told} Usefulness: {use_said(found.facts)}",
        table=Table(
            columns=("Attacker", "Needs", "Reads without a defence, F1", "Family"),
            rows=tuple(rows),
        ),
        facts=(
            ("Data", f"{found.facts.get('n_targets', 0):,} sentences kept from the attackers"),
            ("n", _attacked(found, found.undefended.leakage.n)),
            ("Interval", INTERVAL),
            *((("Cost", f"each is taught by {known:,} sentences"),) if known else ()),
            *origin(found.provenances),
        ),
        commands=(command_of("tradeoff"),),
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
