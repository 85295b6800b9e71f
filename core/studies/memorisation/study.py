"""The memorisation study: exposure of planted canaries, and lower bounds of ε from one-run audits.

A cell of the exposures is one model trained with a canary of each format; it is measured after
each epoch. A cell of the audit is one model with many canaries, each included with probability ½.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from leakscope.core.attacks.membership.memorisation.canaries import FORMATS, make_canary
from leakscope.core.attacks.membership.memorisation.experiment import (
    EpochFound,
    PlantedRun,
    run_planted,
)
from leakscope.core.attacks.membership.memorisation.exposure import mean_chance_exposure
from leakscope.core.attacks.membership.memorisation.memorise import mean_over_seeds
from leakscope.core.attacks.membership.memorisation.model_audit import (
    ACCESS,
    AuditPlan,
    audit_model,
)
from leakscope.core.attacks.membership.memorisation.settings import (
    MODEL_NAMES,
    MemorisationSettings,
)
from leakscope.core.attacks.membership.memorisation.texts import (
    MOST_DOCUMENTS,
    check_settings,
    private_texts,
)
from leakscope.core.corpora import Columns, load_corpus, split_reference
from leakscope.core.intervals import bootstrap_interval, student_interval
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.studies.domains import check_contents, content_of
from leakscope.core.studies.memorisation.summary import gaussian_bounds
from leakscope.core.studies.runner import cell_key
from leakscope.core.training.accounting import DELTA

_SETTINGS = MemorisationSettings()
_AUDITED = {
    "texts": MemorisationSettings(
        model="transformer",
        insertions=1,
        epochs=30,
        n_texts=1000,
        hidden=64,
        batch_size=64,
        max_length=64,
        n_generated=0,
    ),
    "gradients": MemorisationSettings(
        model="transformer",
        insertions=1,
        epochs=10,
        n_texts=300,
        hidden=32,
        batch_size=4096,
        max_length=64,
        n_generated=0,
    ),
}
# Gradients: every sample is in each of ten steps; there the noise hides a canary least for an ε.
_CANARIES = {"texts": (1000, 200), "gradients": (5000, 200)}
"""The number of canaries, and how many of them the auditor guesses."""


@dataclass(frozen=True, kw_only=True)
class MemorisationStudy:
    """Settings of the study: exposure by model, insertions and epochs, and audits by ε."""

    target: str = setting(REQUIRED, "the private texts: a corpus or a file")
    models: tuple[str, ...] = setting(MODEL_NAMES, "language models", choices=MODEL_NAMES)
    tokens: str = setting("bytes", "their tokens", choices=("bytes", "words"))
    insertions: tuple[int, ...] = setting(
        (0, 1, 4, 16, 64),
        "times that a canary is planted, one model each; 0 is a control",
        low=0,
        high=10_000,
    )
    epochs: int = setting(_SETTINGS.epochs, "passes over the texts", low=1, high=1000)
    n_texts: int = setting(_SETTINGS.n_texts, "private sentences", low=20, high=200_000)
    n_canaries: int = setting(
        len(FORMATS), "canaries per model, each with its own format", low=1, high=len(FORMATS)
    )
    n_generated: int = setting(_SETTINGS.n_generated, "texts sampled by each sampler", low=0)
    seeds: tuple[int, ...] = setting((0, 1, 2, 3, 4), "one run each", low=0)
    audit_epsilons: tuple[float, ...] = setting(
        (0.0, 8.0, 4.0, 1.0),
        "ε that the training of audited models guarantees; 0 for none",
        low=0,
        high=1000,
    )
    audit_access: tuple[str, ...] = setting(
        ACCESS, "what the auditor sees: the final model, or every step", choices=ACCESS
    )
    n_audits: int = setting(
        40, "audits of each kind; seeds count up from the first", low=1, high=1000
    )

    def cells(self) -> list[Cell]:
        """Return one cell per trained model, for exposure and for audits."""
        shared = {
            "study": "memorisation",
            "target": self.target,
            "contents": [content_of(self.target)],
        }
        planted = [
            {
                **shared,
                "part": "exposure",
                "formats": list(FORMATS[: self.n_canaries]),
                "seed": seed,
                **self._model_settings(model, n).to_dict(),
            }
            for model in self.models
            for n in self.insertions
            for seed in self.seeds
        ]
        first = min(self.seeds)
        return planted + [
            {
                **shared,
                "part": "audit",
                "access": access,
                "epsilon": epsilon,
                "delta": DELTA if epsilon else 0.0,
                "n_canaries": _CANARIES[access][0],
                "n_guesses": _CANARIES[access][1],
                "seed": first + i,
                **replace(_AUDITED[access], tokens=self.tokens).to_dict(),
            }
            for access in self.audit_access
            for epsilon in self.audit_epsilons
            # Gradient audits need private training; text audits take minutes.
            if epsilon or access == "texts"
            for i in range(self.n_audits if access == "gradients" else len(self.seeds))
        ]

    def _model_settings(self, model: str, insertions: int) -> MemorisationSettings:
        """Return the settings to train a model with canaries planted n times."""
        return replace(
            _SETTINGS,
            model=model,
            tokens=self.tokens,
            insertions=insertions,
            epochs=self.epochs,
            n_texts=self.n_texts,
            n_generated=self.n_generated,
        )


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a cell's language model and measure its exposure, or audit it; resume if stopped."""
    check_contents(cell)
    names = MemorisationSettings.__dataclass_fields__
    settings = check_settings(MemorisationSettings(**{k: cell[k] for k in names}))
    path, column = split_reference(cell["target"])
    columns = None if column is None else Columns(text=column)
    corpus = load_corpus(path, columns=columns, limit=MOST_DOCUMENTS)
    texts = private_texts(corpus, settings.n_texts, cell["seed"])
    checkpoint = folder / "training" / cell_key(cell)
    measured = _measure_audit if cell["part"] == "audit" else _measure_exposure
    rows = measured(cell, texts, settings, checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return rows


def _measure_exposure(
    cell: Cell, texts: list[str], settings: MemorisationSettings, checkpoint: Path
) -> list[Row]:
    """Train on planted canaries; return a row per epoch, the last with extraction results."""
    canaries = [
        make_canary(told, texts, cell["seed"] + 1000 * i) for i, told in enumerate(cell["formats"])
    ]
    run = run_planted(texts, canaries, settings, cell["seed"], checkpoint_dir=checkpoint)
    rows = [_epoch_row(found, run) for found in run.epochs]
    if run.extractions:
        last = rows[-1]
        rows[-1] = replace(last, facts={**last.facts, "extraction": _extraction_facts(run)})
    return rows


def _epoch_row(found: EpochFound, run: PlantedRun) -> Row:
    """Build the row of one epoch: exposure of canaries and controls, and bits per token."""
    size = run.canaries[0].size
    values = np.array([each.exposure.value for each in found.canaries])
    controls, chance = np.array(found.controls), mean_chance_exposure(size)
    interval = student_interval(values, low=0.0, high=math.log2(size))
    return Row(
        scores={
            "exposure": Score(float(values.mean()), interval, len(values), chance),
            "control_exposure": Score(
                float(controls.mean()), bootstrap_interval(controls), len(controls), chance
            ),
        },
        facts={
            "epoch": found.epoch,
            "n_fitted_on": run.n_texts,
            "n_values": size,
            "bits_a_token": found.bits_a_token,
            "exposures": values.tolist(),
            "ranks": [each.rank for each in found.canaries],
            "is_exact": all(each.is_exact for each in found.canaries),
        },
    )


def _extraction_facts(run: PlantedRun) -> dict[str, Any]:
    """Return, by sampler, how many canaries it generated, and how many rank in the first ten."""
    return {
        each.sampler: {
            "n_drawn": each.n_drawn,
            "n_found": sum(count > 0 for count in each.found),
            "among_ten": {
                name: sum(p is not None and p <= 10 for p in places)
                for name, places in each.places.items()
            },
        }
        for each in run.extractions
    }


def _measure_audit(
    cell: Cell, texts: list[str], settings: MemorisationSettings, checkpoint: Path
) -> list[Row]:
    """Audit one model; return a row: the bound of ε, and that with re-randomised inclusion."""
    plan = AuditPlan(**{name: cell[name] for name in AuditPlan.__dataclass_fields__})
    audited = audit_model(texts, settings, plan, cell["seed"], checkpoint_dir=checkpoint)
    found, privacy = audited.found, audited.privacy
    facts = {
        "n_right": found.n_right,
        "most_epsilon": found.most,
        "alpha": found.alpha,
        "n_right_shuffled": audited.shuffled.n_right,
        "accountant_epsilon": None if privacy is None else privacy.epsilon,
        "noise_multiplier": None if privacy is None else privacy.noise_multiplier,
        "n_steps": None if privacy is None else privacy.n_steps,
    }
    scores = {
        "epsilon_bound": Score(found.epsilon, n=found.n_guesses),
        "epsilon_bound_shuffled": Score(audited.shuffled.epsilon, n=found.n_guesses),
        "auc": audited.auc,
    }
    return [Row(scores=scores, facts=facts)]


SHOWN_EPOCHS = (1, 2, 5, 10, 20, 50)
"""Epochs shown in a table besides the last."""

_SAMPLERS = {"top_k": "top-k", "temperature": "decaying temperature", "prefix": "prefix known"}
_RANKINGS = {
    "perplexity": "perplexity",
    "smaller": "smaller model",
    "zlib": "zlib",
    "lower_case": "lower case",
}


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: exposure by insertions and epoch, extraction, audits."""
    table = ResultTable(rows)
    planted, audited = (table.measured.where(part=part) for part in ("exposure", "audit"))
    parts = ["# What language models memorise of planted canaries", ""]
    parts += [*_exposure_table(planted), *_extraction_table(planted)] if planted else []
    parts += _audit_section(audited) if audited else []
    if table.failed:
        columns = ("part", "model", "seed", "why it failed")
        lines = [(row["part"], row["model"], row["seed"], row.error) for row in table.failed]
        parts += ["", "## Failed", "", *markdown_table(columns, lines)]
    return "\n".join(parts) + "\n"


def exposure_over_seeds(rows: Sequence[Row], measure: str = "exposure") -> Score:
    """Average the exposure of rows that differ only in their seed, to a score."""
    return mean_over_seeds([row.scores[measure] for row in rows])


def _exposure_table(rows: ResultTable) -> list[str]:
    """Return the Markdown table of exposure by model, insertions and epoch."""
    first, last = rows[0], max(rows.column("epoch"))
    epochs = [epoch for epoch in SHOWN_EPOCHS if epoch < last] + [last]
    head = (
        "model",
        "insertions",
        "controls",
        *(f"epoch {epoch}" for epoch in epochs),
        "bits per token",
    )
    lines = []
    for (model, insertions), found in rows.group_by("model", "insertions").items():
        at = {epoch: found.where(epoch=epoch) for epoch in epochs}
        cells = [exposure_over_seeds(at[epoch]).format(is_bold=epoch == last) for epoch in epochs]
        control = exposure_over_seeds(at[last], "control_exposure").format(2)
        bits = at[last].average("bits_a_token")
        lines.append((model, insertions, control, *cells, f"{bits:.2f}"))
    n_seeds = len(rows.distinct("seed"))
    over = f"canaries and {n_seeds} seeds" if n_seeds > 1 else "the canaries of one seed"
    score = first.scores["exposure"]
    return [
        f"Exposure in bits. Each model has {score.n} canaries, each with its own format and "
        f"{first['n_values']:,} possible values, planted in {first['n_fitted_on']:,} sentences; "
        f"tokens are {first['tokens']}. Brackets: 95 % CI over {over}. The controls are canaries "
        f"that were never planted; by chance, their mean is {score.chance:.2f} bits.",
        "",
        *markdown_table(head, lines),
        "",
    ]


def _extraction_table(rows: ResultTable) -> list[str]:
    """Return the Markdown table of canaries that sampling generated; empty if none was run."""
    drawn = rows.where(lambda row: "extraction" in row.facts)
    if not drawn:
        return []
    head = (
        "model",
        "insertions",
        "sampler",
        "texts sampled",
        "canaries that came out",
        *(f"among the first ten: {said}" for said in _RANKINGS.values()),
    )
    lines = []
    for (model, insertions), found in drawn.group_by("model", "insertions").items():
        n = sum(row.scores["exposure"].n for row in found)
        for sampler, said in _SAMPLERS.items():
            told = [row["extraction"][sampler] for row in found]
            among = [sum(each["among_ten"].get(name, 0) for each in told) for name in _RANKINGS]
            n_found = sum(each["n_found"] for each in told)
            n_drawn = sum(each["n_drawn"] for each in told)
            lines.append((model, insertions, said, f"{n_drawn:,}", f"{n_found} of {n}", *among))
    return ["## What sampling reveals", "", *markdown_table(head, lines), ""]


def _audit_section(rows: ResultTable) -> list[str]:
    """Return the Markdown section on lower bounds of ε by access and accountant's ε."""
    head = (
        "the auditor sees",
        "ε of the accountant",
        "audits",
        "lower bound of ε: median (highest)",
        "the same, if the training is a Gaussian mechanism",
        "above the accountant's ε",
        "control above 0",
        "AUC",
        "right guesses",
        "highest possible bound",
    )
    return [
        "## One-run audit",
        "",
        "Each canary is inserted with probability ½. The lower bound of an audit holds with "
        f"{1 - rows[0]['alpha']:.0%} confidence and must not exceed the accountant's ε (δ = "
        f"{max(rows.column('delta')):g}). It holds for every mechanism. Private training is close "
        "to a Gaussian mechanism, which gives the same guesses only at a larger ε. Control: "
        "re-randomised inclusion; the bound should be 0.",
        "",
        *markdown_table(head, map(_audit_cells, rows.group_by("access", "epsilon").values())),
        "",
    ]


_SEEN = {"texts": "the final model, texts inserted", "gradients": "every step, gradients inserted"}


def _audit_cells(rows: ResultTable) -> tuple[object, ...]:
    """Return the table cells of the audits of one kind of model."""
    first = rows[0]
    epsilon = first["accountant_epsilon"]
    bounds, shuffled = rows.values("epsilon_bound"), rows.values("epsilon_bound_shuffled")
    n, gaussian = len(rows), gaussian_bounds(rows)
    return (
        f"{_SEEN[first['access']]} ({first['n_canaries']:,})",
        "none" if epsilon is None else f"{epsilon:.2f}",
        n,
        f"**{median(bounds):.2f}** ({max(bounds):.2f})",
        f"{median(gaussian):.2f} ({max(gaussian):.2f})" if gaussian else "–",
        "–" if epsilon is None else f"{sum(b > epsilon for b in bounds)} of {n}",
        f"{sum(b > 0 for b in shuffled)} of {n}",
        f"{median(rows.values('auc')):.3f}",
        f"{median(rows.column('n_right')):g} of {first['n_guesses']}",
        f"{first['most_epsilon']:.2f}",
    )
