"""The defences, in the order in which a reader should meet them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from core.errors import InvalidInputError
from core.protocols import Defence
from core.specs import DefenceSpec, settings_of, validate_settings

__all__ = ["DEFENCES", "DefenceEntry", "make_defence"]


@dataclass(frozen=True)
class DefenceEntry:
    """What a user should know before choosing a defence, and where its class is."""

    title: str
    summary: str
    reference: str
    guarantee: str
    """What is promised, in words; empty where nothing is."""
    acts_on: str
    """`text`, `tokens` (their vectors) or `vector` (of the whole text)."""
    path: str
    """module:Class, imported only when used."""

    @property
    def kind(self) -> type[Any]:
        """The defence class."""
        module, _, name = self.path.partition(":")
        loaded: type[Any] = getattr(import_module(module), name)
        return loaded


_D_CHI = "d_χ-privacy: outputs for two inputs differ by a factor of at most exp(η · distance)"
_DP, _VECTOR = "core.defences.metric_dp", "core.defences.vector_noise"

DEFENCES: dict[str, DefenceEntry] = {
    "none": DefenceEntry(
        "No defence",
        "The vector as the encoder gives it: what every defence is held against.",
        "baseline",
        "",
        "vector",
        f"{_VECTOR}:NoDefence",
    ),
    "text_to_text": DefenceEntry(
        "Text to text",
        "Every token is replaced by the one nearest to its noisy vector; a text is released.",
        "Qu et al. (2021), Eq. 4",
        _D_CHI,
        "text",
        f"{_DP}:TextToText",
    ),
    "token_representation": DefenceEntry(
        "Token representation",
        "Noise is added to every token vector before the encoder reads them.",
        "Qu et al. (2021), Eq. 3",
        _D_CHI,
        "tokens",
        f"{_DP}:TokenRepresentation",
    ),
    "sequence_representation": DefenceEntry(
        "Sequence representation",
        "The same noise is added to the vector of the whole text.",
        "Qu et al. (2021), Eq. 3",
        _D_CHI,
        "vector",
        f"{_DP}:SequenceRepresentation",
    ),
    "gaussian": DefenceEntry(
        "Gaussian noise",
        "Normal noise is added to the vector.",
        "common practice",
        "",
        "vector",
        f"{_VECTOR}:GaussianNoise",
    ),
    "rounding": DefenceEntry(
        "Rounding",
        "Numbers of the vector are rounded.",
        "common practice",
        "",
        "vector",
        f"{_VECTOR}:Rounding",
    ),
    "int8": DefenceEntry(
        "8-bit quantising",
        "Numbers of the vector are kept to 255 levels.",
        "common practice",
        "",
        "vector",
        f"{_VECTOR}:Int8",
    ),
    "binary": DefenceEntry(
        "Binary quantising",
        "Only the signs of the vector are kept.",
        "common practice",
        "",
        "vector",
        f"{_VECTOR}:Binary",
    ),
    "truncation": DefenceEntry(
        "Truncation",
        "Only the first numbers of the vector are kept.",
        "common practice",
        "",
        "vector",
        f"{_VECTOR}:Truncation",
    ),
    "random_projection": DefenceEntry(
        "Random projection",
        "The vector is multiplied by a random matrix that the attacker knows.",
        "common practice",
        "",
        "vector",
        f"{_VECTOR}:RandomProjection",
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
    entry = DEFENCES.get(spec.name)
    if entry is None:
        raise InvalidInputError(f"defence must be one of {', '.join(DEFENCES)}, got {spec.name!r}.")
    known = settings_of(entry.kind).keys() | {"seed"}
    for name, _ in spec.settings:
        if name not in known:
            raise InvalidInputError(
                f"{spec.name} has no setting {name!r}; it has {', '.join(sorted(known))}."
            )
    try:
        defence: Defence = entry.kind(**dict(spec.settings))
    except TypeError as error:
        raise InvalidInputError(f"{spec.name}: {error}.") from error
    validate_settings(defence)
    return defence
