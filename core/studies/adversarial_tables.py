"""Adversarial training as tables: in training beside afterwards, and whether the goal was met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.encoders.registry import ENCODERS
from core.metrics import mean_over_seeds
from core.results import Interval, Score
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import markdown_table
from core.studies.tradeoff_summary import change_measure

__all__ = [
    "AFFORDABLE",
    "Setting",
    "Verdict",
    "change_said",
    "markdown",
    "settings_in",
    "verdicts",
]

AFFORDABLE = 2.0
"""Points of usefulness, as a mean over the tasks, that a defence may cost."""

_ACCURACY = "accuracy: "
_CHANGE = change_measure("", "accuracy")
_MEAN = change_measure("mean", "accuracy")
_READ = {"words": "F1 of words", "attribute": "right about the attribute, %"}


@dataclass(frozen=True)
class Setting:
    """An encoder behind a defence at one λ, over all seeds.

    Attributes
    ----------
    during : tuple of Score
        What the adversary in training read of held-out texts after each epoch.
    after : dict
        Fresh attacker to what it reads.
    after_top5 : dict
        Of an attribute: fresh attacker to how often the right label is among its first five.
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
    def said(self) -> str:
        """The defence in a few characters."""
        names = {"none": "none", "leace": "LEACE"}
        symbol = "λ_w" if self.hides == "words" else "λ_s"
        return names.get(self.kind, f"{symbol} {self.weight:g}")

    @property
    def is_control(self) -> bool:
        """Whether the training is that of a defence, and nothing presses on the encoder."""
        return self.kind == "adversarial" and self.weight == 0.0

    @property
    def strongest(self) -> tuple[str, Score]:
        """The fresh attacker that reads most, and what it reads."""
        return max(self.after.items(), key=lambda item: item[1].value)

    @property
    def dear(self) -> dict[str, Score]:
        """The tasks that surely lose more than AFFORDABLE points, whatever the mean says."""
        return {
            task: change
            for task, change in self.changes.items()
            if task != "mean" and change.ci95.high < -AFFORDABLE
        }


def settings_in(rows: Sequence[Row]) -> list[Setting]:
    """Return what was measured of each setting, in the order of the rows."""
    grouped: dict[tuple[str, str, str, float], list[Row]] = {}
    for row in rows:
        if not row.error:
            key = (row["encoder"], row["hides"], row["defence_kind"], row["weight"])
            grouped.setdefault(key, []).append(row)
    return [_setting(key, own) for key, own in grouped.items()]


def _setting(key: tuple[str, str, str, float], rows: Sequence[Row]) -> Setting:
    def of(when: str) -> list[Row]:
        return [row for row in rows if row["when"] == when]

    by_epoch = _by(of("during"), "epoch")
    after = _by(of("after"), "attacker")
    use, stopped = of("use"), of("stopped")
    measures = [name for name in (use[0].scores if use else {}) if name.startswith(_CHANGE)]
    accuracies = [name for name in (use[0].scores if use else {}) if name.startswith(_ACCURACY)]
    # All seeds draw their targets from the same documents: more seeds tell no more of these.
    is_grouped = any(row.get("group") for row in rows)
    # Tasks with an official split are tested on the same texts under every seed.
    changes = {
        name.removeprefix(_CHANGE): mean_row_score(use, name, is_same_sample=True)
        for name in measures
    }
    return Setting(
        *key,
        margins={name.removeprefix(_ACCURACY): _above_guessing(use, name) for name in accuracies},
        during=tuple(mean_row_score(by_epoch[epoch], "read") for epoch in sorted(by_epoch)),
        after={name: mean_row_score(own, "read", is_same_sample=is_grouped)
               for name, own in after.items()},
        changes=changes,
        minutes=_mean(row["training_minutes"] for row in use),
        stopped=str(stopped[0]["stopped"]) if stopped else "",
        after_top5={name: mean_row_score(own, "read_top5", is_same_sample=is_grouped)
                    for name, own in after.items() if "read_top5" in own[0].scores},
    )  # fmt: skip


def _above_guessing(rows: Sequence[Row], measure: str) -> Score:
    """Return the mean of an accuracy less, seed by seed, what guessing reaches there."""
    above = []
    for score in (row.scores[measure] for row in rows):
        ends = Interval(score.ci95.low - score.chance, score.ci95.high - score.chance)
        above.append(Score(score.value - score.chance, ends, score.n, 0.0))
    return mean_over_seeds(above, is_same_sample=True)


def _by(rows: Iterable[Row], name: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else float("nan")


@dataclass(frozen=True)
class Verdict:
    """Whether an encoder's fresh attackers read half as much, at what it may cost.

    Attributes
    ----------
    plain : Setting
        Without a defence.
    met : Setting or None
        The cheapest that surely halves what the strongest reads at no more than AFFORDABLE points:
        the upper ends of what is read are at most half of the greatest lower end without a
        defence, and the lower end of usefulness is within those points.
    best : Setting or None
        Under which least is read of those that are surely within that price.
    least : Setting or None
        Under which least is read, whatever it costs.
    unclear : Setting or None
        Where none surely does: the one under which least is read of those that may, by the other
        ends of the same intervals.
    """

    plain: Setting
    met: Setting | None
    best: Setting | None
    least: Setting | None
    unclear: Setting | None = None

    @property
    def idle(self) -> dict[str, Score]:
        """Tasks with hardly more to lose than AFFORDABLE: by how much they are above guessing."""
        known = self.plain.margins.items()
        return {task: margin for task, margin in known if margin.value <= AFFORDABLE}

    @property
    def idle_said(self) -> str:
        """Return the same in words; empty where there is none."""
        return ", ".join(f"{task} {margin.said()}" for task, margin in self.idle.items())

    def __str__(self) -> str:
        """Return the verdict in a few sentences."""
        name = ENCODERS[self.plain.encoder.partition(":")[0]]
        attacker, read = self.plain.strongest
        told = (
            f"{name.label or name.title}, {self.plain.hides}: without a defence the strongest "
            f"fresh attacker ({attacker}) reads {read.said()}. {self._goal}"
        )
        if self.idle:
            told += f" Hardly any to lose, in points above guessing without: {self.idle_said}."
        return told

    @property
    def _goal(self) -> str:
        if self.met is not None:
            return f"{_costs(self.met)}: halved at {AFFORDABLE:g} points or fewer."
        told = f"No setting surely halved that at {AFFORDABLE:g} points of usefulness or fewer."
        if self.unclear is not None:
            told += f" Not told apart from that: {_costs(self.unclear)}."
        if self.best is not None and self.best is not self.unclear:
            told += f" The best at that price: {_costs(self.best)}."
        if self.least is not None and self.least not in (self.best, self.unclear):
            told += f" At any price: {_costs(self.least)}."
        return told


def _costs(setting: Setting) -> str:
    attacker, read = setting.strongest
    return (
        f"{setting.said} leaves {read.said()} to the strongest ({attacker}) and changes usefulness "
        f"by {change_said(setting)}"
    )


def change_said(setting: Setting) -> str:
    """Return by how many points usefulness changes, and the tasks that surely lose more."""
    told = f"{setting.changes['mean'].said()} points"
    dear = ", ".join(f"{task} by {change.said()}" for task, change in setting.dear.items())
    return f"{told} (mean of the tasks; {dear})" if dear else told


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Return the verdict on each encoder and what is hidden, where all of it was measured."""
    return list(_verdicts(settings_in(rows)))


def _verdicts(settings: Sequence[Setting]) -> Iterator[Verdict]:
    whole = [s for s in settings if s.after and "mean" in s.changes and not s.stopped]
    for plain in whole:
        if plain.kind != "none":
            continue
        own = [s for s in whole if (s.encoder, s.hides) == (plain.encoder, plain.hides)
               and s.kind != "none" and not s.is_control]  # fmt: skip
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
    """Whether no attacker reads more than half, by the ends of intervals that are the worst."""
    before = max(score.ci95.low for score in plain.after.values())
    return all(score.ci95.high <= before / 2 for score in other.after.values())


def _is_missed(plain: Setting, other: Setting) -> bool:
    """Whether the goal is surely missed; where intervals hold both answers it is not."""
    before = max(score.ci95.high for score in plain.after.values())
    is_read = any(score.ci95.low > before / 2 for score in other.after.values())
    return is_read or other.changes["mean"].ci95.high < -AFFORDABLE


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown: what is read when, the goal, and what is read by epoch."""
    settings = settings_in(rows)
    parts = ["# Adversarial training\n", _head(rows)]
    for hides in dict.fromkeys(s.hides for s in settings):
        own = [s for s in settings if s.hides == hides]
        parts += [f"## {hides.capitalize()}: {_READ[hides]}\n", _table(own), _epochs(own)]
    told = verdicts(rows)
    if told:
        parts += [
            "## Was half of it hidden at a cost of two points?\n",
            *(f"- {verdict}" for verdict in told),
            "",
        ]
    for row in failures(rows):
        parts.append(f"- {row['encoder']}, {row['hides']}, seed {row['seed']} failed: {row.error}")
    return "\n".join(parts).rstrip() + "\n"


def _head(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    first = rows[0]
    seeds = ", ".join(map(str, sorted({row["seed"] for row in rows})))
    return (
        f"Defences are trained on {first['n_defence']:,} texts of {first['n_labels']} labels, "
        f"fresh attackers afterwards on {first['n_known']:,} others, and {first['n_targets']:,} "
        "texts are under attack, which neither saw. In training: what the adversary reads of "
        "held-out texts after the last epoch. Usefulness: accuracy of logistic regression, in "
        "points beside the same encoder without a defence. Words count that all fresh attackers "
        f"know. Means over seeds {seeds}, with 95 % "
        "intervals.\n"
    )


def _table(settings: Sequence[Setting]) -> str:
    attackers = list(dict.fromkeys(name for s in settings for name in s.after))
    first_five = list(dict.fromkeys(name for s in settings for name in s.after_top5))
    tasks = list(dict.fromkeys(name for s in settings for name in s.changes))
    columns = ["encoder", "defence", "in training", "guessing",
               *(f"fresh: {name}" for name in attackers), "guessing",
               *(f"in the first five: {name}" for name in first_five),
               *(f"{task}, points" for task in tasks), "minutes"]  # fmt: skip
    lines: list[list[str]] = []
    for s in settings:
        if s.stopped:
            lines.append([s.encoder, s.said, f"stopped: {s.stopped}"])
            continue
        last = s.during[-1] if s.during else None
        chance = next(iter(s.after.values())).chance if s.after else float("nan")
        lines.append([
            s.encoder, s.said,
            "" if last is None else last.said(), "" if last is None else f"{last.chance:.1f}",
            *(s.after[name].said() if name in s.after else "" for name in attackers),
            f"{chance:.1f}",
            *(s.after_top5[name].said() if name in s.after_top5 else "" for name in first_five),
            *(s.changes[task].said() if task in s.changes else "" for task in tasks),
            f"{s.minutes:.2f}",
        ])  # fmt: skip
    return "\n".join(markdown_table(columns, lines)) + "\n"


def _epochs(settings: Sequence[Setting]) -> str:
    """Return what the adversary reads after each epoch of the training."""
    trained = [s for s in settings if s.during]
    if not trained:
        return ""
    n = max(len(s.during) for s in trained)
    columns = ["encoder", "defence", *(f"epoch {i + 1}" for i in range(n))]
    lines = [[s.encoder, s.said, *(f"{score.value:.1f}" for score in s.during)] for s in trained]
    return "In training, by epoch:\n\n" + "\n".join(markdown_table(columns, lines)) + "\n"
