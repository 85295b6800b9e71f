"""Inversion: from a vector back to the words of its text.

`make_attack` builds an attack by name; `open_attack` opens one that is ready to answer.
"""

from core.attacks.inversion.registry import INVERSION_ATTACKS, AttackEntry, make_attack
from core.attacks.inversion.shipped import load_attack, open_attack, save_attack

__all__ = [
    "INVERSION_ATTACKS",
    "AttackEntry",
    "load_attack",
    "make_attack",
    "open_attack",
    "save_attack",
]
