"""What of the page of membership goes into a story: what ships, or a file of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.figures.membership import roc_figure
from core.story.format import UNMEASURED
from core.studies.membership_shipped import Measured
from dashboard.membership import measured, own, state
from dashboard.story.pinning import NOTHING_REPEATS, OWN_FILE, Seen

if TYPE_CHECKING:
    from core.attacks.membership.classifiers.evaluation import AttackOutcome
    from core.attacks.membership.classifiers.own_file import OwnAttacked

__all__ = ["seen", "seen_own"]


def seen(found: Sequence[Measured], one: Measured | None) -> Seen:
    """Return what the attack that is shown rests on."""
    from core.story.views_read import origin
    from core.story.views_told import member_facts

    if one is None:
        return Seen(facts=UNMEASURED, commands=measured.commands(found))
    facts = (*member_facts(one), *origin(one.provenances))
    return Seen(facts=facts, commands=[one.study])


def seen_own(found: OwnAttacked, one: AttackOutcome) -> Seen:
    """Return what attacks found in a file of the visitor's own: numbers, and nothing that it names.

    Parameters
    ----------
    one : AttackOutcome
        The attack that is shown in detail.
    """
    record = found.record
    users = "" if record["n_users"] is None else f" of {record['n_users']:,} users"
    return Seen(
        figure=roc_figure(state.curve_of(one)),
        alt="Share of members found against share of non-members falsely accused",
        facts=(
            ("Data", "a file of one's own: the answers of a classifier"),
            ("n", f"{record['n']:,} samples{users}, {record['n_members']:,} of them members"),
            ("Interval", "95 % confidence"),
            ("Attacker", own.plan_said(one.plan)),
            ("Access", f"the classifier's answers, and {record['n_shadows']} shadow models"),
        ),
        commands=(NOTHING_REPEATS,),
        opens=OWN_FILE,
        is_live=False,
    )
