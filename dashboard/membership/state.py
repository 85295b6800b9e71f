"""What one visitor has chosen on the page of membership, and what came of a file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from core.attacks.membership.drawn import RocPoint, curve_with_band
from core.attacks.membership.rates import PRIORS, RATES
from core.studies.membership_shipped import Measured
from dashboard.address import Address, Parameter
from dashboard.kept import Kept

if TYPE_CHECKING:
    from core.attacks.membership.classifiers.evaluation import AttackOutcome
    from core.attacks.membership.classifiers.own_file import OwnAttacked

__all__ = [
    "ATTACK_KEY",
    "DATA_KEY",
    "FILE_KEY",
    "MODEL_KEY",
    "OWN_ATTACK_KEY",
    "PRIOR_KEY",
    "RATE_KEY",
    "WHO_KEY",
    "OwnRequest",
    "address",
    "asked_request",
    "curve_of",
    "forget_request",
    "odds_options",
    "own_of",
    "prior",
    "remember_own",
    "want",
]

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
    """What identifies a classifier of the visitor's own: the SHA-256 of its file.

    Empty stands for the made-up example.
    """

    digest: str = ""
    name: str = ""

    @property
    def is_example(self) -> bool:
        """Whether it is the made-up one."""
        return not self.digest


_OWN: Kept[OwnRequest, OwnAttacked] = Kept("_membership_own", 2)
own_of = _OWN.get
remember_own = _OWN.add
_CURVES: Kept[tuple[OwnRequest | None, str], tuple[RocPoint, ...]] = Kept("_membership_curves", 30)


def odds_options() -> list[int]:
    """Return of how many one is a member, as the reader may set it."""
    return sorted({round(1 / prior) for prior in PRIORS} | {5, 21, 51, 1001})


def address(found: Sequence[Measured]) -> Address:
    """Return what an address may ask for: `?model=linear&data=…&attack=…&prior=11&rate=0.01`.

    `prior` says that one in so many is a member.
    """

    def each(name: str) -> list[str]:
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
    """Return the share of members among those asked about."""
    return 1 / int(st.session_state.get(PRIOR_KEY, 11))


def curve_of(one: AttackOutcome) -> tuple[RocPoint, ...]:
    """Return the curve of an attack on what is asked for, worked out once."""
    key = asked_request(), one.plan.name
    return _CURVES.get(key) or _CURVES.add(key, curve_with_band(one.ranking))


def want(request: OwnRequest) -> None:
    """Ask for a classifier's attacks, from a callback or while the page is drawn."""
    st.session_state[_REQUEST] = request


def asked_request() -> OwnRequest | None:
    """Return what is asked for, None for nothing."""
    found: OwnRequest | None = st.session_state.get(_REQUEST)
    return found


def forget_request() -> None:
    """Ask for nothing any more."""
    st.session_state.pop(_REQUEST, None)
