"""The shipped results on planted canaries and privacy audits."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import streamlit as st

from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.figures.memorisation import (
    ACCESS,
    audit_figure,
    describe_target,
)
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import UNMEASURED, Finding
from leakscope.core.findings.memorisation import canaries_of
from leakscope.core.formatting import format_percent
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.memorisation.summary import Memorisation, ModelAudit
from leakscope.dashboard.memorisation.state import UPLOAD, choice, chosen_request
from leakscope.dashboard.story.pinning import PinnedView
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.leakage import memorise_command

QUESTION = "Does a model memorise a secret that it was trained on?"
MEASURE = (
    "leakscope study memorisation --spec docs/presets/memorisation.spec.json --files DATA "
    "--out results/memorisation.json"
)
"""The command that measures this page's results if none ship."""

EXPOSURE = (
    "Exposure is log₂ of the number of possible secrets minus log₂ of the secret's rank among "
    "them. The likeliest secret has rank 1."
)


def commands_of(found: Memorisation | None, *, with_typed: bool = True) -> tuple[str, str]:
    """Return two commands: for the visitor's canary and for the shipped figures.

    Parameters
    ----------
    with_typed : bool
        Whether to include the canary; otherwise a placeholder replaces it.
    """
    request = chosen_request(str(choice("corpus")))
    usual = MemorisationSettings().to_dict()
    given = {k: v for k, v in request.settings.to_dict().items() if v != usual[k]}
    corpus = "FILE" if request.corpus == UPLOAD else request.corpus
    canary = request.canary if with_typed else "YOUR CANARY"
    own = memorise_command(corpus, canary, given, len(request.seeds))
    return own, "memorisation" if found else MEASURE


def unmeasured(slot: Any) -> None:
    """Draw a note that no results ship, and the command that measures them."""
    slot.title(QUESTION, anchor=False)
    slot.info(
        "Not measured on many canaries yet: this version ships no results. The command below "
        "measures them in a checkout, with the collections of `docs/data.md` in a folder DATA:\n\n"
        f"`{MEASURE}`\n\nYou can still plant your own canary below.",
        icon=":material/hourglass_empty:",
    )


def finding(found: Memorisation | None, *, with_typed: bool = True) -> PinnedView:
    """Build the finding of the shipped results for a story, with its commands.

    Parameters
    ----------
    with_typed : bool
        Whether to include the canary.
    """
    commands = tuple(map(command_of, commands_of(found, with_typed=with_typed)))
    if found is None:
        return PinnedView(finding=Finding(title=QUESTION, facts=UNMEASURED, commands=commands))
    return PinnedView(finding=replace(canaries_of(found), commands=commands))


def audit_results(found: Memorisation) -> None:
    """Draw the lower bounds of ε that audits found, beside the accountant's ε, and the control."""
    private = [each for each in found.audited if each.accountant is not None]
    n, n_above = sum(len(a.bounds) for a in private), sum(a.n_above for a in private)
    st.markdown(
        "Each of many canaries is inserted with probability ½. An auditor then guesses which of "
        "them were inserted. From the number of right guesses, the audit computes the least that ε "
        f"can be, with {format_percent(1 - found.alpha)} confidence (lower bound). A larger ε is a "
        "weaker guarantee. A calculation during training, the accountant, gives the most that ε "
        f"can be.{_describe_audits(n, n_above, found.alpha)}"
    )
    st.markdown(
        "**Lower and upper bounds of ε.** Each point is the median audit, and each bar is the "
        "range of all audits."
    )
    st.plotly_chart(
        audit_figure(found.audited),
        key="memorise-audit",
        config=chart_config("leakscope-audit"),
        alt="Lower bounds of ε from audits, beside the accountant's ε; the table below has the "
        "same numbers",
    )
    rows = [_audit_row(each) for each in found.audited]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="memorise-audited", hide_index=True)
        save_csv(lambda: table_csv(rows), "audits", about="One row per kind of audit")
    controls = [bound for each in found.audited for bound in each.shuffled]
    st.caption(
        "As a control, the same guesses were compared with a new random choice of inserted "
        "canaries. The lower bound should then be 0. It is above 0 in "
        f"{sum(bound > 0 for bound in controls)} of {len(controls)} audits; up to "
        f"{format_percent(found.alpha)} are expected by chance."
    )


def _describe_audits(n: int, n_above: int, alpha: float) -> str:
    """Describe how many of n audits have a bound above the accountant's ε; empty for no audit."""
    if not n:
        return ""
    text = (
        f" In **{n} audits** of training with differential privacy, **{n_above}** lower bounds are "
        "above the accountant's ε. If that ε is right, at most "
        f"{format_percent(alpha)} of audits give a bound above it."
    )
    if n_above > alpha * n:
        return f"{text} So the audits cast doubt on the guarantee."
    return f"{text} So the audits do not contradict the guarantee, but they do not prove it."


def _audit_row(each: ModelAudit) -> dict[str, Any]:
    """Return the results of one kind of audit as a table row (dict)."""
    accountant = "none" if each.accountant is None else f"{each.accountant:.2f}"
    return {
        "the auditor sees": ACCESS[each.access],
        "guarantee of the training": describe_target(each.target),
        "accountant's ε": accountant,
        "audits": len(each.bounds),
        "lower bound of ε, median": f"{each.median:.2f}",
        "from": f"{min(each.bounds):.2f}",
        "to": f"{max(each.bounds):.2f}",
        "median, if a Gaussian mechanism": f"{median(each.gaussian):.2f}" if each.gaussian else "–",
        "above the accountant's ε": "–" if each.accountant is None else each.n_above,
        "control above 0": sum(bound > 0 for bound in each.shuffled),
        "highest possible bound": f"{each.most:.2f}",
    }
