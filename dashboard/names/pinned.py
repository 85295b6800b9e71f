"""What of the page of names goes into a story."""

from __future__ import annotations

from core.figures.names import name_attackers
from core.names.experiment import NameExperiment
from core.story.views_read import attacker_facts
from dashboard import cache
from dashboard.inversion.answers import ENCODER
from dashboard.names import views
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(found: NameExperiment, attack: str, with_names: bool) -> Seen:
    """Return what each attacker finds; names are numbered unless they may be in the story."""
    matrix, record = found.substitution, cache.shipped_records(ENCODER).get(attack, {})
    attackers = found.attackers()
    people = {name: i for i, name in enumerate(dict.fromkeys((*matrix.names, *matrix.rows)), 1)}
    numbered = {
        part: f"name {i}" for name, i in people.items() for part in (name.full, name.surname)
    }
    n_texts, n_names = len(matrix.texts), len(matrix.names)
    return Seen(
        figure=name_attackers(attackers),
        alt=views.alt_of_attackers(attackers),
        facts=(
            ("Data", f"{n_texts} sentence{'s' * (n_texts > 1)}, each with {n_names} names"),
            ("n", f"{n_texts} sentence{'s' * (n_texts > 1)}"),
            ("Interval", "95 %"),
            *attacker_facts(attack, int(record.get("n_texts", 0)), record),
        ),
        commands=("none: no command repeats these sentences, the page does",),
        instead={} if with_names else numbered,
    )
