"""Remedies, measured on the audited rows: defences, redaction and a secret rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.evaluation import attack_vocabulary
from leakscope.core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.audit.comparison import (
    N_ATTACKED,
    attacked_rows,
    describe_change,
    describe_stronger_attack,
    f1_change,
    fields_to_dict,
    neighbour_recall,
    report_at_fraction,
    rescale_to_encoder,
)
from leakscope.core.audit.identification import random_rotation
from leakscope.core.audit.known_defence import (
    describe_defence,
    measure_leakage_behind,
    measure_leakage_known,
    with_noise_seed,
)
from leakscope.core.audit.leakage import (
    Leakage,
    Recovered,
    measure_answers,
    measure_leakage,
    share_found,
    strongest_attack,
    usable_rows,
)
from leakscope.core.audit.sources import Sample
from leakscope.core.defences.adaptive_attack import (
    N_TAUGHT,
    KnownVectors,
    attacker_pairs,
    defended_encoder,
    reads_gradients,
)
from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.protected import ProtectedEncoder, encode_dense
from leakscope.core.defences.registry import DEFENCES, entry_of, guarantee_of
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval, ratio_interval
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import AttackSpec, DefenceSpec
from leakscope.core.text import word_set
from leakscope.core.units import next_distinct_row, units_of
from leakscope.core.vectors import unit

N_KNOWN = (10, 30, 100, 300, 1_000)
"""Pairs of a text and its rotated vector that an attacker may know."""

MORE_TRAINED = (
    "Each score is that of the stronger of two attackers who know the defence. One maps the "
    "vectors back with a linear map; the other is a classifier trained further on {n:,} defended "
    "sentences. Attackers with more training may recover more: `study tradeoff` measures them."
)

LIFTED = (
    "The attacker knows each defence and maps the vectors back with a linear map. Attackers "
    "trained on defended vectors recover more: `study tradeoff` measures them."
)

RELEASED = (
    "A defence of texts or tokens releases a text, which anyone can read without an attack. Only "
    "the vector is attacked here."
)

REDACTED = (
    "Identifiers that were not found stay in the texts and may leak.",
    "Stored texts and copies of the old vectors still contain the identifiers.",
)

UNPAIRED = (
    "An attacker without known pairs can align the rotated vectors with other vectors of the same "
    "encoder. That attack is not tested here."
)


@dataclass(frozen=True)
class Remedy:
    """Leakage and search quality of the audited rows behind one defence.

    Attributes
    ----------
    defence : str
        As a command names it.
    f1 : Score or None
        Token-set F1 in per cent, beside guessing; None where it was not tested.
    change : Score or None
        Difference in F1 from the undefended rows, paired.
    recall, top1 : Score
        Per cent of the 10 nearest undefended rows that are still found, and of rows whose nearest
        row is the same; NaN where it was not tested.
    attacker : str
        Which attacker recovers most.
    guarantee : str
        What the defence guarantees with these settings; empty for nothing.
    not_tested : str
        Why it was not tested; empty where it was.
    """

    defence: str
    f1: Score | None
    change: Score | None
    recall: Score
    top1: Score
    attacker: str = ""
    guarantee: str = ""
    not_tested: str = ""

    @property
    def sentence(self) -> str:
        """A sentence on what still leaks behind the defence, and on search quality."""
        if self.f1 is None or self.change is None:
            return f"{self.defence}: not tested. {self.not_tested}"
        return (
            f"{self.defence}: F1 {self.f1.format(0, with_n=True)}, "
            f"{describe_change(self.change, 'no defence')}; a search finds {self.recall.format(0)} "
            "% of the 10 nearest rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result for this defence as a JSON-able dict."""
        return fields_to_dict(self, recall="recall_at_10", top1="top1_agreement")


@dataclass(frozen=True)
class RemedyTable:
    """Leakage and search quality of the audited rows behind each defence.

    Attributes
    ----------
    attack : str
        Which attack; it knows the defence and its implementation.
    undefended : Score or None
        F1 without a defence; None where no text is known.
    n_candidates : int
        Rows among which neighbours were sought.
    remedies : tuple of Remedy
    caveats : tuple of str
    """

    attack: str
    undefended: Score | None
    n_candidates: int
    remedies: tuple[Remedy, ...]
    caveats: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence that names the defences that significantly reduce leakage."""
        if self.undefended is None:
            return "No text is known, so leakage behind defences was not tested."
        start = f"Without a defence, F1 is {self.undefended.in_text(0)}, n = {self.undefended.n:,}."
        tested = [each for each in self.remedies if each.f1 is not None]
        if not tested:
            return f"{start} No defence was tested."
        less = [r for r in tested if r.change is not None and r.change.ci95.high < 0]
        if not less:
            return f"{start} No tested defence significantly reduces it."
        summary = ", ".join(f"{r.defence} to {r.f1.format(0)}" for r in less if r.f1 is not None)
        share = f"{len(less)} of {len(tested)} tested defences"
        return f"{start} {share} significantly reduce it (95 % CI in brackets): {summary}."

    def to_dict(self) -> dict[str, Any]:
        """Return the results of all defences, with the sentence, as a JSON-able dict."""
        return {"answer": self.sentence} | fields_to_dict(self, attack="attacker")


def measure_remedies(
    sample: Sample,
    encoder: Encoder,
    defences: Sequence[DefenceSpec],
    *,
    attack: str | None = None,
    n: int = N_ATTACKED,
    n_taught: int = N_TAUGHT,
    seed: int = 0,
    name: str = "rows",
    on_progress: OnProgress = no_progress,
) -> RemedyTable:
    """Attack a sample's rows behind each defence; measure leakage and search quality.

    A defence of vectors changes the stored vectors; one of texts or tokens encodes the texts again.
    The noise of the rows and the noise of the attacker's own sentences are drawn independently.

    Parameters
    ----------
    sample : Sample
        Vectors without a defence. All rows are candidates of the search; n are attacked.
    encoder : Encoder
        The one that made the vectors.
    defences : sequence of DefenceSpec
        Such as the settings that a trade-off recommends.
    attack : str, optional
        By default the strongest that needs no training.
    n : int
        Rows to attack, drawn at random.
    n_taught : int
        Bundled sentences that a second attacker is trained on with behind each defence; 0 for none.
    seed : int
        Of the draws, the noise and the intervals.

    Raises
    ------
    InvalidInputError
        n is below 2, or no row has a text with a word to find.
    """
    chosen = AttackSpec(name=attack or strongest_attack(encoder))
    caveats = [
        MORE_TRAINED.format(n=n_taught) if n_taught else LIFTED,
        f"Neighbours were searched among {len(sample.ids):,} rows; with more rows, recall differs.",
        "Each interval applies to one defence; there is no correction for multiple comparisons.",
        describe_stronger_attack(chosen.name, encoder),
    ]
    held = usable_rows(sample.texts)
    if not held:
        reason = "No text is known. Give the texts."
        left = [_untested_remedy(each, reason) for each in defences]
        return RemedyTable(chosen.name, None, 0, tuple(left), tuple(filter(None, caveats)))
    whole = rescale_to_encoder(sample.take(held), encoder)
    texts = whole.known_texts
    rows = attacked_rows(whole, n, seed)
    part = whole.take(rows)
    opened = open_attack(chosen, encoder, on_progress)
    on_progress(0.1, "Attacking the vectors without a defence")
    before = measure_leakage(part, encoder, opened, name=name)
    remedies = []
    for i, spec in enumerate(defences):
        start = 0.1 + 0.9 * (i + 1) / (len(defences) + 1)
        on_progress(start, f"Attacking vectors behind {spec.name}")
        if any(stage not in DEFENCES for stage in stages_of(spec.name)):
            remedies.append(
                _untested_remedy(spec, "This defence must be trained first: `defend` trains it.")
            )
            continue
        base = encoder
        if not entry_of(spec.name).needs_white_box:
            base = KnownVectors(encoder, texts, whole.vectors)
        try:
            vectors = defended_encoder(base, with_noise_seed(spec, seed)).encode(texts)
            after, attacker = measure_leakage_known(
                replace(part, vectors=vectors[rows]),
                encoder,
                spec,
                chosen,
                name=name,
                n_taught=n_taught,
                seed=seed + 1,
                on_progress=report_at_fraction(on_progress, start),
            )
        except InvalidInputError as error:
            remedies.append(_untested_remedy(spec, str(error)))
            continue
        units = units_of(texts)
        recall, top1 = (
            neighbour_recall(whole.vectors, vectors, k, units=units, seed=seed) for k in (10, 1)
        )
        change = f1_change(before, after, part, seed=seed)
        remedies.append(
            Remedy(
                describe_defence(spec),
                after.f1,
                change,
                recall,
                top1,
                attacker=attacker,
                guarantee=guarantee_of(spec),
            )
        )
    if any(entry_of(each.name).releases_tokens for each in defences):
        caveats.append(RELEASED)
    return RemedyTable(
        chosen.name, before.f1, len(whole.ids), tuple(remedies), tuple(filter(None, caveats))
    )


def _untested_remedy(spec: DefenceSpec, reason: str) -> Remedy:
    """Build the result of a defence that was not tested, with the reason."""
    nothing = Score(float("nan"))
    return Remedy(describe_defence(spec), None, None, nothing, nothing, not_tested=reason)


@dataclass(frozen=True)
class Redaction:
    """Leakage before and after identifiers are redacted.

    Attributes
    ----------
    attack : str
    removed_before, removed_after : Score
        Per cent of the redacted words in the attack's vocabulary that it recovers. n counts the
        distinct texts that contain any; chance is their share in the answers to other texts.
    change : Score
        Difference of the two, over the same texts.
    n_removed, n_listed : int
        Redacted words, and those in the vocabulary. The rest is untested.
    recovered_before, recovered_after : mapping of str to Recovered
        Of the `names` and `numbers` of the original texts, redacted or not.
    f1_before, f1_after : Score
        Token-set F1 on the words of the original texts.
    recall, top1 : Score
        Per cent of the 10 nearest original rows that are still found, and of rows whose nearest row
        is the same.
    n_changed, n : int
        Texts that redaction changed, and all of them.
    caveats : tuple of str
    """

    attack: str
    removed_before: Score
    removed_after: Score
    change: Score
    n_removed: int
    n_listed: int
    recovered_before: dict[str, Recovered]
    recovered_after: dict[str, Recovered]
    f1_before: Score
    f1_after: Score
    recall: Score
    top1: Score
    n_changed: int
    n: int
    caveats: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence on what still leaks after redaction, and on search quality."""
        if not self.n_listed:
            return (
                f"None of the {self.n_removed:,} redacted words is in the attack's vocabulary, so "
                "redaction was not tested."
            )
        before, after, recall = (
            "{} % (95 % CI {})".format(*score.parts(0))
            for score in (self.removed_before, self.removed_after, self.recall)
        )
        return (
            f"The attacker recovers {before} of the redacted words from the original vectors, and "
            f"{after} after redaction; guessing gets {self.removed_after.chance:.0f} %. A search "
            f"finds {recall} of the 10 nearest rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the results as a JSON-able dict; it contains no word of a text."""
        recovered = {
            f"{kind}_{when}": {**part.share.to_dict(), "n_listed": part.n_listed}
            for when, parts in (
                ("before", self.recovered_before),
                ("after", self.recovered_after),
            )
            for kind, part in parts.items()
        }
        return {
            "answer": self.sentence,
            "attacker": self.attack,
            "removed_before": self.removed_before.to_dict(),
            "removed_after": self.removed_after.to_dict(),
            "change": self.change.to_dict(),
            "n_removed": self.n_removed,
            "n_removed_listed": self.n_listed,
            **recovered,
            "f1_before": self.f1_before.to_dict(),
            "f1_after": self.f1_after.to_dict(),
            "recall_at_10": self.recall.to_dict(),
            "top1_agreement": self.top1.to_dict(),
            "n_changed": self.n_changed,
            "n": self.n,
            "caveats": list(self.caveats),
        }


def measure_redacted(
    sample: Sample,
    redacted: Sequence[str | None],
    encoder: Encoder,
    *,
    attack: str | None = None,
    n: int = N_ATTACKED,
    seed: int = 0,
    name: str = "rows",
    on_progress: OnProgress = no_progress,
) -> Redaction:
    """Encode redacted texts, attack their vectors and measure which original words are recovered.

    Rows that redaction changed are attacked first: others leak as before.

    Parameters
    ----------
    sample : Sample
        With texts; vectors of the originals.
    redacted : sequence of (str or None)
        The texts of the sample without their identifiers, in the same order.
    encoder : Encoder
        The one that made the vectors.
    attack : str, optional
        By default the strongest that needs no training.
    n : int
        Rows to attack, drawn at random.
    seed : int
        Of the draws and the intervals.

    Raises
    ------
    InvalidInputError
        Another number of redacted texts than of rows, no text that can be encoded before and after,
        or none with a word to find.
    """
    if len(redacted) != len(sample.ids):
        raise InvalidInputError(
            f"Got {len(redacted):,} redacted texts for {len(sample.ids):,} rows. Give one per row."
        )
    usable = set(usable_rows(redacted))
    held = [i for i in usable_rows(sample.texts) if i in usable]
    if len(held) < 2:
        raise InvalidInputError(
            f"Only {len(held)} rows have a text that can be encoded before and after redaction; at "
            "least 2 are needed. Replace identifiers with words such as `person`."
        )
    chosen = AttackSpec(name=attack or strongest_attack(encoder))
    after_texts = [redacted[i] or "" for i in held]
    vectors = encoder.encode(after_texts, lambda f, m: on_progress(0.2 * f, m))
    whole = rescale_to_encoder(sample.take(held), encoder)
    texts = whole.known_texts
    changed = [i for i, (old, new) in enumerate(zip(texts, after_texts, strict=True)) if old != new]
    drawn = np.array(changed or range(len(texts)))
    rows = sorted(np.random.default_rng(seed).permutation(drawn)[:n].tolist())
    part = whole.take(rows)
    opened = open_attack(chosen, encoder, on_progress)
    on_progress(0.2, "Attacking the original vectors")
    before = measure_leakage(part, encoder, opened, name=name)
    on_progress(0.6, "Attacking the vectors of the redacted texts")
    after, answers = measure_answers(
        replace(part, vectors=vectors[rows]),
        encoder,
        opened,
        lambda vectors: opened.invert(encoder, vectors),
        name=name,
    )
    own = part.known_texts
    removed = [
        word_set(read) - word_set(after_texts[i])
        for read, i in zip(parts_read(encoder, own), rows, strict=True)
    ]
    vocabulary = attack_vocabulary(opened, encoder)
    listed = [words & vocabulary.targets(text) for words, text in zip(removed, own, strict=True)]
    units = units_of(own)
    # Answers for other texts: the baseline of frequent words.
    guesses = [answers[next_distinct_row(units, i)].word_set for i in range(len(units))]
    counts = [
        np.array([len(a & b) for a, b in zip(listed, named, strict=True)], np.float64)
        for named in (
            _find_recovered_words(before, part),
            _find_recovered_words(after, part),
            guesses,
        )
    ]
    sought = np.array([len(words) for words in listed], np.float64)
    is_known = sought.sum() and len(set(units)) > 1
    chance = float(counts[2].sum() / sought.sum()) if is_known else float("nan")
    return Redaction(
        attack=chosen.name,
        removed_before=share_found(own, counts[0], sought, chance, seed),
        removed_after=share_found(own, counts[1], sought, chance, seed),
        change=_share_difference(own, counts[1] - counts[0], sought, seed),
        n_removed=sum(map(len, removed)),
        n_listed=int(sought.sum()),
        recovered_before=dict(before.recovered),
        recovered_after=dict(after.recovered),
        f1_before=before.f1,
        f1_after=after.f1,
        recall=neighbour_recall(whole.vectors, vectors, units=units_of(texts), seed=seed),
        top1=neighbour_recall(whole.vectors, vectors, 1, units=units_of(texts), seed=seed),
        n_changed=len(changed),
        n=len(texts),
        caveats=tuple(filter(None, (*REDACTED, describe_stronger_attack(chosen.name, encoder)))),
    )


def _find_recovered_words(found: Leakage, part: Sample) -> list[frozenset[str]]:
    """Return, for each row of a sample, the set of words that an attack recovered."""
    rows = {row.row: frozenset(row.recovered) for row in found.rows}
    return [rows.get(name, frozenset()) for name in part.ids]


def _share_difference(
    texts: Sequence[str],
    differences: NDArray[np.float64],
    sought: NDArray[np.float64],
    seed: int,
) -> Score:
    """Return the change in the percentage of sought words found, paired by text, as a score."""
    held = np.flatnonzero(sought).tolist()
    if not len(held):
        return Score(float("nan"))
    units = units_of([texts[i] for i in held])
    interval = ratio_interval(differences[held], sought[held], groups=units, seed=seed)
    return Score(
        float(differences.sum() / sought.sum()), interval, len(set(units)), 0.0
    ).in_percent()


@dataclass(frozen=True)
class RotationPoint:
    """Leakage of rotated vectors to an attacker with k known pairs.

    Attributes
    ----------
    k : int
    f1 : Score
        Token-set F1 in per cent, beside guessing.
    change : Score
        Difference in F1 from the vectors without a rotation, paired.
    cosine : Score
        Mean cosine of the restored vectors with those before the rotation.
    """

    k: int
    f1: Score
    change: Score
    cosine: Score

    def to_dict(self) -> dict[str, Any]:
        """Return the leakage with k known pairs as a JSON-able dict."""
        return fields_to_dict(self)


@dataclass(frozen=True)
class RotationTable:
    """Leakage of vectors multiplied by a secret orthogonal matrix, by known pairs.

    Attributes
    ----------
    attack : str
    unrotated : Score
        F1 without the rotation.
    points : tuple of RotationPoint
        By the number of known pairs; the first has k = 0, an attacker who ignores the rotation.
    known_from : str
        Where the known pairs are from.
    greatest_error : float
        By which a cosine of two rows differs after the rotation, at most: a search is unchanged.
    caveats : tuple of str
    """

    attack: str
    unrotated: Score
    points: tuple[RotationPoint, ...]
    known_from: str
    greatest_error: float
    caveats: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence on how many known pairs break the rotation."""
        blind = next((p for p in self.points if not p.k), None)
        start = (
            ""
            if blind is None
            else (
                f"Without known pairs, F1 on rotated vectors is {blind.f1.in_text(0)}; guessing "
                f"gets {blind.f1.chance:.0f}. "
            )
        )
        whole = f"without the rotation, F1 is {self.unrotated.in_text(0)}, n = {self.unrotated.n:,}"
        broken = [p for p in self.points if p.k and p.change.ci95.low <= 0 <= p.change.ci95.high]
        if broken:
            least = min(broken, key=lambda p: p.k)
            return (
                f"{start}With {least.k:,} known pairs, F1 is {least.f1.in_text(0)}, not "
                f"significantly different from no rotation; {whole}."
            )
        known = [p for p in self.points if p.k]
        if not known:
            return f"{start}Attackers with known pairs were not tested; {whole}."
        most = max(known, key=lambda p: p.k)
        return f"{start}With {most.k:,} known pairs, F1 is {most.f1.in_text(0)}; {whole}."

    def to_dict(self) -> dict[str, Any]:
        """Return the leakage by number of known pairs, with the sentence, as a JSON-able dict."""
        return {"answer": self.sentence} | fields_to_dict(
            self, attack="attacker", greatest_error="greatest_error_of_a_cosine"
        )


def measure_rotation(
    sample: Sample,
    encoder: Encoder,
    *,
    n_known: Sequence[int] = N_KNOWN,
    attack: str | None = None,
    n: int = N_ATTACKED,
    seed: int = 0,
    name: str = "rows",
    on_progress: OnProgress = no_progress,
) -> RotationTable:
    """Rotate a sample's vectors by a secret orthogonal matrix and attack with k known pairs.

    The attacker knows the encoder and k texts of the store, but not the matrix. The pairs give the
    rotation on the directions that they span; what lies beyond is predicted by a linear map that
    was fitted on bundled sentences. `leakscope.core.audit.alignment.paired` does not use that the
    encoder is known, and comes less close to the true vectors where k is below their dimensions.

    Parameters
    ----------
    sample : Sample
        With texts; vectors without a defence. Rows that are not attacked are the known pairs where
        there are enough, else bundled sentences are.
    encoder : Encoder
        The one that made the vectors.
    n_known : sequence of int
        Numbers of known pairs, each at least 1.
    attack : str, optional
        By default the strongest that needs no training.
    n : int
        Rows to attack, drawn at random.
    seed : int
        Of the matrix, the draws and the intervals.

    Raises
    ------
    InvalidInputError
        No row has a text with a word to find, n is below 2, or a number of pairs is below 1 or
        above the known ones.
    """
    if min(n_known, default=1) < 1:
        raise InvalidInputError(f"Each value of n_known must be at least 1, got {min(n_known)}.")
    held = usable_rows(sample.texts)
    if not held:
        raise InvalidInputError(f"{name}: no row has a text to compare the answers with.")
    chosen = AttackSpec(name=attack or strongest_attack(encoder))
    _, clean = attacker_pairs(encoder, lambda f, m: on_progress(0.1 * f, m))
    whole = rescale_to_encoder(sample.take(held), encoder)
    rows = attacked_rows(whole, n, seed)
    part = whole.take(rows)
    taken = set(units_of(part.known_texts))
    units = units_of(whole.known_texts)
    others = np.array([i for i, unit_ in enumerate(units) if unit_ not in taken], dtype=np.intp)
    most = max(n_known, default=0)
    pairs, known_from = clean, "bundled sentences that the attacker inserted"
    if len(others) >= most:
        pairs, known_from = whole.vectors[others], "other rows of the same source"
    if len(pairs) < most:
        raise InvalidInputError(
            f"Each value of n_known must be at most {len(pairs):,}, got {most:,}."
        )
    pairs = pairs[np.random.default_rng(seed).permutation(len(pairs))]
    key = random_rotation(encoder.dimension, seed)
    rotated = (part.vectors @ key).astype(np.float32)
    opened = open_attack(chosen, encoder, on_progress)
    on_progress(0.1, "Attacking the vectors without a rotation")
    before = measure_leakage(part, encoder, opened, name=name)
    points = []
    for i, k in enumerate((0, *n_known)):
        on_progress(0.1 + 0.9 * (i + 1) / (len(n_known) + 2), f"Attacking with {k:,} known pairs")
        if not k:
            restored = rotated
            after = measure_leakage(replace(part, vectors=rotated), encoder, opened, name=name)
        else:
            back, span = partial_rotation((pairs[:k] @ key).astype(np.float32), pairs[:k])
            changed = _project_encoder(encoder, span)
            lift = Lift.fit((clean @ span).astype(np.float32), clean)
            base = encoder if reads_gradients(chosen) else LiftedEncoder(encoder, changed, lift)
            adapted = LiftedAttack(opened, lift, base, changed)
            led_back = (rotated @ back).astype(np.float32)
            restored = lift(led_back)
            after = measure_leakage_behind(
                replace(part, vectors=led_back), encoder, adapted, chosen, name=name
            )
        change = f1_change(before, after, part, seed=seed)
        cosine = _mean_cosine(restored, part, seed)
        points.append(RotationPoint(k, after.f1, change, cosine))
    few = whole.vectors[:1_000]
    cosines = [unit(each.astype(np.float64)) for each in (few, (few @ key).astype(np.float32))]
    error = float(np.abs(cosines[0] @ cosines[0].T - cosines[1] @ cosines[1].T).max())
    caveats = (UNPAIRED, describe_stronger_attack(chosen.name, encoder))
    return RotationTable(
        chosen.name, before.f1, tuple(points), known_from, error, tuple(filter(None, caveats))
    )


def partial_rotation(
    rotated: Vectors, known: Vectors
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the inverse rotation on the span of known pairs, and the projection onto that span.

    Implements orthogonal Procrustes (Schönemann 1966) on the span of the known vectors: with the
    singular value decomposition rotatedᵀ known = U S Vᵀ, the way back is U Vᵀ over the directions
    with a singular value above rounding. The other directions map to 0.

    Parameters
    ----------
    rotated, known : ndarray of float32, shape (k, d)
        The same k vectors, after the rotation and before.

    Returns
    -------
    (back, span) : ndarrays of float64, shape (d, d)
        `rotated @ back` is `known @ span`, the projection of `known` onto what the pairs span.
    """
    u, values, v = np.linalg.svd(rotated.astype(np.float64).T @ known.astype(np.float64))
    # Products of float32 vectors are exact to 1e-7; squares of singular values are compared here.
    n = int((values > 1e-6 * values[0]).sum())
    return u[:, :n] @ v[:n], v[:n].T @ v[:n]


def _project_encoder(encoder: Encoder, span: NDArray[np.float64]) -> Encoder:
    """Wrap an encoder so that its vectors are projected onto a span."""
    matrix = span.astype(np.float32)

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        """Encode texts and project their vectors onto the span."""
        vectors: Vectors = encode_dense(encoder, texts, on_progress) @ matrix
        return vectors

    rank = round(float(np.trace(span)))
    identity = f"{encoder.fingerprint}|span of {rank}"
    name = f"{encoder.name} + span of {rank}"
    return cast(Encoder, ProtectedEncoder(encoder, name, encoder.dimension, identity, transform))


def _mean_cosine(restored: Vectors, part: Sample, seed: int) -> Score:
    """Return the mean cosine of restored vectors with the sample's true vectors, as a score."""
    true, found = unit(part.vectors.astype(np.float64)), unit(restored.astype(np.float64))
    cosines = (true * found).sum(axis=1)
    units = units_of(part.known_texts)
    interval = bootstrap_interval(cosines, groups=units, bounds=(-1.0, 1.0), seed=seed)
    return Score(float(cosines.mean()), interval, len(set(units)), 0.0)
