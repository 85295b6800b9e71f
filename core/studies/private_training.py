"""What differential privacy in training costs, and what is left to an attacker (Abadi et al. 2016).

A cell is one ε and one seed. Of a classifier: one trained on the whole training set, for what it is
good for, and a target and shadow models on halves of a part of it, all by the same recipe, for
what tells members. Of a language model: one trained with planted canaries.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.answers import Answers
from core.attacks.membership.classifiers.evaluation import AttackOutcome, Plan, evaluate
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.splits import random_halves
from core.attacks.membership.classifiers.targets.lesson import Lesson
from core.attacks.membership.classifiers.targets.private import PrivateHeads
from core.attacks.membership.memorisation.canaries import FORMATS, make_canary
from core.attacks.membership.memorisation.experiment import run_private
from core.attacks.membership.memorisation.exposure import mean_of_chance
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.texts import MOST_DOCUMENTS, check_settings, private_texts
from core.corpora import Columns, load_corpus, split_reference
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.errors import InvalidInputError
from core.intervals import bootstrap_interval, student_interval
from core.results import Score
from core.specs import REQUIRED, setting, settings_of
from core.studies.domains import check_contents, content_of
from core.studies.private_training_tables import markdown
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key
from core.studies.tradeoff_use import contents_of, open_tasks
from core.tasks.labelled import LabelledTask
from core.tasks.outcomes import Hits
from core.training.accounting import DELTA, GROUP, LEAST_EPSILON, MOST_EPSILON, Privacy
from core.training.private_heads import HeadSettings, TrainedHead, fit_head

__all__ = [
    "ATTACKS",
    "PrivateTrainingStudy",
    "accounted",
    "attacked_heads",
    "drawn_lesson",
    "markdown",
    "measure",
]

ATTACKS = ("feature", "lira_online", "lira_offline", "rmia_online", "rmia_offline", "bavaria")
"""On samples; the strongest of them is told, by its AUC on the target itself: chosen against us."""

_HEAD = HeadSettings()
_MODEL = MemorisationSettings(
    model="transformer", insertions=16, epochs=30, n_texts=2000, hidden=64, batch_size=256,
    max_length=80, n_generated=0,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PrivateTrainingStudy:
    """Classifiers of tasks, and a language model, by ε."""

    tasks: tuple[str, ...] = setting(REQUIRED, "texts with classes as NAME=FILE", holds="labelled")
    target: str = setting("", "private texts of the language model; none: no model", holds="corpus")
    encoder: str = setting("minilm", "the encoder that classifiers stand on; it is not trained")
    epsilons: tuple[float, ...] = setting(
        (0.0, 8.0, 4.0, 1.0, 0.5), "ε of the training; 0 for none, which stands for ∞", low=0,
        high=MOST_EPSILON,
    )  # fmt: skip
    delta: float = setting(DELTA, "δ of the training", low=1e-12, high=0.1)
    hidden: tuple[int, ...] = setting(
        (0, 256), "units between vectors and classes; 0 for none", low=0, high=4096
    )
    n_attacked: int = setting(4000, "texts of which half are members of the attacked", low=40)
    n_shadows: int = setting(16, "shadow models on random halves; an even number", low=2)
    insertions: int = setting(
        _MODEL.insertions, "times that a canary is planted", low=1, high=10_000
    )
    n_texts: int = setting(_MODEL.n_texts, "private sentences", low=20, high=200_000)
    epochs: int = setting(_MODEL.epochs, "passes over them", low=1, high=1000)
    n_canaries: int = setting(len(FORMATS), "canaries in a model, each of its own format", low=1,
                              high=len(FORMATS))  # fmt: skip
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)

    def cells(self) -> list[Cell]:
        """Return what is to be measured; every setting that a model depends on is part of it.

        Raises
        ------
        InvalidInputError
            An ε that is too small, or an odd number of shadows.
        """
        self._check()
        told = zip(self.tasks, contents_of(self.tasks, ()), strict=True)
        found = [
            {**self._classifier(hidden, epsilon), "task": task, "content": content, "seed": seed}
            for task, content in told
            for hidden in self.hidden
            for epsilon in self.epsilons
            for seed in self.seeds
        ]
        return [*found, *self._language_models()]

    def _check(self) -> None:
        small = [each for each in self.epsilons if 0 < each < LEAST_EPSILON]
        if small:
            raise InvalidInputError(
                f"epsilons must be 0, for none, or {LEAST_EPSILON:g} and more, got {small[0]:g}."
            )
        if self.n_shadows % 2:
            raise InvalidInputError(f"n_shadows must be even, got {self.n_shadows}.")

    def _classifier(self, hidden: int, epsilon: float) -> Cell:
        head = {**asdict(_HEAD), "hidden": hidden, "epsilon": epsilon, "delta": self.delta}
        later = {name: CLASSIFIER_ATTACKS[name].version for name in ATTACKS
                 if CLASSIFIER_ATTACKS[name].version != 1}  # fmt: skip
        return {
            "study": "private-training", "part": "classifier", "classifier": "private",
            "classifier_settings": {**head, "encoder": self.encoder, "max_length": 128},
            "encoder": self.encoder, "epsilon": epsilon, "n_attacked": self.n_attacked,
            "n_shadows": self.n_shadows, "attacks": list(ATTACKS),
            **({"attack_versions": later} if later else {}),
        }  # fmt: skip

    def _language_models(self) -> Iterator[Cell]:
        if not self.target:
            return
        shared = {"study": "private-training", "part": "language model", "target": self.target,
                  "contents": [content_of(self.target)], "delta": self.delta,
                  "formats": list(FORMATS[: self.n_canaries])}  # fmt: skip
        settings = {**_MODEL.to_dict(), "insertions": self.insertions, "n_texts": self.n_texts,
                    "epochs": self.epochs}  # fmt: skip
        for epsilon in self.epsilons:
            for seed in self.seeds:
                yield {**shared, **settings, "epsilon": epsilon, "seed": seed}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train what a cell asks for and measure it; what was trained before a kill is kept."""
    checkpoint = folder / "training" / cell_key(cell)
    measured = _classified if cell["part"] == "classifier" else _written
    rows = measured(cell, checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return rows


def _classified(cell: Cell, checkpoint: Path) -> list[Row]:
    """Return a row: use on the official test set, and what attacks on samples reach."""
    scores, facts = _use(cell)
    found, spent = _membership(cell, checkpoint)
    strongest = max(found, key=lambda outcome: outcome.auc.value)
    one = next((at.tpr for at in strongest.at if at.fpr == 0.01 and at.is_shown), None)
    scores |= {"auc": strongest.auc, "control_auc": strongest.control}
    scores |= {} if one is None else {"tpr_at_1": one}
    facts |= {
        "strongest": strongest.plan.name,
        "aucs": {outcome.plan.name: outcome.auc.value for outcome in found},
        "n_members": int(strongest.ranking.members.sum()),
        **accounted(spent, "attacked_"),
    }
    return [Row(scores=scores, facts=facts)]


def _use(cell: Cell) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return the accuracy of a head trained on all training texts, beside the same without ε."""
    task, vectors, ids = _opened(cell["task"], cell["content"], cell["encoder"])
    known, held = task.parts(seed=cell["seed"])
    chance = 100 * float(np.bincount(ids[held]).max()) / len(held)
    settings = _head_settings(cell)

    def hits(trained: TrainedHead) -> Hits:
        return Hits(
            trained.probabilities(vectors[held]).argmax(1) == ids[held], chance, task.units(held)
        )

    def fitted(epsilon: float) -> TrainedHead:
        return fit_head(vectors[known], ids[known], int(ids.max()) + 1,
                        HeadSettings(**{**settings, "epsilon": epsilon}), cell["seed"])  # fmt: skip

    begun = time.monotonic()
    head = fitted(cell["epsilon"])
    minutes = (time.monotonic() - begun) / 60
    usual = hits(head if not cell["epsilon"] else fitted(0.0))
    ridge = _ridge(cell["task"], cell["encoder"], cell["seed"])
    found = hits(head)
    answers = Answers((~found.right).astype(np.int64), ids[held], found.units)
    balanced = answers.balanced(cell["seed"]).in_percent()
    return {
        "accuracy": found.score(),
        **({"balanced_accuracy": balanced} if answers.is_unequal else {}),
        "accuracy_change": found.change_from(usual, cell["seed"]),
        "change_from_ridge": found.change_from(ridge, cell["seed"]),
    }, {"n": len(held), "n_train": len(known), "training_minutes": minutes,
        **accounted(head.privacy)}  # fmt: skip


def _membership(cell: Cell, checkpoint: Path) -> tuple[list[AttackOutcome], Privacy | None]:
    """Attack a head with shadows that were trained by the same recipe, noise and all.

    The target's half is drawn by itself: were it one of the shadows' halves, what the shadows hold
    of a text would tell whether the target holds it.
    """
    task, _, ids = _opened(cell["task"], cell["content"], cell["encoder"])
    known, _ = task.parts(seed=cell["seed"])
    lesson = drawn_lesson(task.texts, ids, known, cell)
    kind = PrivateHeads(**cell["classifier_settings"])
    kind.fit(lesson, checkpoint_dir=str(checkpoint))
    return attacked_heads(kind, lesson, cell["attacks"]), kind.privacy_[0]


def drawn_lesson(
    texts: Sequence[str], ids: NDArray[np.int64], known: NDArray[np.intp], cell: Cell
) -> Lesson:
    """Return what the attacked head and its shadows learn: each of half of the texts drawn.

    Parameters
    ----------
    known : ndarray of int, shape (n_known,)
        Rows that are trained on.
    """
    rng = np.random.default_rng([cell["seed"], 51])
    rows = rng.permutation(known)[: cell["n_attacked"]]
    members = rng.permutation(len(rows)) < len(rows) // 2
    halves = random_halves(range(len(rows)), cell["n_shadows"], cell["seed"])
    trained = np.concatenate([members[None], halves])
    return Lesson(tuple(texts[i] for i in rows), ids[rows], int(ids.max()) + 1, trained,
                  np.zeros_like(trained), cell["seed"])  # fmt: skip


def attacked_heads(
    kind: PrivateHeads, lesson: Lesson, attacks: Sequence[str]
) -> list[AttackOutcome]:
    """Return what attacks reach on the first of the heads, the others being the shadows."""
    target = Outputs(kind.answers_[0].astype(np.float64), lesson.labels, lesson.trained[0])
    shadows = Shadows(kind.answers_[1:], lesson.labels, lesson.trained[1:])
    plans = [Plan(name, {"feature": "loss"} if name == "feature" else {}) for name in attacks]
    return evaluate(target, shadows, chosen=plans, seed=lesson.seed)


def _head_settings(cell: Cell) -> dict[str, Any]:
    return {name: cell["classifier_settings"][name] for name in settings_of(HeadSettings)}


@lru_cache(maxsize=2)
def _opened(
    told: str, content: str, encoder: str
) -> tuple[LabelledTask, NDArray[np.float32], NDArray[np.int64]]:
    """Return a task with the vectors and the class of each text, made once a process."""
    if contents_of((told,), ()) != [content]:
        raise InvalidInputError(
            f"{told} holds other texts than where the study was begun. Copy the same file to every "
            "machine, or start the study again."
        )
    (task,) = open_tasks((told,), ())
    assert isinstance(task, LabelledTask)
    vectors = CachedEncoder(load_encoder(encoder)).encode(task.texts)
    _, ids = np.unique(np.array(task.labels), return_inverse=True)
    return task, vectors, ids.astype(np.int64)


@lru_cache(maxsize=8)
def _ridge(told: str, encoder: str, seed: int) -> Hits:
    """Return what the classifier of the other studies reaches on the same texts."""
    (task,) = open_tasks((told,), ())
    found: Hits = task.outcome(CachedEncoder(load_encoder(encoder)), n_train=0, n_test=0,
                               seed=seed)  # type: ignore[assignment]  # fmt: skip
    return found


def _written(cell: Cell, checkpoint: Path) -> list[Row]:
    """Return a row: exposure of canaries, and bits a token of texts held out."""
    check_contents(cell)
    names = MemorisationSettings.__dataclass_fields__
    settings = check_settings(MemorisationSettings(**{name: cell[name] for name in names}))
    path, column = split_reference(cell["target"])
    columns = None if column is None else Columns(text=column)
    corpus = load_corpus(path, columns=columns, limit=MOST_DOCUMENTS)
    texts = private_texts(corpus, settings.n_texts, cell["seed"])
    canaries = [make_canary(told, texts, cell["seed"] + 1000 * i)
                for i, told in enumerate(cell["formats"])]  # fmt: skip
    begun = time.monotonic()
    found, privacy, n_known = run_private(
        texts, canaries, settings, cell["seed"], epsilon=cell["epsilon"], delta=cell["delta"],
        checkpoint_dir=checkpoint,
    )  # fmt: skip
    values = np.array([each.exposure.value for each in found.canaries])
    controls, chance = np.array(found.controls), mean_of_chance(canaries[0].size)
    interval = student_interval(values, low=0.0, high=math.log2(canaries[0].size))
    scores = {
        "exposure": Score(float(values.mean()), interval, len(values), chance),
        "control_exposure": Score(float(controls.mean()), bootstrap_interval(controls),
                                  len(controls), chance),
    }  # fmt: skip
    facts = {
        "n_train": n_known, "bits_a_token": found.bits_a_token, "exposures": values.tolist(),
        "training_minutes": (time.monotonic() - begun) / 60, **accounted(privacy),
        "epsilon_canary": None if privacy is None else privacy.of_copies(settings.insertions),
    }  # fmt: skip
    return [Row(scores=scores, facts=facts)]


def accounted(privacy: Privacy | None, before: str = "") -> dict[str, Any]:
    """Return what a training spent by the accountants of both packages; None where none was.

    `epsilon_group` is of ten texts of one person, or ten phrases of one sentence, together.
    """
    if privacy is None:
        names = ("opacus", "dp_accounting", "tight", "group")
        return {f"{before}epsilon_{name}": None for name in names}
    told = privacy.accounts()
    return {
        f"{before}epsilon_opacus": privacy.epsilon,
        f"{before}epsilon_dp_accounting": told.dp_accounting,
        f"{before}epsilon_tight": told.tight,
        f"{before}epsilon_group": privacy.of_copies(GROUP),
        f"{before}noise_multiplier": privacy.noise_multiplier,
        f"{before}sample_rate": privacy.sample_rate,
        f"{before}n_steps": privacy.n_steps,
    }
