"""Row-by-row comparison of two versions of the same vectors: leakage and neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from leakscope.core.audit.leakage import Leakage, strongest_attack, usable_rows
from leakscope.core.audit.sources import Sample
from leakscope.core.corpora import bundled_sentences
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import Encoder, OnProgress, Vectors
from leakscope.core.results import Score
from leakscope.core.units import units_of, units_of_vectors
from leakscope.core.vectors import mean_norm, unit

N_ATTACKED = 100
"""Rows attacked in each version: the re-embedding search takes about 0.3 s per row."""

N_QUERIES = 500
"""The most rows whose neighbours are compared."""

_TIE = 1e-6
"""Cosines that differ by less count as equal."""


def neighbour_recall(
    before: Vectors,
    after: Vectors,
    k: int = 10,
    *,
    units: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Score:
    """Return the mean percentage of a row's k nearest rows that the changed vectors still find.

    Implements recall@k with ties as ANN-Benchmarks does (Aumüller, Bernhardsson & Faithfull 2020,
    §2.2): a found row is right where its cosine in `before` is at least that of the k-th nearest.
    Each row queries the version that it is stored in.

    Parameters
    ----------
    before : ndarray of float32, shape (n, d)
    after : ndarray of float32, shape (n, m)
        The same rows, changed.
    k : int
        1 for the agreement of the nearest row.
    units : sequence of n, optional
        What is independent: the distinct texts; by default the distinct rows of `before`.
    seed : int
        Of the choice of at most `N_QUERIES` rows, and of the interval.

    Returns
    -------
    Score
        Over the rows that query, beside rows at random; NaN where fewer than k + 1 other rows are
        there.

    Raises
    ------
    InvalidInputError
        Versions of different numbers of rows, or k below 1.
    """
    n = len(before)
    if len(after) != n:
        raise InvalidInputError(
            f"The two versions have {n} and {len(after)} rows. Give the same rows of both."
        )
    if k < 1:
        raise InvalidInputError(f"k must be at least 1, got {k}.")
    if n < k + 2:
        return Score(float("nan"))
    rng = np.random.default_rng(seed)
    queries = np.sort(rng.choice(n, min(n, N_QUERIES), replace=False))
    old, new = unit(before.astype(np.float64)), unit(after.astype(np.float64))
    shares = np.empty(len(queries))
    for i, row in enumerate(queries):
        was, now = old @ old[row], new @ new[row]
        was[row] = now[row] = -np.inf
        found = np.argsort(-now, kind="stable")[:k]
        shares[i] = np.mean(was[found] >= np.partition(was, -k)[-k] - _TIE)
    own = units_of_vectors(before) if units is None else units
    groups = [own[row] for row in queries]
    interval = bootstrap_interval(100 * shares, groups=groups, bounds=(0.0, 100.0), seed=seed)
    return Score(100 * float(shares.mean()), interval, len(set(groups)), 100 * k / (n - 1))


def f1_change(before: Leakage, after: Leakage, sample: Sample, *, seed: int = 0) -> Score:
    """Return the mean change in F1 from `before` to `after` on the same rows, with an interval.

    Parameters
    ----------
    before, after : Leakage
        Of the rows of `sample`, with the same words to find.
    """
    old = {row.row: row.f1 for row in before.rows}
    new = {row.row: row.f1 for row in after.rows}
    rows = [(i, name) for i, name in enumerate(sample.ids) if name in old and name in new]
    differences = 100 * np.array([new[name] - old[name] for _, name in rows])
    texts = sample.known_texts
    units = units_of([texts[i] for i, _ in rows])
    interval = bootstrap_interval(differences, groups=units, bounds=(-100.0, 100.0), seed=seed)
    return Score(float(differences.mean()), interval, len(set(units)), 0.0)


def describe_change(change: Score, than: str) -> str:
    """Return a phrase that says whether a change in score is significant, with its interval.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> describe_change(Score(-0.2, Interval(-0.9, 0.5), 100), "float32")
    'not significantly different from float32 (difference -0.2, 95 % CI -0.9 to 0.5)'
    """
    if not change.ci95.is_known:
        return f"not resolvable from {than}"
    summary = f"(difference {change.in_text(is_inside=True)})"
    if change.ci95.high < 0:
        return f"significantly less than {than} {summary}"
    if change.ci95.low > 0:
        return f"significantly more than {than} {summary}"
    return f"not significantly different from {than} {summary}"


def describe_stronger_attack(attack: str, encoder: Encoder) -> str:
    """Return a warning if a stronger attack is shipped for the encoder, else an empty string."""
    strongest = strongest_attack(encoder)
    if attack == strongest:
        return ""
    return (
        f"The attack was {attack}. {strongest} is stronger on {encoder.name} and may recover more."
    )


def attacked_rows(sample: Sample, n: int, seed: int) -> list[int]:
    """Draw up to n row indices of a sample, ascending, from rows with texts if any has one."""
    if n < 2:
        raise InvalidInputError(f"n must be at least 2, got {n}.")
    known = usable_rows(sample.texts) or list(range(len(sample.ids)))
    drawn = np.random.default_rng(seed).permutation(len(known))[:n]
    return sorted(known[i] for i in drawn)


N_SCALED = 50
"""Texts that are encoded to learn the scale of an encoder's vectors."""


def rescale_to_encoder(sample: Sample, encoder: Encoder) -> Sample:
    """Return a sample with vectors rescaled to the encoder's norm; unchanged if that is unknown.

    Stores multiply vectors by constants. The scale is that of vectors of the same texts where they
    are known; else it is set only where the encoder makes unit vectors, since the lengths of others
    depend on the texts.

    Parameters
    ----------
    encoder : Encoder
        Behind the defence, if there is one: its noise has the encoder's scale.
    """
    held = usable_rows(sample.texts)[:N_SCALED]
    texts = sample.take(held).known_texts or bundled_sentences()[:N_SCALED]
    made = encoder.encode(texts)
    is_unit = bool(np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-3))
    if not held and not is_unit:
        return sample
    own = sample.vectors[held] if held else sample.vectors
    factor = mean_norm(made) / mean_norm(own)
    if abs(factor - 1) < 0.01:
        return sample
    return replace(sample, vectors=(sample.vectors * factor).astype(np.float32))


def fields_to_dict(record: Any, **names: str) -> dict[str, Any]:
    """Return a dataclass's fields as a JSON-able dict, some of them under other names.

    Examples
    --------
    >>> fields_to_dict(Score(0.5, n=3), n="size")["size"]
    3
    """
    found = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if isinstance(value, tuple):
            value = [part.to_dict() if hasattr(part, "to_dict") else part for part in value]
        found[names.get(each.name, each.name)] = (
            value.to_dict() if isinstance(value, Score) else value
        )
    return found


def report_at_fraction(on_progress: OnProgress, fraction: float) -> OnProgress:
    """Wrap a progress callback so that each message is reported at a fixed fraction."""

    def report(_: float, message: str) -> None:
        """Report a message at the fixed fraction."""
        on_progress(fraction, message)

    return report
