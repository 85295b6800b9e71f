"""Encoders: text → vector. `load_encoder` opens one by name; ENCODERS lists the families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.encoders.fitted import FITTED_ENCODERS
from core.encoders.hub import must_be_local
from core.errors import InvalidInputError, similar
from core.protocols import Encoder
from core.specs import EncoderSpec

__all__ = ["ENCODERS", "EncoderFamily", "load_encoder"]


@dataclass(frozen=True)
class EncoderFamily:
    """A way to open encoders: what it is, and the function that opens one."""

    title: str
    summary: str
    load: Callable[[EncoderSpec, str], Encoder]
    argument: str = "ID"
    """What follows the name and a colon; empty where nothing does."""


def _load_minilm(spec: EncoderSpec, _: str) -> Encoder:
    from core.encoders.minilm import load_minilm

    return load_minilm(
        layer=spec.layer, device=spec.device, precision=spec.precision, backend=spec.backend
    )


def _load_sentence_transformer(spec: EncoderSpec, source: str) -> Encoder:
    if spec.layer is not None:
        raise InvalidInputError("layer is for `minilm` and `mlm:` encoders; leave it out.")
    is_local = must_be_local(spec.name, source, owner="sentence-transformers")
    from core.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(
        source,
        device=spec.device,
        precision=spec.precision,
        backend=spec.backend,
        is_local=is_local,
    )


def _load_masked_lm(spec: EncoderSpec, source: str) -> Encoder:
    is_local = must_be_local(spec.name, source)
    from core.encoders.transformer import TransformerEncoder

    return TransformerEncoder(
        source,
        name=f"mlm:{source}",
        layer=spec.layer,
        max_length=512,
        device=spec.device,
        precision=spec.precision,
        backend=spec.backend,
        is_local=is_local,
    )


ENCODERS: dict[str, EncoderFamily] = {
    "minilm": EncoderFamily(
        "all-MiniLM-L6-v2",
        "Sentence-BERT of 6 layers and 384 dimensions, bundled, works offline",
        _load_minilm,
        argument="",
    ),
    "st": EncoderFamily(
        "Sentence-Transformers",
        "st:ID, any Sentence-Transformers model of the hub or a folder",
        _load_sentence_transformer,
    ),
    "mlm": EncoderFamily(
        "masked language model",
        "mlm:ID, mean pooling over any layer of a Transformers encoder",
        _load_masked_lm,
    ),
}


def _load_fitted(spec: EncoderSpec, source: str) -> Encoder:
    from core.encoders.fitted import load_fitted

    if spec.layer is not None:
        raise InvalidInputError("layer is for `minilm` and `mlm:` encoders; leave it out.")
    return load_fitted(Path(source), spec.name.partition(":")[0])


ENCODERS |= {
    name: EncoderFamily(
        family.title, f"as `fit` wrote it. {family.summary}", _load_fitted, argument="FOLDER"
    )
    for name, family in FITTED_ENCODERS.items()
}


def load_encoder(spec: EncoderSpec | str = "minilm") -> Encoder:
    """Open an encoder.

    Raises
    ------
    InvalidInputError
        No such family, or the id is missing.
    ModelUnavailableError
        The weights are neither here nor reachable, said within seconds.
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
