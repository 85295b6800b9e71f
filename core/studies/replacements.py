"""What replaces a token behind each mechanism that releases a text: itself, a near one, or another.

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

from core.assets import ASSETS
from core.corpora import load_bundled
from core.defences.metric_dp.choosing import Distances
from core.defences.metric_dp.replaced import (
    RANKS,
    bundled_tokens,
    classes_of,
    replacement_ranks,
)
from core.defences.protected import generator_of
from core.defences.registry import entry_of, make_defence
from core.encoders import load_encoder
from core.encoders.white_box import require_white_box
from core.errors import ArtifactError, InvalidInputError
from core.intervals import percent_interval, wilson_interval
from core.results import Interval, Score
from core.specs import DefenceSpec, setting
from core.studies.defence_grid import chosen_defences
from core.studies.rows import Cell, Row
from core.studies.tables import markdown_table, read_rows
from core.studies.tradeoff_point import strength

__all__ = [
    "CLASSES",
    "MECHANISMS",
    "SHIPPED",
    "ReplacementStudy",
    "load_replacements",
    "markdown",
    "measure",
    "middle_said",
    "setting_said",
    "shares_said",
]

SHIPPED = ASSETS / "deniability" / "replacements.json"
"""What `python -m core study replacements` wrote, where it comes with the project."""

MECHANISMS = ("text_to_text", "text_to_text_ranked", "santext", "santext_plus", "custext", "tem")
"""Those that release a text, one token for one."""

_SAID = (
    "the token itself",
    "one of its 10 nearest",
    "11th to 100th",
    "101st to 1,000th",
    "farther",
)

CLASSES = dict(zip(classes_of(np.zeros(0, np.int64)), _SAID, strict=True))
"""Each class of ranks among a token's neighbours, and how it is called."""

_FEW = 0.1
"""Per cent below which one decimal would say none."""


@dataclass(frozen=True, kw_only=True)
class ReplacementStudy:
    """How near what comes out of each mechanism is to what went in, by its rank."""

    defences: tuple[str, ...] = setting(
        MECHANISMS, "mechanisms by name, at all strengths, or one as NAME:SETTING=VALUE"
    )
    encoder: str = setting("minilm", "whose tokens they replace")
    n_texts: int = setting(400, "sentences that ship, whose tokens are replaced", low=2)
    seed: int = setting(0, "of the draws, and of the intervals", low=0)

    def cells(self) -> list[Cell]:
        """Return what is to be measured.

        Raises
        ------
        InvalidInputError
            No such defence, or one that replaces no tokens.
        """
        specs = chosen_defences(self.defences)
        for spec in specs:
            if spec.name not in MECHANISMS:
                raise InvalidInputError(
                    f"--defences: {spec.name} does not replace token for token. Choose of "
                    f"{', '.join(MECHANISMS)}."
                )
        shared = {"study": "replacements", "encoder": self.encoder, "n_texts": self.n_texts,
                  "bundled": load_bundled().content_hash[:16]}  # fmt: skip
        return [
            {**shared, "defence": spec.name, "defence_settings": dict(spec.settings),
             "seed": self.seed}
            for spec in specs
        ]  # fmt: skip


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Replace the tokens once, and count how many become what.

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
    sizes = _sizes(found.n_candidates)
    scores = {
        name: Score(
            100 * float(held.mean()),
            _interval(held, groups, cell["seed"]),
            len(ids),
            100 * sizes[name] / found.n_candidates,
        )
        for name, held in classes_of(found.ranks).items()
    }
    facts = {
        "n_candidates": found.n_candidates,
        "n_sentences": len(set(groups)),
        "middle": found.middle,
        "n_beyond": int((found.ranks > RANKS[1]).sum()),
    }
    return [Row(scores=scores, facts=facts)]


def _interval(held: NDArray[np.bool_], groups: Sequence[int], seed: int) -> Interval:
    """Return that of a share in per cent, over sentences; where all are alike, as if each were one.

    No draw of sentences would tell then how far the share may be from all or from none.
    """
    n = len(set(groups))
    if n > 1 and (held.all() or not held.any()):
        return wilson_interval(n * int(held.all()), n)
    return percent_interval(100 * held.astype(np.float64), groups=groups, seed=seed)


def _sizes(n_candidates: int) -> dict[str, int]:
    """Return how many candidates each class of ranks holds."""
    ranks = np.arange(n_candidates)
    return {name: int(held.sum()) for name, held in classes_of(ranks).items()}


def load_replacements(path: Path = SHIPPED) -> list[Row]:
    """Read what `python -m core study replacements` wrote; cells that failed are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = [row for row in read_rows(path, "replacements") if not row.error]
    try:
        is_whole = bool(rows) and all(map(_is_told, rows))
        markdown(rows)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidInputError):
        is_whole = False
    if not is_whole:
        raise ArtifactError(
            f"{path} does not hold rows of `python -m core study replacements`. Make it anew."
        )
    return rows


def _is_told(row: Row) -> bool:
    """Whether a row holds all classes and what stands beside them."""
    return CLASSES.keys() <= row.scores.keys() and isinstance(row["encoder"], str)


def setting_said(row: Row) -> tuple[str, str]:
    """Return a mechanism and its strength, as in `("SanText", "ε 12")`."""
    return entry_of(row["defence"]).title, strength(row["defence"], row["defence_settings"])


def markdown(rows: Sequence[Row]) -> str:
    """Return the table: what share of tokens becomes what, for each mechanism."""
    columns = ["mechanism", "strength", *(f"{said}, %" for said in CLASSES.values()),
               "median rank beyond the 10 nearest"]  # fmt: skip
    lines = [_line(row) for row in rows]
    return _head(rows) + "\n".join(markdown_table(columns, lines)) + "\n"


def _line(row: Row) -> list[str]:
    told = [*setting_said(row)]
    if row.error:
        return [*told, f"failed: {row.error}"]
    return [*told, *shares_said(row).values(), middle_said(row)]


def shares_said(row: Row) -> dict[str, str]:
    """Return the share of each class in per cent; of few tokens with a decimal more."""
    few = {name: row.scores[name].value < _FEW for name in CLASSES}
    return {name: row.said(name, 2 if is_few else 1) for name, is_few in few.items()}


def middle_said(row: Row) -> str:
    """Return the median rank of what became none of the nearest, and of how many."""
    return "–" if row["middle"] is None else f"{row['middle']:,} (n {row['n_beyond']:,})"


def _head(rows: Sequence[Row]) -> str:
    head = "# What replaces a token\n\n"
    first = next((row for row in rows if not row.error), None)
    if first is None:
        return head
    own = first.scores[next(iter(CLASSES))]
    even = ", ".join(f"{first.scores[name].chance:.2g}" for name in CLASSES)
    return head + (
        f"{own.n:,} tokens of {first['n_sentences']:,} sentences that ship, each replaced once, "
        f"seed {first['seed']}; {first['n_candidates']:,} tokens of {first['encoder']} could come "
        "out. "
        "Where the replacement stands among the original's neighbours. Intervals of 95 % are over "
        f"sentences. Drawn evenly from all it would be {even} %.\n\n"
    )
