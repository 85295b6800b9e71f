"""Counts repeated texts of a file: each occurrence is a release, and the odds multiply."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from leakscope.core.defences.metric_dp.files import Answers, ChangeBatches
from leakscope.core.defences.metric_dp.guarantee import Guarantees


class RepeatCounter:
    """Counts how often each text occurs in a stream of batches, in eight bytes a text.

    Texts that differ in white space or case alone count as one: tokenizers drop both.
    """

    def __init__(self) -> None:
        self._digests = array("Q")

    def counted(self, change: ChangeBatches) -> ChangeBatches:
        """Wrap a batch transform so that the texts passing through it are counted."""

        def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
            return change(map(self._record, batches))

        return changed

    def _record(self, texts: Sequence[str]) -> Sequence[str]:
        """Record the digests of a batch of texts; return the batch."""
        self._digests.extend(_digest(text) for text in texts)
        return texts

    @property
    def counts(self) -> tuple[int, int]:
        """The most frequent text's occurrences, and how many texts occur more than once."""
        if not self._digests:
            return 0, 0
        found = np.unique(np.frombuffer(self._digests, np.uint64), return_counts=True)[1]
        return int(found.max()), int((found > 1).sum())

    def describe(self, promises: Guarantees) -> str:
        """Return a sentence on how the repeats weaken a guarantee."""
        most, n_repeated = self.counts
        if most < 2:
            return "No text occurs more than once in the file."
        texts = "One text occurs" if n_repeated == 1 else f"{n_repeated:,} texts occur"
        return (
            f"{texts} more than once. The most frequent text occurs {most:,} times, and its odds "
            f"are raised to the power {most:,}: {promises.after(most).brief}."
        )

    def to_dict(self, promises: Guarantees) -> dict[str, Any]:
        """Return the JSON-able form, with the guarantee that remains for the most frequent text."""
        most, n_repeated = self.counts
        left = promises.after(max(most, 1)).to_dict()
        return {"most_frequent": most, "n_repeated": n_repeated, "promise": left}


def _digest(text: str) -> int:
    """Return a 64-bit digest of a text, ignoring case and white space."""
    folded = " ".join(text.split()).casefold()
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "little")
