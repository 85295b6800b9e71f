"""Views of what defences save and cost, told from the rows of the trade-off."""

from __future__ import annotations

from collections.abc import Iterable

from core.defences.metric_dp.promise import verdict
from core.figures.tradeoff import attacker_said, tradeoff_figure
from core.results import Score
from core.said import instead_said, leak_said
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import Fact, Slide, Table
from core.story.views import chosen
from core.story.views_read import INTERVAL, origin
from core.studies.odds import kept_odds, odds_note, odds_of
from core.studies.tradeoff_choice import (
    SHARE,
    Choice,
    attacked,
    choose,
    leak_of,
    listed_said,
    unproven,
)
from core.studies.tradeoff_files import shipped_tables, shipped_tradeoff
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import FRESH, attack_said, told_of, use_said
from core.studies.tradeoff_setting import (
    milliseconds_said,
    promise_said,
)
from core.studies.tradeoff_summary import Point, Tradeoff
from core.studies.tradeoff_told import (
    beyond_said,
    elsewhere_said,
    kept_said,
    others_said,
    point_said,
    stored,
    title_said,
    unproven_said,
    way_said,
)
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


def defences(task: str = "", use: str = "", keep: str = f"{SHARE:.0%}".rstrip("%")) -> Slide:
    """Return which defence leaks least of the useful settings, with the figure of all.

    Parameters
    ----------
    task : str
        What usefulness was measured on; the opening task of `use` where it is empty.
    use : str
        What the vectors are for, one of `core.tasks.names.USES`; the first where it is empty.
    keep : str
        Per cent of the usefulness to keep.
    """
    found = found_here()
    use = chosen("use", use, tuple(found.uses)) if use else found.uses[0]
    task = chosen("task", task, tuple(found.tasks)) if task else found.opening_task(use)
    share = int(chosen("keep", keep, SHARES)) / 100
    choice = choose(found, task, share)
    place = next(i for i, point in enumerate(found.points) if point is choice.shown)
    figure = tradeoff_figure(found, task, chosen={"A": place} if choice.helps else {})
    encoder, told = encoder_of(found), told_of_choice(choice)
    return Slide(
        title=title_said(choice, task, share),
        body=_body(found, choice, task, share),
        figure=plain_figure(figure),
        alt=f"Words recovered against usefulness for {task_said(task)}, a line for each defence",
        table=settings_table(choice, task, encoder=encoder),
        facts=(
            *facts_of(found, choice.shown, task, n_compared=choice.n_compared),
            ("Kept", way_said(choice.base, task, share)),
            *_beyond(choice),
            *odds_fact(told, found),
            *origin(found.provenances),
        ),
        commands=commands(),
    )


def _beyond(choice: Choice) -> tuple[Fact, ...]:
    told = beyond_said(choice.best, choice.base, choice.reads) if choice.best else ""
    return (("Beside", told.replace("**", "")),) if told else ()


def _body(found: Tradeoff, choice: Choice, task: str, share: float) -> str:
    best, base, encoder = choice.best, choice.base, encoder_of(found)
    point = None if choice.helps else unproven(found, task, share, choice.reads)
    maybe = "" if point is None else unproven_said(choice, point, task)
    if best is None:
        return (f"No tested setting is shown to lose so little. {maybe}").rstrip()
    if not choice.helps:
        told = (
            "Behind the best of them, the strongest attacker, who knows the defence, reads "
            f"{instead_said(choice.leak(best), choice.leak(base))} ({point_said(best)})."
        )
        return f"{told} {maybe} {_promised(choice, share, encoder)}".replace("  ", " ")
    told = (
        "With it (A in the figure), the strongest attacker reads "
        f"{instead_said(choice.leak(best), choice.leak(base))}. Usefulness is "
        f"{kept_said(best, base, task, is_brief=True)}. {others_said(found, best, is_brief=True)} "
        f"{elsewhere_said(found, task, share, choice.reads, is_brief=True)}"
    )
    nothing = "" if choice.promising is best else "It promises nothing."
    listed = listed_said(encoder, best, is_brief=True)
    promised = _promised(choice, share, encoder)
    return " ".join(filter(None, [told, listed, nothing, promised]))


def _promised(choice: Choice, share: float, encoder: str) -> str:
    """Return whether anything that promises something helps, and what it promises."""
    point = choice.promising
    if point is None:
        return "No defence that promises something is shown to lose so little."
    one = odds_of(point.spec, encoder)
    found = None if one is None else one.after(point.releases)
    odds = "" if found is None else f"It promises {found.of_nearest}."
    read = leak_said(choice.leak(point), is_bold=True)
    beside = choice.beside_none(point)
    if beside:
        return (
            "Nothing that promises something is shown to help here: of that which stays useful, "
            f"{point_said(point)} leaks least, and {read} are read, {beside}. {odds}"
        ).rstrip()
    if point is choice.best:
        return odds or f"It promises: {promise_said(point.spec)}."
    worth = "" if found is None else f": {verdict(found.nearest.epsilon)}"
    leak = choice.leak(point).said(0)
    return f"With a promise, {point_said(point)} leaks least: F1 {leak}{worth}."


def told_of_choice(choice: Choice) -> list[Point]:
    """Return the settings that a headline is about: none, the best, and what is like it."""
    shown = [choice.base, choice.best, choice.promising, *choice.alike]
    kept = {id(point): point for point in shown if point is not None}
    return list(kept.values())[:_MOST_ROWS]


_MOST_ROWS = 7


def settings_table(choice: Choice, task: str, *, encoder: str) -> Table:
    """Return the settings that a choice is about as a table, guessing at its end."""
    base, reads = choice.base, choice.reads
    rows = []
    for point in told_of_choice(choice):
        by, leak = (point.strongest(reads) or ("",))[0], choice.leak(point)
        useful = point.utility[task].said(0) if task in point.utility else "–"
        odds = kept_odds(point.spec, encoder, point.releases)
        times = f" after {point.releases} releases" if point.releases > 1 else ""
        promise = f"{promise_said(point.spec)}{odds and f'; odds up to {odds}{times}'}"
        rows.append(
            (point_said(point), useful, leak.said(0), attacker_said(by), promise or "none",
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


def facts_of(
    found: Tradeoff, point: Point, task: str, reads: str = "words", *, n_compared: int = 1
) -> tuple[Fact, ...]:
    """Return what a setting's numbers rest on, which was chosen from `n_compared`."""
    by, leak = point.strongest(reads) or ("", Score(float("nan")))
    family, access = told_of(by)
    name = attacker_said(by)
    is_news = not set(family.split()) <= set(name.split())
    known = found.facts.get("n_auxiliary")
    n_stored = stored(found, task)
    among = f", among {n_stored:,} stored (the largest store measured)" if n_stored else ""
    corrected = f"; of leakage corrected for choosing among {n_compared} settings"
    corrected *= n_compared > 1
    return (
        ("Data", f"sentences kept from the attackers; {task_said(task)}"),
        (
            "n",
            f"{_attacked(found, leak)}; {point.utility[task].n:,} texts for usefulness{among}",
        ),
        ("Interval", INTERVAL + corrected),
        ("Attacker", f"{name}, who knows the defence{f' ({family})' if is_news else ''}"),
        ("Access", access or "not recorded"),
        ("Cost", f"taught by {known:,} sentences behind the defence" if known else "not recorded"),
    )


def _attacked(found: Tradeoff, leak: Score) -> str:
    """Return how many sentences were attacked: each counts once for every seed."""
    n, seeds, targets = leak.n, leak.n_seeds, int(found.facts.get("n_targets", 0))
    if seeds > 1 and n == targets * seeds:
        return f"{n:,} sentences, {targets:,} others for each of {seeds} seeds"
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
    task = found.tasks[0]
    n_settings = len(attacked(found, task))
    told = attack_said(found.facts)
    told = f"{told[:1].upper()}{told[1:]}"
    is_blank = any(reads == "–" for _, _, reads, _ in rows)
    blank = " –: who reads what a mechanism releases has nothing to read without one."
    more = f" To trained ones come {', '.join(map(attacker_said, late))}, too." if late else ""
    return Slide(
        title="Every defence is attacked by those who know it",
        body=f"{n_settings} settings were measured. {told}{more}{blank * is_blank}",
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
            ("Usefulness", use_said(found.facts)),
            *origin(found.provenances),
        ),
        commands=commands(),
        live=(("task", task),),
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
