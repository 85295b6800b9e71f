"""An attack on vectors that were changed: led back to the encoder's own space first.

An attacker who may use the encoder has pairs of changed and unchanged vectors for texts of their
own. A linear map between the two makes every attack that reads the encoder read what was changed,
whatever its width, and it is where such an attack is then trained on.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.fitted import bind, check_fitted, check_vectors
from core.errors import InvalidInputError
from core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from core.results import Recovery
from core.text import Vocabulary

__all__ = ["Lift", "LiftedAttack", "LiftedEncoder"]

PENALTIES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Of least squares, as shares of the mean variance of a number."""


@dataclass(frozen=True)
class Lift:
    """A linear map from changed vectors to those that they were: x ↦ μ + (x − ν)·M.

    Under independent noise this is Wiener's filter; of fewer dimensions, the conditional mean
    as far as it is linear. Where nothing was changed it changes nothing.
    """

    weight: NDArray[np.float32]
    """M, shape (m, d)."""
    from_centre: NDArray[np.float32]
    """ν, shape (m,)."""
    to_centre: NDArray[np.float32]
    """μ, shape (d,)."""

    @classmethod
    def fit(cls, changed: Vectors, unchanged: Vectors) -> Lift:
        """Fit on the (n, m) and (n, d) vectors of the same texts.

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
        """Return the map under each penalty; the sums over all rows are the same for all."""
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
        """Return the vectors led back, shape (n, d)."""
        lifted: Vectors = ((vectors - self.from_centre) @ self.weight + self.to_centre).astype(
            np.float32
        )
        return lifted


class LiftedEncoder:
    """An encoder behind a change, led back to the space of `own`, for which it can stand.

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
        """Return the (n, d) vectors of n texts, changed and led back."""
        return self._lift(self.base.encode(texts, on_progress))


@dataclass(eq=False)
class LiftedAttack:
    """An attack on an encoder, turned on vectors of the same encoder that were changed.

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
        """Take over the words of the attack, and the encoder under attack.

        How sure it is was learned from vectors as they are, whose cosines mean more: it is not
        told of changed ones.
        """
        if getattr(self.attack, "confidence_", None) is not None:
            unsure: Any = copy.copy(self.attack)
            unsure.confidence_ = None
            self.attack = unsure
        bind(self, self.changed, getattr(self.attack, "vocabulary_", None))

    def fit(self, *_: Any, **__: Any) -> LiftedAttack:
        """Return itself: its parts are fitted already."""
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the words read from each changed vector."""
        vectors = check_fitted(self, encoder, vectors)
        back = check_vectors(self.lift(vectors), self.queried.dimension)
        return self.attack.invert(self.queried, back, on_progress)
