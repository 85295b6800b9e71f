"""The names page's shipped example, so that it opens without a wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from leakscope.core.assets import ASSETS
from leakscope.core.attacks.inversion.shipped import shipped_digest
from leakscope.core.errors import ArtifactError
from leakscope.core.names.experiment import NameExperiment
from leakscope.core.names.person import PersonName
from leakscope.core.names.probing import KNOWLEDGE, Probing
from leakscope.core.names.sentences import NamedSentence
from leakscope.core.names.substitution import Substitution
from leakscope.core.protocols import Encoder
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.storage.artifacts import META, UNFIT, load_artifact, read_record

EXAMPLE = ASSETS / "names" / "example"
SAMPLES = ASSETS / "samples" / "names.json"
"""Sentences and names of the example; people and events are invented."""
ATTACK = "probe_mlc"


def find_example(
    attack: str, encoder: Encoder, sentences: Sequence[NamedSentence], names: Sequence[PersonName]
) -> NameExperiment | None:
    """Load the shipped experiment if it was run on exactly these inputs, else return None.

    Raises
    ------
    ArtifactError
        The files are damaged.
    """
    if not (EXAMPLE / META).exists():
        return None
    meta = read_record(EXAMPLE / META)
    if meta.get("of") != identity(attack, encoder, sentences, names):
        return None
    arrays, meta = load_artifact(EXAMPLE)
    return restore_experiment(arrays, meta)


def identity(
    attack: str, encoder: Encoder, sentences: Sequence[NamedSentence], names: Sequence[PersonName]
) -> dict[str, Any]:
    """Return the record that identifies an experiment: attack, weights, encoder and inputs."""
    return {
        "attack": attack,
        "weights": shipped_digest(encoder, attack),
        "encoder": encoder.fingerprint,
        "sentences": [[s.text, s.name.surname, s.name.first] for s in sentences],
        "names": [[name.surname, name.first] for name in names],
    }


def _recovery_from_json(said: dict[str, Any]) -> Recovery:
    """Rebuild a Recovery from its stored JSON record."""
    words, others = (
        tuple(RecoveredWord(word, float(score)) for word, score in said[part])
        for part in ("words", "runners_up")
    )
    return Recovery(words, int(said["n_queries"]), others)


def restore_experiment(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> NameExperiment:
    """Rebuild a NameExperiment from arrays and metadata that `scripts/names_example.py` wrote.

    Raises
    ------
    ArtifactError
        It is something else.
    """
    try:
        matrix = Substitution(
            tuple(NamedSentence(text, PersonName(*name)) for text, *name in meta["sentences"]),
            tuple(PersonName(*name) for name in meta["names"]),
            meta["texts"],
            [[_recovery_from_json(said) for said in row] for row in meta["answers"]],
            arrays["said"].astype(bool),
        )
        probes = {
            knows: Probing(arrays[f"{knows}.scores"], arrays[f"{knows}.truth"])
            for knows in meta["probes"]
        }
        probed = tuple((int(s), int(c)) for s, c in meta["probed"])
        counts = tuple(map(int, meta["training_counts"]))
        return _check_parts(NameExperiment(matrix, counts, probed, probes))
    except (*UNFIT, OverflowError) as error:
        raise ArtifactError(
            f"{EXAMPLE} does not contain the example of the names page ({error}). Make it "
            "again: python -m scripts.names_example"
        ) from error


def _check_parts(found: NameExperiment) -> NameExperiment:
    """Return the experiment unchanged; raise ValueError if its parts do not fit each other."""
    matrix = found.substitution
    n_sentences, n_names, n_probed = len(matrix.sentences), len(matrix.names), len(found.probed)
    is_table = all(
        len(rows) == n_sentences and all(len(row) == n_names for row in rows)
        for rows in (matrix.texts, matrix.answers)
    )
    words = [word for row in matrix.texts for word in row]
    words += [part for s in matrix.sentences for part in (s.text, s.name.surname, s.name.first)]
    words += [part for name in matrix.names for part in (name.surname, name.first)]
    are_real = all(
        probing.scores.shape == (n_probed, n_names)
        and probing.scores.dtype.kind == "f"
        and probing.truth.shape == (n_probed,)
        and probing.truth.dtype.kind in "iu"
        and (probing.truth >= 0).all()
        and (probing.truth < n_names).all()
        for probing in found.probes.values()
    )
    if not (
        n_sentences
        and n_names
        and is_table
        and are_real
        and all(isinstance(w, str) for w in words)
        and matrix.is_answered.shape == (n_sentences, n_names, n_names)
        and len(found.training_counts) == n_names
        and set(found.probes) == set(KNOWLEDGE)
        and all(0 <= s < n_sentences and 0 <= c < n_names for s, c in found.probed)
    ):
        raise ValueError("its parts do not fit each other")
    return found
