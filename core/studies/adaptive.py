"""What pretraining under noise wins back (Qu et al. 2021, Tables 6 and 7)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.defences.trained.adaptive import PAPER_TOKENS, AdaptivePretraining
from core.defences.trained.under_noise.registry import OBJECTIVES
from core.defences.trained.under_noise.user_side import TOKEN_MECHANISMS
from core.errors import DivergedError
from core.specs import setting
from core.studies.constrained import ConstrainedStudy, theirs
from core.studies.domains import content_of as corpus_content
from core.studies.in_order import change_from
from core.studies.privacy_paper import MATCHED, OBJECTIVE_ORDER
from core.studies.privacy_tables import adaptive_markdown as markdown
from core.studies.rows import Cell, Row
from core.studies.tuned_networks import (
    adapted_for,
    tuned_for,
    without_noise,
    without_pretraining,
)
from core.studies.won_back import won_back

__all__ = ["AdaptiveStudy", "markdown", "measure"]

_USUAL = AdaptivePretraining()


@dataclass(frozen=True, kw_only=True)
class AdaptiveStudy(ConstrainedStudy):
    """Tasks × mechanisms × losses × η: pretrained under noise, then fine-tuned under the same."""

    readers: tuple[str, ...] = field(default=("transformer",), init=False)
    compares: bool = field(default=True, init=False)
    other: str = setting("wikipedia", "texts that the network is adapted on: a corpus or a file")
    objectives: tuple[str, ...] = setting(
        tuple(OBJECTIVES), "losses of pretraining", choices=tuple(OBJECTIVES)
    )
    mechanisms: tuple[str, ...] = setting(
        TOKEN_MECHANISMS, "what users send", choices=TOKEN_MECHANISMS
    )
    etas: tuple[float, ...] = setting(
        tuple(MATCHED), "privacy parameters; each goes on from the next with less noise",
        low=1e-6, high=1e6,
    )  # fmt: skip
    tokens: int = setting(_USUAL.tokens, "word pieces to see at each η", low=1000)
    batch_tokens: int = setting(_USUAL.batch_tokens, "word pieces of a step", low=128, high=2**20)
    learning_rate: float = setting(
        _USUAL.learning_rate, "of pretraining", low=1e-8, high=10.0, flag="pretraining-rate"
    )
    masked: float = setting(_USUAL.masked, "share of chosen tokens that are hidden",
                            low=0.0, high=0.9)  # fmt: skip
    n_checks: int = setting(_USUAL.n_checks, "times that the held-out loss is taken",
                            low=1, high=1000)  # fmt: skip
    pretraining_seed: int = setting(0, "of pretraining; `seeds` are of fine-tuning", low=0)

    def cells(self) -> list[Cell]:
        """Return what is to be measured, from the least noise to the most."""
        etas = sorted(set(self.etas), reverse=True)
        pretraining = {"other": self.other, "contents": [corpus_content(self.other)],
                       "objective_settings": self._settings(),
                       "pretraining_seed": self.pretraining_seed}  # fmt: skip
        return [
            {**task, **self.tuning("transformer", mechanism, releases), **pretraining,
             "defence": mechanism,
             "objective": objective, "beside": self._before(objective), "etas": etas[: i + 1],
             "defence_settings": {"eta": eta}, "seed": seed}
            for mechanism in self.mechanisms
            for i, eta in enumerate(etas)
            for objective in self.objectives
            for releases in self.releases
            for task in self.texts("adaptive")
            for seed in self.seeds
        ]  # fmt: skip

    def _before(self, objective: str) -> dict[str, int]:
        """Return the losses that the paper has below one, with the versions of their code."""
        lower = OBJECTIVE_ORDER[: OBJECTIVE_ORDER.index(objective)]
        return {name: OBJECTIVES[name].version for name in lower if name in self.objectives}

    def _settings(self) -> dict[str, Any]:
        usual = ("mask_rate", "replaced", "n_perturbations", "warm_up")
        own = ("tokens", "batch_tokens", "learning_rate", "masked", "max_length", "n_checks")
        return {name: getattr(_USUAL, name) for name in usual} | {
            name: getattr(self, name) for name in own
        }


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Pretrain and fine-tune, and hold it against the same without one, and without noise.

    And against losses that the paper has below its own, but for such as ran away: of those, their
    own cells tell.
    """
    found = tuned_for(cell, folder)
    plain = tuned_for(without_pretraining(cell), folder)
    best = tuned_for(without_noise(cell), folder)
    adapted = adapted_for(cell, folder)
    rights = (each.hits.right for each in (best, plain, found))
    scores = {
        "accuracy": found.hits.score(),
        "constrained_accuracy": plain.hits.score(),
        "null_accuracy": best.hits.score(),
        "gain": found.hits.change_from(plain.hits),
        "won_back": won_back(*rights),
    }
    for other in cell["beside"]:
        with suppress(DivergedError):
            beside = tuned_for({**cell, "objective": other}, folder)
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
        **theirs(cell),
    }
    return [Row(scores=scores, facts=facts)]
