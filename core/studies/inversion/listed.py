"""The study of candidate lists: which listed name or number a text contains, behind each defence.

The attacker holds the list (names of customers, telephone numbers, IBANs), knows the encoder, the
defence and the ways in which a candidate is put into a text. Two classifiers learn from the
attacker's texts with inserted candidates, encoded behind the defence; then they choose a candidate
for each target. Words that are on no list are the subject of the trade-off study
(`leakscope.core.studies.tradeoff.study`), whose texts and defences are used here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from leakscope.core.attacks.attributes.answers import Answers, label_ranks
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
from leakscope.core.defences.registry import entry_of
from leakscope.core.defences.trained.registry import is_of_model, is_of_network
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.protocols import Encoder
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import DefenceSpec, EncoderSpec, setting
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.inversion.listed_summary import listed_measure
from leakscope.core.studies.inversion.listed_summary import markdown as markdown
from leakscope.core.studies.inversion.listed_texts import (
    KINDS,
    MOST_CANDIDATES,
    draw_candidates,
    insert_candidates,
)
from leakscope.core.studies.tradeoff.defence_grid import GRID, chosen_defences, trained_stage
from leakscope.core.studies.tradeoff.guards import Guard, draw_word_texts
from leakscope.core.studies.tradeoff.texts import AttackersTexts, auxiliary_digest
from leakscope.core.studies.tradeoff.trained_defences import check_unchanged
from leakscope.core.units import units_of

ATTACKERS = ("linear", "discriminant")
"""Classifiers of `ATTRIBUTE_ATTACKS` that learn from defended vectors to choose a candidate."""


@dataclass(frozen=True, kw_only=True)
class ListedStudy:
    """Settings of the list study: each defence against an attacker with a candidate list."""

    encoder: str = setting("minilm", "encoder to defend")
    precision: str = setting("auto", "precision of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(s.name for s in GRID if entry_of(s.name).acts_on == "vector")),
        "defences without training: by name for all strengths, or NAME:SETTING=VALUE",
    )
    kinds: tuple[str, ...] = setting(tuple(KINDS), "kinds of candidates", choices=tuple(KINDS))
    attackers: tuple[str, ...] = setting(
        ATTACKERS, "attackers that choose a candidate", choices=ATTACKERS
    )
    n_candidates: int = setting(40, "number of candidates", low=2, high=MOST_CANDIDATES)
    n_copies: int = setting(
        2,
        "copies of each training text, each with a different candidate",
        low=1,
        high=MOST_CANDIDATES,
    )
    auxiliary: str = setting(
        "",
        "file with auxiliary texts and separate targets (default: bundled sentences)",
        holds="corpus",
    )
    n_auxiliary: int = setting(4000, "number of auxiliary texts", low=20)
    n_targets: int = setting(300, "number of texts to attack", low=20)
    near: float = near_duplicate_setting()
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)

    def cells(self) -> list[Cell]:
        """Return one cell per seed, kind of candidates and setting of a defence.

        Raises
        ------
        InvalidInputError
            No such defence, one that is trained, or more copies than candidates.
        """
        defences = chosen_defences(self.defences)
        for spec in defences:
            _check_untrained(spec)
        if self.n_copies > self.n_candidates:
            raise InvalidInputError(
                f"--n-copies must be at most --n-candidates ({self.n_candidates}), since each copy "
                f"of a text has a different candidate; got {self.n_copies}."
            )
        first, *others = self.attackers
        versions = {name: ATTRIBUTE_ATTACKS[name].version for name in others}
        later = {name: version for name, version in versions.items() if version != 1}
        shared = {
            "study": "listed",
            "encoder": self.encoder,
            "encoder_precision": self.precision,
            "attackers": list(self.attackers),
            "attribute_attack": first,
            **({"attacker_versions": later} if later else {}),
            "n_candidates": self.n_candidates,
            "n_copies": self.n_copies,
            "auxiliary": self.auxiliary,
            "contents": auxiliary_digest(self.auxiliary),
            "n_auxiliary": self.n_auxiliary,
            "n_targets": self.n_targets,
            "near": self.near,
        }
        return [
            {
                **shared,
                "kind": kind,
                "defence": spec.name,
                "defence_settings": dict(spec.settings),
                "seed": seed,
            }
            for seed in self.seeds
            for kind in self.kinds
            for spec in defences
        ]


def _check_untrained(spec: DefenceSpec) -> None:
    """Raise InvalidInputError if a defence is trained, or protects no vectors."""
    if trained_stage(spec.name) or is_of_model(spec.name) or is_of_network(spec.name):
        untrained = dict.fromkeys(each.name for each in GRID)
        raise InvalidInputError(
            f"--defences: {spec.name} needs training or protects the training of a model, which "
            "this study does not support. Choose defences without training, such as "
            f"{', '.join(untrained)}." + similar(spec.name, untrained)
        )


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Attack a cell's defended texts with a candidate list; return a row of shares identified.

    Raises
    ------
    InvalidInputError
        The file has changed since the study was started, or too few.
    """
    check_unchanged(auxiliary_digest(cell["auxiliary"]) == cell["contents"])
    encoder = _open_encoder(cell["encoder"], cell["encoder_precision"])
    # No shipped weights are used; targets come from other documents than the attacker's texts.
    texts = draw_word_texts({**cell, "start": ""}, encoder)
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "n_vectors": len(texts.known) * cell["n_copies"],
        **texts.facts,
    }
    return [Row(scores=listed_scores(cell, Guard(cell).over(encoder), texts), facts=facts)]


def listed_scores(cell: Cell, protected: Encoder, texts: AttackersTexts) -> dict[str, Score]:
    """Train each attacker; return by measure how often it ranks the right candidate first, in %.

    The chance level is that of always naming the same candidate. Intervals are over distinct
    targets, or over their documents if several share one.
    """
    seed, n_candidates = cell["seed"], cell["n_candidates"]
    candidates = draw_candidates(cell["kind"], n_candidates, seed)
    known = insert_candidates(texts.known, candidates, cell["kind"], cell["n_copies"], (seed, 8))
    targets = insert_candidates(texts.targets, candidates, cell["kind"], 1, (seed, 9))
    # One call for all copies and one for the targets: each vector has independent noise.
    learned, attacked = protected.encode(known.texts), protected.encode(targets.texts)
    units = units_of(targets.carriers, texts.documents)
    found = {}
    for name in cell["attackers"]:
        attack = make_attribute_attack(name)
        attack.fit(known.texts, known.labels, learned, n_labels=n_candidates, seed=seed)
        ranks = label_ranks(attack.scores(targets.texts, attacked), targets.labels)
        score = Answers(ranks, targets.labels, units).top(1, seed).in_percent()
        found[listed_measure(name)] = replace(score, chance=100 / n_candidates)
    return found


@lru_cache(maxsize=1)
def _open_encoder(name: str, precision: str) -> Encoder:
    """Load the encoder of a cell, once per process."""
    return load_encoder(EncoderSpec(name=name, precision=precision))
