"""Fresh attackers on words, trained after a defence that they know.

The defended encoder can be queried and is deterministic: attackers encode their own texts with it,
and every list of words that they try. All are scored on the words that all of them know.

- `tuned`: the encoder's shipped classifier, fine-tuned on protected vectors that are mapped back
  linearly to the encoder's space; left out if there is none;
- `probe_mlc`: the same classifier trained from scratch on protected vectors, as a defence may not
  be undone by any linear map;
- `search`: the re-embedding search over the one of the two with the higher F1 on held-out texts;
- `msp`: set prediction, which is recurrent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.evaluation import evaluate, restrict
from leakscope.core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.attacks.inversion.search.attack import SearchAttack
from leakscope.core.attacks.inversion.search.correction import AnswerCorrector, Corrections
from leakscope.core.attacks.inversion.search.tuned import SearchPlan, tune_search
from leakscope.core.attacks.inversion.shipped import load_attack, shipped_folder
from leakscope.core.protocols import Encoder, InversionAttack
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.specs import AttackSpec
from leakscope.core.storage.artifacts import META
from leakscope.core.studies.tradeoff.attack import N_CALIBRATION, tune_shipped_classifier
from leakscope.core.studies.tradeoff.texts import LEAST_HELD
from leakscope.core.studies.tradeoff.trained_defences import MemoizedEncoder, ProtectedEncoder
from leakscope.core.studies.training.adversarial_texts import Sides
from leakscope.core.text import Vocabulary

WORD_ATTACKERS: Mapping[str, str] = {
    "tuned": "probe-started classifier",
    "probe_mlc": "probe-started classifier",
    "search": "re-embedding search",
    "msp": "multi-set prediction",
}
"""Each fresh attacker on words, with its family."""

_CORRECTOR_RATE = 1e-3
"""The learning rate of search correctors trained from scratch, as the shipped ones were."""


def word_scores(
    cell: Cell, base: ProtectedEncoder, trained: ProtectedEncoder, sides: Sides
) -> dict[str, tuple[Score, dict[str, Any]]]:
    """Train each fresh attacker, and return its F1 on the targets' words, with facts.

    Parameters
    ----------
    base : ProtectedEncoder
        The encoder without the defence, which the attacker may use if it is public. A dual encoder
        trained against an adversary has no public version: `trained` itself is passed.
    """
    scene = _AttackSetup(cell, base.encoder, trained.encoder, MemoizedEncoder(trained.bare), sides)
    attacks = {name: scene.attack(name) for name in cell["attackers"]}
    common = _shared_vocabulary(*(attack for attack, _ in attacks.values()))
    return {
        name: (_attack_targets(attack, scene.protected, sides, common, cell["seed"]), told)
        for name, (attack, told) in attacks.items()
    }


def _shared_vocabulary(*attacks: Any) -> Vocabulary:
    """Return the vocabulary of the words that all attacks know."""
    first, *others = (attack.vocabulary_ for attack in attacks)
    shared = set(first.index).intersection(*(other.index for other in others))
    return restrict(first, shared)


def _attack_targets(
    attack: InversionAttack, protected: Encoder, sides: Sides, common: Vocabulary, seed: int
) -> Score:
    """Evaluate an attack on the targets, and return its F1 with the chance level."""
    result = evaluate(
        attack,
        protected,
        sides.targets,
        vectors=protected.encode(sides.targets),
        documents=sides.target_groups,
        vocabulary=common,
        seed=seed,
        name="sentences",
    )
    return result.scores.score("token_set_f1", result.baseline.token_set_f1)


@dataclass(frozen=True)
class _Classifier:
    """A classifier of protected vectors, with the encoder and linear map that it needs.

    Attributes
    ----------
    attack : ProbeMLCAttack
        The attack on vectors in the space of `asked`.
    asked : Encoder
        The defended encoder, in that space.
    reader : InversionAttack
        The attack on protected vectors.
    lift : Lift, optional
        The map from protected vectors to that space.
    """

    attack: ProbeMLCAttack
    asked: Encoder
    reader: InversionAttack
    lift: Lift | None = None


@dataclass(frozen=True)
class _AttackSetup:
    """The encoders and texts that fresh attackers have, and the attackers trained on them.

    Attributes
    ----------
    base : Encoder
        Without the defence.
    protected, asked : Encoder
        With it; by the latter lists of words are encoded, which are too many to be kept on disk.
    """

    cell: Cell
    base: Encoder
    protected: Encoder
    asked: Encoder
    sides: Sides

    def attack(self, name: str) -> tuple[InversionAttack, dict[str, Any]]:
        """Train the attacker of a name; return it with facts for its row."""
        told = {"family": WORD_ATTACKERS[name]}
        if name == "search":
            over = self._stronger
            return self._tuned_search(over), {**told, "starts_shipped": over.lift is not None}
        if name == "msp":
            return self._make_attack("msp").fit(self.protected, self.sides.known), told
        found = self.tuned if name == "tuned" else self.fresh
        return found.reader, {**told, "starts_shipped": name == "tuned"}

    def _make_attack(self, name: str) -> Any:
        """Build the attack of a name, unfitted, with the cell's settings and seed."""
        settings = self.cell["settings"].get(name, {})
        return make_attack(AttackSpec.of(name, {**settings, "seed": self.cell["seed"]}))

    @cached_property
    def _train_and_held(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The attacker's training texts, and those held out to choose and calibrate."""
        n_held = max(LEAST_HELD, len(self.sides.known) // 20)
        return self.sides.known[:-n_held], self.sides.known[-n_held:]

    @cached_property
    def tuned(self) -> _Classifier:
        """The shipped classifier, fine-tuned on protected vectors that are mapped back linearly."""
        known, held = self._train_and_held
        changed = self.protected.encode(known)
        lift = Lift.fit(changed, self.base.encode(known))
        attacked = LiftedEncoder(self.base, self.protected, lift)
        attack = tune_shipped_classifier(self.base, attacked, (known, (lift(changed),)), held)
        asked = LiftedEncoder(self.base, self.asked, lift)
        return _Classifier(
            attack, asked, LiftedAttack(attack, lift, self.base, self.protected), lift
        )

    @cached_property
    def fresh(self) -> _Classifier:
        """The classifier trained from scratch on protected vectors."""
        attack = self._make_attack("probe_mlc").fit(self.protected, self._train_and_held[0])
        return _Classifier(attack, self.asked, attack)

    @cached_property
    def _stronger(self) -> _Classifier:
        """The classifier with the higher F1 on held-out texts."""
        if not self.cell["start"]:
            return self.fresh
        common, held = (
            _shared_vocabulary(self.tuned.reader, self.fresh.reader),
            self._train_and_held[1],
        )
        vectors = self.protected.encode(held)

        def f1(classifier: _Classifier) -> float:
            """Return a classifier's F1 on the held-out texts."""
            result = evaluate(
                classifier.reader, self.protected, held, vectors=vectors, vocabulary=common
            )
            return result.scores.token_set_f1

        return max(self.tuned, self.fresh, key=f1)

    def _tuned_search(self, over: _Classifier) -> InversionAttack:
        """Tune the search over a classifier to the defence, and return it."""
        known, held = self._train_and_held
        plan = SearchPlan(seed=self.cell["seed"], n_calibration=min(len(held), N_CALIBRATION))
        folder = shipped_folder(self.base, "search")
        if over.lift is not None and (folder / META).exists():
            search: Any = load_attack(folder)
        else:
            search = _untrained_search(over.attack, plan.seed)
            plan = replace(
                plan,
                n_corrected=len(known),
                epochs=search.corrector_epochs,
                learning_rate=_CORRECTOR_RATE,
            )
        tuned = tune_search(search, over.attack, (over.asked, over.asked), (known, held), plan)
        if over.lift is None:
            return tuned
        return LiftedAttack(tuned, over.lift, over.asked, self.protected)


def _untrained_search(base: ProbeMLCAttack, seed: int) -> Any:
    """Build a search with untrained correctors, which leave its answers unchanged."""
    search = SearchAttack()
    torch.manual_seed(seed)
    correctors = [
        AnswerCorrector(base.model_, hidden=search.corrector_hidden)
        for _ in range(search.n_corrections)
    ]
    search.corrections_ = Corrections(base.model_, base.vocabulary_, search.size_factor, correctors)
    return search
