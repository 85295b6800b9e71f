"""Train the decoder of the shipped reconstruction: sentences to begin with, without a query.

`python -m tools.decoder --texts pool.parquet --epochs 2 --work FOLDER` takes the sentences that the
weights were trained on, none of those held out, teaches a decoder each by its vector and by what
the classifier underneath reads from it, and writes it into the weights. What it encodes and how far
it is lie in FOLDER: a run that was stopped goes on. `--go-on` begins from the decoder that ships.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.attacks.inversion.reconstruct.attack import ReconstructAttack
from core.attacks.inversion.reconstruct.decoder_training import DecoderPlan, train_decoder
from core.attacks.inversion.reconstruct.evidence import Evidence
from core.attacks.inversion.reconstruct.tokens import tokens_of
from core.attacks.inversion.shipped import (
    open_attack,
    save_attack,
    shipped_folder,
    shipped_held_out,
    text_mark,
)
from core.corpora.documents import digest_fields
from core.encoders import load_encoder
from core.encoders.transformer import TransformerEncoder
from core.protocols import Vectors
from core.specs import AttackSpec, EncoderSpec

__all__ = ["SOURCES", "main", "taught_by"]

SOURCES = ("wikipedia", "novels_other_books", "tatoeba_tanaka")
"""Of the pool: those whose licences let weights ship that learned from them."""

_CHUNK = 8192


def taught_by(rows: Sequence[tuple[str, str]], held_out: frozenset[str]) -> list[str]:
    """Return the texts of (text, source) rows that weights may learn from, in their order."""
    return [text for text, source in rows if source in SOURCES and text_mark(text) not in held_out]


def _vectors(encoder: TransformerEncoder, texts: Sequence[str], path: Path) -> Vectors:
    """Return the vectors of texts, float16, kept in a file whose name says of which."""
    path.mkdir(parents=True, exist_ok=True)
    path /= f"vectors-{digest_fields([encoder.fingerprint, *texts])[:12]}.npy"
    if not path.exists():
        quick, begun = encoder.quick(), path.with_suffix(".part")
        kept = np.lib.format.open_memmap(
            begun, mode="w+", dtype=np.float16, shape=(len(texts), encoder.dimension)
        )
        for start in range(0, len(texts), _CHUNK):
            kept[start : start + _CHUNK] = quick.encode(texts[start : start + _CHUNK])
            print(f"{start / len(texts):.0%} encoded", flush=True)
        kept.flush()
        begun.rename(path)
    return np.load(path, mmap_mode="r")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the decoder for MiniLM and write it into the weights that ship."""
    import pandas as pd

    parser = argparse.ArgumentParser(prog="tools.decoder", description=__doc__)
    parser.add_argument("--texts", required=True, help="the pool: a table of text and source")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=12_288, help="that it knows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True, help="where it keeps how far it is")
    parser.add_argument("--go-on", action="store_true", help="begin from the decoder that ships")
    given = parser.parse_args(arguments)
    encoder = load_encoder(EncoderSpec())
    assert isinstance(encoder, TransformerEncoder)
    pool = pd.read_parquet(given.texts)
    rows = list(zip(pool["text"], pool["source"], strict=True))
    texts = taught_by(rows, frozenset(shipped_held_out(encoder)))
    attack = open_attack(AttackSpec.of("reconstruct"), encoder)
    assert isinstance(attack, ReconstructAttack)
    lexicon, started = attack.model_.lexicon, time.monotonic()
    plan = DecoderPlan(size=min(given.tokens, len(lexicon)), epochs=given.epochs, seed=given.seed)
    attack.decoder_ = train_decoder(
        [lexicon.ids(tokens_of(text)) for text in texts],
        _vectors(encoder, texts, given.work),
        plan,
        tell=Evidence(attack.base_, lexicon, plan.size).of,
        begun=attack.decoder_ if given.go_on else None,
        identity={"texts": digest_fields(texts), "goes_on": given.go_on},
        checkpoint_dir=given.work / "checkpoint",
        on_progress=lambda f, m: print(f"{f:.1%} {m}", end="\r", flush=True),
    )
    attack.decoder_tokens = plan.size
    attack.decoder_epochs = given.epochs + (attack.decoder_epochs if given.go_on else 0)
    seconds = {"decoder_seconds": round(time.monotonic() - started)}
    save_attack(
        attack,
        shipped_folder(encoder, "reconstruct"),
        training={**attack.training_, **seconds},  # type: ignore[attr-defined]
        borrow=("base.", "probe_mlc"),
    )


if __name__ == "__main__":
    main()
