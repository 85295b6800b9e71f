"""Embedding inversion: recover the words of a text from its vector.

`make_attack` builds an unfitted attack by name; `open_attack` loads one that is ready to use.
"""

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, AttackEntry, make_attack
from leakscope.core.attacks.inversion.shipped import load_attack, open_attack, save_attack

__all__ = [
    "INVERSION_ATTACKS",
    "AttackEntry",
    "load_attack",
    "make_attack",
    "open_attack",
    "save_attack",
]
