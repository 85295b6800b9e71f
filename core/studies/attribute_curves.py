"""What attacks on an attribute reach by size, from rows of the study or of a page's own job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.assets import ASSETS
from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.errors import ArtifactError
from core.results import Score
from core.studies.provenance import Provenance
from core.studies.rows import Row, mean_row_score
from core.studies.tables import read_rows

__all__ = ["ALONG", "FILES", "SHIPPED", "SOURCES", "TOP", "Curve", "View", "curves", "load_rows",
           "load_shipped", "mean_at", "of_seeds", "offered", "strongest", "table", "tops",
           "views_of", "with_mixed"]  # fmt: skip

SHIPPED = ASSETS / "attributes"

FILES = ("novels.json", "novels-textcnn.json", "novels-books.json")
"""What was measured of the bundled encoder and of baselines; together a page's rows."""

_TOLD_BY = ("split", "labelled_from", "attribute_attack", "encoder", "n_labels", "n_per_label",
            "is_shuffled", "seed")  # fmt: skip
"""What rows of one measurement have in common."""

SOURCES = {
    "row": "other texts",
    "run": "other passages, of the same works or of others",
    "group": "other works than those attacked",
    "same_group": "other passages of the works attacked",
}
"""Where labelled texts come from, in words."""

TOP = (1, 5)
"""k of the top-k accuracies that are measured, each where there are more than k labels."""

ALONG = {"n_per_label": "labelled texts of each", "n_labels": "labels told apart"}
"""What accuracy is drawn against."""


@dataclass(frozen=True)
class View:
    """Which rows are looked at: where labelled texts come from, |S|, N_s, and k of top-k."""

    source: str
    n_labels: int
    n_per_label: int
    k: int = 1


@dataclass(frozen=True)
class Curve:
    """The accuracy of an attack along a size; all three tuples are as long as each other.

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


def load_rows(path: Path) -> list[Row]:
    """Read what `python -m core study attributes` wrote, without what failed.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = [row for row in read_rows(path, "attributes") if not row.error]
    if not rows or not all("top1" in row.scores and "n_labels" in row.facts for row in rows):
        raise ArtifactError(
            f"{path} does not hold rows of `python -m core study attributes`. Make it anew."
        )
    return rows


def load_shipped(folder: Path = SHIPPED) -> list[Row]:
    """Read the files that come with the project, those that are there.

    Raises
    ------
    ArtifactError
        One is damaged or of another study; the message names it.
    """
    found: dict[tuple[object, ...], Row] = {}
    for name in FILES:
        for row in load_rows(folder / name) if (folder / name).exists() else ():
            # The first: a table may have rows of another, to hold its own against them.
            found.setdefault(tuple(row.get(entry) for entry in _TOLD_BY), row)
    return list(found.values())


def views_of(rows: Sequence[Row], source: str) -> tuple[list[int], list[int]]:
    """Return the |S| and the N_s that were measured, ascending."""
    own = [row for row in rows if row["labelled_from"] == source and not row["is_shuffled"]]
    labels, sizes = ({int(row[name]) for row in own} for name in ("n_labels", "n_per_label"))
    return sorted(labels), sorted(sizes)


def offered(rows: Sequence[Row]) -> list[str]:
    """Return where labelled texts come from, each once."""
    found = {str(row["labelled_from"]) for row in rows}
    return [source for source in SOURCES if source in found]


def curves(rows: Sequence[Row], view: View, along: str) -> list[Curve]:
    """Return a curve an attack and encoder, the control last; what stays fixed is the view's."""
    fixed = "n_labels" if along == "n_per_label" else "n_per_label"
    own = [
        row
        for row in rows
        if row["labelled_from"] == view.source and row[fixed] == getattr(view, fixed)
    ]
    found = []
    for is_shuffled in (False, True):
        kinds = dict.fromkeys(_kind(row) for row in own if row["is_shuffled"] == is_shuffled)
        for attack, encoder in kinds:
            same = [r for r in own if _kind(r) == (attack, encoder)
                    and r["is_shuffled"] == is_shuffled
                    and f"top{view.k}" in r.scores]  # fmt: skip
            if not same:  # of five labels at most nothing is told of the five likeliest
                continue
            sizes = sorted({int(row[along]) for row in same})
            at = [[row for row in same if row[along] == size] for size in sizes]
            scores = tuple(of_seeds(each, f"top{view.k}") for each in at)
            origins = tuple(tuple(row.provenance for row in each) for each in at)
            found.append(Curve(attack, encoder, tuple(sizes), scores, origins, is_shuffled))
    return found


def of_seeds(rows: Sequence[Row], measure: str) -> Score:
    """Return the mean of a score over seeds, which draw labels and texts out of one pool.

    Where all labels take part, each seed is tested on the same works: what those works have in
    common does not average out.
    """
    return mean_row_score(rows, measure, is_same_sample=True)


def _kind(row: Row) -> tuple[str, str]:
    return str(row["attribute_attack"]), str(row.get("encoder", ""))


def mean_at(
    rows: Sequence[Row], view: View, attack: str, measure: str, encoder: str = ""
) -> Score | None:
    """Return a score of an attack at a view, the mean over seeds; None where there is none."""
    own = [
        row
        for row in rows
        if _kind(row) == (attack, encoder)
        and not row["is_shuffled"]
        and (row["labelled_from"], row["n_labels"], row["n_per_label"])
        == (view.source, view.n_labels, view.n_per_label)
        and measure in row.scores
    ]
    return of_seeds(own, measure) if own else None


def strongest(rows: Sequence[Row], view: View, encoder: str) -> str:
    """Return the attack on vectors that is right the most often at once: its gain is the leak."""
    names = (name for name, entry in ATTRIBUTE_ATTACKS.items() if not entry.is_baseline)
    found = {name: mean_at(rows, view, name, "top1", encoder) for name in names}
    measured = {name: score.value for name, score in found.items() if score is not None}
    return max(measured, key=measured.__getitem__, default="linear")


def tops(n_labels: int) -> list[int]:
    """Return k of the top-k accuracies that say something: among k of k labels each is right.

    Examples
    --------
    >>> tops(5), tops(6)
    ([1], [1, 5])
    """
    return [k for k in TOP if k < n_labels]


def with_mixed(rows: Sequence[Row], source: str, encoder: str) -> Row | None:
    """Return the row that tells which labels a probe mixes up: its largest size."""
    own = [row for row in rows if row["labelled_from"] == source and "mixed_labels" in row.facts
           and row.get("encoder", "") == encoder and not row["is_shuffled"]]  # fmt: skip
    return max(own, key=lambda r: (_kind(r)[0] == "linear", r["n_labels"]), default=None)


def table(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return a record a row, for a table or a file."""
    return [
        {
            "attack": row["attribute_attack"],
            "encoder": row.get("encoder", ""),
            "labels shuffled": bool(row["is_shuffled"]),
            "labelled texts are": SOURCES.get(row["labelled_from"], row["labelled_from"]),
            "labels": row["n_labels"],
            "of each": row["n_per_label"],
            "seed": row["seed"],
            **_shares(row),
            "n": row["n"],
        }
        for row in rows
    ]


def _shares(row: Row) -> dict[str, object]:
    """Return each accuracy of a row with what guessing reaches; nothing where it has none."""
    measured = {name: row.scores.get(key) for name, key in _ACCURACIES.items()}
    told: dict[str, object] = {n: score.said(3) if score else "" for n, score in measured.items()}
    guessed = {
        f"guessing, {name}": f"{score.chance:.3f}" if score else ""
        for name, score in measured.items()
    }
    return told | guessed


_ACCURACIES = {"top-1": "top1", "balanced": "balanced", "top-5": "top5"}
"""Balanced where labels are unequal, the five likeliest where there are more."""
