"""Registry of the membership attacks on windows of words, simplest first."""

from __future__ import annotations

from leakscope.core.attacks.membership.entry import MembershipEntry

PAPERS_OWN = "cosine"
"""The paper's own attack; the reference for the others."""

WORD_ATTACKS: dict[str, MembershipEntry] = {
    "cosine": MembershipEntry(
        "Mean cosine",
        "Calls a window a member if its middle word is similar to the words around it.",
        "Song & Raghunathan (2020), §5.1, Alg. 4",
        "leakscope.core.attacks.membership.words.attack:CosineWindows",
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
        "leakscope.core.attacks.membership.words.attack:CentredWindows",
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
        "leakscope.core.attacks.membership.words.attack:WeighedWindows",
        formula=r"\text{score}(C) = \sum_k (\beta_k + \gamma_k\, \rho_{w_0})\, s_k(C),\quad"
        r" s_k = \text{centred, of the words } k \text{ away},\quad"
        r" \rho_w = \tfrac{\log r(w)}{\log |V|} - \tfrac12",
        needs="the vectors of words and some labelled documents",
        colour="#D55E00",
        symbol="diamond",
    ),
}
