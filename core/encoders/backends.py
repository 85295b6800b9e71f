"""The choice between PyTorch and OpenVINO for encoding on the CPU: whichever is faster.

Both are timed once per processor, model, precision and number of threads. The outcome is stored in
the cache folder. See docs/decisions/0012-openvino.md for the reasons and measurements.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.encoders.pooling import batches_by_length, mean_of_tokens
from leakscope.core.errors import (
    ArtifactError,
    InvalidInputError,
    MissingDependencyError,
    StorageError,
    install,
)
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.storage.artifacts import read_json, write_json
from leakscope.core.storage.cache_folder import cache_dir

BATCH_SIZE = 32

Tokenize = Callable[[list[str]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Texts to their (batch, length) token ids and attention mask."""

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
_CAPABILITIES = {"float32": "FP32", "bfloat16": "BF16"}


def is_installed() -> bool:
    """Return whether OpenVINO can be imported."""
    return "openvino" in sys.modules or find_spec("openvino") is not None


def require_openvino() -> None:
    """Raise MissingDependencyError with a remedy if OpenVINO is not installed."""
    if not is_installed():
        raise MissingDependencyError(
            f"backend 'openvino' needs the `openvino` package: {install('openvino')}"
        )


def processor() -> tuple[str, tuple[str, ...]]:
    """Ask OpenVINO for the CPU's name and which of float32 and bfloat16 it supports natively."""
    properties = _import_openvino().Core()
    able = properties.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    name = str(properties.get_property("CPU", "FULL_DEVICE_NAME")).strip()
    return name, tuple(p for p, capability in _CAPABILITIES.items() if capability in able)


@cache
def _import_openvino() -> Any:
    """Import OpenVINO without its telemetry package; return the module."""
    if "openvino" not in sys.modules:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino

    return openvino


class OpenVINOModel:
    """A Transformers encoder that returns mean token states of one layer, compiled for this CPU.

    Parameters
    ----------
    model : torch.nn.Module
        A Transformers encoder in evaluation mode, on the processor, in float32.
    layer : int
        Hidden layer to average, 1 being the first.
    tokenize : callable
        Cuts texts into tokens as the encoder does.
    precision : str
        float32 or bfloat16, of the matrix products; vectors are float32.
    n_threads : int
        Threads to compute on.
    """

    def __init__(
        self, model: Any, layer: int, tokenize: Tokenize, *, precision: str, n_threads: int
    ) -> None:
        openvino = _import_openvino()
        self._tokenize = tokenize
        self._dimension: int = model.config.hidden_size
        self._compiled = openvino.Core().compile_model(
            _convert(model, layer),
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": _PRECISIONS[precision],
                "INFERENCE_NUM_THREADS": n_threads,
                "ENABLE_CPU_PINNING": False,  # parallel processes would be pinned to the same core
                "PERFORMANCE_HINT": "THROUGHPUT",
            },
        )
        self._n_requests = int(self._compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n checked texts as the (n, hidden size) float32 means of their token states."""
        out = np.empty((len(texts), self._dimension), dtype=np.float32)
        # Requests belong to this call, so that concurrent calls do not share any.
        free = [self._compiled.create_infer_request() for _ in range(self._n_requests)]
        running: deque[tuple[Any, list[int]]] = deque()
        n_done = 0

        def finish() -> None:
            """Wait for the oldest request and store its vectors."""
            nonlocal n_done
            request, rows = running[0]
            request.wait()
            running.popleft()
            out[rows] = request.get_output_tensor(0).data
            free.append(request)
            n_done += len(rows)
            on_progress(n_done / len(texts), f"Encoded {n_done:,} of {len(texts):,} texts")

        try:
            for rows in batches_by_length(texts, self._batch_size(len(texts))):
                ids, mask = self._tokenize([texts[i] for i in rows])
                if not free:
                    finish()
                request = free.pop()
                request.start_async({"input_ids": ids, "attention_mask": mask})
                running.append((request, rows))
            while running:
                finish()
        finally:
            for request, _ in running:
                request.wait()
        return out

    def _batch_size(self, n_texts: int) -> int:
        """Return a batch size that gives each parallel request about two batches."""
        return min(BATCH_SIZE, max(1, -(-n_texts // (2 * self._n_requests))))


class _MeanOfLayer(torch.nn.Module):
    """The traced module: token ids and mask to the mean states of a layer."""

    def __init__(self, model: Any, layer: int) -> None:
        super().__init__()
        self.model, self.layer = model, layer
        self.is_last = layer == model.config.num_hidden_layers

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Run the model on (batch, length) token ids; average a layer's states under the mask."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.is_last:
            states = self.model(**inputs).last_hidden_state
        else:
            states = self.model(**inputs, output_hidden_states=True).hidden_states[self.layer]
        return mean_of_tokens(states, attention_mask)


def _convert(model: Any, layer: int) -> Any:
    """Convert a PyTorch model, up to a layer, to OpenVINO by tracing it; both axes stay dynamic."""
    from transformers.utils import logging

    ids = torch.ones(2, 8, dtype=torch.int64)
    mask = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():  # warnings that branches on shapes are traced as constants
            warnings.simplefilter("ignore")
            return _import_openvino().convert_model(
                _MeanOfLayer(model, layer),
                example_input={"input_ids": ids, "attention_mask": mask},
            )
    finally:
        logging.set_verbosity(level)


BACKENDS = ("auto", "torch", "openvino")

BULK = 1024
"""Number of texts from which, in float32, the seconds of a conversion pay off. In float32 both
libraries agree up to the last bits, as PyTorch does with itself across batch sizes."""

WORTH = 1.1
"""Speed-up from which OpenVINO is chosen."""

_SECONDS, _ROUNDS, _ROUND_SECONDS = 3.5, 9, 0.2
_LOCK = RLock()
"""Held while a model is timed or converted, so that threads sharing an encoder do it once."""

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
        The layer that is encoded by default.
    tokenize : callable
        See `OpenVINOModel`.
    with_torch : callable
        Encodes texts with PyTorch, for the timing.
    device, precision
        Of the encoder, as picked.

    Raises
    ------
    InvalidInputError
        No such backend, or OpenVINO was requested and cannot run this encoder.
    MissingDependencyError
        OpenVINO was requested and is not installed.
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
        self._is_possible = asked != "torch" and is_installed() and not self._why_impossible(device)
        if asked == "openvino" and not self._is_possible:
            raise InvalidInputError(
                f"backend 'openvino' cannot encode with {name!r} here: "
                f"{self._why_impossible(device)}. Use backend 'auto' or 'torch'."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the compiled model, which belongs to this process."""
        return {**self.__dict__, "_compiled": None}

    def _why_impossible(self, device: torch.device) -> str:
        """Return the reason why OpenVINO cannot run this encoder; "" if it can."""
        if device.type != "cpu":
            return f"it runs on the CPU, and the device is {device.type}"
        if self._model is None:
            return "its vectors are not the plain mean over the tokens of one Transformer"
        if self.layer == 0:
            return "layer 0 is a look-up, with nothing to compute"
        if self._precision not in ("float32", "bfloat16"):
            return f"the precision is {self._precision}, and it supports float32 and bfloat16"
        if self._precision == "bfloat16":
            try:
                able = processor()[1]
            except Exception as error:  # a broken installation
                return f"it cannot be used ({type(error).__name__}: {error})"
            if "bfloat16" not in able:
                return "this processor does not support bfloat16"
        return ""

    @property
    def name(self) -> str:
        """The library: `openvino` if requested or known to be faster here, else `torch`."""
        if self._is_possible and self._is_faster is None and self._asked == "auto":
            try:
                self._is_faster = read_timing(self._timing_file())
            except Exception:  # a broken installation; use PyTorch
                self._is_possible = False
        is_used = self._asked == "openvino" or bool(self._is_faster)
        return "openvino" if self._is_possible and is_used else "torch"

    def settle(self, on_progress: OnProgress = no_progress) -> str:
        """Time both libraries if that is still needed; return the name of the one to use."""
        if self._is_possible and self.name == "torch" and self._is_faster is None:
            with _LOCK:
                if self._is_faster is None:
                    on_progress(0.0, "Measuring once whether OpenVINO is faster here")
                    self._is_faster = self._time_and_store()
        return self.name

    def arithmetic(self, on_progress: OnProgress = no_progress) -> str:
        """Return what rounding depends on, as text: the precision and, in bfloat16, the library.

        Both libraries agree in float32 alone.
        """
        if self._precision == "float32" or self.settle(on_progress) == "torch":
            return self._precision
        return f"{self._precision}-openvino"

    def takes(self, n_texts: int, on_progress: OnProgress = no_progress) -> bool:
        """Return whether to encode n texts by OpenVINO rather than PyTorch."""
        if self._asked == "auto" and self._precision == "float32" and n_texts < BULK:
            return False
        return n_texts > 0 and self.settle(on_progress) == "openvino"

    def encode(self, texts: Sequence[str], layer: int, on_progress: OnProgress) -> Vectors:
        """Encode texts by OpenVINO as the (n, hidden size) mean token states of a layer ≥ 1."""
        return self._compiled_model(layer).encode(texts, on_progress)

    def _compiled_model(self, layer: int) -> OpenVINOModel:
        """Compile the OpenVINO model of a layer, or return it if it is the last one compiled."""
        with _LOCK:
            if self._compiled is None or self._compiled[0] != layer:
                self._compiled = layer, self._convert(layer)
            return self._compiled[1]

    def _convert(self, layer: int) -> OpenVINOModel:
        """Convert the model up to a layer to OpenVINO, or raise InvalidInputError."""
        try:
            return OpenVINOModel(
                self._model,
                layer,
                self._tokenize,
                precision=self._precision,
                n_threads=torch.get_num_threads(),
            )
        except Exception as error:  # each step raises errors of its own
            raise InvalidInputError(
                f"OpenVINO cannot convert {self._encoder_name!r} ({type(error).__name__}). "
                "Use --backend torch."
            ) from error

    def _time_and_store(self) -> bool:
        """Time OpenVINO and PyTorch, store the outcome, and return whether OpenVINO is faster."""
        try:
            ratio = times_faster(self._compiled_model(self.layer).encode, self._with_torch)
        except Exception:  # a model that OpenVINO cannot convert or run
            ratio = 0.0
        is_faster = ratio >= WORTH
        if not is_faster:
            self._compiled = None
        with suppress(StorageError):  # then it is timed again next time
            write_json(
                self._timing_file(), {"times_faster": round(ratio, 3), "is_faster": is_faster}
            )
        return is_faster

    def _timing_file(self) -> Path:
        """Return the path of the timing stored for this processor, model and library versions."""
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


class BackendEncoder:
    """Base of encoders that PyTorch or OpenVINO can run: the one asked for, or the faster.

    A subclass sets the attributes below, and `_backend` by `_new_backend`.
    """

    name: str
    fingerprint: str
    device: torch.device
    precision: str
    _backend: Backend
    _tokenize: Tokenize
    _encode_with_torch: Encode

    def _new_backend(self, asked: str, model: Any, layer: int) -> Backend:
        """Create the `Backend` that chooses the library for a layer of a model."""
        return Backend(
            asked,
            name=self.name,
            fingerprint=self.fingerprint,
            model=model,
            layer=layer,
            tokenize=self._tokenize,
            with_torch=self._encode_with_torch,
            device=self.device,
            precision=self.precision,
        )

    @property
    def backend(self) -> str:
        """The library that encodes large numbers of texts: `torch` or `openvino`."""
        return self._backend.name

    @property
    def arithmetic(self) -> str:
        """What rounding depends on, as text: the precision and, in bfloat16, the library."""
        return self._backend.arithmetic()

    def choose_backend(self, on_progress: OnProgress = no_progress) -> None:
        """Time both libraries, once per computer, if `arithmetic` depends on it."""
        self._backend.arithmetic(on_progress)


def read_timing(path: Path) -> bool | None:
    """Read from a timing file whether OpenVINO was faster; None if missing or unreadable."""
    try:
        found = read_json(path)
    except ArtifactError:
        return None
    known = found.get("is_faster") if isinstance(found, dict) else None
    return known if isinstance(known, bool) else None


def times_faster(
    first: Encode, second: Encode, *, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Time two encoding functions in alternating rounds; return how many times faster the first is.

    It compares the best rounds, since other work on the machine can only slow a round down. It
    ends after nine rounds, or with the first round that ends after 3.5 seconds.
    """
    start = clock()
    texts = list(_sample_texts(4))
    first(texts)
    before = clock()
    second(texts)
    rate = len(texts) / max(clock() - before, 1e-9)
    texts = list(_sample_texts(min(128, max(16, int(_ROUND_SECONDS * rate)))))
    seconds: tuple[list[float], list[float]] = ([], [])
    while not seconds[0] or (len(seconds[0]) < _ROUNDS and clock() - start < _SECONDS):
        for encode, taken in zip((first, second), seconds, strict=True):
            before = clock()
            encode(texts)
            taken.append(clock() - before)
    return min(seconds[1]) / max(min(seconds[0]), 1e-9)


def _sample_texts(n: int) -> Iterator[str]:
    """Yield n artificial texts of 4 to 40 words for timing."""
    words = ("the", "minister", "said", "that", "long", "winters", "close", "harbours", "again")
    for i in range(n):
        yield " ".join(words[j % len(words)] for j in range(i, i + 4 + 12 * i % 37))
