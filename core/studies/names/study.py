"""The name study: people's names substituted, recovered, and probed for (Corò 2022, §5.2.3).

Reproduces Tables 5.6 and 5.7 for any names, and counts the training sentences with each name.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.shipped import load_attack, save_attack
from leakscope.core.corpora import Columns, load_corpus, split_reference
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.intervals import rate_by_document
from leakscope.core.names.augmentation import insert_names
from leakscope.core.names.discovery import find_names, names_in_column
from leakscope.core.names.person import PersonName, parse_names, replace_name
from leakscope.core.names.probing import probe_names
from leakscope.core.names.sentences import NamedSentence, sentences_with_listed_names
from leakscope.core.names.substitution import substitute_names
from leakscope.core.protocols import Encoder, InversionAttack, TrainedAttack
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.storage.artifacts import META
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.domains import (
    DOMAINS,
    Domain,
    check_contents,
    content_of,
    open_domain,
    open_encoder,
)
from leakscope.core.studies.inversion.cell_attacks import fit_attack, settings_for
from leakscope.core.studies.names.tables import anonymise_names
from leakscope.core.studies.names.tables import markdown as markdown
from leakscope.core.studies.runner import cell_key
from leakscope.core.text import word_set


@dataclass(frozen=True, kw_only=True)
class NameStudy:
    """Settings of the name study: names, attacks, encoders and numbers of sentences.

    The next names on the list, as many as the greatest of `sizes`, are probed for and kept out of
    training. At most 200 sentences are probed.
    """

    target: str = setting(REQUIRED, "the collection to attack, a file")
    other: str = setting("wikipedia", "the corpus that the cross-domain attacker has")
    names: tuple[str, ...] = setting(
        (), "people, most interesting first, or a file with one per line; default: found in texts"
    )
    sizes: tuple[int, ...] = setting((4, 40), "people in each matrix", low=1)
    name_sentences: tuple[int, ...] = setting(
        (0, 4000), "training sentences into which the names are inserted", low=0
    )
    encoders: tuple[str, ...] = setting(("minilm",), "encoders by name")
    attacks: tuple[str, ...] = setting(("probe_mlc",), "attacks by name")
    domains: tuple[str, ...] = setting(
        tuple(DOMAINS), "whose texts the attacker has", choices=tuple(DOMAINS)
    )
    n_auxiliary: int = setting(40_000, "sentences to train on", low=1)
    n_targets: int = setting(300, "sentences per matrix, equally many per name", low=1)
    near: float = near_duplicate_setting()
    held_share: float = setting(0.2, "share of the documents under attack", low=0.01, high=0.99)
    label_column: str = setting("label_name", "column of each document's section, if any")
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of every attack that has it", flag="set"
    )
    is_anonymous: bool = setting(True, "write name 1, name 2, …", flag="anonymous")

    def cells(self) -> list[Cell]:
        """Return, for each setting, one cell per matrix size and one for probing."""
        shared = {
            "study": "names",
            "target": self.target,
            "other": self.other,
            "contents": [content_of(self.target), content_of(self.other)],
            "names": list(_read_names(self.names)),
            "sizes": list(self.sizes),
            "n_auxiliary": self.n_auxiliary,
            "n_targets": self.n_targets,
            "near": self.near,
            "held_share": self.held_share,
            "label": self.label_column,
        }
        return [
            {
                **shared,
                "encoder": encoder,
                "attack": attack,
                "domain": domain,
                "name_sentences": n,
                "seed": seed,
                "part": part,
                "settings": settings_for(attack, self.attack_settings),
            }
            for domain in self.domains
            for encoder in self.encoders
            for attack in self.attacks
            for n in self.name_sentences
            for seed in self.seeds
            for part in ("probing", *map(str, self.sizes))
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows, with people's names replaced by numbers if `is_anonymous`."""
        return anonymise_names(rows) if self.is_anonymous else list(rows)


def _read_names(names: Sequence[str]) -> Sequence[str]:
    """Return the given names, or the lines of a single given file."""
    if len(names) == 1 and Path(names[0]).is_file():
        from leakscope.core.corpora.files import read_texts

        return read_texts(names[0])
    return names


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Load or train a setting's attack; measure the cell's matrix or probes, and return rows."""
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "seed", "held_share")
    place = {name: cell[name] for name in names}
    apart: dict[str, Any] = {"n_targets": 10**9, "near": cell["near"]}
    domain = open_domain(**place, **apart)
    inside = open_domain(**(place | {"domain": "in"}), **apart)
    seen, unseen = choose_names(cell, inside)
    known = without_names(domain.auxiliary, unseen)
    added = insert_names(known, seen, cell["name_sentences"], seed=cell["seed"])
    fit_on = place | {"without": [name.surname for name in unseen]}
    encoder = open_encoder(
        cell["encoder"], fit_on, lambda: known, folder, contents=cell["contents"]
    )
    attack = _fitted_attack(cell, encoder, [*known, *added], folder)
    if cell["part"] == "probing":
        rows = probing_rows(attack, encoder, domain, seen, unseen, cell)
    else:
        these = seen[: int(cell["part"])]
        rows = [matrix_row(attack, encoder, domain, these, cell)]
        counted = {"training": count_texts(known, these), "added": count_texts(added, these)}
        rows = [replace(row, facts={**row.facts, **counted}) for row in rows]
    shared = {
        "n_fitted_on": len(known),
        "n_added": len(added),
        "n_near_duplicates": domain.n_near_duplicates,
    }
    return [replace(row, facts={**shared, **row.facts}) for row in rows]


def _fitted_attack(
    cell: Cell, encoder: Encoder, texts: Sequence[str], folder: Path
) -> InversionAttack:
    """Load a setting's attack, or train it on texts without the probed names and save it."""
    key = cell_key({k: v for k, v in cell.items() if k != "part"})
    place = folder / "attacks" / key
    if (place / META).exists():
        with suppress(ArtifactError):  # damaged: it is trained again
            return load_attack(place)
    checkpoint = folder / "training" / key
    attack = fit_attack(cell, encoder, texts, checkpoint_dir=str(checkpoint))
    assert isinstance(attack, TrainedAttack)
    save_attack(attack, place)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return attack


_MOST_FOUND = 400
_MOST_PROBED = {"sentence": 40, "recovered": 40, "alone": 200}
"""Vectors attacked per `KNOWLEDGE`; `alone` encodes each candidate once, else once per vector."""


def choose_names(
    cell: Cell, inside: Domain
) -> tuple[tuple[PersonName, ...], tuple[PersonName, ...]]:
    """Choose names in the targets to substitute for each other, and further names to probe for.

    The former occur in at least three target sentences; no surname of the latter shares a word
    with them.

    Raises
    ------
    InvalidInputError
        Too few of them.
    """
    size = max(cell["sizes"])
    texts = [*inside.auxiliary, *inside.targets]
    listed = parse_names(cell["names"]) if cell["names"] else ()
    listed = listed or names_in_column(Path(split_reference(cell["target"])[0]), _MOST_FOUND)
    listed = listed or find_names(texts, _MOST_FOUND)
    counts = dict(zip(listed, count_texts(inside.targets, listed), strict=True))
    seen = tuple(name for name in listed if counts[name] >= 3)[:size]
    if len(seen) < size:
        raise InvalidInputError(
            f"{len(seen)} of {len(listed)} names occur in at least three of the "
            f"{len(inside.targets):,} sentences under attack; {size} are needed. Give other names "
            "(--names) or a larger collection."
        )
    taken = frozenset().union(*(name.words for name in seen))
    unseen = tuple(n for n in listed if n not in seen and not n.words & taken)[:size]
    return seen, unseen


def without_names(texts: Sequence[str], names: Sequence[PersonName]) -> list[str]:
    """Return the texts that contain none of the surnames, in any case."""
    held = [(text, word_set(text)) for text in texts]
    return [text for text, words in held if not any(name.words <= words for name in names)]


def _draw_sentences(sentences: Sequence[NamedSentence], cell: Cell) -> list[NamedSentence]:
    """Draw equally many of the given sentences for each name, at random."""
    rng = np.random.default_rng([cell["seed"], 9])
    names = list(dict.fromkeys(s.name for s in sentences))
    most = max(3, cell["n_targets"] // len(names))
    drawn: list[NamedSentence] = []
    for name in names:
        own = [s for s in sentences if s.name == name]
        kept = sorted(rng.permutation(len(own))[:most])
        drawn += [own[i] for i in kept]
    return drawn


def count_texts(texts: Sequence[str], names: Sequence[PersonName]) -> list[int]:
    """Count the texts that contain each surname."""
    found = Counter(sentence.name for sentence in sentences_with_listed_names(texts, names))
    return [found[name] for name in names]


def _find_sections(cell: Cell, names: Sequence[PersonName]) -> list[str | None]:
    """Read the collection; return the section in which each name is most frequent, or None."""
    path, column = split_reference(cell["target"])
    try:
        corpus = load_corpus(Path(path), columns=Columns(text=column, label=cell["label"]))
    except InvalidInputError:
        return [None] * len(names)
    sentences = corpus.sentences()
    labels: dict[PersonName, Counter[str]] = {name: Counter() for name in names}
    label_of = dict(zip(sentences.texts, sentences.labels, strict=True))
    for sentence in sentences_with_listed_names(sentences.texts, names):
        labels[sentence.name][str(label_of[sentence.text])] += 1
    return [labels[name].most_common(1)[0][0] for name in names]


def matrix_row(
    attack: InversionAttack,
    encoder: Encoder,
    domain: Domain,
    names: Sequence[PersonName],
    cell: Cell,
) -> Row:
    """Substitute names for each other in sentences, invert their vectors; return rates as a row."""
    drawn = _draw_sentences(
        sentences_with_listed_names(domain.targets, names, domain.documents), cell
    )
    found = substitute_names(attack, encoder, drawn, names)
    sections, seed = _find_sections(cell, names), cell["seed"]
    vocabulary = attack.vocabulary_  # type: ignore[attr-defined]
    prior = PriorAttack().fit_vocabulary(encoder, vocabulary)
    guess = prior.invert(encoder, np.zeros((1, encoder.dimension), np.float32))[0].word_set
    own = [sentence.name for sentence in found.sentences]
    section = dict(zip(names, sections, strict=True))
    is_same = np.array([[section[name] == section[k] for k in names] for name in own])
    read = [
        [int(found.is_recovered[found.rows_of_name(row), j].sum()) for j in range(len(names))]
        for row in names
    ]
    guessed = np.array([name.words <= guess for name in own], bool)
    scores = {
        "diagonal": found.diagonal(seed=seed),
        "exchanged": found.exchanged(seed=seed),
        "wrongly_said": found.false_alarms(seed=seed),
        "ranked_first": found.ranked_first(seed=seed),
        "prior": rate_by_document(guessed, found.units, seed=seed),
    }
    if None not in sections:
        scores["same_section"] = found.exchanged(is_same, seed=seed)
        scores["other_section"] = found.exchanged(~is_same, seed=seed)
    facts = {
        "kind": "substitution",
        "n_names": len(names),
        "people": [name.full for name in names],
        "sections": list(sections),
        "in_vocabulary": [name.words <= vocabulary.index.keys() for name in names],
        "n_sentences": [len(found.rows_of_name(name)) for name in names],
        "found": read,
        "found_between": [
            [_interval_ends(found.cell(a, b, seed=seed)) for b in names] for a in names
        ],
    }
    return Row(scores=scores, facts=facts)


def _interval_ends(score: Score) -> list[float] | None:
    """Return the ends of a score's interval as a list; None without an interval."""
    return [score.ci95.low, score.ci95.high] if score.has_interval else None


def probing_rows(
    attack: InversionAttack,
    encoder: Encoder,
    domain: Domain,
    seen: Sequence[PersonName],
    unseen: Sequence[PersonName],
    cell: Cell,
) -> list[Row]:
    """Insert unseen names into sentences; return a row of hits per attacker's knowledge."""
    if len(unseen) < 2:
        return []
    rng = np.random.default_rng([cell["seed"], 10])
    drawn = _draw_sentences(
        sentences_with_listed_names(domain.targets, seen, domain.documents), cell
    )
    most = max(_MOST_PROBED.values())
    sentences = [drawn[i] for i in sorted(rng.permutation(len(drawn))[:most])]
    truth = rng.integers(len(unseen), size=len(sentences))
    # Always the full name: the attackers below know only the surname.
    whole = [PersonName(name.full) for name in unseen]
    written = [
        replace_name(s.text, s.name, whole[i]) for s, i in zip(sentences, truth, strict=True)
    ]
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
        facts = {
            "kind": "probing",
            "knows": knows,
            "n_candidates": len(unseen),
            "people": [name.full for name in unseen],
        }
        scores = {f"hits_{k}": found.hits(k, seed=cell["seed"]) for k in (1, 5)}
        rows.append(Row(scores=scores, facts=facts))
    return rows
