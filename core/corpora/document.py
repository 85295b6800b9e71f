"""One document of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Document"]


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its name, and its class and author where these are known.

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
    def folded(self) -> str:
        """What two documents with the same text have in common, white space aside."""
        return " ".join(self.text.split())
