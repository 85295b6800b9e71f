"""Labelled texts that need no file on disk: corpora with an attribute, and uploads in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.corpora import Sentences, load_corpus
from leakscope.core.corpora.nltk_corpora import nltk_folders
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.uploads import read_upload
from leakscope.core.errors import InvalidInputError

_WORDS = (3, 60)
"""Fewest and most words of a sentence; the minimum is low for chat messages."""

_OF_FILE = re.compile(r"^\d+-|(-\d+)?\.txt$")
"""The parts of a file name around a president's name: `1991-Bush-2.txt`."""

Label = Callable[[Sentences, int], str | None]


@dataclass(frozen=True)
class AttributeCorpus:
    """A corpus whose sentences have an attribute label.

    Attributes
    ----------
    title : str
        For a control: the texts and what is inferred.
    attribute : str
        What one label is, such as `president`.
    corpus : str
        As `load_corpus` takes it.
    label : callable
        Returns the label of a sentence, given all sentences and its number.
    split : str
        One of `leakscope.core.attacks.attributes.draw.SPLITS`.
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
        lambda found, i: _OF_FILE.sub("", found.document_ids[i]),
        "group",
        "State of the Union addresses, 1945 to 2006; labelled sentences and targets come from "
        "different speeches",
    ),
    "chat": AttributeCorpus(
        "Chat: which user",
        "user",
        "nltk:nps_chat",
        lambda found, i: found.authors[i],
        "row",
        "chat-room messages of 2006, with invented user names",
    ),
    "genres": AttributeCorpus(
        "Brown corpus: which genre",
        "genre",
        "nltk:brown",
        lambda found, i: found.labels[i],
        "group",
        "American English of 1961; labelled sentences and targets come from different texts",
    ),
    "films": AttributeCorpus(
        "Film reviews: which opinion",
        "opinion",
        "nltk:movie_reviews",
        lambda found, i: found.labels[i],
        "group",
        "for or against a film; labelled sentences and targets come from different reviews",
    ),
    "articles": AttributeCorpus(
        "Encyclopaedia: which article",
        "article",
        "wikipedia",
        lambda found, i: found.document_ids[i],
        "run",
        "Wikipedia articles of 2016; labelled sentences and targets come from different passages. "
        "What distinguishes articles is their topic",
    ),
    "collections": AttributeCorpus(
        "News or encyclopaedia",
        "collection",
        "bundled",
        lambda found, i: found.labels[i],
        "group",
        "the two collections that come with Leakscope; labelled sentences and targets come from "
        "different documents",
    ),
}
"""Corpora that need no file of the user; those of NLTK need its data on this machine."""


def is_available(name: str) -> bool:
    """Return whether the data of a corpus, by name, is on this machine, without reading it."""
    corpus, _, part = ATTRIBUTE_CORPORA[name].corpus.partition(":")
    if corpus != "nltk":
        return True
    places = (folder / "corpora" for folder in nltk_folders())
    return any((at / part).is_dir() or (at / f"{part}.zip").is_file() for at in places)


def load_examples(name: str) -> Examples:
    """Load the sentences of a corpus of ATTRIBUTE_CORPORA with their labels and documents.

    Raises
    ------
    CoreError
        It is not on this machine, or damaged; the message says how to get it.
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


def read_uploaded_examples(
    file: MemoryFile, *, text: str, label: str, group: str | None = None
) -> Examples:
    """Read the labelled rows of an uploaded table in memory; nothing is written to disk.

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
            f"{file}: column {label!r} contains no label. Fill it in, or name another."
        )
    bare = next((row for row in kept if group and row.others[1] is None), None)
    if bare is not None:
        raise InvalidInputError(
            f"{file}, {bare.place}: has a label but no {group!r}. Fill in the cell, or name no "
            "group column."
        )
    return Examples(
        str(file),
        tuple(row.text for row in kept),
        tuple(str(row.others[0]) for row in kept),
        tuple(str(row.others[1]) for row in kept) if group else None,
        len(rows) - len(kept),
    )
