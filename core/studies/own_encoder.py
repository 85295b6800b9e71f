"""What is read from any encoder, and whether it finds texts: work of a job, on texts that ship.

Everything is as small as a visitor waits for: the word probe, which learns nothing, on sentences
of news, and a search among their articles. It tells encoders apart, not how much the strongest
attack would read.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.attacks.inversion.evaluation import evaluate, sample_texts
from core.attacks.inversion.registry import make_attack
from core.corpora import load_corpus
from core.encoders.at_hand import encoder_at_hand
from core.encoders.cache import CachedEncoder
from core.protocols import OnProgress, no_progress
from core.results import Score
from core.specs import EncoderSpec
from core.studies.prepared import QUICK
from core.tasks.outcomes import Hits
from core.tasks.searches import SearchTask

__all__ = ["AUXILIARY", "N_AUXILIARY", "N_TARGETS", "TARGETS", "OwnLeak", "article_search",
           "measure_encoders"]  # fmt: skip

AUXILIARY = "wikipedia"
"""Whose words the attacker tries."""
TARGETS = "lee"
"""Whose sentences are attacked."""
N_AUXILIARY = 2000
N_TARGETS = 300


@dataclass(frozen=True, kw_only=True)
class OwnLeak:
    """What the word probe reads from an encoder, and what the encoder finds.

    Attributes
    ----------
    f1 : Score
        Token-set F1, with what guessing reaches as `chance`.
    recall : float
        Per cent of the words that were read.
    found : Hits
        Of the articles, which are found first, among all, by their first sentence.
    """

    encoder: str
    dimension: int
    f1: Score
    recall: float
    found: Hits


def article_search() -> SearchTask:
    """Return the search for the rest of an article by its first sentence."""
    sentences = load_corpus(TARGETS).sentences()
    parts: dict[str, list[str]] = {}
    for text, article in zip(sentences.texts, sentences.document_ids, strict=True):
        parts.setdefault(article, []).append(text)
    whole = [part for part in parts.values() if len(part) > 1]
    return SearchTask(
        "articles", tuple(part[0] for part in whole), tuple(" ".join(part[1:]) for part in whole)
    )


def measure_encoders(
    names: tuple[str, ...], n_targets: int = N_TARGETS, on_progress: OnProgress = no_progress
) -> tuple[OwnLeak, ...]:
    """Measure encoders on the same sentences, by the same attack.

    Parameters
    ----------
    names : tuple of str
        As `load_encoder` takes them: bundled, `st:ID`, `mlm:ID`, or what `fit` wrote
        (`tfidf:FOLDER`, `defended:FOLDER`).

    Raises
    ------
    CoreError
        There is no such encoder, or it cannot be loaded.
    """
    known = sample_texts(load_corpus(AUXILIARY).sentences().texts, N_AUXILIARY, 0)
    targets = sample_texts(load_corpus(TARGETS).sentences().texts, n_targets, 0)
    searched = article_search()
    found = []
    for i, name in enumerate(names):

        def report(done: float, told: str, i: int = i, name: str = name) -> None:
            on_progress((i + done) / len(names), f"{name} ({i + 1} of {len(names)}): {told}")

        report(0.0, "loading")
        encoder = encoder_at_hand(EncoderSpec(name=name))
        cached = CachedEncoder(encoder)
        attack = make_attack(QUICK).fit(cached, known, on_progress=lambda f, m: report(0.7 * f, m))
        result = evaluate(
            attack, encoder, targets, on_progress=lambda f, m: report(0.7 + 0.2 * f, m)
        )
        f1 = result.scores.score("token_set_f1", result.baseline.token_set_f1)
        report(0.9, "searching for articles")
        own = OwnLeak(
            encoder=name,
            dimension=encoder.dimension,
            f1=f1,
            recall=result.scores.recall,
            found=searched.outcome(cached, seed=0),
        )
        found.append(own)
    return tuple(found)
