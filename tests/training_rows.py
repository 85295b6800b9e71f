"""Rows of the studies of privacy-preserving training, with invented numbers and real names.

The studies' own functions build the rows; only steps that would take hours are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from leakscope.core.results import Interval, Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import rows_to_json
from leakscope.core.storage.artifacts import write_json
from leakscope.core.studies.registry import STUDIES
from leakscope.core.studies.tradeoff.summary import change_measure, utility_measure
from leakscope.core.studies.tradeoff.trained_defences import ProtectedEncoder
from leakscope.core.studies.training import adaptive, adversarial, constrained, private_training
from leakscope.core.studies.training.adversarial import MEAN, AdversarialStudy
from leakscope.core.studies.training.adversarial_attack import ATTRIBUTE_ATTACKERS
from leakscope.core.studies.training.adversarial_words import WORD_ATTACKERS
from leakscope.core.studies.training.constrained import ConstrainedStudy
from leakscope.core.studies.training.private_training import PrivateTrainingStudy
from leakscope.core.studies.training.summary import TABLES
from leakscope.core.studies.training.tuned_networks import AdaptedWeights, TunedNetwork
from leakscope.core.tasks.outcomes import Hits

ORIGIN = Provenance(
    "2026-01-02T03:04:05+00:00",
    {"leakscope": "9.8.7"},
    "0123456789ab",
    False,
    {"chip": "a chip", "n_cpus": 2, "device": "cpu"},
)


def score(value: float, half: float = 1.5, n: int = 600, chance: float = 4.0) -> Score:
    """Return a Score with a symmetric interval."""
    return Score(value, Interval(value - half, value + half), n, chance)


# Adversarial training: little leaks during training, much leaks to fresh attackers afterwards.


def adversarial_rows(
    *, encoders: Sequence[str] = ("minilm", "dual_lstm"), holds: bool = False
) -> list[Row]:
    """Return rows of the adversarial study; if `holds`, fresh attackers recover no more."""
    study = AdversarialStudy(
        target="novels.csv#text",
        tasks=("TREC=trec.csv", "SUBJ=subj.csv"),
        encoders=tuple(encoders),
        word_weights=(0.0, 0.3, 3.0),
        attribute_weights=(0.0, 1.0, 10.0),
        seeds=(0, 1),
    )
    with patch.object(adversarial, "table_digest", lambda place: place):
        cells = study.cells()
    return [row for cell in cells for row in _adversarial_cell_rows(cell, holds=holds)]


def _adversarial_cell_rows(cell: Cell, *, holds: bool) -> list[Row]:
    """Return the rows of one cell of the adversarial study, with invented scores."""
    if cell["weight"] == 10.0 and cell["encoder"] != "minilm":
        return _complete_rows(
            cell, [Row(facts={"when": "stopped", "stopped": "Training diverged"})]
        )
    strength = cell["weight"] / (3.0 if cell["hides"] == "words" else 10.0)
    top = 46.0 if cell["hides"] == "words" else 62.0
    chance = 4.0 if cell["hides"] == "words" else 6.0
    is_plain = cell["defence_kind"] in ("none", "leace") and cell["encoder"] == "minilm"
    least = chance + 2 + (top - chance) * (1 - strength) ** 2 * 0.9
    curve = (
        []
        if is_plain or cell["defence_kind"] == "leace"
        else [
            score(least + (top - least) * 0.7**epoch * (strength > 0), chance=chance)
            for epoch in range(1, 9)
        ]
    )
    read = least if holds and strength else top - 12 * strength
    erased = cell["defence_kind"] == "leace"
    names = cell["attackers"]
    found = {
        name: score(
            (chance + 1 if erased and name == "linear" else read - 4 * i) + cell["seed"],
            chance=chance,
        )
        for i, name in enumerate(reversed(names))
    }
    trained = ProtectedEncoder(
        SimpleNamespace(dimension=384),
        SimpleNamespace(encode=len),
        tuple(curve),
        90.0 * bool(curve),
    )  # type: ignore[arg-type]
    texts = [""] * 600
    sides: Any = SimpleNamespace(
        targets=texts,
        known=texts * 10,
        n_near_duplicates=3,
        target_groups=[str(i % 9) for i in range(600)],
    )
    cost = -5.0 * strength - (0.4 if erased else 0.0)
    tasks = {"TREC": cost - 0.5 * bool(strength), "SUBJ": cost}
    use = {utility_measure(task, "accuracy"): score(90 + change) for task, change in tasks.items()}
    changes = {**tasks, MEAN: cost}
    use |= {change_measure(k, "accuracy"): score(v, 0.8, chance=0.0) for k, v in changes.items()}

    def words(*given: Any) -> Any:
        """Return the invented scores of the word attackers."""
        return {
            name: (s, {"family": WORD_ATTACKERS[name], "starts_shipped": name == "tuned"})
            for name, s in found.items()
        }

    def labels(*given: Any) -> Any:
        """Return the invented scores of the attribute attackers."""
        return {
            name: ({"top1": s, "top5": s}, {"family": ATTRIBUTE_ATTACKERS[name][0]})
            for name, s in found.items()
        }

    with (
        patch.object(adversarial, "word_scores", words),
        patch.object(adversarial, "attribute_scores", labels),
        patch.object(adversarial, "use_scores", lambda *given: use),
    ):
        rows = [
            *adversarial._epoch_rows(trained),
            *adversarial._attacker_rows(cell, trained, trained, sides),
            adversarial._use_row(cell, trained, trained),
        ]
    return _complete_rows(cell, rows)


# Under noise, and pretrained under it


def accuracy_of(cell: Cell) -> float:
    """Return the invented accuracy of a cell, which falls with the noise."""
    eta = cell["defence_settings"].get("eta")
    if eta is None and cell["defence"] == "sequence_representation":
        return 80.0
    if eta is None:
        return 91.0 if cell["reader"] == "transformer" else 82.0
    share = {"text_to_text": 0.95, "token_representation": 0.5, "sequence_representation": 0.3}
    lost = (1 - (eta - 25) / 100) * (1.1 - share[cell["defence"]])
    top = 91.0 if cell["reader"] == "transformer" else 82.0
    plain = max(51.0, top - 40 * max(0.0, lost) ** 0.7)
    if "objective" in cell:
        plain += {"vanilla": 0.2, "probability": 0.25, "denoising": 0.6}[cell["objective"]] * (
            top - plain
        )
    return plain


@contextmanager
def _no_training() -> Iterator[None]:
    def tuned(cell: Cell, folder: Path) -> TunedNetwork:
        n_right = round(8.72 * accuracy_of(cell)) + cell["seed"]
        return TunedNetwork(Hits(np.arange(872) < n_right, 50.9), 4000, 1.5)

    def adapted(cell: Cell, folder: Path) -> AdaptedWeights:
        n = len(cell["etas"])
        shift = {"vanilla": 0.5, "probability": 0.3, "denoising": 0.0}[cell["objective"]]
        curve = [{"tokens": k * 1_000_000, "loss": 6 + shift - 0.6 * k**0.5} for k in range(5)]
        return AdaptedWeights({}, 4_000_000, 4_000_000 * n, 3_900_000 * n, 9000, 33.0, curve)

    with ExitStack() as stack:
        for module in (constrained, adaptive):
            stack.enter_context(patch.object(module, "load_or_tune", tuned))
        stack.enter_context(patch.object(adaptive, "load_or_adapt", adapted))
        stack.enter_context(patch.object(adaptive, "corpus_content", str))
        stack.enter_context(patch.object(constrained, "content_of", lambda name, place: place))
        yield


def constrained_rows(**more: Any) -> list[Row]:
    """Return rows of the study of networks under noise."""
    return _network_rows(constrained, ConstrainedStudy, etas=(50.0, 65.0, 98.5), **more)


def adaptive_rows(**more: Any) -> list[Row]:
    """Return rows of the study of pretraining under noise."""
    return _network_rows(adaptive, adaptive.AdaptiveStudy, etas=(65.0, 98.5), **more)


def _network_rows(module: Any, kind: Any, **more: Any) -> list[Row]:
    """Return rows of a study of networks, by its own functions but without any training."""
    given = {"tasks": ("sst2=sst2.csv", "mrpc=mrpc.csv"), "seeds": (0, 1), **more}
    with _no_training():
        return [
            row
            for cell in kind(**given).cells()
            for row in _complete_rows(cell, module.measure(cell, Path()))
        ]


# Differential privacy


class _Privacy(SimpleNamespace):
    """A fake privacy accountant."""

    def epsilons(self) -> Any:
        """Return invented ε by other accountants."""
        e = self.epsilon
        return SimpleNamespace(dp_accounting=e * 0.996, tight=e * 0.9)

    def of_copies(self, n: int) -> float:
        """Return an invented ε for n copies of a text."""
        return float(self.epsilon * n / 2)


def _privacy(epsilon: float) -> Any:
    """Return a fake accountant for an ε; None for no privacy."""
    return (
        _Privacy(
            epsilon=epsilon * 0.999, noise_multiplier=4 / epsilon, sample_rate=0.05, n_steps=400
        )
        if epsilon
        else None
    )


def private_rows(*, target: str = "letters.txt", **more: Any) -> list[Row]:
    """Return rows of the study of differentially private training."""
    given: dict[str, Any] = {
        "tasks": ("sst2=sst2.csv#text", "news=news.csv"),
        "target": target,
        "epsilons": (0.0, 8.0, 1.0),
        "seeds": (0, 1),
        **more,
    }
    module = private_training
    labels = np.arange(2000) % 2
    task = SimpleNamespace(
        parts=lambda seed: (np.arange(1500), np.arange(1500, 2000)), units=lambda rows: rows
    )

    def head(vectors: Any, ids: Any, n: int, settings: Any, seed: int) -> Any:
        """Return a fake classification head that is right for most of the test texts."""
        n_right = 500 - 60 - (round(12 / settings.epsilon**0.5) if settings.epsilon else 0)

        def answer(given: Any) -> Any:
            """Return one-hot probabilities."""
            truth = np.eye(2)[labels[1500:]]
            truth[n_right:] = 1 - truth[n_right:]
            return truth

        return SimpleNamespace(probabilities=answer, privacy=_privacy(settings.epsilon))

    def fake_attacks(cell: Cell, checkpoint: Path) -> Any:
        """Return invented outcomes of the membership attacks."""
        auc = 0.71 if not cell["epsilon"] else 0.5 + 0.004 * cell["epsilon"]
        found = [
            SimpleNamespace(
                plan=SimpleNamespace(name=name),
                auc=score(auc - 0.01 * i, 0.02, 4000, 0.5),
                at=(),
                control=score(0.5, 0.02, 4000, 0.5),
                ranking=SimpleNamespace(members=np.arange(4000) < 2000),
            )
            for i, name in enumerate(cell["attacks"])
        ]
        return found, _privacy(cell["epsilon"])

    def fake_training(*given: Any, epsilon: float, **rest: Any) -> Any:
        """Return an invented outcome of training a language model."""
        bits = 13.0 if not epsilon else 1.5 + 0.1 * epsilon
        canaries = [SimpleNamespace(exposure=Score(bits + i)) for i in range(3)]
        controls = tuple(1.4 + 0.1 * i for i in range(-3, 4))
        found = SimpleNamespace(canaries=canaries, controls=controls, bits_a_token=2.5)
        return found, _privacy(epsilon), 1800

    ridge = Hits(np.arange(500) < 445, 50.0)
    patches: dict[str, Any] = {
        "_open_task": lambda *given: (task, np.zeros((2000, 4), np.float32), labels),
        "fit_head": head,
        "_ridge_hits": lambda *given: ridge,
        "_attack_head": fake_attacks,
        "run_private": fake_training,
        "check_contents": lambda cell: None,
        "load_corpus": lambda *given, **more: None,
        "private_texts": lambda *given: [""] * 2000,
        "make_canary": lambda *given: SimpleNamespace(size=10_000),
        "contents_of": lambda tasks, pairs: list(tasks),
        "content_of": str,
    }
    with ExitStack() as stack:
        for name, fake in patches.items():
            stack.enter_context(patch.object(module, name, fake))
        cells = PrivateTrainingStudy(**given).cells()
        return [
            row
            for cell in cells
            for row in _complete_rows(cell, module.measure(cell, Path("none")))
        ]


def _complete_rows(cell: Cell, rows: Sequence[Row]) -> list[Row]:
    """Return rows with the cell, its version and a provenance added."""
    entries = {**cell, "versions": {"study": STUDIES[cell["study"]].version}}
    return [Row(entries, row.scores, row.facts, 1.0, provenance=ORIGIN) for row in rows]


MADE = {
    "adversarial": adversarial_rows,
    "constrained": constrained_rows,
    "adaptive": adaptive_rows,
    "private-training": private_rows,
}
assert MADE.keys() == TABLES.keys() and MADE.keys() <= STUDIES.keys()


def write_shipped(folder: Path, *studies: str, rows: Sequence[Row] | None = None) -> Path:
    """Write rows as shipped files; of all studies unless some are named."""
    folder.mkdir(exist_ok=True)
    for study in studies or MADE:
        table = rows_to_json(study, MADE[study]() if rows is None else rows)
        write_json(folder / f"{TABLES[study][0]}.json", table)
    return folder
