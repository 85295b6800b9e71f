"""Encoders that are trained on a corpus here: by name, to disk without pickle, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ArtifactError, InvalidInputError, NotFittedError
from core.protocols import FittedEncoder
from core.registry import Entry, find, make
from core.specs import FittedEncoderSpec, settings_of
from core.store import digest_of, load_artifact, save_artifact
from core.text import check_texts

__all__ = [
    "FITTED_ENCODERS",
    "FITTED_ON_TEXTS",
    "FittedFamily",
    "check_ready",
    "fingerprint_of",
    "load_fitted",
    "make_encoder",
    "save_encoder",
    "training_texts",
]


@dataclass(frozen=True)
class FittedFamily(Entry):
    """What a user should know before fitting an encoder, and where its class is."""

    fixed: dict[str, Any] = field(default_factory=dict)
    """Settings that make this entry what it is."""
    learns_from: str = "texts"
    """`texts`; `neighbours`, texts in the order of their documents; or `scores`, pairs of texts
    with scores, by `fit_pairs`."""

    @property
    def gives_sparse(self) -> bool:
        """Whether its vectors are sparse, as those of bags of words."""
        return bool(getattr(self.kind, "gives_sparse", False))

    @property
    def is_white_box(self) -> bool:
        """Whether an attacker who holds it sees its token vectors and gradients."""
        return hasattr(self.kind, "embed_token_vectors")


FITTED_ENCODERS: dict[str, FittedFamily] = {
    "tfidf": FittedFamily(
        "Bag of words, tf-idf",
        "Counts the words of a text and weighs rare ones more: the text without its order.",
        "Corò (2022), §4.1.2",
        "core.encoders.bag_of_words:TfidfEncoder",
    ),
    "hashing": FittedFamily(
        "Bag of words, hashed",
        "Counts words in cells that a hash picks; no word list is kept.",
        "Corò (2022), §4.1.2",
        "core.encoders.bag_of_words:HashingEncoder",
    ),
    "lsa_tfidf": FittedFamily(
        "LSA on tf-idf",
        "The tf-idf bag of words, reduced to its 1,000 strongest directions.",
        "Corò (2022), §4.1.2",
        "core.encoders.lsa:LSAEncoder",
        fixed={"base": "tfidf"},
    ),
    "lsa_hashing": FittedFamily(
        "LSA on hashed words",
        "The hashed bag of words, reduced to its 1,000 strongest directions.",
        "Corò (2022), §4.1.2",
        "core.encoders.lsa:LSAEncoder",
        fixed={"base": "hashing"},
    ),
    "doc2vec": FittedFamily(
        "Doc2Vec",
        "A vector trained to foretell the words of its text (PV-DBOW).",
        "Le & Mikolov (2014); Corò (2022), §4.1.2",
        "core.encoders.doc2vec:Doc2VecEncoder",
    ),
    "word2vec": FittedFamily(
        "Word2Vec, mean",
        "The mean of word vectors trained to foretell the words around.",
        "Mikolov et al. (2013); Song & Raghunathan (2020), §6.1",
        "core.encoders.word_average:Word2VecEncoder",
    ),
    "fasttext": FittedFamily(
        "FastText, mean",
        "As Word2Vec, with vectors for parts of words: unknown words have vectors too.",
        "Bojanowski et al. (2017); Song & Raghunathan (2020), §6.1",
        "core.encoders.word_average:FastTextEncoder",
    ),
    "glove": FittedFamily(
        "GloVe, mean",
        "The mean of word vectors trained on how often words stand near each other.",
        "Pennington et al. (2014); Song & Raghunathan (2020), §6.1",
        "core.encoders.glove:GloVeEncoder",
    ),
    "dual_lstm": FittedFamily(
        "Dual encoder, LSTM",
        "Trained here to tell a sentence's successor from 800 others; recurrent.",
        "Song & Raghunathan (2020), Eq. 2",
        "core.encoders.dual.encoder:LSTMDualEncoder",
        learns_from="neighbours",
    ),
    "dual_transformer": FittedFamily(
        "Dual encoder, Transformer",
        "Trained here to tell a sentence's successor from 800 others; three Transformer layers.",
        "Song & Raghunathan (2020), Eq. 2",
        "core.encoders.dual.encoder:TransformerDualEncoder",
        learns_from="neighbours",
    ),
    "sbert": FittedFamily(
        "Sentence-BERT, fine-tuned here",
        "A language model trained so that its cosines follow people's scores of similarity.",
        "Reimers & Gurevych (2019)",
        "core.encoders.sbert.encoder:SentenceBERT",
        learns_from="scores",
    ),
}


FITTED_ON_TEXTS = tuple(n for n, f in FITTED_ENCODERS.items() if f.learns_from == "texts")
"""Those that any collection of texts will do for, in any order."""


def make_encoder(spec: FittedEncoderSpec | str) -> FittedEncoder:
    """Build an encoder that is yet to be fitted.

    Raises
    ------
    InvalidInputError
        No such encoder or setting, or a value outside its range.
    """
    spec = FittedEncoderSpec(name=spec) if isinstance(spec, str) else spec
    family = find(FITTED_ENCODERS, spec.name, "encoder")
    encoder: FittedEncoder = make(family, spec.name, dict(spec.settings), fixed=family.fixed)
    encoder.name = spec.name
    return encoder


def save_encoder(
    encoder: FittedEncoder, folder: Path, *, training: dict[str, Any] | None = None
) -> Path:
    """Write a fitted encoder as safetensors and JSON.

    Raises
    ------
    NotFittedError
        It was not fitted.
    StorageError
        The disk is full or the folder cannot be written.
    """
    check_ready(encoder)
    arrays, state = encoder.state()
    settings = {name: getattr(encoder, name) for name in settings_of(type(encoder))}
    meta = {"kind": "encoder", "encoder": encoder.name, "settings": settings, "state": state,
            "fingerprint": encoder.fingerprint, "training": training or {}}  # fmt: skip
    # safetensors refuses a file without arrays.
    return save_artifact(folder, arrays or {"nothing": np.zeros(1, np.float32)}, meta)


def load_fitted(folder: Path, name: str | None = None) -> FittedEncoder:
    """Read an encoder that `save_encoder` wrote.

    Raises
    ------
    ArtifactError
        Missing, truncated, altered, or something else; the message names the file.
    InvalidInputError
        The folder holds an encoder of another name than the one given.
    """
    arrays, meta = load_artifact(folder)
    if meta.get("kind") != "encoder" or meta.get("encoder") not in FITTED_ENCODERS:
        raise ArtifactError(f"{folder} does not hold an encoder fitted here.")
    if name is not None and meta["encoder"] != name:
        raise InvalidInputError(
            f"{folder} holds a {meta['encoder']} encoder: ask for {meta['encoder']}:{folder}."
        )
    fixed = FITTED_ENCODERS[meta["encoder"]].fixed
    settings = {k: v for k, v in meta["settings"].items() if k not in fixed}
    try:
        encoder = make_encoder(FittedEncoderSpec.of(meta["encoder"], settings))
        encoder.load_state(arrays, meta["state"])
    except (KeyError, TypeError, ValueError, InvalidInputError) as error:
        raise ArtifactError(f"{folder} cannot be read as a {meta['encoder']} encoder.") from error
    if encoder.fingerprint != meta["fingerprint"]:
        raise ArtifactError(f"{folder} was altered: its contents have another fingerprint.")
    return encoder


def fingerprint_of(encoder: Any, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> str:
    """Return the SHA-256 of what decides an encoder's vectors: equal ones give equal vectors."""
    return digest_of(arrays, [encoder.name, meta])


def check_ready(encoder: Any) -> None:
    """Raise NotFittedError where an encoder was neither fitted nor loaded."""
    if getattr(encoder, "fingerprint", None) is None:
        raise NotFittedError(f"{encoder.name} is not fitted: call fit, or load a fitted encoder.")


def training_texts(texts: Sequence[str], *, at_least: int = 2) -> list[str]:
    """Return checked texts to fit on.

    Raises
    ------
    InvalidInputError
        Too few texts, or one that cannot be used.
    """
    checked = check_texts(texts)
    if len(checked) < at_least:
        raise InvalidInputError(
            f"Fitting needs at least {at_least} texts, got {len(checked)}. Give a larger corpus."
        )
    return checked
