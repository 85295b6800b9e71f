"""Test whether a mechanism draws what it says, and keeps its promise."""

from __future__ import annotations

import argparse
from typing import Any

from core.cli.output import progress_line, show_json
from core.cli.privatize import MECHANISMS
from core.errors import CoreError, InvalidInputError, similar

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `audit-mechanism`."""
    parser.add_argument(
        "--mechanism", action="append", metavar="NAME",
        help=f"one of {', '.join(MECHANISMS)}; may be repeated (default: all)",
    )  # fmt: skip
    parser.add_argument("--eta", type=float, default=75.0, help="of d_χ-privacy (default: 75)")
    parser.add_argument(
        "--epsilon", type=float, default=2.0,
        help="of santext, santext_plus, custext and tem (default: 2)",
    )  # fmt: skip
    parser.add_argument(
        "--dimension",
        type=int,
        default=384,
        help="of your encoder's vectors, at which mechanisms that release numbers are audited "
        "(default: 384, of all-MiniLM-L6-v2)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        nargs="+",
        default=[0],
        metavar="N",
        help="an audit each (default: 0); noise as for release has none, and is tested too",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.01,
        help="chance that an audit refutes a true mechanism (default: 0.01)",
    )
    parser.add_argument(
        "--no-processes",
        dest="has_processes",
        action="store_false",
        help="leave out the noise of two other processes, which take seconds",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Audit, print what was found, and fail where a mechanism is refuted."""
    names = arguments.mechanism or list(MECHANISMS)
    _check(names, arguments.seed)
    cases = [(name, seed) for name in dict.fromkeys(names) for seed in arguments.seed]
    with progress_line() as on_progress:
        found = []
        for i, (name, seed) in enumerate(cases):

            def tell(done: float, what: str, i: int = i, name: str = name) -> None:
                on_progress((i + done) / len(cases), f"{name}: {what}")

            found.append(_audit(name, seed, arguments, tell))
    if arguments.json:
        given = ("eta", "epsilon", "dimension", "alpha")
        told = {name: getattr(arguments, name) for name in given}
        show_json({**told, "audits": found})
    else:
        for each in found:
            _show(each)
        _show_untested(found)
    refuted = sorted({each["mechanism"] for each in found if each["is_refuted"]})
    if refuted:
        raise CoreError(
            f"{', '.join(refuted)} refuted. At one seed that happens to a true mechanism in "
            f"{arguments.alpha:.0%} of audits: give other seeds, and release nothing until it "
            "passes."
        )


def _check(names: list[str], seeds: list[int]) -> None:
    for name in names:
        if name not in MECHANISMS:
            raise InvalidInputError(
                f"--mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}."
                + similar(name, MECHANISMS)
            )
    if min(seeds) < 0:
        raise InvalidInputError(f"--seed must be at least 0, got {min(seeds)}.")


def _audit(name: str, seed: int, arguments: argparse.Namespace, tell: Any) -> dict[str, Any]:
    from core.defences.metric_dp.audit.named import audit_named
    from core.defences.registry import DEFENCES

    strong = next(iter(DEFENCES[name].strengths))
    found = audit_named(
        name,
        getattr(arguments, strong),
        seed=seed,
        alpha=arguments.alpha,
        dimension=arguments.dimension,
        has_processes=arguments.has_processes,
        on_progress=tell,
    )
    return {"mechanism": name, "seed": seed, **found.to_dict()}


def _show(found: dict[str, Any]) -> None:
    verdict = "refuted" if found["is_refuted"] else "not refuted"
    print(
        f"{found['mechanism']}, seed {found['seed']}: {verdict} by {len(found['p_values'])} tests "
        f"of {found['n_draws']:,} draws (level {found['alpha']:g} in all, Holm)"
    )
    width = max(map(len, found["p_values"]))
    for name, p_value in found["p_values"].items():
        mark = "  refuted" if name in found["refuted_by"] else ""
        print(f"  {name:<{width}} p = {p_value:.3g}{mark}")
    for name, odds in found["log_odds"].items():
        if name in found["refuted_by"]:
            seen = f" ({odds['seen_in']})" if odds["seen_in"] else ""
            print(
                f"  The odds are at least e^{odds['at_least']:.2f}, where e^{odds['promised']:.2f} "
                f"at most is promised{seen}: the guarantee does not hold."
            )
    if found["is_refuted"] and not found["is_promise_refuted"]:
        print("  Its noise does not follow the law from which the promise is proved.")


def _show_untested(found: list[dict[str, Any]]) -> None:
    """Print what the audits leave out, once for mechanisms of one kind."""
    mechanisms: dict[tuple[str, ...], list[str]] = {}
    for each in found:
        names = mechanisms.setdefault(tuple(each["not_tested"]), [])
        if each["mechanism"] not in names:
            names.append(each["mechanism"])
    for sentences, names in mechanisms.items():
        print(f"Not tested ({', '.join(names)}):")
        for sentence in sentences:
            print(f"  - {sentence}")
