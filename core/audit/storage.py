"""Leakage and search quality of vectors in each storage format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

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
from leakscope.core.audit.expected import ExpectedF1
from leakscope.core.audit.known_defence import measure_stronger_leakage
from leakscope.core.audit.leakage import (
    Leakage,
    estimate_leakage,
    measure_leakage,
    strongest_attack,
    usable_rows,
)
from leakscope.core.audit.sources import Sample
from leakscope.core.defences.adaptive_attack import (
    N_TAUGHT,
    KnownVectors,
    adapt_to_change,
    attacker_pairs,
    finetune_behind,
)
from leakscope.core.defences.protected import ProtectedEncoder, encode_dense
from leakscope.core.defences.vectors import Binary, Int8, Truncation
from leakscope.core.errors import InvalidInputError, MissingDependencyError, install
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import AttackSpec
from leakscope.core.units import units_of
from leakscope.core.vectors import unit

FLOAT32 = "float32"
"""The format that the others are compared with."""

FORMATS = ("float16", "int8", "binary", "product_quantization", "truncation")

LOSSLESS = 0.999
"""Minimum median cosine with float32 at which attack and estimates apply unchanged."""

STRONGER = (
    "Each score of a lossy format is that of the stronger of two attackers who know it. One maps "
    "the vectors back with a linear map; the other is a classifier trained further on {n:,} "
    "sentences in that format. Attackers with more training may recover more."
)

LIFTED = (
    "The attacker knows each format and maps the vectors back with a linear map. Attackers trained "
    "on a lossy format recover more."
)


@dataclass(frozen=True)
class StoredFormat:
    """Results for one storage format: size, leakage and search quality.

    Attributes
    ----------
    name : str
    n_bytes : int
        Of each vector; codebooks that all vectors share are not counted.
    f1 : Score or None
        Token-set F1 in per cent, beside guessing; expected, where no text is known. None where it
        was not tested.
    change : Score or None
        Difference in F1 from float32 on the same rows; None where no text is known.
    recall : Score
        Per cent of the 10 nearest other rows that are still found.
    attacker : str
        Which attacker recovers most.
    not_tested : str
        Why F1 was not tested; empty where it was.
    """

    name: str
    n_bytes: int
    f1: Score | None
    change: Score | None
    recall: Score
    attacker: str = ""
    not_tested: str = ""

    @property
    def sentence(self) -> str:
        """A sentence on what the format leaks compared with float32, and on search quality."""
        bulk = f"{self.name} ({self.n_bytes:,} bytes per vector)"
        found = f"a search finds {self.recall.format(0)} % of the 10 nearest rows"
        if self.f1 is None:
            return f"{bulk}: not tested. {self.not_tested} On the vectors alone, {found}."
        if self.name == FLOAT32:
            return f"{bulk}: F1 {self.f1.format(0, with_n=True)}."
        if self.change is None:
            return f"{bulk}: estimated F1 {self.f1.format(0, with_n=True)}; {found}."
        return (
            f"{bulk}: F1 {self.f1.format(0, with_n=True)}, "
            f"{describe_change(self.change, FLOAT32)}; {found}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result for this format as a JSON-able dict."""
        return fields_to_dict(
            self, name="format", n_bytes="bytes_per_vector", recall="recall_at_10"
        )


@dataclass(frozen=True)
class StorageTable:
    """Leakage from the same vectors in each storage format.

    Attributes
    ----------
    attack : str
        Which attack; it knows the format and its implementation.
    is_estimate : bool
        Whether no text is known.
    n_candidates : int
        Rows among which neighbours were sought.
    formats : tuple of StoredFormat
        float32 first.
    caveats : tuple of str
    """

    attack: str
    is_estimate: bool
    n_candidates: int
    formats: tuple[StoredFormat, ...]
    caveats: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence that names the formats that leak significantly less than float32."""
        plain = self.formats[0]
        if plain.f1 is None:
            return f"Leakage by storage format was not tested. {plain.not_tested}"
        measured = [each for each in self.formats if each.change is not None]
        if not measured:
            return (
                f"Stored as float32, the estimated F1 is {plain.f1.in_text(0)}, n = {plain.f1.n:,}."
            )
        less = [f for f in measured if f.change is not None and f.change.ci95.high < 0]
        start = (
            f"Stored as float32, the vectors leak words with an F1 of {plain.f1.in_text(0)}, "
            f"n = {plain.f1.n:,}."
        )
        if not less:
            return f"{start} No tested format leaks significantly less."
        summary = ", ".join(f"{f.name} {f.f1.format(0)}" for f in less if f.f1 is not None)
        return (
            f"{start} {len(less)} of {len(measured)} formats leak significantly less (95 % CI in "
            f"brackets): {summary}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the results of all formats, with the sentence, as a JSON-able dict."""
        return {"answer": self.sentence} | fields_to_dict(self, attack="attacker")


def measure_storage(
    sample: Sample,
    encoder: Encoder,
    *,
    attack: str | None = None,
    formats: Sequence[str] = FORMATS,
    n: int = N_ATTACKED,
    n_taught: int = N_TAUGHT,
    seed: int = 0,
    name: str = "rows",
    on_progress: OnProgress = no_progress,
) -> StorageTable:
    """Attack a sample's rows in each storage format; measure leakage and search quality.

    The attackers know the format and its implementation. One restores vectors by a linear map that
    was fitted on bundled sentences in the same format, and encodes its guesses through the format.
    The other is fine-tuned on such sentences. The stronger one counts.

    Parameters
    ----------
    sample : Sample
        Vectors without a defence. All rows are candidates of the search; n are attacked.
    encoder : Encoder
        The one that made the vectors.
    attack : str, optional
        By default the strongest that needs no training.
    formats : sequence of str
        Of `FORMATS`.
    n : int
        Rows to attack, drawn at random.
    n_taught : int
        Bundled sentences that a second attacker is trained on with in each lossy format; 0 for
        none.
    seed : int
        Of the draws, the codebook and the intervals.

    Raises
    ------
    InvalidInputError
        n is below 2, a format is unknown, or no row has a text with a word to find.
    """
    if unknown := [kind for kind in formats if kind not in FORMATS]:
        raise InvalidInputError(
            f"formats must be among {', '.join(FORMATS)}, got {', '.join(unknown)}."
        )
    chosen = AttackSpec(name=attack or strongest_attack(encoder))
    known = attacker_pairs(encoder, lambda f, m: on_progress(0.1 * f, m))
    sample = rescale_to_encoder(sample, encoder)
    rows = attacked_rows(sample, n, seed)
    part = sample.take(rows)
    has_texts = bool(usable_rows(part.texts))
    opened = open_attack(chosen, encoder, on_progress)
    line = None if has_texts else ExpectedF1.for_attack(chosen.name, encoder)

    def unchanged_leakage(part: Sample) -> Leakage | None:
        """Attack unchanged vectors; return measured or estimated leakage, or None."""
        if has_texts:
            return measure_leakage(part, encoder, opened, name=name)
        if line is None:
            return None
        return estimate_leakage(part, opened.invert(encoder, part.vectors), line)

    on_progress(0.1, "Attacking vectors stored as float32")
    plain = unchanged_leakage(part)
    texts: list[str] = [""] * len(sample.ids)
    stored = KnownVectors(encoder, texts, sample.vectors)
    units = None if sample.texts is None else units_of(sample.known_texts)
    missing = (
        ""
        if plain
        else f"No text is known, and no estimate covers the answers of {chosen.name} on "
        f"{encoder.name}. Give the texts."
    )
    found = [
        StoredFormat(
            FLOAT32,
            4 * encoder.dimension,
            None if plain is None else plain.f1,
            None,
            neighbour_recall(sample.vectors, sample.vectors, units=units, seed=seed),
            "" if plain is None else chosen.name,
            missing,
        )
    ]
    for i, kind in enumerate(formats):
        start = (i + 1) / (len(formats) + 1)
        on_progress(start, f"Attacking vectors stored as {kind}")
        try:
            change, n_bytes = _build_format(
                kind, encoder.dimension, (known[1], sample.vectors), seed
            )
        except MissingDependencyError as error:
            nothing = Score(float("nan"))
            found.append(StoredFormat(kind, 0, None, None, nothing, not_tested=str(error)))
            continue
        vectors = change(stored).encode(texts)
        recall = neighbour_recall(sample.vectors, vectors, units=units, seed=seed)
        after = replace(part, vectors=vectors[rows])
        encoded = change(KnownVectors(encoder, *known))
        is_lossless = _is_lossless(encoded.encode(known[0]), known[1])
        leakage, reason, attacker = None, missing, chosen.name
        if is_lossless:
            leakage = unchanged_leakage(after)
        elif has_texts:
            lifted = adapt_to_change(opened, encoder, encoded, chosen, known)
            trained = None
            if n_taught:
                trained = finetune_behind(
                    encoder,
                    change,
                    n=n_taught,
                    seed=seed,
                    on_progress=report_at_fraction(on_progress, start),
                )
            leakage, attacker = measure_stronger_leakage(
                after, encoder, (lifted, trained), chosen, name=name
            )
        elif line is not None:
            reason = "No text is known, and the estimate is valid only for float32."
        found.append(
            StoredFormat(
                kind,
                n_bytes,
                None if leakage is None else leakage.f1,
                f1_change(plain, leakage, part, seed=seed)
                if has_texts and plain and leakage
                else None,
                recall,
                "" if leakage is None else attacker,
                reason if leakage is None else "",
            )
        )
    caveats = [
        f"Neighbours were searched among {len(sample.ids):,} rows; with more rows, recall differs.",
        "Each interval applies to one format; there is no correction for multiple comparisons.",
        (STRONGER.format(n=n_taught) if n_taught else LIFTED) if has_texts else "",
        describe_stronger_attack(chosen.name, encoder),
    ]
    if "product_quantization" in formats:
        caveats.append(
            f"The codebook was trained on {len(known[0]) + len(sample.ids):,} vectors: bundled "
            "sentences and these rows. That of a store may differ."
        )
    return StorageTable(
        chosen.name, not has_texts, len(sample.ids), tuple(found), tuple(filter(None, caveats))
    )


def _is_lossless(stored: Vectors, vectors: Vectors) -> bool:
    """Return whether stored vectors equal the original vectors up to rounding."""
    if stored.shape != vectors.shape:
        return False
    cosines = (unit(stored.astype(np.float64)) * unit(vectors.astype(np.float64))).sum(axis=1)
    return bool(np.median(cosines) >= LOSSLESS)


def _build_format(
    kind: str, dimension: int, training: Sequence[Vectors], seed: int
) -> tuple[Callable[[Encoder], Any], int]:
    """Build a format, training any codebook; return a wrapper of encoders and bytes per vector."""
    if kind == "float16":
        return lambda encoder: _wrap_encoder(encoder, kind, _round_to_float16), 2 * dimension
    if kind == "int8":  # with a float32 scale for each vector
        return Int8().protect, dimension + 4
    if kind == "binary":
        return Binary().protect, -(-dimension // 8)
    if kind == "truncation":
        kept = max(1, dimension // 4)
        return Truncation(dimension=kept).protect, 4 * kept
    quantizer = ProductQuantizer.fit(np.concatenate(training), seed=seed)
    return lambda encoder: _wrap_encoder(encoder, quantizer.digest, quantizer), quantizer.n_bytes


def _round_to_float16(vectors: Vectors) -> Vectors:
    """Round vectors to float16, clipped to its range; return them as float32."""
    return np.clip(vectors, -65_504, 65_504).astype(np.float16).astype(np.float32)


def _wrap_encoder(
    encoder: Encoder, identity: str, change: Callable[[Vectors], Vectors]
) -> ProtectedEncoder:
    """Wrap an encoder so that a function changes its vectors; it has its own fingerprint."""

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        """Encode texts and change their vectors."""
        return change(encode_dense(encoder, texts, on_progress))

    mark = hashlib.sha256(f"{encoder.fingerprint}|{identity}".encode()).hexdigest()
    return ProtectedEncoder(
        encoder, f"{encoder.name} + {identity}", encoder.dimension, mark, transform
    )


@dataclass(frozen=True, eq=False)
class ProductQuantizer:
    """Product quantisation (Jégou, Douze & Schmid 2011), by the library faiss.

    Attributes
    ----------
    n_bytes : int
        Parts of a vector; each is stored as the number of the nearest of 256 centroids.
    """

    n_bytes: int
    quantizer: Any

    @classmethod
    def fit(cls, vectors: Vectors, *, seed: int = 0) -> ProductQuantizer:
        """Train a codebook on vectors: one byte per 8 numbers, or per the largest smaller divisor.

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, d)
            At least 256.

        Raises
        ------
        MissingDependencyError
            The library faiss is not installed.
        """
        try:
            import faiss
        except ImportError as error:
            raise MissingDependencyError(
                f"Product quantisation needs the library faiss: `{install('faiss-cpu')}`."
            ) from error
        d = vectors.shape[1]
        width = next(w for w in range(8, 0, -1) if d % w == 0)
        made = faiss.ProductQuantizer(d, d // width, 8)
        made.cp.seed, made.cp.min_points_per_centroid = seed, 1
        made.train(np.ascontiguousarray(vectors, np.float32))
        return cls(d // width, made)

    @property
    def digest(self) -> str:
        """A string that identifies the codebook by a hash of its centroids."""
        import faiss

        centroids = faiss.vector_to_array(self.quantizer.centroids)
        return f"product_quantization-{hashlib.sha256(centroids.tobytes()).hexdigest()[:12]}"

    def __call__(self, vectors: Vectors) -> Vectors:
        """Quantise vectors: encode them to codes and decode the codes, shape (n, d)."""
        codes = self.quantizer.compute_codes(np.ascontiguousarray(vectors, np.float32))
        restored: Vectors = self.quantizer.decode(codes)
        return restored
