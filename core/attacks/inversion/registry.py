"""The attacks, in the order in which a reader should meet them."""

from __future__ import annotations

from dataclasses import dataclass

from core.protocols import Access, InversionAttack
from core.registry import Entry, find, make
from core.specs import AttackSpec

__all__ = ["INVERSION_ATTACKS", "AttackEntry", "make_attack"]


@dataclass(frozen=True)
class AttackEntry(Entry):
    """What a user should know before choosing an attack, and where its class is."""

    access: Access
    is_live: bool
    """Answers within about the time of encoding the text, so it can run as one types."""
    score: str
    """What the score of a recovered word means."""
    is_slow: bool = False
    """Takes seconds a vector, so that studies give it fewer."""

    @property
    def reads_sparse(self) -> bool:
        """Whether it reads the sparse vectors of bags of words."""
        return bool(getattr(self.kind, "reads_sparse", False))


_HERE = "core.attacks.inversion"

INVERSION_ATTACKS: dict[str, AttackEntry] = {
    "prior": AttackEntry(
        "Prior only",
        "Never looks at the vector and answers the most frequent words: what guessing gives.",
        "baseline",
        access=Access.NOTHING,
        is_live=True,
        score="share of auxiliary texts that hold the word",
        path=f"{_HERE}.prior:PriorAttack",
    ),
    "retrieval": AttackEntry(
        "Nearest sentences",
        "Looks up the auxiliary sentences with the most similar vectors and answers their words.",
        "baseline",
        access=Access.PAIRS,
        is_live=True,
        score="similarity-weighted share of the neighbours that hold the word",
        path=f"{_HERE}.retrieval:RetrievalAttack",
    ),
    "probe": AttackEntry(
        "Word probe",
        "Encodes every word of a list alone and answers the words nearest to the vector.",
        "ours, zero-shot",
        access=Access.QUERIES,
        is_live=True,
        score="cosine between the vector and the word's own encoding, both less a mean",
        path=f"{_HERE}.probe:ProbeAttack",
    ),
    "mlc": AttackEntry(
        "Multi-label classifier",
        "One yes-or-no classifier per word, trained on pairs of texts and vectors.",
        "Song & Raghunathan (2020), Eq. 8",
        access=Access.PAIRS,
        is_live=True,
        score="probability that the text holds the word",
        path=f"{_HERE}.classifiers.mlc:MLCAttack",
    ),
    "msp": AttackEntry(
        "Multi-set prediction",
        "A recurrent network that names one word after another, knowing which it has named.",
        "Song & Raghunathan (2020), Eq. 9; Corò (2022), Alg. 1",
        access=Access.PAIRS,
        is_live=True,
        score="probability of the word at the step at which it was chosen",
        path=f"{_HERE}.msp.attack:MSPAttack",
    ),
    "relaxation": AttackEntry(
        "Continuous relaxation",
        "Follows the encoder's gradients to a soft text whose vector matches.",
        "Song & Raghunathan (2020), Eq. 5",
        access=Access.WHITE_BOX,
        is_live=False,
        is_slow=True,
        score="softmax weight of the token at its position",
        path=f"{_HERE}.relaxation.attack:RelaxationAttack",
    ),
    "staged": AttackEntry(
        "Staged relaxation",
        "Maps the vector to a lower layer first, then follows the gradients there.",
        "Song & Raghunathan (2020), Eq. 6",
        access=Access.WHITE_BOX,
        is_live=False,
        is_slow=True,
        score="softmax weight of the token at its position",
        path=f"{_HERE}.relaxation.staged:StagedAttack",
    ),
    "sparse": AttackEntry(
        "Sparse coding",
        "Maps the vector to the mean of its word vectors and explains that mean by few words.",
        "Song & Raghunathan (2020), Eq. 7",
        access=Access.WHITE_BOX,
        is_live=False,
        score="coefficient of the token in the explained mean",
        path=f"{_HERE}.sparse.attack:SparseCodingAttack",
    ),
    "probe_mlc": AttackEntry(
        "Probe-started classifier",
        "The multi-label classifier, started from the encoder's own encoding of each word.",
        "ours",
        access=Access.PAIRS,
        is_live=True,
        score="probability that the text holds the word",
        path=f"{_HERE}.classifiers.probe_mlc:ProbeMLCAttack",
    ),
    "search": AttackEntry(
        "Re-embedding search",
        "Encodes its own answers and keeps the changes that bring the vector closer.",
        "ours",
        access=Access.QUERIES,
        is_live=False,
        score="probability that the text holds the word, after re-encoding",
        path=f"{_HERE}.search.attack:SearchAttack",
    ),
}


def make_attack(spec: AttackSpec | str) -> InversionAttack:
    """Build an unfitted attack from its spec.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value outside its range; the message names what is.
    """
    spec = AttackSpec(name=spec) if isinstance(spec, str) else spec
    entry = find(INVERSION_ATTACKS, spec.name, "attack")
    attack: InversionAttack = make(entry, spec.name, dict(spec.settings))
    return attack
