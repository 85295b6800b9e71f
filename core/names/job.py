"""Comparing names: work for a process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from core.attacks.inversion.job import attack_at_hand
from core.encoders.at_hand import encoder_at_hand
from core.names.experiment import NameExperiment, run_experiment
from core.names.person import PersonName
from core.names.sentences import NamedSentence
from core.protocols import OnProgress, no_progress
from core.specs import AttackSpec, EncoderSpec

__all__ = ["compare_names"]


def compare_names(
    attack: AttackSpec,
    on: EncoderSpec,
    sentences: Sequence[NamedSentence],
    names: Sequence[PersonName],
    on_progress: OnProgress = no_progress,
) -> NameExperiment:
    """Substitute names for each other, attack the vectors, and probe them.

    Raises
    ------
    InvalidInputError
        Fewer than two names, or more names or vectors than the page takes.
    """
    on_progress(0.0, "Loading the attack")
    ready, encoder = attack_at_hand(attack, on), encoder_at_hand(on)
    return run_experiment(ready, encoder, sentences, names, on_progress=on_progress)
