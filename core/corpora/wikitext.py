"""MediaWiki markup to prose: paragraphs with their case and punctuation, nothing else.

gensim's own cleaner closes the gaps that templates and formulas leave ("is about  long"). Here a
gap is marked, and a sentence with a gap is dropped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

from core.corpora.sentences import split_sentences

__all__ = ["article_paragraphs", "plain_text"]

_GAP = "\ue000"
"""Marks where something was taken out; a private character that articles do not use."""

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
"""A note after a stop, or after a comma."""

_MAX_NESTING = 12


def article_paragraphs(markup: str) -> Iterator[str]:
    """Yield the paragraphs of prose of an article, without the sentences that lost something."""
    for line in plain_text(markup).split("\n"):
        line = " ".join(_HARMLESS_GAP.sub(r"\1 ", line).split())
        if _NOT_PROSE.match(line) or not _SENTENCE_END.search(line):
            continue
        whole = [s for s in split_sentences(line) if _GAP not in s]
        if whole:
            yield " ".join(whole)


def plain_text(markup: str) -> str:
    """Return the text without markup, line by line, a gap marked by U+E000.

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
    """Remove nested markup from the inside out."""
    for _ in range(_MAX_NESTING):
        before, text = text, step(text)
        if text == before:
            break
    return text


def _template_text(match: re.Match[str]) -> str:
    """Return what a reader sees of the few templates that stand within sentences, or a gap."""
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
    target, _, text = match.group(1).rpartition("|")
    target = target or text
    if _HIDDEN_LINK.match(target):
        return ""
    return text.removeprefix(":")
