"""The texts of a study: an attacked collection, and the auxiliary texts of the attacker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.corpora import Columns, load_corpus, split_reference
from leakscope.core.corpora.near_duplicates import THRESHOLD
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.fitted import load_fitted, make_encoder, save_encoder
from leakscope.core.encoders.registry import ENCODERS, FITTED_ON_TEXTS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.results.rows import Cell
from leakscope.core.specs import settings_of
from leakscope.core.storage.artifacts import META, digest_file
from leakscope.core.studies.decontaminate import drop_near_duplicates
from leakscope.core.studies.runner import cell_key

DOMAINS = {
    "in": "in-domain: other documents of the collection under attack",
    "cross": "cross-domain: texts of another source",
}

HELD_SHARE = 0.1
"""The share of a collection's documents that is attacked."""


@dataclass(frozen=True)
class Domain:
    """The auxiliary sentences that encoders and attacks are fitted on, and the target sentences.

    Parameters
    ----------
    auxiliary : tuple of str
        Sentences to fit encoders and attacks on.
    targets : tuple of str
        Sentences under attack: of documents, and in words, that `auxiliary` does not hold.
    documents : tuple of str or None
        The document of each target, where several came from one.
    n_near_duplicates : int
        Sentences that could not be drawn: they nearly repeat one that is known.
    """

    auxiliary: tuple[str, ...]
    targets: tuple[str, ...]
    documents: tuple[str, ...] | None = None
    n_near_duplicates: int = 0


@lru_cache(maxsize=4)
def open_domain(
    target: str,
    other: str,
    domain: str,
    n_auxiliary: int,
    n_targets: int,
    seed: int,
    held_share: float = HELD_SHARE,
    near: float = THRESHOLD,
) -> Domain:
    """Draw auxiliary and target sentences of a domain; the targets are the same for both domains.

    No target nearly repeats an auxiliary sentence of either domain.

    Parameters
    ----------
    target, other : str
        Corpora by name or path.
    n_auxiliary, n_targets : int
        Sentences drawn; all where there are fewer.
    held_share : float
        Share of the target's documents that are attacked; the rest is known in-domain.
    near : float
        From where on a sentence nearly repeats another; see
        `leakscope.core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        No such domain, a corpus that cannot be read, or no sentence that repeats none.
    """
    if domain not in DOMAINS:
        raise InvalidInputError(f"domain must be one of {', '.join(DOMAINS)}, got {domain!r}.")
    known, held = open_corpus(target).split_by_document((1 - held_share, held_share), seed=seed)
    known_sentences = known.sentences()
    is_same = content_of(other) == content_of(target)  # then the other documents alone are known
    others = () if is_same else _read_sentences(other, content_of(other))
    apart = drop_near_duplicates(held.sentences(), (*known_sentences.texts, *others), near)
    own = known_sentences.texts if domain == "in" or is_same else others
    drawn = apart.take(
        _draw_rows(len(apart.sentences), n_targets, np.random.default_rng([seed, 8]))
    )
    distinct = tuple(dict.fromkeys(own))
    chosen = _draw_rows(len(distinct), n_auxiliary, np.random.default_rng([seed, 7]))
    return Domain(
        tuple(distinct[i] for i in chosen),
        drawn.sentences.texts,
        drawn.documents,
        drawn.n_near_duplicates,
    )


@lru_cache(maxsize=2)
def _read_sentences(corpus: str, content: str) -> tuple[str, ...]:
    """Read the sentences of a corpus, given by path or name; once per content."""
    found: tuple[str, ...] = open_corpus(corpus).texts
    return found


@lru_cache(maxsize=8)
def content_of(corpus: str) -> str:
    """Return a digest of the content of a corpus, given by path or name.

    Raises
    ------
    InvalidInputError
        No such corpus.
    """
    return str(open_corpus(corpus).content_hash)[:16]


def check_documents(corpus: str, held_share: float = HELD_SHARE) -> None:
    """Raise InvalidInputError if a collection has too few documents to split off attacked ones.

    Raises
    ------
    InvalidInputError
        There are too few.
    """
    _check_documents(corpus, content_of(corpus), held_share)


@lru_cache(maxsize=8)
def _check_documents(corpus: str, content: str, held_share: float) -> None:
    """Split a corpus's documents, which raises if there are too few; done once per content."""
    open_corpus(corpus).split_by_document((1 - held_share, held_share))


def check_contents(cell: Cell) -> None:
    """Raise InvalidInputError unless a cell's corpora have the content recorded at the start.

    Raises
    ------
    InvalidInputError
        Another file lies at the path.
    """
    used = ["target"]
    if cell.get("shipped_texts"):
        used.append("shipped_texts")
    elif cell.get("domain") == "cross" or "near" in cell:  # targets must not repeat its texts
        used.append("other")
    for name, content in zip(used, cell["contents"], strict=False):
        check_same(cell[name], content_of(cell[name]), content)


def check_same(file: str, content: object, recorded: object) -> None:
    """Raise InvalidInputError if a file's content differs from that recorded at the start.

    Raises
    ------
    InvalidInputError
        It has another; the message names the file.
    """
    if content != recorded:
        raise InvalidInputError(
            f"{file} has changed since the study was started. Copy the same file to every "
            "machine, or start the study again."
        )


def open_corpus(name: str) -> Any:
    """Load a corpus by path or name; NAME#COLUMN names the column of texts."""
    path, column = split_reference(name)
    if Path(path).exists():
        return load_corpus(Path(path), columns=Columns(text=column))
    return load_corpus(name)


def _draw_rows(n_all: int, n: int, rng: np.random.Generator) -> list[int]:
    """Draw n of n_all row indices, in ascending order; all if there are no more."""
    return sorted(rng.choice(n_all, n, replace=False).tolist()) if n < n_all else list(range(n_all))


def encoder_content(name: str) -> dict[str, str]:
    """Return {"encoder_content": …}: a digest of an encoder's folder; empty if it has none.

    Part of what a measurement depends on: another encoder may come to lie in the folder.
    """
    kind, _, place = name.partition(":")
    if kind not in ENCODERS or not place or not Path(place).is_dir():
        return {}
    files = sorted(path for path in Path(place).rglob("*") if path.is_file())
    stamps = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return {"encoder_content": _digest(tuple(stamps), Path(place))}


@lru_cache(maxsize=8)
def _digest(stamps: tuple[tuple[str, int, int], ...], folder: Path) -> str:
    """Return a digest of an encoder's files, computed once per set of sizes and times."""
    digest = hashlib.sha256()
    for name, _, _ in stamps:
        digest.update(f"{Path(name).relative_to(folder)} {digest_file(Path(name))}\n".encode())
    return digest.hexdigest()[:16]


def encoder_settings(name: str) -> dict[str, Any]:
    """Return all settings of an encoder that studies fit; an empty dict for other encoders.

    Part of what a measurement depends on: a default that changes makes other vectors.
    """
    if name not in FITTED_ON_TEXTS:
        return {}
    encoder = make_encoder(name)
    return {setting: getattr(encoder, setting) for setting in settings_of(type(encoder))}


def open_encoder(
    name: str,
    fit_on: Cell,
    texts: Callable[[], Sequence[str]],
    folder: Path,
    *,
    contents: Sequence[str],
) -> Encoder:
    """Load an encoder by name; one of FITTED_ON_TEXTS is fitted on `texts` once, and stored.

    Parameters
    ----------
    name : str
        `minilm`, `mlm:ID`, … or an entry of FITTED_ON_TEXTS, which is fitted.
    fit_on : dict
        What identifies the texts, given the files that they were drawn from.
    texts : callable
        Returns them; called where the encoder is yet to be fitted.
    folder : Path
        Fitted encoders are kept below it.
    contents : sequence of str
        What those files hold, by `content_of`: another file may come to lie at the same path.
    """
    if name not in FITTED_ON_TEXTS:
        return CachedEncoder(load_encoder(name))
    version = ENCODERS[name].version
    raised = {} if version == 1 else {"version": version}
    told = {"contents": list(contents), "settings": encoder_settings(name), **raised}
    place = folder / "encoders" / f"{name}-{cell_key({**fit_on, **told})}"
    if (place / META).exists():
        with suppress(ArtifactError):  # damaged: it is fitted again
            return load_fitted(place, name)
    fitted = make_encoder(name).fit(texts())
    save_encoder(fitted, place, training=fit_on)
    return fitted
