"""The settings of the trade-off study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.defences.trained.under_noise.registry import RELEASES
from core.specs import setting
from core.studies.adversarial_attack import ATTRIBUTE_ATTACKERS
from core.studies.apart import near_setting
from core.studies.defence_grid import GRID
from core.studies.tradeoff_attack import ATTACKERS

__all__ = ["TradeoffSettings"]


@dataclass(frozen=True, kw_only=True)
class TradeoffSettings:
    """What the trade-off measures."""

    tasks: tuple[str, ...] = setting(
        (), "what vectors are used for: NAME=FILE of texts with a `label`", holds="labelled"
    )
    pairs: tuple[str, ...] = setting(
        (), "the same, of scored pairs: NAME=FILE like the STS benchmark", holds="pairs"
    )
    searches: tuple[str, ...] = setting(
        (),
        "the same, of texts to be found: NAME=FILE, or NAME=FILE:COLUMN=VALUE, of question1 and "
        "question2; or NAME=FILE of texts with a `label`, to be found by texts of the same label",
        holds="searches",
    )
    encoder: str = setting("minilm", "the encoder that is defended")
    precision: str = setting("auto", "of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(spec.name for spec in GRID)),
        "defences by name, at all strengths, or one as NAME:SETTING=VALUE; trained ones too, and "
        "private_head, which protects a classifier's training texts",
    )
    attackers: tuple[str, ...] = setting(
        ATTACKERS,
        "who attacks each defence, knowing it; `retrieval` comes to trained ones too; "
        "named here, `shipped` is the search as it ships, and `reconstruct` reads sentences of "
        "some of the texts; `none` alone measures usefulness and attacks nothing",
    )
    attack: str = setting("probe_mlc", "the classifier that reads, tuned on each defence")
    auxiliary: str = setting(
        "",
        "texts that the attacker has and, apart from these, targets: a file that holds the "
        "sentences held out from the weights that ship; without one, bundled sentences, and the "
        "attackers are trained anew",
        holds="corpus",
    )
    n_auxiliary: int = setting(20_000, "sentences to train the attackers on", low=20)
    n_targets: int = setting(300, "sentences under attack", low=1)
    near: float = near_setting()
    n_train: int = setting(0, "texts of each task to train on at most; 0 for all", low=0)
    n_test: int = setting(0, "texts, or pairs, of each task to test on at most; 0 for all", low=0)
    n_searched: int = setting(2000, "texts to be found among as many others", low=2)
    seeds: tuple[int, ...] = setting((0, 1, 2), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of the attackers that are trained anew", flag="set"
    )
    releases: str = setting(
        "once",
        "noisy copies of each text that a network under noise is trained on: one, as attackers "
        "have, or a fresh one in every epoch, as in the paper, whose odds compose",
        choices=RELEASES,
    )
    rounds_timed: int = setting(
        0,
        "times that a defence is timed by itself, in turn with the encoder alone, of which the "
        "least counts; 0: once, beside what it is useful for",
        low=0,
        high=50,
    )
    attributes: str = setting(
        "",
        "whose attribute is inferred: NAME=FILE, a table of texts with the attribute, in reading "
        "order; without one, no attribute is attacked",
        holds="attributes",
    )
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting("", "column of what texts come from, such as a book")
    attribute_attackers: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKERS), "who infers the attribute", choices=tuple(ATTRIBUTE_ATTACKERS)
    )
    n_labels: int = setting(20, "values of the attribute told apart, drawn by chance", low=2)
    n_attribute_known: int = setting(
        8000, "texts that attackers on the attribute are trained on", low=40
    )
    n_attribute_targets: int = setting(600, "texts whose attribute is inferred", low=20)
    n_defence: int = setting(8000, "texts of its own that a trained defence learns from", low=40)
    membership: str = setting(
        "", "the name of the task whose classifier is attacked for its training texts; none: no "
        "such attack"
    )  # fmt: skip
    hidden: int = setting(
        256, "units of that classifier's hidden layer; 0 for none", low=0, high=4096
    )
    n_attacked: int = setting(4000, "texts of which half are members of it", low=40)
    n_shadows: int = setting(16, "shadow models on random halves; an even number", low=2)
