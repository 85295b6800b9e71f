"""An encoder behind a defence that was trained for it: opened as one, from the defence's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.defences.stored import load_defence
from core.encoders import load_encoder
from core.errors import ArtifactError
from core.protocols import Encoder
from core.specs import EncoderSpec

__all__ = ["open_defended"]


def open_defended(spec: EncoderSpec, folder: str) -> Encoder:
    """Open the encoder that a trained defence was trained for, behind that defence.

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
            f"{folder} does not tell which encoder its defence is for. Train it again by `defend`."
        )
    return defence.protect(load_encoder(replace(spec, name=name)))
