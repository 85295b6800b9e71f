"""The defences that learn, in the order in which a reader should meet them.

They stand apart from `core.defences.registry`: without a training there is nothing to protect with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.defences.entries import DefenceEntry
from core.protocols import TrainedDefence
from core.registry import find, make
from core.specs import DefenceSpec

__all__ = [
    "MODEL_DEFENCES",
    "NETWORK_DEFENCES",
    "TRAINED_DEFENCES",
    "ModelDefenceEntry",
    "NetworkDefenceEntry",
    "TrainedDefenceEntry",
    "make_trained_defence",
]


@dataclass(frozen=True)
class TrainedDefenceEntry(DefenceEntry):
    """What a user should know before training a defence, and where its class is."""

    needs_labels: bool = field(default=False, kw_only=True)
    """Whether it hides an attribute alone, so that each text needs its label."""

    @property
    def cost(self) -> str:
        """What it takes to have one."""
        labels = " with the attribute" if self.needs_labels else ""
        return f"trained on texts{labels}; works on any encoder of dense vectors"


TRAINED_DEFENCES: dict[str, TrainedDefenceEntry] = {
    "adversarial": TrainedDefenceEntry(
        "Adversarial training",
        "A small network changes vectors so that an adversary in training cannot read them.",
        "Song & Raghunathan (2020), §7; Ganin & Lempitsky (2015)",
        path="core.defences.trained.adversarial:AdversarialAdapter",
        acts_on="vector",
        formula=r"\min_f \max_A\ \lambda \log P_A\big(s \mid f(e)\big) - \log P_f(x_b \mid x_a)",
        colour="#A56BD6",
        symbol="triangle-up",
        keeps_space=False,
    ),
    "leace": TrainedDefenceEntry(
        "LEACE",
        "What a linear classifier could read of an attribute is taken off, in closed form.",
        "Belrose et al. (2023), Theorem 4.3",
        path="core.defences.trained.leace:Leace",
        acts_on="vector",
        formula=r"\tilde e = e - W^+ P_{W \Sigma_{es}} W (e - \mu),\quad W = \Sigma_{ee}^{-1/2}",
        colour="#2F7F5F",
        symbol="pentagon",
        needs_labels=True,
    ),
}


@dataclass(frozen=True)
class ModelDefenceEntry(DefenceEntry):
    """What a user should know of a defence of what a model was trained on, not of vectors."""

    @property
    def takes_seed(self) -> bool:
        """Whether its draws can be repeated: those of the training are."""
        return False

    @property
    def needs_white_box(self) -> bool:
        """Whether it reaches into the encoder."""
        return False

    @property
    def cost(self) -> str:
        """What it takes to use it."""
        return "the model on the vectors is trained anew; the vectors stay as they are"


MODEL_DEFENCES: dict[str, ModelDefenceEntry] = {
    "private_head": ModelDefenceEntry(
        "Classifier by DP-SGD",
        "The classifier on the vectors is trained with noise; the vectors stay as they are.",
        "Abadi et al. (2016); Corò (2022), Eq. 3.5",
        path="core.training.private_heads:HeadSettings",
        acts_on="model",
        guarantee="(ε, δ)-differential privacy of each training text; nothing of a vector",
        formula=r"\tilde g = \tfrac{1}{B}\big(\sum_i g_i \min(1, C / \|g_i\|) + "
        r"\mathcal N(0, \sigma^2 C^2 I)\big)",
        colour="#2E8BC0",
        symbol="diamond",
    ),
}
"""Defences of the texts that a model was trained on. They protect no vector."""


@dataclass(frozen=True)
class NetworkDefenceEntry(DefenceEntry):
    """What a user should know of a network that only ever sees what leaves under noise."""

    @property
    def takes_seed(self) -> bool:
        """Whether its draws can be repeated: those of the training are."""
        return False

    @property
    def cost(self) -> str:
        """What it takes to use it."""
        return "a network is fine-tuned for each task; what leaves is a defence's by itself"


NETWORK_DEFENCES: dict[str, NetworkDefenceEntry] = {
    "constrained": NetworkDefenceEntry(
        "Network fine-tuned under noise",
        "A network is fine-tuned on what users send under noise: words are read as behind that.",
        "Qu et al. (2021), §3.3",
        path="core.defences.trained.under_noise.sent:NetworkUnderNoise",
        acts_on="network",
        guarantee="what its users' mechanism promises, of each time that a text is sent; a text "
        "that it is trained on is sent once an epoch",
        formula=r"p(y \mid x) = f_\theta(\tilde x),\quad \tilde x \sim M_\eta(x)",
        colour="#6FA8DC",
        symbol="pentagon",
    ),
}
"""Networks that read what another defence releases. What they release is nothing of their own."""


def make_trained_defence(spec: DefenceSpec | str) -> TrainedDefence:
    """Build a defence that is yet to be trained.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range; the message names what is.
    """
    spec = DefenceSpec(name=spec) if isinstance(spec, str) else spec
    entry = find(TRAINED_DEFENCES, spec.name, "defence")
    defence: TrainedDefence = make(entry, spec.name, dict(spec.settings))
    return defence
