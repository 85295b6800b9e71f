"""Attackers that come after a defence was trained: fresh, of other families, on new samples.

Each knows the defence: it may encode its own texts with it, and is trained on what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.answers import Answers, ranks_of
from core.attacks.attributes.linear import LinearProbe
from core.attacks.inversion.classifiers.tuned import paired, tune
from core.attacks.inversion.evaluation import evaluate
from core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from core.attacks.inversion.registry import make_attack
from core.attacks.inversion.shipped import load_attack, shipped_folder
from core.protocols import Encoder, InversionAttack, Vectors
from core.results import Interval, Score
from core.specs import AttackSpec
from core.store import META
from core.studies.adversarial_texts import Sides
from core.studies.rows import Cell
from core.studies.tradeoff_attack import EPOCHS, LEARNING_RATE

__all__ = ["ATTRIBUTE_ATTACKERS", "WORD_ATTACKERS", "attribute_scores", "word_scores"]

WORD_ATTACKERS = ("tuned", "msp")
"""The trade-off's: the classifier that ships for the encoder, its vectors led back by a linear map,
trained on; one trained anew where none ships. And set prediction, which is recurrent."""

Scored = NDArray[np.float32]
_Label = NDArray[np.int64]


def word_scores(
    cell: Cell, base: Encoder, protected: Encoder, sides: Sides
) -> dict[str, tuple[Score, dict[str, Any]]]:
    """Return the F1 of each fresh attacker on the words of the targets, beside guessing.

    Parameters
    ----------
    base : Encoder
        Without the defence, which the attacker may use too where it is public; a dual encoder that
        was trained against an adversary is not: there it is `protected` itself.
    """
    found = {}
    vectors = protected.encode(sides.targets)
    for name in cell["attackers"]:
        attack, told = _fitted(name, cell, base, protected, sides)
        result = evaluate(
            attack, protected, sides.targets, vectors=vectors, documents=sides.target_groups,
            seed=cell["seed"], name="sentences",
        )  # fmt: skip
        score = result.scores.score("token_set_f1", result.baseline.token_set_f1)
        found[name] = (score, told)
    return found


def _fitted(
    name: str, cell: Cell, base: Encoder, protected: Encoder, sides: Sides
) -> tuple[InversionAttack, dict[str, Any]]:
    settings = dict(cell["settings"].get(name, {}))
    if name == "msp":
        spec = AttackSpec.of("msp", {**settings, "seed": cell["seed"]})
        return make_attack(spec).fit(protected, sides.known), {"family": "set prediction"}
    told = {"family": "residual classifier"}
    folder = shipped_folder(base, "probe_mlc")
    if (folder / META).exists():
        return _tuned(load_attack(folder), base, protected, sides), {**told, "starts_shipped": True}
    spec = AttackSpec.of("probe_mlc", {**settings, "seed": cell["seed"]})
    return make_attack(spec).fit(protected, sides.known), {**told, "starts_shipped": False}


def _tuned(shipped: Any, base: Encoder, protected: Encoder, sides: Sides) -> LiftedAttack:
    """Return the shipped classifier, trained on with protected vectors that were led back."""
    n_held = max(20, len(sides.known) // 20)
    known, held = sides.known[:-n_held], sides.known[-n_held:]
    changed = protected.encode(known)
    lift = Lift.fit(changed, base.encode(known))
    led_back = LiftedEncoder(base, protected, lift)
    pairs = paired(shipped.vocabulary_, (known, (lift(changed),)), (held, led_back.encode(held)))
    tuned = tune(shipped, base, pairs, epochs=EPOCHS, learning_rate=LEARNING_RATE)
    return LiftedAttack(tuned, lift, base, protected)


def _linear(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    n_labels = int(labels.max()) + 1
    names = [""] * len(labels)
    probe = LinearProbe().fit(names, labels, known, n_labels=n_labels, seed=seed)
    return probe.scores([""] * len(held), held)


def _mlp(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    scale = StandardScaler().fit(known)
    is_much = len(labels) >= 1000  # else a tenth says too little of when to stop
    mlp = MLPClassifier(
        (512,), batch_size=min(128, len(labels)), max_iter=100, early_stopping=is_much,
        random_state=seed,
    )  # fmt: skip
    mlp.fit(scale.transform(known), labels)
    return np.asarray(mlp.predict_log_proba(scale.transform(held)), np.float32)


def _knn(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    from sklearn.neighbors import KNeighborsClassifier

    knn = KNeighborsClassifier(min(25, len(labels)), metric="cosine", weights="distance")
    return np.asarray(knn.fit(known, labels).predict_proba(held), np.float32)


ATTRIBUTE_ATTACKERS: Mapping[str, tuple[str, Callable[..., Scored]]] = {
    "linear": ("linear", _linear),
    "mlp": ("network of one hidden layer", _mlp),
    "knn": ("neighbours", _knn),
}
"""Each fresh attacker on an attribute: its family, and what learns and answers."""


def attribute_scores(
    cell: Cell, protected: Encoder, sides: Sides
) -> dict[str, tuple[dict[str, Score], dict[str, Any]]]:
    """Return the top-1 and top-5 accuracy of each fresh attacker in per cent, beside guessing."""
    places = {name: i for i, name in enumerate(sides.names)}
    labels, truth = (
        np.array([places[label] for label in each], np.int64)
        for each in (sides.known_labels, sides.target_labels)
    )
    known, held = protected.encode(sides.known), protected.encode(sides.targets)
    found = {}
    for name in cell["attackers"]:
        family, answer = ATTRIBUTE_ATTACKERS[name]
        scores = answer(known, labels, held, cell["seed"])
        answers = Answers(ranks_of(scores, truth), truth, sides.target_groups)
        found[name] = (
            {f"top{k}": _per_cent(answers.top(k, cell["seed"])) for k in (1, 5)},
            {"family": family},
        )
    return found


def _per_cent(score: Score) -> Score:
    ends = Interval(100 * score.ci95.low, 100 * score.ci95.high, score.ci95.level)
    return Score(100 * score.value, ends, score.n, 100 * score.chance)
