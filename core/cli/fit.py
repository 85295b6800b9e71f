"""Fit an encoder on a corpus: bags of words, LSA, word vectors, dual encoders, Sentence-BERT."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import add_column_arguments, columns_of, parse_settings
from core.cli.output import progress_line, show_json, show_note
from core.cli.sources import checked_columns, checked_corpus, show_notes
from core.corpora import Columns, Corpus, load_corpus
from core.errors import ArtifactError, InvalidInputError
from core.protocols import FittedEncoder, OnProgress
from core.specs import FittedEncoderSpec, settings_of
from core.store import META, check_writable, clear_leftovers, digest_file, read_json

if TYPE_CHECKING:
    from core.encoders.sbert.pairs import ScoredPairs

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "The same command goes on: encoders that train in epochs from their last checkpoint."


@dataclass(frozen=True)
class _Work:
    """What is to be done: what tells it from other work, and what does it, returning more facts."""

    facts: dict[str, Any]
    fit: Callable[[Path, OnProgress], dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `fit`."""
    from core.encoders.registry import FITTED_ENCODERS

    parser.add_argument("--encoder", required=True, help=f"one of {', '.join(FITTED_ENCODERS)}")
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="a setting of the encoder")  # fmt: skip
    parser.add_argument("--spec", metavar="FILE", help="JSON with these arguments; others win")
    parser.add_argument("--corpus", help="bundled, a file, or another source")
    add_column_arguments(parser, label="of the attribute that an adversarial encoder hides")
    parser.add_argument("--pairs", type=Path, metavar="FILE",
                        help="of sbert: a table like the STS benchmark, with sentence1, sentence2, "
                        "score, split and lang")  # fmt: skip
    parser.add_argument("--language", default="en", help="of the pairs: en or it (default: en)")
    parser.add_argument("--limit", type=int, help="sentences or pairs taken, from the first")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="written here")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Fit, write the encoder, and say how to use it."""
    from core.encoders.fitted import load_fitted, make_encoder, save_encoder
    from core.encoders.registry import FITTED_ENCODERS

    family = FITTED_ENCODERS.get(arguments.encoder)
    if family is None:
        known = ", ".join(FITTED_ENCODERS)
        raise InvalidInputError(f"--encoder must be one of {known}, got {arguments.encoder!r}.")
    if arguments.limit is not None and arguments.limit < 2:
        raise InvalidInputError(f"--limit must be at least 2, got {arguments.limit}.")
    needed, other = ("pairs", "corpus") if family.learns_from == "scores" else ("corpus", "pairs")
    if arguments.label_column is not None and "against" not in settings_of(family.kind):
        raise InvalidInputError(f"{arguments.encoder} hides nothing: leave --label-column out.")
    if getattr(arguments, needed) is None or getattr(arguments, other) is not None:
        raise InvalidInputError(f"{arguments.encoder} is fitted on --{needed}, not on --{other}.")
    arguments.columns = _checked(arguments)
    settings = parse_settings(arguments.encoder, family.kind, arguments.settings)
    encoder = make_encoder(FittedEncoderSpec.of(arguments.encoder, settings))
    _check_free(arguments.out)
    plan = {"scores": _of_scores, "neighbours": _of_neighbours, "texts": _of_texts}
    work = plan[family.learns_from](encoder, arguments)
    finished = _finished(encoder, arguments.out, work)
    if finished is None:
        check_writable(arguments.out)
        with progress_line() as on_progress:
            facts = work.facts | work.fit(arguments.out / _CHECKPOINT, on_progress)
        save_encoder(encoder, arguments.out, training=facts)
        finished = load_fitted(arguments.out), facts  # finished means that all of it reads back
    shutil.rmtree(arguments.out / _CHECKPOINT, ignore_errors=True)
    clear_leftovers(arguments.out)
    _show(finished[0], arguments, finished[1])


def _checked(given: argparse.Namespace) -> Columns | None:
    """Return the columns to read, found before anything is loaded."""
    if given.corpus is not None:
        return checked_corpus(given.corpus, columns_of(given, label=given.label_column))
    if given.text_column is not None:
        raise InvalidInputError("--text-column is of --corpus; --pairs has sentence1, sentence2.")
    from core.tasks.pairs import PAIR_COLUMNS

    return checked_columns(given.pairs, PAIR_COLUMNS)


_CHECKPOINT = "checkpoint"


def _check_free(out: Path) -> None:
    """Raise InvalidInputError where `out` holds what no run of `fit` has left there."""
    if out.is_dir():
        ours = ("model-*.safetensors", ".*.unfinished", META, _CHECKPOINT)
        if all(any(path.match(name) for name in ours) for path in out.iterdir()):
            return
    elif not (out.exists() or out.is_symlink()):
        return
    raise InvalidInputError(f"{out} exists and is not empty; choose another folder.")


def _finished(
    encoder: FittedEncoder, out: Path, work: _Work
) -> tuple[FittedEncoder, dict[str, Any]] | None:
    """Return what an earlier run of the same work wrote, with its facts, if it reads back."""
    from core.encoders.fitted import load_fitted

    if not (out / META).exists():
        return None
    meta = read_json(out / META)
    meta = meta if isinstance(meta, dict) else {}
    facts = meta.get("training")
    facts = facts if isinstance(facts, dict) else {}
    settings = {name: getattr(encoder, name) for name in settings_of(type(encoder))}
    settings.pop("device", None)  # where it was fitted, which fitting chooses
    known = {"encoder": encoder.name, "settings": settings, **work.facts}
    stored = meta.get("settings")
    stored = {k: v for k, v in stored.items() if k != "device"} if isinstance(stored, dict) else {}
    found = {**facts, "encoder": meta.get("encoder"), "settings": stored}
    if any(found.get(name) != value for name, value in json.loads(json.dumps(known)).items()):
        raise InvalidInputError(
            f"{out} is not empty: it holds another encoder. Choose another folder."
        )
    try:
        return load_fitted(out), facts
    except ArtifactError as error:
        show_note(f"Fitting anew: {error}")
        return None


def _opened(given: argparse.Namespace) -> Corpus:
    corpus = load_corpus(given.corpus, columns=given.columns)
    show_notes(corpus, given.corpus)
    return corpus


def _of_texts(encoder: FittedEncoder, given: argparse.Namespace) -> _Work:
    corpus = _opened(given)
    texts = corpus.sentences().texts[: given.limit]
    if not texts:
        raise InvalidInputError(
            f"{given.corpus}: no sentence has 8 to 40 words, and only those are fitted on. Give a "
            "corpus of longer sentences."
        )

    def fit(checkpoint: Path, on_progress: OnProgress) -> dict[str, Any]:
        encoder.fit(texts, on_progress=on_progress, checkpoint_dir=str(checkpoint))
        return {}

    facts = {"corpus": corpus.name, "corpus_hash": corpus.content_hash, "n_texts": len(texts)}
    return _Work(facts, fit)


def _of_neighbours(encoder: Any, given: argparse.Namespace) -> _Work:
    from core.encoders.dual.context_pairs import labelled_pairs_of

    corpus = _opened(given)
    pairs, labels = labelled_pairs_of(corpus)
    if given.label_column is not None:
        kept = [i for i, label in enumerate(labels) if label is not None]
        pairs, labels = [pairs[i] for i in kept], [labels[i] for i in kept]
    pairs = pairs[: given.limit]
    more = {} if given.label_column is None else {"labels": labels[: given.limit]}

    def fit(checkpoint: Path, on_progress: OnProgress) -> dict[str, Any]:
        encoder.fit_pairs(pairs, on_progress=on_progress, checkpoint_dir=str(checkpoint), **more)
        return {"validation": str(encoder.validation_[-1])}

    facts = {"corpus": corpus.name, "corpus_hash": corpus.content_hash, "n_pairs": len(pairs)}
    if more:
        facts["label_column"] = given.label_column
    return _Work(facts, fit)


def _of_scores(encoder: Any, given: argparse.Namespace) -> _Work:
    from core.encoders.sbert.pairs import ScoredPairs, say_spearman
    from core.tasks.pairs import read_pairs

    known = read_pairs("train", given.pairs, language=given.language, split="train")
    held = read_pairs("dev", given.pairs, language=given.language, split="dev")
    asked = read_pairs("test", given.pairs, language=given.language, split="test")
    test = ScoredPairs.of(asked.first, asked.second, asked.scores, "test")
    first, second, scores = (part[: given.limit] for part in (known.first, known.second,
                                                              known.scores))  # fmt: skip

    def fit(checkpoint: Path, on_progress: OnProgress) -> dict[str, Any]:
        encoder.fit_pairs(
            first, second, scores,
            validation=(held.first, held.second, held.scores) if held.scores else None,
            on_progress=on_progress, checkpoint_dir=str(checkpoint),
        )  # fmt: skip
        return {"validation": say_spearman(encoder.validation_),
                **_tested(encoder, test, on_progress)}  # fmt: skip

    return _Work({"pairs": given.pairs.name, "pairs_hash": digest_file(given.pairs),
                  "language": given.language, "n_pairs": len(scores)}, fit)  # fmt: skip


def _tested(encoder: Any, test: ScoredPairs, on_progress: OnProgress) -> dict[str, Any]:
    """Score the encoder, and the model that it was made from, on test pairs, if there are any."""
    from core.encoders import load_encoder
    from core.encoders.sbert.pairs import say_spearman, spearman_score

    if not len(test):
        return {}
    on_progress(1.0, f"Scoring {len(test):,} test pairs")
    base = load_encoder("minilm" if encoder.base == "minilm" else f"mlm:{encoder.base}")
    return {"test": say_spearman(spearman_score(encoder, test)),
            "test_before": say_spearman(spearman_score(base, test))}  # fmt: skip


def _show(encoder: FittedEncoder, given: argparse.Namespace, facts: dict[str, Any]) -> None:
    name = f"{encoder.name}:{given.out}"
    if given.json:
        show_json({"encoder": name, "dimension": encoder.dimension,
                   "fingerprint": encoder.fingerprint, **facts})  # fmt: skip
        return
    n = facts.get("n_texts") or facts["n_pairs"]
    what = "sentences" if "n_texts" in facts else "pairs of sentences"
    print(f"{name}: {encoder.dimension:,} dimensions, fitted on {n:,} {what}")
    if "validation" in facts:
        print(f"  held out: {facts['validation']}")
    if "test" in facts:
        print(f"  test: {facts['test']}; before training {facts['test_before']}")
    print(f"Use it as --encoder {name}")
