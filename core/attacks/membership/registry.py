"""Registries of the membership attacks on embedding models: word windows and sentence pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from leakscope.core.registry import Entry


@dataclass(frozen=True)
class MembershipEntry(Entry):
    """The registry entry of a membership-inference attack; `path` names its class."""

    needs: str = field(kw_only=True)
    """What the attacker needs, as a noun phrase."""

    @property
    def cost(self) -> str:
        """What the attacker needs, in words."""
        return f"needs {self.needs}"


_WORDS = "leakscope.core.attacks.membership.words.attack"
_SENTENCES = "leakscope.core.attacks.membership.sentences.learned"

WORDS_OWN = "cosine"
"""The paper's own attack on windows of words; the reference for the others."""

WORD_ATTACKS: dict[str, MembershipEntry] = {
    "cosine": MembershipEntry(
        "Mean cosine",
        "Calls a window a member if its middle word is similar to the words around it.",
        "Song & Raghunathan (2020), §5.1, Alg. 4",
        f"{_WORDS}:CosineWindows",
        formula=r"\text{score}(C) = \frac{1}{|C| - 1} \sum_{w_i \in C \setminus \{w_0\}}"
        r" \cos\big(v_{w_0}, v_{w_i}\big)",
        needs="the vectors of words",
        colour="#0072B2",
        symbol="circle",
    ),
    "centred": MembershipEntry(
        "Mean cosine, frequency removed",
        "The same, without what words of similar frequency share; rare words count more.",
        "ours, after Mu & Viswanath (2018) and Mikolov et al. (2013), §2.3",
        f"{_WORDS}:CentredWindows",
        formula=r"\text{score}(C) = \frac{\sum_i a_{w_i} \cos(\tilde v_{w_0}, \tilde v_{w_i})}"
        r"{\sum_i a_{w_i}},\quad a_w = \min\big(1, \sqrt{t / f_w}\big),\quad"
        r" \tilde v_w = P v_w - \overline{P v}_{\,|r(w') - r(w)| \le 500}",
        needs="the vectors of words and some labelled documents",
        colour="#E69F00",
        symbol="square",
    ),
    "weighed": MembershipEntry(
        "Cosines weighted by distance",
        "The same at each distance from the middle, with weights learned from labelled windows.",
        "ours",
        f"{_WORDS}:WeighedWindows",
        formula=r"\text{score}(C) = \sum_k (\beta_k + \gamma_k\, \rho_{w_0})\, s_k(C),\quad"
        r" s_k = \text{centred, of the words } k \text{ away},\quad"
        r" \rho_w = \tfrac{\log r(w)}{\log |V|} - \tfrac12",
        needs="the vectors of words and some labelled documents",
        colour="#D55E00",
        symbol="diamond",
    ),
}
"""The attacks on windows of words, simplest first."""

SENTENCES_OWN = "fixed"
"""The simpler of the paper's two attacks on sentence pairs; the reference for the other."""

SENTENCE_ATTACKS: dict[str, MembershipEntry] = {
    "fixed": MembershipEntry(
        "Dot product",
        "Calls a book a member if the vectors of its consecutive sentences are similar.",
        "Song & Raghunathan (2020), §5.2, Alg. 5",
        f"{_SENTENCES}:PairSimilarity",
        formula=r"\text{score}(X) = \frac{1}{n - 1} \sum_{i=1}^{n-1} \Phi(x_i) \cdot \Phi(x_{i+1})",
        needs="the vectors of consecutive sentences",
        colour="#0072B2",
        symbol="circle",
    ),
    "learned": MembershipEntry(
        "Learned similarity",
        "The same after a projection learned from a labelled tenth of the books.",
        "Song & Raghunathan (2020), Eq. 10",
        f"{_SENTENCES}:LearnedSimilarity",
        formula=r"\delta'(x_a, x_b) = W_m^\top \Phi(x_a) \cdot W_m^\top \Phi(x_b),\quad"
        r" \mathcal L = -\big[ y \log \sigma(\delta' + c)"
        r" + (1 - y) \log \sigma(-\delta' - c) \big]",
        needs="the vectors of consecutive sentences, and some labelled books",
        colour="#D55E00",
        symbol="diamond",
    ),
}
"""The attacks on sentence pairs, simplest first."""
