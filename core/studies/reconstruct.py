"""Sentences read back from vectors, words in order: by length, by budget, and behind defences."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from core.attacks.inversion.reconstruct.attack import ReconstructAttack
from core.attacks.inversion.reconstruct.blind import likeliest_sentence, sentences_between
from core.attacks.inversion.reconstruct.scores import score_sentences, spoken
from core.attacks.inversion.reconstruct.sureness import sentences_after, sureness
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
from core.encoders.transformer import TransformerEncoder
from core.encoders.white_box import parts_read
from core.errors import InvalidInputError
from core.intervals import bootstrap_interval
from core.protocols import Encoder, Vectors
from core.results import Recovery, Score, Sentence
from core.specs import REQUIRED, AttackSpec, EncoderSpec, setting
from core.studies.apart import Apart, near_setting
from core.studies.attacks import all_apart, parted
from core.studies.domains import check_contents, content_of
from core.studies.reconstruct_tables import ends_of, markdown
from core.studies.rows import Cell, Row
from core.units import units_of

__all__ = ["ReconstructStudy", "markdown", "measure", "sentences_of", "targets", "uses"]

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
    group_column: str = setting(
        "", "column of what rows come from, such as a review: intervals are of those"
    )
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
        return tuple(filter(None, (self.where.partition("=")[0], self.group_column)))

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
                "group": self.group_column,
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
    shared = {
        "n": len(texts),
        "unit": "sentence" if apart.documents is None else "document",
        "n_near_duplicates": apart.n_near_duplicates,
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "query_precision": reading.precision,
        "words_outside": round(100 * _outside(texts, reading.lexicon), 2),
    }
    units = units_of(texts, apart.documents)
    read = parts_read(encoder, texts)
    scored = partial(score_sentences, groups=units, seed=cell["seed"])
    rows = [
        Row(scores=scored(read, said), facts={"reader": reader, "budget": asked, **shared})
        for reader, asked, said in _simpler(cell, encoder, reading, texts)
    ]
    for budget in cell["budgets"]:
        said = reading.said(budget)
        more = {"cosine": reading.cosine(budget, units, cell["seed"])}
        more |= _written(read, said, reading.lexicon, units, cell["seed"])
        more |= sureness(read, reading.sentences(budget), groups=units, seed=cell["seed"])
        facts = {"reader": "reconstruct", "budget": budget, "n_asked": reading.spent(budget)}
        rows.append(Row(scores=scored(read, said) | more, facts={**facts, **shared}))
    blind = rows[0].scores
    return [replace(row, scores=_beside(row.scores, blind)) for row in rows]


def _beside(scores: Mapping[str, Score], blind: Mapping[str, Score]) -> dict[str, Score]:
    """Return scores with what the reader without the vector has of each."""
    return {
        name: replace(score, chance=blind[name].value) if name in blind else score
        for name, score in scores.items()
    }


def _written(
    texts: Sequence[str],
    said: Sequence[str],
    known: Container[str],
    groups: Sequence[Hashable] | None,
    seed: int,
) -> dict[str, Score]:
    """Return ROUGE-L of those texts of which the attack can write every word; nothing of none."""
    rows = [i for i, text in enumerate(texts) if all(word in known for word in spoken(text))]
    if not rows:
        return {}
    own = None if groups is None else [groups[i] for i in rows]
    found = score_sentences([texts[i] for i in rows], [said[i] for i in rows],
                            groups=own, seed=seed)  # fmt: skip
    return {"rouge_l_inside": found["rouge_l"]}


def _outside(texts: Sequence[str], known: Container[str]) -> float:
    """Return the share of words of texts that the attack cannot write."""
    words = [word for text in texts for word in spoken(text)]
    return sum(word not in known for word in words) / len(words)


def targets(cell: Cell, encoder: Encoder) -> Apart:
    """Return the sentences under attack: of the length asked for, none that repeats a known one.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    found = sentences_of(cell, encoder)
    if not found.sentences.texts:
        low, high = ends_of(cell["length"])
        raise InvalidInputError(
            f"{cell['target']} holds no sentence of {low} to {high} words that may be attacked. "
            "Ask for other lengths, or for another file."
        )
    return found


def sentences_of(cell: Cell, encoder: Encoder) -> Apart:
    """Return what `targets` does, or nothing where there is no such sentence."""
    is_held_out = cell["auxiliary"] == "held-out"
    marks = shipped_held_out(encoder) if is_held_out or cell["shipped_texts"] else frozenset()
    names = ("target", "where", "group", "shipped_texts", "near")
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
    apart = apart.take(sorted(fit[int(i)] for i in order))
    if not cell["group"]:
        return apart
    documents = (
        f"row {i}" if author is None else author for i, author in enumerate(apart.sentences.authors)
    )
    return replace(apart, documents=tuple(documents))


@dataclass(frozen=True)
class _Reading:
    """What the attack read of the vectors of texts."""

    attack: ReconstructAttack
    vectors: Vectors
    answers: list[Recovery]
    precision: str
    """Of the encoder as it is asked."""
    is_sure: bool
    """Whether the attack may say how sure it is: behind a defence cosines mean less."""

    @classmethod
    def of(cls, cell: Cell, encoder: Encoder, texts: Sequence[str]) -> _Reading:
        """Attack the vectors, behind a defence where the cell has one."""
        spec = AttackSpec.of("reconstruct", {"n_queries": max(cell["budgets"])})
        attack: Any = open_attack(spec, encoder)
        if cell["guarded_by"] == "none":
            vectors = encoder.encode(texts)
            answers = attack.invert(encoder, vectors)
            return cls(attack, vectors, answers, _precision(encoder), True)
        lifted = _behind(attack, encoder, cell)
        vectors = lifted.changed.encode(texts)
        answers, precision = lifted.invert(lifted.changed, vectors), _precision(lifted.queried)
        return cls(attack, lifted.lift(vectors), answers, precision, False)

    @property
    def lexicon(self) -> Container[str]:
        """What the attack can write."""
        found: Container[str] = self.attack.model_.lexicon.index
        return found

    def sentences(self, budget: int) -> list[Sentence | None]:
        """Return what stood there after so many queries, with how sure that was; else nothing."""
        if not self.is_sure:
            return []
        return sentences_after(self.answers, self._beliefs, budget, self.attack.confidence_)

    @cached_property
    def _beliefs(self) -> list[dict[str, float]]:
        """What the classifier underneath reads: the same whatever the budget."""
        found: list[dict[str, float]] = self.attack.beliefs(self.vectors)
        return found

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


def _precision(asked: Encoder) -> str:
    """Return how exactly an encoder is asked, which the attack turns to its quickest."""
    encoder = asked.quick() if isinstance(asked, TransformerEncoder) else asked
    return str(getattr(encoder, "precision", "float32"))


def _simpler(
    cell: Cell, encoder: Encoder, reading: _Reading, texts: Sequence[str]
) -> Iterator[tuple[str, int, list[str]]]:
    """Yield what each simpler reader says, with its queries, the one without the vector first."""
    low, high = ends_of(cell["length"])
    known = sentences_between(low, high, _N_PAIRS)
    yield "blind", 0, [likeliest_sentence(tuple(known), seed=cell["seed"])] * len(texts)
    beside = CachedEncoder(encoder).encode(known)
    nearest = np.argmax(reading.vectors @ beside.T, axis=1)
    yield "nearest", 0, [known[int(i)] for i in nearest]
    bags = open_attack("search", encoder).invert(encoder, reading.vectors)
    n_asked = round(float(np.mean([bag.n_queries for bag in bags])))
    yield "bag", n_asked, [" ".join(w.word for w in bag.words) for bag in bags]
