"""Markdown tables of networks under noise, compared with Qu et al. (2021, Tables 4 to 7).

The paper's order and goals are judged by intervals. Two networks are compared on the same texts. If
a seed lacks that change because the other network's training diverged, the two differ if their
intervals do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_records, markdown_table
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.odds import (
    COMPOSED,
    ODDS,
    format_odds_cell,
    noise_schedule,
    odds_note,
    releases_of,
)
from leakscope.core.studies.training.privacy_paper import (
    ADAPTED,
    CONSTRAINED,
    NULL,
    OBJECTIVE_ORDER,
    describe_similar_adapted,
    describe_similar_constrained,
)

TOKEN = "token_representation"
TEXT = "text_to_text"

ENOUGH = 50.0
"""The goal: the percentage of the lost accuracy that denoising should recover."""

Held = tuple[Score, Score, Score | None]
"""Two accuracies, and the paired change from the second to the first if known."""

_MORE, _LESS = "more", "less"


def change_from(other: str) -> str:
    """Return the name, in rows, of the change from another network on the same texts."""
    return f"change_from_{other}"


def change_of(rows: ResultTable, other: str) -> Score | None:
    """Average the change from another network over the seeds of rows; None if a row lacks it."""
    measure = change_from(other)
    if len(rows.having(measure)) < len(rows):
        return None
    return rows.mean_on_same_texts(measure)


def changes_of(rows: ResultTable) -> dict[str, Score]:
    """Return, by loss, the mean change from other pretraining losses that every row has."""
    found = {other: change_of(rows, other) for other in OBJECTIVE_ORDER}
    return {other: change for other, change in found.items() if change is not None}


def describe_at_chance(null: Score) -> str:
    """Describe as a caveat that a noiseless network is at chance; "" if it is above.

    Noise cannot lower its accuracy, so it cannot distinguish mechanisms.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> describe_at_chance(Score(66.9, Interval(62.9, 70.9), 1429, 68.4))[:52]
    'Without noise, this network is not significantly abo'
    >>> describe_at_chance(Score(76.4, Interval(72.9, 80.0), 868, 50.8))
    ''
    """
    if math.isnan(null.chance) or null.direction(null.chance) == _MORE:
        return ""
    return (
        "Without noise, this network is not significantly above guessing "
        f"({null.chance:.1f}) either. Noise has no accuracy to take, so the mechanisms cannot be "
        "compared here."
    )


def group_by_order(pairs: Mapping[float, Held]) -> dict[str, list[float]]:
    """Group the η by whether the first of two accuracies is significantly above or below."""
    stands = {eta: _compare_accuracies(held) for eta, held in pairs.items()}
    return {
        "above": [eta for eta, how in stands.items() if how == _MORE],
        "not significantly different": [
            eta for eta, how in stands.items() if how not in (_MORE, _LESS)
        ],
        "below": [eta for eta, how in stands.items() if how == _LESS],
    }


def _compare_accuracies(held: Held) -> str:
    """Return how an accuracy compares: "more", "less" or "not significantly different"."""
    one, two, change = held
    if change is not None:
        return change.direction()
    if not one.is_resolved_from(two):
        return "not significantly different"
    return _MORE if one.value > two.value else _LESS


def describe_order(
    accuracies: Mapping[str, Score], changes: Mapping[str, Mapping[str, Score]]
) -> str:
    """Describe how the pretraining losses compare, and whether the paper's order is confirmed.

    The paper ranks denoising first.

    Parameters
    ----------
    accuracies : dict
        Of each loss.
    changes : dict
        Of each loss, its changes from other losses on the same texts, if recorded.

    Returns
    -------
    str
        Without a full stop; empty for a single loss.
    """
    known = [name for name in reversed(OBJECTIVE_ORDER) if name in accuracies]
    if len(known) < 2:
        return ""
    pairs: dict[tuple[str, str], Held] = {
        (one, two): (accuracies[one], accuracies[two], changes.get(one, {}).get(two))
        for one, two in combinations(known, 2)
    }
    stands = {pair: _compare_accuracies(held) for pair, held in pairs.items()}
    told = [_describe_pair(*pair, pairs[pair][2], stands[pair]) for pair in pairs]
    neighbours = [stands[pair] for pair in pairwise(known)]
    if _LESS in stands.values():
        judged = "contradicted"
    elif all(how == _MORE for how in neighbours):
        judged = "confirmed"
    else:
        judged = "neither confirmed nor contradicted"
    return f"{'; '.join(told)}. The paper's order is {judged}"


def _describe_pair(one: str, two: str, change: Score | None, stands: str) -> str:
    """Describe how one loss compares with another, with the change in points if known."""
    compared = {_MORE: "significantly better than", _LESS: "significantly worse than"}
    points = ""
    if change is not None:
        value, interval = change.parts()
        points = f" ({value} points, 95 % CI {interval})"
    return (
        f"{OBJECTIVES[one].title} is {compared.get(stands, 'not significantly different from')} "
        f"{OBJECTIVES[two].title}{points}"
    )


def describe_goal(share: Score) -> str:
    """Describe whether the recovered share of accuracy reaches the goal, by its interval.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> describe_goal(Score(60.0, Interval(45.0, 75.0), 100))
    'the goal of 50 % is neither significantly met nor missed'
    """
    goal = f"the goal of {ENOUGH:.0f} %"
    if share.ci95.low >= ENOUGH:
        return f"{goal} is significantly met"
    if share.ci95.high < ENOUGH:
        return f"{goal} is significantly missed"
    return f"{goal} is neither significantly met nor missed"


def constrained_markdown(rows: Sequence[Row]) -> str:
    """Format rows of the study of networks under noise as Markdown, beside Tables 4 and 5."""
    lines: list[str] = []
    table = ResultTable(rows)
    for (task,), found in table.measured.group_by("task").items():
        lines += [f"## {task}", "", _describe_sizes(found), ""]
        lines += [*markdown_records(_constrained_records(task, found)), "", _BESIDE, ""]
        lines += _odds_lines(found)
        lines += [
            f"{READERS[reader].title}. {told}\n"
            for reader in found.distinct("reader")
            if (told := describe_similar_constrained(task, reader))
        ]
        lines += [*_text_above_token(found), ""]
    return "\n".join([*_failure_lines(table), *lines])


_BESIDE = (
    "Without noise: the same network, trained on what users send, without noise. No constraint: "
    "the whole network, fine-tuned on the original texts; where users send word pieces, this is "
    "the same. On the vector of a whole text, only a small head is trained. The cost of freezing "
    "the encoder is part of the change from no constraint, but not of the change due to noise."
)


def _constrained_records(task: str, rows: ResultTable) -> list[dict[str, object]]:
    """Return one dict of table cells per network, mechanism and η of a task."""
    settings = rows.group_by("reader", "defence", "eta", releases_of)
    records: list[dict[str, object]] = []
    for (reader, mechanism, eta, releases), same in settings.items():
        first, is_null = same[0], mechanism == "none"
        theirs = CONSTRAINED.get((task, reader, mechanism), {}).get(first["paper_eta"] or 0)
        if is_null:
            theirs = NULL.get((task, reader))
        noiseless, by_noise = _reference_cells(same, "noiseless_accuracy", "change_by_noise")
        unconstrained, change = _reference_cells(same, "null_accuracy", "change")
        records.append(
            {
                "network": READERS[reader].title,
                "sends": DEFENCES[mechanism].title,
                "η": "" if is_null else f"{eta:g}",
                "releases of a text": releases or "",
                ODDS.lower(): "" if is_null else _format_odds(first, releases),
                "accuracy [95 %]": same.mean_on_same_texts("accuracy").format(is_bold=True),
                "without noise": noiseless,
                "change due to noise": by_noise,
                "no constraint": unconstrained,
                "change from no constraint": change,
                "minutes": f"{same.average('minutes'):.1f}",
                "Q21: η": first["paper_eta"] or "",
                "Q21": _format_number(theirs),
            }
        )
    return records


def _format_number(value: float | None) -> str:
    """Format a number with one decimal; "" if there is none."""
    return "" if value is None else f"{value:.1f}"


def _format_odds(row: Row, releases: int) -> str:
    """Format the guaranteed odds of a row's mechanism over all releases of a text."""
    return format_odds_cell(_mechanism_spec(row), str(row.get("encoder", "")), releases)


def _mechanism_spec(row: Row) -> DefenceSpec:
    """Build the spec of the mechanism by which a row's users send their texts, with its η."""
    return DefenceSpec.of(row["defence"], {"eta": row["eta"]} if row["defence"] != "none" else {})


def _odds_lines(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown lines that explain the column of odds; empty if there are none."""
    note = odds_note(
        [_mechanism_spec(row) for row in rows],
        str(rows[0].get("encoder", "")),
        f"{COMPOSED} A training text is released once if its noise was drawn once, and once per "
        "epoch if it was drawn again in each epoch. A test text is released once.",
    )
    return [f"Odds: {note}", ""] if note else []


def _reference_cells(rows: ResultTable, accuracy: str, change: str) -> tuple[str, str]:
    """Format a reference network's accuracy and the change from it; "" if not measured."""
    if accuracy not in rows[0].scores:
        return "", ""
    return f"{rows.mean_on_same_texts(accuracy).value:.1f}", rows.mean_on_same_texts(
        change
    ).format()


def _text_above_token(rows: ResultTable) -> list[str]:
    """Return a line per network with the η at which text to text beats token representation."""
    said = []
    noisy = rows.where(lambda row: row["defence"] != "none")
    for (reader, arm), found in noisy.group_by("reader", noise_schedule).items():
        null_rows = rows.where(reader=reader, defence="none")
        at = ResultTable([*null_rows, *found]).group_by("defence", "eta")
        changes = {
            eta: change_of(at[TEXT, eta], TOKEN)
            for _, eta in at
            if (TEXT, eta) in at and (TOKEN, eta) in at
        }
        level = {key: same.mean_on_same_texts("accuracy") for key, same in at.items()}
        rest = group_by_order(
            {eta: (level[TEXT, eta], level[TOKEN, eta], change) for eta, change in changes.items()}
        )
        above = rest.pop("above")
        if changes:
            missed = "".join(
                f"; {how} at η {', '.join(f'{eta:g}' for eta in etas)}"
                for how, etas in rest.items()
                if etas
            )
            points = ", ".join(
                f"{change.format()} at η {eta:g}"
                for eta, change in changes.items()
                if change is not None
            )
            paired = f" Points on the same texts: {points}." if points else ""
            null = level.get(("none", None))
            guesses = f" {told}" if null and (told := describe_at_chance(null)) else ""
            said.append(
                f"- {READERS[reader].title}, {_IN_ARM[arm]}: text to text is significantly above "
                f"token representation at {len(above)} of {len(changes)} η{missed}.{paired}"
                f"{guesses}"
            )
    return said


def adaptive_markdown(rows: Sequence[Row]) -> str:
    """Format rows of the pretraining study as Markdown: Tables 6 and 7, and losses by tokens."""
    lines: list[str] = []
    table = ResultTable(rows)
    for (task, mechanism), found in table.measured.group_by("task", "defence").items():
        lines += [f"## {task}, {DEFENCES[mechanism].title.lower()}", "", _describe_sizes(found), ""]
        lines += [*markdown_records(_adapted_records(task, mechanism, found)), ""]
        lines += [
            "Each η and loss was pretrained once. Seeds vary the fine-tuning only, so no interval "
            "covers how another pretraining would differ.",
            "",
        ]
        lines += _odds_lines(found)
        lines += [f"{told}\n"] if (told := describe_similar_adapted(task, mechanism)) else []
        lines += [*_order_lines(found), "", *_masking_lines(found)]
    if table.measured:
        lines += ["## Loss on held-out texts by tokens seen", ""]
        head = ("sends", "η", "pretraining loss", "held-out loss by tokens seen")
        lines += [*markdown_table(head, _loss_rows(table.measured)), ""]
    return "\n".join([*_failure_lines(table), *lines])


def _adapted_records(task: str, mechanism: str, rows: ResultTable) -> list[dict[str, object]]:
    """Return one dict of table cells per η (descending) and pretraining loss of a task."""
    settings = rows.group_by("eta", "objective", releases_of)
    null, records = NULL.get((task, "transformer")), []
    for eta, objective, releases in sorted(
        settings, key=lambda key: (-key[0], OBJECTIVE_ORDER.index(key[1]), key[2])
    ):
        same = settings[eta, objective, releases]
        first = same[0]
        at = first["paper_eta"] or 0
        plain = CONSTRAINED.get((task, "transformer", mechanism), {}).get(at)
        theirs = ADAPTED.get((task, mechanism, objective), {}).get(at)
        all_seen, distinct = first["all_tokens_seen"], first["distinct_tokens_seen"]
        is_known = None not in (null, plain, theirs)
        records.append(
            {
                "η": f"{eta:g}",
                "releases of a text": releases,
                ODDS.lower(): _format_odds(first, releases),
                "pretraining loss": OBJECTIVES[objective].title,
                "accuracy [95 %]": same.mean_on_same_texts("accuracy").format(is_bold=True),
                "not pretrained": f"{same.mean_on_same_texts('constrained_accuracy').value:.1f}",
                "without noise": f"{same.mean_on_same_texts('null_accuracy').value:.1f}",
                "gain": same.mean_on_same_texts("gain").format(),
                "recovered, %": same.mean_on_same_texts("won_back").format(0),
                "tokens seen (with earlier η; distinct)": f"{first['tokens_seen']:,} "
                f"({all_seen:,}; {distinct:,})",
                "share of the paper's": f"1 in {first['paper_tokens'] / all_seen:,.0f}",
                "minutes of pretraining": f"{same.average('pretraining_minutes'):.1f}",
                "Q21: η": at or "",
                "Q21: not pretrained": _format_number(plain),
                "Q21": _format_number(theirs),
                "Q21: recovered, %": f"{100 * (theirs - plain) / (null - plain):.0f}"  # type: ignore[operator]
                if is_known
                else "",
            }
        )
    return records


def _order_lines(rows: ResultTable) -> Iterator[str]:
    """Yield Markdown lines, per η, on how losses compare and whether denoising reaches its goal."""
    for (eta, _), found in rows.group_by("eta", noise_schedule).items():
        own = {name: same for (name,), same in found.group_by("objective").items()}
        said = describe_order(
            {name: same.mean_on_same_texts("accuracy") for name, same in own.items()},
            {name: changes_of(same) for name, same in own.items()},
        )
        if said:
            yield f"- η {eta:g}: {said}."
        share = (
            own["denoising"].mean_on_same_texts("won_back")
            if "denoising" in own
            else Score(math.nan)
        )
        if not math.isnan(share.value):
            title = OBJECTIVES["denoising"].title
            yield f"- η {eta:g}: {title} recovers {share.format(0)} %; {describe_goal(share)}."


def _masking_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield lines on the shares of positions that are masked, replaced or left noisy."""
    chosen = rows[0].get("objective_settings", {})
    if "masked" in chosen and "replaced" in chosen:
        kept = 100 * (1 - chosen["masked"] - chosen["replaced"])
        yield (
            f"Of the predicted positions, {100 * chosen['masked']:.0f} % are masked, "
            f"{100 * chosen['replaced']:.0f} % are replaced by another, and {kept:.0f} % show the "
            "noisy token. There, the vanilla loss predicts the noisy token, which is a copy; "
            "the denoising loss predicts the token before the noise. The paper does not state its "
            "shares."
        )
        yield ""


def _loss_rows(rows: ResultTable) -> Iterator[tuple[object, ...]]:
    """Yield lines of table cells with the held-out loss by tokens seen."""
    settings = rows.group_by("defence", "eta", "objective")
    for (mechanism, eta, objective), same in settings.items():
        told = ", ".join(f"{tokens:,}: {loss:.2f}" for tokens, loss in same[0]["loss_by_tokens"])
        yield DEFENCES[mechanism].title, f"{eta:g}", OBJECTIVES[objective].title, told


_IN_ARM = {"once": "noise drawn once", "every_epoch": "noise drawn in every epoch"}


def _describe_sizes(rows: ResultTable) -> str:
    """Describe the numbers of texts and seeds, and the majority-class accuracy."""
    first, seeds = rows[0], len(rows.distinct("seed"))
    return (
        f"Trained and tested under noise: {first['n_train']:,} training texts and {first['n']:,} "
        f"test texts, {seeds} "
        f"seed{'s' * (seeds > 1)}; predicting the majority class reaches "
        f"{rows[0].scores['accuracy'].chance:.1f}. The 95 % intervals account for the test texts "
        "and, with several seeds, for the seeds."
    )


def _failure_lines(rows: ResultTable) -> list[str]:
    """Return a Markdown line per failed cell, with its error."""
    return [
        f"- Not measured: {row['task']}, {row['defence']}, {row['defence_settings']}, seed "
        f"{row['seed']}: {row.error}"
        for row in rows.failed
    ]
