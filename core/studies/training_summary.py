"""What the studies of training for privacy measured, read from the rows that ship, part by part."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from core.assets import ASSETS
from core.errors import ArtifactError, InvalidInputError
from core.results import Score
from core.studies.adversarial_tables import settings_in, verdicts
from core.studies.in_order import TOKEN, change_of, changes_of
from core.studies.named_texts import NamedTexts
from core.studies.odds import arm_of, releases_of
from core.studies.privacy_paper import ADAPTED, CONSTRAINED, NULL
from core.studies.private_points import PrivateHead, PrivateModel, PrivateTraining, Spent
from core.studies.provenance import Provenance
from core.studies.rows import Row, mean_row_score
from core.studies.tables import read_rows
from core.studies.training_points import (
    Adapted,
    Adversarial,
    Basis,
    Constrained,
    Pretrained,
    UnderNoise,
)

__all__ = ["FILES", "SHIPPED", "Summary", "load_part", "tables_of"]

SHIPPED = ASSETS / "training"

FILES = {
    "adversarial": "adversarial.json",
    "constrained": "constrained.json",
    "adaptive": "adaptive.json",
    "private-training": "private.json",
}
"""Where the page finds the rows of each study, and those of `NAME-*.json` beside: what was measured
of other settings by a command of its own."""

_PLACE = (
    "encoder", "hides", "defence_kind", "weight", "when", "attacker", "epoch", "task", "reader",
    "defence", "objective", "part", "epsilon", "eta", "classifier_settings", "seed",
)  # fmt: skip
"""What tells settings apart, of whichever study; what a study has no word for is None."""

Summary = Adversarial | UnderNoise | Pretrained | PrivateTraining


def tables_of(study: str, folder: Path) -> dict[str, Path]:
    """Return the files of a study's rows by the name of their table in docs/results."""
    path = folder / FILES[study]
    beside = sorted(folder.glob(f"{path.stem}-*.json"))
    return {f"{study}{each.stem.removeprefix(path.stem)}": each for each in (path, *beside)}


def load_part(study: str, folder: Path = SHIPPED) -> Summary:
    """Read what one of the studies wrote; cells that failed are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, of another study, the same rows twice, or without a cell that was
        measured; the message names the file.
    """
    tables = tables_of(study, folder)
    by_table: dict[str, list[Row]] = {}
    for table, path in tables.items():
        found = [row for row in read_rows(path, study) if not row.error]
        before = {_place(row) for rows in by_table.values() for row in rows}
        if before & {_place(row) for row in found}:
            raise ArtifactError(
                f"{path} measures settings that another table of {study} holds already: together "
                "they would count twice. Move one of them away."
            )
        if found:
            by_table[table] = found
    try:
        if not by_table:
            raise ValueError("nothing was measured")
        versions = {table: _version(rows) for table, rows in by_table.items()}
        rows = [row for found in by_table.values() for row in found]
        read = replace(_READERS[study](rows), versions=versions)
        return _with_tables(read, by_table) if isinstance(read, Adversarial) else read
    except (ArithmeticError, AttributeError, InvalidInputError, LookupError, TypeError,
            ValueError) as error:  # fmt: skip
        named = " or ".join(map(str, tables.values()))
        raise ArtifactError(
            f"{named} does not hold rows of `python -m core study {study}`. Make it anew."
        ) from error


def _adversarial(rows: Sequence[Row]) -> Adversarial:
    after = [row for row in rows if row["when"] == "after"]
    found = Adversarial(
        settings=tuple(settings_in(rows)),
        verdicts=tuple(verdicts(rows)),
        families=_families(after),
        label=str(rows[0]["label"]),
        bases={(str(encoder), str(hides)): _basis(own)
               for (encoder, hides), own in _by(rows, "encoder", "hides").items()},
        provenances=_provenances(rows),
    )  # fmt: skip
    if not any(each.after for each in found.settings):
        raise ValueError("no fresh attacker came")
    return found


def _basis(rows: Sequence[Row]) -> Basis:
    first = rows[0]
    sizes: dict[str, Any] = {
        name: int(first[name]) for name in ("n_labels", "n_defence", "n_known", "n_targets")
    }
    # Asked for were so many; labels may have fewer, and near-duplicates are not attacked.
    for name, counted in (("n_known", "n_known_texts"), ("n_targets", "n")):
        found = [int(row[counted]) for row in rows if row["when"] == "after" and counted in row]
        sizes[name] = round(fmean(found)) if found else sizes[name]
    return Basis(**sizes, n_seeds=_n_seeds(rows), provenances=_provenances(rows))


def _with_tables(found: Adversarial, by_table: Mapping[str, Sequence[Row]]) -> Adversarial:
    """Return the same with the table of each encoder's figures."""
    tables = {(str(row["encoder"]), str(row["hides"])): table
              for table, rows in by_table.items() for row in rows}  # fmt: skip
    bases = {place: replace(basis, table=tables[place]) for place, basis in found.bases.items()}
    return replace(found, bases=bases)


def _families(rows: Sequence[Row]) -> dict[str, str]:
    """Return each fresh attacker's family; of two of one family also what they begin with."""
    found = {str(row["attacker"]): row for row in rows}
    families = [row["family"] for row in found.values()]
    return {
        name: str(row["family"])
        if families.count(row["family"]) == 1
        else f"{row['family']}, {'as it ships, tuned' if row['starts_shipped'] else 'trained anew'}"
        for name, row in found.items()
    }


def _constrained(rows: Sequence[Row]) -> UnderNoise:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = (*(row[name] for name in ("task", "reader", "defence", "eta")), releases_of(row))
        groups.setdefault(key, []).append(row)
    points = [_constrained_at(key, own) for key, own in groups.items()]
    return UnderNoise(tuple(points), _provenances(rows))


def _constrained_at(key: tuple[Any, ...], rows: Sequence[Row]) -> Constrained:
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
        n_seeds=_n_seeds(rows),
        releases=releases,
    )


def _adaptive(rows: Sequence[Row]) -> Pretrained:
    groups = _by(rows, "task", "defence", "eta", "objective")
    points = [_adapted(key, own) for key, own in groups.items()]
    return Pretrained(tuple(points), _provenances(rows))


def _adapted(key: tuple[Any, ...], rows: Sequence[Row]) -> Adapted:
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
        n_seeds=_n_seeds(rows),
        releases=releases_of(first),
    )


def _private(rows: Sequence[Row]) -> PrivateTraining:
    heads = [row for row in rows if row["part"] == "classifier"]
    models = [row for row in rows if row["part"] == "language model"]
    groups: dict[tuple[str, int, float], list[Row]] = {}
    for row in heads:
        key = (NamedTexts.of(row["task"]).name, int(row["classifier_settings"]["hidden"]),
               _epsilon(row))  # fmt: skip
        groups.setdefault(key, []).append(row)
    delta = rows[0]["classifier_settings"] if heads else rows[0]
    return PrivateTraining(
        heads=tuple(_head(*key, own) for key, own in groups.items()),
        models=tuple(sorted((_model(own) for own in _by(models, "epsilon").values()),
                            key=lambda model: model.epsilon)),
        delta=float(delta["delta"]),
        provenances=_provenances(rows),
    )  # fmt: skip


def _epsilon(row: Row) -> float:
    """Return the ε that was asked for; 0 stands for no promise, which is the weakest of all."""
    return float(row["epsilon"]) or math.inf


def _head(task: str, hidden: int, epsilon: float, rows: Sequence[Row]) -> PrivateHead:
    first = rows[0]
    return PrivateHead(
        task=task,
        hidden=hidden,
        epsilon=epsilon,
        accuracy=_mean(rows, "accuracy"),
        change=_mean(rows, "accuracy_change"),
        auc=mean_row_score(rows, "auc", is_same_sample=True),  # dealt out of one task
        control=mean_row_score(rows, "control_auc"),
        strongest=tuple(sorted({str(row["strongest"]) for row in rows})),
        n_train=int(first["n_train"]),
        n_members=int(first["n_members"]),
        n_seeds=_n_seeds(rows),
        spent=_spent(rows, ""),
        attacked=_spent(rows, "attacked_"),
    )


def _model(rows: Sequence[Row]) -> PrivateModel:
    first = rows[0]
    bits = [float(row["bits_a_token"]) for row in rows]
    return PrivateModel(
        epsilon=_epsilon(first),
        exposure=mean_row_score(rows, "exposure"),
        controls=mean_row_score(rows, "control_exposure"),
        bits_a_token=sum(bits) / len(bits),
        n_train=int(first["n_train"]),
        n_canaries=len(first["formats"]),
        insertions=int(first["insertions"]),
        n_seeds=_n_seeds(rows),
        spent=_spent(rows, ""),
        of_copies=None if first["epsilon_canary"] is None else float(first["epsilon_canary"]),
    )


def _spent(rows: Sequence[Row], before: str) -> Spent | None:
    """Return what was spent, of all seeds the most; None where nothing was promised."""
    most = max(rows, key=lambda row: row[f"{before}epsilon_opacus"] or 0.0)
    if most[f"{before}epsilon_opacus"] is None:
        return None
    tight = most[f"{before}epsilon_tight"]
    return Spent(
        opacus=float(most[f"{before}epsilon_opacus"]),
        dp_accounting=float(most[f"{before}epsilon_dp_accounting"]),
        tight=None if tight is None else float(tight),
        noise_multiplier=float(most[f"{before}noise_multiplier"]),
        n_steps=int(most[f"{before}n_steps"]),
        of_group=most.facts.get(f"{before}epsilon_group"),
    )


_READERS: Mapping[str, Callable[[Sequence[Row]], Summary]] = {
    "adversarial": _adversarial,
    "constrained": _constrained,
    "adaptive": _adaptive,
    "private-training": _private,
}


def _by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by what they have in common, in their order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _mean(rows: Sequence[Row], measure: str) -> Score:
    """Return the mean over seeds, which have the same test texts."""
    return mean_row_score(rows, measure, is_same_sample=True)


def _version(rows: Sequence[Row]) -> int:
    """Return the least version of the study that measured any of the rows."""
    return min(int(row.get("versions", {}).get("study", 1)) for row in rows)


def _place(row: Row) -> str:
    """Return what a row is of, whatever it says: two of the same would count twice."""
    return json.dumps([arm_of(row), *(row.get(name) for name in _PLACE)], sort_keys=True)


def _n_seeds(rows: Sequence[Row]) -> int:
    return len({row["seed"] for row in rows})


def _provenances(rows: Sequence[Row]) -> tuple[Provenance | None, ...]:
    return tuple(row.provenance for row in rows)
