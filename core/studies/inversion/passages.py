"""The texts of the paragraph study: the same articles as sentences and as paragraphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leakscope.core.corpora import Corpus, Paragraph
from leakscope.core.corpora.near_duplicates import THRESHOLD
from leakscope.core.corpora.passages import gather_paragraphs
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.decontaminate import drop_near_duplicates
from leakscope.core.studies.domains import DOMAINS, content_of, open_corpus


@dataclass(frozen=True)
class Passages:
    """Auxiliary sentences and paragraphs of the same articles, and the target paragraphs.

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
    """Draw auxiliary articles and target paragraphs of a domain; targets are the same for both.

    Parameters
    ----------
    n_auxiliary : int
        Number of known sentences: whole articles are drawn until it is reached.
    n_targets : int
        Paragraphs drawn; all where there are fewer.
    n_words : pair of int
        Least and greatest length of a paragraph.
    near : float
        From where on a sentence nearly repeats another; see
        `leakscope.core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        No such domain, or articles too short for paragraphs.
    """
    if domain not in DOMAINS:
        raise InvalidInputError(f"domain must be one of {', '.join(DOMAINS)}, got {domain!r}.")
    known, held = open_corpus(target).split_by_document((0.9, 0.1), seed=seed)
    known_sentences = known.sentences()
    is_same = content_of(other) == content_of(target)  # then only the other articles are known
    others = () if is_same else open_corpus(other).texts
    texts = (*known_sentences.texts, *others)
    apart = drop_near_duplicates(held.sentences(), texts, near)
    targets = gather_paragraphs(apart.sentences, *n_words)
    is_own = domain == "in" or is_same
    drawn = _draw_articles(known if is_own else open_corpus(other), n_auxiliary, seed)
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


def _draw_articles(corpus: Corpus, n_sentences: int, seed: int) -> Corpus:
    """Sample documents with about n sentences in total, in corpus order."""
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
