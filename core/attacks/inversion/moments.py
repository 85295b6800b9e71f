"""Sums over pairs of vectors, from which least squares follows: bounded memory, resumable."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ArtifactError, InvalidInputError
from core.protocols import OnProgress, Vectors, WhiteBoxEncoder
from core.store import load_artifact, save_artifact
from core.training.checkpoint import refusing, whole

__all__ = ["LayerSums", "Moments"]

CHUNK = 2048
"""Texts encoded at a time; memory does not grow with the number of texts."""
CHECKPOINT_SECONDS = 60.0


@dataclass
class Moments:
    """Sums over pairs (x, y) from which least squares and its R² follow, in float64.

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
        self.xx = np.zeros((self.n_inputs + 1, self.n_inputs + 1))
        self.xy = np.zeros((self.n_inputs + 1, self.n_outputs))
        self.yy = np.zeros(self.n_outputs)

    def add(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        """Count pairs: x of shape (n, n_inputs), y of shape (n, n_outputs)."""
        one = np.c_[x, np.ones(len(x))].astype(np.float64)
        wide = y.astype(np.float64)
        self.xx += one.T @ one
        self.xy += one.T @ wide
        self.yy += (wide**2).sum(0)
        self.n += len(x)

    def solve(self, ridge: float) -> NDArray[np.float64]:
        """Return the (n_inputs + 1, n_outputs) least-squares solution, intercept last.

        Minimises Σ‖y − ŷ‖² + ridge·σ²·‖weights‖², σ² being the total variance of x, so that
        `ridge` does not depend on the scale of the encoder. The intercept is not shrunk.

        Raises
        ------
        InvalidInputError
            All x are alike: nothing can be learned from them.
        """
        mean: NDArray[Any] = self.xx[-1, :-1] / self.n
        variance = np.trace(self.xx[:-1, :-1]) / self.n - (mean**2).sum()
        penalty = np.full(self.n_inputs + 1, ridge * variance)
        penalty[-1] = 0.0
        try:
            solution: NDArray[Any] = np.linalg.solve(self.xx + np.diag(penalty), self.xy)
        except np.linalg.LinAlgError as error:
            raise InvalidInputError(
                f"No map can be fitted: the vectors of the {self.n:,} texts do not differ. Give "
                "other texts."
            ) from error
        return solution

    def r_squared(self, solution: NDArray[np.float64]) -> float:
        """Return 1 − Σ‖y − ŷ‖² / Σ‖y − ȳ‖² over the counted pairs; NaN for none."""
        if not self.n:
            return float("nan")
        fit = 2 * (solution * self.xy).sum() - (solution * (self.xx @ solution)).sum()
        total = self.yy.sum() - (self.xy[-1] ** 2).sum() / self.n
        return float(1 - (self.yy.sum() - fit) / total)


class LayerSums:
    """The moments of (Φ(x), Ψ(x)) over texts, fitted and held out apart, kept over a kill."""

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

    def go(self, vectors: Vectors | None, on_progress: OnProgress) -> None:
        """Add all texts that are not yet counted; stopped or killed, keep what is done."""
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
        """Add the next CHUNK of texts."""
        rows = slice(self.done, self.done + CHUNK)
        texts, out = self.texts[rows], self.is_held_out[rows]
        x = self.encoder.encode(texts) if vectors is None else vectors[rows]
        y = self.encoder.encode_layer(texts, self.layer)
        self.fitted.add(x[~out], y[~out])
        self.held_out.add(x[out], y[out])
        self.done += len(texts)

    def save(self) -> None:
        """Write the sums, if there is where to."""
        if self.folder is None:
            return
        arrays: dict[str, NDArray[Any]] = {}
        for name, part in (("fitted", self.fitted), ("held_out", self.held_out)):
            arrays |= {f"{name}.{k}": getattr(part, k) for k in ("xx", "xy", "yy")}
        counts = {"done": self.done, "n": [self.fitted.n, self.held_out.n]}
        save_artifact(self.folder, arrays, {"identity": self.identity, **counts})

    def resume(self, folder: Path) -> None:
        """Take up the sums of a checkpoint, if there is one."""
        if not (folder / "model.json").exists():
            return
        arrays, meta = load_artifact(folder)
        if meta.get("identity") != self.identity:
            raise ArtifactError(
                f"{folder} holds the checkpoint of another run (other texts, layer or encoder). "
                "Choose another folder; that run goes on when its own command runs again."
            )
        with refusing(folder):
            self._take_up(arrays, meta)

    def _take_up(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        self.done = whole(meta, "done", len(self.texts))
        parts = {"fitted": self.fitted, "held_out": self.held_out}
        for (name, part), n in zip(parts.items(), meta["n"], strict=True):
            part.n = whole({name: n}, name, self.done)
            for key in ("xx", "xy", "yy"):
                found = arrays[f"{name}.{key}"]
                if found.shape != getattr(part, key).shape or found.dtype != np.float64:
                    raise ValueError(f"{name}.{key} is {found.dtype} of shape {found.shape}")
                setattr(part, key, found)
            if part.xx[-1, -1] != part.n:  # each text counts as one
                raise ValueError(f"{name} holds sums of {part.xx[-1, -1]:g} texts, not of {n}")
        if self.fitted.n + self.held_out.n != self.done:
            raise ValueError(f"{self.fitted.n} and {self.held_out.n} texts are not {self.done}")
