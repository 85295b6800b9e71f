"""List of settings chosen with test data in view, checked against the code.

`python -m tools.figures` writes `docs/settings.md` from here; `tests/test_settings.py` checks that
each is still a setting with that value.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import settings_of
from leakscope.core.storage.artifacts import read_json

ROOT = Path(__file__).resolve().parents[1]

HEAD = """# Settings chosen with test data in view

A setting that was chosen by looking at the texts of a table flatters that table. This page lists
all known settings of this kind, the texts that were in view, and the tables that they flatter. All
other settings come from papers, or were chosen on auxiliary texts or on held-out texts.
`python -m tools.figures` writes this page from `tools/settings.py`. A test checks that each setting
still exists and has this value.

"""


@dataclass(frozen=True)
class Chosen:
    """A setting that was chosen with test data in view.

    Attributes
    ----------
    where : str
        `weights ATTACK`, `attack NAME`, `encoder NAME`, `plan MODULE:CLASS`, `module MODULE` or
        `spec TABLE`: where the values are.
    values : dict
        Settings and their values.
    seen : str
        The texts that were in view.
    flatters : str
        The tables whose texts they are, or are drawn from.
    """

    where: str
    values: dict[str, Any]
    seen: str
    flatters: str
    why: str


_NEWS = "the BBC and AG News columns"
_DECISIONS = "decisions/"

CHOSEN = (
    Chosen(
        "weights relaxation",
        {
            "length": 12,
            "learning_rate": 0.05,
            "final_temperature": 0.01,
            "n_steps": 60,
            "candidates": "words",
            "shortlist": 1000,
        },
        "20 BBC sentences",
        "the BBC columns",
        "../results/inversion-bbc.md",
    ),
    Chosen(
        "weights staged",
        {
            "layer": 0,
            "length": 24,
            "learning_rate": 0.05,
            "final_temperature": 0.01,
            "n_steps": 60,
            "candidates": "tokens",
            "shortlist": 2000,
            "stretch": True,
            "ridge": 0.3,
        },
        "40 BBC sentences",
        "the BBC columns",
        "../results/inversion-bbc.md",
    ),
    Chosen(
        "weights search",
        {"size_factor": 1.25},
        "250 sentences each of BBC and AG News",
        _NEWS,
        "../results/inversion-ag.md",
    ),
    Chosen(
        "weights probe_mlc",
        {"answer_count": "expected_f1", "size_factor": 1.25},
        "1,000 sentences each of BBC and AG News",
        _NEWS,
        f"{_DECISIONS}0003-how-many-words-to-answer.md",
    ),
    Chosen(
        "weights mlc",
        {"answer_count": "expected_f1", "size_factor": 1.25},
        "the same: taken over from `probe_mlc`",
        _NEWS,
        f"{_DECISIONS}0003-how-many-words-to-answer.md",
    ),
    Chosen(
        "weights msp",
        {"answer_count": "expected_f1", "size_factor": 1.25},
        "the same: taken over from `probe_mlc`",
        _NEWS,
        f"{_DECISIONS}0003-how-many-words-to-answer.md",
    ),
    Chosen(
        "weights reconstruct",
        {"prior": 0.0008, "width": 32, "n_states": 4, "patience": 8},
        "40 held-out sentences of Wikipedia of 9 to 16 words and 40 longer ones, of which some may "
        "be among the last 50 of each length in the table",
        "the rows of [Wikipedia](../results/reconstruct-wikipedia.md)",
        f"{_DECISIONS}0031-sentences-in-order.md",
    ),
    Chosen(
        "attack probe_mlc",
        {"substitutions": 1, "blocks": 1},
        "1,000 sentences each of BBC and AG News",
        _NEWS,
        f"{_DECISIONS}0002-training-pairs-with-words-exchanged.md",
    ),
    Chosen(
        "weights search",
        {"n_candidates": 60, "n_corrections": 1},
        "1,000 sentences each of BBC and AG News",
        _NEWS,
        f"{_DECISIONS}0004-correcting-an-answer-by-its-own-vector.md",
    ),
    Chosen(
        "encoder doc2vec",
        {"sample": 1e-4},
        "500 BBC sentences",
        "the rows of Doc2Vec in [representations](../results/representations.md)",
        "results/encoders.md",
    ),
    Chosen(
        "spec representations",
        {"start": "encoder"},
        "500 BBC sentences: a random start left `msp` behind on tf-idf",
        "the rows of `msp` in [representations](../results/representations.md)",
        "results/encoders.md",
    ),
    Chosen(
        "module leakscope.core.attacks.inversion.classifiers.tuned",
        {"WORD_RATE": 0.1},
        "300 sentences held out from the weights, of those that the trade-off draws its targets "
        "from",
        "[trade-off](../results/tradeoff.md)",
        f"{_DECISIONS}0015-the-trade-offs-attacker.md",
    ),
    Chosen(
        "module leakscope.core.attacks.inversion.classifiers.network",
        {"TRUST": 0.8},
        "1,000 such sentences, behind truncation to 96 dimensions",
        "[trade-off](../results/tradeoff.md)",
        f"{_DECISIONS}0015-the-trade-offs-attacker.md",
    ),
    Chosen(
        "module leakscope.core.studies.tradeoff.attack",
        {"N_COPIES": 6, "N_CALIBRATION": 200},
        "1,000 and 200 such sentences",
        "[trade-off](../results/tradeoff.md)",
        f"{_DECISIONS}0015-the-trade-offs-attacker.md",
    ),
    Chosen(
        "plan leakscope.core.attacks.inversion.search.tuned:SearchPlan",
        {"n_corrected": 2000},
        "200 such sentences",
        "[trade-off](../results/tradeoff.md)",
        f"{_DECISIONS}0015-the-trade-offs-attacker.md",
    ),
    Chosen(
        "plan leakscope.core.attacks.membership.classifiers.bavaria:BaVarIA",
        {"scale": "asinh"},
        "2,000 texts each of newsgroups, AG News, tweets, TREC and SST-2",
        "`bavaria` on classifiers of these texts",
        f"{_DECISIONS}0019-one-prior-for-both-sides.md",
    ),
    Chosen(
        "plan leakscope.core.attacks.membership.memorisation.settings:MemorisationSettings",
        {"epochs": 20, "batch_size": 16, "learning_rate": 0.003},
        "up to 3,000 texts of EWT",
        "exposure in these texts",
        f"{_DECISIONS}0020-canaries-and-the-audit-in-one-run.md",
    ),
    Chosen(
        "plan leakscope.core.studies.membership.words:MembershipWordsStudy",
        {"n_words": (5, 11)},
        "windows of English novels, halves of seed 0, as `centred` and `weighed` were as a whole",
        "membership of words in these novels under seed 0",
        f"{_DECISIONS}0022-membership-of-embedding-models.md",
    ),
    Chosen(
        "plan leakscope.core.defences.trained.adversarial:AdversarialAdapter",
        {"learning_rate": 0.0002, "adversary_rate": 0.003, "epochs": 15},
        "14,000 sentences of 20 authors of English novels, and test texts of TREC, MPQA and SUBJ",
        "the adapter on these novels and tasks",
        f"{_DECISIONS}0026-training-against-an-adversary.md",
    ),
)


def value_of(where: str, name: str) -> Any:
    """Return a setting's current value in the code.

    Raises
    ------
    KeyError
        It is no setting any more.
    """
    kind, _, of = where.partition(" ")
    if kind == "weights":
        folder = ROOT / "assets" / "weights" / "minilm" / of
        return read_json(folder / "model.json")["settings"][name]
    if kind == "spec":
        return read_json(ROOT / "results" / f"{of}.spec.json")["set"][name]
    if kind in ("attack", "encoder"):
        registry = INVERSION_ATTACKS if kind == "attack" else ENCODERS
        return settings_of(registry[of].kind)[name].default
    module, _, attribute = of.partition(":")
    found = vars(import_module(module))
    return found[attribute].__dataclass_fields__[name].default if attribute else found[name]


def markdown() -> str:
    """Render docs/settings.md."""
    lines = []
    for chosen in CHOSEN:
        kind, _, of = chosen.where.partition(" ")
        what = {
            "weights": "as it ships",
            "attack": "by default",
            "encoder": "by default",
            "spec": "in the table",
        }.get(kind, "in the code")
        told = ", ".join(f"`{name}` {value}" for name, value in chosen.values.items())
        lines.append(
            (f"`{of}`, {what}", told, chosen.seen, chosen.flatters, f"[see]({chosen.why})")
        )
    columns = ("where", "settings", "texts in view", "flatters", "details")
    return HEAD + "\n".join(markdown_table(columns, lines)) + "\n"
