"""Train a defence for an encoder to hide words or an attribute; use it as `defended:FOLDER`."""

from __future__ import annotations

import argparse
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.cli.shared.arguments import (
    add_set_argument,
    columns_of,
    encoder_spec,
    parse_settings,
)
from leakscope.core.cli.shared.output import progress_line, show_json
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.cli.shared.training_arguments import (
    CHECKPOINT,
    add_training_arguments,
    is_free,
    read_training_texts,
)
from leakscope.core.corpora import Columns
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.results import Score
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import META, check_writable, clear_leftovers

_N_COMPARED = 1000
"""Maximum number of texts whose nearest neighbours are compared with and without the defence."""

EXAMPLE = "leakscope defend --texts letters.csv --label-column author --out my-defence"
WHEN_STOPPED = "The same command resumes from its last checkpoint."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `defend` to its parser."""
    known = ", ".join(TRAINED_DEFENCES)
    parser.add_argument("--defence", default="adversarial", help=f"one of {known}")
    add_set_argument(parser, "a setting of the defence")
    add_training_arguments(parser, label="of the attribute that is hidden", rows="a row or a line")


def run(arguments: argparse.Namespace) -> None:
    """Train a defence, write it to a folder, and print how well neighbours are preserved.

    A run that diverges writes nothing.
    """
    _check_is_trainable(arguments.defence)
    entry = TRAINED_DEFENCES[arguments.defence]
    columns = checked_columns(arguments.texts, columns_of(arguments, label=arguments.label_column))
    _check_free(arguments.out)
    settings = parse_settings(arguments.defence, entry.kind, arguments.settings)
    defence: Any = make_trained_defence(DefenceSpec.of(arguments.defence, settings))
    facts = _train_and_save(defence, arguments, columns)
    _print_result(arguments, defence, facts)


def _check_is_trainable(name: str) -> None:
    """Raise InvalidInputError unless the name is that of a single defence that can be trained."""
    if name in TRAINED_DEFENCES:
        return
    first, _, rest = re.split("([:+])", f"{name}+", maxsplit=1)
    text = f"--defence must be one of {', '.join(TRAINED_DEFENCES)}, got {name!r}."
    if first in TRAINED_DEFENCES and name[len(first)] == ":":
        raise InvalidInputError(f"{text} Give its settings with --set NAME=VALUE.")
    if first in TRAINED_DEFENCES:
        raise InvalidInputError(
            f"{text} Train {first} alone, then use --encoder defended:FOLDER --defence "
            f"{rest.rstrip('+')}."
        )
    if first in DEFENCES:
        raise InvalidInputError(
            f"{text} {first} needs no training: give it as --defence to `evaluate`, or as "
            "--mechanism to `privatize`."
        )
    raise InvalidInputError(text + similar(name, TRAINED_DEFENCES))


def _train_and_save(
    defence: Any, arguments: argparse.Namespace, columns: Columns
) -> dict[str, Any]:
    """Train a defence on texts, save it, and return its training facts and preserved neighbours."""
    from leakscope.core.defences.stored import load_defence, save_defence
    from leakscope.core.encoders import load_encoder

    checkpoint = arguments.out / CHECKPOINT
    with progress_line() as on_progress:
        texts, labels = read_training_texts(arguments, columns)
        encoder = CachedEncoder(load_encoder(encoder_spec(arguments)))
        check_writable(arguments.out)
        defence.fit(
            encoder, texts, labels=labels, on_progress=on_progress, checkpoint_dir=str(checkpoint)
        )
    kept = _measure_preserved_neighbours(encoder, defence, texts)
    facts = {
        "encoder": arguments.encoder,
        "texts": arguments.texts.name,
        "n_texts": len(texts),
        "seconds": round(defence.seconds_, 1),
    }
    save_defence(defence, arguments.out, training=facts)
    load_defence(arguments.out)  # a run is finished once the defence loads
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_leftovers(arguments.out)
    return {**facts, "nearest_kept": kept}


def _measure_preserved_neighbours(encoder: Any, defence: Any, texts: Sequence[str]) -> Score:
    """Encode texts with and without a defence; return the share with an unchanged nearest text."""
    from leakscope.core.defences.trained.neighbour_preservation import preserved_neighbours

    distinct = list(dict.fromkeys(texts))
    chosen = np.random.default_rng(0).permutation(len(distinct))[:_N_COMPARED]
    some = [distinct[i] for i in chosen]
    if len(some) < 3:
        return Score(math.nan)
    return preserved_neighbours(encoder.encode(some), defence.protect(encoder).encode(some))


def _check_free(out: Path) -> None:
    """Raise InvalidInputError if `out` holds more than the checkpoint of a stopped run."""
    if not is_free(out):
        holds = "already contains a defence" if (out / META).exists() else "exists and is not empty"
        raise InvalidInputError(f"{out} {holds}. Choose another folder.")


def _print_result(given: argparse.Namespace, defence: Any, facts: dict[str, Any]) -> None:
    """Print the trained defence's facts, or write them as JSON."""
    name = f"defended:{given.out}"
    during = [score.to_dict() for score in getattr(defence, "during_", ())]
    kept = facts["nearest_kept"]
    if given.json:
        record = {
            **facts,
            "encoder": name,
            "trained_for": facts["encoder"],
            "nearest_kept": kept.to_dict(),
        }
        show_json({**record, "defence": given.defence, "during": during, "out": str(given.out)})
        return
    print(
        f"{name}: {given.defence} for {facts['encoder']}, trained on {facts['n_texts']:,} texts "
        f"in {facts['seconds']:,.1f} s"
    )
    if during:
        last = defence.during_[-1]
        print(
            f"  the adversary in training scores {last.format()} % (guessing: {last.chance:.1f} %)"
        )
        print(
            "  That is no guarantee: attackers trained afterwards may recover more. Measure them "
            "with `evaluate` and `attributes`."
        )
    if kept.n:
        print(
            f"  {kept.format()} % of {kept.n:,} training texts have the same nearest text as "
            f"before (guessing: {kept.chance:.1f} %)"
        )
    if kept.n and kept.ci95.low <= kept.chance:
        smaller = " Train with a smaller weight." if hasattr(defence, "weight") else ""
        print(
            "  That is not significantly different from guessing: the vectors have lost their "
            "utility."
            f"{smaller}"
        )
    print(f"Use it with --encoder {name}")
