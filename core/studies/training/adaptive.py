"""The study of pretraining under noise: accuracy it recovers (Qu et al. 2021, Tables 6, 7)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.trained.adaptive import PAPER_TOKENS, AdaptivePretraining
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.defences.trained.under_noise.user_side import TOKEN_MECHANISMS
from leakscope.core.errors import DivergedError, InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import setting
from leakscope.core.studies.domains import content_of as corpus_content
from leakscope.core.studies.training.constrained import ConstrainedStudy, eta_facts
from leakscope.core.studies.training.privacy_paper import MATCHED, OBJECTIVE_ORDER
from leakscope.core.studies.training.privacy_tables import adaptive_markdown, change_from
from leakscope.core.studies.training.tuned_networks import (
    load_or_adapt,
    load_or_tune,
    without_constraint,
    without_pretraining,
)

markdown = adaptive_markdown

_USUAL = AdaptivePretraining()


@dataclass(frozen=True, kw_only=True)
class AdaptiveStudy(ConstrainedStudy):
    """Settings of the study: networks pretrained under noise, by task, mechanism, loss and η."""

    readers: tuple[str, ...] = field(default=("transformer",), init=False)
    compares: bool = field(default=True, init=False)
    other: str = setting("wikipedia", "texts to pretrain on: a corpus or a file")
    objectives: tuple[str, ...] = setting(
        tuple(OBJECTIVES), "pretraining losses", choices=tuple(OBJECTIVES)
    )
    mechanisms: tuple[str, ...] = setting(
        TOKEN_MECHANISMS, "what users send", choices=TOKEN_MECHANISMS
    )
    etas: tuple[float, ...] = setting(
        tuple(MATCHED),
        "privacy parameters; each continues from the next one with less noise",
        low=1e-6,
        high=1e6,
    )
    tokens: int = setting(_USUAL.tokens, "word pieces seen at each η", low=1000)
    batch_tokens: int = setting(_USUAL.batch_tokens, "word pieces per step", low=128, high=2**20)
    learning_rate: float = setting(
        _USUAL.learning_rate,
        "learning rate of pretraining",
        low=1e-8,
        high=10.0,
        flag="pretraining-rate",
    )
    masked: float = setting(
        _USUAL.masked, "share of the chosen tokens that are masked", low=0.0, high=0.9
    )
    n_checks: int = setting(
        _USUAL.n_checks, "number of times that the held-out loss is measured", low=1, high=1000
    )
    pretraining_seed: int = setting(
        0, "random seed of pretraining; `seeds` are for fine-tuning", low=0
    )

    def cells(self) -> list[Cell]:
        """Return one cell per mechanism, η, loss, task and seed, beginning with the least noise."""
        etas = sorted(set(self.etas), reverse=True)
        pretraining = {
            "other": self.other,
            "contents": [corpus_content(self.other)],
            "objective_settings": self._pretraining_settings(),
            "pretraining_seed": self.pretraining_seed,
        }
        return [
            {
                **task,
                **self.tuning("transformer", mechanism, releases),
                **pretraining,
                "defence": mechanism,
                "objective": objective,
                "beside": self._lower_losses(objective),
                "etas": etas[: i + 1],
                "defence_settings": {"eta": eta},
                "seed": seed,
            }
            for mechanism in self.mechanisms
            for i, eta in enumerate(etas)
            for objective in self.objectives
            for releases in self.releases
            for task in self.texts("adaptive")
            for seed in self.seeds
        ]

    def _lower_losses(self, objective: str) -> dict[str, int]:
        """Return the code versions of the losses that the paper ranks below one, by name."""
        lower = OBJECTIVE_ORDER[: OBJECTIVE_ORDER.index(objective)]
        return {name: OBJECTIVES[name].version for name in lower if name in self.objectives}

    def _pretraining_settings(self) -> dict[str, Any]:
        """Return the settings of pretraining as cell entries."""
        usual = ("mask_rate", "replaced", "n_perturbations", "warm_up")
        own = ("tokens", "batch_tokens", "learning_rate", "masked", "max_length", "n_checks")
        return {name: getattr(_USUAL, name) for name in usual} | {
            name: getattr(self, name) for name in own
        }


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Pretrain and fine-tune a network; compare with no pretraining, no noise and lower losses.

    Lower-ranked losses whose training diverged are left out here; their own cells report that.
    """
    found = load_or_tune(cell, folder)
    plain = load_or_tune(without_pretraining(cell), folder)
    best = load_or_tune(without_constraint(cell), folder)
    adapted = load_or_adapt(cell, folder)
    rights = (each.hits.right for each in (best, plain, found))
    scores = {
        "accuracy": found.hits.score(),
        "constrained_accuracy": plain.hits.score(),
        "null_accuracy": best.hits.score(),
        "gain": found.hits.change_from(plain.hits),
        "won_back": recovered_share(*rights),
    }
    for other in cell["beside"]:
        with suppress(DivergedError):
            beside = load_or_tune({**cell, "objective": other}, folder)
            scores[change_from(other)] = found.hits.change_from(beside.hits)
    facts = {
        "n": len(found.hits.right),
        "n_train": found.n_train,
        "minutes": round(found.minutes, 2),
        "pretraining_minutes": round(adapted.minutes, 2),
        "tokens_seen": adapted.tokens,
        "all_tokens_seen": adapted.all_tokens,
        "distinct_tokens_seen": adapted.distinct_tokens,
        "paper_tokens": PAPER_TOKENS,
        "loss_by_tokens": [[point["tokens"], round(point["loss"], 4)] for point in adapted.curve],
        **eta_facts(cell),
    }
    return [Row(scores=scores, facts=facts)]


def recovered_share(
    without: NDArray[np.bool_],
    constrained: NDArray[np.bool_],
    adapted: NDArray[np.bool_],
    *,
    seed: int = 0,
    n_resamples: int = 2000,
) -> Score:
    """Return 100 (adapted − constrained) / (without − constrained), accuracies on the same texts.

    The interval comes from a bootstrap that resamples the texts jointly. There is none if a
    resample shows no loss. Without any loss, the value is NaN.

    Parameters
    ----------
    without, constrained, adapted : bool arrays (n,)
        Whether each text is correct without noise, under noise, and under noise after pretraining.

    Raises
    ------
    InvalidInputError
        The three belong to different texts.

    Examples
    --------
    >>> right = np.arange(100)
    >>> recovered_share(right < 90, right < 50, right < 70).format(0)
    '50 [35, 65]'
    """
    if not len(without) == len(constrained) == len(adapted):
        raise InvalidInputError("Results on different texts cannot be compared.")
    gain, lost = (np.subtract(one, constrained, dtype=np.float64) for one in (adapted, without))
    n = len(gain)
    if not n or lost.mean() <= 0:
        return Score(float("nan"), n=n, chance=0.0)
    rows = np.random.default_rng([seed, 31]).integers(n, size=(n_resamples, n))
    costs = lost[rows].mean(1)
    value = 100 * float(gain.mean() / lost.mean())
    if n < 2 or costs.min() <= 0:
        return Score(value, n=n, chance=0.0)
    low, high = np.quantile(100 * gain[rows].mean(1) / costs, [0.025, 0.975])
    return Score(value, Interval(min(float(low), value), max(float(high), value)), n, 0.0)
