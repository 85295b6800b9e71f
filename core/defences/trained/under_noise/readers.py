"""The service's side: networks that read only what users send."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.defences.trained.under_noise.pieces import Batch
from leakscope.core.encoders.minilm import minilm_folder
from leakscope.core.encoders.sbert.trainable import TrainableTransformer
from leakscope.core.errors import InvalidInputError
from leakscope.core.training.devices import autocast, fast_dtype, pick_device


class Received:
    """A batch as the service receives it: vectors instead of the user's tokens.

    Attributes
    ----------
    vectors : float32 tensor (texts, length, n)
    is_there : bool tensor (texts, length)
    types : int64 tensor (texts, length)
    """

    def __init__(self, batch: Batch, vectors: NDArray[np.float32]) -> None:
        device = pick_device()
        self.vectors = torch.from_numpy(vectors).to(device)
        self.is_there = torch.from_numpy(batch.is_there).to(device)
        self.types = torch.from_numpy(batch.types).to(device)


def open_service(encoder: str) -> nn.Module:
    """Load the trainable Transformer of `minilm` or `mlm:ID` without its word embeddings.

    Dropout is off: new noise at every step regularises enough, and attention is faster without it.

    Raises
    ------
    InvalidInputError
        Another encoder, or one that is not of BERT's kind.
    """
    family, _, place = encoder.partition(":")
    if encoder != "minilm" and not (family == "mlm" and place):
        raise InvalidInputError(
            f"{encoder!r} cannot be trained behind its word embeddings. Choose `minilm` or an "
            "`mlm:ID` encoder of BERT's kind."
        )
    source: Any = minilm_folder() if encoder == "minilm" else place
    opened = TrainableTransformer(
        source, name=encoder, max_length=512, backend="torch", is_local=encoder == "minilm"
    )
    model: Any = opened.open_for_training()
    if not hasattr(getattr(model, "embeddings", None), "word_embeddings"):
        raise InvalidInputError(f"{encoder} is not of BERT's kind. Choose `minilm`.")
    model.embeddings.word_embeddings = nn.Identity()  # they are the user's
    model.pooler = None
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    service: nn.Module = model
    return service


def states_of(service: nn.Module, received: Received) -> Tensor:
    """Run the Transformer on received vectors; return its last states, (texts, length, n)."""
    device = received.vectors.device
    dtype = fast_dtype(device)
    with autocast(device, "bfloat16" if dtype == torch.bfloat16 else "float32"):
        states: Tensor = service(
            inputs_embeds=received.vectors,
            attention_mask=received.is_there.long(),
            token_type_ids=received.types,
        ).last_hidden_state
    return states


class TransformerReader(nn.Module):
    """A Transformer with a linear head, fine-tuned behind the user's word embeddings.

    Differs from the paper: its states are averaged, as MiniLM's are; BERT's [CLS] is read there.
    """

    def __init__(self, service: nn.Module, dimension: int, n_classes: int) -> None:
        super().__init__()
        self.service = service
        self.head = nn.Linear(dimension, n_classes)

    def forward(self, received: Received) -> Tensor:
        """Return the (texts, n_classes) class logits of received texts."""
        states = states_of(self.service, received).float()
        logits: Tensor = self.head(_masked_mean(states, received.is_there))
        return logits


class BiLSTMReader(nn.Module):
    """A bidirectional LSTM over the word-piece vectors, trained from scratch."""

    def __init__(self, dimension: int, n_classes: int, hidden: int = 150) -> None:
        super().__init__()
        self.lstm = nn.LSTM(dimension, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, received: Received) -> Tensor:
        """Return the (texts, n_classes) class logits of received texts, from their mean states."""
        lengths = received.is_there.sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            received.vectors, lengths, batch_first=True, enforce_sorted=False
        )
        states = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        logits: Tensor = self.head(_masked_mean(states, received.is_there))
        return logits


class SequenceReader(nn.Module):
    """A classifier with one hidden layer on the noisy vectors of whole texts.

    Of a pair it reads (u, v, |u − v|, u·v). Nothing behind the vectors is trained: the encoder is
    the user's.
    """

    def __init__(self, dimension: int, n_classes: int, *, is_paired: bool) -> None:
        super().__init__()
        width = 4 * dimension if is_paired else dimension
        self.layers = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, n_classes))

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        """Return the (texts, n_classes) class logits of whole-text vectors."""
        if second is not None:
            first = torch.cat([first, second, (first - second).abs(), first * second], 1)
        logits: Tensor = self.layers(first)
        return logits


def _masked_mean(states: Tensor, is_there: Tensor) -> Tensor:
    """Return the mean state over the positions that are not padding."""
    weights = is_there[:, :, None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)
