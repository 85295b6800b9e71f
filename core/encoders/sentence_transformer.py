"""Any Sentence-Transformers model, with black-box access."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.encoders.backends import BackendEncoder
from leakscope.core.encoders.pooling import encode_in_batches
from leakscope.core.errors import ModelUnavailableError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.text import check_texts
from leakscope.core.training.devices import autocast, pick_device, pick_precision


class SentenceTransformerEncoder(BackendEncoder):
    """A Sentence-Transformers model from the hub or a folder, run by its own `encode`.

    Parameters
    ----------
    source : str
        Hub id or folder.
    device, precision, backend : str
        See EncoderSpec.
    is_local : bool
        Load the model from this machine, without the hub.

    Raises
    ------
    ModelUnavailableError
        The weights are neither on this machine nor reachable.
    """

    block_size = 512

    def __init__(
        self,
        source: str,
        *,
        device: str = "auto",
        precision: str = "auto",
        backend: str = "auto",
        is_local: bool = False,
    ) -> None:
        from sentence_transformers import SentenceTransformer

        self.name = f"st:{source}"
        self.device = pick_device(device)
        self.precision = pick_precision(self.device, precision)
        _refuse_pickles(self.name, Path(source))
        try:
            self._model = SentenceTransformer(
                source,
                device=str(self.device),
                model_kwargs={"use_safetensors": True},
                local_files_only=is_local,
                trust_remote_code=False,
            )
        except Exception as error:  # errors of a model's files have no common base class
            raise ModelUnavailableError(
                f"Encoder {self.name!r} could not be loaded ({type(error).__name__}). Check the "
                "name and the network, or use a local folder; `minilm` always works offline."
            ) from error
        self.dimension = len(self._model.encode("dimension", show_progress_bar=False))
        self.fingerprint = self._compute_fingerprint()
        transformer = plain_transformer(self._model)
        layer = 0 if transformer is None else transformer.config.num_hidden_layers
        self._backend = self._new_backend(backend, transformer, layer)

    def _compute_fingerprint(self) -> str:
        """Hash the model's structure and weights; return the SHA-256."""
        digest = hashlib.sha256(str(self._model).encode())
        for key, tensor in sorted(self._model.state_dict().items()):
            digest.update(key.encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _tokenize(self, texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokenise texts; return padded token ids and the attention mask, (n, length) each."""
        cut = self._model.preprocess(texts)
        return cut["input_ids"].numpy(), cut["attention_mask"].numpy()

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Tokenise texts; return each one's token ids, without special tokens.

        Truncated as for encoding, or of the whole text.
        """
        tokenizer = self._model.tokenizer
        ids: list[list[int]] = tokenizer(
            list(texts), add_special_tokens=False, truncation=False, verbose=False
        )["input_ids"]
        limit = self._model.max_seq_length
        if is_whole or limit is None:
            return ids
        return [row[: limit - tokenizer.num_special_tokens_to_add()] for row in ids]

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts as (n, dimension) float32 vectors, in their order."""
        texts = check_texts(texts)
        if not self._backend.takes(len(texts), on_progress):
            return self._encode_with_torch(texts, on_progress)
        vectors = self._backend.encode(texts, self._backend.layer, on_progress)
        if is_normalised(self._model):
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def _encode_with_torch(
        self, texts: Sequence[str], on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Encode texts by PyTorch in batches; return their vectors."""

        def encode(some: list[str]) -> Vectors:
            """Encode one batch of texts by the model itself."""
            with autocast(self.device, self.precision):
                tensor = self._model.encode(some, convert_to_tensor=True, show_progress_bar=False)
            vectors: Vectors = tensor.float().cpu().numpy()
            return vectors

        return encode_in_batches(texts, self.block_size, self.dimension, encode, on_progress)


def plain_transformer(model: Any) -> Any:
    """Return the Transformer within a model if the model only averages its token states, else None.

    A normalisation may follow. Prompts, other poolings and further layers are not plain.
    """
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    modules = list(model)
    kinds = [type(module) for module in modules]
    if kinds not in ([Transformer, Pooling], [Transformer, Pooling, Normalize]):
        return None
    is_plain = (
        modules[0].transformer_task == "feature-extraction"
        and modules[1].pooling_mode == "mean"
        and model.default_prompt_name is None
        and model.truncate_dim is None
    )
    return model.transformers_model if is_plain else None


def is_normalised(model: Any) -> bool:
    """Return whether a Sentence-Transformers model scales its vectors to unit length at the end."""
    from sentence_transformers.sentence_transformer.modules import Normalize

    return isinstance(list(model)[-1], Normalize)


def _refuse_pickles(name: str, folder: Path) -> None:
    """Raise ModelUnavailableError if any weights in a model's folder are pickle files."""
    for path in sorted(folder.rglob("*")):
        is_pickled = path.suffix in (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
        if is_pickled and not (path.parent / "model.safetensors").is_file():
            raise ModelUnavailableError(
                f"Encoder {name!r}: {path.relative_to(folder)} is a pickle, which may run code, so "
                "it is not loaded. Save the model again with a current Sentence-Transformers, "
                "which writes model.safetensors, or use another model."
            )
