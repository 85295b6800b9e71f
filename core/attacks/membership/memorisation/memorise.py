"""Insert a canary into a user's texts, train with several seeds, and report memorisation."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.membership.memorisation.canaries import make_canary
from leakscope.core.attacks.membership.memorisation.experiment import PlantedRun, run_planted
from leakscope.core.attacks.membership.memorisation.exposure import mean_chance_exposure
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.texts import (
    MOST_DOCUMENTS,
    check_sentences,
    check_settings,
    private_texts,
)
from leakscope.core.corpora import load_corpus
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.results import NO_INTERVAL, Interval, Score

MOST_SEEDS = 20


@dataclass(frozen=True, kw_only=True)
class MemoriseRequest:
    """The identity of an experiment: corpus, canary, settings and seeds.

    `corpus` is the name of a corpus, or an identifier of texts that come with the request.
    """

    corpus: str
    canary: str
    settings: MemorisationSettings = field(default_factory=MemorisationSettings)
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class CanaryMemorisation:
    """The memorisation of a canary over several seeds, one run each."""

    settings: MemorisationSettings
    runs: tuple[PlantedRun, ...]

    @property
    def size(self) -> int:
        """|R|, the number of candidates."""
        return self.runs[0].canaries[0].size

    def exposure_at(self, epoch: int) -> Score:
        """Return the canary's mean exposure over seeds after an epoch, counted from 1."""
        scores = [run.epochs[epoch - 1].canaries[0].exposure for run in self.runs]
        return mean_over_seeds(scores, most=math.log2(self.size))

    @property
    def controls(self) -> Score:
        """The mean final exposure of control canaries, which were not inserted."""
        values = np.array([v for run in self.runs for v in run.epochs[-1].controls])
        return Score(
            float(values.mean()),
            bootstrap_interval(values),
            len(values),
            mean_chance_exposure(self.size),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as a JSON-able record."""
        canary, last = self.runs[0].canaries[0], len(self.runs[0].epochs)
        return {
            "canary": canary.text
            if len({run.canaries[0].text for run in self.runs}) == 1
            else None,
            "prefix": canary.prefix,
            "randomness": canary.note,
            "n_values": canary.size,
            "most_bits": math.log2(canary.size),
            **self.settings.to_dict(),
            "n_texts": self.runs[0].n_texts,
            "seeds": [run.seed for run in self.runs],
            **self._epoch_fields(last),
            "chance": mean_chance_exposure(canary.size),
            **self.controls.to_record("control_exposure"),
            "by_epoch": [{"epoch": i, **self._epoch_fields(i)} for i in range(1, last + 1)],
            "extraction": [
                self._extraction_fields(i) for i in range(len(self.runs[0].extractions))
            ],
            "by_seed": [_seed_record(run) for run in self.runs],
        }

    def _epoch_fields(self, epoch: int) -> dict[str, Any]:
        """Return the record fields of one epoch, averaged over seeds."""
        found = [run.epochs[epoch - 1] for run in self.runs]
        exposure = self.exposure_at(epoch)
        return {
            **exposure.to_record("exposure"),
            # The rank of the mean exposure is the geometric mean of the ranks: log₂|R| − log₂ rank.
            "rank": self.size / 2.0**exposure.value,
            "is_exact": found[0].canaries[0].is_exact,
            "at_least": float(np.mean([each.canaries[0].at_least for each in found])),
            "bits_a_token": float(np.mean([each.bits_a_token for each in found])),
        }

    def _extraction_fields(self, i: int) -> dict[str, Any]:
        """Return the record fields of one sampler (by index), combined over seeds."""
        found = [run.extractions[i] for run in self.runs]
        return {
            "sampler": found[0].sampler,
            "n_drawn": sum(each.n_drawn for each in found),
            "n_found": sum(each.found[0] for each in found),
            "n_seeds_found": sum(each.found[0] > 0 for each in found),
            "places": {
                name: [each.places.get(name, (None,))[0] for each in found]
                for name in found[0].places
            },
        }


def _seed_record(run: PlantedRun) -> dict[str, Any]:
    """Return the JSON-able record of one seed's run."""
    last = run.epochs[-1].canaries[0]
    return {
        "seed": run.seed,
        "canary": run.canaries[0].text,
        **last.exposure.to_record("exposure"),
        "rank": last.rank,
        "exposure_by_epoch": [epoch.canaries[0].exposure.value for epoch in run.epochs],
        "extraction": [
            {
                "sampler": found.sampler,
                "n_found": found.found[0],
                "places": {name: places[0] for name, places in found.places.items()},
                "first": {name: list(texts) for name, texts in found.first.items()},
            }
            for found in run.extractions
        ],
    }


def mean_over_seeds(scores: Sequence[Score], *, most: float = math.inf) -> Score:
    """Return the mean of one score per run, with a Student interval (between and within runs).

    A single run keeps its own interval. Clipped to [0, most].
    """
    if len(scores) == 1:
        return scores[0]
    from scipy.special import stdtrit

    values = np.array([score.value for score in scores])
    widths = [score.ci95.high - score.ci95.low for score in scores if score.has_interval]
    within = float(np.mean(np.square(np.array(widths) / (2 * 1.96)))) if widths else 0.0
    error = math.sqrt((float(values.var(ddof=1)) + within) / len(values))
    half = float(stdtrit(len(values) - 1, 0.975)) * error
    mean = float(values.mean())
    interval = Interval(max(0.0, mean - half), min(most, mean + half)) if half else NO_INTERVAL
    return Score(mean, interval, len(scores), scores[0].chance, len(scores))


def memorise(
    texts: Sequence[str],
    canary: str,
    settings: MemorisationSettings | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> CanaryMemorisation:
    """Insert a canary into texts, train a model with each seed, and measure its memorisation.

    Parameters
    ----------
    canary : str
        A format such as `my card number is {digits:6}`, whose secret differs by seed, or a typed
        text.
    checkpoint_dir : Path, optional
        The folder of checkpoints, to resume interrupted training; nothing is written without it.

    Raises
    ------
    InvalidInputError
        A canary without anything random, or one that is in the texts already; too few texts; a
        setting out of its range.
    """
    settings = check_settings(settings or MemorisationSettings())
    known = check_sentences(list(texts))
    if not 1 <= len(set(seeds)) == len(seeds) <= MOST_SEEDS:
        raise InvalidInputError(f"Give between 1 and {MOST_SEEDS} seeds, each once.")
    runs = []
    for i, seed in enumerate(seeds):

        def report(done: float, message: str, i: int = i, seed: int = seed) -> None:
            """Report the progress of one seed as part of that of all seeds."""
            line = f"Seed {seed} ({i + 1} of {len(seeds)}): {message}"
            on_progress((i + done) / len(seeds), line)

        made = make_canary(canary, known, seed)
        report(0.0, "starting")
        folder = checkpoint_dir and checkpoint_dir / f"seed-{seed}"
        runs.append(
            run_planted(known, [made], settings, seed, checkpoint_dir=folder, on_progress=report)
        )
    return CanaryMemorisation(settings, tuple(runs))


def run_request(
    request: MemoriseRequest,
    texts: Sequence[str] | None = None,
    on_progress: OnProgress = no_progress,
) -> CanaryMemorisation:
    """Load the texts unless given, and run a request's experiment; nothing is written to disk.

    Parameters
    ----------
    texts : sequence of str, optional
        Of an upload; a corpus is read here by its name.
    """
    on_progress(0.0, "Reading the texts")
    settings = check_settings(request.settings)
    if texts is None:
        corpus = load_corpus(request.corpus, limit=MOST_DOCUMENTS)
        texts = private_texts(corpus, settings.n_texts, 0)
    return memorise(
        texts[: settings.n_texts], request.canary, settings, request.seeds, on_progress=on_progress
    )


def parse_exposures(message: str) -> list[float]:
    """Parse the exposures by epoch from a progress message, for a live plot.

    Examples
    --------
    >>> parse_exposures(
    ...     "Seed 0 (1 of 3): Epoch 3 of at most 10, exposure by epoch 0.4 2.1 bits, 9/s"
    ... )
    [0.4, 2.1]
    """
    found = re.search(r"exposure by epoch ([\d. ]+) bits", message)
    return [float(word) for word in found.group(1).split()] if found else []
