"""Corpora of the Natural Language Toolkit, through its own readers, without its tokenizer models.

NLTK looks for its data in $NLTK_DATA and a few usual folders.
"""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any
from xml.etree.ElementTree import ParseError

from core.cache_folder import user_home
from core.corpora.detokenise import detokenise, paragraphs_of_lines
from core.corpora.document import Document
from core.corpora.documents import Corpus, check_limit
from core.errors import ArtifactError, InvalidInputError, ModelUnavailableError

__all__ = ["load_nltk", "nltk_folders"]

_LOCK = Lock()  # NLTK's lazy readers turn into others in place, which two threads must not see


def nltk_folders() -> list[Path]:
    """Return where NLTK looks for its data, without importing it, which takes seconds.

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
    """Return a corpus of NLTK by its name there, such as `brown` or `movie_reviews`.

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
        reader = _open(name)
        try:
            documents = tuple(islice(_documents(name, reader), limit))
        except (
            *(zipfile.BadZipFile, zlib.error, ParseError),
            *(OSError, EOFError, ValueError, LookupError),
        ) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise ArtifactError(
                f"nltk:{name} is damaged ({type(error).__name__}). Delete corpora/{name}* from "
                f"NLTK's data and get it again: python -m nltk.downloader {name}"
            ) from error
    if not documents:
        raise ArtifactError(f"nltk:{name} holds no text. Get it again with nltk.downloader.")
    return Corpus(
        f"nltk:{name}",
        documents,
        licence=f"see nltk.corpus.{name}.readme()",
        is_split=_is_split(reader),
    )


def _open(name: str) -> Any:
    """Return NLTK's reader, its files found."""
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
            f"nltk:{name} is not on this machine. Get it with `python -m nltk.downloader {name}`, "
            "or set NLTK_DATA to the folder that holds corpora/; `bundled` works without it."
        ) from error
    except (zipfile.BadZipFile, OSError, AttributeError, TypeError) as error:
        raise ArtifactError(
            f"nltk:{name} cannot be opened ({type(error).__name__}). Get it again: "
            f"python -m nltk.downloader {name}"
        ) from error
    return reader


def _is_split(reader: Any) -> bool:
    return hasattr(reader, "tuples") or type(reader).__name__ == "CategorizedSentencesCorpusReader"


def _documents(name: str, reader: Any) -> Iterator[Document]:
    """Yield documents in the way that suits the kind of reader."""
    if hasattr(reader, "tuples"):
        return _questions(reader)
    if hasattr(reader, "xml_posts"):
        return _posts(reader)
    if _is_split(reader):
        return _listed_sentences(reader)
    if hasattr(reader, "sents"):
        kinds = {kind.__name__ for kind in type(reader).__mro__}
        return _plain_files(reader) if "PlaintextCorpusReader" in kinds else _token_files(reader)
    raise InvalidInputError(
        f"nltk:{name} holds no running text. Try nltk:brown, nltk:movie_reviews or nltk:abc."
    )


def _label(reader: Any, file: str) -> str | None:
    return min(reader.categories(file), default=None) if hasattr(reader, "categories") else None


def _plain_files(reader: Any) -> Iterator[Document]:
    for file in reader.fileids():
        text = paragraphs_of_lines(reader.raw(file))
        if text:
            yield Document(file, text, _label(reader, file))


def _token_files(reader: Any) -> Iterator[Document]:
    for file in reader.fileids():
        text = "\n\n".join(detokenise(sentence) for sentence in reader.sents(file))
        if text:
            yield Document(file, text, _label(reader, file))


def _listed_sentences(reader: Any) -> Iterator[Document]:
    for file in reader.fileids():
        label = _label(reader, file)
        for i, sentence in enumerate(reader.sents(file), 1):
            yield Document(f"{file}:{i}", detokenise(sentence), label)


def _questions(reader: Any) -> Iterator[Document]:
    """Yield the TREC questions with their coarse class ("DESC" of "DESC:manner")."""
    for file in reader.fileids():
        for i, (category, question) in enumerate(reader.tuples(file), 1):
            label = category.partition(":")[0]
            yield Document(f"{file}:{i}", detokenise(question.split()), label)


def _posts(reader: Any) -> Iterator[Document]:
    """Yield what people wrote, messages of the chat system left out; the label is the room."""
    for file in reader.fileids():
        room = file.split("-")[2].partition("_")[0]
        for i, post in enumerate(reader.xml_posts(file), 1):
            if post.get("class") != "System" and (post.text or "").strip():
                yield Document(f"{file}:{i}", post.text.strip(), room, post.get("user"))
