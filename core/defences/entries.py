"""Registry entries of defences and of chains of defences."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.ranges import Strength
from leakscope.core.registry import Entry
from leakscope.core.specs import DefenceSpec, strength_setting

_TRAINING_COSTS = {
    "model": "retrains the model on the vectors; the vectors stay unchanged",
    "network": "fine-tunes a network for each task; another defence protects its input",
}
"""What defences cost that train a model or a network of their own, by what they act on."""


@dataclass(frozen=True)
class DefenceEntry(Entry):
    """Registry entry of a defence: what it acts on, what it guarantees, and where its class is."""

    acts_on: str
    """`text`, `tokens` (their vectors) or `vector` (of the whole text); `model` if it protects a
    model's training texts, `network` if a network reads the output of another defence."""
    guarantee: str = ""
    """The guarantee in words; empty without one."""
    keeps_space: bool = field(default=True, kw_only=True)
    """Whether protected vectors stay comparable with undefended ones, number by number."""
    is_baseline: bool = field(default=False, kw_only=True)
    """Whether it is the baseline that defences are compared with: it changes nothing."""

    @property
    def strength(self) -> tuple[str, Strength] | None:
        """The name and trial values of the setting that controls the strength; None without one."""
        return strength_setting(self.kind)

    @property
    def strengths(self) -> dict[str, Strength]:
        """The strength settings by name; a chain has one per stage."""
        return dict([self.strength]) if self.strength else {}

    @property
    def takes_seed(self) -> bool:
        """Whether the defence accepts a seed; False if the seed is that of a separate training."""
        return self.acts_on not in _TRAINING_COSTS and "seed" in self.kind.__dataclass_fields__

    @property
    def draws_noise(self) -> bool:
        """Whether the defence draws noise: a text encoded twice gives two vectors."""
        from leakscope.core.defences.chain import draws_noise

        return draws_noise(self.kind)

    @property
    def releases_tokens(self) -> bool:
        """Whether the defence releases a text or token vectors, rather than one vector per text."""
        return self.acts_on in ("text", "tokens")

    @property
    def needs_white_box(self) -> bool:
        """Whether the defence needs the encoder's tokens or weights, not its vectors alone."""
        return self.acts_on not in ("vector", "model")

    @property
    def cost(self) -> str:
        """What the defence requires of a user, as a phrase; lost accuracy is measured."""
        if self.is_baseline:
            return "costs nothing"
        if self.acts_on in _TRAINING_COSTS:
            return _TRAINING_COSTS[self.acts_on]
        what = {"text": "stores a changed text", "tokens": "adds noise inside the encoder"}
        changed = what.get(self.acts_on, "changes only the vector")
        whose = "an encoder with open weights" if self.needs_white_box else "any encoder"
        return f"works on {whose}; {changed}"


@dataclass(frozen=True)
class ChainEntry(DefenceEntry):
    """Registry entry of a chain of defences, combined from the entries of its stages."""

    of: Mapping[str, DefenceEntry] = field(default_factory=dict, kw_only=True)
    """The stages by name, in the order in which they act."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages, in order."""
        return tuple(self.of)

    @property
    def strength(self) -> None:
        """Always None: a chain has one strength per stage (see `strengths`)."""
        return None

    @property
    def strengths(self) -> dict[str, Strength]:
        """The strength setting of each stage, named STAGE.SETTING."""
        return {
            f"{stage}.{name}": strength
            for stage, entry in self.of.items()
            for name, strength in entry.strengths.items()
        }

    @property
    def takes_seed(self) -> bool:
        """Whether any stage accepts a seed."""
        return any(entry.takes_seed for entry in self.of.values())

    @property
    def draws_noise(self) -> bool:
        """Whether any stage draws noise."""
        return any(entry.draws_noise for entry in self.of.values())

    @property
    def releases_tokens(self) -> bool:
        """Whether the last stage releases a text or token vectors."""
        return self.of[self.stages[-1]].releases_tokens

    @property
    def needs_white_box(self) -> bool:
        """Whether any stage needs the encoder's tokens or weights."""
        return any(entry.needs_white_box for entry in self.of.values())


_ORDER = {"text": 0, "tokens": 1}
"""In which stages follow each other, by what they act on; all else acts on vectors."""


def stages_of(name: str) -> tuple[str, ...]:
    """Split a defence name such as `text_to_text+int8` into the names of its stages."""
    return tuple(name.split("+"))


def chain_of(stages: tuple[str, ...], registry: Mapping[str, DefenceEntry]) -> ChainEntry:
    """Build the registry entry of a chain from the names of its stages.

    Raises
    ------
    InvalidInputError
        There is no such defence, or one cannot follow the other.
    """
    of = _check_stages(stages, registry)
    entries = list(of.values())
    return ChainEntry(
        ", then ".join(entry.title for entry in entries),
        " Then: ".join(entry.summary for entry in entries),
        "; ".join(dict.fromkeys(entry.reference for entry in entries)),
        "leakscope.core.defences.chain:Chain",
        entries[0].acts_on,
        chain_guarantee([(entry.title, entry.guarantee) for entry in entries]),
        formula=r" \;\to\; ".join(entry.formula for entry in entries),
        keeps_space=all(entry.keeps_space for entry in entries),
        of=of,
    )


def _check_stages(
    stages: tuple[str, ...], registry: Mapping[str, DefenceEntry]
) -> dict[str, DefenceEntry]:
    """Raise InvalidInputError unless the stages exist and fit in order; return entries by name."""
    chain = "+".join(stages)
    for stage in stages:
        if stage not in registry:
            raise InvalidInputError(
                f"{chain}: a defence must be one of {', '.join(registry)}, got {stage!r}."
                + similar(stage, registry)
            )
        if registry[stage].is_baseline:
            raise InvalidInputError(f"{chain}: {stage} changes nothing. Remove it from the chain.")
        if stages.count(stage) > 1:
            raise InvalidInputError(
                f"{chain}: {stage} is listed twice. Use it once, at a greater strength."
            )
        if registry[stage].acts_on == "model":
            raise InvalidInputError(
                f"{chain}: {stage} protects a model's training texts, not vectors. Use it alone."
            )
        if registry[stage].acts_on == "network":
            raise InvalidInputError(
                f"{chain}: {stage} is a network that reads protected texts. Use it alone."
            )
    rank = {stage: _ORDER.get(registry[stage].acts_on, 2) for stage in stages}
    ordered = sorted(stages, key=rank.__getitem__)
    for before, late in pairwise(stages):
        if rank[late] < rank[before]:
            of = ("texts", "token vectors")[rank[late]]
            left = ("", "token vectors", "one vector per text")[rank[before]]
            raise InvalidInputError(
                f"{chain}: {late} changes {of}, but {before} outputs {left}. Change the order: "
                f"{'+'.join(ordered)}."
            )
    if [*rank.values()].count(1) > 1:
        raise InvalidInputError(f"{chain}: only one stage can change token vectors.")
    return {stage: registry[stage] for stage in stages}


def chain_guarantee(stages: Sequence[tuple[str, str]]) -> str:
    """Describe a chain's guarantee in words, from each stage's title and guarantee.

    A later stage's guarantee covers the distances between its own inputs, as the text states.

    Parameters
    ----------
    stages : sequence of (str, str)
        Title and guarantee of each.
    """
    parts = []
    for i, (title, guarantee) in enumerate(stages):
        if guarantee and i == 0:
            parts.append(f"{guarantee}; later stages keep this guarantee and add none")
        elif guarantee:
            before = " and ".join(each for each, _ in stages[:i])
            parts.append(f"{title}: {guarantee}, for the output of {before}")
    return "; ".join(parts)


def settings_by_stage(entry: ChainEntry, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Split a chain's settings, named STAGE.SETTING, and its seed into one dict per stage.

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
                    found[each].setdefault("seed", _stage_seed(each, value))
        elif dot and stage in found:
            found[stage][setting] = value
        else:
            raise InvalidInputError(
                f"{'+'.join(entry.stages)} has no setting {name!r}. Name its stage: "
                f"{entry.stages[0]}.{name}."
            )
    return found


def first_stage(entry: DefenceEntry, spec: DefenceSpec) -> DefenceSpec:
    """Return the spec of a chain's first stage; the given spec if it is no chain."""
    if not isinstance(entry, ChainEntry):
        return spec
    first = entry.stages[0]
    return DefenceSpec.of(first, settings_by_stage(entry, dict(spec.settings))[first])


def _stage_seed(stage: str, seed: int | None) -> int | None:
    """Derive a stage's seed from the chain's seed, so that no two stages draw the same numbers."""
    return None if seed is None else zlib.crc32(f"{seed}|{stage}".encode())
