"""The memorisation experiment: insert canaries, train a model, measure exposure and extraction.

The comparison is fixed before the training: the candidates of each format, and controls, which are
canaries of the same format that are not inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.membership.memorisation.canaries import Canary
from leakscope.core.attacks.membership.memorisation.exposure import (
    CanaryExposure,
    exposure_of_rank,
    measure,
)
from leakscope.core.attacks.membership.memorisation.extraction import SAMPLERS, Extraction, extract
from leakscope.core.attacks.membership.memorisation.network import Network
from leakscope.core.attacks.membership.memorisation.perplexity import log_perplexities
from leakscope.core.attacks.membership.memorisation.private import train_model
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.texts import (
    check_private_tokens,
    check_sentences,
    check_settings,
    split_held_out,
)
from leakscope.core.attacks.membership.memorisation.tokens import Tokens, make_tokens
from leakscope.core.attacks.membership.memorisation.training import (
    bits_a_token,
    digest_texts,
    train_network,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress, part_progress
from leakscope.core.results import Interval, Score
from leakscope.core.training.accounting import Guarantee, Privacy

N_CONTROLS = 50
"""Control canaries of each format, which are not inserted."""

_SMALLER = 4
"""The factor by which the smaller model has fewer units."""


@dataclass(frozen=True)
class EpochFound:
    """A model's exposures of canaries and controls after an epoch.

    Attributes
    ----------
    bits_a_token : float
        The loss on held-out texts.
    canaries : tuple of CanaryExposure
        The exposure of each canary.
    controls : tuple of float
        Exposures of control canaries, which were not inserted.
    """

    epoch: int
    bits_a_token: float
    canaries: tuple[CanaryExposure, ...]
    controls: tuple[float, ...]

    @property
    def exposure(self) -> float:
        """The mean exposure of the canaries, in bits."""
        return float(np.mean([found.exposure.value for found in self.canaries]))


@dataclass(frozen=True)
class PlantedRun:
    """The result of training one model with canaries.

    Attributes
    ----------
    n_texts : int
        Private sentences trained on, canaries not counted.
    extractions : tuple of Extraction
        By sampler; empty if no texts were drawn.
    """

    seed: int
    n_texts: int
    canaries: tuple[Canary, ...]
    epochs: tuple[EpochFound, ...]
    extractions: tuple[Extraction, ...]


def plant(texts: Sequence[str], canaries: Sequence[Canary], insertions: int) -> list[str]:
    """Return the texts with each canary appended `insertions` times; training shuffles them.

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
    """Train with inserted canaries, measuring exposure after each epoch; then extract texts.

    An interrupted run resumes from its checkpoint without repeating finished epochs.

    Raises
    ------
    InvalidInputError
        Too few texts, or a setting out of its range.
    StoppedError
        Raised by `on_progress`, after a checkpoint was written.
    """
    known, held_out, tokens, scoring = _prepare_training(texts, canaries, settings, seed)
    planted = plant(known, canaries, settings.insertions)
    n_drawn = settings.n_generated
    share = 0.8 if n_drawn else 1.0
    network, found = train_network(
        planted,
        held_out,
        tokens,
        settings,
        seed,
        measure=scoring.measure_exposures,
        measured=digest_texts([repr((each.parts, each.secret)) for each in canaries]),
        describe=_format_exposures,
        checkpoint_dir=checkpoint_dir and checkpoint_dir / "model",
        on_progress=part_progress(on_progress, 0.0, share),
    )
    drawn: tuple[Extraction, ...] = ()
    if n_drawn:
        small = replace(settings, hidden=max(8, settings.hidden // _SMALLER // 4 * 4))
        smaller, _ = train_network(
            planted,
            held_out,
            tokens,
            small,
            seed,
            checkpoint_dir=checkpoint_dir and checkpoint_dir / "smaller",
            on_progress=part_progress(on_progress, share, 0.95),
        )
        found_by: list[Extraction] = []
        for i, sampler in enumerate(SAMPLERS):
            on_progress(0.95 + 0.05 * i / len(SAMPLERS), f"Sampling texts: {sampler}")
            found_by.append(
                extract(
                    (network, smaller),
                    tokens,
                    canaries,
                    sampler=sampler,
                    n=n_drawn,
                    max_length=settings.max_length,
                    seed=seed,
                )
            )
        drawn = tuple(found_by)
    epochs = tuple(_epoch_from_record(i, stored) for i, stored in enumerate(found, 1))
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
    """Train with canaries and differential privacy; return the final exposures and the privacy.

    The last result is the number of private sentences trained on, without canaries. A canary that
    is inserted m times counts as m texts, for which the guarantee is weaker than ε and stronger
    than m·ε: see `Privacy.of_copies`.

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
    known, held_out, tokens, scoring = _prepare_training(texts, canaries, settings, seed)
    planted = plant(known, canaries, settings.insertions)
    promise = None
    if epsilon:
        promise = Guarantee(epsilon=epsilon, delta=delta, n_expected=len(planted))
    network, privacy = train_model(
        planted,
        tokens,
        settings,
        seed,
        promise=promise,
        n_expected=len(planted),
        checkpoint_dir=checkpoint_dir,
        on_progress=on_progress,
    )
    bits = bits_a_token(network, tokens, held_out, settings.max_length)
    found = {"bits_a_token": bits, **scoring.measure_exposures(network)}
    return _epoch_from_record(settings.epochs, found), privacy, len(known)


def _prepare_training(
    texts: Sequence[str], canaries: Sequence[Canary], settings: MemorisationSettings, seed: int
) -> tuple[list[str], list[str], Tokens, _ExposureMeter]:
    """Split the texts, build the tokens and, with candidates, the exposure meter; return all."""
    check_settings(settings)
    known, held_out = split_held_out(check_sentences(list(texts)), seed)
    compared = []
    for canary in canaries:  # with all candidates, or a sample of them
        sampled = min(settings.n_sampled, canary.size - 1)
        n = canary.size if canary.size <= settings.exact_up_to else sampled
        compared.append(canary.others(n, seed))
    also = chain((canary.text for canary in canaries), *compared)
    tokens = make_tokens(settings.tokens, known, also, settings.vocabulary_size)
    _check_lengths(canaries, tokens, settings.max_length)
    return known, held_out, tokens, _ExposureMeter(canaries, compared, tokens, seed)


def _check_lengths(canaries: Sequence[Canary], tokens: Tokens, most: int) -> None:
    """Raise InvalidInputError if a canary or its longest candidate has too many tokens."""

    def n_tokens(text: str) -> int:
        """Return the number of tokens of a text."""
        return len(tokens.encode(text))

    for canary in canaries:
        filled = "".join(max(part, key=n_tokens) for part in canary.parts)
        longest = max(n_tokens(canary.text), n_tokens(filled))  # all are measured in full
        if longest > most:
            raise InvalidInputError(
                f"The canary, or a text that could stand in its place, has {longest} tokens, but "
                f"the model reads only {most} per text. Shorten it, or raise max_length."
            )


class _ExposureMeter:
    """Measures a model's exposures of canaries and controls that were fixed before training."""

    def __init__(
        self, canaries: Sequence[Canary], compared: Sequence[list[str]], tokens: Tokens, seed: int
    ) -> None:
        self._canaries, self._compared, self._tokens, self._seed = canaries, compared, tokens, seed
        rng = np.random.default_rng([seed, 34])
        self._controls = [
            rng.choice(len(others), min(N_CONTROLS, len(others)), replace=False)
            for others in compared
        ]

    def measure_exposures(self, network: Network) -> dict[str, Any]:
        """Measure a model's exposures of canaries and controls; return a JSON-able record."""
        canaries, controls = [], list[float]()
        for i, (canary, others) in enumerate(zip(self._canaries, self._compared, strict=True)):
            bits = log_perplexities(network, self._tokens, [canary.text, *others])
            own, rest = float(bits[0]), bits[1:]
            canaries.append(asdict(measure(own, rest, canary.size, seed=self._seed)))
            ranks = np.searchsorted(np.sort(rest), rest[self._controls[i]], side="right")
            controls += [exposure_of_rank(int(rank), len(rest)) for rank in ranks]
        return {"canaries": canaries, "controls": controls}


def _epoch_from_record(epoch: int, stored: dict[str, Any]) -> EpochFound:
    """Build an epoch's result from the JSON-able record of `measure_exposures`."""
    canaries = tuple(
        CanaryExposure(
            **{**each, "exposure": Score(**{**score, "ci95": Interval(**score["ci95"])})}
        )
        for each in stored["canaries"]
        for score in [each["exposure"]]
    )
    return EpochFound(epoch, stored["bits_a_token"], canaries, tuple(stored["controls"]))


def _format_exposures(epochs: Sequence[dict[str, Any]]) -> str:
    """Format the mean exposure after each epoch as the message that `parse_exposures` parses."""
    means = [
        np.mean([each["exposure"]["value"] for each in epoch.get("canaries", [])] or [np.nan])
        for epoch in epochs
    ]
    if not means or np.isnan(means[-1]):
        return ""
    return f"exposure by epoch {' '.join(f'{mean:.1f}' for mean in means)} bits"
