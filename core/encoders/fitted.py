"""Encoders that are trained on a corpus here: by name, to disk without pickle, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.encoders.registry import FITTED_ENCODERS, FITTED_ON_TEXTS
from core.errors import ArtifactError, CoreError, InvalidInputError, NotFittedError
from core.protocols import FittedEncoder
from core.registry import find, make
from core.specs import FittedEncoderSpec, settings_of
from core.store import UNFIT, digest_of, load_artifact, save_artifact
from core.text import check_texts

__all__ = [
    "FITTED_ENCODERS",
    "FITTED_ON_TEXTS",
    "check_ready",
    "fingerprint_of",
    "load_fitted",
    "make_encoder",
    "save_encoder",
    "training_texts",
]


def make_encoder(spec: FittedEncoderSpec | str) -> FittedEncoder:
    """Build an encoder that is yet to be fitted.

    Raises
    ------
    InvalidInputError
        No such encoder or setting, or a value outside its range.
    """
    spec = FittedEncoderSpec(name=spec) if isinstance(spec, str) else spec
    family = find(FITTED_ENCODERS, spec.name, "encoder")
    encoder: FittedEncoder = make(family, spec.name, dict(spec.settings), fixed=family.fixed)
    encoder.name = spec.name
    return encoder


def save_encoder(
    encoder: FittedEncoder, folder: Path, *, training: dict[str, Any] | None = None
) -> Path:
    """Write a fitted encoder as safetensors and JSON.

    Raises
    ------
    NotFittedError
        It was not fitted.
    StorageError
        The disk is full or the folder cannot be written.
    """
    check_ready(encoder)
    arrays, state = encoder.state()
    settings = {name: getattr(encoder, name) for name in settings_of(type(encoder))}
    meta = {
        "kind": "encoder",
        "encoder": encoder.name,
        "settings": settings,
        "state": state,
        "fingerprint": encoder.fingerprint,
        "training": training or {},
    }
    # safetensors refuses a file without arrays.
    return save_artifact(folder, arrays or {"nothing": np.zeros(1, np.float32)}, meta)


def load_fitted(folder: Path, name: str | None = None) -> FittedEncoder:
    """Read an encoder that `save_encoder` wrote.

    Raises
    ------
    ArtifactError
        Missing, truncated, altered, or something else; the message names the file.
    InvalidInputError
        The folder holds an encoder of another name than the one given.
    """
    arrays, meta = load_artifact(folder)
    of = meta.get("encoder")
    if meta.get("kind") != "encoder" or not isinstance(of, str) or of not in FITTED_ENCODERS:
        raise ArtifactError(f"{folder} does not hold an encoder fitted here.")
    if name is not None and meta["encoder"] != name:
        raise InvalidInputError(
            f"{folder} holds a {meta['encoder']} encoder: ask for {meta['encoder']}:{folder}."
        )
    fixed = FITTED_ENCODERS[meta["encoder"]].fixed
    try:
        settings = {k: v for k, v in meta["settings"].items() if k not in fixed}
        encoder = make_encoder(FittedEncoderSpec.of(meta["encoder"], settings))
        encoder.load_state(arrays, meta["state"])
    except ArtifactError:
        raise
    except (*UNFIT, CoreError) as error:
        raise ArtifactError(
            f"{folder} cannot be read as a {meta['encoder']} encoder: {error}"
        ) from error
    if encoder.fingerprint != meta.get("fingerprint"):
        raise ArtifactError(f"{folder} was altered: its contents have another fingerprint.")
    return encoder


def fingerprint_of(encoder: Any, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> str:
    """Return the SHA-256 of what decides an encoder's vectors: equal ones give equal vectors."""
    return digest_of(arrays, [encoder.name, meta])


def check_ready(encoder: Any) -> None:
    """Raise NotFittedError where an encoder was neither fitted nor loaded."""
    if getattr(encoder, "fingerprint", None) is None:
        raise NotFittedError(f"{encoder.name} is not fitted: call fit, or load a fitted encoder.")


def training_texts(texts: Sequence[str], *, at_least: int = 2) -> list[str]:
    """Return checked texts to fit on.

    Raises
    ------
    InvalidInputError
        Too few texts, or one that cannot be used.
    """
    checked = check_texts(texts)
    if len(checked) < at_least:
        raise InvalidInputError(
            f"Fitting needs at least {at_least} texts, got {len(checked)}. Give a larger corpus."
        )
    return checked
