"""Load corpora of the Natural Language Toolkit with its own readers.

NLTK looks for its data in $NLTK_DATA and a few usual folders.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any
from xml.etree.ElementTree import ParseError

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.documents import Corpus, check_limit
from leakscope.core.errors import ArtifactError, InvalidInputError, ModelUnavailableError
from leakscope.core.storage.cache_folder import user_home

_LOCK = Lock()  # NLTK's lazy readers turn into others in place, which two threads must not see
_LONGEST_WRAPPED_LINE = 100
_REPEATED_STOP = re.compile(r"\.(?: \.)+")
_STOP_AFTER_ABBREVIATION = re.compile(r"(?<=\w\.) \.$")
_SPACED_COMMA = " , "


def nltk_folders() -> list[Path]:
    """Return the folders where NLTK looks for data, without importing NLTK.

    As `nltk.data.path` is made; where NLTK is imported it is asked, as a program may add folders.
    """
    if os.name == "nt" or "nltk.data" in sys.modules:
        import nltk.data

        return [Path(folder) for folder in nltk.data.path]
    given = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    home = None if "APPENGINE_RUNTIME" in os.environ else user_home()
    in_home = [str(home / "nltk_data")] if home else []
    own = [f"{sys.prefix}{place}" for place in ("", "/share", "/lib")]
    shared = ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    usual = [f"{root}/nltk_data" for root in (*own, *shared)]
    return [Path(folder) for folder in (*given, *in_home, *usual)]


def load_nltk(name: str, *, limit: int | None = None) -> Corpus:
    """Load an NLTK corpus by name, such as `brown` or `movie_reviews`.

    A document is a file, with its category as label; a sentence where the corpus is a list of
    sentences; a post, with its user as author, in the chat corpus. Of several categories the
    first in alphabetical order counts. Texts that NLTK keeps as tokens are joined to prose.

    Raises
    ------
    InvalidInputError
        No such corpus, or one without running text.
    ModelUnavailableError
        The corpus is not on this machine; the message tells how to get it.
    ArtifactError
        Its files are damaged.
    """
    check_limit(limit)
    with _LOCK:
        reader = _corpus_reader(name)
        try:
            documents = tuple(islice(_read_documents(name, reader), limit))
        except (
            *(zipfile.BadZipFile, zlib.error, ParseError),
            *(OSError, EOFError, ValueError, LookupError),
        ) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise ArtifactError(
                f"nltk:{name} is damaged ({type(error).__name__}). Delete corpora/{name}* from "
                f"NLTK's data and download it again: python -m nltk.downloader {name}"
            ) from error
    if not documents:
        raise ArtifactError(
            f"nltk:{name} holds no text. Download it again: python -m nltk.downloader {name}"
        )
    return Corpus(
        f"nltk:{name}",
        documents,
        licence=f"see nltk.corpus.{name}.readme()",
        is_split=_is_split(reader),
    )


def _corpus_reader(name: str) -> Any:
    """Return NLTK's corpus reader of a name; raise if its files are missing."""
    import nltk.corpus
    from nltk.corpus.reader.api import CorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    reader = getattr(nltk.corpus, name, None)
    if not isinstance(reader, LazyCorpusLoader | CorpusReader):
        raise InvalidInputError(
            f"nltk:{name} is not a corpus of NLTK. Try nltk:brown, nltk:movie_reviews, nltk:abc, "
            "nltk:inaugural, nltk:subjectivity or nltk:webtext."
        )
    try:
        reader.fileids()
    except LookupError as error:
        raise ModelUnavailableError(
            f"nltk:{name} is not on this machine. Download it with `python -m nltk.downloader "
            f"{name}`, or set NLTK_DATA to the folder that contains corpora/. `bundled` works "
            "without it."
        ) from error
    except (zipfile.BadZipFile, OSError, AttributeError, TypeError) as error:
        raise ArtifactError(
            f"nltk:{name} cannot be opened ({type(error).__name__}). Download it again: "
            f"python -m nltk.downloader {name}"
        ) from error
    return reader


def _is_split(reader: Any) -> bool:
    """Return whether a corpus reader's documents are single sentences."""
    return hasattr(reader, "tuples") or type(reader).__name__ == "CategorizedSentencesCorpusReader"


def _read_documents(name: str, reader: Any) -> Iterator[Document]:
    """Return an iterator over a corpus reader's documents, made to suit the reader's class."""
    if hasattr(reader, "tuples"):
        return _read_questions(reader)
    if hasattr(reader, "xml_posts"):
        return _read_posts(reader)
    if _is_split(reader):
        return _read_sentences(reader)
    if hasattr(reader, "sents"):
        kinds = {kind.__name__ for kind in type(reader).__mro__}
        return (
            _read_plain_files(reader)
            if "PlaintextCorpusReader" in kinds
            else _read_tokenised_files(reader)
        )
    raise InvalidInputError(
        f"nltk:{name} holds no running text. Try nltk:brown, nltk:movie_reviews or nltk:abc."
    )


def _first_category(reader: Any, file: str) -> str | None:
    """Return the alphabetically first category of a corpus file; None if it has none."""
    return min(reader.categories(file), default=None) if hasattr(reader, "categories") else None


def _read_plain_files(reader: Any) -> Iterator[Document]:
    """Read each plain-text file of a corpus reader and yield it as a document."""
    for file in reader.fileids():
        text = paragraphs_of_lines(reader.raw(file))
        if text:
            yield Document(file, text, _first_category(reader, file))


def _read_tokenised_files(reader: Any) -> Iterator[Document]:
    """Yield each file of an NLTK reader as a labelled Document, its tokens joined to text."""
    for file in reader.fileids():
        text = "\n\n".join(detokenise(sentence) for sentence in reader.sents(file))
        if text:
            yield Document(file, text, _first_category(reader, file))


def _read_sentences(reader: Any) -> Iterator[Document]:
    """Yield each sentence of a reader of sentence lists as a document."""
    for file in reader.fileids():
        label = _first_category(reader, file)
        for i, sentence in enumerate(reader.sents(file), 1):
            yield Document(f"{file}:{i}", detokenise(sentence), label)


def _read_questions(reader: Any) -> Iterator[Document]:
    """Yield a TREC reader's questions as documents, labelled by class ("DESC" of "DESC:manner")."""
    for file in reader.fileids():
        for i, (category, question) in enumerate(reader.tuples(file), 1):
            label = category.partition(":")[0]
            yield Document(f"{file}:{i}", detokenise(question.split()), label)


def _read_posts(reader: Any) -> Iterator[Document]:
    """Yield a chat reader's user posts as documents; the label is the chat room."""
    for file in reader.fileids():
        room = file.split("-")[2].partition("_")[0]
        for i, post in enumerate(reader.xml_posts(file), 1):
            if post.get("class") != "System" and (post.text or "").strip():
                yield Document(f"{file}:{i}", post.text.strip(), room, post.get("user"))


def detokenise(tokens: Sequence[str]) -> str:
    """Join tokens into a sentence: no space before a comma, straight quotation marks.

    Examples
    --------
    >>> detokenise(["``", "No", "evidence", "''", ",", "said", "Ada", "."])
    '"No evidence", said Ada.'
    """
    text = _build_detokeniser().detokenize(_direct_quotes(tokens))
    return _REPEATED_STOP.sub("...", _STOP_AFTER_ABBREVIATION.sub("", text))


@cache
def _build_detokeniser() -> Any:
    """Build NLTK's Treebank detokeniser, once per process."""
    from nltk.tokenize.treebank import TreebankWordDetokenizer

    return TreebankWordDetokenizer()


def _direct_quotes(tokens: Sequence[str]) -> list[str]:
    """Return tokens with straight quotes made opening or closing, without doubled !, ? and ;."""
    out: list[str] = []
    is_open = False
    for token in tokens:
        if token in ("!", "?", ";") and out and out[-1] == token:
            continue  # the Brown corpus tags them twice
        if token == '"':
            token = "''" if is_open else "``"
            is_open = not is_open
        out.append(token)
    return out


def paragraphs_of_lines(text: str) -> str:
    """Detokenise a text if needed, and make each line a paragraph unless lines are wrapped.

    A text with a line of more than 100 characters was not wrapped by hand, so that each of its
    line breaks means something. A text is taken for tokenised when most of its commas stand
    between spaces.
    """
    lines = text.splitlines()
    if text.count(_SPACED_COMMA) * 2 > text.count(", ") > 0:
        lines = [detokenise(line.split()) for line in lines]
    is_wrapped = max(map(len, lines), default=0) <= _LONGEST_WRAPPED_LINE
    return ("\n" if is_wrapped else "\n\n").join(line.strip() for line in lines).strip()
