"""What is asked of an inference on a page, and what comes of it: light to import, as pages are.

What infers, `core.studies.attribute_job`, takes seconds to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.attacks.attributes.sources import ATTRIBUTE_CORPORA
from core.specs import EncoderSpec
from core.studies.rows import Row

if TYPE_CHECKING:
    from core.attacks.attributes.parts import TopicMap
    from core.attacks.attributes.program import Linear

__all__ = ["MOST_LABELS", "MOST_PER_LABEL", "AttributeRequest", "Inferred"]

MOST_LABELS = 50
MOST_PER_LABEL = 50
"""What is told apart on a page, so that it takes a minute and not ten."""


@dataclass(frozen=True, kw_only=True)
class AttributeRequest:
    """What identifies an inference.

    `source` names one of ATTRIBUTE_CORPORA, or is the SHA-256 of an upload with `is_upload`, of
    which the columns are named. `n_labels` and `n_per_label` are at most so many.
    """

    source: str
    on: EncoderSpec
    n_labels: int = 20
    n_per_label: int = 20
    seed: int = 0
    text_column: str = ""
    label_column: str = ""
    group_column: str = ""
    is_upload: bool = False

    @property
    def split(self) -> str:
        """What is parted: see `core.attacks.attributes.draw.SPLITS`."""
        if self.is_upload:
            return "group" if self.group_column else "row"
        return ATTRIBUTE_CORPORA[self.source].split

    @property
    def attribute(self) -> str:
        """What is inferred, in a word."""
        return self.label_column if self.is_upload else ATTRIBUTE_CORPORA[self.source].attribute


@dataclass(frozen=True, eq=False, kw_only=True)
class Inferred:
    """What came of it.

    Attributes
    ----------
    rows : tuple of Row
        Accuracy by attack and size, as the study of attributes tells it.
    labels : tuple of str
        Those told apart.
    linear : Linear
        The probe that learned from all labelled texts.
    topic : TopicMap or None
        What content words tell of a vector; None where there were too few texts to learn it.
    unseen : tuple of (str, str)
        Texts that neither an attack nor the topic map learned from, with their labels; some of each
        label.
    """

    rows: tuple[Row, ...]
    labels: tuple[str, ...]
    linear: Linear
    topic: TopicMap | None
    unseen: tuple[tuple[str, str], ...]
