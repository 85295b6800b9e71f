"""Inversion by encoder layer as cells of a study (Song & Raghunathan 2020, Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from core.encoders import load_encoder
from core.encoders.white_box import require_white_box
from core.figures.layers import layers_figure
from core.protocols import OnProgress, no_progress
from core.specs import EncoderSpec
from core.studies.domains import check_contents, content_of, open_domain
from core.studies.layers import EQUATIONS, USUAL, attack_layer, prior_f1
from core.studies.runner import Cell, failures, run_cells
from core.studies.tables import SCORE_COLUMNS, markdown_table, score_cells

__all__ = ["LayerStudy", "figure", "markdown", "measure", "run"]


@dataclass(frozen=True, kw_only=True)
class LayerStudy:
    """What to measure.

    Parameters
    ----------
    target, other : str
        The attacked collection, and the cross-domain one.
    encoders : tuple of str
        White-box encoders by name.
    layers : tuple of int
        Whose mean-pooled states are attacked; 0 is the mean of token vectors.
    n_auxiliary, n_targets : int
        Sentences to learn the map of Eq. 7 on, and sentences under attack, the same everywhere.
    relaxation_settings, sparse_settings : pairs of name and value
        Where they differ from USUAL.
    """

    target: str
    other: str = "wikipedia"
    encoders: tuple[str, ...] = ("minilm",)
    domains: tuple[str, ...] = ("cross",)
    layers: tuple[int, ...] = tuple(range(7))
    n_auxiliary: int = 5_000
    n_targets: int = 50
    seeds: tuple[int, ...] = (0,)
    relaxation_settings: tuple[tuple[str, Any], ...] = ()
    sparse_settings: tuple[tuple[str, Any], ...] = ()

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
        own = {"Eq. 5": dict(self.relaxation_settings), "Eq. 7": dict(self.sparse_settings)}
        return [
            {
                "study": "layers",
                "target": self.target,
                "other": self.other,
                "contents": [content_of(self.target), content_of(self.other)],
                "encoder": encoder,
                "domain": domain,
                "layer": layer,
                "equation": equation,
                "n_auxiliary": self.n_auxiliary,
                "n_targets": self.n_targets,
                "seed": seed,
                "settings": USUAL[equation] | own[equation],
            }
            for domain in self.domains
            for encoder in self.encoders
            for layer in self.layers
            for equation in EQUATIONS
            for seed in self.seeds
        ]


def run(
    study: LayerStudy,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_progress: OnProgress = no_progress,
) -> list[dict[str, Any]]:
    """Return a row for each encoder, layer, equation and seed; see `run_cells`."""
    return run_cells(study.cells(), measure, folder, n_jobs=n_jobs, on_progress=on_progress)


def measure(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """Attack the mean-pooled states of one layer by one equation; see `core.studies.layers.run`.

    Raises
    ------
    InvalidInputError
        The encoder is no white box.
    """
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "n_targets", "seed")
    domain = open_domain(**{name: cell[name] for name in names})
    opened = load_encoder(EncoderSpec(name=cell["encoder"], layer=cell["layer"]))
    encoder = require_white_box(opened, "the study by layer")
    seed, texts = cell["seed"], domain.targets
    row = attack_layer(
        cell["equation"], encoder, texts, domain.auxiliary, seed=seed, settings=cell["settings"]
    )
    return [{**row, "prior_f1": prior_f1(encoder, texts, domain.auxiliary, seed)}]


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    columns = ("encoder", "layer", "equation", *SCORE_COLUMNS, "prior F1")
    lines = markdown_table(
        columns,
        (
            (row["encoder"], row["layer"], row["equation"], *score_cells(row, "prior_f1"))
            for row in rows
        ),
    )
    return "\n".join(lines) + "\n"


def figure(rows: Sequence[dict[str, Any]]) -> go.Figure:
    """Return F1 by layer of the first encoder, domain and seed."""
    measured = [row for row in rows if row not in failures(rows)]
    first = measured[0]
    same = ("encoder", "domain", "seed")
    shown = [row for row in measured if all(row[name] == first[name] for name in same)]
    return layers_figure(
        {"encoder": first["encoder"], "n": first["n"], "prior_f1": first["prior_f1"], "rows": shown}
    )
