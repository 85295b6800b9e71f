"""The formulas behind each part of the page of training, and what its numbers do not say."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.attacks.membership.classifiers.targets.registry import TARGETS
from core.defences.registry import DEFENCES
from core.defences.trained.registry import TRAINED_DEFENCES
from core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from dashboard.formulas import draw_entries

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed(part: str) -> None:
    """Draw what is computed in a part, each method with its source and its formula."""
    with st.expander("How this is computed", icon=":material/function:"):
        _COMPUTED[part]()


def _adversary() -> None:
    st.markdown(
        "Encoder and adversary are trained by one loss. The adversary $A$ learns to read the "
        "vectors, and its gradient reaches the encoder $f$ turned round, $\\lambda$ times. **In "
        "training**: what $A$ reads, after each epoch, of texts of the defence's own that were "
        "held out. **Fresh**: an attacker that is trained afterwards, on other "
        "texts and the vectors that the finished encoder gives them; its targets were seen by "
        "neither. **Usefulness**: the accuracy of logistic regression, in points beside the same "
        "encoder without a defence, mean over the tasks."
    )
    draw_entries(TRAINED_DEFENCES.values())


def _noise() -> None:
    st.markdown(
        "The user's side adds noise, and the network is trained and tested on what it sends: the "
        "word embeddings stay as they are. The noise of a training text is drawn afresh at each "
        "step, as in the paper, so that the text is released once per epoch and the odds compose: "
        "$e^{k \\eta d}$ after $k$ releases; or it is drawn once, and released once. Intervals "
        "are bootstraps of the test texts, with the spread between seeds."
    )
    draw_entries(READERS.values())
    _mechanisms()


def _pretraining() -> None:
    st.markdown(
        "The network goes on from its usual weights and predicts masked tokens of texts under "
        "noise; each η goes on from the next with less noise. Then it is fine-tuned under the same "
        "noise. The texts of pretraining are public ones; those of the task are the users'. **Won "
        "back**: of the accuracy that noise costs, the share that pretraining "
        "recovers, on the same test texts:"
    )
    st.latex(
        r"100 \cdot \frac{\text{acc}_\text{adapted} - \text{acc}_\text{noise}}"
        r"{\text{acc}_\text{no noise} - \text{acc}_\text{noise}}"
    )
    draw_entries(OBJECTIVES.values())
    _mechanisms()


def _mechanisms() -> None:
    names = ("sequence_representation", "token_representation", "text_to_text")
    draw_entries(DEFENCES[name] for name in names)


def _private() -> None:
    st.markdown(
        "The gradient $g_i$ of each text is cut to the length $C$, and noise is added to their "
        "sum. Whether a text was among those trained on then changes the odds of any outcome by a "
        "factor of at most $e^\\varepsilon$, but for a chance of $\\delta$. **AUC**: the share of "
        "pairs of a member and another text that an attack ranks rightly. **Exposure**: how many "
        "bits of a planted secret the model gives away."
    )
    draw_entries([TARGETS["private"]])


_COMPUTED: dict[str, Callable[[], None]] = {
    "adversary": _adversary,
    "noise": _noise,
    "pretraining": _pretraining,
    "private": _private,
}

_NOT_SHOWN = {
    "adversary": "- The strongest fresh attacker is the strongest of those that were tried; "
    "another may read more. What it does not read is not thereby safe.\n"
    "- The strongest is chosen by what it reads of the targets themselves, which is chosen against "
    "the defence.\n"
    "- Training against an adversary promises nothing. LEACE promises something of linear "
    "classifiers alone, and of the texts that it was fitted to.\n"
    "- A frozen encoder with an adapter has less room to hide words than one that is trained from "
    "the beginning, as the paper's dual encoders were. Which encoders were measured stands at the "
    "top.\n"
    "- For the dual encoders no weights ship from which an attacker could go on: theirs learn from "
    "the texts that are told here alone. Who asks the encoder about more reads more "
    "(docs/results/adversarial-dual-few.md holds what attackers with fewer texts read).",
    "noise": "- The two scales of η differ, since the word embeddings do: the paper's figures "
    "stand where as many tokens come back, which is one way to compare them.\n"
    "- Our network is MiniLM and the paper's BERT. Compare the shape of the curves, not their "
    "height.\n"
    "- Of the vector of a whole text only a small head is trained, beside a network that is "
    "fine-tuned as a whole without noise; the table holds apart what the noise alone costs.\n"
    "- What an attacker reads of what is sent is on the pages of deniability and of the trade-off.",
    "pretraining": "- Pretraining was run on a small share of the tokens of the paper's. Where the "
    "loss still falls, more of them would help.\n"
    "- One run of pretraining: the intervals are of the test texts and of the seeds of "
    "fine-tuning.\n"
    "- The share that is won back is uncertain where noise costs little.",
    "private": "- An AUC near 50 says that these attacks do not tell members; ε bounds every "
    "attack, also those that nobody thought of.\n"
    "- The encoder was not trained here: what it learnt from its own texts is promised nothing.\n"
    "- ε is of one text, which is a row of the file. Of a person who wrote several, or a sentence "
    "whose phrases are rows, less is promised: *ε of 10 texts* and *ε of all copies* are of all of "
    "them together, by group privacy at the same δ.\n"
    "- The number of texts and the names of the classes are public: ε does not protect them.\n"
    "- Where δ · n is above one tenth, a training that publishes a whole text now and then keeps "
    "to δ.",
}


def caveats(part: str) -> None:
    """Draw what a part does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(_NOT_SHOWN[part])
