"""A dual encoder after training: its vectors, its insides for white-box attackers, its state."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoders.dual.network import DualNetwork, embed_ids, pad, pool
from core.encoders.dual.training import RetrievalAccuracy
from core.encoders.dual.word_tokens import PAD, UNK, WordTokens
from core.errors import ArtifactError, CoreError, InvalidInputError, NotFittedError
from core.protocols import OnProgress, Vectors, no_progress
from core.specs import settings_of, validate_settings
from core.text import check_texts
from core.training.devices import pick_device

__all__ = ["FittedDual"]

_BATCH = 256
_WITHOUT_EFFECT = ("device",)


class FittedDual:
    """What `DualEncoder` can do once it has a network and a vocabulary."""

    name: str
    dimension: int
    fingerprint: str
    device: str
    precision = "float32"
    tokens_: WordTokens
    network_: DualNetwork
    validation_: list[RetrievalAccuracy]

    def new_network(self, n_tokens: int) -> DualNetwork:
        """Return an untrained network of these settings."""
        raise NotImplementedError

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a trained encoder depends on."""
        return {k: getattr(self, k) for k in settings_of(type(self)) if k not in _WITHOUT_EFFECT}

    def _accept(self, tokens: WordTokens, network: DualNetwork) -> None:
        """Become the encoder with this vocabulary and these weights."""
        self.tokens_ = tokens
        self.network_ = network.eval().requires_grad_(False)
        self.device = str(network.words.weight.device)
        digest = hashlib.sha256(repr((self.name, sorted(self.settings.items()))).encode())
        digest.update("\n".join(tokens.tokens).encode())
        for key, tensor in sorted(network.state_dict().items()):
            digest.update(key.encode() + tensor.cpu().contiguous().numpy().tobytes())
        self.fingerprint = digest.hexdigest()

    def _network(self) -> DualNetwork:
        network = getattr(self, "network_", None)
        if network is None:
            raise NotFittedError(
                f"{type(self).__name__} is not trained: call fit with consecutive sentences, or "
                "load a trained one."
            )
        return self.network_

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, d) float32 embeddings of n texts, in their order; not unit vectors.

        Raises
        ------
        NotFittedError
            Before `fit` or `load_state`.
        InvalidInputError
            A text that cannot be encoded.
        """
        network = self._network()
        return self._in_batches(texts, self.dimension, embed_ids, network, on_progress)

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Return (n, width of the layer) means of the states of a layer.

        Layer 0 is the mean of word vectors, [UNK] left out (Ψ of SR20 Eq. 7). The last layer is
        `encode` where pooling is `mean`.
        """
        network = self._network()
        if not 0 <= layer <= network.n_layers:
            raise InvalidInputError(
                f"layer must lie in [0, {network.n_layers}] for {self.name}, got {layer}."
            )

        def embed(network: DualNetwork, ids: Sequence[NDArray[np.int64]]) -> Tensor:
            batch, mask = pad(ids, network.words.weight.device)
            vectors = network.words(batch)
            if layer == 0:
                return pool(vectors, mask & (batch != UNK), "mean")
            return pool(network.states(vectors, mask, layer), mask, "mean")

        width = self.dimension if layer else network.words.embedding_dim
        return self._in_batches(texts, width, embed, network, on_progress)

    @torch.inference_mode()
    def _in_batches(
        self,
        texts: Sequence[str],
        width: int,
        embed: Any,
        network: DualNetwork,
        on_progress: OnProgress,
    ) -> Vectors:
        """Embed texts, those of similar length together."""
        ids = self._ids(check_texts(texts))
        order = np.argsort([-len(row) for row in ids], kind="stable")
        out = np.empty((len(ids), width), dtype=np.float32)
        for start in range(0, len(ids), _BATCH):
            rows = order[start : start + _BATCH]
            out[rows] = embed(network, [ids[i] for i in rows]).cpu().numpy()
            done = start + len(rows)
            on_progress(done / len(ids), f"Encoded {done:,} of {len(ids):,} texts")
        return out

    def _ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[NDArray[np.int64]]:
        limit = None if is_whole else self.settings["max_length"]
        return [self.tokens_.ids(text, limit) for text in texts]

    @property
    def tokens(self) -> list[str]:
        """The |V| tokens in the order of `token_vectors`."""
        self._network()
        return list(self.tokens_.tokens)

    @property
    def special_token_ids(self) -> list[int]:
        """Positions of [PAD] and [UNK]."""
        return [PAD, UNK]

    @property
    def token_vectors(self) -> Tensor:
        """The word embedding matrix V, float32, shape (|V|, word dimension)."""
        return self._network().words.weight

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Return the token ids of each text, as far as the encoder reads or of the whole text."""
        self._network()
        return [ids.tolist() for ids in self._ids(texts, is_whole=is_whole)]

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Return the text that tokens make, separated by spaces."""
        self._network()
        return self.tokens_.text_of(token_ids)

    def embed_token_vectors(self, vectors: Tensor, layer: int | None = None) -> Tensor:
        """Map (batch, length, word dimension) word vectors to (batch, d), with gradients.

        With `layer=None` this is `encode` for word vectors, else `encode_layer` of that layer.
        """
        network = self._network()
        mask = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        if layer is None:
            embedded: Tensor = network(vectors, mask)
            return embedded
        return pool(network.states(vectors, mask, layer) if layer else vectors, mask, "mean")

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the weights in float32; settings, vocabulary and validation as JSON-able."""
        arrays = {k: v.cpu().numpy() for k, v in self._network().state_dict().items()}
        return arrays, {
            "encoder": self.name,
            "settings": self.settings,
            "tokens": list(self.tokens_.tokens),
            "validation": [score.to_dict() for score in self.validation_],
            "fingerprint": self.fingerprint,
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned, its settings included.

        Raises
        ------
        ArtifactError
            The state is of another encoder, damaged, or was altered.
        """
        try:
            self._restore(arrays, meta)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise ArtifactError(
                f"This is not the state of a {self.name} encoder, or it is damaged "
                f"({type(error).__name__}: {str(error)[:200]}). Restore the file or train again."
            ) from error
        if self.fingerprint != meta["fingerprint"]:
            raise ArtifactError(
                f"The weights, vocabulary or settings of this {self.name} encoder were altered: "
                "their fingerprint is another. Restore the file or train again."
            )
        return self

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        if meta["encoder"] != self.name:
            raise ArtifactError(f"This is the state of {meta['encoder']!r}, not of {self.name!r}.")
        for key in self.settings:
            setattr(self, key, meta["settings"][key])
        try:
            validate_settings(self)
        except CoreError as error:
            raise ArtifactError(f"The state holds a setting that cannot be: {error}") from error
        tokens = WordTokens(tuple(map(str, meta["tokens"])))
        tensors = {k: torch.from_numpy(v.astype(np.float32)) for k, v in arrays.items()}
        with torch.device("meta"):  # no memory is taken before the shapes are known to fit
            network = self.new_network(len(tokens))
        network.load_state_dict(tensors, assign=True)
        self.validation_ = [
            RetrievalAccuracy.of(float(s["accuracy"]), int(s["n"]), int(s["n_candidates"]))
            for s in meta["validation"]
        ]
        self._accept(tokens, network.to(pick_device(self.device)))
