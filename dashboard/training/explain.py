"""The methods, formulas and limitations of each part of the training page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.dashboard.ui.formulas import draw_entries


def how_it_is_computed(part: str) -> None:
    """Draw the methods of a section of the page, each with its source and its formula."""
    with st.expander("How this is computed", icon=":material/function:"):
        _COMPUTED[part]()


def _explain_adversary() -> None:
    """Draw an explanation of how adversarial training is measured, and its methods."""
    st.markdown(
        "Encoder and adversary (the attacker used in training) are trained with one loss. The "
        "adversary $A$ learns to invert the "
        "vectors. Its gradient reaches the encoder $f$ with the opposite sign, multiplied by "
        "$\\lambda$. **In training**: the score of $A$ after each epoch, on texts held out from "
        "the defence's training. **New attacker**: one trained afterwards, on other texts and "
        "their vectors from the finished encoder. Neither the defence nor the attacker saw its "
        "targets. **Utility**: the accuracy of logistic regression, as the change in points from "
        "the same encoder without a defence, averaged over the tasks."
    )
    draw_entries(TRAINED_DEFENCES.values())


def _explain_noise() -> None:
    """Draw an explanation of how training under noise is measured, and its methods."""
    st.markdown(
        "Users add noise to their texts, and the network is trained and tested on what they send. "
        "The word embeddings stay fixed. The noise of a training text is drawn in one of two ways. "
        "Drawn once, the text is released once. Drawn again at each step, as in the paper, the "
        "text is released once per epoch, and the odds multiply: $e^{k \\eta d}$ after $k$ "
        "releases. Intervals are bootstraps over the test texts, and include the spread between "
        "seeds."
    )
    draw_entries(READERS.values())
    _draw_mechanisms()


def _explain_pretraining() -> None:
    """Draw an explanation of how pretraining under noise is measured, and its methods."""
    st.markdown(
        "The network starts from its usual weights and learns to predict masked tokens of noisy "
        "texts. Each η continues from the next one with less noise. Then the network is fine-tuned "
        "under the same noise. It is pretrained on public texts and fine-tuned on the users' "
        "texts. **Recovered**: how much of the accuracy lost to noise pretraining restores, on the "
        "same test texts:"
    )
    st.latex(
        r"100 \cdot \frac{\text{acc}_\text{adapted} - \text{acc}_\text{noise}}"
        r"{\text{acc}_\text{no noise} - \text{acc}_\text{noise}}"
    )
    draw_entries(OBJECTIVES.values())
    _draw_mechanisms()


def _draw_mechanisms() -> None:
    """Draw the summaries and formulas of the three mechanisms that add the noise."""
    names = ("sequence_representation", "token_representation", "text_to_text")
    draw_entries(DEFENCES[name] for name in names)


def _explain_private() -> None:
    """Draw an explanation of how differentially private training is measured, and its method."""
    st.markdown(
        "The gradient $g_i$ of each text is clipped to the norm $C$, and noise is added to the "
        "sum. Adding or removing one training text then changes the odds of any outcome by a "
        "factor of at most $e^\\varepsilon$, except with probability $\\delta$. **AUC**: how often "
        "an attack ranks a member above a non-member, from 0 to 100. **Exposure**: how "
        "many bits of a planted secret the model reveals."
    )
    draw_entries([TARGETS["private"]])


_COMPUTED: dict[str, Callable[[], None]] = {
    "adversary": _explain_adversary,
    "noise": _explain_noise,
    "pretraining": _explain_pretraining,
    "private": _explain_private,
}

_NOT_SHOWN = {
    "adversary": "- The strongest new attacker is the strongest of those tried. Another may "
    "recover more, so what it misses is not proven safe.\n"
    "- It is chosen by its score on the targets themselves, which favours the attacker.\n"
    "- Training against an attacker guarantees nothing. LEACE guarantees something against linear "
    "classifiers only, and only for the texts that it was fitted on.\n"
    "- An adapter on a frozen encoder has less freedom to hide words than an encoder trained from "
    "the start, such as the paper's dual encoders. The control at the top lists the encoders "
    "measured.\n"
    "- No weights are shipped for the dual encoders, so attackers on them learn from the stated "
    "texts only. An attacker who encodes more texts recovers more "
    "(results/adversarial-dual-few.md shows attackers with fewer texts).",
    "noise": "- Our scale of η differs from the paper's, because the word embeddings differ. The "
    "paper's results are placed where as many tokens stay unchanged, which is one way to compare "
    "them.\n"
    "- Our network is MiniLM, the paper's is BERT. Compare the shapes of the curves, not their "
    "heights.\n"
    "- For the vector of a whole text, only a small head is trained, but the network without noise "
    "is fine-tuned as a whole. The table shows separately what the noise alone costs.\n"
    "- For what an attacker recovers from the sent texts, see *Deniability* and *Trade-off*.",
    "pretraining": "- Pretraining used a small part of the paper's number of tokens. Where the "
    "loss is still falling, more tokens would help.\n"
    "- Pretraining was run once. The intervals cover the test texts and the seeds of fine-tuning.\n"
    "- The recovered share is uncertain where noise costs little.",
    "private": "- An AUC near 50 shows that these attacks do not find members. ε bounds every "
    "attack, including unknown ones.\n"
    "- The encoder was not trained here. The texts that it was trained on have no guarantee.\n"
    "- ε holds for one text, which is one row of the file. For a person who wrote several texts, "
    "or a sentence split into several rows, the guarantee is weaker. *ε for 10 texts* and *ε for "
    "all copies* cover them together, by group privacy at the same δ.\n"
    "- The number of texts and the class names are public; ε does not protect them.\n"
    "- Where δ · n is not small, a training that now and then publishes a whole text would still "
    "satisfy δ.",
}


def caveats(part: str) -> None:
    """Draw the limitations of a section of the training page."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(_NOT_SHOWN[part])
