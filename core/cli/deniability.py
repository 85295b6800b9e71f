"""Show how deniable each token of a text is under d_χ-privacy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from core.cli.arguments import add_encoder_arguments, encoder_spec, seed_number
from core.cli.output import progress_line, show_json
from core.defences.metric_dp.noise import LEAST_ETA, MOST_ETA
from core.errors import InvalidInputError
from core.text import check_text

if TYPE_CHECKING:
    from core.defences.deniability.sentence import TokenDeniability
    from core.protocols import OnProgress

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `deniability`."""
    add_encoder_arguments(parser)
    parser.add_argument("--text", required=True, help="the text")
    parser.add_argument("--eta", type=float, required=True, help="privacy parameter, 1/distance")
    parser.add_argument("--n-draws", type=int, default=1000, help="draws a token (default: 1000)")
    parser.add_argument("--candidates", default="regular", help="regular, whole or all")
    parser.add_argument("--seed", type=seed_number, default=0, help="of the statistics' draws")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Print the statistics, and one privatised text under fresh noise. Nothing is stored."""
    text = check_text(arguments.text, name="--text")
    if not LEAST_ETA <= arguments.eta <= MOST_ETA:
        raise InvalidInputError(
            f"--eta must be a positive number, from {LEAST_ETA:g} to {MOST_ETA:g}, got "
            f"{arguments.eta}. The trade-off measures 60 to 120."
        )
    if not 2 <= arguments.n_draws <= 65_535:
        raise InvalidInputError(f"--n-draws must lie in [2, 65535], got {arguments.n_draws}.")
    with progress_line() as on_progress:
        answer = _measure(text, arguments, on_progress)
    if arguments.json:
        show_json(answer)
    else:
        _show(answer)


def _measure(text: str, arguments: argparse.Namespace, on_progress: OnProgress) -> dict[str, Any]:
    """Count the outcomes of every token, and privatise the text once."""
    from core.defences.deniability.engine import DeniabilityEngine
    from core.defences.deniability.sentence import DeniableSentence
    from core.defences.metric_dp.candidates import candidate_ids
    from core.defences.metric_dp.mechanisms import TextPrivatizer
    from core.defences.metric_dp.noise import secure_generator
    from core.defences.metric_dp.promised import promises_at
    from core.encoders import load_encoder
    from core.encoders.white_box import require_white_box, token_table

    encoder = require_white_box(load_encoder(encoder_spec(arguments)), "deniability")
    on_progress(0.3, "Drawing noise")
    engine = DeniabilityEngine(
        token_table(encoder),
        candidate_ids(encoder, arguments.candidates),
        n_draws=arguments.n_draws,
        seed=arguments.seed,
        eta_min=arguments.eta,
    )
    on_progress(0.6, "Following every draw")
    tokens = DeniableSentence(encoder, engine, text).at(arguments.eta)
    privatizer = TextPrivatizer(
        encoder, arguments.eta, candidates=arguments.candidates, rng=secure_generator()
    )
    (privatized,) = privatizer.texts([text], is_whole=False)
    promises = promises_at(encoder, "text_to_text", arguments.eta, text, arguments.candidates)
    return {
        "eta": arguments.eta,
        "promise": {**promises.to_dict(), "said": list(promises.sentences)},
        "n_draws": arguments.n_draws,
        "candidates": arguments.candidates,
        "encoder": encoder.name,
        "tokens": [_token(found) for found in tokens],
        "privatized": privatized,
    }


def _token(found: TokenDeniability) -> dict[str, Any]:
    return {
        "token": found.token,
        "n_w": found.n_w,
        "s_w": found.s_w,
        "eta_star_median": found.eta_star_median,
        "replacements": [{"token": t, "count": n} for t, n in found.replacements],
    }


def _show(answer: dict[str, Any]) -> None:
    print(f"η = {answer['eta']:g}, {answer['n_draws']:,} draws a token")
    print(f"  {'token':<16}{'N_w':>6}{'S_w':>6}  becomes")
    for found in answer["tokens"]:
        most = ", ".join(f"{r['token']} {r['count']}" for r in found["replacements"][:4])
        print(f"  {found['token']:<16}{found['n_w']:>6}{found['s_w']:>6}  {most}")
    print(f"\n{answer['privatized']}\n")
    print(*answer["promise"]["said"], sep="\n")
