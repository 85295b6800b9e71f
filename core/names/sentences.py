"""Sentences that hold a name which is to be exchanged: of a collection, or typed."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from core.errors import InvalidInputError
from core.names.matching import holds_name, put_name
from core.names.person import PLACEHOLDER, PersonName, parse_name
from core.text import MAX_CHARACTERS, check_text, word_set
from core.units import units_of

__all__ = ["NamedSentence", "read_sentences", "sentences_of", "units_of_sentences"]

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True)
class NamedSentence:
    """A text and the name in it that is exchanged; PLACEHOLDER where it was written for any.

    Attributes
    ----------
    document : str
        What it comes from, where several may come from one; empty where that is not known.
    """

    text: str
    name: PersonName
    document: str = ""

    def with_name(self, other: PersonName) -> str:
        """Return the sentence with another name; as it stands with its own."""
        return self.text if other == self.name else put_name(self.text, self.name, other)


def sentences_of(
    texts: Sequence[str],
    names: Sequence[PersonName],
    documents: Sequence[str] | None = None,
) -> list[NamedSentence]:
    """Return each text once for every name that it holds, by the order of the names.

    Parameters
    ----------
    documents : sequence of str, optional
        The document of each text.
    """
    of = documents or [""] * len(texts)
    # Words are far faster to look into than the text.
    held = [(text, word_set(text), document) for text, document in zip(texts, of, strict=True)]
    return [
        NamedSentence(text, name, document)
        for name in names
        for text, words, document in held
        if name.words <= words and holds_name(text, name)
    ]


def units_of_sentences(sentences: Sequence[NamedSentence]) -> list[Hashable]:
    """Return what intervals are of: documents or, where that of any is unknown, distinct texts."""
    documents = [sentence.document for sentence in sentences]
    texts = [sentence.text for sentence in sentences]
    return units_of(texts, documents if all(documents) else None)


def read_sentences(
    written: str, names: Sequence[PersonName], *, most: int = 200
) -> tuple[list[NamedSentence], tuple[PersonName, ...]]:
    """Read typed sentences, one a line, each with a listed name or one in [square brackets].

    `[name]` stands for any name: that sentence has no original.

    Returns
    -------
    sentences : list of NamedSentence
        By the order of the names.
    names : tuple of PersonName
        Those given, and those found in brackets.

    Raises
    ------
    InvalidInputError
        Nothing typed, too much of it, or a line without a name; the message names the line.
    """
    if len(written) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"The sentences have {len(written):,} characters; at most {MAX_CHARACTERS:,} are "
            "accepted. Take fewer lines."
        )
    lines = [(i, line.strip()) for i, line in enumerate(written.splitlines(), 1) if line.strip()]
    if not lines:
        raise InvalidInputError("There is no sentence. Type one that holds a name of the list.")
    if len(lines) > most:
        raise InvalidInputError(f"There are {len(lines)} sentences; at most {most} are accepted.")
    known = {name.words: name for name in names}
    found: list[NamedSentence] = []
    for i, line in lines:
        found += _read_line(check_text(line, name=f"sentence {i}"), i, known)
    order = {name: rank for rank, name in enumerate([*known.values(), PLACEHOLDER])}
    found = list(dict.fromkeys(sorted(found, key=lambda s: order[s.name])))
    return found, tuple(known.values())


def _read_line(line: str, i: int, known: dict[frozenset[str], PersonName]) -> list[NamedSentence]:
    """Return the line once for each name that it holds; a new one in brackets becomes known."""
    marked = _BRACKETS.findall(line)
    if not marked:
        here = [NamedSentence(line, name) for name in known.values() if holds_name(line, name)]
        if not here:
            raise InvalidInputError(
                f"Sentence {i} holds none of the names as a whole word. Add its name to the list, "
                "or put it in [square brackets]."
            )
        return here
    if len({" ".join(m.split()) for m in marked}) > 1:
        raise InvalidInputError(
            f"Sentence {i} has different names in [square brackets]. Mark one of them."
        )
    if marked[0].strip().lower() == "name":
        return [NamedSentence(_BRACKETS.sub(PLACEHOLDER.surname, line), PLACEHOLDER)]
    if not marked[0].strip():
        raise InvalidInputError(f"Sentence {i} has empty brackets. Write a name in them.")
    name = parse_name(marked[0])
    name = known.setdefault(name.words, name)
    text = _BRACKETS.sub(lambda match: match[1].strip(), line)
    if not holds_name(text, name):
        raise InvalidInputError(
            f"Sentence {i} writes its name in [square brackets] otherwise than the list does. "
            "Spell both alike."
        )
    return [NamedSentence(text, name)]
