"""Registry of the inversion attacks, simplest first."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.core.protocols import Access, InversionAttack
from leakscope.core.registry import Entry, find, make
from leakscope.core.specs import AttackSpec


@dataclass(frozen=True)
class AttackEntry(Entry):
    """The registry entry of an inversion attack: its class, access, cost and description."""

    access: Access
    is_live: bool
    """Whether it answers within about a second, so that it can run while the visitor types."""
    score: str
    """What the score of a recovered word means."""
    is_slow: bool = False
    """Whether it takes seconds per vector, so that studies attack only a sample."""
    writes_sentences: bool = False
    """Whether it answers a sentence, as measured by `study reconstruct`."""

    @property
    def is_baseline(self) -> bool:
        """Whether the attack never uses the vector and so measures guessing."""
        return self.access is Access.NOTHING

    @property
    def reads_sparse(self) -> bool:
        """Whether the attack accepts the sparse vectors of bags of words."""
        return bool(getattr(self.kind, "reads_sparse", False))

    @property
    def answers_in_order(self) -> bool:
        """Whether the order of the answered words is more informative than their scores."""
        return bool(getattr(self.kind, "answers_in_order", False))

    @property
    def cost(self) -> str:
        """The attack's access and speed, as a phrase."""
        pace = "as you type" if self.is_live else "in seconds to a minute"
        return f"needs {self.access.needs}; answers {pace}"


_HERE = "leakscope.core.attacks.inversion"

INVERSION_ATTACKS: dict[str, AttackEntry] = {
    "prior": AttackEntry(
        "Prior only",
        "Never sees the vector and answers the most frequent words: the score of guessing.",
        "baseline",
        access=Access.NOTHING,
        is_live=True,
        score="share of auxiliary texts that contain the word",
        path=f"{_HERE}.prior:PriorAttack",
        formula=r"\text{score}(w) = \frac{1}{|D|} \sum_{x' \in D} \mathbb 1[w \in x']",
        colour="#8A8F96",
        symbol="line-ns-open",
    ),
    "retrieval": AttackEntry(
        "Nearest sentences",
        "Looks up the auxiliary sentences with the most similar vectors and answers their words.",
        "baseline",
        access=Access.PAIRS,
        is_live=True,
        score="similarity-weighted share of the neighbours that contain the word",
        path=f"{_HERE}.retrieval:RetrievalAttack",
        formula=r"w \in \hat W \iff \sum_{x' \in N_k(x)} \cos(\Phi(x), \Phi(x'))\,"
        r"[w \in W(x')] \ \text{is large}",
        colour="#56B4E9",
        symbol="square",
    ),
    "probe": AttackEntry(
        "Word probe",
        "Encodes every word of a vocabulary alone and answers the words nearest to the vector.",
        "ours, zero-shot",
        access=Access.QUERIES,
        is_live=True,
        score="cosine between the vector and the word's encoding, both centred",
        path=f"{_HERE}.probe:ProbeAttack",
        formula=r"\text{score}(w) = \cos\big(\Phi(x) - \mu,\ \Phi(w) - \mu_V\big)",
        colour="#CC79A7",
        symbol="triangle-up",
    ),
    "mlc": AttackEntry(
        "Multi-label classifier",
        "One yes-or-no classifier per word, trained on pairs of texts and vectors.",
        "Song & Raghunathan (2020), Eq. 8",
        access=Access.PAIRS,
        is_live=True,
        score="probability that the text contains the word",
        path=f"{_HERE}.classifiers.mlc:MLCAttack",
        formula=r"\mathcal L = -\sum_{w \in V} \big[ y_w \log \hat y_w + (1-y_w)\log(1-\hat y_w) "
        r"\big],\quad \hat y_w = \sigma(\text{w}_w^\top \Phi(x) + b_w)",
        colour="#0072B2",
        symbol="circle",
    ),
    "msp": AttackEntry(
        "Multi-set prediction",
        "A recurrent network that predicts one word after another, given those it has predicted.",
        "Song & Raghunathan (2020), Eq. 9; Corò (2022), Alg. 1",
        access=Access.PAIRS,
        is_live=True,
        score="probability of the word at the step at which it was chosen",
        path=f"{_HERE}.msp.attack:MSPAttack",
        formula=r"\mathcal L = \sum_{t=1}^{\ell} -\frac{1}{|W_t|} \sum_{w \in W_t} "
        r"\log P(w \mid \Phi(x), \hat w_1 \dots \hat w_{t-1})",
        colour="#E69F00",
        symbol="pentagon",
    ),
    "relaxation": AttackEntry(
        "Continuous relaxation",
        "Optimises a soft text by the encoder's gradients until its vector matches.",
        "Song & Raghunathan (2020), Eq. 5",
        access=Access.WHITE_BOX,
        is_live=False,
        score="softmax weight of the token at its position",
        path=f"{_HERE}.relaxation.attack:RelaxationAttack",
        formula=r"\min_{z}\ \big\| \Phi\big(V^\top \text{softmax}(z_i / T)\big)_{i=1}^{\ell}"
        r" - \Phi(x^*) \big\|^2",
        colour="#B5A900",
        symbol="cross",
        is_slow=True,
    ),
    "staged": AttackEntry(
        "Staged relaxation",
        "Maps the vector to a lower layer first, then optimises a soft text there.",
        "Song & Raghunathan (2020), Eq. 6",
        access=Access.WHITE_BOX,
        is_live=False,
        score="softmax weight of the token at its position",
        path=f"{_HERE}.relaxation.staged:StagedAttack",
        formula=r"\min_{z}\ \big\| \Psi\big(V^\top \text{softmax}(z_i / T)\big)_{i=1}^{\ell}"
        r" - M\,\Phi(x^*) \big\|^2",
        colour="#B5A900",
        symbol="x",
        is_slow=True,
    ),
    "sparse": AttackEntry(
        "Sparse coding",
        "Maps the vector to the mean of its word vectors and explains that mean by few words.",
        "Song & Raghunathan (2020), Eq. 7",
        access=Access.WHITE_BOX,
        is_live=False,
        score="coefficient of the token in the explained mean",
        path=f"{_HERE}.sparse.attack:SparseCodingAttack",
        formula=r"\min_{z \ge 0}\ \big\| V^\top z - M\,\Phi(x^*) \big\|^2 + \lambda \|z\|_1",
        colour="#7A5FA8",
        symbol="hexagon",
    ),
    "probe_mlc": AttackEntry(
        "Probe-started classifier",
        "The multi-label classifier, started from the encoder's encoding of each word.",
        "ours",
        access=Access.PAIRS,
        is_live=True,
        score="probability that the text contains the word",
        path=f"{_HERE}.classifiers.probe_mlc:ProbeMLCAttack",
        formula=r"\text{logit} = W\big(A(e-\mu) + \text{MLP}(e-\mu)\big) + b,"
        r"\quad W_w^{\text{start}} = \Phi(w) - \mu_V",
        colour="#CC79A7",
        symbol="triangle-down",
    ),
    "search": AttackEntry(
        "Re-embedding search",
        "Encodes its answer, ranks all words again by the difference of the two vectors, and keeps "
        "the changes that bring the vectors closer.",
        "ours",
        access=Access.QUERIES,
        is_live=True,
        score="probability that the text contains the word, after re-encoding",
        path=f"{_HERE}.search.attack:SearchAttack",
        formula=r"\begin{aligned} &p \leftarrow \sigma\big(C(e, \Phi(S), S)\big),\ "
        r"\text{then twice: } p_w \leftarrow \sigma(\beta \cdot f_w),\\ "
        r"&f_w \ni \text{logit}\,p_w,\ (|S|+1)\,E_w^\top e,\ \cos(E_w, r),\ a_w,\ "
        r"\log |S|, \dots\\ "
        r"&E_w = B\Phi(S \cup w) - B\Phi(S \setminus w),\quad r = e - B\Phi(S),\\ "
        r"&a = \arg\min_a \big\| r - \textstyle\sum_w a_w E_w \big\|^2 + \rho \|a\|^2 "
        r"\end{aligned}",
        colour="#CC79A7",
        symbol="star",
    ),
    "reconstruct": AttackEntry(
        "Reconstruction",
        "Writes a sentence, encodes it, and keeps the edits that bring its vector closer. It "
        "recovers words in order.",
        "ours",
        access=Access.QUERIES,
        is_live=False,
        score="how often a word with this score is right; for encoders without shipped weights, "
        "the cosine of the sentence",
        path=f"{_HERE}.reconstruct.attack:ReconstructAttack",
        formula=r"\hat x = \arg\max_{x'}\ \cos\big(\Phi(x'), e\big) + \lambda\big(\log P(x') + "
        r"\ell(n)\big),\quad "
        r"\Delta(x' \to x'') \approx \tfrac{1}{\sqrt n} (b_{w''} - b_{w'})^\top "
        r"\big(e - \cos(\Phi(x'), e)\,\Phi(x')\big) + \lambda \Delta \log P",
        colour="#D55E00",
        symbol="diamond",
        version=3,
        is_slow=True,
        writes_sentences=True,
    ),
}


def make_attack(spec: AttackSpec | str) -> InversionAttack:
    """Build an unfitted inversion attack from its spec or registry name.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value outside its range; the message names what is.
    """
    spec = AttackSpec(name=spec) if isinstance(spec, str) else spec
    entry = find(INVERSION_ATTACKS, spec.name, "attack")
    attack: InversionAttack = make(entry, spec.name, dict(spec.settings))
    return attack
