"""What is trained under noise: the networks of a task, and the losses of pretraining."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.registry import Entry

__all__ = [
    "OBJECTIVES",
    "READERS",
    "RELEASES",
    "ObjectiveEntry",
    "ReaderEntry",
    "n_releases",
    "usual_epochs",
]

_HERE = "core.defences.trained.under_noise"

RELEASES = ("once", "every_epoch")
"""How often a training text is released under noise of its own."""

_HEAD_EPOCHS = 20
"""Of the small network on whole texts' vectors: a step of it costs next to nothing."""


@dataclass(frozen=True)
class ReaderEntry(Entry):
    """What a user should know of a network that reads what users send.

    Attributes
    ----------
    learning_rate : float
        What it is trained with, unless another is given.
    epochs : int
        Passes over the texts, unless others are given.
    is_pretrained : bool
        Begins with weights that know texts, so that they can be adapted first.
    """

    learning_rate: float
    epochs: int
    is_pretrained: bool = False

    @property
    def cost(self) -> str:
        """How long it takes to train."""
        return "minutes a task" if self.is_pretrained else "a minute or so a task"


@dataclass(frozen=True)
class ObjectiveEntry(Entry):
    """What a user should know of a loss of privacy-adaptive pretraining, which its `kind` takes."""

    @property
    def cost(self) -> str:
        """How long a network takes."""
        return "hours a million sentences, once for all tasks"


READERS: Mapping[str, ReaderEntry] = {
    "transformer": ReaderEntry(
        "Transformer",
        "MiniLM fine-tuned behind the user's word embeddings.",
        "Qu et al. (2021), §3.3",
        f"{_HERE}.readers:TransformerReader",
        learning_rate=1e-4,
        epochs=3,
        is_pretrained=True,
        formula=r"p(y \mid x) = \text{softmax}\big(W^\top \Phi_\theta(\tilde v_1, \dots, "
        r"\tilde v_m) + b\big)_y",
    ),
    "bilstm": ReaderEntry(
        "BiLSTM",
        "A bidirectional LSTM over the same word embeddings, trained from scratch.",
        "Qu et al. (2021), §3.3",
        f"{_HERE}.readers:BiLSTMReader",
        learning_rate=1e-3,
        epochs=8,
        formula=r"p(y \mid x) = \text{softmax}\big(W^\top \bar h(\tilde v_1, \dots, "
        r"\tilde v_m) + b\big)_y",
    ),
}

OBJECTIVES: Mapping[str, ObjectiveEntry] = {
    "vanilla": ObjectiveEntry(
        "Vanilla MLM",
        "Masked tokens are predicted as the noise left them.",
        "Qu et al. (2021), Eq. 5",
        f"{_HERE}.objectives:token_loss",
        version=2,
        formula=r"-\sum_{w} \mathbb 1[w = w_p] \log \frac{e^{z_w}}{\sum_{w'} e^{z_{w'}}}",
    ),
    "probability": ObjectiveEntry(
        "Probability MLM",
        "Ten perturbations of each masked token are predicted, by how often they come.",
        "Qu et al. (2021), Eq. 6",
        f"{_HERE}.objectives:probability_loss",
        version=2,
        formula=r"-\sum_{w \in C} \frac{n_w}{|C|} \log \frac{e^{z_w}}{\sum_{w'} e^{z_{w'}}}",
    ),
    "denoising": ObjectiveEntry(
        "Denoising MLM",
        "Masked tokens are predicted as they were before the noise.",
        "Qu et al. (2021), Eq. 7",
        f"{_HERE}.objectives:token_loss",
        version=2,
        formula=r"-\sum_{w} \mathbb 1[w = w_o] \log \frac{e^{z_w}}{\sum_{w'} e^{z_{w'}}}",
    ),
}


def n_releases(mechanism: str, reader: str, *, epochs: int = 0, releases: str = "once") -> int:
    """Return how many noisy copies of each training text a fine-tuning releases.

    Parameters
    ----------
    epochs : int
        Passes over the texts; 0 for those that the reader takes by default.
    releases : str
        One of RELEASES.

    Returns
    -------
    int
        0 without a mechanism: texts then leave as they are.

    Examples
    --------
    >>> n_releases("text_to_text", "transformer", releases="every_epoch")
    3
    >>> n_releases("text_to_text", "bilstm"), n_releases("none", "bilstm")
    (1, 0)
    """
    if mechanism == "none":
        return 0
    return 1 if releases == "once" else epochs or usual_epochs(mechanism, reader)


def usual_epochs(mechanism: str, reader: str) -> int:
    """Return the passes over the texts that a network takes unless others are given."""
    return _HEAD_EPOCHS if mechanism == "sequence_representation" else READERS[reader].epochs
