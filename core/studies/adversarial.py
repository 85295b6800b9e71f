"""Adversarial training: what the adversary reads in training, and what fresh attackers read after.

Implements Song & Raghunathan (2020), §7 and Fig. 6–7, with LEACE beside.
Differs from the paper: attackers are trained after the defence, on texts that it never saw.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.attacks.inversion.shipped import shipped_digest
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.encoders.registry import FITTED_ENCODERS
from core.errors import DivergedError, InvalidInputError
from core.results import Score
from core.specs import REQUIRED, EncoderSpec, setting, settings_of
from core.studies.adversarial_attack import ATTRIBUTE_ATTACKERS, attribute_scores
from core.studies.adversarial_tables import markdown
from core.studies.adversarial_texts import (
    Sides,
    Sizes,
    open_examples,
    part_texts,
    table_digest,
)
from core.studies.adversarial_use import use_scores
from core.studies.adversarial_words import WORD_ATTACKERS, word_scores
from core.studies.apart import near_setting
from core.studies.membership_halves import settings_told
from core.studies.named_texts import NamedTexts, check_names
from core.studies.rows import Cell, Row
from core.studies.tradeoff import USUAL
from core.studies.trained_defences import Trained, trained_defence, trained_dual

__all__ = ["DUALS", "HIDDEN", "AdversarialStudy", "markdown", "measure"]

HIDDEN = ("words", "attribute")
"""What is hidden."""

DUALS = {"dual_lstm": "adversarial_lstm", "dual_transformer": "adversarial_transformer"}
"""The dual encoders, which are trained against an adversary from the first step; the vectors of
any other encoder are changed by an adapter."""


@dataclass(frozen=True, kw_only=True)
class AdversarialStudy:
    """Each encoder × what is hidden × λ × seed: in training, after it, and what it costs."""

    target: str = setting(REQUIRED, "a table of texts with the attribute, in reading order")
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting("", "column of what texts come from, such as a book")
    tasks: tuple[str, ...] = setting(
        (),
        "what vectors are used for: NAME=FILE of texts with a `label`, or of pairs (`sentence1`, "
        "`sentence2`) with one",
        holds="labelled",
    )
    encoders: tuple[str, ...] = setting(("minilm", *DUALS), "encoders by name")
    hides: tuple[str, ...] = setting(HIDDEN, "what is hidden", choices=HIDDEN)
    word_weights: tuple[float, ...] = setting(
        (0.0, 0.01, 0.1, 1.0), "λ_w; 0 trains without the adversary", low=0.0
    )
    attribute_weights: tuple[float, ...] = setting(
        (0.0, 0.3, 1.0, 3.0), "λ_s; 0 trains without the adversary", low=0.0
    )
    word_attackers: tuple[str, ...] = setting(
        tuple(WORD_ATTACKERS), "who reads words afterwards", choices=tuple(WORD_ATTACKERS)
    )
    attribute_attackers: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKERS), "who infers the attribute afterwards",
        choices=tuple(ATTRIBUTE_ATTACKERS),
    )  # fmt: skip
    msp_epochs: int = setting(
        0, "passes of set prediction at most; 0 for its own", low=0, high=1000
    )
    n_labels: int = setting(20, "labels told apart, drawn by chance", low=2)
    n_defence: int = setting(10_000, "texts that a defence is trained on", low=40)
    n_known: int = setting(10_000, "other texts that attackers are trained on", low=40)
    n_targets: int = setting(600, "texts under attack", low=20)
    near: float = near_setting()
    dimension: int = setting(0, "numbers in a dual encoder's vector; 0 for its own", low=0)
    epochs: int = setting(0, "passes of a dual encoder; 0 for its own", low=0, high=1000)
    n_negatives: int = setting(
        0, "sentences that a dual encoder tells the next from; 0 for its own", low=0, high=10_000
    )
    adapter_epochs: int = setting(0, "passes of an adapter; 0 for its own", low=0, high=1000)
    adapter_dimension: int = setting(
        0, "numbers in an adapted vector; 0 for as many as before", low=0
    )
    adversary_hidden: int = setting(
        256, "units of the adversary's hidden layer; 0 for the paper's linear one", low=0
    )
    n_train: int = setting(0, "texts of each task to train on at most; 0 for all", low=0)
    n_test: int = setting(0, "texts of each task to test on at most; 0 for all", low=0)
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table has to have."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each encoder plain, at each λ and behind LEACE.

        Raises
        ------
        InvalidInputError
            Two tasks of one name, a file that cannot be read, or nobody to read words.
        """
        check_names(self.tasks)
        shared = self._shared()
        return [
            {**shared, **self._attackers(encoder, hides), **part, "hides": hides, "seed": seed}
            for seed in self.seeds
            for encoder in self.encoders
            for hides in self.hides
            for part in self._parts(encoder, hides, seed)
        ]

    def _shared(self) -> Cell:
        places = [self.target, *(NamedTexts.of(task).place for task in self.tasks)]
        names = ("target", "n_labels", "n_defence", "n_known", "n_targets", "near", "n_train",
                 "n_test")  # fmt: skip
        return {"study": "adversarial", **{name: getattr(self, name) for name in names},
                "label": self.label_column, "group": self.group_column, "tasks": list(self.tasks),
                "contents": [table_digest(place) for place in places]}  # fmt: skip

    def _attackers(self, encoder: str, hides: str) -> Cell:
        if hides == "attribute":
            return {"attackers": list(self.attribute_attackers), "attribute_attack": "linear"}
        start = shipped_digest(EncoderSpec(name=encoder), "probe_mlc")
        names = [name for name in self.word_attackers if start or name != "tuned"]
        if not names:
            raise InvalidInputError(
                f"`tuned` goes on from weights that ship, and none do for {encoder}. Add another "
                "to --word-attackers, such as `probe_mlc`."
            )
        msp = {"epochs": self.msp_epochs} if self.msp_epochs else {}
        return {"attackers": names, "attack": "probe_mlc", "start": start,
                "settings": {"probe_mlc": USUAL, "msp": msp}}  # fmt: skip

    def _parts(self, encoder: str, hides: str, seed: int) -> list[Cell]:
        weights = self.word_weights if hides == "words" else self.attribute_weights
        if encoder in DUALS:
            plain = self._dual(encoder, hides, 0.0, seed)
            parts = [self._dual(encoder, hides, weight, seed) for weight in weights if weight]
        else:
            plain = {"encoder": encoder, "encoder_settings": {}, "defence_kind": "none",
                     "weight": 0.0}  # fmt: skip
            parts = [self._adapted(encoder, hides, weight, seed) for weight in weights]
        parts.insert(0, plain)
        if hides == "attribute":
            parts.append({**plain, "defence_kind": "leace", "weight": 0.0,
                          "trained_defence": "leace", "trained_defence_settings": {}})  # fmt: skip
        return parts

    def _dual(self, encoder: str, hides: str, weight: float, seed: int) -> Cell:
        asked = {"dimension": self.dimension, "epochs": self.epochs,
                 "n_negatives": self.n_negatives}  # fmt: skip
        if encoder == "dual_transformer":
            asked["feed_forward"] = 4 * self.dimension
        given: dict[str, Any] = {name: value for name, value in asked.items() if value}
        given |= {"against": hides, "weight": weight, "seed": seed,
                  "adversary_hidden": self.adversary_hidden}  # fmt: skip
        return {"encoder": DUALS[encoder], "encoder_settings": settings_told(DUALS[encoder], given),
                "defence_kind": "adversarial" if weight else "none", "weight": weight}  # fmt: skip

    def _adapted(self, encoder: str, hides: str, weight: float, seed: int) -> Cell:
        from core.defences.trained.adversarial import AdversarialAdapter

        asked = {"epochs": self.adapter_epochs, "dimension": self.adapter_dimension}
        given: dict[str, Any] = {name: value for name, value in asked.items() if value}
        adapter = AdversarialAdapter(
            against=hides, weight=weight, seed=seed, adversary_hidden=self.adversary_hidden, **given
        )
        told = {k: getattr(adapter, k) for k in settings_of(AdversarialAdapter) if k != "device"}
        return {"encoder": encoder, "encoder_settings": {}, "defence_kind": "adversarial",
                "weight": weight, "trained_defence": "adversarial",
                "trained_defence_settings": told}  # fmt: skip


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a cell's defence, and let fresh attackers and the tasks come.

    Raises
    ------
    InvalidInputError
        A file holds other texts than where the study was begun, or too few.
    """
    places = [cell["target"], *(NamedTexts.of(task).place for task in cell["tasks"])]
    if [table_digest(place) for place in places] != cell["contents"]:
        raise InvalidInputError(
            "The target, or the file of a task, holds other texts than where the study was begun. "
            "Copy the same files to every machine, or start the study again."
        )
    examples = open_examples(cell["target"], cell["label"], cell["group"], cell["contents"][0])
    sizes = Sizes(cell["n_labels"], cell["n_defence"], cell["n_known"], cell["n_targets"])
    sides = part_texts(examples, sizes, cell["seed"], cell["near"])
    try:
        plain, trained = _trained(cell, sides, folder)
    except DivergedError as error:
        return [Row(facts={"when": "stopped", "stopped": str(error)})]
    return [*_during(trained), *_after(cell, plain, trained, sides), _use(cell, plain, trained)]


def _trained(cell: Cell, sides: Sides, folder: Path) -> tuple[Trained, Trained]:
    """Return the encoder without the defence, and the one with it."""
    told = {name: cell[name] for name in ("target", "label", "group", "n_labels", "n_defence",
                                          "n_known", "n_targets", "near", "seed")}  # fmt: skip
    told["content"] = cell["contents"][0]
    name, settings = cell["encoder"], cell["encoder_settings"]
    if name in FITTED_ENCODERS:
        plain = trained_dual(name, settings | {"weight": 0.0}, told, sides, folder)
        if "trained_defence" not in cell:
            is_plain = cell["weight"] == 0.0
            return plain, plain if is_plain else trained_dual(name, settings, told, sides, folder)
    else:
        bare = load_encoder(name)
        plain = Trained(CachedEncoder(bare), bare)
        if "trained_defence" not in cell:
            return plain, plain
    return plain, trained_defence(cell, plain, told, sides, folder)


def _during(trained: Trained) -> list[Row]:
    """Return what the adversary read after each epoch of the training, a row each."""
    return [
        Row(scores={"read": score}, facts={"when": "during", "epoch": epoch, "n": score.n})
        for epoch, score in enumerate(trained.during, 1)
    ]


def _after(cell: Cell, plain: Trained, trained: Trained, sides: Sides) -> list[Row]:
    """Return what each fresh attacker reads, a row each."""
    shared = {"when": "after", "n": len(sides.targets), "n_known_texts": len(sides.known),
              "n_near_duplicates": sides.n_near_duplicates,
              "n_groups": len(set(sides.target_groups))}  # fmt: skip
    found: dict[str, tuple[dict[str, Score], dict[str, Any]]]
    if cell["hides"] == "words":
        is_dual = cell["encoder"] in FITTED_ENCODERS  # nobody has it without the defence
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


def _use(cell: Cell, plain: Trained, trained: Trained) -> Row:
    """Return what the vectors are still good for, and what they cost."""
    scores = use_scores(cell, plain.encoder, trained.encoder)
    facts = {
        "when": "use",
        "training_minutes": round(trained.seconds / 60, 6),
        "dimension": trained.encoder.dimension,
    }
    return Row(scores=scores, facts=facts)
