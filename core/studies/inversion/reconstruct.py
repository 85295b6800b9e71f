"""The sentence study: whole sentences reconstructed from vectors, by length, budget and defence."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from leakscope.core.attacks.inversion.reconstruct.attack import ReconstructAttack
from leakscope.core.attacks.inversion.reconstruct.baselines import (
    most_typical_sentence,
    sentences_between,
)
from leakscope.core.attacks.inversion.reconstruct.confidence import (
    calibration_scores,
    sentences_after,
)
from leakscope.core.attacks.inversion.reconstruct.scores import score_sentences, word_tokens
from leakscope.core.attacks.inversion.shipped import (
    open_attack,
    shipped_digest,
    shipped_held_out,
    shipped_settings,
)
from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.registry import entry_of, make_defence
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Recovery, Score, Sentence
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, AttackSpec, EncoderSpec, setting
from leakscope.core.studies.decontaminate import Decontaminated, near_duplicate_setting
from leakscope.core.studies.domains import check_contents, content_of
from leakscope.core.studies.inversion.attacks import decontaminated_sentences, split_texts
from leakscope.core.studies.inversion.reconstruct_tables import markdown as markdown
from leakscope.core.studies.inversion.reconstruct_tables import parse_length
from leakscope.core.units import units_of

_N_PAIRS = 2000
"""Bundled sentences from which an attacker learns how a defence changes vectors; the baselines
answer with them too."""


@dataclass(frozen=True, kw_only=True)
class ReconstructStudy:
    """Settings of the sentence study: sentences of one collection, attacked by `reconstruct`.

    The results of every budget come from one search: its best sentence at each budget.
    """

    target: str = setting(REQUIRED, "file with the texts to study")
    auxiliary: str = setting(
        "cross",
        "held-out: texts of the training kind that the attack was not trained on",
        choices=("cross", "held-out"),
    )
    where: str = setting("", "COLUMN=VALUE: attack only these rows")
    group_column: str = setting(
        "", "column with the source of a row, such as a review: the unit of intervals"
    )
    n: int = setting(100, "number of sentences per length", low=1)
    lengths: tuple[str, ...] = setting(("4-8", "9-16", "17-32"), "lengths in words, FROM-TO")
    budgets: tuple[int, ...] = setting((0, 100, 500, 2000), "queries per sentence", low=0)
    defences: tuple[str, ...] = setting(("none",), "defences of the vectors")
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    shipped_texts: str = setting(
        "",
        "training texts of the shipped weights, if available: no target is a near-duplicate",
        holds="corpus",
    )
    near: float = near_duplicate_setting()
    precision: str = setting("auto", "precision of the encoder: auto, float32, bfloat16 or float16")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table needs besides the texts."""
        return tuple(filter(None, (self.where.partition("=")[0], self.group_column)))

    def cells(self) -> list[Cell]:
        """Return one cell per defence, length and seed.

        Raises
        ------
        InvalidInputError
            No such defence or setting, or a length that is no range.
        """
        for told in self.defences:
            read_defence(told, option="--defences")
        for length in self.lengths:
            parse_length(length)
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
    """Load the bundled encoder at a precision, once per process."""
    return load_encoder(EncoderSpec(precision=precision))


def uses(cell: Cell) -> Cell:
    """Return {"defence": NAME}, read from the defence spec in `guarded_by`, for the versions."""
    return {"defence": read_defence(cell["guarded_by"]).name}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Reconstruct a cell's sentences; return a row of scores per baseline and per budget."""
    check_contents(cell)
    encoder = _encoder(cell["encoder_precision"])
    apart = draw_targets(cell, encoder)
    texts = list(apart.sentences.texts)
    reading = _Reconstruction.of(cell, encoder, texts)
    shared = {
        "n": len(texts),
        "unit": "sentence" if apart.documents is None else "document",
        "n_near_duplicates": apart.n_near_duplicates,
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "query_precision": reading.precision,
        "words_outside": round(100 * _unknown_share(texts, reading.lexicon), 2),
    }
    units = units_of(texts, apart.documents)
    read = parts_read(encoder, texts)
    scored = partial(score_sentences, groups=units, seed=cell["seed"])
    rows = [
        Row(scores=scored(read, said), facts={"reader": reader, "budget": asked, **shared})
        for reader, asked, said in _run_baselines(cell, encoder, reading, texts)
    ]
    for budget in cell["budgets"]:
        said = reading.sentences_at(budget)
        more = {"cosine": reading.cosine(budget, units, cell["seed"])}
        more |= _in_vocabulary_score(read, said, reading.lexicon, units, cell["seed"])
        more |= calibration_scores(read, reading.sentences(budget), groups=units, seed=cell["seed"])
        facts = {"reader": "reconstruct", "budget": budget, "n_asked": reading.mean_queries(budget)}
        rows.append(Row(scores=scored(read, said) | more, facts={**facts, **shared}))
    chance = {name: score.value for name, score in rows[0].scores.items()}  # without the vector
    for row in rows:
        known = {n: replace(s, chance=chance[n]) for n, s in row.scores.items() if n in chance}
        row.scores.update(known)
    return rows


def _in_vocabulary_score(
    texts: Sequence[str],
    said: Sequence[str],
    known: Container[str],
    groups: Sequence[Hashable] | None,
    seed: int,
) -> dict[str, Score]:
    """Score answers to texts whose words are all known, by ROUGE-L; empty if there are none."""
    rows = [i for i, text in enumerate(texts) if all(word in known for word in word_tokens(text))]
    if not rows:
        return {}
    own = None if groups is None else [groups[i] for i in rows]
    found = score_sentences(
        [texts[i] for i in rows], [said[i] for i in rows], groups=own, seed=seed
    )
    return {"rouge_l_inside": found["rouge_l"]}


def _unknown_share(texts: Sequence[str], known: Container[str]) -> float:
    """Return the share of words in the texts that the lexicon `known` lacks."""
    words = [word for text in texts for word in word_tokens(text)]
    return sum(word not in known for word in words) / len(words)


def draw_targets(cell: Cell, encoder: Encoder) -> Decontaminated:
    """Draw the target sentences of a cell; raise InvalidInputError if there is none.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    found = sentences_of(cell, encoder)
    if not found.sentences.texts:
        low, high = parse_length(cell["length"])
        raise InvalidInputError(
            f"{cell['target']} contains no sentence of {low} to {high} words to attack. Choose "
            "other lengths or another file."
        )
    return found


def sentences_of(cell: Cell, encoder: Encoder) -> Decontaminated:
    """Draw a cell's targets: sentences of its length without near-duplicates; may be empty."""
    is_held_out = cell["auxiliary"] == "held-out"
    marks = shipped_held_out(encoder) if is_held_out or cell["shipped_texts"] else frozenset()
    names = ("target", "where", "group", "shipped_texts", "near")
    given = {name: cell[name] for name in names} | {
        "marks": frozenset(marks),
        "contents": tuple(cell["contents"]),
    }
    if is_held_out:
        _, apart = split_texts(**given, seed=cell["seed"], is_held_out=True)
    else:  # no training here, so all texts can be attacked
        apart = decontaminated_sentences(**given)
    low, high = parse_length(cell["length"])
    fit = [i for i, t in enumerate(apart.sentences.texts) if low <= len(word_tokens(t)) <= high]
    order = np.random.default_rng([cell["seed"], 31]).permutation(len(fit))[: cell["n_targets"]]
    apart = apart.take(sorted(fit[int(i)] for i in order))
    if not cell["group"]:
        return apart
    documents = (
        f"row {i}" if author is None else author for i, author in enumerate(apart.sentences.authors)
    )
    return replace(apart, documents=tuple(documents))


@dataclass(frozen=True)
class _Reconstruction:
    """The attack's answers for the vectors of a cell's texts."""

    attack: ReconstructAttack
    vectors: Vectors
    answers: list[Recovery]
    precision: str
    """The precision of the queried encoder."""
    is_sure: bool
    """Whether confidence is reported; behind a defence it is not, since cosines mean less."""

    @classmethod
    def of(cls, cell: Cell, encoder: Encoder, texts: Sequence[str]) -> _Reconstruction:
        """Encode texts, behind the cell's defence if it has one, and invert their vectors."""
        spec = AttackSpec.of("reconstruct", {"n_queries": max(cell["budgets"])})
        attack: Any = open_attack(spec, encoder)
        if cell["guarded_by"] == "none":
            vectors = encoder.encode(texts)
            answers = attack.invert(encoder, vectors)
            return cls(attack, vectors, answers, _query_precision(encoder), True)
        lifted = _adapt_to_defence(attack, encoder, cell)
        vectors = lifted.changed.encode(texts)
        answers = lifted.invert(lifted.changed, vectors)
        precision = _query_precision(lifted.queried)
        return cls(attack, lifted.lift(vectors), answers, precision, False)

    @property
    def lexicon(self) -> Container[str]:
        """The words that the attack can write."""
        found: Container[str] = self.attack.model_.lexicon.index
        return found

    def sentences(self, budget: int) -> list[Sentence | None]:
        """Return each text's best sentence after a budget, with confidence; [] behind a defence."""
        if not self.is_sure:
            return []
        confidence = self.attack.confidence_
        return sentences_after(self.answers, self._word_probabilities, budget, confidence)

    @cached_property
    def _word_probabilities(self) -> list[dict[str, float]]:
        """Each text's word probabilities by the underlying classifier, the same for all budgets."""
        found: list[dict[str, float]] = self.attack.beliefs(self.vectors)
        return found

    def sentences_at(self, budget: int) -> list[str]:
        """Return the best sentence of each text, as a string, after a budget of queries."""
        found = [answer.sentence for answer in self.answers]
        return ["" if one is None else one.after(budget).text for one in found]

    def cosine(self, budget: int, groups: Sequence[Hashable] | None = None, seed: int = 0) -> Score:
        """Return the mean cosine, in %, between the best sentences and the attacked vectors."""
        found = [a.sentence.after(budget).cosine for a in self.answers if a.sentence is not None]
        values = 100 * np.array(found)
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return Score(math.nan, n=0)
        own = None if groups is None else [groups[int(i)] for i in known]
        interval = bootstrap_interval(values[known], groups=own, seed=seed)
        return Score(float(values[known].mean()), interval, len(known))

    def mean_queries(self, budget: int) -> float:
        """Return the mean number of queries made per text, at most the budget."""
        return float(np.mean([min(budget, answer.n_queries) for answer in self.answers]))


def _adapt_to_defence(attack: Any, encoder: Encoder, cell: Cell) -> LiftedAttack:
    """Adapt an attack to the cell's defence by a linear map, fitted on bundled sentences."""
    spec = read_defence(cell["guarded_by"])
    entry = entry_of(spec.name)
    noise = {"seed": cell["seed"]} if entry.draws_noise else {}
    changed = make_defence(spec.of(spec.name, noise | dict(spec.settings))).protect(encoder)
    known = list(bundled_sentences())[:_N_PAIRS]
    clean = CachedEncoder(encoder).encode(known)
    lift = Lift.fit(changed.encode(known), clean)
    queried = encoder if entry.draws_noise else LiftedEncoder(encoder, changed, lift)
    return LiftedAttack(attack, lift, queried, changed)


def _query_precision(asked: Encoder) -> str:
    """Return the precision of the encoder that the attack queries, in its fastest mode."""
    encoder = asked.quick() if isinstance(asked, TransformerEncoder) else asked
    return str(getattr(encoder, "precision", "float32"))


def _run_baselines(
    cell: Cell, encoder: Encoder, reading: _Reconstruction, texts: Sequence[str]
) -> Iterator[tuple[str, int, list[str]]]:
    """Run the baselines; yield name, queries and answers; the first ignores the vectors."""
    low, high = parse_length(cell["length"])
    known = sentences_between(low, high, _N_PAIRS)
    yield "blind", 0, [most_typical_sentence(tuple(known), seed=cell["seed"])] * len(texts)
    beside = CachedEncoder(encoder).encode(known)
    nearest = np.argmax(reading.vectors @ beside.T, axis=1)
    yield "nearest", 0, [known[int(i)] for i in nearest]
    bags = open_attack("search", encoder).invert(encoder, reading.vectors)
    n_asked = round(float(np.mean([bag.n_queries for bag in bags])))
    yield "bag", n_asked, [" ".join(w.word for w in bag.words) for bag in bags]
