"""Summaries of the private and adversarial training studies, from the shipped rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from leakscope.core.assets import RESULTS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.deniability.odds import noise_schedule, releases_of
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.training.adversarial_tables import settings_from_rows, verdicts
from leakscope.core.studies.training.in_order import TOKEN, change_of, changes_of
from leakscope.core.studies.training.points import (
    Adapted,
    Adversarial,
    Basis,
    Constrained,
    Pretrained,
    PrivacySpent,
    PrivateHead,
    PrivateModel,
    PrivateTraining,
    UnderNoise,
)
from leakscope.core.studies.training.privacy_paper import ADAPTED, CONSTRAINED, NULL

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
    """Return the existing files of a study's rows, by the name of the table."""
    first, *others = TABLES[study]
    there = [name for name in others if (folder / f"{name}.json").exists()]
    return {name: folder / f"{name}.json" for name in (first, *there)}


def load_part(study: str, folder: Path = SHIPPED) -> Summary:
    """Read the results of one of the studies from its files; failed cells are left out.

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
        versions = {table: _lowest_version(rows) for table, rows in by_table.items()}
        rows = ResultTable(row for found in by_table.values() for row in found)
        read = replace(_READERS[study](rows), versions=versions)
        return _with_tables(read, by_table) if isinstance(read, Adversarial) else read
    except (
        ArithmeticError,
        AttributeError,
        InvalidInputError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        named = " or ".join(map(str, tables.values()))
        raise ArtifactError(
            f"{named} does not contain rows of `leakscope study {study}`. Run the study again."
        ) from error


def _summarise_adversarial(rows: ResultTable) -> Adversarial:
    """Summarise the rows of the adversarial training study."""
    found = Adversarial(
        settings=tuple(settings_from_rows(rows)),
        verdicts=tuple(verdicts(rows)),
        families=_families(rows.where(when="after")),
        label=str(rows[0]["label"]),
        bases={
            (str(encoder), str(hides)): _basis(own)
            for (encoder, hides), own in rows.group_by("encoder", "hides").items()
        },
        provenances=rows.provenances,
    )
    if not any(each.after for each in found.settings):
        raise ValueError("no fresh attacker was measured")
    return found


def _basis(rows: ResultTable) -> Basis:
    """Return the numbers of texts, labels and seeds behind rows."""
    first = rows[0]
    sizes: dict[str, Any] = {
        name: int(first[name]) for name in ("n_labels", "n_defence", "n_known", "n_targets")
    }
    # These are the requested sizes; labels may have fewer, and near-duplicates are not attacked.
    for name, counted in (("n_known", "n_known_texts"), ("n_targets", "n")):
        found = [int(row[counted]) for row in rows if row["when"] == "after" and counted in row]
        sizes[name] = round(fmean(found)) if found else sizes[name]
    return Basis(**sizes, n_seeds=len(rows.distinct("seed")), provenances=rows.provenances)


def _with_tables(found: Adversarial, by_table: Mapping[str, ResultTable]) -> Adversarial:
    """Add to each encoder's basis the name of its table."""
    tables = {
        (str(row["encoder"]), str(row["hides"])): table
        for table, rows in by_table.items()
        for row in rows
    }
    bases = {place: replace(basis, table=tables[place]) for place, basis in found.bases.items()}
    return replace(found, bases=bases)


def _families(rows: ResultTable) -> dict[str, str]:
    """Return each fresh attacker's family, with its starting weights if ambiguous."""
    found = {str(row["attacker"]): row for row in rows}
    families = [row["family"] for row in found.values()]
    starts = {True: "tuned from shipped weights", False: "trained from scratch"}
    return {
        name: str(row["family"])
        if families.count(row["family"]) == 1
        else f"{row['family']}, {starts[bool(row['starts_shipped'])]}"
        for name, row in found.items()
    }


def _summarise_under_noise(rows: ResultTable) -> UnderNoise:
    """Summarise the rows of the study of networks under noise."""
    groups = rows.group_by("task", "reader", "defence", "eta", releases_of)
    return UnderNoise(tuple(map(_constrained_point, groups, groups.values())), rows.provenances)


def _constrained_point(key: tuple[Any, ...], rows: ResultTable) -> Constrained:
    """Return the point of one network, mechanism and η, averaged over seeds."""
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
        accuracy=_mean(rows, "accuracy"),
        change=_mean(rows, "change") if "change" in first.scores else None,
        by_noise=_mean(rows, "change_by_noise") if "change_by_noise" in first.scores else None,
        from_token=change_of(rows, TOKEN),
        theirs=theirs,
        n_train=int(first["n_train"]),
        n_seeds=len(rows.distinct("seed")),
        releases=releases,
    )


def _summarise_pretraining(rows: ResultTable) -> Pretrained:
    """Summarise the rows of the study of pretraining under noise."""
    groups = rows.group_by("task", "defence", "eta", "objective")
    return Pretrained(tuple(map(_adapted_point, groups, groups.values())), rows.provenances)


def _adapted_point(key: tuple[Any, ...], rows: ResultTable) -> Adapted:
    """Return the point of one pretraining loss and η, averaged over seeds."""
    task, mechanism, eta, objective = key
    first, at = rows[0], rows[0]["paper_eta"]
    return Adapted(
        task=task,
        mechanism=mechanism,
        eta=float(eta),
        objective=objective,
        paper_eta=at,
        accuracy=_mean(rows, "accuracy"),
        plain=_mean(rows, "constrained_accuracy"),
        null=_mean(rows, "null_accuracy"),
        gain=_mean(rows, "gain"),
        won_back=_mean(rows, "won_back"),
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
    """Summarise the rows of the private training study."""
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
    """Return the results of one classifier and ε, averaged over seeds."""
    first = rows[0]
    return PrivateHead(
        task=task,
        hidden=hidden,
        epsilon=epsilon,
        accuracy=_mean(rows, "accuracy"),
        change=_mean(rows, "accuracy_change"),
        auc=_mean(rows, "auc"),  # all seeds split the texts of one task
        control=rows.mean("control_auc"),
        strongest=tuple(sorted(rows.distinct("strongest"))),
        n_train=int(first["n_train"]),
        n_members=int(first["n_members"]),
        n_seeds=len(rows.distinct("seed")),
        spent=_largest_spent(rows, ""),
        attacked=_largest_spent(rows, "attacked_"),
    )


def _private_model(rows: ResultTable) -> PrivateModel:
    """Return the results of the language models at one ε, averaged over seeds."""
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
    """Return the largest ε spent over seeds; None without a guarantee."""
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


_READERS: Mapping[str, Callable[[ResultTable], Summary]] = {
    "adversarial": _summarise_adversarial,
    "constrained": _summarise_under_noise,
    "adaptive": _summarise_pretraining,
    "private-training": _summarise_private,
}


def _mean(rows: ResultTable, measure: str) -> Score:
    """Return the mean over seeds, which share their test texts."""
    return rows.mean(measure, is_same_sample=True)


def _lowest_version(rows: ResultTable) -> int:
    """Return the lowest study version among rows."""
    return min(int(row.get("versions", {}).get("study", 1)) for row in rows)


def _setting_key(row: Row) -> str:
    """Return the JSON text that identifies a row's setting, to detect duplicates."""
    return json.dumps([noise_schedule(row), *(row.get(name) for name in _PLACE)], sort_keys=True)
