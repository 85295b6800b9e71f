"""Networks under noise as Markdown tables, beside those of Qu et al. (2021, Tables 4 to 7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from core.defences.registry import DEFENCES
from core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from core.results import Score
from core.specs import DefenceSpec
from core.studies.in_order import (
    TEXT,
    TOKEN,
    by_order,
    change_of,
    changes_of,
    goal_said,
    nothing_learnt,
    order_said,
)
from core.studies.odds import COMPOSED, ODDS, arm_of, kept_odds, odds_note, releases_of
from core.studies.privacy_paper import (
    ADAPTED,
    CONSTRAINED,
    NULL,
    OBJECTIVE_ORDER,
    adapted_alike,
    constrained_alike,
)
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import markdown_table

__all__ = ["adaptive_markdown", "constrained_markdown"]


def constrained_markdown(rows: Sequence[Row]) -> str:
    """Return Tables 4 and 5 of the paper, measured here, with the paper's figures beside."""
    lines: list[str] = []
    for (task,), found in _by(rows, "task"):
        lines += [f"## {task}", "", _sizes(found), ""]
        lines += [*markdown_table(_HEAD, _constrained_lines(task, found)), "", _BESIDE, ""]
        lines += _odds(found)
        lines += [f"{READERS[reader].title}. {told}\n" for (reader,), _ in _by(found, "reader")
                  if (told := constrained_alike(task, reader))]  # fmt: skip
        lines += [*_text_above_token(found), ""]
    return "\n".join([*_failed(rows), *lines])


_RELEASED, _ARM = "releases of a text", "arm"
"""What `_by` works out of a row instead of looking it up."""

_HEAD = ("network", "sends", "η", _RELEASED, ODDS.lower(), "accuracy [95 %]", "without noise",
         "change by noise", "null privacy", "change from null", "minutes", "Q21: η",
         "Q21")  # fmt: skip

_BESIDE = (
    "Without noise: the same network, trained on what users send with no noise on it. Null "
    "privacy: the network fine-tuned as a whole on texts as they are, which is the same where "
    "users send word pieces. Of a vector of a whole text only a small head is trained: what "
    "freezing the encoder costs is in the change from null privacy, and not in that by noise."
)


def _constrained_lines(task: str, rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for (reader, mechanism, eta, releases), same in _by(
        rows, "reader", "defence", "eta", _RELEASED
    ):
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
            "" if is_null else kept_odds(_sent(first), _encoder(first), releases),
            _mean(same, "accuracy").said(is_bold=True),
            *_beside(same, "noiseless_accuracy", "change_by_noise"),
            *_beside(same, "null_accuracy", "change"),
            _minutes(same, "minutes"),
            first["paper_eta"] or "",
            "" if theirs is None else f"{theirs:.1f}",
        )


def _sent(row: Row) -> DefenceSpec:
    """Return what users send their texts by."""
    return DefenceSpec.of(row["defence"], {"eta": row["eta"]} if row["defence"] != "none" else {})


def _encoder(row: Row) -> str:
    return str(row.get("encoder", ""))


def _odds(rows: Sequence[Row]) -> list[str]:
    """Return what the odds beside η are of; nothing where they are not known."""
    note = odds_note([_sent(row) for row in rows], _encoder(rows[0]), f"{COMPOSED} {_DRAWN}")
    return [f"Odds: {note}", ""] if note else []


_DRAWN = (
    "A training text is released once where its noise was drawn once, and once per epoch where it "
    "was drawn afresh; a test text is released once."
)


def _beside(rows: Sequence[Row], accuracy: str, change: str) -> tuple[str, str]:
    """Return another network's accuracy, and the change from it; nothing where it was not held."""
    if accuracy not in rows[0].scores:
        return "", ""
    return f"{_mean(rows, accuracy).value:.1f}", _mean(rows, change).said()


def _text_above_token(rows: Sequence[Row]) -> list[str]:
    """Return at how many η text to text is above token representation, by network."""
    said = []
    noisy = [row for row in rows if row["defence"] != "none"]
    for (reader, arm), found in _by(noisy, "reader", _ARM):
        null_rows = [row for row in rows if (row["reader"], row["defence"]) == (reader, "none")]
        at = dict(_by([*null_rows, *found], "defence", "eta"))
        changes = {eta: change_of(at[TEXT, eta], TOKEN) for _, eta in at
                   if (TEXT, eta) in at and (TOKEN, eta) in at}  # fmt: skip
        level = {key: _mean(same, "accuracy") for key, same in at.items()}
        rest = by_order({eta: (level[TEXT, eta], level[TOKEN, eta], change)
                         for eta, change in changes.items()})  # fmt: skip
        above = rest.pop("above")
        if changes:
            missed = "".join(f"; {how} at η {', '.join(f'{eta:g}' for eta in etas)}"
                             for how, etas in rest.items() if etas)  # fmt: skip
            points = ", ".join(f"{change.said()} at η {eta:g}" for eta, change in changes.items()
                               if change is not None)  # fmt: skip
            paired = f" Points on the same texts: {points}." if points else ""
            null = level.get(("none", None))
            guesses = f" {told}" if null and (told := nothing_learnt(null)) else ""
            said.append(
                f"- {READERS[reader].title}, {_IN_ARM[arm]}: text to text is significantly above "
                f"token representation at {len(above)} of {len(changes)} η{missed}.{paired}"
                f"{guesses}"
            )
    return said


def adaptive_markdown(rows: Sequence[Row]) -> str:
    """Return Tables 6 and 7 of the paper, measured here, and the loss by tokens seen."""
    lines: list[str] = []
    for (task, mechanism), found in _by(rows, "task", "defence"):
        lines += [f"## {task}, {DEFENCES[mechanism].title.lower()}", "", _sizes(found), ""]
        lines += [*markdown_table(_ADAPTED_HEAD, _adapted_lines(task, mechanism, found)), ""]
        lines += [_ONE_PRETRAINING, ""]
        lines += _odds(found)
        lines += [f"{told}\n"] if (told := adapted_alike(task, mechanism)) else []
        lines += [*_order(found), "", *_kept(found)]
    if not all(row.error for row in rows):
        lines += ["## Loss on held-out texts by tokens seen", ""]
        lines += [*markdown_table(("sends", "η", "loss of", "loss at tokens"), _losses(rows)), ""]
    return "\n".join([*_failed(rows), *lines])


_ADAPTED_HEAD = ("η", _RELEASED, ODDS.lower(), "pretrained by", "accuracy [95 %]",
                 "as it comes", "without noise", "gain", "won back, %",
                 "tokens seen (with neighbours; distinct)", "of the paper's",
                 "minutes of pretraining", "Q21: η", "Q21: as it comes", "Q21",
                 "Q21: won back, %")  # fmt: skip


_ONE_PRETRAINING = (
    "Each η and loss was pretrained once: seeds are of fine-tuning, and no interval tells how "
    "another pretraining would differ."
)


def _adapted_lines(task: str, mechanism: str, rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for (eta, objective, releases), same in _by(rows, "eta", "objective", _RELEASED, by=_strength):
        first = same[0]
        at = first["paper_eta"] or 0
        plain = CONSTRAINED.get((task, "transformer", mechanism), {}).get(at)
        theirs = ADAPTED.get((task, mechanism, objective), {}).get(at)
        yield (
            f"{eta:g}",
            releases,
            kept_odds(_sent(first), _encoder(first), releases),
            OBJECTIVES[objective].title,
            _mean(same, "accuracy").said(is_bold=True),
            f"{_mean(same, 'constrained_accuracy').value:.1f}",
            f"{_mean(same, 'null_accuracy').value:.1f}",
            _mean(same, "gain").said(),
            _mean(same, "won_back").said(0),
            _seen(first),
            f"1 in {first['paper_tokens'] / first['all_tokens_seen']:,.0f}",
            _minutes(same, "pretraining_minutes"),
            at or "",
            *("" if each is None else f"{each:.1f}" for each in (plain, theirs)),
            _won_there(NULL.get((task, "transformer")), plain, theirs),
        )


def _seen(row: Row) -> str:
    """Return the tokens seen at this η; with its neighbours' and, of these, distinct ones."""
    distinct = row.facts.get("distinct_tokens_seen")  # rows of former versions do not tell it
    told = "" if distinct is None else f"; {distinct:,}"
    return f"{row['tokens_seen']:,} ({row['all_tokens_seen']:,}{told})"


def _won_there(null: float | None, plain: float | None, adapted: float | None) -> str:
    """Return the share that the paper's own figures win back."""
    if null is None or plain is None or adapted is None:
        return ""
    return f"{100 * (adapted - plain) / (null - plain):.0f}"


def _order(rows: Sequence[Row]) -> Iterator[str]:
    """Yield at each η how the losses stand to each other, and whether denoising meets its goal."""
    for eta, found in ((key[0], own) for key, own in _by(rows, "eta", _ARM)):
        own = {name: same for (name,), same in _by(found, "objective")}
        said = order_said(
            {name: _mean(same, "accuracy") for name, same in own.items()},
            {name: changes_of(same) for name, same in own.items()},
        )
        if said:
            yield f"- η {eta:g}: {said}."
        share = _mean(own["denoising"], "won_back") if "denoising" in own else Score(math.nan)
        if not math.isnan(share.value):
            title = OBJECTIVES["denoising"].title
            yield f"- η {eta:g}: {title} wins back {share.said(0)} %: {goal_said(share)}."


def _kept(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many predicted positions show what stands there: the losses differ in them."""
    chosen = rows[0].get("objective_settings", {})
    if "masked" in chosen and "replaced" in chosen:
        kept = 100 * (1 - chosen["masked"] - chosen["replaced"])
        yield (
            f"Of the positions that are predicted {100 * chosen['masked']:.0f} % are hidden, "
            f"{100 * chosen['replaced']:.0f} % exchanged, and {kept:.0f} % show the token under "
            "noise. Vanilla has to predict that very token there, which is a copy; denoising the "
            "one before the noise. The paper does not say its shares."
        )
        yield ""


def _strength(key: tuple[Any, ...]) -> tuple[float, int, int]:
    eta, objective, releases = key
    return -eta, OBJECTIVE_ORDER.index(objective), releases


def _losses(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for (mechanism, eta, objective), same in _by(rows, "defence", "eta", "objective"):
        told = ", ".join(f"{tokens:,}: {loss:.2f}" for tokens, loss in same[0]["loss_by_tokens"])
        yield DEFENCES[mechanism].title, f"{eta:g}", OBJECTIVES[objective].title, told


def _by(
    rows: Iterable[Row], *names: str, by: Callable[[tuple[Any, ...]], Any] | None = None
) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Return rows that could be measured by what they have in common, in their order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if not row.error:
            key = tuple(_OF_ROW[name](row) if name in _OF_ROW else row[name] for name in names)
            found.setdefault(key, []).append(row)
    return sorted(found.items(), key=lambda each: by(each[0])) if by else list(found.items())


_OF_ROW: Mapping[str, Callable[[Row], Any]] = {
    _RELEASED: releases_of,
    _ARM: arm_of,
}
_IN_ARM = {"once": "noise drawn once", "every_epoch": "noise drawn afresh"}


def _mean(rows: Sequence[Row], measure: str) -> Score:
    """Return the mean over seeds, which have the same test texts."""
    return mean_row_score(rows, measure, is_same_sample=True)


def _minutes(rows: Sequence[Row], name: str) -> str:
    return f"{sum(float(row[name]) for row in rows) / len(rows):.1f}"


def _sizes(rows: Sequence[Row]) -> str:
    sizes = [f"{row['n_train']:,} training texts and {row['n']:,} test texts" for row in rows]
    seeds = len({row["seed"] for row in rows})
    return (
        f"Trained and tested under noise: {sizes[0]}, {seeds} "
        f"seed{'s' * (seeds > 1)}; predicting the majority class reaches "
        f"{rows[0].scores['accuracy'].chance:.1f}. The 95 % intervals account for the test texts "
        "and, with several seeds, for the seeds."
    )


def _failed(rows: Sequence[Row]) -> list[str]:
    return [
        f"- Not measured: {row['task']}, {row['defence']}, {row['defence_settings']}, seed "
        f"{row['seed']}: {row.error}"
        for row in failures(rows)
    ]
