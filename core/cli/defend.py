"""Train a defence for an encoder: hide words or an attribute; use it as `defended:FOLDER`."""

from __future__ import annotations

import argparse
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.cli.arguments import columns_of, encoder_spec, parse_settings
from core.cli.lessons import CHECKPOINT, add_lesson_arguments, is_free, read_lesson
from core.cli.output import progress_line, show_json
from core.cli.sources import checked_columns
from core.corpora import Columns
from core.errors import InvalidInputError, similar
from core.results import Score
from core.specs import DefenceSpec
from core.store import META, check_writable, clear_leftovers

__all__ = ["add_arguments", "run"]

_N_COMPARED = 1000
"""Texts at most whose nearest text is looked for with the defence and without it."""

WHEN_STOPPED = "The same command goes on from its last checkpoint."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `defend`."""
    from core.defences.trained.registry import TRAINED_DEFENCES

    known = ", ".join(TRAINED_DEFENCES)
    parser.add_argument("--defence", default="adversarial", help=f"one of {known}")
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="a setting of the defence")  # fmt: skip
    add_lesson_arguments(parser, label="of the attribute that is hidden", rows="a row or a line")


def run(arguments: argparse.Namespace) -> None:
    """Train, write the defence, say what it kept. A run that diverges writes nothing."""
    from core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence

    _check_trained(arguments.defence)
    entry = TRAINED_DEFENCES[arguments.defence]
    columns = checked_columns(arguments.texts, columns_of(arguments, label=arguments.label_column))
    _check_free(arguments.out)
    settings = parse_settings(arguments.defence, entry.kind, arguments.settings)
    defence: Any = make_trained_defence(DefenceSpec.of(arguments.defence, settings))
    facts = _trained(defence, arguments, columns)
    _show(arguments, defence, facts)


def _check_trained(name: str) -> None:
    """Raise InvalidInputError for what is not one defence that is trained; say what to do."""
    from core.defences.registry import DEFENCES
    from core.defences.trained.registry import TRAINED_DEFENCES

    if name in TRAINED_DEFENCES:
        return
    first, _, rest = re.split("([:+])", f"{name}+", maxsplit=1)
    said = f"--defence must be one of {', '.join(TRAINED_DEFENCES)}, got {name!r}."
    if first in TRAINED_DEFENCES and name[len(first)] == ":":
        raise InvalidInputError(f"{said} Give its settings by --set NAME=VALUE.")
    if first in TRAINED_DEFENCES:
        raise InvalidInputError(
            f"{said} Train {first} alone, and take --encoder defended:FOLDER --defence "
            f"{rest.rstrip('+')} where the encoder is used."
        )
    if first in DEFENCES:
        raise InvalidInputError(
            f"{said} {first} learns nothing: name it where the encoder is used, as in "
            f"`privatize` or `evaluate`."
        )
    raise InvalidInputError(said + similar(name, TRAINED_DEFENCES))


def _trained(defence: Any, arguments: argparse.Namespace, columns: Columns) -> dict[str, Any]:
    """Train a defence and write it; return what it was trained on."""
    from core.defences.stored import load_defence, save_defence
    from core.encoders import load_encoder
    from core.encoders.cache import CachedEncoder

    checkpoint = arguments.out / CHECKPOINT
    with progress_line() as on_progress:
        texts, labels = read_lesson(arguments, columns)
        encoder = CachedEncoder(load_encoder(encoder_spec(arguments)))
        check_writable(arguments.out)
        defence.fit(
            encoder, texts, labels=labels, on_progress=on_progress, checkpoint_dir=str(checkpoint)
        )
    kept = _nearest_kept(encoder, defence, texts)
    facts = {"encoder": arguments.encoder, "texts": arguments.texts.name, "n_texts": len(texts),
             "seconds": round(defence.seconds_, 1)}  # fmt: skip
    save_defence(defence, arguments.out, training=facts)
    load_defence(arguments.out)  # finished means that all of it reads back
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_leftovers(arguments.out)
    return {**facts, "nearest_kept": kept}


def _nearest_kept(encoder: Any, defence: Any, texts: Sequence[str]) -> Score:
    """Return how many of the texts, each once, keep their nearest; drawn where they are many."""
    from core.defences.trained.nearest_kept import nearest_kept

    distinct = list(dict.fromkeys(texts))
    chosen = np.random.default_rng(0).permutation(len(distinct))[:_N_COMPARED]
    some = [distinct[i] for i in chosen]
    if len(some) < 3:
        return Score(math.nan)
    return nearest_kept(encoder.encode(some), defence.protect(encoder).encode(some))


def _check_free(out: Path) -> None:
    """Raise InvalidInputError where `out` holds more than the checkpoint of a stopped run."""
    if not is_free(out):
        holds = "holds a defence already" if (out / META).exists() else "exists and is not empty"
        raise InvalidInputError(f"{out} {holds}; choose another folder.")


def _show(given: argparse.Namespace, defence: Any, facts: dict[str, Any]) -> None:
    name = f"defended:{given.out}"
    during = [score.to_dict() for score in getattr(defence, "during_", ())]
    kept = facts["nearest_kept"]
    if given.json:
        told = {**facts, "encoder": name, "trained_for": facts["encoder"],
                "nearest_kept": kept.to_dict()}  # fmt: skip
        show_json({**told, "defence": given.defence, "during": during, "out": str(given.out)})
        return
    print(f"{name}: {given.defence} for {facts['encoder']}, trained on {facts['n_texts']:,} texts "
          f"in {facts['seconds']:,.1f} s")  # fmt: skip
    if during:
        last = defence.during_[-1]
        print(f"  in training, the adversary reads {last.said()} % (guessing {last.chance:.1f} %)")
        print("  That is no promise: attackers trained now may read more. `evaluate` and "
              "`attributes` say how much.")  # fmt: skip
    if kept.n:
        print(f"  Of {kept.n:,} of the texts that it was trained on {kept.said()} % have the same "
              f"nearest text as before (guessing {kept.chance:.1f} %)")  # fmt: skip
    if kept.n and kept.ci95.low <= kept.chance:
        smaller = " Train with a smaller weight." if hasattr(defence, "weight") else ""
        print("  That is not told apart from guessing: what the vectors were useful for is gone."
              f"{smaller}")  # fmt: skip
    print(f"Use it as --encoder {name}")
