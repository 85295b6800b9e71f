"""Score an attack on texts it has not seen, with the prior-only attacker on the same targets."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import numpy as np

from core.attacks.fitted import check_vectors
from core.attacks.inversion.prior import PriorAttack
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.attacks.inversion.shipped import shipped_vocabulary
from core.encoders.white_box import parts_read
from core.errors import InvalidInputError
from core.metrics import score_words
from core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from core.registry import name_of
from core.results import EvaluationResult, Recovery
from core.specs import settings_of
from core.text import Vocabulary, check_texts, revealing_words, word_set

__all__ = [
    "attack_name",
    "attack_vocabulary",
    "evaluate",
    "rarer_half",
    "restrict",
    "sample_rows",
    "sample_texts",
    "score_answers",
]


def evaluate(
    attack: InversionAttack,
    encoder: Encoder,
    texts: Sequence[str],
    *,
    limit: int | None = None,
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    vectors: Vectors | None = None,
    documents: Sequence[Hashable] | None = None,
    name: str = "texts",
    on_progress: OnProgress = no_progress,
) -> EvaluationResult:
    """Invert the embeddings of texts and score the answers by their word sets.

    Implements the protocol of Corò (2022): the targets are W(x) ∩ V, V being the attack's
    vocabulary (Table A.2), and V ∩ V' where a second vocabulary V' is given (Table 5.2, with
    V' of the other domain); answers are restricted likewise.
    Differs from the paper: W(x) holds the words that the encoder reads, and those beyond what it
    reads are counted as unread; the F1 in which words outside V count as missed stands beside, and
    so does the prior-only attacker, who picks the best constant answer to the same targets.

    Parameters
    ----------
    attack : InversionAttack
        Fitted on `encoder`.
    texts : sequence of str
        Not seen in training.
    limit : int, optional
        Number of texts to draw without replacement; all by default.
    seed : int
        Of the drawing and of the bootstrap.
    vocabulary : Vocabulary, optional
        V'.
    vectors : float32 array of shape (n, dimension), optional
        The stored embeddings of all n texts, in their order, before any drawing; without them,
        `encoder` makes those of the drawn texts.
    documents : sequence, optional
        The document that each of the n texts comes from, where several come from one: intervals
        are of documents then, else of distinct texts.
    name : str
        How the result calls the texts.

    Returns
    -------
    EvaluationResult
        `sentences_per_second` times the inversion alone, not the encoding.

    Raises
    ------
    InvalidInputError
        No text, a text that cannot be encoded, no text with a word to find, or vectors that are
        not the texts': of another number or shape, NaN or infinite.
    """
    checked = check_texts(texts)
    rows = sample_rows(len(checked), limit, seed)
    sample = [checked[i] for i in rows]
    groups = None if documents is None else [documents[i] for i in rows]
    if vocabulary is not None:  # refused before the work
        restrict(attack_vocabulary(attack, encoder), vocabulary.index.keys())
    if vectors is None:
        chosen = encoder.encode(sample, _part(on_progress, 0.0, 0.5))
    else:
        chosen = _stored(attack, encoder, vectors, len(checked))[rows]
    start = time.perf_counter()
    answers = attack.invert(encoder, chosen, _part(on_progress, 0.5, 1.0))
    seconds = time.perf_counter() - start
    return score_answers(
        attack, encoder, sample, answers,
        seconds=seconds, seed=seed, vocabulary=vocabulary, documents=groups, name=name,
    )  # fmt: skip


def score_answers(
    attack: InversionAttack,
    encoder: Encoder,
    texts: Sequence[str],
    answers: Sequence[Recovery],
    *,
    seconds: float,
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    documents: Sequence[Hashable] | None = None,
    name: str = "texts",
) -> EvaluationResult:
    """Score the answers of an attack to the vectors of texts, as `evaluate` does.

    Parameters
    ----------
    texts : sequence of str
        Checked, one for each answer.
    answers : sequence of Recovery
    seconds : float
        That the attack took.
    seed, vocabulary, documents, name
        As of `evaluate`.

    Raises
    ------
    InvalidInputError
        No text has a word to find.
    """
    known = attack_vocabulary(attack, encoder)
    scope = known if vocabulary is None else restrict(known, vocabulary.index.keys())
    return EvaluationResult(
        attack=attack_name(attack),
        settings={key: getattr(attack, key) for key in settings_of(type(attack))},
        encoder=encoder.name,
        encoder_fingerprint=encoder.fingerprint,
        texts=name,
        seed=seed,
        vocabulary_size=len(scope),
        sentences_per_second=len(texts) / max(seconds, 1e-9),
        **_machine(encoder),
        n_queries_mean=float(np.mean([answer.n_queries for answer in answers])),
        training=dict(getattr(attack, "training_", None) or {}),
        **_scored(encoder, texts, answers, (known, scope), documents, seed),
    )


def _stored(attack: InversionAttack, encoder: Encoder, vectors: Vectors, n_texts: int) -> Vectors:
    """Return vectors that were made before, checked to be those of the texts."""
    reads_sparse = bool(getattr(attack, "reads_sparse", False))
    return check_vectors(vectors, encoder.dimension, n_texts, reads_sparse=reads_sparse)


def _machine(encoder: Encoder) -> dict[str, Any]:
    """Return what encodes, and how exactly."""
    usual = {"device": "cpu", "precision": "float32", "backend": "torch"}
    return {name: str(getattr(encoder, name, value)) for name, value in usual.items()}


def _scored(
    encoder: Encoder,
    sample: Sequence[str],
    answers: Sequence[Recovery],
    vocabularies: tuple[Vocabulary, Vocabulary],
    groups: Sequence[Hashable] | None,
    seed: int,
) -> dict[str, Any]:
    """Score answers, and the prior-only attacker's, on the words known and those in scope."""
    known, scope = vocabularies
    read = parts_read(encoder, sample)
    all_words = [word_set(part) - known.stop_words for part in read]
    unread = [word_set(text) - known.stop_words - own
              for text, own in zip(sample, all_words, strict=True)]  # fmt: skip
    targets = [scope.targets(part) for part in read]
    apart: dict[str, Any] = {
        "revealing": [revealing_words(text) for text in sample],
        "rare": rarer_half(known),
    }
    blank = np.zeros((1, encoder.dimension), np.float32)
    guesses = PriorAttack().fit_vocabulary(encoder, scope).invert(encoder, blank) * len(sample)
    judge = partial(score_words, texts=sample, groups=groups, seed=seed)
    blind = judge([guess.word_set - known.stop_words for guess in guesses], all_words)
    open_scores = judge([answer.word_set - known.stop_words for answer in answers], all_words)
    return {
        "scores": judge(_within(answers, scope), targets, **apart),
        "baseline": judge(_within(guesses, scope), targets, **apart),
        "vocabulary_coverage": sum(map(len, targets)) / sum(map(len, all_words)),
        "unrestricted": open_scores.score("token_set_f1", blind.token_set_f1),
        "n_words": sum(map(len, all_words)) + sum(map(len, unread)),
        "n_unread": sum(map(len, unread)),
        "n_texts_cut": sum(map(bool, unread)),
    }


def sample_texts(texts: Sequence[str], limit: int | None, seed: int) -> list[str]:
    """Return `limit` checked texts, drawn without replacement, in their original order.

    Raises
    ------
    InvalidInputError
        No text, a limit below 1, or a text that cannot be encoded.
    """
    checked = check_texts(texts)
    return [checked[i] for i in sample_rows(len(checked), limit, seed)]


def sample_rows(n: int, limit: int | None, seed: int) -> list[int]:
    """Return which of n texts `sample_texts` draws, ascending.

    Raises
    ------
    InvalidInputError
        No text, or a limit below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit must be at least 1, got {limit}.")
    if not n:
        raise InvalidInputError("texts must hold at least one text, got none.")
    if limit is None or limit >= n:
        return list(range(n))
    return sorted(np.random.default_rng(seed).choice(n, size=limit, replace=False).tolist())


def attack_vocabulary(attack: InversionAttack, encoder: Encoder) -> Vocabulary:
    """Return the words that the attack was fitted to answer.

    White-box attacks answer tokens and have no vocabulary of their own: the one that ships for
    the encoder stands in, so that all attacks face the same targets.
    """
    own: Vocabulary | None = getattr(attack, "vocabulary_", None)
    return shipped_vocabulary(encoder) if own is None else own


def rarer_half(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the less frequent half of a vocabulary, which lists its words by frequency."""
    return frozenset(vocabulary.words[len(vocabulary) // 2 :])


def restrict(vocabulary: Vocabulary, words: AbstractSet[str]) -> Vocabulary:
    """Return the vocabulary with the given words alone, in its order and with its counts.

    Raises
    ------
    InvalidInputError
        No word is in both.
    """
    counts = zip(vocabulary.words, vocabulary.document_frequency, strict=True)
    kept = [(word, count) for word, count in counts if word in words]
    if not kept:
        raise InvalidInputError("The two vocabularies share no word, so nothing can be scored.")
    return Vocabulary(
        tuple(word for word, _ in kept),
        tuple(count for _, count in kept),
        vocabulary.n_texts,
        vocabulary.stop_words,
    )


def attack_name(attack: Any) -> str:
    """Return the registry's name of an attack, or its class name where it has none."""
    return name_of(INVERSION_ATTACKS, type(attack)) or type(attack).__name__


def _within(answers: Sequence[Recovery], scope: Vocabulary) -> list[AbstractSet[str]]:
    return [answer.word_set & scope.index.keys() for answer in answers]


def _part(on_progress: OnProgress, low: float, high: float) -> OnProgress:
    """Show the progress of one step as a part of the whole."""

    def report(fraction: float, message: str) -> None:
        on_progress(low + (high - low) * fraction, message)

    return report
