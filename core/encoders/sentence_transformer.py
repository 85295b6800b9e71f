"""Any Sentence-Transformers model, as a black box."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from core.errors import ModelUnavailableError
from core.protocols import OnProgress, Vectors, no_progress
from core.text import check_texts
from core.training.devices import autocast, pick_device, pick_precision

__all__ = ["SentenceTransformerEncoder"]


class SentenceTransformerEncoder:
    """A Sentence-Transformers model from the hub or a folder, used through its own `encode`.

    Parameters
    ----------
    source : str
        Hub id or folder.
    device, precision : str
        See EncoderSpec.
    is_local : bool
        Take the model as it is on this machine, without asking the hub.

    Raises
    ------
    ModelUnavailableError
        The weights are neither here nor reachable.
    """

    block_size = 512

    def __init__(
        self,
        source: str,
        *,
        device: str = "auto",
        precision: str = "auto",
        is_local: bool = False,
    ) -> None:
        from sentence_transformers import SentenceTransformer

        self.name = f"st:{source}"
        self.device = pick_device(device)
        self.precision = pick_precision(self.device, precision)
        try:
            self._model = SentenceTransformer(
                source,
                device=str(self.device),
                model_kwargs={"use_safetensors": True},
                local_files_only=is_local,
            )
        except (OSError, ValueError) as error:
            raise ModelUnavailableError(
                f"Encoder {self.name!r} could not be loaded ({type(error).__name__}). Check the "
                "name and the network, or give a local folder; `minilm` always works offline."
            ) from error
        self.dimension = len(self._model.encode("dimension", show_progress_bar=False))
        self.fingerprint = self._compute_fingerprint()

    def _compute_fingerprint(self) -> str:
        digest = hashlib.sha256(str(self._model).encode())
        for key, tensor in sorted(self._model.state_dict().items()):
            digest.update(key.encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, dimension) float32 embeddings of n texts, in their order."""
        texts = check_texts(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(order), self.block_size):
            rows = order[start : start + self.block_size]
            with autocast(self.device, self.precision):
                tensor = self._model.encode(
                    [texts[i] for i in rows], convert_to_tensor=True, show_progress_bar=False
                )
            out[rows] = tensor.float().cpu().numpy()
            done = start + len(rows)
            on_progress(done / len(texts), f"Encoded {done:,} of {len(texts):,} texts")
        return out
