"""What is read from any encoder, measured in minutes: work of a job, on texts that ship.

Everything is as small as a visitor waits for: the word probe, which learns nothing, on sentences
of news. It tells encoders apart, not how much the strongest attack would read.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.attacks.inversion.evaluation import evaluate, sample_texts
from core.attacks.inversion.registry import make_attack
from core.corpora import load_corpus
from core.encoders.at_hand import encoder_at_hand
from core.encoders.cache import CachedEncoder
from core.protocols import OnProgress, no_progress
from core.results import Score
from core.specs import EncoderSpec
from core.studies.prepared import QUICK

__all__ = ["AUXILIARY", "N_AUXILIARY", "N_TARGETS", "TARGETS", "OwnLeak", "measure_encoders"]

AUXILIARY = "wikipedia"
"""Whose words the attacker tries."""
TARGETS = "lee"
"""Whose sentences are attacked."""
N_AUXILIARY = 2000
N_TARGETS = 300


@dataclass(frozen=True, kw_only=True)
class OwnLeak:
    """What the word probe reads from an encoder.

    Attributes
    ----------
    f1 : Score
        Token-set F1, with what guessing reaches as `chance`.
    recall : float
        Per cent of the words that were read.
    """

    encoder: str
    dimension: int
    f1: Score
    recall: float


def measure_encoders(
    names: tuple[str, ...], n_targets: int = N_TARGETS, on_progress: OnProgress = no_progress
) -> tuple[OwnLeak, ...]:
    """Measure encoders on the same sentences, by the same attack.

    Parameters
    ----------
    names : tuple of str
        As `load_encoder` takes them: bundled, `st:ID`, `mlm:ID`, or what `fit` wrote
        (`tfidf:FOLDER`, `defended:FOLDER`).

    Raises
    ------
    CoreError
        There is no such encoder, or it cannot be loaded.
    """
    known = sample_texts(load_corpus(AUXILIARY).sentences().texts, N_AUXILIARY, 0)
    targets = sample_texts(load_corpus(TARGETS).sentences().texts, n_targets, 0)
    found = []
    for i, name in enumerate(names):

        def report(done: float, told: str, i: int = i, name: str = name) -> None:
            on_progress((i + done) / len(names), f"{name} ({i + 1} of {len(names)}): {told}")

        report(0.0, "loading")
        encoder = encoder_at_hand(EncoderSpec(name=name))
        attack = make_attack(QUICK).fit(
            CachedEncoder(encoder), known, on_progress=lambda f, m: report(0.8 * f, m)
        )
        result = evaluate(
            attack, encoder, targets, on_progress=lambda f, m: report(0.8 + 0.2 * f, m)
        )
        f1 = result.scores.score("token_set_f1", result.baseline.token_set_f1)
        found.append(
            OwnLeak(encoder=name, dimension=encoder.dimension, f1=f1, recall=result.scores.recall)
        )
    return tuple(found)
