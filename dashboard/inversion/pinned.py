"""What of the page of inversion goes into a story."""

from __future__ import annotations

from collections.abc import Sequence

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import Reading
from core.attacks.inversion.sentence import scored_said
from core.figures import inversion as figures
from core.results import RecoveredWord
from core.story.format import Table
from dashboard import cache
from dashboard.calm import plain
from dashboard.inversion import answers, state
from dashboard.inversion.cost import cost_in_words
from dashboard.inversion.views import strongest
from dashboard.leakage import invert_command
from dashboard.story.pinning import Seen

__all__ = ["command_of", "is_typed", "seen", "wrong_said"]

_OPENS = "with the usual settings of the attacks, since no address holds those that were changed"

_COLUMNS = ("Attack", "Words read", "Wrong guesses", "F1", "Guessing", "Needs")
_MOST_WRONG = 8


def is_typed(text: str) -> bool:
    """Return whether a sentence is none of the samples."""
    return text not in [sample["text"] for sample in cache.samples()]


def seen(readings: Sequence[Reading], with_text: bool) -> Seen:
    """Return scores of each attack; the marked sentence where it may be in the story."""
    best = strongest(readings)
    entry = INVERSION_ATTACKS[best.attack]
    text = best.text if with_text else "YOUR SENTENCE"
    many = len(readings) > 1
    is_changed = any(state.settings_of_attack(reading.attack) for reading in readings)
    return Seen(
        figure=(
            figures.scores_beside_prior(readings)
            if many or not with_text
            else figures.word_scores(best)
        ),
        alt=", ".join(f"{INVERSION_ATTACKS[r.attack].title} {r.scores.f1:.0f}" for r in readings)
        + f"; guessing alone reaches {best.prior.f1:.0f}",
        table=Table(columns=_COLUMNS, rows=tuple(map(_row, readings))),
        more=(wrong_said(best, with_text),),
        sentence=tuple((piece, mark.value) for piece, mark in best.pieces) if with_text else (),
        facts=(
            ("Data", "one sentence, an example"),
            ("n", f"1 sentence; scores count {scored_said(len(best.targets), len(best.unknown))}"),
            ("Interval", "none: a sentence is no measurement"),
            ("Attacker", entry.title),
            ("Access", entry.access.needs),
            ("Cost", cost_in_words(best)),
        ),
        commands=[command_of(reading.attack, text) for reading in readings],
        opens=_OPENS if is_changed else "",
    )


def wrong_said(reading: Reading, with_words: bool) -> str:
    """Return what was answered and is not in the text, the surest first, and the precision.

    Parameters
    ----------
    with_words : bool
        Whether the words may be told: a wrong one may still be close to what was typed.
    """
    wrong = sorted(reading.wrong, key=lambda found: -found.score)
    n = reading.n_recovered + len(wrong)
    if not wrong:
        return "It answers no word that is not there." if n else "It answers no word."
    precision = f"precision {reading.scores.precision:.0f}"
    told = f"Of {n} words that it answers, {len(wrong)} are not there ({precision})"
    if not with_words:
        return f"{told}; the surest of these has a score of {wrong[0].score:.2f}."
    named = [_wrong(found, reading.kin.get(found.word)) for found in wrong[:_MOST_WRONG]]
    left = len(wrong) - len(named)
    more = f", and {left} more" if left else ""
    return f"{told}, with their scores: {', '.join(named)}{more}."


def _wrong(found: RecoveredWord, kin: str | None) -> str:
    near = f", of one stem with {plain(kin)}" if kin else ""
    return f"{plain(found.word)} ({found.score:.2f}{near})"


def command_of(attack: str, text: str) -> str:
    """Return the command that reads a text by the settings in force."""
    return invert_command(text, attack, dict(answers.request_for(attack, text).spec.settings))


def _row(reading: Reading) -> tuple[str, ...]:
    entry = INVERSION_ATTACKS[reading.attack]
    is_scored = bool(reading.targets)
    return (
        entry.title,
        f"{reading.n_recovered} of {len(reading.targets)}" if is_scored else "–",
        str(len(reading.wrong)),
        f"{reading.scores.f1:.0f}" if is_scored else "–",
        f"{reading.prior.f1:.0f}" if is_scored else "–",
        entry.access.needs,
    )
