"""The defences, in the order in which a reader should meet them."""

from __future__ import annotations

from dataclasses import dataclass

from core.protocols import Defence
from core.registry import Entry, find, make
from core.specs import DefenceSpec

__all__ = ["DEFENCES", "DefenceEntry", "make_defence"]


@dataclass(frozen=True)
class DefenceEntry(Entry):
    """What a user should know before choosing a defence, and where its class is."""

    acts_on: str
    """`text`, `tokens` (their vectors) or `vector` (of the whole text)."""
    guarantee: str = ""
    """What is promised, in words; empty where nothing is."""


_D_CHI = "d_χ-privacy: outputs for two inputs differ by a factor of at most exp(η · distance)"
_DP, _VECTOR = "core.defences.metric_dp.mechanisms", "core.defences.vectors"

DEFENCES: dict[str, DefenceEntry] = {
    "none": DefenceEntry(
        "No defence",
        "The vector as the encoder gives it: what every defence is held against.",
        "baseline",
        path=f"{_VECTOR}:NoDefence",
        acts_on="vector",
    ),
    "text_to_text": DefenceEntry(
        "Text to text",
        "Every token is replaced by the one nearest to its noisy vector; a text is released.",
        "Qu et al. (2021), Eq. 4",
        path=f"{_DP}:TextToText",
        acts_on="text",
        guarantee=_D_CHI,
    ),
    "token_representation": DefenceEntry(
        "Token representation",
        "Noise is added to every token vector before the encoder reads them.",
        "Qu et al. (2021), Eq. 3",
        path=f"{_DP}:TokenRepresentation",
        acts_on="tokens",
        guarantee=_D_CHI,
    ),
    "sequence_representation": DefenceEntry(
        "Sequence representation",
        "The same noise is added to the vector of the whole text.",
        "Qu et al. (2021), Eq. 3",
        path=f"{_DP}:SequenceRepresentation",
        acts_on="vector",
        guarantee=_D_CHI,
    ),
    "gaussian": DefenceEntry(
        "Gaussian noise",
        "Normal noise is added to the vector.",
        "common practice",
        path=f"{_VECTOR}:GaussianNoise",
        acts_on="vector",
    ),
    "rounding": DefenceEntry(
        "Rounding",
        "Numbers of the vector are rounded.",
        "common practice",
        path=f"{_VECTOR}:Rounding",
        acts_on="vector",
    ),
    "int8": DefenceEntry(
        "8-bit quantising",
        "Numbers of the vector are kept to 255 levels.",
        "common practice",
        path=f"{_VECTOR}:Int8",
        acts_on="vector",
    ),
    "binary": DefenceEntry(
        "Binary quantising",
        "Only the signs of the vector are kept.",
        "common practice",
        path=f"{_VECTOR}:Binary",
        acts_on="vector",
    ),
    "truncation": DefenceEntry(
        "Truncation",
        "Only the first numbers of the vector are kept.",
        "common practice",
        path=f"{_VECTOR}:Truncation",
        acts_on="vector",
    ),
    "random_projection": DefenceEntry(
        "Random projection",
        "The vector is multiplied by a random matrix that the attacker knows.",
        "common practice",
        path=f"{_VECTOR}:RandomProjection",
        acts_on="vector",
    ),
}


def make_defence(spec: DefenceSpec | str) -> Defence:
    """Build a defence from its spec.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range; the message names what is.
    """
    spec = DefenceSpec(name=spec) if isinstance(spec, str) else spec
    entry = find(DEFENCES, spec.name, "defence")
    defence: Defence = make(entry, spec.name, dict(spec.settings), also=("seed",))
    return defence
