"""About 100 articles of the English Wikipedia of April 2016, from gensim's test files."""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import iterparse

from core.corpora.document import Document
from core.corpora.documents import Corpus
from core.corpora.gensim_files import gensim_file
from core.corpora.wikitext import article_paragraphs

__all__ = ["load_wikipedia"]

_NAME = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_SHA256 = "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d"
_TAG = "{http://www.mediawiki.org/xml/export-0.10/}"


def load_wikipedia() -> Corpus:
    """Return the articles as plain text, one document each, its id being the title.

    Headings, lists, tables and notes are left out, as are sentences that lost a formula or a
    template. Nothing is decompressed that was not checked against a known digest before.

    Raises
    ------
    ArtifactError, MissingDependencyError
        gensim's file is missing or altered.
    """
    return _read(gensim_file(_NAME, _SHA256))


@cache
def _read(path: Path) -> Corpus:
    """Read the file once a process: it is checked each time, and takes a second."""
    documents = []
    for title, markup in _articles(path):
        text = "\n\n".join(article_paragraphs(markup))
        if text:
            documents.append(Document(title, text))
    return Corpus("wikipedia", tuple(documents), licence="CC BY-SA 3.0")


def _articles(path: Path) -> Iterator[tuple[str, str]]:
    """Yield title and markup of each article, holding one page in memory at a time."""
    with bz2.open(path) as file:
        for _, element in iterparse(file):
            if element.tag != f"{_TAG}page":
                continue
            is_article = element.findtext(f"{_TAG}ns") == "0"
            if is_article and element.find(f"{_TAG}redirect") is None:
                markup = element.findtext(f"{_TAG}revision/{_TAG}text") or ""
                yield element.findtext(f"{_TAG}title") or "", markup
            element.clear()
