"""What the studies of membership measured, as the page shows it: models, data, attacks, deciles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.targets.registry import TARGETS
from core.attacks.membership.classifiers.told import setting_said
from core.attacks.membership.drawn import (
    RankShares,
    RocPoint,
    ScoreShares,
    rank_shares,
    shares_of,
)
from core.attacks.membership.rates import RATES, AtRate, melded_curve_interval
from core.attacks.membership.sentences.registry import SENTENCE_ATTACKS
from core.attacks.membership.words.registry import WORD_ATTACKS
from core.encoders.registry import ENCODERS
from core.errors import ArtifactError
from core.registry import Entry
from core.results import Interval, Score
from core.studies.membership_called import collection_said, epochs_said, file_of
from core.studies.membership_classifier_rows import (
    NULL,
    RATE_NAMES,
    blind_said,
    class_said,
    is_by_year,
)
from core.studies.provenance import Provenance
from core.studies.rows import Row, mean_row_score
from core.studies.tables import read_rows

__all__ = [
    "FILES",
    "SHIPPED",
    "Decile",
    "Measured",
    "load_measured",
    "strongest",
    "verdict",
]

SHIPPED = ASSETS / "membership"

FILES = {
    "membership-classifiers": "minilm.json",
    "membership-words": "words.json",
    "membership-sentences": "sentences.json",
}
"""Where the page finds the rows of each study."""

Decile = tuple[int, Score]
"""A tenth of the words or pairs by frequency, 1 the most frequent, and what is found there."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One attack on one kind of model and data.

    Attributes
    ----------
    study : str
    model, data, attack : str
        What tells it from others; of an attack its settings, too.
    model_title, data_title, attack_title : str
        The same in words.
    unit : str
        What is called a member, in the plural.
    entry : Entry
        Of the attack.
    rows : tuple of Row
        Of everything, one a draw.
    by_decile : tuple of tuple of Row
        Draws of each tenth by frequency, where the study tells it.
    by_lot : tuple of Row
        Of everything with membership dealt by lot, where rows of their own tell it.
    is_control : bool
        Nobody is a member: what is found is no leak.
    is_by_year : bool
        Classes are years: who was there when tells users apart, whatever the model keeps of them.
    """

    study: str
    model: str
    data: str
    attack: str
    model_title: str
    data_title: str
    attack_title: str
    unit: str
    entry: Entry
    rows: tuple[Row, ...]
    by_decile: tuple[tuple[Row, ...], ...] = ()
    by_lot: tuple[Row, ...] = ()
    is_control: bool = False
    is_by_year: bool = False

    @cached_property
    def auc(self) -> Score:
        """Share of pairs of a member and another that are ranked right; mean over draws."""
        return self._mean(self.rows, "auc")

    @property
    def control(self) -> Score | None:
        """The same where membership is dealt by lot; None where that was not measured."""
        rows, name = (self.by_lot, "auc") if self.by_lot else (self.rows, "control_auc")
        return self._mean(rows, name) if any(name in row.scores for row in rows) else None

    @property
    def null(self) -> Score | None:
        """The same on a model that was trained on neither; None where that was not measured."""
        is_there = all(NULL in row.scores for row in self.rows)
        return self._mean(self.rows, NULL) if is_there else None

    @property
    def blind(self) -> str:
        """What the texts alone predict, in a sentence; empty where that was not measured."""
        return blind_said(self.rows)

    @property
    def n_draws(self) -> int:
        """How often members were drawn anew."""
        return len(self.rows)

    @property
    def n_outsiders(self) -> int:
        """The least number of independent non-members of a draw: users or documents."""
        return min(_n_units(row, self.study, "outsider") for row in self.rows)

    @cached_property
    def at(self) -> tuple[AtRate, ...]:
        """The true-positive rates; what some draw lacks is not resolvable."""
        names = {rate: self._rate_name(rate) for rate in RATES}
        found = []
        for rate, name in names.items():
            is_told = all(name in row.scores for row in self.rows)
            score = self._mean(self.rows, name) if is_told else Score(float("nan"))
            found.append(AtRate(rate, float("nan"), score, self.n_outsiders if is_told else 0))
        return tuple(found)

    @cached_property
    def curve(self) -> tuple[RocPoint, ...]:
        """The curve with a band, mean over draws; the rates told alone where no curve is stored.

        The band of a stored curve is `melded_curve_interval` as if each user, with all texts, were
        one trial: wide rather than narrow.
        """
        curves = [row.facts["curve"] for row in self.rows if row.facts.get("curve")]
        if len(curves) < len(self.rows):
            return tuple((at.fpr, at.tpr) for at in reversed(self.at) if at.is_shown)
        n = min(_n_units(row, self.study, "member") for row in self.rows)
        mean = [
            (float(points[0][0]), sum(float(y) for _, y in points) / len(points))
            for points in zip(*curves, strict=True)
        ]
        found = []
        for rate, true in mean:
            if rate * self.n_outsiders >= 1 - 1e-9:
                ends = melded_curve_interval(mean, rate, n, self.n_outsiders)
                ends = Interval(min(ends.low, true), max(ends.high, true))
                found.append((rate, Score(true, ends, n, rate)))
        return tuple(found)

    @cached_property
    def shares(self) -> ScoreShares | None:
        """How scores lie in the first draw; None where its row, measured earlier, holds none."""
        stored = self.rows[0].facts.get("score_counts")
        return None if stored is None else shares_of(stored)

    @cached_property
    def ranks(self) -> RankShares | None:
        """The same by the scores of the others, from the curve; None where that cannot tell."""
        if not self.curve or not all(row.facts.get("curve") for row in self.rows):
            return None
        return rank_shares([(rate, score.value) for rate, score in self.curve], self.auc.value)

    def deciles(self, measure: str = "advantage") -> tuple[Decile, ...]:
        """Return a measure of each tenth by frequency, mean over draws."""
        return tuple(
            (int(rows[0]["decile"]), self._mean(rows, measure))
            for rows in self.by_decile
            if any(measure in row.scores for row in rows)
        )

    @property
    def provenances(self) -> list[Provenance | None]:
        """When, by what and where it was measured."""
        return [row.provenance for row in self.rows]

    def _rate_name(self, rate: float) -> str:
        is_classifier = self.study == "membership-classifiers"
        return RATE_NAMES[rate] if is_classifier else f"tpr_at_{rate:g}"

    def _mean(self, rows: Sequence[Row], measure: str) -> Score:
        return mean_row_score(rows, measure, is_same_sample=True)  # all draws are of one corpus


def _n_units(row: Row, study: str, side: str) -> int:
    """Return the users of one side, or of studies of documents about half of these."""
    if study == "membership-classifiers":
        return int(row[f"n_{side}_users"])
    return int(row["n_documents"]) // 2


def load_measured(folder: Path = SHIPPED) -> list[Measured]:
    """Read what the studies of membership wrote; studies without a file are left out.

    Raises
    ------
    ArtifactError
        A file is damaged or of another study; the message names it.
    """
    found: list[Measured] = []
    for study, name in FILES.items():
        path = folder / name
        if not path.exists():
            continue
        rows = [row for row in read_rows(path, study) if not row.error]
        try:
            found += _READERS[study](rows)
            for each in found:
                _ = each.auc, each.at, each.curve, each.shares
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} does not hold rows of `python -m core study {study}`. Make it anew."
            ) from error
    return found


def strongest(found: Sequence[Measured]) -> Measured:
    """Return what is surely found most often: by the lower end of its interval.

    Controls are left out, and so are years, which are confounded with who was there, unless
    nothing else is there.
    """
    real = [one for one in found if not one.is_control] or list(found)
    real = [one for one in real if not one.is_by_year] or real
    return max(real, key=lambda one: one.auc.ci95.low)


def verdict(one: Measured) -> str:
    """Return how often a member is told from another, as a headline."""
    if one.is_control:
        return "A control: here nobody is a member"
    if one.auc.ci95.low <= one.auc.chance:
        return "This attack does not tell members from others"
    share = 100 * one.auc.value
    told = f"{share:.0f}" if share < 99.5 else f"{share:.1f}"
    return f"Asked which of two {one.unit} was trained on, the attack is right {told} % of the time"


def _classifiers(rows: Sequence[Row]) -> list[Measured]:
    usual = [row for row in rows if not row["varied"] and "bucket" not in row.facts]
    names = ("corpus", "label", "classifier", "split", "attack", "feature", "statistic", "of")
    found = []
    for own in _apart(usual, names):
        row = own[0]
        entry = CLASSIFIER_ATTACKS[row["attack"]]
        told = [str(row[name]) for name in ("feature", "statistic", "of") if name in row.facts]
        learned = "all texts of some users" if row["split"] == "user" else "some texts of all users"
        found.append(
            Measured(
                study="membership-classifiers",
                model=str(row["classifier"]),
                data="-".join(str(row[name]) for name in ("corpus", "label", "split")),
                attack="-".join([str(row["attack"]), *told]),
                model_title=TARGETS[row["classifier"]].title,
                data_title=f"{collection_said(row)}, told by {class_said(row['label'])}; {learned}",
                attack_title=_titled(entry, [setting_said(each) for each in told]),
                unit="users" if row["level"] == "user" else "texts",
                entry=entry,
                rows=tuple(own),
                is_by_year=is_by_year(row["label"]),
            )
        )
    return found


def _words(rows: Sequence[Row]) -> list[Measured]:
    def made(row: Row) -> dict[str, Any]:
        entry = WORD_ATTACKS[row["similarity"]]
        is_control = row["trained_on"] != "half"
        control = ", trained on both halves (control)" if is_control else ""
        return {
            "study": "membership-words",
            "model": str(row["encoder"]),
            "data": f"{file_of(row)}-both" if is_control else file_of(row),
            "attack": f"{row['similarity']}-{row['window']}",
            "model_title": ENCODERS[row["encoder"]].label,
            "data_title": f"{collection_said(row)}{control}",
            "attack_title": f"{entry.title}, windows of {row['window']} words",
            "unit": "windows of words",
            "entry": entry,
            "is_control": is_control,
        }

    return _by_decile(rows, ("encoder", "trained_on", "target", "similarity", "window"), made)


def _sentences(rows: Sequence[Row]) -> list[Measured]:
    def made(row: Row) -> dict[str, Any]:
        entry = SENTENCE_ATTACKS[row["similarity"]]
        unit = "books" if row["level"] == "book" else "pairs of sentences"
        return {
            "study": "membership-sentences",
            "model": str(row["encoder"]),
            "data": f"{file_of(row)}-{row['epochs']}",
            "attack": f"{row['similarity']}-{row['level']}",
            "model_title": ENCODERS[row["encoder"]].label,
            "data_title": f"{collection_said(row)}, trained for {epochs_said(row)}",
            "attack_title": f"{entry.title}, of {unit}",
            "unit": unit,
            "entry": entry,
        }

    return _by_decile(rows, ("encoder", "epochs", "target", "similarity", "level"), made)


def _by_decile(
    rows: Sequence[Row], names: Sequence[str], made: Callable[[Row], dict[str, Any]]
) -> list[Measured]:
    """Return each attack on all, with its tenths by frequency, and its control by lot."""
    found = []
    for every in _apart(rows, names):
        own = [row for row in every if row["labels"] == "true"]
        of_all = tuple(row for row in own if row["decile"] == 0)
        tenths = sorted({int(row["decile"]) for row in own} - {0})
        by_decile = tuple(tuple(r for r in own if r["decile"] == tenth) for tenth in tenths)
        by_lot = tuple(row for row in every if row["labels"] == "shuffled")
        if of_all:
            found.append(
                Measured(**made(of_all[0]), rows=of_all, by_decile=by_decile, by_lot=by_lot)
            )
    return found


_READERS = {
    "membership-classifiers": _classifiers,
    "membership-words": _words,
    "membership-sentences": _sentences,
}


def _titled(entry: Entry, told: Sequence[str]) -> str:
    return f"{entry.title}: {', '.join(told)}" if told else entry.title


def _apart(rows: Iterable[Row], names: Sequence[str]) -> list[list[Row]]:
    """Return the rows that differ in their draw alone, group by group."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(str(row.facts.get(name, row.cell.get(name, ""))) for name in names)
        found.setdefault(key, []).append(row)
    return list(found.values())
