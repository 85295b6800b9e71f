"""An attack on an unknown encoder, trained on simulated vectors of it.

An attacker who cannot query the encoder has k pairs of text and vector. They train a surrogate:
kernel ridge regression from a text to its foreign vector, whose left-out residuals model what it
cannot predict. The attacker simulates the foreign vectors of any number of texts with it, maps them
into a known space, and trains a classifier of words there, so that it learns the map's errors.
Differs from ALGEN (2025), which reads mapped vectors with a decoder trained on clean ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy import sparse

from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.classifiers.tuned import (
    fine_tune,
    pairs_in_vocabulary,
    teacher_for,
)
from leakscope.core.attacks.inversion.pairs import TrainingPairs
from leakscope.core.attacks.inversion.shipped import load_attack, shipped_digest, shipped_folder
from leakscope.core.audit.alignment.linear import Floats, LinearAlignment
from leakscope.core.audit.alignment.paired import fit_paired
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.text import words
from leakscope.core.vectors import unit

LEAST_SIMULATED_PAIRS = 50
"""Fewer pairs give too few residuals to draw noise from."""

MOST_SIMULATED_PAIRS = 4_000
"""More pairs would make the decomposition of their kernel slow."""

MOST_JUDGES = 100
"""Held-out pairs to compare the attack with the shipped one."""

N_COPIES = 3
"""Number of residuals drawn per simulated vector."""

EPOCHS, LEARNING_RATE = 4, 2e-3
"""Of the training; copies count as epochs."""

SIZE_FACTORS = (0.4, 0.55, 0.7, 0.85, 1.0, 1.25)
"""Lengths of answers; held-out simulated vectors choose one."""

_PENALTIES = np.logspace(-4, 1, 16)
"""Of the surrogate, in units of the mean eigenvalue of the kernel."""

_LINEAR, _NEAR, _TERMS = 0.6, 1.0, 1.5
"""Weights of the parts of the kernel: cosine, exp(3 (cosine - 1)), and shared words."""

_PAIR_WEIGHT = 3.0
"""Of a true pair beside a simulated one, in the map."""


@cache
def _terms_of(word: str) -> tuple[str, ...]:
    """Return a tuple of a word and its character n-grams of lengths three to five.

    Examples
    --------
    >>> _terms_of("cat")
    ('cat', '#<ca', '#cat', '#at>', '#<cat', '#cat>', '#<cat>')
    """
    marked = f"<{word}>"
    runs = (marked[i : i + n] for n in (3, 4, 5) for i in range(len(marked) - n + 1))
    return (word, *("#" + run for run in runs))


@dataclass(frozen=True)
class _Terms:
    """A tf-idf vectoriser over words and their character n-grams; rows have unit length.

    Attributes
    ----------
    index : dict of str to int
        Terms of the texts that the frequencies were counted in.
    idf : ndarray of float64, shape (t,)
    """

    index: dict[str, int]
    idf: Floats

    @classmethod
    def count(cls, texts: Sequence[str]) -> _Terms:
        """Build the vectoriser: count in how many of the texts each term occurs."""
        found: Counter[str] = Counter()
        for text in texts:
            found.update({term for word in set(words(text)) for term in _terms_of(word)})
        shares = np.fromiter(found.values(), np.float64) / (1 + len(texts))
        return cls({term: i for i, term in enumerate(found)}, -np.log(shares))

    def rows(self, texts: Sequence[str]) -> Any:
        """Return the tf-idf vectors of texts as a sparse matrix, shape (n, t)."""
        ids: dict[str, list[int]] = {}
        columns: list[int] = []
        ends = [0]
        for text in texts:
            for word in words(text):
                if word not in ids:
                    known = (self.index.get(term) for term in _terms_of(word))
                    ids[word] = [i for i in known if i is not None]
                columns.extend(ids[word])
            ends.append(len(columns))
        shape = (len(texts), len(self.idf))
        counts = sparse.csr_array((np.ones(len(columns)), columns, ends), shape=shape)
        counts.sum_duplicates()
        counts.data = (1 + np.log(counts.data)) * self.idf[counts.indices]
        norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(1 / np.maximum(norms, 1e-12)) @ counts)


@dataclass(frozen=True)
class Surrogate:
    """Predicts texts' foreign vectors from their known vectors and their words.

    Attributes
    ----------
    centre : ndarray of float64, shape (d,)
        Of the known vectors.
    mean : ndarray of float64, shape (d',)
        Of the foreign vectors.
    residuals : ndarray of float64, shape (k, d')
        Of each pair under the fit without it.
    explained : float
        Share of the variance of foreign vectors that is predicted of pairs left out, at most 1.
    """

    terms: _Terms
    pair_rows: Floats
    pair_terms: Any
    centre: Floats
    kernel_means: Floats
    weights: Floats
    mean: Floats
    residuals: Floats
    explained: float

    @classmethod
    def fit(
        cls, texts: Sequence[str], known: Vectors, theirs: Vectors, corpus: Sequence[str]
    ) -> Surrogate:
        """Fit on k texts with both vectors; the penalty minimises the leave-one-out error.

        Parameters
        ----------
        texts : sequence of k str
        known : ndarray of float32, shape (k, d)
        theirs : ndarray of float32, shape (k, d')
        corpus : sequence of str
            To count in how many texts words are found.
        """
        y = unit(theirs.astype(np.float64))
        terms = _Terms.count([*texts, *corpus])
        centre = known.mean(axis=0, dtype=np.float64)
        rows, sparse_rows = unit(known - centre), terms.rows(texts)
        kernel = _compute_kernel((rows, sparse_rows), (rows, sparse_rows))
        means = kernel.mean(axis=0)
        values, axes = np.linalg.eigh(_centre_kernel(kernel, means))
        values = np.maximum(values, 0.0)
        mean = y.mean(axis=0)
        targets = y - mean
        inner = axes.T @ targets
        best: tuple[float, float, Floats] | None = None
        for penalty in _PENALTIES * values.mean():
            shrunk = values / (values + penalty)
            leverage = 1 / len(y) + axes**2 @ shrunk
            error = targets - (axes * shrunk) @ inner
            left_out = error / np.maximum(1 - leverage, 1e-6)[:, None]  # Allen (1974)
            loss = float((left_out**2).sum())
            if best is None or loss < best[0]:
                best = loss, penalty, left_out
        assert best is not None
        loss, penalty, residuals = best
        return cls(
            terms=terms,
            pair_rows=rows,
            pair_terms=sparse_rows,
            centre=centre,
            kernel_means=means,
            weights=axes @ (inner / (values + penalty)[:, None]),
            mean=mean,
            residuals=residuals,
            explained=1 - loss / max(float((targets**2).sum()), 1e-12),
        )

    def predict(self, texts: Sequence[str], known: Vectors) -> Floats:
        """Predict the foreign vectors of n texts from texts and known vectors, shape (n, d')."""
        parts = []
        for start in range(0, len(texts), 2_000):
            some = slice(start, start + 2_000)
            rows = unit(known[some] - self.centre), self.terms.rows(texts[some])
            kernel = _compute_kernel(rows, (self.pair_rows, self.pair_terms))
            parts.append(_centre_kernel(kernel, self.kernel_means) @ self.weights)
        return np.concatenate(parts) + self.mean

    @cached_property
    def _shrinkage(self) -> float:
        """The Ledoit–Wolf shrinkage of the residuals' covariance, in [0, 1]."""
        return shrinkage(self.residuals)

    @property
    def covariance(self) -> Floats:
        """The covariance of the unpredicted part of foreign vectors, shape (d', d')."""
        k, width = self.residuals.shape
        share = self._shrinkage
        found: Floats = (1 - share) * (self.residuals.T @ self.residuals) / k
        found[np.diag_indices(width)] += share * float((self.residuals**2).mean())
        return found

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n residuals of the prediction from a normal distribution, shape (n, d').

        Its covariance is that of the left-out residuals, shrunk towards a multiple of the identity
        (Ledoit & Wolf 2004).
        """
        k, width = self.residuals.shape
        share = self._shrinkage
        spread = float((self.residuals**2).mean()) ** 0.5
        mixed = rng.standard_normal((n, k)) @ self.residuals / k**0.5
        even = spread * rng.standard_normal((n, width))
        drawn: Floats = (1 - share) ** 0.5 * mixed + share**0.5 * even
        return drawn


def shrinkage(rows: Floats) -> float:
    """Return the Ledoit–Wolf (2004) shrinkage, in [0, 1], of the rows' covariance about 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(shrinkage(rng.standard_normal((20, 50))) > 0.8)
    True
    """
    n, width = rows.shape
    gram = rows @ rows.T
    size = float((gram**2).sum()) / n**2  # squared norm of the covariance
    scale = float(np.trace(gram)) / n / width
    distance = size - width * scale**2
    error = (float((np.diag(gram) ** 2).sum()) / n - size) / n
    return float(np.clip(error / max(distance, 1e-300), 0.0, 1.0))


def _compute_kernel(some: tuple[Floats, Any], others: tuple[Floats, Any]) -> Floats:
    """Return the kernel matrix of two sets of texts: cosine, near-cosine and shared terms."""
    cosines = some[0] @ others[0].T
    shared = (some[1] @ others[1].T).toarray()
    found: Floats = _LINEAR * cosines + _NEAR * np.exp(3 * (cosines - 1)) + _TERMS * shared
    return found


def _centre_kernel(kernel: Floats, means: Floats) -> Floats:
    """Return a kernel matrix with the training pairs' mean subtracted from both sides."""
    centred: Floats = kernel - means - kernel.mean(axis=1, keepdims=True) + means.mean()
    return centred


@dataclass(frozen=True)
class SimulatedAttack:
    """An attack trained on simulated vectors, with the map that it is applied through.

    Attributes
    ----------
    map : LinearAlignment
    attack : ProbeMLCAttack
        Fitted on mapped vectors.
    explained : float
        As of `Surrogate`.
    n_texts : int
        Whose vectors were simulated.
    """

    map: LinearAlignment
    attack: ProbeMLCAttack
    explained: float
    n_texts: int


def train_simulated(
    encoder: Encoder,
    pairs: tuple[Sequence[str], Vectors, Vectors],
    corpus: tuple[Sequence[str], Vectors],
    *,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> SimulatedAttack | None:
    """Fine-tune the shipped classifier on simulated vectors; None if that is no better.

    Parameters
    ----------
    encoder : Encoder
        The known one.
    pairs : (texts, known, theirs)
        The texts of k pairs, their known vectors (k, d) and their foreign ones (k, d').
    corpus : (texts, known)
        Other texts, at least 100, and their known vectors. A tenth of them, 1,000 at most,
        choose the epoch and how many words to answer.
    seed : int
        Of the noise and of the texts held out.

    Returns
    -------
    SimulatedAttack or None
        None where no classifier ships for the encoder, with fewer than 50 pairs, or where the
        shipped classifier recovers more of pairs that were held out: a fifth, 100 at most.

    Raises
    ------
    InvalidInputError
        A pair's text is in the corpus, or the corpus is too small.
    """
    texts, known, theirs = pairs
    if len(texts) < LEAST_SIMULATED_PAIRS or not shipped_digest(encoder, "probe_mlc"):
        return None
    if set(texts) & set(corpus[0]):
        raise InvalidInputError(
            "The corpus contains a text of the pairs. Remove it from the corpus."
        )
    if len(corpus[0]) < 100:
        raise InvalidInputError(f"The corpus needs at least 100 texts, got {len(corpus[0])}.")
    rng = np.random.default_rng(seed)
    if len(texts) > MOST_SIMULATED_PAIRS:
        kept = np.sort(rng.permutation(len(texts))[:MOST_SIMULATED_PAIRS])
        texts, known, theirs = [texts[i] for i in kept], known[kept], theirs[kept]
    order = rng.permutation(len(texts))
    judges, rows = np.split(order, [min(MOST_JUDGES, len(texts) // 5)])
    judged = [texts[i] for i in judges], known[judges], theirs[judges]
    texts, known, theirs = [texts[i] for i in rows], known[rows], theirs[rows]
    on_progress(0.0, "Simulating the unknown encoder")
    surrogate = Surrogate.fit(texts, known, theirs, corpus[0])
    expected = surrogate.predict(corpus[0], corpus[1])
    copies = [
        (expected + surrogate.noise(len(expected), rng)).astype(np.float32) for _ in range(N_COPIES)
    ]
    own = unit(theirs.astype(np.float64))
    alignment = _fit_map(surrogate, expected, corpus[1], own, known)
    order = rng.permutation(len(expected))
    held, rest = np.split(order, [min(1_000, len(order) // 10)])
    mapped = alignment.apply(theirs)
    shipped: Any = load_attack(shipped_folder(encoder, "probe_mlc"))
    learned = [*(corpus[0][i] for i in rest), *texts]
    examples = pairs_in_vocabulary(
        shipped.vocabulary_,
        (
            learned,
            [np.concatenate([alignment.apply(copy[rest]), mapped]) for copy in copies],
        ),
        ([corpus[0][i] for i in held], alignment.apply(copies[0][held])),
    )
    clean = np.concatenate([corpus[1][rest], known])
    tuned = fine_tune(
        shipped,
        encoder,
        examples,
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        teacher=teacher_for(shipped, learned, clean),
        on_progress=lambda f, m: on_progress(0.1 + 0.9 * f, m),
    )
    tuned.size_factor = max(SIZE_FACTORS, key=lambda factor: _f1_at_size(tuned, examples, factor))
    plain = fit_paired(known, theirs, seed=seed).map
    if _f1_on_pairs(shipped, plain, judged) > _f1_on_pairs(tuned, alignment, judged):
        return None
    return SimulatedAttack(alignment, tuned, surrogate.explained, len(corpus[0]))


def _f1_at_size(attack: ProbeMLCAttack, pairs: TrainingPairs, factor: float) -> float:
    """Set an attack's answer-size factor and return its validation F1."""
    attack.size_factor = factor
    return attack._validate(pairs)


def _f1_on_pairs(
    attack: ProbeMLCAttack,
    alignment: LinearAlignment,
    pairs: tuple[Sequence[str], Vectors, Vectors],
) -> float:
    """Map and attack the foreign vectors of held-out pairs; return the mean F1 (×100)."""
    texts, _, theirs = pairs
    rows = attack.vocabulary_.rows(texts)
    listed = [i for i, row in enumerate(rows) if len(row)]
    if not listed:
        return 0.0
    return attack.mean_f1(alignment.apply(theirs[listed]), [rows[i] for i in listed])


def _fit_map(
    surrogate: Surrogate, expected: Floats, clean: Vectors, own: Floats, known: Vectors
) -> LinearAlignment:
    """Fit a least-squares map from foreign vectors, simulated and true, to known vectors.

    What the surrogate cannot predict enters by its covariance: no draw of it is fitted.
    """
    weights = np.r_[np.ones(len(expected)), np.full(len(own), _PAIR_WEIGHT)]
    x, y = np.concatenate([expected, own]), np.concatenate([clean, known]).astype(np.float64)
    centre, mean = np.average(x, axis=0, weights=weights), np.average(y, axis=0, weights=weights)
    scaled = (x - centre) * weights[:, None]
    gram, products = scaled.T @ (x - centre), scaled.T @ (y - mean)
    gram += len(expected) * surrogate.covariance
    gram[np.diag_indices_from(gram)] += 1e-4 * np.trace(gram) / len(gram)
    return LinearAlignment(np.linalg.solve(gram, products), centre, mean, "simulation")
