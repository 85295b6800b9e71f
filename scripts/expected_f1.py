"""Measure how an attack's F1 relates to its own expectation.

    python -m scripts.expected_f1 news=ag_news.parquet#description mail=mail.parquet#own_text …

Writes one row a corpus: the mean of the attack's own expectation, and its true F1. Rows of a corpus
that is in the file already are replaced. What the engine reads lies in
`leakscope.core.audit.expected`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leakscope.core.attacks.inversion.evaluation import sample_texts, score_answers
from leakscope.core.attacks.inversion.shipped import open_attack, shipped_digest
from leakscope.core.audit.expected import SHIPPED, own_expectation
from leakscope.core.corpora import split_reference
from leakscope.core.encoders import load_encoder
from leakscope.core.storage.artifacts import read_json, write_json


def measure(name: str, reference: str, n: int, seed: int, attack: str) -> dict[str, Any]:
    """Attack n texts of a corpus; return a row of the attack's expected F1 and its true F1."""
    file, column = split_reference(reference)
    column_of_file = pd.read_parquet(file, columns=[column])[column].dropna()
    found = [text for text in column_of_file if len(text) > 8]
    encoder = load_encoder("minilm")
    opened = open_attack(attack, encoder)
    texts = sample_texts(found, n, seed)
    answers = opened.invert(encoder, encoder.encode(texts))
    result = score_answers(opened, encoder, texts, answers, seconds=1.0, seed=seed, name=name)
    scores = result.scores
    return {
        "corpus": name,
        "n": scores.n,
        "own": round(float(np.mean([own_expectation(answer) for answer in answers])), 5),
        "f1": round(scores.token_set_f1, 2),
        "f1_ci95": [
            round(scores.token_set_f1_ci95.low, 2),
            round(scores.token_set_f1_ci95.high, 2),
        ],
    }


def main() -> None:
    """Measure the corpora named on the command line; write the JSON file after each."""
    parser = argparse.ArgumentParser(prog="python -m scripts.expected_f1", description=__doc__)
    parser.add_argument("corpora", nargs="+", metavar="NAME=FILE#COLUMN")
    parser.add_argument("--attack", default="search")
    parser.add_argument("--n", type=int, default=200, help="texts of each corpus (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    given = parser.parse_args()
    digest = shipped_digest(load_encoder("minilm"), given.attack)
    known = read_json(given.out) if given.out.exists() else {}
    rows = {
        row["corpus"]: row for row in known.get("rows", []) if known.get("attack_sha256") == digest
    }
    for pair in given.corpora:
        name, _, reference = pair.partition("=")
        rows[name] = measure(name, reference, given.n, given.seed, given.attack)
        print(rows[name], flush=True)
        told = {
            "attack": given.attack,
            "attack_sha256": digest,
            "seed": given.seed,
            "command": "python -m scripts.expected_f1",
            "rows": list(rows.values()),
        }
        write_json(given.out, told, is_public=True)


if __name__ == "__main__":
    main()
