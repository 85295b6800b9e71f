"""Accuracy curves of attribute attacks by number of labels or of labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.errors import ArtifactError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows

SHIPPED = RESULTS

FILES = ("attributes-novels.json", "attributes-novels-textcnn.json", "attributes-books.json")
"""Files with the shipped rows of the bundled encoder and of baselines."""

_TOLD_BY = (
    "split",
    "labelled_from",
    "attribute_attack",
    "encoder",
    "n_labels",
    "n_per_label",
    "is_shuffled",
    "seed",
)
"""Entries that are the same in rows of one measurement."""

SOURCES = {
    "row": "other texts",
    "run": "other passages of the same or other works",
    "group": "other works",
    "same_group": "other passages of the attacked works",
}
"""Where labelled texts come from, relative to the targets, in words."""

TOP = (1, 5)
"""k of the top-k accuracies that are measured, each where there are more than k labels."""

ALONG = {"n_per_label": "labelled texts per label", "n_labels": "number of labels"}
"""Title of each horizontal axis of the accuracy curves."""


@dataclass(frozen=True)
class View:
    """Which rows to show: source of labelled texts, number of labels, texts per label, and k."""

    source: str
    n_labels: int
    n_per_label: int
    k: int = 1


@dataclass(frozen=True)
class Curve:
    """The accuracy of one attack along one size: equally long tuples of sizes, scores and origins.

    Attributes
    ----------
    origins : tuple of tuple of Provenance or None
        Of each size: where the cells of its score come from.
    """

    attack: str
    encoder: str
    sizes: tuple[int, ...]
    scores: tuple[Score, ...]
    origins: tuple[tuple[Provenance | None, ...], ...]
    is_shuffled: bool = False


def load_rows(path: Path) -> ResultTable:
    """Read measured rows of `leakscope study attributes` from a file; failed cells are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = read_rows(path, "attributes").measured
    if not rows or not all("top1" in row.scores and "n_labels" in row.facts for row in rows):
        raise ArtifactError(
            f"{path} does not contain rows of `leakscope study attributes`. Run the study again."
        )
    return rows


def load_shipped(folder: Path = SHIPPED) -> ResultTable:
    """Read the shipped rows of the attribute study from those result files that a folder has.

    Raises
    ------
    ArtifactError
        One is damaged or of another study; the message names it.
    """
    found: dict[tuple[object, ...], Row] = {}
    for name in FILES:
        for row in load_rows(folder / name) if (folder / name).exists() else ():
            # The first one counts: a table may repeat rows of another for comparison.
            found.setdefault(tuple(row.get(entry) for entry in _TOLD_BY), row)
    return ResultTable(found.values())


def views_of(rows: Sequence[Row], source: str) -> tuple[list[int], list[int]]:
    """Return a source's measured numbers of labels, and of texts per label, as ascending lists."""
    own = ResultTable(rows).where(labelled_from=source, is_shuffled=False)
    return sorted(own.distinct("n_labels")), sorted(own.distinct("n_per_label"))


def labelled_sources(rows: Sequence[Row]) -> list[str]:
    """Return the names of the sources of labelled texts in the rows, in the order of `SOURCES`."""
    found = {str(row["labelled_from"]) for row in rows}
    return [source for source in SOURCES if source in found]


def curves(rows: Sequence[Row], view: View, along: str) -> list[Curve]:
    """Build an accuracy curve per attack and encoder from rows, then those of shuffled controls."""
    fixed = "n_labels" if along == "n_per_label" else "n_per_label"
    own = ResultTable(rows).where(labelled_from=view.source, **{fixed: getattr(view, fixed)})
    found = []
    for is_shuffled in (False, True):
        kinds = own.where(is_shuffled=is_shuffled).group_by("attribute_attack", _encoder_name)
        for (attack, encoder), kind in kinds.items():
            at = sorted(kind.having(f"top{view.k}").group_by(along).items())
            if not at:  # with at most five labels, top-5 accuracy is not measured
                continue
            sizes = tuple(size for (size,), _ in at)
            scores = tuple(mean_over_draws(each, f"top{view.k}") for _, each in at)
            origins = tuple(each.provenances for _, each in at)
            found.append(Curve(attack, encoder, sizes, scores, origins, is_shuffled))
    return found


def mean_over_draws(rows: ResultTable, measure: str) -> Score:
    """Average a score of rows over seeds that draw labels and texts from the same pool.

    If all labels are used, each seed is tested on the same works: what those works have in common
    does not average out.
    """
    return rows.mean(measure, is_same_sample=True)


def _encoder_name(row: Row) -> str:
    """Return the name of a row's encoder; "" for an attack that reads texts."""
    return str(row.get("encoder", ""))


def mean_at(
    rows: Sequence[Row], view: View, attack: str, measure: str, encoder: str = ""
) -> Score | None:
    """Return an attack's mean score over seeds at one view of an encoder; None if not measured."""
    own = ResultTable(rows).where(
        lambda row: measure in row.scores and _encoder_name(row) == encoder,
        attribute_attack=attack,
        labelled_from=view.source,
        n_labels=view.n_labels,
        n_per_label=view.n_per_label,
        is_shuffled=False,
    )
    return mean_over_draws(own, measure) if own else None


def strongest(rows: Sequence[Row], view: View, encoder: str) -> str:
    """Return the name of the vector attack with the highest top-1 accuracy, else "linear"."""
    names = (name for name, entry in ATTRIBUTE_ATTACKS.items() if not entry.is_baseline)
    found = {name: mean_at(rows, view, name, "top1", encoder) for name in names}
    measured = {name: score.value for name, score in found.items() if score is not None}
    return max(measured, key=measured.__getitem__, default="linear")


def tops(n_labels: int) -> list[int]:
    """Return the k of `TOP` below the number of labels, for which top-k accuracy is informative.

    Examples
    --------
    >>> tops(5), tops(6)
    ([1], [1, 5])
    """
    return [k for k in TOP if k < n_labels]


def row_with_confusions(rows: Sequence[Row], source: str, encoder: str) -> Row | None:
    """Return the row of the most labels that lists confused labels; None if there is none."""
    own = ResultTable(rows).where(
        lambda row: "mixed_labels" in row.facts and _encoder_name(row) == encoder,
        labelled_from=source,
        is_shuffled=False,
    )
    return max(
        own, key=lambda row: (row["attribute_attack"] == "linear", row["n_labels"]), default=None
    )


def table(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return one dict of cells by column title per row, for a table or a download."""
    return [
        {
            "attack": row["attribute_attack"],
            "encoder": row.get("encoder", ""),
            "shuffled labels": bool(row["is_shuffled"]),
            "labelled texts from": SOURCES.get(row["labelled_from"], row["labelled_from"]),
            "labels": row["n_labels"],
            "per label": row["n_per_label"],
            "seed": row["seed"],
            **_format_accuracies(row),
            "n": row["n"],
        }
        for row in rows
    ]


def _format_accuracies(row: Row) -> dict[str, str]:
    """Format a row's accuracies and chance levels by column title; "" if not measured."""
    measured = {name: row.scores.get(key) for name, key in _ACCURACIES.items()}
    return {n: score.format(3) if score else "" for n, score in measured.items()} | {
        f"guessing, {n}": f"{score.chance:.3f}" if score else "" for n, score in measured.items()
    }


_ACCURACIES = {"top-1": "top1", "balanced": "balanced", "top-5": "top5"}
"""Column title to measure: balanced if labels are unequal, top-5 if there are more than five."""
