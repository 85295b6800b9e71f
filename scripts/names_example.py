"""Compute the names page's example: `python -m scripts.names_example`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.encoders import load_encoder
from leakscope.core.names.experiment import NameExperiment, run_experiment
from leakscope.core.names.person import parse_names
from leakscope.core.names.sentences import read_sentences
from leakscope.core.names.shipped import ATTACK, EXAMPLE, SAMPLES, identity
from leakscope.core.results import Recovery
from leakscope.core.storage.artifacts import read_json, save_artifact


def packed(found: NameExperiment) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Convert a names experiment to arrays and JSON-serialisable metadata, to store."""
    matrix = found.substitution
    arrays: dict[str, NDArray[Any]] = {"said": matrix.is_answered.astype(np.uint8)}
    for knows, probe in found.probes.items():
        arrays |= {f"{knows}.scores": probe.scores, f"{knows}.truth": probe.truth}
    return arrays, {
        "sentences": [[s.text, s.name.surname, s.name.first] for s in matrix.sentences],
        "names": [[name.surname, name.first] for name in matrix.names],
        "texts": matrix.texts,
        "answers": [[_answer_to_dict(answer) for answer in row] for row in matrix.answers],
        "training_counts": list(found.training_counts),
        "probed": [list(pair) for pair in found.probed],
        "probes": list(found.probes),
    }


def _answer_to_dict(answer: Recovery) -> dict[str, Any]:
    """Convert an attack's answer to a JSON-serialisable dict."""
    parts = {"words": answer.words, "runners_up": answer.runners_up}
    words = {name: [[w.word, w.score] for w in part] for name, part in parts.items()}
    return {**words, "n_queries": answer.n_queries}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the names experiment on the bundled samples and save it as an artifact."""
    parser = argparse.ArgumentParser(prog="python -m scripts.names_example", description=__doc__)
    parser.parse_args(arguments)
    encoder = load_encoder("minilm")
    samples = read_json(SAMPLES)
    listed = parse_names(samples["names"])
    sentences, names = read_sentences("\n".join(samples["sentences"]), listed)
    found = run_experiment(open_attack(ATTACK, encoder), encoder, sentences, names)
    arrays, meta = packed(found)
    save_artifact(EXAMPLE, arrays, {**meta, "of": identity(ATTACK, encoder, sentences, names)})


if __name__ == "__main__":
    main()
