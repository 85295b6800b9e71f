"""Sentences read back from vectors, words in order: by length, by budget, and behind defences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from core.attacks.inversion.reconstruct.blind import sentences_between
from core.attacks.inversion.reconstruct.scores import score_sentences, spoken
from core.attacks.inversion.reconstruct.sureness import sureness
from core.attacks.inversion.shipped import (
    open_attack,
    shipped_digest,
    shipped_held_out,
    shipped_settings,
)
from core.corpora import bundled_sentences
from core.defences.registry import entry_of, make_defence
from core.defences.told import read_defence
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.intervals import bootstrap_interval
from core.protocols import Encoder, Vectors
from core.results import Recovery, Score
from core.specs import REQUIRED, AttackSpec, EncoderSpec, setting
from core.studies.apart import Apart, near_setting
from core.studies.attacks import all_apart, parted
from core.studies.domains import check_contents, content_of
from core.studies.reconstruct_tables import ends_of, markdown
from core.studies.rows import Cell, Row

__all__ = ["ReconstructStudy", "markdown", "measure", "targets", "uses"]

_N_PAIRS = 2000
"""Bundled sentences: of which an attacker learns how a defence changes vectors, and that the
simpler readers answer with."""


@dataclass(frozen=True, kw_only=True)
class ReconstructStudy:
    """Sentences of one collection, read back by the attack as it ships.

    A budget is read off one search: what stood there after so many queries.
    """

    target: str = setting(REQUIRED, "the collection under study, a file")
    auxiliary: str = setting(
        "cross",
        "held-out: texts of the attack's own kind that it was not trained on",
        choices=("cross", "held-out"),
    )
    where: str = setting("", "COLUMN=VALUE: attack these rows alone")
    n: int = setting(100, "sentences of each length", low=1)
    lengths: tuple[str, ...] = setting(("4-8", "9-16", "17-32"), "words of a sentence, FROM-TO")
    budgets: tuple[int, ...] = setting((0, 100, 500, 2000), "queries for each sentence", low=0)
    defences: tuple[str, ...] = setting(("none",), "what the vectors are behind")
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    shipped_texts: str = setting(
        "",
        "where it is at hand, what the shipped weights were trained on: no target repeats it",
        holds="corpus",
    )
    near: float = near_setting()
    precision: str = setting("auto", "of the encoder: auto, float32, bfloat16 or float16")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table has to have, besides that of the texts."""
        return (self.where.partition("=")[0],) if self.where else ()

    def cells(self) -> list[Cell]:
        """Return what is to be measured.

        Raises
        ------
        InvalidInputError
            No such defence or setting, or a length that is no range.
        """
        for told in self.defences:
            read_defence(told, option="--defences")
        for length in self.lengths:
            ends_of(length)
        encoder = _encoder(self.precision)
        read = [name for name in (self.target, self.shipped_texts) if name]
        return [
            {
                "study": "reconstruct",
                "target": self.target,
                "shipped_texts": self.shipped_texts,
                "contents": [content_of(name) for name in read],
                "where": self.where,
                "near": self.near,
                "encoder": encoder.name,
                "encoder_fingerprint": encoder.fingerprint,
                "encoder_precision": str(getattr(encoder, "precision", "float32")),
                "attack": "reconstruct",
                "auxiliary": self.auxiliary,
                "length": length,
                "guarded_by": defence,
                "n_targets": self.n,
                "budgets": list(self.budgets),
                "seed": seed,
                "weights": shipped_digest(encoder, "reconstruct")[:16],
                "settings": shipped_settings(encoder, "reconstruct")
                | {"n_queries": max(self.budgets)},
            }
            for defence in self.defences
            for length in self.lengths
            for seed in self.seeds
        ]


@lru_cache(maxsize=2)
def _encoder(precision: str) -> Encoder:
    return load_encoder(EncoderSpec(precision=precision))


def uses(cell: Cell) -> Cell:
    """Return what measures a cell that the cell does not name: its defence."""
    return {"defence": read_defence(cell["guarded_by"]).name}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Read the sentences of a cell, and let the simpler readers answer beside."""
    check_contents(cell)
    encoder = _encoder(cell["encoder_precision"])
    apart = targets(cell, encoder)
    texts = list(apart.sentences.texts)
    reading = _Reading.of(cell, encoder, texts)
    scores = [
        (reader, budget, said, score_sentences(texts, said, groups=apart.documents,
                                               seed=cell["seed"]))
        for reader, budget, said in _answers(cell, encoder, reading, texts)
    ]  # fmt: skip
    chance = {name: score.value for name, score in scores[0][3].items()}
    sure = sureness(texts, reading.answers, groups=apart.documents, seed=cell["seed"])

    def is_last(reader: str, budget: int) -> bool:
        return reader == "reconstruct" and budget == max(cell["budgets"])

    return [
        Row(
            scores={name: Score(s.value, s.ci95, s.n, chance[name]) for name, s in found.items()}
            | (
                {"cosine": reading.cosine(budget, apart.documents, cell["seed"])}
                if reader == "reconstruct"
                else {}
            )
            | (sure if is_last(reader, budget) else {}),
            facts={
                "reader": reader,
                "budget": budget,
                **({"n_asked": reading.spent(budget)} if reader == "reconstruct" else {}),
                "n": len(texts),
                "unit": "sentence" if apart.documents is None else "document",
                "n_near_duplicates": apart.n_near_duplicates,
                "encoder_backend": str(getattr(encoder, "backend", "torch")),
            },
        )
        for reader, budget, said, found in scores
    ]


def targets(cell: Cell, encoder: Encoder) -> Apart:
    """Return the sentences under attack: of the length asked for, none that repeats a known one."""
    is_held_out = cell["auxiliary"] == "held-out"
    marks = shipped_held_out(encoder) if is_held_out or cell["shipped_texts"] else frozenset()
    names = ("target", "where", "shipped_texts", "near")
    given = {name: cell[name] for name in names} | {
        "marks": frozenset(marks),
        "contents": tuple(cell["contents"]),
    }
    if is_held_out:
        _, apart = parted(**given, seed=cell["seed"], is_held_out=True)
    else:  # nothing is learned here, so that all of it can be attacked
        apart = all_apart(**given)
    low, high = ends_of(cell["length"])
    fit = [i for i, t in enumerate(apart.sentences.texts) if low <= len(spoken(t)) <= high]
    order = np.random.default_rng([cell["seed"], 31]).permutation(len(fit))[: cell["n_targets"]]
    return apart.take(sorted(fit[int(i)] for i in order))


@dataclass(frozen=True)
class _Reading:
    """What the attack read of the vectors of texts."""

    vectors: Vectors
    answers: list[Recovery]

    @classmethod
    def of(cls, cell: Cell, encoder: Encoder, texts: Sequence[str]) -> _Reading:
        """Attack the vectors, behind a defence where the cell has one."""
        spec = AttackSpec.of("reconstruct", {"n_queries": max(cell["budgets"])})
        attack = open_attack(spec, encoder)
        if cell["guarded_by"] == "none":
            vectors = encoder.encode(texts)
            return cls(vectors, attack.invert(encoder, vectors))
        lifted = _behind(attack, encoder, cell)
        vectors = lifted.changed.encode(texts)
        return cls(lifted.lift(vectors), lifted.invert(lifted.changed, vectors))

    def said(self, budget: int) -> list[str]:
        """Return what stood there after so many queries."""
        found = [answer.sentence for answer in self.answers]
        return ["" if one is None else one.after(budget).text for one in found]

    def cosine(self, budget: int, groups: Sequence[Hashable] | None = None, seed: int = 0) -> Score:
        """Return the mean cosine, in per cent, of what stood there with the vector attacked."""
        found = [a.sentence.after(budget).cosine for a in self.answers if a.sentence is not None]
        values = 100 * np.array(found)
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return Score(math.nan, n=0)
        own = None if groups is None else [groups[int(i)] for i in known]
        interval = bootstrap_interval(values[known], groups=own, seed=seed)
        return Score(float(values[known].mean()), interval, len(known))

    def spent(self, budget: int) -> float:
        """Return the mean number of queries, of at most so many: a search ends where none gains."""
        return float(np.mean([min(budget, answer.n_queries) for answer in self.answers]))


def _behind(attack: Any, encoder: Encoder, cell: Cell) -> LiftedAttack:
    """Turn the attack on a defence that the attacker knows: its own guesses go through it too."""
    spec = read_defence(cell["guarded_by"])
    entry = entry_of(spec.name)
    noise = {"seed": cell["seed"]} if entry.draws_noise else {}
    changed = make_defence(spec.of(spec.name, noise | dict(spec.settings))).protect(encoder)
    known = list(bundled_sentences())[:_N_PAIRS]
    clean = CachedEncoder(encoder).encode(known)
    lift = Lift.fit(changed.encode(known), clean)
    queried = encoder if entry.draws_noise else LiftedEncoder(encoder, changed, lift)
    return LiftedAttack(attack, lift, queried, changed)


def _answers(
    cell: Cell, encoder: Encoder, reading: _Reading, texts: Sequence[str]
) -> Iterator[tuple[str, int, list[str]]]:
    """Yield what each reader says, the one without the vector first."""
    low, high = ends_of(cell["length"])
    known = sentences_between(low, high, _N_PAIRS)
    drawn = np.random.default_rng([cell["seed"], 32]).integers(len(known), size=len(texts))
    yield "blind", 0, [known[int(i)] for i in drawn]
    beside = CachedEncoder(encoder).encode(known)
    nearest = np.argmax(reading.vectors @ beside.T, axis=1)
    yield "nearest", 0, [known[int(i)] for i in nearest]
    bags = open_attack("search", encoder).invert(encoder, reading.vectors)
    n_asked = round(float(np.mean([bag.n_queries for bag in bags])))
    yield "bag", n_asked, [" ".join(w.word for w in bag.words) for bag in bags]
    for budget in cell["budgets"]:
        yield "reconstruct", budget, reading.said(budget)
