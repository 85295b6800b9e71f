"""The replacement study: how near a mechanism's replacement is to the original token, by rank.

A cell a mechanism at one strength, on tokens of sentences that ship. Asghar et al. (2024, arXiv
2411.13784) hold against d_χ-privacy that in many dimensions hardly any replacement is near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.assets import RESULTS
from leakscope.core.corpora import load_bundled
from leakscope.core.defences.metric_dp.exponential_mechanism import Distances
from leakscope.core.defences.metric_dp.replacement_ranks import (
    RANKS,
    bundled_tokens,
    rank_classes,
    replacement_ranks,
)
from leakscope.core.defences.protected import generator_of
from leakscope.core.defences.registry import entry_of, make_defence
from leakscope.core.defences.setting import strength
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.intervals import percent_interval, wilson_interval
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import markdown_table, read_rows
from leakscope.core.specs import DefenceSpec, setting
from leakscope.core.studies.tradeoff.defence_grid import chosen_defences

SHIPPED = RESULTS / "replacements.json"
"""Shipped results of `leakscope study replacements`."""

MECHANISMS = ("text_to_text", "text_to_text_ranked", "santext", "santext_plus", "custext", "tem")
"""Mechanisms that replace a text token by token."""

_SAID = (
    "the token itself",
    "one of its 10 nearest",
    "11th to 100th",
    "101st to 1,000th",
    "farther",
)

CLASSES = dict(zip(rank_classes(np.zeros(0, np.int64)), _SAID, strict=True))
"""Each class of ranks among a token's neighbours, with its title."""

COLUMNS = (
    "mechanism",
    "strength",
    *(f"{title}, %" for title in CLASSES.values()),
    "median rank beyond the 10 nearest",
)
"""The columns of the table of shares."""

_FEW = 0.1
"""Percentage below which one decimal would round to zero."""


@dataclass(frozen=True, kw_only=True)
class ReplacementStudy:
    """Settings of the replacement study: mechanisms, encoder and number of sentences."""

    defences: tuple[str, ...] = setting(
        MECHANISMS, "mechanisms by name, at all strengths, or one as NAME:SETTING=VALUE"
    )
    encoder: str = setting("minilm", "encoder whose tokens they replace")
    n_texts: int = setting(400, "bundled sentences whose tokens are replaced", low=2)
    seed: int = setting(0, "random seed of the draws and of the intervals", low=0)

    def cells(self) -> list[Cell]:
        """Return one cell per mechanism and strength.

        Raises
        ------
        InvalidInputError
            No such defence, or one that replaces no tokens.
        """
        specs = chosen_defences(self.defences)
        for spec in specs:
            if spec.name not in MECHANISMS:
                raise InvalidInputError(
                    f"--defences: {spec.name} does not replace token by token. Choose "
                    f"among {', '.join(MECHANISMS)}."
                )
        shared = {
            "study": "replacements",
            "encoder": self.encoder,
            "n_texts": self.n_texts,
            "bundled": load_bundled().content_hash[:16],
        }
        return [
            {
                **shared,
                "defence": spec.name,
                "defence_settings": dict(spec.settings),
                "seed": self.seed,
            }
            for spec in specs
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Replace tokens of bundled sentences; return a row with the per cent in each class of ranks.

    Per cent of the tokens of each class of ranks; intervals are over sentences, which are drawn
    whole. Chance is the share of a token that is drawn evenly from all candidates.
    """
    encoder = require_white_box(load_encoder(cell["encoder"]), "Replacing tokens")
    settings = {**cell["defence_settings"], "seed": cell["seed"]}
    mechanism: Any = make_defence(DefenceSpec.of(cell["defence"], settings))
    privatizer = mechanism.privatizer(encoder, generator_of(cell["seed"]))
    ids, texts = bundled_tokens(encoder, cell["n_texts"])
    groups = texts.tolist()
    found = replacement_ranks(Distances(encoder, privatizer.ids), ids, privatizer.tokens(ids))
    classes = rank_classes(np.arange(found.n_candidates))
    scores = {
        name: Score(
            100 * float(held.mean()),
            _interval(held, groups, cell["seed"]),
            len(ids),
            100 * int(classes[name].sum()) / found.n_candidates,
        )
        for name, held in rank_classes(found.ranks).items()
    }
    facts = {
        "n_candidates": found.n_candidates,
        "n_sentences": len(set(groups)),
        "middle": found.middle,
        "n_beyond": int((found.ranks > RANKS[1]).sum()),
    }
    return [Row(scores=scores, facts=facts)]


def _interval(held: NDArray[np.bool_], groups: Sequence[int], seed: int) -> Interval:
    """Return the interval of a share of tokens, over sentences; Wilson's if all tokens agree.

    In that case resampling sentences gives no width.
    """
    n = len(set(groups))
    if n > 1 and (held.all() or not held.any()):
        return wilson_interval(n * int(held.all()), n)
    return percent_interval(100 * held.astype(np.float64), groups=groups, seed=seed)


def load_replacements(path: Path = SHIPPED) -> list[Row]:
    """Read the measured rows of `leakscope study replacements` from a file.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = read_rows(path, "replacements").measured
    try:
        is_whole = bool(rows) and all(
            CLASSES.keys() <= row.scores.keys() and isinstance(row["encoder"], str) for row in rows
        )
        markdown(rows)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidInputError):
        is_whole = False
    if not is_whole:
        raise ArtifactError(
            f"{path} does not contain results of `leakscope study replacements`. Run the study "
            "again."
        )
    return rows


def describe_setting(row: Row) -> tuple[str, str]:
    """Return a row's mechanism and strength, as in `("SanText", "ε 12")`."""
    return entry_of(row["defence"]).title, strength(row["defence"], row["defence_settings"])


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table: the share of tokens per class of ranks."""
    lines = [
        [*describe_setting(row), f"failed: {row.error}"] if row.error else table_cells(row)
        for row in rows
    ]
    return _introduction(rows) + "\n".join(markdown_table(COLUMNS, lines)) + "\n"


def table_cells(row: Row) -> list[str]:
    """Format a row as table cells for `COLUMNS`; small shares have two decimals."""
    shares = [row.format(name, 2 if row.scores[name].value < _FEW else 1) for name in CLASSES]
    median = "–" if row["middle"] is None else f"{row['middle']:,} (n {row['n_beyond']:,})"
    return [*describe_setting(row), *shares, median]


def _introduction(rows: Sequence[Row]) -> str:
    """Format the title and paragraph above the table: tokens, sentences, and shares by chance."""
    head = "# What replaces a token\n\n"
    first = next((row for row in rows if not row.error), None)
    if first is None:
        return head
    own = first.scores[next(iter(CLASSES))]
    even = ", ".join(f"{first.scores[name].chance:.2g}" for name in CLASSES)
    return head + (
        f"{own.n:,} tokens from {first['n_sentences']:,} bundled sentences, each replaced once "
        f"(random seed {first['seed']}) by one of {first['n_candidates']:,} possible tokens of "
        f"{first['encoder']}. Columns give the rank of the replacement among the original's "
        f"neighbours, with 95 % CI over sentences. A uniform draw would give {even} %.\n"
        "\n"
    )
