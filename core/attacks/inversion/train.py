"""Train an attack so that it can be stopped, resumed, scored on held-out texts and stored."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.evaluation import evaluate
from core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from core.attacks.inversion.shipped import load_attack, save_attack
from core.corpora.near_duplicates import near_duplicates
from core.corpora.splits import come_in_documents, hold_out
from core.errors import ArtifactError, InvalidInputError
from core.protocols import Encoder, InversionAttack, OnProgress, TrainedAttack, no_progress
from core.specs import AttackSpec, settings_of
from core.store import META, check_writable, clear_leftovers, read_json
from core.text import check_texts
from core.training.record import WorkClock, hardware, versions

__all__ = ["HeldOut", "TrainingPlan", "held_out_scores", "split_held_out", "train_attack"]


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """What to train on what; two runs of one plan and encoder end with the same attack.

    Parameters
    ----------
    attack : AttackSpec
    corpus, corpus_hash : str
        Name and content hash of the texts.
    seed : int
        Of the drawing, of the held-out split and, where the attack has one, of the attack.
    limit : int or None
        Number of texts drawn, the held-out ones included.
    n_held_out : int
        Texts kept apart for scoring; at most a tenth.
    defence : str
        What the encoder is behind, by its name with its settings; empty where nothing is changed.
    undefended_fingerprint : str
        Of the encoder without it.
    """

    attack: AttackSpec
    corpus: str
    corpus_hash: str
    seed: int = 0
    limit: int | None = None
    n_held_out: int = 500
    defence: str = ""
    undefended_fingerprint: str = ""

    def identity(self, encoder: Encoder) -> dict[str, Any]:
        """Return what tells this run from another, JSON-able."""
        return {
            "attack": self.attack.name,
            "settings": dict(self.attack.settings),
            "encoder": encoder.name,
            "encoder_fingerprint": encoder.fingerprint,
            "corpus": self.corpus,
            "corpus_hash": self.corpus_hash,
            "seed": self.seed,
            "limit": self.limit,
            "n_held_out": self.n_held_out,
            **self._behind(),
        }

    def _behind(self) -> dict[str, str]:
        if not self.defence:  # as all records were before there were defences
            return {}
        return {"defence": self.defence, "undefended_fingerprint": self.undefended_fingerprint}


@dataclass(frozen=True)
class HeldOut:
    """Texts that an attack is scored on and was not trained on.

    Attributes
    ----------
    texts : tuple of str
    documents : tuple of str or None
        The document of each, where several came from one and nothing of it was trained on: then
        intervals are of documents.
    n_near_duplicates : int
        Texts that were left out because they nearly repeat one of the training.
    """

    texts: tuple[str, ...]
    documents: tuple[str, ...] | None = None
    n_near_duplicates: int = 0


def train_attack(
    plan: TrainingPlan,
    encoder: Encoder,
    texts: Sequence[str],
    out: Path,
    on_progress: OnProgress = no_progress,
    *,
    documents: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Train the attack of a plan, write it to `out` and return its training record.

    A run that was killed resumes from `out/checkpoint`; one that had finished is returned as it
    is. `core.encoders.cache.CachedEncoder` keeps the vectors over a kill, too.

    Parameters
    ----------
    documents : sequence of str, optional
        The document of each text, where several come from one: held-out texts are of others than
        those trained on.

    Returns
    -------
    dict
        The plan, n_texts, seconds (of all parts of a resumed run), hardware, library versions
        and held-out scores, with what their intervals are of (`unit`, `n_documents`).

    Raises
    ------
    InvalidInputError
        Too few texts, or `out` holds something else.
    StorageError
        The disk is full, and what was finished before is kept; or nothing can be written to
        `out`, which is told before the work.
    """
    identity = plan.identity(encoder)
    finished = _finished_record(out, identity, on_progress)
    if finished is not None:
        _tidy(out)
        return finished
    known, held_out = split_held_out(texts, plan, documents)
    attack = make_attack(_seeded(plan))
    if not isinstance(attack, TrainedAttack):
        raise InvalidInputError(f"attack {plan.attack.name!r} learns nothing that can be stored.")
    clock = WorkClock(out / "checkpoint" / "run.json", identity, on_progress)
    check_writable(out)
    attack.fit(encoder, known, on_progress=clock.report, checkpoint_dir=str(out / "checkpoint"))
    clock.save()
    record = {
        **identity,
        "n_texts": len(known),
        "seconds": round(clock.seconds, 1),
        "hardware": hardware(encoder),
        "versions": versions(),
        "held_out": held_out_scores(attack, encoder, held_out, plan.seed, on_progress),
    }
    save_attack(attack, out, training=record)
    load_attack(out)  # finished means that all of it reads back
    _tidy(out)
    return record


def _tidy(out: Path) -> None:
    """Remove what a finished run needs no more, and what runs that were killed left."""
    shutil.rmtree(out / "checkpoint", ignore_errors=True)
    clear_leftovers(out)


def split_held_out(
    texts: Sequence[str], plan: TrainingPlan, documents: Sequence[str] | None = None
) -> tuple[list[str], HeldOut]:
    """Return the training texts and the held-out ones, without repetition between them.

    Held-out texts are of documents that nothing is trained on, where these are told, and of many
    (`core.corpora.splits.hold_out`). Those that nearly repeat one of the training are in neither
    part.

    Raises
    ------
    InvalidInputError
        Fewer than 10 different texts are left, or a text cannot be encoded.
    """
    if plan.limit is not None and plan.limit < 1:
        raise InvalidInputError(f"limit must be at least 1, got {plan.limit}.")
    if plan.n_held_out < 1:
        raise InvalidInputError(f"held-out must be at least 1, got {plan.n_held_out}.")
    distinct = list(dict.fromkeys(check_texts(texts)))
    order = np.random.default_rng(plan.seed).permutation(len(distinct))[: plan.limit].tolist()
    if len(order) < 10:
        raise InvalidInputError(
            f"Training needs at least 10 different texts, got {len(order)}. "
            "Give a larger corpus or limit."
        )
    n_held_out = min(plan.n_held_out, len(order) // 10)
    document_of = dict(zip(texts, documents or texts, strict=True))
    own = [document_of[text] for text in distinct]
    held_out, known = hold_out(order, own, n_held_out)
    training = [distinct[i] for i in sorted(known)]
    repeated = near_duplicates([distinct[i] for i in sorted(held_out)], training)
    left = [row for place, row in enumerate(sorted(held_out)) if place not in repeated]
    if not left:
        raise InvalidInputError(
            "Each held-out text nearly repeats one that would be trained on: no score would say "
            "what is read of others. Give a corpus of different texts."
        )
    is_apart = {own[i] for i in known}.isdisjoint(own[i] for i in held_out)
    has_documents = is_apart and come_in_documents([own[i] for i in order])
    chosen = tuple(own[i] for i in left) if has_documents else None
    return training, HeldOut(tuple(distinct[i] for i in left), chosen, len(repeated))


def _seeded(plan: TrainingPlan) -> AttackSpec:
    """Give the plan's seed to an attack that has one, unless the plan sets it apart."""
    entry = INVERSION_ATTACKS.get(plan.attack.name)
    settings = dict(plan.attack.settings)
    if entry is not None and "seed" in settings_of(entry.kind):
        settings.setdefault("seed", plan.seed)
    return AttackSpec.of(plan.attack.name, settings)


def _finished_record(
    out: Path, identity: dict[str, Any], on_progress: OnProgress
) -> dict[str, Any] | None:
    """Return the record of a finished run of the same identity, or None if there is none.

    A run whose weights are gone or damaged is not finished: it is trained anew.
    """
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; give a folder to write to.")
    if not (out / META).exists():
        return None
    record = _record_in(out)
    if {key: record.get(key) for key in identity} != identity:
        raise InvalidInputError(f"{out} holds another trained attack; choose another folder.")
    try:
        load_attack(out)
        if missing := _TOLD - record.keys():
            raise ArtifactError(f"{out / META} does not tell {', '.join(sorted(missing))}.")
    except ArtifactError as error:
        on_progress(0.0, f"Training anew: {error}")
        return None
    return record


_TOLD = {"n_texts", "seconds", "hardware", "versions", "held_out"}
"""What the record of a finished run holds beside its identity."""


def _record_in(out: Path) -> dict[str, Any]:
    meta = read_json(out / META)
    record = meta.get("training") if isinstance(meta, dict) else None
    return record if isinstance(record, dict) else {}


def held_out_scores(
    attack: InversionAttack,
    encoder: Encoder,
    held_out: HeldOut,
    seed: int,
    on_progress: OnProgress,
) -> dict[str, Any]:
    """Score the attack and the prior-only attacker on the held-out texts."""
    result = evaluate(
        attack,
        encoder,
        held_out.texts,
        seed=seed,
        documents=held_out.documents,
        name="held out",
        on_progress=on_progress,
    )
    scores = result.scores
    told: dict[str, Any] = {"n": scores.n, "unit": scores.unit}
    if scores.n_documents is not None:
        told["n_documents"] = scores.n_documents
    return {
        **told,
        "precision": scores.precision,
        "recall": scores.recall,
        **scores.score("token_set_f1").to_record("token_set_f1"),
        "weighted_f1": scores.weighted_f1,
        "prior_f1": result.baseline.token_set_f1,
        **result.unrestricted.to_record("unrestricted_f1"),
        **{name: getattr(scores, name) for name in _COUNTS},
        **{name: _told_or_none(getattr(scores, name)) for name in _RECALLS},
        "n_near_duplicates": held_out.n_near_duplicates,
    }


_COUNTS = ("n_names", "n_numbers", "n_rare")
_RECALLS = ("name_recall", "number_recall", "rare_recall")


def _told_or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
