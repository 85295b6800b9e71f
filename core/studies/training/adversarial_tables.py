"""Markdown tables and verdicts of the adversarial training study."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.metrics import mean_over_seeds
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.tradeoff.summary import change_measure
from leakscope.core.studies.tradeoff.tables import format_score

AFFORDABLE = 2.0
"""The most points of mean utility that a defence may cost."""

_ACCURACY = "accuracy: "
_CHANGE = change_measure("", "accuracy")
_MEAN = change_measure("mean", "accuracy")
_READ = {"words": "F1 of words", "attribute": "attribute inferred correctly, %"}


@dataclass(frozen=True)
class Setting:
    """The results of an encoder behind a defence at one λ, over all seeds.

    Attributes
    ----------
    during : tuple of Score
        The adversary's score on held-out texts after each epoch of training.
    after : dict
        Fresh attacker to its score.
    after_top5 : dict
        For an attribute: fresh attacker to how often the right label is among its first five.
    changes : dict
        Task, or `mean`, to by how many points its accuracy differs from that without a defence.
    margins : dict
        Task to by how many points its accuracy is above guessing the most frequent class.
    """

    encoder: str
    hides: str
    kind: str
    weight: float
    during: tuple[Score, ...]
    after: dict[str, Score]
    changes: dict[str, Score]
    minutes: float
    stopped: str = ""
    after_top5: dict[str, Score] = field(default_factory=dict)
    margins: dict[str, Score] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The defence in a few characters, such as `λ_w 0.3`."""
        names = {"none": "none", "leace": "LEACE"}
        return names.get(self.kind, f"{self.symbol} {self.weight:g}")

    @property
    def symbol(self) -> str:
        """The symbol of the weight on hiding: `λ_w` for words, `λ_s` for an attribute."""
        return "λ_w" if self.hides == "words" else "λ_s"

    @property
    def is_control(self) -> bool:
        """Whether this is a defence's training with λ = 0, the control."""
        return self.kind == "adversarial" and self.weight == 0.0

    @property
    def strongest(self) -> tuple[str, Score]:
        """The fresh attacker with the highest score, and its score."""
        return max(self.after.items(), key=lambda item: item[1].value)

    @property
    def costly_tasks(self) -> dict[str, Score]:
        """The tasks that significantly lose more than AFFORDABLE points, with their changes."""
        return {
            task: change
            for task, change in self.changes.items()
            if task != "mean" and change.ci95.high < -AFFORDABLE
        }


def settings_from_rows(rows: Sequence[Row]) -> list[Setting]:
    """Average the rows over seeds to one `Setting` per encoder, hidden target and defence."""
    grouped = ResultTable(rows).measured.group_by("encoder", "hides", "defence_kind", "weight")
    return [_average_setting(key, own) for key, own in grouped.items()]


def _average_setting(key: tuple[str, str, str, float], rows: ResultTable) -> Setting:
    """Average the rows of one setting over seeds to a `Setting`."""
    by_epoch = rows.where(when="during").group_by("epoch")
    after = {name: own for (name,), own in rows.where(when="after").group_by("attacker").items()}
    use, stopped = rows.where(when="use"), rows.where(when="stopped")
    measures = [name for name in (use[0].scores if use else {}) if name.startswith(_CHANGE)]
    accuracies = [name for name in (use[0].scores if use else {}) if name.startswith(_ACCURACY)]
    # All seeds draw targets from the same documents: more seeds do not narrow the interval.
    is_grouped = any(row.get("group") for row in rows)
    # Tasks with an official split are tested on the same texts under every seed.
    changes = {name.removeprefix(_CHANGE): use.mean(name, is_same_sample=True) for name in measures}
    return Setting(
        *key,
        margins={
            name.removeprefix(_ACCURACY): _mean_above_chance(use, name) for name in accuracies
        },
        during=tuple(by_epoch[epoch].mean("read") for epoch in sorted(by_epoch)),
        after={name: own.mean("read", is_same_sample=is_grouped) for name, own in after.items()},
        changes=changes,
        minutes=use.average("training_minutes") if use else float("nan"),
        stopped=str(stopped[0]["stopped"]) if stopped else "",
        after_top5={
            name: own.mean("read_top5", is_same_sample=is_grouped)
            for name, own in after.items()
            if "read_top5" in own[0].scores
        },
    )


def _mean_above_chance(rows: Sequence[Row], measure: str) -> Score:
    """Average an accuracy minus its chance level over the seeds of rows."""
    above = []
    for score in (row.scores[measure] for row in rows):
        ends = Interval(score.ci95.low - score.chance, score.ci95.high - score.chance)
        above.append(Score(score.value - score.chance, ends, score.n, 0.0))
    return mean_over_seeds(above, is_same_sample=True)


@dataclass(frozen=True)
class Verdict:
    """Whether a defence halves an encoder's leakage at an affordable cost.

    Attributes
    ----------
    plain : Setting
        Without a defence.
    met : Setting or None
        The cheapest that significantly halves the leakage for at most AFFORDABLE points: the upper
        ends of all fresh attackers' scores are at most half of the greatest lower end without a
        defence, and the lower end of the change in utility is within those points.
    best : Setting or None
        The one with the least leakage of those that are significantly within that cost.
    least : Setting or None
        The one with the least leakage at any cost.
    unclear : Setting or None
        If none significantly meets the goal: the one with the least leakage of those that may, by
        the other ends of the same intervals.
    """

    plain: Setting
    met: Setting | None
    best: Setting | None
    least: Setting | None
    unclear: Setting | None = None

    @property
    def idle(self) -> dict[str, Score]:
        """The tasks whose accuracy is at most AFFORDABLE points above chance, with that margin."""
        known = self.plain.margins.items()
        return {task: margin for task, margin in known if margin.value <= AFFORDABLE}

    def __str__(self) -> str:
        """Return the verdict in a few sentences, with the encoder and the undefended leakage."""
        name = ENCODERS[self.plain.encoder.partition(":")[0]]
        attacker, read = self.plain.strongest
        return (
            f"{name.label or name.title}, {self.plain.hides}: without a defence, the strongest "
            f"fresh attacker ({attacker}) reaches {describe_score(self.plain.hides, read)}. "
            f"{self.outcome}"
        )

    @property
    def outcome(self) -> str:
        """Sentences on whether a setting met the goal, and on the nearest settings."""
        if self.met is not None:
            sentences = [f"{self.met.label} meets the goal: {_describe_cost(self.met)}."]
        else:
            sentences = ["No setting was shown to meet the goal."]
            sentences += [
                f"For no setting can a loss of more than {AFFORDABLE:g} points of utility be ruled "
                "out."
            ] * (self.best is None)
            named = {
                "may meet the goal, as its intervals do not exclude it": self.unclear,
                "leaks least of the settings shown to cost at most "
                f"{AFFORDABLE:g} points": self.best,
                "leaks least, cost aside": self.least,
            }
            described: list[Setting] = []
            for verb, setting in named.items():
                if setting is not None and setting not in described:
                    described.append(setting)
                    sentences.append(f"{setting.label} {verb}: {_describe_cost(setting)}.")
        if self.idle:
            margins = ", ".join(f"{task} {margin.in_text()}" for task, margin in self.idle.items())
            sentences.append(
                "Some tasks have almost no advantage over guessing to lose (in points, without a "
                f"defence): {margins}."
            )
        return " ".join(sentences)


def describe_score(hides: str, score: Score, *, is_bold: bool = False) -> str:
    """Describe a score of an attacker on words or on an attribute, with its interval."""
    if hides == "words":
        return f"an F1 of {score.in_text(is_bold=is_bold)}"
    (value, interval), mark = score.parts(), "**" if is_bold else ""
    return f"{mark}{value} %{mark} correct (95 % CI {interval})"


def _describe_cost(setting: Setting) -> str:
    """Describe the leakage and the change of utility at a setting."""
    return (
        f"the strongest attacker reaches {describe_score(setting.hides, setting.strongest[1])}, "
        f"and utility changes by {_format_change(setting)}"
    )


def _format_change(setting: Setting) -> str:
    """Format the mean change of utility, with the tasks that significantly lose more."""
    value, interval = setting.changes["mean"].parts()
    told = f"{value} points (95 % CI {interval})"
    costly_tasks = ", ".join(
        f"{task} by {change.in_text()}" for task, change in setting.costly_tasks.items()
    )
    return f"{told} on average over the tasks, {costly_tasks}" if costly_tasks else told


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Summarise rows to a verdict per encoder and hidden target, where all of it was measured."""
    return list(_verdicts(settings_from_rows(rows)))


def _verdicts(settings: Sequence[Setting]) -> Iterator[Verdict]:
    """Yield a verdict for each undefended setting with measured defences."""
    whole = [s for s in settings if s.after and "mean" in s.changes and not s.stopped]
    for plain in whole:
        if plain.kind != "none":
            continue
        own = [
            s
            for s in whole
            if (s.encoder, s.hides) == (plain.encoder, plain.hides)
            and s.kind != "none"
            and not s.is_control
        ]
        if not own:
            continue
        affordable = [s for s in own if s.changes["mean"].ci95.low >= -AFFORDABLE]
        met = [s for s in affordable if _is_halved(plain, s)]
        unclear = [s for s in own if not met and not _is_missed(plain, s)]
        yield Verdict(
            plain,
            max(met, key=lambda s: s.changes["mean"].value, default=None),
            min(affordable, key=lambda s: s.strongest[1].value, default=None),
            min(own, key=lambda s: s.strongest[1].value),
            min(unclear, key=lambda s: s.strongest[1].value, default=None),
        )


def _is_halved(plain: Setting, other: Setting) -> bool:
    """Return whether every attacker's upper end is at most half the undefended lower end."""
    before = max(score.ci95.low for score in plain.after.values())
    return all(score.ci95.high <= before / 2 for score in other.after.values())


def _is_missed(plain: Setting, other: Setting) -> bool:
    """Return whether the goal is significantly missed, by leakage or by cost."""
    before = max(score.ci95.high for score in plain.after.values())
    is_read = any(score.ci95.low > before / 2 for score in other.after.values())
    return is_read or other.changes["mean"].ci95.high < -AFFORDABLE


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: leakage and cost by setting, verdicts, epochs."""
    settings = settings_from_rows(rows)
    parts = ["# Adversarial training\n", _introduction(rows)]
    for hides in dict.fromkeys(s.hides for s in settings):
        own = [s for s in settings if s.hides == hides]
        parts += [
            f"## {hides.capitalize()}: {_READ[hides]}\n",
            _settings_table(own),
            _epoch_table(own),
        ]
    told = verdicts(rows)
    if told:
        parts += [
            "## Goal: halve the leakage for at most two points of utility\n",
            *(f"- {verdict}" for verdict in told),
            "",
        ]
    for row in ResultTable(rows).failed:
        parts.append(f"- {row['encoder']}, {row['hides']}, seed {row['seed']} failed: {row.error}")
    return "\n".join(parts).rstrip() + "\n"


def _introduction(rows: Sequence[Row]) -> str:
    """Format the paragraph above the tables: sizes, measures and seeds."""
    if not rows:
        return ""
    first = rows[0]
    seeds = ", ".join(map(str, sorted(ResultTable(rows).distinct("seed"))))
    return (
        f"Defences are trained on {first['n_defence']:,} texts with {first['n_labels']} labels. "
        f"Fresh attackers are trained afterwards on {first['n_known']:,} other texts. The "
        f"{first['n_targets']:,} texts under attack were seen by neither. In training: the "
        "adversary's score on held-out texts after the last epoch. Utility: accuracy of logistic "
        "regression, in points of change from the same encoder without a defence. Only words that "
        f"all fresh attackers know are scored. Means over seeds {seeds}, with 95 % intervals.\n"
    )


def _settings_table(settings: Sequence[Setting]) -> str:
    """Return the Markdown table of settings: leakage in and after training, utility, minutes."""
    attackers = dict.fromkeys(name for s in settings for name in s.after)
    first_five = dict.fromkeys(name for s in settings for name in s.after_top5)
    tasks = dict.fromkeys(name for s in settings for name in s.changes)
    columns = [
        "encoder",
        "defence",
        "in training",
        "guessing",
        *(f"fresh: {name}" for name in attackers),
        "guessing",
        *(f"in the first five: {name}" for name in first_five),
        *(f"{task}, points" for task in tasks),
        "minutes",
    ]
    lines: list[list[str]] = []
    for s in settings:
        if s.stopped:
            lines.append([s.encoder, s.label, f"stopped: {s.stopped}"])
            continue
        last, one = (s.during or (None,))[-1], next(iter(s.after.values()), Score(math.nan))
        known = ((attackers, s.after), (first_five, s.after_top5), (tasks, s.changes))
        fresh, five, changes = ([format_score(own.get(n)) for n in ns] for ns, own in known)
        in_training = [format_score(last), "" if last is None else f"{last.chance:.1f}"]
        guessing, minutes = f"{one.chance:.1f}", f"{s.minutes:.2f}"
        lines.append([s.encoder, s.label, *in_training, *fresh, guessing, *five, *changes, minutes])
    return "\n".join(markdown_table(columns, lines)) + "\n"


def _epoch_table(settings: Sequence[Setting]) -> str:
    """Return the Markdown table of the adversary's score by epoch; "" if none was trained."""
    trained = [s for s in settings if s.during]
    if not trained:
        return ""
    n = max(len(s.during) for s in trained)
    columns = ["encoder", "defence", *(f"epoch {i + 1}" for i in range(n))]
    lines = [[s.encoder, s.label, *(f"{score.value:.1f}" for score in s.during)] for s in trained]
    return "In training, by epoch:\n\n" + "\n".join(markdown_table(columns, lines)) + "\n"
