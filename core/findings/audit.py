"""The finding of an audit, shown by its page, story and one-page report."""

from __future__ import annotations

import shlex

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.audit.leakage import mask_word
from leakscope.core.audit.summary import ANSWERS_MEAN, AuditSummary, RowWords
from leakscope.core.figures.audit import audit_alt, audit_figure
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.pages import PAGES

_SAMPLED = " Only a sample of the rows was attacked."
"""The part of the caveat that does not hold if all rows were attacked."""

REMEDY = (
    "Protect vectors like the texts, with the same access control, encryption and retention. The "
    "page Trade-off of Leakscope shows what each defence protects and costs."
)


def audit_title(found: AuditSummary) -> str:
    """Return the headline of an audit from its summary."""
    if found.f1 is None:
        return "What leaks from these vectors could not be measured"
    if found.recall is None:
        return f"Estimated leakage of these vectors: F1 {found.f1.in_text(0)}"
    title = f"An attacker recovers {found.recall.value:.0f} % of the words that it can name"
    if found.personal is None or not found.personal.n_tested:
        return title
    learned, tested = found.personal.n_learned, found.personal.n_tested
    return f"{title}, and recovers or confirms {learned} of {tested} identifiers tested"


def audit_slide(
    found: AuditSummary, *, with_words: bool = False, is_example: bool = False
) -> Finding:
    """Build the finding (title, figure, table, facts) of an audit from its summary.

    Parameters
    ----------
    with_words : bool
        Whether to show recovered words, the source and row names. Otherwise words are masked and
        names are left out.
    is_example : bool
        Whether it is the shipped example, which the title then says.
    """
    figure = audit_figure(found)
    source = found.source if with_words or is_example else "your own vectors"
    title = audit_title(found)
    if is_example:
        title = f"Example: {title[0].lower()}{title[1:]}"
    untested = "\n".join(f"- Not tested: {plain(reason)}" for reason in found.not_tested)
    return Finding(
        title=title,
        body="\n\n".join(
            part
            for part in (
                plain(found.answer),
                plain(found.evidence),
                f"**Personal data.** {plain(found.personal.answer)} "
                f"{plain(found.personal.by_kind)} {ANSWERS_MEAN}"
                if found.personal
                else "",
                f"**What to do.** {REMEDY}",
                " ".join(plain(each.answer) for each in found.what_if),
                untested,
            )
            if part
        ),
        figure=figure,
        alt=audit_alt(found),
        table=Table(
            columns=("Row", "Recovered", "Words"),
            rows=tuple(
                (row.row if with_words else str(i), *row_cells(row, with_words=with_words))
                for i, row in enumerate(found.rows, 1)
            ),
        ),
        facts=(
            (
                "Data",
                f"{source}: {found.n_rows:,} vectors of {found.dimension} dimensions, "
                f"{found.stored_as}",
            ),
            (
                "n",
                "none: nothing was attacked"
                if found.f1 is None
                else f"all vectors, {found.f1.n:,} attacked"
                if found.n_sampled == found.n_rows
                else f"{found.n_sampled:,} vectors drawn at random, {found.f1.n:,} attacked",
            ),
            ("Interval", "95 % CI"),
            (
                "Attacker",
                INVERSION_ATTACKS[found.attacker].title
                if found.attacker in INVERSION_ATTACKS
                else "none: nothing was attacked",
            ),
            ("Access", found.access or "none"),
            (
                "Cost",
                f"trained further on vectors behind {found.defence}, where that recovers more"
                if found.defence
                else "none: the attack is shipped trained",
            ),
            ("Measured", found.date),
        ),
        caveat=PAGES["audit"].caveat.replace(
            _SAMPLED, "" if found.n_sampled == found.n_rows else _SAMPLED
        ),
        commands=(audit_command(found, with_source=with_words),),
    )


def row_cells(row: RowWords, *, with_words: bool) -> tuple[str, str]:
    """Return two table cells: how many words of a row leak, and these words, masked by default."""
    shown = [word if with_words else mask_word(word) for word in row.recovered]
    of = "" if row.n_words is None else f" of {row.n_words}"
    return f"{len(row.recovered)}{of}", ", ".join(shown) or "none"


def audit_command(found: AuditSummary, *, with_source: bool) -> str:
    """Return the `leakscope audit` command that repeats an audit, without its text files."""
    source = shlex.quote(found.source) if with_source else "SOURCE"
    more = f" --sample {found.n_sampled} --seed {found.seed}"
    more += f" --defence {shlex.quote(found.defence)}" if found.defence else ""
    more += " --personal" if found.personal else ""
    return f"leakscope audit {source}{more} --json report.json"
