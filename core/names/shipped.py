"""The example that the page of names opens with: its result ships, so that nobody waits for it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.assets import ASSETS
from core.attacks.inversion.shipped import open_attack, shipped_digest
from core.encoders import load_encoder
from core.errors import ArtifactError
from core.names.experiment import NameExperiment, run_experiment
from core.names.person import PersonName, parse_names
from core.names.probing import KNOWLEDGE, Probing
from core.names.sentences import NamedSentence, read_sentences
from core.names.substitution import Substitution
from core.protocols import Encoder
from core.results import RecoveredWord, Recovery
from core.store import META, UNFIT, load_artifact, read_json, read_record, save_artifact

__all__ = ["ATTACK", "EXAMPLE", "SAMPLES", "find_example", "main", "packed", "unpacked"]

EXAMPLE = ASSETS / "names" / "example"
SAMPLES = ASSETS / "samples" / "names.json"
"""Sentences and names of the example; people and events are invented."""
ATTACK = "probe_mlc"


def find_example(
    attack: str, encoder: Encoder, sentences: Sequence[NamedSentence], names: Sequence[PersonName]
) -> NameExperiment | None:
    """Return what ships of exactly this, under the weights and the encoder of today; else None.

    Raises
    ------
    ArtifactError
        The files are damaged.
    """
    if not (EXAMPLE / META).exists():
        return None
    meta = read_record(EXAMPLE / META)
    if meta.get("of") != _of(attack, encoder, sentences, names):
        return None
    arrays, meta = load_artifact(EXAMPLE)
    return unpacked(arrays, meta)


def _of(
    attack: str, encoder: Encoder, sentences: Sequence[NamedSentence], names: Sequence[PersonName]
) -> dict[str, Any]:
    """Return what an experiment depends on."""
    return {
        "attack": attack,
        "weights": shipped_digest(encoder, attack),
        "encoder": encoder.fingerprint,
        "sentences": [[s.text, s.name.surname, s.name.first] for s in sentences],
        "names": [[name.surname, name.first] for name in names],
    }


def packed(found: NameExperiment) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return an experiment as arrays and as what is JSON-able."""
    matrix = found.substitution
    arrays: dict[str, NDArray[Any]] = {"said": matrix.said.astype(np.uint8)}
    for knows, probe in found.probes.items():
        arrays |= {f"{knows}.scores": probe.scores, f"{knows}.truth": probe.truth}
    return arrays, {
        "sentences": [[s.text, s.name.surname, s.name.first] for s in matrix.sentences],
        "names": [[name.surname, name.first] for name in matrix.names],
        "texts": matrix.texts,
        "answers": [[_said(answer) for answer in row] for row in matrix.answers],
        "training_counts": list(found.training_counts),
        "probed": [list(pair) for pair in found.probed],
        "probes": list(found.probes),
    }


def _said(answer: Recovery) -> dict[str, Any]:
    parts = {"words": answer.words, "runners_up": answer.runners_up}
    words = {name: [[w.word, w.score] for w in part] for name, part in parts.items()}
    return {**words, "n_queries": answer.n_queries}


def _recovery(said: dict[str, Any]) -> Recovery:
    words, others = (
        tuple(RecoveredWord(word, float(score)) for word, score in said[part])
        for part in ("words", "runners_up")
    )
    return Recovery(words, int(said["n_queries"]), others)


def unpacked(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> NameExperiment:
    """Restore what `packed` returned.

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
            [[_recovery(said) for said in row] for row in meta["answers"]],
            arrays["said"].astype(bool),
        )
        probes = {
            knows: Probing(arrays[f"{knows}.scores"], arrays[f"{knows}.truth"])
            for knows in meta["probes"]
        }
        probed = tuple((int(s), int(c)) for s, c in meta["probed"])
        counts = tuple(map(int, meta["training_counts"]))
        return _checked(NameExperiment(matrix, counts, probed, probes))
    except (*UNFIT, OverflowError) as error:
        raise ArtifactError(
            f"{EXAMPLE} does not hold the example of the page of names ({error}). Make it anew: "
            "python -m core.names.shipped"
        ) from error


def _checked(found: NameExperiment) -> NameExperiment:
    """Return an experiment whose parts fit each other; raise ValueError for another."""
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
        probing.scores.shape == (n_probed, n_names) and probing.scores.dtype.kind == "f"
        and probing.truth.shape == (n_probed,) and probing.truth.dtype.kind in "iu"
        and (probing.truth >= 0).all() and (probing.truth < n_names).all()
        for probing in found.probes.values()
    )  # fmt: skip
    if not (
        n_sentences and n_names and is_table and are_real and all(isinstance(w, str) for w in words)
        and matrix.said.shape == (n_sentences, n_names, n_names)
        and len(found.training_counts) == n_names and set(found.probes) == set(KNOWLEDGE)
        and all(0 <= s < n_sentences and 0 <= c < n_names for s, c in found.probed)
    ):  # fmt: skip
        raise ValueError("its parts do not fit each other")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute the example and write it."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    encoder = load_encoder("minilm")
    samples = read_json(SAMPLES)
    listed = parse_names(samples["names"])
    sentences, names = read_sentences("\n".join(samples["sentences"]), listed)
    found = run_experiment(open_attack(ATTACK, encoder), encoder, sentences, names)
    arrays, meta = packed(found)
    save_artifact(EXAMPLE, arrays, {**meta, "of": _of(ATTACK, encoder, sentences, names)})


if __name__ == "__main__":
    main()
