"""Rescore the shipped attacks on held-out texts that nearly repeat no training text.

`python -m scripts.rescore --texts FILE` writes the scores into their records, where pages and model
cards read them. The weights stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from leakscope.core.attacks.inversion.shipped import (
    WEIGHTS,
    load_attack,
    shipped_held_out,
    text_mark,
)
from leakscope.core.attacks.inversion.train import HeldOut, held_out_scores
from leakscope.core.corpora.files import read_texts
from leakscope.core.corpora.near_duplicates import THRESHOLD, near_duplicates
from leakscope.core.corpora.rows import Columns
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, no_progress
from leakscope.core.specs import EncoderSpec
from leakscope.core.storage.artifacts import META, read_record
from leakscope.core.storage.atomic_files import atomic_write


def held_out_of(texts: Iterable[str], marks: frozenset[str], *, near: float = THRESHOLD) -> HeldOut:
    """Return the texts held out (by mark) from training that nearly repeat no training text.

    Parameters
    ----------
    texts : iterable of str
        All that the attacks were drawn from, those held out among them.
    marks : frozenset of str
        `text_mark` of what was held out.

    Raises
    ------
    InvalidInputError
        None of the texts has a mark, or each with one nearly repeats another.
    """
    known: list[str] = []
    own: list[str] = []
    for text in dict.fromkeys(texts):
        (own if text_mark(text) in marks else known).append(text)
    repeated = near_duplicates(own, known, near)
    left = tuple(text for i, text in enumerate(own) if i not in repeated)
    if not left:
        raise InvalidInputError(
            f"Of {len(known) + len(own):,} texts, {len(own):,} were held out from the weights "
            "that ship, and none is left that repeats no other. Give the texts that they come of."
        )
    return HeldOut(left, n_near_duplicates=len(repeated))


def rescore(
    folder: Path, encoder: Encoder, held_out: HeldOut, on_progress: OnProgress = no_progress
) -> None:
    """Score the attack in a folder on held-out texts and write the scores to its record.

    Raises
    ------
    ArtifactError
        The attack is damaged, or of another encoder.
    """
    meta = read_record(folder / META, training=dict)
    record = meta["training"]
    scores = held_out_scores(
        load_attack(folder), encoder, held_out, int(record["seed"]), on_progress
    )
    is_spaced = b"\n" in (folder / META).read_bytes()
    told = {**meta, "training": {**record, "held_out": scores}}
    content = json.dumps(told, indent=1 if is_spaced else None, ensure_ascii=False)
    atomic_write(folder / META, content.encode(), is_public=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Rescore every shipped attack whose record has held-out scores."""
    parser = argparse.ArgumentParser(prog="python -m scripts.rescore", description=__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="what they were drawn from")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--precision", default="bfloat16", help="of the encoder")
    given = parser.parse_args(argv)
    encoder = load_encoder(EncoderSpec(name="minilm", precision=given.precision))
    texts = read_texts(given.texts, columns=Columns(text=given.text_column))
    held_out = held_out_of(texts, shipped_held_out(encoder))
    for meta in sorted(WEIGHTS.glob(f"{encoder.name}/*/{META}")):
        if read_record(meta, training=dict)["training"].get("held_out"):
            rescore(meta.parent, CachedEncoder(encoder), held_out)
            print(meta.parent.name)


if __name__ == "__main__":
    main()
