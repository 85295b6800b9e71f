"""The paragraph study: leakage of a paragraph's vector and its sentences' (C22 Table 5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.evaluation import restrict
from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.corpora import Corpus, Paragraph
from leakscope.core.corpora.near_duplicates import THRESHOLD
from leakscope.core.corpora.passages import gather_paragraphs
from leakscope.core.encoders.registry import FITTED_ON_TEXTS
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.errors import InvalidInputError
from leakscope.core.metrics import score_words
from leakscope.core.protocols import Encoder, InversionAttack
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.studies.decontaminate import drop_near_duplicates, near_duplicate_setting
from leakscope.core.studies.domains import (
    DOMAINS,
    check_contents,
    check_documents,
    content_of,
    encoder_settings,
    open_corpus,
    open_encoder,
)
from leakscope.core.studies.inversion.cell_attacks import (
    describe_attack,
    fit_attack,
    score_row,
    settings_for,
)
from leakscope.core.text import Vocabulary


@dataclass(frozen=True)
class Passages:
    """Auxiliary sentences and paragraphs of the same articles, and the target paragraphs.

    Parameters
    ----------
    sentences, paragraphs : tuple of str
        Auxiliary articles, cut into sentences, and the same joined to paragraphs.
    targets : tuple of Paragraph
        Under attack; none of their sentences is known, not even nearly.
    n_near_duplicates : int
        Sentences that were left out of them: they nearly repeat one that is known.
    """

    sentences: tuple[str, ...]
    paragraphs: tuple[str, ...]
    targets: tuple[Paragraph, ...]
    n_near_duplicates: int = 0


@lru_cache(maxsize=4)
def open_passages(
    target: str,
    other: str,
    domain: str,
    n_auxiliary: int,
    n_targets: int,
    seed: int,
    n_words: tuple[int, int] = (128, 168),
    near: float = THRESHOLD,
) -> Passages:
    """Draw auxiliary articles and target paragraphs of a domain; targets are the same for both.

    Parameters
    ----------
    n_auxiliary : int
        Number of known sentences: whole articles are drawn until it is reached.
    n_targets : int
        Paragraphs drawn; all where there are fewer.
    n_words : pair of int
        Least and greatest length of a paragraph.
    near : float
        From where on a sentence nearly repeats another; see
        `leakscope.core.corpora.near_duplicates`.

    Raises
    ------
    InvalidInputError
        No such domain, or articles too short for paragraphs.
    """
    if domain not in DOMAINS:
        raise InvalidInputError(f"domain must be one of {', '.join(DOMAINS)}, got {domain!r}.")
    known, held = open_corpus(target).split_by_document((0.9, 0.1), seed=seed)
    known_sentences = known.sentences()
    is_same = content_of(other) == content_of(target)  # then only the other articles are known
    others = () if is_same else open_corpus(other).texts
    texts = (*known_sentences.texts, *others)
    apart = drop_near_duplicates(held.sentences(), texts, near)
    targets = gather_paragraphs(apart.sentences, *n_words)
    is_own = domain == "in" or is_same
    drawn = _draw_articles(known if is_own else open_corpus(other), n_auxiliary, seed)
    paragraphs = drawn.paragraphs(*n_words)
    if not targets or not paragraphs:
        short = target if not targets else other if domain == "cross" else target
        raise InvalidInputError(
            f"{short} has no article long enough for paragraphs of {n_words[0]} to {n_words[1]} "
            "words. Give a corpus of whole articles."
        )
    rng = np.random.default_rng([seed, 8])
    rows = sorted(rng.permutation(len(targets))[:n_targets])
    return Passages(
        drawn.sentences().texts,
        tuple(paragraph.text for paragraph in paragraphs),
        tuple(targets[i] for i in rows),
        apart.n_near_duplicates,
    )


def _draw_articles(corpus: Corpus, n_sentences: int, seed: int) -> Corpus:
    """Sample documents with about n sentences in total, in corpus order."""
    counts = Counter(corpus.sentences().document_ids)
    names = list(counts)
    order = np.random.default_rng([seed, 7]).permutation(len(names))
    total = np.cumsum([counts[names[i]] for i in order])
    n_documents = int(np.searchsorted(total, n_sentences)) + 1
    chosen = {names[i] for i in order[:n_documents]}
    return replace(corpus, documents=tuple(d for d in corpus.documents if d.id in chosen))


READINGS = {
    "paragraph": "inverts the vector of the whole paragraph",
    "sentences": "inverts the vector of each sentence and combines the words",
}

PAPER = {
    ("tfidf", "in", "sentences"): (35.56, 87.38),
    ("hashing", "in", "sentences"): (34.98, 87.55),
    ("hashing", "in", "paragraphs"): (53.01, 81.66),
    ("lsa_tfidf", "in", "sentences"): (29.28, 60.09),
    ("lsa_hashing", "in", "sentences"): (28.00, 56.77),
    ("doc2vec", "in", "sentences"): (20.51, 52.41),
    ("minilm", "in", "sentences"): (22.83, 42.42),
    ("minilm", "in", "paragraphs"): (24.01, 25.60),
    ("tfidf", "cross", "sentences"): (31.12, 87.67),
    ("hashing", "cross", "sentences"): (31.50, 88.34),
    ("lsa_tfidf", "cross", "sentences"): (31.57, 70.64),
    ("lsa_hashing", "cross", "sentences"): (28.78, 67.48),
    ("doc2vec", "cross", "sentences"): (19.01, 55.01),
    ("minilm", "cross", "sentences"): (19.06, 41.42),
    ("minilm", "cross", "paragraphs"): (24.16, 29.63),
}
"""F1 of Corò (2022), Table 5.4, by what the attack was trained on, for each of READINGS, on Italian
news with MSP; its Sentence-BERT is compared with MiniLM."""


@dataclass(frozen=True, kw_only=True)
class ParagraphStudy:
    """Settings of the paragraph study: attacks trained on sentences and on paragraphs."""

    target: str = setting(REQUIRED, "file with the articles to study")
    other: str = setting("wikipedia", "cross-domain corpus")
    encoders: tuple[str, ...] = setting((*FITTED_ON_TEXTS, "minilm"), "names of encoders")
    attacks: tuple[str, ...] = setting(("msp",), "names of attacks")
    domains: tuple[str, ...] = setting(
        tuple(DOMAINS), "domains of the attacker's texts", choices=tuple(DOMAINS)
    )
    trained_on: tuple[str, ...] = setting(
        ("sentences", "paragraphs"),
        "kind of training texts, from the same articles",
        choices=("sentences", "paragraphs"),
    )
    n_auxiliary: int = setting(40_000, "number of known sentences", low=1)
    n_targets: int = setting(500, "number of paragraphs to attack", low=1)
    near: float = near_duplicate_setting()
    n_words: tuple[int, int] = setting(
        (128, 168), "minimum and maximum words of a paragraph", low=1, flag="paragraph-words"
    )
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "setting of every attack that has it", flag="set"
    )

    def cells(self) -> list[Cell]:
        """Return one cell per domain, encoder, attack, kind of training texts and seed."""
        check_documents(self.target)
        return [
            {
                "study": "paragraphs",
                "target": self.target,
                "other": self.other,
                "contents": [content_of(self.target), content_of(self.other)],
                "encoder": encoder,
                "encoder_settings": encoder_settings(encoder),
                "attack": attack,
                "domain": domain,
                "trained_on": trained_on,
                "n_auxiliary": self.n_auxiliary,
                "n_targets": self.n_targets,
                "near": self.near,
                "n_words": list(self.n_words),
                "seed": seed,
                "settings": settings_for(attack, self.attack_settings),
            }
            for domain in self.domains
            for encoder in self.encoders
            for attack in self.attacks
            for trained_on in self.trained_on
            for seed in self.seeds
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Train a cell's attack, then attack whole paragraphs and their sentences; a row for each.

    Implements Corò (2022), §5.2.2: every reading is scored against the paragraph's word set.
    Differs from the paper: articles are split, not paragraphs, so that none lies on both sides;
    the words that count are those that the sentences of both domains hold; the prior-only
    attacker knows how often paragraphs contain each word.
    """
    check_contents(cell)
    names = ("target", "other", "n_auxiliary", "n_targets", "seed")
    place = {name: cell[name] for name in names} | {"n_words": tuple(cell["n_words"])}
    passages = open_passages(**place, domain=cell["domain"], near=cell["near"])
    fit_on = {**place, "domain": cell["domain"], "texts": "articles"}
    encoder = open_encoder(
        cell["encoder"], fit_on, lambda: passages.sentences, folder, contents=cell["contents"]
    )
    inside = open_passages(**place, domain="in", near=cell["near"])
    local, own = (Vocabulary.count(p.sentences) for p in (inside, passages))
    scope = restrict(local, own.index.keys())
    auxiliary = passages.sentences if cell["trained_on"] == "sentences" else passages.paragraphs
    attack = fit_attack(cell, encoder, auxiliary)
    prior = _prior_answer(encoder, passages, scope)
    facts = {
        "dimension": encoder.dimension,
        "n_fitted_on": len(auxiliary),
        "vocabulary_size": len(scope),
        "n_near_duplicates": passages.n_near_duplicates,
    }
    return [
        _score_reading(
            answers, read, passages, scope, prior, cell["seed"], {"read": reading, **facts}
        )
        for reading, answers, read in _attack_by_reading(attack, encoder, passages)
    ]


def _attack_by_reading(
    attack: InversionAttack, encoder: Encoder, passages: Passages
) -> Iterator[tuple[str, list[frozenset[str]], list[str]]]:
    """Attack by each reading; yield its name, words recovered per paragraph, texts encoded."""
    texts = [p.text for p in passages.targets]
    whole = attack.invert(encoder, encoder.encode(texts))
    yield "paragraph", [answer.word_set for answer in whole], parts_read(encoder, texts)
    sentences = [sentence for p in passages.targets for sentence in p.sentences]
    found = iter(attack.invert(encoder, encoder.encode(sentences)))
    yield (
        "sentences",
        [
            frozenset[str]().union(*(next(found).word_set for _ in p.sentences))
            for p in passages.targets
        ],
        [" ".join(parts_read(encoder, p.sentences)) for p in passages.targets],
    )


def _prior_answer(encoder: Encoder, passages: Passages, scope: Vocabulary) -> frozenset[str]:
    """Return the words that an attacker without vectors answers to every paragraph."""
    counted = restrict(Vocabulary.count(passages.paragraphs), scope.index.keys())
    attack = PriorAttack().fit_vocabulary(encoder, counted)
    return attack.invert(encoder, encoder.encode([passages.targets[0].text]))[0].word_set


def _score_reading(
    answers: Sequence[frozenset[str]],
    read: Sequence[str],
    passages: Passages,
    scope: Vocabulary,
    prior: frozenset[str],
    seed: int,
    facts: dict[str, Any],
) -> Row:
    """Score the recovered words of one reading against the paragraphs' words, as a row."""
    texts = [paragraph.text for paragraph in passages.targets]
    targets = [scope.targets(part) for part in read]
    documents = [paragraph.document_id for paragraph in passages.targets]
    judge = partial(score_words, texts=texts, groups=documents, seed=seed)
    scores = judge([a & scope.index.keys() for a in answers], targets)
    blind = judge([prior] * len(targets), targets)
    facts = {
        **facts,
        "n_sentences": sum(len(paragraph.sentences) for paragraph in passages.targets),
        "mean_words": float(np.mean([len(target) for target in targets])),
    }
    more = {"weighted_f1": scores.weighted_f1}
    return score_row(scores, blind.token_set_f1, more=more, facts=facts)


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table with the thesis's scores."""
    head = ("encoder", "attack", "domain", "trained on", "attacked")
    columns = (*head, *SCORE_COLUMNS, "prior F1", "C22, MSP")
    lines = markdown_table(columns, map(_table_cells, rows))
    return "\n".join(lines) + "\n"


_SAID = {"paragraph": "the paragraph's vector", "sentences": "its sentences' vectors"}


def _table_cells(row: Row) -> tuple[object, ...]:
    """Return the table cells of a row: setting, reading, scores and the thesis's figure."""
    head = (row["encoder"], describe_attack(row), row["domain"])
    if row.error:
        return (*head, row["trained_on"], "", *score_cells(row))
    theirs = PAPER.get((row["encoder"], row["domain"], row["trained_on"]))
    paper = f"{theirs[row['read'] == 'sentences']:.1f}" if theirs else ""
    trained_on = f"{n_fitted_on(row)} {row['trained_on']}"
    return (*head, trained_on, _SAID[row["read"]], *score_cells(row, "chance", then=[paper]))
