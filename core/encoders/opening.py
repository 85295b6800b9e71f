"""How the encoders that are not fitted here are opened; heavy libraries wait until then."""

from __future__ import annotations

from pathlib import Path

from core.encoders.hub import must_be_local
from core.errors import InvalidInputError
from core.protocols import Encoder
from core.specs import EncoderSpec

__all__ = ["open_fitted", "open_masked_lm", "open_minilm", "open_sentence_transformer"]


def open_minilm(spec: EncoderSpec, _: str) -> Encoder:
    """Open the bundled encoder, at any layer."""
    from core.encoders.minilm import load_minilm

    return load_minilm(
        layer=spec.layer, device=spec.device, precision=spec.precision, backend=spec.backend
    )


def open_sentence_transformer(spec: EncoderSpec, source: str) -> Encoder:
    """Open a Sentence-Transformers model by its id or folder."""
    _refuse_layer(spec)
    is_local = must_be_local(spec.name, source, owner="sentence-transformers")
    from core.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(
        source,
        device=spec.device,
        precision=spec.precision,
        backend=spec.backend,
        is_local=is_local,
    )


def open_masked_lm(spec: EncoderSpec, source: str) -> Encoder:
    """Open a masked language model by its id or folder, at any layer."""
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


def _refuse_layer(spec: EncoderSpec) -> None:
    """Raise InvalidInputError where a layer is asked of an encoder that has none to choose."""
    if spec.layer is not None:
        raise InvalidInputError("layer is for `minilm` and `mlm:` encoders; leave it out.")


def open_fitted(spec: EncoderSpec, folder: str) -> Encoder:
    """Read an encoder that was fitted here from the folder that `fit` wrote."""
    from core.encoders.fitted import load_fitted

    _refuse_layer(spec)
    return load_fitted(Path(folder), spec.name.partition(":")[0])
