"""Which η to recommend: by the worst token, by most tokens, or by a corpus.

Implements Qu et al. (2021), §5.3: η is chosen by the worst case (every token is changed, and into
enough others) or by the average case (how many tokens of a corpus an attacker gets back).
Differs from the paper: besides its worst case, a quantile of tokens may be asked for, and every
η of the grid is tried instead of a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.defences.deniability.vocabulary import VocabularyDeniability
from core.errors import InvalidInputError
from core.protocols import OnProgress, WhiteBoxEncoder, no_progress

__all__ = [
    "MECHANISM",
    "EtaChoice",
    "choose_by_corpus",
    "choose_by_tokens",
    "corpus_counts",
    "token_inversion",
]


MECHANISM = "text_to_text"
"""The mechanism that every rule here is for: tokens that it returns are what is counted. Noise on
token vectors or on a text's vector lies on other scales."""


@dataclass(frozen=True)
class EtaChoice:
    """A recommended η, with the sentence that says what it gives.

    Attributes
    ----------
    eta : float or None
        The greatest η of the grid that keeps the bound; None where none does.
    kept_by : float
        Share of tokens, in [0, 1], that keep the bound at `eta` (at the smallest η if None).
    sentence : str
        For whoever has to decide; it names the mechanism.
    """

    eta: float | None
    kept_by: float
    sentence: str


def choose_by_tokens(
    found: VocabularyDeniability, *, changed: float, distinct: int = 1, share: float = 1.0
) -> EtaChoice:
    """Recommend the greatest η at which a share of the vocabulary is deniable enough.

    Parameters
    ----------
    changed : float
        A token is deniable where at least this share of its perturbations is another token.
    distinct : int
        And where at least so many different tokens are returned.
    share : float
        Of the vocabulary; 1 is the worst case of Qu et al. (2021).

    Raises
    ------
    InvalidInputError
        A share outside [0, 1], or a number of tokens outside [1, draws].
    """
    if not (0 <= changed <= 1 and 0 < share <= 1 and 1 <= distinct <= found.n_draws):
        raise InvalidInputError(
            f"changed must lie in [0, 1], share in (0, 1], distinct in [1, {found.n_draws}]."
        )
    most = int(np.floor((1 - changed) * found.n_draws + 1e-9))
    kept = ((found.n_w <= most) & (found.s_w >= distinct)).mean(0)
    fits = np.flatnonzero(kept >= share)
    # Every smaller η must keep the bound too: more noise returns fewer tokens, but S_w may fall.
    steady = fits[fits == np.arange(len(fits))] if len(fits) else fits
    who = "every token is" if share == 1 else f"{share:.0%} of all tokens are"
    others = f", into one of at least {distinct:,} tokens" if distinct > 1 else ""
    what = f"{who} changed in at least {changed:.0%} of cases{others}"
    return _choice(found.etas, kept, steady, f"Text to text at η = {{eta:g}}: {what}.", what)


def token_inversion(
    found: VocabularyDeniability, counts: dict[int, int]
) -> tuple[NDArray[np.float64], float]:
    """Return the expected share of a corpus's tokens that come back unchanged, at every η.

    Implements Qu et al. (2021), §5.4: the accuracy of an attacker who answers the token nearest to
    the noisy vector. Differs from the paper: the expectation over the draws is computed from N_w,
    so no noise is drawn for the corpus itself.

    Parameters
    ----------
    counts : dict
        Encoder's token to its number in the corpus.

    Returns
    -------
    accuracy : float64 array (G,)
        In [0, 1], over the tokens that are candidates.
    coverage : float
        Share of the corpus's tokens that are.
    """
    place = np.full(int(max(found.tokens.max(), *counts)) + 1 if counts else 1, -1, np.int64)
    if not counts:
        raise InvalidInputError("The corpus holds no token.")
    place[found.tokens] = np.arange(len(found.tokens))
    ids = np.fromiter(counts, np.int64, len(counts))
    numbers = np.fromiter(counts.values(), np.float64, len(counts))
    known = place[ids] >= 0
    if not known.any():
        raise InvalidInputError("No token of the corpus is among the candidates.")
    weights = numbers[known] / numbers[known].sum()
    accuracy = weights @ (found.n_w[place[ids[known]]] / found.n_draws)
    return accuracy, float(numbers[known].sum() / numbers.sum())


def corpus_counts(
    encoder: WhiteBoxEncoder, texts: Sequence[str], on_progress: OnProgress = no_progress
) -> dict[int, int]:
    """Count the encoder's tokens in texts, special tokens left out."""
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), 1000):
        for row in encoder.token_ids(texts[start : start + 1000], is_whole=True):
            counts.update(row)
        on_progress(min(1.0, (start + 1000) / len(texts)), "Counting tokens")
    return dict(counts)


def choose_by_corpus(
    found: VocabularyDeniability, counts: dict[int, int], *, recovered: float
) -> EtaChoice:
    """Recommend the greatest η at which at most a share of a corpus's tokens comes back."""
    if not 0 < recovered < 1:
        raise InvalidInputError(f"recovered must lie between 0 and 1, got {recovered}.")
    accuracy, _ = token_inversion(found, counts)
    fits = np.flatnonzero(accuracy <= recovered)
    steady = fits[fits == np.arange(len(fits))]
    what = f"at most {recovered:.0%} of the corpus's tokens come back unchanged"
    return _choice(
        found.etas, 1 - accuracy, steady, f"Text to text at η = {{eta:g}}: {what}.", what
    )


def _choice(
    etas: NDArray[np.float64],
    kept: NDArray[np.float64],
    fits: NDArray[np.int64],
    said: str,
    what: str,
) -> EtaChoice:
    if len(fits) == 0:
        return EtaChoice(
            None,
            float(kept[0]),
            f"Text to text: no η from {etas[0]:g} on is small enough that {what}. Ask for less.",
        )
    best = int(fits[-1])
    return EtaChoice(float(etas[best]), float(kept[best]), said.format(eta=float(etas[best])))
