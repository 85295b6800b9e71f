"""Inversion by encoder layer: Eq. 5 against Eq. 7 (Song & Raghunathan 2020, Fig. 2).

`python -m core.studies.layers --texts FILE --auxiliary FILE` writes docs/results/layers.json and
the figure beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.attacks.inversion.prior import PriorAttack
from core.attacks.inversion.relaxation import attack as relaxation
from core.attacks.inversion.sparse import attack as sparse_coding
from core.encoders.minilm import load_minilm
from core.metrics import score_words
from core.protocols import InversionAttack, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.store import write_json
from core.text import STOP_WORDS, Vocabulary, word_set

__all__ = ["EQUATIONS", "USUAL", "attack_layer", "main", "prior_f1", "run"]

EQUATIONS = ("Eq. 5", "Eq. 7")
"""Continuous relaxation, and sparse coding after a learned map to the mean of token vectors."""

USUAL: dict[str, dict[str, Any]] = {
    # The shortlist of the tuned settings rests on the last layer; here every token may be found.
    "Eq. 5": {**relaxation.TUNED, "shortlist": 0, "n_steps": 100},
    "Eq. 7": sparse_coding.TUNED,
}
"""Settings of either attack, the same at every layer."""


def run(
    texts: Sequence[str],
    auxiliary: Sequence[str],
    *,
    layers: Sequence[int] = range(7),
    seed: int = 0,
    open_encoder: Callable[[int], WhiteBoxEncoder] = lambda layer: load_minilm(layer=layer),
    relaxation_settings: dict[str, Any] | None = None,
    sparse_settings: dict[str, Any] | None = None,
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:
    """Attack the mean-pooled states of each layer by Eq. 5 and by Eq. 7.

    Implements the comparison of Song & Raghunathan (2020), Fig. 2.
    Differs from the paper: MiniLM's six layers instead of the twelve of BERT and ALBERT; stop
    words are not scored; few sentences, with intervals.

    Parameters
    ----------
    texts : sequence of str
        The targets, the same at every layer.
    auxiliary : sequence of str
        What the map of Eq. 7 is learned on; Eq. 5 learns nothing.
    open_encoder : callable
        Layer to an encoder whose embedding is that layer's mean.
    relaxation_settings, sparse_settings : dict, optional
        By default the tuned settings of each attack.

    Returns
    -------
    dict
        Settings, `prior_f1`, and `rows`: one per layer and equation, scores in [0, 100].
    """
    given = {"Eq. 5": relaxation_settings, "Eq. 7": sparse_settings}
    settings = {name: USUAL[name] if own is None else own for name, own in given.items()}
    rows = []
    for done, layer in enumerate(layers):
        encoder = open_encoder(layer)
        for i, (equation, own) in enumerate(settings.items()):
            on_progress((done + i / 2) / len(layers), f"{equation} at layer {layer}")
            row = attack_layer(equation, encoder, texts, auxiliary, seed=seed, settings=own)
            rows.append({"layer": layer, "equation": equation, **row})
    on_progress(1.0, "Every layer was attacked")
    return {
        "study": "layers",
        "encoder": "all-MiniLM-L6-v2",
        "n": len(texts),
        "n_auxiliary": len(auxiliary),
        "seed": seed,
        "settings": settings,
        "prior_f1": prior_f1(encoder, texts, auxiliary, seed),
        "rows": rows,
    }


def attack_layer(
    equation: str,
    encoder: WhiteBoxEncoder,
    texts: Sequence[str],
    auxiliary: Sequence[str],
    *,
    seed: int,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Attack texts at the layer that `encoder` pools, and return the scores."""
    attack: InversionAttack
    if equation == "Eq. 5":
        attack = relaxation.RelaxationAttack(seed=seed, **settings).open(encoder)
    else:
        attack = sparse_coding.SparseCodingAttack(seed=seed, **settings).fit(encoder, auxiliary)
    return _measure(attack, encoder, encoder.encode(texts), texts, seed)


def prior_f1(
    encoder: WhiteBoxEncoder, texts: Sequence[str], auxiliary: Sequence[str], seed: int
) -> float:
    """Return the F1 of the attacker who never sees a vector, the same at every layer."""
    attack = PriorAttack().fit_vocabulary(encoder, Vocabulary.count(auxiliary))
    answers = attack.invert(encoder, encoder.encode(texts))
    targets = [word_set(text) - STOP_WORDS for text in texts]
    return score_words([answer.word_set for answer in answers], targets, seed=seed).token_set_f1


def _measure(
    attack: InversionAttack,
    encoder: WhiteBoxEncoder,
    vectors: Vectors,
    texts: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    start = time.perf_counter()
    answers = attack.invert(encoder, vectors)
    seconds = time.perf_counter() - start
    targets = [word_set(text) - STOP_WORDS for text in texts]
    scores = score_words([answer.word_set for answer in answers], targets, seed=seed)
    interval = scores.token_set_f1_ci95
    return {
        "n": scores.n,
        "precision": scores.precision,
        "recall": scores.recall,
        "token_set_f1": scores.token_set_f1,
        "token_set_f1_ci95": [interval.low, interval.high],
        "seconds_each": seconds / len(texts),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study on files of sentences and write its result and its figure."""
    from core.attacks.inversion.evaluation import sample_texts
    from core.corpora import load_corpus
    from core.figures.layers import layers_figure
    from core.figures.svg import write_svg

    parser = argparse.ArgumentParser(prog="python -m core.studies.layers", description=__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="corpus to recover")
    parser.add_argument("--auxiliary", type=Path, required=True, help="corpus to learn from")
    parser.add_argument("--n", type=int, default=50, help="sentences a layer (default: 50)")
    parser.add_argument("--n-auxiliary", type=int, default=5000, help="(default: 5000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/layers.json"))
    given = parser.parse_args(arguments)
    result = run(
        sample_texts(load_corpus(given.texts).sentences().texts, given.n, given.seed),
        sample_texts(load_corpus(given.auxiliary).sentences().texts, given.n_auxiliary, given.seed),
        seed=given.seed,
        on_progress=lambda share, message: print(f"{share:4.0%} {message}", file=sys.stderr),
    )
    write_json(given.out, result)
    write_svg(layers_figure(result), given.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
