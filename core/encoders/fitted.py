"""Encoders fitted on a corpus: created by name, saved without pickle, and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.encoders.registry import FITTED_ENCODERS
from leakscope.core.errors import ArtifactError, CoreError, InvalidInputError, NotFittedError
from leakscope.core.protocols import FittedEncoder, OnProgress, no_progress
from leakscope.core.registry import find, make
from leakscope.core.specs import FittedEncoderSpec, setting_values, settings_of
from leakscope.core.storage.artifacts import UNFIT, digest_of, load_artifact, save_artifact
from leakscope.core.text import check_texts

_NOTHING = "nothing"


def make_encoder(spec: FittedEncoderSpec | str) -> FittedEncoder:
    """Create an encoder, not yet fitted, from its spec or name.

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
    """Write a fitted encoder to a folder as safetensors and JSON; return the folder.

    Raises
    ------
    NotFittedError
        It was not fitted.
    StorageError
        The disk is full or the folder cannot be written.
    """
    check_ready(encoder)
    arrays, state = encoder.state()
    settings = setting_values(encoder)
    meta = {
        "kind": "encoder",
        "encoder": encoder.name,
        "settings": settings,
        "state": state,
        "fingerprint": encoder.fingerprint,
        "training": training or {},
    }
    # safetensors refuses a file without arrays.
    return save_artifact(folder, arrays or {_NOTHING: np.zeros(1, np.float32)}, meta)


def load_fitted(folder: Path, name: str | None = None) -> FittedEncoder:
    """Load a fitted encoder from a folder that `save_encoder` wrote.

    Raises
    ------
    ArtifactError
        Missing, truncated, altered, or something else; the message names the file.
    InvalidInputError
        The folder contains an encoder with another name than the one given.
    """
    arrays, meta = load_artifact(folder)
    arrays.pop(_NOTHING, None)
    of = meta.get("encoder")
    if meta.get("kind") != "encoder" or not isinstance(of, str) or of not in FITTED_ENCODERS:
        raise ArtifactError(f"{folder} does not contain an encoder written by `fit`.")
    if name is not None and meta["encoder"] != name:
        raise InvalidInputError(
            f"{folder} contains a {meta['encoder']} encoder. Use {meta['encoder']}:{folder}."
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
        raise ArtifactError(f"{folder} was altered: its fingerprint does not match.")
    return encoder


Arrays = dict[str, NDArray[Any]]


@dataclass
class CorpusEncoder:
    """Base of encoders fitted on texts whose learned state is a set of arrays.

    A subclass declares its settings and `name`, and implements `learn`, `embed` and `set_arrays`,
    which also sets `dimension`.

    Attributes
    ----------
    fingerprint : str or None
        SHA-256 of everything that determines the vectors: equal fingerprints mean equal vectors.
        None before `fit`.
    """

    least_texts: ClassVar[int] = 2
    name: str = field(init=False)
    dimension: int = field(init=False, repr=False, compare=False)
    fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Learn the encoder's arrays from texts; return the fitted encoder.

        Raises
        ------
        InvalidInputError
            Too few texts, one that cannot be used, or too few words in them.
        """
        checked = check_texts(texts)
        if len(checked) < self.least_texts:
            raise InvalidInputError(
                f"Fitting needs at least {self.least_texts} texts, got {len(checked)}. Provide a "
                "larger corpus."
            )
        return self.load_state(self.learn(checked, on_progress), {})

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Any:
        """Encode texts as (n, d) float32 vectors (bags of words: sparse); 0 if no word is known."""
        check_ready(self)
        return self.embed(check_texts(texts), on_progress)

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Learn from checked texts; return the learned arrays by name. Each subclass defines it."""
        raise NotImplementedError

    def set_arrays(self, arrays: Arrays) -> None:
        """Set learned arrays, or raise ValueError or KeyError; each subclass defines it."""
        raise NotImplementedError

    def embed(self, texts: list[str], on_progress: OnProgress) -> Any:
        """Encode checked texts as (n, d) vectors; each subclass defines it."""
        raise NotImplementedError

    def vector_settings(self) -> dict[str, Any]:
        """Return by name the settings that a fitted encoder's vectors depend on."""
        return {}

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the learned arrays, and the settings that determine the vectors."""
        return self.arrays_, self.vector_settings()

    def load_state(self, arrays: Arrays, meta: dict[str, Any]) -> Self:
        """Restore the arrays that `state` returned, set the fingerprint, and return the encoder."""
        self.set_arrays(arrays)
        self.arrays_ = arrays
        self.fingerprint = digest_of(arrays, [self.name, self.vector_settings()])
        return self


class TrainedEncoder:
    """Base of encoders whose network is trained here: settings, and a restored state.

    A subclass declares its settings and implements `_restore`.
    """

    article: ClassVar[str] = "a"
    sealed: ClassVar[str] = "weights, vocabulary or settings"
    """The article of its name, and what its fingerprint covers, for messages."""

    name: str
    fingerprint: str

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the trained weights depend on: all but the device."""
        return {name: getattr(self, name) for name in settings_of(type(self)) if name != "device"}

    def load_state(self, arrays: Arrays, meta: dict[str, Any]) -> Self:
        """Restore settings, vocabulary and weights from what `state` returned; return the encoder.

        Raises
        ------
        ArtifactError
            The state is of another encoder, damaged, or was altered.
        """
        try:
            self._restore(arrays, meta)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise ArtifactError(
                f"This is not the state of {self.article} {self.name} encoder, or it is damaged "
                f"({type(error).__name__}: {str(error)[:200]}). Restore the file or train again."
            ) from error
        if self.fingerprint != meta["fingerprint"]:
            raise ArtifactError(
                f"The {self.sealed} of this {self.name} encoder were altered: their fingerprint "
                "does not match. Restore the file or train again."
            )
        return self

    def _restore(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Set the stored settings and weights and the fingerprint; each subclass defines it."""
        raise NotImplementedError


def check_ready(encoder: Any) -> None:
    """Raise NotFittedError if an encoder was neither fitted nor loaded."""
    if getattr(encoder, "fingerprint", None) is None:
        raise NotFittedError(f"{encoder.name} is not fitted: call fit, or load a fitted encoder.")


def pack_words(terms: Sequence[str]) -> NDArray[np.uint8]:
    """Encode words as an array of UTF-8 bytes, one word per line, for storage."""
    return np.frombuffer("\n".join(terms).encode(), dtype=np.uint8)


def unpack_words(packed: NDArray[np.uint8]) -> list[str]:
    """Decode the words in an array that `pack_words` returned."""
    return packed.tobytes().decode().split("\n")
