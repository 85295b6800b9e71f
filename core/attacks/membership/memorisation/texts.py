"""The private texts of a memorisation experiment: distinct sentences of a corpus or upload."""

from __future__ import annotations

import numpy as np

from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.corpora import Corpus, Document, split_sentences
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import read_upload
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import validate_settings
from leakscope.core.text import check_text

FEWEST = 20
MOST_DOCUMENTS = 100_000
"""The most documents that are read from a corpus."""

_HELD_OUT = 200
_MOST_CHARACTERS = 2000


def private_texts(corpus: Corpus, n: int, seed: int) -> list[str]:
    """Draw up to n distinct sentences of a corpus, from documents in random order.

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
    return check_sentences(list(found)[:n])


def upload_texts(file: MemoryFile, n: int, column: str | None = None) -> list[str]:
    """Read an upload in memory and draw up to n distinct sentences from it.

    Parameters
    ----------
    column : str, optional
        The text column of a table; the longest by default.

    Raises
    ------
    InvalidInputError
        The file cannot be read, is too large, or has too few sentences.
    """
    rows, _, _ = read_upload(file, text=column)
    documents = tuple(Document(str(i), row.text) for i, row in enumerate(rows))
    return private_texts(Corpus(file.name, documents), n, 0)


def check_sentences(texts: list[str]) -> list[str]:
    """Return the distinct texts; raise InvalidInputError if they are too few or one is invalid.

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
    """Split texts at random; return the training texts and a held-out tenth, at most 200."""
    order = np.random.default_rng([seed, 22]).permutation(len(texts)).tolist()
    n = min(_HELD_OUT, len(texts) // 10)
    return [texts[i] for i in sorted(order[n:])], [texts[i] for i in order[:n]]


def check_private_tokens(settings: MemorisationSettings) -> None:
    """Raise InvalidInputError unless tokens are bytes: a counted vocabulary would cost ε."""
    if settings.tokens != "bytes":
        raise InvalidInputError(
            f"Private training needs 'bytes', got {settings.tokens!r}: a vocabulary that is "
            "counted in the texts costs ε as well."
        )


def check_settings(settings: MemorisationSettings) -> MemorisationSettings:
    """Return the settings unchanged; raise InvalidInputError if one is out of range."""
    validate_settings(settings)
    if settings.hidden % 4:
        raise InvalidInputError(f"hidden must be a multiple of 4, got {settings.hidden}.")
    return settings
