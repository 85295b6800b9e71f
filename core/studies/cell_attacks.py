"""The attack of a study's cell: its settings, made ready to fit, named, and what it scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from core.errors import InvalidInputError
from core.protocols import Encoder, InversionAttack
from core.results import Score, Scores
from core.specs import AttackSpec, settings_of
from core.studies.rows import Cell, Row
from core.text import STOP_WORDS, Vocabulary

__all__ = [
    "attack_of",
    "attack_said",
    "fit_attack",
    "has_setting",
    "score_row",
    "settings_for",
    "words_of",
]


def has_setting(attack: str, setting: str) -> bool:
    """Whether an attack has a setting of that name."""
    return setting in settings_of(INVERSION_ATTACKS[attack].kind)


def settings_for(attack: str, given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return those of the settings given to all attacks that this one has.

    Raises
    ------
    InvalidInputError
        `seed` is among them: a study has seeds of its own.
    """
    given = list(given)
    if any(name == "seed" for name, _ in given):
        raise InvalidInputError("seed is set by --seeds, for all attacks alike.")
    return {name: value for name, value in given if has_setting(attack, name)}


def attack_of(cell: Cell) -> InversionAttack:
    """Return a cell's attack, yet to be fitted, under the cell's seed where it takes one.

    Raises
    ------
    InvalidInputError
        A setting outside its range.
    """
    settings = dict(cell["settings"])
    if has_setting(cell["attack"], "seed"):
        settings["seed"] = cell["seed"]
    return make_attack(AttackSpec.of(cell["attack"], settings))


def fit_attack(
    cell: Cell, encoder: Encoder, texts: Sequence[str], *, checkpoint_dir: str | None = None
) -> InversionAttack:
    """Return a cell's attack, fitted, with the words that it is judged by as `vocabulary_`.

    White-box attacks answer tokens and have no vocabulary of their own: the words of the
    auxiliary texts stand in, so that all attacks face the same targets.
    """
    attack: Any = attack_of(cell).fit(encoder, texts, checkpoint_dir=checkpoint_dir)
    if attack.vocabulary_ is None:
        attack.vocabulary_ = words_of(cell, texts)
    fitted: InversionAttack = attack
    return fitted


def words_of(cell: Cell, texts: Sequence[str]) -> Vocabulary:
    """Return the words of texts that count: stop words where the attack's settings keep them."""
    keeps = cell["settings"].get("keep_stop_words")
    return Vocabulary.count(texts, stop_words=frozenset() if keeps else STOP_WORDS)


def attack_said(row: Mapping[str, Any]) -> str:
    """Return a row's attack with its settings, such as `msp (epochs=8)`."""
    settings = ", ".join(f"{name}={value}" for name, value in row["settings"].items())
    return f"{row['attack']} ({settings})" if settings else str(row["attack"])


def score_row(
    scores: Scores,
    prior_f1: float,
    *,
    more: Mapping[str, float | Score] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Row:
    """Return the row of an attack's scores on words, beside what guessing reaches.

    Parameters
    ----------
    more : mapping of str to float or Score, optional
        Further scores on the same targets; mere numbers have no interval.
    facts : mapping, optional
        See `Row`.
    """
    found = {
        "precision": Score(scores.precision, n=scores.n),
        "recall": Score(scores.recall, n=scores.n),
        "token_set_f1": scores.score("token_set_f1", prior_f1),
        **{
            name: value if isinstance(value, Score) else Score(value, n=scores.n)
            for name, value in (more or {}).items()
        },
    }
    return Row(scores=found, facts={**(facts or {}), **_sample(scores)})


def _sample(scores: Scores) -> dict[str, Any]:
    """Return how many texts were scored, and what intervals are of."""
    found = {"n": scores.n, "unit": scores.unit}
    return found if scores.n_documents is None else found | {"n_documents": scores.n_documents}
