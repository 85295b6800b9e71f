"""The table of attacks × auxiliary data: who reads how much, knowing what (C22 Table 5.2).

Each cell is measured once and kept; a study that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
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
from core.corpora import Columns, Corpus, load_corpus
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from core.results import EvaluationResult
from core.specs import AttackSpec, EncoderSpec, settings_of
from core.store import cache_dir, read_json, write_json
from core.studies.cell_attacks import score_entries
from core.studies.tables import SCORE_COLUMNS, markdown_table, score_cells
from core.text import STOP_WORDS, Vocabulary

__all__ = ["InversionStudy", "run"]

SLOW = ("relaxation", "staged")
"""Attacks that take seconds a sentence; they get `n_slow` sentences."""


@dataclass(frozen=True, kw_only=True)
class InversionStudy:
    """What to measure: attacks on `n` sentences of one file.

    Parameters
    ----------
    target : Path
        A corpus of documents; a tenth of them is attacked.
    column : str, optional
        Of the text.
    attacks : tuple of str
        Registry names.
    auxiliary : tuple of str
        `cross`: the attack as it ships. `in`: trained on the other documents of `target`.
        `held-out`: as it ships, on those texts of `target`, its training corpus, that it was not
        trained on.
    where : str
        `COLUMN=VALUE`: attack these rows of `target` only.
    epochs, substitutions : int
        Of the attacks that are trained here; their other settings are those that ship.
    n, n_slow : int
        Sentences attacked.
    keep_stop_words : bool
        Count stop words as words to find (SR20); attacks are trained anew for it.
    """

    target: Path
    column: str | None = None
    attacks: tuple[str, ...] = tuple(INVERSION_ATTACKS)
    auxiliary: tuple[str, ...] = ("cross", "in")
    n: int = 500
    n_slow: int = 50
    seed: int = 0
    keep_stop_words: bool = False
    where: str = ""
    epochs: int = 4
    substitutions: int = 1

    @property
    def corpus(self) -> Corpus:
        """The file to attack."""
        label, _, value = self.where.partition("=")
        corpus = load_corpus(self.target, columns=Columns(text=self.column, label=label or None))
        return corpus.only([value]) if label else corpus


def run(
    study: InversionStudy,
    encoder: Encoder,
    folder: Path,
    on_progress: OnProgress = no_progress,
) -> list[dict[str, Any]]:
    """Measure every cell and return them as rows; finished cells are read from `folder`."""
    corpus = study.corpus
    rows = []
    cells = [(name, source) for source in study.auxiliary for name in study.attacks]
    places = {source: _Place.of(study, corpus, source, encoder) for source in study.auxiliary}
    for done, (name, source) in enumerate(cells):
        path = folder / f"{_key(study, corpus.content_hash, name, source, encoder)}.json"
        if not path.exists():
            on_progress(done / len(cells), f"{name}, {source}")
            place = places[source]
            if source == "in":
                attack = _train(name, study, encoder, place.auxiliary, path.with_suffix(""))
            else:
                attack = open_attack(name, encoder)
            sample = place.targets[: study.n_slow] if name in SLOW else place.targets
            result = evaluate(
                attack, encoder, sample, seed=study.seed, vocabulary=place.scope, name=corpus.name
            )
            write_json(
                path,
                _row(name, source, result, len(place.auxiliary))
                | {
                    "encoder_precision": str(getattr(encoder, "precision", "float32")),
                    "encoder_backend": str(getattr(encoder, "backend", "torch")),
                },
            )
        rows.append(read_json(path))
    on_progress(1.0, "Every cell is measured")
    return rows


def stop_words_of(study: InversionStudy) -> frozenset[str]:
    """Return the words that count only where stop words are kept."""
    return STOP_WORDS if study.keep_stop_words else frozenset()


@dataclass(frozen=True)
class _Place:
    """Where an attack is measured: the texts it may know, those it must not, the words counted."""

    auxiliary: Sequence[str]
    targets: list[str]
    scope: Vocabulary

    @classmethod
    def of(cls, study: InversionStudy, corpus: Corpus, source: str, encoder: Encoder) -> _Place:
        shipped = shipped_vocabulary(encoder)
        if source == "held-out":
            marks = shipped_held_out(encoder)
            held_out = [d.text for d in corpus.documents if text_mark(d.text) in marks]
            return cls([], sample_texts(held_out, study.n, study.seed), shipped)
        known, held = corpus.split_by_document((0.9, 0.1), seed=study.seed)
        auxiliary = known.sentences()
        targets = sample_texts(held.sentences().without(auxiliary).texts, study.n, study.seed)
        stop_words = frozenset[str]() if study.keep_stop_words else STOP_WORDS
        local = Vocabulary.count(auxiliary.texts, stop_words=stop_words)
        scope = restrict(local, shipped.index.keys() | stop_words_of(study))
        return cls(auxiliary.texts, targets, scope)


def _key(study: InversionStudy, content_hash: str, name: str, source: str, encoder: Encoder) -> str:
    kept = "all-words" if study.keep_stop_words else "no-stop-words"
    weights = (
        f"e{study.epochs}x{study.substitutions}"
        if source == "in"
        else shipped_digest(encoder, name)[:8]
    )
    where = f"{study.target.stem}-{content_hash[:8]}"
    return f"{where}-{kept}-n{study.n}-s{study.seed}-{source}-{name}-{weights}"


def _train(
    name: str, study: InversionStudy, encoder: Encoder, texts: Sequence[str], checkpoint: Path
) -> InversionAttack:
    """Fit an attack with its shipped settings on the target's own domain."""
    settings = dict(shipped_settings(encoder, name))
    known = settings_of(INVERSION_ATTACKS[name].kind)
    if "keep_stop_words" in known:
        settings["keep_stop_words"] = study.keep_stop_words
    if "validation_share" in known:
        settings["validation_share"] = 0.05
    given = {"epochs": study.epochs, "substitutions": study.substitutions}
    given |= {f"base_{name}": value for name, value in given.items()}
    if name != "mlc":  # the paper's attack, as it ships, exchanges no words
        settings |= {key: value for key, value in given.items() if key in known}
    attack = make_attack(AttackSpec.of(name, settings))
    return attack.fit(encoder, texts, checkpoint_dir=str(checkpoint))


def _row(name: str, source: str, result: EvaluationResult, n_auxiliary: int) -> dict[str, Any]:
    scores, prior = result.scores, result.baseline
    return {
        "attack": name,
        "auxiliary": source,
        "n_auxiliary": n_auxiliary if source == "in" else None,
        "n": scores.n,
        **score_entries(scores),
        "weighted_f1": scores.weighted_f1,
        "name_recall": scores.name_recall,
        "prior_f1": prior.token_set_f1,
        "unrestricted_f1": result.unrestricted_f1,
        "vocabulary_size": result.vocabulary_size,
        "n_queries_mean": result.n_queries_mean,
        "sentences_per_second": result.sentences_per_second,
        "seed": result.seed,
        "texts": result.texts,
    }


_SAID = {
    "cross": "cross-domain",
    "in": "in-domain",
    "held-out": "in-domain, held out",
}


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table, scores ×100 with 95 % bootstrap intervals of F1."""
    columns = ("attack", "auxiliary texts", *SCORE_COLUMNS, "weighted F1", "prior F1")
    lines = markdown_table(
        columns,
        (
            (
                row["attack"],
                _SAID[row["auxiliary"]],
                *score_cells(row, "weighted_f1", "prior_f1"),
            )
            for row in rows
        ),
    )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its rows as JSON and as a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m core.studies.inversion", description=__doc__)
    parser.add_argument("--target", type=Path, required=True, help="corpus file to attack")
    parser.add_argument("--text-column", dest="column", help="of a table (default: the longest)")
    parser.add_argument("--column", help=argparse.SUPPRESS)
    parser.add_argument(
        "--attacks", nargs="+", default=list(INVERSION_ATTACKS), choices=list(INVERSION_ATTACKS)
    )
    parser.add_argument("--auxiliary", nargs="+", default=["cross", "in"], choices=list(_SAID))
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--n-slow", type=int, default=50, help="for relaxation and staged")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-stop-words", action="store_true", help="SR20's setting")
    parser.add_argument("--where", default="", metavar="COLUMN=VALUE", help="rows to attack")
    parser.add_argument("--epochs", type=int, default=4, help="of attacks that are trained here")
    parser.add_argument("--substitutions", type=int, default=1, help="likewise; copies of texts")
    parser.add_argument("--precision", default="auto", help="of the encoder")
    parser.add_argument("--out", type=Path, required=True, help="JSON file; .md is put beside it")
    given = parser.parse_args(arguments)
    study = InversionStudy(
        target=given.target,
        column=given.column,
        attacks=tuple(given.attacks),
        auxiliary=tuple(given.auxiliary),
        n=given.n,
        n_slow=given.n_slow,
        seed=given.seed,
        keep_stop_words=given.keep_stop_words,
        where=given.where,
        epochs=given.epochs,
        substitutions=given.substitutions,
    )
    encoder = CachedEncoder(load_encoder(EncoderSpec(precision=given.precision)))
    rows = run(
        study,
        encoder,
        cache_dir("studies", "inversion"),
        lambda share, message: print(f"{share:4.0%} {message}", file=sys.stderr, flush=True),
    )
    write_json(given.out, {"study": "inversion", "rows": rows})
    given.out.with_suffix(".md").write_text(markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
