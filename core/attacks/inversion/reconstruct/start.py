"""Where the search for a sentence begins: the words that were read, put in a likely order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.language_model import LanguageModel
from core.attacks.inversion.reconstruct.tokens import BEGIN, END, Lexicon

__all__ = ["Heard", "first_sentence", "first_sentences", "heard_in", "length_heard"]

_HEARD = 60

_WIDTH = 16
_STOP_TOKENS = 90
_MOST_TOKENS = 40
_WEIGHT = 0.45
"""Of the language model, beside the attack's belief in a word."""
_PER_TOKEN = 0.75
"""What a token is worth by being there: long sentences are unlikely ones."""
_PER_WORD = 2.0
_LENGTH, _LENGTHENS = 1.6, 0.51
"""log n of a sentence of n tokens by log(1 + H), H of `length_heard`: a regression."""


@dataclass(frozen=True)
class Heard:
    """The words that another attack reads from a vector, as tokens."""

    tokens: NDArray[np.int32]
    """Likeliest first, shape (m,)."""
    likely: NDArray[np.float64]
    """The probability that the sentence holds each."""
    n_expected: float = 0.0
    """How many tokens the sentence seems to have."""

    def best(self, count: int) -> Heard:
        """Return the likeliest."""
        return replace(self, tokens=self.tokens[:count], likely=self.likely[:count])


@dataclass(frozen=True)
class _Path:
    score: float
    tokens: tuple[int, ...]
    used: int


def length_heard(likely: NDArray[np.floating]) -> float:
    """Return how many tokens a sentence seems to have, by the attack's belief p in every word.

    The longer it is, the more words are half believed in: H = −Σ p log p + (1 − p) log(1 − p).
    """
    p = np.clip(likely.astype(np.float64), 1e-9, 1 - 1e-9)
    unsure = -float((p * np.log(p) + (1 - p) * np.log1p(-p)).sum())
    return min(float(np.exp(_LENGTH + _LENGTHENS * np.log1p(unsure))), float(_MOST_TOKENS))


def heard_in(likely: NDArray[np.floating], words: Sequence[str], lexicon: Lexicon) -> list[Heard]:
    """Return the likeliest words of each text that a lexicon holds, as its tokens.

    Parameters
    ----------
    likely : float array of shape (n, |words|)
        The probability that a text holds each word.
    """
    places = lexicon.places(words)
    known = np.flatnonzero(places >= 0)
    found = []
    for whole, row in zip(likely, likely[:, known], strict=True):
        top = np.argsort(-row, kind="stable")[:_HEARD]
        tokens, believed = places[known[top]].astype(np.int32), row[top].astype(np.float64)
        found.append(Heard(tokens, believed, length_heard(whole)))
    return found


def first_sentences(heard: Heard, model: LanguageModel) -> list[NDArray[np.int32]]:
    """Return sentences to begin with: with many words, with few, and the likeliest words alone."""
    n_expected = max(1, round(float(heard.likely.sum())))
    bare = heard.best(min(n_expected, 12)).tokens
    return [first_sentence(heard, model), first_sentence(heard, model, per_token=0.0), bare]


def first_sentence(
    heard: Heard, model: LanguageModel, per_token: float = _PER_TOKEN
) -> NDArray[np.int32]:
    """Return a likely sentence of the words heard and of the commonest tokens: a beam search.

    It maximises Σ (logit of each word used + a constant) + w · log P(sentence) + a constant for
    each token, and asks nothing of the encoder.
    """
    words = heard.best(24)
    likely = np.clip(words.likely, 1e-4, 1 - 1e-4)
    stop = model.stop_tokens(_STOP_TOKENS)
    stop = stop[~np.isin(stop, words.tokens) & ~_is_mark(stop, model)]
    full_stop = model.lexicon.ids(["."])
    choices = np.concatenate([words.tokens, stop, full_stop, [END]]).astype(np.int32)
    worth = np.full(len(choices), per_token)
    worth[: len(likely)] += np.log(likely / (1 - likely)) + _PER_WORD
    worth[-2:] = 0.0
    paths, best = [_Path(0.0, (), 0)], _Path(-np.inf, (), 0)
    for _ in range(_MOST_TOKENS):
        paths, ended = _step(paths, choices, worth, len(words.tokens), model)
        best = max([best, *ended], key=lambda path: path.score)
        if not paths or paths[0].score < best.score - 12:
            break
    found = best.tokens or paths[0].tokens
    return np.array(found, dtype=np.int32)


def _is_mark(tokens: NDArray[np.int32], model: LanguageModel) -> NDArray[np.bool_]:
    """Return which tokens are marks: a model of few words strings them without end."""
    written = (model.lexicon.tokens[i] for i in tokens)
    return np.array([not token[-1].isalnum() for token in written], dtype=bool)


def _step(
    paths: list[_Path],
    choices: NDArray[np.int32],
    worth: NDArray[np.float64],
    n_words: int,
    model: LanguageModel,
) -> tuple[list[_Path], list[_Path]]:
    """Return the paths after one more token, best first, and those that end."""
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
        _Path(float(scores[row, -1]), path.tokens, path.used)
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
        going.append(_Path(float(flat[at]), (*paths[row].tokens, int(choices[k])), used))
    return going, ended
