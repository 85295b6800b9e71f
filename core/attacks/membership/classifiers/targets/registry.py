"""Registry of the kinds of classifiers that are trained to be attacked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leakscope.core.attacks.membership.classifiers.targets.training_batch import Classifiers
from leakscope.core.registry import Entry, find, make

_HERE = "leakscope.core.attacks.membership.classifiers.targets"


@dataclass(frozen=True)
class TargetEntry(Entry):
    """The registry entry of a kind of target classifier.

    Attributes
    ----------
    stands_on : str
        The name of its setting for an encoder, if it has one.
    is_slow : bool
        Takes minutes per model, so there are few shadow models.
    """

    stands_on: str = ""
    is_slow: bool = False

    @property
    def cost(self) -> str:
        """How long training a model takes, in words."""
        return "minutes per model" if self.is_slow else "seconds per model"


TARGETS: Mapping[str, TargetEntry] = {
    "linear": TargetEntry(
        "Linear head",
        "Logistic regression on the vectors of a frozen encoder.",
        "baseline",
        f"{_HERE}.heads:LinearHeads",
        formula=r"p(y \mid x) = \text{softmax}(W^\top \Phi(x) + b)_y",
        stands_on="encoder",
    ),
    "lstm": TargetEntry(
        "LSTM",
        "Two LSTM layers over their own word vectors, trained from scratch.",
        "Shejwalkar et al. (2021), Appendix B",
        f"{_HERE}.lstm:LSTMs",
        formula=r"p(y \mid x) = \text{softmax}(W^\top \bar h^{(2)} + b)_y",
    ),
    "transformer": TargetEntry(
        "Transformer",
        "A small Transformer, MiniLM, fine-tuned as a whole with a linear head.",
        "Shejwalkar et al. (2021), Appendix B",
        f"{_HERE}.transformer:Transformers",
        formula=r"p(y \mid x) = \text{softmax}(W^\top \Phi_\theta(x) + b)_y",
        stands_on="encoder",
        is_slow=True,
    ),
    "private": TargetEntry(
        "Private head",
        "A head on the vectors of a frozen encoder, trained by DP-SGD: each text costs at most ε.",
        "Abadi et al. (2016); Corò (2022), Eq. 3.5",
        f"{_HERE}.private:PrivateHeads",
        formula=r"\tilde g = \tfrac{1}{B}\big(\sum_i g_i \min(1, C / \|g_i\|) + "
        r"\mathcal N(0, \sigma^2 C^2 I)\big)",
        stands_on="encoder",
    ),
}


def make_classifiers(name: str, settings: Mapping[str, Any]) -> Classifiers:
    """Build unfitted classifiers of a kind by its registry name and settings.

    Raises
    ------
    InvalidInputError
        No such kind or setting, or a value outside its range.
    """
    made: Classifiers = make(find(TARGETS, name, "classifier"), name, settings)
    return made
