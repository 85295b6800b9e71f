"""What identifies a reading."""

from __future__ import annotations

from dataclasses import dataclass

from core.specs import AttackSpec

__all__ = ["Request"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What identifies a reading."""

    text: str
    spec: AttackSpec
    counts_stop_words: bool = False
