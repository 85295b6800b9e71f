"""Plant a canary in texts of one's own, train by several seeds, and tell what came of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.membership.memorisation.canaries import make_canary
from core.attacks.membership.memorisation.experiment import PlantedRun, run_planted
from core.attacks.membership.memorisation.exposure import mean_of_chance
from core.attacks.membership.memorisation.extraction import Extraction
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.texts import (
    MOST_DOCUMENTS,
    check_settings,
    checked,
    private_texts,
)
from core.corpora import load_corpus
from core.errors import InvalidInputError
from core.intervals import bootstrap_interval
from core.protocols import OnProgress, no_progress
from core.results import NO_INTERVAL, Interval, Score

__all__ = ["MOST_SEEDS", "Memorised", "MemoriseRequest", "exposures_in", "memorise", "over_seeds",
           "plant_and_watch"]  # fmt: skip

MOST_SEEDS = 20


@dataclass(frozen=True, kw_only=True)
class MemoriseRequest:
    """What identifies an experiment: its texts, the canary, the settings and the seeds.

    `corpus` is a corpus by name, or what recognises texts that come with the request.
    """

    corpus: str
    canary: str
    settings: MemorisationSettings = field(default_factory=MemorisationSettings)
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class Memorised:
    """What became of a canary: a run a seed."""

    settings: MemorisationSettings
    runs: tuple[PlantedRun, ...]

    @property
    def size(self) -> int:
        """|R|."""
        return self.runs[0].canaries[0].size

    def exposure_at(self, epoch: int) -> Score:
        """Return the exposure after an epoch, counted from 1, over the seeds."""
        scores = [run.epochs[epoch - 1].canaries[0].exposure for run in self.runs]
        return over_seeds(scores, most=math.log2(self.size))

    @property
    def controls(self) -> Score:
        """The mean exposure, at the end, of canaries of this format that were planted nowhere."""
        values = np.array([v for run in self.runs for v in run.epochs[-1].controls])
        return Score(float(values.mean()), bootstrap_interval(values), len(values),
                     mean_of_chance(self.size))  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, JSON-able."""
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
            **self._told(last),
            "chance": mean_of_chance(canary.size),
            **self.controls.to_record("control_exposure"),
            "by_epoch": [{"epoch": i, **self._told(i)} for i in range(1, last + 1)],
            "extraction": [self._drawn(i) for i in range(len(self.runs[0].extractions))],
            "by_seed": [_of_seed(run) for run in self.runs],
        }

    def _told(self, epoch: int) -> dict[str, Any]:
        found = [run.epochs[epoch - 1] for run in self.runs]
        exposure = self.exposure_at(epoch)
        return {
            **exposure.to_record("exposure"),
            # Of the mean exposure, the geometric mean of the ranks: log₂|R| − log₂ rank.
            "rank": self.size / 2.0**exposure.value,
            "is_exact": found[0].canaries[0].is_exact,
            "at_least": float(np.mean([each.canaries[0].at_least for each in found])),
            "bits_a_token": float(np.mean([each.bits_a_token for each in found])),
        }

    def _drawn(self, i: int) -> dict[str, Any]:
        found = [run.extractions[i] for run in self.runs]
        return {
            "sampler": found[0].sampler,
            "n_drawn": sum(each.n_drawn for each in found),
            "n_found": sum(each.found[0] for each in found),
            "n_seeds_found": sum(each.found[0] > 0 for each in found),
            "places": {name: [each.places.get(name, (None,))[0] for each in found]
                       for name in found[0].places},
        }  # fmt: skip


def _of_seed(run: PlantedRun) -> dict[str, Any]:
    last = run.epochs[-1].canaries[0]
    return {
        "seed": run.seed,
        "canary": run.canaries[0].text,
        **last.exposure.to_record("exposure"),
        "rank": last.rank,
        "exposure_by_epoch": [epoch.canaries[0].exposure.value for epoch in run.epochs],
        "extraction": [_texts_of(each) for each in run.extractions],
    }


def _texts_of(found: Extraction) -> dict[str, Any]:
    return {"sampler": found.sampler, "n_found": found.found[0],
            "places": {name: places[0] for name, places in found.places.items()},
            "first": {name: list(texts) for name, texts in found.first.items()}}  # fmt: skip


def over_seeds(scores: Sequence[Score], *, most: float = math.inf) -> Score:
    """Return the mean of runs with its interval: Student's, of the spread between runs and within.

    Of a single run its own. Cut at 0 and at the most that is possible.
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
) -> Memorised:
    """Plant a canary in texts, train a model by each seed, and return what it gives away.

    Parameters
    ----------
    canary : str
        A format such as `my card number is {digits:6}`, whose secret each seed draws anew, or a
        text of one's own.
    checkpoint_dir : Path, optional
        Where training goes on that was killed; nothing is written without it.

    Raises
    ------
    InvalidInputError
        A canary without anything random, or one that stands in the texts; too few texts; a
        setting out of its range.
    """
    settings = check_settings(settings or MemorisationSettings())
    known = checked(list(texts))
    if not 1 <= len(set(seeds)) == len(seeds) <= MOST_SEEDS:
        raise InvalidInputError(f"Give between 1 and {MOST_SEEDS} seeds, each once.")
    runs = []
    for i, seed in enumerate(seeds):

        def report(done: float, told: str, i: int = i, seed: int = seed) -> None:
            on_progress((i + done) / len(seeds), f"Seed {seed} ({i + 1} of {len(seeds)}): {told}")

        made = make_canary(canary, known, seed)
        report(0.0, "starting")
        folder = checkpoint_dir and checkpoint_dir / f"seed-{seed}"
        runs.append(run_planted(known, [made], settings, seed, checkpoint_dir=folder,
                                on_progress=report))  # fmt: skip
    return Memorised(settings, tuple(runs))


def plant_and_watch(
    request: MemoriseRequest,
    texts: Sequence[str] | None = None,
    on_progress: OnProgress = no_progress,
) -> Memorised:
    """Run the experiment of a request: work for a process of its own, which writes nothing.

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
    return memorise(texts[: settings.n_texts], request.canary, settings, request.seeds,
                    on_progress=on_progress)  # fmt: skip


def exposures_in(message: str) -> list[float]:
    """Return the exposures by epoch that a message of progress tells, to draw them as they grow.

    Examples
    --------
    >>> exposures_in("Seed 0 (1 of 3): Epoch 3 of at most 10, exposure by epoch 0.4 2.1 bits, 9/s")
    [0.4, 2.1]
    """
    found = re.search(r"exposure by epoch ([\d. ]+) bits", message)
    return [float(word) for word in found.group(1).split()] if found else []
