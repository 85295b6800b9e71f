"""Mean pooling over a layer of a Transformers encoder in OpenVINO, on the processor.

The model is converted in memory; several batches are computed at once, and the next is cut into
tokens meanwhile. Nothing of it is needed where `openvino` is not installed.

No function of ours is handed to OpenVINO as a callback, nor its own queue used, which hands it one:
its threads then ask for the interpreter after the work is done, and at the end of the process that
is a crash or, where it waits for them, for ever.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from core.encoders.pooling import batches_by_length, mean_of_tokens
from core.errors import MissingDependencyError, install
from core.protocols import OnProgress, Vectors, no_progress

__all__ = ["OpenVINOModel", "Tokenize", "is_installed", "processor", "require_openvino"]

BATCH_SIZE = 32

Tokenize = Callable[[list[str]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Texts to their (batch, length) token ids and attention mask."""

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
_CAPABILITIES = {"float32": "FP32", "bfloat16": "BF16"}


def is_installed() -> bool:
    """Return whether OpenVINO can be imported."""
    return "openvino" in sys.modules or find_spec("openvino") is not None


def require_openvino() -> None:
    """Raise MissingDependencyError, naming the remedy, where OpenVINO is not installed."""
    if not is_installed():
        raise MissingDependencyError(
            f"backend 'openvino' needs the `openvino` package: {install('openvino')}"
        )


def processor() -> tuple[str, tuple[str, ...]]:
    """Return the processor's name and, of float32 and bfloat16, what it computes by itself."""
    properties = _library().Core()
    able = properties.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    name = str(properties.get_property("CPU", "FULL_DEVICE_NAME")).strip()
    return name, tuple(p for p, capability in _CAPABILITIES.items() if capability in able)


@cache
def _library() -> Any:
    """Import OpenVINO without the package that tells its maker of each import and conversion."""
    if "openvino" not in sys.modules:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino

    return openvino


class OpenVINOModel:
    """The mean token states of one layer of a Transformers model, compiled for this processor.

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
        openvino = _library()
        self._tokenize = tokenize
        self._dimension: int = model.config.hidden_size
        self._compiled = openvino.Core().compile_model(
            _convert(model, layer),
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": _PRECISIONS[precision],
                "INFERENCE_NUM_THREADS": n_threads,
                "ENABLE_CPU_PINNING": False,  # processes side by side would bind to the same core
                "PERFORMANCE_HINT": "THROUGHPUT",
            },
        )
        self._n_requests = int(self._compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, hidden size) float32 means of n checked texts, in their order."""
        out = np.empty((len(texts), self._dimension), dtype=np.float32)
        # Of this call alone: threads that encode at once do not meet.
        free = [self._compiled.create_infer_request() for _ in range(self._n_requests)]
        running: deque[tuple[Any, list[int]]] = deque()
        n_done = 0

        def finish() -> None:
            """Wait for the request that was begun first, and keep its vectors."""
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
        """Return a size at which every request of the queue finds work, twice where it can."""
        return min(BATCH_SIZE, max(1, -(-n_texts // (2 * self._n_requests))))


class _MeanOfLayer(torch.nn.Module):
    """What is converted: token ids and mask to the mean states of a layer."""

    def __init__(self, model: Any, layer: int) -> None:
        super().__init__()
        self.model, self.layer = model, layer
        self.is_last = layer == model.config.num_hidden_layers

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.is_last:
            states = self.model(**inputs).last_hidden_state
        else:
            states = self.model(**inputs, output_hidden_states=True).hidden_states[self.layer]
        return mean_of_tokens(states, attention_mask)


def _convert(model: Any, layer: int) -> Any:
    """Trace the model on a padded batch; lengths and number of texts stay open."""
    from transformers.utils import logging

    ids = torch.ones(2, 8, dtype=torch.int64)
    mask = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():  # that branches on shapes are kept as they are traced
            warnings.simplefilter("ignore")
            return _library().convert_model(
                _MeanOfLayer(model, layer),
                example_input={"input_ids": ids, "attention_mask": mask},
            )
    finally:
        logging.set_verbosity(level)
