"""Request and result of attribute inference on a page; light to import.

The job itself, `leakscope.core.studies.attributes.job`, takes seconds to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakscope.core.attacks.attributes.sources import ATTRIBUTE_CORPORA
from leakscope.core.results.rows import Row
from leakscope.core.specs import EncoderSpec

if TYPE_CHECKING:
    from leakscope.core.attacks.attributes.parts import TopicMap
    from leakscope.core.attacks.attributes.program import Linear

MOST_LABELS = 50
MOST_PER_LABEL = 50
"""Limits of an inference on a page, which then takes about a minute."""


@dataclass(frozen=True, kw_only=True)
class AttributeRequest:
    """The parameters of an attribute inference: texts, encoder, sizes and seed.

    `source` is a key of ATTRIBUTE_CORPORA or, with `is_upload`, the SHA-256 of an upload, whose
    columns are named. `n_labels` and `n_per_label` are maxima.
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
        """How labelled texts and targets are separated, as a key of `draw.SPLITS`."""
        if self.is_upload:
            return "group" if self.group_column else "row"
        return ATTRIBUTE_CORPORA[self.source].split

    @property
    def attribute(self) -> str:
        """The name of the inferred attribute, such as `author`."""
        return self.label_column if self.is_upload else ATTRIBUTE_CORPORA[self.source].attribute


@dataclass(frozen=True, eq=False, kw_only=True)
class InferenceResult:
    """The result of an attribute inference: rows, labels, probe, topic map and unseen texts.

    Attributes
    ----------
    rows : tuple of Row
        Accuracy by attack and size, as in the attribute study.
    labels : tuple of str
        The labels that the probe distinguishes.
    linear : Linear
        The probe that was trained on all labelled texts.
    topic : TopicMap or None
        What content words predict of a vector; None if there were too few texts to learn it.
    unseen : tuple of (str, str)
        Texts that neither an attack nor the topic map was trained on, with their labels; some of
        each label.
    """

    rows: tuple[Row, ...]
    labels: tuple[str, ...]
    linear: Linear
    topic: TopicMap | None
    unseen: tuple[tuple[str, str], ...]
