"""Audit the bundled news for the page's example: `python -m scripts.audit_example`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from leakscope.core.attacks.inversion.evaluation import sample_texts
from leakscope.core.audit.audit import AuditSpec, audit
from leakscope.core.audit.sources import Batch
from leakscope.core.audit.sources.arrays import row_numbers
from leakscope.core.audit.summary import EXAMPLE
from leakscope.core.cli.shared.output import jsonable, progress_line
from leakscope.core.corpora import load_corpus, split_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Vectors
from leakscope.core.storage.artifacts import write_json

MOST_CHARACTERS = 400


class EncodedTexts:
    """Texts with their vectors, as an audit source in memory."""

    def __init__(self, label: str, vectors: Vectors, texts: Sequence[str]) -> None:
        self.label, self._vectors, self._texts = label, vectors, texts

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Yield an iterator of one batch that holds all rows."""
        yield iter([Batch(self._vectors, row_numbers(0, len(self._texts)), list(self._texts))])


def main() -> None:
    """Draw sentences of the bundled news, encode and audit them, and write the report as JSON."""
    parser = argparse.ArgumentParser(prog="python -m scripts.audit_example", description=__doc__)
    parser.add_argument("--n", type=int, default=500, help="sentences (default: 500)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = [
        sentence
        for document in load_corpus("lee").documents
        for sentence in split_sentences(document.text)
        if 40 <= len(sentence) <= MOST_CHARACTERS
    ]
    texts = sample_texts(found, given.n, given.seed)
    vectors = load_encoder("minilm").encode(texts)
    source = EncodedTexts("news that ships (Lee)", vectors, texts)
    with progress_line() as on_progress:
        report = audit(source, AuditSpec(n=given.n, seed=given.seed), on_progress=on_progress)
    told = jsonable(report.to_dict())
    del told["f1_by_row"]
    write_json(EXAMPLE, told, is_public=True)
    print(report.sentence)


if __name__ == "__main__":
    main()
