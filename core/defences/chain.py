"""Defences one after the other: a chain is a defence, and what it protects is an encoder.

Texts are changed first, by all stages that release a text, in their order; then the vectors of
their tokens; then the vector of the whole text. What the first stage promises is kept by all that
follow, for they see its output alone (post-processing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.defences.metric_dp.texts import batches_of, change_of
from core.defences.protected import ProtectedEncoder, name_of
from core.protocols import Encoder, OnProgress, Vectors
from core.specs import settings_of

__all__ = ["Chain", "draws_noise"]

Texts = Callable[[Sequence[str]], list[str]]
Batches = Callable[[Iterable[Sequence[str]]], Iterator[Sequence[str]]]


@dataclass(frozen=True)
class Chain:
    """Several defences, each on what the one before gives.

    Parameters
    ----------
    stages : tuple of (str, Defence)
        What each acts on (text, tokens or vector), and the defence; in the order in which they
        act: those on texts, those on token vectors, those on vectors.
    """

    stages: tuple[tuple[str, Any], ...]

    def protect(self, encoder: Encoder) -> Encoder:
        """Return the encoder behind all stages."""
        inner: Any = encoder
        for stage in self._on("tokens"):
            inner = stage.protect(inner)
        for stage in reversed(self._on("text")):
            inner = _behind(stage, encoder, inner)
        for kind, stage in self.stages:
            if kind not in ("text", "tokens"):
                inner = stage.protect(inner)
        said = " + ".join([encoder.name, *(name_of(stage) for _, stage in self.stages)])
        is_ours = isinstance(inner, ProtectedEncoder)
        protected: Encoder = replace(inner, name=said) if is_ours else inner
        return protected

    def change(self, encoder: Encoder) -> Texts:
        """Return what the stages that release a text make of texts, whole as they are."""
        change = self.change_batches(encoder)

        def changed(texts: Sequence[str]) -> list[str]:
            (found,) = change([texts])
            return list(found)

        return changed

    def change_batches(self, encoder: Encoder) -> Batches:
        """Return the same for batches of texts."""
        changes = [batches_of(stage, encoder) for stage in self._on("text")]

        def changed(batches: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
            for change in changes:
                batches = change(batches)
            return iter(batches)

        return changed

    @property
    def certain(self) -> Chain:
        """The stages that draw no noise: an attacker can apply them to texts of their own."""
        return Chain(tuple(each for each in self.stages if not draws_noise(type(each[1]))))

    def _on(self, kind: str) -> list[Any]:
        return [stage for each, stage in self.stages if each == kind]


def draws_noise(kind: type[Any]) -> bool:
    """Whether a defence draws noise, so that a text never has the same vector twice."""
    return "seed" in kind.__dataclass_fields__ and "seed" not in settings_of(kind)


def _behind(stage: Any, encoder: Encoder, inner: Encoder) -> ProtectedEncoder:
    """Return `inner` on texts that a stage has changed, in tokens of the encoder itself."""
    change = change_of(stage, encoder, is_whole=False)

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        return inner.encode(change(texts), on_progress)

    return ProtectedEncoder.of(inner, stage, transform)
