"""Was this text, was this user among what a classifier was trained on? (Shejwalkar et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.membership.blind import blind_baseline
from core.attacks.membership.classifiers.evaluation import (
    AttackOutcome,
    Plan,
    auc_of,
    evaluate,
    plans,
)
from core.attacks.membership.classifiers.outputs import Outputs
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.targets.registry import TARGETS
from core.attacks.membership.classifiers.targets.tokens import TOKENISATIONS
from core.attacks.membership.classifiers.users import users_of
from core.errors import InvalidInputError
from core.specs import REQUIRED, setting, settings_of
from core.studies.classed_texts import ClassedTexts, named_apart, open_classed
from core.studies.membership_classifier_rows import NULL, entropy_rows, row_of, with_blind
from core.studies.membership_classifier_tables import markdown
from core.studies.membership_compared import (
    LEVEL,
    gains_over,
    gains_over_samples,
    strongest_on_samples,
)
from core.studies.membership_stability import VERDICTS, kept_verdicts
from core.studies.rows import Cell, Row
from core.studies.trained_classifiers import SPLITS, Trained, trained_for
from core.tasks.classifiers import PIECES, Selection

__all__ = ["ABLATED", "MembershipClassifierStudy", "markdown", "measure"]

ABLATED = ("threshold", "user_votes")
"""What is run where a setting is varied: an attack on samples and one on users, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class MembershipClassifierStudy:
    """Targets × attacks × features × seeds, and one setting after the other varied.

    Of a setting that has several values the first is the usual one; the others are tried one at a
    time, all else as usual (Shejwalkar et al. 2021, Appendix C).
    """

    corpora: tuple[str, ...] = setting(
        REQUIRED, "texts as NAME=FILE:CLASS, CLASS the column of classes", holds="classed"
    )
    user_column: str = setting("user_id", "column of the users")
    piece: str = setting("texts", "what a sample is", choices=PIECES)
    classifiers: tuple[str, ...] = setting(
        ("linear",), "kinds of classifiers", choices=tuple(TARGETS)
    )
    encoder: str = setting("minilm", "the encoder that linear heads and Transformers stand on")
    classifier_attacks: tuple[str, ...] = setting(
        tuple(CLASSIFIER_ATTACKS),
        "attacks by name",
        choices=tuple(CLASSIFIER_ATTACKS),
        flag="attacks",
    )
    splits: tuple[str, ...] = setting(SPLITS, "by what members are drawn", choices=SPLITS)
    n_shadows: int = setting(16, "shadows on random halves; an even number", low=0)
    n_slow_shadows: int = setting(4, "the same, of classifiers that take minutes", low=0)
    least: int = setting(5, "texts that a user must have", low=1)
    most: tuple[int, ...] = setting((50,), "texts of a user at most; 0: all", low=0)
    n_users: tuple[int, ...] = setting((0,), "users that are drawn; 0: all", low=0)
    n_classes: tuple[int, ...] = setting((0,), "most frequent classes; 0: all", low=0)
    max_lengths: tuple[int, ...] = setting((64,), "words or tokens of a text that are read", low=3)
    vocabulary_sizes: tuple[int, ...] = setting((10_000,), "tokens that LSTMs know", low=3)
    tokenisations: tuple[str, ...] = setting(
        ("word",), "how LSTMs split texts", choices=TOKENISATIONS
    )
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0, paper="S21")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the tables have to have, beside the classes."""
        return (self.user_column,)

    def cells(self) -> list[Cell]:
        """Return what is to be measured; classifiers first that no other cell trains."""
        trainings = [
            {**texts, **asked, "seed": seed}
            for texts in self._texts()
            for name in self.classifiers
            for split in self.splits
            for asked in self._asked(name, split)
            for seed in self.seeds
        ]
        return [
            {**training, "classifier_attack": attack}
            for attack in self.classifier_attacks
            for training in trainings
            if _fits(attack, training)
        ]

    def _texts(self) -> Iterator[Cell]:
        for texts in named_apart(self.corpora):
            yield {"study": "membership-classifiers", "corpus": texts.name, "texts": texts.place,
                   "label": texts.label, "user": self.user_column, "piece": self.piece,
                   "content": content_of(str(texts), self.user_column, self.piece)}  # fmt: skip

    def _asked(self, name: str, split: str) -> Iterator[Cell]:
        """Yield the usual setting of a kind of classifier, and then those that vary one thing."""
        choices = {"most": self.most, "n_users": self.n_users, "n_classes": self.n_classes,
                   "max_length": self.max_lengths, "vocabulary_size": self.vocabulary_sizes,
                   "tokenisation": self.tokenisations}  # fmt: skip
        known = {*settings_of(TARGETS[name].kind), *asdict(Selection())}
        choices = {what: values for what, values in choices.items() if what in known}
        usual = {what: values[0] for what, values in choices.items()}
        yield self._setting(name, split, usual, "")
        for what, values in choices.items():
            for value in values[1:]:
                yield self._setting(name, split, {**usual, what: value}, what)

    def _setting(self, name: str, split: str, chosen: dict[str, Any], varied: str) -> Cell:
        entry = TARGETS[name]
        selection = asdict(Selection(least=self.least))
        selection |= {what: value for what, value in chosen.items() if what in selection}
        given = {what: value for what, value in chosen.items() if what not in selection}
        if entry.stands_on:
            given[entry.stands_on] = self.encoder
        defaults = {what: field.default for what, field in settings_of(entry.kind).items()}
        return {
            "classifier": name,
            "classifier_settings": defaults | given,
            **({"encoder": self.encoder} if entry.stands_on else {}),
            "split": split,
            "n_shadows": self.n_slow_shadows if entry.is_slow else self.n_shadows,
            "selection": selection,
            "varied": varied,
        }


def _fits(attack: str, training: Cell) -> bool:
    """Return whether an attack is run on a setting."""
    entry = CLASSIFIER_ATTACKS[attack]
    if entry.level == "user" and training["split"] != "user":
        return False
    if entry.needs == "the same samples" and training["n_shadows"] < 2:
        return False
    return not training["varied"] or attack in ABLATED


@lru_cache(maxsize=16)
def content_of(told: str, user: str, piece: str) -> str:
    """Return what identifies texts with their users and classes."""
    texts = ClassedTexts.of(told)
    return open_classed(texts.name, texts.place, texts.label, user, piece).digest


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train the classifiers of a cell, or read them, and attack the target."""
    trained = trained_for(cell, folder)
    target = trained.target()
    entry = CLASSIFIER_ATTACKS[cell["classifier_attack"]]
    shadows: Any = trained.aligned() if entry.needs == "the same samples" else [trained.shadow()]
    chosen = _plans(cell, shadows, target)
    shared = {**trained.accuracies(), **_sizes(trained, target)}
    is_usual = not cell["varied"]
    outcomes = evaluate(target, shadows, chosen=chosen, seed=cell["seed"], is_calibrated=is_usual)
    rows = [row_of(outcome, shared) for outcome in outcomes]
    if is_usual:
        rows = _compared(cell, trained, shadows, outcomes, rows)
        texts = [trained.texts.texts[i] for i in trained.parts.attacked]
        users = target.users if cell["split"] == "user" else None
        rows = with_blind(rows, blind_baseline(texts, target.members, users, seed=cell["seed"]))
    for outcome in outcomes:
        if outcome.plan == Plan("user_votes", {"feature": "loss"}) and is_usual:
            rows += entropy_rows(outcome, target, shared)
    return rows


def _compared(
    cell: Cell, trained: Trained, shadows: Any, outcomes: Sequence[AttackOutcome], rows: list[Row]
) -> list[Row]:
    """Return rows with what attacks find of a model that was trained on neither, and their gains.

    Of attacks on users with that over the strongest on samples, too, which is run beside them.
    """
    seed, target, stranger = cell["seed"], trained.target(), trained.null()
    nulls = [auc_of(outcome.plan, stranger, shadows, seed=seed) for outcome in outcomes]
    gains = gains_over(target, shadows, outcomes, seed)
    more = [{NULL: null, **gain} for null, gain in zip(nulls, gains, strict=True)]
    names, every = _named(cell, trained, outcomes[0].plan.level)
    facts: list[dict[str, Any]] = [
        {VERDICTS: kept_verdicts(outcome, names, every)} for outcome in outcomes
    ]
    if outcomes[0].plan.level == "user":
        aligned = trained.aligned() if cell["n_shadows"] >= 2 else None
        plan, samples = strongest_on_samples(target, trained.shadow(), aligned)
        facts = [{**own, "over": plan.name} for own in facts]
        over = gains_over_samples(target, outcomes, samples, seed)
        more = [{**scores, LEVEL: gain} for scores, gain in zip(more, over, strict=True)]
    return [
        replace(row, scores={**row.scores, **scores}, facts={**row.facts, **own})
        for row, scores, own in zip(rows, more, facts, strict=True)
    ]


def _named(cell: Cell, trained: Trained, level: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return what an attack judges, users or texts, and all that the collection holds of these."""
    found = open_classed(cell["corpus"], cell["texts"], cell["label"], cell["user"], cell["piece"])
    if level == "user":
        return users_of(trained.target()).names, sorted(set(found.users))
    return [trained.texts.texts[i] for i in trained.parts.attacked], found.texts


def _plans(cell: Cell, shadows: Any, target: Outputs) -> list[Plan]:
    every = plans(shadows, has_users=True, every_statistic=True)
    chosen = [plan for plan in every if plan.attack == cell["classifier_attack"]]
    if cell["varied"]:
        chosen = [plan for plan in chosen if plan.settings.get("feature") == "loss"]
    if not chosen:
        raise InvalidInputError(
            f"The attack {cell['classifier_attack']!r} cannot use these shadow models."
        )
    return chosen


def _sizes(trained: Trained, target: Outputs) -> dict[str, Any]:
    users = np.array(target.users)
    return {
        "n_members": int(target.members.sum()),
        "n_member_users": len(np.unique(users[target.members])),
        "n_outsider_users": len(np.unique(users[~target.members])),
        "n_classes": target.n_classes,
        "n_shared": trained.texts.n_shared,
        "n_unlabelled": trained.texts.n_unlabelled,
    }
