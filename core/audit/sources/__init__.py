"""Where a user's vectors come from: files and vector stores, read in batches, never written.

`open_source` takes what a user types: a path, or `kind:location#collection`.
"""

from __future__ import annotations

from core.audit.sources.protocol import Batch, VectorSource
from core.audit.sources.registry import SOURCES, open_source
from core.audit.sources.sample import Sample, read_sample

__all__ = ["SOURCES", "Batch", "Sample", "VectorSource", "open_source", "read_sample"]
