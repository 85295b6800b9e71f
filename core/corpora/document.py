"""One document of a corpus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its id, and its class and author where known.

    Parameters
    ----------
    id : str
        Unique within a corpus.
    text : str
        As its author wrote it. An empty line separates paragraphs.
    label, author : str or None
        Class (topic, source, polarity …) and author.
    """

    id: str
    text: str
    label: str | None = None
    author: str | None = None

    @property
    def normalised_text(self) -> str:
        """The text with white space collapsed, to compare documents."""
        return " ".join(self.text.split())
