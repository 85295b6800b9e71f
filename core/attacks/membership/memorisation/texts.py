"""The private texts of an experiment: sentences of a corpus, bounded, each once."""

from __future__ import annotations

import numpy as np

from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.corpora import Corpus, Document, split_sentences
from core.corpora.memory_file import MemoryFile
from core.corpora.uploads import read_upload
from core.errors import InvalidInputError
from core.specs import validate_settings
from core.text import check_text

__all__ = ["FEWEST", "MOST_DOCUMENTS", "check_settings", "checked", "private_texts",
           "split_held_out", "upload_texts"]  # fmt: skip

FEWEST = 20
MOST_DOCUMENTS = 100_000
"""Documents that are read of a corpus."""

_HELD_OUT = 200
_MOST_CHARACTERS = 2000


def private_texts(corpus: Corpus, n: int, seed: int) -> list[str]:
    """Return up to n different sentences of a corpus, of documents drawn by the seed.

    Sentences of fewer than three characters are left out; those of more than 2,000 are cut.

    Raises
    ------
    InvalidInputError
        Fewer than 20 different sentences.
    """
    found: dict[str, None] = {}
    for i in np.random.default_rng([seed, 21]).permutation(len(corpus.documents)).tolist():
        text = corpus.documents[i].text
        pieces = [text] if corpus.is_split else split_sentences(text, corpus.language)
        kept = (" ".join(piece.split())[:_MOST_CHARACTERS] for piece in pieces)
        found.update(dict.fromkeys(piece for piece in kept if len(piece) >= 3))
        if len(found) >= n:
            break
    return checked(list(found)[:n])


def upload_texts(file: MemoryFile, n: int, column: str | None = None) -> list[str]:
    """Return up to n different sentences of an upload, held in memory alone.

    Parameters
    ----------
    column : str, optional
        Of the texts of a table; the longest by default.

    Raises
    ------
    InvalidInputError
        The file cannot be read, is too large, or has too few sentences.
    """
    rows, _, _ = read_upload(file, text=column)
    documents = tuple(Document(str(i), row.text) for i, row in enumerate(rows))
    return private_texts(Corpus(file.name, documents), n, 0)


def checked(texts: list[str]) -> list[str]:
    """Return texts that a model can be trained on.

    Raises
    ------
    InvalidInputError
        Fewer than 20 different ones, or one that is no text.
    """
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < FEWEST:
        raise InvalidInputError(
            f"A language model needs at least {FEWEST} different sentences, got {len(distinct)}. "
            "Give a larger corpus."
        )
    for i, text in enumerate(distinct, 1):
        check_text(text, name=f"sentence {i}")
    return distinct


def split_held_out(texts: list[str], seed: int) -> tuple[list[str], list[str]]:
    """Return texts to train on, and a tenth, 200 at most, that the model is to read unseen."""
    order = np.random.default_rng([seed, 22]).permutation(len(texts)).tolist()
    n = min(_HELD_OUT, len(texts) // 10)
    return [texts[i] for i in sorted(order[n:])], [texts[i] for i in order[:n]]


def check_private_tokens(settings: MemorisationSettings) -> None:
    """Raise InvalidInputError for words, whose vocabulary is counted in the texts: that costs ε."""
    if settings.tokens != "bytes":
        raise InvalidInputError(
            f"Private training reads 'bytes', got {settings.tokens!r}: a vocabulary that is "
            "counted in the texts costs ε as well."
        )


def check_settings(settings: MemorisationSettings) -> MemorisationSettings:
    """Return the settings, or raise InvalidInputError where one is out of its range."""
    validate_settings(settings)
    if settings.hidden % 4:
        raise InvalidInputError(f"hidden must be a multiple of 4, got {settings.hidden}.")
    return settings
