"""What of the page of names goes into a story."""

from __future__ import annotations

from core.figures.names import name_map
from core.names.experiment import NameExperiment
from core.story.views_read import attacker_facts
from dashboard import cache
from dashboard.inversion.answers import ENCODER
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(found: NameExperiment, attack: str, with_names: bool) -> Seen:
    """Return how often surnames were read; with the matrix where names may be in the story."""
    matrix, record = found.substitution, cache.shipped_records(ENCODER).get(attack, {})
    own = matrix.diagonal()
    cells = [[matrix.cell(row, column) for column in matrix.names] for row in matrix.rows]
    rows, columns = [n.surname for n in matrix.rows], [n.surname for n in matrix.names]
    if not with_names:
        columns = [f"name {i + 1}" for i in range(len(columns))]
        places = {name: i for i, name in enumerate(matrix.names)}
        rows = [columns[places[row]] if row in places else "another" for row in matrix.rows]
    return Seen(
        figure=name_map(rows, columns, cells),
        alt="How often each surname was read, a row for whose sentences and a column for the name "
        "put in",
        facts=(
            ("Data", f"{len(matrix.texts)} sentences, each with {len(columns)} names"),
            ("n", f"{own.n} sentences as written"),
            ("Interval", "95 %"),
            *attacker_facts(attack, int(record.get("n_texts", 0)), record),
        ),
        commands=("none: no command repeats these sentences, the page does",),
    )
