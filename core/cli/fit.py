"""Fit an encoder on a corpus: bags of words, LSA, word vectors, dual encoders, Sentence-BERT."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.arguments import (
    add_column_arguments,
    add_set_argument,
    columns_of,
    parse_settings,
)
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.cli.shared.sources import checked_columns, checked_corpus, show_notes
from leakscope.core.corpora import Columns, Corpus, load_corpus
from leakscope.core.encoders.fitted import load_fitted, make_encoder, save_encoder
from leakscope.core.encoders.registry import FITTED_ENCODERS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import FittedEncoder, OnProgress
from leakscope.core.specs import FittedEncoderSpec, setting_values, settings_of
from leakscope.core.storage.artifacts import (
    META,
    check_writable,
    clear_leftovers,
    digest_file,
    read_json,
)
from leakscope.core.tasks.pairs import PAIR_COLUMNS, read_pairs

if TYPE_CHECKING:
    from leakscope.core.encoders.sbert.pairs import ScoredPairs

EXAMPLE = "leakscope fit --encoder tfidf --corpus bundled --out my-tfidf"
WHEN_STOPPED = (
    "The same command resumes; encoders trained in epochs resume from their last checkpoint."
)


@dataclass(frozen=True)
class _FitJob:
    """A fit that is ready to run: facts that identify it, and a function that does it."""

    facts: dict[str, Any]
    fit: Callable[[Path, OnProgress], dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `fit` to its parser."""
    parser.add_argument("--encoder", required=True, help=f"one of {', '.join(FITTED_ENCODERS)}")
    add_set_argument(parser, "a setting of the encoder")
    parser.add_argument(
        "--spec",
        metavar="FILE",
        help="JSON file with these arguments; typed arguments take precedence",
    )
    parser.add_argument("--corpus", help="bundled, a file, or another source")
    add_column_arguments(parser, label="of the attribute that an adversarial encoder hides")
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="for sbert: a table like the STS benchmark, with sentence1, sentence2, "
        "score, split and lang",
    )
    parser.add_argument(
        "--language", default="en", help="language of the pairs: en or it (default: en)"
    )
    parser.add_argument("--limit", type=int, help="use only the first N sentences or pairs")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Fit an encoder, write it to a folder, and print how to use it."""
    family = FITTED_ENCODERS.get(arguments.encoder)
    if family is None:
        known = ", ".join(FITTED_ENCODERS)
        raise InvalidInputError(f"--encoder must be one of {known}, got {arguments.encoder!r}.")
    if arguments.limit is not None and arguments.limit < 2:
        raise InvalidInputError(f"--limit must be at least 2, got {arguments.limit}.")
    needed, other = ("pairs", "corpus") if family.learns_from == "scores" else ("corpus", "pairs")
    if arguments.label_column is not None and "against" not in settings_of(family.kind):
        raise InvalidInputError(
            f"{arguments.encoder} does not hide an attribute. Leave out --label-column."
        )
    if getattr(arguments, needed) is None or getattr(arguments, other) is not None:
        raise InvalidInputError(f"{arguments.encoder} needs --{needed}, not --{other}.")
    arguments.columns = _check_columns(arguments)
    settings = parse_settings(arguments.encoder, family.kind, arguments.settings)
    encoder = make_encoder(FittedEncoderSpec.of(arguments.encoder, settings))
    _check_free(arguments.out)
    plan = {
        "scores": _prepare_scored_pairs_job,
        "neighbours": _prepare_neighbour_job,
        "texts": _prepare_text_job,
    }
    work = plan[family.learns_from](encoder, arguments)
    finished = _load_earlier_fit(encoder, arguments.out, work)
    if finished is None:
        check_writable(arguments.out)
        with progress_line() as on_progress:
            facts = work.facts | work.fit(arguments.out / _CHECKPOINT, on_progress)
        save_encoder(encoder, arguments.out, training=facts)
        finished = load_fitted(arguments.out), facts  # a run is finished once the encoder loads
    shutil.rmtree(arguments.out / _CHECKPOINT, ignore_errors=True)
    clear_leftovers(arguments.out)
    _print_result(finished[0], arguments, finished[1])


def _check_columns(given: argparse.Namespace) -> Columns | None:
    """Check the columns of the corpus or pairs file before loading; return those to read."""
    if given.corpus is not None:
        return checked_corpus(given.corpus, columns_of(given, label=given.label_column))
    if given.text_column is not None:
        raise InvalidInputError(
            "--text-column belongs to --corpus; --pairs has sentence1 and sentence2."
        )

    return checked_columns(given.pairs, PAIR_COLUMNS)


_CHECKPOINT = "checkpoint"


def _check_free(out: Path) -> None:
    """Raise InvalidInputError if `out` holds files that no run of `fit` wrote."""
    if out.is_dir():
        ours = ("model-*.safetensors", ".*.unfinished", META, _CHECKPOINT)
        if all(any(path.match(name) for name in ours) for path in out.iterdir()):
            return
    elif not (out.exists() or out.is_symlink()):
        return
    raise InvalidInputError(f"{out} exists and is not empty. Choose another folder.")


def _load_earlier_fit(
    encoder: FittedEncoder, out: Path, work: _FitJob
) -> tuple[FittedEncoder, dict[str, Any]] | None:
    """Load what an earlier run of this job wrote; None if nothing, raise if another job did."""
    if not (out / META).exists():
        return None
    meta = read_json(out / META)
    meta = meta if isinstance(meta, dict) else {}
    facts = meta.get("training")
    facts = facts if isinstance(facts, dict) else {}
    settings = setting_values(encoder)
    settings.pop("device", None)  # chosen when fitting, and not part of the job
    known = {"encoder": encoder.name, "settings": settings, **work.facts}
    stored = meta.get("settings")
    stored = {k: v for k, v in stored.items() if k != "device"} if isinstance(stored, dict) else {}
    found = {**facts, "encoder": meta.get("encoder"), "settings": stored}
    if any(found.get(name) != value for name, value in json.loads(json.dumps(known)).items()):
        raise InvalidInputError(f"{out} contains another encoder. Choose another folder.")
    try:
        return load_fitted(out), facts
    except ArtifactError as error:
        show_note(f"Fitting again: {error}")
        return None


def _load_corpus(given: argparse.Namespace) -> Corpus:
    """Load the corpus that the arguments name, and print notes on it."""
    corpus = load_corpus(given.corpus, columns=given.columns)
    show_notes(corpus, given.corpus)
    return corpus


def _prepare_text_job(encoder: FittedEncoder, given: argparse.Namespace) -> _FitJob:
    """Load the corpus and prepare a job that fits an encoder on its sentences."""
    corpus = _load_corpus(given)
    texts = corpus.sentences().texts[: given.limit]
    if not texts:
        raise InvalidInputError(
            f"{given.corpus}: no sentence has 8 to 40 words, the lengths that are used. Give a "
            "corpus of longer sentences."
        )

    def fit(checkpoint: Path, on_progress: OnProgress) -> dict[str, Any]:
        """Fit the encoder on the texts; return no facts."""
        encoder.fit(texts, on_progress=on_progress, checkpoint_dir=str(checkpoint))
        return {}

    facts = {"corpus": corpus.name, "corpus_hash": corpus.content_hash, "n_texts": len(texts)}
    return _FitJob(facts, fit)


def _prepare_neighbour_job(encoder: Any, given: argparse.Namespace) -> _FitJob:
    """Load the corpus and prepare a job that fits an encoder on pairs of consecutive sentences."""
    from leakscope.core.encoders.dual.context_pairs import labelled_pairs_of

    corpus = _load_corpus(given)
    pairs, labels = labelled_pairs_of(corpus)
    if given.label_column is not None:
        kept = [i for i, label in enumerate(labels) if label is not None]
        pairs, labels = [pairs[i] for i in kept], [labels[i] for i in kept]
    pairs = pairs[: given.limit]
    more = {} if given.label_column is None else {"labels": labels[: given.limit]}

    def fit(checkpoint: Path, on_progress: OnProgress) -> dict[str, Any]:
        """Fit the encoder on the sentence pairs; return its validation score as a fact."""
        encoder.fit_pairs(pairs, on_progress=on_progress, checkpoint_dir=str(checkpoint), **more)
        return {"validation": str(encoder.validation_[-1])}

    facts = {"corpus": corpus.name, "corpus_hash": corpus.content_hash, "n_pairs": len(pairs)}
    if more:
        facts["label_column"] = given.label_column
    return _FitJob(facts, fit)


def _prepare_scored_pairs_job(encoder: Any, given: argparse.Namespace) -> _FitJob:
    """Read scored pairs and prepare a job that fine-tunes an encoder on them."""
    from leakscope.core.encoders.sbert.pairs import ScoredPairs, format_spearman

    known = read_pairs("train", given.pairs, language=given.language, split="train")
    held = read_pairs("dev", given.pairs, language=given.language, split="dev")
    test_pairs = read_pairs("test", given.pairs, language=given.language, split="test")
    test = ScoredPairs.of(test_pairs.first, test_pairs.second, test_pairs.scores, "test")
    first, second, scores = (
        part[: given.limit] for part in (known.first, known.second, known.scores)
    )

    def fit(checkpoint: Path, on_progress: OnProgress) -> dict[str, Any]:
        """Fine-tune the encoder on the pairs; return its validation and test scores."""
        encoder.fit_pairs(
            first,
            second,
            scores,
            validation=(held.first, held.second, held.scores) if held.scores else None,
            on_progress=on_progress,
            checkpoint_dir=str(checkpoint),
        )
        return {
            "validation": format_spearman(encoder.validation_),
            **_test_scores(encoder, test, on_progress),
        }

    return _FitJob(
        {
            "pairs": given.pairs.name,
            "pairs_hash": digest_file(given.pairs),
            "language": given.language,
            "n_pairs": len(scores),
        },
        fit,
    )


def _test_scores(encoder: Any, test: ScoredPairs, on_progress: OnProgress) -> dict[str, Any]:
    """Score the fine-tuned encoder and its base model on the test pairs; {} without test pairs."""
    from leakscope.core.encoders import load_encoder
    from leakscope.core.encoders.sbert.pairs import format_spearman, spearman_score

    if not len(test):
        return {}
    on_progress(1.0, f"Scoring {len(test):,} test pairs")
    base = load_encoder("minilm" if encoder.base == "minilm" else f"mlm:{encoder.base}")
    return {
        "test": format_spearman(spearman_score(encoder, test)),
        "test_before": format_spearman(spearman_score(base, test)),
    }


def _print_result(encoder: FittedEncoder, given: argparse.Namespace, facts: dict[str, Any]) -> None:
    """Print the fitted encoder's facts and scores, or write them as JSON."""
    name = f"{encoder.name}:{given.out}"
    if given.json:
        show_json(
            {
                "encoder": name,
                "dimension": encoder.dimension,
                "fingerprint": encoder.fingerprint,
                **facts,
            }
        )
        return
    n = facts.get("n_texts") or facts["n_pairs"]
    what = "sentences" if "n_texts" in facts else "pairs of sentences"
    print(f"{name}: {encoder.dimension:,} dimensions, fitted on {n:,} {what}")
    if "validation" in facts:
        print(f"  held-out: {facts['validation']}")
    if "test" in facts:
        print(f"  test: {facts['test']}; before training {facts['test_before']}")
    print(f"Use it with --encoder {name}")
