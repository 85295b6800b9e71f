"""Build, fit and describe the inversion attack of a cell, and convert its scores to a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, InversionAttack
from leakscope.core.results import Score, Scores
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import AttackSpec, settings_of
from leakscope.core.text import STOP_WORDS, Vocabulary


def has_setting(attack: str, setting: str) -> bool:
    """Return whether an attack has a setting of that name."""
    return setting in settings_of(INVERSION_ATTACKS[attack].kind)


def settings_for(attack: str, given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return, as a dict, the given (name, value) settings that an attack has; raise on `seed`.

    Raises
    ------
    InvalidInputError
        `seed` is among them: a study sets its seeds.
    """
    given = list(given)
    if any(name == "seed" for name, _ in given):
        raise InvalidInputError("seed is set by --seeds, for all attacks.")
    return {name: value for name, value in given if has_setting(attack, name)}


def make_cell_attack(cell: Cell) -> InversionAttack:
    """Build a cell's attack, unfitted, with the cell's seed if it takes one.

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
    """Build a cell's attack and fit it on texts; `vocabulary_` holds the words that are scored.

    White-box attacks answer tokens and have no vocabulary: they get the words of the
    auxiliary texts, so that all attacks are scored on the same words.
    """
    attack: Any = make_cell_attack(cell).fit(encoder, texts, checkpoint_dir=checkpoint_dir)
    if attack.vocabulary_ is None:
        attack.vocabulary_ = scored_vocabulary(cell, texts)
    fitted: InversionAttack = attack
    return fitted


def scored_vocabulary(cell: Cell, texts: Sequence[str]) -> Vocabulary:
    """Count the words of texts that are scored; stop words only if the cell's attack keeps them."""
    keeps = cell["settings"].get("keep_stop_words")
    return Vocabulary.count(texts, stop_words=frozenset() if keeps else STOP_WORDS)


def describe_attack(row: Mapping[str, Any]) -> str:
    """Format a row's attack with its settings, such as `msp (epochs=8)`."""
    settings = ", ".join(f"{name}={value}" for name, value in row["settings"].items())
    return f"{row['attack']} ({settings})" if settings else str(row["attack"])


def score_row(
    scores: Scores,
    prior_f1: float,
    *,
    more: Mapping[str, float | Score] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Row:
    """Build the result row of an attack's word scores, with the prior's F1 as chance level.

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
    return Row(scores=found, facts={**(facts or {}), **_sample_facts(scores)})


def _sample_facts(scores: Scores) -> dict[str, Any]:
    """Return the number of texts, the unit of intervals and the number of documents as facts."""
    found = {"n": scores.n, "unit": scores.unit}
    return found if scores.n_documents is None else found | {"n_documents": scores.n_documents}
