"""The table of attacks × auxiliary data: who reads how much, knowing what (C22 Table 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.attacks.inversion.evaluation import evaluate, restrict, sample_texts
from core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from core.attacks.inversion.shipped import (
    open_attack,
    shipped_digest,
    shipped_held_out,
    shipped_settings,
    shipped_vocabulary,
    text_mark,
)
from core.corpora import Columns, Corpus, load_corpus, split_reference
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.protocols import Encoder, InversionAttack
from core.specs import REQUIRED, AttackSpec, EncoderSpec, setting, settings_of
from core.studies.cell_attacks import score_row
from core.studies.domains import check_contents, content_of
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key
from core.studies.tables import SCORE_COLUMNS, markdown_table, score_cells
from core.text import STOP_WORDS, Vocabulary

__all__ = ["AUXILIARY", "AttackStudy", "markdown", "measure"]

AUXILIARY = {
    "cross": "cross-domain",
    "in": "in-domain",
    "held-out": "in-domain, held out",
}
"""What an attacker has learnt from. `cross`: the attack as it ships. `in`: trained on the other
documents of the collection. `held-out`: as it ships, on those texts of its own training corpus that
it was not trained on."""


@dataclass(frozen=True, kw_only=True)
class AttackStudy:
    """Each attack on one collection, of which a tenth of the documents is attacked.

    Attacks that are trained here keep the settings that ship, but for `epochs` and
    `substitutions`.
    """

    target: str = setting(REQUIRED, "the collection under study, a file")
    attacks: tuple[str, ...] = setting(tuple(INVERSION_ATTACKS), "attacks by name")
    auxiliary: tuple[str, ...] = setting(
        ("cross", "in"), "what attackers have learnt from", choices=tuple(AUXILIARY)
    )
    where: str = setting("", "COLUMN=VALUE: attack these rows alone")
    n: int = setting(500, "sentences under attack", low=1)
    n_slow: int = setting(50, "sentences for attacks that take seconds each", low=1)
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    keep_stop_words: bool = setting(False, "count stop words as words to find", paper="SR20")
    epochs: int = setting(4, "of attacks that are trained here", low=1)
    substitutions: int = setting(1, "likewise; copies of texts with words exchanged", low=0)
    precision: str = setting("auto", "of the encoder: auto, float32, bfloat16 or float16")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table has to have, besides that of the texts."""
        return (self.where.partition("=")[0],) if self.where else ()

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
        encoder = _encoder(self.precision)
        return [
            {
                "study": "attacks",
                "target": self.target,
                "contents": [content_of(self.target)],
                "where": self.where,
                "encoder": encoder.name,
                "encoder_fingerprint": encoder.fingerprint,
                "encoder_precision": str(getattr(encoder, "precision", "float32")),
                "attack": attack,
                "auxiliary": source,
                "n_targets": self.n_slow if INVERSION_ATTACKS[attack].is_slow else self.n,
                "n_drawn": self.n,
                "seed": seed,
                "keep_stop_words": self.keep_stop_words,
                **self._weights(attack, source, encoder),
            }
            for source in self.auxiliary
            for attack in self.attacks
            for seed in self.seeds
        ]

    def _weights(self, attack: str, source: str, encoder: Encoder) -> dict[str, Any]:
        """Return what decides an attack's weights."""
        if source == "in":
            return {"epochs": self.epochs, "substitutions": self.substitutions}
        return {"weights": shipped_digest(encoder, attack)[:16]}


@lru_cache(maxsize=2)
def _encoder(precision: str) -> Encoder:
    return CachedEncoder(load_encoder(EncoderSpec(precision=precision)))


@lru_cache(maxsize=2)
def _corpus(target: str, where: str) -> Corpus:
    """Return the file under attack, or some of its rows."""
    path, column = split_reference(target)
    label, _, value = where.partition("=")
    corpus = load_corpus(Path(path), columns=Columns(text=column, label=label or None))
    return corpus.only([value]) if label else corpus


@dataclass(frozen=True)
class _Place:
    """Where an attack is measured: the texts it may know, those it must not, the words counted."""

    auxiliary: Sequence[str]
    targets: list[str]
    scope: Vocabulary


def _place(cell: Cell, encoder: Encoder) -> _Place:
    corpus, n, seed = _corpus(cell["target"], cell["where"]), cell["n_drawn"], cell["seed"]
    shipped = shipped_vocabulary(encoder)
    if cell["auxiliary"] == "held-out":
        marks = shipped_held_out(encoder)
        held_out = [d.text for d in corpus.documents if text_mark(d.text) in marks]
        return _Place([], sample_texts(held_out, n, seed), shipped)
    known, held = corpus.split_by_document((0.9, 0.1), seed=seed)
    auxiliary = known.sentences()
    targets = sample_texts(held.sentences().without(auxiliary).texts, n, seed)
    kept = STOP_WORDS if cell["keep_stop_words"] else frozenset[str]()
    local = Vocabulary.count(auxiliary.texts, stop_words=STOP_WORDS - kept)
    return _Place(auxiliary.texts, targets, restrict(local, shipped.index.keys() | kept))


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Attack the sentences of a cell, with the prior-only attacker beside."""
    check_contents(cell)
    encoder = _encoder(cell["encoder_precision"])
    place = _place(cell, encoder)
    if cell["auxiliary"] == "in":
        attack = _train(cell, encoder, place.auxiliary, folder / "training" / cell_key(cell))
    else:
        attack = open_attack(cell["attack"], encoder)
    result = evaluate(
        attack,
        encoder,
        place.targets[: cell["n_targets"]],
        seed=cell["seed"],
        vocabulary=place.scope,
        name=Path(split_reference(cell["target"])[0]).stem,
    )
    facts = {
        "n_auxiliary": len(place.auxiliary) if cell["auxiliary"] == "in" else None,
        "vocabulary_size": result.vocabulary_size,
        "n_queries_mean": result.n_queries_mean,
        "sentences_per_second": result.sentences_per_second,
        "name_recall": result.scores.name_recall,
        "number_recall": result.scores.number_recall,
        "rare_recall": result.scores.rare_recall,
        "texts": result.texts,
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
    }
    more = {
        "weighted_f1": result.scores.weighted_f1,
        "unrestricted_f1": result.unrestricted_f1,
    }
    return [score_row(result.scores, result.baseline.token_set_f1, more=more, facts=facts)]


def _train(cell: Cell, encoder: Encoder, texts: Sequence[str], checkpoint: Path) -> InversionAttack:
    """Fit an attack with its shipped settings on the target's own domain."""
    name = cell["attack"]
    settings = dict(shipped_settings(encoder, name))
    known = settings_of(INVERSION_ATTACKS[name].kind)
    if "keep_stop_words" in known:
        settings["keep_stop_words"] = cell["keep_stop_words"]
    if "validation_share" in known:
        settings["validation_share"] = 0.05
    given = {"epochs": cell["epochs"], "substitutions": cell["substitutions"]}
    given |= {f"base_{name}": value for name, value in given.items()}
    if name != "mlc":  # the paper's attack, as it ships, exchanges no words
        settings |= {key: value for key, value in given.items() if key in known}
    attack = make_attack(AttackSpec.of(name, settings))
    return attack.fit(encoder, texts, checkpoint_dir=str(checkpoint))


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, scores ×100 with 95 % bootstrap intervals of F1."""
    columns = ("attack", "auxiliary texts", *SCORE_COLUMNS, "weighted F1", "prior F1")
    lines = markdown_table(
        columns,
        (
            (row["attack"], AUXILIARY[row["auxiliary"]], *score_cells(row, "weighted_f1", "chance"))
            for row in rows
        ),
    )
    return "\n".join(lines) + "\n"
