"""Sentences that contain a name to be replaced: from a collection, or typed."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from leakscope.core.errors import InvalidInputError
from leakscope.core.names.person import (
    PLACEHOLDER,
    PersonName,
    contains_name,
    parse_name,
    replace_name,
)
from leakscope.core.text import MAX_CHARACTERS, check_text, word_set
from leakscope.core.units import units_of

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True)
class NamedSentence:
    """A text and the name in it that is replaced; PLACEHOLDER if it has a [name] slot.

    Attributes
    ----------
    document : str
        The source of the text, which several texts may share; empty if unknown.
    """

    text: str
    name: PersonName
    document: str = ""

    def with_name(self, other: PersonName) -> str:
        """Return the sentence's text with another name in place of its own."""
        return self.text if other == self.name else replace_name(self.text, self.name, other)


def sentences_with_listed_names(
    texts: Sequence[str],
    names: Sequence[PersonName],
    documents: Sequence[str] | None = None,
) -> list[NamedSentence]:
    """Find listed names in texts; return each text once per name in it, ordered by name.

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
        if name.words <= words and contains_name(text, name)
    ]


def units_of_sentences(sentences: Sequence[NamedSentence]) -> list[Hashable]:
    """Return the sampling unit of each sentence: its document or, if unknown, its text."""
    documents = [sentence.document for sentence in sentences]
    texts = [sentence.text for sentence in sentences]
    return units_of(texts, documents if all(documents) else None)


def read_sentences(
    written: str, names: Sequence[PersonName], *, most: int = 200
) -> tuple[list[NamedSentence], tuple[PersonName, ...]]:
    """Parse typed sentences, one per line, each with a listed or [bracketed] name.

    `[name]` stands for any name: the sentence then has no original name.

    Returns
    -------
    sentences : list of NamedSentence
        In the order of the names.
    names : tuple of PersonName
        The given names, and those in brackets.

    Raises
    ------
    InvalidInputError
        Nothing typed, too much of it, or a line without a name; the message names the line.
    """
    if len(written) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"The sentences have {len(written):,} characters; at most {MAX_CHARACTERS:,} are "
            "accepted. Use fewer lines."
        )
    lines = [(i, line.strip()) for i, line in enumerate(written.splitlines(), 1) if line.strip()]
    if not lines:
        raise InvalidInputError("There is no sentence. Type one that contains a listed name.")
    if len(lines) > most:
        raise InvalidInputError(f"There are {len(lines)} sentences; at most {most} are accepted.")
    known = {name.words: name for name in names}
    found: list[NamedSentence] = []
    for i, line in lines:
        found += _parse_line(check_text(line, name=f"sentence {i}"), i, known)
    order = {name: rank for rank, name in enumerate([*known.values(), PLACEHOLDER])}
    found = list(dict.fromkeys(sorted(found, key=lambda s: order[s.name])))
    return found, tuple(known.values())


def _parse_line(line: str, i: int, known: dict[frozenset[str], PersonName]) -> list[NamedSentence]:
    """Parse a typed line once per name that it contains; add a new bracketed name to `known`."""
    marked = _BRACKETS.findall(line)
    if not marked:
        here = [NamedSentence(line, name) for name in known.values() if contains_name(line, name)]
        if not here:
            raise InvalidInputError(
                f"Sentence {i} contains none of the names as a whole word. Add its name to the "
                "list, or put it in [square brackets]."
            )
        return here
    if len({" ".join(m.split()) for m in marked}) > 1:
        raise InvalidInputError(
            f"Sentence {i} has different names in [square brackets]. Mark only one."
        )
    if marked[0].strip().lower() == "name":
        return [NamedSentence(_BRACKETS.sub(PLACEHOLDER.surname, line), PLACEHOLDER)]
    if not marked[0].strip():
        raise InvalidInputError(f"Sentence {i} has empty brackets. Write a name in them.")
    name = parse_name(marked[0])
    name = known.setdefault(name.words, name)
    text = _BRACKETS.sub(lambda match: match[1].strip(), line)
    if not contains_name(text, name):
        raise InvalidInputError(
            f"Sentence {i} spells its name in [square brackets] differently from the list. Use "
            "one spelling."
        )
    return [NamedSentence(text, name)]
