"""Results of the private and adversarial training studies, for the page and its figures.

The results of Qu et al. (2021) are in the `theirs` attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.studies.training.adversarial_tables import Setting, Verdict

Provenances = tuple[Provenance | None, ...]
"""The provenance of each row; `versions` has the lowest study version by table."""


@dataclass(frozen=True)
class Trap:
    """The setting that hides most from its own adversary, with the scores of fresh attackers.

    Attributes
    ----------
    control : Setting or None
        The same training with λ = 0.
    """

    setting: Setting
    control: Setting | None = None

    @property
    def promised(self) -> Score:
        """The score of the adversary in training after the last epoch."""
        return self.setting.during[-1]

    @property
    def read(self) -> Score:
        """The score of the strongest fresh attacker."""
        return self.setting.strongest[1]

    @property
    def is_sprung(self) -> bool:
        """Whether training reduced its adversary's score significantly more than fresh attackers'.

        Both are compared with the same training at λ = 0, as the two attackers differ even if
        nothing is hidden. Without that control, the result is False.
        """
        if self.control is None or not self.control.during or not self.control.after:
            return False
        before, afterwards = self.control.during[-1], self.control.strongest[1]
        taken = (before.value - self.promised.value) - (afterwards.value - self.read.value)
        ends = [each.ci95 for each in (before, self.promised, afterwards, self.read)]
        return taken > math.hypot(*((each.high - each.low) / 2 for each in ends))


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """The parameters of a small adversarial training on bundled sentences.

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
    """The settings of a small adversarial training: no defence, λ = 0 as a control, and λ.

    Attributes
    ----------
    family : str
        The fresh attacker's family.
    """

    settings: tuple[Setting, ...]
    family: str

    @property
    def trap(self) -> Trap:
        """The setting with λ and its control."""
        setting = self.settings[-1]
        controls = (each for each in self.settings if each.is_control)
        return Trap(setting, next(controls, None) if setting.weight else None)


@dataclass(frozen=True, kw_only=True)
class Basis:
    """Numbers of texts, labels and seeds behind the figures of one encoder and hidden target.

    Attributes
    ----------
    n_labels, n_defence, n_known, n_targets, n_seeds : int
        Labels; texts of the defence, of the attackers, and under attack; seeds.
    provenances : tuple of Provenance or None
        The provenance of each row.
    table : str
        The table in results/.
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
    """The results of the adversarial training study.

    Attributes
    ----------
    settings : tuple of Setting
        Each encoder × hidden target × λ, including diverged trainings.
    families : dict
        Fresh attacker to its family, as text.
    label : str
        The attribute.
    bases : dict
        Encoder and hidden target to the numbers of texts behind them, which differ by table.
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
        """Return what was hidden of an encoder: `words`, `attribute` or both."""
        own = [each.hides for each in self.settings if each.encoder == encoder]
        return list(dict.fromkeys(own))

    def of(self, encoder: str, hides: str) -> list[Setting]:
        """Return the settings of an encoder: no defence, then by λ, then LEACE."""
        order = {"none": 0, "adversarial": 1, "leace": 2}
        own = [s for s in self.settings if (s.encoder, s.hides) == (encoder, hides)]
        return sorted(own, key=lambda s: (order.get(s.kind, 1), s.weight))

    def trap(self, encoder: str, hides: str) -> Trap | None:
        """Return the λ with the lowest score of the adversary in training; None without any.

        A λ whose training diverged under any seed is left out.
        """
        own = [
            s
            for s in self.of(encoder, hides)
            if s.weight and s.during and s.after and not s.stopped
        ]
        control = self.control(encoder, hides)
        return Trap(min(own, key=lambda s: s.during[-1].value), control) if own else None

    def control(self, encoder: str, hides: str) -> Setting | None:
        """Return the setting with λ = 0; None if it was not measured.

        For a dual encoder, this is the undefended one, whose adversary has no influence.
        """
        own = (s for s in self.of(encoder, hides) if not s.weight and s.during and s.after)
        return next(own, None)

    def verdict(self, encoder: str, hides: str) -> Verdict | None:
        """Return the verdict on an encoder and hidden target; None if not fully measured."""
        same = (v for v in self.verdicts if (v.plain.encoder, v.plain.hides) == (encoder, hides))
        return next(same, None)


@dataclass(frozen=True)
class Constrained:
    """The results of a network trained and tested under noise at one η (infinite: no noise).

    Attributes
    ----------
    change, by_noise : Score or None
        Change in points from the whole network fine-tuned on the original texts, and from the same
        network without noise. The two differ where users send the vector of a whole text.
    from_token : Score or None
        Text to text minus token representation, in points on the same texts, if recorded.
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
    """The results of the study of networks under noise (Tables 4 and 5)."""

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
        """Return the points of a task and a network, by mechanism and ascending η."""
        own = [p for p in self.points if (p.task, p.reader) == (task, reader)]
        places = list(dict.fromkeys(p.mechanism for p in own))
        return sorted(own, key=lambda p: (places.index(p.mechanism), p.eta, p.releases))


@dataclass(frozen=True)
class Adapted:
    """The results of a network pretrained under noise by one loss, then fine-tuned at one η.

    Attributes
    ----------
    accuracy, plain, null : Score
        With pretraining, without pretraining, and without noise.
    gain, won_back : Score
        Points above `plain`, and their share of the accuracy lost to noise, in per cent.
    beside : dict
        Points above the other losses on the same texts, if recorded.
    theirs, their_plain, their_null : float or None
        The paper's accuracies.
    tokens, all_tokens, distinct_tokens, paper_tokens : int
        Tokens seen at this η, with those at earlier η, the distinct ones among these, and those
        seen in the paper.
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
    def paper_recovered_share(self) -> float | None:
        """The percentage of lost accuracy that the paper recovers; None if not stated."""
        if self.theirs is None or self.their_plain is None or self.their_null is None:
            return None
        return 100 * (self.theirs - self.their_plain) / (self.their_null - self.their_plain)


@dataclass(frozen=True)
class Pretrained:
    """The results of the study of pretraining under noise (Tables 6 and 7)."""

    points: tuple[Adapted, ...]
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once."""
        return list(dict.fromkeys(point.task for point in self.points))

    def mechanisms_of(self, task: str) -> list[str]:
        """Return the mechanisms that were measured on a task."""
        return list(dict.fromkeys(p.mechanism for p in self.points if p.task == task))

    def of(self, task: str, mechanism: str) -> list[Adapted]:
        """Return the points of a task and a mechanism, by ascending η."""
        own = [p for p in self.points if (p.task, p.mechanism) == (task, mechanism)]
        return sorted(own, key=lambda p: p.eta)


@dataclass(frozen=True)
class PrivacySpent:
    """The ε of a training by two accountants, `opacus` and `dp_accounting`, and a tighter one.

    Attributes
    ----------
    of_group : float
        The ε for ten texts of one person together.
    """

    opacus: float
    dp_accounting: float
    tight: float | None
    noise_multiplier: float
    n_steps: int
    of_group: float

    @property
    def apart(self) -> float:
        """The relative difference of the two equivalent accountants."""
        return abs(self.opacus - self.dp_accounting) / self.opacus


@dataclass(frozen=True)
class PrivateHead:
    """The results of classifiers trained on frozen vectors with DP; ε is infinite without it.

    Attributes
    ----------
    accuracy, change : Score
        In per cent, and in points of change from the same training without clipping and noise.
    auc, control : Score
        AUC of the strongest membership attack, and with permuted labels; from 0 to 1.
    spent, attacked : PrivacySpent or None
        For the classifier whose utility is measured, and for the attacked one, trained on other
        texts.
    """

    task: str
    hidden: int
    epsilon: float
    accuracy: Score
    change: Score
    auc: Score
    control: Score
    strongest: tuple[str, ...]
    n_train: int
    n_members: int
    n_seeds: int
    spent: PrivacySpent | None
    attacked: PrivacySpent | None

    @property
    def head(self) -> str:
        """The classifier as text: `linear`, or its hidden units."""
        return f"{self.hidden} units" if self.hidden else "linear"


@dataclass(frozen=True)
class PrivateModel:
    """The results of language models with canaries trained with DP; ε is infinite without it.

    Attributes
    ----------
    of_copies : float or None
        The ε for all copies of a canary.
    """

    epsilon: float
    exposure: Score
    controls: Score
    bits_a_token: float
    n_train: int
    n_canaries: int
    insertions: int
    n_seeds: int
    spent: PrivacySpent | None
    of_copies: float | None


@dataclass(frozen=True)
class PrivateTraining:
    """The results of the private training study."""

    heads: tuple[PrivateHead, ...]
    models: tuple[PrivateModel, ...]
    delta: float
    provenances: Provenances
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once."""
        return list(dict.fromkeys(head.task for head in self.heads))

    def of(self, task: str) -> list[PrivateHead]:
        """Return the classifiers of a task, by hidden units and ascending ε."""
        own = [head for head in self.heads if head.task == task]
        return sorted(own, key=lambda head: (head.hidden, head.epsilon))

    @property
    def apart(self) -> float:
        """The largest relative difference of the two accountants; NaN without DP training."""
        spent = [each for head in self.heads for each in (head.spent, head.attacked)]
        spent += [model.spent for model in self.models]
        return max((each.apart for each in spent if each is not None), default=math.nan)
