"""Mean pooling over any layer of a Transformers encoder, with white-box access.

One class serves the bundled all-MiniLM-L6-v2 (normalised, last layer) and raw masked language
models at any layer (Song & Raghunathan 2020, §6.2).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from leakscope.core.encoders.backends import BackendEncoder
from leakscope.core.encoders.pooling import encode_in_batches, mean_of_tokens
from leakscope.core.errors import InvalidInputError, ModelUnavailableError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.text import check_texts
from leakscope.core.training.devices import autocast, fast_dtype, pick_device, pick_precision


class TransformerEncoder(BackendEncoder):
    """An encoder that averages the token states of one hidden layer.

    Parameters
    ----------
    source : str or Path
        Folder or hub id of a Transformers model.
    name : str
        Name of the encoder in results.
    layer : int or None
        Hidden layer 1…L to pool; 0 is the mean of the token-embedding vectors without special
        tokens (Ψ of SR20 Eq. 7); None means L.
    normalize : bool
        Divide by the Euclidean norm, as Sentence-Transformers models that end in Normalize do.
    max_length : int
        Maximum word pieces, special tokens included; the rest of a text is cut off.
    device, precision, backend : str
        See EncoderSpec.
    is_local : bool
        Load the model from this machine, without the hub.

    Raises
    ------
    ModelUnavailableError
        The weights are neither on this machine nor reachable.
    """

    batch_size = 64

    def __init__(
        self,
        source: str | Path,
        *,
        name: str,
        layer: int | None = None,
        normalize: bool = False,
        max_length: int = 256,
        device: str = "auto",
        precision: str = "auto",
        backend: str = "auto",
        is_local: bool = False,
    ) -> None:
        self._tokenizer, model = _load(source, name, is_local=is_local)
        self.device = pick_device(device)
        self.precision = pick_precision(self.device, precision)
        self._model = model.eval().requires_grad_(False).to(self.device)
        self.n_layers: int = model.config.num_hidden_layers
        if layer is not None and not 0 <= layer <= self.n_layers:
            raise InvalidInputError(
                f"layer must lie in [0, {self.n_layers}] for {name}, got {layer}."
            )
        self.name = name
        self.layer = self.n_layers if layer is None else layer
        self.normalize = normalize
        self.max_length = min(max_length, model.config.max_position_embeddings)
        self.dimension: int = model.config.hidden_size
        self.fingerprint = self._compute_fingerprint()
        self._backend = self._new_backend(backend, self._model, self.layer)
        self._quick: TransformerEncoder | None = None

    def quick(self) -> TransformerEncoder:
        """Return this encoder or, with shared weights, a copy in the machine's fastest precision.

        For comparing thousands of texts, where the fourth decimal of a cosine does not matter.
        """
        fast = str(fast_dtype(self.device)).removeprefix("torch.")
        if self.precision != "float32" or fast == "float32":
            return self
        if self._quick is None:
            twin = copy.copy(self)
            twin.precision = fast
            twin._backend = twin._new_backend("auto", twin._model, twin.layer)
            self._quick = twin
        return self._quick

    def _compute_fingerprint(self) -> str:
        """Return the SHA-256 of weights, vocabulary and pooling; if equal, vectors are equal."""
        digest = hashlib.sha256(f"{self.layer},{self.normalize},{self.max_length}".encode())
        digest.update("\n".join(self.tokens).encode())
        for key, tensor in sorted(self._model.state_dict().items()):
            digest.update(key.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @cached_property
    def tokens(self) -> list[str]:
        """The |V| token strings in the order of `token_vectors`."""
        return list(self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer)))))

    @property
    def special_token_ids(self) -> list[int]:
        """Ids of [PAD], [CLS], [SEP] and other special tokens."""
        return sorted(self._tokenizer.all_special_ids)

    @property
    def token_vectors(self) -> torch.Tensor:
        """The token-embedding matrix V, float32, shape (|V|, hidden size)."""
        return self._model.get_input_embeddings().weight[: len(self._tokenizer)]

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Tokenise texts; return each one's word-piece ids, without special tokens.

        Truncated as for encoding, or of the whole text.
        """
        fast = getattr(self._tokenizer, "backend_tokenizer", None)
        if is_whole and fast is not None:  # without masks and positions: twice as fast
            fast.no_truncation()
            fast.no_padding()
            return [e.ids for e in fast.encode_batch_fast(list(texts), add_special_tokens=False)]
        limit = {} if is_whole else {"truncation": True, "max_length": self.max_length - 2}
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False, **limit)
        return list(encoded["input_ids"])

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Convert token ids to a text, word pieces joined."""
        return str(self._tokenizer.decode(list(token_ids), clean_up_tokenization_spaces=False))

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts as (n, dimension) float32 vectors, in their order."""
        vectors = self.encode_layer(texts, self.layer, on_progress)
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.maximum(norms, 1e-12)
        return vectors

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Encode n texts as (n, hidden size) means of their states at a layer, not normalised."""
        texts = check_texts(texts)
        if layer > 0 and self._backend.takes(len(texts), on_progress):
            return self._backend.encode(texts, layer, on_progress)
        return self._encode_with_torch(texts, layer, on_progress)

    def _encode_with_torch(
        self,
        texts: Sequence[str],
        layer: int | None = None,
        on_progress: OnProgress = no_progress,
    ) -> Vectors:
        """Encode texts by PyTorch in batches; return each one's mean token state at a layer."""
        layer = self.layer if layer is None else layer
        return encode_in_batches(
            texts,
            self.batch_size,
            self.dimension,
            lambda some: self._pool(some, layer),
            on_progress,
        )

    def _tokenize(self, texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokenise texts; return padded token ids and the attention mask, (n, length) each."""
        cut = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="np"
        )
        return cut["input_ids"], cut["attention_mask"]

    @torch.inference_mode()
    def _pool(self, texts: list[str], layer: int) -> Vectors:
        """Encode one batch of texts; return each one's mean token state at a layer."""
        batch = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt"
        ).to(self.device)
        mask = batch["attention_mask"]
        if layer == 0:
            special = torch.tensor(self.special_token_ids, device=self.device)
            mask = mask * ~torch.isin(batch["input_ids"], special)
            states = self.token_vectors[batch["input_ids"]]
        else:
            with autocast(self.device, self.precision):
                states = self._states(layer, **batch)
        return mean_of_tokens(states.float(), mask).cpu().numpy()

    def _states(self, layer: int, **inputs: torch.Tensor) -> torch.Tensor:
        """Run the model on inputs; return the (batch, length, hidden) states after a layer ≥ 1."""
        if layer == self.n_layers:
            return self._model(**inputs).last_hidden_state
        return self._model(**inputs, output_hidden_states=True).hidden_states[layer]

    def embed_token_vectors(self, vectors: torch.Tensor, layer: int | None = None) -> torch.Tensor:
        """Map (batch, length, hidden) token vectors to (batch, d) embeddings, with gradients.

        The first and last special token ([CLS], [SEP]) are put around the given vectors. With
        `layer=None` this is `encode` for token vectors, else `encode_layer` of that layer.
        """
        chosen = self.layer if layer is None else layer
        is_encode = layer is None and self.normalize
        if chosen == 0:
            pooled = vectors.mean(1)
            return F.normalize(pooled, dim=1) if is_encode else pooled
        edge = self._tokenizer("")["input_ids"]
        head, tail = self.token_vectors[edge[:1]], self.token_vectors[edge[-1:]]
        n = len(vectors)
        inputs = torch.cat([head.expand(n, 1, -1), vectors, tail.expand(n, 1, -1)], dim=1)
        mask = torch.ones(inputs.shape[:2], device=self.device)
        states = self._states(chosen, inputs_embeds=inputs, attention_mask=mask)
        pooled = mean_of_tokens(states, mask)
        return F.normalize(pooled, dim=1) if is_encode else pooled


def _load(source: str | Path, name: str, *, is_local: bool) -> tuple[Any, Any]:
    """Load the tokeniser and model of a hub id or folder; raise if weights are missing."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            source, local_files_only=is_local, trust_remote_code=False
        )
        model, found = AutoModel.from_pretrained(
            source,
            use_safetensors=True,
            local_files_only=is_local,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:  # errors of a model's files have no common base class
        raise ModelUnavailableError(
            f"Encoder {name!r}: {source} could not be loaded as a Transformers model with "
            f"safetensors weights ({type(error).__name__}). Check the name and the network, "
            "or use a local folder; `minilm` always works offline."
        ) from error
    # The pooler above the first token of masked language models is not used here.
    missing = sorted(key for key in found["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise ModelUnavailableError(
            f"Encoder {name!r}: {source} lacks the weights of {len(missing)} of its parts, such as "
            f"{missing[0]}, which would be random. Download or export the model again."
        )
    return tokenizer, model
