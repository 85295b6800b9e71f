"""Score an inversion attack and the prior-only baseline on the same unseen texts."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import numpy as np

from leakscope.core.attacks.fitted import check_vectors
from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.shipped import shipped_vocabulary
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.errors import InvalidInputError
from leakscope.core.metrics import score_words
from leakscope.core.protocols import (
    Encoder,
    InversionAttack,
    OnProgress,
    Vectors,
    no_progress,
    part_progress,
)
from leakscope.core.registry import name_of
from leakscope.core.results import EvaluationResult, Recovery
from leakscope.core.specs import setting_values
from leakscope.core.text import Vocabulary, check_texts, revealing_words, word_set


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
    """Encode texts, invert the vectors by an attack and score the recovered word sets.

    Implements the protocol of Corò (2022): the targets are W(x) ∩ V, V being the attack's
    vocabulary (Table A.2), and V ∩ V' where a second vocabulary V' is given (Table 5.2, with
    V' of the other domain); answers are restricted likewise.
    Differs from the paper: W(x) holds the words that the encoder reads, and words beyond its
    maximum length are counted as unread. The result also has the F1 in which words outside V count
    as missed, and the scores of the prior-only attacker, whose answer to the same targets is
    constant.

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
        cover documents then, else distinct texts.
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
    if vocabulary is not None:  # fails before the work starts
        restrict(attack_vocabulary(attack, encoder), vocabulary.index.keys())
    if vectors is None:
        chosen = encoder.encode(sample, part_progress(on_progress, 0.0, 0.5))
    else:
        is_sparse = bool(getattr(attack, "reads_sparse", False))
        stored = check_vectors(vectors, encoder.dimension, len(checked), reads_sparse=is_sparse)
        chosen = stored[rows]
    start = time.perf_counter()
    answers = attack.invert(encoder, chosen, part_progress(on_progress, 0.5, 1.0))
    seconds = time.perf_counter() - start
    return score_answers(
        attack,
        encoder,
        sample,
        answers,
        seconds=seconds,
        seed=seed,
        vocabulary=vocabulary,
        documents=groups,
        name=name,
    )


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
    """Score answers that an attack has given for texts, without inverting again; see `evaluate`.

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
    stop_words = known.stop_words
    read = parts_read(encoder, texts)
    all_words = [word_set(part) - known.stop_words for part in read]
    unread = [word_set(text) - stop_words - own for text, own in zip(texts, all_words, strict=True)]
    targets = [scope.targets(part) for part in read]
    blank = np.zeros((1, encoder.dimension), np.float32)
    guesses = PriorAttack().fit_vocabulary(encoder, scope).invert(encoder, blank) * len(texts)
    judge = partial(score_words, texts=texts, groups=documents, seed=seed)
    open_baseline, open_scores = (
        judge([each.word_set - stop_words for each in given], all_words)
        for given in (guesses, answers)
    )
    baseline, scores = (
        judge(
            [each.word_set & scope.index.keys() for each in given],
            targets,
            revealing=[revealing_words(text) for text in texts],
            rare=rarer_half(known),
        )
        for given in (guesses, answers)
    )
    usual = {"device": "cpu", "precision": "float32", "backend": "torch"}
    runtime: dict[str, Any] = {k: str(getattr(encoder, k, value)) for k, value in usual.items()}
    n_unread = sum(map(len, unread))
    return EvaluationResult(
        attack=attack_name(attack),
        settings=setting_values(attack),
        encoder=encoder.name,
        encoder_fingerprint=encoder.fingerprint,
        texts=name,
        seed=seed,
        vocabulary_size=len(scope),
        sentences_per_second=len(texts) / max(seconds, 1e-9),
        **runtime,
        n_queries_mean=float(np.mean([answer.n_queries for answer in answers])),
        training=dict(getattr(attack, "training_", None) or {}),
        scores=scores,
        baseline=baseline,
        vocabulary_coverage=sum(map(len, targets)) / sum(map(len, all_words)),
        unrestricted=open_scores.score("token_set_f1", open_baseline.token_set_f1),
        n_words=sum(map(len, all_words)) + n_unread,
        n_unread=n_unread,
        n_texts_cut=sum(map(bool, unread)),
    )


def sample_texts(texts: Sequence[str], limit: int | None, seed: int) -> list[str]:
    """Check texts and draw `limit` of them without replacement, in their original order.

    Raises
    ------
    InvalidInputError
        No text, a limit below 1, or a text that cannot be encoded.
    """
    checked = check_texts(texts)
    return [checked[i] for i in sample_rows(len(checked), limit, seed)]


def sample_rows(n: int, limit: int | None, seed: int) -> list[int]:
    """Draw the ascending row numbers of the texts that `sample_texts` draws out of n.

    Raises
    ------
    InvalidInputError
        No text, or a limit below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit must be at least 1, got {limit}.")
    if not n:
        raise InvalidInputError("texts must contain at least one text, got none.")
    if limit is None or limit >= n:
        return list(range(n))
    return sorted(np.random.default_rng(seed).choice(n, size=limit, replace=False).tolist())


def attack_vocabulary(attack: InversionAttack, encoder: Encoder) -> Vocabulary:
    """Return the vocabulary of words that an attack can answer.

    White-box attacks answer tokens and have no vocabulary: the one shipped for the
    encoder is used, so that all attacks have the same targets.
    """
    own: Vocabulary | None = getattr(attack, "vocabulary_", None)
    return shipped_vocabulary(encoder) if own is None else own


def rarer_half(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the less frequent half of a vocabulary's words."""
    return frozenset(vocabulary.words[len(vocabulary) // 2 :])


def restrict(vocabulary: Vocabulary, words: AbstractSet[str]) -> Vocabulary:
    """Return a vocabulary with only the given words, in its order and with its counts.

    Raises
    ------
    InvalidInputError
        No word is in both.
    """
    counts = zip(vocabulary.words, vocabulary.document_frequency, strict=True)
    kept = [(word, count) for word, count in counts if word in words]
    if not kept:
        raise InvalidInputError("The two vocabularies share no word, so nothing can be scored.")
    shared, frequencies = zip(*kept, strict=True)
    return Vocabulary(shared, frequencies, vocabulary.n_texts, vocabulary.stop_words)


def attack_name(attack: Any) -> str:
    """Return the registry name of an attack object, or its class name if it is not registered."""
    return name_of(INVERSION_ATTACKS, type(attack)) or type(attack).__name__
