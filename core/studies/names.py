"""Names of people: substituted for each other, recovered, and probed for (Corò 2022, §5.2.3).

Reproduces Tables 5.6 and 5.7 for whatever names are given or found, with the training sentences
that hold each name beside them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.prior import PriorAttack
from core.attacks.registry import ATTACKS, make_attack
from core.corpora import Columns, load_corpus
from core.errors import InvalidInputError
from core.names.augmentation import sentences_with_names
from core.names.discovery import find_names, names_of_column
from core.names.matching import put_name
from core.names.person import PersonName, parse_names
from core.names.probing import probe_names
from core.names.rates import Rate
from core.names.sentences import NamedSentence, sentences_of
from core.names.substitution import Substitution, substitute_names
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from core.specs import AttackSpec, settings_of
from core.studies.domains import DOMAINS, Domain, content_of, open_domain, open_encoder
from core.studies.names_tables import anonymised, markdown
from core.studies.runner import Cell, cell_key, run_cells
from core.text import word_set

__all__ = ["NameStudy", "markdown", "measure", "run"]

_MOST_FOUND = 400
_MOST_PROBED = {"sentence": 200, "recovered": 60, "alone": 200}
"""Vectors asked of each `KNOWLEDGE`; one with its recovered words is as many texts to encode as
there are candidates."""


@dataclass(frozen=True, kw_only=True)
class NameStudy:
    """What to measure.

    Parameters
    ----------
    target, other : str
        The attacked collection, and the one that the cross-domain attacker has.
    names : tuple of str
        One a person, the most interesting first; found in the collection where empty.
    sizes : tuple of int
        How many of them are substituted for each other; a matrix each. As many as the greatest,
        further down the list, are probed for: they are kept out of training.
    name_sentences : tuple of int
        Training sentences into which the names were put: what an attacker does who is after them.
    n_targets : int
        Sentences of a matrix, the same number of each name; at most 200 of them are probed.
    held_share : float
        Share of the documents that are attacked.
    label_column : str
        Section of a document, where the collection has it: names of one section, and of two.
    is_anonymous : bool
        Write `name 1`, `name 2`, … instead of the names.
    """

    target: str
    other: str = "wikipedia"
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (4, 40)
    name_sentences: tuple[int, ...] = (0, 4000)
    encoders: tuple[str, ...] = ("minilm",)
    attacks: tuple[str, ...] = ("probe_mlc",)
    domains: tuple[str, ...] = tuple(DOMAINS)
    n_auxiliary: int = 40_000
    n_targets: int = 300
    held_share: float = 0.2
    label_column: str = "label_name"
    seeds: tuple[int, ...] = (0,)
    attack_settings: tuple[tuple[str, Any], ...] = ()
    is_anonymous: bool = True

    def cells(self) -> list[Cell]:
        """Return what is to be measured: an attack is trained for each."""
        shared = {"study": "names", "target": self.target, "other": self.other,
                  "contents": [content_of(self.target), content_of(self.other)],
                  "names": list(self.names), "sizes": list(self.sizes),
                  "n_auxiliary": self.n_auxiliary, "n_targets": self.n_targets,
                  "held_share": self.held_share, "label": self.label_column}  # fmt: skip
        return [
            {**shared, "encoder": encoder, "attack": attack, "domain": domain,
             "name_sentences": n, "seed": seed,
             "settings": {k: v for k, v in self.attack_settings if k in _known(attack)}}
            for domain in self.domains
            for encoder in self.encoders
            for attack in self.attacks
            for n in self.name_sentences
            for seed in self.seeds
        ]  # fmt: skip


def _known(attack: str) -> set[str]:
    return set(settings_of(ATTACKS[attack].kind))


def run(
    study: NameStudy, folder: Path, *, n_jobs: int = 1, on_progress: OnProgress = no_progress
) -> list[dict[str, Any]]:
    """Return a row for each matrix and each way to probe; see `run_cells`."""
    rows = run_cells(study.cells(), measure, folder, n_jobs=n_jobs, on_progress=on_progress)
    return anonymised(rows) if study.is_anonymous else rows


def measure(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """Train the attack, without the names that are probed for, and measure matrices and probes."""
    names = ("target", "other", "domain", "n_auxiliary", "seed", "held_share")
    place = {name: cell[name] for name in names}
    domain = open_domain(**place, n_targets=10**9)
    inside = open_domain(**(place | {"domain": "in"}), n_targets=10**9)
    seen, unseen = choose_names(cell, inside)
    known = _without(domain.auxiliary, unseen)
    added = sentences_with_names(known, seen, cell["name_sentences"], seed=cell["seed"])
    fit_on = place | {"without": [name.surname for name in unseen]}
    encoder = open_encoder(cell["encoder"], fit_on, lambda: known, folder)
    settings = dict(cell["settings"])
    if "seed" in _known(cell["attack"]):
        settings["seed"] = cell["seed"]
    attack = make_attack(AttackSpec.of(cell["attack"], settings))
    checkpoint = folder / "training" / cell_key(cell)
    attack.fit(encoder, [*known, *added], checkpoint_dir=str(checkpoint))
    rows = []
    for size in cell["sizes"]:
        names_here = seen[:size]
        sentences = _drawn(sentences_of(domain.targets, names_here), cell)
        found = substitute_names(attack, encoder, sentences, names_here)
        counts = {"training": _counts(known, names_here), "added": _counts(added, names_here)}
        sections = _sections(cell, names_here)
        rows.append(_matrix_row(found, attack, encoder, sections, cell["seed"]) | counts)
    rows += _probing_rows(attack, encoder, domain.targets, seen, unseen, cell)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return [{"n_fitted_on": len(known), "n_added": len(added), **row} for row in rows]


def choose_names(
    cell: Cell, inside: Domain
) -> tuple[tuple[PersonName, ...], tuple[PersonName, ...]]:
    """Return the names that are substituted for each other, and those to be probed for.

    The former are those named in at least three sentences under attack; no surname of the latter
    shares a word with them.

    Raises
    ------
    InvalidInputError
        Too few of them.
    """
    size = max(cell["sizes"])
    texts = [*inside.auxiliary, *inside.targets]
    listed = parse_names(cell["names"]) if cell["names"] else ()
    listed = listed or names_of_column(Path(cell["target"]), _MOST_FOUND)
    if not listed:
        # The thesis's choice: those that most sentences name, if only by the surname.
        listed = find_names(texts, _MOST_FOUND)
        everywhere = _counts(texts, listed)
        order = np.argsort([-n for n in everywhere], kind="stable")
        listed = tuple(listed[i] for i in order)
    counts = Counter(s.name for s in sentences_of(inside.targets, listed))
    seen = tuple(name for name in listed if counts[name] >= 3)[:size]
    if len(seen) < size:
        raise InvalidInputError(
            f"{len(seen)} of {len(listed)} names stand in at least three of the "
            f"{len(inside.targets):,} sentences under attack; {size} are needed. Give other names "
            "(--names) or a larger collection."
        )
    taken = frozenset().union(*(name.words for name in seen))
    unseen = tuple(n for n in listed if n not in seen and not n.words & taken)[:size]
    return seen, unseen


def _without(texts: Sequence[str], names: Sequence[PersonName]) -> list[str]:
    """Return the texts in which no surname stands, in whatever case."""
    held = [(text, word_set(text)) for text in texts]
    return [text for text, words in held if not any(name.words <= words for name in names)]


def _drawn(sentences: Sequence[NamedSentence], cell: Cell) -> list[NamedSentence]:
    """Return at most the same number of sentences of every name, drawn at random."""
    rng = np.random.default_rng([cell["seed"], 9])
    names = list(dict.fromkeys(s.name for s in sentences))
    most = max(3, cell["n_targets"] // len(names))
    drawn: list[NamedSentence] = []
    for name in names:
        own = [s for s in sentences if s.name == name]
        kept = sorted(rng.permutation(len(own))[:most])
        drawn += [own[i] for i in kept]
    return drawn


def _counts(texts: Sequence[str], names: Sequence[PersonName]) -> list[int]:
    """Return how many texts hold each surname."""
    found = Counter(sentence.name for sentence in sentences_of(texts, names))
    return [found[name] for name in names]


def _sections(cell: Cell, names: Sequence[PersonName]) -> list[str | None]:
    """Return the section in which each name stands most often; None where none is told."""
    path = Path(cell["target"])
    try:
        corpus = load_corpus(path, columns=Columns(text="text", label=cell["label"]))
    except InvalidInputError:
        return [None] * len(names)
    sentences = corpus.sentences()
    labels: dict[PersonName, Counter[str]] = {name: Counter() for name in names}
    label_of = dict(zip(sentences.texts, sentences.labels, strict=True))
    for sentence in sentences_of(sentences.texts, names):
        labels[sentence.name][str(label_of[sentence.text])] += 1
    return [labels[name].most_common(1)[0][0] for name in names]


def _matrix_row(
    found: Substitution,
    attack: InversionAttack,
    encoder: Encoder,
    sections: Sequence[str | None],
    seed: int,
) -> dict[str, Any]:
    """Return a matrix with its sums, and the same of the attacker who never sees the vector."""
    names = found.names
    vocabulary = attack.vocabulary_  # type: ignore[attr-defined]
    prior = PriorAttack().fit_vocabulary(encoder, vocabulary)
    guess = prior.invert(encoder, np.zeros((1, encoder.dimension), np.float32))[0].word_set
    own = [sentence.name for sentence in found.sentences]
    section = dict(zip(names, sections, strict=True))
    is_same = np.array([[section[name] == section[k] for k in names] for name in own])
    read = [[int(found.read[found.rows_of(row), j].sum()) for j in range(len(names))]
            for row in names]  # fmt: skip
    row: dict[str, Any] = {
        "kind": "substitution",
        "n_names": len(names),
        "people": [name.full for name in names],
        "sections": list(sections),
        "in_vocabulary": [name.words <= vocabulary.index.keys() for name in names],
        "n_sentences": [len(found.rows_of(name)) for name in names],
        "found": read,
        "diagonal": found.diagonal().to_dict(),
        "exchanged": found.exchanged(seed=seed).to_dict(),
        "wrongly_said": found.wrongly_said(seed=seed).to_dict(),
        "ranked_first": found.ranked_first().to_dict(),
        "prior": Rate.of(sum(name.words <= guess for name in own), len(own)).to_dict(),
    }
    if None not in sections:
        row["same_section"] = found.exchanged(is_same, seed=seed).to_dict()
        row["other_section"] = found.exchanged(~is_same, seed=seed).to_dict()
    return row


def _probing_rows(
    attack: InversionAttack,
    encoder: Encoder,
    targets: Sequence[str],
    seen: Sequence[PersonName],
    unseen: Sequence[PersonName],
    cell: Cell,
) -> list[dict[str, Any]]:
    """Put a name that nobody trained on into each sentence and ask which of them it is."""
    if len(unseen) < 2:
        return []
    rng = np.random.default_rng([cell["seed"], 10])
    drawn = _drawn(sentences_of(targets, seen), cell)
    sentences = [
        drawn[i] for i in sorted(rng.permutation(len(drawn))[: max(_MOST_PROBED.values())])
    ]
    truth = rng.integers(len(unseen), size=len(sentences))
    # In full every time: the attackers below know the surname alone.
    whole = [PersonName(name.full) for name in unseen]
    written = [put_name(s.text, s.name, whole[i]) for s, i in zip(sentences, truth, strict=True)]
    vectors = encoder.encode(written)
    answers = attack.invert(encoder, vectors)
    rows = []
    for knows, most in _MOST_PROBED.items():
        part = sorted(rng.permutation(len(sentences))[:most])
        found = probe_names(
            knows,
            encoder,
            [sentences[i] for i in part],
            vectors[part],
            truth[part].tolist(),
            unseen,
            answers=[answers[i] for i in part],
        )
        rows.append({
            "kind": "probing", "knows": knows, "n_candidates": len(unseen),
            "people": [name.full for name in unseen],
            "hits_1": found.hits(1).to_dict(), "hits_5": found.hits(5).to_dict(),
        })  # fmt: skip
    return rows
