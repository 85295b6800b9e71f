"""The study of attacks × auxiliary texts: word recovery by attacker's knowledge (C22 Table 5.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.evaluation import evaluate, restrict, sample_rows
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.attacks.inversion.shipped import (
    open_attack,
    shipped_digest,
    shipped_held_out,
    shipped_settings,
    shipped_vocabulary,
    text_mark,
)
from leakscope.core.corpora import Columns, Corpus, Sentences, load_corpus, split_reference
from leakscope.core.corpora.sentences import MAX_SEGMENT_WORDS, split_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import Encoder
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, score_cells
from leakscope.core.specs import (
    REQUIRED,
    AttackSpec,
    EncoderSpec,
    setting,
    setting_values,
    settings_of,
)
from leakscope.core.studies.decontaminate import (
    Decontaminated,
    drop_near_duplicates,
    near_duplicate_setting,
)
from leakscope.core.studies.domains import check_contents, content_of, open_corpus
from leakscope.core.studies.inversion.cell_attacks import score_row
from leakscope.core.studies.runner import cell_key
from leakscope.core.text import STOP_WORDS, Vocabulary, check_texts

AUXILIARY = {
    "cross": "cross-domain",
    "in": "in-domain",
    "held-out": "in-domain, held out",
}
"""What an attacker was trained on. `cross`: the attack as it ships. `in`: trained on the other
documents of the collection. `held-out`: as it ships, on texts of its training corpus that
it was not trained on."""


@dataclass(frozen=True, kw_only=True)
class AttackStudy:
    """Settings of the attack study: each attack on a tenth of one collection's documents.

    Attacks that are trained here keep the settings that ship, but for `epochs` and
    `substitutions`.
    """

    target: str = setting(REQUIRED, "file with the texts to study")
    attacks: tuple[str, ...] = setting(
        tuple(name for name, entry in INVERSION_ATTACKS.items() if not entry.writes_sentences),
        "names of attacks",
    )
    auxiliary: tuple[str, ...] = setting(
        ("cross", "in"), "kinds of auxiliary texts", choices=tuple(AUXILIARY)
    )
    where: str = setting("", "COLUMN=VALUE: attack only these rows")
    n: int = setting(500, "number of sentences to attack", low=1)
    n_slow: int = setting(50, "number of sentences for attacks that take seconds each", low=1)
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    shipped_texts: str = setting(
        "",
        "training texts of the shipped weights, if available: no target is a near-duplicate",
        holds="corpus",
    )
    near: float = near_duplicate_setting()
    keep_stop_words: bool = setting(False, "count stop words as words to recover", paper="SR20")
    epochs: int = setting(4, "epochs of the attacks trained here", low=1)
    substitutions: int = setting(1, "copies of training texts with substituted words", low=0)
    precision: str = setting("auto", "precision of the encoder: auto, float32, bfloat16 or float16")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table needs besides the texts."""
        return (self.where.partition("=")[0],) if self.where else ()

    def cells(self) -> list[Cell]:
        """Return one cell per kind of auxiliary texts, attack and seed."""
        encoder = _encoder(self.precision)
        read = [name for name in (self.target, self.shipped_texts) if name]
        vocabulary = "\n".join(shipped_vocabulary(encoder).words)
        return [
            {
                "study": "attacks",
                "target": self.target,
                "shipped_texts": self.shipped_texts,
                "contents": [content_of(name) for name in read],
                "where": self.where,
                "near": self.near,
                "encoder": encoder.name,
                "encoder_fingerprint": encoder.fingerprint,
                "encoder_precision": str(getattr(encoder, "precision", "float32")),
                "attack": attack,
                "auxiliary": source,
                "n_targets": self.n_slow if INVERSION_ATTACKS[attack].is_slow else self.n,
                "n_drawn": self.n,
                "seed": seed,
                "keep_stop_words": self.keep_stop_words,
                "vocabulary": hashlib.sha256(vocabulary.encode()).hexdigest()[:16],
                **self._weight_entries(attack, source, seed, encoder),
            }
            for source in self.auxiliary
            for attack in self.attacks
            for seed in self.seeds
        ]

    def _weight_entries(
        self, attack: str, source: str, seed: int, encoder: Encoder
    ) -> dict[str, Any]:
        """Return the cell entries that decide an attack's weights: digest and all settings."""
        settings = dict(shipped_settings(encoder, attack))
        if source != "in":
            digest = shipped_digest(encoder, attack)[:16]
            return {"weights": digest, "settings": _all_settings(attack, settings)}
        given = {"epochs": self.epochs, "substitutions": self.substitutions}
        known = settings_of(INVERSION_ATTACKS[attack].kind)
        if "keep_stop_words" in known:
            settings["keep_stop_words"] = self.keep_stop_words
        if "validation_share" in known:
            settings["validation_share"] = 0.05
        if "seed" in known:
            settings["seed"] = seed
        if attack != "mlc":  # the paper's attack, as shipped, substitutes no words
            asked = given | {f"base_{name}": value for name, value in given.items()}
            settings |= {name: value for name, value in asked.items() if name in known}
        return {**given, "settings": _all_settings(attack, settings)}


def _all_settings(attack: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return all settings of an attack, with defaults for those not given."""
    return setting_values(make_attack(AttackSpec.of(attack, settings)))


@lru_cache(maxsize=2)
def _encoder(precision: str) -> Encoder:
    """Load the bundled encoder at a precision, once per process."""
    return CachedEncoder(load_encoder(EncoderSpec(precision=precision)))


@lru_cache(maxsize=2)
def _load_target(target: str, where: str, group: str = "") -> Corpus:
    """Load the attacked file, or its rows with one value; column `group` is read as the author."""
    path, column = split_reference(target)
    label, _, value = where.partition("=")
    columns = Columns(text=column, label=label or None, author=group or None)
    corpus = load_corpus(Path(path), columns=columns)
    return corpus.only([value]) if label else corpus


def _draw_texts(cell: Cell, encoder: Encoder) -> tuple[Sequence[str], Decontaminated, Vocabulary]:
    """Draw a cell's targets; return its auxiliary texts, the targets and the scored words."""
    is_held_out = cell["auxiliary"] == "held-out"
    shipped = shipped_vocabulary(encoder)
    marks = frozenset(shipped_held_out(encoder) if is_held_out or cell["shipped_texts"] else ())
    names = ("target", "where", "shipped_texts", "near", "seed")
    auxiliary, apart = split_texts(
        **{name: cell[name] for name in names},
        marks=marks,
        contents=tuple(cell["contents"]),
        is_held_out=is_held_out,
    )
    drawn = apart.take(_target_rows(apart.sentences.texts, cell))
    if is_held_out:
        return auxiliary, drawn, shipped
    kept = STOP_WORDS if cell["keep_stop_words"] else frozenset[str]()
    local = Vocabulary.count(auxiliary, stop_words=STOP_WORDS - kept)
    return auxiliary, drawn, restrict(local, shipped.index.keys() | kept)


def _target_rows(texts: Sequence[str], cell: Cell) -> list[int]:
    """Draw the indices of target texts, ascending; slow attacks get a subset of the others'."""
    rows = sample_rows(len(check_texts(texts)), cell["n_drawn"], cell["seed"])
    few = np.random.default_rng([cell["seed"], 12]).permutation(rows)[: cell["n_targets"]]
    return sorted(few.tolist())


_MOST_WORDS = 48
"""Maximum number of words of a sentence, if all lengths are requested."""


@lru_cache(maxsize=4)
def split_texts(
    *,
    target: str,
    where: str,
    shipped_texts: str,
    near: float,
    seed: int,
    marks: frozenset[str],
    contents: tuple[str, ...],
    is_held_out: bool,
    group: str = "",
) -> tuple[Sequence[str], Decontaminated]:
    """Split a collection; return auxiliary texts, and targets that nearly repeat no known text.

    If held out: no auxiliary text, and the marked sentences. Else the sentences of nine in ten
    documents, and those of the others. `group` names a column that is read as the rows' author.
    """
    corpus, shipped = _load_target(target, where, group), _shipped_texts(shipped_texts, marks)
    if is_held_out:
        rest = _unmarked([d.text for d in _load_target(target, "").documents], marks)
        held_out = [d for d in corpus.documents if text_mark(d.text) in marks]
        fields = ("text", "id", "label", "author")
        marked = Sentences(*(tuple(getattr(d, name) for d in held_out) for name in fields))
        return (), drop_near_duplicates(marked, chain(rest, shipped), near)
    known, held = corpus.split_by_document((0.9, 0.1), seed=seed)
    auxiliary = known.sentences().texts
    return auxiliary, drop_near_duplicates(held.sentences(), chain(auxiliary, shipped), near)


@lru_cache(maxsize=4)
def decontaminated_sentences(
    *,
    target: str,
    where: str,
    shipped_texts: str,
    near: float,
    marks: frozenset[str],
    contents: tuple[str, ...],
    group: str = "",
) -> Decontaminated:
    """Read a collection; return its sentences that nearly repeat no training text."""
    sentences = _load_target(target, where, group).sentences(1, _MOST_WORDS)
    return drop_near_duplicates(sentences, _shipped_texts(shipped_texts, marks), near)


def _shipped_texts(reference: str, marks: frozenset[str]) -> Iterator[str]:
    """Read a corpus; yield, by sentence, the texts that the shipped weights were trained on."""
    if not reference:
        return
    corpus = open_corpus(reference)
    for text in _unmarked([d.text for d in corpus.documents], marks):
        if text.count(" ") < MAX_SEGMENT_WORDS:
            yield text
        else:
            yield from split_sentences(text, corpus.language)


def _unmarked(texts: Sequence[str], marks: frozenset[str]) -> Iterator[str]:
    """Return an iterator over the texts whose mark (a hash) is not among `marks`."""
    return (text for text in texts if text_mark(text) not in marks)


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Attack a cell's sentences; return a row of scores, with the prior-only baseline's F1."""
    check_contents(cell)
    encoder = _encoder(cell["encoder_precision"])
    auxiliary, targets, scope = _draw_texts(cell, encoder)
    is_trained = cell["auxiliary"] == "in"
    if is_trained:
        made = make_attack(AttackSpec.of(cell["attack"], cell["settings"]))
        checkpoint = folder / "training" / cell_key(cell)
        attack = made.fit(encoder, auxiliary, checkpoint_dir=str(checkpoint))
    else:
        attack = open_attack(cell["attack"], encoder)
    result = evaluate(
        attack,
        encoder,
        targets.sentences.texts,
        seed=cell["seed"],
        vocabulary=scope,
        documents=targets.documents,
        name=Path(split_reference(cell["target"])[0]).stem,
    )
    of_words = ("n_names", "name_recall", "n_numbers", "number_recall", "n_rare", "rare_recall")
    facts = {
        "n_auxiliary": len(auxiliary) if is_trained else None,
        "n_near_duplicates": targets.n_near_duplicates,
        "vocabulary_size": result.vocabulary_size,
        "n_queries_mean": result.n_queries_mean,
        "sentences_per_second": result.sentences_per_second,
        **{name: getattr(result.scores, name) for name in of_words},
        "texts": result.texts,
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
    }
    more: dict[str, float | Score] = {
        "weighted_f1": result.scores.weighted_f1,
        "unrestricted_f1": result.unrestricted,
    }
    return [score_row(result.scores, result.baseline.token_set_f1, more=more, facts=facts)]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table: scores × 100 with 95 % bootstrap CI of F1."""
    more = ("F1, every word", "weighted F1", "prior F1")
    scores = ("unrestricted_f1", "weighted_f1", "chance")
    lines = markdown_table(
        ("attack", "auxiliary texts", *SCORE_COLUMNS, *more),
        ((r["attack"], AUXILIARY[r["auxiliary"]], *score_cells(r, *scores)) for r in rows),
    )
    return "\n".join(lines) + "\n"
