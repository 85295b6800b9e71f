"""Labelled texts without a file on disk: corpora that carry an attribute, and uploads in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from core.attacks.attributes.examples import Examples
from core.corpora import Sentences, load_corpus
from core.corpora.memory_file import MemoryFile
from core.corpora.nltk_corpora import nltk_folders
from core.corpora.uploads import read_upload
from core.errors import InvalidInputError

__all__ = ["ATTRIBUTE_CORPORA", "AttributeCorpus", "is_at_hand", "open_examples", "read_uploaded"]

_WORDS = (3, 60)
"""Words of a sentence that counts: what people write in a chat is short."""

_OF_FILE = re.compile(r"^\d+-|(-\d+)?\.txt$")
"""What stands around a president's name: `1991-Bush-2.txt`."""

Label = Callable[[Sentences, int], str | None]


def _by_file_name(found: Sentences, i: int) -> str | None:
    return _OF_FILE.sub("", found.document_ids[i])


def _by_document(found: Sentences, i: int) -> str | None:
    return found.document_ids[i]


def _by_label(found: Sentences, i: int) -> str | None:
    return found.labels[i]


def _by_author(found: Sentences, i: int) -> str | None:
    return found.authors[i]


@dataclass(frozen=True)
class AttributeCorpus:
    """A corpus whose sentences carry an attribute.

    Attributes
    ----------
    title : str
        As a control has it: the texts and what is inferred.
    attribute : str
        One label is one of these: `president`.
    corpus : str
        As `load_corpus` takes it.
    label : callable
        From the sentences and a number to the label of that one.
    split : str
        One of `core.attacks.attributes.draw.SPLITS`.
    summary : str
        What they are.
    """

    title: str
    attribute: str
    corpus: str
    label: Label
    split: str
    summary: str


ATTRIBUTE_CORPORA = {
    "presidents": AttributeCorpus(
        "Speeches: which president",
        "president",
        "nltk:state_union",
        _by_file_name,
        "group",
        "State of the Union addresses, 1945 to 2006; labelled sentences and targets are of "
        "different speeches",
    ),
    "chat": AttributeCorpus(
        "Chat: which user",
        "user",
        "nltk:nps_chat",
        _by_author,
        "row",
        "messages of chat rooms of 2006, users under invented names",
    ),
    "genres": AttributeCorpus(
        "Brown corpus: which genre",
        "genre",
        "nltk:brown",
        _by_label,
        "group",
        "American English of 1961; labelled sentences and targets are of different texts",
    ),
    "films": AttributeCorpus(
        "Film reviews: which opinion",
        "opinion",
        "nltk:movie_reviews",
        _by_label,
        "group",
        "for or against a film; labelled sentences and targets are of different reviews",
    ),
    "articles": AttributeCorpus(
        "Encyclopaedia: which article",
        "article",
        "wikipedia",
        _by_document,
        "run",
        "Wikipedia articles of 2016; labelled sentences and targets are of different passages. "
        "What tells an article is its topic, by nature",
    ),
    "collections": AttributeCorpus(
        "News or encyclopaedia",
        "collection",
        "bundled",
        _by_label,
        "group",
        "the two collections that come with Leakscope; labelled sentences and targets are of "
        "different documents",
    ),
}
"""What can be attacked without a file; those of NLTK where their data is on this machine."""


def is_at_hand(name: str) -> bool:
    """Return whether a corpus can be read on this machine; nothing of it is read."""
    corpus, _, part = ATTRIBUTE_CORPORA[name].corpus.partition(":")
    if corpus != "nltk":
        return True
    places = (folder / "corpora" for folder in nltk_folders())
    return any((at / part).is_dir() or (at / f"{part}.zip").is_file() for at in places)


def open_examples(name: str) -> Examples:
    """Return the sentences of a corpus of ATTRIBUTE_CORPORA with their labels and documents.

    Raises
    ------
    CoreError
        It is not on this machine, or damaged; the message tells how to get it.
    """
    source = ATTRIBUTE_CORPORA[name]
    found = load_corpus(source.corpus).sentences(*_WORDS)
    labels = [source.label(found, i) for i in range(len(found))]
    kept = [i for i, label in enumerate(labels) if label]
    groups = None
    if source.split != "row":
        groups = tuple(found.document_ids[i] for i in kept)
    return Examples(
        source.title.partition(":")[0],
        tuple(found.texts[i] for i in kept),
        tuple(str(labels[i]) for i in kept),
        groups,
        len(labels) - len(kept),
    )


def read_uploaded(file: MemoryFile, *, text: str, label: str, group: str | None = None) -> Examples:
    """Return the rows of an upload that have a label; nothing of it touches a disk.

    Raises
    ------
    InvalidInputError
        The columns are not different ones, the file cannot be used, fewer than two labels, a row
        with a label and no group, or a group with several labels.
    """
    named = [text, label, *([group] if group else [])]
    if len(set(named)) < len(named):
        raise InvalidInputError("Texts, labels and groups must be different columns.")
    rows, _, _ = read_upload(file, text=text, others=tuple(named[1:]))
    kept = [row for row in rows if row.others[0] is not None]
    if not kept:
        raise InvalidInputError(
            f"{file}: column {label!r} holds no label. Fill it in, or name another."
        )
    bare = next((row for row in kept if group and row.others[1] is None), None)
    if bare is not None:
        raise InvalidInputError(
            f"{file}, {bare.place}: has a label and no {group!r}. Fill the cell in, or name no "
            "column of groups."
        )
    return Examples(
        str(file),
        tuple(row.text for row in kept),
        tuple(str(row.others[0]) for row in kept),
        tuple(str(row.others[1]) for row in kept) if group else None,
        len(rows) - len(kept),
    )
