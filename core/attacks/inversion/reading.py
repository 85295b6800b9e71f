"""The result of one attack on one text: each word marked, scored, and compared with guessing."""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from leakscope.core.attacks.inversion.evaluation import attack_vocabulary, rarer_half
from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.sentence import same_stem_words
from leakscope.core.encoders.white_box import read_and_unread
from leakscope.core.errors import StoppedSearch
from leakscope.core.metrics import token_set_scores
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.text import STOP_WORDS, mark_words, revealing_words, words_with_digits


class Mark(StrEnum):
    """The outcome for a piece of the text: recovered, missed, or why it is not scored."""

    RECOVERED = "recovered"
    MISSED = "missed"
    UNKNOWN = "outside the attack's vocabulary, not scored"
    STOP_WORD = "stop word, not scored"
    UNREAD = "beyond what the encoder reads, not tested"
    BETWEEN = "between words"


@dataclass(frozen=True, kw_only=True)
class TokenScores:
    """Precision, recall and F1 of one answer, in [0, 100]."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One attack's answer for one text, compared with the text's words and with guessing."""

    attack: str
    encoder: str
    text: str
    counts_stop_words: bool
    pieces: tuple[tuple[str, Mark], ...]
    """The text in order; joined, the pieces give its NFKC form."""
    hits: tuple[RecoveredWord, ...]
    wrong: tuple[RecoveredWord, ...]
    recovery: Recovery
    targets: frozenset[str]
    """The words of the text that this attack is scored on."""
    unknown: frozenset[str]
    """Words of the text that the attack cannot answer."""
    kin: dict[str, str]
    """Wrong answers that share their stem with a word of the text, and that word."""
    revealing: frozenset[str]
    """Targets that look like names or numbers."""
    rare: frozenset[str] = frozenset()
    """Targets in the less frequent half of the attack's vocabulary."""
    scores: TokenScores
    all_words_f1: float
    """F1 when the words outside the vocabulary count as missed."""
    prior: TokenScores
    """The same scores of the attacker who never sees the vector."""
    seconds: float
    """From vector to words."""
    training: dict[str, Any] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """Words that occur only beyond the encoder's maximum length, so not in the vector."""
    is_unfinished: bool = False
    """Whether the attack was stopped early, with its best answer so far."""

    @property
    def n_recovered(self) -> int:
        """The number of different words of the text that were recovered."""
        return len(self.hits)

    @property
    def missed(self) -> frozenset[str]:
        """The target words that the attack did not recover."""
        return self.targets - {hit.word for hit in self.hits}

    @property
    def n_guessed(self) -> int:
        """The number of target words that the prior-only baseline recovers."""
        return round(self.prior.recall * len(self.targets) / 100)

    @property
    def n_words(self) -> int:
        """The number of different content words of the text, in the vocabulary or not."""
        return len(self.targets) + len(self.unknown)

    @property
    def groups(self) -> dict[str, tuple[int, int]]:
        """The counts (recovered, all) of target words that are names, numbers and rare words."""
        read = {w.word for w in self.hits}
        return {title: (len(words & read), len(words)) for title, words in self.grouped.items()}

    @property
    def grouped(self) -> dict[str, frozenset[str]]:
        """The sets of target words that are names, numbers and rare words, by group name."""
        numbers = frozenset(words_with_digits(self.revealing))
        return {"names": self.revealing - numbers, "numbers": numbers, "rare words": self.rare}

    @property
    def unnamed(self) -> dict[str, int]:
        """The number of names and of numbers in the text that the attack's vocabulary lacks."""
        revealing = revealing_words(self.text) & self.unknown
        numbers = words_with_digits(revealing)
        return {"names": len(revealing - numbers), "numbers": len(numbers)}

    def marked(self, mark: Mark) -> list[str]:
        """Return the distinct pieces of the text with a given mark, in text order."""
        found = dict.fromkeys(piece for piece, m in self.pieces if m is mark)
        return list(found)


def prior_words(encoder: Encoder, attack: InversionAttack, stop_words: bool) -> frozenset[str]:
    """Return the words that the prior-only baseline answers for every vector.

    With stop words counted, the guess comes from the bundled corpora: the vocabularies of
    trained attacks have no count of them.
    """
    from leakscope.core.corpora import bundled_sentences

    if stop_words:
        prior = PriorAttack(keep_stop_words=True).fit(encoder, bundled_sentences())
    else:
        prior = PriorAttack().fit_vocabulary(encoder, attack_vocabulary(attack, encoder))
    import numpy as np

    (guess,) = prior.invert(encoder, np.zeros((1, encoder.dimension), dtype=np.float32))
    return guess.word_set


def read_vector(
    name: str,
    attack: InversionAttack,
    encoder: Encoder,
    text: str,
    vector: Vectors,
    prior: AbstractSet[str],
    *,
    counts_stop_words: bool = False,
    on_progress: OnProgress = no_progress,
) -> Reading:
    """Invert one vector by an attack and compare the answer with its text.

    Parameters
    ----------
    name : str
        The attack in the registry.
    vector : ndarray of float32, shape (1, dimension)
        The embedding of `text`, the only thing that the attack is given.
    prior : set of str
        From `prior_words`.
    counts_stop_words : bool
        Count stop words as words to find, and as answers.

    Raises
    ------
    StoppedSearch
        `on_progress` asked a search to stop; its `answers` hold the reading of the best so far.
    """
    start = time.perf_counter()

    def marked(recovery: Recovery) -> Reading:
        """Compare an answer with the text, and record the seconds since the start."""
        seconds = time.perf_counter() - start
        given = (name, attack, encoder, text, recovery, prior)
        return mark_recovery(*given, counts_stop_words=counts_stop_words, seconds=seconds)

    try:
        (recovery,) = attack.invert(encoder, vector, on_progress)
    except StoppedSearch as stop:
        (recovery,) = stop.answers
        unfinished = replace(marked(recovery), is_unfinished=True)
        raise StoppedSearch(str(stop), [unfinished]) from stop
    return marked(recovery)


def mark_recovery(
    name: str,
    attack: InversionAttack,
    encoder: Encoder,
    text: str,
    recovery: Recovery,
    prior: AbstractSet[str],
    *,
    counts_stop_words: bool = False,
    seconds: float = float("nan"),
) -> Reading:
    """Compare an attack's given answer with its text, word by word; see `read_vector`."""
    known = attack_vocabulary(attack, encoder)
    left_out = frozenset() if counts_stop_words else STOP_WORDS
    words, unread = (part - left_out for part in read_and_unread(encoder, text))
    answered = tuple(w for w in recovery.words if w.word not in left_out)
    recovered = {w.word for w in answered}
    # Recovered words outside every trained vocabulary (white-box attacks) count as targets, too.
    targets = frozenset(w for w in words if w in known.index or w in STOP_WORDS or w in recovered)
    return Reading(
        attack=name,
        encoder=encoder.name,
        text=text,
        counts_stop_words=counts_stop_words,
        pieces=_mark_pieces(text, targets, recovered, left_out, unread),
        hits=tuple(w for w in answered if w.word in targets),
        wrong=tuple(w for w in answered if w.word not in targets),
        recovery=recovery,
        targets=targets,
        unknown=words - targets,
        kin=same_stem_words(recovered - words, words),
        revealing=revealing_words(text) & targets,
        rare=rarer_half(known) & targets,
        unread=unread,
        scores=_scores(targets, recovered),
        all_words_f1=_scores(words, recovered).f1,
        prior=_scores(targets, prior - left_out),
        seconds=seconds,
        training=dict(getattr(attack, "training_", None) or {}),
    )


def _mark_pieces(
    text: str,
    targets: AbstractSet[str],
    answered: AbstractSet[str],
    left_out: AbstractSet[str],
    unread: AbstractSet[str],
) -> tuple[tuple[str, Mark], ...]:
    """Split a text into pieces; return each with its mark: recovered, missed or why not scored."""

    def mark(word: str | None) -> Mark:
        """Return the mark of a piece that holds this word, or none."""
        if word is None:
            return Mark.BETWEEN
        if word in left_out:
            return Mark.STOP_WORD
        if word in unread:
            return Mark.UNREAD
        if word not in targets:
            return Mark.UNKNOWN
        return Mark.RECOVERED if word in answered else Mark.MISSED

    return tuple((piece, mark(word)) for piece, word in mark_words(text))


def _scores(true: AbstractSet[str], answered: AbstractSet[str]) -> TokenScores:
    """Return precision, recall and F1 (×100) of answered words against the true ones."""
    precision, recall, f1 = (100 * value for value in token_set_scores(true, answered))
    return TokenScores(precision=precision, recall=recall, f1=f1)
