"""How much leaks, as each page shows it of one encoder: on which texts, to which attacker.

The pages' figures differ because their texts and their attackers do. Every number here is read
from the files that ship.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.attacks.inversion import shipped
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.errors import CoreError
from core.results import Score
from core.said import leak_said, read_said
from core.store import META, read_record
from core.studies import more_texts, names_tables, representation_summary, tradeoff_files
from core.studies.rows import Row
from core.studies.tables import read_rows

__all__ = ["LeakFigure", "all_words", "leak_figures", "recall_of", "recalls"]

F1 = "F1 of the words read"
"""The measure of most pages."""

NEWS = "sentences of BBC News, not a kind that the attack learnt from"
"""What the attacks that ship are measured on."""


@dataclass(frozen=True)
class LeakFigure:
    """A page's figure of what leaks without a defence.

    Attributes
    ----------
    score : Score
        F1 of the words that were read; of the page of names, the share of names that are picked.
    measure : str
        What the number is.
    recall : float or None
        Share of the words that were read, in per cent, where it was kept beside an F1.
    all_words : float or None
        F1 in which words that no attack can name count as missed, where it was kept.
    apart : mapping
        Share that is read of names and numbers, of numbers and of rare words, where it was kept.
    texts, attacker, why : str
        What was attacked, by whom, and why the figure is not that of another page.
    """

    page: str
    score: Score
    measure: str
    texts: str
    attacker: str
    why: str
    recall: float | None = None
    all_words: float | None = field(default=None, kw_only=True)
    apart: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    @property
    def said(self) -> str:
        """The figure in words: of ten words so many, and the F1; or the share of what is read.

        The F1 of every word stands beside that of the words that could be named.
        """
        if self.measure == F1:
            said = leak_said(self.score, self.recall)
            every = "" if self.all_words is None else f", F1 of every word {self.all_words:.0f}"
            return f"{said}{every}"
        return f"{self.score.said(0)} {self.measure}"


def leak_figures(encoder: str = "minilm") -> dict[str, LeakFigure]:
    """Return the figures by page; pages whose files are missing or damaged are left out."""
    found = {}
    for make in (_overview, _inversion, _representations, _names, _tradeoff):
        try:
            figure = make(encoder)
        except (CoreError, KeyError, TypeError, ValueError, StopIteration):
            continue
        found[figure.page] = figure
    return found


def recalls(encoder: str = "minilm", attack: str = "probe_mlc") -> dict[str, float]:
    """Return what the attack that ships reads of names and numbers on news, as far as measured."""
    try:
        return _apart(_news(encoder, attack).facts)
    except (CoreError, StopIteration):
        return {}


def _apart(told: Mapping[str, Any]) -> dict[str, float]:
    titles = ("names and numbers", "numbers alone", "rare words")
    return {
        title: float(told[name])
        for title, name in zip(titles, more_texts.RECALLS, strict=True)
        if isinstance(told.get(name), float)
    }


def all_words(row: Row) -> float | None:
    """Return the F1 of every word, those that no attack can name as missed, where it is kept."""
    score = row.scores.get("unrestricted_f1")
    return None if score is None else score.value


def recall_of(row: Row) -> float | None:
    """Return the per cent of the words that a row's attack reads, where the row keeps it."""
    recall = row.scores.get("recall")
    return None if recall is None else recall.value


def _title(attack: str) -> str:
    return INVERSION_ATTACKS[attack].title.lower()


def _taught(attack: str, n_texts: int) -> str:
    return f"{_title(attack)}, taught by {n_texts:,} sentences"


def _news(encoder: str, attack: str) -> Row:
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    asked = {"encoder": encoder, "domain": "cross", "attack": attack}
    rows = read_rows(path, more_texts.STUDY)
    return next(row for row in rows if all(row[key] == value for key, value in asked.items()))


def _overview(encoder: str) -> LeakFigure:
    weights = Path(shipped.WEIGHTS) / encoder
    records: dict[str, Mapping[str, Any]] = {
        name: read_record(weights / name / META, training=dict)["training"]
        for name in INVERSION_ATTACKS
        if (weights / name / META).exists()
    }
    held_out = {
        name: Score.of_record(record["held_out"], "token_set_f1", chance="prior_f1")
        for name, record in records.items()
        if record.get("held_out")
    }
    attack, score = max(held_out.items(), key=lambda item: item[1].value)
    return LeakFigure(
        "overview",
        score,
        F1,
        f"{score.n:,} sentences kept from the attack, of the kinds that it learnt from",
        _taught(attack, records[attack]["n_texts"]),
        "the easiest texts for the attack: an encyclopaedia, novels and everyday sentences, as "
        "those that it learnt from",
        records[attack]["held_out"].get("recall"),
        all_words=records[attack]["held_out"].get("unrestricted_f1"),
        apart=_apart(records[attack]["held_out"]),
    )


def _inversion(encoder: str) -> LeakFigure:
    row, quick = _news(encoder, "search"), _news(encoder, "probe_mlc")
    score = row.scores["token_set_f1"]
    return LeakFigure(
        "inversion",
        score,
        F1,
        f"{score.n:,} {NEWS}",
        _taught("search", row["n_fitted_on"]),
        "the strongest attack that ships, on texts that are strange to it; the probe-started "
        f"classifier reads {read_said(quick.scores['token_set_f1'], recall_of(quick))} of the same "
        "sentences",
        recall_of(row),
        all_words=all_words(row),
        apart=_apart(row.facts),
    )


def _representations(encoder: str) -> LeakFigure:
    found = representation_summary.load_representations()
    own = [leak for (name, _, domain), leak in found.leaks.items()
           if (name, domain) == (encoder, "cross")]  # fmt: skip
    near = [leak for (name, _, domain), leak in found.leaks.items()
            if (name, domain) == (encoder, "in")]  # fmt: skip
    most = max(own, key=lambda leak: leak.f1.value)
    at_home = max(near, key=lambda leak: leak.f1.value)
    return LeakFigure(
        "representations",
        most.f1,
        F1,
        f"{most.f1.n:,} {NEWS}",
        _taught(most.attack, most.n_fitted_on),
        "attacks learn from few texts, the same for every encoder, so that encoders can be "
        f"compared; taught by {at_home.n_fitted_on:,} sentences of other news, "
        f"{read_said(at_home.f1, at_home.recall)}",
        most.recall,
        all_words=most.all_words,
    )


def _names(encoder: str) -> LeakFigure:
    asked = (encoder, "cross", 0)
    rows = [
        row
        for row in read_rows(names_tables.SHIPPED, "names")
        if (row["encoder"], row["domain"], row["n_added"]) == asked
    ]
    picked = next(row for row in rows if row["kind"] == "probing" and row["knows"] == "alone")
    n = picked["n_candidates"]
    words = next(row for row in rows if row["kind"] == "substitution" and row["n_names"] == n)
    score = picked.scores["hits_1"]
    return LeakFigure(
        "names",
        score,
        f"% of names, picked from a list of {n}",
        f"{score.n:,} vectors of BBC News, each with one of {n} names",
        f"attacker who has the list and encodes each name alone (guessing finds {100 / n:.1f} %)",
        f"it looks for one name per sentence; without a list, the {_title(words['attack'])}, not "
        f"trained on these names, recovers {words.scores['diagonal'].said(0)} % of the surnames",
    )


def _tradeoff(encoder: str) -> LeakFigure:
    found = tradeoff_files.shipped_tradeoff(encoder)
    n_texts, n_targets = found.facts["n_auxiliary"], found.facts["n_targets"]
    score, every = found.undefended.leakage, found.undefended.leakage_of_all_words
    times = score.n / n_targets
    under = f" (under each of {times:.0f} seeds)" if times > 1 and times.is_integer() else ""
    return LeakFigure(
        "tradeoff",
        score,
        F1,
        f"{n_targets:,} sentences kept from the attacker{under}, without a defence",
        f"strongest of those who know the defence, taught by {n_texts:,} sentences",
        "attackers are taught anew for every defence, from as many texts as that allows",
        all_words=None if every is None else every.value,
    )
