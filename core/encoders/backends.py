"""Which library computes vectors on the processor: PyTorch, or OpenVINO where it is faster here.

Both are timed once for each processor, model, precision and number of threads; the outcome is
remembered in the cache folder. docs/decisions/0012-openvino.md says why, and what was measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any

import torch

from core.encoders.openvino_model import (
    OpenVINOModel,
    Tokenize,
    is_installed,
    processor,
    require_openvino,
)
from core.errors import ArtifactError, InvalidInputError, StorageError
from core.protocols import OnProgress, Vectors, no_progress
from core.store import cache_dir, read_json, write_json

__all__ = ["BACKENDS", "BULK", "Backend", "times_faster"]

BACKENDS = ("auto", "torch", "openvino")

BULK = 1024
"""Texts from which a call in float32 is worth the seconds of a conversion. There both libraries
agree to the last bits, as PyTorch does with itself over other batches."""

WORTH = 1.1
"""Times faster from which OpenVINO is chosen."""

_SECONDS, _ROUNDS, _ROUND_SECONDS = 3.5, 9, 0.2
_LOCK = RLock()
"""Held while one is measured or converted: threads that share an encoder do it once."""

Encode = Callable[[list[str]], object]


class Backend:
    """The choice between PyTorch and OpenVINO for one encoder, and the latter's work.

    Parameters
    ----------
    asked : str
        `auto`, `torch` or `openvino`.
    name, fingerprint : str
        Of the encoder.
    model : torch.nn.Module or None
        A Transformers encoder; None where the pooling is not the plain mean over its tokens.
    layer : int
        The layer that decides.
    tokenize : callable
        See `OpenVINOModel`.
    with_torch : callable
        Encodes texts with PyTorch, to be timed.
    device, precision
        Of the encoder, as picked.

    Raises
    ------
    InvalidInputError
        No such backend, or OpenVINO was asked for and cannot do this.
    MissingDependencyError
        OpenVINO was asked for and is not installed.
    """

    def __init__(
        self,
        asked: str,
        *,
        name: str,
        fingerprint: str,
        model: Any,
        layer: int,
        tokenize: Tokenize,
        with_torch: Encode,
        device: torch.device,
        precision: str,
    ) -> None:
        if asked not in BACKENDS:
            raise InvalidInputError(f"backend must be one of {BACKENDS}, got {asked!r}.")
        self._asked, self._encoder_name, self._fingerprint = asked, name, fingerprint
        self._model, self.layer, self._tokenize = model, layer, tokenize
        self._with_torch, self._precision = with_torch, precision
        self._compiled: tuple[int, OpenVINOModel] | None = None
        self._is_faster: bool | None = None
        if asked == "openvino":
            require_openvino()
        self._is_possible = asked != "torch" and is_installed() and not self._obstacle(device)
        if asked == "openvino" and not self._is_possible:
            raise InvalidInputError(
                f"backend 'openvino' cannot encode with {name!r} here: {self._obstacle(device)}. "
                "Use backend 'auto' or 'torch'."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is compiled for this process."""
        return {**self.__dict__, "_compiled": None}

    def _obstacle(self, device: torch.device) -> str:
        """Return why OpenVINO cannot do the encoder's work, or nothing."""
        if device.type != "cpu":
            return f"it computes on the processor, and the device is {device.type}"
        if self._model is None:
            return "its vectors are not the plain mean over the tokens of one Transformer"
        if self.layer == 0:
            return "layer 0 is a look-up, without anything to compute"
        if self._precision not in ("float32", "bfloat16"):
            return f"the precision is {self._precision}, and it has float32 and bfloat16"
        if self._precision == "bfloat16":
            try:
                able = processor()[1]
            except Exception as error:  # an installation that is broken
                return f"it cannot be used ({type(error).__name__}: {error})"
            if "bfloat16" not in able:
                return "this processor has no bfloat16"
        return ""

    @property
    def name(self) -> str:
        """`openvino` where it is asked for or known to be faster here, else `torch`."""
        if self._is_possible and self._is_faster is None and self._asked == "auto":
            try:
                self._is_faster = remembered(self._memory())
            except Exception:  # an installation that is broken: PyTorch needs nothing of it
                self._is_possible = False
        is_used = self._asked == "openvino" or bool(self._is_faster)
        return "openvino" if self._is_possible and is_used else "torch"

    def settle(self, on_progress: OnProgress = no_progress) -> str:
        """Return the name, after measuring which is faster where that is not known."""
        if self._is_possible and self.name == "torch" and self._is_faster is None:
            with _LOCK:
                if self._is_faster is None:
                    on_progress(0.0, "Measuring, once, whether OpenVINO encodes faster here")
                    self._is_faster = self._measure()
        return self.name

    def arithmetic(self, on_progress: OnProgress = no_progress) -> str:
        """Return what decides how vectors are rounded: both libraries agree in float32 alone."""
        if self._precision == "float32" or self.settle(on_progress) == "torch":
            return self._precision
        return f"{self._precision}-openvino"

    def takes(self, n_texts: int, on_progress: OnProgress = no_progress) -> bool:
        """Return whether OpenVINO is to encode so many texts."""
        if self._asked == "auto" and self._precision == "float32" and n_texts < BULK:
            return False
        return n_texts > 0 and self.settle(on_progress) == "openvino"

    def encode(self, texts: Sequence[str], layer: int, on_progress: OnProgress) -> Vectors:
        """Return the (n, hidden size) means of a layer ≥ 1, computed by OpenVINO."""
        return self._converted(layer).encode(texts, on_progress)

    def _converted(self, layer: int) -> OpenVINOModel:
        """Return the model of a layer; the one of the last call is kept."""
        with _LOCK:
            if self._compiled is None or self._compiled[0] != layer:
                self._compiled = layer, self._convert(layer)
            return self._compiled[1]

    def _convert(self, layer: int) -> OpenVINOModel:
        try:
            return OpenVINOModel(
                self._model,
                layer,
                self._tokenize,
                precision=self._precision,
                n_threads=torch.get_num_threads(),
            )
        except Exception as error:  # tracing, conversion and compiling have each their own
            raise InvalidInputError(
                f"OpenVINO cannot convert {self._encoder_name!r} ({type(error).__name__}). "
                "Use --backend torch."
            ) from error

    def _measure(self) -> bool:
        try:
            ratio = times_faster(self._converted(self.layer).encode, self._with_torch)
        except Exception:  # a model that OpenVINO cannot convert, or not run
            ratio = 0.0
        is_faster = ratio >= WORTH
        if not is_faster:
            self._compiled = None
        with suppress(StorageError):  # then it is measured again next time
            write_json(self._memory(), {"times_faster": round(ratio, 3), "is_faster": is_faster})
        return is_faster

    def _memory(self) -> Path:
        """Return the file that remembers what is faster under these circumstances."""
        circumstances = [
            processor(),
            os.cpu_count(),
            torch.get_num_threads(),
            self._fingerprint,
            self._precision,
            [version(library) for library in ("openvino", "torch")],
        ]
        key = hashlib.sha256(json.dumps(circumstances).encode()).hexdigest()[:32]
        return cache_dir("backends", f"{key}.json")


def remembered(path: Path) -> bool | None:
    """Return whether OpenVINO was found faster; None where that is unknown or unreadable."""
    try:
        found = read_json(path)
    except ArtifactError:
        return None
    known = found.get("is_faster") if isinstance(found, dict) else None
    return known if isinstance(known, bool) else None


def times_faster(
    first: Encode, second: Encode, *, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return how many times faster the first encodes, by the best of interleaved rounds each.

    The best, since other work on the machine can only slow a round down. It ends after nine
    rounds, or with the round that passes three and a half seconds.
    """
    start = clock()
    texts = list(_texts(4))
    first(texts)
    before = clock()
    second(texts)
    rate = len(texts) / max(clock() - before, 1e-9)
    texts = list(_texts(min(128, max(16, int(_ROUND_SECONDS * rate)))))
    seconds: tuple[list[float], list[float]] = ([], [])
    while not seconds[0] or (len(seconds[0]) < _ROUNDS and clock() - start < _SECONDS):
        for encode, taken in zip((first, second), seconds, strict=True):
            before = clock()
            encode(texts)
            taken.append(clock() - before)
    return min(seconds[1]) / max(min(seconds[0]), 1e-9)


def _texts(n: int) -> Iterator[str]:
    """Yield n texts of 4 to 40 words: nobody's own."""
    words = ("the", "minister", "said", "that", "long", "winters", "close", "harbours", "again")
    for i in range(n):
        yield " ".join(words[j % len(words)] for j in range(i, i + 4 + 12 * i % 37))
