"""The settings of the trade-off study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leakscope.core.defences.trained.under_noise.registry import RELEASES
from leakscope.core.specs import setting
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.tradeoff.attack import ATTACKERS
from leakscope.core.studies.tradeoff.defence_grid import GRID
from leakscope.core.studies.training.adversarial_attack import ATTRIBUTE_ATTACKERS


@dataclass(frozen=True, kw_only=True)
class TradeoffSettings:
    """The settings of the trade-off study."""

    tasks: tuple[str, ...] = setting(
        (), "tasks that measure utility: NAME=FILE of texts with a `label`", holds="labelled"
    )
    pairs: tuple[str, ...] = setting(
        (), "tasks with scored pairs: NAME=FILE like the STS benchmark", holds="pairs"
    )
    searches: tuple[str, ...] = setting(
        (),
        "search tasks: NAME=FILE, or NAME=FILE:COLUMN=VALUE, with question1 and question2; or "
        "NAME=FILE of texts with a `label`, to be found by texts with the same label",
        holds="searches",
    )
    encoder: str = setting("minilm", "the encoder that is defended")
    precision: str = setting("auto", "precision of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(spec.name for spec in GRID)),
        "defences by name, at all strengths, or one as NAME:SETTING=VALUE; includes trained "
        "defences, and private_head, which protects a classifier's training texts",
    )
    attackers: tuple[str, ...] = setting(
        ATTACKERS,
        "attackers of each defence, which they know; trained defences also face `retrieval`; "
        "`shipped` adds the shipped search, and `reconstruct` the reconstruction of some "
        "sentences; `none` alone measures only utility",
    )
    attack: str = setting("probe_mlc", "the attack classifier, tuned on each defence")
    auxiliary: str = setting(
        "",
        "auxiliary texts of the attacker, and the targets: a file with the sentences held out "
        "from the shipped weights; by default, bundled sentences, and attackers trained from "
        "scratch",
        holds="corpus",
    )
    n_auxiliary: int = setting(20_000, "sentences to train the attackers on", low=20)
    n_targets: int = setting(300, "sentences under attack", low=1)
    near: float = near_duplicate_setting()
    n_train: int = setting(0, "most training texts per task; 0: all", low=0)
    n_test: int = setting(0, "most test texts, or pairs, per task; 0: all", low=0)
    n_searched: int = setting(2000, "number of texts in a search task", low=2)
    seeds: tuple[int, ...] = setting((0, 1, 2), "random seeds, one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of the attackers that are trained from scratch", flag="set"
    )
    releases: str = setting(
        "once",
        "noisy copies of each training text of a network under noise: one, as attackers have, or "
        "a fresh one per epoch, as in the paper, whose odds compose",
        choices=RELEASES,
    )
    rounds_timed: int = setting(
        0,
        "timings of a defence, in turn with the encoder alone, of which the least counts; 0: one "
        "timing, together with utility",
        low=0,
        high=50,
    )
    attributes: str = setting(
        "",
        "texts with an attribute to infer: NAME=FILE, a table in reading order; without a file, no "
        "attribute is attacked",
        holds="attributes",
    )
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting("", "column of the source of each text, such as a book")
    attribute_attackers: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKERS),
        "attackers that infer the attribute",
        choices=tuple(ATTRIBUTE_ATTACKERS),
    )
    n_labels: int = setting(20, "values of the attribute to distinguish, drawn at random", low=2)
    n_attribute_known: int = setting(
        8000, "training texts of the attackers on the attribute", low=40
    )
    n_attribute_targets: int = setting(600, "texts whose attribute is inferred", low=20)
    n_defence: int = setting(
        8000, "training texts of a trained defence, separate from the attackers'", low=40
    )
    membership: str = setting(
        "",
        "name of the task whose classifier is attacked for its training texts; by default, none",
    )
    hidden: int = setting(256, "units of that classifier's hidden layer; 0: none", low=0, high=4096)
    n_attacked: int = setting(4000, "texts attacked for membership, half of them members", low=40)
    n_shadows: int = setting(16, "shadow models on random halves; an even number", low=2)
