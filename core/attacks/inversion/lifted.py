"""Attack changed vectors (a defence, for example) after mapping them back linearly.

An attacker who can query the encoder has pairs of changed and unchanged vectors for their own
texts. A linear map between the two lets every attack on the encoder read changed vectors of any
width; such an attack can then be trained further on mapped vectors.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import bind, check_fitted, check_vectors
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from leakscope.core.results import Recovery
from leakscope.core.text import Vocabulary

PENALTIES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Of least squares, as shares of the mean variance of a number."""


@dataclass(frozen=True)
class Lift:
    """A linear map from changed vectors back to the original ones: x ↦ μ + (x − ν)·M.

    Under independent noise this is the Wiener filter; for fewer dimensions, the best linear
    estimate. Where nothing was changed, it is the identity.
    """

    weight: NDArray[np.float32]
    """M, shape (m, d)."""
    from_centre: NDArray[np.float32]
    """ν, shape (m,)."""
    to_centre: NDArray[np.float32]
    """μ, shape (d,)."""

    @classmethod
    def fit(cls, changed: Vectors, unchanged: Vectors) -> Lift:
        """Fit the map back from (n, m) changed to (n, d) original vectors of the same texts.

        The penalty is the one that predicts the last tenth best.

        Raises
        ------
        InvalidInputError
            Fewer than 20 pairs, or as many on neither side.
        """
        if len(changed) != len(unchanged) or len(changed) < 20:
            raise InvalidInputError(
                "A map between vectors needs at least 20 pairs, got "
                f"{len(changed)} and {len(unchanged)} vectors."
            )
        n = len(changed) - max(1, len(changed) // 10)
        tried = cls._solve(changed[:n], unchanged[:n], PENALTIES)
        errors = [float(np.mean((lift(changed[n:]) - unchanged[n:]) ** 2)) for lift in tried]
        (best,) = cls._solve(changed, unchanged, [PENALTIES[int(np.argmin(errors))]])
        return best

    @classmethod
    def _solve(cls, changed: Vectors, unchanged: Vectors, penalties: Sequence[float]) -> list[Lift]:
        """Fit one map for each ridge penalty, from one set of sums over the vectors."""
        nu, mu = changed.mean(0, dtype=np.float64), unchanged.mean(0, dtype=np.float64)
        x, y = changed - nu, unchanged - mu
        gram, products = x.T @ x, x.T @ y
        scale = max(float(np.trace(gram)) / len(gram), 1e-12)
        weights = (
            np.linalg.solve(gram + penalty * scale * np.eye(len(gram)), products)
            for penalty in penalties
        )
        return [
            cls(weight.astype(np.float32), nu.astype(np.float32), mu.astype(np.float32))
            for weight in weights
        ]

    def __call__(self, vectors: Vectors) -> Vectors:
        """Map changed vectors back to the original space, shape (n, d)."""
        lifted: Vectors = ((vectors - self.from_centre) @ self.weight + self.to_centre).astype(
            np.float32
        )
        return lifted


class LiftedEncoder:
    """A changed encoder with its vectors mapped back to the space of `own`.

    Attacks that are fitted on `own` take it for that encoder: it has its name and fingerprint.

    Parameters
    ----------
    own : Encoder
        In whose space the vectors are to lie.
    changed : Encoder
        The same with its vectors changed.
    lift : Lift
        From the latter to the former.
    """

    def __init__(self, own: Encoder, changed: Encoder, lift: Lift) -> None:
        self.name, self.fingerprint, self.dimension = own.name, own.fingerprint, own.dimension
        self.base, self._lift = changed, lift

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts by the changed encoder and map the vectors back, (n, d)."""
        return self._lift(self.base.encode(texts, on_progress))


@dataclass(eq=False)
class LiftedAttack:
    """An attack on an encoder, applied to changed vectors of that encoder after mapping them back.

    Parameters
    ----------
    attack : InversionAttack
        Fitted on the encoder whose vectors they were.
    lift : Lift
        Leads changed vectors back.
    queried : Encoder
        What encodes the attack's own texts while it answers: an encoder that has the space and
        the fingerprint that `attack` was fitted on.
    changed : Encoder
        Whose vectors are under attack.
    """

    attack: InversionAttack
    lift: Lift
    queried: Encoder
    changed: Encoder

    vocabulary_: Vocabulary = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Take over the vocabulary of the attack, and bind it to the changed encoder.

        The attack's confidence calibration holds for unchanged vectors only, so it is dropped.
        """
        if getattr(self.attack, "confidence_", None) is not None:
            unsure: Any = copy.copy(self.attack)
            unsure.confidence_ = None
            self.attack = unsure
        bind(self, self.changed, getattr(self.attack, "vocabulary_", None))

    def fit(self, *_: Any, **__: Any) -> LiftedAttack:
        """Return self unchanged: attack and map are already fitted."""
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Map changed vectors back, invert them and return an answer for each."""
        vectors = check_fitted(self, encoder, vectors)
        back = check_vectors(self.lift(vectors), self.queried.dimension)
        return self.attack.invert(self.queried, back, on_progress)
