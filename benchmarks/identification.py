"""Encoder identification from 100 vectors without texts, and rejection of unknown encoders."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks import Measurement
from leakscope.core.attacks.inversion.evaluation import sample_texts
from leakscope.core.audit.identification import KnownSpace, identify
from leakscope.core.corpora import bundled_sentences, load_corpus
from leakscope.core.encoders.minilm import load_minilm
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import CoreError
from leakscope.core.intervals import clopper_pearson
from leakscope.core.protocols import Encoder

WIDTH = 384
"""Of all encoders: a dimension of its own would name each."""

FITTED: Mapping[str, str] = {
    "lsa_tfidf": "n_components",
    "lsa_hashing": "n_components",
    "doc2vec": "vector_size",
    "word2vec": "vector_size",
    "fasttext": "vector_size",
    "glove": "vector_size",
}
LAYERS = (1, 3, 5)
NLTK = (
    "abc",
    "brown",
    "inaugural",
    "movie_reviews",
    "nps_chat",
    "qc",
    "sentence_polarity",
    "state_union",
    "subjectivity",
    "webtext",
)
N_REFERENCE, N_VECTORS = 2_000, 100


def measure() -> list[Measurement]:
    """Measure how often encoders are identified, and rotated or unknown ones wrongly accepted."""
    sentences = sample_texts(bundled_sentences(), None, 0)
    encoders = reference_encoders(sentences[N_REFERENCE:])
    spaces = {
        name: KnownSpace.measure(name, "", encoder.encode(sentences[:N_REFERENCE]))
        for name, encoder in encoders.items()
    }
    corpora = load_targets()
    n_right = n_rotated = n_unseen = 0
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((WIDTH, WIDTH)))[0]
    for seed, texts in enumerate(corpora.values()):
        for name, encoder in encoders.items():
            vectors = encoder.encode(texts)
            others = [space for other, space in spaces.items() if other != name]
            n_right += identify(vectors, list(spaces.values()), seed=seed).encoder == name
            turned = (vectors @ rotation).astype(np.float32)
            n_rotated += identify(turned, list(spaces.values()), seed=seed).encoder is not None
            n_unseen += identify(vectors, others, seed=seed).encoder is not None
    n = len(corpora) * len(encoders)
    said = f"{len(encoders)} encoders of {WIDTH} dimensions, {len(corpora)} corpora"
    return [
        share("encoder named rightly", n_right, n, said, goal=95),
        share("rotated vectors called known", n_rotated, n, said, goal=5, is_upper_bound=True),
        share("unseen encoder called known", n_unseen, n, said, goal=5, is_upper_bound=True),
    ]


def share(
    name: str, hits: int, n: int, note: str, *, goal: float, is_upper_bound: bool = False
) -> Measurement:
    """Build the measurement of a share of hits in per cent, with an exact interval."""
    interval = clopper_pearson(hits, n)
    return Measurement(
        name=name,
        value=100 * hits / n,
        unit="%",
        goal=goal,
        is_upper_bound=is_upper_bound,
        n=n,
        note=f"95 % CI {100 * interval.low:.1f} to {100 * interval.high:.1f}; {note}",
    )


def reference_encoders(texts: list[str]) -> dict[str, Encoder]:
    """Load MiniLM and three of its layers, and fit more encoders on texts; return all by name."""
    found: dict[str, Encoder] = {"minilm": load_minilm(device="cpu")}
    for layer in LAYERS:
        lower = load_minilm(layer=layer, device="cpu")
        found[lower.name] = lower
    for name, size in FITTED.items():
        entry = ENCODERS[name]
        encoder = entry.kind(**getattr(entry, "fixed", {}), **{size: WIDTH})
        found[name] = encoder.fit(texts)
    return found


def load_targets() -> dict[str, list[str]]:
    """Load texts of other genres than the reference; return a sample by corpus name.

    Two corpora ship: without NLTK's data the texts are news and encyclopaedia, and not independent
    of the spaces.
    """
    found = {}
    for name in NLTK:
        try:
            texts = [t for t in load_corpus(f"nltk:{name}").texts if len(t.split()) > 2]
        except CoreError:
            continue
        found[name] = sample_texts(texts, N_VECTORS, 0)
    for name in () if found else ("lee", "wikipedia"):
        found[name] = sample_texts(list(load_corpus(name).texts), N_VECTORS, 1)
    return found
