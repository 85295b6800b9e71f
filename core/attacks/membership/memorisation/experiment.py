"""One experiment: canaries planted in private texts, a model trained on them, what it gives away.

What is compared with is fixed before the training: the fillings of each format, and controls,
which are canaries of the same format that are planted nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.membership.memorisation.canaries import Canary
from core.attacks.membership.memorisation.exposure import Measured, exposure_of_rank, measure
from core.attacks.membership.memorisation.extraction import SAMPLERS, Extraction, extract
from core.attacks.membership.memorisation.network import Network
from core.attacks.membership.memorisation.perplexity import log_perplexities
from core.attacks.membership.memorisation.private import train_model
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.texts import (
    check_private_tokens,
    check_settings,
    checked,
    split_held_out,
)
from core.attacks.membership.memorisation.tokens import Tokens, make_tokens
from core.attacks.membership.memorisation.training import (
    bits_a_token,
    digest_texts,
    train_network,
)
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.results import Interval, Score
from core.training.accounting import Privacy, Promise

__all__ = ["EpochFound", "PlantedRun", "plant", "run_planted", "run_private"]

N_CONTROLS = 50
"""Canaries of each format that are planted nowhere."""

_SMALLER = 4
"""How many times fewer units the smaller model has."""


@dataclass(frozen=True)
class EpochFound:
    """What a model gives away after an epoch.

    Attributes
    ----------
    bits_a_token : float
        Of held-out texts: how well it has learned to read.
    canaries : tuple of Measured
        Of each canary.
    controls : tuple of float
        Exposures of canaries that were planted nowhere.
    """

    epoch: int
    bits_a_token: float
    canaries: tuple[Measured, ...]
    controls: tuple[float, ...]

    @property
    def exposure(self) -> float:
        """The mean exposure of the canaries, in bits."""
        return float(np.mean([found.exposure.value for found in self.canaries]))


@dataclass(frozen=True)
class PlantedRun:
    """A model trained with canaries, by one seed.

    Attributes
    ----------
    n_texts : int
        Private sentences trained on, canaries not counted.
    extractions : tuple of Extraction
        By sampler; none where no texts were to be drawn.
    """

    seed: int
    n_texts: int
    canaries: tuple[Canary, ...]
    epochs: tuple[EpochFound, ...]
    extractions: tuple[Extraction, ...]


def plant(texts: Sequence[str], canaries: Sequence[Canary], insertions: int) -> list[str]:
    """Return the texts with each canary so many times behind them; the order of training is drawn.

    Examples
    --------
    >>> plant(["a"], [Canary((("pin ",), ("0", "1")), (0, 1), "")], 2)
    ['a', 'pin 1', 'pin 1']
    """
    return [*texts, *(canary.text for canary in canaries for _ in range(insertions))]


def run_planted(
    texts: Sequence[str],
    canaries: Sequence[Canary],
    settings: MemorisationSettings,
    seed: int,
    *,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> PlantedRun:
    """Plant canaries, train, and measure after each epoch; then draw texts and rank them.

    A run that was killed goes on from its checkpoint; finished epochs are not trained or measured
    again.

    Raises
    ------
    InvalidInputError
        Too few texts, or a setting out of its range.
    StoppedError
        Raised by `on_progress`, after a checkpoint was written.
    """
    known, held_out, tokens, scoring = _prepared(texts, canaries, settings, seed)
    planted = plant(known, canaries, settings.insertions)
    n_drawn = settings.n_generated
    share = 0.8 if n_drawn else 1.0
    network, found = train_network(
        planted, held_out, tokens, settings, seed, measure=scoring.measured,
        measured=digest_texts([repr((each.parts, each.secret)) for each in canaries]), said=_said,
        checkpoint_dir=checkpoint_dir and checkpoint_dir / "model",
        on_progress=_part(on_progress, 0.0, share),
    )  # fmt: skip
    drawn: tuple[Extraction, ...] = ()
    if n_drawn:
        small = replace(settings, hidden=max(8, settings.hidden // _SMALLER // 4 * 4))
        smaller, _ = train_network(
            planted, held_out, tokens, small, seed,
            checkpoint_dir=checkpoint_dir and checkpoint_dir / "smaller",
            on_progress=_part(on_progress, share, 0.95),
        )  # fmt: skip
        drawn = _extracted((network, smaller), tokens, canaries, settings, seed, on_progress)
    epochs = tuple(_epoch_of(i, stored) for i, stored in enumerate(found, 1))
    return PlantedRun(seed, len(known), tuple(canaries), epochs, drawn)


def run_private(
    texts: Sequence[str],
    canaries: Sequence[Canary],
    settings: MemorisationSettings,
    seed: int,
    *,
    epsilon: float,
    delta: float,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[EpochFound, Privacy | None, int]:
    """Plant canaries, train with differential privacy, and measure the model at the end.

    Returned last is how many private sentences it was trained on, canaries not counted. A canary
    that is planted m times is m texts. Of all of them together less is promised than ε, and less
    than m·ε: `Privacy.of_copies` tells what.

    Parameters
    ----------
    epsilon : float
        0 for the same training without clipping and noise.

    Raises
    ------
    InvalidInputError
        Words as tokens, whose vocabulary is counted in the texts and would cost ε as well; and as
        `run_planted` and `train_model`.
    MissingDependencyError
        opacus is not installed, and ε was asked for.
    """
    check_private_tokens(settings)
    known, held_out, tokens, scoring = _prepared(texts, canaries, settings, seed)
    planted = plant(known, canaries, settings.insertions)
    promise = None
    if epsilon:
        promise = Promise(epsilon=epsilon, delta=delta, n_expected=len(planted))
    network, privacy = train_model(
        planted, tokens, settings, seed, promise=promise, n_expected=len(planted),
        checkpoint_dir=checkpoint_dir, on_progress=on_progress,
    )  # fmt: skip
    bits = bits_a_token(network, tokens, held_out, settings.max_length)
    found = {"bits_a_token": bits, **scoring.measured(network)}
    return _epoch_of(settings.epochs, found), privacy, len(known)


def _prepared(
    texts: Sequence[str], canaries: Sequence[Canary], settings: MemorisationSettings, seed: int
) -> tuple[list[str], list[str], Tokens, _Scoring]:
    """Return texts to train on and others, the tokens of both, and what measures a model."""
    check_settings(settings)
    known, held_out = split_held_out(checked(list(texts)), seed)
    compared = [canary.others(_limit(canary, settings), seed) for canary in canaries]
    also = (text for canary, others in zip(canaries, compared, strict=True)
            for text in (canary.text, *others))  # fmt: skip
    tokens = make_tokens(settings.tokens, known, also, settings.vocabulary_size)
    _check_lengths(canaries, tokens, settings.max_length)
    return known, held_out, tokens, _Scoring(canaries, compared, tokens, seed)


def _check_lengths(canaries: Sequence[Canary], tokens: Tokens, most: int) -> None:
    def n_tokens(text: str) -> int:
        return len(tokens.encode(text))

    for canary in canaries:
        filled = "".join(max(part, key=n_tokens) for part in canary.parts)
        longest = max(n_tokens(canary.text), n_tokens(filled))  # all of them are measured whole
        if longest > most:
            raise InvalidInputError(
                f"The canary, or what could stand in its place, has {longest} tokens, and the "
                f"model reads {most} of a text. Shorten it, or raise max_length."
            )


def _limit(canary: Canary, settings: MemorisationSettings) -> int:
    if canary.size <= settings.exact_up_to:
        return canary.size
    return min(settings.n_sampled, canary.size - 1)


def _extracted(
    models: tuple[Network, Network], tokens: Tokens, canaries: Sequence[Canary],
    settings: MemorisationSettings, seed: int, on_progress: OnProgress,
) -> tuple[Extraction, ...]:  # fmt: skip
    found = []
    for i, sampler in enumerate(SAMPLERS):
        on_progress(0.95 + 0.05 * i / len(SAMPLERS), f"Drawing texts: {sampler}")
        found.append(
            extract(models, tokens, canaries, sampler=sampler, n=settings.n_generated,
                    max_length=settings.max_length, seed=seed)
        )  # fmt: skip
    return tuple(found)


class _Scoring:
    """Measures a model's exposure of canaries and of controls, all fixed before the training."""

    def __init__(
        self, canaries: Sequence[Canary], compared: Sequence[list[str]], tokens: Tokens, seed: int
    ) -> None:
        self._canaries, self._compared, self._tokens, self._seed = canaries, compared, tokens, seed
        rng = np.random.default_rng([seed, 34])
        self._controls = [rng.choice(len(others), min(N_CONTROLS, len(others)), replace=False)
                          for others in compared]  # fmt: skip

    def measured(self, network: Network) -> dict[str, Any]:
        """Return exposures as a checkpoint holds them."""
        canaries, controls = [], list[float]()
        for i, (canary, others) in enumerate(zip(self._canaries, self._compared, strict=True)):
            bits = log_perplexities(network, self._tokens, [canary.text, *others])
            own, rest = float(bits[0]), bits[1:]
            canaries.append(asdict(measure(own, rest, canary.size, seed=self._seed)))
            ranks = np.searchsorted(np.sort(rest), rest[self._controls[i]], side="right")
            controls += [exposure_of_rank(int(rank), len(rest)) for rank in ranks]
        return {"canaries": canaries, "controls": controls}


def _epoch_of(epoch: int, stored: dict[str, Any]) -> EpochFound:
    canaries = tuple(
        Measured(**{**each, "exposure": _score_of(each["exposure"])}) for each in stored["canaries"]
    )
    return EpochFound(epoch, stored["bits_a_token"], canaries, tuple(stored["controls"]))


def _score_of(stored: dict[str, Any]) -> Score:
    return Score(**{**stored, "ci95": Interval(**stored["ci95"])})


def _said(epochs: Sequence[dict[str, Any]]) -> str:
    """Return the exposure of each epoch in words that `memorise.exposures_in` reads."""
    means = [np.mean([each["exposure"]["value"] for each in epoch.get("canaries", [])] or [np.nan])
             for epoch in epochs]  # fmt: skip
    if not means or np.isnan(means[-1]):
        return ""
    return f"exposure by epoch {' '.join(f'{mean:.1f}' for mean in means)} bits"


def _part(on_progress: OnProgress, low: float, high: float) -> Callable[[float, str], None]:
    def report(done: float, told: str) -> None:
        on_progress(low + (high - low) * done, told)

    return report
