"""Inversion by encoder layer: Eq. 5 against Eq. 7 (Song & Raghunathan 2020, Fig. 2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.attacks.inversion.relaxation import attack as relaxation
from leakscope.core.attacks.inversion.sparse import attack as sparse
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.white_box import parts_read, require_white_box
from leakscope.core.metrics import score_words
from leakscope.core.protocols import InversionAttack, WhiteBoxEncoder
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, score_cells
from leakscope.core.specs import REQUIRED, EncoderSpec, setting
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.domains import (
    DOMAINS,
    Domain,
    check_contents,
    check_documents,
    content_of,
    open_domain,
)
from leakscope.core.studies.inversion.cell_attacks import score_row, settings_for
from leakscope.core.text import STOP_WORDS, Vocabulary, word_set

EQUATIONS = {"Eq. 5": "relaxation", "Eq. 7": "sparse"}
"""Continuous relaxation, and sparse coding after a learned map to the mean of token vectors."""

USUAL: dict[str, dict[str, Any]] = {
    # The tuned shortlist uses the last layer; here every token is a candidate.
    "Eq. 5": {**relaxation.TUNED, "shortlist": 0, "n_steps": 100},
    "Eq. 7": sparse.TUNED,
}
"""Settings of either attack, the same at every layer."""


@dataclass(frozen=True, kw_only=True)
class LayerStudy:
    """Settings of the layer study: mean-pooled states of each layer, attacked by Eq. 5 and Eq. 7.

    Implements the comparison of Song & Raghunathan (2020), Fig. 2.
    Differs from the paper: MiniLM's six layers instead of the twelve of BERT and ALBERT; stop
    words are not scored; few sentences, with intervals.
    """

    attacks: ClassVar[tuple[str, ...]] = tuple(EQUATIONS.values())

    target: str = setting(REQUIRED, "file with the texts to study")
    other: str = setting("wikipedia", "cross-domain corpus")
    encoders: tuple[str, ...] = setting(("minilm",), "names of white-box encoders")
    domains: tuple[str, ...] = setting(
        ("cross",), "domains of the attacker's texts", choices=tuple(DOMAINS)
    )
    layers: tuple[int, ...] = setting(
        tuple(range(7)), "layers to attack; 0 is the mean of token vectors", low=0
    )
    n_auxiliary: int = setting(5_000, "number of sentences to fit the map of Eq. 7 on", low=1)
    n_targets: int = setting(50, "number of sentences to attack", low=1)
    near: float = near_duplicate_setting()
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "setting of either attack, if it has it", flag="set"
    )

    def cells(self) -> list[Cell]:
        """Return one cell per domain, encoder, layer, equation and seed."""
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
    """Return {"attack": …}: the name of the attack that implements the cell's equation."""
    return {"attack": EQUATIONS[cell["equation"]]}


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Attack the mean-pooled states of a cell's layer by its equation; return a row of scores.

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
    given = {"seed": cell["seed"], "settings": cell["settings"]}
    return [attack_layer(cell["equation"], encoder, domain, **given)]


def attack_layer(
    equation: str,
    encoder: WhiteBoxEncoder,
    domain: Domain,
    *,
    seed: int,
    settings: dict[str, Any],
) -> Row:
    """Encode a domain's targets at a layer, invert them by Eq. 5 or 7; return a row of scores.

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
    """Format the scores of each layer and equation as a Markdown table."""
    lines = markdown_table(
        ("encoder", "layer", "equation", *SCORE_COLUMNS, "prior F1"),
        ((r["encoder"], r["layer"], r["equation"], *score_cells(r, "chance")) for r in rows),
    )
    return "\n".join(lines) + "\n"
