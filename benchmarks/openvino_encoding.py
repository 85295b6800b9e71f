"""Encoding by OpenVINO against PyTorch, in float32 and bfloat16."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks import Measurement, interleaved_medians
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.backends import is_installed, processor
from leakscope.core.protocols import Vectors
from leakscope.core.specs import EncoderSpec

N_TEXTS = 768
REPEATS = 5


def measure() -> list[Measurement]:
    """Compare texts encoded per second by OpenVINO and by PyTorch, in each precision."""
    if not is_installed():
        return []
    name, precisions = processor()
    encoders = {
        f"{backend} {precision}": load_encoder(
            EncoderSpec(device="cpu", precision=precision, backend=backend)
        )
        for precision in precisions
        for backend in ("torch", "openvino")
    }
    texts = list(dict.fromkeys(bundled_sentences()))[::29][:N_TEXTS]
    vectors = {key: encoder.encode(texts) for key, encoder in encoders.items()}
    tasks: dict[str, Callable[[int], object]] = {
        key: lambda _, encoder=encoder: encoder.encode(texts)  # type: ignore[misc]
        for key, encoder in encoders.items()
    }
    seconds = interleaved_medians(tasks, repeats=REPEATS)
    chip = f"{name}, AMX {'yes' if torch.cpu._is_amx_tile_supported() else 'no'}"
    return [
        Measurement(
            name=f"OpenVINO {precision} against torch {other}",
            value=seconds[f"torch {other}"] / seconds[f"openvino {precision}"],
            unit="× faster",
            goal=2.5 if (precision, other) == ("bfloat16", "float32") else None,
            n=REPEATS,
            note=f"{len(texts) / seconds[f'openvino {precision}']:.0f} against "
            f"{len(texts) / seconds[f'torch {other}']:.0f} sentences/s, "
            f"{torch.get_num_threads()} threads; lowest cosine to torch float32 "
            f"{_lowest_cosine(vectors[f'openvino {precision}'], vectors['torch float32']):.5f} "
            f"({chip})",
        )
        for precision in precisions
        for other in precisions
    ]


def _lowest_cosine(a: Vectors, b: Vectors) -> float:
    """Return the lowest cosine between row i of `a` and row i of `b`, over all i."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(((a * b).sum(1) / norms).min())
