"""Undo a secret rotation of MiniLM vectors, without pairs and with k pairs.

`python -m benchmarks alignment` takes the bundled sentences, of which there are few.
`python -m benchmarks.alignment FILE` takes a corpus of one text a row, for the full size.
`--foreign FILE` rotates texts of another domain, and `--pairs 16 32 64 128` gives some pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks import Measurement
from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.audit.alignment.anchored import fit_anchored
from leakscope.core.audit.alignment.paired import Method, fit_paired
from leakscope.core.audit.alignment.unpaired import fit_unpaired
from leakscope.core.corpora import bundled_sentences, load_corpus
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.minilm import load_minilm
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import Vectors
from leakscope.core.results import Score

N_KNOWN, N_THEIRS = 48_000, 20_000
N_READ = 500
"""Vectors whose words are recovered."""


def secret_rotation(d: int, seed: int) -> NDArray[np.float32]:
    """Draw a uniformly random orthogonal (d, d) matrix from a seed (Mezzadri 2007)."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return np.asarray(q * np.sign(np.diag(r)), dtype=np.float32)


def domain_distance(first: Vectors, second: Vectors) -> float:
    """Return 1 minus the cosine between the means of two vector sets."""
    means = [rows.mean(axis=0) for rows in (first, second)]
    norms = np.linalg.norm(means[0]) * np.linalg.norm(means[1])
    return 1.0 - float(means[0] @ means[1] / norms)


def _known_and_other_vectors(
    texts: Sequence[str], foreign: Sequence[str] | None, seed: int
) -> tuple[Vectors, Vectors]:
    """Encode texts; return the known vectors and, for the attack, held-out or foreign ones."""
    encoder = CachedEncoder(load_minilm())
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    known = [texts[i] for i in order]
    if foreign is None:
        n = min(N_THEIRS, len(texts) // 2)
        return encoder.encode(known[n : n + N_KNOWN]), encoder.encode(known[:n])
    others = set(known)
    theirs = [foreign[i] for i in rng.permutation(len(foreign)) if foreign[i] not in others]
    return encoder.encode(known[:N_KNOWN]), encoder.encode(theirs[:N_THEIRS])


def _cosine_score(mapped: Vectors, clear: Vectors, seed: int) -> Score:
    """Return the mean cosine between mapped vectors and their originals, with its interval."""
    cosines = (mapped * clear).sum(axis=1).astype(np.float64)
    interval = bootstrap_interval(cosines, bounds=(-1.0, 1.0), seed=seed)
    return Score(float(cosines.mean()), interval, len(cosines), 0.0)


def measure_across(
    texts: Sequence[str], foreign: Sequence[str], seeds: Sequence[int] = (0, 1, 2)
) -> list[Measurement]:
    """Undo a rotation by vectors of another domain, without pairs; measure the cosine per seed."""
    texts, foreign = list(dict.fromkeys(texts)), list(dict.fromkeys(foreign))
    rows = []
    for seed in seeds:
        known, clear = _known_and_other_vectors(texts, foreign, seed)
        theirs = clear @ secret_rotation(clear.shape[1], seed)
        found = fit_unpaired(known, theirs, seed=seed)
        score = _cosine_score(found.map.apply(theirs), clear, seed)
        rows.append(
            Measurement(
                name=f"rotation undone without pairs across domains, seed {seed}",
                value=score.value,
                unit="mean cosine",
                goal=0.95,
                n=score.n,
                note=f"{score.format(3)}; distance {domain_distance(known, clear):.2f}; "
                f"{len(known):,} known; share {found.confidence.share:.2f}, "
                f"believed: {found.confidence.is_right}",
            )
        )
    return rows


N_TESTED = 500


def measure_pairs(
    texts: Sequence[str],
    sizes: Sequence[int],
    foreign: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
) -> list[Measurement]:
    """Undo a rotation given k pairs and unpaired vectors; measure the cosine per k and seed."""
    texts = list(dict.fromkeys(texts))
    foreign = None if foreign is None else list(dict.fromkeys(foreign))
    rows = []
    for seed in seeds:
        known, clear = _known_and_other_vectors(texts, foreign, seed)
        theirs = clear @ secret_rotation(clear.shape[1], seed)
        test, test_theirs = clear[:N_TESTED], theirs[:N_TESTED]
        for k in sizes:
            paired = slice(N_TESTED, N_TESTED + k)
            pairs = clear[paired], theirs[paired]
            alone = fit_paired(*pairs, method=Method.PROCRUSTES, seed=seed).map
            ridge = fit_paired(*pairs, method=Method.RIDGE, seed=seed).map
            found = fit_anchored(known, theirs[paired.stop :], pairs, seed=seed)
            score = _cosine_score(found.map.apply(test_theirs), test, seed)
            plain, ridged = (
                _cosine_score(m.apply(test_theirs), test, seed) for m in (alone, ridge)
            )
            rows.append(
                Measurement(
                    name=f"rotation undone with {k} pairs, seed {seed}",
                    value=score.value,
                    unit="mean cosine",
                    goal=0.95,
                    n=score.n,
                    note=f"{score.format(3)}; pairs alone: Procrustes {plain.format(3)}, ridge "
                    f"{ridged.format(3)}; distance {domain_distance(known, clear):.2f}; "
                    f"{len(known):,} known, {len(theirs) - paired.stop:,} rotated; share "
                    f"{found.confidence.share:.2f}",
                )
            )
    return rows


def measure(texts: Sequence[str] | None = None, seeds: Sequence[int] = (0,)) -> list[Measurement]:
    """Undo a secret rotation without pairs; measure the mean cosine and the F1 lost, per seed."""
    texts = list(dict.fromkeys(bundled_sentences() if texts is None else texts))
    encoder = load_minilm()
    n_theirs = min(N_THEIRS, len(texts) // 2)
    attack = open_attack("probe_mlc", encoder)
    rows = []
    for seed in seeds:
        chosen = np.random.default_rng(seed).permutation(len(texts))[: N_KNOWN + n_theirs]
        vectors = CachedEncoder(encoder).encode([texts[i] for i in chosen])
        clear, known = vectors[:n_theirs], vectors[n_theirs:]
        theirs = clear @ secret_rotation(clear.shape[1], seed)
        start, busy = time.perf_counter(), time.process_time()
        found = fit_unpaired(known, theirs, seed=seed)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        mapped = found.map.apply(theirs)
        read = [texts[i] for i in chosen[:N_READ]]
        f1 = [
            evaluate(attack, encoder, read, vectors=v[:N_READ]).scores.token_set_f1
            for v in (clear, mapped)
        ]
        note = (
            f"{len(known):,} known, {n_theirs:,} rotated; share {found.confidence.share:.2f}; "
            f"F1 {f1[0]:.1f} clear, {f1[1]:.1f} mapped; {seconds:.0f} s, {busy:.0f} s of one core"
        )
        rows += [
            Measurement(
                name=f"rotation undone without pairs, seed {seed}",
                value=float((mapped * clear).sum(axis=1).mean()),
                unit="mean cosine",
                goal=0.99,
                n=n_theirs,
                note=note,
            ),
            Measurement(
                name=f"F1 lost by the rotation, seed {seed}",
                value=f1[0] - f1[1],
                unit="points",
                at_most=2.0,
                n=N_READ,
            ),
        ]
    return rows


def main() -> None:
    """Run the alignment benchmark on the user's corpus and print its measurements."""
    from benchmarks.__main__ import describe

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="a file of texts, one a row")
    parser.add_argument("--seeds", type=int, default=5, help="secret rotations (default: 5)")
    parser.add_argument("--foreign", help="a file of the texts whose vectors are rotated")
    parser.add_argument("--pairs", type=int, nargs="+", metavar="K", help="numbers of pairs")
    arguments = parser.parse_args()
    texts, seeds = load_corpus(arguments.corpus).texts, range(arguments.seeds)
    foreign = load_corpus(arguments.foreign).texts if arguments.foreign else None
    for seed in seeds:
        if arguments.pairs:
            rows = measure_pairs(texts, arguments.pairs, foreign, [seed])
        elif foreign is not None:
            rows = measure_across(texts, foreign, [seed])
        else:
            rows = measure(texts, [seed])
        for row in rows:
            print(describe(row), flush=True)


if __name__ == "__main__":
    main()
