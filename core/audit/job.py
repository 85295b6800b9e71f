"""The audit that a page runs in its own process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from leakscope.core.audit.audit import AuditSpec, audit
from leakscope.core.audit.sources import Batch, open_source, upload_source
from leakscope.core.audit.sources.protocol import ChangedSource, refusal
from leakscope.core.corpora.files import read_texts
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import table_format
from leakscope.core.corpora.uploads import MAX_UNPACKED_BYTES, check_upload
from leakscope.core.errors import MissingDependencyError
from leakscope.core.protocols import OnProgress, no_progress


def run_audit(
    source: MemoryFile | str,
    collection: str,
    texts: MemoryFile | None,
    spec: AuditSpec,
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:
    """Audit an upload or a store; return the report as a dict, with recovered words unmasked.

    Parameters
    ----------
    source : MemoryFile or str
        An upload, or what `open_source` takes.
    collection : str
        The array, tensor or column of an upload that holds several.
    texts : MemoryFile or None
        What the vectors were made from, one a row.

    Raises
    ------
    InvalidInputError
        A file cannot be read, is too large, or does not fit the other.
    """
    if isinstance(source, str):
        opened = open_source(source)
    else:
        if table_format(source):
            check_upload(source)
        upload = upload_source(source, collection)
        opened = ChangedSource(upload, partial(_limit_size, label=upload.label))
    found = None
    if texts is not None:
        check_upload(texts)
        found = read_texts(texts)
    missing = ""
    if spec.n_identifiers or "redaction" in spec.what_if:
        from leakscope.core.audit.personal.libraries import check_libraries

        try:
            check_libraries()
        except MissingDependencyError as error:
            missing = f"Personal data: {error}"
            others = tuple(name for name in spec.what_if if name != "redaction")
            spec = replace(spec, n_identifiers=0, what_if=others)
    report = audit(opened, replace(spec, shows_words=True), texts=found, on_progress=on_progress)
    found_report = report.to_dict()
    return {
        **found_report,
        "not_tested": [*found_report["not_tested"], *([missing] if missing else [])],
    }


def _limit_size(batches: Iterator[Batch], *, label: str) -> Iterator[Batch]:
    """Yield batches of vectors; raise InvalidInputError once they exceed the limit of uploads."""
    n_bytes = 0
    for batch in batches:
        n_bytes += batch.vectors.nbytes
        if n_bytes > MAX_UNPACKED_BYTES:
            raise refusal(
                label,
                f"unpacks to more than {MAX_UNPACKED_BYTES / 1e9:g} GB of vectors, the limit for "
                "pages. Upload a part, or use the command `audit`.",
            )
        yield batch
