"""Trained against an adversary: what it reads in training, and what fresh attackers read after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.figures.representations import encoder_title
from core.figures.training import setting_said, trap_figure
from core.results import Score
from core.spreadsheets import table_csv
from core.studies.adversarial_tables import AFFORDABLE, Setting, Verdict, change_said
from core.studies.training_points import Adversarial, Trap
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.story.pinning import note_figure
from dashboard.training.missing import QUESTION
from dashboard.training.state import offer

__all__ = ["show"]

_HIDES = {"words": "The words", "attribute": "An attribute"}
_UNIT = {"words": "an F1 of {}", "attribute": "{} % right"}
_READ = {"words": "read words with an F1 of {}", "attribute": "was right about {} %"}
_READS = {"words": "reads words with an F1 of {}", "attribute": "is right about {} %"}


def show(slot: Any, found: Adversarial) -> None:
    """Draw the part: its finding in the slot, the picture of the trap, and its numbers."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        encoder = offer(
            "encoder", "Encoder", found.encoders, encoder_title,
            "Whose vectors are to hide something. The dual encoders are trained against the "
            "adversary from the first step; of another encoder a small network changes the vectors",
        )  # fmt: skip
        hides = offer(
            "hides", "What is hidden", found.hidden_of(encoder), _HIDES.__getitem__,
            f"The words of a text, or its {found.label}",
        )  # fmt: skip
    settings, trap = found.of(encoder, hides), found.trap(encoder, hides)
    _finding(slot, found, trap, settings)
    _goal(slot, found.verdict(encoder, hides))
    note_figure(slot, lambda: trap_figure(settings, found.families), _TRAP_ALT)
    _picture(found, settings)
    _tables(found, settings)
    if len(found.verdicts) > 1:
        st.header("Was half of it hidden at a cost of two points?", anchor=False)
        _all(found)


def _finding(slot: Any, found: Adversarial, trap: Trap | None, settings: Sequence[Setting]) -> None:
    if trap is None:
        slot.title(QUESTION, anchor=False)
        return
    hides, promised, read = trap.setting.hides, trap.promised, trap.read
    sprung = (
        f"In training words were read with a score of {promised.value:.0f} of 100; a fresh "
        f"attacker reads them with {read.value:.0f}"
        if hides == "words"
        else f"In training the {plain(found.label)} looked hidden ({promised.value:.0f} % right); "
        f"a fresh attacker is right about {read.value:.0f} %"
    )
    slot.title(
        sprung
        if trap.is_sprung
        else "Pressure did not surely take more from the adversary in training than from fresh "
        "attackers",
        anchor=False,
    )  # fmt: skip
    name, _ = trap.setting.strongest
    told = (
        f"With {trap.setting.said}, under which least was read in training, the adversary that was "
        f"trained along with {encoder_title(trap.setting.encoder)} "
        f"{_READ[hides].format(promised.said(is_bold=True))} on texts held out, after the last of "
        f"{len(trap.setting.during)} epochs: that is what an evaluation in training promises. "
        "Of the same vectors a fresh attacker "
        f"({plain(found.families.get(name, name))}, the strongest of {len(trap.setting.after)}), "
        f"trained afterwards, {_READS[hides].format(read.said(is_bold=True))}. Guessing reaches "
        f"{promised.chance:.1f} there and {read.chance:.1f} here."
    )
    slot.markdown(f"{told}{_twin(trap)}{_beside(settings, hides)}")
    n, basis = read.n_seeds, found.bases[trap.setting.encoder, hides]
    slot.caption(
        f"95 % intervals in brackets, in training by text alone; {n} seed{'s' * (n != 1)}. "
        f"Defences were trained on at most {basis.n_defence:,} texts of {basis.n_labels} labels, "
        f"attackers on {basis.n_known:,} others; {basis.n_targets:,} that neither saw are under "
        "attack."
    )


def _said(hides: str, score: Score) -> str:
    return _UNIT[hides].format(score.said(is_bold=True))


def _twin(trap: Trap) -> str:
    """Return what is read where the same training presses on nothing, as a sentence."""
    twin = trap.control
    if twin is None:
        return ""
    hides = twin.hides
    return (
        f" The same training without pressure (λ = 0): {_said(hides, twin.during[-1])} in "
        f"training, {_said(hides, twin.strongest[1])} to a fresh attacker."
    )


def _beside(settings: Sequence[Setting], hides: str) -> str:
    """Return what is read without a defence and behind LEACE, as further sentences."""
    by = {setting.kind: setting for setting in settings if setting.after}
    told = ""
    if "none" in by and not by["none"].during:  # else that is the twin, which was told
        told += f" Without a defence it is {_said(hides, by['none'].strongest[1])}."
    if "leace" in by:
        linear = by["leace"].after.get("linear")
        at_linear = f" and {linear.said()} to a linear one" if linear is not None else ""
        told += (
            " LEACE, which takes off in closed form what a linear classifier could read, leaves "
            f"{_said(hides, by['leace'].strongest[1])} to the strongest{at_linear}."
        )
    return told


def _goal(slot: Any, verdict: Verdict | None) -> None:
    """Draw whether the goal was met, and by which setting, or what the best did."""
    if verdict is None:
        return
    slot.markdown(f"**The goal**, half as much read for {AFFORDABLE:g} points of usefulness at "
                  f"most: {_verdict_said(verdict)}")  # fmt: skip


def _verdict_said(verdict: Verdict) -> str:
    if verdict.met is not None:
        return f"**met**. {_costs(verdict.met)}.{_idle(verdict)}"
    told = "**no setting surely did it**."
    if verdict.unclear is not None:
        told += f" Not told apart from that: {_costs(verdict.unclear)}."
    if verdict.best is not None and verdict.best is not verdict.unclear:
        told += f" The best at that price: {_costs(verdict.best)}."
    elif verdict.best is None:
        told += " None surely kept that price."
    if verdict.least is not None and verdict.least not in (verdict.best, verdict.unclear):
        told += f" At any price: {_costs(verdict.least)}."
    return told + _idle(verdict)


def _idle(verdict: Verdict) -> str:
    """Return on which tasks there was little to lose, as a further sentence."""
    if not verdict.idle:
        return ""
    return (
        f" Of the {len(verdict.plain.margins)} tasks in that mean some had hardly anything to "
        f"lose, in points above guessing without a defence: {plain(verdict.idle_said)}."
    )


def _costs(setting: Setting) -> str:
    read = _UNIT[setting.hides].format(setting.strongest[1].said())
    return (
        f"{setting_said(setting)} leaves {read} to the strongest and changes usefulness by "
        f"{plain(change_said(setting))}"
    )


_TRAP_ALT = (
    "Left, what the adversary in training reads after each epoch, a line for each λ; right, what "
    "fresh attackers read afterwards, for each λ"
)


def _picture(found: Adversarial, settings: Sequence[Setting]) -> None:
    st.plotly_chart(
        trap_figure(settings, found.families),
        key="training-trap",
        config=chart_config("leakscope-adversary"),
        alt=f"{_TRAP_ALT}; the tables below hold the same numbers",
    )
    words = (
        " In training the F1 is of the words that the adversary knows, afterwards of those that "
        "all fresh attackers know: guessing tells how they compare."
        if settings and settings[0].hides == "words"
        else ""
    )
    control = (
        " With λ = 0 the adversary reads along, and nothing is hidden from it."
        if any(setting.during and not setting.weight for setting in settings)
        else ""
    )
    st.caption(
        "Green ring: what the last epoch of training promised. Filled: what the strongest fresh "
        f"attacker reads, with its interval. The bar between is the trap. Dotted: guessing."
        f"{control}{words}"
    )


def _tables(found: Adversarial, settings: Sequence[Setting]) -> None:
    rows = [_row(found, setting) for setting in settings]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-settings", hide_index=True)
        save_csv(lambda: table_csv(rows), "adversary", about="A row for each setting")
        epochs = _by_epoch(settings)
        if epochs:
            st.markdown("**In training, by epoch**")
            st.dataframe(epochs, key="training-epochs", hide_index=True)
            save_csv(lambda: table_csv(epochs), "adversary-epochs", about="A row for each epoch")


def _row(found: Adversarial, setting: Setting) -> dict[str, Any]:
    row: dict[str, Any] = {"defence": setting_said(setting)}
    if setting.stopped:
        return {**row, "in training": "ran away and was stopped"}
    last = setting.during[-1] if setting.during else None
    row["in training"] = "–" if last is None else last.said()
    row["guessing in training"] = "–" if last is None else f"{last.chance:.1f}"
    for name, family in found.families.items():
        if name in setting.after:
            row[f"fresh: {family}"] = setting.after[name].said()
    for name, score in setting.after_top5.items():
        row[f"fresh: {found.families.get(name, name)}, in the first five"] = score.said()
    if setting.after:
        row["guessing afterwards"] = f"{setting.strongest[1].chance:.1f}"
    for task, change in setting.changes.items():
        row[f"{'usefulness' if task == 'mean' else task}, points"] = change.said()
    row["minutes of training"] = f"{setting.minutes:.2f}"
    return row


def _by_epoch(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    trained = [setting for setting in settings if setting.during]
    n = max((len(setting.during) for setting in trained), default=0)
    return [
        {
            "epoch": i + 1,
            **{setting_said(s): s.during[i].said() for s in trained if i < len(s.during)},
        }
        for i in range(n)
    ]


def _all(found: Adversarial) -> None:
    """Draw the verdict on each encoder and what is hidden."""
    rows = [
        {
            "encoder": encoder_title(verdict.plain.encoder),
            "hidden": verdict.plain.hides,
            "read without": verdict.plain.strongest[1].said(),
            "goal": _goal_said(verdict),
            "by, or the best at that price": _best_said(
                verdict.met or verdict.unclear or verdict.best
            ),
        }
        for verdict in found.verdicts
    ]
    st.dataframe(rows, key="training-verdicts", hide_index=True)
    save_csv(lambda: table_csv(rows), "adversary-goal", about="A row for each encoder")
    st.caption(
        "Read: by the strongest fresh attacker, F1 of words or per cent right. The price: the "
        "accuracy of logistic regression, mean over the tasks. Met counts by the ends of the "
        "intervals that are against it."
    )


def _goal_said(verdict: Verdict) -> str:
    if verdict.met is not None:
        return "met"
    return "not met" if verdict.unclear is None else "unclear"


def _best_said(setting: Setting | None) -> str:
    if setting is None:
        return "none surely kept that price"
    return f"{setting_said(setting)}: {setting.strongest[1].said()}, at {change_said(setting)}"
