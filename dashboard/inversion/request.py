"""The request that identifies a reading."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.core.specs import AttackSpec


@dataclass(frozen=True, kw_only=True)
class Request:
    """The text, the attack and the options that identify a reading."""

    text: str
    spec: AttackSpec
    counts_stop_words: bool = False
