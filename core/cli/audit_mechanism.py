"""Test whether a privacy mechanism samples the noise it claims to, and keeps its guarantee."""

from __future__ import annotations

import argparse
from typing import Any

from leakscope.core.cli.privatize import MECHANISMS
from leakscope.core.cli.shared.output import progress_line, show_json
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.errors import CoreError, InvalidInputError, similar

EXAMPLE = "leakscope audit-mechanism --mechanism text_to_text"
WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `audit-mechanism` to its parser."""
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(MECHANISMS)}; may be repeated (default: all)",
    )
    parser.add_argument(
        "--eta", type=float, default=75.0, help="privacy parameter η of d_χ-privacy (default: 75)"
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        default=2.0,
        help="privacy parameter ε of santext, santext_plus, custext and tem (default: 2)",
    )
    parser.add_argument(
        "--dimension",
        type=int,
        default=384,
        help="dimension of your encoder's vectors, for mechanisms that release numbers "
        "(default: 384, of all-MiniLM-L6-v2)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        nargs="+",
        default=[0],
        metavar="N",
        help="one audit per seed (default: 0); unseeded noise, as for releases, is tested too",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.01,
        help="chance that an audit refutes a correct mechanism (default: 0.01)",
    )
    parser.add_argument(
        "--no-processes",
        dest="has_processes",
        action="store_false",
        help="do not test the noise of two other processes, which takes seconds",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Audit each mechanism at each seed and print results; raise CoreError if one is refuted."""
    names = arguments.mechanism or list(MECHANISMS)
    _check_names_and_seeds(names, arguments.seed)
    cases = [(name, seed) for name in dict.fromkeys(names) for seed in arguments.seed]
    with progress_line() as on_progress:
        found = []
        for i, (name, seed) in enumerate(cases):

            def tell(done: float, what: str, i: int = i, name: str = name) -> None:
                """Report the progress of one audit as a share of all."""
                on_progress((i + done) / len(cases), f"{name}: {what}")

            found.append(_audit(name, seed, arguments, tell))
    if arguments.json:
        given = ("eta", "epsilon", "dimension", "alpha")
        record = {name: getattr(arguments, name) for name in given}
        show_json({**record, "audits": found})
    else:
        for each in found:
            _print_audit(each)
        _print_untested(found)
    refuted = sorted({each["mechanism"] for each in found if each["is_refuted"]})
    if refuted:
        raise CoreError(
            f"{', '.join(refuted)} refuted. With one seed, this happens to a correct mechanism in "
            f"{arguments.alpha:.0%} of audits. Try other seeds. Release nothing until the audit "
            "passes."
        )


def _check_names_and_seeds(names: list[str], seeds: list[int]) -> None:
    """Raise InvalidInputError for an unknown mechanism or a negative seed."""
    for name in names:
        if name not in MECHANISMS:
            raise InvalidInputError(
                f"--mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}."
                + similar(name, MECHANISMS)
            )
    if min(seeds) < 0:
        raise InvalidInputError(f"--seed must be at least 0, got {min(seeds)}.")


def _audit(name: str, seed: int, arguments: argparse.Namespace, tell: Any) -> dict[str, Any]:
    """Audit one mechanism at one seed and return the result as a dictionary for JSON."""
    from leakscope.core.defences.metric_dp.audit.choices import audit_named

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


def _print_audit(found: dict[str, Any]) -> None:
    """Print a mechanism's verdict, its tests' p-values, and any violated odds."""
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
                f"  The odds are at least e^{odds['at_least']:.2f}, but at most "
                f"e^{odds['promised']:.2f} is guaranteed{seen}: the guarantee does not hold."
            )
    if found["is_refuted"] and not found["is_promise_refuted"]:
        print(
            "  Its noise does not follow the distribution that the proof of its guarantee assumes."
        )


def _print_untested(found: list[dict[str, Any]]) -> None:
    """Print what the audits do not test, once for all mechanisms with the same list."""
    mechanisms: dict[tuple[str, ...], list[str]] = {}
    for each in found:
        names = mechanisms.setdefault(tuple(each["not_tested"]), [])
        if each["mechanism"] not in names:
            names.append(each["mechanism"])
    for sentences, names in mechanisms.items():
        print(f"Not tested ({', '.join(names)}):")
        for sentence in sentences:
            print(f"  - {sentence}")
