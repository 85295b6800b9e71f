"""The adversarial training study: what an adversary in training and fresh attackers recover.

Implements Song & Raghunathan (2020), §7 and Fig. 6–7, and adds LEACE.
Differs from the paper: attackers are trained after the defence, on texts that it never saw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.shipped import shipped_digest
from leakscope.core.corpora import split_reference
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.registry import FITTED_ENCODERS
from leakscope.core.errors import DivergedError, InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, EncoderSpec, setting, settings_of
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.membership.halves import all_encoder_settings
from leakscope.core.studies.named_texts import NamedTexts, parse_named_texts
from leakscope.core.studies.tradeoff.study import USUAL
from leakscope.core.studies.tradeoff.summary import change_measure, utility_measure
from leakscope.core.studies.tradeoff.trained_defences import (
    ProtectedEncoder,
    trained_defence,
    trained_dual,
)
from leakscope.core.studies.training.adversarial_attack import ATTRIBUTE_ATTACKERS, attribute_scores
from leakscope.core.studies.training.adversarial_tables import markdown as markdown
from leakscope.core.studies.training.adversarial_texts import (
    Sides,
    Sizes,
    load_examples,
    part_texts,
    table_digest,
)
from leakscope.core.studies.training.adversarial_words import WORD_ATTACKERS, word_scores
from leakscope.core.tasks.logistic import LogisticTask, read_logistic
from leakscope.core.tasks.outcomes import Hits

HIDDEN = ("words", "attribute")
"""What a defence hides."""

DUALS = {"dual_lstm": "adversarial_lstm", "dual_transformer": "adversarial_transformer"}
"""Dual encoders and their adversarial versions, trained against an adversary from the first step.
Other encoders get an adapter."""


_SPLIT = ("target", "n_labels", "n_defence", "n_known", "n_targets", "near")
"""Settings that decide, with the seed, whose texts are whose."""


@dataclass(frozen=True, kw_only=True)
class AdversarialStudy:
    """Settings of the study: encoders, what is hidden, weights λ, attackers and seeds."""

    target: str = setting(REQUIRED, "a table of texts with the attribute, in reading order")
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting("", "column with the source of each text, such as its book")
    tasks: tuple[str, ...] = setting(
        (),
        "tasks that measure utility: NAME=FILE with texts, or pairs (`sentence1`, `sentence2`), "
        "and a `label`",
        holds="labelled",
    )
    encoders: tuple[str, ...] = setting(("minilm", *DUALS), "names of encoders")
    hides: tuple[str, ...] = setting(HIDDEN, "what is hidden", choices=HIDDEN)
    word_weights: tuple[float, ...] = setting(
        (0.0, 0.01, 0.1, 1.0), "λ_w; 0 trains without the adversary", low=0.0
    )
    attribute_weights: tuple[float, ...] = setting(
        (0.0, 0.3, 1.0, 3.0), "λ_s; 0 trains without the adversary", low=0.0
    )
    word_attackers: tuple[str, ...] = setting(
        tuple(WORD_ATTACKERS), "fresh attackers on words", choices=tuple(WORD_ATTACKERS)
    )
    attribute_attackers: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKERS),
        "fresh attackers on the attribute",
        choices=tuple(ATTRIBUTE_ATTACKERS),
    )
    msp_epochs: int = setting(
        0, "maximum epochs of multi-set prediction; 0 for its default", low=0, high=1000
    )
    n_labels: int = setting(20, "labels to distinguish, drawn at random", low=2)
    n_defence: int = setting(10_000, "texts that the defence is trained on", low=40)
    n_known: int = setting(10_000, "other texts that attackers are trained on", low=40)
    n_targets: int = setting(600, "texts under attack", low=20)
    near: float = near_duplicate_setting()
    dimension: int = setting(0, "dimension of a dual encoder's vectors; 0 for its default", low=0)
    epochs: int = setting(0, "epochs of a dual encoder; 0 for its default", low=0, high=1000)
    n_negatives: int = setting(
        0, "negative sentences per pair of a dual encoder; 0 for its default", low=0, high=10_000
    )
    adapter_epochs: int = setting(0, "epochs of an adapter; 0 for its default", low=0, high=1000)
    adapter_dimension: int = setting(0, "dimension of an adapted vector; 0 for no change", low=0)
    adversary_hidden: int = setting(
        256, "units of the adversary's hidden layer; 0 for the paper's linear adversary", low=0
    )
    n_train: int = setting(0, "maximum training texts of each task; 0 for all", low=0)
    n_test: int = setting(0, "maximum test texts of each task; 0 for all", low=0)
    seeds: tuple[int, ...] = setting((0, 1, 2), "random seeds, one run each", low=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table must have: label and group."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return one cell per seed, encoder, hidden target and defence: none, each λ, and LEACE.

        Raises
        ------
        InvalidInputError
            Two tasks with the same name, an unreadable file, or no attacker on words.
        """
        parse_named_texts(self.tasks)
        shared = self._shared_entries()
        return [
            {
                **shared,
                **self._attacker_entries(encoder, hides),
                **part,
                "hides": hides,
                "seed": seed,
            }
            for seed in self.seeds
            for encoder in self.encoders
            for hides in self.hides
            for part in self._defence_entries(encoder, hides, seed)
        ]

    def _shared_entries(self) -> Cell:
        """Return the cell entries that every cell has."""
        places = [self.target, *(NamedTexts.of(task).place for task in self.tasks)]
        return {
            "study": "adversarial",
            **{name: getattr(self, name) for name in (*_SPLIT, "n_train", "n_test")},
            "label": self.label_column,
            "group": self.group_column,
            "tasks": list(self.tasks),
            "contents": [table_digest(place) for place in places],
        }

    def _attacker_entries(self, encoder: str, hides: str) -> Cell:
        """Return the cell entries of the fresh attackers on an encoder."""
        if hides == "attribute":
            return {"attackers": list(self.attribute_attackers), "attribute_attack": "linear"}
        start = shipped_digest(EncoderSpec(name=encoder), "probe_mlc")
        names = [name for name in self.word_attackers if start or name != "tuned"]
        if not names:
            raise InvalidInputError(
                f"`tuned` continues from shipped weights, and there are none for {encoder}. Add "
                "another attacker to --word-attackers, such as `probe_mlc`."
            )
        msp = {"epochs": self.msp_epochs} if self.msp_epochs else {}
        return {
            "attackers": names,
            "attack": "probe_mlc",
            "start": start,
            "settings": {"probe_mlc": USUAL, "msp": msp},
        }

    def _defence_entries(self, encoder: str, hides: str, seed: int) -> list[Cell]:
        """Return the cell entries of the plain encoder and of each defence."""
        weights = self.word_weights if hides == "words" else self.attribute_weights
        if encoder in DUALS:
            plain = self._dual_entries(encoder, hides, 0.0, seed)
            parts = [
                self._dual_entries(encoder, hides, weight, seed) for weight in weights if weight
            ]
        else:
            plain = {"encoder": encoder, "encoder_settings": {}}
            plain |= {"defence_kind": "none", "weight": 0.0}
            parts = [self._adapter_entries(encoder, hides, weight, seed) for weight in weights]
        leace = {"defence_kind": "leace", "weight": 0.0, "trained_defence": "leace"}
        erased = {**plain, **leace, "trained_defence_settings": {}}
        return [plain, *parts, *([erased] if hides == "attribute" else [])]

    def _dual_entries(self, encoder: str, hides: str, weight: float, seed: int) -> Cell:
        """Return the cell entries of a dual encoder trained with weight λ."""
        asked = {name: getattr(self, name) for name in ("dimension", "epochs", "n_negatives")}
        if encoder == "dual_transformer":
            asked["feed_forward"] = 4 * self.dimension
        given: dict[str, Any] = {name: value for name, value in asked.items() if value}
        given |= {
            "against": hides,
            "weight": weight,
            "seed": seed,
            "adversary_hidden": self.adversary_hidden,
        }
        return {
            "encoder": DUALS[encoder],
            "encoder_settings": all_encoder_settings(DUALS[encoder], given),
            "defence_kind": "adversarial" if weight else "none",
            "weight": weight,
        }

    def _adapter_entries(self, encoder: str, hides: str, weight: float, seed: int) -> Cell:
        """Return the cell entries of an adapter trained with weight λ."""
        from leakscope.core.defences.trained.adversarial import AdversarialAdapter

        asked = {"epochs": self.adapter_epochs, "dimension": self.adapter_dimension}
        given: dict[str, Any] = {name: value for name, value in asked.items() if value}
        adapter = AdversarialAdapter(
            against=hides, weight=weight, seed=seed, adversary_hidden=self.adversary_hidden, **given
        )
        told = {k: getattr(adapter, k) for k in settings_of(AdversarialAdapter) if k != "device"}
        return {
            "encoder": encoder,
            "encoder_settings": {},
            "defence_kind": "adversarial",
            "weight": weight,
            "trained_defence": "adversarial",
            "trained_defence_settings": told,
        }


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a cell's defence, then fresh attackers and task classifiers; return rows of scores.

    Raises
    ------
    InvalidInputError
        A file has changed since the study was started, or too few.
    """
    places = [cell["target"], *(NamedTexts.of(task).place for task in cell["tasks"])]
    if [table_digest(place) for place in places] != cell["contents"]:
        raise InvalidInputError(
            "The target or a task's file has changed since the study was started. "
            "Copy the same files to every machine, or start the study again."
        )
    examples = load_examples(cell["target"], cell["label"], cell["group"], cell["contents"][0])
    sizes = Sizes(cell["n_labels"], cell["n_defence"], cell["n_known"], cell["n_targets"])
    sides = part_texts(examples, sizes, cell["seed"], cell["near"])
    try:
        plain, trained = _train_encoders(cell, sides, folder)
    except DivergedError as error:
        return [Row(facts={"when": "stopped", "stopped": str(error)})]
    return [
        *_epoch_rows(trained),
        *_attacker_rows(cell, plain, trained, sides),
        _use_row(cell, plain, trained),
    ]


def _train_encoders(
    cell: Cell, sides: Sides, folder: Path
) -> tuple[ProtectedEncoder, ProtectedEncoder]:
    """Load or train a cell's encoder, without and with its defence; return both."""
    told = {name: cell[name] for name in (*_SPLIT, "label", "group", "seed")}
    told["content"] = cell["contents"][0]
    name, settings = cell["encoder"], cell["encoder_settings"]
    if name in FITTED_ENCODERS:
        plain = trained_dual(name, settings | {"weight": 0.0}, told, sides, folder)
        if "trained_defence" not in cell:
            is_plain = cell["weight"] == 0.0
            return plain, plain if is_plain else trained_dual(name, settings, told, sides, folder)
    else:
        bare = load_encoder(name)
        plain = ProtectedEncoder(CachedEncoder(bare), bare)
        if "trained_defence" not in cell:
            return plain, plain
    return plain, trained_defence(cell, plain, told, sides, folder)


def _epoch_rows(trained: ProtectedEncoder) -> list[Row]:
    """Return a row per training epoch with the adversary's score on held-out texts."""
    return [
        Row(scores={"read": score}, facts={"when": "during", "epoch": epoch, "n": score.n})
        for epoch, score in enumerate(trained.during, 1)
    ]


def _attacker_rows(
    cell: Cell, plain: ProtectedEncoder, trained: ProtectedEncoder, sides: Sides
) -> list[Row]:
    """Train the fresh attackers; return a row for each, with its score on the targets."""
    shared = {
        "when": "after",
        "n": len(sides.targets),
        "n_known_texts": len(sides.known),
        "n_near_duplicates": sides.n_near_duplicates,
        "n_groups": len(set(sides.target_groups)),
    }
    found: dict[str, tuple[dict[str, Score], dict[str, Any]]]
    if cell["hides"] == "words":
        is_dual = cell["encoder"] in FITTED_ENCODERS  # there is no undefended version
        words = word_scores(cell, trained if is_dual else plain, trained, sides)
        found = {name: ({"read": score}, told) for name, (score, told) in words.items()}
    else:
        labels = attribute_scores(cell, trained.encoder, sides)
        found = {
            name: ({f"read{'' if k == 'top1' else '_' + k}": s for k, s in scores.items()}, told)
            for name, (scores, told) in labels.items()
        }
    return [
        Row(scores=scores, facts={**shared, **told, "attacker": name})
        for name, (scores, told) in found.items()
    ]


def _use_row(cell: Cell, plain: ProtectedEncoder, trained: ProtectedEncoder) -> Row:
    """Measure the tasks; return a row of accuracies, changes, training time and dimension."""
    scores = use_scores(cell, plain.encoder, trained.encoder)
    facts = {
        "when": "use",
        "training_minutes": round(trained.seconds / 60, 6),
        "dimension": trained.encoder.dimension,
    }
    return Row(scores=scores, facts=facts)


MEAN = "mean"
"""The name of the mean over tasks."""

_UNDEFENDED: dict[tuple[str, str, str, int, int, int], Hits] = {}
"""Outcomes without a defence in this process, the reference of every λ."""


def use_scores(cell: Cell, base: Encoder, protected: Encoder) -> dict[str, Score]:
    """Measure each task with and without the defence; return accuracies and paired changes.

    Both are trained and tested on the same texts and compared text by text.
    """
    seed, sizes = cell["seed"], {"n_train": cell["n_train"], "n_test": cell["n_test"]}
    scores: dict[str, Score] = {}
    changes = []
    for told, digest in zip(cell["tasks"], cell["contents"][1:], strict=True):
        task = _logistic_task(told, digest)
        place = (base.fingerprint, told, digest, seed, *sizes.values())
        if place not in _UNDEFENDED:
            if len(_UNDEFENDED) > 100:
                _UNDEFENDED.clear()
            _UNDEFENDED[place] = task.outcome(base, **sizes, seed=seed)
        found = task.outcome(protected, **sizes, seed=seed)
        scores[utility_measure(task.name, task.measure)] = found.score()
        changes.append(found.change_from(_UNDEFENDED[place], seed))
        scores[change_measure(task.name, task.measure)] = changes[-1]
    if changes:
        scores[change_measure(MEAN, LogisticTask.measure)] = mean_change(changes)
    return scores


def mean_change(changes: list[Score]) -> Score:
    """Average independent changes over tasks to one score with its interval.

    Its half-widths are the root of the tasks' summed squared half-widths, over their number.
    """
    k, value = len(changes), sum(each.value for each in changes) / len(changes)
    low = sum((each.value - each.ci95.low) ** 2 for each in changes) ** 0.5 / k
    high = sum((each.ci95.high - each.value) ** 2 for each in changes) ** 0.5 / k
    return Score(value, Interval(value - low, value + high), sum(e.n for e in changes), 0.0)


@lru_cache(maxsize=16)
def _logistic_task(told: str, digest: str) -> LogisticTask:
    """Read a task of labelled texts or pairs, once per process."""
    texts = NamedTexts.of(told)
    path, column = split_reference(texts.place)
    return read_logistic(texts.name, Path(path), column)
