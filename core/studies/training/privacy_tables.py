"""Markdown tables of networks under noise, compared with Qu et al. (2021, Tables 4 to 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.deniability.odds import (
    COMPOSED,
    ODDS,
    format_odds_cell,
    noise_schedule,
    odds_note,
    releases_of,
)
from leakscope.core.studies.training.in_order import (
    TEXT,
    TOKEN,
    change_of,
    changes_of,
    describe_at_chance,
    describe_goal,
    describe_order,
    group_by_order,
)
from leakscope.core.studies.training.privacy_paper import (
    ADAPTED,
    CONSTRAINED,
    NULL,
    OBJECTIVE_ORDER,
    describe_similar_adapted,
    describe_similar_constrained,
)


def constrained_markdown(rows: Sequence[Row]) -> str:
    """Format the study of networks under noise as Markdown, with the paper's Tables 4 and 5."""
    lines: list[str] = []
    table = ResultTable(rows)
    for (task,), found in table.measured.group_by("task").items():
        lines += [f"## {task}", "", _describe_sizes(found), ""]
        lines += [*markdown_table(_HEAD, _constrained_lines(task, found)), "", _BESIDE, ""]
        lines += _odds_lines(found)
        lines += [
            f"{READERS[reader].title}. {told}\n"
            for reader in found.distinct("reader")
            if (told := describe_similar_constrained(task, reader))
        ]
        lines += [*_text_above_token(found), ""]
    return "\n".join([*_failure_lines(table), *lines])


_RELEASED = "releases of a text"

_HEAD = (
    "network",
    "sends",
    "η",
    _RELEASED,
    ODDS.lower(),
    "accuracy [95 %]",
    "without noise",
    "change due to noise",
    "no constraint",
    "change from no constraint",
    "minutes",
    "Q21: η",
    "Q21",
)

_BESIDE = (
    "Without noise: the same network, trained on what users send, without noise. No constraint: "
    "the whole network, fine-tuned on the original texts; where users send word pieces, this is "
    "the same. On the vector of a whole text, only a small head is trained. The cost of freezing "
    "the encoder is part of the change from no constraint, but not of the change due to noise."
)


def _constrained_lines(task: str, rows: ResultTable) -> Iterator[tuple[object, ...]]:
    """Yield the table cells of each network, mechanism and η of a task."""
    settings = rows.group_by("reader", "defence", "eta", releases_of)
    for (reader, mechanism, eta, releases), same in settings.items():
        first = same[0]
        theirs = CONSTRAINED.get((task, reader, mechanism), {}).get(first["paper_eta"] or 0)
        if mechanism == "none":
            theirs = NULL.get((task, reader))
        is_null = mechanism == "none"
        yield (
            READERS[reader].title,
            DEFENCES[mechanism].title,
            "" if is_null else f"{eta:g}",
            releases or "",
            "" if is_null else format_odds_cell(_mechanism_spec(first), _encoder(first), releases),
            _mean(same, "accuracy").format(is_bold=True),
            *_reference_cells(same, "noiseless_accuracy", "change_by_noise"),
            *_reference_cells(same, "null_accuracy", "change"),
            f"{same.average('minutes'):.1f}",
            first["paper_eta"] or "",
            "" if theirs is None else f"{theirs:.1f}",
        )


def _mechanism_spec(row: Row) -> DefenceSpec:
    """Return the mechanism by which users send their texts, with its η."""
    return DefenceSpec.of(row["defence"], {"eta": row["eta"]} if row["defence"] != "none" else {})


def _encoder(row: Row) -> str:
    """Return the encoder of a row."""
    return str(row.get("encoder", ""))


def _odds_lines(rows: Sequence[Row]) -> list[str]:
    """Return the line that explains the column of odds; empty if there are none."""
    note = odds_note(
        [_mechanism_spec(row) for row in rows], _encoder(rows[0]), f"{COMPOSED} {_DRAWN}"
    )
    return [f"Odds: {note}", ""] if note else []


_DRAWN = (
    "A training text is released once if its noise was drawn once, and once per epoch if it was "
    "drawn again in each epoch. A test text is released once."
)


def _reference_cells(rows: ResultTable, accuracy: str, change: str) -> tuple[str, str]:
    """Return a reference network's accuracy and the change from it; "" if not measured."""
    if accuracy not in rows[0].scores:
        return "", ""
    return f"{_mean(rows, accuracy).value:.1f}", _mean(rows, change).format()


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
        level = {key: _mean(same, "accuracy") for key, same in at.items()}
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
    """Format the study of pretraining as Markdown, with Tables 6 and 7 and losses by tokens."""
    lines: list[str] = []
    table = ResultTable(rows)
    for (task, mechanism), found in table.measured.group_by("task", "defence").items():
        lines += [f"## {task}, {DEFENCES[mechanism].title.lower()}", "", _describe_sizes(found), ""]
        lines += [*markdown_table(_ADAPTED_HEAD, _adapted_lines(task, mechanism, found)), ""]
        lines += [_ONE_PRETRAINING, ""]
        lines += _odds_lines(found)
        lines += [f"{told}\n"] if (told := describe_similar_adapted(task, mechanism)) else []
        lines += [*_order_lines(found), "", *_masking_lines(found)]
    if table.measured:
        lines += ["## Loss on held-out texts by tokens seen", ""]
        head = ("sends", "η", "pretraining loss", "held-out loss by tokens seen")
        lines += [*markdown_table(head, _loss_rows(table.measured)), ""]
    return "\n".join([*_failure_lines(table), *lines])


_ADAPTED_HEAD = (
    "η",
    _RELEASED,
    ODDS.lower(),
    "pretraining loss",
    "accuracy [95 %]",
    "not pretrained",
    "without noise",
    "gain",
    "recovered, %",
    "tokens seen (with earlier η; distinct)",
    "share of the paper's",
    "minutes of pretraining",
    "Q21: η",
    "Q21: not pretrained",
    "Q21",
    "Q21: recovered, %",
)


_ONE_PRETRAINING = (
    "Each η and loss was pretrained once. Seeds vary the fine-tuning only, so no interval covers "
    "how another pretraining would differ."
)


def _adapted_lines(task: str, mechanism: str, rows: ResultTable) -> Iterator[tuple[object, ...]]:
    """Yield the table cells of each η and pretraining loss of a task."""
    settings = rows.group_by("eta", "objective", releases_of)
    for eta, objective, releases in sorted(settings, key=_sort_key):
        same = settings[eta, objective, releases]
        first = same[0]
        at = first["paper_eta"] or 0
        plain = CONSTRAINED.get((task, "transformer", mechanism), {}).get(at)
        theirs = ADAPTED.get((task, mechanism, objective), {}).get(at)
        yield (
            f"{eta:g}",
            releases,
            format_odds_cell(_mechanism_spec(first), _encoder(first), releases),
            OBJECTIVES[objective].title,
            _mean(same, "accuracy").format(is_bold=True),
            f"{_mean(same, 'constrained_accuracy').value:.1f}",
            f"{_mean(same, 'null_accuracy').value:.1f}",
            _mean(same, "gain").format(),
            _mean(same, "won_back").format(0),
            _format_tokens_seen(first),
            f"1 in {first['paper_tokens'] / first['all_tokens_seen']:,.0f}",
            f"{same.average('pretraining_minutes'):.1f}",
            at or "",
            *("" if each is None else f"{each:.1f}" for each in (plain, theirs)),
            _format_paper_share(NULL.get((task, "transformer")), plain, theirs),
        )


def _format_tokens_seen(row: Row) -> str:
    """Format the tokens seen at this η, with all earlier ones and the distinct ones."""
    all_seen, distinct = row["all_tokens_seen"], row["distinct_tokens_seen"]
    return f"{row['tokens_seen']:,} ({all_seen:,}; {distinct:,})"


def _format_paper_share(null: float | None, plain: float | None, adapted: float | None) -> str:
    """Format the share of lost accuracy that the paper's figures recover."""
    if null is None or plain is None or adapted is None:
        return ""
    return f"{100 * (adapted - plain) / (null - plain):.0f}"


def _order_lines(rows: ResultTable) -> Iterator[str]:
    """Yield per η how the losses compare, and whether denoising reaches its goal."""
    for (eta, _), found in rows.group_by("eta", noise_schedule).items():
        own = {name: same for (name,), same in found.group_by("objective").items()}
        said = describe_order(
            {name: _mean(same, "accuracy") for name, same in own.items()},
            {name: changes_of(same) for name, same in own.items()},
        )
        if said:
            yield f"- η {eta:g}: {said}."
        share = _mean(own["denoising"], "won_back") if "denoising" in own else Score(math.nan)
        if not math.isnan(share.value):
            title = OBJECTIVES["denoising"].title
            yield f"- η {eta:g}: {title} recovers {share.format(0)} %; {describe_goal(share)}."


def _masking_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the shares of predicted positions that are masked, replaced or left as they are."""
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


def _sort_key(key: tuple[Any, ...]) -> tuple[float, int, int]:
    """Return the sort key of a row group: descending η, then loss, then releases."""
    eta, objective, releases = key
    return -eta, OBJECTIVE_ORDER.index(objective), releases


def _loss_rows(rows: ResultTable) -> Iterator[tuple[object, ...]]:
    """Yield the table cells of the held-out loss by tokens seen."""
    settings = rows.group_by("defence", "eta", "objective")
    for (mechanism, eta, objective), same in settings.items():
        told = ", ".join(f"{tokens:,}: {loss:.2f}" for tokens, loss in same[0]["loss_by_tokens"])
        yield DEFENCES[mechanism].title, f"{eta:g}", OBJECTIVES[objective].title, told


_IN_ARM = {"once": "noise drawn once", "every_epoch": "noise drawn in every epoch"}


def _mean(rows: ResultTable, measure: str) -> Score:
    """Return the mean over seeds, which share their test texts."""
    return rows.mean(measure, is_same_sample=True)


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
    """Return a line per failed cell."""
    return [
        f"- Not measured: {row['task']}, {row['defence']}, {row['defence_settings']}, seed "
        f"{row['seed']}: {row.error}"
        for row in rows.failed
    ]
