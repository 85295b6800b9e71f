"""The fuzzing kit: one small valid input of every kind that Leakscope reads."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tools.faults.commands import write_inputs
from tools.fuzz.making import MAKERS, Artefact, Making

N_TEXTS = 24
N_LEARNED = 60
"""Texts of a file, and those that artefacts are made of."""


class Shelf(Mapping[str, Artefact]):
    """Artifacts by kind, each made on first access.

    Parameters
    ----------
    folder : Path
        Of a kit; what is made lies below it.
    """

    def __init__(self, folder: Path, texts: list[str]) -> None:
        self._folder, self._texts = folder, texts
        self._made: dict[str, Artefact] = {}

    def __getitem__(self, name: str) -> Artefact:
        """Return an artifact by its kind, making it on first access."""
        if name not in self._made:
            place = self.place(name)
            making = Making(place, load_kit_encoder(self._folder), self._texts)
            self._made[name] = MAKERS[name](making)
        return self._made[name]

    def place(self, name: str) -> Path:
        """Return the folder in which an artifact of a kind is made."""
        return self._folder / name.replace(" ", "-")

    def __iter__(self) -> Iterator[str]:
        """Yield the kinds of artifact, made or not."""
        return iter(MAKERS)

    def __len__(self) -> int:
        """Return the number of kinds of artifact."""
        return len(MAKERS)


@dataclass(frozen=True)
class Kit:
    """Valid files, artifacts and texts to be damaged.

    Parameters
    ----------
    folder : Path
        With a language model in `bert`.
    files : dict of str to bytes
        Small files that are written into the folder of each case.
    artefacts : Shelf
        By what they are.
    texts : list of str
        That artefacts are made of.
    """

    folder: Path
    files: dict[str, bytes]
    artefacts: Shelf
    texts: list[str]

    @property
    def encoder(self) -> list[str]:
        """The command-line arguments that choose the kit's language model."""
        return ["--encoder", f"mlm:{self.folder / 'bert'}", "--backend", "torch"]

    @property
    def weights(self) -> list[str]:
        """The command-line arguments that choose an attack trained on the kit's model."""
        assert self.artefacts["attack prior"].meta, "made, so that it has a place"
        return ["--attack", "prior", "--weights", str(self.artefacts.place("attack prior"))]

    @property
    def making(self) -> Making:
        """The encoder and texts to make artifacts of; `place` is the kit's own folder."""
        return Making(self.folder, load_kit_encoder(self.folder), self.texts)


def make_kit(folder: Path) -> Kit:
    """Write the kit's files and language model to a folder; artifacts are made on demand."""
    write_inputs(folder)
    known = (folder / "texts.txt").read_text(encoding="utf-8").splitlines()[:N_LEARNED]
    texts = known[:N_TEXTS]
    files = {
        "texts.txt": "\n".join(texts).encode(),
        "absent.txt": "\n".join(known[N_TEXTS:]).encode(),
        **_make_tables(texts),
        **_make_classifier(),
        "rows.jsonl": _vector_rows(texts, load_kit_encoder(folder).encode(texts)),
    }
    return Kit(folder, files, Shelf(folder, known), known)


def _vector_rows(texts: list[str], vectors: Any) -> bytes:
    """Convert texts and their vectors to JSON Lines, as bytes."""
    rows = zip(texts, vectors.tolist(), strict=True)
    return "\n".join(json.dumps({"text": t, "vector": v}) for t, v in rows).encode()


def _make_tables(texts: list[str]) -> dict[str, bytes]:
    """Build the kit's valid tables from texts; return the bytes by file name."""
    rows = [
        {
            "title": f"Report {i}",
            "text": text,
            "label": "ab"[i % 2],
            "label_name": "ab"[i % 2],
            "split": _split_of_row(i),
        }
        for i, text in enumerate(texts)
    ]
    pairs = [
        {
            "sentence1": text,
            "sentence2": texts[-1 - i],
            "score": str(i % 6),
            "lang": "en",
            "split": _split_of_row(i),
        }
        for i, text in enumerate(texts)
    ]
    searches = [
        {"question1": text, "question2": f"{text} Again.", "style": "natural", "is_duplicate": "1"}
        for text in texts
    ]
    lines = "\n".join(json.dumps(row) for row in rows).encode()
    return {
        "news.csv": _to_csv(rows, ","),
        "news.tsv": _to_csv(rows, "\t"),
        "news.jsonl": lines,
        "news.parquet": _to_parquet(rows),
        "pairs.csv": _to_csv(pairs, ","),
        "searches.csv": _to_csv(searches, ","),
        "answers.csv": _to_csv(_make_answers(), ","),
        "story.json": json.dumps(_STORY).encode(),
    }


_STORY = {
    "kind": "leakscope-story",
    "version": 1,
    "title": "A story",
    "pins": [{"page": "overview", "shows": "pages"}],
}


def _make_answers() -> list[dict[str, str]]:
    """Build rows of answers: a target's and two shadow models' on twelve samples of six users."""
    return [
        {
            "member": str(int((i // 2 + model) % 2 == 0)),
            "label": "ab"[i % 2],
            "p_a": f"{0.3 + i / 40 + model / 10:.3f}",
            "p_b": f"{0.7 - i / 40 - model / 10:.3f}",
            "user": f"u{i // 2}",
            "shadow": str(model) if model >= 0 else "",
        }
        for model in (-1, 0, 1)
        for i in range(12)
    ]


def _make_classifier() -> dict[str, bytes]:
    """Build an ONNX model, vectors and labels; return bytes by file name, {} without onnx."""
    if find_spec("onnx") is None or find_spec("onnxruntime") is None:
        return {}
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.eye(3, 2, dtype=np.float32), "w")
    given, told = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n])
        for name, n in (("x", 3), ("y", 2))
    )
    steps = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Softmax", ["z"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(steps, "classifier", [given], [told], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9  # of the runtime, which may be older than what writes
    vectors = io.BytesIO()
    np.save(vectors, np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32))
    labels = [{"member": str(i % 2), "label": str(i // 4), "user": f"u{i}"} for i in range(8)]
    return {
        "model.onnx": model.SerializeToString(),
        "vectors.npy": vectors.getvalue(),
        "labels.csv": _to_csv(labels, ","),
    }


def _split_of_row(i: int) -> str:
    """Return the split of the row with number i: "train", "dev" or "test"."""
    return ("train", "dev", "test")[i % 3]


def _to_csv(rows: list[dict[str, str]], delimiter: str) -> bytes:
    """Convert rows to CSV bytes with a delimiter."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _to_parquet(rows: list[dict[str, str]]) -> bytes:
    """Convert rows to Parquet bytes."""
    import pandas as pd

    out = io.BytesIO()
    pd.DataFrame(rows).to_parquet(out, index=False)
    return out.getvalue()


@cache
def load_kit_encoder(folder: Path) -> Any:
    """Load the language model in the kit's folder, once."""
    from leakscope.core.encoders import load_encoder
    from leakscope.core.specs import EncoderSpec

    return load_encoder(
        EncoderSpec(name=f"mlm:{folder / 'bert'}", precision="float32", device="cpu")
    )
