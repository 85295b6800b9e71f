"""The encoder study: leakage of each encoder to each attack, in-domain and cross-domain.

Reproduces Corò (2022), Table 5.2 and Table A.2, and Song & Raghunathan (2020), Table 2, with
whatever encoders and attacks are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.evaluation import evaluate, restrict
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders.registry import FITTED_ENCODERS, FITTED_ON_TEXTS
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Access
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.domains import (
    DOMAINS,
    check_contents,
    check_documents,
    content_of,
    encoder_settings,
    open_domain,
    open_encoder,
)
from leakscope.core.studies.inversion.cell_attacks import (
    describe_attack,
    fit_attack,
    has_setting,
    score_row,
    scored_vocabulary,
    settings_for,
)
from leakscope.core.text import Vocabulary

PAPER = {
    "tfidf": (89.05, 85.20),
    "hashing": (89.33, 86.15),
    "lsa_tfidf": (59.40, 68.78),
    "lsa_hashing": (56.42, 65.97),
    "doc2vec": (49.56, 51.21),
    "minilm": (41.36, 39.53),
}
"""F1 of Corò (2022), Table 5.2, in-domain and cross-domain, on Italian news with MSP; its
Sentence-BERT is compared with MiniLM and with those fine-tuned here."""

PAPER_DUAL = {
    ("dual_lstm", "relaxation"): (56.74, None),
    ("dual_lstm", "sparse"): (59.98, 52.55),
    ("dual_lstm", "mlc"): (54.86, 47.86),
    ("dual_lstm", "msp"): (63.02, 60.83),
    ("dual_transformer", "relaxation"): (35.59, None),
    ("dual_transformer", "sparse"): (62.76, 57.08),
    ("dual_transformer", "mlc"): (39.47, 34.04),
    ("dual_transformer", "msp"): (54.63, 52.07),
}
"""F1 of Song & Raghunathan (2020), Tables 1 and 2, same and cross domain, every word counted; Eq. 5
uses no texts."""


@dataclass(frozen=True, kw_only=True)
class EncoderStudy:
    """Settings of the encoder study: each encoder under each attack that applies to it.

    `attack_settings` are given to every attack that has a setting of that name. Each of `variants`
    is measured besides, one setting at a time, on attacks that have it: with ("end_token", True),
    what [EOS] among the targets changes (C22, §A.1).
    """

    target: str = setting(REQUIRED, "file with the texts to study")
    other: str = setting("wikipedia", "cross-domain corpus")
    encoders: tuple[str, ...] = setting((*FITTED_ON_TEXTS, "minilm"), "names of encoders")
    attacks: tuple[str, ...] = setting(("probe", "mlc", "msp"), "names of attacks")
    domains: tuple[str, ...] = setting(
        tuple(DOMAINS), "domains of the attacker's texts", choices=tuple(DOMAINS)
    )
    sizes: tuple[int, ...] = setting(
        (40_000,),
        "numbers of sentences to train on; several make a curve",
        low=1,
        flag="n-auxiliary",
    )
    n_targets: int = setting(500, "number of sentences to attack", low=1)
    near: float = near_duplicate_setting()
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "setting of every attack that has it", flag="set"
    )
    variants: tuple[tuple[str, Any], ...] = setting(
        (), "setting to measure in addition (end_token=1)", flag="variant"
    )

    def settings_of(self, attack: str) -> dict[str, Any]:
        """Return those of the study's given settings that an attack has, by name."""
        return settings_for(attack, self.attack_settings)

    def cells(self) -> list[Cell]:
        """Return one cell per domain, encoder, applicable attack, variant, size and seed.

        Raises
        ------
        InvalidInputError
            None of the attacks applies to any of the encoders, or the target has too few documents.
        """
        check_documents(self.target)
        cells = self._applicable_cells()
        if not cells:
            readers = (name for name, entry in INVERSION_ATTACKS.items() if entry.reads_sparse)
            raise InvalidInputError(
                "No chosen attack applies to a chosen encoder. Attacks on sparse "
                f"vectors are {', '.join(readers)}; white-box attacks need token vectors, as in "
                "minilm or a dual encoder."
            )
        return cells

    def _applicable_cells(self) -> list[Cell]:
        """Return the cells of attacks that apply to their encoder; there may be none."""
        return [
            {
                "study": "representations",
                "target": self.target,
                "other": self.other,
                "contents": [content_of(self.target), content_of(self.other)],
                "encoder": encoder,
                "encoder_settings": encoder_settings(encoder),
                "attack": attack,
                "domain": domain,
                "n_auxiliary": size,
                "n_targets": self.n_targets,
                "near": self.near,
                "seed": seed,
                "settings": self.settings_of(attack) | dict(variant),
            }
            for domain in self.domains
            for encoder in self.encoders
            for attack in self.attacks
            if _applies(attack, encoder)
            for variant in [(), *((v,) for v in self.variants if has_setting(attack, v[0]))]
            for size in self.sizes
            for seed in self.seeds
        ]


def _applies(attack: str, encoder: str) -> bool:
    """Return whether an attack can run on an encoder, by its kind of vectors and its access."""
    family = FITTED_ENCODERS.get(encoder.partition(":")[0])
    if family is None:  # a model id: unknown until it is loaded
        return True
    if INVERSION_ATTACKS[attack].access is Access.WHITE_BOX and not family.is_white_box:
        return False
    return INVERSION_ATTACKS[attack].reads_sparse or not family.gives_sparse


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Fit a cell's encoder and attack on auxiliary texts, attack the targets; return a score row.

    Cross-domain scores count the words of both domains' vocabularies (Table 5.2); all words of
    the attack's own are counted in `own_vocabulary_f1` (Table A.2). Stop words count where the
    attack's settings keep them.
    """
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "n_targets", "seed")
    place = {name: cell[name] for name in names}
    domain = open_domain(**place, near=cell["near"])
    encoder = open_encoder(
        cell["encoder"], place, lambda: domain.auxiliary, folder, contents=cell["contents"]
    )
    attack = fit_attack(cell, encoder, domain.auxiliary)
    inside = open_domain(**(place | {"domain": "in"}), near=cell["near"]).auxiliary
    own: Vocabulary = attack.vocabulary_  # type: ignore[attr-defined]
    scope = restrict(scored_vocabulary(cell, inside), own.index.keys())
    result = evaluate(
        attack,
        encoder,
        domain.targets,
        seed=cell["seed"],
        vocabulary=scope,
        documents=domain.documents,
        name=Path(cell["target"]).stem,
    )
    # In-domain the two vocabularies are equal, so one evaluation suffices.
    is_same = len(scope) == len(own)
    wider = result if is_same else evaluate(attack, encoder, domain.targets, seed=cell["seed"])
    chosen = getattr(attack, "chosen_", None)
    facts = {
        "dimension": encoder.dimension,
        "n_fitted_on": len(domain.auxiliary),
        "vocabulary_size": result.vocabulary_size,
        "n_near_duplicates": domain.n_near_duplicates,
        **({"chosen": chosen} if chosen else {}),
    }
    more: dict[str, float | Score] = {
        "weighted_f1": result.scores.weighted_f1,
        "own_vocabulary_f1": wider.scores.token_set_f1,
        "unrestricted_f1": result.unrestricted,
    }
    return [score_row(result.scores, result.baseline.token_set_f1, more=more, facts=facts)]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table with the thesis's scores."""
    columns = ("encoder", "attack", "domain", "fitted on", *SCORE_COLUMNS)
    more = ("F1, every word", "F1, own words", "weighted F1", "prior F1", "paper")
    lines = markdown_table((*columns, *more), map(_table_cells, rows))
    lines += [
        "",
        "F1 counts words in the vocabularies of both domains (C22, Table 5.2); *own words* counts "
        "all words of the attacker's texts (Table A.2); *every word* also counts words outside "
        "them as missed. *Paper*: C22's MSP on Italian news, and S&R's dual encoders on novels.",
    ]
    return "\n".join(lines) + "\n"


def _table_cells(row: Row) -> tuple[object, ...]:
    """Return the table cells of a row: setting, scores and the paper's F1."""
    paper = _paper_f1(row["encoder"], row["attack"], row["domain"])
    scores = ("unrestricted_f1", "own_vocabulary_f1", "weighted_f1", "chance")
    head = (row["encoder"], describe_attack(row), row["domain"], n_fitted_on(row))
    return (*head, *score_cells(row, *scores, then=[paper]))


def _paper_f1(encoder: str, attack: str, domain: str) -> str:
    """Format the paper's F1 of an encoder, attack and domain; "" if it has none."""
    family = encoder.partition(":")[0]
    theirs = PAPER_DUAL.get((family, attack))
    if attack == "msp":
        theirs = PAPER.get("minilm" if family == "sbert" else encoder, theirs)
    found = theirs and theirs[domain == "cross"]
    return f"{found:.1f}" if found else ""
