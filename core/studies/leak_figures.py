"""The leakage figure that each page shows for an encoder: on which texts, by which attacker.

The pages' figures differ because their texts and attackers differ. Every number is read
from the files that ship.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion import shipped
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import CoreError
from leakscope.core.formatting import describe_leak, format_recall
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import read_rows
from leakscope.core.storage.artifacts import META, read_record
from leakscope.core.studies.inversion import more_texts, representation_summary
from leakscope.core.studies.names import tables as names_tables
from leakscope.core.studies.tradeoff import summary as tradeoff_summary

F1 = "F1 of recovered wordsThe measure of most pages."

NEWS = "sentences of BBC News, a kind of text that the attack was not trained on"
"""The texts that the shipped attacks are measured on."""


@dataclass(frozen=True)
class LeakFigure:
    """A page's leakage figure without a defence: score, texts and attacker.

    Attributes
    ----------
    score : Score
        F1 of the recovered words; for the page Names, the share of names found.
    measure : str
        What the number is.
    recall : float or None
        Share of the words that were recovered, in per cent, if recorded.
    all_words : float or None
        F1 with words outside the vocabulary counted as missed, if recorded.
    texts, attacker, why : str
        What was attacked, by whom, and why the figure differs from other pages.
    """

    page: str
    score: Score
    measure: str
    texts: str
    attacker: str
    why: str
    recall: float | None = None
    all_words: float | None = field(default=None, kw_only=True)

    @property
    def leak(self) -> str:
        """The figure in words: recovered words of ten with F1, or the share of names found.

        The F1 over all words follows the F1 over the words in the vocabulary.
        """
        if self.measure == F1:
            leak = describe_leak(self.score, self.recall)
            every = "" if self.all_words is None else f", F1 of every word {self.all_words:.0f}"
            return f"{leak}{every}"
        return f"{self.score.format(0)} {self.measure}"


def leak_figures(encoder: str = "minilm") -> dict[str, LeakFigure]:
    """Read the shipped results; return a leakage figure by page, without pages whose files fail."""
    found = {}
    for make in (
        _overview_figure,
        _inversion_figure,
        _representations_figure,
        _names_figure,
        _tradeoff_figure,
    ):
        try:
            figure = make(encoder)
        except (CoreError, KeyError, TypeError, ValueError, StopIteration):
            continue
        found[figure.page] = figure
    return found


def recalls(encoder: str = "minilm", attack: str = "probe_mlc") -> dict[str, float]:
    """Read a shipped attack's recall of names and numbers on news, by title; may be empty."""
    try:
        facts = _news_row(encoder, attack).facts
    except (CoreError, StopIteration):
        return {}
    titles = ("names and numbers", "numbers alone", "rare words")
    return {
        title: float(facts[name])
        for title, name in zip(titles, more_texts.RECALLS, strict=True)
        if isinstance(facts.get(name), float)
    }


def all_words_f1(row: Row) -> float | None:
    """Return a row's F1 with unknown words counted as missed; None if not recorded."""
    score = row.scores.get("unrestricted_f1")
    return None if score is None else score.value


def recall_of(row: Row) -> float | None:
    """Return a row's recall of words in per cent; None if not recorded."""
    recall = row.scores.get("recall")
    return None if recall is None else recall.value


def _attack_title(attack: str) -> str:
    """Return the title of an inversion attack, given by its name, in lower case."""
    return INVERSION_ATTACKS[attack].title.lower()


def _describe_training(attack: str, n_texts: int) -> str:
    """Format an attack's title with the number of sentences that it was trained on."""
    return f"{_attack_title(attack)}, trained on {n_texts:,} sentences"


def _news_row(encoder: str, attack: str) -> Row:
    """Read the shipped row of an attack on news sentences, trained on other kinds of texts."""
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    asked = {"encoder": encoder, "domain": "cross", "attack": attack}
    rows = read_rows(path, more_texts.STUDY)
    return next(row for row in rows if all(row[key] == value for key, value in asked.items()))


def _overview_figure(encoder: str) -> LeakFigure:
    """Read the overview's figure: the best shipped attack on its held-out sentences."""
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
        f"{score.n:,} held-out sentences, of the kinds that the attack was trained on",
        _describe_training(attack, records[attack]["n_texts"]),
        "the easiest texts for the attack: encyclopaedia, novels and everyday sentences, like its "
        "training texts",
        records[attack]["held_out"].get("recall"),
        all_words=records[attack]["held_out"].get("unrestricted_f1"),
    )


def _inversion_figure(encoder: str) -> LeakFigure:
    """Read the inversion page's figure: the search attack on news sentences."""
    row, quick = _news_row(encoder, "search"), _news_row(encoder, "probe_mlc")
    score = row.scores["token_set_f1"]
    return LeakFigure(
        "inversion",
        score,
        F1,
        f"{score.n:,} {NEWS}",
        _describe_training("search", row["n_fitted_on"]),
        "the strongest shipped attack, on a kind of text that it was not trained on; the "
        "probe-started classifier recovers "
        f"{format_recall(quick.scores['token_set_f1'], recall_of(quick))} of the same sentences",
        recall_of(row),
        all_words=all_words_f1(row),
    )


def _representations_figure(encoder: str) -> LeakFigure:
    """Read the figure of the representations page: the strongest cross-domain attack."""
    found = representation_summary.load_representations()
    own = [
        leak
        for (name, _, domain), leak in found.leaks.items()
        if (name, domain) == (encoder, "cross")
    ]
    near = [
        leak for (name, _, domain), leak in found.leaks.items() if (name, domain) == (encoder, "in")
    ]
    most = max(own, key=lambda leak: leak.f1.value)
    at_home = max(near, key=lambda leak: leak.f1.value)
    return LeakFigure(
        "representations",
        most.f1,
        F1,
        f"{most.f1.n:,} {NEWS}",
        _describe_training(most.attack, most.n_fitted_on),
        "all attacks are trained on the same few texts, so that encoders can be compared; trained "
        f"on {at_home.n_fitted_on:,} sentences of other news, the attack recovers "
        f"{format_recall(at_home.f1, at_home.recall)}",
        most.recall,
        all_words=most.all_words,
    )


def _names_figure(encoder: str) -> LeakFigure:
    """Read the names page's figure: the share of names found in a list."""
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
        f"% of names, found in a list of {n}",
        f"{score.n:,} vectors of BBC News, each with one of {n} names",
        f"attacker who has the list and encodes each name alone (guessing finds {100 / n:.1f} %)",
        f"it looks for one name per sentence; without a list, the {_attack_title(words['attack'])}"
        f", not trained on these names, recovers {words.scores['diagonal'].parts(0)[0]} % of the "
        f"surnames (95 % CI {words.scores['diagonal'].parts(0)[1]})",
    )


def _tradeoff_figure(encoder: str) -> LeakFigure:
    """Read the trade-off's figure: the strongest attacker without a defence."""
    found = tradeoff_summary.shipped_tradeoff()
    n_texts, n_targets = found.facts["n_auxiliary"], found.facts["n_targets"]
    score, every = found.undefended.leakage, found.undefended.leakage_of_all_words
    times = score.n / n_targets
    under = f" (for each of {times:.0f} random seeds)" if times > 1 and times.is_integer() else ""
    return LeakFigure(
        "tradeoff",
        score,
        F1,
        f"{n_targets:,} held-out sentences{under}, without a defence",
        f"strongest attacker who knows the defence, trained on {n_texts:,} sentences",
        "attackers are trained again for every defence, which limits the number of texts",
        all_words=None if every is None else every.value,
    )
