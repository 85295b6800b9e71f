"""Learn the shipped reconstruction's confidence from held-out sentences.

    python -m scripts.reconstruction_confidence --texts sentences.parquet --work FILE

It attacks sentences that no shipped attack was trained on and that nearly repeat none of the
training, equally many of each length, none of those in the tables of Wikipedia among them. It
writes what was learned into the weights' `model.json`. The arrays stay as they are. FILE holds what
was recovered: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from leakscope.core.attacks.inversion.reconstruct.attack import ReconstructAttack
from leakscope.core.attacks.inversion.reconstruct.scores import word_tokens
from leakscope.core.attacks.inversion.shipped import open_attack, shipped_folder
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.results import Recovery, Sentence, SentenceStep
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.core.storage.artifacts import read_json, write_json
from leakscope.core.studies.inversion.reconstruct import ReconstructStudy, sentences_of
from scripts.reconstruction import SOURCES

LENGTHS = ((4, 8), (9, 16), (17, 32))

_MOST = 220
"""Sentences of Wikipedia of each length that tables may attack: none of them is learned from."""

_BLOCK = 16


def drawn(rows: Sequence[tuple[str, str]], n: int, seed: int = 7) -> list[str]:
    """Choose n texts of (text, source) rows, equally many of each class of length.

    Of each length those of the first of `SOURCES`, then of the next, each in an order by digest,
    which other rows leave as it is. The first is the hardest: what was learned of the easier ones
    is too sure of other texts, not too little.
    """

    def order(row: tuple[str, str]) -> tuple[int, str]:
        """Return the sort key of a row: its source, then a digest of its text."""
        text, source = row
        return SOURCES.index(source), hashlib.sha256(f"{seed} {text}".encode()).hexdigest()

    lined: list[list[str]] = []
    ordered = [(text, len(word_tokens(text))) for text, _ in sorted(rows, key=order)]
    for low, high in LENGTHS:
        lined.append([text for text, length in ordered if low <= length <= high])
    turns = range(max(map(len, lined), default=0))
    return [each[i] for i in turns for each in lined if i < len(each)][:n]


def main(arguments: Sequence[str] | None = None) -> None:
    """Reconstruct held-out texts, calibrate the shipped attack's confidence and store it."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.reconstruction_confidence", description=__doc__
    )
    parser.add_argument("--texts", required=True, help="the pool: a table of text and source")
    parser.add_argument("--n", type=int, default=240, help="sentences to learn from")
    parser.add_argument("--queries", type=int, default=2000, help="that each may take")
    parser.add_argument("--work", type=Path, required=True, help="where it keeps what it read")
    given = parser.parse_args(arguments)
    encoder = load_encoder(EncoderSpec())
    assert isinstance(encoder, TransformerEncoder)
    attack = open_attack(AttackSpec.of("reconstruct", {"n_queries": given.queries}), encoder)
    assert isinstance(attack, ReconstructAttack)
    texts = drawn(_held_out_rows(given.texts, encoder), given.n)
    attack.calibrate(encoder, texts, _invert_resumably(attack, encoder, texts, given.work))
    assert attack.confidence_ is not None
    path = shipped_folder(encoder, "reconstruct") / "model.json"
    meta = read_json(path)
    meta["state"]["confidence"] = attack.confidence_.to_dict()
    meta["training"]["confidence"] = {"n_texts": len(texts), "n_queries": given.queries}
    write_json(path, meta)


def _held_out_rows(texts: str, encoder: TransformerEncoder) -> list[tuple[str, str]]:
    """Return the held-out (text, source) rows of a table, without those that a study attacks."""

    def held_out(source: str, n: int) -> list[str]:
        """Return up to n held-out texts of one source."""
        study = ReconstructStudy(target=texts, auxiliary="held-out", where=f"source={source}", n=n)
        cells = study.cells()
        return [text for cell in cells for text in sentences_of(cell, encoder).sentences.texts]

    attacked = set(held_out(SOURCES[0], _MOST))
    every = [(text, source) for source in SOURCES for text in held_out(source, 10**6)]
    return [row for row in every if row[0] not in attacked]


def _invert_resumably(
    attack: ReconstructAttack, encoder: TransformerEncoder, texts: Sequence[str], work: Path
) -> list[Recovery]:
    """Invert the texts' vectors and return the answers, resuming from the file `work`."""
    lines = work.read_text(encoding="utf-8").splitlines() if work.exists() else []
    whole = [line for line in lines if line.endswith("}")]  # the last may have been cut off
    known = {told["text"]: told for told in map(json.loads, whole)}
    missing = [text for text in texts if text not in known]
    with work.open("a", encoding="utf-8") as file:
        for start in range(0, len(missing), _BLOCK):
            print(f"{start} of {len(missing)} sentences read", end="\r", flush=True)
            block = missing[start : start + _BLOCK]
            for text, answer in zip(
                block, attack.invert(encoder, encoder.encode(block)), strict=True
            ):
                assert answer.sentence is not None
                steps = [[s.n_queries, s.text, s.cosine] for s in answer.sentence.steps]
                known[text] = {"text": text, "n": answer.n_queries, "steps": steps}
                file.write(json.dumps(known[text]) + "\n")
            file.flush()
    return [_recovery_from_steps(known[text]["n"], known[text]["steps"]) for text in texts]


def _recovery_from_steps(n: int, steps: Sequence[tuple[int, str, float]]) -> Recovery:
    """Rebuild an answer from its number of queries and its stored search steps."""
    found = tuple(SentenceStep(*step) for step in steps)
    return Recovery((), n, sentence=Sentence(found[-1].text, found[-1].cosine, steps=found))


if __name__ == "__main__":
    main()
