"""Start sentences of the search: the classifier's words in a likely order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel
from leakscope.core.attacks.inversion.reconstruct.tokens import BEGIN, END, Lexicon

_N_WORDS = 60

_WIDTH = 16
_STOP_TOKENS = 90
_MOST_TOKENS = 40
_WEIGHT = 0.45
"""The weight of the language model relative to the word classifier."""
_PER_TOKEN = 0.75
"""The length bonus of a token, since long sentences have a low probability."""
_PER_WORD = 2.0
_LENGTH, _LENGTHENS = 1.6, 0.51
"""log n of a sentence of n tokens by log(1 + H), H of `expected_length`: a regression."""


@dataclass(frozen=True)
class WordPosterior:
    """A word classifier's likely words of a vector, as lexicon tokens with probabilities."""

    tokens: NDArray[np.int32]
    """Likeliest first, shape (m,)."""
    likely: NDArray[np.float64]
    """The probability that the sentence holds each."""
    n_expected: float = 0.0
    """The expected number of tokens of the sentence."""

    def best(self, count: int) -> WordPosterior:
        """Return a copy limited to the `count` likeliest words."""
        return replace(self, tokens=self.tokens[:count], likely=self.likely[:count])


@dataclass(frozen=True)
class _Beam:
    """A beam: its score, its tokens, and a bit mask of the words it has used."""

    score: float
    tokens: tuple[int, ...]
    used: int


def expected_length(likely: NDArray[np.floating]) -> float:
    """Estimate how many tokens a sentence has from the classifier's word probabilities p.

    Longer sentences have a larger total entropy H = −Σ p log p + (1 − p) log(1 − p).
    """
    p = np.clip(likely.astype(np.float64), 1e-9, 1 - 1e-9)
    unsure = -float((p * np.log(p) + (1 - p) * np.log1p(-p)).sum())
    return min(float(np.exp(_LENGTH + _LENGTHENS * np.log1p(unsure))), float(_MOST_TOKENS))


def word_posteriors(
    likely: NDArray[np.floating], words: Sequence[str], lexicon: Lexicon
) -> list[WordPosterior]:
    """Convert each text's word probabilities to its likely words in a lexicon, as tokens.

    Parameters
    ----------
    likely : float array of shape (n, |words|)
        The probability that a text holds each word.
    """
    places = lexicon.places(words)
    known = np.flatnonzero(places >= 0)
    found = []
    for whole, row in zip(likely, likely[:, known], strict=True):
        top = np.argsort(-row, kind="stable")[:_N_WORDS]
        tokens, believed = places[known[top]].astype(np.int32), row[top].astype(np.float64)
        found.append(WordPosterior(tokens, believed, expected_length(whole)))
    return found


def start_sentences(posterior: WordPosterior, model: LanguageModel) -> list[NDArray[np.int32]]:
    """Write three start sentences: a long one, a short one, and the likeliest words alone."""
    n_expected = max(1, round(float(posterior.likely.sum())))
    bare = posterior.best(min(n_expected, 12)).tokens
    return [first_sentence(posterior, model), first_sentence(posterior, model, per_token=0.0), bare]


def first_sentence(
    posterior: WordPosterior, model: LanguageModel, per_token: float = _PER_TOKEN
) -> NDArray[np.int32]:
    """Write a likely sentence of likely words and the commonest tokens, by beam search.

    It maximises Σ (logit of each word used + a constant) + w · log P(sentence) + a constant for
    each token, without querying the encoder.
    """
    words = posterior.best(24)
    likely = np.clip(words.likely, 1e-4, 1 - 1e-4)
    stop = model.stop_tokens(_STOP_TOKENS)
    stop = stop[~np.isin(stop, words.tokens) & ~_is_punctuation(stop, model)]
    full_stop = model.lexicon.ids(["."])
    choices = np.concatenate([words.tokens, stop, full_stop, [END]]).astype(np.int32)
    worth = np.full(len(choices), per_token)
    worth[: len(likely)] += np.log(likely / (1 - likely)) + _PER_WORD
    worth[-2:] = 0.0
    paths, best = [_Beam(0.0, (), 0)], _Beam(-np.inf, (), 0)
    for _ in range(_MOST_TOKENS):
        paths, ended = _extend_beams(paths, choices, worth, len(words.tokens), model)
        best = max([best, *ended], key=lambda path: path.score)
        if not paths or paths[0].score < best.score - 12:
            break
    found = best.tokens or paths[0].tokens
    return np.array(found, dtype=np.int32)


def _is_punctuation(tokens: NDArray[np.int32], model: LanguageModel) -> NDArray[np.bool_]:
    """Return which tokens are punctuation, a boolean each."""
    written = (model.lexicon.tokens[i] for i in tokens)
    return np.array([not token[-1].isalnum() for token in written], dtype=bool)


def _extend_beams(
    paths: list[_Beam],
    choices: NDArray[np.int32],
    worth: NDArray[np.float64],
    n_words: int,
    model: LanguageModel,
) -> tuple[list[_Beam], list[_Beam]]:
    """Extend the beams by one token: return the best unfinished beams, and the finished ones."""
    before = np.array([(BEGIN, BEGIN, *path.tokens)[-2:] for path in paths], dtype=np.int32)
    scores = _WEIGHT * model.next_scores(before, choices) + worth
    for row, path in enumerate(paths):
        scores[row] += path.score
        taken = [k for k in range(n_words) if path.used >> k & 1]
        scores[row, taken] = -np.inf
        is_over = bool(path.tokens) and path.tokens[-1] == choices[-2]
        scores[row, :-1] = -np.inf if is_over else scores[row, :-1]
        if not path.tokens:
            scores[row, -2:] = -np.inf
    ended = [
        _Beam(float(scores[row, -1]), path.tokens, path.used)
        for row, path in enumerate(paths)
        if path.tokens
    ]
    scores[:, -1] = -np.inf
    flat = scores.ravel()
    top = np.argpartition(-flat, min(_WIDTH, flat.size - 1))[:_WIDTH]
    top = top[np.argsort(-flat[top], kind="stable")]
    going = []
    for at in top[np.isfinite(flat[top])]:
        row, k = divmod(int(at), len(choices))
        used = paths[row].used | (1 << k if k < n_words else 0)
        going.append(_Beam(float(flat[at]), (*paths[row].tokens, int(choices[k])), used))
    return going, ended
