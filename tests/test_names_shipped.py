"""The example of the page of names ships, is what would be computed, and serves nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError
from leakscope.core.names import shipped
from leakscope.core.names.experiment import run_experiment
from leakscope.core.names.person import PersonName, parse_names
from leakscope.core.names.sentences import read_sentences
from leakscope.core.storage.artifacts import read_json


def example() -> tuple[list[shipped.NamedSentence], tuple[PersonName, ...]]:
    samples = read_json(shipped.SAMPLES)
    return read_sentences("\n".join(samples["sentences"]), parse_names(samples["names"]))


def test_the_example_ships_for_todays_weights(minilm: TransformerEncoder) -> None:
    found = shipped.find_example(shipped.ATTACK, minilm, *example())
    assert found is not None, "make it again: python -m scripts.names_example"
    assert len(found.substitution.sentences) == 15 and len(found.probes) == 3


@pytest.mark.slow
def test_it_is_what_would_be_computed(minilm: TransformerEncoder) -> None:
    sentences, names = example()
    stored = shipped.find_example(shipped.ATTACK, minilm, sentences, names)
    assert stored is not None
    attack = open_attack(shipped.ATTACK, minilm)
    fresh = run_experiment(attack, minilm, sentences, names)
    # Another processor may round a word over a threshold.
    assert (stored.substitution.said == fresh.substitution.said).mean() > 0.98
    assert stored.substitution.texts == fresh.substitution.texts
    assert stored.training_counts == fresh.training_counts and stored.probed == fresh.probed
    for knows, probe in fresh.probes.items():
        assert (stored.probes[knows].truth == probe.truth).all()
        np.testing.assert_allclose(stored.probes[knows].scores, probe.scores, atol=1e-4)


def test_nothing_else_is_answered_by_it(minilm: TransformerEncoder, tiny_encoder: object) -> None:
    sentences, names = example()
    assert shipped.find_example("msp", minilm, sentences, names) is None
    assert shipped.find_example(shipped.ATTACK, minilm, sentences[1:], names) is None
    assert shipped.find_example(shipped.ATTACK, minilm, sentences, names[1:]) is None
    assert shipped.find_example(shipped.ATTACK, tiny_encoder, sentences, names) is None  # type: ignore[arg-type]


def test_a_damaged_file_is_told(
    minilm: TransformerEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "EXAMPLE", tmp_path)
    assert shipped.find_example(shipped.ATTACK, minilm, *example()) is None, "nothing ships"
    with pytest.raises(ArtifactError, match="Make it again"):
        shipped.restore_experiment({}, {})
