"""Words recovered from an encoder of another family with k pairs and no queries.

`python -m benchmarks.other_family TEXTS VECTORS CORPUS` takes a JSON object of lists of texts, the
first of which are the pairs and each other a set of texts under attack; a .npy file of the unknown
encoder's vectors of all of them, in their order; and a corpus of one text a row, which the attacker
has. Texts of the corpus whose known vector has a cosine of 0.9 or more with that of an attacked
text are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.evaluation import score_answers
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.audit.alignment.paired import fit_paired
from leakscope.core.audit.alignment.simulated import train_simulated
from leakscope.core.corpora import load_corpus
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.minilm import load_minilm
from leakscope.core.protocols import Vectors
from leakscope.core.results import Score

SIZES = (100, 300, 1_000)
NEAR = 0.9


def compare_attackers(
    sets: dict[str, list[str]],
    theirs: Vectors,
    corpus: Sequence[str],
    *,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
) -> Iterator[tuple[str, int, dict[str, Score]]]:
    """Train each attacker on k pairs; yield text set, k, and every attacker's F1 by name.

    `direct` reads true vectors of the known encoder; `map` reads vectors that a map fitted on the
    pairs brought there; `simulated` was trained on simulated vectors.
    """
    encoder = load_minilm()
    cached = CachedEncoder(encoder)
    known = cached.encode([text for texts in sets.values() for text in texts])
    (pairs, *attacked), ends = sets, np.cumsum([len(texts) for texts in sets.values()])
    places = dict(zip(sets, np.split(np.arange(len(known)), ends[:-1]), strict=True))
    taken = {text for texts in sets.values() for text in texts}
    texts = [text for text in dict.fromkeys(corpus) if text not in taken]
    vectors = cached.encode(texts)
    far = (vectors @ known[ends[0] :].T).max(axis=1) < NEAR
    own = [text for text, keep in zip(texts, far, strict=True) if keep], vectors[far]
    shipped = open_attack("probe_mlc", encoder)

    def f1(attack: Any, rows: Vectors, name: str) -> Score:
        """Invert the vectors of a set of texts with an attack; return the token-set F1."""
        answers = attack.invert(encoder, rows)
        result = score_answers(attack, encoder, sets[name], answers, seconds=1.0, seed=seed)
        return result.scores.score("token_set_f1", result.baseline.token_set_f1)

    for k in sizes:
        rows = places[pairs][:k]
        mapped = fit_paired(known[rows], theirs[rows], seed=seed).map
        found = train_simulated(
            encoder, (sets[pairs][:k], known[rows], theirs[rows]), own, seed=seed
        )
        for name in attacked:
            at = places[name]
            scores = {
                "direct": f1(shipped, known[at], name),
                "map": f1(shipped, mapped.apply(theirs[at]), name),
            }
            if found is not None:
                scores["simulated"] = f1(found.attack, found.map.apply(theirs[at]), name)
            yield name, k, scores


def main() -> None:
    """Run the comparison of attackers on the user's files and print the F1 of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, help="a JSON object of lists of texts, pairs first")
    parser.add_argument("vectors", type=Path, help="a .npy file of their foreign vectors")
    parser.add_argument("corpus", help="a file of texts that the attacker has, one a row")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of pairs")
    parser.add_argument("--most", type=int, default=17_000, help="texts of the corpus")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    texts = load_corpus(given.corpus).texts
    kept = np.sort(np.random.default_rng(given.seed).permutation(len(texts))[: given.most])
    sets, theirs = json.loads(given.texts.read_text()), np.load(given.vectors)
    corpus = [texts[i] for i in kept]
    for name, k, scores in compare_attackers(
        sets, theirs, corpus, sizes=given.sizes, seed=given.seed
    ):
        shown = ", ".join(f"{attacker} {score.format(1)}" for attacker, score in scores.items())
        print(f"{name}, {k:,} pairs, n = {len(sets[name]):,}: F1 {shown}", flush=True)


if __name__ == "__main__":
    main()
