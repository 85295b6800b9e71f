"""Resumable training of an inversion attack: train, score on held-out texts, and store."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.attacks.inversion.shipped import load_attack, save_attack
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.corpora.splits import hold_out, share_documents
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import (
    Encoder,
    InversionAttack,
    OnProgress,
    TrainedAttack,
    no_progress,
)
from leakscope.core.specs import AttackSpec, setting, settings_of, validate_settings
from leakscope.core.storage.artifacts import META, check_writable, clear_leftovers, read_json
from leakscope.core.text import check_texts
from leakscope.core.training.record import WorkClock, hardware, versions


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A training run: attack, corpus and split; equal plans on one encoder give equal attacks.

    Parameters
    ----------
    attack : AttackSpec
    corpus, corpus_hash : str
        Name and content hash of the texts.
    seed, limit, n_held_out
        The seed is that of the attack, too, where it has one; the limit includes the texts held
        out.
    defence : str
        What the encoder is behind, by its name with its settings; empty where nothing is changed.
    undefended_fingerprint : str
        Of the encoder without it.
    """

    attack: AttackSpec
    corpus: str
    corpus_hash: str
    limit: int | None = setting(None, "number of sentences to draw (default: all)", low=1)
    seed: int = setting(0, "random seed", low=0)
    n_held_out: int = setting(
        500, "held-out sentences for scoring, at most a tenth", low=1, flag="held-out"
    )
    defence: str = ""
    undefended_fingerprint: str = ""

    def identity(self, encoder: Encoder) -> dict[str, Any]:
        """Return the JSON-able identity of the run on an encoder, for checkpoints and records."""
        names = ["corpus", "corpus_hash", "seed", "limit", "n_held_out"]
        if self.defence:  # else as in records from before there were defences
            names += ["defence", "undefended_fingerprint"]
        return {
            "attack": self.attack.name,
            "settings": dict(self.attack.settings),
            "encoder": encoder.name,
            "encoder_fingerprint": encoder.fingerprint,
            **{name: getattr(self, name) for name in names},
        }


@dataclass(frozen=True)
class HeldOut:
    """The held-out texts that a trained attack is scored on.

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
    """Train a plan's attack on texts, score it, save it to `out` and return its training record.

    A run that was killed resumes from `out/checkpoint`; one that had finished is returned as it
    is. `leakscope.core.encoders.cache.CachedEncoder` keeps the vectors over a kill, too.

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
        The disk is full; finished work is preserved. Or nothing can be written to `out`, which is
        checked before the work.
    """
    identity = plan.identity(encoder)
    finished = _finished_record(out, identity, on_progress)
    if finished is not None:
        _remove_leftovers(out)
        return finished
    known, held_out = split_held_out(texts, plan, documents)
    attack = make_attack(_with_seed(plan))
    if not isinstance(attack, TrainedAttack):
        raise InvalidInputError(f"attack {plan.attack.name!r} has no training result to store.")
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
    load_attack(out)  # finished only if everything can be read back
    _remove_leftovers(out)
    return record


def _remove_leftovers(out: Path) -> None:
    """Remove the checkpoint of a finished run, and temporary files of killed runs."""
    shutil.rmtree(out / "checkpoint", ignore_errors=True)
    clear_leftovers(out)


def split_held_out(
    texts: Sequence[str], plan: TrainingPlan, documents: Sequence[str] | None = None
) -> tuple[list[str], HeldOut]:
    """Split texts into training and held-out texts, without near-duplicates between them.

    Held-out texts are of documents that nothing is trained on, where these are known, and of many
    (`leakscope.core.corpora.splits.hold_out`). Those that nearly repeat one of the training are in
    neither part.

    Raises
    ------
    InvalidInputError
        Fewer than 10 different texts are left, or a text cannot be encoded.
    """
    validate_settings(plan)
    distinct = list(dict.fromkeys(check_texts(texts)))
    order = np.random.default_rng(plan.seed).permutation(len(distinct))[: plan.limit].tolist()
    if len(order) < 10:
        raise InvalidInputError(
            f"Training needs at least 10 different texts, got {len(order)}. Give a larger corpus "
            "or limit."
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
            "Every held-out text is a near-duplicate of a training text, so no score would be "
            "valid. Give a corpus with more varied texts."
        )
    is_apart = {own[i] for i in known}.isdisjoint(own[i] for i in held_out)
    has_documents = is_apart and share_documents([own[i] for i in order])
    chosen = tuple(own[i] for i in left) if has_documents else None
    return training, HeldOut(tuple(distinct[i] for i in left), chosen, len(repeated))


def _with_seed(plan: TrainingPlan) -> AttackSpec:
    """Return the plan's attack spec, its seed set to the plan's if the attack has one unset."""
    entry = INVERSION_ATTACKS.get(plan.attack.name)
    settings = dict(plan.attack.settings)
    if entry is not None and "seed" in settings_of(entry.kind):
        settings.setdefault("seed", plan.seed)
    return AttackSpec.of(plan.attack.name, settings)


def _finished_record(
    out: Path, identity: dict[str, Any], on_progress: OnProgress
) -> dict[str, Any] | None:
    """Return the record of a finished run of this identity in `out`; None if it must be trained.

    A run whose weights are missing or damaged is not finished: it is trained again.
    """
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file. Give a folder to write to.")
    if not (out / META).exists():
        return None
    meta = read_json(out / META)
    found = meta.get("training") if isinstance(meta, dict) else None
    record: dict[str, Any] = found if isinstance(found, dict) else {}
    if {key: record.get(key) for key in identity} != identity:
        raise InvalidInputError(f"{out} contains another trained attack. Choose another folder.")
    try:
        load_attack(out)
        if missing := {"n_texts", "seconds", "hardware", "versions", "held_out"} - record.keys():
            raise ArtifactError(f"{out / META} lacks {', '.join(sorted(missing))}.")
    except ArtifactError as error:
        on_progress(0.0, f"Training again: {error}")
        return None
    return record


def held_out_scores(
    attack: InversionAttack,
    encoder: Encoder,
    held_out: HeldOut,
    seed: int,
    on_progress: OnProgress,
) -> dict[str, Any]:
    """Score an attack and the prior-only baseline on held-out texts; return record fields."""
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
    counts: dict[str, Any] = {"n": scores.n, "unit": scores.unit}
    if scores.n_documents is not None:
        counts["n_documents"] = scores.n_documents
    groups = ("name", "number", "rare")
    recalls = {f"{group}_recall": getattr(scores, f"{group}_recall") for group in groups}
    n_words = {"n_names": scores.n_names, "n_numbers": scores.n_numbers, "n_rare": scores.n_rare}
    return {
        **counts,
        "precision": scores.precision,
        "recall": scores.recall,
        **scores.score("token_set_f1").to_record("token_set_f1"),
        "weighted_f1": scores.weighted_f1,
        "prior_f1": result.baseline.token_set_f1,
        **result.unrestricted.to_record("unrestricted_f1"),
        **n_words,
        **{name: None if math.isnan(value) else value for name, value in recalls.items()},
        "n_near_duplicates": held_out.n_near_duplicates,
    }
