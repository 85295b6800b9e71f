"""Load the Lee background corpus: 300 short news items of 2000–2001, from gensim's test files."""

from __future__ import annotations

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.documents import Corpus
from leakscope.core.corpora.readers.gensim_files import gensim_file

_NAME = "lee_background.cor"
_SHA256 = "5d78d6dafd953bbf65797bef09a9ffb9ec430583381be705f8fd460000f370fb"


def load_lee() -> Corpus:
    """Load the Lee corpus: 300 news items, one document each.

    Collected by Lee, Pincombe & Welsh (2005) from the mail service of the Australian
    Broadcasting Corporation.

    Raises
    ------
    ArtifactError, MissingDependencyError
        gensim's file is missing or altered.
    """
    lines = gensim_file(_NAME, _SHA256).read_text(encoding="utf-8").splitlines()
    documents = (Document(f"{i}", line) for i, line in enumerate(lines, 1) if line.strip())
    return Corpus("lee", tuple(documents), licence="no licence stated; for research")
