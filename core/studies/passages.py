"""The texts of a study of paragraphs: the same articles as sentences and as paragraphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.corpora import Corpus, Paragraph
from core.corpora.near_duplicates import THRESHOLD
from core.corpora.passages import gather_paragraphs
from core.errors import InvalidInputError
from core.studies.apart import keep_apart
from core.studies.domains import DOMAINS, content_of, open_corpus

__all__ = ["Passages", "open_passages"]


@dataclass(frozen=True)
class Passages:
    """What is known to the attacker, and what is attacked.

    Parameters
    ----------
    sentences, paragraphs : tuple of str
        Auxiliary articles, cut into sentences, and the same joined to paragraphs.
    targets : tuple of Paragraph
        Under attack; none of their sentences is known, not even nearly.
    n_near_duplicates : int
        Sentences that were left out of them: they nearly repeat one that is known.
    """

    sentences: tuple[str, ...]
    paragraphs: tuple[str, ...]
    targets: tuple[Paragraph, ...]
    n_near_duplicates: int = 0


@lru_cache(maxsize=4)
def open_passages(
    target: str,
    other: str,
    domain: str,
    n_auxiliary: int,
    n_targets: int,
    seed: int,
    n_words: tuple[int, int] = (128, 168),
    near: float = THRESHOLD,
) -> Passages:
    """Return the texts of a domain; the targets are the same for both domains.

    Parameters
    ----------
    n_auxiliary : int
        Sentences known: whole articles are drawn until they have so many.
    n_targets : int
        Paragraphs drawn; all where there are fewer.
    n_words : pair of int
        Least and greatest length of a paragraph.
    near : float
        From where on a sentence nearly repeats another; see `core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        No such domain, or articles too short for paragraphs.
    """
    if domain not in DOMAINS:
        raise InvalidInputError(f"domain must be one of {', '.join(DOMAINS)}, got {domain!r}.")
    known, held = open_corpus(target).split_by_document((0.9, 0.1), seed=seed)
    known_sentences = known.sentences()
    is_same = content_of(other) == content_of(target)  # then the other articles alone are known
    others = () if is_same else open_corpus(other).texts
    texts = (*known_sentences.texts, *others)
    apart = keep_apart(held.sentences(), texts, near)
    targets = gather_paragraphs(apart.sentences, *n_words)
    is_own = domain == "in" or is_same
    drawn = _articles(known if is_own else open_corpus(other), n_auxiliary, seed)
    paragraphs = drawn.paragraphs(*n_words)
    if not targets or not paragraphs:
        short = target if not targets else other if domain == "cross" else target
        raise InvalidInputError(
            f"{short} has no article long enough for paragraphs of {n_words[0]} to {n_words[1]} "
            "words. Give a corpus of whole articles."
        )
    rng = np.random.default_rng([seed, 8])
    rows = sorted(rng.permutation(len(targets))[:n_targets])
    return Passages(
        drawn.sentences().texts,
        tuple(paragraph.text for paragraph in paragraphs),
        tuple(targets[i] for i in rows),
        apart.n_near_duplicates,
    )


def _articles(corpus: Corpus, n_sentences: int, seed: int) -> Corpus:
    """Return random documents that together hold about so many sentences, in their order."""
    counts: dict[str, int] = {}
    for document in corpus.sentences().document_ids:
        counts[document] = counts.get(document, 0) + 1
    names = list(counts)
    order = np.random.default_rng([seed, 7]).permutation(len(names))
    total = np.cumsum([counts[names[i]] for i in order])
    n_documents = int(np.searchsorted(total, n_sentences)) + 1
    chosen = {names[i] for i in order[:n_documents]}
    return Corpus(
        corpus.name,
        tuple(document for document in corpus.documents if document.id in chosen),
        language=corpus.language,
        is_split=corpus.is_split,
    )
