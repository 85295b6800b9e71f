"""Shipped results of the membership studies: each attack on each model and collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.report import describe_setting
from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS
from leakscope.core.attacks.membership.rates import RATES, AtRate, melded_curve_interval
from leakscope.core.attacks.membership.registry import SENTENCE_ATTACKS, WORD_ATTACKS
from leakscope.core.attacks.membership.score_distribution import (
    RankShares,
    RocPoint,
    ScoreShares,
    rank_shares,
    shares_from_counts,
)
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import ArtifactError
from leakscope.core.registry import Entry
from leakscope.core.results import Interval, Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.membership.classifier_rows import (
    NULL,
    RATE_NAMES,
    describe_blind_baseline,
    describe_class,
    is_by_year,
)

SHIPPED = RESULTS

FILES = {
    "membership-classifiers": "membership-classifiers.json",
    "membership-words": "membership-words.json",
    "membership-sentences": "membership-sentences.json",
}
"""The file of each study's rows."""

_CALLED = {
    "irc": "chats (IRC)",
    "newsgroups": "newsgroup posts",
    "novels_en": "English novels",
    "topics": "texts by topic",
}
"""Titles of collections whose file name is not self-explanatory."""

Decile = tuple[int, Score]
"""A tenth of the words or pairs by frequency (1 is the most frequent), with its score."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of one attack on one kind of model and data, over draws.

    Attributes
    ----------
    study : str
    model, data, attack : str
        Identifiers of model, data and attack; that of the attack includes its settings.
    model_title, data_title, attack_title : str
        The same in words.
    unit : str
        The unit of membership, in the plural.
    entry : Entry
        Of the attack.
    rows : tuple of Row
        The overall rows, one per draw.
    by_decile : tuple of tuple of Row
        The rows of each frequency decile over draws, if recorded.
    by_lot : tuple of Row
        The overall rows with random membership, if recorded separately.
    is_control : bool
        Whether there are no non-members, so attack success is not a leak.
    is_by_year : bool
        Whether classes are years, which distinguish users by when they wrote.
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
        """The AUC: how often a member is ranked above a non-member; mean over draws."""
        return self._mean(self.rows, "auc")

    @property
    def control(self) -> Score | None:
        """The AUC with membership assigned at random; None if not measured."""
        rows, name = (self.by_lot, "auc") if self.by_lot else (self.rows, "control_auc")
        return self._mean(rows, name) if any(name in row.scores for row in rows) else None

    @property
    def null(self) -> Score | None:
        """The same attack's AUC on a model not trained on the attacked; None if not measured."""
        is_there = all(NULL in row.scores for row in self.rows)
        return self._mean(self.rows, NULL) if is_there else None

    @property
    def blind(self) -> str:
        """The blind baseline of the texts alone, in a sentence; "" if not measured."""
        return describe_blind_baseline(self.rows, is_percent=True)

    @property
    def n_draws(self) -> int:
        """The number of draws of members."""
        return len(self.rows)

    @property
    def n_outsiders(self) -> int:
        """The least number of independent non-members of a draw: users or documents."""
        return min(_n_units(row, self.study, "outsider") for row in self.rows)

    @cached_property
    def at(self) -> tuple[AtRate, ...]:
        """The true-positive rates at fixed FPRs; rates missing in a draw are not resolvable."""
        is_classifier = self.study == "membership-classifiers"
        found = []
        for rate in RATES:
            name = RATE_NAMES[rate] if is_classifier else f"tpr_at_{rate:g}"
            is_told = all(name in row.scores for row in self.rows)
            score = self._mean(self.rows, name) if is_told else Score(float("nan"))
            found.append(AtRate(rate, float("nan"), score, self.n_outsiders if is_told else 0))
        return tuple(found)

    @cached_property
    def curve(self) -> tuple[RocPoint, ...]:
        """The mean ROC curve with a band; only the fixed rates if no curve is stored.

        The band of a stored curve is `melded_curve_interval` as if each user, with all texts, were
        one trial: it may be too wide.
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
        """The histogram of members' and others' scores in the first draw; None if not stored."""
        stored = self.rows[0].facts.get("score_counts")
        return None if stored is None else shares_from_counts(stored)

    @cached_property
    def ranks(self) -> RankShares | None:
        """The score distribution by rank, from the ROC curve; None without a curve."""
        if not self.curve or not all(row.facts.get("curve") for row in self.rows):
            return None
        return rank_shares([(rate, score.value) for rate, score in self.curve], self.auc.value)

    def deciles(self, measure: str = "advantage") -> tuple[Decile, ...]:
        """Return (decile, score) pairs: a measure in each frequency decile, mean over draws."""
        return tuple(
            (int(rows[0]["decile"]), self._mean(rows, measure))
            for rows in self.by_decile
            if any(measure in row.scores for row in rows)
        )

    @property
    def provenances(self) -> list[Provenance | None]:
        """The provenance of each row."""
        return [row.provenance for row in self.rows]

    def _mean(self, rows: Sequence[Row], measure: str) -> Score:
        """Return a measure's mean over draws, one row each."""
        return ResultTable(rows).mean(measure, is_same_sample=True)  # all draws are of one corpus


def _n_units(row: Row, study: str, side: str) -> int:
    """Return the number of member or non-member users; for documents, about half of them."""
    if study == "membership-classifiers":
        return int(row[f"n_{side}_users"])
    return int(row["n_documents"]) // 2


def load_measured(folder: Path = SHIPPED) -> list[Measured]:
    """Read the shipped results of all membership studies; those without a file are left out.

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
        rows = read_rows(path, study).measured
        try:
            found += _READERS[study](rows)
            for each in found:
                _ = each.auc, each.at, each.curve, each.shares
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} does not contain rows of `leakscope study {study}`. Run the study again."
            ) from error
    return found


def strongest(found: Sequence[Measured]) -> Measured:
    """Return the result whose AUC interval begins highest; controls and years come last.

    Controls are left out. So are years, which are confounded with when users wrote. They are used
    only if there is nothing else.
    """
    real = [one for one in found if not one.is_control] or list(found)
    real = [one for one in real if not one.is_by_year] or real
    return max(real, key=lambda one: one.auc.ci95.low)


def verdict(one: Measured) -> str:
    """Describe how well a result distinguishes members from non-members, as a headline."""
    if one.is_control:
        return "A control: the model was trained on both halves, so there are no non-members"
    if one.auc.ci95.low <= one.auc.chance:
        return "This attack does not find members significantly better than guessing"
    share = 100 * one.auc.value
    percent = f"{share:.0f}" if share < 99.5 else f"{share:.1f}"
    return (
        f"Of two {one.unit}, one of them in the training data, the attack picks the right one "
        f"{percent} % of the time"
    )


def _classifier_results(rows: ResultTable) -> list[Measured]:
    """Convert rows of the classifier study to one result per attack and target."""
    usual = rows.where(lambda row: not row["varied"] and "bucket" not in row.facts)
    names = ("corpus", "label", "classifier", "split", "attack", "feature", "statistic", "of")
    found = []
    for own in usual.group_by(lambda row: tuple(row.get(name) for name in names)).values():
        row = own[0]
        entry = CLASSIFIER_ATTACKS[row["attack"]]
        told = [str(row[name]) for name in ("feature", "statistic", "of") if name in row.facts]
        members = "all texts of some users" if row["split"] == "user" else "some texts of all users"
        found.append(
            Measured(
                study="membership-classifiers",
                model=str(row["classifier"]),
                data="-".join(str(row[name]) for name in ("corpus", "label", "split")),
                attack="-".join([str(row["attack"]), *told]),
                model_title=TARGETS[row["classifier"]].title,
                data_title=f"{format_collection(row)}, classified by "
                f"{describe_class(row['label'])}; trained on {members}",
                attack_title=_attack_title(entry, [describe_setting(each) for each in told]),
                unit="users" if row["level"] == "user" else "texts",
                entry=entry,
                rows=tuple(own),
                is_by_year=is_by_year(row["label"]),
            )
        )
    return found


def _word_results(rows: ResultTable) -> list[Measured]:
    """Convert rows of the word-vector study to one result per attack and window length."""

    def made(row: Row) -> dict[str, Any]:
        """Return the identifiers and titles of a row's result, as fields of `Measured`."""
        entry = WORD_ATTACKS[row["similarity"]]
        is_control = row["trained_on"] != "half"
        control = ", trained on both halves (control)" if is_control else ""
        return {
            "study": "membership-words",
            "model": str(row["encoder"]),
            "data": f"{file_of(row)}-both" if is_control else file_of(row),
            "attack": f"{row['similarity']}-{row['window']}",
            "model_title": ENCODERS[row["encoder"]].label,
            "data_title": f"{format_collection(row)}{control}",
            "attack_title": f"{entry.title}, windows of {row['window']} words",
            "unit": "windows of words",
            "entry": entry,
            "is_control": is_control,
        }

    return _results_by_decile(
        rows, ("encoder", "trained_on", "target", "similarity", "window"), made
    )


def _sentence_results(rows: ResultTable) -> list[Measured]:
    """Convert rows of the dual-encoder study to one result per attack and level."""

    def made(row: Row) -> dict[str, Any]:
        """Return the identifiers and titles of a row's result, as fields of `Measured`."""
        entry = SENTENCE_ATTACKS[row["similarity"]]
        unit = "books" if row["level"] == "book" else "pairs of sentences"
        return {
            "study": "membership-sentences",
            "model": str(row["encoder"]),
            "data": f"{file_of(row)}-{row['epochs']}",
            "attack": f"{row['similarity']}-{row['level']}",
            "model_title": ENCODERS[row["encoder"]].label,
            "data_title": f"{format_collection(row)}, trained for {describe_epochs(row)}",
            "attack_title": f"{entry.title}, of {unit}",
            "unit": unit,
            "entry": entry,
        }

    return _results_by_decile(rows, ("encoder", "epochs", "target", "similarity", "level"), made)


def _results_by_decile(
    rows: ResultTable, names: Sequence[str], made: Callable[[Row], dict[str, Any]]
) -> list[Measured]:
    """Group rows to a result per attack, with its frequency deciles and shuffled control."""
    found = []
    for every in rows.group_by(*names).values():
        by_decile = dict(sorted(every.where(labels="true").group_by("decile").items()))
        of_all = by_decile.pop((0,), None)
        if of_all:
            found.append(
                Measured(
                    **made(of_all[0]),
                    rows=tuple(of_all),
                    by_decile=tuple(map(tuple, by_decile.values())),
                    by_lot=tuple(every.where(labels="shuffled")),
                )
            )
    return found


_READERS = {
    "membership-classifiers": _classifier_results,
    "membership-words": _word_results,
    "membership-sentences": _sentence_results,
}


def _attack_title(entry: Entry, told: Sequence[str]) -> str:
    """Format the title of an attack with descriptions of its settings."""
    return f"{entry.title}: {', '.join(told)}".replace(": of ", " of ") if told else entry.title


def format_collection(row: Row) -> str:
    """Return the display name of the collection that a row's model was trained on."""
    name = str(row.get("corpus") or file_of(row))
    return _CALLED.get(name, name)


def file_of(row: Row) -> str:
    """Return the name of a row's file without folder and extension."""
    return Path(str(row["target"]).partition("#")[0]).stem


def describe_epochs(row: Row) -> str:
    """Return a row's number of epochs in words."""
    return "1 epoch" if row["epochs"] == 1 else f"{row['epochs']} epochs"
