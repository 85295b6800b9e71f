"""Functions that load the registry's encoders, importing heavy libraries only then."""

from __future__ import annotations

from pathlib import Path

from leakscope.core.encoders.hub import must_be_local
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec


def open_minilm(spec: EncoderSpec, _: str) -> Encoder:
    """Load the bundled all-MiniLM-L6-v2 at the layer that the spec names."""
    from leakscope.core.encoders.minilm import load_minilm

    return load_minilm(
        layer=spec.layer, device=spec.device, precision=spec.precision, backend=spec.backend
    )


def open_sentence_transformer(spec: EncoderSpec, source: str) -> Encoder:
    """Load a Sentence-Transformers model by its id or folder."""
    _refuse_layer(spec)
    is_local = must_be_local(spec.name, source, owner="sentence-transformers")
    from leakscope.core.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(
        source,
        device=spec.device,
        precision=spec.precision,
        backend=spec.backend,
        is_local=is_local,
    )


def open_masked_lm(spec: EncoderSpec, source: str) -> Encoder:
    """Load a masked language model by its id or folder, at any layer."""
    is_local = must_be_local(spec.name, source)
    from leakscope.core.encoders.transformer import TransformerEncoder

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
    """Raise InvalidInputError if a spec names a layer: this encoder has none to choose."""
    if spec.layer is not None:
        raise InvalidInputError("layer applies only to `minilm` and `mlm:` encoders; leave it out.")


def open_fitted(spec: EncoderSpec, folder: str) -> Encoder:
    """Load a fitted encoder from the folder that `fit` wrote."""
    from leakscope.core.encoders.fitted import load_fitted

    _refuse_layer(spec)
    return load_fitted(Path(folder), spec.name.partition(":")[0])
