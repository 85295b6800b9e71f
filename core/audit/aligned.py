"""Align a sample of an unknown encoder's vectors to a known encoder, so that attacks apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakscope.core.audit.alignment.anchored import METHOD as ANCHORED
from leakscope.core.audit.alignment.anchored import fit_anchored, is_rotation
from leakscope.core.audit.alignment.paired import (
    LEAST_PAIRS,
    Method,
    PairedAlignment,
    fit_paired,
    learning_curve,
)
from leakscope.core.audit.alignment.simulated import SimulatedAttack, train_simulated
from leakscope.core.audit.alignment.unpaired import LEAST_VECTORS, fit_unpaired
from leakscope.core.audit.identification import Identification
from leakscope.core.audit.leakage import usable_rows
from leakscope.core.audit.sources import Sample, VectorSource, read_sample
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.units import units_of, units_of_vectors
from leakscope.core.vectors import unit

MOST_ALIGNED = 20_000
"""Vectors to read for an alignment without pairs; fewer align less well."""

LEAST_LEFT_OUT = 4
"""Minimum number of pairs to judge an anchored map."""

CLOSE = 0.9
"""Mean cosine of held-out pairs from which shipped attacks apply to mapped vectors unchanged."""


@dataclass(frozen=True)
class AlignedSample:
    """A sample mapped into the space of a known encoder, with the alignment's quality.

    Attributes
    ----------
    sample : Sample
        Without the rows that the alignment was fitted on; as it was, where none was found.
    identification : Identification
        Its encoder is None where no alignment was found.
    method : str
        `procrustes`, `anchored`, `ridge`, `simulation` or `unpaired`.
    n_pairs : int
    agreement : Score
        Of pairs: mean cosine of those left out of the fit, beside pairs of other rows.
        Without pairs: the part of the known space's structure that vectors held out show, in
        per cent.
    attack : InversionAttack or None
        Trained on simulated vectors of the unknown encoder; None to use the shipped ones.
    curve : tuple of (int, Score)
        The mean cosine on held-out pairs of maps fitted on fewer pairs.
    """

    sample: Sample
    identification: Identification
    method: str
    n_pairs: int
    agreement: Score
    attack: InversionAttack | None = None
    curve: tuple[tuple[int, Score], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the alignment's method and quality as a JSON-able dict, without vectors."""
        return {
            "method": self.method,
            "n_pairs": self.n_pairs,
            "agreement": self.agreement.to_dict(),
            "learning_curve": [
                {"n_pairs": k, "agreement": score.to_dict()} for k, score in self.curve
            ],
            "is_found": self.identification.encoder is not None,
        }


def align_with_pairs(
    sample: Sample,
    pairs: VectorSource,
    encoder: Encoder,
    *,
    source: VectorSource | None = None,
    like: Sequence[str] = (),
    trains: bool = False,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> AlignedSample:
    """Map a sample's vectors into a known encoder's space; the map is fitted on text–vector pairs.

    Where the pairs are those of a rotation, and fewer than its dimensions, the vectors of other
    texts help: a fifth of the pairs then judges whether they did.

    Parameters
    ----------
    pairs : VectorSource
        Texts with their vectors, at least 10. Rows of the sample with the text of a pair
        are left out: the map has seen them.
    encoder : Encoder
        The known one, which encodes the texts of the pairs.
    source : VectorSource or None
        Of the sample: up to 20,000 more of its vectors help to undo a rotation. None: the sample's.
    like : sequence of str
        The attacker's own texts, beside the bundled ones: the more, the stronger the attack.
    trains : bool
        Whether to train an attack on simulated vectors where the map is not close.

    Raises
    ------
    InvalidInputError
        The pairs cannot be read, are fewer than 10, or have vectors of another width.
    """
    read = read_sample(pairs, None, seed=seed)
    held = usable_rows(read.texts)
    if len(held) < LEAST_PAIRS:
        raise InvalidInputError(
            f"{pairs.label} contains {len(held)} texts with a vector, but {LEAST_PAIRS} or more "
            "are needed. Add pairs."
        )
    if read.vectors.shape[1] != sample.vectors.shape[1]:
        raise InvalidInputError(
            f"The vectors of {pairs.label} have {read.vectors.shape[1]} dimensions, the audited "
            f"ones {sample.vectors.shape[1]}. Give pairs of the same encoder."
        )
    read = read.take(held)
    texts, theirs = read.known_texts, read.vectors
    known_vectors = encoder.encode(texts)
    found = fit_paired(known_vectors, theirs, seed=seed)
    own = sample.known_texts
    if is_rotation(known_vectors, theirs) and found.n_pairs < encoder.dimension:
        others = sample if source is None else read_sample(source, MOST_ALIGNED, seed=seed)
        if len(others.vectors) >= LEAST_VECTORS:
            _, corpus = _encode_corpus_without(encoder, [*texts, *own], like, on_progress)
            held_pairs = known_vectors, theirs
            found = _choose_map(found, corpus, others.vectors, held_pairs, seed, on_progress)
    units = units_of([*texts, *own])
    known = set(units[: len(texts)])
    rest = [i for i, unit in enumerate(units[len(texts) :]) if not own[i] or unit not in known]
    if not rest:
        raise InvalidInputError(
            "Every sampled row is one of the pairs, so no row is left to attack. Give fewer pairs."
        )
    n = found.n_pairs
    by_chance = max(found.held_out.chance, *_chance_agreement(known_vectors, theirs, seed))
    agreement = replace(found.held_out, chance=by_chance)
    cosines = (
        f"cosine {agreement.in_text(2, is_inside=True)} on held-out pairs; {by_chance:.2f} with "
        "texts of other rows"
    )
    if not agreement.ci95.low > by_chance:
        reason = (
            f"{n:,} pairs do not map the vectors onto those of {encoder.name} ({cosines}). Their "
            "texts belong to other rows, or more pairs are needed."
        )
        unknown = Identification(None, reason)
        return AlignedSample(sample, unknown, found.map.method, n, agreement)
    reason = (
        f"Vectors of another encoder, mapped onto those of {encoder.name} with {n:,} pairs "
        f"({cosines})."
    )
    curve = learning_curve(known_vectors, theirs, seed=seed)
    if curve:
        steps = ", ".join(f"{score.value:.2f} with {k:,}" for k, score in curve)
        reason += f" Cosine by the number of pairs: {steps}."
    trained: SimulatedAttack | None = None
    is_close = found.map.method in (Method.PROCRUSTES, ANCHORED) or found.held_out.value >= CLOSE
    if trains and not is_close:
        rows = list({text: i for i, text in enumerate(texts)}.values())
        trained = train_simulated(
            encoder,
            ([texts[i] for i in rows], known_vectors[rows], theirs[rows]),
            _encode_corpus_without(encoder, [*texts, *own], like, on_progress),
            seed=seed,
            on_progress=lambda f, m: on_progress(0.5 + 0.5 * f, m),
        )
    if trained is not None:
        reason += f" The attack was trained on {trained.n_texts:,} simulated vectors."
    elif like and found.map.method != ANCHORED:
        reason += " The texts of the same kinds were not used: no attack was trained on them."
    used = found.map if trained is None else trained.map
    left = sample.take(rest)
    return AlignedSample(
        replace(left, vectors=used.apply(left.vectors)),
        Identification(encoder.name, reason),
        used.method,
        n,
        agreement,
        None if trained is None else trained.attack,
        curve,
    )


def _choose_map(
    plain: PairedAlignment,
    corpus: Vectors,
    others: Vectors,
    pairs: tuple[Vectors, Vectors],
    seed: int,
    on_progress: OnProgress,
) -> PairedAlignment:
    """Fit an anchored map; return it or the given paired map, by the fit to held-out pairs."""
    theirs = pairs[1]
    different = list({unit: i for i, unit in enumerate(units_of_vectors(theirs))}.values())
    order = np.random.default_rng(seed).permutation(different)
    n = max(LEAST_LEFT_OUT, len(order) // 5)
    chosen, left_out = (tuple(part[rows] for part in pairs) for rows in (order[n:], order[:n]))
    found = fit_anchored(
        corpus,
        others,
        (chosen[0], chosen[1]),
        seed=seed,
        on_progress=lambda f, m: on_progress(0.5 + 0.5 * f, m),
    )
    cosines = (found.map.apply(left_out[1]) * unit(left_out[0])).sum(axis=1).astype(np.float64)
    if cosines.mean() <= plain.held_out.value:
        return plain
    interval = bootstrap_interval(cosines, bounds=(-1.0, 1.0), seed=seed)
    score = Score(float(cosines.mean()), interval, n, plain.held_out.chance)
    return PairedAlignment(found.map, plain.n_pairs, score)


def _encode_corpus_without(
    encoder: Encoder, left_out: Sequence[str], like: Sequence[str], on_progress: OnProgress
) -> tuple[list[str], Vectors]:
    """Encode bundled and own texts, except copies of given texts; return texts and vectors."""
    sentences = list(dict.fromkeys([*bundled_sentences(), *like]))
    units = units_of([*left_out, *sentences])
    taken = set(units[: len(left_out)])
    rest = units[len(left_out) :]
    kept = [text for text, unit in zip(sentences, rest, strict=True) if unit not in taken]
    vectors = CachedEncoder(encoder).encode(kept, lambda f, m: on_progress(0.5 * f, m))
    return kept, vectors


N_SHUFFLES = 3


def _chance_agreement(known: Vectors, theirs: Vectors, seed: int) -> list[float]:
    """Fit maps on randomly mismatched pairs; return their held-out cosines, the chance level."""
    rng = np.random.default_rng(seed)
    return [
        fit_paired(known[rng.permutation(len(known))], theirs, seed=seed).held_out.value
        for _ in range(N_SHUFFLES)
    ]


def align_without_pairs(
    sample: Sample,
    source: VectorSource,
    like: Sequence[str],
    encoder: Encoder,
    *,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> AlignedSample:
    """Estimate and undo an unknown rotation of a sample's vectors, without text–vector pairs.

    Parameters
    ----------
    source : VectorSource
        Of the sample: up to 20,000 of its vectors are aligned.
    like : sequence of str
        Texts of the same kinds as the unknown ones, which an attacker has.
    encoder : Encoder
        The known one.

    Raises
    ------
    InvalidInputError
        Fewer than 1,000 vectors or texts, or vectors narrower than the encoder's.
    """
    theirs = read_sample(source, MOST_ALIGNED, seed=seed).vectors
    known = encoder.encode(list(dict.fromkeys(like)), lambda f, m: on_progress(0.3 * f, m))
    found = fit_unpaired(
        known, theirs, seed=seed, on_progress=lambda f, m: on_progress(0.3 + 0.7 * f, m)
    )
    factor = 100 / max(found.confidence.own.value, 1e-9)
    agreement = found.confidence.theirs
    scaled = replace(
        agreement,
        value=factor * agreement.value,
        ci95=replace(
            agreement.ci95, low=factor * agreement.ci95.low, high=factor * agreement.ci95.high
        ),
        chance=0.0,
    )
    share, interval = scaled.parts(0)
    figures = f"{share} % of {encoder.name}'s structure on held-out vectors, 95 % CI {interval}"
    if not found.confidence.is_right:
        reason = f"No rotation of {encoder.name}'s vectors was found ({figures})."
        return AlignedSample(sample, Identification(None, reason), "unpaired", 0, scaled)
    reason = f"A rotation of {encoder.name}'s vectors was undone without pairs ({figures})."
    return AlignedSample(
        replace(sample, vectors=found.map.apply(sample.vectors)),
        Identification(encoder.name, reason),
        "unpaired",
        0,
        scaled,
    )
