"""What language models keep of planted canaries, and what an audit in one run shows of ε.

A cell of the exposures is one model trained with a canary of each format; it is measured after
each epoch. A cell of the audit is one model into which many canaries were put by coin toss.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.membership.memorisation.audited import ACCESS, AuditPlan, audit_model
from core.attacks.membership.memorisation.canaries import FORMATS, make_canary
from core.attacks.membership.memorisation.experiment import EpochFound, PlantedRun, run_planted
from core.attacks.membership.memorisation.exposure import mean_of_chance
from core.attacks.membership.memorisation.settings import MODEL_NAMES, MemorisationSettings
from core.attacks.membership.memorisation.texts import MOST_DOCUMENTS, check_settings, private_texts
from core.corpora import Columns, load_corpus, split_reference
from core.intervals import bootstrap_interval, student_interval
from core.results import Score
from core.specs import REQUIRED, setting
from core.studies.domains import check_contents, content_of
from core.studies.memorisation_tables import markdown
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key
from core.training.accounting import DELTA

__all__ = ["MemorisationStudy", "markdown", "measure"]

_SETTINGS = MemorisationSettings()
_AUDITED = {
    "texts": MemorisationSettings(
        model="transformer", insertions=1, epochs=30, n_texts=1000, hidden=64, batch_size=64,
        max_length=64, n_generated=0,
    ),
    "gradients": MemorisationSettings(
        model="transformer", insertions=1, epochs=10, n_texts=300, hidden=32, batch_size=4096,
        max_length=64, n_generated=0,
    ),
}  # fmt: skip
# Gradients: every sample is in each of ten steps, where noise hides a canary least for its ε.
_CANARIES = {"texts": (1000, 200), "gradients": (5000, 200)}
"""How many there are, and how many are guessed."""


@dataclass(frozen=True, kw_only=True)
class MemorisationStudy:
    """Exposure against insertions and epochs by model, and the audit in one run by ε."""

    target: str = setting(REQUIRED, "the private texts: a corpus or a file")
    models: tuple[str, ...] = setting(MODEL_NAMES, "language models", choices=MODEL_NAMES)
    tokens: str = setting("bytes", "what they read", choices=("bytes", "words"))
    insertions: tuple[int, ...] = setting(
        (0, 1, 4, 16, 64), "times that a canary is planted, a model each; 0 is a control",
        low=0, high=10_000,
    )  # fmt: skip
    epochs: int = setting(_SETTINGS.epochs, "passes over the texts", low=1, high=1000)
    n_texts: int = setting(_SETTINGS.n_texts, "private sentences", low=20, high=200_000)
    n_canaries: int = setting(len(FORMATS), "canaries in a model, each of its own format",
                              low=1, high=len(FORMATS))  # fmt: skip
    n_generated: int = setting(_SETTINGS.n_generated, "texts drawn by each sampler", low=0)
    seeds: tuple[int, ...] = setting((0, 1, 2, 3, 4), "one run each", low=0)
    audit_epsilons: tuple[float, ...] = setting(
        (0.0, 8.0, 4.0, 1.0), "ε that audited models are trained to keep to; 0 for none",
        low=0, high=1000,
    )  # fmt: skip
    audit_access: tuple[str, ...] = setting(
        ACCESS, "what an auditor sees: the model at the end, or every step", choices=ACCESS
    )
    n_audits: int = setting(
        40, "audits of each kind, seeds from the first one on", low=1, high=1000
    )

    def cells(self) -> list[Cell]:
        """Return what is to be measured; every setting that a model depends on is part of it."""
        shared = {"study": "memorisation", "target": self.target,
                  "contents": [content_of(self.target)]}  # fmt: skip
        planted = [
            {**shared, "part": "exposure", "formats": list(FORMATS[: self.n_canaries]),
             "seed": seed, **self._settings(model, n).to_dict()}
            for model in self.models for n in self.insertions for seed in self.seeds
        ]  # fmt: skip
        first = min(self.seeds)
        return planted + [
            {**shared, "part": "audit", "access": access, "epsilon": epsilon,
             "delta": DELTA if epsilon else 0.0, "n_canaries": _CANARIES[access][0],
             "n_guesses": _CANARIES[access][1], "seed": first + i,
             **replace(_AUDITED[access], tokens=self.tokens).to_dict()}
            for access in self.audit_access for epsilon in self.audit_epsilons
            # Gradients are seen in private training; texts take minutes.
            if epsilon or access == "texts"
            for i in range(self.n_audits if access == "gradients" else len(self.seeds))
        ]  # fmt: skip

    def _settings(self, model: str, insertions: int) -> MemorisationSettings:
        return replace(
            _SETTINGS, model=model, tokens=self.tokens, insertions=insertions, epochs=self.epochs,
            n_texts=self.n_texts, n_generated=self.n_generated,
        )  # fmt: skip


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train one model and measure it; training that was killed goes on from its checkpoint."""
    check_contents(cell)
    names = MemorisationSettings.__dataclass_fields__
    settings = check_settings(MemorisationSettings(**{k: cell[k] for k in names}))
    path, column = split_reference(cell["target"])
    columns = None if column is None else Columns(text=column)
    corpus = load_corpus(path, columns=columns, limit=MOST_DOCUMENTS)
    texts = private_texts(corpus, settings.n_texts, cell["seed"])
    checkpoint = folder / "training" / cell_key(cell)
    measured = _audited if cell["part"] == "audit" else _planted
    rows = measured(cell, texts, settings, checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return rows


def _planted(
    cell: Cell, texts: list[str], settings: MemorisationSettings, checkpoint: Path
) -> list[Row]:
    """Return a row an epoch, the last with what was drawn from the model."""
    canaries = [make_canary(told, texts, cell["seed"] + 1000 * i)
                for i, told in enumerate(cell["formats"])]  # fmt: skip
    run = run_planted(texts, canaries, settings, cell["seed"], checkpoint_dir=checkpoint)
    rows = [_row_of(found, run) for found in run.epochs]
    if run.extractions:
        last = rows[-1]
        rows[-1] = replace(last, facts={**last.facts, "extraction": _drawn(run)})
    return rows


def _row_of(found: EpochFound, run: PlantedRun) -> Row:
    size = run.canaries[0].size
    values = np.array([each.exposure.value for each in found.canaries])
    controls, chance = np.array(found.controls), mean_of_chance(size)
    interval = student_interval(values, low=0.0, high=math.log2(size))
    return Row(
        scores={
            "exposure": Score(float(values.mean()), interval, len(values), chance),
            "control_exposure": Score(float(controls.mean()), bootstrap_interval(controls),
                                      len(controls), chance),
        },
        facts={
            "epoch": found.epoch, "n_fitted_on": run.n_texts, "n_values": size,
            "bits_a_token": found.bits_a_token, "exposures": values.tolist(),
            "ranks": [each.rank for each in found.canaries],
            "is_exact": all(each.is_exact for each in found.canaries),
        },
    )  # fmt: skip


def _drawn(run: PlantedRun) -> dict[str, Any]:
    """Return by sampler how many canaries came out, and by ranking among the first ten."""
    return {
        each.sampler: {
            "n_drawn": each.n_drawn,
            "n_found": sum(count > 0 for count in each.found),
            "among_ten": {name: sum(p is not None and p <= 10 for p in places)
                          for name, places in each.places.items()},
        }
        for each in run.extractions
    }  # fmt: skip


def _audited(
    cell: Cell, texts: list[str], settings: MemorisationSettings, checkpoint: Path
) -> list[Row]:
    """Return the bound beside the accountant's ε, and as a control that of coins tossed anew."""
    plan = AuditPlan(**{name: cell[name] for name in AuditPlan.__dataclass_fields__})
    audited = audit_model(texts, settings, plan, cell["seed"], checkpoint_dir=checkpoint)
    found, privacy = audited.found, audited.privacy
    facts = {
        "n_right": found.n_right, "most_epsilon": found.most, "alpha": found.alpha,
        "n_right_shuffled": audited.shuffled.n_right,
        "accountant_epsilon": None if privacy is None else privacy.epsilon,
        "noise_multiplier": None if privacy is None else privacy.noise_multiplier,
        "n_steps": None if privacy is None else privacy.n_steps,
    }  # fmt: skip
    scores = {
        "epsilon_bound": Score(found.epsilon, n=found.n_guesses),
        "epsilon_bound_shuffled": Score(audited.shuffled.epsilon, n=found.n_guesses),
        "auc": audited.auc,
    }
    return [Row(scores=scores, facts=facts)]
