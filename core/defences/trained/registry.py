"""Registry of the defences that are trained.

They are separate from `leakscope.core.defences.registry`: they cannot protect anything before they
are trained.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from leakscope.core.defences.entries import DefenceEntry
from leakscope.core.protocols import TrainedDefence
from leakscope.core.registry import find, make
from leakscope.core.specs import DefenceSpec


@dataclass(frozen=True)
class TrainedDefenceEntry(DefenceEntry):
    """Registry entry of a defence that is trained on texts."""

    needs_labels: bool = field(default=False, kw_only=True)
    """Whether it only hides an attribute, so that each text needs its label."""

    @property
    def cost(self) -> str:
        """What the defence requires of a user, as a phrase."""
        labels = " with the attribute" if self.needs_labels else ""
        return f"trained on texts{labels}; works on any encoder of dense vectors"


TRAINED_DEFENCES: dict[str, TrainedDefenceEntry] = {
    "adversarial": TrainedDefenceEntry(
        "Adversarial training",
        "A small network changes vectors so that an adversary cannot read them during training.",
        "Song & Raghunathan (2020), §7; Ganin & Lempitsky (2015)",
        path="leakscope.core.defences.trained.adversarial:AdversarialAdapter",
        acts_on="vector",
        formula=r"\min_f \max_A\ \lambda \log P_A\big(s \mid f(e)\big) - \log P_f(x_b \mid x_a)",
        colour="#A56BD6",
        symbol="triangle-up",
        keeps_space=False,
    ),
    "leace": TrainedDefenceEntry(
        "LEACE",
        "Removes what a linear classifier could infer of an attribute, in closed form.",
        "Belrose et al. (2023), Theorem 4.3",
        path="leakscope.core.defences.trained.leace:Leace",
        acts_on="vector",
        formula=r"\tilde e = e - W^+ P_{W \Sigma_{es}} W (e - \mu),\quad W = \Sigma_{ee}^{-1/2}",
        colour="#2F7F5F",
        symbol="pentagon",
        needs_labels=True,
    ),
}


MODEL_DEFENCES: dict[str, DefenceEntry] = {
    "private_head": DefenceEntry(
        "Classifier by DP-SGD",
        "Trains the classifier on the vectors with noise; the vectors stay unchanged.",
        "Abadi et al. (2016); Corò (2022), Eq. 3.5",
        path="leakscope.core.training.private_heads:HeadSettings",
        acts_on="model",
        guarantee="(ε, δ)-differential privacy of each training text; none for vectors",
        formula=r"\tilde g = \tfrac{1}{B}\big(\sum_i g_i \min(1, C / \|g_i\|) + "
        r"\mathcal N(0, \sigma^2 C^2 I)\big)",
        colour="#2E8BC0",
        symbol="diamond",
    ),
}
"""Defences of a model's training texts. They protect no vector."""


NETWORK_DEFENCES: dict[str, DefenceEntry] = {
    "constrained": DefenceEntry(
        "Network fine-tuned under noise",
        "Fine-tunes a network on noisy input. What leaks is what the input's mechanism leaks.",
        "Qu et al. (2021), §3.3",
        path="leakscope.core.defences.trained.under_noise.registry:NetworkUnderNoise",
        acts_on="network",
        guarantee="that of the mechanism on its input, for each release of a text; a "
        "training text is released once per epoch",
        formula=r"p(y \mid x) = f_\theta(\tilde x),\quad \tilde x \sim M_\eta(x)",
        colour="#6FA8DC",
        symbol="pentagon",
    ),
}
"""Networks on the output of another defence. They release nothing themselves."""


def make_trained_defence(spec: DefenceSpec | str) -> TrainedDefence:
    """Build an untrained defence from its spec.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range; the message names what is.
    """
    spec = DefenceSpec(name=spec) if isinstance(spec, str) else spec
    entry = find(TRAINED_DEFENCES, spec.name, "defence")
    defence: TrainedDefence = make(entry, spec.name, dict(spec.settings))
    return defence


def is_of_model(name: str) -> bool:
    """Return whether the defence of a name protects a model's training texts, not vectors."""
    return name in MODEL_DEFENCES


def is_of_network(name: str) -> bool:
    """Return whether the defence of a name is a network that reads another defence's output."""
    return name in NETWORK_DEFENCES
