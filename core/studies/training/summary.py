"""Results of the private and adversarial training studies, from the shipped rows.

The results of Qu et al. (2021) are in the `theirs` attributes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from leakscope.core.assets import RESULTS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.deniability.odds import noise_schedule, releases_of
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.tradeoff.summary import summarise
from leakscope.core.studies.training.adversarial_tables import (
    Setting,
    Verdict,
    settings_from_rows,
    verdicts,
)
from leakscope.core.studies.training.privacy_paper import ADAPTED, CONSTRAINED, NULL
from leakscope.core.studies.training.privacy_tables import TOKEN, change_of, changes_of

Provenances = tuple[Provenance | None, ...]
"""The provenance of each row; `versions` has the lowest study version by table."""


@dataclass(frozen=True)
class Trap:
    """The setting that hides most from its own adversary, with the scores of fresh attackers.

    Attributes
    ----------
    control : Setting or None
        The same training with λ = 0.
    """

    setting: Setting
    control: Setting | None = None

    @property
    def promised(self) -> Score:
        """The score of the adversary in training after the last epoch."""
        return self.setting.during[-1]

    @property
    def read(self) -> Score:
        """The score of the strongest fresh attacker."""
        return self.setting.strongest[1]

    @property
    def is_sprung(self) -> bool:
        """Whether training reduced its adversary's score significantly more than fresh attackers'.

        Both are compared with the same training at λ = 0, as the two attackers differ even if
        nothing is hidden. Without that control, the result is False.
        """
        if self.control is None or not self.control.during or not self.control.after:
            return False
        before, afterwards = self.control.during[-1], self.control.strongest[1]
        taken = (before.value - self.promised.value) - (afterwards.value - self.read.value)
        ends = [each.ci95 for each in (before, self.promised, afterwards, self.read)]
        return taken > math.hypot(*((each.high - each.low) / 2 for each in ends))


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """The parameters of a small adversarial training on bundled sentences.

    Attributes
    ----------
    weight : float
        λ_w.
    n_defence, n_known, n_targets : int
        Sentences of the defence, of the attacker, and under attack.
    """

    weight: float = 1.0
    n_defence: int = 2000
    n_known: int = 1000
    n_targets: int = 200
    epochs: int = 25
    seed: int = 0


@dataclass(frozen=True)
class Trial:
    """The settings of a small adversarial training: no defence, λ = 0 as a control, and λ.

    Attributes
    ----------
    family : str
        The fresh attacker's family.
    """

    settings: tuple[Setting, ...]
    family: str

    @property
    def trap(self) -> Trap:
        """The setting with the trained λ, and its control with λ = 0, as a `Trap`."""
        setting = self.settings[-1]
        controls = (each for each in self.settings if each.is_control)
        return Trap(setting, next(controls, None) if setting.weight else None)


@dataclass(frozen=True, kw_only=True)
class Basis:
    """Numbers of texts, labels and seeds behind the figures of one encoder and hidden target.

    Attributes
    ----------
    n_labels, n_defence, n_known, n_targets, n_seeds : int
        Labels; texts of the defence, of the attackers, and under attack; seeds.
    provenances : tuple of Provenance or None
        The provenance of each row.
    table : str
        The table in results/.
    """

    n_labels: int
    n_defence: int
    n_known: int
    n_targets: int
    n_seeds: int
    provenances: Provenances
    table: str = ""


@dataclass(frozen=True)
class Adversarial:
    """The results of the adversarial training study.

    Attributes
    ----------
    settings : tuple of Setting
        Each encoder × hidden target × λ, including diverged trainings.
    families : dict
        Fresh attacker to its family, as text.
    label : str
        The attribute.
    bases : dict
        Encoder and hidden target to the numbers of texts behind them, which differ by table.
    """

    settings: tuple[Setting, ...]
    verdicts: tuple[Verdict, ...]
    families: dict[str, str]
    label: str
    bases: Mapping[tuple[str, str], Basis]
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def encoders(self) -> list[str]:
        """The names of the measured encoders, each once."""
        return list(dict.fromkeys(each.encoder for each in self.settings))

    def hidden_of(self, encoder: str) -> list[str]:
        """Return what was hidden of an encoder: `words`, `attribute` or both."""
        own = [each.hides for each in self.settings if each.encoder == encoder]
        return list(dict.fromkeys(own))

    def of(self, encoder: str, hides: str) -> list[Setting]:
        """Return the settings of an encoder and hidden target: no defence, by λ, then LEACE."""
        order = {"none": 0, "adversarial": 1, "leace": 2}
        own = [s for s in self.settings if (s.encoder, s.hides) == (encoder, hides)]
        return sorted(own, key=lambda s: (order.get(s.kind, 1), s.weight))

    def trap(self, encoder: str, hides: str) -> Trap | None:
        """Return the λ whose adversary in training scores lowest, with its control; None if none.

        A λ whose training diverged under any seed is left out.
        """
        own = [
            s
            for s in self.of(encoder, hides)
            if s.weight and s.during and s.after and not s.stopped
        ]
        control = self.control(encoder, hides)
        return Trap(min(own, key=lambda s: s.during[-1].value), control) if own else None

    def control(self, encoder: str, hides: str) -> Setting | None:
        """Return the setting trained with λ = 0, the control; None if it was not measured.

        For a dual encoder, this is the undefended one, whose adversary has no influence.
        """
        own = (s for s in self.of(encoder, hides) if not s.weight and s.during and s.after)
        return next(own, None)

    def verdict(self, encoder: str, hides: str) -> Verdict | None:
        """Return the verdict on an encoder and hidden target; None if not fully measured."""
        same = (v for v in self.verdicts if (v.plain.encoder, v.plain.hides) == (encoder, hides))
        return next(same, None)


@dataclass(frozen=True)
class Constrained:
    """The results of a network trained and tested under noise at one η (infinite: no noise).

    Attributes
    ----------
    change, by_noise : Score or None
        Change in points from the whole network fine-tuned on the original texts, and from the same
        network without noise. The two differ where users send the vector of a whole text.
    from_token : Score or None
        Text to text minus token representation, in points on the same texts, if recorded.
    """

    task: str
    reader: str
    mechanism: str
    eta: float
    paper_eta: int | None
    accuracy: Score
    change: Score | None
    by_noise: Score | None
    from_token: Score | None
    theirs: float | None
    n_train: int
    n_seeds: int
    releases: int
    """Noisy copies of each training text that it was trained on; 0 without noise."""


_P = TypeVar("_P")


@dataclass(frozen=True)
class _NetworkResults:
    """The results of a study of networks, as points."""

    points: tuple[Any, ...]
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The names of the measured tasks, each once."""
        return list(dict.fromkeys(point.task for point in self.points))


@dataclass(frozen=True)
class UnderNoise(_NetworkResults):
    """The results of the study of networks under noise (Tables 4 and 5)."""

    points: tuple[Constrained, ...]

    def readers_of(self, task: str) -> list[str]:
        """Return the networks that were trained on a task."""
        return list(dict.fromkeys(p.reader for p in self.points if p.task == task))

    def of(self, task: str, reader: str) -> list[Constrained]:
        """Return the points of a task and a network, by mechanism and ascending η."""
        own = [p for p in self.points if (p.task, p.reader) == (task, reader)]
        places = list(dict.fromkeys(p.mechanism for p in own))
        return sorted(own, key=lambda p: (places.index(p.mechanism), p.eta, p.releases))


@dataclass(frozen=True)
class Adapted:
    """The results of a network pretrained under noise by one loss, then fine-tuned at one η.

    Attributes
    ----------
    accuracy, plain, null : Score
        With pretraining, without pretraining, and without noise.
    gain, won_back : Score
        Points above `plain`, and their share of the accuracy lost to noise, in per cent.
    beside : dict
        Points above the other losses on the same texts, if recorded.
    theirs, their_plain, their_null : float or None
        The paper's accuracies.
    tokens, all_tokens, distinct_tokens, paper_tokens : int
        Tokens seen at this η, with those at earlier η, the distinct ones among these, and those
        seen in the paper.
    losses : tuple of (int, float)
        Tokens seen at this η, and the loss on held-out texts.
    releases : int
        Noisy copies of each text of the task that it was fine-tuned on.
    """

    task: str
    mechanism: str
    eta: float
    objective: str
    paper_eta: int | None
    accuracy: Score
    plain: Score
    null: Score
    gain: Score
    won_back: Score
    beside: dict[str, Score]
    theirs: float | None
    their_plain: float | None
    their_null: float | None
    tokens: int
    all_tokens: int
    distinct_tokens: int
    paper_tokens: int
    minutes: float
    losses: tuple[tuple[int, float], ...]
    n_train: int
    n_seeds: int
    releases: int

    @property
    def paper_recovered_share(self) -> float | None:
        """The percentage of lost accuracy that the paper recovers; None if not stated."""
        if self.theirs is None or self.their_plain is None or self.their_null is None:
            return None
        return 100 * (self.theirs - self.their_plain) / (self.their_null - self.their_plain)


@dataclass(frozen=True)
class Pretrained(_NetworkResults):
    """The results of the study of pretraining under noise (Tables 6 and 7)."""

    points: tuple[Adapted, ...]

    def mechanisms_of(self, task: str) -> list[str]:
        """Return the mechanisms that were measured on a task."""
        return list(dict.fromkeys(p.mechanism for p in self.points if p.task == task))

    def of(self, task: str, mechanism: str) -> list[Adapted]:
        """Return the points of a task and a mechanism, by ascending η."""
        own = [p for p in self.points if (p.task, p.mechanism) == (task, mechanism)]
        return sorted(own, key=lambda p: p.eta)


@dataclass(frozen=True)
class PrivacySpent:
    """The ε of a training by two accountants, `opacus` and `dp_accounting`, and a tighter one.

    Attributes
    ----------
    of_group : float
        The ε for ten texts of one person together.
    """

    opacus: float
    dp_accounting: float
    tight: float | None
    noise_multiplier: float
    n_steps: int
    of_group: float

    @property
    def accountant_gap(self) -> float:
        """The relative difference of the two equivalent accountants."""
        return abs(self.opacus - self.dp_accounting) / self.opacus


@dataclass(frozen=True)
class PrivateHead:
    """The results of classifiers trained on frozen vectors with DP; ε is infinite without it.

    Attributes
    ----------
    accuracy, change : Score
        In per cent, and in points of change from the same training without clipping and noise.
    auc, control : Score
        AUC of the strongest membership attack, and with permuted labels; from 0 to 1.
    spent, attacked : PrivacySpent or None
        For the classifier whose utility is measured, and for the attacked one, trained on other
        texts.
    """

    task: str
    hidden: int
    epsilon: float
    accuracy: Score
    change: Score
    auc: Score
    control: Score
    strongest: tuple[str, ...]
    n_train: int
    n_members: int
    n_seeds: int
    spent: PrivacySpent | None
    attacked: PrivacySpent | None

    @property
    def head(self) -> str:
        """The classifier as text: `linear`, or its hidden units."""
        return f"{self.hidden} units" if self.hidden else "linear"


@dataclass(frozen=True)
class PrivateModel:
    """The results of language models with canaries trained with DP; ε is infinite without it.

    Attributes
    ----------
    of_copies : float or None
        The ε for all copies of a canary.
    """

    epsilon: float
    exposure: Score
    controls: Score
    bits_a_token: float
    n_train: int
    n_canaries: int
    insertions: int
    n_seeds: int
    spent: PrivacySpent | None
    of_copies: float | None


@dataclass(frozen=True)
class PrivateTraining:
    """The results of the private training study."""

    heads: tuple[PrivateHead, ...]
    models: tuple[PrivateModel, ...]
    delta: float
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The names of the measured tasks, each once."""
        return list(dict.fromkeys(head.task for head in self.heads))

    def of(self, task: str) -> list[PrivateHead]:
        """Return the classifiers of a task, by hidden units and ascending ε."""
        own = [head for head in self.heads if head.task == task]
        return sorted(own, key=lambda head: (head.hidden, head.epsilon))

    @property
    def accountant_gap(self) -> float:
        """The largest relative difference of the two accountants; NaN without DP training."""
        spent = [each for head in self.heads for each in (head.spent, head.attacked)]
        spent += [model.spent for model in self.models]
        return max((each.accountant_gap for each in spent if each is not None), default=math.nan)


SHIPPED = RESULTS

TABLES = {
    "adversarial": ("adversarial", "adversarial-dual", "adversarial-dual-words"),
    "constrained": (
        "constrained",
        "constrained-bilstm",
        "constrained-once",
        "constrained-once-words",
    ),
    "adaptive": ("adaptive", "adaptive-text"),
    "private-training": ("private-training",),
}
"""The tables of each study on the page: the main one, and those of other settings, which were
measured by separate commands."""

_PLACE = (
    "encoder",
    "hides",
    "defence_kind",
    "weight",
    "when",
    "attacker",
    "epoch",
    "task",
    "reader",
    "defence",
    "objective",
    "part",
    "epsilon",
    "eta",
    "classifier_settings",
    "seed",
)
"""Entries that distinguish settings in any study; None if a study lacks one."""

Summary = Adversarial | UnderNoise | Pretrained | PrivateTraining


def tables_of(study: str, folder: Path) -> dict[str, Path]:
    """Return the paths of a study's result files by table: the main one, and others that exist."""
    first, *others = TABLES[study]
    there = [name for name in others if (folder / f"{name}.json").exists()]
    return {name: folder / f"{name}.json" for name in (first, *there)}


def load_part(study: str, folder: Path = SHIPPED) -> Summary:
    """Read the result files of a study, and summarise them; failed cells are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, of another study, with duplicate rows, or without any measured cell; the
        message names the file.
    """
    tables = tables_of(study, folder)
    by_table: dict[str, ResultTable] = {}
    for table, path in tables.items():
        found = read_rows(path, study).measured
        before = {_setting_key(row) for rows in by_table.values() for row in rows}
        if before & {_setting_key(row) for row in found}:
            raise ArtifactError(
                f"{path} repeats settings of another table of {study}, which would count twice. "
                "Move one of the two files away."
            )
        if found:
            by_table[table] = found
    try:
        if not by_table:
            raise ValueError("nothing was measured")
        versions = {
            table: min(int(row.get("versions", {}).get("study", 1)) for row in rows)
            for table, rows in by_table.items()
        }
        rows = ResultTable(row for found in by_table.values() for row in found)
        read = replace(_READERS[study](rows), versions=versions)
        if isinstance(read, Adversarial):
            named = {
                (row["encoder"], row["hides"]): table
                for table, own in by_table.items()
                for row in own
            }
            bases = {at: replace(basis, table=named[at]) for at, basis in read.bases.items()}
            read = replace(read, bases=bases)
        return read
    except (
        ArithmeticError,
        AttributeError,
        InvalidInputError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        files = " or ".join(map(str, tables.values()))
        raise ArtifactError(
            f"{files} does not contain rows of `leakscope study {study}`. Run the study again."
        ) from error


def _summarise_adversarial(rows: ResultTable) -> Adversarial:
    """Summarise rows of the adversarial training study as an `Adversarial`."""
    found = Adversarial(
        settings=tuple(settings_from_rows(rows)),
        verdicts=tuple(verdicts(rows)),
        families=_attacker_families(rows.where(when="after")),
        label=str(rows[0]["label"]),
        bases={
            (str(encoder), str(hides)): _count_basis(own)
            for (encoder, hides), own in rows.group_by("encoder", "hides").items()
        },
        provenances=rows.provenances,
    )
    if not any(each.after for each in found.settings):
        raise ValueError("no fresh attacker was measured")
    return found


def _count_basis(rows: ResultTable) -> Basis:
    """Count the texts, labels and seeds behind rows."""
    first = rows[0]
    sizes: dict[str, Any] = {
        name: int(first[name]) for name in ("n_labels", "n_defence", "n_known", "n_targets")
    }
    # These are the requested sizes; labels may have fewer, and near-duplicates are not attacked.
    for name, counted in (("n_known", "n_known_texts"), ("n_targets", "n")):
        found = [int(row[counted]) for row in rows if row["when"] == "after" and counted in row]
        sizes[name] = round(fmean(found)) if found else sizes[name]
    return Basis(**sizes, n_seeds=len(rows.distinct("seed")), provenances=rows.provenances)


def _attacker_families(rows: ResultTable) -> dict[str, str]:
    """Return each fresh attacker's family by name, with its starting weights if ambiguous."""
    found = {str(row["attacker"]): row for row in rows}
    families = [row["family"] for row in found.values()]
    starts = {True: "tuned from shipped weights", False: "trained from scratch"}
    return {
        name: str(row["family"])
        if families.count(row["family"]) == 1
        else f"{row['family']}, {starts[bool(row['starts_shipped'])]}"
        for name, row in found.items()
    }


def _constrained_point(key: tuple[Any, ...], rows: ResultTable) -> Constrained:
    """Average the rows of one network, mechanism and η over seeds to a `Constrained`."""
    task, reader, mechanism, eta, releases = key
    first, is_null = rows[0], mechanism == "none"
    theirs = NULL.get((task, reader)) if is_null else None
    if first["paper_eta"] is not None:
        theirs = CONSTRAINED.get((task, reader, mechanism), {}).get(int(first["paper_eta"]))
    return Constrained(
        task=task,
        reader=reader,
        mechanism=mechanism,
        eta=math.inf if eta is None else float(eta),
        paper_eta=first["paper_eta"],
        accuracy=rows.mean_on_same_texts("accuracy"),
        change=rows.mean_on_same_texts("change") if "change" in first.scores else None,
        by_noise=rows.mean_on_same_texts("change_by_noise")
        if "change_by_noise" in first.scores
        else None,
        from_token=change_of(rows, TOKEN),
        theirs=theirs,
        n_train=int(first["n_train"]),
        n_seeds=len(rows.distinct("seed")),
        releases=releases,
    )


def _adapted_point(key: tuple[Any, ...], rows: ResultTable) -> Adapted:
    """Average the rows of one pretraining loss and η over seeds to an `Adapted`."""
    task, mechanism, eta, objective = key
    first, at = rows[0], rows[0]["paper_eta"]
    return Adapted(
        task=task,
        mechanism=mechanism,
        eta=float(eta),
        objective=objective,
        paper_eta=at,
        accuracy=rows.mean_on_same_texts("accuracy"),
        plain=rows.mean_on_same_texts("constrained_accuracy"),
        null=rows.mean_on_same_texts("null_accuracy"),
        gain=rows.mean_on_same_texts("gain"),
        won_back=rows.mean_on_same_texts("won_back"),
        beside=changes_of(rows),
        theirs=ADAPTED.get((task, mechanism, objective), {}).get(at),
        their_plain=CONSTRAINED.get((task, "transformer", mechanism), {}).get(at),
        their_null=NULL.get((task, "transformer")),
        tokens=int(first["tokens_seen"]),
        all_tokens=int(first["all_tokens_seen"]),
        distinct_tokens=int(first["distinct_tokens_seen"]),
        paper_tokens=int(first["paper_tokens"]),
        minutes=float(first["pretraining_minutes"]),
        losses=tuple((int(tokens), float(loss)) for tokens, loss in first["loss_by_tokens"]),
        n_train=int(first["n_train"]),
        n_seeds=len(rows.distinct("seed")),
        releases=releases_of(first),
    )


def _summarise_private(rows: ResultTable) -> PrivateTraining:
    """Summarise rows of the private training study as a `PrivateTraining`."""
    heads, models = rows.where(part="classifier"), rows.where(part="language model")
    groups = heads.group_by(
        lambda row: NamedTexts.of(row["task"]).name,
        lambda row: int(row["classifier_settings"]["hidden"]),
        _requested_epsilon,
    )
    delta = rows[0]["classifier_settings"] if heads else rows[0]
    return PrivateTraining(
        heads=tuple(
            _private_head(task, hidden, epsilon, own)
            for (task, hidden, epsilon), own in groups.items()
        ),
        models=tuple(
            sorted(
                map(_private_model, models.group_by("epsilon").values()),
                key=lambda model: model.epsilon,
            )
        ),
        delta=float(delta["delta"]),
        provenances=rows.provenances,
    )


def _requested_epsilon(row: Row) -> float:
    """Return the requested ε of a row; 0 means no guarantee and becomes infinity."""
    return float(row["epsilon"]) or math.inf


def _private_head(task: str, hidden: int, epsilon: float, rows: ResultTable) -> PrivateHead:
    """Average the rows of one classifier and ε over seeds to a `PrivateHead`."""
    first = rows[0]
    return PrivateHead(
        task=task,
        hidden=hidden,
        epsilon=epsilon,
        accuracy=rows.mean_on_same_texts("accuracy"),
        change=rows.mean_on_same_texts("accuracy_change"),
        auc=rows.mean_on_same_texts("auc"),  # all seeds split the texts of one task
        control=rows.mean("control_auc"),
        strongest=tuple(sorted(rows.distinct("strongest"))),
        n_train=int(first["n_train"]),
        n_members=int(first["n_members"]),
        n_seeds=len(rows.distinct("seed")),
        spent=_largest_spent(rows, ""),
        attacked=_largest_spent(rows, "attacked_"),
    )


def _private_model(rows: ResultTable) -> PrivateModel:
    """Average the rows of the language models at one ε over seeds to a `PrivateModel`."""
    first = rows[0]
    return PrivateModel(
        epsilon=_requested_epsilon(first),
        exposure=rows.mean("exposure"),
        controls=rows.mean("control_exposure"),
        bits_a_token=rows.average("bits_a_token"),
        n_train=int(first["n_train"]),
        n_canaries=len(first["formats"]),
        insertions=int(first["insertions"]),
        n_seeds=len(rows.distinct("seed")),
        spent=_largest_spent(rows, ""),
        of_copies=None if first["epsilon_canary"] is None else float(first["epsilon_canary"]),
    )


def _largest_spent(rows: ResultTable, before: str) -> PrivacySpent | None:
    """Return what the seed with the largest ε spent; None without a guarantee."""
    most = max(rows, key=lambda row: row[f"{before}epsilon_opacus"] or 0.0)
    if most[f"{before}epsilon_opacus"] is None:
        return None
    tight = most[f"{before}epsilon_tight"]
    return PrivacySpent(
        opacus=float(most[f"{before}epsilon_opacus"]),
        dp_accounting=float(most[f"{before}epsilon_dp_accounting"]),
        tight=None if tight is None else float(tight),
        noise_multiplier=float(most[f"{before}noise_multiplier"]),
        n_steps=int(most[f"{before}n_steps"]),
        of_group=float(most[f"{before}epsilon_group"]),
    )


def _make_points(make: Callable[..., _P], groups: Mapping[Any, ResultTable]) -> tuple[_P, ...]:
    """Call `make` with the key and the rows of each group; return the points."""
    return tuple(map(make, groups, groups.values()))


_READERS: Mapping[str, Callable[[ResultTable], Summary]] = {
    "adversarial": _summarise_adversarial,
    "constrained": lambda rows: UnderNoise(
        _make_points(
            _constrained_point, rows.group_by("task", "reader", "defence", "eta", releases_of)
        ),
        rows.provenances,
    ),
    "adaptive": lambda rows: Pretrained(
        _make_points(_adapted_point, rows.group_by("task", "defence", "eta", "objective")),
        rows.provenances,
    ),
    "private-training": _summarise_private,
}


def _setting_key(row: Row) -> str:
    """Return the JSON text that identifies a row's setting, to detect duplicates."""
    return json.dumps([noise_schedule(row), *(row.get(name) for name in _PLACE)], sort_keys=True)


RECOVERED = RESULTS / "tradeoff-noise.json"
"""The shipped trade-off rows at the η of the networks under noise."""


def load_read_under_noise(path: Path = RECOVERED) -> dict[tuple[str, float], Score]:
    """Read the strongest F1 on words by mechanism and η, in %, from the shipped trade-off.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    try:
        points = summarise(read_rows(path, "tradeoff")).points
        found = {
            (point.defence, float(dict(point.settings)["eta"])): point.leakage for point in points
        }
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, InvalidInputError):
        found = {}
    if not found:
        raise ArtifactError(
            f"{path} contains no mechanism with an η. Run `leakscope study tradeoff --spec "
            "results/tradeoff-noise.spec.json --files DATA` again."
        )
    return found
