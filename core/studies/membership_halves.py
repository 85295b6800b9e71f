"""One random half of a corpus's documents to train on, and what attacks find of which half it was.

Members and others come of one draw of the same documents, so that they differ in nothing else. The
attacker knows a tenth of either half by name: what he learns, thresholds included, he learns there,
and nothing of these documents is scored.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.blind import blind_baseline
from core.attacks.membership.drawn import score_counts
from core.attacks.membership.ranking import Ranking, shuffled
from core.attacks.membership.rates import RATES
from core.attacks.membership.roc import advantage, auc, auc_difference, tpr_at_fpr
from core.attacks.membership.thresholds import Thresholds
from core.corpora import Columns, Corpus, load_corpus, split_reference
from core.encoders.fitted import load_fitted, make_encoder, save_encoder
from core.encoders.registry import ENCODERS
from core.errors import ArtifactError, InvalidInputError
from core.results import Interval, Score
from core.specs import FittedEncoderSpec, settings_of
from core.store import META
from core.studies.domains import open_corpus
from core.studies.membership_classifier_rows import with_blind
from core.studies.membership_compared import GAIN
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key

__all__ = [
    "Beside",
    "Halves",
    "Scored",
    "check_contents",
    "contents_of",
    "deal_strangers",
    "draw_halves",
    "group_rows",
    "open_documents",
    "settings_told",
    "trained_encoder",
    "with_blind_of_documents",
]

LEAST_UNITS = 2
"""Documents of either kind that a row has to be of."""

N_DEALS = 40
"""Draws of who is a member by lot, of which the control is the mean."""


@lru_cache(maxsize=2)
def open_documents(target: str, document_column: str) -> Corpus:
    """Return a corpus whose rows of one value in a column, such as a book's, are one document."""
    path, column = split_reference(target)
    if not document_column:
        found: Corpus = open_corpus(target)
        return found
    return load_corpus(Path(path), columns=Columns(text=column, document=document_column))


def contents_of(target: str, document_column: str) -> list[str]:
    """Return what identifies the documents of a corpus."""
    return [open_documents(target, document_column).content_hash[:16]]


def check_contents(cell: Cell) -> None:
    """Check that the corpus holds what it held where the study was begun.

    Raises
    ------
    InvalidInputError
        Another file lies at the path.
    """
    if contents_of(cell["target"], cell["document_column"]) != cell["contents"]:
        raise InvalidInputError(
            f"{cell['target']} holds other texts than where the study was begun. Copy the same "
            "file to every machine, or start the study again."
        )


@dataclass(frozen=True, eq=False)
class Halves:
    """Which documents are trained on, and which of either half the attacker knows by name.

    Attributes
    ----------
    members, labelled : ndarray of bool, shape (n_documents,)
        In the order of the corpus.
    """

    members: NDArray[np.bool_]
    labelled: NDArray[np.bool_]


def draw_halves(corpus: Corpus, seed: int, labelled_share: float) -> Halves:
    """Draw half of the documents to train on, and a share of either half that is labelled.

    Raises
    ------
    InvalidInputError
        Too few documents to label some of either half and score others.
    """
    chosen, _ = corpus.split_by_document((0.5, 0.5), seed=seed)
    ids = {document.id for document in chosen.documents}
    members = np.array([document.id in ids for document in corpus.documents])
    halves = _some_labelled(members, seed, labelled_share)
    if not _can_be_scored(halves):
        raise InvalidInputError(
            f"Corpus {corpus.name!r} has {len(members)} documents: too few to train on half of "
            "them and label some of either half. Give more documents, or name the column that "
            "tells which rows are one document."
        )
    return halves


def deal_strangers(
    halves: Halves, seed: int, labelled_share: float
) -> tuple[NDArray[np.int64], Halves] | None:
    """Return documents that were not trained on, and half of them as if they had been.

    What is found among them is no leak of the model: it knows none of them. They are dealt before
    anything is drawn, learned or scored, so that all of an experiment that knows who is a member is
    run, and what leaks of it is seen. No other model is trained for that.

    Returns
    -------
    tuple or None
        Rows of the corpus, and their halves in that order; None of too few documents.
    """
    rows = np.flatnonzero(~halves.members)
    dealt = np.random.default_rng([seed, 16]).permutation(len(rows)) < len(rows) // 2
    found = _some_labelled(dealt, seed, labelled_share)
    return (rows, found) if _can_be_scored(found) else None


def _some_labelled(members: NDArray[np.bool_], seed: int, labelled_share: float) -> Halves:
    """Return halves, a share of either labelled, by lot."""
    rng = np.random.default_rng([seed, 13])
    labelled = np.zeros(len(members), dtype=bool)
    for side in (True, False):
        own = rng.permutation(np.flatnonzero(members == side))
        labelled[own[: max(1, round(labelled_share * len(own)))]] = True
    return Halves(members, labelled)


def _can_be_scored(halves: Halves) -> bool:
    """Return whether enough documents of either half are not labelled."""
    is_left = ~halves.labelled
    sides = (halves.members & is_left, ~halves.members & is_left)
    return min(int(side.sum()) for side in sides) >= LEAST_UNITS


def with_blind_of_documents(rows: Sequence[Row], corpus: Corpus, halves: Halves) -> list[Row]:
    """Return rows, those of everything with what the documents' texts alone tell of the halves."""
    found = blind_baseline([d.text for d in corpus.documents], halves.members)
    of_all = [row["decile"] == 0 and row["labels"] == "true" for row in rows]
    return [
        with_blind([row], found)[0] if is_told else row
        for row, is_told in zip(rows, of_all, strict=True)
    ]


def settings_told(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of an encoder that is fitted here, its defaults too."""
    encoder = make_encoder(FittedEncoderSpec.of(name, dict(given)))
    aside = {"device", *ENCODERS[name].__dict__.get("fixed", {})}
    return {
        setting: getattr(encoder, setting)
        for setting in settings_of(type(encoder))
        if setting not in aside
    }


def trained_encoder(
    name: str, settings: Mapping[str, Any], told: Cell, fit: Callable[[Any, str], Any], folder: Path
) -> Any:
    """Return an encoder that is trained once for a cell; a training that was killed goes on.

    Parameters
    ----------
    settings : mapping
        Of the encoder.
    told : dict
        What else decides its training: the file, its content and the draw.
    fit : callable
        Trains an encoder, given it and a folder for checkpoints.
    folder : Path
        Trained encoders are kept below it.
    """
    version = ENCODERS[name].version
    identity = {**told, "encoder": name, "settings": dict(settings), "version": version}
    place = folder / "encoders" / f"{name}-{cell_key(identity)}"
    if (place / META).exists():
        try:
            return load_fitted(place, name)
        except ArtifactError:  # damaged: it is trained again
            pass
    checkpoint = place.with_name(f"{place.name}.checkpoint")
    spec = FittedEncoderSpec.of(name, dict(settings))
    try:
        fitted = fit(make_encoder(spec), str(checkpoint))
    except ArtifactError:  # the checkpoint is damaged: it begins anew
        shutil.rmtree(checkpoint, ignore_errors=True)
        fitted = fit(make_encoder(spec), str(checkpoint))
    save_encoder(fitted, place, training=identity)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return fitted


@dataclass(frozen=True, eq=False)
class Scored:
    """Samples with their scores, in groups such as deciles.

    Attributes
    ----------
    scores : ndarray of float64, shape (n,)
    members, labelled : ndarray of bool, shape (n,)
    units, groups : ndarray of int64, shape (n,)
        The document of each sample; the group, 0 where it stands for all.
    """

    scores: NDArray[np.float64]
    members: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    units: NDArray[np.int64]
    groups: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Beside:
    """What another attack says of the same samples, in their order.

    Attributes
    ----------
    name : str
        Of the other attack.
    scores : ndarray of float64, shape (n,)
    """

    name: str
    scores: NDArray[np.float64]


def group_rows(
    found: Scored,
    facts: Mapping[int, Mapping[str, Any]],
    seed: int,
    *,
    beside: Beside | None = None,
    **shared: Any,
) -> list[Row]:
    """Return a row for each group, and the control: that of all with members by lot.

    Thresholds are those of the labelled samples; what is labelled is not scored. A group with
    fewer than two documents of a kind has no row.

    Parameters
    ----------
    facts : mapping of int to mapping
        Of each group, beside the facts that all `shared`.
    beside : Beside, optional
        The attack that this one is held against, whose documents are drawn with its own.
    """
    known = found.labelled
    cuts = Thresholds.learned(found.scores[known], found.members[known], found.groups[known])
    decided = cuts.decide(found.scores, found.groups)
    rows = []
    for group in np.unique(found.groups[~known]).tolist():
        own = ~known & (found.groups == group)
        told = {**shared, "decile": group, **facts.get(group, {})}
        units = found.units[own]
        members = found.members[own]
        if min(len(np.unique(units[members == side])) for side in (True, False)) < LEAST_UNITS:
            continue
        ranking = Ranking(found.scores[own], members, units.tolist())
        measured = [("true", *_measured(ranking, decided[own], seed))]
        if beside is not None:
            other = replace(ranking, scores=beside.scores[own])
            gain = auc_difference(ranking, other, seed=seed)
            measured[0][1][f"{GAIN}: {beside.name}"] = gain
        if group == 0:
            measured.append(("shuffled", *_by_lot(ranking, decided[own], seed)))
        for labels, scores, rates in measured:
            more: dict[str, Any] = {"labels": labels, **rates}
            if group == 0 and labels == "true":
                more["score_counts"] = score_counts(ranking)
            sizes = {"n": len(members), "n_documents": len(np.unique(units))}
            rows.append(Row(scores=scores, facts={**sizes, **told, **more}))
    return rows


def _measured(
    ranking: Ranking, decided: NDArray[np.bool_], seed: int
) -> tuple[dict[str, Score], dict[str, list[float]]]:
    """Return what a ranking and decisions are worth, and which rates are coarse or unknown."""
    measured = {
        "auc": auc(ranking, seed=seed),
        "advantage": advantage(decided, ranking.members, ranking.units, seed=seed),
    }
    at_rates = [tpr_at_fpr(ranking, rate) for rate in RATES]
    measured |= {f"tpr_at_{at.fpr:g}": at.tpr for at in at_rates if at.is_shown}
    return measured, {
        "not_resolvable": [at.fpr for at in at_rates if not at.is_shown],
        "coarse": [at.fpr for at in at_rates if at.resolution == "coarse"],
    }


def _by_lot(
    ranking: Ranking, decided: NDArray[np.bool_], seed: int
) -> tuple[dict[str, Score], dict[str, list[float]]]:
    """Return the control: means over deals in which documents are members by lot.

    The interval is that of the mean: one deal says little, since documents differ among each other.
    """
    found: dict[str, list[float]] = {"auc": [], "advantage": []}
    for deal in range(N_DEALS):
        dealt = shuffled(ranking.members, ranking.units, seed=N_DEALS * seed + deal)
        for name, scores in (("auc", ranking.scores), ("advantage", decided.astype(np.float64))):
            area = auc(Ranking(scores, dealt, ranking.units), n_resamples=1).value
            found[name].append(area if name == "auc" else 2 * area - 1)
    chances, n = {"auc": 0.5, "advantage": 0.0}, len(ranking.members)
    means = {}
    for name, values in found.items():
        mean, half = float(np.mean(values)), 1.96 * float(np.std(values, ddof=1)) / N_DEALS**0.5
        means[name] = Score(mean, Interval(mean - half, mean + half), n, chances[name])
    return means, {"not_resolvable": [], "coarse": []}
