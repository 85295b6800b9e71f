"""Findings on membership inference: which texts a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.report import (
    describe_setting,
    leaks_without_model,
)
from leakscope.core.attacks.membership.rates import FEWEST_EXPECTED, PRIORS, AtRate
from leakscope.core.attacks.membership.verdict import membership_probability
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.membership import roc_figure
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import WEAKER, YEARS, Fact, Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.findings.shared import INTERVAL, provenance_facts
from leakscope.core.formatting import format_auc, format_percent
from leakscope.core.results import Interval, Score
from leakscope.core.studies.membership import shipped as membership
from leakscope.core.studies.membership.classifier_rows import describe_class
from leakscope.core.studies.membership.shipped import format_collection

if TYPE_CHECKING:
    from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
    from leakscope.core.attacks.membership.classifiers.own_file import AttackedOutputs
    from leakscope.core.attacks.membership.classifiers.plans import Plan
    from leakscope.core.attacks.membership.score_distribution import RocPoint

QUESTION = "Was it trained on this text?"

FEW = PRIORS[1]
"""Assumed share of members, for the precision of positive verdicts."""

FEW_EXPECTED = f"fewer than {FEWEST_EXPECTED} false positives are expected"
"""Why a rate is coarse, for sentences."""

_MOST_SHOWN = 6
_TENTHS = 10
_ALT = "True-positive rate by false-positive rate"
_LEVELS = {"sample": "samples", "user": "users"}


def members() -> Finding:
    """Read the shipped results; build the finding on how well the best attack detects members."""
    found = membership.load_measured()
    if all(one.is_control for one in found):
        raise ArtifactError(f"{membership.SHIPPED} holds no rows of membership.")
    return members_of(found, membership.strongest(found))


def members_of(found: Sequence[membership.Measured], one: membership.Measured) -> Finding:
    """Build the finding on how well one attack detects members; its table has each model's best.

    Parameters
    ----------
    found : sequence of Measured
        All measurements, including `one`.
    """
    real = [each for each in found if not each.is_control]
    shown = [
        membership.strongest([each for each in real if (each.model, each.data) == pair])
        for pair in dict.fromkeys((each.model, each.data) for each in real)
    ]
    shown.sort(key=lambda each: -each.auc.value)
    strong, weak = shown[:_MOST_SHOWN], shown[_MOST_SHOWN:]
    alike = [each for each in found if (each.model, each.data) == (one.model, one.data)]
    is_best = membership.strongest(alike) is one
    has_curve = any(row.facts.get("curve") for row in one.rows)
    return Finding(
        title=membership.verdict(one),
        body=f"{_describe_auc(one, len(alike), is_best=is_best)}{_describe_precision(one)}"
        f"{_YEAR_LIMIT if one.is_by_year else ''}",
        figure=roc_figure(one.curve, has_curve=has_curve) if one.curve else None,
        alt=_ALT,
        table=Table(
            columns=("Model", "Data", "Attack", "AUC"),
            rows=tuple(
                (
                    o.model_title,
                    o.data_title,
                    f"{o.attack_title}, on {o.unit}",
                    o.auc.in_percent().format(),
                )
                for o in strong
            ),
        ),
        facts=(
            *member_facts(one, n_tried=len(alike)),
            *([(YEARS, _NO_HEADLINE)] * any(each.is_by_year for each in shown)),
            *_weaker_fact(weak),
            *provenance_facts(one.provenances),
        ),
        commands=tuple(map(command_of, dict.fromkeys(each.study for each in real or found))),
    )


def describe_rates(one: membership.Measured) -> str:
    """Describe the model's training, an attack's rates and its controls, as Markdown."""
    shown = [at for at in one.at if at.is_shown]
    sentences = [_describe_training(one), *map(_describe_rate, shown)]
    for at in shown[1:] if not one.is_control else ():
        value, interval = membership_probability(at, FEW).in_percent().parts(0)
        sentences.append(
            f"If 1 of {1 / FEW:.0f} {one.unit} is a member, {value} %{at.mark} of those called "
            f"members at a rate of {100 * at.fpr:g} % are members (95 % CI {interval})."
        )
    unseen = [f"{100 * at.fpr:g} %" for at in one.at if not at.is_shown]
    if unseen:
        sentences.append(
            f"At {' and '.join(unseen)}, the rate cannot be measured (not resolvable): there are "
            "too few non-members."
        )
    draws = f"{one.n_draws} random draw{'s' if one.n_draws != 1 else ''}"
    sentences.append(
        f"n = {one.auc.n:,} {one.unit}; numbers are means over {draws} of members. No interval is "
        "corrected for the choice among several attacks."
    )
    if one.control is not None:
        sentences.append(
            "As a control, membership was assigned at random (permuted labels). The AUC is then "
            f"{100 * one.control.value:.0f}; it should be about 50."
        )
    if one.null is not None:
        is_even = one.null.ci95.low <= one.null.chance <= one.null.ci95.high
        meaning = (
            "This is not significantly different from guessing."
            if is_even
            else "So members and non-members differ in more than membership."
        )
        sentences.append(
            f"On a model trained on neither group, the AUC is {format_auc(one.null)}. {meaning}"
        )
    if one.blind:
        sentences.append(one.blind)
    if rare_words_leak_more(one):
        tenth, auc = one.deciles("auc")[-1]
        which = "the rarest tenth of words" if tenth == _TENTHS else "the rarest words measured"
        sentences.append(f"For {which}, the AUC is {format_auc(auc, is_bold=True)}.")
    return " ".join(sentences)


def rare_words_leak_more(one: membership.Measured) -> bool:
    """Return whether an attack does significantly better on the rarest tenth of the words."""
    points = one.deciles("auc")
    return len(points) > 1 and points[-1][1].ci95.low > points[0][1].ci95.high


def _describe_rate(at: AtRate) -> str:
    """Describe the true-positive rate at a false-positive rate in a sentence."""
    value, interval = at.tpr.in_percent().parts()
    is_coarse = at.resolution == "coarse"
    limit = f"; this is a rough estimate (coarse): {FEW_EXPECTED}" if is_coarse else ""
    return (
        f"At a false-positive rate of {100 * at.fpr:g} %, the attack finds {value} % of the "
        f"members (95 % CI {interval}){limit}."
    )


def own_members(found: AttackedOutputs, one: AttackOutcome, curve: Sequence[RocPoint]) -> Finding:
    """Build the finding on attacks on a user's own classifier; it names no sample.

    Parameters
    ----------
    one : AttackOutcome
        The attack shown in the figure.
    curve : sequence of RocPoint
        The ROC curve of that attack.
    """
    record = found.record
    first, _, rest = str(record["verdict"]).partition(". ")
    whose = "Simulated" if found.is_simulated else "Your classifier"
    of_users = "" if record["n_users"] is None else f" of {record['n_users']:,} users"
    n = f"{record['n']:,} samples{of_users}, {record['n_members']:,} of them members"
    ranked = sorted(found.outcomes, key=lambda each: (not each.is_valid, -each.auc.ci95.low))
    rates = [f"found at {100 * at.fpr:g} %" for at in one.at]
    return Finding(
        title=f"{whose}: {first.removesuffix('.')}",
        body=f"{plain(rest)} Data: {n}; {record['n_classes']:,} classes; {record['n_shadows']} "
        "shadow models. The classifier's accuracy is "
        f"{format_percent(record['accuracy_on_members'], 1)} on members and "
        f"{format_percent(record['accuracy_on_others'], 1)} on non-members. The figure shows one "
        f"attack, {plain(describe_plan(one.plan))}, with an AUC of "
        f"{format_auc(one.auc, is_bold=True)}.".strip(),
        figure=roc_figure(list(curve)),
        alt=_ALT,
        table=Table(
            columns=("attack", "AUC", *rates, "permuted labels"),
            rows=(
                *(_outcome_row(each) for each in ranked),
                *((what, auc, *("" for _ in rates), "") for what, auc in _baseline_rows(record)),
            ),
        ),
        facts=(
            ("Data", _DATA[found.is_simulated]),
            ("n", n),
            ("Interval", INTERVAL),
            ("Attacker", describe_plan(one.plan)),
            ("Access", f"the classifier's outputs, and {record['n_shadows']} shadow models"),
        ),
        caveat=" ".join(
            [_NO_EVIDENCE] * leaks_without_model(record) + [_NOT_VALID] * (not one.is_valid)
        ),
    )


_DATA = {
    False: "your own file: the outputs of a classifier",
    True: "simulated: no classifier was trained",
}
_NO_EVIDENCE = (
    "Members can be recognised without the classifier, so what the attacks find is no evidence of "
    "a leak. The notes on the page say what to change."
)
_NOT_VALID = (
    "**Not valid here.** The training samples of the shadow models predict those of the "
    "classifier, so this attack would find members even if nothing leaked. Train each shadow model "
    "on a random half of all samples, drawn independently of the classifier's."
)


def describe_plan(plan: Plan) -> str:
    """Return a classifier attack's title with its settings and its level (sample or user)."""
    text = ", ".join(describe_setting(value) for value in plan.settings.values())
    title = CLASSIFIER_ATTACKS[plan.attack].title
    named = f"{title}: {text}".replace(": of ", " of ") if text else title
    return f"{named} ({_LEVELS[plan.level]})"


def _outcome_row(outcome: AttackOutcome) -> tuple[str, ...]:
    """Return an attack's outcome as table cells: title, AUC, true-positive rates and control."""

    def found(at: AtRate) -> str:
        """Format the true-positive rate at a false-positive rate, or say why there is none."""
        if not outcome.is_valid:
            return "not valid"
        return f"{at.tpr.in_percent().format()} %{at.mark}" if at.is_shown else "not resolvable"

    auc, control = outcome.auc.in_percent().format(), f"{100 * outcome.control.value:.1f}"
    return (describe_plan(outcome.plan), auc, *map(found, outcome.at), control)


def _baseline_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (title, AUC text) for each baseline that predicts members without the classifier."""
    titles = {
        "blind_baseline": "Blind baseline: only the texts, without the classifier",
        "shadow_design": "Shadow design alone: which shadow models were trained on which samples",
    }
    found = []
    for name, title in titles.items():
        if (result := record[name]) is not None:
            auc = Score(result["auc"], Interval(*result["auc_ci95"]), result["n_units"], 0.5)
            mark = "above chance" if result["is_above_chance"] else "not above chance"
            cell = f"{auc.in_percent().format()}, {mark} (p = {result['p_value']:.2g})"
            found.append((title, cell))
    return found


def _describe_auc(one: membership.Measured, n_tried: int, *, is_best: bool) -> str:
    """Describe an attack's AUC, whether it is the best of those tried, and the AUC of guessing."""
    which = f"The strongest of {n_tried} attacks" if is_best else f"This attack, one of {n_tried}"
    if n_tried == 1:
        which = "The attack"
    of_halves = " Here, the AUC compares the two halves." if one.is_control else ""
    row = one.rows[0]
    model = "a classifier" if "corpus" in row else one.model_title
    comma = "," * which.startswith("This")
    return (
        f"{which} on {model} trained on {format_collection(row)}{comma} has an AUC of "
        f"{format_auc(one.auc, is_bold=True)}; guessing has {100 * one.auc.chance:.0f} "
        f"(n = {one.auc.n:,} {one.unit}).{of_halves}"
    )


_YEAR_LIMIT = (
    " The classes are years, and a year reveals who wrote then. Part of this result is therefore "
    "when people wrote, not how, so the page does not open with it."
)


def member_facts(one: membership.Measured, n_tried: int = 1) -> tuple[Fact, ...]:
    """Return a membership attack's facts as (name, text) pairs: data, n, attacker, access and cost.

    Parameters
    ----------
    n_tried : int
        How many attacks were tried, from which the reader sees the strongest first.
    """
    choice = (
        f"; not corrected for the choice among {n_tried} attacks, so the AUC of the strongest may "
        "be too high"
    )
    return (
        ("Data", one.data_title),
        ("n", f"{one.auc.n:,} {one.unit}, {one.n_draws} draws of members"),
        ("Interval", INTERVAL + choice * (n_tried > 1)),
        ("Attacker", f"{one.attack_title}. {one.entry.summary}".rstrip(".")),
        ("Access", "the model's outputs, and texts similar to its training texts"),
        ("Cost", _describe_cost(one)),
    )


def _describe_precision(one: membership.Measured) -> str:
    """Describe the precision of "member" verdicts at the highest rate, if members are few."""
    rates = [at for at in one.at if at.is_shown]
    if not rates or one.is_control:
        return ""
    value, interval = membership_probability(rates[0], FEW).in_percent().parts(0)
    return (
        f" A single verdict is worth less where few {one.unit} are members. Example: 1 of "
        f"{1 / FEW:.0f} is a member, and the attack wrongly calls {100 * rates[0].fpr:g} % of the "
        f"others members. Then **{value} %**{rates[0].mark} of those called members are members "
        f"(95 % CI {interval})."
    )


def _describe_training(one: membership.Measured) -> str:
    """Describe which model was trained, and on which part of the texts: who is a member."""
    row, whole = one.rows[0], format_collection(one.rows[0])
    if one.is_control:
        return f"{one.model_title} was trained on both halves of {whole}."
    if "corpus" not in row:
        return (
            f"{one.model_title} was trained on one half of {whole}; the other half are non-members."
        )
    whose = (
        "all texts of some users, the members, and on no text of the other users"
        if row["split"] == "user"
        else "some texts of every user, the members, and on none of the other texts"
    )
    return (
        f"A classifier ({one.model_title.lower()}) predicts the {describe_class(row['label'])} of "
        f"a text ({whole}). It was trained on {whose}."
    )


def _describe_cost(one: membership.Measured) -> str:
    """Describe how many shadow models the attacker trains, or that none is needed."""
    n = one.rows[0].get("n_shadows")
    if n and getattr(one.entry, "needs", "nothing") != "nothing":
        return f"{n} shadow models, trained with the same recipe as the target"
    return "no shadow models: the score is computed from the model's outputs"


def _weaker_fact(left_out: Sequence[membership.Measured]) -> tuple[Fact, ...]:
    """Return a fact on how many attacks the table leaves out, and the weakest AUC; () for none."""
    if not left_out:
        return ()
    least = left_out[-1]
    text = f"{len(left_out)} more, down to an AUC of {format_auc(least.auc)}"
    return ((WEAKER, f"{text}: {least.model_title}, {least.data_title}"),)


_NO_HEADLINE = "not in the headline: a year reveals who wrote then, whatever the model memorised"
