"""What a user should know of a defence, and of several of them one after the other."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from core.errors import InvalidInputError, similar
from core.ranges import Strength
from core.registry import Entry
from core.specs import strength_of

__all__ = [
    "ChainEntry",
    "DefenceEntry",
    "chain_of",
    "promise_of",
    "settings_by_stage",
    "stages_of",
]


@dataclass(frozen=True)
class DefenceEntry(Entry):
    """What a user should know before choosing a defence, and where its class is."""

    acts_on: str
    """`text`, `tokens` (their vectors) or `vector` (of the whole text); `model` where it protects
    what a model was trained on, `network` where a network reads what another defence releases."""
    guarantee: str = ""
    """What is promised, in words; empty where nothing is."""
    keeps_space: bool = field(default=True, kw_only=True)
    """Whether protected vectors can be held against undefended ones: number by number."""
    is_baseline: bool = field(default=False, kw_only=True)
    """Whether it is what defences are held against: it changes nothing."""

    @property
    def strength(self) -> tuple[str, Strength] | None:
        """The setting that says how strong it is, and what to try of it."""
        return strength_of(self.kind)

    @property
    def strengths(self) -> dict[str, Strength]:
        """The settings that say how strong it is, by name; a chain has one a stage."""
        return dict([self.strength]) if self.strength else {}

    @property
    def takes_seed(self) -> bool:
        """Whether its draws can be repeated."""
        return "seed" in self.kind.__dataclass_fields__

    @property
    def draws_noise(self) -> bool:
        """Whether it draws noise, so that a text never has the same vector twice."""
        from core.defences.chain import draws_noise

        return draws_noise(self.kind)

    @property
    def releases_tokens(self) -> bool:
        """Whether a text or the vectors of its tokens are what leaves the house."""
        return self.acts_on in ("text", "tokens")

    @property
    def needs_white_box(self) -> bool:
        """Whether it reaches into the encoder."""
        return self.acts_on != "vector"

    @property
    def cost(self) -> str:
        """What it takes to use it; what it costs in usefulness is measured."""
        if self.is_baseline:
            return "takes nothing"
        what = {"text": "another text is stored", "tokens": "noise goes into the encoder"}
        changed = what.get(self.acts_on, "the vector alone is changed")
        whose = "an encoder whose weights are open" if self.needs_white_box else "any encoder"
        return f"works on {whose}; {changed}"


@dataclass(frozen=True)
class ChainEntry(DefenceEntry):
    """What a user should know of several defences, one after the other."""

    of: Mapping[str, DefenceEntry] = field(default_factory=dict, kw_only=True)
    """The stages by name, in the order in which they act."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages."""
        return tuple(self.of)

    @property
    def strength(self) -> None:
        """None: there is more than one."""
        return None

    @property
    def strengths(self) -> dict[str, Strength]:
        """The strength of each stage, as STAGE.SETTING."""
        return {
            f"{stage}.{name}": strength
            for stage, entry in self.of.items()
            for name, strength in entry.strengths.items()
        }

    @property
    def takes_seed(self) -> bool:
        """Whether the draws of any stage can be repeated."""
        return any(entry.takes_seed for entry in self.of.values())

    @property
    def draws_noise(self) -> bool:
        """Whether any stage draws noise."""
        return any(entry.draws_noise for entry in self.of.values())

    @property
    def releases_tokens(self) -> bool:
        """Whether tokens are what leaves the house after the last stage."""
        return self.of[self.stages[-1]].releases_tokens

    @property
    def needs_white_box(self) -> bool:
        """Whether any stage reaches into the encoder."""
        return any(entry.needs_white_box for entry in self.of.values())


_ORDER = {"text": 0, "tokens": 1}
"""In which stages follow each other, by what they act on; all else acts on vectors."""


def stages_of(name: str) -> tuple[str, ...]:
    """Return the defences that a name joins by `+`; of a single one, itself."""
    return tuple(name.split("+"))


def chain_of(stages: tuple[str, ...], registry: Mapping[str, DefenceEntry]) -> ChainEntry:
    """Return the entry of a chain.

    Raises
    ------
    InvalidInputError
        There is no such defence, or one cannot follow the other.
    """
    of = _checked(stages, registry)
    entries = list(of.values())
    return ChainEntry(
        ", then ".join(entry.title for entry in entries),
        " Then: ".join(entry.summary for entry in entries),
        "; ".join(dict.fromkeys(entry.reference for entry in entries)),
        "core.defences.chain:Chain",
        entries[0].acts_on,
        promise_of([(entry.title, entry.guarantee) for entry in entries]),
        formula=r" \;\to\; ".join(entry.formula for entry in entries),
        keeps_space=all(entry.keeps_space for entry in entries),
        of=of,
    )


def _checked(
    stages: tuple[str, ...], registry: Mapping[str, DefenceEntry]
) -> dict[str, DefenceEntry]:
    chain = "+".join(stages)
    for stage in stages:
        if stage not in registry:
            raise InvalidInputError(
                f"{chain}: a defence must be one of {', '.join(registry)}, got {stage!r}."
                + similar(stage, registry)
            )
        if registry[stage].is_baseline:
            raise InvalidInputError(f"{chain}: {stage} changes nothing. Leave it out.")
        if stages.count(stage) > 1:
            raise InvalidInputError(f"{chain}: {stage} stands twice. Take it once, and stronger.")
        if registry[stage].acts_on == "model":
            raise InvalidInputError(
                f"{chain}: {stage} protects a model's training texts, not vectors: it stands alone."
            )
        if registry[stage].acts_on == "network":
            raise InvalidInputError(
                f"{chain}: {stage} is a network that reads what is sent: it stands alone."
            )
    rank = {stage: _ORDER.get(registry[stage].acts_on, 2) for stage in stages}
    ordered = sorted(stages, key=rank.__getitem__)
    for before, late in pairwise(stages):
        if rank[late] < rank[before]:
            of = ("texts", "the vectors of tokens")[rank[late]]
            left = ("", "vectors of tokens", "a vector of the whole text")[rank[before]]
            raise InvalidInputError(
                f"{chain}: {late} changes {of}, and {before} leaves {left}. Put it before: "
                f"{'+'.join(ordered)}."
            )
    if [*rank.values()].count(1) > 1:
        raise InvalidInputError(f"{chain}: only one stage can change the vectors of tokens.")
    return {stage: registry[stage] for stage in stages}


def promise_of(stages: Sequence[tuple[str, str]]) -> str:
    """Return what a chain promises: of its input what the first does, for the rest sees no more.

    What a later stage promises is of the distances between what reaches it, and is said so.

    Parameters
    ----------
    stages : sequence of (str, str)
        Title and promise of each.
    """
    told = []
    for i, (title, guarantee) in enumerate(stages):
        if guarantee and i == 0:
            told.append(f"{guarantee}; what follows keeps that promise, and adds none to it")
        elif guarantee:
            before = " and ".join(each for each, _ in stages[:i])
            told.append(f"{title}: {guarantee}, of what {before} leaves")
    return "; ".join(told)


def settings_by_stage(entry: ChainEntry, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of each stage, from those named STAGE.SETTING and a common seed.

    Raises
    ------
    InvalidInputError
        A setting that names no stage.
    """
    found: dict[str, dict[str, Any]] = {stage: {} for stage in entry.stages}
    for name, value in settings.items():
        stage, dot, setting = name.partition(".")
        if name == "seed":
            for each in entry.stages:
                if entry.of[each].draws_noise:
                    found[each].setdefault("seed", _seed_of(each, value))
        elif dot and stage in found:
            found[stage][setting] = value
        else:
            raise InvalidInputError(
                f"{'+'.join(entry.stages)} has no setting {name!r}. Say whose it is: "
                f"{entry.stages[0]}.{name}."
            )
    return found


def _seed_of(stage: str, seed: int | None) -> int | None:
    """Return a seed of a stage's own, so that no two stages draw the same numbers."""
    return None if seed is None else zlib.crc32(f"{seed}|{stage}".encode())
