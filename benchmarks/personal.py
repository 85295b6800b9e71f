"""Personal data: detection, confirmation from vectors, and calibration of the confidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks import Measurement
from leakscope.core.audit.personal.confidence import Confidence
from leakscope.core.audit.personal.confirmation import Question, confirm
from leakscope.core.audit.personal.detection import find_personal_data
from leakscope.core.audit.personal.kinds import KINDS, draw_candidates
from leakscope.core.audit.personal.report import CLAIMED
from leakscope.core.audit.personal.synthetic import (
    CONDITIONS,
    CalibrationList,
    calibration_lists,
    synthetic_texts,
)
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.intervals import clopper_pearson, rate_by_document
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec

N_FOUND, N_CONFIRMED, N_CALIBRATED = 500, 2, 16
N_CANDIDATES, N_CALIBRATION_CANDIDATES = 1_000, 200
SEED = 1


def measure() -> list[Measurement]:
    """Measure detection, calibration and confirmation of synthetic personal data."""
    encoder = load_encoder(EncoderSpec(name="minilm"))
    # Every 40th sentence from the 20th on: the confidence was fitted on every 40th from the first.
    carriers = [text for text in bundled_sentences()[20::40] if len(text) <= 90]
    lists = calibration_lists(
        encoder,
        [
            made
            for kind in KINDS
            for made in synthetic_texts(kind, carriers, N_CALIBRATED, seed=SEED)
        ],
        N_CALIBRATION_CANDIDATES,
        seed=SEED,
    )
    return [*detection(carriers), *calibration(lists), *confirmation(encoder, carriers)]


def detection(carriers: Sequence[str]) -> list[Measurement]:
    """Search synthetic texts for personal data; measure the share found with kind and span."""
    rows = []
    for kind, entry in KINDS.items():
        hits = 0
        for made in synthetic_texts(kind, carriers, N_FOUND, seed=SEED):
            true = made.identifier
            hits += any(
                (one.kind, one.start, one.end) == (kind, true.start, true.end)
                for one in find_personal_data(made.text)
            )
        rows.append(
            Measurement(
                name=f"{entry.plural} found",
                value=100 * hits / N_FOUND,
                unit="%",
                goal=95.0 if entry.has_checksum else None,
                n=N_FOUND,
                note=interval(hits, N_FOUND),
            )
        )
    return rows


def calibration(lists: Sequence[CalibrationList]) -> list[Measurement]:
    """Measure how often the top candidate is right among lists with similar stated confidence."""
    calibrated = Confidence.load()
    stated = np.array([calibrated.of(each.evidence) for each in lists])
    right = np.array([each.is_right for each in lists])
    absent = np.array([not each.has_truth for each in lists])
    kinds = np.array([each.kind for each in lists])
    conditions = np.array([each.condition for each in lists])
    near = (stated >= 0.9) & (stated < 0.99)
    is_stored = absent & ~np.char.startswith(conditions, "noise")
    share = np.exp([each.evidence.log_share for each in lists])
    texts = np.array([each.text for each in lists])

    def held(
        name: str,
        hits: NDArray[np.bool_],
        among: NDArray[np.bool_],
        by: NDArray[np.float64] = stated,
        goal: float | None = None,
    ) -> Measurement:
        """Measure the share of hits among the selected lists, with an interval over texts."""
        score = rate_by_document(hits[among], texts[among].tolist())
        mean = f"{100 * by[among].mean():.1f} % stated on average" if score.n else ""
        note = f"{score.format()}, {score.n:,} lists of {len(set(texts[among]))} texts; {mean}"
        return Measurement(name=name, value=score.value, unit="%", goal=goal, n=score.n, note=note)

    rows = [
        held("right where 90 to 99 % is stated", right, near, goal=90.0),
        held("right where 50 to 90 % is stated", right, (stated >= 0.5) & (stated < 0.9)),
        held("right where 99 % or more is stated", right, stated >= 0.99, goal=99.0),
        *(
            held(f"… 90 to 99 %, {entry.plural}", right, near & (kinds == kind))
            for kind, entry in KINDS.items()
        ),
        *(
            held(f"… 90 to 99 %, vectors: {condition}", right, near & (conditions == condition))
            for condition in CONDITIONS
        ),
        held("95 % claimed, true value not in the list", stated >= 0.95, absent),
        held("95 % claimed, the same, exact and stored vectors", stated >= 0.95, is_stored),
        held("95 % claimed by the odds within the list alone", share >= 0.95, is_stored, share),
    ]
    return [row for row in rows if row.n]


def confirmation(encoder: Encoder, carriers: Sequence[str]) -> list[Measurement]:
    """Rank 1,000 candidates per vector; measure how often the true identifier is first."""
    rows = []
    rng = np.random.default_rng(SEED)
    for kind, entry in KINDS.items():
        made = synthetic_texts(kind, carriers, N_CONFIRMED, seed=SEED + 1)
        questions = [
            Question(
                each.text,
                vector,
                each.identifier,
                draw_candidates(each.identifier, N_CANDIDATES - 1, rng),
            )
            for each, vector in zip(made, encoder.encode([m.text for m in made]), strict=True)
        ]
        found = confirm(encoder, questions, calibrated=Confidence.load())
        n_first = sum(each.rank == 1 for each in found)
        n_wrong = sum((each.without_truth or 0.0) >= CLAIMED for each in found)
        rows.append(
            Measurement(
                name=f"first of {found[0].n_candidates:,} {entry.plural}",
                value=100 * n_first / len(found),
                unit="%",
                n=len(found),
                note=f"{interval(n_first, len(found))}; chance 0.1 %; without the true value "
                f"{n_wrong} claimed",
            )
        )
    return rows


def interval(found: int, n: int) -> str:
    """Format the exact 95 % interval of `found` of n trials, in per cent, with n."""
    ends = clopper_pearson(found, n)
    return f"[{100 * ends.low:.1f}, {100 * ends.high:.1f}], n {n:,}"
