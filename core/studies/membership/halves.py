"""Random halves of a corpus: train on one, and measure membership attacks on both.

Members and non-members come from one draw of the same documents, so they differ in nothing else.
The attacker knows a tenth of either half by name: everything learned, thresholds included, is
learned there, and none of these documents is scored.
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

from leakscope.core.attacks.membership.predictability import blind_baseline
from leakscope.core.attacks.membership.ranking import Ranking, shuffled
from leakscope.core.attacks.membership.rates import RATES
from leakscope.core.attacks.membership.roc import (
    GroupThresholds,
    advantage,
    auc,
    auc_difference,
    tpr_at_fpr,
)
from leakscope.core.attacks.membership.score_distribution import score_counts
from leakscope.core.corpora import Columns, Corpus, load_corpus, split_reference
from leakscope.core.encoders.fitted import load_fitted, make_encoder, save_encoder
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import FittedEncoderSpec, settings_of
from leakscope.core.storage.artifacts import META
from leakscope.core.studies.domains import open_corpus
from leakscope.core.studies.membership.classifier_rows import with_blind_baseline
from leakscope.core.studies.membership.compared import GAIN
from leakscope.core.studies.runner import cell_key

LEAST_UNITS = 2
"""The fewest member and non-member documents that a row needs."""

N_DEALS = 40
"""The number of random relabellings that the control averages over."""


@lru_cache(maxsize=2)
def open_documents(target: str, document_column: str) -> Corpus:
    """Load a corpus; rows with the same value in a column, such as a book, form one document."""
    path, column = split_reference(target)
    if not document_column:
        found: Corpus = open_corpus(target)
        return found
    return load_corpus(Path(path), columns=Columns(text=column, document=document_column))


def contents_of(target: str, document_column: str) -> list[str]:
    """Return a list with one digest: that of a corpus's documents."""
    return [open_documents(target, document_column).content_hash[:16]]


def check_contents(cell: Cell) -> None:
    """Raise InvalidInputError unless the corpus has the content recorded at the start.

    Raises
    ------
    InvalidInputError
        The file at the path is a different one.
    """
    if contents_of(cell["target"], cell["document_column"]) != cell["contents"]:
        raise InvalidInputError(
            f"{cell['target']} has changed since the study was started. Copy the same file "
            "to every machine, or start the study again."
        )


@dataclass(frozen=True, eq=False)
class Halves:
    """Which documents are trained on, and which the attacker knows the membership of.

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
    halves = _label_some(members, seed, labelled_share)
    if not _can_be_scored(halves):
        raise InvalidInputError(
            f"Corpus {corpus.name!r} has {len(members)} documents: too few to train on half of "
            "them and label some of each half. Give more documents, or name the column that "
            "groups rows into documents."
        )
    return halves


def draw_null_halves(
    halves: Halves, seed: int, labelled_share: float
) -> tuple[NDArray[np.int64], Halves] | None:
    """Return the non-members' rows, half of them called members at random; None if too few.

    The model knows none of them, so any attack success among them is not a leak of the model. They
    are split before anything is drawn, learned or scored: the whole experiment runs on the
    pretended membership, which shows leaks of the procedure itself. No other model is trained.

    Returns
    -------
    tuple or None
        Rows of the corpus, and their halves in that order; None of too few documents.
    """
    rows = np.flatnonzero(~halves.members)
    dealt = np.random.default_rng([seed, 16]).permutation(len(rows)) < len(rows) // 2
    found = _label_some(dealt, seed, labelled_share)
    return (rows, found) if _can_be_scored(found) else None


def _label_some(members: NDArray[np.bool_], seed: int, labelled_share: float) -> Halves:
    """Build `Halves` from the members, with a random share of either half labelled."""
    rng = np.random.default_rng([seed, 13])
    labelled = np.zeros(len(members), dtype=bool)
    for side in (True, False):
        own = rng.permutation(np.flatnonzero(members == side))
        labelled[own[: max(1, round(labelled_share * len(own)))]] = True
    return Halves(members, labelled)


def _can_be_scored(halves: Halves) -> bool:
    """Return whether either half has enough unlabelled documents to be scored."""
    is_left = ~halves.labelled
    sides = (halves.members & is_left, ~halves.members & is_left)
    return min(int(side.sum()) for side in sides) >= LEAST_UNITS


def with_document_baseline(rows: Sequence[Row], corpus: Corpus, halves: Halves) -> list[Row]:
    """Return rows; those over all deciles get the blind baseline of whole documents."""
    found = blind_baseline([d.text for d in corpus.documents], halves.members)
    of_all = [row["decile"] == 0 and row["labels"] == "true" for row in rows]
    return [
        with_blind_baseline([row], found)[0] if is_told else row
        for row, is_told in zip(rows, of_all, strict=True)
    ]


def all_encoder_settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of an encoder that studies train: given ones, else defaults."""
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
    """Load a cell's trained encoder, or train it by `fit` and save it, resuming if stopped.

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
    except ArtifactError:  # the checkpoint is damaged: start over
        shutil.rmtree(checkpoint, ignore_errors=True)
        fitted = fit(make_encoder(spec), str(checkpoint))
    save_encoder(fitted, place, training=identity)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return fitted


@dataclass(frozen=True, eq=False)
class Scored:
    """Samples with their scores, membership, documents and groups such as deciles.

    Attributes
    ----------
    scores : ndarray of float64, shape (n,)
    members, labelled : ndarray of bool, shape (n,)
    units, groups : ndarray of int64, shape (n,)
        The document of each sample, and its group; group 0 is of all samples.
    """

    scores: NDArray[np.float64]
    members: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    units: NDArray[np.int64]
    groups: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReferenceScores:
    """The scores of a reference attack on the same samples, in the same order.

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
    beside: ReferenceScores | None = None,
    **shared: Any,
) -> list[Row]:
    """Return a row of attack scores per group, and a control row with shuffled membership.

    Thresholds come from the labelled samples, which are not scored. A group with
    fewer than two documents of a kind has no row.

    Parameters
    ----------
    facts : mapping of int to mapping
        Of each group, beside the facts that all `shared`.
    beside : ReferenceScores, optional
        The reference attack, whose documents are resampled together with this one's.
    """
    known = found.labelled
    cuts = GroupThresholds.fit(found.scores[known], found.members[known], found.groups[known])
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
        measured = [("true", *_attack_scores(ranking, decided[own], seed))]
        if beside is not None:
            other = replace(ranking, scores=beside.scores[own])
            gain = auc_difference(ranking, other, seed=seed)
            measured[0][1][f"{GAIN}: {beside.name}"] = gain
        if group == 0:
            measured.append(("shuffled", *_shuffled_scores(ranking, decided[own], seed)))
        for labels, scores, rates in measured:
            more: dict[str, Any] = {"labels": labels, **rates}
            if group == 0 and labels == "true":
                more["score_counts"] = score_counts(ranking)
            sizes = {"n": len(members), "n_documents": len(np.unique(units))}
            rows.append(Row(scores=scores, facts={**sizes, **told, **more}))
    return rows


def _attack_scores(
    ranking: Ranking, decided: NDArray[np.bool_], seed: int
) -> tuple[dict[str, Score], dict[str, list[float]]]:
    """Compute AUC, advantage and low-FPR rates; also return which rates are unresolvable."""
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


def _shuffled_scores(
    ranking: Ranking, decided: NDArray[np.bool_], seed: int
) -> tuple[dict[str, Score], dict[str, list[float]]]:
    """Return the control's scores: mean AUC and advantage over random relabellings.

    The interval is that of the mean: one relabelling says little, because documents differ.
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
