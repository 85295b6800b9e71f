"""What was measured, as the page of representations shows it: finding, figure, order, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.attacks import ATTACKS
from core.export import table_csv
from core.representation_plots import encoder_title, representations_figure
from core.studies.representation_order import (
    Comparison,
    Finding,
    PaperPoint,
    Verdict,
    compare_pairs,
    least_leaking,
    paper_points,
)
from core.studies.representation_summary import Point, Representations
from core.studies.scores import Score
from dashboard.calm import plain
from dashboard.representation_controls import VIEW_NAMES
from dashboard.representation_state import chosen

__all__ = ["QUESTION", "finding", "order", "picture", "shown_points", "table"]

QUESTION = "Which way of turning text into vectors leaks least at equal usefulness?"
_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✕", Verdict.OPEN: "≈"}


def shown_points(found: Representations) -> list[Point]:
    """Return the points of the chosen encoders and attacks."""
    return found.points(chosen("encoder"), chosen("attack"), chosen("domain"), chosen("view"))


def finding(slot: Any, points: Sequence[Point]) -> None:
    """Draw the answer to the page's question that the chosen rows give."""
    best = least_leaking(points)
    if best is None:
        slot.title(QUESTION, anchor=False)
        slot.info(
            "Choose at least one encoder and one attack that were measured.",
            icon=":material/ads_click:",
        )
        return
    leak, useful = best.best.leak, best.best.useful
    assert useful is not None
    name, n = _title(best.best), len(best.as_useful)
    slot.title(_verdict(name, best), anchor=False)
    others = f"{n - 1} other{'s' if n > 2 else ''} as useful" if n > 1 else "no other as useful"
    told = (
        f"{QUESTION} Of {best.n_compared} compared, {name} sorts "
        f"{VIEW_NAMES[chosen('view')]} of news with a macro-F1 of **{_said(useful)}** "
        f"(n = {useful.n:,}), with {others}. Under {ATTACKS[leak.attack].title.lower()}, of the "
        f"chosen attacks the one that reads most from it, its words come back with an F1 of "
        f"**{_said(leak.f1)}** (n = {leak.f1.n:,}); guessing without the vector reaches "
        f"{leak.f1.chance:.0f}."
    )
    rest = [p for p in best.as_useful if p is not best.best]
    if rest:
        told += " The others: " + ", ".join(f"{_title(p)} {_said(p.leak.f1)}" for p in rest)
        told += ", each under the attack that reads most from it."
    if best.tied:
        names = ", ".join(map(_title, best.tied))
        told += f" The intervals of {name} and {names} overlap: these rows do not tell them apart."
    if best.leak_less:
        told += " Less useful, but less is read: " + ", ".join(
            f"{_title(p)} {_said(p.leak.f1)}, useful {_said(p.useful)}"
            for p in best.leak_less if p.useful
        ) + "."  # fmt: skip
    slot.markdown(told)
    slot.caption(
        "95 % intervals in brackets. As useful: the interval reaches that of the most useful "
        "encoder shown. What is read is a lower bound: another attack may read more."
    )


def _verdict(name: str, best: Finding) -> str:
    if best.n_compared == 1:
        return f"{name} leaks, and no other is chosen to set beside it"
    if best.tied:
        n = len(best.tied)
        return f"{name} and {n} other{'s' if n > 1 else ''} leak least of the most useful"
    if len(best.as_useful) > 1:
        return f"{name} leaks least of the most useful"
    if not best.leak_less:
        return f"{name} is the most useful, and none leaks less"
    return f"{name} is the most useful; what leaks less is less useful"


def _title(point: Point) -> str:
    return plain(encoder_title(point.leak.encoder))


def _said(score: Score) -> str:
    return f"{score.value:.0f} [{score.ci95.low:.0f}, {score.ci95.high:.0f}]"


def picture(points: Sequence[Point]) -> None:
    """Draw the figure, and say what it leaves out."""
    paper = paper_points(chosen("encoder"), chosen("domain"), chosen("view"))
    view = VIEW_NAMES[chosen("view")]
    if any(point.useful for point in points):
        st.plotly_chart(
            representations_figure(points, paper if chosen("paper") else (), view=f"{view} "),
            key="representations",
            config={"displaylogo": False, "displayModeBar": "hover",
                    "toImageButtonOptions": {"format": "svg", "filename": "leakscope"}},
            alt=f"Words recovered against usefulness for sorting {view}, a point for each of "
            f"{len({p.leak.encoder for p in points})} encoders and each attack; the table "
            "below holds the same numbers",
        )  # fmt: skip
        st.caption(
            "Down is private, right is useful. The name stands at the attack that reads most. Bars "
            "are 95 % intervals; the dotted line is an attacker who never sees the vector."
        )
    without = [_title(p) for p in points if p.useful is None]
    if without:
        names = ", ".join(dict.fromkeys(without))
        st.caption(f"Not in the figure, for want of a measured usefulness: {names}.")
    measured = {p.leak.encoder for p in points}
    missing = [plain(encoder_title(n)) for n in chosen("encoder") if n not in measured]
    if missing and points:
        st.caption(f"Not measured: {', '.join(missing)}. They can be tried on a sentence below.")


def order(points: Sequence[Point]) -> None:
    """Draw the thesis's ordering, checked step by step on the rows shown."""
    st.markdown(
        "The thesis, Corò (2022), finds that the more complex the model, the less can be read: "
        "tf-idf ≥ hashing ≥ LSA ≥ Doc2Vec ≥ Sentence-BERT, the first two close together (its own "
        "F1 of hashing is the higher one). Here MiniLM stands in for its Sentence-BERT. Each step "
        "on the rows shown:"
    )
    steps = compare_pairs(points, chosen("domain"))
    if not steps:
        st.info("Choose two encoders that follow each other in this order.",
                icon=":material/ads_click:")  # fmt: skip
        return
    for attack in dict.fromkeys(step.more.attack for step in steps):
        own = [s.verdict for s in steps if s.more.attack == attack]
        counts = [f"{own.count(v)} {_plural(v, own.count(v))}" for v in Verdict if own.count(v)]
        st.markdown(f"- **{ATTACKS[attack].title}**: of {len(own)} "
                    f"step{'s' if len(own) > 1 else ''}, {', '.join(counts)}.")  # fmt: skip
    st.dataframe([_step(s) for s in steps], key="order", hide_index=True)
    if len({p.leak.n_fitted_on for p in points}) > 1:
        st.caption("These rows were not all fitted on as many sentences: the table says on which.")
    st.caption(
        "Resolved where the two 95 % intervals share no value, which is stricter than a paired "
        "test. With several steps and attacks, one in many may be resolved by chance."
    )


def _plural(verdict: Verdict, n: int) -> str:
    if verdict is Verdict.OPEN:
        return "are not resolved" if n > 1 else "is not resolved"
    stem = "hold" if n > 1 else "holds"
    return stem if verdict is Verdict.HOLDS else f"do{'' if n > 1 else 'es'} not hold"


def _step(step: Comparison) -> dict[str, object]:
    more, less = step.more, step.less
    return {
        "leaks more": encoder_title(more.encoder),
        "leaks less": encoder_title(less.encoder),
        "attack": ATTACKS[more.attack].title,
        "here": f"{_MARKS[step.verdict]} {step.verdict.value}",
        "F1 of the first": f"{_said(more.f1)}",
        "F1 of the second": f"{_said(less.f1)}",
        "thesis (MSP)": f"{step.paper[0]:.2f} and {step.paper[1]:.2f}",
    }


def table(points: Sequence[Point]) -> None:
    """Draw all numbers behind the figure, the thesis's beside ours, and the file of them."""
    paper = {p.encoder: p for p in paper_points(chosen("encoder"), chosen("domain"),
                                                chosen("view"))}  # fmt: skip
    rows = [_row(point, paper.get(point.leak.encoder)) for point in points]
    st.dataframe(
        rows,
        key="numbers",
        hide_index=True,
        column_config={"encoder": st.column_config.TextColumn("encoder", pinned=True)},
    )
    st.download_button(
        "CSV",
        # With a byte-order mark, spreadsheets read accents and other scripts rightly.
        lambda: table_csv(rows).encode("utf-8-sig"),
        "leakscope-representations.csv",
        "text/csv",
        key="download-csv",
        icon=":material/table:",
        help="The table as it stands, for spreadsheets",
        on_click="ignore",
        disabled=not rows,
    )


def _row(point: Point, paper: PaperPoint | None) -> dict[str, object]:
    leak, useful = point.leak, point.useful
    return {
        "encoder": encoder_title(leak.encoder),
        "attack": ATTACKS[leak.attack].title,
        "useful, macro-F1": round(useful.value, 1) if useful else None,
        "useful, 95 %": _interval(useful) if useful else None,
        "C22: useful": paper.useful if paper else None,
        "leaks, F1": round(leak.f1.value, 1),
        "leaks, 95 %": _interval(leak.f1),
        "C22: leaks under MSP": paper.leak if paper else None,
        "guessing": round(leak.f1.chance, 1),
        "precision": round(leak.precision, 1),
        "recall": round(leak.recall, 1),
        "weighted F1": round(leak.weighted_f1, 1),
        "F1, attack's own words": round(leak.own_vocabulary_f1, 1),
        "largest class alone": round(useful.chance, 1) if useful else None,
        "useful, n": useful.n if useful else None,
        "leaks, n": leak.f1.n,
        "fitted on": leak.n_fitted_on,
    }


def _interval(score: Score) -> str:
    return f"{score.ci95.low:.1f} to {score.ci95.high:.1f}"
