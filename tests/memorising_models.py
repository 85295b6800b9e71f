"""Models that memorise their training texts, to detect leaks from training into test data.

Each replaces the attack or the classifier that a study makes. It recovers everything about texts
that it was trained on, and nothing about others. If it scores above chance, test data were among
the training data: the split leaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from toy_attack import ENTRY, EchoAttack

from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.registry import AttackEntry
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.registry import ClassifierAttackEntry
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.attacks.membership.words.windows import Windows
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Uniform
from leakscope.core.registry import Entry
from leakscope.core.results import Recovery, Score, Sentence
from leakscope.core.specs import setting
from leakscope.core.tasks.examples import Examples
from leakscope.core.text import words
from leakscope.core.vectors import unit

AnyEntry = TypeVar("AnyEntry", bound=Entry)

SAME = 0.9995
"""The least cosine of two vectors of the same text."""

NEARLY = 0.9
"""The least cosine of two vectors of near-duplicate texts."""


def match_rows(vectors: Vectors, known: Vectors, least: float = SAME) -> NDArray[np.int64]:
    """Return for each vector the index of the known vector that it equals; -1 for none.

    Parameters
    ----------
    least : float
        The least cosine of two equal vectors.
    """
    cosines = unit(vectors) @ unit(known).T
    return np.where(cosines.max(1) > least, cosines.argmax(1), -1)


def is_at_chance(score: Score) -> bool:
    """Return whether a score is at most three standard errors above its baseline."""
    error = (score.ci95.high - score.ci95.low) / (2 * 1.96)
    return score.value <= score.chance + 3 * error + 1e-9


class MemorisingWordEncoder:
    """An encoder that knows only the words of its training texts; without texts, all words.

    The vector of a text is the sum of random vectors of its words.
    """

    name, dimension, fingerprint = "words by heart", 64, "0" * 64

    def __init__(self, texts: Sequence[str] | None = None) -> None:
        self.known = None if texts is None else {word for text in texts for word in words(text)}

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        found = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(found, texts, strict=True):
            for word in words(text):
                if self.known is None or word in self.known:
                    row += _direction(word)
        return found


@lru_cache(maxsize=10_000)
def _direction(word: str) -> NDArray[np.float32]:
    """Return a random vector for a word, seeded by the word."""
    drawn = np.random.default_rng(list(word.encode())).standard_normal(
        MemorisingWordEncoder.dimension
    )
    return drawn.astype(np.float32)


# Recovered words


@dataclass
class MemorisingAttack(EchoAttack):
    """Recovers the words of training texts from their exact vectors, and nothing else."""

    n_words: int = setting(50, "At most", search=Uniform(40, 50))

    meets = SAME

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        otherwise = self._fallback(encoder, vectors)
        places = match_rows(vectors, self.vectors_, self.meets)
        return [self._echo(int(i), 1.0) if i >= 0 else otherwise for i in places]

    def _fallback(self, encoder: Encoder, vectors: Vectors) -> Recovery:
        """Return the answer for an unknown vector: no words."""
        return Recovery(())


@dataclass
class NearMemorisingAttack(MemorisingAttack):
    """Recovers the words of training texts also from nearly equal vectors."""

    meets = NEARLY


@dataclass
class GuessingMemorisingAttack(NearMemorisingAttack):
    """Recovers the words of nearly equal training texts; else answers frequent words."""

    def _fallback(self, encoder: Encoder, vectors: Vectors) -> Recovery:
        """Return the answer for an unknown vector: the most frequent words."""
        prior = PriorAttack().fit_vocabulary(encoder, self.vocabulary_)  # type: ignore[attr-defined]
        return prior.invert(encoder, vectors[:1])[0]


@dataclass
class MemorisingSetAttack(MemorisingAttack):
    """A memorising attack with the settings of MSP that the study of [EOS] varies."""

    answer_count: str = setting("mean", "Of no use to it")
    end_token: bool = setting(False, "Likewise")


@dataclass
class NearMemorisingSetAttack(MemorisingSetAttack):
    """The same attack for nearly equal vectors."""

    meets = NEARLY


BY_NAME: dict[str, type[MemorisingAttack]] = {
    "memory": MemorisingAttack,
    "near": NearMemorisingAttack,
}
OF_SETS = {"memory": MemorisingSetAttack, "near": NearMemorisingSetAttack}


def memory_entry(
    entry: Callable[..., AnyEntry], kind: type, title: str = "Memory", **facts: Any
) -> AnyEntry:
    """Return the registry entry, of a given class, of a memorising model."""
    path = f"{__name__}:{kind.__name__}"
    return entry(title, "Knows its texts by heart.", "a test", path, **facts)


def entry_of(name: str, kind: type[MemorisingAttack]) -> AttackEntry:
    """Return the registry entry of a memorising attack."""
    more = {"access": ENTRY.access, "is_live": True, "score": "one"}
    return memory_entry(AttackEntry, kind, name.title(), **more)


class AllWords:
    """A lexicon that contains every word."""

    def __contains__(self, word: object) -> bool:
        return True


class MemorisingReconstruction:
    """Reconstructs the sentences of training texts from their vectors, and nothing else."""

    model_ = SimpleNamespace(lexicon=SimpleNamespace(index=AllWords()))
    confidence_ = None

    def beliefs(self, vectors: Vectors) -> list[dict[str, float]]:
        """Return an empty dictionary for each vector."""
        return [{} for _ in vectors]

    def __init__(
        self, encoder: Encoder, texts: Sequence[str], kind: type[MemorisingAttack]
    ) -> None:
        self.texts, self.attack = texts, kind().fit(encoder, texts)

    def invert(self, encoder: Encoder, vectors: Vectors) -> list[Recovery]:
        nearest = (unit(vectors) @ unit(self.attack.vectors_).T).argmax(1)
        return [
            Recovery(found.words, sentence=Sentence(self.texts[i] if found.words else "", 1.0))
            for i, found in zip(nearest, self.attack.invert(encoder, vectors), strict=True)
        ]


# Classes


class MemorisingClassifier:
    """A classifier that knows the classes of its training texts; else answers the largest class."""

    meets = SAME

    def __init__(self, *_: object, **__: object) -> None:
        self.best_params_: dict[str, Any] = {}

    def fit(self, vectors: Vectors, labels: Sequence[Any]) -> Self:
        self.vectors, self.labels = vectors, np.asarray(labels)
        classes, counts = np.unique(self.labels, return_counts=True)
        self.largest = classes[counts.argmax()]
        return self

    def predict(self, vectors: Vectors) -> Any:
        places = match_rows(vectors, self.vectors, self.meets)
        return np.where(places >= 0, self.labels[places], self.largest)


class NearMemorisingClassifier(MemorisingClassifier):
    """The same classifier for nearly equal vectors."""

    meets = NEARLY


@dataclass
class MemorisingAttributeAttack:
    """An attribute attack that knows the labels of its training texts and of near-duplicates."""

    def fit(self, texts: Sequence[str], labels: Any, *_: Any, n_labels: int, seed: int) -> Self:
        self.classifier, self.n_labels = NearMemorisingClassifier(), n_labels
        self.classifier.fit(MemorisingWordEncoder().encode(texts), labels)
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        answers = self.classifier.predict(MemorisingWordEncoder().encode(texts))
        return np.eye(self.n_labels, dtype=np.float32)[answers]


class MemorisingNetwork:
    """A network that knows the classes of its training texts; else answers the largest class."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, _: Any, examples: Examples, rows: NDArray[Any], **more: Any) -> Self:
        classes = examples.class_ids[rows]
        self.known = dict(zip(self._texts(examples, rows), classes.tolist(), strict=True))
        self.largest = int(np.bincount(classes).argmax())
        return self

    def predict(self, _: Any, examples: Examples, rows: NDArray[Any]) -> NDArray[np.int64]:
        return np.array([self.known.get(t, self.largest) for t in self._texts(examples, rows)])

    def _texts(self, examples: Examples, rows: NDArray[Any]) -> list[tuple[str, str]]:
        """Return the rows' texts as pairs."""
        second = examples.second or ("",) * len(examples)
        return [(examples.first[i], second[i]) for i in rows]


# Members


@dataclass
class MemorisingMembershipAttack:
    """Predicts membership by whether the first shadow model was trained on the sample or user.

    A sample is identified by its row if the shadow models answered for the target's samples, else
    by its user. Without a record, the score is 0.5.
    """

    level: str = setting("sample", "sample or user")

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> Self:
        self.is_aligned = isinstance(shadows, Shadows)
        first = shadows.model(0) if isinstance(shadows, Shadows) else shadows[0]
        self.records: dict[int | str, list[bool]] = {}
        for key, member in zip(self._keys(first), first.members.tolist(), strict=True):
            self.records.setdefault(key, []).append(member)
        return self

    def scores(self, target: Outputs) -> NDArray[np.float64]:
        found = np.array([np.mean(self.records.get(key, [0.5])) for key in self._keys(target)])
        return users_of(target).means(found) if self.level == "user" else found

    def _keys(self, outputs: Outputs) -> Sequence[int | str]:
        """Return the key of each record: its row for aligned shadow models, else its user."""
        return range(len(outputs)) if self.is_aligned else (outputs.users or ())


def classifier_entry_of(level: Any, needs: Any) -> ClassifierAttackEntry:
    """Return the registry entry of the memorising membership attack on classifiers."""
    more = {"level": level, "needs": needs, "fixed": {"level": level}}
    return memory_entry(ClassifierAttackEntry, MemorisingMembershipAttack, **more)


class _MemorisedMembers:
    """Scores known members 1, known non-members -1 and everything else 0."""

    def _learn(self, keys: Iterable[bytes], members: NDArray[np.bool_]) -> Self:
        """Store the score of each key."""
        self.known = dict(zip(keys, np.where(members, 1.0, -1.0).tolist(), strict=True))
        return self

    def _known_scores(self, keys: Iterable[bytes]) -> NDArray[np.float64]:
        """Return the stored score of each key; 0 for an unknown key."""
        return np.array([self.known.get(key, 0.0) for key in keys])


class MemorisingWindowAttack(_MemorisedMembers):
    """Knows the membership of the windows of labelled documents."""

    def fit(self, vectors: Any, windows: Windows, members: NDArray[np.bool_]) -> Self:
        return self._learn(_row_bytes(windows.centres[:, None], windows.contexts), members)

    def score(self, windows: Windows) -> NDArray[np.float64]:
        return self._known_scores(_row_bytes(windows.centres[:, None], windows.contexts))


class MemorisingPairAttack(_MemorisedMembers):
    """Knows the membership of pairs of labelled books, by their sentence vectors."""

    def fit(self, first: Vectors, second: Vectors, members: NDArray[np.bool_]) -> Self:
        return self._learn(_row_bytes(first, second), members)

    def score(self, first: Vectors, second: Vectors) -> NDArray[np.float64]:
        return self._known_scores(_row_bytes(first, second))


def _row_bytes(*parts: NDArray[Any]) -> Iterable[bytes]:
    """Return the bytes of each row of the concatenated arrays."""
    return (row.tobytes() for row in np.concatenate(parts, axis=1))


# Language

UNKNOWN_BITS = 8.0
"""The bits of every text that the model below was not trained on."""


class MemorisingLanguageModel:
    """A language model that gives training texts 0 bits and all others UNKNOWN_BITS."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.known = frozenset(texts)

    def bits(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([0.0 if text in self.known else UNKNOWN_BITS for text in texts])
