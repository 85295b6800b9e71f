"""A quick leakage and search test of any encoder on bundled texts, as a background job.

Everything is as small as a visitor waits for: the word probe, which learns nothing, on sentences
of news, and a search among their articles. It tells encoders apart, not how much the strongest
attack would read.
"""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.core.attacks.inversion.evaluation import evaluate, sample_texts
from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.corpora import load_corpus
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.protocols import OnProgress, no_progress, part_progress
from leakscope.core.results import Score
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.inversion.prepared import QUICK
from leakscope.core.tasks.outcomes import Hits
from leakscope.core.tasks.searches import SearchTask

AUXILIARY = "wikipedia"
"""The corpus with the attacker's vocabulary."""
TARGETS = "lee"
"""The corpus of the attacked sentences."""
N_AUXILIARY = 2000
N_TARGETS = 300


@dataclass(frozen=True, kw_only=True)
class OwnLeak:
    """An encoder's leakage to the word probe, and its quality in a search for articles.

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
    """Build a search task on bundled news: find the rest of an article by its first sentence."""
    sentences = load_corpus(TARGETS).sentences()
    parts: dict[str, list[str]] = {}
    for text, article in zip(sentences.texts, sentences.document_ids, strict=True):
        parts.setdefault(article, []).append(text)
    whole = [part for part in parts.values() if len(part) > 1]
    return SearchTask(
        "articles", tuple(part[0] for part in whole), tuple(" ".join(part[1:]) for part in whole)
    )


def measure_encoders(
    names: tuple[str, ...],
    n_targets: int = N_TARGETS,
    n_auxiliary: int = N_AUXILIARY,
    on_progress: OnProgress = no_progress,
) -> tuple[OwnLeak, ...]:
    """Load encoders by name; measure leakage and search quality on the same bundled texts.

    Parameters
    ----------
    names : tuple of str
        As `load_encoder` takes them: bundled, `st:ID`, `mlm:ID`, or what `fit` wrote
        (`tfidf:FOLDER`, `defended:FOLDER`).
    n_targets, n_auxiliary : int
        Sentences under attack, and sentences of the attacker, whose words the attack can name.

    Raises
    ------
    CoreError
        There is no such encoder, or it cannot be loaded.
    """
    known = sample_texts(load_corpus(AUXILIARY).sentences().texts, n_auxiliary, 0)
    targets = sample_texts(load_corpus(TARGETS).sentences().texts, n_targets, 0)
    searched = article_search()
    found = []
    for i, name in enumerate(names):

        def report(done: float, told: str, i: int = i, name: str = name) -> None:
            """Report the progress of one encoder as a fraction of that of all encoders."""
            on_progress((i + done) / len(names), f"{name} ({i + 1} of {len(names)}): {told}")

        report(0.0, "loading")
        encoder = shared_encoder(EncoderSpec(name=name))
        cached = CachedEncoder(encoder)
        attack = make_attack(QUICK).fit(cached, known, on_progress=part_progress(report, 0.0, 0.7))
        result = evaluate(attack, encoder, targets, on_progress=part_progress(report, 0.7, 0.9))
        report(0.9, "searching for articles")
        own = OwnLeak(
            encoder=name,
            dimension=encoder.dimension,
            f1=result.scores.score("token_set_f1", result.baseline.token_set_f1),
            recall=result.scores.recall,
            found=searched.outcome(cached, seed=0),
        )
        found.append(own)
    return tuple(found)
