"""Fit the confidence of personal-data confirmation: `python -m scripts.personal_confidence`.

Made-up identifiers of every kind are put into bundled sentences. What the engine reads lies in
`leakscope.core.audit.personal.confidence`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from leakscope.core.audit.personal.confidence import SHIPPED, Confidence
from leakscope.core.audit.personal.kinds import KINDS
from leakscope.core.audit.personal.synthetic import (
    CalibrationList,
    calibration_lists,
    synthetic_texts,
)
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec
from leakscope.core.storage.artifacts import write_json


def carriers(part: int, *, most: int = 90) -> list[str]:
    """Return every 40th bundled sentence from number `part` on, if of up to `most` characters."""
    return [text for text in bundled_sentences()[part::40] if len(text) <= most]


def fit(lists: Sequence[CalibrationList], encoder: Encoder) -> Confidence:
    """Fit the confidence model by maximum likelihood on lists with known answers.

    Of n lists that are all right, a share of 3 / n may be wrong (the rule of three): the highest
    probability that is stated leaves that much.
    """
    traits = np.array([each.evidence.traits for each in lists])
    share = np.exp([each.evidence.log_share for each in lists])
    right = np.array([each.is_right for each in lists])
    mean, scale = traits.mean(axis=0), traits.std(axis=0)
    scaled = (traits - mean) / scale

    def loss(weights: NDArray[np.float64]) -> float:
        """Return the negative log-likelihood of the lists' answers, with a small penalty."""
        stated = np.clip(share * expit(scaled @ weights[:-1] + weights[-1]), 1e-12, 1 - 1e-12)
        penalty = 1e-4 * float((weights[:-1] ** 2).sum())
        return penalty - float(np.mean(np.log(np.where(right, stated, 1 - stated))))

    found = minimize(loss, np.zeros(scaled.shape[1] + 1), method="BFGS").x
    return Confidence(
        encoder.name,
        encoder.fingerprint,
        tuple(mean.tolist()),
        tuple(scale.tolist()),
        tuple(found[:-1].tolist()),
        float(found[-1]),
        1 - 3 / int(right.sum()),
    )


def main() -> None:
    """Fit the confidence of personal-data confirmation for MiniLM and write it as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.personal_confidence", description=__doc__
    )
    parser.add_argument("--n", type=int, default=16, help="texts of each kind (default: 16)")
    parser.add_argument("--n-candidates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    given = parser.parse_args()
    encoder = load_encoder(EncoderSpec(name="minilm"))
    texts = [
        made
        for kind in KINDS
        for made in synthetic_texts(kind, carriers(0), given.n, seed=given.seed)
    ]
    lists = calibration_lists(
        encoder,
        texts,
        given.n_candidates,
        seed=given.seed,
        on_progress=lambda _, message: print(message, end="\r", flush=True),
    )
    found = fit(lists, encoder)
    facts = {
        "command": "python -m scripts.personal_confidence",
        "n_texts": len(texts),
        "n_lists": len(lists),
        "n_candidates": given.n_candidates,
        "seed": given.seed,
    }
    write_json(given.out, {**found.to_dict(), **facts}, is_public=True)
    print(f"{len(lists):,} lists, written to {given.out}.")


if __name__ == "__main__":
    main()
