"""Encoders fitted on a bundled corpus, each with a fitted attack, cached on disk by content.

For trying a sentence on many encoders. No text that a user typed reaches this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from leakscope.core.attacks.inversion.evaluation import sample_texts
from leakscope.core.attacks.inversion.reading import prior_words
from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.attacks.inversion.shipped import load_attack, save_attack
from leakscope.core.corpora import load_corpus
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.fitted import load_fitted, make_encoder, save_encoder
from leakscope.core.encoders.registry import FITTED_ENCODERS, FITTED_ON_TEXTS, preparable
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import (
    Encoder,
    InversionAttack,
    OnProgress,
    no_progress,
    part_progress,
)
from leakscope.core.specs import AttackSpec, EncoderSpec, setting_values, settings_of
from leakscope.core.storage.artifacts import META, check_writable
from leakscope.core.storage.cache_folder import cache_dir
from leakscope.core.studies.context import versions_of
from leakscope.core.studies.runner import cell_key

QUICK = AttackSpec.of("probe", {"vocabulary_size": 10_000})
"""The word probe: without training, it takes only the time to encode its words."""

CORPORA = ("wikipedia", "lee")
COUNTS = (1000, 2000, 5000)
"""The choices for the number of sentences to fit on."""

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What to prepare: an encoder, the texts to fit on, and an attack.

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
    """A fitted encoder and attack, ready to invert a sentence.

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
    """Load a fitted encoder and attack from disk, or fit and save them first.

    Damaged files are made again.

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
    content, sentences = _read_sentences(plan.corpus)
    texts = sample_texts(sentences, plan.n_texts, plan.seed)
    drawn = {"content": content, "n_texts": plan.n_texts, "seed": plan.seed}
    if plan.encoder in FITTED_ON_TEXTS:
        report = part_progress(on_progress, 0.0, 0.5)
        encoder = _load_or_fit_encoder(plan.encoder, texts, drawn, report)
        words_from: Encoder = encoder
    else:
        encoder = load(plan.encoder)
        words_from = CachedEncoder(encoder)  # words of a corpus, encoded once for all corpora
    attack, seconds = _load_or_fit_attack(plan.attack, words_from, texts, drawn, start, on_progress)
    guess = prior_words(encoder, attack, False)
    on_progress(1.0, "Ready")
    return Prepared(encoder, attack, len(texts), guess, seconds)


def prepare_all(
    plans: Sequence[Preparation], titles: Sequence[str], on_progress: OnProgress = no_progress
) -> None:
    """Fit the encoders and attacks of several plans and save them, as a background job.

    Parameters
    ----------
    titles : sequence of str
        What the progress calls each encoder.
    """
    for i, (plan, title) in enumerate(zip(plans, titles, strict=True)):

        def report(done: float, told: str, i: int = i, title: str = title) -> None:
            """Report the progress of one plan as a fraction of that of all plans."""
            on_progress((i + done) / len(plans), f"{title} ({i + 1} of {len(plans)}): {told}")

        report(0.0, "starting")
        prepare(plan, report, load=lambda name: shared_encoder(EncoderSpec(name=name)))


@lru_cache(maxsize=2)
def _read_sentences(corpus: str) -> tuple[str, tuple[str, ...]]:
    """Read a corpus once for all encoders; return its content hash and its sentences."""
    found = load_corpus(corpus)
    return found.content_hash, tuple(found.sentences().texts)


def _load_or_fit_encoder(
    name: str, texts: list[str], drawn: dict[str, Any], on_progress: OnProgress
) -> Encoder:
    """Load an encoder that was fitted on these texts, or fit and save it."""
    family = FITTED_ENCODERS[name]
    defaults = {key: spec.default for key, spec in settings_of(family.kind).items()}
    identity = {**drawn, "encoder": name, "settings": defaults | family.fixed}
    identity |= versions_of(identity)
    folder = cache_dir("representations", f"{name}-{cell_key(identity)}")

    def make() -> None:
        """Fit the encoder and save it."""
        fitted = make_encoder(name).fit(texts, on_progress=on_progress)
        save_encoder(fitted, folder, training=identity)

    return _load_or_make(folder, lambda: load_fitted(folder, name), make)


def _load_or_fit_attack(
    spec: AttackSpec,
    encoder: Encoder,
    texts: list[str],
    drawn: dict[str, Any],
    start: float,
    on_progress: OnProgress,
) -> tuple[InversionAttack, float]:
    """Load an attack fitted on these texts, or fit and save it; also return its seconds."""
    fresh = make_attack(spec)
    settings = setting_values(fresh)
    identity = {**drawn, "attack": spec.name, "settings": settings, "on": encoder.fingerprint}
    identity |= versions_of(identity)
    folder = cache_dir("representations", f"{spec.name}-{cell_key(identity)}")

    def make() -> None:
        """Fit the attack and save it with the seconds taken."""
        fresh.fit(encoder, texts, on_progress=part_progress(on_progress, 0.5, 1.0))
        taken = round(time.perf_counter() - start, 3)
        save_attack(fresh, folder, training={**identity, "seconds": taken})  # type: ignore[arg-type]

    attack = _load_or_make(folder, lambda: load_attack(folder), make)
    return attack, float(attack.training_["seconds"])  # type: ignore[attr-defined]


def _load_or_make(folder: Path, read: Callable[[], _T], make: Callable[[], None]) -> _T:
    """Load an object from a folder by `read`; call `make` first if it is missing or damaged.

    A new result is loaded from disk as well, so that the first visit answers like later ones.
    """
    if (folder / META).exists():
        try:
            return read()
        except ArtifactError:
            pass
    check_writable(folder.parent)
    make()
    return read()
