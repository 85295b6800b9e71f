"""Findings on names: how often surnames are recovered from news and from typed sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.names import name_attackers, name_map
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.findings.shared import attacker_facts, provenance_facts
from leakscope.core.formatting import format_rate, join_words
from leakscope.core.names.experiment import NOT_TESTABLE
from leakscope.core.names.probing import KNOWLEDGE
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.studies.names import tables as names_tables
from leakscope.core.studies.names.tables import describe_counted, matrix_of

if TYPE_CHECKING:
    from leakscope.core.names.experiment import NameAttacker, NameExperiment

_MOST_NAMED = 4
"""Maximum number of surnames listed before `…`."""


def names() -> Finding:
    """Read the shipped rows; build the finding on how often surnames are recovered from news."""
    return names_in_news(names_tables.load_rows())


def names_in_news(rows: Sequence[Row], *, is_dark: bool = False) -> Finding:
    """Build the finding on how often surnames are recovered from news, from result rows.

    Parameters
    ----------
    is_dark : bool
        Whether the page's background is dark.

    Raises
    ------
    ArtifactError
        There is no row on names in news.
    """
    row = _first_row(rows, kind="substitution", domain="in", n_added=0)
    probe = _first_row(rows, kind="probing", knows="alone")
    if row is None or probe is None:
        raise ArtifactError(f"{names_tables.SHIPPED} contains no rows on names in news.")
    own, found = row.scores["diagonal"], probe.scores["hits_1"]
    return Finding(
        title=f"An attacker recovers the surname from {own.value:.0f} % of news sentences about "
        f"the {row['n_names']} people named most often",
        body=f"An attack recovered the surname from {describe_counted(own, 'sentences')}. It was "
        "trained on other documents of the same news, where each person is mentioned in "
        f"{min(row['training']):,} to {max(row['training']):,} sentences. An attacker with only "
        f"the encoder, and no training, picked the right one of {probe['n_candidates']} names in "
        f"{describe_counted(found, 'vectors')}.\n\nIn the figure, each row is the name in the "
        "sentences, and each column the name that replaced it. A cell shows how often the new name "
        "was recovered, in per cent. The number below a column's name shows how many training "
        "sentences contain it.",
        figure=name_map(
            row["people"],
            row["people"],
            matrix_of(row),
            notes=[f"{n:,}" for n in row["training"]],
            is_dark=is_dark,
        ),
        alt=f"How often each of {row['n_names']} surnames was recovered from news, by original "
        "name (rows) and inserted name (columns); no person is named",
        facts=(
            ("Data", "BBC News, sentences about people"),
            ("n", f"{own.n:,} sentences of {row['n_names']} people; {found.n:,} vectors"),
            ("Interval", "95 %"),
            *attacker_facts(row["attack"], int(row["n_fitted_on"])),
            *provenance_facts(r.provenance for r in rows),
        ),
        commands=(command_of("names"),),
    )


def _first_row(rows: Sequence[Row], **facts: Any) -> Row | None:
    """Return the first result row whose facts have the given values; None without one."""
    return next(iter(ResultTable(rows).where(**facts)), None)


def describe_dependence(rows: Sequence[Row]) -> str:
    """Explain that sentences about one person are not independent; "" if not in the rows."""
    few = _first_row(rows, kind="substitution", domain="in")
    if few is None:
        return ""
    shares = [
        100 * found[i] / n
        for i, (found, n) in enumerate(zip(few["found"], few["n_sentences"], strict=True))
    ]
    return (
        f"The {few.scores['diagonal'].n} news sentences are about {few['n_names']} people. "
        "Sentences about one person are not independent of each other, so the interval covers "
        "these sentences, not people in general. Depending on the person, the surname was "
        f"recovered from {min(shares):.0f} % to {max(shares):.0f} % of the sentences."
    )


def names_in_sentences(
    found: NameExperiment,
    attack: str,
    record: Mapping[str, Any] | None = None,
    news: Sequence[Row] = (),
) -> Finding:
    """Build the finding on whether attackers recover the names in sentences a user typed.

    Parameters
    ----------
    attack : str
        The inversion attack, which has no list of names.
    record : mapping, optional
        The record of its training.
    news : sequence of Row, optional
        The shipped rows on names in news, where the lists of names are longer.
    """
    attackers, best = found.attackers(), found.strongest()
    n_texts, n_names = len(found.substitution.texts), len(found.substitution.names)
    n_probed = len({sentence for sentence, _ in found.probed})
    record = dict(record or {})
    sentences = f"{n_texts} sentence{'s' * (n_texts > 1)}"
    return Finding(
        title=_title(best, n_names, n_probed),
        body="\n\n".join(
            filter(
                None,
                (
                    _describe_strongest(best, attack, n_probed, n_texts * n_names),
                    _describe_lists(attackers, best, news),
                    _describe_without_list(found, best, attack),
                ),
            )
        ),
        figure=name_attackers(attackers),
        alt=_attackers_alt(attackers),
        facts=(
            ("Data", f"{sentences}, each with {n_names} names"),
            ("n", sentences),
            ("Interval", "95 %"),
            *attacker_facts(attack, int(record.get("n_texts", 0)), record),
        ),
        commands=("none: typed sentences can be tested only on the page",),
    )


def describe_substitution(found: NameExperiment, attack: str) -> str:
    """Describe how often names are recovered when each name is put into each sentence."""
    matrix = found.substitution
    text = (
        f"Every name is inserted into every sentence, and the {_attack_title(attack)} attacks each "
        "vector."
    )
    other = matrix.exchanged(found.is_testable)
    if not other.n:
        return text
    n_other = int(matrix.is_recovered[~matrix.is_own & found.is_testable].sum())
    return (
        f"{text} It recovered surnames that replaced the original one from "
        f"{format_rate(other, 'vectors', count=n_other, is_bold=True)}. It named a listed surname "
        "that the sentence does not contain in "
        f"{format_rate(matrix.false_alarms(), 'cases', decimals=1)}."
    )


def _title(best: NameAttacker, n_names: int, n_sentences: int) -> str:
    """Return the headline on how often the best attacker recovered the name."""
    if best.rate.value <= best.rate.chance:
        return "No attacker found the name more often than guessing"
    many = f"vector{'s' * (best.n_asked > 1)}"
    doubt = "" if best.beats_guessing else ", too few to rule out guessing"
    if n_sentences == 1:
        doubt = ", all from one sentence; other sentences may differ"
    found = f"{best.n_found} of {best.n_asked} {many}"
    if not best.knows:
        return f"An attacker recovered the surname from {found}{doubt}"
    return f"From {found}, an attacker with a list of {n_names} names picked the right one{doubt}"


def _describe_strongest(best: NameAttacker, attack: str, n_sentences: int, n_all: int) -> str:
    """Describe the recovery rate of the strongest attacker, chance, and what it knows.

    Parameters
    ----------
    n_all : int
        The number of sentences with each name, from which vectors were drawn.
    """
    rate = format_rate(best.rate, "vectors", count=best.n_found, is_bold=True)
    if not best.knows:
        return (
            "**Without a list of names**, an attack (the "
            f"{_attack_title(attack)}) recovered the surname from {rate}. No other tested attacker "
            "found more."
        )
    text = f"This attacker found the name in {rate}; guessing finds {best.rate.chance:.0f} %."
    if not best.beats_guessing and n_sentences > 1:
        text += " That is not significantly more than guessing. Test more sentences."
    drawn = "" if best.n_asked == n_all else f" (drawn from {n_all:,})"
    made = f"The vectors{drawn} are those of the sentences with each of the names."
    return f"{text} {made} {KNOWLEDGE[best.knows].assumes}"


def _describe_lists(
    attackers: Sequence[NameAttacker], best: NameAttacker, news: Sequence[Row]
) -> str:
    """Compare the strongest attacker with the others and with a longer name list; "" if neither."""
    if not best.knows:
        return ""
    others = [one for one in attackers if one.knows and one.knows != best.knows]
    is_equal = best.knows == "alone" and all(one.n_found == best.n_found for one in others)
    text = (
        "Attackers who know more (recovered words, or the rest of the sentence) found it as often."
        if is_equal
        else "No other tested attacker found more."
    )
    probe = _first_row(news, kind="probing", knows="alone")
    if not best.beats_guessing:
        return text
    text += " A short list makes this easy."
    if probe is None:
        return text
    rate = describe_counted(probe.scores["hits_1"], "vectors")
    n = probe["n_candidates"]
    return (
        f"{text} On news, an attacker with a list of {n} names found the right one in {rate}; "
        f"guessing finds {100 / n:.1f} %."
    )


def _describe_without_list(found: NameExperiment, best: NameAttacker, attack: str) -> str:
    """Describe recovery without a list of names, and which names are not testable."""
    n, n_known = len(found.training_counts), int(found.is_testable.sum())
    words = found.attackers()[0]
    missing = [
        name.surname
        for name, can in zip(found.substitution.names, found.is_testable, strict=True)
        if not can
    ]
    if not words.is_testable:
        return (
            f"Without a list, the surnames are **{NOT_TESTABLE}** (the {_attack_title(attack)}), "
            "because it can name none of them. That is no evidence of safety."
        )
    text = ""
    if best.knows:
        is_own = found.substitution.is_own.any()
        of = "unchanged sentences with one of them" if is_own else "vectors with one of them"
        rate = format_rate(words.rate, of, count=words.n_found, is_bold=True)
        many = f"all {n}" if not missing else f"{n_known} of the {n}"
        text = (
            f"**Without a list**, an attack (the {_attack_title(attack)}) can name {many} "
            f"surnames. It recovered the surname from {rate}. "
        )
    if not missing:
        return text.strip() or f"This attack can name all {n} surnames."
    names = plain(join_words(missing))
    if len(missing) > _MOST_NAMED:
        names = plain(", ".join(missing[:_MOST_NAMED])) + ", …"
    are = "are" if len(missing) > 1 else "is"
    only = "" if text else f"It can name only {n_known} of the {n} surnames. "
    return (
        f"{text}{only}{names} {are} **{NOT_TESTABLE}** and not counted. That is no evidence of "
        "safety."
    )


def _attackers_alt(attackers: Sequence[NameAttacker]) -> str:
    """Describe the figure of attackers in words, for screen readers."""
    text = "; ".join(
        f"{KNOWLEDGE[one.knows].title.lower() if one.knows else 'no list of names'}: "
        + (f"{one.n_found} of {one.n_asked}" if one.is_testable else NOT_TESTABLE)
        for one in attackers
    )
    return f"How often each attacker finds the name, by what else the attacker knows: {text}"


def _attack_title(attack: str) -> str:
    """Return the readable title of a named attack, in lower case."""
    return INVERSION_ATTACKS[attack].title.lower()
