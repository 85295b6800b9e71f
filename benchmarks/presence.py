"""Presence and deletion in an index: AUC for deleted texts, with and without near-duplicates.

On the bundled sentences and, where LEAKSCOPE_FILES names a folder with the collections of
docs/data.md, on business mail, news and paraphrases.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks import Measurement
from leakscope.core.audit.deletion import check_deletion
from leakscope.core.audit.presence import IndexAccess
from leakscope.core.audit.sources import Batch
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score

FILES = "LEAKSCOPE_FILES"
N_DELETED, N_REFERENCES, N_PRESENT = 200, 330, 100
N_ROWS = 6_000
_VECTORS = IndexAccess.VECTORS


def measure() -> list[Measurement]:
    """Measure how well presence attacks detect deleted texts, on every available corpus."""
    encoder = CachingEncoder(load_encoder("minilm"))
    rows: list[Measurement] = []
    for name, texts in corpora().items():
        rows += measure_corpus(name, texts, encoder)
    pairs = _read("mrpc.parquet", "sentence1", "sentence2", "label")
    if pairs:
        rows += measure_paraphrases([(a, b) for a, b, label in pairs if label == "1"], encoder)
    return rows


def corpora() -> dict[str, list[str]]:
    """Load each available corpus; return its distinct texts in random order, by corpus name."""
    from leakscope.core.corpora import bundled_sentences

    found = {"bundled": bundled_sentences()}
    mail = [text for (text,) in _read("enron_farmer.parquet", "own_text")]
    news = [text for (text,) in _read("ag_news.parquet", "description")]
    found |= {"mail": [text for text in mail if len(text.split()) >= 12], "news": news}
    rng = np.random.default_rng(0)
    return {
        name: [distinct[i] for i in rng.permutation(len(distinct))]
        for name, texts in found.items()
        if (distinct := list(dict.fromkeys(texts)))
    }


def _read(file: str, *columns: str) -> list[tuple[str, ...]]:
    """Read columns of a data file as tuples of strings, one per row; empty if there is no file."""
    folder = os.environ.get(FILES)
    path = next(Path(folder).rglob(file), None) if folder else None
    if path is None:
        return []
    import pandas as pd

    table = pd.read_parquet(path)[list(columns)].astype(str)
    return list(table.itertuples(index=False, name=None))


def measure_corpus(name: str, texts: Sequence[str], encoder: Encoder) -> list[Measurement]:
    """Delete texts, leaving no copy or an edited copy of each; measure the presence attacks."""
    drawn, rest = texts[:1000], list(texts[1000 : 1000 + N_ROWS])
    repeating = near_duplicates(drawn, rest)
    clean = [text for i, text in enumerate(drawn) if i not in repeating]
    deleted, others = clean[:N_DELETED], clean[N_DELETED : N_DELETED + N_REFERENCES]
    rng = np.random.default_rng(1)
    left: dict[str, list[str]] = {"nothing": []}
    for kind, edit in EDITS.items():
        donors = [rest[i] for i in rng.integers(len(rest), size=len(deleted))]
        left[kind] = [edit(*pair, rng) for pair in zip(deleted, donors, strict=True)]
    kinds = list(EDITS)
    left["any"] = [left[kinds[i % len(kinds)]][i] for i in range(len(deleted))]
    rows = []
    for kind, stayed in left.items():
        rows += _measure_deletion(
            name, kind, deleted, others, rest + stayed, rest[:N_PRESENT], encoder
        )
    return rows


def measure_paraphrases(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> list[Measurement]:
    """Delete sentences, leaving a paraphrase of each in the index; measure presence attacks."""
    order = np.random.default_rng(2).permutation(len(pairs))
    drawn = [pairs[i] for i in order]
    deleted, stayed = (list(part) for part in zip(*drawn[:N_DELETED], strict=True))
    others = [one for one, _ in drawn[N_DELETED : N_DELETED + N_REFERENCES]]
    rest = [two for _, two in drawn[N_DELETED + N_REFERENCES :]]
    return _measure_deletion(
        "pairs", "paraphrase", deleted, others, rest + stayed, rest[:N_PRESENT], encoder
    )


def _measure_deletion(
    name: str,
    kind: str,
    deleted: list[str],
    references: list[str],
    index: list[str],
    present: list[str],
    encoder: Encoder,
) -> list[Measurement]:
    """Run each presence attack on one deletion scenario; return the AUCs as measurements."""
    report = check_deletion(
        Texts(index, encoder),
        deleted,
        references,
        encoder,
        present=present,
        access=tuple(IndexAccess),
    )
    found, rows = report.comparison, []
    for attack in found.attacks:
        is_gone, is_strongest = kind == "nothing", attack.access is _VECTORS
        rows.append(
            _auc_measurement(
                f"{name}, {kind} stayed, {attack.access.value}",
                attack.auc,
                (0.55 if is_gone else 0.9) if is_strongest else None,
                is_upper_bound=is_gone,
                note=f"{attack.auc.format(3, with_n=True)}; permuted {attack.permuted.format(2)}; "
                f"blind {found.blind.auc.format(2)}; {report.outcome.value}",
            )
        )
        if is_gone:
            control = found.controls[attack.access]
            rows.append(
                _auc_measurement(
                    f"{name}, members, {attack.access.value}",
                    control,
                    None,
                    note=control.format(3, with_n=True),
                )
            )
    return rows


def _auc_measurement(
    name: str, auc: Score, goal: float | None, *, note: str, is_upper_bound: bool = False
) -> Measurement:
    """Convert an AUC to a measurement with its goal and note."""
    return Measurement(
        name=name,
        value=auc.value,
        unit="AUC",
        goal=goal,
        is_upper_bound=is_upper_bound,
        n=auc.n,
        note=note,
    )


def _replace_sentence(text: str, donor: str, rng: np.random.Generator) -> str:
    """Replace one sentence of a text by a sentence of the donor text."""
    sentences = split_sentences(text)
    if len(sentences) > 1:
        sentences[int(rng.integers(len(sentences)))] = split_sentences(donor)[0]
        return " ".join(sentences)
    words = text.split()
    kept = int(0.7 * len(words))
    return " ".join(words[:kept] + donor.split()[: len(words) - kept])


def _quote_in_reply(text: str, donor: str, rng: np.random.Generator) -> str:
    """Quote a text in a reply; donor and generator are unused."""
    return f"Thanks, I will look into it tomorrow. > {text}"


def _change_digits(text: str, donor: str, rng: np.random.Generator) -> str:
    """Change the digits of a text at random, or append a date if it has none."""
    changed = re.sub(r"\d", lambda _: str(rng.integers(10)), text)
    return changed if changed != text else f"{text} Monday, 3 May."


def _summarise(text: str, donor: str, rng: np.random.Generator) -> str:
    """Return a text's first sentence, or the first half of a one-sentence text."""
    sentences = split_sentences(text)
    words = text.split()
    return sentences[0] if len(sentences) > 1 else " ".join(words[: max(5, len(words) // 2)])


EDITS: dict[str, Callable[[str, str, np.random.Generator], str]] = {
    "changed sentence": _replace_sentence,
    "quoted reply": _quote_in_reply,
    "changed date": _change_digits,
    "summary": _summarise,
}


class Texts:
    """An index of texts as a vector source."""

    label = "index"

    def __init__(self, texts: Sequence[str], encoder: Encoder) -> None:
        self.texts = list(texts)
        self.vectors = encoder.encode(self.texts)

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Yield an iterator over one batch with all vectors, ids and texts."""
        ids = [str(i) for i in range(len(self.texts))]
        yield iter([Batch(self.vectors, ids, self.texts)])


class CachingEncoder:
    """An encoder that caches each text's vector."""

    def __init__(self, base: Encoder) -> None:
        self.base, self.known = base, dict[str, Vectors]()
        self.name, self.dimension, self.fingerprint = base.name, base.dimension, base.fingerprint

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode texts not seen before; return the vectors of all given texts, one row each."""
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        if new:
            self.known.update(zip(new, self.base.encode(new, on_progress), strict=True))
        return np.stack([self.known[text] for text in texts])
