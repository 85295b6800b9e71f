"""The registry entry of membership-inference attacks."""

from __future__ import annotations

from dataclasses import dataclass, field

from leakscope.core.registry import Entry


@dataclass(frozen=True)
class MembershipEntry(Entry):
    """The registry entry of a membership-inference attack; `path` names its class."""

    needs: str = field(kw_only=True)
    """What the attacker needs, as a noun phrase."""

    @property
    def cost(self) -> str:
        """What the attacker needs, in words."""
        return f"needs {self.needs}"
