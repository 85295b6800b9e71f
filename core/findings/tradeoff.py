"""Findings on the trade-off: which defence to choose, what it protects and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leakscope.core.defences.metric_dp.guarantee import HARDLY, Guarantees, verdict
from leakscope.core.defences.setting import NO_PROMISE, describe_promise, entry_shown, first_of
from leakscope.core.figures.tradeoff import format_attacker, tradeoff_figure
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Fact, Finding, Table
from leakscope.core.findings.registry import check_choice
from leakscope.core.findings.shared import INTERVAL, provenance_facts
from leakscope.core.formatting import (
    capitalise,
    describe_leak,
    format_f1_change,
    format_percent,
    join_words,
)
from leakscope.core.results import Score
from leakscope.core.studies.deniability.odds import (
    format_odds_cell,
    guarantees_of_setting,
    odds_note,
)
from leakscope.core.studies.tradeoff.choice import (
    LEAKS_LEAST,
    NAMES_NOT_TESTED,
    SHARE,
    Choice,
    allowed_loss,
    attacked_settings,
    attacked_targets,
    choose,
    describe_list_attack,
    frontier,
    high,
    leak_of,
    low,
    unproven,
    untimed,
    within_time,
)
from leakscope.core.studies.tradeoff.summary import (
    ATTACKERS_SINCE,
    FRESH,
    READS,
    Point,
    Tradeoff,
    describe_milliseconds,
    kept_usefulness,
    shipped_tables,
    shipped_tradeoff,
)
from leakscope.core.studies.tradeoff.tables import attacker_family, describe_attack, describe_use
from leakscope.core.tasks.names import describe_task, use_of

SHARES = tuple(str(share) for share in range(50, 100))
"""Percentages of the utility that a user may require."""

KEEPS = (
    "Each setting is compared with no defence on the same texts. It counts as useful only if it "
    "loses no more than allowed even at the worse end of the 95 % CI."
)
"""The criterion for keeping a share of the utility (`choice.keeps_share`), in two sentences."""

_ENOUGH = 20_000
"""Number of training sentences below which an attacker counts as weak."""

_MOST_ALIKE, _MOST_ROWS = 3, 7
_NAMES = ("Gaussian", "SanText", "CusText", "“")
"""Beginnings of defences' titles that stay as they are inside a sentence."""

_ALSO = {
    "words": "words",
    "attribute": "an attribute of the texts",
    "membership": "membership in a classifier's training texts",
}
_INSTEAD = {
    "attribute": (
        "infers the attribute of **{} %** of texts (95 % CI {}) instead of **{} %** (95 % CI {})"
    ),
    "membership": (
        "recognises training texts with an AUC of **{}** (95 % CI {}) instead of **{}** (95 % CI "
        "{})"
    ),
}
_ATTACKED = {
    "words": "held-out sentences",
    "attribute": "held-out texts with the attribute",
    "membership": "a classifier's training texts, and as many others",
}
_LEARNS_FROM = {
    "words": ("n_auxiliary", "trained on {:,} defended sentences"),
    "attribute": ("n_attribute_known", "trained on at most {:,} defended texts"),
    "membership": ("n_shadows", "{:,} shadow models"),
}
"""The fact that counts an attacker's training data, and how to describe it."""
_UNMEASURED = {
    "attribute": "an attribute of the texts",
    "membership": "membership in training",
}


def commands() -> tuple[str, ...]:
    """Return the commands that reproduce the trade-off's tables."""
    return tuple(command_of(path.stem) for path in shipped_tables())


def defences(task: str = "", use: str = "", keep: str = f"{SHARE:.0%}".rstrip("%")) -> Finding:
    """Read the shipped rows; build the finding on which useful defence leaks least.

    Parameters
    ----------
    task : str
        The task that measures utility; empty for the first task of `use`.
    use : str
        The use of the vectors, one of `leakscope.core.tasks.names.USES`; empty for the first.
    keep : str
        Per cent of the utility to keep.
    """
    found = shipped_tradeoff()
    use = check_choice("use", use, tuple(found.uses)) if use else found.uses[0]
    task = check_choice("task", task, tuple(found.tasks)) if task else found.default_task(use)
    return defence_to_take(found, task, int(check_choice("keep", keep, SHARES)) / 100)


def defence_to_take(
    found: Tradeoff,
    task: str,
    share: float,
    reads: str = "words",
    *,
    most: float | None = None,
    rings: Mapping[str, int] | None = None,
    is_own: bool = False,
) -> Finding:
    """Build the finding on which useful defence leaks least; its figure shows all settings.

    Parameters
    ----------
    reads : str
        What the attacker recovers: words, an attribute or membership.
    most : float, optional
        Maximum milliseconds per text of a setting.
    rings : mapping of str to int, optional
        Letters and the indices of the points that they ring, after the filter by `most`. None
        builds a slide: A rings the setting of the title, and the text is shorter.
    is_own : bool
        Whether the rows are the user's own.
    """
    left = within_time(found, most)
    choice = choose(left, task, share, reads)
    place = next(i for i, point in enumerate(left.points) if point is choice.shown)
    is_slide = rings is None
    rings = ({"A": place} if choice.helps else {}) if rings is None else rings
    maybe = unproven(left, task, share, reads)
    edge = None if is_slide else frontier(left, task, reads)
    what = capitalise(READS[reads].partition(",")[0])
    alt = f"{what} against utility for {describe_task(task)}, one line per defence"
    if edge is not None:
        best = ", ".join(map(describe_point, edge.members))
        alt = f"{alt}; no setting significantly beats {best}; the table contains the same numbers"
    paragraphs = [
        _describe_answer(
            left,
            choice,
            task,
            share,
            maybe,
            is_ringed=rings.get("A") == place,
            is_slide=is_slide,
        )
    ]
    if not is_slide:
        paragraphs += _further_paragraphs(left, choice, task, share, maybe)
    paragraphs += [_describe_weak(left, reads), _describe_time(found, left, most, choice.shown)]
    settings = _shown_settings(choice)
    beyond = describe_beyond(choice.best, choice.base, reads) if choice.best else ""
    return Finding(
        title=_title(left, choice, task, share, most, is_own=is_own),
        body="\n\n".join(filter(None, paragraphs)),
        figure=tradeoff_figure(
            left, task, reads=reads, chosen=rings, edge=edge, is_timed=most is not None
        ),
        alt=alt,
        table=_settings_table(choice, task, encoder=encoder_of(left)),
        facts=(
            *facts_of(left, choice.shown, task, reads, n_compared=choice.n_compared),
            ("Kept", describe_usefulness_share(choice.base, task, share)),
            *((("Other leaks", beyond.replace("**", "")),) if beyond else ()),
            *odds_fact(settings, left),
            *provenance_facts(left.provenances),
        ),
        commands=("none: results of your own study",) if is_own else commands(),
    )


def _title(
    found: Tradeoff, choice: Choice, task: str, share: float, most: float | None, *, is_own: bool
) -> str:
    """Return the headline on which setting leaks least."""
    text = describe_title(choice, task, share)
    if most is not None and choice.helps:
        text = f"{text} and take at most {most:g} ms"
    if choice.helps and choice.promising is choice.best and has_void_guarantee(found, choice):
        text = f"{text}, with practically no guarantee"
    return f"In your study, {text[:1].lower()}{text[1:]}" if is_own else text


def _describe_answer(
    found: Tradeoff,
    choice: Choice,
    task: str,
    share: float,
    maybe: Point | None,
    *,
    is_ringed: bool,
    is_slide: bool,
) -> str:
    """Describe the best setting's leakage and utility, and the limits of this answer."""
    best, base = choice.best, choice.base
    may = "" if maybe is None else describe_unproven(choice, maybe, task)
    if best is None:
        return f"No tested setting was shown to keep this much utility. {may}".rstrip()
    read = _describe_change(choice, best)
    if not choice.helps:
        text = (
            f"The best of them is {_quoted_title(best)}. The strongest attacker, who knows the "
            f"defence, {read}."
        )
        return f"{' '.join(filter(None, [text, may]))}\n\n{_describe_promising(found, choice)}"
    leak, (by, _) = choice.leak(best), best.strongest(choice.reads) or ("", None)
    texts = "sentences" if choice.reads == "words" else "texts"
    first = [
        f"The strongest attacker ({format_attacker(by)}, {leak.n:,} {texts}) {read}. Utility is "
        f"{describe_kept(best, base, task)}.",
        describe_list_attack(encoder_of(found), best, is_brief=True),
        _describe_limits(found, choice, best, is_ringed=is_ringed),
    ]
    parts = [
        describe_alike(choice),
        "" if is_slide else describe_elsewhere(found, task, share, choice.reads),
        _describe_promising(found, choice),
    ]
    return "\n\n".join(" ".join(filter(None, each)) for each in (first, parts))


def _describe_limits(found: Tradeoff, choice: Choice, best: Point, *, is_ringed: bool) -> str:
    """Describe that the best setting has no guarantee, and its worst task; "" if neither."""
    kept = kept_usefulness(best, found.undefended)
    ring = " (A in the figure)" * is_ringed
    limits = []
    if len(kept) > 1:
        mean = format_percent(sum(kept.values()) / len(kept))
        worst = format_percent(min(kept.values()))
        limits.append(
            f"Over all {len(kept)} tasks, this setting{ring} keeps {mean} of the utility on "
            f"average ({worst} on the worst)."
        )
    if choice.promising is not best:
        it = "It" if limits else f"This setting{ring}"
        limits.append(f"{it} has no formal guarantee.")
    return " ".join(limits)


def _further_paragraphs(
    found: Tradeoff, choice: Choice, task: str, share: float, maybe: Point | None
) -> Iterator[str]:
    """Yield the finding's further paragraphs, which the page shows and a slide leaves out."""
    best, base, reads, encoder = choice.best, choice.base, choice.reads, encoder_of(found)
    kept = (
        f"To keep {describe_usefulness_share(base, task, share)}, a setting may lose at most "
        f"{describe_lost(base, task, share)}."
    )
    others = _describe_each_other(found, task, share, reads)
    if best is None or not choice.helps:
        beside = (
            ""
            if best is None
            else f"Leakage of {_quoted_title(best)} is {choice.beside_none(best)}. "
        )
        ask = "Keep less utility, or measure more texts." if best is None else ""
        yield f"{beside}{kept} {KEEPS} {ask}".rstrip()
        if maybe is not None:
            listed = describe_list_attack(encoder, maybe)
            yield f"{describe_beyond(maybe, base, reads)} {listed}".strip()
        yield (
            "Start with access control, encryption and short retention; their effect was not "
            f"measured. {describe_elsewhere(found, task, share, reads)} {others}"
        ).rstrip()
        return
    if (listed := describe_list_attack(encoder, best)) != NAMES_NOT_TESTED:
        yield listed
    change = best.change.get(task)
    by = "" if change is None else f"On the same texts, utility changes by {change.in_text(1)}."
    kept_by_task = kept_usefulness(best, base)
    least = min(kept_by_task, key=lambda name: kept_by_task[name], default=task)
    least_kept = ""
    if len(kept_by_task) > 1:
        least_kept = f"{_quoted_title(best)} keeps least on the task “{describe_task(least)}”."
    n_stored = n_stored_texts(found, task)
    yield " ".join(
        filter(
            None,
            [
                by,
                kept,
                describe_beyond(best, base, reads),
                describe_sentences(found, choice.leak(best), reads),
                f"The search covered {n_stored:,} stored texts; larger stores were not measured."
                if n_stored
                else "",
                least_kept,
                others,
            ],
        )
    )
    if maybe is not None and high(leak_of(maybe, reads)) < low(choice.leak(best)):
        yield f"{describe_unproven(choice, maybe, task)} {describe_beyond(maybe, base, reads)}"
    if choice.promising is not best:
        yield _describe_without_guarantee(choice)


def _describe_without_guarantee(choice: Choice) -> str:
    """Describe the limits of a best setting that has no guarantee."""
    assert choice.best is not None
    text = (
        f"{_quoted_title(choice.best)} was tested only against the attackers listed under “How "
        "this was measured”."
    )
    if choice.promising is None:
        return text
    named = _quoted_title(choice.promising)
    beyond = describe_beyond(choice.promising, choice.base, choice.reads, named=named)
    return f"{text} {beyond}".rstrip()


def _describe_change(choice: Choice, point: Point) -> str:
    """Return a clause that compares what is recovered under a setting and without a defence."""
    own, base = choice.leak(point), choice.leak(choice.base)
    if choice.reads == "words":
        return f"recovers {format_f1_change(own, base)}"
    text = _INSTEAD[choice.reads].format(*own.parts(0), *base.parts(0))
    less = f", {base.value - own.value:.0f} points less" if own.value < base.value else ""
    return f"{text}{less}{f' (guessing: {base.chance:.0f})' if base.chance > 0 else ''}"


def describe_read(score: Score, reads: str) -> str:
    """Describe a leakage score as a phrase, such as `an AUC of 52 (95 % CI 50–54)`."""
    if reads == "words":
        return describe_leak(score)
    value, interval = score.parts(0)
    what = f"the attribute of {value} % of texts" if reads == "attribute" else f"an AUC of {value}"
    return f"{what} (95 % CI {interval})"


def guarantees_after_releases(found: Tradeoff, point: Point) -> Guarantees | None:
    """Return a setting's guarantees for all releases of a text together; None if unknown."""
    guarantees = guarantees_of_setting(point.spec, encoder_of(found))
    return guarantees and guarantees.after(point.releases)


def has_void_guarantee(found: Tradeoff, choice: Choice) -> bool:
    """Return whether the best setting that has a guarantee has a practically void one."""
    guarantees = (
        None if choice.promising is None else guarantees_after_releases(found, choice.promising)
    )
    return guarantees is not None and guarantees.nearest.epsilon > HARDLY


def format_guarantee(found: Tradeoff, point: Point) -> str:
    """Format the odds that a setting guarantees, or its guarantee in words if it has no odds."""
    text = describe_promise(point.spec)
    if text == NO_PROMISE:
        return text
    guarantees = guarantees_after_releases(found, point)
    if guarantees is None:
        return text or "none"
    is_of_sets = first_of(point.spec).name == "custext"
    return f"{guarantees.short_odds}{'; the first within a set, which is visible' * is_of_sets}"


def _describe_promising(found: Tradeoff, choice: Choice) -> str:
    """Describe the best setting with a guarantee, and whether it helps."""
    point = choice.promising
    if point is None:
        return "No defence with a guarantee was shown to keep this much utility."
    guarantees = guarantees_after_releases(found, point)
    odds = ""
    if guarantees is not None:
        odds = f"The odds of its output are at most {guarantees.nearest_odds}."
    leak = choice.leak(point)
    if beside := choice.beside_none(point):
        read = describe_read(leak, choice.reads)
        return (
            "No defence with a guarantee was shown to help here. Among those that keep enough "
            f"utility, {_quoted_title(point)} leaks least: {read}, {beside}. {odds}"
        ).rstrip()
    if point is choice.best:
        return odds or f"Its guarantee: {describe_promise(point.spec)}."
    read = _format_leakage(leak, choice.reads, is_inside=True)
    least = f"{_quoted_title(point)} leaks least ({read})"
    if has_void_guarantee(found, choice):
        return (
            f"Of the defences with a proven limit on what leaks, {least}, but the limit is so "
            "high that this is practically no guarantee."
        )
    worth = "" if guarantees is None else f" It has {verdict(guarantees.nearest.epsilon)}."
    return f"Of the defences with a guarantee, {least}.{worth}"


def _describe_weak(found: Tradeoff, reads: str) -> str:
    """Warn that leakage is a lower bound if attackers are weak or outdated; else return ""."""
    n_texts = found.facts.get("n_auxiliary", _ENOUGH)
    if reads == "words" and n_texts < _ENOUGH:
        return (
            f"**A lower bound**: these attackers were trained on only {n_texts:,} sentences. "
            "Without a defence, the attacks on the Inversion page recover more, from many more "
            "sentences. With a defence, they would recover more, too."
        )
    if reads == "words" and found.facts.get("version", ATTACKERS_SINCE) < ATTACKERS_SINCE:
        return (
            "**A lower bound**: newer versions of these attackers recover more from the same texts."
        )
    return ""


def _describe_time(found: Tradeoff, left: Tradeoff, most: float | None, shown: Point) -> str:
    """Describe how many settings a time limit leaves out or were not timed; "" without a limit."""
    if most is None:
        return ""
    n, n_untimed = len(found.points), len(untimed(left))
    n_slower = n - len(left.points)
    verb, are = ("takes", "is") if n_slower == 1 else ("take", "are")
    base = left.undefended.milliseconds
    text = f"{n_slower} of {n} settings {verb} more than {most:g} ms per text and {are} left out."
    if n_untimed:
        text += (
            f" {n_untimed} {'was' if n_untimed == 1 else 'were'} not timed: shown hollow, and "
            "marked “not timed”."
        )
        text += " This includes the headline's setting." * (shown.milliseconds is None)
    if base is not None and base > most:
        text += " “No defence” is also slower, but stays as the baseline."
    return text


def describe_missing(found: Tradeoff) -> str:
    """Describe which measurements of the defences are missing; empty for none."""
    missing = [text for what, text in _UNMEASURED.items() if what not in attacked_targets(found)]
    if all(p.milliseconds is None and p.training_minutes is None for p in found.points):
        missing.append("the time it takes")
    if not missing:
        return ""
    text = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} or {missing[-1]}"
    only = " and ".join(READS[what] for what in attacked_targets(found))
    return f"Measured for each defence: {only}. Not measured: {text}."


def describe_point(point: Point) -> str:
    """Return a setting's defence title with its strength."""
    title = entry_shown(point.defence).title
    return f"{title}{'' if point.label.startswith('to ') else ','} {point.label}".rstrip(" ,")


def _quoted_title(point: Point) -> str:
    """Return a setting's defence title with its strength, in quotes if it contains a comma."""
    name = describe_point(point)
    return f"“{name}”" if "," in name else name


def _title_inside_sentence(point: Point) -> str:
    """Return a setting's title for use inside a sentence: in lower case, unless it is a name."""
    name = _quoted_title(point)
    is_name = name.startswith(_NAMES) or not name[1:2].islower()
    return name if is_name else f"{name[:1].lower()}{name[1:]}"


def describe_title(choice: Choice, task: str, share: float) -> str:
    """Return the headline: which setting leaks least for a task, or that none significantly helps.

    If no defence helps, it never claims that nothing helps.
    """
    where = capitalise(_for_task(task))
    kept = f"shown to keep {format_percent(share)} of the advantage over guessing"
    if choice.best is None:
        return f"{where}, no tested defence was {kept}"
    if choice.helps:
        return (
            f"{where}, {_title_inside_sentence(choice.best)} {LEAKS_LEAST[choice.reads]} of the "
            f"settings that keep {format_percent(share)} of the utility"
        )
    own, none = (
        _format_leakage(Score(choice.leak(point).value), choice.reads)
        for point in (choice.best, choice.base)
    )
    return (
        f"{where}, no defence {kept} leaks significantly less: at best {own}, without a defence "
        f"{none}"
    )


def describe_change_in_utility(point: Point, base: Point, task: str) -> str:
    """Describe how many points of a task's utility a setting loses or gains against no defence.

    Examples
    --------
    >>> from leakscope.core.results import Score
    >>> base, point = (Point("none", (), {"CR": Score(x)}, {}, None) for x in (81.4, 80.1))
    >>> describe_change_in_utility(point, base, "CR")
    'loses 1.3 points of utility'
    """
    change = point.change.get(task)
    lost = point.utility[task].value - base.utility[task].value
    value = lost if change is None else change.value
    return f"{'gains' if value >= 0.05 else 'loses'} {abs(value):.1f} points of utility"


def describe_lost(base: Point, task: str, share: float) -> str:
    """Format how many points of utility may be lost if a given share must be kept.

    Examples
    --------
    >>> from leakscope.core.results import Score
    >>> base = Point("none", (), {"CR": Score(81.4, chance=63.9)}, {}, None)
    >>> describe_lost(base, "CR", 0.9)
    '1.8 points'
    """
    return f"{allowed_loss(base, task, share):.1f} points"


def describe_usefulness_share(base: Point, task: str, share: float) -> str:
    """Explain what share of the advantage over guessing must be kept, with the actual scores."""
    useful = base.utility[task]
    return (
        f"{format_percent(share)} of the advantage over guessing (guessing: {useful.chance:.0f}, "
        f"no defence: {useful.value:.0f})"
    )


def _format_leakage(score: Score, reads: str, *, is_inside: bool = False) -> str:
    """Format a leakage score with its unit and its interval; see `Score.in_text`."""
    value, interval = score.parts(0)
    named = {"words": f"F1 {value}", "attribute": f"{value} % of texts"}.get(reads, f"AUC {value}")
    if not score.ci95.is_known:
        return named
    return f"{named}, 95 % CI {interval}" if is_inside else f"{named} (95 % CI {interval})"


def describe_kept(point: Point, base: Point, task: str) -> str:
    """Format a task's utility with a setting, and without a defence."""
    own, none = point.utility[task], base.utility[task]
    return f"{own.in_text(0, is_bold=True)} instead of {none.in_text(0)}"


def _for_task(task: str) -> str:
    """Return the phrase "for TASK", or "for finding TASK" if the task is a search."""
    name = describe_task(task)
    what = name.removeprefix("search: ")
    return f"for {what}" if what == name else f"for finding {what}"


def _choices_for_other_tasks(
    found: Tradeoff, task: str, share: float, reads: str
) -> dict[str, Choice]:
    """Choose the best setting for each other task of the same use; return the choices by task."""
    use = use_of(found.measures[task])
    names = [name for name in found.tasks if name != task and use_of(found.measures[name]) == use]
    return {name: choose(found, name, share, reads) for name in names}


def describe_elsewhere(found: Tradeoff, task: str, share: float, reads: str) -> str:
    """Describe for how many other tasks of the same use some setting was shown to help."""
    others = _choices_for_other_tasks(found, task, share, reads)
    if len(others) <= _MOST_ALIKE:
        return "The best setting depends on the task."
    n_helped = sum(choice.helps for choice in others.values())
    helped = f"{n_helped or 'none'} of the {len(others)} other tasks"
    return f"The best setting depends on the task: for {helped} of this use, one was shown to help."


def _describe_each_other(found: Tradeoff, task: str, share: float, reads: str) -> str:
    """Describe the best setting for each other task of the same use; "" for none or many tasks."""
    others = _choices_for_other_tasks(found, task, share, reads)
    sentences = [
        f"{_for_task(name)}, {_quoted_title(choice.best)} leaks least "
        f"({_format_leakage(choice.leak(choice.best), reads, is_inside=True)})"
        if choice.best is not None and choice.helps
        else f"{_for_task(name)}, no setting was shown to help"
        for name, choice in others.items()
    ]
    return f"{capitalise(join_words(sentences))}." if 0 < len(sentences) <= _MOST_ALIKE else ""


def describe_unproven(choice: Choice, point: Point, task: str) -> str:
    """Describe a setting that may keep enough utility, if too few texts were tested to tell."""
    own, none = leak_of(point, choice.reads), leak_of(choice.base, choice.reads)
    change = point.change.get(task)
    by = "" if change is None else f", a change of {change.in_text(1)} on the same texts"
    leaks = " instead of ".join(_format_leakage(score, choice.reads) for score in (own, none))
    return (
        f"**{describe_point(point)}** may keep enough utility: "
        f"{describe_kept(point, choice.base, task)}{by}. Leakage is {leaks}. The value suffices, "
        f"but its interval does not: the loss was not resolvable on {point.utility[task].n:,} "
        "texts."
    )


def describe_alike(choice: Choice) -> str:
    """Describe which settings do not leak significantly more than the best; "" for none."""
    if not choice.alike:
        return ""
    named = [_quoted_title(point) for point in choice.alike[:_MOST_ALIKE]]
    more = len(choice.alike) - _MOST_ALIKE
    if more > 0:
        named.append(f"{more} more")
    verb = "does" if len(choice.alike) == 1 else "do"
    also = "it" if len(choice.alike) == 1 else "they"
    return f"{join_words(named)} may be as good: {also} {verb} not leak significantly more."


def n_stored_texts(found: Tradeoff, task: str) -> int:
    """Return the number of texts a search task stores; 0 for other tasks or if not recorded."""
    if use_of(found.measures[task]) != "search":
        return 0
    own = (each["n_train"] for each in found.facts.get("subsets", ()) if task in each["tasks"])
    return int(next(own, found.facts.get("n_searched") or 0))


def describe_sentences(found: Tradeoff, leak: Score, reads: str) -> str:
    """Describe how many texts the leakage was measured on, and what kind."""
    if reads == "membership":
        named = describe_task(str(found.facts.get("task", "")).partition("=")[0])
        return f"Membership means being a training text of a classifier: {named}."
    if reads == "attribute":
        return f"The attribute was inferred for {leak.n:,} texts that are not part of the task."
    return f"Leakage was measured on {leak.n:,} sentences that are not part of the task."


def describe_beyond(point: Point, base: Point, reads: str, *, named: str = "this setting") -> str:
    """Describe what else leaks more with a setting than without, and what was not tested.

    Empty if every other attack was also tried on the setting, and none recovers more.

    Parameters
    ----------
    named : str
        The setting's name in the sentences.
    """
    tried = [what for what in READS if what != reads and base.read_by(what)]
    more = [
        f"{_ALSO[what]} ({_format_leakage(leak_of(point, what), what, is_inside=True)}, instead of "
        f"{_format_leakage(leak_of(base, what), what, is_inside=True)})"
        for what in tried
        if point.read_by(what) and low(leak_of(point, what)) > high(leak_of(base, what))
    ]
    untested = [_ALSO[what] for what in tried if not point.read_by(what)]
    sentences = []
    if more:
        stronger = f"**{capitalise(named)} makes other attacks stronger**"
        sentences.append(f"{stronger} than without a defence: {join_words(more)}.")
    if untested:
        sentences.append(
            f"On {named}, these attacks were not tested: {join_words(untested)}. That is no "
            "evidence of safety."
        )
    return " ".join(sentences)


def best_by_task(found: Tradeoff, share: float, reads: str) -> list[dict[str, Any]]:
    """Choose the best setting for each task; return one table row (a dict) per task."""
    rows = []
    for task in found.tasks:
        choice = choose(found, task, share, reads)
        odds = "–" if choice.promising is None else format_guarantee(found, choice.promising)
        weak = ": practically no guarantee" * has_void_guarantee(found, choice)
        rows.append(
            {
                "task": describe_task(task),
                "plain": choice.base.utility[task].value,
                "best": _describe_least(choice.best, choice),
                "promising": _describe_least(choice.promising, choice),
                "odds": f"{odds}{weak}",
            }
        )
    return rows


def _describe_least(point: Point | None, choice: Choice) -> str:
    """Describe the least-leaking setting for a task, or say that none helps."""
    if point is None:
        return "none keeps enough"
    text = f"{describe_point(point)}: {choice.leak(point).format(0)}"
    beside = choice.beside_none(point)
    return f"none significantly less; at best {text}, {beside}" if beside else text


def _shown_settings(choice: Choice) -> list[Point]:
    """Return the settings of a choice's table: none, the best, the guaranteed, and similar ones."""
    shown = [choice.base, choice.best, choice.promising, *choice.alike]
    kept = {id(point): point for point in shown if point is not None}
    return list(kept.values())[:_MOST_ROWS]


def _settings_table(choice: Choice, task: str, *, encoder: str) -> Table:
    """Build the table of a choice's settings, with guessing as its last row."""
    base, reads = choice.base, choice.reads
    rows = []
    for point in _shown_settings(choice):
        by, leak = (point.strongest(reads) or ("",))[0], choice.leak(point)
        useful = point.utility[task].format(0) if task in point.utility else "–"
        odds = format_odds_cell(point.spec, encoder, point.releases)
        times = f" after {point.releases} releases" if point.releases > 1 else ""
        promise = f"{describe_promise(point.spec)}{odds and f'; odds of at most {odds}{times}'}"
        rows.append(
            (
                describe_point(point),
                useful,
                leak.format(0),
                format_attacker(by),
                promise or "none",
                describe_milliseconds(point),
            )
        )
    guess = (
        "Guessing",
        f"{base.utility[task].chance:.0f}",
        f"{leak_of(base, reads).chance:.0f}",
        "never sees the vector",
        "",
        "",
    )
    columns = (
        "Defence",
        f"Utility for {describe_task(task)}",
        capitalise(READS[reads]),
        "Strongest attacker",
        "Guarantee",
        "Time per text",
    )
    return Table(columns=columns, rows=(*rows, guess))


def encoder_of(found: Tradeoff) -> str:
    """Return the name of the encoder that was measured."""
    return str(found.facts.get("encoder", ""))


def odds_fact(points: Iterable[Point], found: Tradeoff) -> tuple[Fact, ...]:
    """Return a fact that explains what the odds of these points mean; () if none has odds."""
    note = odds_note([point.spec for point in points], encoder_of(found))
    return (("Odds", capitalise(note)),) if note else ()


def facts_of(
    found: Tradeoff, point: Point, task: str, reads: str = "words", *, n_compared: int = 1
) -> tuple[Fact, ...]:
    """Return a chosen setting's facts as (name, text) pairs: data, n, attacker, access and cost."""
    by, leak = point.strongest(reads) or ("", Score(float("nan")))
    family, access = attacker_family(by)
    name = format_attacker(by)
    is_news = not set(family.split()) <= set(name.split())
    known, cost = found.facts.get(_LEARNS_FROM[reads][0]), _LEARNS_FROM[reads][1]
    n_stored = n_stored_texts(found, task)
    among = f", among {n_stored:,} stored texts (the largest store measured)" if n_stored else ""
    corrected = f"; for leakage, corrected for choosing among {n_compared} settings"
    corrected *= n_compared > 1
    return (
        ("Data", f"{_ATTACKED[reads]}; {describe_task(task)}"),
        (
            "n",
            f"{_describe_sample(found, leak, reads)}; {point.utility[task].n:,} texts for "
            f"utility{among}",
        ),
        ("Interval", INTERVAL + corrected),
        ("Attacker", f"{name}, who knows the defence{f' ({family})' if is_news else ''}"),
        ("Access", access or "not recorded"),
        ("Cost", cost.format(known) if known else "not recorded"),
    )


def _describe_sample(found: Tradeoff, leak: Score, reads: str = "words") -> str:
    """Describe how many texts were attacked for a score, and under how many random seeds."""
    if reads != "words":
        return f"{leak.n:,} texts"
    n, seeds, targets = leak.n, leak.n_seeds, int(found.facts.get("n_targets", 0))
    if seeds > 1 and n == targets * seeds:
        return f"{n:,} sentences, {targets:,} others for each of {seeds} random seeds"
    return f"{n:,} sentences{' under one random seed' * (seeds == 1)}"


def attackers() -> Finding:
    """Build the finding that lists the trade-off's attackers with their access and training."""
    found = shipped_tradeoff()
    known = found.facts.get("n_auxiliary")
    rows = []
    late = [name for name in found.attackers if name in FRESH]
    for name in found.attackers:
        if name in late:
            continue
        family, access = attacker_family(name)
        own = found.undefended.leaks.get(name)
        rows.append((format_attacker(name), access or "–", own.format(0) if own else "–", family))
    task = found.tasks[0]
    n_settings = len(attacked_settings(found, task))
    text = capitalise(describe_attack(found.facts))
    is_blank = any(reads == "–" for _, _, reads, _ in rows)
    blank = " –: this attacker needs the output of a mechanism, so it has no score without one."
    more = f" Trained defences also face: {', '.join(map(format_attacker, late))}." if late else ""
    return Finding(
        title="Every attacker knows the defence",
        body=f"{n_settings} settings were measured. {text}{more}{blank * is_blank}",
        table=Table(
            columns=("Attacker", "Needs", "F1 without a defence", "Family"),
            rows=tuple(rows),
        ),
        facts=(
            ("Data", f"{found.facts.get('n_targets', 0):,} held-out sentences"),
            ("n", _describe_sample(found, found.undefended.leakage)),
            ("Interval", INTERVAL),
            ("Attacker", f"{len(rows)} kinds, listed in the table; each knows the defence"),
            ("Access", "defended vectors, and what the table lists"),
            ("Cost", f"each is trained on {known:,} sentences" if known else "not recorded"),
            ("Utility", describe_use(found.facts)),
            *provenance_facts(found.provenances),
        ),
        commands=commands(),
        live=(("task", task),),
    )
