"""Registry of the membership attacks on sentence pairs, simplest first."""

from __future__ import annotations

from leakscope.core.attacks.membership.entry import MembershipEntry

PAPERS_OWN = "fixed"
"""The simpler of the paper's two attacks; the reference for the other."""

_HERE = "leakscope.core.attacks.membership.sentences.learned"

SENTENCE_ATTACKS: dict[str, MembershipEntry] = {
    "fixed": MembershipEntry(
        "Dot product",
        "Calls a book a member if the vectors of its consecutive sentences are similar.",
        "Song & Raghunathan (2020), §5.2, Alg. 5",
        f"{_HERE}:PairSimilarity",
        formula=r"\text{score}(X) = \frac{1}{n - 1} \sum_{i=1}^{n-1} \Phi(x_i) \cdot \Phi(x_{i+1})",
        needs="the vectors of consecutive sentences",
        colour="#0072B2",
        symbol="circle",
    ),
    "learned": MembershipEntry(
        "Learned similarity",
        "The same after a projection learned from a labelled tenth of the books.",
        "Song & Raghunathan (2020), Eq. 10",
        f"{_HERE}:LearnedSimilarity",
        formula=r"\delta'(x_a, x_b) = W_m^\top \Phi(x_a) \cdot W_m^\top \Phi(x_b),\quad"
        r" \mathcal L = -\big[ y \log \sigma(\delta' + c)"
        r" + (1 - y) \log \sigma(-\delta' - c) \big]",
        needs="the vectors of consecutive sentences, and some labelled books",
        colour="#D55E00",
        symbol="diamond",
    ),
}
