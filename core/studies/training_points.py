"""What was measured of training for privacy, number by number, as the page and its figures read it.

Where Qu et al. (2021) print a figure, it stands beside ours as `theirs`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.results import Score
from core.studies.adversarial_tables import Setting, Verdict
from core.studies.provenance import Provenance

__all__ = [
    "Adapted",
    "Adversarial",
    "Basis",
    "Constrained",
    "Pretrained",
    "Trap",
    "Trial",
    "TrialRequest",
    "UnderNoise",
]  # fmt: skip


Provenances = tuple[Provenance | None, ...]
"""Of each row; beside them stands, by table, the least version of the study that measured any."""


@dataclass(frozen=True)
class Trap:
    """The setting that hides most by what is read in training, and what is read afterwards.

    Attributes
    ----------
    control : Setting or None
        The same training without pressure.
    """

    setting: Setting
    control: Setting | None = None

    @property
    def promised(self) -> Score:
        """What the adversary in training read after the last epoch."""
        return self.setting.during[-1]

    @property
    def read(self) -> Score:
        """What the strongest fresh attacker reads."""
        return self.setting.strongest[1]

    @property
    def is_sprung(self) -> bool:
        """Whether training surely took more off what its own adversary reads than off the rest.

        Both beside the same training without pressure: the adversary is another attacker, on other
        texts, and reads another share even where nothing is hidden. Without it nothing is claimed.
        """
        if self.control is None or not self.control.during or not self.control.after:
            return False
        before, afterwards = self.control.during[-1], self.control.strongest[1]
        taken = (before.value - self.promised.value) - (afterwards.value - self.read.value)
        ends = [each.ci95 for each in (before, self.promised, afterwards, self.read)]
        return taken > math.hypot(*((each.high - each.low) / 2 for each in ends))


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """What identifies a small training against an adversary, on sentences that are bundled.

    Attributes
    ----------
    weight : float
        λ_w.
    n_defence, n_known, n_targets : int
        Sentences of the defence, of the attacker, and under attack.
    """

    weight: float = 1.0
    n_defence: int = 2000
    n_known: int = 1000
    n_targets: int = 200
    epochs: int = 25
    seed: int = 0


@dataclass(frozen=True)
class Trial:
    """What came of one: without a defence, with λ = 0 as a control, and with λ.

    Attributes
    ----------
    family : str
        Of the fresh attacker.
    """

    settings: tuple[Setting, ...]
    family: str

    @property
    def trap(self) -> Trap:
        """What was promised, and what is read."""
        setting = self.settings[-1]
        controls = (each for each in self.settings if each.is_control)
        return Trap(setting, next(controls, None) if setting.weight else None)


@dataclass(frozen=True, kw_only=True)
class Basis:
    """What the figures of one encoder rest on, where one thing is hidden.

    Attributes
    ----------
    n_labels, n_defence, n_known, n_targets, n_seeds : int
        Labels told apart; texts of the defence, of the attackers, and under attack; seeds.
    provenances : tuple of Provenance or None
        Of each row.
    table : str
        In docs/results.
    """

    n_labels: int
    n_defence: int
    n_known: int
    n_targets: int
    n_seeds: int
    provenances: Provenances
    table: str = ""


@dataclass(frozen=True)
class Adversarial:
    """What the study of adversarial training measured.

    Attributes
    ----------
    settings : tuple of Setting
        Each encoder × what is hidden × λ, those that ran away too.
    families : dict
        Fresh attacker to its family, in words.
    label : str
        The attribute.
    bases : dict
        Encoder and what is hidden, to what their figures rest on: tables have their own texts.
    """

    settings: tuple[Setting, ...]
    verdicts: tuple[Verdict, ...]
    families: dict[str, str]
    label: str
    bases: Mapping[tuple[str, str], Basis]
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def encoders(self) -> list[str]:
        """The encoders, each once."""
        return list(dict.fromkeys(each.encoder for each in self.settings))

    def hidden_of(self, encoder: str) -> list[str]:
        """Return what was hidden of an encoder: words, an attribute."""
        own = [each.hides for each in self.settings if each.encoder == encoder]
        return list(dict.fromkeys(own))

    def of(self, encoder: str, hides: str) -> list[Setting]:
        """Return the settings of an encoder: without a defence, λ growing, LEACE."""
        order = {"none": 0, "adversarial": 1, "leace": 2}
        own = [s for s in self.settings if (s.encoder, s.hides) == (encoder, hides)]
        return sorted(own, key=lambda s: (order.get(s.kind, 1), s.weight))

    def trap(self, encoder: str, hides: str) -> Trap | None:
        """Return the λ under which the adversary in training read least; None without any.

        A λ that ran away under a seed is none that anybody could choose.
        """
        own = [s for s in self.of(encoder, hides)
               if s.weight and s.during and s.after and not s.stopped]  # fmt: skip
        control = self.control(encoder, hides)
        return Trap(min(own, key=lambda s: s.during[-1].value), control) if own else None

    def control(self, encoder: str, hides: str) -> Setting | None:
        """Return the same training without pressure; None where it was not measured.

        Of a dual encoder that is the undefended one: its adversary reads along.
        """
        own = (s for s in self.of(encoder, hides) if not s.weight and s.during and s.after)
        return next(own, None)

    def verdict(self, encoder: str, hides: str) -> Verdict | None:
        """Return whether the goal was met; None where not all of it was measured."""
        same = (v for v in self.verdicts if (v.plain.encoder, v.plain.hides) == (encoder, hides))
        return next(same, None)


@dataclass(frozen=True)
class Constrained:
    """A network that was trained and tested under noise, at one η; infinite without noise.

    Attributes
    ----------
    change, by_noise : Score or None
        Points beside the network that is fine-tuned as a whole on texts as they are, and beside the
        same network without noise: the two differ where users send the vector of a whole text.
    from_token : Score or None
        Points of text to text above token representation on the same texts, where rows tell it.
    """

    task: str
    reader: str
    mechanism: str
    eta: float
    paper_eta: int | None
    accuracy: Score
    change: Score | None
    by_noise: Score | None
    from_token: Score | None
    theirs: float | None
    n_train: int
    n_seeds: int
    releases: int
    """Noisy copies of each training text that it was trained on; 0 without noise."""


@dataclass(frozen=True)
class UnderNoise:
    """What the study of networks under noise measured (Tables 4 and 5)."""

    points: tuple[Constrained, ...]
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once."""
        return list(dict.fromkeys(point.task for point in self.points))

    def readers_of(self, task: str) -> list[str]:
        """Return the networks that were trained on a task."""
        return list(dict.fromkeys(p.reader for p in self.points if p.task == task))

    def of(self, task: str, reader: str) -> list[Constrained]:
        """Return the points of a task and a network, by mechanism, η growing."""
        own = [p for p in self.points if (p.task, p.reader) == (task, reader)]
        places = list(dict.fromkeys(p.mechanism for p in own))
        return sorted(own, key=lambda p: (places.index(p.mechanism), p.eta, p.releases))


@dataclass(frozen=True)
class Adapted:
    """A network that was pretrained under noise by one loss, then fine-tuned, at one η.

    Attributes
    ----------
    accuracy, plain, null : Score
        Of it, of the same without that pretraining, and of that without noise.
    gain, won_back : Score
        Points above `plain`, and which share of what noise costs that is, in per cent.
    beside : dict
        Points above other losses on the same texts, where rows tell them.
    theirs, their_plain, their_null : float or None
        The paper's accuracies.
    tokens, all_tokens, distinct_tokens, paper_tokens : int
        Seen at this η, with those of the η that it goes on from, of these such as were not seen
        before, and seen by the paper's.
    losses : tuple of (int, float)
        Tokens seen at this η, and the loss on held-out texts.
    releases : int
        Noisy copies of each text of the task that it was fine-tuned on.
    """

    task: str
    mechanism: str
    eta: float
    objective: str
    paper_eta: int | None
    accuracy: Score
    plain: Score
    null: Score
    gain: Score
    won_back: Score
    beside: dict[str, Score]
    theirs: float | None
    their_plain: float | None
    their_null: float | None
    tokens: int
    all_tokens: int
    distinct_tokens: int
    paper_tokens: int
    minutes: float
    losses: tuple[tuple[int, float], ...]
    n_train: int
    n_seeds: int
    releases: int

    @property
    def they_won_back(self) -> float | None:
        """The share in per cent that the paper's figures win back."""
        if self.theirs is None or self.their_plain is None or self.their_null is None:
            return None
        return 100 * (self.theirs - self.their_plain) / (self.their_null - self.their_plain)


@dataclass(frozen=True)
class Pretrained:
    """What the study of pretraining under noise measured (Tables 6 and 7)."""

    points: tuple[Adapted, ...]
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once."""
        return list(dict.fromkeys(point.task for point in self.points))

    def mechanisms_of(self, task: str) -> list[str]:
        """Return what users send of a task's texts."""
        return list(dict.fromkeys(p.mechanism for p in self.points if p.task == task))

    def of(self, task: str, mechanism: str) -> list[Adapted]:
        """Return the points of a task and a mechanism, η growing."""
        own = [p for p in self.points if (p.task, p.mechanism) == (task, mechanism)]
        return sorted(own, key=lambda p: p.eta)
