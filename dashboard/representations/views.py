"""What was measured, as the page of representations shows it: figure, order, tables."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.figures.representations import (
    encoder_title,
    own_leaks_figure,
    representations_figure,
)
from core.spreadsheets import table_csv
from core.studies.own_encoder import OwnLeak
from core.studies.representation_order import (
    Comparison,
    PaperPoint,
    Verdict,
    compare_pairs,
    paper_points,
)
from core.studies.representation_summary import AttackScore, Point, Representations
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.representations.controls import VIEW_NAMES
from dashboard.representations.finding import title_of
from dashboard.representations.state import chosen

__all__ = ["most_read", "order", "own_picture", "picture", "shown_points", "table"]

_MARKS = {
    Verdict.HOLDS: "✓ holds",
    Verdict.FAILS: "✕ does not hold",
    Verdict.OPEN: "≈ not resolved",
}

_ALL_WORDS = "F1, every word"

_SCORES = (
    "useful, macro-F1",
    "Corò 2022: useful",
    "leaks, F1",
    "Corò 2022: leaks under MSP",
    "guessing",
    "precision",
    "recall",
    "weighted F1",
    _ALL_WORDS,
    "F1, attack's own words",
    "largest class alone",
)


def shown_points(found: Representations) -> list[Point]:
    """Return the points of the chosen encoders and attacks."""
    return found.points(chosen("encoder"), chosen("attack"), chosen("domain"), chosen("view"))


def most_read(found: Representations | None) -> dict[str, AttackScore]:
    """Return the most that was read from each chosen encoder, whichever attack is chosen."""
    if found is None:
        return {}
    best = {name: found.most_read(name, chosen("domain")) for name in chosen("encoder")}
    return {name: score for name, score in best.items() if score is not None}


def picture(points: Sequence[Point]) -> None:
    """Draw the figure, and say what it leaves out."""
    paper = paper_points(chosen("encoder"), chosen("domain"), chosen("view"))
    view = VIEW_NAMES[chosen("view")]
    if any(point.useful for point in points):
        st.plotly_chart(
            representations_figure(points, paper if chosen("paper") else (), view=f"{view} "),
            key="representations",
            config=chart_config(),
            alt=f"Words recovered against usefulness for sorting {view}, a point for each of "
            f"{len({p.leak.encoder for p in points})} encoders and each attack; the table "
            "below holds the same numbers",
        )
        st.caption(
            "Down is private, right is useful. The name stands at the attack that reads most. Bars "
            "are 95 % intervals; the dotted line is an attacker who never sees the vector."
        )
    without = [title_of(p) for p in points if p.useful is None]
    if without:
        names = "; ".join(dict.fromkeys(without))
        st.caption(f"Not in the figure, for want of a measured usefulness: {names}.")
    measured = {p.leak.encoder for p in points}
    missing = [plain(encoder_title(n)) for n in chosen("encoder") if n not in measured]
    if missing and points:
        st.caption(f"Not measured: {'; '.join(missing)}. They can be tried on a sentence below.")


def own_picture(found: Sequence[OwnLeak]) -> None:
    """Draw what a quick attack reads from an encoder of the visitor's own and the bundled one."""
    st.plotly_chart(
        own_leaks_figure(found),
        key="own-leaks",
        config=chart_config("leakscope-own-encoder"),
        alt="F1 of the words read: "
        + ", ".join(f"{encoder_title(leak.encoder)} {leak.f1.value:.0f}" for leak in found)
        + f"; guessing {found[0].f1.chance:.0f}",
    )


def order(points: Sequence[Point]) -> None:
    """Draw the ordering of Corò (2022), checked step by step on the rows shown."""
    st.markdown(
        "Corò (2022), a thesis on Italian news, finds that the more complex the model, the less "
        "can be read: tf-idf ≥ hashing ≥ LSA ≥ Doc2Vec ≥ Sentence-BERT, the first two close "
        "together (its own F1 of hashing is the higher one). Here MiniLM stands in for its "
        "Sentence-BERT. Each step on the rows shown:"
    )
    steps = compare_pairs(points, chosen("domain"))
    if not steps:
        st.info(
            "Choose two encoders that stand next to each other in this order.",
            icon=":material/ads_click:",
        )
        return
    for attack in dict.fromkeys(step.more.attack for step in steps):
        own = [s.verdict for s in steps if s.more.attack == attack]
        counts = [f"{own.count(v)} {_plural(v, own.count(v))}" for v in Verdict if own.count(v)]
        st.markdown(
            f"- **{INVERSION_ATTACKS[attack].title}**: of {len(own)} "
            f"step{'s' if len(own) > 1 else ''}, {', '.join(counts)}."
        )
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
        "attack": INVERSION_ATTACKS[more.attack].title,
        "here": _MARKS[step.verdict],
        "F1 of the first": more.f1.said(),
        "F1 of the second": less.f1.said(),
        "Corò 2022 (MSP)": f"{step.paper[0]:.1f} and {step.paper[1]:.1f}",
    }


def table(points: Sequence[Point]) -> None:
    """Draw all numbers behind the figure, those of Corò (2022) too, and the file of them."""
    paper = {
        p.encoder: p for p in paper_points(chosen("encoder"), chosen("domain"), chosen("view"))
    }
    rows = [_row(point, paper.get(point.leak.encoder)) for point in points]
    st.dataframe(
        rows,
        key="numbers",
        hide_index=True,
        column_config={
            "encoder": st.column_config.TextColumn("encoder", pinned=True),
            **{name: st.column_config.NumberColumn(name, format="%.1f") for name in _SCORES},
            _ALL_WORDS: st.column_config.NumberColumn(
                _ALL_WORDS,
                format="%.1f",
                help="The same attack, and words that it cannot name count as missed",
            ),
        },
    )
    save_csv(
        lambda: table_csv(rows),
        "representations",
        about="The table as it stands, for spreadsheets",
        is_disabled=not rows,
    )


def _row(point: Point, paper: PaperPoint | None) -> dict[str, object]:
    leak, useful = point.leak, point.useful
    return {
        "encoder": encoder_title(leak.encoder),
        "attack": INVERSION_ATTACKS[leak.attack].title,
        "useful, macro-F1": float(useful.parts()[0]) if useful else None,
        "useful, 95 %": useful.parts()[1] if useful else None,
        "Corò 2022: useful": round(paper.useful, 1) if paper else None,
        "leaks, F1": float(leak.f1.parts()[0]),
        "leaks, 95 %": leak.f1.parts()[1],
        "Corò 2022: leaks under MSP": round(paper.leak, 1) if paper else None,
        "guessing": round(leak.f1.chance, 1),
        "precision": round(leak.precision, 1),
        "recall": round(leak.recall, 1),
        "weighted F1": round(leak.weighted_f1, 1),
        _ALL_WORDS: None if leak.all_words is None else round(leak.all_words, 1),
        "F1, attack's own words": round(leak.own_vocabulary_f1, 1),
        "largest class alone": round(useful.chance, 1) if useful else None,
        "useful, n": useful.n if useful else None,
        "leaks, n": leak.f1.n,
        "fitted on": leak.n_fitted_on,
    }
