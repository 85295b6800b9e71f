"""The tables of the study of memorisation."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from core.attacks.membership.memorisation.memorise import over_seeds
from core.results import Score
from core.studies.rows import Row, failures
from core.studies.tables import markdown_table

__all__ = ["SHOWN_EPOCHS", "exposure_over_seeds", "markdown"]

SHOWN_EPOCHS = (1, 2, 5, 10, 20, 50)
"""Epochs that a table has, beside the last."""

_SAMPLERS = {"top_k": "top-k", "temperature": "decaying temperature", "prefix": "prefix known"}
_RANKINGS = {"perplexity": "perplexity", "smaller": "smaller model", "zlib": "zlib",
             "lower_case": "lower case"}  # fmt: skip


def markdown(rows: Sequence[Row]) -> str:
    """Return the tables: exposure by insertions and by epoch, what was drawn, and the audit."""
    planted = [row for row in rows if not row.error and row["part"] == "exposure"]
    audited = [row for row in rows if not row.error and row["part"] == "audit"]
    parts = ["# What language models keep of planted canaries", ""]
    parts += [*_exposures(planted), *_extraction(planted)] if planted else []
    parts += _audit(audited) if audited else []
    failed = failures(rows)
    if failed:
        columns = ("part", "model", "seed", "why it failed")
        lines = [(row["part"], row["model"], row["seed"], row.error) for row in failed]
        parts += ["", "## Failed", "", *markdown_table(columns, lines)]
    return "\n".join(parts) + "\n"


def exposure_over_seeds(rows: Sequence[Row], measure: str = "exposure") -> Score:
    """Return the mean exposure of rows that differ in their seed alone."""
    return over_seeds([row.scores[measure] for row in rows])


def _settings(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["model"], row["insertions"]), []).append(row)
    return found


def _exposures(rows: Sequence[Row]) -> list[str]:
    first, last = rows[0], max(row["epoch"] for row in rows)
    epochs = [epoch for epoch in SHOWN_EPOCHS if epoch < last] + [last]
    head = ("model", "insertions", "controls", *(f"epoch {epoch}" for epoch in epochs),
            "bits a token")  # fmt: skip
    lines = []
    for (model, insertions), found in _settings(rows).items():
        at = {epoch: [row for row in found if row["epoch"] == epoch] for epoch in epochs}
        bits = [row["bits_a_token"] for row in at[last]]
        cells = [exposure_over_seeds(at[epoch]).said(is_bold=epoch == last) for epoch in epochs]
        control = exposure_over_seeds(at[last], "control_exposure").said(2)
        lines.append((model, insertions, control, *cells, f"{sum(bits) / len(bits):.2f}"))
    n_seeds = len({row["seed"] for row in rows})
    over = f"canaries and {n_seeds} seeds" if n_seeds > 1 else "the canaries of one seed"
    score = first.scores["exposure"]
    return [
        f"Exposure in bits: {score.n} canaries a model, each of its own format with "
        f"{first['n_values']:,} values, planted in {first['n_fitted_on']:,} sentences, read as "
        f"{first['tokens']}; intervals of 95 % over {over}. A canary planted "
        f"nowhere has {score.chance:.2f} bits on average, a uniform rank; the controls are such.",
        "", *markdown_table(head, lines), "",
    ]  # fmt: skip


def _extraction(rows: Sequence[Row]) -> list[str]:
    drawn = [row for row in rows if "extraction" in row.facts]
    if not drawn:
        return []
    head = ("model", "insertions", "sampler", "texts drawn", "canaries that came out",
            *(f"among the first ten: {said}" for said in _RANKINGS.values()))  # fmt: skip
    lines = []
    for (model, insertions), found in _settings(drawn).items():
        n = sum(row.scores["exposure"].n for row in found)
        for sampler, said in _SAMPLERS.items():
            told = [row["extraction"][sampler] for row in found]
            among = [sum(each["among_ten"].get(name, 0) for each in told) for name in _RANKINGS]
            n_found = sum(each["n_found"] for each in told)
            n_drawn = sum(each["n_drawn"] for each in told)
            lines.append((model, insertions, said, f"{n_drawn:,}", f"{n_found} of {n}", *among))
    return ["## What sampling brings out", "", *markdown_table(head, lines), ""]


def _audit(rows: Sequence[Row]) -> list[str]:
    found: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        found.setdefault((row["access"], row["epsilon"]), []).append(row)
    head = ("the auditor sees", "ε of the accountant", "audits", "ε at least: median (most)",
            "above the accountant's", "coins tossed anew: above 0", "AUC", "right guesses",
            "could be shown")  # fmt: skip
    return [
        "## The audit in one run",
        "",
        "Canaries are put in with probability ½; the bound of an audit holds at "
        f"{1 - rows[0]['alpha']:.0%}, and has to stay below the accountant's ε (δ = "
        f"{max(row['delta'] for row in rows):g}). Coins tossed anew are the control: nothing is to "
        "be shown of them.",
        "", *markdown_table(head, map(_audit_line, found.values())), "",
    ]  # fmt: skip


_SEEN = {"texts": "the model, with texts put in", "gradients": "each step, with gradients put in"}


def _audit_line(rows: Sequence[Row]) -> tuple[object, ...]:
    first = rows[0]
    epsilon = first["accountant_epsilon"]
    bounds = [row.scores["epsilon_bound"].value for row in rows]
    shuffled = [row.scores["epsilon_bound_shuffled"].value for row in rows]
    areas = [row.scores["auc"].value for row in rows]
    right = [row["n_right"] for row in rows]
    n = len(rows)
    return (
        f"{_SEEN[first['access']]} ({first['n_canaries']:,})",
        "none" if epsilon is None else f"{epsilon:.2f}",
        n,
        f"**{median(bounds):.2f}** ({max(bounds):.2f})",
        "–" if epsilon is None else f"{sum(b > epsilon for b in bounds)} of {n}",
        f"{sum(b > 0 for b in shuffled)} of {n}",
        f"{median(areas):.3f}",
        f"{median(right):g} of {first['n_guesses']}",
        f"{first['most_epsilon']:.2f}",
    )
