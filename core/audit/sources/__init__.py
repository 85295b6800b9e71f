"""Sources of a user's vectors: files and vector stores, read in batches and never written.

`open_source` takes what a user types: a path, or `kind:location#collection`.
"""

from __future__ import annotations

from leakscope.core.audit.sources.protocol import Batch, VectorSource
from leakscope.core.audit.sources.registry import SOURCES, endings, open_source, upload_source
from leakscope.core.audit.sources.sample import Sample, read_sample

__all__ = [
    "SOURCES",
    "Batch",
    "Sample",
    "VectorSource",
    "endings",
    "open_source",
    "read_sample",
    "upload_source",
]
