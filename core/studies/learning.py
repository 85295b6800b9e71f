"""How much an attack gains from more auxiliary texts: the learning curve.

`python -m core.studies.learning --auxiliary FILE --target FILE --out docs/results/learning.json`
writes the scores, a table and the figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.attacks.inversion.evaluation import sample_texts
from core.attacks.inversion.prior import PriorAttack
from core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from core.corpora import Columns, load_corpus
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.figures.learning import learning_figure
from core.figures.svg import write_svg
from core.metrics import score_words
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from core.specs import AttackSpec, EncoderSpec
from core.store import cache_dir, read_json, write_json
from core.text import Vocabulary

__all__ = ["gain_per_doubling", "markdown", "run"]


def run(
    spec: AttackSpec,
    encoder: Encoder,
    auxiliary: Sequence[str],
    targets: dict[str, Sequence[str]],
    sizes: Sequence[int],
    *,
    seed: int = 0,
    folder: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:
    """Train the attack on nested samples of growing size and score each on the same targets.

    The vocabulary is counted once, on the largest sample, for the scores only: at every size the
    words to find are the same, and a word that a small sample lacks counts as missed.

    Parameters
    ----------
    auxiliary : sequence of str
        In any order; samples are the first so many of a permutation by `seed`.
    targets : dict
        Name to texts, none of them in `auxiliary`.
    sizes : sequence of int
        Numbers of auxiliary texts, ascending.
    folder : Path, optional
        Where finished sizes are kept; a study that was stopped goes on with the next.

    Returns
    -------
    dict
        `rows`, one per size and target, and `gains`, per target the F1 gained per doubling.
    """
    order = np.random.default_rng(seed).permutation(len(auxiliary))
    scope = Vocabulary.count([auxiliary[i] for i in order[: max(sizes)]])
    rows: list[dict[str, Any]] = []
    for done, size in enumerate(sizes):
        path = None if folder is None else folder / f"{size}.json"
        if path is not None and path.exists():
            rows += read_json(path)["rows"]
            continue
        on_progress(done / len(sizes), f"{spec.name} on {size:,} texts")
        attack = make_attack(spec).fit(encoder, [auxiliary[i] for i in order[:size]])
        found = [
            {"n_auxiliary": size, "target": name, **_score(attack, encoder, texts, scope, seed)}
            for name, texts in targets.items()
        ]
        if path is not None:
            write_json(path, {"rows": found})
        rows += found
    on_progress(1.0, "Every size is measured")
    gains = {name: gain_per_doubling([r for r in rows if r["target"] == name]) for name in targets}
    return {
        "study": "learning",
        "attack": spec.name,
        "settings": dict(spec.settings),
        "encoder": encoder.name,
        "seed": seed,
        "rows": rows,
        "gains": gains,
    }


def _score(
    attack: InversionAttack, encoder: Encoder, texts: Sequence[str], scope: Vocabulary, seed: int
) -> dict[str, Any]:
    """Score the attack, and the prior-only attacker, on the words of `scope`."""
    vectors = encoder.encode(texts)
    targets = [scope.targets(text) for text in texts]
    known = scope.index.keys()
    said = [answer.word_set & known for answer in attack.invert(encoder, vectors)]
    guessed = PriorAttack().fit_vocabulary(encoder, scope).invert(encoder, vectors)
    scores = score_words(said, targets, seed=seed)
    prior = score_words([answer.word_set for answer in guessed], targets, seed=seed)
    return {
        "n": scores.n,
        "precision": scores.precision,
        "recall": scores.recall,
        "token_set_f1": scores.token_set_f1,
        "token_set_f1_ci95": [scores.token_set_f1_ci95.low, scores.token_set_f1_ci95.high],
        "prior_f1": prior.token_set_f1,
        "vocabulary_size": len(scope),
    }


def gain_per_doubling(rows: Sequence[dict[str, Any]]) -> float:
    """Return the F1 gained per doubling over the three largest sizes, by least squares.

    Examples
    --------
    >>> gain_per_doubling([{"n_auxiliary": 2**k, "token_set_f1": 3.0 * k} for k in range(5)])
    3.0
    """
    last = sorted(rows, key=lambda row: row["n_auxiliary"])[-3:]
    doublings = np.log2([row["n_auxiliary"] for row in last])
    slope = np.polyfit(doublings, [row["token_set_f1"] for row in last], 1)[0]
    return round(float(slope), 4)


def markdown(result: dict[str, Any]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| auxiliary texts | target | n | F1 [95 %] | prior F1 |", "|---|---|---|---|---|"]
    for row in result["rows"]:
        low, high = row["token_set_f1_ci95"]
        lines.append(
            f"| {row['n_auxiliary']:,} | {row['target']} | {row['n']} "
            f"| **{row['token_set_f1']:.1f}** [{low:.1f}, {high:.1f}] | {row['prior_f1']:.1f} |"
        )
    said = [f"{name}: {gain:+.1f}" for name, gain in result["gains"].items()]
    return "\n".join(
        [*lines, "", f"F1 gained per doubling, last three sizes: {', '.join(said)}.\n"]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study on files and write its scores, table and figure."""
    parser = argparse.ArgumentParser(prog="python -m core.studies.learning", description=__doc__)
    parser.add_argument("--auxiliary", type=Path, required=True, help="corpus to learn from")
    parser.add_argument("--target", type=Path, required=True, help="corpus of another domain")
    parser.add_argument("--attack", default="probe_mlc", choices=list(INVERSION_ATTACKS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[4000, 8000, 16000, 32000, 64000])
    parser.add_argument("--n", type=int, default=500, help="sentences a target (default: 500)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", default="auto", help="of the encoder")
    parser.add_argument("--out", type=Path, default=Path("docs/results/learning.json"))
    given = parser.parse_args(arguments)
    known = load_corpus(given.auxiliary, columns=Columns()).texts
    order = np.random.default_rng([given.seed, 1]).permutation(len(known))
    held = {known[i] for i in order[: given.n]}
    foreign = load_corpus(given.target, columns=Columns()).sentences().texts
    result = run(
        AttackSpec.of(given.attack, {}),
        CachedEncoder(load_encoder(EncoderSpec(precision=given.precision))),
        [text for text in known if text not in held],
        {"own domain": sorted(held), "other domain": sample_texts(foreign, given.n, given.seed)},
        given.sizes,
        seed=given.seed,
        folder=cache_dir("studies", f"learning-{given.attack}-{len(known)}-{given.seed}"),
        on_progress=lambda share, message: print(f"{share:4.0%} {message}", file=sys.stderr),
    )
    write_json(given.out, result)
    given.out.with_suffix(".md").write_text(markdown(result), encoding="utf-8")
    write_svg(learning_figure(result), given.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
