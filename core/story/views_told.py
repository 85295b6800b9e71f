"""Views of what is told about people: who wrote it, who was trained on, what is kept by heart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.attacks.membership.rates import PRIORS
from core.attacks.membership.verdict import worth_at
from core.encoders.registry import ENCODERS
from core.errors import ArtifactError
from core.figures.attributes import accuracy_figure
from core.figures.membership import roc_figure
from core.figures.memorisation import MODELS, insertions_figure, times_said, verdict
from core.figures.representations import encoder_title
from core.results import Score
from core.said import auc_said
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import WEAKER, YEARS, Fact, Slide, Table
from core.story.views_read import ENCODER, INTERVAL, origin
from core.studies import attribute_curves as attributes
from core.studies import membership_shipped as membership
from core.studies.membership_called import collection_said
from core.studies.membership_classifier_rows import class_said
from core.studies.memorisation_summary import SHIPPED, Memorisation, load_memorisation
from core.studies.rows import Row

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["author_facts", "authors", "canaries", "canary_facts", "member_facts", "members"]

_MOST_SHOWN = 6
_PROBE = "linear"
"""The attack of which it was measured how much it owes to the work."""
FEW = PRIORS[1]
"""Share of members among those asked about at which an accusation is weighed."""


def authors() -> Slide:
    """Return how many authors the strongest attack on vectors names, beside what guessing does."""
    rows = attributes.load_shipped()
    if not rows:
        raise ArtifactError(f"{attributes.SHIPPED} holds no rows of attributes.")
    source = attributes.offered(rows)[0]
    labels, sizes = attributes.views_of(rows, source)
    view = attributes.View(source, labels[-1], sizes[-1])
    attack = attributes.strongest(rows, view, ENCODER)
    one = attributes.mean_at(rows, view, attack, "top1", ENCODER)
    if one is None:
        raise ArtifactError(f"{attributes.SHIPPED} holds no rows of an attack on {ENCODER}.")
    what = str(rows[0].get("label", "label"))
    value, interval = one.in_percent().parts(0)
    body = (
        f"Among {view.n_labels} {what}s, the {ATTRIBUTE_ATTACKS[attack].title.lower()} names "
        f"the right {what} of **{value} %** of the texts at its first try "
        f"(95 % interval {interval}); guessing, of {100 * one.chance:.0f} %."
    )
    return Slide(
        title=f"The vector alone gives away the {what} of {100 * one.value:.0f} % of the texts",
        body=" ".join(filter(None, (body, _from_text(rows, view, one), _topic(rows)))),
        figure=plain_figure(_accuracy(rows, view, what)),
        alt="Share of texts whose author is named, by how many of each the attacker has, a line "
        "an attack, beside guessing",
        table=_named(rows, view),
        facts=(
            *author_facts(view, attack, one.n, what),
            *origin(row.provenance for row in rows),
        ),
        commands=tuple(map(command_of, ("attributes-novels", "attributes-books"))),
    )


def author_facts(view: attributes.View, attack: str, n: int, what: str) -> tuple[Fact, ...]:
    """Return what an attack on the authors of novels rests on."""
    return (
        ("Data", f"passages of novels; known: {attributes.SOURCES[view.source]}"),
        ("n", f"{n:,} texts"),
        ("Interval", INTERVAL),
        ("Attacker", ATTRIBUTE_ATTACKS[attack].title),
        ("Access", f"vectors, and some texts whose {what} is known"),
        ("Cost", f"taught by {view.n_per_label:,} texts of each of {view.n_labels} {what}s"),
    )


def _accuracy(rows: Sequence[Row], view: attributes.View, what: str) -> go.Figure:
    """Draw the attacks; encoders and what counts along the axis go by what people call them."""
    along = "n_per_label"
    figure = accuracy_figure(attributes.curves(rows, view, along), along, view.k)
    for trace in figure.data:
        title, _, name = str(trace.name).rpartition(", ")
        if title and name in ENCODERS:
            trace.name = f"{title}, {encoder_title(name)}"
        elif trace.name == "labels shuffled":
            trace.name = f"{what}s shuffled (control)"
    figure.update_xaxes(title=f"texts known of each {what}")
    return figure


def _percent(score: Score) -> str:
    return f"{score.in_percent().said(0)} %"


def _from_text(rows: Sequence[Row], view: attributes.View, one: Score) -> str:
    """Return what the best attack on the raw text names, beside the vector's `one`."""
    found = [
        (score, entry.title.lower())
        for name, entry in ATTRIBUTE_ATTACKS.items()
        if entry.is_baseline
        and (score := attributes.mean_at(rows, view, name, "top1", "")) is not None
    ]
    if not found:
        return ""
    best, title = max(found, key=lambda each: each[0].value)
    beside = "more" if best.value > one.value else "no more"
    doubt = "" if best.is_resolved_from(one) else "; their intervals touch"
    return (
        f"From the raw text itself it is {_percent(best)} ({title}): {beside} than from the "
        f"vector{doubt}."
    )


def _topic(rows: Sequence[Row]) -> str:
    """Return how much of it was the work, where labelled texts of other works were tried."""
    labels, sizes = attributes.views_of(rows, "group")
    if not labels:
        return ""
    view = attributes.View("group", labels[-1], sizes[-1])
    share = attributes.mean_at(rows, view, _PROBE, "topic_share_top1", ENCODER)
    if share is None:
        return ""
    return (
        f"Part of it is the work, not its author: of another attack on the vector, the "
        f"{ATTRIBUTE_ATTACKS[_PROBE].title.lower()}, {_percent(share)} of what it gains over "
        "guessing is gone where it knows other works of an author alone."
    )


def _named(rows: Sequence[Row], view: attributes.View) -> Table:
    """Return what each attack reaches at a view, those on raw text too."""
    lines = []
    for name, entry in ATTRIBUTE_ATTACKS.items():
        encoder = "" if entry.is_baseline else ENCODER
        found = [attributes.mean_at(rows, view, name, f"top{k}", encoder) for k in (1, 5)]
        if found[0] is not None:
            reads = "the raw text" if entry.is_baseline else "the vector"
            lines.append((entry.title, reads, *("" if s is None else _percent(s) for s in found)))
    return Table(columns=("Attack", "Reads", "At once", "Among five"), rows=tuple(lines))


def members() -> Slide:
    """Return how often it is told who was trained on, by the strongest attack on each model."""
    found = [one for one in membership.load_measured() if not one.is_control]
    if not found:
        raise ArtifactError(f"{membership.SHIPPED} holds no rows of membership.")
    best = membership.strongest(found)
    shown = [
        membership.strongest([each for each in found if (each.model, each.data) == pair])
        for pair in dict.fromkeys((one.model, one.data) for one in found)
    ]
    shown.sort(key=lambda one: -one.auc.value)
    strong, weak = shown[:_MOST_SHOWN], shown[_MOST_SHOWN:]
    has_curve = any(row.facts.get("curve") for row in best.rows)
    n_tried = sum((one.model, one.data) == (best.model, best.data) for one in found)
    return Slide(
        title=membership.verdict(best),
        body=f"{_trained(best)} Of two {best.unit}, of which one was there and one was not, the "
        f"attack picks the right one in **{_auc(best)} %** of the pairs, which is the AUC; "
        f"guessing picks it in {100 * best.auc.chance:.0f} %. It is the strongest of {n_tried} "
        "attacks that were tried on the same; the interval is not corrected for that choice."
        f"{_worth(best)}",
        figure=plain_figure(roc_figure(best.curve, has_curve=has_curve)),
        alt="Share of members found against share of non-members falsely accused",
        table=Table(
            columns=("Model", "Data", "Attack", "AUC"),
            rows=tuple(
                (o.model_title, o.data_title, f"{o.attack_title}, on {o.unit}", _auc(o))
                for o in strong
            ),
        ),
        facts=(
            *member_facts(best),
            *_years(shown),
            *_weakest(weak),
            *origin(best.provenances),
        ),
        commands=tuple(command_of(study) for study in dict.fromkeys(o.study for o in found)),
    )


def member_facts(one: membership.Measured) -> tuple[Fact, ...]:
    """Return what an attack on members rests on."""
    return (
        ("Data", one.data_title),
        ("n", f"{one.auc.n:,} {one.unit}, {one.n_draws} draws of who is a member"),
        ("Interval", INTERVAL),
        ("Attacker", f"{one.attack_title}. {one.entry.summary}".rstrip(".")),
        ("Access", "the model's answers, and other texts like those that it learnt from"),
        ("Cost", _cost(one)),
    )


def _worth(one: membership.Measured) -> str:
    """Return how many of those whom it accuses are members, where members are few."""
    at = next((at for at in one.at if at.is_shown), None)
    if at is None:
        return ""
    value, interval = worth_at(at, FEW).in_percent().parts(0)
    return (
        f" Where one in {1 / FEW:.0f} is a member, and {100 * at.fpr:g} % of the others are "
        f"falsely accused, **{value} %** (95 % interval {interval}) "
        f"of those accused are members{at.mark}."
    )


def _trained(one: membership.Measured) -> str:
    """Return in a sentence what was trained, and on what part of the texts."""
    row, whole = one.rows[0], collection_said(one.rows[0])
    if "corpus" not in row:
        return f"{one.model_title} was trained on one half of {whole}, not on the other."
    whose = (
        "by all texts of some users and by none of the others"
        if row["split"] == "user"
        else "by some texts of every user and by none of the rest"
    )
    return (
        f"A classifier ({one.model_title.lower()}) was taught which {class_said(row['label'])} a "
        f"text is of ({whole}), {whose}."
    )


def _cost(one: membership.Measured) -> str:
    """Return what the attack takes: models of the attacker's own, where it learns from some."""
    n = one.rows[0].get("n_shadows")
    if n and getattr(one.entry, "needs", "nothing") != "nothing":
        return f"{n} models of the attacker's own, trained by the same recipe"
    return "no model of the attacker's own: what the model answers is counted"


def _auc(one: membership.Measured) -> str:
    return auc_said(one.auc)


def _weakest(left_out: Sequence[membership.Measured]) -> tuple[Fact, ...]:
    """Return how many are not in the table, and how little the least of them gives away."""
    if not left_out:
        return ()
    least = left_out[-1]
    told = f"{len(left_out)} more, down to an AUC of {_auc(least)}"
    return ((WEAKER, f"{told} ({least.model_title}, {least.data_title})"),)


def _years(shown: Sequence[membership.Measured]) -> tuple[Fact, ...]:
    """Return why what is told apart by year makes no headline, where some of it is shown."""
    if not any(one.is_by_year for one in shown):
        return ()
    told = "not in the headline: a year says who was there, whatever the model keeps"
    return ((YEARS, told),)


def canaries() -> Slide:
    """Return what a language model gives away of a secret, by how often it was planted."""
    found = load_memorisation(SHIPPED)
    most = max(found.planted, key=lambda point: point.exposure.value)
    scores = [(MODELS[p.model], times_said(p.insertions), p.exposure) for p in found.planted]
    return Slide(
        title=verdict(found),
        body=f"Secrets with {found.n_values:,} possible values were planted in "
        f"{found.n_texts:,} sentences, and a small language model trained on them. Planted "
        f"{times_said(most.insertions)}, it gives away **{most.exposure.said()}** bits of a "
        f"secret, of {found.law.most or 0:.1f} at most; planted nowhere, a secret has "
        f"{found.law.mean:.2f} bits on average.",
        figure=plain_figure(insertions_figure(found)),
        alt="Exposure in bits by how often a canary was planted",
        table=Table(
            columns=("Model", "Planted", "Bits given away"),
            rows=tuple((model, times, score.said()) for model, times, score in scores),
        ),
        facts=canary_facts(found),
        commands=(command_of("memorisation"),),
    )


def canary_facts(found: Memorisation) -> tuple[Fact, ...]:
    """Return what is told of planted canaries rests on."""
    most = max(found.planted, key=lambda point: point.exposure.value)
    return (
        ("Data", f"{found.n_texts:,} sentences, {found.epochs} passes"),
        ("n", f"{most.exposure.n:,} canaries at each number of insertions"),
        ("Interval", "95 %, in brackets, over canaries and seeds"),
        ("Attacker", "Ranks all possible values by how likely the model finds them"),
        ("Access", "the model's probabilities"),
        ("Cost", f"{found.n_values:,} values tried for each secret; no training"),
        *origin(found.provenances),
    )
