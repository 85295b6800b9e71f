"""The glossary as a slide: for those who hear the words for the first time."""

from __future__ import annotations

from core.glossary import GLOSSARY
from core.story.format import Slide, Table, facts_of_none

__all__ = ["INTRODUCTION", "TITLE", "WORDS_FACTS", "words", "words_table"]

TITLE = "What the words mean"
INTRODUCTION = (
    "The same explanations as under the pointer at the end of every page. A page says first how "
    "many of ten words are read, then the F1 behind it."
)
WORDS_FACTS = facts_of_none("none: these are explanations, not measurements")


def words_table() -> Table:
    """Return every term with what it means."""
    rows = tuple((term, text.replace("*", "")) for term, text in GLOSSARY.items())
    return Table(columns=("Word", "What it means"), rows=rows)


def words() -> Slide:
    """Return what the words of the pages mean."""
    return Slide(title=TITLE, body=INTRODUCTION, table=words_table(), facts=WORDS_FACTS)
