"""The classifier membership study: which texts or users a classifier was trained on (S21)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.membership.classifiers.evaluation import (
    AttackOutcome,
    attack_auc,
    evaluate,
)
from leakscope.core.attacks.membership.classifiers.outputs import Outputs
from leakscope.core.attacks.membership.classifiers.plans import Plan, plans
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS
from leakscope.core.attacks.membership.classifiers.targets.tokens import TOKENISATIONS
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.attacks.membership.predictability import blind_baseline
from leakscope.core.errors import InvalidInputError
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, setting, settings_of
from leakscope.core.studies.membership.classifier_rows import (
    NULL,
    entropy_rows,
    row_from_outcome,
    with_blind_baseline,
)
from leakscope.core.studies.membership.classifier_tables import markdown as markdown
from leakscope.core.studies.membership.compared import (
    LEVEL,
    gains_over,
    gains_over_samples,
    strongest_on_samples,
)
from leakscope.core.studies.membership.stability import VERDICTS, pack_verdicts
from leakscope.core.studies.membership.trained_classifiers import (
    SPLITS,
    TrainedModels,
    load_or_train_models,
)
from leakscope.core.studies.named_texts import ClassedTexts, open_classed, parse_classed_texts
from leakscope.core.tasks.classifiers import PIECES, Selection

ABLATED = ("threshold", "user_votes")
"""The attacks run when a setting is varied: one on samples and one on users, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class MembershipClassifierStudy:
    """Settings of the study: targets × attacks × features × seeds, and ablations.

    If a setting has several values, the first is the usual one. The others are tried one at a time,
    with all other settings as usual (Shejwalkar et al. 2021, Appendix C).
    """

    corpora: tuple[str, ...] = setting(
        REQUIRED, "texts as NAME=FILE:CLASS; CLASS is the class column", holds="classed"
    )
    user_column: str = setting("user_id", "column of the users")
    piece: str = setting("texts", "what a sample is", choices=PIECES)
    classifiers: tuple[str, ...] = setting(
        ("linear",), "kinds of classifiers", choices=tuple(TARGETS)
    )
    encoder: str = setting("minilm", "encoder under linear heads and Transformers")
    classifier_attacks: tuple[str, ...] = setting(
        tuple(CLASSIFIER_ATTACKS),
        "attacks by name",
        choices=tuple(CLASSIFIER_ATTACKS),
        flag="attacks",
    )
    splits: tuple[str, ...] = setting(SPLITS, "unit by which members are drawn", choices=SPLITS)
    n_shadows: int = setting(16, "shadow models on random halves; an even number", low=0)
    n_slow_shadows: int = setting(4, "the same for classifiers that take minutes", low=0)
    least: int = setting(5, "fewest texts of a user", low=1)
    most: tuple[int, ...] = setting((50,), "most texts of a user; 0: all", low=0)
    n_users: tuple[int, ...] = setting((0,), "users to draw; 0: all", low=0)
    n_classes: tuple[int, ...] = setting((0,), "most frequent classes; 0: all", low=0)
    max_lengths: tuple[int, ...] = setting((64,), "words or tokens read per text", low=3)
    vocabulary_sizes: tuple[int, ...] = setting((10_000,), "vocabulary size of LSTMs", low=3)
    tokenisations: tuple[str, ...] = setting(
        ("word",), "how LSTMs split texts", choices=TOKENISATIONS
    )
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0, paper="S21")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the tables must have besides the classes."""
        return (self.user_column,)

    def cells(self) -> list[Cell]:
        """Return one cell per attack and training; cells that train a model come first."""
        trainings = [
            {**texts, **asked, "seed": seed}
            for texts in self._text_entries()
            for name in self.classifiers
            for split in self.splits
            for asked in self._classifier_entries(name, split)
            for seed in self.seeds
        ]
        return [
            {**training, "classifier_attack": attack}
            for attack in self.classifier_attacks
            for training in trainings
            if _is_applicable(attack, training)
        ]

    def _text_entries(self) -> Iterator[Cell]:
        """Yield the cell entries of each corpus, with a digest of its texts."""
        for texts in parse_classed_texts(self.corpora):
            yield {
                "study": "membership-classifiers",
                "corpus": texts.name,
                "texts": texts.place,
                "label": texts.label,
                "user": self.user_column,
                "piece": self.piece,
                "content": content_of(str(texts), self.user_column, self.piece),
            }

    def _classifier_entries(self, name: str, split: str) -> Iterator[Cell]:
        """Yield the entries of a classifier's usual setting, then of each variation."""
        choices = {
            "most": self.most,
            "n_users": self.n_users,
            "n_classes": self.n_classes,
            "max_length": self.max_lengths,
            "vocabulary_size": self.vocabulary_sizes,
            "tokenisation": self.tokenisations,
        }
        known = {*settings_of(TARGETS[name].kind), *asdict(Selection())}
        choices = {what: values for what, values in choices.items() if what in known}
        usual = {what: values[0] for what, values in choices.items()}
        yield self._setting_entries(name, split, usual, "")
        for what, values in choices.items():
            for value in values[1:]:
                yield self._setting_entries(name, split, {**usual, what: value}, what)

    def _setting_entries(self, name: str, split: str, chosen: dict[str, Any], varied: str) -> Cell:
        """Return the cell entries of one classifier, split and choice of settings."""
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


def _is_applicable(attack: str, training: Cell) -> bool:
    """Return whether an attack can run on a training, by its level, shadow models and ablation."""
    entry = CLASSIFIER_ATTACKS[attack]
    if entry.level == "user" and training["split"] != "user":
        return False
    if entry.needs == "the same samples" and training["n_shadows"] < 2:
        return False
    return not training["varied"] or attack in ABLATED


@lru_cache(maxsize=16)
def content_of(told: str, user: str, piece: str) -> str:
    """Return a digest of the texts that a reference names, with their users and classes."""
    texts = ClassedTexts.of(told)
    return open_classed(texts.name, texts.place, texts.label, user, piece).digest


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Load or train a cell's classifiers, run its attack on the target, and return the rows."""
    trained = load_or_train_models(cell, folder)
    target = trained.target()
    entry = CLASSIFIER_ATTACKS[cell["classifier_attack"]]
    shadows: Any = trained.aligned() if entry.needs == "the same samples" else [trained.shadow()]
    chosen = _attack_plans(cell, shadows, target)
    shared = {**trained.accuracies(), **_sizes(trained, target)}
    is_usual = not cell["varied"]
    outcomes = evaluate(target, shadows, chosen=chosen, seed=cell["seed"], is_calibrated=is_usual)
    rows = [row_from_outcome(outcome, shared) for outcome in outcomes]
    if is_usual:
        rows = _with_comparisons(cell, trained, shadows, outcomes, rows)
        texts = [trained.texts.texts[i] for i in trained.parts.attacked]
        users = target.users if cell["split"] == "user" else None
        rows = with_blind_baseline(
            rows, blind_baseline(texts, target.members, users, seed=cell["seed"])
        )
    for outcome in outcomes:
        if outcome.plan == Plan("user_votes", {"feature": "loss"}) and is_usual:
            rows += entropy_rows(outcome, target, shared)
    return rows


def _with_comparisons(
    cell: Cell,
    trained: TrainedModels,
    shadows: Any,
    outcomes: Sequence[AttackOutcome],
    rows: list[Row],
) -> list[Row]:
    """Return rows with the null AUC, gains over other attacks, and single verdicts added.

    Attacks on users also get the gain over the strongest attack on samples.
    """
    seed, target, stranger = cell["seed"], trained.target(), trained.null()
    nulls = [attack_auc(outcome.plan, stranger, shadows, seed=seed) for outcome in outcomes]
    gains = gains_over(target, shadows, outcomes, seed)
    more = [{NULL: null, **gain} for null, gain in zip(nulls, gains, strict=True)]
    names, every = _unit_names(cell, trained, outcomes[0].plan.level)
    facts: list[dict[str, Any]] = [
        {VERDICTS: pack_verdicts(outcome, names, every)} for outcome in outcomes
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


def _unit_names(
    cell: Cell, trained: TrainedModels, level: str
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names (or texts) of the attacked units, and of all units in the collection."""
    found = open_classed(cell["corpus"], cell["texts"], cell["label"], cell["user"], cell["piece"])
    if level == "user":
        return users_of(trained.target()).names, sorted(set(found.users))
    return [trained.texts.texts[i] for i in trained.parts.attacked], found.texts


def _attack_plans(cell: Cell, shadows: Any, target: Outputs) -> list[Plan]:
    """Return the plans of the cell's attack that its shadow models allow; raise if none."""
    every = plans(shadows, has_users=True, every_statistic=True)
    chosen = [plan for plan in every if plan.attack == cell["classifier_attack"]]
    if cell["varied"]:
        chosen = [plan for plan in chosen if plan.settings.get("feature") == "loss"]
    if not chosen:
        raise InvalidInputError(
            f"The attack {cell['classifier_attack']!r} cannot use these shadow models."
        )
    return chosen


def _sizes(trained: TrainedModels, target: Outputs) -> dict[str, Any]:
    """Return, as facts, the numbers of members, users and classes of the target."""
    users = np.array(target.users)
    return {
        "n_members": int(target.members.sum()),
        "n_member_users": len(np.unique(users[target.members])),
        "n_outsider_users": len(np.unique(users[~target.members])),
        "n_classes": target.n_classes,
        "n_shared": trained.texts.n_shared,
        "n_unlabelled": trained.texts.n_unlabelled,
    }
