"""Views of what defences save and cost, told from the rows of the trade-off."""

from __future__ import annotations

from collections.abc import Iterable

from core.figures.tradeoff import attacker_said, tradeoff_figure
from core.results import Score
from core.said import instead_said, leak_said, percent_said
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import Fact, Slide, Table
from core.story.views import chosen
from core.story.views_read import INTERVAL, origin
from core.studies.odds import kept_odds, odds_note, odds_told
from core.studies.tradeoff_choice import SHARE, Choice, attacked, beside_none, choose, leak_of
from core.studies.tradeoff_files import shipped_tables, shipped_tradeoff
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import FRESH, attack_said, told_of, use_said
from core.studies.tradeoff_setting import (
    entry_shown,
    milliseconds_said,
    promise_said,
)
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said

__all__ = [
    "SHARES",
    "attackers",
    "commands",
    "defences",
    "encoder_of",
    "facts_of",
    "found_here",
    "odds_fact",
    "settings_table",
    "told_of_choice",
]

SHARES = tuple(str(share) for share in range(50, 100))


def found_here() -> Tradeoff:
    """Return the rows of the trade-off that ship."""
    return shipped_tradeoff("minilm")


def commands() -> tuple[str, ...]:
    """Return what measures them again, a command a table."""
    kinds = (path.stem.removeprefix("minilm") for path in shipped_tables("minilm"))
    return tuple(command_of(f"tradeoff{kind}") for kind in kinds)


def defences(task: str = "TREC", keep: str = f"{SHARE:.0%}".rstrip("%")) -> Slide:
    """Return which defence leaks least of what stays useful, with the figure of all."""
    found = found_here()
    chosen("task", task, tuple(found.tasks))
    share = int(chosen("keep", keep, SHARES)) / 100
    choice = choose(found, task, share)
    place = next(i for i, point in enumerate(found.points) if point is choice.shown)
    figure = tradeoff_figure(found, task, chosen={"A": place} if choice.helps else {})
    encoder, told = encoder_of(found), told_of_choice(choice)
    return Slide(
        title=_title(choice, share),
        body=_body(choice, task, share, encoder),
        figure=plain_figure(figure),
        alt=f"Words recovered against usefulness for {task_said(task)}, a line for each defence",
        table=settings_table(told, choice.base, task, encoder=encoder),
        facts=(
            *facts_of(found, choice.shown, task),
            *odds_fact(told, found),
            *origin(found.provenances),
        ),
        commands=commands(),
    )


def said(point: Point) -> str:
    """Return a defence and its strength in words."""
    title = entry_shown(point.defence).title
    return f"{title}, {point.label}" if point.label else title


def _title(choice: Choice, share: float) -> str:
    if choice.best is None:
        return f"No defence here surely keeps {percent_said(share)} of the usefulness"
    if not choice.helps:
        own, none = (choice.leak(point).value for point in (choice.best, choice.base))
        return (
            f"No defence that keeps {percent_said(share)} of the usefulness surely leaks less: "
            f"F1 {own:.0f} at the least, {none:.0f} without"
        )
    return f"{said(choice.best)} leaks least of what stays useful"


def _body(choice: Choice, task: str, share: float, encoder: str) -> str:
    best, base = choice.best, choice.base
    if best is None:
        return (
            f"None of the settings measured surely keeps {percent_said(share)} of the usefulness "
            f"for {task_said(task)}."
        )
    if not choice.helps:
        told = (
            f"Through every setting that surely keeps {percent_said(share)} of the usefulness for "
            f"{task_said(task)}, the strongest attacker, who knows the defence, reads as much as "
            f"without one, as far as the intervals tell: at the least "
            f"{instead_said(choice.leak(best), choice.leak(base))} ({said(best)})."
        )
        return f"{told} {_promised(choice, share, encoder)}"
    told = (
        "With the best setting (A in the figure), the strongest attacker, who knows the defence, "
        "reads "
        f"{instead_said(choice.leak(best), choice.leak(base))}. What it costs: usefulness for "
        f"{task_said(task)} is **{best.utility[task].said(0)}** instead of "
        f"{base.utility[task].said(0)}; to keep {percent_said(share)} of it was asked for."
    )
    return f"{told} {_promised(choice, share, encoder)}"


def _promised(choice: Choice, share: float, encoder: str) -> str:
    """Return whether anything that promises something helps, and what it promises."""
    point = choice.promising
    if point is None:
        return f"No defence that promises something surely keeps {percent_said(share)}."
    odds = f" {odds_told(point.spec, encoder)}".rstrip()
    read = leak_said(choice.leak(point), is_bold=True)
    beside = beside_none(point, choice.base)
    if beside:
        return (
            f"Nothing that promises something helps: of that which stays useful, {said(point)} "
            f"leaks least, and {read} are read, {beside}.{odds}"
        )
    return (
        f"Of those that promise something, {said(point)} leaks least: {read} are read. It "
        f"promises: {promise_said(point.spec)}.{odds}"
    )


def told_of_choice(choice: Choice) -> list[Point]:
    """Return the settings that a headline is about: none, the best, and what is like it."""
    shown = [choice.base, choice.best, choice.promising, *choice.alike]
    kept = {id(point): point for point in shown if point is not None}
    return list(kept.values())[:_MOST_ROWS]


_MOST_ROWS = 7


def settings_table(
    points: list[Point], base: Point, task: str, reads: str = "words", *, encoder: str
) -> Table:
    """Return settings as a table, guessing at its end."""
    rows = []
    for point in points:
        by, leak = point.strongest(reads) or ("", Score(float("nan")))
        useful = point.utility[task].said(0) if task in point.utility else "–"
        odds = kept_odds(point.spec, encoder)
        promise = f"{promise_said(point.spec)}{odds and f'; odds up to {odds}'}"
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
        f"Useful for {task_said(task)}",
        _capital(READS[reads]),
        "By",
        "Promise",
        "A text takes",
    )
    return Table(columns=columns, rows=(*rows, guess))


def encoder_of(found: Tradeoff) -> str:
    """Return what was measured, by its name."""
    return str(found.facts.get("encoder", ""))


def odds_fact(points: Iterable[Point], found: Tradeoff) -> tuple[Fact, ...]:
    """Return what the odds beside settings are of; nothing where none stands there."""
    note = odds_note([point.spec for point in points], encoder_of(found))
    return (("Odds", f"{note[:1].upper()}{note[1:]}"),) if note else ()


def facts_of(found: Tradeoff, point: Point, task: str, reads: str = "words") -> tuple[Fact, ...]:
    """Return what a setting's numbers rest on."""
    by, leak = point.strongest(reads) or ("", Score(float("nan")))
    family, access = told_of(by)
    name = attacker_said(by)
    is_news = not set(family.split()) <= set(name.split())
    known = found.facts.get("n_auxiliary")
    return (
        ("Data", f"sentences kept from the attackers; {task_said(task)}"),
        ("n", f"{_attacked(found, leak)}; {point.utility[task].n:,} texts for {task_said(task)}"),
        ("Interval", INTERVAL),
        ("Attacker", f"{name}, who knows the defence{f' ({family})' if is_news else ''}"),
        ("Access", access or "not recorded"),
        ("Cost", f"taught by {known:,} sentences behind the defence" if known else "not recorded"),
    )


def _attacked(found: Tradeoff, leak: Score) -> str:
    """Return how many sentences were attacked: each counts once for every seed."""
    n, seeds, targets = leak.n, leak.n_seeds, int(found.facts.get("n_targets", 0))
    if seeds > 1 and n == targets * seeds:
        return f"{n:,}: {targets:,} sentences under each of {seeds} seeds, drawn anew by each"
    return f"{n:,} sentences{' under one seed' * (seeds == 1)}"


def attackers() -> Slide:
    """Return who attacked in the trade-off, with what access, taught by how much."""
    found = found_here()
    known = found.facts.get("n_auxiliary")
    rows = []
    late = [name for name in found.attackers if name in FRESH]
    for name in found.attackers:
        if name in late:
            continue
        family, access = told_of(name)
        own = found.undefended.leaks.get(name)
        rows.append((attacker_said(name), access or "–", own.said(0) if own else "–", family))
    n_settings = len(attacked(found, found.tasks[0]))
    told = attack_said(found.facts)
    told = f"{told[:1].upper()}{told[1:]}"
    is_blank = any(reads == "–" for _, _, reads, _ in rows)
    blank = " –: who reads what a mechanism releases has nothing to read without one."
    more = f" To trained ones come {', '.join(map(attacker_said, late))}, too." if late else ""
    return Slide(
        title="Every defence is attacked by those who know it",
        body=f"{n_settings} settings were measured. {told}{more} Usefulness: "
        f"{use_said(found.facts)}{blank * is_blank}",
        table=Table(
            columns=("Attacker", "Needs", "Reads without a defence, F1", "Family"),
            rows=tuple(rows),
        ),
        facts=(
            ("Data", f"{found.facts.get('n_targets', 0):,} sentences kept from the attackers"),
            ("n", _attacked(found, found.undefended.leakage)),
            ("Interval", INTERVAL),
            ("Attacker", f"{len(rows)} kinds, in the table; each knows the defence"),
            ("Access", "vectors behind the defence, and what the table says beside"),
            ("Cost", f"each is taught by {known:,} sentences" if known else "not recorded"),
            *origin(found.provenances),
        ),
        commands=commands(),
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
