"""Staged relaxation: map the vector to a lower layer, then relax against that (SR20 Eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import check_shapes
from leakscope.core.attacks.inversion.linear_map import LinearMap
from leakscope.core.attacks.inversion.relaxation.attack import TUNED as RELAXATION_TUNED
from leakscope.core.attacks.inversion.relaxation.attack import RelaxationAttack
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.specs import setting

TUNED: dict[str, Any] = {
    **RELAXATION_TUNED,
    "length": 24,
    "candidates": "tokens",
    "shortlist": 2000,
    "layer": 0,
    "stretch": True,
}
"""Settings for MiniLM. A lower layer holds every token, so all positions and tokens are needed;
without the stretch, the target lies nearer to the mean than any text's."""


@dataclass
class StagedAttack(RelaxationAttack):
    """A relaxation attack on a lower layer, to which a learned map M takes the vector.

    Implements Song & Raghunathan (2020), Eq. 6 and Alg. 1 lines 2–3 and 10–14: min over Z of
    ‖Ψ(relaxed(Z, T)) − M(Φ(x*))‖².
    Differs from the paper: as RelaxationAttack; M has an intercept and a small ridge. The paper
    does not say which layer: `layer` is a setting. `stretch` (off by default) undoes the
    shrinkage of least squares towards the mean, by 1/√R².
    """

    layer: int = setting(
        1,
        "ℓ, the lower layer that M predicts; 0 for the mean of token vectors",
        low=0,
        search=Categorical((0, 1, 2, 3)),
    )
    ridge: float = setting(
        0.3,
        "Ridge penalty of the map to the layer",
        low=1e-6,
        high=1e6,
        search=Uniform(1e-2, 1e2, is_log=True),
    )
    stretch: bool = setting(
        False,
        "Restore the variance that least squares removes from mapped vectors",
        search=Categorical((False, True)),
    )

    _name: ClassVar[str] = "StagedAttack"

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Fit the map M to the lower layer, and the mean length and vector, on auxiliary texts.

        Raises
        ------
        InvalidInputError
            The encoder is a black box, it has no such layer, or texts and vectors do not match.
        """
        self.map_ = LinearMap.fit(
            require_white_box(encoder, self._name),
            texts,
            vectors,
            layer=self.layer,
            ridge=self.ridge,
            seed=self.seed,
            on_progress=on_progress,
            checkpoint_dir=checkpoint_dir,
        )
        return super().fit(encoder, texts, vectors)

    # Unlike its parent it cannot answer without training: M has to be learned.
    open = None  # type: ignore[assignment]

    def _targets(self, vectors: Vectors) -> tuple[Vectors, int | None, Vectors]:
        """Map vectors to the layer; return them, the layer, and the mapped mean vector."""
        centre = self.map_.apply(self.mean_vector_[None])[0]
        mapped = self.map_.apply(vectors)
        if self.stretch and self.map_.r_squared > 0:
            # A prediction varies less than its target, by R²; hard tokens do not.
            mapped = centre + (mapped - centre) / np.float32(self.map_.r_squared**0.5)
        return mapped, self.map_.layer, centre

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: M and the mean vector; metadata with mean length and encoder."""
        arrays, meta = super().state()
        return {**arrays, **self.map_.arrays()}, {**meta, "map": self.map_.meta()}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        super().load_state(arrays, meta)
        check_shapes(self, arrays, {"map_weight": "d h", "map_intercept": "h"})
        self.map_ = LinearMap.from_arrays(arrays, meta["map"])
        return self
