"""Findings on training for privacy: against an adversary, under noise, and with DP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.defences.metric_dp.guarantee import HARDLY, format_odds
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.figures.representations import encoder_title
from leakscope.core.figures.training import (
    adapted_figure,
    describe_epsilon,
    describe_setting,
    private_figure,
    trap_figure,
    utility_figure,
)
from leakscope.core.findings.finding import UNMEASURED, Fact, Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.findings.shared import INTERVAL, provenance_facts
from leakscope.core.results import Score
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.odds import ODDS, format_odds_cell, guarantees_of_setting
from leakscope.core.studies.training.adversarial_tables import (
    AFFORDABLE,
    Setting,
    describe_score,
)
from leakscope.core.studies.training.privacy_tables import (
    TEXT,
    TOKEN,
    describe_at_chance,
    describe_goal,
    describe_order,
    group_by_order,
)
from leakscope.core.studies.training.summary import (
    Adapted,
    Adversarial,
    Constrained,
    Pretrained,
    PrivateHead,
    PrivateTraining,
    Trap,
    UnderNoise,
)
from leakscope.core.tasks.names import describe_task
from leakscope.core.training.accounting import GROUP, PUBLIC, UNIT, delta_warning

QUESTION = "Does training for privacy withstand new attackers?"

Read = Mapping[tuple[str, float], Score]
"""F1 of the recovered words, by mechanism and η."""

MOST_LOST = {8.0: 2.0, 1.0: 5.0}
"""The goal: the most points of accuracy that may be lost, by ε."""

MOST_FOUND = 55
"""The goal: the highest membership AUC at ε = 1, from 0 to 100."""

_ENCODER = "minilm"
_NONE = "–"
_NOBODY = (
    ("Attacker", "none: this measures what training costs, not what leaks"),
    ("Access", "none: nothing is attacked"),
)
_RECOVERING = (
    ("Attacker", "for the accuracy none; for the words, one that answers the most likely words"),
    ("Access", "for the words: what is sent, and the mechanism"),
)


# Against an adversary


def adversary_trap(found: Adversarial, encoder: str, hides: str) -> Finding:
    """Build the finding that compares the attacker used in training with new attackers.

    Parameters
    ----------
    hides : str
        What the defence hides: `words` or `attribute`.
    """
    settings, trap = found.of(encoder, hides), found.trap(encoder, hides)
    verdict, undefended = found.verdict(encoder, hides), _find_undefended(settings)
    return Finding(
        title=QUESTION if trap is None else describe_effect(trap, undefended, found.label),
        body=_paragraphs(
            None if trap is None else _describe_trap(found, trap, undefended),
            None
            if verdict is None
            else "**The goal**: new attackers recover half as much, and utility falls by at most "
            f"{AFFORDABLE:g} points. {plain(verdict.outcome)}",
            None if trap is None else _describe_scores(found, trap, settings),
        ),
        figure=trap_figure(settings, found.families),
        alt="Left: the score of the attacker used in training after each epoch, one line for each "
        "λ. Right: the scores of new attackers afterwards, for each λ",
        table=_table([_setting_row(found, setting) for setting in settings]),
        facts=(*UNMEASURED, *provenance_facts(found.provenances))
        if trap is None
        else _trap_facts(found, trap),
    )


def _trap_facts(found: Adversarial, trap: Trap) -> tuple[Fact, ...]:
    """Return the comparison's facts as (name, text) pairs: data, n, attacker and cost."""
    encoder, hides = trap.setting.encoder, trap.setting.hides
    basis, (name, _) = found.bases[encoder, hides], trap.setting.strongest
    hidden = "words" if hides == "words" else found.label
    return (
        (
            "Data",
            f"texts with {basis.n_labels} labels, encoded by {encoder_title(encoder)}; hidden: "
            f"{hidden}",
        ),
        (
            "n",
            f"{basis.n_targets:,} texts attacked, not used to train the defence or the attackers; "
            f"{_format_seeds(basis.n_seeds)}",
        ),
        ("Interval", f"{INTERVAL}; in training, over texts only"),
        ("Attacker", f"{found.families.get(name, name)}, trained after the defence"),
        ("Access", "the defended vectors, and the attacker's own texts with their vectors"),
        (
            "Cost",
            f"attacker trained on {basis.n_known:,} texts; defence on at most {basis.n_defence:,}",
        ),
        *provenance_facts(basis.provenances),
    )


def _find_undefended(settings: Sequence[Setting]) -> Setting | None:
    """Find the setting without a defence; None if new attackers were not measured on it."""
    return next((each for each in settings if each.kind == "none" and each.after), None)


def describe_effect(trap: Trap, undefended: Setting | None, label: str = "") -> str:
    """Return the headline that compares a new attacker's score with and without the defence.

    Parameters
    ----------
    undefended : Setting or None
        The setting without a defence.
    label : str
        The name of the hidden attribute, if any.
    """
    if trap.setting.hides == "words":
        what, verb, unit = "words", "reaches F1", ""
    else:
        what, verb, unit = f"the {label}", f"infers the {label} of", " % of the texts"
    text = f"After training to hide {what}, a new attacker {verb} {trap.read.value:.0f}{unit}"
    if undefended is None:
        return text
    score = undefended.strongest[1]
    is_resolved = trap.read.is_resolved_from(score)
    return (
        f"{text} instead of {score.value:.0f}{unit[:2]}: "
        f"{'a significant difference' if is_resolved else 'the difference may be chance'}"
    )


def _describe_trap(found: Adversarial, trap: Trap, undefended: Setting | None) -> str:
    """Describe a new attacker's score with and without the defence, and the score in training."""
    setting, in_training = trap.setting, trap.promised.value
    has_words = setting.hides == "words"
    n = found.bases[setting.encoder, setting.hides].n_targets
    text = (
        f"The defence trains {plain(encoder_title(setting.encoder))} to hide "
        f"{'words' if has_words else f'the {found.label}'} from one attacker (weight "
        f"{setting.label}). A new attacker, on {n:,} unseen texts, reaches "
        f"{describe_score(setting.hides, trap.read, is_bold=True)} with it"
    )
    if undefended is not None:
        score = undefended.strongest[1]
        overlap = "do not overlap" if trap.read.is_resolved_from(score) else "overlap"
        without = describe_score(setting.hides, score).removeprefix("an F1 ")
        text += f" and {without} without it; the intervals {overlap}"
    end = (
        f"an F1 of **{in_training:.1f}** (on a different vocabulary)"
        if has_words
        else f"**{in_training:.1f} %**"
    )
    return (
        f"{text}. The attacker used in training reaches only {end}, which looks safer than it is."
    )


def _describe_scores(found: Adversarial, trap: Trap, settings: Sequence[Setting]) -> str:
    """Describe how both attackers were scored, the other new attackers, and the controls."""
    setting, name = trap.setting, trap.setting.strongest[0]
    return (
        "**The scores.** After the last of "
        f"{len(setting.during)} epochs, the attacker used in training reaches "
        f"{describe_score(setting.hides, trap.promised)} on texts that it had never seen "
        f"(guessing: {trap.promised.chance:.1f}). This is its lowest score over all measured "
        "weights. The "
        f"new attacker is the strongest of {len(setting.after)} "
        f"({plain(found.families.get(name, name))}; guessing: {trap.read.chance:.1f})."
        f"{_describe_weakened(found, setting, _find_undefended(settings))}{_describe_control(trap)}"
        f"{_describe_leace(settings)}"
    )


def _describe_weakened(found: Adversarial, setting: Setting, undefended: Setting | None) -> str:
    """Describe the other new attackers that a setting significantly weakens; "" without any."""
    before = {} if undefended is None else undefended.after
    weakened = [
        f"{plain(found.families.get(name, name))} ({score.value:.1f} instead of "
        f"{before[name].value:.1f})"
        for name, score in setting.after.items()
        if name != setting.strongest[0]
        and name in before
        and score.ci95.high < before[name].ci95.low
    ]
    if not weakened:
        return ""
    return (
        f" The defence significantly weakens {len(weakened)} other new "
        f"attacker{'s' * (len(weakened) > 1)}: {'; '.join(weakened)}."
    )


def _describe_control(trap: Trap) -> str:
    """Describe the scores after the same training with λ = 0 (control); "" if not measured."""
    control = trap.control
    if control is None:
        return ""
    before, afterwards = control.during[-1], control.strongest[1]
    during, after = (describe_score(control.hides, score) for score in (before, afterwards))
    text = (
        f" With {control.symbol} 0, training hides nothing. Its attacker then reaches {during}, "
        f"and a new attacker reaches {after}."
    )
    if before.ci95.high < afterwards.ci95.low:
        text += " So a new attacker scores higher even if nothing is hidden."
    if not trap.is_sprung:
        text += (
            " Compared with this control, the defence did not lower the score in training "
            "significantly more than the score of new attackers."
        )
    return text


def _describe_leace(settings: Sequence[Setting]) -> str:
    """Describe the scores of new attackers behind LEACE; "" if it was not measured."""
    leace = next((each for each in settings if each.kind == "leace" and each.after), None)
    if leace is None:
        return ""
    text = (
        " LEACE removes what a linear classifier could use. The strongest attacker then reaches "
        f"{describe_score(leace.hides, leace.strongest[1])}"
    )
    linear = leace.after.get("linear")
    if linear is not None:
        text += f", and a linear attacker reaches {describe_score(leace.hides, linear)}"
    return f"{text}."


def _setting_row(found: Adversarial, setting: Setting) -> dict[str, str]:
    """Return a setting as a table row, by column name: scores and change of utility."""
    row = {"defence": describe_setting(setting)}
    if setting.stopped:
        return {**row, "in training": "diverged and was stopped"}
    last = setting.during[-1] if setting.during else None
    row["in training"] = _format_score(last)
    row["guessing in training"] = _NONE if last is None else f"{last.chance:.1f}"
    for name, family in found.families.items():
        if name in setting.after:
            row[f"new attacker: {family}"] = setting.after[name].format()
    if setting.after:
        row["guessing afterwards"] = f"{setting.strongest[1].chance:.1f}"
    if "mean" in setting.changes:
        row["change in utility, points"] = setting.changes["mean"].format()
    return row


# Under noise


def under_noise(found: UnderNoise, task: str, reader: str, read: Read) -> Finding:
    """Build the finding on the accuracy at each η of a network trained and tested under noise.

    Parameters
    ----------
    read : mapping
        F1 of the words recovered from the sent texts; empty if not measured.
    """
    points = found.of(task, reader)
    arm, others = _split_arms(points)
    noisy = [point for point in arm if math.isfinite(point.eta)]
    null = next((point for point in arm if math.isinf(point.eta)), None)
    at_chance = "" if null is None else describe_at_chance(null.accuracy)
    pairs = {} if at_chance else _pair_by_eta(arm)
    order = group_by_order(
        {
            eta: (text.accuracy, token.accuracy, text.from_token)
            for eta, (text, token) in pairs.items()
        }
    )
    recovered = _describe_recovered(points, read)
    network, some = READERS[reader].title, arm[0]
    return Finding(
        title="This network learns nothing here, with or without noise"
        if at_chance
        else _noise_title(len(pairs), len(order["above"])),
        body=_paragraphs(
            f"**{plain(describe_task(task))}**: accuracy of the {network} in per cent, 95 % CI in "
            "brackets.",
            "\n".join(_accuracy_lines(null, noisy, others)),
            at_chance,
            _describe_changes(pairs, order),
            _describe_odds(
                (own[0].mechanism, [point.eta for point in own], own[0].releases)
                for own in _group_by_mechanism(noisy)
            ),
            recovered,
        ),
        figure=utility_figure(points),
        alt="Accuracy by η, one line for each thing that users send, and the accuracy without "
        "noise",
        table=_table([_noise_row(point, read) for point in points]),
        facts=(
            ("Data", describe_task(task)),
            ("n", f"{some.accuracy.n:,} texts tested; {_format_seeds(some.n_seeds)}"),
            ("Interval", INTERVAL),
            *(_RECOVERING if recovered else _NOBODY),
            ("Cost", f"{network}, trained on {some.n_train:,} texts at each η"),
            ("Guessing", f"the most frequent class is correct for {some.accuracy.chance:.1f} %"),
            *_releases_fact(noisy),
            *provenance_facts(found.provenances),
        ),
    )


def _split_arms(points: Sequence[Constrained]) -> tuple[list[Constrained], list[Constrained]]:
    """Split points by how noise is drawn (once or each epoch): those measured at more η, the rest.

    The two arms draw noise once for a training text, or again in every epoch. Points without noise
    are in the first list.
    """
    once = [point for point in points if point.releases == 1]
    fresh = [point for point in points if point.releases > 1]
    more, fewer = (once, fresh) if len(once) >= len(fresh) else (fresh, once)
    return [point for point in points if point.releases == 0 or point in more], fewer


def _pair_by_eta(arm: Sequence[Constrained]) -> dict[float, tuple[Constrained, Constrained]]:
    """Pair text-to-text with token-representation points by η, where both were measured."""
    at = {(point.mechanism, point.eta): point for point in arm}
    etas = sorted({eta for mechanism, eta in at if mechanism == TEXT and (TOKEN, eta) in at})
    return {eta: (at[TEXT, eta], at[TOKEN, eta]) for eta in etas}


def _group_by_mechanism(points: Sequence[Constrained]) -> list[list[Constrained]]:
    """Group points into one list per mechanism."""
    return [
        [point for point in points if point.mechanism == mechanism]
        for mechanism in dict.fromkeys(point.mechanism for point in points)
    ]


def _accuracy_lines(
    null: Constrained | None, noisy: Sequence[Constrained], others: Sequence[Constrained]
) -> Iterator[str]:
    """Yield a Markdown list item for the accuracy without noise and for each mechanism.

    Parameters
    ----------
    others : sequence of Constrained
        Points that released each training text another number of times.
    """
    if null is not None:
        yield f"- Without noise: **{null.accuracy.format()}**."
    for own in _group_by_mechanism(noisy):
        yield _score_line(
            DEFENCES[own[0].mechanism].title, {p.eta: p.accuracy for p in (own[0], own[-1])}
        )
    for own in _group_by_mechanism(others):
        times = "once" if own[0].releases == 1 else f"{own[0].releases} times"
        name = (
            f"{DEFENCES[own[0].mechanism].title}, each training text released {times} "
            f"({_format_seeds(own[0].n_seeds)})"
        )
        yield _score_line(name, {p.eta: p.accuracy for p in own})


def _score_line(name: str, scores: Mapping[float, Score]) -> str:
    """Return a Markdown list item with the score at each η."""
    listed = ", ".join(f"**{score.format()}** at η {eta:g}" for eta, score in scores.items())
    return f"- {name}: {listed}."


def _describe_changes(
    pairs: Mapping[float, tuple[Constrained, Constrained]], order: Mapping[str, Sequence[float]]
) -> str:
    """Describe by η how the accuracy of text to text differs from token representation."""
    changes = [
        f"**{text.from_token.format()}** at η {eta:g}"
        for eta, (text, _) in pairs.items()
        if text.from_token is not None
    ]
    sentences = [
        f"{name} at η {', '.join(f'{eta:g}' for eta in order[how])}."
        for how, name in (
            ("not significantly different", "Not significantly different"),
            ("below", "Significantly lower"),
        )
        if order[how]
    ]
    if changes:
        sentences.insert(
            0,
            "Text to text minus token representation, in points on the same texts: "
            f"{', '.join(changes)}.",
        )
    return " ".join(sentences)


def _releases_fact(noisy: Sequence[Constrained]) -> tuple[Fact, ...]:
    """Return a fact on how often each training text is released; () without noisy points."""
    names_by_releases: dict[int, list[str]] = {}
    for point in noisy:
        names_by_releases.setdefault(point.releases, []).append(
            DEFENCES[point.mechanism].title.lower()
        )
    if not names_by_releases:
        return ()
    if set(names_by_releases) == {1}:
        return (("Releases", "each training text is released once"),)
    text = "; ".join(
        f"{', '.join(dict.fromkeys(names))}: {n} times"
        for n, names in sorted(names_by_releases.items())
    )
    return (
        ("Releases", f"a training text is released once per epoch ({text}); the odds cover all"),
    )


def _noise_title(n_pairs: int, n_above: int) -> str:
    """Return the headline on at how many η replacing words costs less than noise on vectors."""
    if not n_pairs:
        return "Accuracy of a network that is trained and tested on noisy texts"
    return (
        "Replacing words costs significantly less accuracy than adding noise to their vectors at "
        f"{n_above} of {n_pairs} values of η"
    )


def _describe_odds(settings: Iterable[tuple[str, Sequence[float], int]]) -> str:
    """Describe the odds that mechanisms guarantee at their least and greatest η; "" if unknown.

    The odds are for a token of the example sentence and its nearest neighbour, the strongest
    guarantee, and for the whole sentence, composed over all releases. Infinite η (no noise) are
    left out.

    Parameters
    ----------
    settings : iterable of (str, sequence of float, int)
        Each mechanism with its η and the number of releases of a text.
    """
    sentences = []
    for mechanism, etas, releases in settings:
        ends = sorted({eta for eta in etas if math.isfinite(eta)})
        bounds = []
        for eta in dict.fromkeys(ends[:1] + ends[-1:]):
            found = guarantees_of_setting(DefenceSpec.of(mechanism, {"eta": eta}), _ENCODER)
            if found is not None:
                found = found.after(releases)
                whole = f" ({found.whole.odds} for a whole sentence)" if found.whole else ""
                bounds.append(f"{found.nearest.odds}{whole} at η {eta:g}")
        times = f", after {releases} releases of a text," if releases > 1 else ""
        if bounds:
            sentences.append(
                f"The output of {DEFENCES[mechanism].title.lower()}{times} can shift the odds "
                f"between nearest neighbours by up to {' and '.join(bounds)}."
            )
    if not sentences:
        return ""
    void = f"Odds above {format_odds(HARDLY)} are practically no guarantee."
    return f"**Guarantees.** {plain(' '.join([*sentences, void]))}"


def _format_odds(mechanism: str, eta: float, releases: int) -> str:
    """Format the odds that a mechanism guarantees at an η over all releases of a text."""
    if math.isinf(eta):
        return "none"
    return format_odds_cell(DefenceSpec.of(mechanism, {"eta": eta}), _ENCODER, releases) or "none"


def _describe_recovered(points: Sequence[Constrained], read: Read) -> str:
    """Describe what an attacker recovers at each mechanism's least and greatest η."""
    lines = []
    for own in _group_by_mechanism(points):
        mechanism = own[0].mechanism
        etas = [point.eta for point in own if (mechanism, point.eta) in read]
        if etas:
            scores = {eta: read[mechanism, eta] for eta in sorted({etas[0], etas[-1]})}
            lines.append(_score_line(DEFENCES[mechanism].title, scores))
    if not lines:
        return ""
    some = next(iter(read.values()))
    return _paragraphs(
        "**What an attacker recovers from the sent texts.** The attacker knows the mechanism and "
        "answers the most likely words. F1 on other sentences, each sent once (n = "
        f"{some.n:,} over all seeds; guessing: {some.chance:.1f}). An attacker who has several "
        "releases of a text recovers more.",
        "\n".join(lines),
    )


def _noise_row(point: Constrained, read: Read) -> dict[str, str]:
    """Return a point measured under noise as a table row, by column name."""
    return {
        "sends": DEFENCES[point.mechanism].title,
        "η": "none" if math.isinf(point.eta) else f"{point.eta:g}",
        "releases of a text": f"{point.releases}",
        ODDS.lower(): _format_odds(point.mechanism, point.eta, point.releases),
        "accuracy, %": point.accuracy.format(),
        "words recovered from one release, F1": _format_score(
            read.get((point.mechanism, point.eta))
        ),
        "change due to noise, points": _format_score(point.by_noise),
        "change from no constraint, points": _format_score(point.change),
        "paper: η": _NONE if point.paper_eta is None else f"{point.paper_eta}",
        "paper: accuracy, %": _format_number(point.theirs),
        "texts trained on": f"{point.n_train}",
    }


# Pretrained under noise


def pretrained(found: Pretrained, task: str, sends: str, eta: float) -> Finding:
    """Build the finding on how much accuracy pretraining under noise recovers at an η.

    Parameters
    ----------
    sends : str
        The mechanism that privatises users' texts.
    """
    points = found.of(task, sends)
    here = [point for point in points if point.eta == eta]
    best = next((point for point in here if point.objective == "denoising"), here[0])
    return Finding(
        title=_pretrained_title(best),
        body=_paragraphs(
            " ".join(_describe_pretraining(best, here)),
            _describe_odds([(best.mechanism, [best.eta], best.releases)]),
            f"**Fewer tokens than in the paper.** The network was pretrained on {best.tokens:,} "
            f"tokens at this η, and on {best.all_tokens:,} with the η that it continues from. Of "
            f"these, {best.distinct_tokens:,} are from texts not seen before. The paper used "
            f"{best.paper_tokens:,}, {best.paper_tokens / max(1, best.all_tokens):,.0f} times as "
            "many.",
        ),
        figure=adapted_figure(points),
        alt="Accuracy by η, one line for each pretraining loss and one without pretraining, and "
        "the accuracy without noise",
        table=_table([_pretrained_row(point) for point in points]),
        facts=(
            ("Data", f"{describe_task(task)}; users send: {DEFENCES[sends].title}"),
            (
                "n",
                f"{best.accuracy.n:,} texts tested; {_format_seeds(best.n_seeds)} of fine-tuning, "
                "one of pretraining",
            ),
            ("Interval", INTERVAL),
            *_NOBODY,
            (
                "Cost",
                f"pretrained on {best.all_tokens:,} tokens, fine-tuned on {best.n_train:,} texts",
            ),
            *provenance_facts(found.provenances),
        ),
    )


def _describe_pretraining(best: Adapted, here: Sequence[Adapted]) -> Iterator[str]:
    """Yield sentences on the accuracy after pretraining, and on the losses compared.

    Parameters
    ----------
    here : sequence of Adapted
        The points of all losses at the same η.
    """
    yield (
        f"{plain(describe_task(best.task))}, {DEFENCES[best.mechanism].title.lower()} at η "
        f"{best.eta:g}, with 95 % CI in brackets: the accuracy is **{best.null.format()}** % "
        f"without noise, **{best.plain.format()}** % under noise, and "
        f"**{best.accuracy.format()}** % after pretraining under noise "
        f"({OBJECTIVES[best.objective].title}), a gain of {best.gain.format()} points."
    )
    share = best.won_back
    if not math.isnan(share.value):
        yield (
            f"Pretraining recovers **{share.format(0)}** % of the accuracy that noise costs; "
            f"{describe_goal(share)}."
        )
    if best.paper_recovered_share is not None:
        yield (
            f"The paper's results, at its η {best.paper_eta}, correspond to "
            f"{best.paper_recovered_share:.0f} %."
        )
    others = [point for point in here if point.objective != best.objective]
    if others:
        named = "; ".join(f"{OBJECTIVES[p.objective].title} {p.accuracy.format()}" for p in others)
        yield f"With the other losses: {named}."
        order = describe_order(
            {p.objective: p.accuracy for p in here}, {p.objective: p.beside for p in here}
        )
        yield f"On the same texts, {order}."


def _pretrained_title(best: Adapted) -> str:
    """Return the headline on what pretraining under noise recovers."""
    gain, share = best.gain, best.won_back
    if gain.ci95.low <= 0:
        return "Pretraining under noise does not significantly raise the accuracy here"
    if math.isnan(share.value):
        return f"Pretraining under noise raises the accuracy by {gain.value:.1f} points"
    return f"Pretraining under noise recovers {share.value:.0f} % of the accuracy that noise costs"


def _pretrained_row(point: Adapted) -> dict[str, str]:
    """Return a point of pretraining under noise as a table row, by column name."""
    return {
        "η": f"{point.eta:g}",
        "releases of a text": f"{point.releases}",
        ODDS.lower(): _format_odds(point.mechanism, point.eta, point.releases),
        "pretraining loss": OBJECTIVES[point.objective].title,
        "accuracy, %": point.accuracy.format(),
        "not pretrained, %": point.plain.format(),
        "without noise, %": point.null.format(),
        "gain, points": point.gain.format(),
        "recovered, %": point.won_back.format(0),
        "paper: not pretrained, %": _format_number(point.their_plain),
        "paper: accuracy, %": _format_number(point.theirs),
        "paper: recovered, %": _format_number(point.paper_recovered_share),
    }


# With differential privacy


def private_training(found: PrivateTraining, task: str) -> Finding:
    """Build the finding on what each ε costs in accuracy and leaves to membership inference."""
    heads = found.of(task)
    if not heads:
        return Finding(title=QUESTION, facts=(*UNMEASURED, *provenance_facts(found.provenances)))
    promised, some = [head for head in heads if math.isfinite(head.epsilon)], heads[0]
    goals = "; ".join(_describe_goals(promised))
    names = dict.fromkeys(name for head in heads for name in head.strongest)
    return Finding(
        title=_private_title(promised),
        body=_paragraphs(
            f"**{plain(describe_task(some.task))}**, {describe_head(_best_private_head(heads))}, "
            "95 % CI in brackets:",
            "\n".join(_private_lines(heads)),
            goals and f"**The goals**: {goals}.",
        ),
        figure=private_figure(heads),
        alt="Top: accuracy by ε. Bottom: the AUC of the strongest membership attack by ε",
        table=_table([_head_row(head) for head in heads]),
        facts=(
            ("Data", f"{describe_task(some.task)}; classifiers on frozen vectors"),
            (
                "n",
                f"{some.accuracy.n:,} texts tested; {some.n_members:,} members attacked, of a "
                f"classifier trained in the same way; {_format_seeds(some.n_seeds)}",
            ),
            ("Interval", INTERVAL),
            (
                "Attacker",
                "membership of single texts: "
                f"{', '.join(CLASSIFIER_ATTACKS[name].title for name in names)}; the strongest is "
                "chosen by the AUC reported here, which favours the attacker",
            ),
            ("Access", "the classifier's outputs, and texts like those that it was trained on"),
            (
                "Cost",
                f"DP-SGD on {some.n_train:,} texts at each ε; δ = {found.delta:g}. Reported is "
                "the classifier, with or without hidden units, that loses least accuracy on the "
                "test texts",
            ),
            (
                "Unit of ε",
                f"{UNIT}; the ε for {GROUP} texts of one person, or {GROUP} phrases of one "
                f"sentence, is given too. {PUBLIC}",
            ),
            *provenance_facts(found.provenances),
        ),
        caveat=plain(delta_warning(found.delta, some.n_train)),
    )


def _best_private_head(heads: Sequence[PrivateHead]) -> PrivateHead:
    """Return the classifier that loses least accuracy at the smallest measured ε."""
    least = min(head.epsilon for head in heads)
    return max((h for h in heads if h.epsilon == least), key=lambda head: head.change.value)


def _private_lines(heads: Sequence[PrivateHead]) -> list[str]:
    """Return a Markdown list item for each measured ε of the same kind of classifier."""
    own = [head for head in heads if head.hidden == _best_private_head(heads).hidden]
    return [
        f"- {_describe_guarantee(head)}: accuracy **{head.accuracy.format()}** %"
        + ("" if math.isinf(head.epsilon) else f" (change: {head.change.format()} points)")
        + f", membership AUC **{head.auc.in_percent().format()}**"
        for head in reversed(own)
    ]


def _describe_guarantee(head: PrivateHead) -> str:
    """Describe the ε of a private classifier for one text and for several together."""
    if math.isinf(head.epsilon):
        return "No guarantee"
    group = head.spent and head.spent.of_group
    together = "" if group is None else f" ({group:.1f} for {GROUP} texts together)"
    return f"ε = {describe_epsilon(head.epsilon)} for one text{together}"


def _describe_goals(promised: Sequence[PrivateHead]) -> Iterator[str]:
    """Yield a sentence on each goal (accuracy, membership): whether it was met."""
    for epsilon, most in MOST_LOST.items():
        own = [head for head in promised if head.epsilon == epsilon]
        if own:
            best = max(own, key=lambda head: head.change.value)
            met = judge_goal(
                -best.change.value, -best.change.ci95.high, -best.change.ci95.low, most
            )
            yield (
                f"a loss of at most {most:g} points at ε = {epsilon:g}: {met} "
                f"({describe_head(best)})"
            )
    at_one = [head for head in promised if head.epsilon == 1.0]
    if at_one:
        worst = max(at_one, key=lambda head: (head.auc.ci95.high, head.auc.value))
        found, ends = worst.auc, worst.auc.ci95
        met = judge_goal(100 * found.value, 100 * ends.low, 100 * ends.high, MOST_FOUND)
        yield f"an AUC of at most {MOST_FOUND:g} at ε = 1: {met} ({describe_head(worst)})"


def judge_goal(value: float, low: float, high: float, most: float) -> str:
    """Return in words whether a value stays below an upper limit, judged by its interval."""
    if high <= most:
        return "met by the whole interval"
    if low > most:
        return "missed by the whole interval"
    return f"{'met' if value <= most else 'missed'} by the mean, but not resolvable"


def _private_title(promised: Sequence[PrivateHead]) -> str:
    """Return the headline on accuracy and membership inference at the smallest ε."""
    if not promised:
        return QUESTION
    best = _best_private_head(promised)
    return (
        f"At ε = {describe_epsilon(best.epsilon)}, accuracy changes by {best.change.value:+.1f} "
        f"points, and membership inference reaches an AUC of {100 * best.auc.value:.0f}"
    ).replace("-", "−")


def describe_head(head: PrivateHead) -> str:
    """Return the name of the classifier that maps vectors to classes."""
    return f"head with {head.head}" if head.hidden else f"{head.head} head"


def _head_row(head: PrivateHead) -> dict[str, str]:
    """Return a private classifier as a table row, by column name."""
    group = None if head.spent is None else head.spent.of_group
    return {
        "head": head.head,
        "ε for one text": describe_epsilon(head.epsilon),
        f"ε for {GROUP} texts": _format_number(group),
        "accuracy, %": head.accuracy.format(),
        "change, points": _NONE if math.isinf(head.epsilon) else head.change.format(),
        "membership AUC": head.auc.in_percent().format(),
        "control AUC (permuted labels)": head.control.in_percent().format(),
        "strongest attack": ", ".join(CLASSIFIER_ATTACKS[name].title for name in head.strongest),
        "texts trained on": f"{head.n_train}",
        "members": f"{head.n_members}",
    }


def _paragraphs(*parts: str | None) -> str:
    """Join the parts that are not empty as Markdown paragraphs."""
    return "\n\n".join(filter(None, parts))


def _table(rows: Sequence[Mapping[str, str]]) -> Table:
    """Build a Table from dictionaries by column name; a missing value becomes a dash."""
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return Table(
        columns=columns,
        rows=tuple(tuple(row.get(name, _NONE) for name in columns) for row in rows),
    )


def _format_score(score: Score | None) -> str:
    """Format a score; a dash for None."""
    return _NONE if score is None else score.format()


def _format_number(value: float | None) -> str:
    """Format a number with one decimal; a dash for None."""
    return _NONE if value is None else f"{value:.1f}"


def _format_seeds(n: int) -> str:
    """Format a number of seeds, such as "3 seeds"."""
    return f"{n} seed{'s' * (n != 1)}"
