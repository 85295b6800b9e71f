"""Inversion by encoder layer: Eq. 5 against Eq. 7 (Song & Raghunathan 2020, Fig. 2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from core.attacks.inversion.prior import PriorAttack
from core.attacks.inversion.relaxation import attack as relaxation
from core.attacks.inversion.sparse import attack as sparse
from core.encoders import load_encoder
from core.encoders.white_box import parts_read, require_white_box
from core.metrics import score_words
from core.protocols import InversionAttack, WhiteBoxEncoder
from core.specs import REQUIRED, EncoderSpec, setting
from core.studies.apart import near_setting
from core.studies.cell_attacks import score_row, settings_for
from core.studies.domains import (
    DOMAINS,
    Domain,
    check_contents,
    check_documents,
    content_of,
    open_domain,
)
from core.studies.rows import Cell, Row
from core.studies.tables import SCORE_COLUMNS, markdown_table, score_cells
from core.text import STOP_WORDS, Vocabulary, word_set

__all__ = ["EQUATIONS", "LayerStudy", "attack_layer", "markdown", "measure"]

EQUATIONS = {"Eq. 5": "relaxation", "Eq. 7": "sparse"}
"""Continuous relaxation, and sparse coding after a learned map to the mean of token vectors."""

USUAL: dict[str, dict[str, Any]] = {
    # The shortlist of the tuned settings rests on the last layer; here every token may be found.
    "Eq. 5": {**relaxation.TUNED, "shortlist": 0, "n_steps": 100},
    "Eq. 7": sparse.TUNED,
}
"""Settings of either attack, the same at every layer."""


@dataclass(frozen=True, kw_only=True)
class LayerStudy:
    """The mean-pooled states of each layer, attacked by either equation.

    Implements the comparison of Song & Raghunathan (2020), Fig. 2.
    Differs from the paper: MiniLM's six layers instead of the twelve of BERT and ALBERT; stop
    words are not scored; few sentences, with intervals.
    """

    attacks: ClassVar[tuple[str, ...]] = tuple(EQUATIONS.values())

    target: str = setting(REQUIRED, "the collection under study, a file")
    other: str = setting("wikipedia", "the cross-domain corpus")
    encoders: tuple[str, ...] = setting(("minilm",), "white-box encoders by name")
    domains: tuple[str, ...] = setting(
        ("cross",), "whose texts the attacker has", choices=tuple(DOMAINS)
    )
    layers: tuple[int, ...] = setting(
        tuple(range(7)), "whose states are attacked; 0 is the mean of token vectors", low=0
    )
    n_auxiliary: int = setting(5_000, "sentences to learn the map of Eq. 7 on", low=1)
    n_targets: int = setting(50, "sentences under attack", low=1)
    near: float = near_setting()
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of either attack, where it has it", flag="set"
    )

    def cells(self) -> list[Cell]:
        """Return what is to be measured."""
        check_documents(self.target)
        return [
            {
                "study": "layers",
                "target": self.target,
                "other": self.other,
                "contents": [content_of(self.target), content_of(self.other)],
                "encoder": encoder,
                "domain": domain,
                "layer": layer,
                "equation": equation,
                "n_auxiliary": self.n_auxiliary,
                "n_targets": self.n_targets,
                "near": self.near,
                "seed": seed,
                "settings": USUAL[equation] | settings_for(attack, self.attack_settings),
            }
            for domain in self.domains
            for encoder in self.encoders
            for layer in self.layers
            for equation, attack in EQUATIONS.items()
            for seed in self.seeds
        ]


def uses(cell: Cell) -> Cell:
    """Return the attack that a cell names by its equation."""
    return {"attack": EQUATIONS[cell["equation"]]}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Attack the mean-pooled states of one layer by one equation.

    Raises
    ------
    InvalidInputError
        The encoder is no white box.
    """
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "n_targets", "seed", "near")
    domain = open_domain(**{name: cell[name] for name in names})
    opened = load_encoder(EncoderSpec(name=cell["encoder"], layer=cell["layer"]))
    encoder = require_white_box(opened, "the study by layer")
    return [
        attack_layer(
            cell["equation"],
            encoder,
            domain,
            seed=cell["seed"],
            settings=cell["settings"],
        )
    ]


def attack_layer(
    equation: str,
    encoder: WhiteBoxEncoder,
    domain: Domain,
    *,
    seed: int,
    settings: dict[str, Any],
) -> Row:
    """Attack texts at the layer that `encoder` pools, and return the scores.

    Parameters
    ----------
    equation : str
        One of EQUATIONS.
    domain : Domain
        The targets, the same at every layer, and what the map of Eq. 7 is learned on; Eq. 5 learns
        nothing.
    """
    texts, auxiliary = domain.targets, domain.auxiliary
    attack: InversionAttack
    if equation == "Eq. 5":
        attack = relaxation.RelaxationAttack(seed=seed, **settings).open(encoder)
    else:
        attack = sparse.SparseCodingAttack(seed=seed, **settings).fit(encoder, auxiliary)
    vectors = encoder.encode(texts)
    start = time.perf_counter()
    answers = attack.invert(encoder, vectors)
    seconds = time.perf_counter() - start
    targets = [word_set(part) - STOP_WORDS for part in parts_read(encoder, texts)]
    judge = partial(score_words, texts=texts, groups=domain.documents, seed=seed)
    scores = judge([answer.word_set for answer in answers], targets)
    prior = PriorAttack().fit_vocabulary(encoder, Vocabulary.count(auxiliary))
    guessed = [answer.word_set for answer in prior.invert(encoder, vectors)]
    facts = {"seconds_each": seconds / len(texts), "n_near_duplicates": domain.n_near_duplicates}
    return score_row(scores, judge(guessed, targets).token_set_f1, facts=facts)


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = markdown_table(
        ("encoder", "layer", "equation", *SCORE_COLUMNS, "prior F1"),
        (
            (row["encoder"], row["layer"], row["equation"], *score_cells(row, "chance"))
            for row in rows
        ),
    )
    return "\n".join(lines) + "\n"
