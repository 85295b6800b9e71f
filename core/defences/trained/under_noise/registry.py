"""Registries of readers and pretraining losses under noise, and the defence that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leakscope.core.ranges import Strength
from leakscope.core.registry import Entry
from leakscope.core.specs import setting

_HERE = "leakscope.core.defences.trained.under_noise"

RELEASES = ("once", "every_epoch")
"""When the noise of a training text is drawn: each time is a release."""

_HEAD_EPOCHS = 20
"""Epochs of the small network on whole-text vectors, whose steps are cheap."""


@dataclass(frozen=True)
class ReaderEntry(Entry):
    """Registry entry of a network that reads what users send.

    Attributes
    ----------
    learning_rate : float
        Default learning rate.
    epochs : int
        Default number of passes over the texts.
    is_pretrained : bool
        Starts from pretrained weights, which can be adapted first.
    """

    learning_rate: float
    epochs: int
    is_pretrained: bool = False

    @property
    def cost(self) -> str:
        """How long the reader takes to train."""
        return "minutes per task" if self.is_pretrained else "about a minute per task"


@dataclass(frozen=True)
class ObjectiveEntry(Entry):
    """Registry entry of a pretraining loss; its `kind` is the loss function."""

    @property
    def cost(self) -> str:
        """How long a pretraining takes."""
        return "hours per million sentences, once for all tasks"


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
        "Predicts masked tokens as they were after the noise.",
        "Qu et al. (2021), Eq. 5",
        f"{_HERE}.objectives:token_loss",
        version=2,
        formula=r"-\sum_{w} \mathbb 1[w = w_p] \log \frac{e^{z_w}}{\sum_{w'} e^{z_{w'}}}",
    ),
    "probability": ObjectiveEntry(
        "Probability MLM",
        "Predicts ten perturbations of each masked token, weighted by their frequency.",
        "Qu et al. (2021), Eq. 6",
        f"{_HERE}.objectives:probability_loss",
        version=2,
        formula=r"-\sum_{w \in C} \frac{n_w}{|C|} \log \frac{e^{z_w}}{\sum_{w'} e^{z_{w'}}}",
    ),
    "denoising": ObjectiveEntry(
        "Denoising MLM",
        "Predicts masked tokens as they were before the noise.",
        "Qu et al. (2021), Eq. 7",
        f"{_HERE}.objectives:token_loss",
        version=2,
        formula=r"-\sum_{w} \mathbb 1[w = w_o] \log \frac{e^{z_w}}{\sum_{w'} e^{z_{w'}}}",
    ),
}


def n_releases(mechanism: str, reader: str, *, epochs: int = 0, releases: str = "once") -> int:
    """Return how many noisy copies of each training text a reader's training uses; 0 without noise.

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
    return 1 if releases == "once" else epochs or default_epochs(mechanism, reader)


def default_epochs(mechanism: str, reader: str) -> int:
    """Return the default number of epochs of a reader behind a mechanism."""
    return _HEAD_EPOCHS if mechanism == "sequence_representation" else READERS[reader].epochs


SENDS = ("text_to_text", "token_representation", "sequence_representation")
"""Mechanisms that may protect the input, by the names of the defences."""

_ETA = Strength("Noise", 75.0, (60.0, 75.0, 90.0, 120.0), "η {:g}")


@dataclass
class NetworkUnderNoise:
    """The mechanism that protects the input, its η, and the network that reads it."""

    sends: str = setting("text_to_text", "Mechanism that protects the input", choices=SENDS)
    eta: float = setting(
        75.0, "Privacy parameter, in 1/distance", low=1e-6, high=1e6, strength=_ETA
    )
    network: str = setting("transformer", "Network that reads it", choices=tuple(READERS))
