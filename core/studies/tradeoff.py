"""What each defence costs and what it saves: utility against leakage.

`python -m core.studies.tradeoff --task NAME=FILE … --pairs NAME=FILE --out FILE` measures every
defence at every strength under several seeds. Finished cells are kept; a study that was stopped
goes on with the next.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.evaluation import evaluate
from core.attacks.inversion.registry import make_attack
from core.corpora import bundled_sentences
from core.defences.metric_dp.mechanisms import TextPrivatizer
from core.defences.registry import DEFENCES, make_defence
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.metrics import wilson_interval
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.specs import AttackSpec, DefenceSpec, EncoderSpec
from core.store import cache_dir, read_json, write_json
from core.studies.tradeoff_summary import load_tradeoff, markdown
from core.tasks.labelled import LabelledTask, read_labelled
from core.tasks.pairs import PairTask, read_pairs

__all__ = ["ATTACK", "GRID", "TradeoffStudy", "run"]

GRID: tuple[DefenceSpec, ...] = (
    DefenceSpec(name="none"),
    *(DefenceSpec.of("text_to_text", {"eta": e}) for e in (45.0, 60.0, 75.0, 90.0, 120.0)),
    *(DefenceSpec.of("token_representation", {"eta": e}) for e in (120.0, 240.0, 480.0, 960.0)),
    *(
        DefenceSpec.of("sequence_representation", {"eta": e})
        for e in (100.0, 200.0, 400.0, 800.0, 1600.0)
    ),
    *(DefenceSpec.of("gaussian", {"sigma": s}) for s in (0.01, 0.02, 0.05, 0.1)),
    *(DefenceSpec.of("rounding", {"decimals": d}) for d in (2, 1)),
    DefenceSpec(name="int8"),
    DefenceSpec(name="binary"),
    *(DefenceSpec.of("truncation", {"dimension": d}) for d in (192, 96, 48, 24)),
    *(DefenceSpec.of("random_projection", {"dimension": d}) for d in (192, 96, 48, 24)),
)
"""Every defence, at strengths from hardly felt to ruinous, for vectors of length 1."""


ATTACK = AttackSpec.of(
    "probe_mlc", {"vocabulary_size": 4000, "epochs": 12, "hidden": 512, "substitutions": 0}
)
"""The attacker, trained anew on the vectors of every defence."""


@dataclass(frozen=True, kw_only=True)
class TradeoffStudy:
    """What to measure, and on what.

    Attributes
    ----------
    tasks : tuple
        What the vectors are used for.
    auxiliary : tuple of str
        Sentences of which the attacker has the protected vectors too, and sentences to attack:
        disjoint draws of them.
    n_train, n_test : int
        Texts of each task.
    n_auxiliary, n_targets : int
        Sentences to train the attack on, and to attack.
    """

    tasks: tuple[LabelledTask | PairTask, ...]
    auxiliary: tuple[str, ...]
    defences: tuple[DefenceSpec, ...] = GRID
    seeds: tuple[int, ...] = (0, 1, 2)
    n_train: int = 500
    n_test: int = 300
    n_auxiliary: int = 3000
    n_targets: int = 300
    attack: AttackSpec = ATTACK

    def key(self, defence: DefenceSpec, seed: int, encoder: Encoder) -> str:
        """Return a file name that changes with whatever changes the cell."""
        texts = hashlib.sha256()
        for task in self.tasks:
            texts.update(repr(task).encode())
        texts.update(repr(self.auxiliary).encode())
        sizes = (self.n_train, self.n_test, self.n_auxiliary, self.n_targets)
        identity = [texts.hexdigest(), sizes, self.attack.key, encoder.fingerprint, seed]
        identity.append([defence.name, defence.settings])
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:24]


def run(
    study: TradeoffStudy,
    encoder: WhiteBoxEncoder,
    folder: Path,
    on_progress: OnProgress = no_progress,
) -> list[dict[str, Any]]:
    """Measure every defence under every seed; return a row per measure."""
    cells = [(defence, seed) for seed in study.seeds for defence in study.defences]
    rows: list[dict[str, Any]] = []
    for done, (defence, seed) in enumerate(cells):
        path = folder / f"{study.key(defence, seed, encoder)}.json"
        if not path.exists():
            on_progress(done / len(cells), f"{defence.name} {dict(defence.settings)}, seed {seed}")
            write_json(path, {"rows": _measure(study, encoder, defence, seed)})
        rows += read_json(path)["rows"]
    on_progress(1.0, "Every cell is measured")
    return rows


def _measure(
    study: TradeoffStudy, encoder: WhiteBoxEncoder, spec: DefenceSpec, seed: int
) -> list[dict[str, Any]]:
    start = time.perf_counter()
    # Vectors of texts as they are can be kept; privatised texts never come twice.
    acts_on_vectors = DEFENCES[spec.name].acts_on == "vector"
    base: Encoder = CachedEncoder(encoder) if acts_on_vectors else encoder
    kind = DEFENCES[spec.name].kind
    settings = dict(spec.settings)
    if "seed" in kind.__dataclass_fields__:
        settings["seed"] = seed
    protected = make_defence(DefenceSpec.of(spec.name, settings)).protect(base)
    head = {"defence": spec.name, "settings": dict(spec.settings), "seed": seed}
    rows = []
    for task in study.tasks:
        found = task.score(protected, n_train=study.n_train, n_test=study.n_test, seed=seed)
        ci95 = [found.ci95.low, found.ci95.high]
        rows.append({**head, "task": task.name, **asdict(found), "ci95": ci95})
    rows += [head | row for row in _leakage(study, encoder, protected, spec, seed)]
    seconds = time.perf_counter() - start
    return [row | {"cell_seconds": round(seconds, 1)} for row in rows]


class _Informed:
    """The attacker's view of a protected encoder: whole vectors of words come without noise.

    An attacker who knows the encoder can encode words without the defence, and starts from
    there where the protected vectors live in the same space.
    """

    def __init__(self, protected: Encoder, encoder: Encoder) -> None:
        self.name, self.fingerprint = protected.name, protected.fingerprint
        self.dimension = protected.dimension
        self._source = encoder if encoder.dimension == protected.dimension else protected

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        return self._source.encode(texts, on_progress)


def _leakage(
    study: TradeoffStudy,
    encoder: WhiteBoxEncoder,
    protected: Encoder,
    spec: DefenceSpec,
    seed: int,
) -> list[dict[str, Any]]:
    """Train the attack on protected vectors, and score it; count tokens that come back."""
    order = np.random.default_rng([seed, 2]).permutation(len(study.auxiliary))
    chosen = [study.auxiliary[i] for i in order[: study.n_auxiliary + study.n_targets]]
    known, targets = chosen[: study.n_auxiliary], chosen[study.n_auxiliary :]
    attack_spec = AttackSpec.of(study.attack.name, dict(study.attack.settings) | {"seed": seed})
    attacker = _Informed(protected, CachedEncoder(encoder))
    attack = make_attack(attack_spec).fit(attacker, known, protected.encode(known))
    result = evaluate(attack, protected, targets, seed=seed, name="sentences")
    scores, prior = result.scores, result.baseline
    ci95 = [scores.token_set_f1_ci95.low, scores.token_set_f1_ci95.high]
    rows = [
        {"task": study.attack.name, "measure": "token_set_f1", "value": scores.token_set_f1,
         "ci95": ci95, "chance": prior.token_set_f1, "n": scores.n}
    ]  # fmt: skip
    if spec.name in ("text_to_text", "token_representation"):
        eta = float(dict(spec.settings)["eta"])
        privatizer = TextPrivatizer(encoder, eta, rng=np.random.default_rng([seed, 3]))
        ids = np.array([i for row in encoder.token_ids(targets) for i in row])
        n_back = int((privatizer.tokens(ids) == ids).sum())
        interval = wilson_interval(n_back, len(ids))
        rows.append(
            {"task": "token_inversion", "measure": "accuracy", "value": 100 * n_back / len(ids),
             "ci95": [interval.low, interval.high], "chance": 0.0, "n": len(ids)}
        )  # fmt: skip
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study on labelled files and write its rows."""
    parser = argparse.ArgumentParser(prog="python -m core.studies.tradeoff", description=__doc__)
    parser.add_argument("--task", action="append", default=[], metavar="NAME=FILE",
                        help="a file with `text` and `label`; may be repeated")  # fmt: skip
    parser.add_argument("--pairs", action="append", default=[], metavar="NAME=FILE",
                        help="Parquet of the STS benchmark")  # fmt: skip
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--precision", default="auto", help="of the encoder")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", type=Path, help="Markdown file for the same")
    given = parser.parse_args(arguments)
    named = [entry.partition("=") for entry in given.task]
    pairs = [entry.partition("=") for entry in given.pairs]
    study = TradeoffStudy(
        tasks=(
            *(read_labelled(name, Path(path)) for name, _, path in named),
            *(read_pairs(name, Path(path)) for name, _, path in pairs),
        ),
        auxiliary=tuple(bundled_sentences()),
        seeds=tuple(given.seeds),
    )
    encoder = load_encoder(EncoderSpec(name=given.encoder, precision=given.precision))
    rows = run(
        study,
        encoder,  # type: ignore[arg-type]
        cache_dir("studies", "tradeoff"),
        lambda share, message: print(f"{share:4.0%} {message}", file=sys.stderr, flush=True),
    )
    cells = {(r["defence"], str(r["settings"]), r["seed"]): r["cell_seconds"] for r in rows}
    facts = {"n_train": study.n_train, "n_test": study.n_test, "n_auxiliary": study.n_auxiliary,
             "n_targets": study.n_targets, "seeds": study.seeds, "encoder": encoder.name,
             "attack": [study.attack.name, dict(study.attack.settings)],
             "encoder_precision": str(getattr(encoder, "precision", "float32")),
             "encoder_backend": str(getattr(encoder, "backend", "torch")),
             "seconds": round(sum(cells.values()), 1)}  # fmt: skip
    write_json(given.out, {"study": "tradeoff", **facts, "rows": rows})
    if given.table is not None:
        given.table.write_text(markdown(load_tradeoff(given.out)), encoding="utf-8")


if __name__ == "__main__":
    main()
