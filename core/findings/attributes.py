"""Findings on attribute inference: how often a vector leaks an author or another attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.attributes import accuracy_figure
from leakscope.core.figures.representations import encoder_title
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import UNMEASURED, Fact, Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.findings.shared import ENCODER, INTERVAL, provenance_facts
from leakscope.core.formatting import format_percent
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes import curves as attributes

if TYPE_CHECKING:
    import plotly.graph_objects as go

TABLES = ("attributes-novels", "attributes-books")
"""The tables in results/ that hold the shipped rows."""

NOT_MEASURED = Finding(
    title="Does a vector reveal who wrote the text?",
    facts=UNMEASURED,
    commands=tuple(map(command_of, TABLES)),
)

_FIVE = 5

_INPUTS = {"vectors": "the vector", "texts": "the raw text", "nothing": "none"}


def authors() -> Finding:
    """Read the shipped rows; build the finding on how many authors the strongest attack names.

    Raises
    ------
    ArtifactError
        There are no rows, or none of an attack on the bundled encoder.
    """
    rows = attributes.load_shipped()
    if not rows:
        raise ArtifactError(f"{attributes.SHIPPED} contains no rows on attributes.")
    finding = authors_at(rows, first_view(rows))
    if finding.facts == UNMEASURED:
        raise ArtifactError(f"{attributes.SHIPPED} contains no rows on an attack on {ENCODER}.")
    return finding


def first_view(rows: Sequence[Row]) -> attributes.View:
    """Return the default view of result rows: all labels, and the most labelled texts of each."""
    source = attributes.labelled_sources(rows)[0]
    labels, sizes = attributes.views_of(rows, source)
    return attributes.View(source, labels[-1], sizes[-1])


def authors_at(rows: Sequence[Row], view: attributes.View, along: str = "n_per_label") -> Finding:
    """Build the finding on how many authors of novels the strongest attack names at one view.

    Parameters
    ----------
    along : str
        The x-axis of the accuracy plot, one of ALONG.
    """
    finding = attribute_at(rows, view, along, data="passages of novels")
    return replace(finding, commands=NOT_MEASURED.commands)


def attribute_at(rows: Sequence[Row], view: attributes.View, along: str, *, data: str) -> Finding:
    """Build the finding on how often the strongest attack infers the right label at one view.

    Parameters
    ----------
    along : str
        The x-axis of the accuracy plot, one of ALONG.
    data : str
        Description of the texts.
    """
    what = str(rows[0].get("label", "label"))
    figure = _accuracy_plot(rows, view, along, what)
    by = f"labelled texts per {what}" if along == "n_per_label" else _plural(what)
    alt = (
        f"Share of texts whose {what} is inferred correctly{_top_five_phrase(view)}, by number of "
        f"{by}, one line per attack, with guessing"
    )
    attack = attributes.strongest(rows, view, ENCODER)
    one = attributes.mean_at(rows, view, attack, "top1", ENCODER)
    if one is None:
        none = "No attack on this encoder's vectors was measured at this size."
        return replace(NOT_MEASURED, body=none, figure=figure, alt=alt)
    title = (
        f"From a vector, an attack names the right one of {view.n_labels} {_plural(what)} for "
        f"{format_percent(one.value)} of the texts"
    )
    sentences = [
        f"The attack (the {ATTRIBUTE_ATTACKS[attack].title.lower()}) has {view.n_per_label:,} "
        f"labelled texts of each {plain(what)}. It is right for "
        f"{_format_share(one, is_bold=True)} of {one.n:,} other texts ({plain(data)}, "
        f"{encoder_title(ENCODER)}); guessing is right for {format_percent(one.chance)}."
    ]
    balanced = attributes.mean_at(rows, view, attack, "balanced", ENCODER)
    if balanced is not None:
        title += f", {format_percent(balanced.value)} if each {what} counts equally"
        sentences.append(
            "Some labels are more frequent than others. Balanced accuracy, the mean over labels, "
            f"is {_format_share(balanced, is_bold=True)}; guessing reaches "
            f"{format_percent(balanced.chance)}."
        )
    five = attributes.mean_at(rows, view, attack, f"top{_FIVE}", ENCODER)
    if five is not None and view.k == _FIVE:
        sentences.append(
            f"Its five likeliest answers contain the right {plain(what)} for "
            f"{_format_share(five, is_bold=True)} of the texts; those of guessing, for "
            f"{format_percent(five.chance)}."
        )
    at = _other_works_view(rows, view)
    unseen = None
    if at is not None and at is not view:  # else the view itself shows it
        unseen = attributes.mean_at(rows, at, attack, "top1", ENCODER)
    if at is not None and unseen is not None:
        title += f"; if it never saw the same work, for {format_percent(unseen.value)}"
        sentences.append(
            f"If it has no other text of the same work (measured with {at.n_labels} "
            f"{plain(_plural(what))}), it is right for {_format_share(unseen)}; guessing, for "
            f"{format_percent(unseen.chance)}."
        )
    baseline = _text_baseline_fact(rows, view, one)
    sentences += [told for _, told in baseline]
    return Finding(
        title=title,
        body=" ".join(sentences),
        figure=figure,
        alt=alt,
        table=_accuracy_table(rows, view),
        facts=(
            *_facts(view, attack, one.n, what, data),
            *baseline,
            *_lost_advantage_fact(rows, view, attack, what),
            *provenance_facts(row.provenance for row in rows),
        ),
    )


def describe_parts(rows: Sequence[Row], view: attributes.View) -> str:
    """Describe accuracy from a vector's topic and from its rest; "" if not measured."""
    attack = attributes.strongest(rows, view, ENCODER)
    topic, rest = (
        attributes.mean_at(rows, view, attack, f"top{view.k}_{part}", ENCODER)
        for part in ("topic", "rest")
    )
    if topic is None or rest is None:
        return ""
    return (
        "**Topic or the rest?** Each vector is split in two: the part of its numbers that the "
        "text's content words predict (topic), and the rest. From the topic alone, the attack is "
        f"right{_top_five_phrase(view)} for {_format_share(topic)} of the texts; from the rest "
        f"alone, for {_format_share(rest)}; guessing is right for {format_percent(topic.chance)}. "
        "The rest contains style, but also some topic that this prediction misses."
    )


def _facts(view: attributes.View, attack: str, n: int, what: str, data: str) -> tuple[Fact, ...]:
    """Return an attribute attack's (name, text) facts: data, n, attacker, access and cost."""
    return (
        ("Data", f"{data}; labelled texts from {attributes.SOURCES[view.source]}"),
        ("n", f"{n:,} texts"),
        ("Interval", INTERVAL),
        ("Attacker", ATTRIBUTE_ATTACKS[attack].title),
        ("Access", f"vectors, and some texts with a known {what}"),
        (
            "Cost",
            f"trained on {view.n_per_label:,} texts of each of {view.n_labels} {_plural(what)}",
        ),
    )


def _accuracy_plot(rows: Sequence[Row], view: attributes.View, along: str, what: str) -> go.Figure:
    """Return a figure of accuracy by attack at one view, with readable names."""
    figure = accuracy_figure(attributes.curves(rows, view, along), along, view.k)
    what = escape(what).replace("%", "&#37;")  # in a figure, < and & are markup and %{ a field
    for trace in figure.data:
        title, _, name = str(trace.name).rpartition(", ")
        if title and name in ENCODERS:
            trace.name = f"{title}, {encoder_title(name)}"
        elif trace.name == "shuffled labels":
            trace.name = f"shuffled {_plural(what)} (control)"
    each = f"labelled texts per {what}"
    figure.update_xaxes(title=each if along == "n_per_label" else f"number of {_plural(what)}")
    return figure


def _plural(what: str) -> str:
    """Return the plural of a label name; "labels" if the name is irregular."""
    return f"{what}s" if what.isalpha() and not what.endswith(("s", "x", "y")) else "labels"


def _top_five_phrase(view: attributes.View) -> str:
    """Return " within the top five" if a view measures top-5 accuracy; else ""."""
    return " within the top five" if view.k == _FIVE else ""


def _format_share(score: Score, *, is_bold: bool = False) -> str:
    """Return a share as a percentage for a sentence, with its interval if it has one."""
    value, interval = score.in_percent().parts(0)
    mark = "**" if is_bold else ""
    text = f"{mark}{value} %{mark}"
    return f"{text} (95 % CI {interval})" if score.ci95.is_known else text


def _text_baseline_fact(rows: Sequence[Row], view: attributes.View, one: Score) -> tuple[Fact, ...]:
    """Return a fact comparing the best attack on raw text with that on vectors; () without one."""
    found = [
        (score, entry.title.lower())
        for name, entry in ATTRIBUTE_ATTACKS.items()
        if entry.is_baseline
        and (score := attributes.mean_at(rows, view, name, "top1", "")) is not None
    ]
    if not found:
        return ()
    best, title = max(found, key=lambda each: each[0].value)
    comparison = f", {'more' if best.value > one.value else 'less'} than with the vector"
    if not best.is_resolved_from(one):
        comparison = ", not significantly different from the vector"
    return (
        (
            "Baseline",
            f"With the text itself instead of its vector, the best attack ({title}) is right for "
            f"{_format_share(best)}{comparison}.",
        ),
    )


def _other_works_view(rows: Sequence[Row], view: attributes.View) -> attributes.View | None:
    """Return the view whose labelled texts come from other works; None if not measured."""
    if view.source == "group":
        return view
    labels, sizes = attributes.views_of(rows, "group")
    return attributes.View("group", labels[-1], sizes[-1], view.k) if labels else None


def _lost_advantage_fact(
    rows: Sequence[Row], view: attributes.View, attack: str, what: str
) -> tuple[Fact, ...]:
    """Return a fact on the advantage that is lost on other works of a label; () if not measured."""
    at = _other_works_view(rows, view)
    if at is None:
        return ()
    share = attributes.mean_at(rows, at, attack, f"topic_share_top{view.k}", ENCODER)
    if share is None:
        return ()
    return (
        (
            "Unseen works",
            f"Trained only on other works of the same {what}, the attack loses "
            f"{_format_share(share)} of its advantage over guessing{_top_five_phrase(view)} "
            f"(tested on {at.n_labels} {_plural(what)}): it partly recognises the work, such as a "
            "book.",
        ),
    )


def _accuracy_table(rows: Sequence[Row], view: attributes.View) -> Table:
    """Build the table of each attack's accuracy at one view, with attacks on raw text."""
    tops = attributes.tops(view.n_labels)
    lines = []
    for name, entry in ATTRIBUTE_ATTACKS.items():
        encoder = "" if entry.is_baseline else ENCODER
        found = [attributes.mean_at(rows, view, name, f"top{k}", encoder) for k in tops]
        if found[0] is not None:
            lines.append(
                (
                    entry.title,
                    _INPUTS[entry.reads],
                    *("" if s is None else f"{s.in_percent().format(0)} %" for s in found),
                )
            )
    columns = ("Attack", "Input", "Top 1", "Top 5")
    return Table(columns=columns[: 2 + len(tops)], rows=tuple(lines))
