"""Load about 100 articles of the English Wikipedia of April 2016, from gensim's test files.

MediaWiki markup becomes paragraphs of prose. gensim's own cleaner closes the gaps that templates
and formulas leave ("is about  long"). Here a gap is marked, and a sentence with a gap is dropped.
"""

from __future__ import annotations

import bz2
import html
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import iterparse

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.documents import Corpus
from leakscope.core.corpora.readers.gensim_files import gensim_file
from leakscope.core.corpora.sentences import split_sentences

_NAME = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_SHA256 = "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d"
_NAMESPACE = "{http://www.mediawiki.org/xml/export-0.10/}"

_GAP = "\ue000"
"""Marks removed content; a private-use character that articles do not contain."""

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NOTE = re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>", re.DOTALL | re.IGNORECASE)
_FORMULA = re.compile(r"<(math|chem|score|code|nowiki)\b[^<>]*>.*?</\1\s*>", re.DOTALL)
_BLOCK = re.compile(
    r"<(gallery|table|timeline|source|syntaxhighlight|pre|imagemap)\b[^<>]*>.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_TABLE = re.compile(r"\{\|(?:(?!\{\|).)*?\|\}", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_HIDDEN_LINK = re.compile(r"\s*(?:file|image|category|[a-z]{2,3}(?:-[a-z]+)*)\s*:", re.IGNORECASE)
_WEB_LINK = re.compile(r"\[(?:https?|ftp):?//[^\s\]]+\s*([^\]]*)\]")
_LINE_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BROKEN_LINK = re.compile(r"\[\[|\]\]")
_QUOTES = re.compile(r"'{2,}")
_NOT_PROSE = re.compile(r"[*#:;|!{}=<\[]")
_SENTENCE_END = re.compile(r"""[.!?]["'”’)\]]*$""")
_HARMLESS_GAP = re.compile(
    rf"""(?:(?<=[.!?])(["'”’)]*)\s*{_GAP}++(?!\s*[,;a-z]))|(?:(?<=[,;])()\s*{_GAP}++(?!\s*[,;]))"""
)
"""A removed note after a full stop or a comma."""

_MAX_NESTING = 12


def load_wikipedia() -> Corpus:
    """Read the Wikipedia articles as plain text: a corpus of one document per article.

    Headings, lists, tables and notes are left out, as are sentences that lost a formula or a
    template. Nothing is decompressed that was not checked against a known digest before.

    Raises
    ------
    ArtifactError, MissingDependencyError
        gensim's file is missing or altered.
    """
    return _parse_dump(gensim_file(_NAME, _SHA256))


@cache
def _parse_dump(path: Path) -> Corpus:
    """Parse the Wikipedia dump into a Corpus, cached for the process."""
    documents = []
    for title, markup in _read_articles(path):
        text = "\n\n".join(article_paragraphs(markup))
        if text:
            documents.append(Document(title, text))
    return Corpus("wikipedia", tuple(documents), licence="CC BY-SA 3.0")


def _read_articles(path: Path) -> Iterator[tuple[str, str]]:
    """Read a dump and yield each article's title and markup."""
    with bz2.open(path) as file:
        for _, element in iterparse(file):
            if element.tag != f"{_NAMESPACE}page":
                continue
            is_article = element.findtext(f"{_NAMESPACE}ns") == "0"
            if is_article and element.find(f"{_NAMESPACE}redirect") is None:
                markup = element.findtext(f"{_NAMESPACE}revision/{_NAMESPACE}text") or ""
                yield element.findtext(f"{_NAMESPACE}title") or "", markup
            element.clear()


def article_paragraphs(markup: str) -> Iterator[str]:
    """Convert an article's markup and yield its paragraphs of prose, without damaged sentences."""
    for line in plain_text(markup).split("\n"):
        line = " ".join(_HARMLESS_GAP.sub(r"\1 ", line).split())
        if _NOT_PROSE.match(line) or not _SENTENCE_END.search(line):
            continue
        whole = [s for s in split_sentences(line) if _GAP not in s]
        if whole:
            yield " ".join(whole)


def plain_text(markup: str) -> str:
    """Return a text without its MediaWiki markup; U+E000 marks removed formulas and templates.

    Examples
    --------
    >>> plain_text("'''Ada''' met [[Charles Babbage|Babbage]]<ref>Moore</ref> {{cvt|2|km}} away.")
    'Ada met Babbage 2 km away.'
    """
    text = _NOTE.sub("", _COMMENT.sub("", markup))
    text = _FORMULA.sub(_GAP, _BLOCK.sub("", text))
    text = _until_stable(text, lambda t: _TEMPLATE.sub(_template_text, t))
    text = _until_stable(text, lambda t: _TABLE.sub("", t))
    text = _until_stable(text, lambda t: _LINK.sub(_link_text, t))
    text = _BROKEN_LINK.sub(_GAP, _WEB_LINK.sub(r"\1", text))
    text = html.unescape(_TAG.sub("", _LINE_BREAK.sub(" ", html.unescape(text))))
    return _QUOTES.sub("", text)


def _until_stable(text: str, step: Callable[[str], str]) -> str:
    """Apply a substitution to a text until nothing changes, for markup that is nested."""
    for _ in range(_MAX_NESTING):
        before, text = text, step(text)
        if text == before:
            break
    return text


def _template_text(match: re.Match[str]) -> str:
    """Return the visible text of a matched template if it is known, or the gap mark."""
    name, *arguments = (part.strip() for part in match.group(1).split("|"))
    shown = [a for a in arguments if "=" not in a]
    match name.lower():
        case "convert" | "cvt" if len(shown) > 1:
            if shown[1] in ("-", "–", "to", "and", "by", "x") and len(shown) > 3:
                return f"{shown[0]} {shown[1]} {shown[2]} {shown[3]}"
            return f"{shown[0]} {shown[1]}"
        case "lang" | "transl" | "abbr" | "circa" if shown:
            return shown[0] if name.lower() == "abbr" else shown[-1]
        case "as of" if shown:
            return f"As of {shown[0]}"
        case "nowrap" | "nobr" | "small" | "em" | "char" if shown:
            return shown[0]
    return _GAP


def _link_text(match: re.Match[str]) -> str:
    """Return the visible text of a matched wiki link; "" for files and categories."""
    target, _, text = match.group(1).rpartition("|")
    target = target or text
    if _HIDDEN_LINK.match(target):
        return ""
    return text.removeprefix(":")
