"""The private training study: cost of DP training and remaining leakage (Abadi et al. 2016).

A cell is one ε and one seed. For a classifier: one trained on the whole training set to measure
utility, and a target with shadow models on random halves of a part of it, trained by the same
recipe, to measure membership inference. For a language model: one trained with planted canaries.
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

from leakscope.core.attacks.attributes.answers import Answers
from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome, evaluate
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.plans import Plan
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.splits import random_halves
from leakscope.core.attacks.membership.classifiers.targets.private import PrivateHeads
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.attacks.membership.memorisation.canaries import FORMATS, make_canary
from leakscope.core.attacks.membership.memorisation.experiment import run_private
from leakscope.core.attacks.membership.memorisation.exposure import mean_chance_exposure
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.texts import (
    MOST_DOCUMENTS,
    check_settings,
    private_texts,
)
from leakscope.core.corpora import Columns, load_corpus, split_reference
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval, student_interval
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, setting, settings_of
from leakscope.core.studies.domains import check_contents, check_same, content_of
from leakscope.core.studies.named_texts import contents_of, open_tasks
from leakscope.core.studies.runner import cell_key
from leakscope.core.studies.training.private_training_tables import markdown as markdown
from leakscope.core.tasks.labelled import LabelledTask
from leakscope.core.tasks.outcomes import Hits
from leakscope.core.training.accounting import DELTA, GROUP, LEAST_EPSILON, MOST_EPSILON, Privacy
from leakscope.core.training.private_heads import HeadSettings, TrainedHead, fit_head

ATTACKS = ("feature", "lira_online", "lira_offline", "rmia_online", "rmia_offline", "bavaria")
"""Attacks on samples; the one with the highest AUC on the target is reported, the worst case."""


def attack_entries() -> Cell:
    """Return the cell entries of the membership attacks: their names, and versions above 1."""
    later = {
        name: CLASSIFIER_ATTACKS[name].version
        for name in ATTACKS
        if CLASSIFIER_ATTACKS[name].version != 1
    }
    return {"attacks": list(ATTACKS), **({"attack_versions": later} if later else {})}


_HEAD = HeadSettings()
_MODEL = MemorisationSettings(
    model="transformer",
    insertions=16,
    epochs=30,
    n_texts=2000,
    hidden=64,
    batch_size=256,
    max_length=80,
    n_generated=0,
)


@dataclass(frozen=True, kw_only=True)
class PrivateTrainingStudy:
    """Settings of the study: classifiers of tasks and a language model, by ε."""

    tasks: tuple[str, ...] = setting(REQUIRED, "texts with classes as NAME=FILE", holds="labelled")
    target: str = setting(
        "", "private texts of the language model; empty for no model", holds="corpus"
    )
    encoder: str = setting("minilm", "frozen encoder whose vectors are classified")
    epsilons: tuple[float, ...] = setting(
        (0.0, 8.0, 4.0, 1.0, 0.5),
        "ε of the training; 0 for no guarantee (∞)",
        low=0,
        high=MOST_EPSILON,
    )
    delta: float = setting(DELTA, "δ of the training", low=1e-12, high=0.1)
    hidden: tuple[int, ...] = setting(
        (0, 256), "hidden units of the classifier; 0 for none", low=0, high=4096
    )
    n_attacked: int = setting(4000, "texts under attack, half of them members", low=40)
    n_shadows: int = setting(16, "shadow models on random halves; an even number", low=2)
    insertions: int = setting(
        _MODEL.insertions, "times that a canary is planted", low=1, high=10_000
    )
    n_texts: int = setting(
        _MODEL.n_texts, "private sentences of the language model", low=20, high=200_000
    )
    epochs: int = setting(_MODEL.epochs, "epochs of the language model", low=1, high=1000)
    n_canaries: int = setting(
        len(FORMATS), "canaries per model, each with its own format", low=1, high=len(FORMATS)
    )
    seeds: tuple[int, ...] = setting((0, 1, 2), "random seeds, one run each", low=0)

    def cells(self) -> list[Cell]:
        """Return one cell per task, hidden units, ε and seed, and those of the language models.

        Raises
        ------
        InvalidInputError
            An ε that is too small, or an odd number of shadows.
        """
        self._check()
        told = zip(self.tasks, contents_of(self.tasks, ()), strict=True)
        found = [
            {
                **self._classifier_entries(hidden, epsilon),
                "task": task,
                "content": content,
                "seed": seed,
            }
            for task, content in told
            for hidden in self.hidden
            for epsilon in self.epsilons
            for seed in self.seeds
        ]
        return [*found, *self._language_model_cells()]

    def _check(self) -> None:
        """Raise InvalidInputError for a too small ε or an odd number of shadows."""
        small = [each for each in self.epsilons if 0 < each < LEAST_EPSILON]
        if small:
            raise InvalidInputError(
                f"epsilons must be 0 for none, or at least {LEAST_EPSILON:g}, got {small[0]:g}."
            )
        if self.n_shadows % 2:
            raise InvalidInputError(f"n_shadows must be even, got {self.n_shadows}.")

    def _classifier_entries(self, hidden: int, epsilon: float) -> Cell:
        """Return the cell entries of a classifier's training and attacks."""
        head = {**asdict(_HEAD), "hidden": hidden, "epsilon": epsilon, "delta": self.delta}
        return {
            "study": "private-training",
            "part": "classifier",
            "classifier": "private",
            "classifier_settings": {**head, "encoder": self.encoder, "max_length": 128},
            "encoder": self.encoder,
            "epsilon": epsilon,
            "n_attacked": self.n_attacked,
            "n_shadows": self.n_shadows,
            **attack_entries(),
        }

    def _language_model_cells(self) -> Iterator[Cell]:
        """Yield one cell per ε and seed of the language model; none without a target."""
        if not self.target:
            return
        shared = {
            "study": "private-training",
            "part": "language model",
            "target": self.target,
            "contents": [content_of(self.target)],
            "delta": self.delta,
            "formats": list(FORMATS[: self.n_canaries]),
        }
        settings = {
            **_MODEL.to_dict(),
            "insertions": self.insertions,
            "n_texts": self.n_texts,
            "epochs": self.epochs,
        }
        for epsilon in self.epsilons:
            for seed in self.seeds:
                yield {**shared, **settings, "epsilon": epsilon, "seed": seed}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a cell's models and measure them; return a row. A stopped training resumes."""
    checkpoint = folder / "training" / cell_key(cell)
    measured = _measure_classifier if cell["part"] == "classifier" else _measure_language_model
    rows = measured(cell, checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return rows


def _measure_classifier(cell: Cell, checkpoint: Path) -> list[Row]:
    """Train classifiers; return a row of accuracy and of the strongest membership attack."""
    scores, facts = _measure_accuracy(cell)
    found, spent = _attack_head(cell, checkpoint)
    strongest = max(found, key=lambda outcome: outcome.auc.value)
    one = next((at.tpr for at in strongest.at if at.fpr == 0.01 and at.is_shown), None)
    scores |= {"auc": strongest.auc, "control_auc": strongest.control}
    scores |= {} if one is None else {"tpr_at_1": one}
    facts |= {
        "strongest": strongest.plan.name,
        "aucs": {outcome.plan.name: outcome.auc.value for outcome in found},
        "n_members": int(strongest.ranking.members.sum()),
        **privacy_facts(spent, "attacked_"),
    }
    return [Row(scores=scores, facts=facts)]


def _measure_accuracy(cell: Cell) -> tuple[dict[str, Score], dict[str, Any]]:
    """Train a head with DP; return its accuracy, paired changes from other heads, and facts."""
    task, vectors, ids = _open_task(cell["task"], cell["content"], cell["encoder"])
    known, held = task.parts(seed=cell["seed"])
    settings = {name: cell["classifier_settings"][name] for name in settings_of(HeadSettings)}

    def fitted(epsilon: float) -> TrainedHead:
        """Train a classifier head at a given ε (0: without DP), and return it."""
        return fit_head(
            vectors[known],
            ids[known],
            int(ids.max()) + 1,
            HeadSettings(**{**settings, "epsilon": epsilon}),
            cell["seed"],
        )

    begun = time.monotonic()
    head = fitted(cell["epsilon"])
    minutes = (time.monotonic() - begun) / 60
    found = head_hits(head, task, vectors, ids, held)
    usual = head_hits(fitted(0.0), task, vectors, ids, held) if cell["epsilon"] else found
    ridge = _ridge_hits(cell["task"], cell["encoder"], cell["seed"])
    answers = Answers((~found.right).astype(np.int64), ids[held], found.units)
    balanced = answers.balanced(cell["seed"]).in_percent()
    return {
        "accuracy": found.score(),
        **({"balanced_accuracy": balanced} if answers.is_unequal else {}),
        "accuracy_change": found.change_from(usual, cell["seed"]),
        "change_from_ridge": found.change_from(ridge, cell["seed"]),
    }, {
        "n": len(held),
        "n_train": len(known),
        "training_minutes": minutes,
        **privacy_facts(head.privacy),
    }


def _attack_head(cell: Cell, checkpoint: Path) -> tuple[list[AttackOutcome], Privacy | None]:
    """Train a head and its shadows, and attack the head; return the outcomes and its ε.

    The target's half is drawn separately: as one of the shadows' halves, it could be inferred from
    how many shadows were trained on a text.
    """
    task, _, ids = _open_task(cell["task"], cell["content"], cell["encoder"])
    known, _ = task.parts(seed=cell["seed"])
    lesson = draw_training_batch(task.texts, ids, known, cell)
    kind = PrivateHeads(**cell["classifier_settings"])
    kind.fit(lesson, checkpoint_dir=str(checkpoint))
    return attack_first_head(kind, lesson, cell["attacks"]), kind.privacy_[0]


def draw_training_batch(
    texts: Sequence[str], ids: NDArray[np.int64], known: NDArray[np.intp], cell: Cell
) -> TrainingBatch:
    """Draw texts, and the random half that the attacked head and each shadow trains on.

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
    return TrainingBatch(
        tuple(texts[i] for i in rows),
        ids[rows],
        int(ids.max()) + 1,
        trained,
        np.zeros_like(trained),
        cell["seed"],
    )


def attack_first_head(
    kind: PrivateHeads, lesson: TrainingBatch, attacks: Sequence[str]
) -> list[AttackOutcome]:
    """Attack the first trained head for membership, with the other heads as shadows."""
    target = Outputs(kind.answers_[0].astype(np.float64), lesson.labels, lesson.trained[0])
    shadows = Shadows(kind.answers_[1:], lesson.labels, lesson.trained[1:])
    plans = [Plan(name, {"feature": "loss"} if name == "feature" else {}) for name in attacks]
    return evaluate(target, shadows, chosen=plans, seed=lesson.seed)


def class_numbers(task: LabelledTask) -> NDArray[np.int64]:
    """Return the class of each text of a task as a number, shape (n,)."""
    return np.unique(np.array(task.labels), return_inverse=True)[1].astype(np.int64)


def head_hits(
    head: TrainedHead,
    task: LabelledTask,
    vectors: NDArray[np.float32],
    ids: NDArray[np.int64],
    held: NDArray[np.intp],
) -> Hits:
    """Return which test texts (rows `held`) a head classifies correctly, with their chance level.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, dimension)
    ids : ndarray of int, shape (n,)
        The class of each text, by `class_numbers`.
    """
    chance = 100 * float(np.bincount(ids[held]).max()) / len(held)
    right = head.probabilities(vectors[held]).argmax(1) == ids[held]
    return Hits(right, chance, task.units(held))


@lru_cache(maxsize=2)
def _open_task(
    told: str, content: str, encoder: str
) -> tuple[LabelledTask, NDArray[np.float32], NDArray[np.int64]]:
    """Read a task and encode its texts; return task, vectors and classes, once per process."""
    check_same(told, contents_of((told,), ()), [content])
    (task,) = open_tasks((told,), ())
    assert isinstance(task, LabelledTask)
    vectors = CachedEncoder(load_encoder(encoder)).encode(task.texts)
    return task, vectors, class_numbers(task)


@lru_cache(maxsize=8)
def _ridge_hits(told: str, encoder: str, seed: int) -> Hits:
    """Train the ridge classifier of other studies; return which test texts it gets right."""
    (task,) = open_tasks((told,), ())
    found: Hits = task.outcome(CachedEncoder(load_encoder(encoder)), n_train=0, n_test=0, seed=seed)  # type: ignore[assignment]
    return found


def _measure_language_model(cell: Cell, checkpoint: Path) -> list[Row]:
    """Train a cell's language model; return a row: exposure of canaries, held-out bits a token."""
    check_contents(cell)
    names = MemorisationSettings.__dataclass_fields__
    settings = check_settings(MemorisationSettings(**{name: cell[name] for name in names}))
    path, column = split_reference(cell["target"])
    columns = None if column is None else Columns(text=column)
    corpus = load_corpus(path, columns=columns, limit=MOST_DOCUMENTS)
    texts = private_texts(corpus, settings.n_texts, cell["seed"])
    canaries = [
        make_canary(told, texts, cell["seed"] + 1000 * i) for i, told in enumerate(cell["formats"])
    ]
    begun = time.monotonic()
    found, privacy, n_known = run_private(
        texts,
        canaries,
        settings,
        cell["seed"],
        epsilon=cell["epsilon"],
        delta=cell["delta"],
        checkpoint_dir=checkpoint,
    )
    values = np.array([each.exposure.value for each in found.canaries])
    controls, chance = np.array(found.controls), mean_chance_exposure(canaries[0].size)
    interval = student_interval(values, low=0.0, high=math.log2(canaries[0].size))
    scores = {
        "exposure": Score(float(values.mean()), interval, len(values), chance),
        "control_exposure": Score(
            float(controls.mean()), bootstrap_interval(controls), len(controls), chance
        ),
    }
    facts = {
        "n_train": n_known,
        "bits_a_token": found.bits_a_token,
        "exposures": values.tolist(),
        "training_minutes": (time.monotonic() - begun) / 60,
        **privacy_facts(privacy),
        "epsilon_canary": None if privacy is None else privacy.of_copies(settings.insertions),
    }
    return [Row(scores=scores, facts=facts)]


def privacy_facts(privacy: Privacy | None, before: str = "") -> dict[str, Any]:
    """Return, as facts, a training's ε by each accountant; they are None without DP.

    `epsilon_group` covers ten texts of one person, or ten phrases of one sentence, together.
    """
    if privacy is None:
        names = ("opacus", "dp_accounting", "tight", "group")
        return {f"{before}epsilon_{name}": None for name in names}
    told = privacy.epsilons()
    return {
        f"{before}epsilon_opacus": privacy.epsilon,
        f"{before}epsilon_dp_accounting": told.dp_accounting,
        f"{before}epsilon_tight": told.tight,
        f"{before}epsilon_group": privacy.of_copies(GROUP),
        f"{before}noise_multiplier": privacy.noise_multiplier,
        f"{before}sample_rate": privacy.sample_rate,
        f"{before}n_steps": privacy.n_steps,
    }
