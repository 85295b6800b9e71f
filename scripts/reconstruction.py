"""Train the shipped reconstruction attack on top of the shipped classifier.

`python -m scripts.reconstruction --texts pool.parquet --work FOLDER --epochs 2` takes the sentences
that the weights were trained on, none of those held out; counts the language model; learns what
each token does to a vector; teaches a decoder each sentence by its vector and by what the
classifier reads from it; and writes the weights. What it encodes and how far the decoder is lie in
FOLDER: a run that was stopped goes on. Without epochs there is no decoder. How sure it may be is
learned afterwards, by `scripts.reconstruction_confidence`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.reconstruct.attack import ReconstructAttack
from leakscope.core.attacks.inversion.shipped import (
    open_attack,
    save_attack,
    shipped_folder,
    shipped_held_out,
    text_mark,
)
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.core.training.record import hardware, versions

SOURCES = ("wikipedia", "novels_other_books", "tatoeba_tanaka")
"""Of the pool: those whose licences let weights ship that learned from them."""


def training_texts(rows: Sequence[tuple[str, str]], held_out: frozenset[str]) -> list[str]:
    """Return the texts of (text, source) rows to train on: those licensed and not held out."""
    return [text for text, source in rows if source in SOURCES and text_mark(text) not in held_out]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the reconstruction attack for MiniLM and write the shipped weights."""
    import pandas as pd

    parser = argparse.ArgumentParser(prog="python -m scripts.reconstruction", description=__doc__)
    parser.add_argument("--texts", required=True, help="the pool: a table of text and source")
    parser.add_argument("--lexicon", type=int, default=60_000, help="tokens of the language model")
    parser.add_argument("--effects", type=int, default=60_000, help="texts that teach effects")
    parser.add_argument("--epochs", type=int, default=0, help="of the decoder")
    parser.add_argument("--tokens", type=int, default=12_288, help="that the decoder knows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True, help="where it keeps how far it is")
    given = parser.parse_args(arguments)
    encoder = load_encoder(EncoderSpec())
    assert isinstance(encoder, TransformerEncoder)
    pool = pd.read_parquet(given.texts)
    rows = list(zip(pool["text"], pool["source"], strict=True))
    texts, started = training_texts(rows, frozenset(shipped_held_out(encoder))), time.monotonic()
    base = open_attack(AttackSpec.of("probe_mlc"), encoder)
    assert isinstance(base, ProbeMLCAttack)
    attack = ReconstructAttack(
        lexicon_size=given.lexicon,
        n_effects=given.effects,
        decoder_epochs=given.epochs,
        decoder_tokens=given.tokens,
        base_epochs=base.epochs,
        base_substitutions=base.substitutions,
        seed=given.seed,
    )
    n = len(texts) if given.epochs else min(given.effects, len(texts))

    def say(fraction: float, message: str) -> None:
        """Print the progress over the previous line."""
        print(f"{fraction:.1%} {message}", end="\r", flush=True)

    vectors = CachedEncoder(encoder.quick(), given.work / "embeddings").encode(texts[:n], say)
    attack.fit_on(
        encoder,
        base,
        texts,
        vectors,
        say,
        checkpoint_dir=str(given.work),
    )
    training = {
        "corpus": "pool.parquet (Wikipedia, novels, Tatoeba)",
        "n_texts": len(texts),
        "seed": given.seed,
        "seconds": round(time.monotonic() - started),
        "hardware": hardware(encoder),
        "versions": versions(),
        "built_on": "probe_mlc",
    }
    folder = shipped_folder(encoder, "reconstruct")
    save_attack(attack, folder, training=training, borrow=("base.", "probe_mlc"))


if __name__ == "__main__":
    main()
