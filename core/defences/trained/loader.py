"""Opens the encoder that a trained defence protects, from the defence's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leakscope.core.defences.stored import load_defence
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec


def open_defended(spec: EncoderSpec, folder: str) -> Encoder:
    """Load a trained defence and the encoder it was trained for; return the protected encoder.

    Raises
    ------
    ArtifactError
        The folder holds none, or not the name of its encoder.
    EncoderMismatchError
        The encoder of that name is another than the defence was trained for.
    """
    defence = load_defence(Path(folder))
    name = defence.training_.get("encoder")  # type: ignore[attr-defined]
    if not isinstance(name, str) or name.startswith("defended:"):
        raise ArtifactError(
            f"{folder} does not name the encoder of its defence. Train it again with `defend`."
        )
    return defence.protect(load_encoder(replace(spec, name=name)))
