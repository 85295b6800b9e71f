"""How often texts of a file repeat: each occurrence is a release, and the odds compose."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from core.defences.metric_dp.files import Answers, ChangeBatches
from core.defences.metric_dp.promise import Promises


class Repeats:
    """Counts the occurrences of texts as they pass, in eight bytes a text.

    Texts that differ in white space or case alone count as one: tokenizers drop both.
    """

    def __init__(self) -> None:
        self._digests = array("Q")

    def counting(self, change: ChangeBatches) -> ChangeBatches:
        """Return what changes batches likewise, and counts their texts."""

        def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
            return change(map(self._counted, batches))

        return changed

    def _counted(self, texts: Sequence[str]) -> Sequence[str]:
        self._digests.extend(_digest(text) for text in texts)
        return texts

    @property
    def counts(self) -> tuple[int, int]:
        """The occurrences of the most frequent text, and the texts that occur more than once."""
        if not self._digests:
            return 0, 0
        found = np.unique(np.frombuffer(self._digests, np.uint64), return_counts=True)[1]
        return int(found.max()), int((found > 1).sum())

    def said(self, promises: Promises) -> str:
        """Return what the repeats leave of a guarantee, in a sentence."""
        most, n_repeated = self.counts
        if most < 2:
            return "No text occurs more than once in the file."
        texts = "One text occurs" if n_repeated == 1 else f"{n_repeated:,} texts occur"
        return (
            f"{texts} more than once. The most frequent text occurs {most:,} times, and its odds "
            f"are to the power {most:,}: {promises.after(most).brief}."
        )

    def to_dict(self, promises: Promises) -> dict[str, Any]:
        """Return the JSON-able form, with the promise that is left for the most frequent text."""
        most, n_repeated = self.counts
        left = promises.after(max(most, 1)).to_dict()
        return {"most_frequent": most, "n_repeated": n_repeated, "promise": left}


def _digest(text: str) -> int:
    folded = " ".join(text.split()).casefold()
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "little")
