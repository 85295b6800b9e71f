"""Presence tests: attacks that infer whether texts are in an index, compared with absent texts.

The attacker asks the index for the text, for its sentences and for random halves of its words
(membership in a retrieval index by several queries, as MEntA does). What comes back is compared
with what comes back for reference texts of the same kind that are known to be absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core import __version__
from leakscope.core.attacks.membership.predictability import Predictability, blind_baseline
from leakscope.core.attacks.membership.ranking import Ranking, shuffled
from leakscope.core.attacks.membership.rates import PRIORS, AtRate
from leakscope.core.attacks.membership.roc import auc, tpr_at_fpr
from leakscope.core.attacks.membership.verdict import membership_probability
from leakscope.core.audit.audit import N_CHECKED_TEXTS, printable
from leakscope.core.audit.identification import (
    Identification,
    agreement_with_texts,
    identify_among,
)
from leakscope.core.audit.leakage import usable_rows
from leakscope.core.audit.sources import Batch, Sample, VectorSource
from leakscope.core.audit.sources.protocol import refusal, widths_differ
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import format_auc
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.text import check_texts
from leakscope.core.units import units_of, units_or_none
from leakscope.core.vectors import is_sparse, unit

TOP = 10
"""Rows that the index returns for a query."""

SAME = 0.999
"""Minimum cosine of a stored vector of the same text, in any storage format."""

RIDGE = 0.03
"""Of `Whitening`: by it, two corpora and indexes of 200 to 6,000 rows were searched best."""

LEAST_REFERENCES = 30
"""Absent texts needed: a third calibrates the attack, the rest is compared."""

MOST_PRESENT = 0.1
"""Maximum share of references that are in the index."""

ALPHA = 0.05
"""Maximum p-value that counts as significant."""

RATES = (0.1, 0.01)
"""False-positive rates at which the true-positive rate is reported."""

_LEAST_WORDS = 5
_MOST_PARTS = 4
_N_SPLITS = 2
_QUOTING = "Thanks. -----Original Message----- "
_BLOCK = 4096


class IndexAccess(StrEnum):
    """What an attacker sees of an index."""

    VECTORS = "vectors"
    SCORES = "scores"
    ROUNDED = "rounded"
    IDS = "ids"

    @property
    def description(self) -> str:
        """What the attacker sees, as a noun phrase."""
        return {
            IndexAccess.VECTORS: "the stored vectors",
            IndexAccess.SCORES: "the similarity scores",
            IndexAccess.ROUNDED: "rounded similarity scores",
            IndexAccess.IDS: "the ids of the rows found",
        }[self]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest rows of each query, nearest first.

    Attributes
    ----------
    cosines : ndarray of float32, shape (n, k)
        -1 where the index holds fewer than k rows.
    rows : ndarray of int64, shape (n, k)
        Numbers of the rows in the source, from 0; -1 where there is none.
    ids : ndarray of str objects, shape (n, k)
        How the source names them.
    n_rows : int
        Rows of the source, vectors of zeros included.
    """

    cosines: NDArray[np.float32]
    rows: NDArray[np.int64]
    ids: NDArray[Any]
    n_rows: int


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries that the attacker sends to the index for each text.

    Attributes
    ----------
    texts : list of str
    owners : ndarray of int64, shape (n,)
        The number of the text that each query is made of.
    kinds : ndarray of str, shape (n,)
        `whole`, `part` (a sentence, or half of a single one), `masked` (half of the words) or
        `quoted` (the text in a reply).
    """

    texts: list[str]
    owners: NDArray[np.int64]
    kinds: NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Whitening:
    """A linear map after which the vectors of an index have equal variance in all directions.

    Features that many rows share, such as a subject, lose weight; features of single rows gain it.

    Attributes
    ----------
    mean : ndarray of float64, shape (d,)
    matrix : ndarray of float64, shape (d, d)
        (Σ + r·tr(Σ)/d · I)^(-1/2), of the covariance Σ of the unit vectors.
    """

    mean: NDArray[np.float64]
    matrix: NDArray[np.float64]

    @classmethod
    def of_index(cls, source: VectorSource, *, ridge: float = RIDGE) -> Self:
        """Read an index once and compute the map that whitens its unit vectors.

        Vectors of zeros do not count.
        """
        n, sums, products = 0, np.float64(0), np.float64(0)
        with source.opened() as batches:
            for batch in batches:
                if len(batch.ids):
                    rows = unit(batch.vectors.astype(np.float32))
                    n += int(rows.any(axis=1).sum())
                    sums = sums + rows.sum(axis=0, dtype=np.float64)
                    products = products + (rows.T @ rows).astype(np.float64)
        mean = np.asarray(sums / max(n, 1))
        variances, axes = np.linalg.eigh(products / max(n, 1) - np.outer(mean, mean))
        variances = np.maximum(variances, 0.0)
        scale = 1 / np.sqrt(variances + ridge * max(float(variances.mean()), 1e-12))
        return cls(mean, (axes * scale) @ axes.T)

    def apply(self, vectors: Vectors) -> Vectors:
        """Whiten vectors and return them as unit vectors, shape (n, d); zero vectors stay."""
        found = (unit(vectors) - self.mean.astype(np.float32)) @ self.matrix.astype(np.float32)
        found[~vectors.any(axis=1)] = 0.0
        whitened: Vectors = unit(found)
        return whitened


def nearest_rows(
    source: VectorSource,
    queries: Vectors,
    k: int = TOP,
    *,
    whitening: Whitening | None = None,
    on_progress: OnProgress = no_progress,
) -> Neighbours:
    """Read an index in batches and find the k rows with the highest cosine to each query vector.

    The index passes by in batches; memory holds one batch and k rows a query.

    Parameters
    ----------
    queries : ndarray of float32, shape (n, d)
    k : int
    whitening : Whitening, optional
        Applied to rows and queries first.

    Raises
    ------
    InvalidInputError
        The source cannot be read, holds no vector, NaN, or vectors of another width than d.
    """
    prepared = unit if whitening is None else whitening.apply
    wanted = prepared(queries.astype(np.float32))
    n = len(wanted)
    cosines = np.full((n, k), -1.0, dtype=np.float32)
    rows = np.full((n, k), -1, dtype=np.int64)
    ids = np.full((n, k), "", dtype=object)
    n_rows = 0
    with source.opened() as batches:
        for batch in batches:
            if not len(batch.ids):
                continue
            if batch.vectors.shape[1] != wanted.shape[1]:
                raise widths_differ(
                    source.label, batch.ids[0], batch.vectors.shape[1], wanted.shape[1]
                )
            stored = batch.vectors.astype(np.float32)
            if not np.isfinite(stored).all():
                raise refusal(source.label, "contains NaN or infinity. Leave these rows out.")
            full = np.flatnonzero(np.linalg.norm(stored, axis=1) > 0)
            table, names = prepared(stored[full]).T, np.array(batch.ids, dtype=object)[full]
            m = min(k, len(full))
            for start in range(0, n if m else 0, _BLOCK):
                part = slice(start, start + _BLOCK)
                close = wanted[part] @ table
                best = np.argpartition(close, len(full) - m, axis=1)[:, len(full) - m :]
                joined = np.hstack([cosines[part], np.take_along_axis(close, best, axis=1)])
                order = np.argsort(-joined, axis=1, kind="stable")[:, :k]
                for kept, new in ((rows, n_rows + full[best]), (ids, names[best])):
                    kept[part] = np.take_along_axis(np.hstack([kept[part], new]), order, axis=1)
                cosines[part] = np.take_along_axis(joined, order, axis=1)
            n_rows += len(batch.ids)
            on_progress(0.0, f"Searched {n_rows:,} vectors")
    if not n_rows:
        raise refusal(source.label, "contains no vector. Name a file or collection with vectors.")
    return Neighbours(cosines, rows, ids, n_rows)


def build_queries(texts: Sequence[str], *, seed: int = 0) -> Queries:
    """Build the queries for each text: itself, its sentences, random halves of its words, a reply.

    At most four sentences of at least five words: the first, the last and the longest between. A
    text of one sentence is cut in half. Its words are split at random into two halves, twice, each
    in its order. The text in a reply finds the replies that quote it.

    Examples
    --------
    >>> asked = build_queries(["The dog barked at the postman. It rained all day in Rome."])
    >>> asked.texts[:3]  # doctest: +NORMALIZE_WHITESPACE
    ['The dog barked at the postman. It rained all day in Rome.',
     'The dog barked at the postman.', 'It rained all day in Rome.']
    >>> asked.kinds.tolist()
    ['whole', 'part', 'part', 'masked', 'masked', 'masked', 'masked', 'quoted']
    """
    found: list[tuple[str, int, str]] = []
    for i, text in enumerate(texts):
        rng = np.random.default_rng([seed, i])
        found.append((text, i, "whole"))
        found += [(part, i, "part") for part in _split_text(text)]
        words = text.split()
        for _ in range(_N_SPLITS):
            is_first = rng.random(len(words)) < 0.5
            for side in (is_first, ~is_first):
                half = " ".join(word for word, is_in in zip(words, side, strict=True) if is_in)
                found.append((half or text, i, "masked"))
        found.append((_QUOTING + text, i, "quoted"))
    asked, owners, kinds = zip(*found, strict=True)
    return Queries(list(asked), np.array(owners), np.array(kinds))


def _split_text(text: str) -> list[str]:
    """Return up to four sentences of a text, or the two halves of a single sentence."""
    found = [part for part in split_sentences(text) if len(part.split()) >= _LEAST_WORDS]
    if len(found) > _MOST_PARTS:
        between = sorted(found[1:-1], key=lambda part: -len(part))
        return [found[0], found[-1], *between[: _MOST_PARTS - 2]]
    if len(found) > 1:
        return found
    words = text.split()
    half = len(words) // 2
    return [" ".join(words[:half]), " ".join(words[half:])] if half > 1 else [text]


def presence_features(
    found: Neighbours, queries: Queries, access: IndexAccess, *, n_digits: int = 2
) -> NDArray[np.float64]:
    """Compute a feature matrix, one row per text, from the index's answers to the text's queries.

    From ids: the mean reciprocal rank of the whole text's nearest row in the answers to the other
    queries, 0 where it is not among them. Else the Fisher transform of the best cosine of each
    query: of the whole text, of the text in a reply, the greatest and the mean over its parts, and
    the mean over its masked halves.

    Parameters
    ----------
    found : Neighbours
        Of `queries`; whitened where the attacker has the vectors.
    n_digits : int
        Decimals of rounded scores.

    Returns
    -------
    ndarray of float64, shape (n_texts, 5), of ids (n_texts, 1)
        Higher where a text is likelier in the index.
    """
    n = int(queries.owners.max()) + 1

    def mean_of(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each text's mean value over its chosen queries."""
        owners = queries.owners[chosen]
        sums = np.bincount(owners, values[chosen], minlength=n)
        mean: NDArray[np.float64] = sums / np.bincount(owners, minlength=n)
        return mean

    whole = np.flatnonzero(queries.kinds == "whole")
    if access is IndexAccess.IDS:
        first = found.rows[whole, 0][queries.owners]
        is_it = found.rows == first[:, None]
        ranks = np.where(is_it.any(axis=1), 1 / (1 + is_it.argmax(axis=1)), 0.0)
        return mean_of(ranks, queries.kinds != "whole")[:, None]
    best = found.cosines[:, 0].astype(np.float64)
    if access is IndexAccess.ROUNDED:
        best = best.round(n_digits)
    best = np.arctanh(np.clip(best, -1 + _LEAST_GAP, 1 - _LEAST_GAP))
    is_part, greatest = queries.kinds == "part", np.full(n, -np.inf)
    np.maximum.at(greatest, queries.owners[is_part], best[is_part])
    means = [mean_of(best, queries.kinds == kind) for kind in ("quoted", "part", "masked")]
    return np.stack([best[whole], greatest, *means], axis=1)


_LEAST_GAP = 1e-5
"""A cosine closer to 1 than this differs by float32 rounding only."""


def presence_scores(
    features: NDArray[np.float64], null: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return one score per text: how unusual its features are among those of absent texts.

    The greatest plus the mean of its features, each in standard deviations from the mean of the
    absent texts.

    Parameters
    ----------
    features : ndarray of float64, shape (n, n_features)
        From `presence_features`.
    null : ndarray of float64, shape (m, n_features)
        The same of texts that are known to be absent, and are not among the n.

    Returns
    -------
    ndarray of float64, shape (n,)

    Examples
    --------
    >>> null = np.array([[0.0, 5.0], [2.0, 7.0]])
    >>> presence_scores(np.array([[1.0, 9.0], [4.0, 6.0]]), null).tolist()
    [4.5, 4.5]
    """
    unusual = (features - null.mean(axis=0)) / np.maximum(null.std(axis=0), 1e-9)
    scores: NDArray[np.float64] = unusual.max(axis=1) + unusual.mean(axis=1)
    return scores


@dataclass(frozen=True)
class Nearest:
    """A text to look for, with its nearest row of the index.

    Attributes
    ----------
    text : int
        The number of the text, from 1.
    p_value : float
        Share of absent texts that score at least as high, this text counted among them (conformal).
    row : str
        How the source names the row whose vector is nearest to the text or to a part of it.
    cosine : float
        Of the two.
    is_same : bool
        The row's vector is that of the whole text.
    """

    text: int
    p_value: float
    row: str
    cosine: float
    is_same: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the text's number, p-value and nearest row as a JSON-able dict."""
        return asdict(self) | {"row": printable(self.row)}


@dataclass(frozen=True)
class References:
    """How many reference texts were given, left out and used.

    Attributes
    ----------
    n_given : int
    n_present : int
        Left out, since a row has the very vector of the text.
    n_near : int
        Left out, since they nearly repeat a text of the index or one that is looked for.
    n_calibrating : int
        That the attack is calibrated on.
    n_compared : int
        The rest, which the texts are compared with.
    """

    n_given: int
    n_present: int
    n_near: int
    n_calibrating: int
    n_compared: int

    @property
    def are_absent(self) -> bool:
        """Whether few enough references were found in the index to call them absent."""
        return self.n_present <= MOST_PRESENT * self.n_given


@dataclass(frozen=True)
class Attack:
    """How well an attacker with one kind of access separates the texts from absent ones.

    Attributes
    ----------
    access : IndexAccess
    auc : Score
        Share of pairs of a text and an absent one in which the text scores higher.
    permuted : Score
        The control: the same after permuting which texts are the absent ones.
    rates : tuple of AtRate
        True-positive rates at false-positive rates of 10 % and 1 %.
    nearest : tuple of Nearest
        Of each text, the one with the least p-value first.
    n_above : int
        Texts that score above every absent one.
    p_crowding : float
        How likely the texts crowd the top scores as much by chance (`crowding`).
    """

    access: IndexAccess
    auc: Score
    permuted: Score
    rates: tuple[AtRate, ...]
    nearest: tuple[Nearest, ...]
    n_above: int
    p_crowding: float

    def to_dict(self, n_shown: int) -> dict[str, Any]:
        """Return the AUC, rates and the `n_shown` nearest rows as a JSON-able dict."""
        return {
            "access": self.access.value,
            **self.auc.to_record("auc"),
            "n": self.auc.n,
            **self.permuted.to_record("permuted_auc"),
            "n_above_every_reference": self.n_above,
            "p_crowding": self.p_crowding,
            "tpr_at_fpr": {
                f"{at.fpr:g}": {
                    **at.tpr.to_dict(),
                    "resolution": at.resolution,
                    "ppv": {
                        f"1:{round(1 / prior) - 1}": membership_probability(at, prior).to_dict()
                        for prior in PRIORS
                    },
                }
                for at in self.rates
                if at.is_shown
            },
            "nearest": [found.to_dict() for found in self.nearest[:n_shown]],
        }


@dataclass(frozen=True)
class Comparison:
    """The comparison of texts with absent texts, for each kind of access.

    Attributes
    ----------
    source, encoder : str
    n_rows : int
        Vectors in the index.
    n_texts : int
    references : References
    blind : Predictability
        Whether words and lengths alone predict which texts are the references, without the index.
    attacks : tuple of Attack
    controls : mapping of IndexAccess to Score
        AUC of texts that are known to be in the index; empty where none is known.
    repeated : tuple of int
        Texts, by number from 1, that a text of the index nearly repeats.
    has_texts : bool
        Whether the source holds texts, so that near-duplicates could be found by their words.
    """

    source: str
    encoder: str
    n_rows: int
    n_texts: int
    references: References
    blind: Predictability
    attacks: tuple[Attack, ...]
    controls: Mapping[IndexAccess, Score]
    repeated: tuple[int, ...]
    has_texts: bool

    @property
    def strongest(self) -> Attack:
        """The attack with the greatest AUC."""
        return max(self.attacks, key=lambda attack: attack.auc.value)

    @property
    def is_valid(self) -> bool:
        """Whether the references are absent from the index and of the same kind as the texts."""
        return self.references.are_absent and not self.blind.is_above_chance

    @property
    def not_tested(self) -> tuple[str, ...]:
        """Sentences on what the results do not cover, each with the reason."""
        found = [
            "Logs, backups, caches, and the graph or codebook of the index: they were not read."
        ]
        if not self.has_texts:
            found.append(
                "The source contains no texts, so references that are near-duplicates of a row "
                "stay in, which lowers the AUC."
            )
        if not self.references.are_absent:
            found.append(
                f"{self.references.n_present:,} of {self.references.n_given:,} references are in "
                "the index, so the results are not valid. Give texts that were never in it."
            )
        if self.blind.is_above_chance:
            found.append(
                "Words and lengths alone separate the texts from the references, with an AUC of "
                f"{format_auc(self.blind.auc)}, so the results are not valid. Give references of "
                "the same kind, best from one random split."
            )
        return tuple(found)

    def to_dict(self, n_shown: int = 10) -> dict[str, Any]:
        """Return the comparison as a JSON-able dict without texts; `n_shown` rows per attack."""
        return {
            "leakscope": __version__,
            "source": self.source,
            "n_rows": self.n_rows,
            "encoder": self.encoder,
            "n_texts": self.n_texts,
            "references": asdict(self.references),
            "blind_baseline": self.blind.to_dict(),
            "near_duplicates_stay_of": list(self.repeated),
            "attacks": [
                attack.to_dict(n_shown)
                | (
                    {"control": self.controls[attack.access].to_dict()}
                    if attack.access in self.controls
                    else {}
                )
                for attack in self.attacks
            ],
            "not_tested": list(self.not_tested),
        }

    @property
    def sentence(self) -> str:
        """A sentence, with numbers, on how well the attacker finds the texts."""
        attack = self.strongest
        if not self.is_valid:
            return f"Presence could not be measured. {self.not_tested[-1]}"
        attacker = f"An attacker who sees {attack.access.description}"
        if self.n_texts == 1:
            (near,) = attack.nearest
            differ = "" if near.p_value <= ALPHA else "not "
            return (
                f"For {attacker[0].lower()}{attacker[1:]}, the text is {differ}significantly "
                f"different from absent texts (p = {near.p_value:.2g}, "
                f"{self.references.n_compared:,} references). Its nearest row has a cosine of "
                f"{near.cosine:.2f}."
            )
        n_found = sum(near.p_value <= ALPHA for near in attack.nearest)
        return (
            f"{attacker} separates the {self.n_texts:,} texts from absent ones with an AUC of "
            f"{format_auc(attack.auc)}; chance is 50. {n_found:,} texts have p ≤ {ALPHA:g}; by "
            f"chance it would be about {ALPHA * self.n_texts:.0f}."
        )


def check_presence(
    source: VectorSource | Sample,
    texts: Sequence[str],
    references: Sequence[str],
    encoder: Encoder,
    *,
    present: Sequence[str] = (),
    access: Sequence[IndexAccess] = tuple(IndexAccess),
    n_digits: int = 2,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> Comparison:
    """Measure, for each kind of access, how well an attacker can tell if texts are in an index.

    Parameters
    ----------
    source : VectorSource or Sample
        The index; a sample must be whole.
    texts : sequence of str
        To look for.
    references : sequence of str
        Of the same kind, never in the index: at least 30 after those are left out that are in it.
    encoder : Encoder
        The one that made the vectors, behind its defence where there is one.
    present : sequence of str
        Texts known to be in the index, which show whether the attack finds any.
    access : sequence of IndexAccess
        What the attacker sees; all four by default.
    n_digits : int
        Decimals of rounded scores.
    seed : int
        Of the queries, of the split of the references, and of the intervals.

    Raises
    ------
    InvalidInputError
        Too few references, no text, a text that cannot be encoded, or vectors of another encoder.
    """
    if not texts or not access:
        raise InvalidInputError("Give at least one text to look for and one kind of access.")
    index = _WholeSample(source) if isinstance(source, Sample) else source
    groups = [check_texts(group) for group in (texts, references, present)]
    everything = [text for group in groups for text in group]
    queries = build_queries(everything, seed=seed)
    vectors = encoder.encode(queries.texts, lambda f, m: on_progress(0.8 * f, m))
    if is_sparse(vectors):
        raise InvalidInputError(
            f"{encoder.name} makes sparse vectors, but an index contains dense "
            "ones. Name another encoder."
        )
    raw = nearest_rows(index, vectors, on_progress=lambda f, m: on_progress(0.8, m))
    by_access = dict.fromkeys(access, raw)
    if IndexAccess.VECTORS in by_access:
        by_access[IndexAccess.VECTORS] = nearest_rows(
            index,
            vectors,
            whitening=Whitening.of_index(index),
            on_progress=lambda f, m: on_progress(0.9, m),
        )
    whole = raw.cosines[queries.kinds == "whole", 0]
    spans = np.cumsum([len(texts), len(references)])
    of_texts, of_references, of_present = np.split(np.arange(len(everything)), spans)
    is_present = whole[of_references] >= SAME
    is_near, repeated, has_texts = _find_repetitions(index, groups[0], groups[1])
    usable = of_references[~(is_present | is_near)]
    if len(usable) < LEAST_REFERENCES:
        raise InvalidInputError(
            f"references must contain at least {LEAST_REFERENCES} texts that are neither in the "
            f"index nor duplicates of the texts; {len(usable):,} of {len(references):,} are "
            "usable. Give more texts of the same kind that were never in it."
        )
    dealt = np.random.default_rng([seed, 61]).permutation(usable)
    calibrating, compared = np.split(dealt, [len(dealt) // 3])
    rows = np.r_[of_texts, compared]
    asked = [everything[i] for i in rows]
    members = np.arange(len(rows)) < len(of_texts)
    units = units_or_none(asked)
    plain = presence_features(raw, queries, IndexAccess.SCORES)
    nearest = _nearest_queries(plain[of_texts], plain[calibrating], raw, queries)
    attacks, controls = [], {}
    for kind, found in by_access.items():
        features = presence_features(found, queries, kind, n_digits=n_digits)
        scores = presence_scores(features, features[calibrating])
        ranking = Ranking(scores[rows], members, units)
        attacks.append(_evaluate_attack(kind, ranking, raw, nearest, whole >= SAME, seed))
        if len(of_present):
            known = np.r_[of_present, compared]
            is_known = np.arange(len(known)) < len(of_present)
            named = units_or_none([everything[i] for i in known])
            controls[kind] = auc(Ranking(scores[known], is_known, named), seed=seed)
    return Comparison(
        source=index.label,
        encoder=encoder.name,
        n_rows=raw.n_rows,
        n_texts=len(texts),
        references=References(
            len(references),
            int(is_present.sum()),
            int((is_near & ~is_present).sum()),
            len(calibrating),
            len(compared),
        ),
        blind=blind_baseline(asked, members, units, seed=seed),
        attacks=tuple(attacks),
        controls=controls,
        repeated=repeated,
        has_texts=has_texts,
    )


def find_encoder(
    sample: Sample, names: Sequence[str] = ("minilm",), *, on_progress: OnProgress = no_progress
) -> tuple[Identification, Encoder | None]:
    """Load the named encoders; return which of them made a sample's vectors, with the evidence.

    By the sample's texts where it has some, else by the shape of its vectors.
    """
    opened = {name: load_encoder(name) for name in dict.fromkeys(names)}
    few = sample.take(usable_rows(sample.texts)[:N_CHECKED_TEXTS])
    if few.ids:
        found = [
            (agreement_with_texts(encoder, few.known_texts, few.vectors, on_progress), encoder)
            for encoder in opened.values()
        ]
        agreeing = [(known, encoder) for known, encoder in found if known.encoder is not None]
        agreeing.sort(key=lambda pair: pair[0].is_changed)
        return agreeing[0] if agreeing else (found[0][0], None)
    by_shape, name = identify_among(
        sample.vectors, opened, seed=sample.seed, on_progress=on_progress
    )
    return by_shape, None if name is None else opened[name]


def _find_repetitions(
    index: VectorSource, texts: Sequence[str], references: Sequence[str]
) -> tuple[NDArray[np.bool_], tuple[int, ...], bool]:
    """Find which references repeat a row or a text, and which texts a row repeats, from 1.

    And whether the index holds texts at all.
    """
    n_rows = 0

    def texts_of_rows() -> Iterator[str]:
        """Read the index; yield the texts of its rows and count them."""
        nonlocal n_rows
        with index.opened() as batches:
            for batch in batches:
                for text in batch.texts or ():
                    if text:
                        n_rows += 1
                        yield text

    by_row = near_duplicates([*references, *texts], texts_of_rows())
    sought = set(units_of(texts))
    same = {i for i, unit_of in enumerate(units_of(references)) if unit_of in sought}
    by_text = near_duplicates(references, texts) | same
    n = len(references)
    is_near = np.array([i in by_row or i in by_text for i in range(n)], dtype=bool)
    return is_near, tuple(sorted(i - n + 1 for i in by_row if i >= n)), n_rows > 0


def _evaluate_attack(
    access: IndexAccess,
    ranking: Ranking,
    raw: Neighbours,
    queries: NDArray[np.int64],
    is_same: NDArray[np.bool_],
    seed: int,
) -> Attack:
    """Compute the AUC, rates and p-values of an attack from a ranking of texts, members first.

    `queries` has the query of each member that found its nearest row, `is_same` whether a row has
    the vector of the whole text.
    """
    n, m = ranking.n_members, ranking.n_outsiders
    inside, outside = np.split(ranking.scores, [n])
    above = int((inside > outside.max()).sum())
    p_values = (1 + (outside[None, :] >= inside[:, None]).sum(axis=1)) / (1 + m)
    nearest = tuple(
        Nearest(
            text=i + 1,
            p_value=float(p_values[i]),
            row=str(raw.ids[queries[i], 0]),
            cosine=float(raw.cosines[queries[i], 0]),
            is_same=bool(is_same[i]),
        )
        for i in np.lexsort((-inside, p_values)).tolist()
    )
    dealt = shuffled(ranking.members, ranking.units, seed=seed)
    return Attack(
        access=access,
        auc=auc(ranking, seed=seed),
        permuted=auc(Ranking(ranking.scores, dealt, ranking.units), seed=seed),
        rates=tuple(tpr_at_fpr(ranking, rate) for rate in RATES),
        nearest=nearest,
        n_above=above,
        p_crowding=crowding(ranking, seed=seed),
    )


def crowding(ranking: Ranking, *, seed: int = 0, n_permutations: int = 999) -> float:
    """Return a permutation test's p-value for too many members at the top of a ranking.

    A few members far up hardly change the AUC. For each k up to half of the samples, the number of
    members among the k highest is compared with its mean and standard deviation under permuted
    labels (hypergeometric); the statistic is the greatest deviation, and the p-value its share of
    permutations with one at least as great. Tied scores are ordered at random.

    Examples
    --------
    >>> members = np.arange(40) % 2 == 0
    >>> crowding(Ranking(np.where(np.arange(40) < 12, 2.0 * members, 1.0), members)) < 0.1
    True
    """
    rng = np.random.default_rng([seed, 67])
    n, size = ranking.n_members, len(ranking.scores)
    order = np.lexsort((rng.random(size), -ranking.scores))
    k = np.arange(1, size // 2 + 1)
    spread = np.sqrt(k * n * (size - n) * (size - k) / (size**2 * (size - 1)))
    permuted = [rng.permutation(ranking.members) for _ in range(n_permutations)]
    labels = np.vstack([ranking.members[order], *permuted])
    counts = np.cumsum(labels[:, : len(k)], axis=1)
    greatest = ((counts - k * n / size) / spread).max(axis=1)
    n_as_great = int((greatest[1:] >= greatest[0] - 1e-9).sum())
    return (1 + n_as_great) / (1 + n_permutations)


def _nearest_queries(
    features: NDArray[np.float64],
    null: NDArray[np.float64],
    raw: Neighbours,
    queries: Queries,
) -> NDArray[np.int64]:
    """Return, per text, the index of the query that found its nearest row: whole text or a part.

    A part where its cosine is the more unusual one among absent texts.
    """
    whole_and_part = (features[:, :2] - null[:, :2].mean(axis=0)) / (null[:, :2].std(axis=0) + 1e-9)
    found = []
    for text, (of_whole, of_part) in enumerate(whole_and_part):
        kind = "part" if of_part > of_whole else "whole"
        own = np.flatnonzero((queries.owners == text) & (queries.kinds == kind))
        found.append(int(own[np.argmax(raw.cosines[own, 0])]))
    return np.array(found)


class _WholeSample:
    """Wraps a sample of all rows as a vector source."""

    label = "the sample"

    def __init__(self, sample: Sample) -> None:
        if not sample.is_whole:
            raise InvalidInputError(
                f"source must be a whole index, got a sample of {len(sample.ids):,} of "
                f"{sample.n_rows:,} rows. Read it with n=None, or give the source itself."
            )
        self._batch = Batch(sample.vectors, sample.ids, sample.texts)

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Yield an iterator over a single batch, the whole sample."""
        yield iter([self._batch])
