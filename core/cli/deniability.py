"""Show how deniable each token of a text is under d_χ-privacy."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from leakscope.core.cli.shared.arguments import add_encoder_arguments, encoder_spec, seed_number
from leakscope.core.cli.shared.output import progress_line, show_json
from leakscope.core.defences.metric_dp.noise import LEAST_ETA, MOST_ETA, secure_generator
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress
from leakscope.core.text import check_text

EXAMPLE = 'leakscope deniability --text "The patient was given insulin." --eta 75'
WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `deniability` to its parser."""
    add_encoder_arguments(parser)
    parser.add_argument("--text", required=True, help="text to privatise")
    parser.add_argument(
        "--eta", type=float, required=True, help="privacy parameter η, in 1/distance"
    )
    parser.add_argument("--n-draws", type=int, default=1000, help="draws per token (default: 1000)")
    parser.add_argument(
        "--candidates",
        default="regular",
        help="replacement tokens: regular (default), whole or all",
    )
    parser.add_argument(
        "--seed", type=seed_number, default=0, help="seed of the statistics' draws (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Print each token's deniability statistics, and the text privatised once with fresh noise."""
    text = check_text(arguments.text, name="--text")
    if not LEAST_ETA <= arguments.eta <= MOST_ETA:
        raise InvalidInputError(
            f"--eta must be a positive number, from {LEAST_ETA:g} to {MOST_ETA:g}, got "
            f"{arguments.eta}. The trade-off study measures 60 to 120."
        )
    if not 2 <= arguments.n_draws <= 65_535:
        raise InvalidInputError(f"--n-draws must lie in [2, 65535], got {arguments.n_draws}.")
    with progress_line() as on_progress:
        answer = _measure(text, arguments, on_progress)
    if arguments.json:
        show_json(answer)
    else:
        _print_statistics(answer)


def _measure(text: str, arguments: argparse.Namespace, on_progress: OnProgress) -> dict[str, Any]:
    """Measure the replacements of every token under noise, and privatise the text once."""
    from leakscope.core.defences.deniability.engine import DeniabilityEngine
    from leakscope.core.defences.deniability.sentence import DeniableSentence
    from leakscope.core.defences.metric_dp.candidates import candidate_ids
    from leakscope.core.defences.metric_dp.distances import guarantees_at
    from leakscope.core.defences.metric_dp.mechanisms import TextPrivatizer
    from leakscope.core.encoders import load_encoder

    encoder = require_white_box(load_encoder(encoder_spec(arguments)), "deniability")
    on_progress(0.3, "Drawing noise")
    engine = DeniabilityEngine(
        token_table(encoder),
        candidate_ids(encoder, arguments.candidates),
        n_draws=arguments.n_draws,
        seed=arguments.seed,
        eta_min=arguments.eta,
    )
    on_progress(0.6, "Counting replacements")
    tokens = DeniableSentence(encoder, engine, text).at(arguments.eta)
    privatizer = TextPrivatizer(
        encoder, arguments.eta, candidates=arguments.candidates, rng=secure_generator()
    )
    (privatized,) = privatizer.texts([text], is_whole=False)
    guarantees = guarantees_at(encoder, "text_to_text", arguments.eta, text, arguments.candidates)
    return {
        "eta": arguments.eta,
        "promise": {**guarantees.to_dict(), "said": list(guarantees.sentences)},
        "n_draws": arguments.n_draws,
        "candidates": arguments.candidates,
        "encoder": encoder.name,
        "tokens": [
            {
                **asdict(each),
                "replacements": [{"token": t, "count": n} for t, n in each.replacements],
            }
            for each in tokens
        ],
        "privatized": privatized,
    }


def _print_statistics(answer: dict[str, Any]) -> None:
    """Print the table of tokens, the privatised text, and the guarantee."""
    print(f"η = {answer['eta']:g}, {answer['n_draws']:,} draws per token")
    print(f"  {'token':<16}{'N_w':>6}{'S_w':>6}  becomes")
    for found in answer["tokens"]:
        most = ", ".join(f"{r['token']} {r['count']}" for r in found["replacements"][:4])
        print(f"  {found['token']:<16}{found['n_w']:>6}{found['s_w']:>6}  {most}")
    print(f"\n{answer['privatized']}\n")
    print(*answer["promise"]["said"], sep="\n")
