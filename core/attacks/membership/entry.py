"""What a user should know of an attack on membership before choosing it."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.registry import Entry

__all__ = ["MembershipEntry"]


@dataclass(frozen=True)
class MembershipEntry(Entry):
    """An attack on membership: `path` is its class."""

    needs: str = field(kw_only=True)
    """What the attacker has to have."""

    @property
    def cost(self) -> str:
        """What the attacker has to have."""
        return f"needs {self.needs}"
