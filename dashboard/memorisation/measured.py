"""What was measured of planted canaries and of audits, as rows that ship: the page's finding."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.figures.memorisation import (
    ACCESS,
    MODELS,
    audit_figure,
    insertions_figure,
    target_said,
    times_said,
    verdict,
)
from core.said import percent_said
from core.spreadsheets import table_csv
from core.studies.memorisation_summary import Audited, Memorisation
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.leakage import memorise_command
from dashboard.memorisation.state import UPLOAD, chosen, chosen_request
from dashboard.origin import show_origin
from dashboard.story.pinning import note_figure

__all__ = [
    "EXPOSURE",
    "MEASURE",
    "QUESTION",
    "audit",
    "commands",
    "finding",
    "insertions",
    "note",
    "unmeasured",
]

QUESTION = "Does a model keep a secret that it was trained on?"
MEASURE = (
    "python -m core study memorisation --spec docs/presets/memorisation.spec.json --files DATA "
    "--out assets/memorisation/rows.json"
)
"""What measures the rows of this page, where none come with it."""

EXPOSURE = (
    "How many bits of the secret's randomness the model gives away: log₂ of how many secrets there "
    "could be, less log₂ of the secret's place among all of them, the likeliest first."
)


def commands(found: Memorisation | None, *, with_typed: bool = True) -> tuple[str, str]:
    """Return what repeats the figures of the page: those that ship, and one's own.

    Parameters
    ----------
    with_typed : bool
        Whether the canary may be told; else another word stands for it.
    """
    request = chosen_request(str(chosen("corpus")))
    usual = MemorisationSettings().to_dict()
    given = {k: v for k, v in request.settings.to_dict().items() if v != usual[k]}
    corpus = "FILE" if request.corpus == UPLOAD else request.corpus
    canary = request.canary if with_typed else "YOUR CANARY"
    own = memorise_command(corpus, canary, given, len(request.seeds))
    return own, "memorisation" if found else MEASURE


def unmeasured(slot: Any) -> None:
    """Draw the question, and that nothing was measured yet."""
    slot.title(QUESTION, anchor=False)
    slot.info(
        "Not measured on many canaries yet: no rows come with this version. In a checkout, with "
        "the collections of `docs/data.md` in a folder DATA, this command does it, "
        "and the page shows what it finds:\n\n"
        f"`{MEASURE}`\n\nBelow, a canary of your own can be planted all the same.",
        icon=":material/hourglass_empty:",
    )


def finding(slot: Any, found: Memorisation) -> None:
    """Draw the answer to the page's question that the shipped rows give."""
    slot.title(verdict(found), anchor=False)
    told = [_most_said(found, model) for model in dict.fromkeys(p.model for p in found.planted)]
    slot.markdown(
        f"Secrets with {found.n_values:,} possible values were planted in {found.n_texts:,} "
        "sentences, and small language models trained on them. Their **exposure** is what a model "
        f"gives away of a secret, of {found.law.most or 0:.1f} bits at most. {' '.join(told)} "
        f"Planted nowhere, a secret has {found.law.mean:.2f} bits on average, as chance alone "
        "would have it.",
        help=EXPOSURE,
    )
    slot.caption("95 % intervals in brackets, over canaries and seeds.")


def _most_said(found: Memorisation, model: str) -> str:
    point = [point for point in found.planted if point.model == model][-1]
    return (
        f"{MODELS[model]}, planted {times_said(point.insertions)}: "
        f"**{point.exposure.said()}** bits after {found.epochs} passes."
    )


def note(slot: Any, found: Memorisation) -> None:
    """Note the exposure for a story."""
    alt = "Exposure in bits by how often a canary was planted, a line for each model"
    note_figure(slot, lambda: insertions_figure(found), alt)


def insertions(found: Memorisation) -> None:
    """Draw the exposure over how often a canary was planted, and its numbers."""
    st.markdown("**Exposure after the last pass** · by how often the secret was planted")
    st.plotly_chart(
        insertions_figure(found),
        key="memorise-insertions",
        config=chart_config("leakscope-insertions"),
        alt="Exposure in bits by how often a canary was planted, a line for each model; the table "
        "below holds the same numbers",
    )
    rows = [
        {
            "model": MODELS[point.model],
            "times planted": point.insertions,
            "exposure, bits": point.exposure.said(),
            "planted nowhere, bits": point.controls.said(2),
        }
        for point in found.planted
    ]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="memorise-planted", hide_index=True)
        save_csv(lambda: table_csv(rows), "insertions", about="A row for each setting")
        show_origin(found.provenances)


def audit(found: Memorisation) -> None:
    """Draw what audits in one run show of ε, beside what the accountant promises."""
    promised = [each for each in found.audited if each.accountant is not None]
    n, n_above = sum(len(a.bounds) for a in promised), sum(a.n_above for a in promised)
    st.markdown(
        "Many canaries are put in by the toss of a coin, and an auditor guesses which. From the "
        "right guesses follows an ε that the training surely exceeds, at "
        f"{percent_said(1 - found.alpha)}; the accountant says what it surely keeps to. "
        + (f"Of **{n} audits** of private training, **{n_above}** lie above the accountant's ε; "
           f"a sound accountant lets at most {percent_said(found.alpha)} of them." if n else "")
    )  # fmt: skip
    st.markdown("**ε from below and from above** · points: the middle audit; bars: all of them")
    st.plotly_chart(
        audit_figure(found.audited),
        key="memorise-audit",
        config=chart_config("leakscope-audit"),
        alt="The lower bound of ε that audits show beside the accountant's ε; the table below "
        "holds the same numbers",
    )
    rows = [_audited(each) for each in found.audited]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="memorise-audited", hide_index=True)
        save_csv(lambda: table_csv(rows), "audits", about="A row for each kind of audit")
    st.caption("As a control the coins are tossed anew: nothing is to be shown of them.")


def _audited(each: Audited) -> dict[str, Any]:
    accountant = "none" if each.accountant is None else f"{each.accountant:.2f}"
    return {
        "the auditor": ACCESS[each.access],
        "training keeps to": target_said(each.target),
        "accountant's ε": accountant,
        "audits": len(each.bounds),
        "ε at least, median": f"{each.median:.2f}",
        "from": f"{min(each.bounds):.2f}",
        "to": f"{max(each.bounds):.2f}",
        "above the accountant's": "–" if each.accountant is None else each.n_above,
        "control above 0": sum(bound > 0 for bound in each.shuffled),
        "could be shown": f"{each.most:.2f}",
    }
