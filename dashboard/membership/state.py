"""The visitor's choices on the membership page, and cached results of uploaded classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.attacks.membership.rates import PRIORS, RATES
from leakscope.core.attacks.membership.score_distribution import RocPoint, curve_with_band
from leakscope.core.studies.membership.shipped import Measured
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
    from leakscope.core.attacks.membership.classifiers.own_file import AttackedOutputs

MODEL_KEY = "membership_model"
DATA_KEY = "membership_data"
ATTACK_KEY = "membership_attack"
PRIOR_KEY = "membership_prior"
RATE_KEY = "membership_rate"
FILE_KEY = "membership_file"
OWN_ATTACK_KEY = "membership_own_attack"
WHO_KEY = "membership_who"
_REQUEST = "_membership_request"


@dataclass(frozen=True, kw_only=True)
class OwnRequest:
    """The upload of a visitor's own classifier, identified by its SHA-256.

    An empty digest stands for the simulated example.
    """

    digest: str = ""
    name: str = ""

    @property
    def is_example(self) -> bool:
        """Whether the request is for the simulated example."""
        return not self.digest


_OWN: SessionCache[OwnRequest, AttackedOutputs] = SessionCache("_membership_own", 2)
own_of = _OWN.get
remember_own = _OWN.add
_CURVES: SessionCache[tuple[OwnRequest | None, str], tuple[RocPoint, ...]] = SessionCache(
    "_membership_curves", 30
)


def odds_options() -> list[int]:
    """Return the prior probabilities to select from, each as n for "one in n"."""
    return sorted({round(1 / prior) for prior in PRIORS} | {5, 21, 51, 1001})


def address(found: Sequence[Measured]) -> Address:
    """Build the page's address: `?model=linear&data=…&attack=…&prior=11&rate=0.01`.

    `prior=11` means that one in 11 is a member.
    """

    def each(name: str) -> list[str]:
        """Return the distinct values of a named field of the results, in their order."""
        return list(dict.fromkeys(str(getattr(one, name)) for one in found))

    keys = {"model": MODEL_KEY, "data": DATA_KEY, "attack": ATTACK_KEY}
    chosen = (Parameter(name=name, key=key, options=each(name)) for name, key in keys.items())
    return Address(
        "membership",
        (
            *chosen,
            Parameter(name="prior", key=PRIOR_KEY, default=11, options=odds_options()),
            Parameter(name="rate", key=RATE_KEY, default=RATES[0], options=RATES),
        ),
    )


def prior() -> float:
    """Return the selected prior probability of membership, from the session."""
    return 1 / int(st.session_state.get(PRIOR_KEY, 11))


def curve_of(one: AttackOutcome) -> tuple[RocPoint, ...]:
    """Compute the ROC curve of an attack on the user's classifier, cached in the session."""
    key = requested(), one.plan.name
    return _CURVES.get(key) or _CURVES.add(key, curve_with_band(one.ranking))


def set_request(request: OwnRequest) -> None:
    """Store which classifier (an upload or the example) is to be attacked, in the session."""
    st.session_state[_REQUEST] = request


def requested() -> OwnRequest | None:
    """Return the request for the user's classifier from the session; None without one."""
    found: OwnRequest | None = st.session_state.get(_REQUEST)
    return found


def forget_request() -> None:
    """Remove the request for the user's classifier from the session."""
    st.session_state.pop(_REQUEST, None)
