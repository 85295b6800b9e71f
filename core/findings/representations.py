"""Findings on which encoder leaks least at equal utility, among shipped and own encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.representations import (
    collection_title,
    encoder_title,
    own_leaks_figure,
    representations_figure,
)
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Finding, Table, facts_of_none
from leakscope.core.findings.prose import plain
from leakscope.core.findings.registry import check_choice
from leakscope.core.findings.shared import INTERVAL, attacker_facts, provenance_facts
from leakscope.core.formatting import describe_leak, format_guess, format_recall, join_words
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion import representation_summary
from leakscope.core.studies.inversion.classification import VIEWS
from leakscope.core.studies.inversion.own_encoder import OwnLeak
from leakscope.core.studies.inversion.prepared import QUICK
from leakscope.core.studies.inversion.representation_order import (
    LeastLeaking,
    OwnVerdict,
    judge_own,
    least_leaking,
    paper_points,
    strongest,
)
from leakscope.core.studies.inversion.representation_summary import (
    YOURS,
    AttackScore,
    Point,
    Representations,
)

QUESTION = "Which encoder leaks least at equal utility?"

VIEW_NAMES = dict(zip(VIEWS, ("titles", "first sentences", "whole texts"), strict=True))
"""Which part of an article is sorted by topic."""


@dataclass(frozen=True, kw_only=True)
class EncoderChoice:
    """Which encoders are compared, and under which attacks.

    Attributes
    ----------
    domain : str
        The texts that encoders and attacks are fitted on, one of DOMAINS.
    view : str
        Which part of an article is sorted by topic, one of VIEWS.
    has_paper : bool
        Whether the figure also shows the results of Corò (2022).
    """

    encoders: tuple[str, ...]
    attacks: tuple[str, ...]
    domain: str = "cross"
    view: str = "sentences"
    has_paper: bool = False

    def points(self, found: Representations) -> list[Point]:
        """Return the measured point of each chosen encoder under each chosen attack."""
        return found.points(self.encoders, self.attacks, self.domain, self.view)


def encoders(domain: str = "cross", view: str = "sentences") -> Finding:
    """Load the shipped results; build the finding on which of the most useful encoders leaks least.

    Raises
    ------
    ArtifactError
        No utility was measured.
    """
    check_choice("domain", domain, tuple(DOMAINS))
    check_choice("view", view, VIEWS)
    found = representation_summary.load_representations()
    choice = EncoderChoice(
        encoders=tuple(found.encoders), attacks=tuple(found.attacks), domain=domain, view=view
    )
    points = choice.points(found)
    best = least_leaking(points)
    if best is None:
        raise ArtifactError("The results contain no utility, so the encoders cannot be compared.")
    return replace(
        _least_finding(found, choice, points, best),
        table=_encoder_table((*best.as_useful, *best.leak_less)),
    )


def encoders_at(
    found: Representations, choice: EncoderChoice, *, hides_own: bool = False
) -> Finding:
    """Build the finding on which chosen encoder leaks least, or how the user's own compare.

    The first paragraph of the body is the answer; the others describe what it leaves out.

    Parameters
    ----------
    hides_own : bool
        Whether the user's own encoders are numbered instead of named.
    """
    points = choice.points(found)
    own = [name for name in choice.encoders if name.startswith(YOURS)]
    if hides_own:
        names = {name: f"{YOURS}encoder {i}" for i, name in enumerate(own, 1)}
        points = [_anonymise(point, names) for point in points]
        own = list(names.values())
        choice = replace(choice, encoders=tuple(names.get(name, name) for name in choice.encoders))
    if verdicts := judge_own(points):
        return _own_finding(choice, points, verdicts)
    best = least_leaking(points)
    if own:
        title = f"{'; '.join(own)}: not measured under the chosen attacks"
        why = (
            "Your file has no results for these attacks and texts. Choose an attack that your "
            "study measured, or the other option of *Fitted on*."
        )
        if best is None:
            return _no_answer(title, why)
        others = _figure_and_facts(choice, points, best.best)
        return replace(
            others, title=title, body=why, table=_encoder_table(_strongest_points(points))
        )
    if best is None:
        return _no_answer(QUESTION, _explain_no_answer(choice, points))
    finding = _least_finding(found, choice, points, best)
    more = (
        finding.body,
        _describe_more_training(found, best.best),
        _describe_others(best),
    )
    return replace(
        finding,
        body="\n\n".join(filter(None, more)),
        table=_encoder_table(_strongest_points(points)),
    )


def own_encoder(found: Sequence[OwnLeak], *, hides_own: bool = False) -> Finding:
    """Build the finding that compares a quick attack on a user's encoder with the bundled one.

    Parameters
    ----------
    found : sequence of OwnLeak
        Leakage of the encoder, then of the bundled one; a single entry if they are the same.
    hides_own : bool
        Whether to omit the encoder's name.
    """
    own, bundled = found[0], found[-1]
    if hides_own and own is not bundled:
        own = replace(own, encoder="your encoder")
    shown = (own,) if own is bundled else (own, bundled)
    attack = INVERSION_ATTACKS[QUICK.name]
    from_bundled = (
        f", and {describe_leak(bundled.f1, bundled.recall)} from those of {plain(bundled.encoder)}"
    )
    return Finding(
        title=own_encoder_title(own, bundled),
        body=f"The {attack.title.lower()} recovers "
        f"{describe_leak(own.f1, own.recall, is_bold=True)} from its vectors"
        f"{from_bundled * (own is not bundled)}. Guessing reaches {format_guess(own.f1.chance)}. "
        f"All were measured on {own.f1.n:,} sentences of news. This attack is weak, and it is the "
        f"same for every encoder. A trained attack recovers more.\n\n"
        f"{_describe_search(own, bundled)}",
        figure=own_leaks_figure(shown),
        alt="F1 of the recovered words: "
        + ", ".join(f"{leak.encoder} {leak.f1.value:.0f}" for leak in shown)
        + f"; guessing {own.f1.chance:.0f}",
        table=Table(
            columns=("Encoder", "Dimension", "Leaks", "Guessing, F1", "Articles found"),
            rows=tuple(
                (
                    leak.encoder,
                    f"{leak.dimension:,}",
                    describe_leak(leak.f1, leak.recall),
                    f"{leak.f1.chance:.0f}",
                    _format_articles(leak),
                )
                for leak in shown
            ),
        ),
        facts=(
            ("Data", "bundled news"),
            ("n", f"{own.f1.n:,} sentences attacked; {own.found.score().n} articles searched"),
            ("Interval", INTERVAL),
            ("Attacker", attack.title),
            ("Access", attack.access.needs),
            ("Cost", "none: the attack is not trained"),
        ),
        commands=("none: the page measures it",),
    )


def own_encoder_title(own: OwnLeak, bundled: OwnLeak) -> str:
    """Return the headline on whether an encoder leaks more than the bundled one."""
    if own.encoder == bundled.encoder:
        return f"{own.encoder} leaks {format_recall(own.f1, own.recall)} to a quick attack"
    if not own.f1.is_resolved_from(bundled.f1):
        return f"{own.encoder} does not leak significantly more or less than {bundled.encoder}"
    more = "more" if own.f1.value > bundled.f1.value else "less"
    return f"{own.encoder} leaks {more} than {bundled.encoder}"


def _format_articles(leak: OwnLeak) -> str:
    """Format how many of 100 articles a search finds."""
    found = leak.found.score()
    value, interval = found.parts(0)
    return f"{value} of 100 articles (95 % CI {interval}, n = {found.n:,})"


def _describe_search(own: OwnLeak, bundled: OwnLeak) -> str:
    """Describe how many articles a search finds with each encoder, and whether they differ."""
    text = f"With its vectors, a search by the first sentence finds {_format_articles(own)}"
    if own is bundled:
        return f"{text}."
    difference = own.found.change_from(bundled.found).ci95
    differs = "" if difference.low > 0 or difference.high < 0 else "not "
    return (
        f"{text}; with those of {plain(bundled.encoder)}, {_format_articles(bundled)}. Compared "
        f"article by article, the difference is {differs}significant."
    )


def _no_answer(title: str, why: str) -> Finding:
    """Build a finding that explains why nothing can be compared."""
    return Finding(
        title=title,
        body=why,
        facts=facts_of_none("none: the shown results cannot be compared"),
    )


def _least_finding(
    found: Representations, choice: EncoderChoice, points: Sequence[Point], best: LeastLeaking
) -> Finding:
    """Build the finding on the encoder that leaks least: its utility and leakage."""
    leak, useful = best.best.leak, best.best.useful
    assert useful is not None
    attack = "the attack" if len(choice.attacks) == 1 else "the strongest attack"
    target = plain(collection_title(found.targets["encoders"]))
    return replace(
        _figure_and_facts(choice, points, best.best),
        title=f"{_least_leaking_title(best)}{_warn_of_more_training(found, best)}",
        body=f"**{_escaped_title(best.best)}** sorts {useful.n:,} news articles by topic with a "
        f"macro-F1 of {useful.in_text(0, is_bold=True)}. In this comparison, attacks were trained "
        f"on {leak.n_fitted_on:,} sentences: {attack} (the {_attack_title(leak).lower()}) recovers "
        f"{describe_leak(leak.f1, leak.recall, is_bold=True)} on {leak.f1.n:,} sentences of "
        f"{target}; guessing reaches {format_guess(leak.f1.chance)}.{_describe_title(found, leak)}",
    )


def _describe_title(found: Representations, leak: AttackScore) -> str:
    """Return a sentence on the headline's attack if it was trained on more texts; else ""."""
    more = found.better_trained(leak)
    if not more:
        return ""
    return f" The attack of the title was trained on {more[-1].n_fitted_on:,}."


def _figure_and_facts(choice: EncoderChoice, points: Sequence[Point], shown: Point) -> Finding:
    """Build a finding with figure and facts but no texts; it states the sample sizes of `shown`."""
    leak, useful = shown.leak, shown.useful
    with_use = {point.leak.encoder for point in points if point.useful}
    view = f"{VIEW_NAMES[choice.view]} of news"
    paper = paper_points(choice.encoders, choice.domain, choice.view) if choice.has_paper else ()
    data = "news, a domain new to the attacks" if choice.domain == "cross" else "news"
    commands = [command_of(table) for table in ("representations", "classification")]
    if any(point.leak.encoder.startswith(YOURS) for point in points):
        data += f"; for encoders marked “{YOURS.strip()}”, the texts of their own study"
        commands.append("none: results of your own study")
    return Finding(
        title="",
        figure=representations_figure(points, paper, view=f"{view} ") if with_use else None,
        alt=f"Leakage against utility for sorting {view}, one point for each of {len(with_use)} "
        "encoders and each attack",
        facts=(
            ("Data", data),
            (
                "n",
                f"{leak.f1.n:,} sentences attacked"
                + (
                    ""
                    if useful is None
                    else f"; {useful.n:,} articles sorted by their {VIEW_NAMES[choice.view]}; "
                    f"encoders compared: {len(with_use)}"
                ),
            ),
            ("Interval", INTERVAL),
            *attacker_facts(leak.attack, leak.n_fitted_on),
            *provenance_facts(each for point in points for each in point.leak.provenances),
        ),
        commands=tuple(commands),
    )


def _least_leaking_title(best: LeastLeaking) -> str:
    """Return the headline on which encoder leaks least."""
    name = encoder_title(best.best.leak.encoder)
    if best.n_compared == 1:
        leak = best.best.leak
        return f"{name} leaks {format_recall(leak.f1, leak.recall)}; no other encoder is compared"
    n = len(best.as_useful)
    if best.tied:
        others = f"{len(best.tied)} other{'s' if len(best.tied) > 1 else ''}"
        return f"Of the {n} most useful encoders tested, {name} and {others} leaked least"
    if n > 1:
        return f"Of the {n} most useful encoders tested, {name} leaked least"
    if not best.leak_less:
        return f"{name} is the most useful encoder, and none leaks less to these attacks"
    return f"{name} is the most useful encoder; those that leak less are less useful"


def _warn_of_more_training(found: Representations, best: LeastLeaking) -> str:
    """Return the end of the headline if attacks trained on more text recover more; "" if not."""
    more = found.better_trained(best.best.leak)
    if not more:
        return ""
    most, name = more[-1], encoder_title(best.best.leak.encoder)
    return (
        f", but a better-trained attack still recovers {format_recall(most.f1, most.recall)} from "
        f"{name if best.tied else 'it'}"
    )


def _describe_as_useful(best: LeastLeaking) -> str:
    """Return the sentence on how many compared encoders are as useful as the most useful one."""
    n = len(best.as_useful)
    if best.n_compared == 1:
        return "Choose another encoder to compare it with."
    if n == 1:
        return f"Of the {best.n_compared} encoders compared, one is the most useful."
    return (
        f"Of the {best.n_compared} encoders compared, {n} are the most useful: the 95 % CI of "
        "their utility overlaps that of the best, so no difference was shown."
    )


def _describe_more_training(found: Representations, point: Point) -> str:
    """Describe attacks trained on more text that recover more; empty if none does."""
    more = found.better_trained(point.leak)
    if not more:
        return ""
    sentences = [
        f"Trained on {score.n_fitted_on:,}, {_attack_again(score, point.leak)} recovers "
        f"{describe_leak(score.f1, score.recall, is_bold=True)} on {score.f1.n:,} sentences."
        for score in more
    ]
    target = plain(collection_title(found.targets["encoders"]))
    alone = {score.encoder for score in found.more_texts} == {point.leak.encoder}
    return (
        f"**Attacks trained on more text recover more.** The F1 of {point.leak.f1.value:.0f} above "
        f"comes from an attack trained on {point.leak.n_fitted_on:,} sentences. "
        f"{' '.join(sentences)} The F1 can rise more than the number of words recovered, because "
        "fewer wrong answers raise it too. All of this is for "
        f"{_escaped_title(point)} and sentences of {target}."
        + (
            " The other encoders were not attacked in this way, so their order under stronger "
            "attacks is unknown."
            if alone
            else ""
        )
    )


def _attack_again(score: AttackScore, leak: AttackScore) -> str:
    """Return "the same attack" if both scores are of one attack, else name the first's attack."""
    if score.attack == leak.attack:
        return "the same attack"
    return f"another attack (the {_attack_title(score).lower()})"


def _describe_others(best: LeastLeaking) -> str:
    """Describe the encoders besides the best: as useful, not different, or leaking less."""
    sentences = [_describe_as_useful(best)]
    if rest := [point for point in best.as_useful if point is not best.best]:
        leaks = [f"{_describe_leakage(p)} from {_escaped_title(p)}" for p in rest]
        subject = (
            "The strongest attack on the other recovers"
            if len(rest) == 1
            else f"The strongest attacks on the other {len(rest)} recover"
        )
        sentences.append(f"{subject} {join_words(leaks)}.")
    if best.tied:
        names = join_words([_escaped_title(point) for point in (best.best, *best.tied)])
        sentences.append(
            f"The leakage of {names} is not significantly different, as the intervals overlap."
        )
    sentences += [
        f"The strongest attack on {_escaped_title(p)} recovers less, {_describe_leakage(p)}, but "
        f"this encoder is less useful, with a macro-F1 of {p.useful.in_text(0)}."
        for p in best.leak_less
        if p.useful
    ]
    return " ".join(sentences)


def _own_finding(
    choice: EncoderChoice, points: Sequence[Point], own: Sequence[OwnVerdict]
) -> Finding:
    """Build the finding on the user's own encoders, the first as headline."""
    first, *others = own
    lines = [f"- **{plain(own_title(other))}.** {_describe_own_encoder(other)}" for other in others]
    return replace(
        _figure_and_facts(choice, points, first.own),
        title=own_title(first),
        body="\n\n".join(
            (
                _describe_own_encoder(first),
                *(("\n".join(lines),) if lines else ()),
                "A difference is significant if the two 95 % CI do not overlap.",
            )
        ),
        table=_encoder_table(_strongest_points(points)),
    )


def own_title(found: OwnVerdict) -> str:
    """Return the headline that compares a user's own encoder with those measured."""
    name = encoder_title(found.own.leak.encoder)
    if found.own.useful is None or not found.n_compared:
        return f"{name} leaks {format_recall(found.own.leak.f1, found.own.leak.recall)}"
    if found.rival is None:
        return f"{name} is the most useful encoder shown"
    rival = encoder_title(found.rival.leak.encoder)
    if found.leaks_more:
        return f"{name} leaks more than {rival}, which is as useful"
    if found.leaks_less:
        return f"{name} leaks less than every other encoder that is as useful"
    return f"{name} does not leak significantly more or less than {rival}, at equal utility"


def _describe_own_encoder(found: OwnVerdict) -> str:
    """Describe the leakage and utility of a user's own encoder, and its nearest rival."""
    leak, useful = found.own.leak, found.own.useful
    text = (
        f"**Leakage.** The strongest attack (the {_attack_title(leak).lower()}) recovers "
        f"{_describe_leakage(found.own)} on {leak.f1.n:,} sentences; guessing reaches "
        f"{format_guess(leak.f1.chance)}."
    )
    if useful is None:
        return (
            f"{text} Its utility is not in your file, so it cannot be compared at equal utility. "
            "Add the results of `leakscope study classification`."
        )
    text += f" **Utility.** The macro-F1 is {useful.in_text(0)} on {useful.n:,} articles."
    rival = found.rival
    if rival is None or rival.useful is None:
        if not found.n_compared:
            return f"{text} Choose another encoder to compare it with."
        return f"{text} It was compared with {found.n_compared} encoders measured here."
    return (
        f"{text} Of the {found.n_compared} encoders measured here, {_escaped_title(rival)} leaks "
        f"least among those that are at least as useful. It leaks {_describe_leakage(rival)}, and "
        f"its macro-F1 is {rival.useful.in_text(0)}."
    )


def _explain_no_answer(choice: EncoderChoice, points: Sequence[Point]) -> str:
    """Explain why the chosen encoders and attacks give no answer."""
    if points:
        names = "; ".join(dict.fromkeys(map(_escaped_title, points)))
        return (
            f"Leakage was measured, but not utility: {names}. A comparison at equal utility is not "
            "possible; the numbers are below. Choose another encoder as well."
        )
    if not choice.encoders or not choice.attacks:
        return "Choose at least one encoder and one attack."
    return (
        "None of the chosen encoders was measured under the chosen attacks. Choose at least one "
        "encoder and one attack that were."
    )


def _strongest_points(points: Sequence[Point]) -> list[Point]:
    """Return each encoder's point under its strongest attack, the user's own encoders first."""
    tops = [p for p in strongest(points) if p.useful or p.leak.encoder.startswith(YOURS)]
    return sorted(tops, key=lambda point: not point.leak.encoder.startswith(YOURS))


def _encoder_table(points: Sequence[Point]) -> Table:
    """Build the table of points: encoder, utility, leakage and attack."""
    return Table(
        columns=("Encoder", "Utility, macro-F1", "Leakage, F1", "Attack"),
        rows=tuple(
            (
                encoder_title(point.leak.encoder),
                point.useful.format(0) if point.useful else "–",
                point.leak.f1.format(0),
                _attack_title(point.leak),
            )
            for point in points
        ),
    )


def _anonymise(point: Point, names: Mapping[str, str]) -> Point:
    """Return a point under its replacement name, without provenance; unchanged if it has none."""
    name = names.get(point.leak.encoder)
    if name is None:
        return point
    return replace(point, leak=replace(point.leak, encoder=name, provenances=()))


def _escaped_title(point: Point) -> str:
    """Return the title of a point's encoder, escaped for Markdown."""
    return plain(encoder_title(point.leak.encoder))


def _attack_title(score: AttackScore) -> str:
    """Return the readable title of the attack that reached a score."""
    return INVERSION_ATTACKS[score.attack].title


def _describe_leakage(point: Point) -> str:
    """Describe the F1 and recall of the attack on a point's encoder, as a phrase."""
    return describe_leak(point.leak.f1, point.leak.recall)
