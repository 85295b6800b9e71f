"""Encoders: text → vector. `load_encoder` loads one by name; ENCODERS lists them."""

from __future__ import annotations

from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec

__all__ = ["ENCODERS", "load_encoder"]


def load_encoder(spec: EncoderSpec | str = "minilm") -> Encoder:
    """Load an encoder by its spec or name, such as `minilm` or `st:ID`.

    Raises
    ------
    InvalidInputError
        The family is unknown, or the id is missing.
    ModelUnavailableError
        The weights are neither on this machine nor reachable; raised within seconds.
    """
    spec = EncoderSpec(name=spec) if isinstance(spec, str) else spec
    family_name, _, source = spec.name.partition(":")
    family = ENCODERS.get(family_name)
    if family is None or bool(family.argument) != bool(source):
        known = ", ".join(f"{n}:{f.argument}" if f.argument else n for n, f in ENCODERS.items())
        raise InvalidInputError(
            f"encoder must be one of {known}, got {spec.name!r}."
            + similar(family_name, () if family else ENCODERS)
        )
    return family.load(spec, source)
