"""The commands under fault injection, with inputs so small that each takes a second or two."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

_WORDS = """
    minister money river doctor garden winter letter bridge market harbour teacher window engine
    forest station dinner summer cousin border island ticket planet orange candle hammer rabbit
""".split()  # noqa: SIM905 - a list literal would take 25 lines
_BETWEEN = ["the", "and", "with", "from", "was", "near"]

_BERT = "mlm:{inputs}/bert"
_STUDY = "--target {inputs}/news.csv --other {inputs}/news.csv --n-auxiliary 120"

COMMANDS: dict[str, str] = {
    "fit (tf-idf)": "fit --encoder tfidf --corpus {inputs}/texts.txt --out {out}/tfidf --json",
    "fit (dual encoder)": "fit --encoder dual_lstm --corpus {inputs}/news.csv --out {out}/dual "
    "--set dimension=8 --set epochs=2 --set n_negatives=10 --set n_candidates=5 --json",
    "train": f"train --encoder {_BERT} --attack mlc --corpus {{inputs}}/texts.txt --min-words 4 "
    "--set vocabulary_size=30 --set epochs=2 --out {out}/mlc --json",
    "study": f"study encoders {_STUDY} --encoders tfidf hashing --attacks probe --domains in "
    "--n-targets 10 --out {out}/study.json --json",
    "tune": f"tune --attack retrieval {_STUDY} --encoder hashing --n-validation 10 --trials 2 "
    "--out {out}/tuned.json --json",
    "privatize (CSV)": f"privatize --encoder {_BERT} --eta 20 --seed 1 --in {{inputs}}/news.csv "
    "--text-column text --out {out}/private.csv --json",
    "privatize (Parquet)": f"privatize --encoder {_BERT} --mechanism token_representation --eta 20 "
    "--seed 1 --in {inputs}/news.parquet --text-column text --out {out}/private.parquet --json",
}
"""By what the table calls them; `{inputs}` and `{out}` are folders."""


def write_inputs(folder: Path) -> None:
    """Write small texts, tables and a random two-layer language model."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    texts = [_sentence(rng) for _ in range(240)]
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    with (folder / "news.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "text", "label_name"])
        for i in range(0, len(texts), 4):
            label = "food" if i % 8 else "travel"
            writer.writerow([f"Report {i}", " ".join(texts[i : i + 4]), label])
    _write_parquet(folder)
    _write_bert(folder / "bert")


def _sentence(rng: np.random.Generator) -> str:
    """Draw a random sentence of known words."""
    words = rng.choice(_WORDS, size=6, replace=False)
    pairs = zip(rng.choice(_BETWEEN, size=6), words, strict=True)
    return " ".join(f"{between} {word}" for between, word in pairs).capitalize() + "."


def _write_parquet(folder: Path) -> None:
    """Convert the folder's news.csv to news.parquet."""
    import pandas as pd

    pd.read_csv(folder / "news.csv").to_parquet(folder / "news.parquet", index=False)


def _write_bert(folder: Path) -> None:
    """Write a BERT model of two layers with random weights to a folder."""
    import torch
    import transformers
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *_BETWEEN, *_WORDS]
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 128,
    }
    transformers.utils.logging.disable_progress_bar()
    BertModel(BertConfig(vocab_size=len(pieces), **shape)).save_pretrained(folder)
