"""The job that compares names in a separate process."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.core.attacks.inversion.job import shared_attack
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.names.experiment import NameExperiment, run_experiment
from leakscope.core.names.person import PersonName
from leakscope.core.names.sentences import NamedSentence
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import AttackSpec, EncoderSpec


def compare_names(
    attack: AttackSpec,
    on: EncoderSpec,
    sentences: Sequence[NamedSentence],
    names: Sequence[PersonName],
    on_progress: OnProgress = no_progress,
) -> NameExperiment:
    """Load the attack and encoder, and run the names experiment.

    Raises
    ------
    InvalidInputError
        Fewer than two names, or more names or vectors than the page takes.
    """
    on_progress(0.0, "Loading the attack")
    ready, encoder = shared_attack(attack, on), shared_encoder(on)
    return run_experiment(ready, encoder, sentences, names, on_progress=on_progress)
