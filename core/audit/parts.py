"""Compute an attack's answers in parts, so that an audit can be resumed or distributed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from leakscope.core.results import RecoveredWord, Recovery, Sentence, SentenceStep
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.core.storage.artifacts import UNFIT, read_sealed, write_sealed

PART = 32
"""Vectors per part: stopping an audit loses at most half a minute of work."""

_REMEDY = "Move this file away; its vectors are then attacked again."

Part = tuple[int, NDArray[np.float32]]
"""Its number, and its vectors."""

Answered = tuple[int, list[Recovery]]


@dataclass(frozen=True)
class AttackerSpec:
    """Spec of an attack and its encoder, which each worker opens.

    Attributes
    ----------
    attack : AttackSpec
    encoder : EncoderSpec
        That made the vectors.
    """

    attack: AttackSpec
    encoder: EncoderSpec


Spread = Callable[[AttackerSpec, Sequence[Part]], Iterable[Answered]]
"""Compute parts on other processes or machines, in any order."""


@dataclass(frozen=True)
class Attacker:
    """A loaded attack with the encoder that made the vectors.

    Attributes
    ----------
    spec : AttackerSpec
    attack : InversionAttack
    encoder : Encoder
    """

    spec: AttackerSpec
    attack: InversionAttack
    encoder: Encoder

    @classmethod
    def opened(
        cls, spec: AttackerSpec, encoder: Encoder, on_progress: OnProgress = no_progress
    ) -> Self:
        """Load the attack that a spec names, for an encoder that is already loaded.

        Raises
        ------
        InvalidInputError
            No such attack or setting.
        ArtifactError
            No weights ship for the attack.
        """
        from leakscope.core.attacks.inversion.shipped import open_attack

        return cls(spec, open_attack(spec.attack.name, encoder, on_progress), encoder)

    @property
    def key(self) -> str:
        """A string that identifies the attacker: attack, weights and encoder."""
        from leakscope.core.attacks.inversion.shipped import shipped_digest

        attack = self.spec.attack
        weights = shipped_digest(self.encoder, attack.name)
        return json.dumps([attack.key, weights, self.encoder.fingerprint])


@lru_cache(maxsize=1)
def _load_attacker(spec: AttackerSpec) -> Attacker:
    """Load the encoder and the attack of a spec, cached in a worker process."""
    from leakscope.core.encoders import load_encoder

    return Attacker.opened(spec, load_encoder(spec.encoder))


def answer_part(part: Part, *, spec: AttackerSpec) -> Answered:
    """Attack one numbered batch of vectors with a cached attacker; return number and answers."""
    number, vectors = part
    attacker = _load_attacker(spec)
    return number, attacker.attack.invert(attacker.encoder, vectors)


def answer_in_parts(
    attacker: Attacker,
    vectors: NDArray[np.float32],
    *,
    folder: Path | None = None,
    spread: Spread | None = None,
    on_progress: OnProgress = no_progress,
) -> list[Recovery]:
    """Attack vectors in batches; return one answer per vector, reusing batches stored on disk.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, d)
    folder : Path, optional
        Where answers are stored, which hold words of the texts; by default nowhere.
    spread : callable, optional
        Answers parts elsewhere; by default they are answered here.

    Raises
    ------
    ArtifactError
        A file of `folder` is damaged.
    StorageError
        `folder` cannot be written.
    InvalidInputError
        A part was not answered: a worker died.
    """
    parts = [vectors[start : start + PART] for start in range(0, len(vectors), PART)]
    paths = [
        None if folder is None else folder / _answers_file(attacker.key, part) for part in parts
    ]
    kept = [_read_answers(path, len(part)) for path, part in zip(paths, parts, strict=True)]
    missing = [(i, part) for i, part in enumerate(parts) if kept[i] is None]

    def n_done() -> int:
        """Return the number of vectors that are answered."""
        return sum(len(answers) for answers in kept if answers)

    def here() -> Iterator[Answered]:
        """Attack the missing batches in this process; yield each one's number and answers."""
        for i, part in missing:
            start, size = n_done() / len(vectors), len(part) / len(vectors)

            def show(f: float, message: str, start: float = start, size: float = size) -> None:
                """Report the progress of a batch as progress of the whole."""
                on_progress(start + size * f, message)

            yield i, attacker.attack.invert(attacker.encoder, part, show)

    for i, answers in here() if spread is None else spread(attacker.spec, missing):
        kept[i] = answers
        if (path := paths[i]) is not None:
            write_sealed(path, {"answers": [asdict(answer) for answer in answers]})
        if spread is not None:
            on_progress(n_done() / len(vectors), "Attacking on the workers")
    if any(answers is None for answers in kept):
        raise InvalidInputError(
            "A worker died before it answered: it was killed or ran out of memory. Start the audit "
            "again with fewer workers; --resume keeps finished parts."
        )
    return [answer for answers in kept for answer in answers or ()]


def _answers_file(about: str, part: NDArray[np.float32]) -> str:
    """Return the file name for a batch's answers: a digest of the attacker and the vectors."""
    digest = hashlib.sha256(about.encode())
    digest.update(np.ascontiguousarray(part).tobytes())
    return f"answers-{digest.hexdigest()[:24]}.json"


def _read_answers(path: Path | None, n: int) -> list[Recovery] | None:
    """Read n answers from a file; return None if there is no path or no file."""
    if path is None or not path.exists():
        return None
    stored = read_sealed(path, _REMEDY)
    try:
        found = [_recovery_from_dict(answer) for answer in stored["answers"]]
        if len(found) != n:
            raise ValueError("another number of vectors")
    except UNFIT as error:
        raise ArtifactError(f"{path} does not contain answers of an attack. {_REMEDY}") from error
    return found


def _recovery_from_dict(stored: dict[str, Any]) -> Recovery:
    """Build a Recovery from its JSON form."""
    sentence = stored["sentence"]
    return Recovery(
        _words_from_list(stored["words"]),
        int(stored["n_queries"]),
        _words_from_list(stored["runners_up"]),
        None
        if sentence is None
        else Sentence(
            str(sentence["text"]),
            float(sentence["cosine"]),
            float(sentence["confidence"]),
            _words_from_list(sentence["words"]),
            tuple(SentenceStep(**step) for step in sentence["steps"]),
        ),
    )


def _words_from_list(stored: list[dict[str, Any]]) -> tuple[RecoveredWord, ...]:
    """Build recovered words from their JSON form."""
    return tuple(RecoveredWord(str(word["word"]), float(word["score"])) for word in stored)
