"""A Transformers encoder whose weights can be trained, and saved and restored without pickle."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray
from safetensors.numpy import save_file
from torch import Tensor, nn

from leakscope.core.encoders.pooling import mean_of_tokens
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, ModelUnavailableError

_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


class TrainableTransformer(TransformerEncoder):
    """A `TransformerEncoder` at its last layer that can be trained with gradients."""

    def open_for_training(self) -> nn.Module:
        """Make the weights trainable in float32 and return the network."""
        module: nn.Module = self._model.float().requires_grad_(True)
        return module

    def embed_batch(self, texts: Sequence[str]) -> Tensor:
        """Encode n texts as (n, d) float32 means of the last layer's states, with gradients."""
        batch = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        ).to(self.device)
        states = self._states(self.n_layers, **batch).float()
        return mean_of_tokens(states, batch["attention_mask"])

    def end_training(self) -> Self:
        """Freeze the weights, compute the fingerprint, and return this encoder."""
        self._model.eval().requires_grad_(False)
        self.fingerprint = self._compute_fingerprint()
        return self

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
        """Return the weights as arrays, and configuration and tokeniser as JSON texts by file name.

        Raises
        ------
        ArtifactError
            The tokeniser cannot be saved without pickle (a slow tokeniser of an old model).
        """
        arrays = {k: v.detach().cpu().numpy() for k, v in self._model.state_dict().items()}
        with tempfile.TemporaryDirectory() as name:
            self._model.config.save_pretrained(name)
            self._tokenizer.save_pretrained(name)
            files = {
                file: (Path(name) / file).read_text(encoding="utf-8")
                for file in _FILES
                if (Path(name) / file).exists()
            }
        if set(files) != set(_FILES):
            raise ArtifactError(
                f"The tokeniser of {self.name} cannot be written as JSON. Use a model with a fast "
                "tokeniser (tokenizer.json)."
            )
        return arrays, files

    @classmethod
    def unpack(cls, arrays: dict[str, NDArray[Any]], files: dict[str, str], **options: Any) -> Self:
        """Build an encoder from what `pack` returned; options as for `TransformerEncoder`.

        Raises
        ------
        ArtifactError
            A file is missing or damaged, or the weights do not fit the shape.
        """
        with tempfile.TemporaryDirectory() as name:
            for file in _FILES:
                (Path(name) / file).write_text(files[file], encoding="utf-8")
            # Transformers initialises missing weights at random: shapes are compared below.
            save_file(arrays, Path(name) / "model.safetensors", metadata={"format": "pt"})
            try:
                restored = cls(name, **options)
            except (ModelUnavailableError, RuntimeError, TypeError) as error:
                raise ArtifactError(
                    "The stored model cannot be loaded: its shape, tokeniser or weights are "
                    "damaged. Restore the file or train again."
                ) from error
        shapes = {k: tuple(v.shape) for k, v in restored._model.state_dict().items()}
        if shapes != {k: v.shape for k, v in arrays.items()}:
            raise ArtifactError(
                "The stored weights do not fit the stored shape of the model. Restore the file "
                "or train again."
            )
        return restored
