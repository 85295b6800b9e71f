"""The privacy guarantee of a setting for the visitor's sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.core.defences.metric_dp.distances import has_d_chi_guarantee
from leakscope.core.defences.setting import entry_shown, first_of, setting_name, why_not_tried
from leakscope.core.specs import DefenceSpec
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.ui.guarantee import guarantees_of
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.defences.metric_dp.guarantee import Guarantees

_GUARANTEES: SessionCache[tuple[str, str], Guarantees] = SessionCache("_setting_guarantees", 8)


def setting_guarantees(spec: DefenceSpec, text: str) -> Guarantees | None:
    """Return the guarantee of a defence, or of a chain's first stage, for a text; None if none.

    Raises
    ------
    CoreError
        The text holds no token.
    """
    first = first_of(spec)
    entry, settings = entry_shown(first.name), dict(first.settings)
    if not entry.guarantee or why_not_tried(first, ENCODER.name):
        return None
    if has_d_chi_guarantee(first.name):
        start = entry.strength[1].start if entry.strength else 0.0
        return guarantees_of(first.name, float(settings.get("eta", start)), text, ENCODER)
    from leakscope.core.defences.metric_dp.exponential_guarantee import (
        guarantees_of as guarantees_at,
    )

    key = (setting_name(first.name, settings), text)
    return _GUARANTEES.once(key, lambda: guarantees_at(cache.encoder(ENCODER), first, text))
