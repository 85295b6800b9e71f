"""Registry of the attribute-inference attacks, simplest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leakscope.core.attacks.attributes.attack import AttributeAttack
from leakscope.core.registry import Entry, find, make


@dataclass(frozen=True)
class AttributeEntry(Entry):
    """The registry entry of an attribute attack: its class and what it needs."""

    reads: str
    """`vectors`, `texts` or `nothing` of the target."""
    is_quick: bool = True
    """Whether it trains in seconds; an attack that takes minutes is measured size by size."""
    reads_sparse: bool = False
    """Whether it also accepts the sparse vectors of bags of words."""

    @property
    def is_baseline(self) -> bool:
        """Whether the attack does not use the vector, so its accuracy is no leak of the vector."""
        return self.reads != "vectors"

    @property
    def cost(self) -> str:
        """What the attacker needs, in words."""
        beside = {"vectors": "with their vectors", "texts": "and the raw target", "nothing": ""}
        return f"needs labelled texts {beside[self.reads]}".strip()


_HERE = "leakscope.core.attacks.attributes"

ATTRIBUTE_ATTACKS: dict[str, AttributeEntry] = {
    "majority": AttributeEntry(
        "Majority class",
        "Always answers the most frequent labels among the labelled texts.",
        "baseline",
        reads="nothing",
        path=f"{_HERE}.words:MajorityAttack",
        formula=r"\text{score}(s) = \log \frac{n_s + 1}{\sum_{s'} (n_{s'} + 1)}",
        colour="#8A8F96",
        symbol="line-ns-open",
    ),
    "words": AttributeEntry(
        "Bag of words",
        "A linear classifier on the words of the raw text; it uses no vectors.",
        "baseline",
        reads="texts",
        is_quick=False,
        path=f"{_HERE}.words:WordsAttack",
        formula=r"P(s \mid x) = \text{softmax}\big(W\,\text{tfidf}(x) + b\big)_s",
        colour="#56B4E9",
        symbol="square",
    ),
    "textcnn": AttributeEntry(
        "TextCNN",
        "A convolutional network trained on the raw labelled texts; it uses no vectors.",
        "Song & Raghunathan (2020), §6.3; Kim (2014)",
        reads="texts",
        is_quick=False,
        path=f"{_HERE}.textcnn:TextCNN",
        formula=r"P(s \mid x) = \text{softmax}\big(W\,[\max_i \text{relu}(F_k * E x)_i]_{k=3,4,5}"
        r" + b\big)_s",
        colour="#E69F00",
        symbol="diamond",
    ),
    "linear": AttributeEntry(
        "Linear probe",
        "A linear classifier on the vectors of a few labelled texts.",
        "Song & Raghunathan (2020), Alg. 3",
        reads="vectors",
        reads_sparse=True,
        path=f"{_HERE}.linear:LinearProbe",
        formula=r"P(s \mid x) = \text{softmax}\big(W\,\Phi(x) + b\big)_s",
        colour="#D55E00",
        symbol="circle",
    ),
    "discriminant": AttributeEntry(
        "Shrunken discriminant",
        "A linear classifier in closed form; it fits every size of a sweep in seconds.",
        "ours; Fisher (1936), Ledoit & Wolf (2004)",
        reads="vectors",
        path=f"{_HERE}.linear:Discriminant",
        formula=r"\text{score}(s) = m_s^\top \Sigma^{-1} (\Phi(x) - \mu)"
        r" - \tfrac12 m_s^\top \Sigma^{-1} m_s + \log \pi_s",
        colour="#CC79A7",
        symbol="triangle-up",
    ),
}


def make_attribute_attack(name: str, settings: Mapping[str, Any] | None = None) -> AttributeAttack:
    """Build an unfitted attribute attack from its registry name and settings.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value outside its range; the message names what is.
    """
    entry = find(ATTRIBUTE_ATTACKS, name, "attack")
    attack: AttributeAttack = make(entry, name, dict(settings or {}))
    return attack
