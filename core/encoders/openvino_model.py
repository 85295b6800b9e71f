"""A Transformers encoder with mean pooling over a layer's states, run by OpenVINO on the CPU.

The model is converted in memory. Several batches are computed at once while the next is tokenised.
The package `openvino` is optional.

OpenVINO gets no Python callback, and its own queue, which passes one, is not used: its threads
would ask for the interpreter after the work is done, which crashes or blocks the process at its
end.
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

from leakscope.core.encoders.pooling import batches_by_length, mean_of_tokens
from leakscope.core.errors import MissingDependencyError, install
from leakscope.core.protocols import OnProgress, Vectors, no_progress

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
    """Return the CPU's name, and which of float32 and bfloat16 it supports natively."""
    properties = _import_openvino().Core()
    able = properties.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    name = str(properties.get_property("CPU", "FULL_DEVICE_NAME")).strip()
    return name, tuple(p for p, capability in _CAPABILITIES.items() if capability in able)


@cache
def _import_openvino() -> Any:
    """Import OpenVINO without its telemetry package."""
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
        """Return the (n, hidden size) float32 mean states of n checked texts, in their order."""
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
        """Return the (batch, hidden) mean states of the layer where the mask is 1."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.is_last:
            states = self.model(**inputs).last_hidden_state
        else:
            states = self.model(**inputs, output_hidden_states=True).hidden_states[self.layer]
        return mean_of_tokens(states, attention_mask)


def _convert(model: Any, layer: int) -> Any:
    """Convert the model to OpenVINO by tracing it on a padded batch; both axes stay dynamic."""
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
