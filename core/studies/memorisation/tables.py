"""Markdown tables of the memorisation study."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from leakscope.core.attacks.membership.memorisation.memorise import mean_over_seeds
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table

SHOWN_EPOCHS = (1, 2, 5, 10, 20, 50)
"""Epochs shown in a table besides the last."""

_SAMPLERS = {"top_k": "top-k", "temperature": "decaying temperature", "prefix": "prefix known"}
_RANKINGS = {
    "perplexity": "perplexity",
    "smaller": "smaller model",
    "zlib": "zlib",
    "lower_case": "lower case",
}


def markdown(rows: Sequence[Row]) -> str:
    """Format the study as Markdown: exposure by insertions and epoch, extraction, and audits."""
    table = ResultTable(rows)
    planted, audited = (table.measured.where(part=part) for part in ("exposure", "audit"))
    parts = ["# What language models memorise of planted canaries", ""]
    parts += [*_exposure_table(planted), *_extraction_table(planted)] if planted else []
    parts += _audit_section(audited) if audited else []
    if table.failed:
        columns = ("part", "model", "seed", "why it failed")
        lines = [(row["part"], row["model"], row["seed"], row.error) for row in table.failed]
        parts += ["", "## Failed", "", *markdown_table(columns, lines)]
    return "\n".join(parts) + "\n"


def exposure_over_seeds(rows: Sequence[Row], measure: str = "exposure") -> Score:
    """Return the mean exposure of rows that differ only in their seed."""
    return mean_over_seeds([row.scores[measure] for row in rows])


def _exposure_table(rows: ResultTable) -> list[str]:
    """Return the table of exposure by model, insertions and epoch."""
    first, last = rows[0], max(rows.column("epoch"))
    epochs = [epoch for epoch in SHOWN_EPOCHS if epoch < last] + [last]
    head = (
        "model",
        "insertions",
        "controls",
        *(f"epoch {epoch}" for epoch in epochs),
        "bits per token",
    )
    lines = []
    for (model, insertions), found in rows.group_by("model", "insertions").items():
        at = {epoch: found.where(epoch=epoch) for epoch in epochs}
        cells = [exposure_over_seeds(at[epoch]).format(is_bold=epoch == last) for epoch in epochs]
        control = exposure_over_seeds(at[last], "control_exposure").format(2)
        bits = at[last].average("bits_a_token")
        lines.append((model, insertions, control, *cells, f"{bits:.2f}"))
    n_seeds = len(rows.distinct("seed"))
    over = f"canaries and {n_seeds} seeds" if n_seeds > 1 else "the canaries of one seed"
    score = first.scores["exposure"]
    return [
        f"Exposure in bits. Each model has {score.n} canaries, each with its own format and "
        f"{first['n_values']:,} possible values, planted in {first['n_fitted_on']:,} sentences; "
        f"tokens are {first['tokens']}. Brackets: 95 % CI over {over}. The controls are canaries "
        f"that were never planted; by chance, their mean is {score.chance:.2f} bits.",
        "",
        *markdown_table(head, lines),
        "",
    ]


def _extraction_table(rows: ResultTable) -> list[str]:
    """Return the table of canaries that sampling generated; empty if none was run."""
    drawn = rows.where(lambda row: "extraction" in row.facts)
    if not drawn:
        return []
    head = (
        "model",
        "insertions",
        "sampler",
        "texts sampled",
        "canaries that came out",
        *(f"among the first ten: {said}" for said in _RANKINGS.values()),
    )
    lines = []
    for (model, insertions), found in drawn.group_by("model", "insertions").items():
        n = sum(row.scores["exposure"].n for row in found)
        for sampler, said in _SAMPLERS.items():
            told = [row["extraction"][sampler] for row in found]
            among = [sum(each["among_ten"].get(name, 0) for each in told) for name in _RANKINGS]
            n_found = sum(each["n_found"] for each in told)
            n_drawn = sum(each["n_drawn"] for each in told)
            lines.append((model, insertions, said, f"{n_drawn:,}", f"{n_found} of {n}", *among))
    return ["## What sampling reveals", "", *markdown_table(head, lines), ""]


def _audit_section(rows: ResultTable) -> list[str]:
    """Return the section on lower bounds of ε by access and accountant's ε."""
    head = (
        "the auditor sees",
        "ε of the accountant",
        "audits",
        "lower bound of ε: median (highest)",
        "above the accountant's ε",
        "control above 0",
        "AUC",
        "right guesses",
        "highest possible bound",
    )
    return [
        "## One-run audit",
        "",
        "Each canary is inserted with probability ½. The lower bound of an audit holds with "
        f"{1 - rows[0]['alpha']:.0%} confidence and must not exceed the accountant's ε (δ = "
        f"{max(rows.column('delta')):g}). Control: re-randomised inclusion; the bound should be 0.",
        "",
        *markdown_table(head, map(_audit_cells, rows.group_by("access", "epsilon").values())),
        "",
    ]


_SEEN = {"texts": "the final model, texts inserted", "gradients": "every step, gradients inserted"}


def _audit_cells(rows: ResultTable) -> tuple[object, ...]:
    """Return the table cells of the audits of one kind of model."""
    first = rows[0]
    epsilon = first["accountant_epsilon"]
    bounds, shuffled = rows.values("epsilon_bound"), rows.values("epsilon_bound_shuffled")
    n = len(rows)
    return (
        f"{_SEEN[first['access']]} ({first['n_canaries']:,})",
        "none" if epsilon is None else f"{epsilon:.2f}",
        n,
        f"**{median(bounds):.2f}** ({max(bounds):.2f})",
        "–" if epsilon is None else f"{sum(b > epsilon for b in bounds)} of {n}",
        f"{sum(b > 0 for b in shuffled)} of {n}",
        f"{median(rows.values('auc')):.3f}",
        f"{median(rows.column('n_right')):g} of {first['n_guesses']}",
        f"{first['most_epsilon']:.2f}",
    )
