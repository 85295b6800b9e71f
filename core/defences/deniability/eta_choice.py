"""Rules that recommend an η: by the worst token, by a share of tokens, or by a corpus.

Implements Qu et al. (2021), §5.3: η is chosen by the worst case (every token is changed, and into
enough others) or by the average case (how many tokens of a corpus an attacker gets back).
Differs from the paper: besides its worst case, a quantile of tokens may be asked for, and every
η of the grid is tried instead of a few. N_w is counted in a finite number of draws, which the
recommendation states; with a confidence, the rules certify the probability itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, WhiteBoxEncoder, no_progress

MECHANISM = "text_to_text"
"""The mechanism that all rules apply to: they count the tokens that it returns. Noise on token
vectors or on a text's vector has other scales."""


@dataclass(frozen=True)
class EtaChoice:
    """A recommended η, with a sentence on its effect.

    Attributes
    ----------
    eta : float or None
        The greatest η of the grid that satisfies the bound; None if none does.
    kept_by : float
        Share of tokens, in [0, 1], that satisfy the bound at `eta` (at the smallest η if None); for
        a corpus, the share of its tokens that change.
    sentence : str
        The effect of the choice in words; it names the mechanism.
    """

    eta: float | None
    kept_by: float
    sentence: str


def choose_by_tokens(
    found: VocabularyDeniability,
    *,
    changed: float,
    distinct: int = 1,
    share: float = 1.0,
    confidence: float | None = None,
) -> EtaChoice:
    """Recommend the greatest η at which a share of the vocabulary is replaced often enough.

    Parameters
    ----------
    changed : float
        A token is deniable if at least this share of its perturbations is another token.
    distinct : int
        And if at least this many different tokens are returned.
    share : float
        Of the vocabulary; 1 is the worst case of Qu et al. (2021).
    confidence : float, optional
        In (0, 1). Certifies each token's chance of staying unchanged, not its count: by the upper
        end of Clopper & Pearson's interval at (1 − confidence)/|V|, for all |V| tokens at once.
        η are tested from the smallest up to the first that fails, so that testing many costs no
        confidence.

    Raises
    ------
    InvalidInputError
        A share or confidence outside its range, or a number of tokens outside [1, draws].
    """
    if not (0 <= changed <= 1 and 0 < share <= 1 and 1 <= distinct <= found.n_draws):
        raise InvalidInputError(
            f"changed must lie in [0, 1], share in (0, 1], distinct in [1, {found.n_draws}]."
        )
    n_draws = found.n_draws
    if confidence is None:
        is_changed = found.n_w <= int(np.floor((1 - changed) * n_draws + 1e-9))
        how = f"from {n_draws:,} draws"
    else:
        alpha = (1 - _check_confidence(confidence)) / len(found.tokens)
        ends = _clopper_pearson_limit(np.arange(n_draws + 1), n_draws, alpha)
        is_changed = ends[found.n_w] <= 1 - changed + 1e-9
        how = (
            f"certified with {confidence:.0%} confidence for all {len(found.tokens):,} tokens, "
            f"from {n_draws:,} draws each"
        )
    kept = (is_changed & (found.s_w >= distinct)).mean(0)
    who = "every token is" if share == 1 else f"{share:.0%} of all tokens are"
    others = f", to one of at least {distinct:,} tokens" if distinct > 1 else ""
    what = f"{who} changed in at least {changed:.0%} of cases{others}"
    return _make_choice(found.etas, kept, _prefix_length(kept >= share), what, how)


def token_inversion(
    found: VocabularyDeniability, counts: dict[int, int]
) -> tuple[NDArray[np.float64], float]:
    """Compute the expected share of unchanged corpus tokens at each η, and the share covered.

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
        Share of the corpus's tokens that are candidates.
    """
    place = np.full(int(max(found.tokens.max(), *counts)) + 1 if counts else 1, -1, np.int64)
    if not counts:
        raise InvalidInputError("The corpus contains no token.")
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
    """Tokenise texts; return the count of each token id, without special tokens."""
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), 1000):
        for row in encoder.token_ids(texts[start : start + 1000], is_whole=True):
            counts.update(row)
        on_progress(min(1.0, (start + 1000) / len(texts)), "Counting tokens")
    return dict(counts)


def choose_by_corpus(
    found: VocabularyDeniability,
    counts: dict[int, int],
    *,
    recovered: float,
    confidence: float | None = None,
) -> EtaChoice:
    """Recommend the greatest η at which at most a given share of a corpus's tokens is unchanged.

    Parameters
    ----------
    counts : dict
        Encoder's token to its number in the corpus.
    recovered : float
        In (0, 1).
    confidence : float, optional
        In (0, 1). Certifies the expected share, by Hoeffding's bound (1963, Eq. 2.1) for the mean
        of independent draws that lie in [0, 1]: all tokens share the draws.

    Raises
    ------
    InvalidInputError
        A share or confidence outside its range, or a corpus without tokens that are candidates.
    """
    if not 0 < recovered < 1:
        raise InvalidInputError(f"recovered must lie between 0 and 1, got {recovered}.")
    accuracy, _ = token_inversion(found, counts)
    how = f"from {found.n_draws:,} draws"
    if confidence is not None:
        accuracy = _hoeffding_limit(accuracy, found.n_draws, 1 - _check_confidence(confidence))
        how = f"certified with {confidence:.0%} confidence from {found.n_draws:,} draws"
    what = f"at most {recovered:.0%} of the corpus's tokens stay unchanged"
    return _make_choice(found.etas, 1 - accuracy, _prefix_length(accuracy <= recovered), what, how)


def _check_confidence(confidence: float) -> float:
    """Return the confidence unchanged; raise InvalidInputError unless it lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    return confidence


def _clopper_pearson_limit(
    counts: NDArray[np.int64], n_draws: int, alpha: float
) -> NDArray[np.float64]:
    """Return each count's upper one-sided Clopper–Pearson limit at level `alpha`."""
    ends = special.betaincinv(counts + 1, np.maximum(n_draws - counts, 1), 1 - alpha)
    return np.where(counts >= n_draws, 1.0, ends)


def _hoeffding_limit(means: NDArray[np.float64], n_draws: int, alpha: float) -> NDArray[np.float64]:
    """Return Hoeffding's upper confidence limit for each mean, found by bisection."""
    low, high = means.astype(np.float64), np.ones_like(means, np.float64)
    for _ in range(60):
        middle = (low + high) / 2
        apart = special.rel_entr(means, middle) + special.rel_entr(1 - means, 1 - middle)
        is_in = n_draws * apart <= np.log(1 / alpha)
        low, high = np.where(is_in, middle, low), np.where(is_in, high, middle)
    return high


def _prefix_length(holds: NDArray[np.bool_]) -> int:
    """Return the number of True values before the first False: the η that satisfy a bound.

    More noise returns fewer tokens unchanged, but the different tokens returned may be fewer too.
    An η is recommended only if every smaller η satisfies the bound as well.
    """
    return int(np.logical_and.accumulate(holds).sum())


def _make_choice(
    etas: NDArray[np.float64], kept: NDArray[np.float64], n_kept: int, what: str, how: str
) -> EtaChoice:
    """Build the EtaChoice with the n_kept-th η and its sentence; without an η if n_kept is 0."""
    if n_kept == 0:
        return EtaChoice(
            None,
            float(kept[0]),
            f"With Text to text, no η of {etas[0]:g} or more is so small that {what} ({how}). "
            "Choose a weaker target.",
        )
    best = n_kept - 1
    eta = float(etas[best])
    sentence = f"With Text to text at η = {eta:g}, {what} ({how})."
    return EtaChoice(eta, float(kept[best]), sentence)
