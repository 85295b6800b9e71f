"""What each defence costs and what it saves: utility against leakage.

Every defence at every strength is measured under several seeds: what its vectors are still good
for, and how much an attacker who was trained on them reads. The texts of a cell are read from
the files that it names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.evaluation import evaluate
from core.corpora import bundled_sentences, split_reference
from core.defences.metric_dp.mechanisms import TextPrivatizer
from core.defences.registry import DEFENCES, make_defence
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.encoders.white_box import require_white_box
from core.errors import InvalidInputError
from core.metrics import wilson_interval
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.results import Score
from core.specs import DefenceSpec, EncoderSpec, setting
from core.studies.cell_attacks import attack_of, settings_for
from core.studies.defence_grid import GRID, chosen_defences
from core.studies.domains import encoder_content
from core.studies.named_texts import NamedTexts, check_names
from core.studies.rows import Cell, Row
from core.studies.tradeoff_summary import LEAKAGE, TOKEN_INVERSION, markdown, utility_measure
from core.tasks.labelled import LabelledTask, read_labelled
from core.tasks.pairs import PairTask, read_pairs
from core.training.record import hardware

__all__ = ["USUAL", "TradeoffStudy", "markdown", "measure"]

USUAL: dict[str, dict[str, Any]] = {
    "probe_mlc": {"vocabulary_size": 4000, "epochs": 12, "hidden": 512, "substitutions": 0},
}
"""Settings of an attacker that is trained anew on the vectors of every defence."""

Task = LabelledTask | PairTask


@dataclass(frozen=True, kw_only=True)
class TradeoffStudy:
    """Every defence: the usefulness that it leaves, and the words that an attacker reads."""

    tasks: tuple[str, ...] = setting(
        (), "what vectors are used for: NAME=FILE of texts with a `label`", holds="labelled"
    )
    pairs: tuple[str, ...] = setting(
        (), "the same, of scored pairs: NAME=FILE like the STS benchmark", holds="pairs"
    )
    encoder: str = setting("minilm", "the encoder that is defended")
    precision: str = setting("auto", "of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(spec.name for spec in GRID)),
        "defences by name, at all strengths, or one as NAME:SETTING=VALUE",
    )
    attack: str = setting("probe_mlc", "the attacker, trained on the vectors of each defence")
    n_train: int = setting(500, "texts of each task to train a classifier on", low=2)
    n_test: int = setting(300, "texts, or pairs, of each task to test it on", low=2)
    n_auxiliary: int = setting(3000, "sentences to train the attack on", low=1)
    n_targets: int = setting(300, "sentences under attack", low=1)
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of the attack", flag="set"
    )

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each defence at each strength under each seed.

        Raises
        ------
        InvalidInputError
            No such defence, two tasks of one name, or a file that cannot be read.
        """
        defences = chosen_defences(self.defences)
        check_names([*self.tasks, *self.pairs])
        usual = USUAL.get(self.attack, {})
        shared = {"study": "tradeoff", "tasks": list(self.tasks), "pairs": list(self.pairs),
                  "contents": _contents(self.tasks, self.pairs),
                  "encoder": self.encoder, **encoder_content(self.encoder),
                  "encoder_precision": self.precision,
                  "attack": self.attack,
                  "settings": usual | settings_for(self.attack, self.attack_settings),
                  "n_train": self.n_train, "n_test": self.n_test,
                  "n_auxiliary": self.n_auxiliary, "n_targets": self.n_targets}  # fmt: skip
        return [
            {
                **shared,
                "defence": spec.name,
                "defence_settings": dict(spec.settings),
                "seed": seed,
            }
            for seed in self.seeds
            for spec in defences
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a defence at one strength under one seed: usefulness, and what leaks.

    Raises
    ------
    InvalidInputError
        A file holds other texts than where the study was begun, or too few.
    """
    if _contents(cell["tasks"], cell["pairs"]) != cell["contents"]:
        raise InvalidInputError(
            "The files of the tasks, or the bundled sentences, hold other texts than where the "
            "study was begun. Copy the same files to every machine, or start the study again."
        )
    seed = cell["seed"]
    encoder = _opened(cell["encoder"], cell["encoder_precision"])
    protected = _protected(cell, encoder)
    scores = {}
    for task in _open_tasks(cell["tasks"], cell["pairs"]):
        found = task.score(protected, n_train=cell["n_train"], n_test=cell["n_test"], seed=seed)
        scores[utility_measure(task.name, task.measure)] = found
    known, targets = _sentences(cell)
    scores[LEAKAGE] = _leakage(cell, encoder, protected, known, targets)
    if DEFENCES[cell["defence"]].acts_on in ("text", "tokens"):
        scores[TOKEN_INVERSION] = _token_inversion(cell, encoder, targets)
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "machine": _machine(encoder),
    }
    return [Row(scores=scores, facts=facts)]


@lru_cache(maxsize=1)
def _opened(name: str, precision: str) -> Encoder:
    return load_encoder(EncoderSpec(name=name, precision=precision))


def _machine(encoder: Encoder) -> str:
    """Return on what a cell is measured."""
    found = hardware(encoder)
    is_gpu = str(found["device"]).startswith("cuda")
    return str(found["chip"]) if is_gpu else f"{found['n_cpus']} {found['chip']} cores"


def _protected(cell: Cell, encoder: Encoder) -> Encoder:
    """Return the encoder behind the cell's defence, whose noise is drawn by the cell's seed."""
    entry = DEFENCES[cell["defence"]]
    # Vectors of texts as they are can be kept; privatised texts never come twice.
    base: Encoder = CachedEncoder(encoder) if entry.acts_on == "vector" else encoder
    settings = dict(cell["defence_settings"])
    if "seed" in entry.kind.__dataclass_fields__:
        settings["seed"] = cell["seed"]
    return make_defence(DefenceSpec.of(cell["defence"], settings)).protect(base)


def _open_tasks(tasks: Sequence[str], pairs: Sequence[str]) -> list[Task]:
    return [*(_labelled(told) for told in tasks), *(_pairs(told) for told in pairs)]


@lru_cache(maxsize=32)
def _labelled(told: str) -> LabelledTask:
    texts = NamedTexts.of(told)
    path, column = split_reference(texts.place)
    return read_labelled(texts.name, Path(path), column)


@lru_cache(maxsize=32)
def _pairs(told: str) -> PairTask:
    texts = NamedTexts.of(told)
    return read_pairs(texts.name, Path(texts.place))


def _contents(tasks: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """Return what identifies the texts: of each task, then the attacker's sentences."""
    texts = (*_open_tasks(tasks, pairs), tuple(bundled_sentences()))
    return [hashlib.sha256(repr(each).encode()).hexdigest()[:16] for each in texts]


class _Informed:
    """The attacker's view of a protected encoder: whole vectors of words come without noise.

    An attacker who knows the encoder can encode words without the defence, and starts from
    there where the protected vectors live in the same space.
    """

    def __init__(self, protected: Encoder, encoder: Encoder) -> None:
        self.name, self.fingerprint = protected.name, protected.fingerprint
        self.dimension = protected.dimension
        self._source = encoder if encoder.dimension == protected.dimension else protected

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        return self._source.encode(texts, on_progress)


def _sentences(cell: Cell) -> tuple[list[str], list[str]]:
    """Return the sentences that the attack is trained on, and others that it attacks."""
    texts = bundled_sentences()
    n_known, n_targets = cell["n_auxiliary"], cell["n_targets"]
    order = np.random.default_rng([cell["seed"], 2]).permutation(len(texts))
    chosen = [texts[i] for i in order[: n_known + n_targets]]
    return chosen[:n_known], chosen[n_known:]


def _leakage(
    cell: Cell,
    encoder: Encoder,
    protected: Encoder,
    known: Sequence[str],
    targets: Sequence[str],
) -> Score:
    """Train the attack on protected vectors, and score it beside guessing."""
    attacker = _Informed(protected, CachedEncoder(encoder))
    attack = attack_of(cell).fit(attacker, known, protected.encode(known))
    result = evaluate(attack, protected, targets, seed=cell["seed"], name="sentences")
    return result.scores.score("token_set_f1", result.baseline.token_set_f1)


def _token_inversion(cell: Cell, encoder: Encoder, targets: Sequence[str]) -> Score:
    """Return the share of tokens that the nearest token to their noisy vectors gives back."""
    opened = require_white_box(encoder, "Token inversion")
    defence: Any = make_defence(DefenceSpec.of(cell["defence"], cell["defence_settings"]))
    candidates = {"candidates": defence.candidates} if hasattr(defence, "candidates") else {}
    rng = np.random.default_rng([cell["seed"], 3])
    privatizer = TextPrivatizer(opened, defence.eta, **candidates, rng=rng)
    ids = np.array([i for row in opened.token_ids(targets) for i in row])
    n_back = int((privatizer.tokens(ids) == ids).sum())
    return Score(100 * n_back / len(ids), wilson_interval(n_back, len(ids)), len(ids), 0.0)
