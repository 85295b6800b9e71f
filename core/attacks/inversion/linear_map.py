"""The map M from embedding Φ(x) to a lower layer Ψ(x), by resumable least squares (SR20 §3.1)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, WhiteBoxEncoder, no_progress
from leakscope.core.storage.artifacts import load_artifact, save_artifact
from leakscope.core.training.checkpoint import checkpoint_errors, read_count


@dataclass(frozen=True)
class LinearMap:
    """The linear map M from embeddings to a lower layer (Song & Raghunathan 2020, §3.1, Alg. 1).

    Parameters
    ----------
    weight : ndarray of float32, shape (d, hidden size)
    intercept : ndarray of float32, shape (hidden size,)
    layer : int
        The layer ℓ that is predicted; 0 is the mean of token vectors.
    r_squared : float
        Share of the variance of Ψ(x) explained on texts held out of the fit.
    n_texts : int
        Texts fitted and held out together.
    """

    weight: NDArray[np.float32]
    intercept: NDArray[np.float32]
    layer: int
    r_squared: float
    n_texts: int

    @classmethod
    def fit(
        cls,
        encoder: WhiteBoxEncoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        layer: int = 0,
        ridge: float = 0.3,
        held_out: float = 0.05,
        seed: int = 0,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Encode auxiliary texts and fit M by ridge regression: min Σ ‖M(Φ(x_i)) − Ψ(x_i)‖².

        Implements Song & Raghunathan (2020), Alg. 1 line 3, in closed form.
        Differs from the paper: adds an intercept and a ridge penalty (encoders may have
        constant output dimensions), and measures R² on a share `held_out` of the texts.

        Parameters
        ----------
        vectors : ndarray, shape (n, d), optional
            Φ of the texts where it is known; encoded here otherwise.
        seed : int
            Of the choice of held-out texts.
        checkpoint_dir : str, optional
            The folder of the sums' checkpoint, from which a later call resumes.

        Raises
        ------
        InvalidInputError
            Fewer than two texts, an unknown layer, or vectors that do not match the texts.
        ArtifactError
            The checkpoint is damaged or belongs to other texts or settings.
        StoppedError
            Raised by `on_progress` and passed on, after a checkpoint was written.
        """
        _check_fit(encoder, texts, vectors, layer)
        is_held_out = np.random.default_rng(seed).random(len(texts)) < held_out
        is_held_out[:2] = False
        run = LayerSums(encoder, texts, layer, is_held_out, checkpoint_dir)
        run.run(vectors, on_progress)
        solution = run.fitted.solve(ridge)
        return cls(
            weight=solution[:-1].astype(np.float32),
            intercept=solution[-1].astype(np.float32),
            layer=layer,
            r_squared=run.held_out.r_squared(solution),
            n_texts=len(texts),
        )

    def apply(self, vectors: NDArray[Any]) -> Vectors:
        """Map embeddings to the lower layer: M(Φ(x)), float32 (n, hidden size)."""
        return np.asarray(vectors, dtype=np.float32) @ self.weight + self.intercept

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the map's weight and intercept as arrays to store, by name."""
        return {"map_weight": self.weight, "map_intercept": self.intercept}

    def meta(self) -> dict[str, Any]:
        """Return the JSON-able metadata to store: layer, R² and number of texts."""
        return {"layer": self.layer, "r_squared": self.r_squared, "n_texts": self.n_texts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Build the map from the arrays and metadata that `arrays` and `meta` returned."""
        weight = arrays["map_weight"].astype(np.float32)
        return cls(weight, arrays["map_intercept"].astype(np.float32), **meta)


def _check_fit(
    encoder: WhiteBoxEncoder, texts: Sequence[str], vectors: Vectors | None, layer: int
) -> None:
    """Raise InvalidInputError for too few texts, an unknown layer or vectors of another shape."""
    if len(texts) < 2:
        raise InvalidInputError(
            f"texts must contain at least 2 texts to fit a map, got {len(texts)}."
        )
    if not 0 <= layer <= encoder.n_layers:
        raise InvalidInputError(
            f"layer must lie in [0, {encoder.n_layers}] for {encoder.name}, got {layer}."
        )
    if vectors is not None and vectors.shape != (len(texts), encoder.dimension):
        raise InvalidInputError(
            f"vectors must have shape ({len(texts)}, {encoder.dimension}), one row per text, got "
            f"{vectors.shape}."
        )


CHUNK = 2048
"""Texts encoded at a time; memory does not grow with the number of texts."""
CHECKPOINT_SECONDS = 60.0


@dataclass
class Moments:
    """Running sums over pairs (x, y), in float64, that give least squares and its R².

    Parameters
    ----------
    n_inputs, n_outputs : int
        Dimensions of x and of y.
    """

    n_inputs: int
    n_outputs: int
    n: int = 0
    xx: NDArray[np.float64] = field(init=False)
    xy: NDArray[np.float64] = field(init=False)
    yy: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Start all sums at zero."""
        self.xx = np.zeros((self.n_inputs + 1, self.n_inputs + 1))
        self.xy = np.zeros((self.n_inputs + 1, self.n_outputs))
        self.yy = np.zeros(self.n_outputs)

    def add(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        """Add pairs to the sums: x of shape (n, n_inputs), y of shape (n, n_outputs)."""
        one = np.c_[x, np.ones(len(x))].astype(np.float64)
        wide = y.astype(np.float64)
        self.xx += one.T @ one
        self.xy += one.T @ wide
        self.yy += (wide**2).sum(0)
        self.n += len(x)

    def solve(self, ridge: float) -> NDArray[np.float64]:
        """Solve ridge regression from the sums: (n_inputs + 1, n_outputs), intercept last.

        Minimises Σ‖y − ŷ‖² + ridge·σ²·‖weights‖², σ² being the total variance of x, so that
        `ridge` does not depend on the scale of the encoder. The intercept is not shrunk.

        Raises
        ------
        InvalidInputError
            All x are equal: nothing can be learned from them.
        """
        mean: NDArray[Any] = self.xx[-1, :-1] / self.n
        variance = np.trace(self.xx[:-1, :-1]) / self.n - (mean**2).sum()
        penalty = np.full(self.n_inputs + 1, ridge * variance)
        penalty[-1] = 0.0
        try:
            solution: NDArray[Any] = np.linalg.solve(self.xx + np.diag(penalty), self.xy)
        except np.linalg.LinAlgError as error:
            raise InvalidInputError(
                f"No map can be fitted: the vectors of the {self.n:,} texts are equal. Give other "
                "texts."
            ) from error
        return solution

    def r_squared(self, solution: NDArray[np.float64]) -> float:
        """Return R² of a fitted solution over the added pairs; NaN if there are none."""
        if not self.n:
            return float("nan")
        fit = 2 * (solution * self.xy).sum() - (solution * (self.xx @ solution)).sum()
        total = self.yy.sum() - (self.xy[-1] ** 2).sum() / self.n
        return float(1 - (self.yy.sum() - fit) / total)


class LayerSums:
    """A resumable run that sums moments of (Φ(x), Ψ(x)) over fitted and held-out texts."""

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        texts: Sequence[str],
        layer: int,
        is_held_out: NDArray[np.bool_],
        checkpoint_dir: str | None,
    ) -> None:
        self.encoder, self.texts, self.layer, self.is_held_out = encoder, texts, layer, is_held_out
        hidden = int(encoder.token_vectors.shape[1])
        self.fitted = Moments(encoder.dimension, hidden)
        self.held_out = Moments(encoder.dimension, hidden)
        self.done = 0
        self.folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        if self.folder is not None:
            digest = hashlib.sha256(is_held_out.tobytes())
            for text in texts:
                digest.update(text.encode() + b"\0")
            self.identity = [encoder.fingerprint, layer, digest.hexdigest()]
            self.resume(self.folder)

    def run(self, vectors: Vectors | None, on_progress: OnProgress) -> None:
        """Encode all remaining texts and sum them, with regular checkpoints and on interruption."""
        last_save = time.monotonic()
        try:
            while self.done < len(self.texts):
                self.step(vectors)
                on_progress(
                    self.done / len(self.texts),
                    f"Fitted the map to layer {self.layer} on {self.done:,} of "
                    f"{len(self.texts):,} texts",
                )
                if time.monotonic() - last_save > CHECKPOINT_SECONDS:
                    self.save()
                    last_save = time.monotonic()
        except BaseException:
            self.save()
            raise

    def step(self, vectors: Vectors | None) -> None:
        """Encode the next CHUNK of texts and add them to the sums."""
        rows = slice(self.done, self.done + CHUNK)
        texts, out = self.texts[rows], self.is_held_out[rows]
        x = self.encoder.encode(texts) if vectors is None else vectors[rows]
        y = self.encoder.encode_layer(texts, self.layer)
        self.fitted.add(x[~out], y[~out])
        self.held_out.add(x[out], y[out])
        self.done += len(texts)

    def save(self) -> None:
        """Write the sums to the checkpoint folder, if one was given."""
        if self.folder is None:
            return
        arrays: dict[str, NDArray[Any]] = {}
        for name, part in (("fitted", self.fitted), ("held_out", self.held_out)):
            arrays |= {f"{name}.{k}": getattr(part, k) for k in ("xx", "xy", "yy")}
        counts = {"done": self.done, "n": [self.fitted.n, self.held_out.n]}
        save_artifact(self.folder, arrays, {"identity": self.identity, **counts})

    def resume(self, folder: Path) -> None:
        """Restore the sums from a checkpoint in the folder, if there is one."""
        if not (folder / "model.json").exists():
            return
        arrays, meta = load_artifact(folder)
        if meta.get("identity") != self.identity:
            raise ArtifactError(
                f"{folder} contains the checkpoint of another run (other texts, layer or encoder). "
                "Choose another folder. The other run resumes when its command runs again."
            )
        with checkpoint_errors(folder):
            self._restore(arrays, meta)

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        """Check a checkpoint's arrays and metadata, and set the sums from them."""
        self.done = read_count(meta, "done", len(self.texts))
        parts = {"fitted": self.fitted, "held_out": self.held_out}
        for (name, part), n in zip(parts.items(), meta["n"], strict=True):
            part.n = read_count({name: n}, name, self.done)
            for key in ("xx", "xy", "yy"):
                found = arrays[f"{name}.{key}"]
                if found.shape != getattr(part, key).shape or found.dtype != np.float64:
                    raise ValueError(f"{name}.{key} is {found.dtype} of shape {found.shape}")
                setattr(part, key, found)
            if part.xx[-1, -1] != part.n:  # each text counts once
                raise ValueError(
                    f"{name} contains sums over {part.xx[-1, -1]:g} texts, not over {n}"
                )
        if self.fitted.n + self.held_out.n != self.done:
            raise ValueError(f"{self.fitted.n} and {self.held_out.n} texts are not {self.done}")
