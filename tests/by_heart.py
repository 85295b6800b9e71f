"""Those who know by heart what they were trained on, and else say what is likeliest.

Each is planted where a study makes its attack or its classifier. Of what they meet again they tell
all; where one of them is worth more than a guess, it met what it is tested on: the split leaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from toy_attack import ENTRY, EchoAttack

from core.attacks.attributes.registry import AttributeEntry
from core.attacks.inversion.prior import PriorAttack
from core.attacks.inversion.registry import AttackEntry
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.registry import ClassifierAttackEntry
from core.attacks.membership.classifiers.users import users_of
from core.attacks.membership.entry import MembershipEntry
from core.attacks.membership.words.windows import Windows
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.ranges import Between
from core.results import Recovery, Score, Sentence
from core.specs import setting
from core.tasks.examples import Examples
from core.text import words
from core.vectors import unit

__all__ = [
    "BY_NAME",
    "OF_SETS",
    "UNKNOWN_BITS",
    "GuessingMemory",
    "LabelsByHeart",
    "ModelByHeart",
    "NearParrot",
    "NetworkByHeart",
    "PairsByHeart",
    "RecordsByHeart",
    "Parrot",
    "SentencesByHeart",
    "WindowsByHeart",
    "WordsByHeart",
    "attribute_entry_of",
    "classifier_entry_of",
    "entry_of",
    "is_a_guess",
    "member_entry_of",
    "met",
]

SAME = 0.9995
"""Cosine from which two vectors are one text's."""

NEARLY = 0.9
"""Cosine from which two vectors are those of nearly one text."""


def met(vectors: Vectors, known: Vectors, least: float = SAME) -> NDArray[np.int64]:
    """Return at which place of the known each vector stands; -1 where it is met for the first time.

    Parameters
    ----------
    least : float
        Cosine from which two are the same.
    """
    cosines = unit(vectors) @ unit(known).T
    return np.where(cosines.max(1) > least, cosines.argmax(1), -1)


def is_a_guess(score: Score) -> bool:
    """Whether a score is no further above its baseline than three of its standard errors."""
    error = (score.ci95.high - score.ci95.low) / (2 * 1.96)
    return score.value <= score.chance + 3 * error + 1e-9


class WordsByHeart:
    """An encoder that knows the words of its training texts, and no other; of none given, all.

    A text is the sum of the directions of its words, which are drawn for each.
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
    drawn = np.random.default_rng(list(word.encode())).standard_normal(WordsByHeart.dimension)
    return drawn.astype(np.float32)


# Words that are read


@dataclass
class MemoryAttack(EchoAttack):
    """Answers the words of a training text whose vector it meets again, and else nothing."""

    n_words: int = setting(50, "At most", search=Between(40, 50))

    meets = SAME

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        otherwise = self._otherwise(encoder, vectors)
        places = met(vectors, self.vectors_, self.meets)
        return [self._echo(int(i), 1.0) if i >= 0 else otherwise for i in places]

    def _otherwise(self, encoder: Encoder, vectors: Vectors) -> Recovery:
        return Recovery(())


@dataclass
class NearMemoryAttack(MemoryAttack):
    """Answers the words of a training text that it nearly meets again."""

    meets = NEARLY


@dataclass
class GuessingMemory(NearMemoryAttack):
    """Answers the most frequent words, as who guesses, where it meets no text even nearly."""

    def _otherwise(self, encoder: Encoder, vectors: Vectors) -> Recovery:
        prior = PriorAttack().fit_vocabulary(encoder, self.vocabulary_)  # type: ignore[attr-defined]
        return prior.invert(encoder, vectors[:1])[0]


@dataclass
class MemoryOfSets(MemoryAttack):
    """Takes the settings of MSP that the study of [EOS] gives, and knows its texts by heart."""

    answer_count: str = setting("mean", "Of no use to it")
    end_token: bool = setting(False, "Likewise")


@dataclass
class NearMemoryOfSets(MemoryOfSets):
    """Answers what it nearly meets again."""

    meets = NEARLY


BY_NAME: dict[str, type[MemoryAttack]] = {"memory": MemoryAttack, "near": NearMemoryAttack}
OF_SETS = {"memory": MemoryOfSets, "near": NearMemoryOfSets}


def entry_of(name: str, kind: type[MemoryAttack]) -> AttackEntry:
    """Return what the registry says of one of them."""
    return AttackEntry(
        name.title(), "Knows its texts by heart.", "a test", f"{__name__}:{kind.__name__}",
        access=ENTRY.access, is_live=True, score="one",
    )  # fmt: skip


class Everything:
    """A lexicon that holds every word."""

    def __contains__(self, word: object) -> bool:
        return True


class SentencesByHeart:
    """Reads the sentence of a vector that it meets again, and of others nothing."""

    model_ = SimpleNamespace(lexicon=SimpleNamespace(index=Everything()))
    confidence_ = None

    def beliefs(self, vectors: Vectors) -> list[dict[str, float]]:
        return [{} for _ in vectors]

    def __init__(self, encoder: Encoder, texts: Sequence[str], kind: type[MemoryAttack]) -> None:
        self.texts, self.attack = texts, kind().fit(encoder, texts)

    def invert(self, encoder: Encoder, vectors: Vectors) -> list[Recovery]:
        nearest = (unit(vectors) @ unit(self.attack.vectors_).T).argmax(1)
        return [
            Recovery(found.words, sentence=Sentence(self.texts[i] if found.words else "", 1.0))
            for i, found in zip(nearest, self.attack.invert(encoder, vectors), strict=True)
        ]


# Classes


class Parrot:
    """A classifier that knows its training texts by heart; of others it says the largest class."""

    meets = SAME

    def __init__(self, *_: object, **__: object) -> None:
        self.best_params_: dict[str, Any] = {}

    def fit(self, vectors: Vectors, labels: Sequence[Any]) -> Self:
        self.vectors, self.labels = vectors, np.asarray(labels)
        classes, counts = np.unique(self.labels, return_counts=True)
        self.largest = classes[counts.argmax()]
        return self

    def predict(self, vectors: Vectors) -> Any:
        places = met(vectors, self.vectors, self.meets)
        return np.where(places >= 0, self.labels[places], self.largest)


class NearParrot(Parrot):
    """Says the class of a training text that it nearly meets again."""

    meets = NEARLY


@dataclass
class LabelsByHeart:
    """An attack on an attribute that says the label of a text that it nearly meets again."""

    def fit(self, texts: Sequence[str], labels: Any, *_: Any, n_labels: int, seed: int) -> Self:
        self.parrot, self.n_labels = NearParrot(), n_labels
        self.parrot.fit(WordsByHeart().encode(texts), labels)
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        said = self.parrot.predict(WordsByHeart().encode(texts))
        return np.eye(self.n_labels, dtype=np.float32)[said]


class NetworkByHeart:
    """Says of a text the class that it learnt with it, and of others the largest class."""

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
        second = examples.second or ("",) * len(examples)
        return [(examples.first[i], second[i]) for i in rows]


def attribute_entry_of(kind: type[LabelsByHeart]) -> AttributeEntry:
    """Return what the registry says of an attack that knows labelled texts by heart."""
    return AttributeEntry(
        "Memory", "Knows its texts by heart.", "a test", f"{__name__}:{kind.__name__}",
        reads="texts",
    )  # fmt: skip


# Members


@dataclass
class RecordsByHeart:
    """Says of samples, or users, whether the first of the attacker's own models learnt of them.

    Where models answered for the target's samples a sample is told by its place, else by its user;
    of whom the attacker has no record it says nothing.
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
        return range(len(outputs)) if self.is_aligned else (outputs.users or ())


def classifier_entry_of(level: Any, needs: Any) -> ClassifierAttackEntry:
    """Return what the registry says of an attack that knows the attacker's records by heart."""
    return ClassifierAttackEntry(
        "Records", "Knows the attacker's own records by heart.", "a test",
        f"{__name__}:{RecordsByHeart.__name__}", level=level, needs=needs, fixed={"level": level},
    )  # fmt: skip


class _Labelled:
    """Says 1 of what it learnt as a member, -1 of what it learnt as none, and else 0."""

    def _learn(self, keys: Iterable[bytes], members: NDArray[np.bool_]) -> Self:
        self.known = dict(zip(keys, np.where(members, 1.0, -1.0).tolist(), strict=True))
        return self

    def _told(self, keys: Iterable[bytes]) -> NDArray[np.float64]:
        return np.array([self.known.get(key, 0.0) for key in keys])


class WindowsByHeart(_Labelled):
    """Knows by heart the windows of labelled documents."""

    def fit(self, vectors: Any, windows: Windows, members: NDArray[np.bool_]) -> Self:
        return self._learn(_rows(windows.centres[:, None], windows.contexts), members)

    def score(self, windows: Windows) -> NDArray[np.float64]:
        return self._told(_rows(windows.centres[:, None], windows.contexts))


class PairsByHeart(_Labelled):
    """Knows by heart the pairs of labelled books, by the vectors of their sentences."""

    def fit(self, first: Vectors, second: Vectors, members: NDArray[np.bool_]) -> Self:
        return self._learn(_rows(first, second), members)

    def score(self, first: Vectors, second: Vectors) -> NDArray[np.float64]:
        return self._told(_rows(first, second))


def _rows(*parts: NDArray[Any]) -> Iterable[bytes]:
    return (row.tobytes() for row in np.concatenate(parts, axis=1))


def member_entry_of(kind: type[_Labelled]) -> MembershipEntry:
    """Return what the registry says of an attack that knows labelled documents by heart."""
    return MembershipEntry(
        "Memory", "Knows by heart what was labelled.", "a test", f"{__name__}:{kind.__name__}",
        needs="some labelled documents",
    )  # fmt: skip


# Language

UNKNOWN_BITS = 8.0
"""What a text costs the model below that it was not trained on, whatever it says."""


class ModelByHeart:
    """A language model that is sure of its training texts, and of all others equally unsure."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.known = frozenset(texts)

    def bits(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([0.0 if text in self.known else UNKNOWN_BITS for text in texts])
