"""Chains of defences: a chain is a defence, and the encoder that it protects is an encoder.

Texts are changed first, by all stages that release a text, in their order; then the vectors of
their tokens; then the vector of the whole text. The first stage's guarantee holds for the whole
chain, because later stages see only its output (post-processing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakscope.core.defences.metric_dp.texts import batch_privatiser, text_privatiser
from leakscope.core.defences.protected import ProtectedEncoder, describe_settings
from leakscope.core.protocols import Encoder, OnProgress, Vectors
from leakscope.core.specs import settings_of

Texts = Callable[[Sequence[str]], list[str]]
Batches = Callable[[Iterable[Sequence[str]]], Iterator[Sequence[str]]]


@dataclass(frozen=True)
class Chain:
    """Several defences applied in sequence, each to the output of the one before.

    Parameters
    ----------
    stages : tuple of (str, Defence)
        What each acts on (text, tokens or vector), and the defence; in the order in which they
        act: those on texts, those on token vectors, those on vectors.
    """

    stages: tuple[tuple[str, Any], ...]

    def protect(self, encoder: Encoder) -> Encoder:
        """Return an encoder that applies every stage to texts, token vectors or vectors."""
        inner: Any = encoder
        for stage in self._stages_on("tokens"):
            inner = stage.protect(inner)
        for stage in reversed(self._stages_on("text")):
            inner = _encode_changed_texts(stage, encoder, inner)
        for kind, stage in self.stages:
            if kind not in ("text", "tokens"):
                inner = stage.protect(inner)
        chain_name = " + ".join(
            [encoder.name, *(describe_settings(stage) for _, stage in self.stages)]
        )
        is_ours = isinstance(inner, ProtectedEncoder)
        protected: Encoder = replace(inner, name=chain_name) if is_ours else inner
        return protected

    def change(self, encoder: Encoder) -> Texts:
        """Return a function from texts to texts that applies the text-releasing stages in order."""
        change = self.change_batches(encoder)

        def changed(texts: Sequence[str]) -> list[str]:
            (found,) = change([texts])
            return list(found)

        return changed

    def change_batches(self, encoder: Encoder) -> Batches:
        """Return a function over batches of texts that applies the text-releasing stages."""
        changes = [batch_privatiser(stage, encoder) for stage in self._stages_on("text")]

        def changed(batches: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
            for change in changes:
                batches = change(batches)
            return iter(batches)

        return changed

    @property
    def deterministic(self) -> Chain:
        """A chain of only those stages that draw no noise; an attacker can repeat them."""
        return Chain(tuple(each for each in self.stages if not draws_noise(type(each[1]))))

    def _stages_on(self, kind: str) -> list[Any]:
        """Return the defences in the chain that act on `kind`: text, tokens or vector."""
        return [stage for each, stage in self.stages if each == kind]


def draws_noise(kind: type[Any]) -> bool:
    """Return whether a defence class draws noise, so that encodings of one text differ."""
    return "seed" in kind.__dataclass_fields__ and "seed" not in settings_of(kind)


def _encode_changed_texts(stage: Any, encoder: Encoder, inner: Encoder) -> ProtectedEncoder:
    """Return an encoder that changes texts by a text-releasing stage, then runs `inner` on them."""
    change = text_privatiser(stage, encoder, is_whole=False)

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        return inner.encode(change(texts), on_progress)

    return ProtectedEncoder.of(inner, stage, transform)
