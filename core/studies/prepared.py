"""Encoders fitted on a bundled corpus with an attack on each: made once, kept on disk by content.

For trying a sentence on many encoders. Nothing that anybody typed comes near this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from core.attacks.inversion.evaluation import sample_texts
from core.attacks.inversion.reading import prior_words
from core.attacks.inversion.registry import make_attack
from core.attacks.inversion.shipped import load_attack, save_attack
from core.corpora import load_corpus
from core.encoders import load_encoder
from core.encoders.at_hand import encoder_at_hand
from core.encoders.cache import CachedEncoder
from core.encoders.fitted import load_fitted, make_encoder, save_encoder
from core.encoders.registry import FITTED_ENCODERS, FITTED_ON_TEXTS, preparable
from core.errors import ArtifactError, InvalidInputError
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from core.specs import AttackSpec, EncoderSpec, settings_of
from core.store import META, cache_dir, check_writable
from core.studies.context import versions_of
from core.studies.runner import cell_key

__all__ = ["CORPORA", "COUNTS", "QUICK", "Preparation", "Prepared", "prepare",
           "prepare_all"]  # fmt: skip

QUICK = AttackSpec.of("probe", {"vocabulary_size": 10_000})
"""Learns nothing, so that it takes the time of encoding its words."""

CORPORA = ("wikipedia", "lee")
COUNTS = (1000, 2000, 5000)
"""Sentences to fit on that are offered."""

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """An encoder, the texts that it and the attack are fitted on, and the attack.

    Parameters
    ----------
    encoder : str
        One of `preparable()`.
    corpus : str
        A corpus by name.
    n_texts : int
        Sentences drawn from it; all where there are fewer.
    """

    encoder: str
    corpus: str = CORPORA[0]
    n_texts: int = 2000
    seed: int = 0
    attack: AttackSpec = QUICK


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is ready to invert a sentence.

    Attributes
    ----------
    n_texts : int
        Sentences that it was fitted on.
    guess : frozenset of str
        What an attacker answers who never sees the vector.
    seconds : float
        That fitting took, when it was done.
    """

    encoder: Encoder
    attack: InversionAttack
    n_texts: int
    guess: frozenset[str]
    seconds: float


def prepare(
    plan: Preparation,
    on_progress: OnProgress = no_progress,
    *,
    load: Callable[[str], Encoder] = load_encoder,
) -> Prepared:
    """Return a fitted encoder with a fitted attack, from disk where they were made before.

    What is damaged on disk is made anew.

    Parameters
    ----------
    load : callable
        Opens an encoder that is not fitted here.

    Raises
    ------
    InvalidInputError
        No such encoder, corpus, attack or setting, or too few texts.
    StorageError
        The disk is full or the folder cannot be written.
    """
    if plan.encoder not in preparable():
        raise InvalidInputError(
            f"encoder must be one of {', '.join(preparable())}, got {plan.encoder!r}."
        )
    start = time.perf_counter()
    on_progress(0.0, "Reading the texts")
    content, sentences = _sentences(plan.corpus)
    texts = sample_texts(sentences, plan.n_texts, plan.seed)
    drawn = {"content": content, "n_texts": plan.n_texts, "seed": plan.seed}
    if plan.encoder in FITTED_ON_TEXTS:
        encoder = _fitted(plan.encoder, texts, drawn, _part(on_progress, 0.0, 0.5))
        words_from: Encoder = encoder
    else:
        encoder = load(plan.encoder)
        words_from = CachedEncoder(encoder)  # words of a corpus, encoded once for all corpora
    attack, seconds = _attack(plan.attack, words_from, texts, drawn, start, on_progress)
    guess = prior_words(encoder, attack, False)
    on_progress(1.0, "Ready")
    return Prepared(encoder, attack, len(texts), guess, seconds)


def prepare_all(
    plans: Sequence[Preparation], titles: Sequence[str], on_progress: OnProgress = no_progress
) -> None:
    """Fit what plans need and leave it on disk, where `prepare` finds it: work of a job.

    Parameters
    ----------
    titles : sequence of str
        What the progress calls each encoder.
    """
    for i, (plan, title) in enumerate(zip(plans, titles, strict=True)):

        def report(done: float, told: str, i: int = i, title: str = title) -> None:
            on_progress((i + done) / len(plans), f"{title} ({i + 1} of {len(plans)}): {told}")

        report(0.0, "starting")
        prepare(plan, report, load=lambda name: encoder_at_hand(EncoderSpec(name=name)))


@lru_cache(maxsize=2)
def _sentences(corpus: str) -> tuple[str, tuple[str, ...]]:
    """Return the content hash of a corpus and its sentences, read once for all encoders."""
    found = load_corpus(corpus)
    return found.content_hash, tuple(found.sentences().texts)


def _fitted(name: str, texts: list[str], drawn: dict[str, Any], on_progress: OnProgress) -> Encoder:
    family = FITTED_ENCODERS[name]
    defaults = {key: spec.default for key, spec in settings_of(family.kind).items()}
    identity = {**drawn, "encoder": name, "settings": defaults | family.fixed}
    identity |= versions_of(identity)
    folder = cache_dir("representations", f"{name}-{cell_key(identity)}")

    def make() -> None:
        fitted = make_encoder(name).fit(texts, on_progress=on_progress)
        save_encoder(fitted, folder, training=identity)

    return _kept(folder, lambda: load_fitted(folder, name), make)


def _attack(
    spec: AttackSpec,
    encoder: Encoder,
    texts: list[str],
    drawn: dict[str, Any],
    start: float,
    on_progress: OnProgress,
) -> tuple[InversionAttack, float]:
    fresh = make_attack(spec)
    settings = {key: getattr(fresh, key) for key in settings_of(type(fresh))}
    identity = {**drawn, "attack": spec.name, "settings": settings, "on": encoder.fingerprint}
    identity |= versions_of(identity)
    folder = cache_dir("representations", f"{spec.name}-{cell_key(identity)}")

    def make() -> None:
        fresh.fit(encoder, texts, on_progress=_part(on_progress, 0.5, 1.0))
        taken = round(time.perf_counter() - start, 3)
        save_attack(fresh, folder, training={**identity, "seconds": taken})  # type: ignore[arg-type]

    attack = _kept(folder, lambda: load_attack(folder), make)
    return attack, float(attack.training_["seconds"])  # type: ignore[attr-defined]


def _kept(folder: Path, read: Callable[[], _T], make: Callable[[], None]) -> _T:
    """Return what is on disk, made first where it is missing or damaged.

    What was just made is read back, too: the first visit and the next answer alike.
    """
    if (folder / META).exists():
        try:
            return read()
        except ArtifactError:
            pass
    check_writable(folder.parent)
    make()
    return read()


def _part(on_progress: OnProgress, low: float, high: float) -> OnProgress:
    def report(fraction: float, message: str) -> None:
        on_progress(low + (high - low) * min(fraction, 1.0), message)

    return report
