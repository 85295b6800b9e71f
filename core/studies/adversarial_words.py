"""Attackers on words that come after a defence was trained, and know it.

What is defended can be asked like any encoder, and is certain: attackers encode their own texts
with it, and every list of words that they try. All are judged on the words that all of them know.

- `tuned`: the classifier that ships for the encoder, trained on with protected vectors that a
  linear map has led back to the encoder's own space; left out where none ships;
- `probe_mlc`: the same classifier trained anew on protected vectors as they are, for a defence may
  be out of reach of every linear map;
- `search`: the re-embedding search over the one of the two that reads more of texts set aside;
- `msp`: set prediction, which is recurrent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from core.attacks.inversion.classifiers.tuned import paired, taught, tune
from core.attacks.inversion.evaluation import evaluate, restrict
from core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from core.attacks.inversion.registry import make_attack
from core.attacks.inversion.search.attack import SearchAttack
from core.attacks.inversion.search.correction import Corrections
from core.attacks.inversion.search.corrector import AnswerCorrector
from core.attacks.inversion.search.tuned import SearchPlan, tune_search
from core.attacks.inversion.shipped import load_attack, shipped_folder
from core.protocols import Encoder, InversionAttack
from core.results import Score
from core.specs import AttackSpec
from core.store import META
from core.studies.adversarial_texts import Sides
from core.studies.rows import Cell
from core.studies.tradeoff_attack import EPOCHS, LEARNING_RATE, N_CALIBRATION
from core.studies.tradeoff_texts import LEAST_HELD
from core.studies.trained_defences import Remembered, Trained
from core.text import Vocabulary

__all__ = ["WORD_ATTACKERS", "word_scores"]

WORD_ATTACKERS: Mapping[str, str] = {
    "tuned": "probe-started classifier",
    "probe_mlc": "probe-started classifier",
    "search": "re-embedding search",
    "msp": "multi-set prediction",
}
"""Each fresh attacker on words: its family."""

_CORRECTOR_RATE = 1e-3
"""Of correctors of the search that begin with nothing, as those that ship did."""


def word_scores(
    cell: Cell, base: Trained, trained: Trained, sides: Sides
) -> dict[str, tuple[Score, dict[str, Any]]]:
    """Return the F1 of each fresh attacker on the words of the targets, beside guessing.

    Parameters
    ----------
    base : Trained
        Without the defence, which the attacker may use too where it is public; a dual encoder that
        was trained against an adversary is not: there it is `trained` itself.
    """
    scene = _Scene(cell, base.encoder, trained.encoder, Remembered(trained.bare), sides)
    attacks = {name: scene.attack(name) for name in cell["attackers"]}
    common = _common(*(attack for attack, _ in attacks.values()))
    return {
        name: (_read(attack, scene.protected, sides, common, cell["seed"]), told)
        for name, (attack, told) in attacks.items()
    }


def _common(*attacks: Any) -> Vocabulary:
    """Return the words that all know."""
    first, *others = (attack.vocabulary_ for attack in attacks)
    shared = set(first.index).intersection(*(other.index for other in others))
    return restrict(first, shared)


def _read(
    attack: InversionAttack, protected: Encoder, sides: Sides, common: Vocabulary, seed: int
) -> Score:
    result = evaluate(
        attack, protected, sides.targets, vectors=protected.encode(sides.targets),
        documents=sides.target_groups, vocabulary=common, seed=seed, name="sentences",
    )  # fmt: skip
    return result.scores.score("token_set_f1", result.baseline.token_set_f1)


@dataclass(frozen=True)
class _Classifier:
    """A classifier of protected vectors.

    Attributes
    ----------
    attack : ProbeMLCAttack
        What reads vectors in the space of `asked`.
    asked : Encoder
        What encodes with the defence, in that space.
    reader : InversionAttack
        What reads protected vectors as they are.
    lift : Lift, optional
        What leads them to that space.
    """

    attack: ProbeMLCAttack
    asked: Encoder
    reader: InversionAttack
    lift: Lift | None = None


@dataclass(frozen=True)
class _Scene:
    """What attackers have.

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
        """Return an attacker, trained, and what a row tells of it."""
        told = {"family": WORD_ATTACKERS[name]}
        if name == "search":
            over = self._stronger
            return self._search(over), {**told, "starts_shipped": over.lift is not None}
        if name == "msp":
            return self._anew("msp").fit(self.protected, self.sides.known), told
        found = self.tuned if name == "tuned" else self.fresh
        return found.reader, {**told, "starts_shipped": name == "tuned"}

    def _anew(self, name: str) -> Any:
        settings = self.cell["settings"].get(name, {})
        return make_attack(AttackSpec.of(name, {**settings, "seed": self.cell["seed"]}))

    @cached_property
    def _parts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The attacker's texts, and those that they set aside to choose and to judge by."""
        n_held = max(LEAST_HELD, len(self.sides.known) // 20)
        return self.sides.known[:-n_held], self.sides.known[-n_held:]

    @cached_property
    def tuned(self) -> _Classifier:
        """What ships, trained on behind a linear map."""
        known, held = self._parts
        shipped: Any = load_attack(shipped_folder(self.base, "probe_mlc"))
        changed, clean = self.protected.encode(known), self.base.encode(known)
        lift = Lift.fit(changed, clean)
        led_back = LiftedEncoder(self.base, self.protected, lift)
        pairs = paired(
            shipped.vocabulary_, (known, (lift(changed),)), (held, led_back.encode(held))
        )
        attack = tune(
            shipped, self.base, pairs, epochs=EPOCHS, learning_rate=LEARNING_RATE,
            teacher=taught(shipped, known, clean),
        )  # fmt: skip
        asked = LiftedEncoder(self.base, self.asked, lift)
        return _Classifier(
            attack, asked, LiftedAttack(attack, lift, self.base, self.protected), lift
        )

    @cached_property
    def fresh(self) -> _Classifier:
        """One that is trained anew on protected vectors as they are."""
        attack = self._anew("probe_mlc").fit(self.protected, self._parts[0])
        return _Classifier(attack, self.asked, attack)

    @cached_property
    def _stronger(self) -> _Classifier:
        """The classifier that reads more of the texts set aside."""
        if not self.cell["start"]:
            return self.fresh
        common, held = _common(self.tuned.reader, self.fresh.reader), self._parts[1]
        vectors = self.protected.encode(held)

        def f1(classifier: _Classifier) -> float:
            result = evaluate(
                classifier.reader, self.protected, held, vectors=vectors, vocabulary=common
            )
            return result.scores.token_set_f1

        return max(self.tuned, self.fresh, key=f1)

    def _search(self, over: _Classifier) -> InversionAttack:
        """Return the search over a classifier, the defence between its lists and their vectors."""
        known, held = self._parts
        plan = SearchPlan(seed=self.cell["seed"], n_calibration=min(len(held), N_CALIBRATION))
        folder = shipped_folder(self.base, "search")
        if over.lift is not None and (folder / META).exists():
            search: Any = load_attack(folder)
        else:
            search = _correcting_nothing(over.attack, plan.seed)
            plan = replace(plan, n_corrected=len(known), epochs=search.corrector_epochs,
                           learning_rate=_CORRECTOR_RATE)  # fmt: skip
        tuned = tune_search(search, over.attack, (over.asked, over.asked), (known, held), plan)
        if over.lift is None:
            return tuned
        return LiftedAttack(tuned, over.lift, over.asked, self.protected)


def _correcting_nothing(base: ProbeMLCAttack, seed: int) -> Any:
    """Return a search with correctors that are yet to learn: until then they change no answer."""
    search = SearchAttack()
    torch.manual_seed(seed)
    correctors = [
        AnswerCorrector(base.model_, hidden=search.corrector_hidden)
        for _ in range(search.n_corrections)
    ]
    search.corrections_ = Corrections(base.model_, base.vocabulary_, search.size_factor, correctors)
    return search
