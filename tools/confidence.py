"""How sure the shipped reconstruction may be: learned from sentences that were held out.

`python -m tools.confidence --texts pool.parquet` reads sentences that no shipped attack was trained
on, of each source and length alike, none of those in the table of Wikipedia among them, and writes
what was learned into the weights' `model.json`. The arrays stay as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from core.attacks.inversion.reconstruct.attack import ReconstructAttack
from core.attacks.inversion.reconstruct.scores import spoken
from core.attacks.inversion.shipped import (
    open_attack,
    shipped_folder,
    shipped_held_out,
    text_mark,
)
from core.encoders import load_encoder
from core.specs import AttackSpec, EncoderSpec
from core.store import read_json, write_json
from core.studies.reconstruct import ReconstructStudy, targets

__all__ = ["drawn", "main"]

LENGTHS = ((4, 8), (9, 16), (17, 32))

_MOST = 170
"""Sentences of Wikipedia of each length that tables may attack: none of them is learned from."""


def drawn(rows: Sequence[tuple[str, str]], n: int, seed: int = 7) -> list[str]:
    """Return n of the texts in (text, source) rows, from each source and length in turn."""
    kinds: dict[tuple[str, int], list[str]] = {}
    for text, source in rows:
        length = len(spoken(text))
        for low, high in LENGTHS:
            if low <= length <= high:
                kinds.setdefault((source, low), []).append(text)
    rng = np.random.default_rng(seed)
    for texts in kinds.values():
        rng.shuffle(texts)
    turns = range(max(map(len, kinds.values()), default=0))
    lined = [kinds[kind][i] for i in turns for kind in sorted(kinds) if i < len(kinds[kind])]
    return lined[:n]


def main(arguments: Sequence[str] | None = None) -> None:
    """Calibrate the weights that ship for MiniLM."""
    import pandas as pd

    parser = argparse.ArgumentParser(prog="tools.confidence", description=__doc__)
    parser.add_argument("--texts", required=True, help="the pool: a table of text and source")
    parser.add_argument("--n", type=int, default=482, help="sentences to learn from")
    given = parser.parse_args(arguments)
    encoder = load_encoder(EncoderSpec())
    table = ReconstructStudy(
        target=given.texts, auxiliary="held-out", where="source=wikipedia", n=_MOST
    )
    taken = {text for cell in table.cells() for text in targets(cell, encoder).sentences.texts}
    marks, pool = frozenset(shipped_held_out(encoder)), pd.read_parquet(given.texts)
    pairs = zip(pool["text"], pool["source"], strict=True)
    rows = [(t, s) for t, s in pairs if text_mark(t) in marks and t not in taken]
    attack = open_attack(AttackSpec.of("reconstruct"), encoder)
    assert isinstance(attack, ReconstructAttack)
    attack.calibrate(encoder, drawn(rows, given.n), lambda f, m: print(f"{f:.0%} {m}", end="\r"))
    assert attack.confidence_ is not None
    path = shipped_folder(encoder, "reconstruct") / "model.json"
    meta = read_json(path)
    meta["state"]["confidence"] = attack.confidence_.to_dict()
    write_json(path, meta)


if __name__ == "__main__":
    main()
