"""Candidate lists with known answers, for calibrating and checking the confidence.

The vectors are exact, stored with fewer bits, or noisy. Half of the lists leave the true value out,
so that the right answer is that no candidate is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.audit.personal.confidence import CandidateSpace, Evidence, distances
from leakscope.core.audit.personal.confirmation import rank_of_first
from leakscope.core.audit.personal.kinds import draw_candidates
from leakscope.core.audit.personal.synthetic import SyntheticText
from leakscope.core.protocols import Encoder, OnProgress, no_progress

Change = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]


def _add_noise(norm: float) -> Change:
    """Return a change that adds isotropic Gaussian noise of a relative norm."""

    def changed(v: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        size = norm * float(np.linalg.norm(v)) / np.sqrt(len(v))
        return v + rng.normal(0.0, size, len(v))

    return changed


def _round_to_int8(v: NDArray[np.float64], _: np.random.Generator) -> NDArray[np.float64]:
    """Round a vector to int8, scaled by its largest coordinate."""
    scale = float(np.abs(v).max()) / 127
    found: NDArray[np.float64] = np.round(v / scale) * scale
    return found


CONDITIONS: Mapping[str, Change] = {
    "exact": lambda v, _: v,
    "float16": lambda v, _: v.astype(np.float16).astype(np.float64),
    "int8": _round_to_int8,
    "noise 0.02": _add_noise(0.02),
    "noise 0.05": _add_noise(0.05),
    "noise 0.1": _add_noise(0.1),
    "noise 0.2": _add_noise(0.2),
    "noise 0.5": _add_noise(0.5),
    "noise 1.0": _add_noise(1.0),
    "noise 3.0": _add_noise(3.0),
}
"""How the attacker's vector was changed."""


@dataclass(frozen=True, eq=False)
class CalibrationList:
    """The evidence of one candidate list, with its known answer.

    Attributes
    ----------
    kind, condition : str
        Keys of KINDS and of CONDITIONS.
    text : int
        The number of its text.
    n : int
        Candidates.
    evidence : Evidence
    has_truth : bool
        Whether the list holds the true value.
    is_right : bool
        Whether the nearest candidate is the true value.
    """

    kind: str
    condition: str
    text: int
    n: int
    evidence: Evidence
    has_truth: bool
    is_right: bool


def calibration_lists(
    encoder: Encoder,
    texts: Sequence[SyntheticText],
    n_candidates: int,
    *,
    n_truths: int = 2,
    seed: int,
    on_progress: OnProgress = no_progress,
) -> list[CalibrationList]:
    """Build two lists per text, condition and true value: with that value and without it.

    Parameters
    ----------
    n_candidates : int
        Encoded for each text. A list has this many, a quarter or a twentieth of them, at random,
        and at least 21.
    n_truths : int
        Values that are the true one in turn: the identifier, then candidates drawn at random,
        which have the same distribution.
    seed : int
        Of the candidates, the noise and the lengths.
    """
    lists = []
    for number, made in enumerate(texts):
        on_progress(number / len(texts), f"{number} of {len(texts)} texts")
        found = made.identifier
        rng = np.random.default_rng([seed, number])
        values = (found.value, *draw_candidates(found, n_candidates, rng))
        before, after = made.text[: found.start], made.text[found.end :]
        vectors = encoder.encode([f"{before}{value}{after}" for value in values])
        truths = np.append(0, 1 + rng.permutation(len(values) - 1)[: n_truths - 1])
        for truth in truths.tolist():
            n = max(21, n_candidates // int(rng.choice([1, 4, 20])))
            chosen = np.delete(np.arange(len(values)), truth)[rng.permutation(len(values) - 1)]
            present = CandidateSpace.of(vectors[np.append(truth, chosen)[:n]])
            absent = CandidateSpace.of(vectors[chosen[:n]])
            for condition, change in CONDITIONS.items():
                seen = change(vectors[truth].astype(np.float64), rng).astype(np.float32)
                for space, has_truth in ((present, True), (absent, False)):
                    lists.append(
                        CalibrationList(
                            found.kind,
                            condition,
                            number,
                            len(space.rows),
                            Evidence.of(seen, space),
                            has_truth,
                            has_truth and rank_of_first(distances(seen, space.rows)) == 1,
                        )
                    )
    return lists
