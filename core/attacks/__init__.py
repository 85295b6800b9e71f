"""Attacks by name. `make_attack` builds one; `open_attack` opens one that is ready to answer."""

from core.attacks.registry import ATTACKS, AttackEntry, make_attack
from core.attacks.shipped import load_attack, open_attack, save_attack

__all__ = [
    "ATTACKS",
    "AttackEntry",
    "load_attack",
    "make_attack",
    "open_attack",
    "save_attack",
]
