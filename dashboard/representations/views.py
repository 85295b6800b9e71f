"""The views of the representations page: figure, ordering and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.figures.representations import encoder_title
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.findings.representations import EncoderChoice, encoders_at, own_encoder
from leakscope.core.findings.shared import F1_EXPLAINED
from leakscope.core.formatting import join_words
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.inversion.own_encoder import OwnLeak
from leakscope.core.studies.inversion.representation_order import (
    Comparison,
    PaperPoint,
    Verdict,
    compare_pairs,
    paper_points,
)
from leakscope.core.studies.inversion.representation_summary import (
    YOURS,
    AttackScore,
    Point,
    Representations,
)
from leakscope.dashboard.representations.state import control_value
from leakscope.dashboard.story.pinning import OWN_ROWS, PinnedView
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import show_finding

_MARKS = {
    Verdict.HOLDS: "✓ agrees",
    Verdict.FAILS: "✕ contradicts",
    Verdict.OPEN: "≈ undecided",
}

_ALL_WORDS = "F1, every word"

_SCORES = (
    "utility, macro-F1",
    "Corò 2022: utility",
    "leakage, F1",
    "Corò 2022: leakage under MSP",
    "guessing",
    "precision",
    "recall",
    "weighted F1",
    _ALL_WORDS,
    "F1, attack's own words",
    "largest class alone",
)


def show_comparison(
    slot: Any, finding: Finding, points: Sequence[Point], below: Any, **how: Any
) -> None:
    """Draw a comparison's finding and its captions, or a hint if nothing is chosen."""
    if finding.table is None:  # nothing to compare
        slot.title(plain(finding.title), anchor=False)
        slot.info(finding.body, icon=":material/ads_click:")
    else:
        show_finding(slot, finding, "encoders", below=below, n_open=1, **how)
    for line in _captions(finding, points):
        slot.caption(line)


def pinned(found: Representations, choice: EncoderChoice, with_names: bool) -> PinnedView:
    """Build the comparison's finding for a story; own encoders are named only if `with_names`."""
    finding = encoders_at(found, choice, hides_own=not with_names)
    if not has_own(choice):
        return PinnedView(finding=finding)
    return PinnedView(finding=finding, opens=OWN_ROWS, is_live=False)


def has_own(choice: EncoderChoice) -> bool:
    """Return whether a comparison contains the visitor's own rows."""
    return any(name.startswith(YOURS) for name in choice.encoders)


def pinned_own_encoder(found: Sequence[OwnLeak], with_name: bool) -> PinnedView:
    """Build the own encoder's finding for a story, without its name unless `with_name`."""
    return PinnedView(
        finding=own_encoder(found, hides_own=not with_name),
        opens="not possible: the page measures an encoder only on request",
        is_live=False,
    )


def strongest_scores(found: Representations | None) -> dict[str, AttackScore]:
    """Return the best attack's score on each selected encoder, over all attacks, by encoder."""
    if found is None:
        return {}
    best = {
        name: found.most_read(name, control_value("domain")) for name in control_value("encoder")
    }
    return {name: score for name, score in best.items() if score is not None}


def _captions(finding: Finding, points: Sequence[Point]) -> Iterator[str]:
    """Yield captions: how to read the figure, and which encoders the comparison leaves out."""
    if finding.figure is not None:
        yield (
            "Lower points leak less; points further right are more useful. Each encoder's name is "
            "beside the result of the strongest attack on it. Bars are 95 % intervals. The dotted "
            f"line is an attacker who never sees the vector. {F1_EXPLAINED}. Leakage is a lower "
            "bound: another attack, or more training texts, may recover more."
        )
        if control_value("paper"):
            yield (
                "Hollow diamonds are results of Corò (2022) on other texts. Compare only the order "
                "of the encoders, not the values."
            )
    titles = {name: plain(encoder_title(name)) for name in control_value("encoder")}
    if without := dict.fromkeys(p.leak.encoder for p in points if p.useful is None):
        names = join_words([titles[name] for name in without])
        yield f"The comparison leaves out {names}, because utility was not measured."
    measured = {p.leak.encoder for p in points}
    if points and (missing := [title for name, title in titles.items() if name not in measured]):
        yield (
            f"The comparison leaves out {join_words(missing)}, because leakage under these "
            "attacks was not measured. You can try them on a sentence below."
        )


def thesis_ordering(points: Sequence[Point]) -> None:
    """Draw a table of the ordering in Corò (2022), with a verdict on each neighbouring pair."""
    st.markdown(
        "Corò (2022), a thesis on Italian news, finds that more complex models leak less. Its "
        "order from most to least leakage is: tf-idf, hashing, LSA, Doc2Vec, Sentence-BERT. The "
        "first two are close: in the thesis's own numbers, hashing even has the higher F1. We use "
        "MiniLM instead of Sentence-BERT. We compare each encoder shown with the next one in this "
        "order. LSA has two variants, and each is compared."
    )
    steps = compare_pairs(points, control_value("domain"))
    if not steps:
        st.info(
            "Choose two encoders that follow each other in this order.",
            icon=":material/ads_click:",
        )
        return
    st.markdown(f"**{_count_verdicts(steps).capitalize()}.**")
    for attack in dict.fromkeys(step.more.attack for step in steps):
        own = [step for step in steps if step.more.attack == attack]
        whose = " (the attack of the thesis)" * (attack == "msp")
        st.markdown(f"- {INVERSION_ATTACKS[attack].title}{whose}: {_count_verdicts(own)}.")
    st.dataframe([_step_row(s) for s in steps], key="order", hide_index=True)
    if len({p.leak.n_fitted_on for p in points}) > 1:
        st.caption("These rows were fitted on different numbers of sentences; see *The numbers*.")
    st.caption(
        "A comparison counts as decided only if the two 95 % intervals do not overlap. This rule "
        "is cautious: a more sensitive (paired) test would decide more comparisons. With many "
        "comparisons, chance alone can make a few look decided."
    )


def _count_verdicts(steps: Sequence[Comparison]) -> str:
    """Describe how many comparisons agree with the thesis, contradict it or are undecided."""
    found = [step.verdict for step in steps]
    counts = [
        f"{found.count(v)} {_verdict_predicate(v, found.count(v))}" for v in Verdict if v in found
    ]
    return f"of {len(found)} comparison{'s' if len(found) > 1 else ''}, {join_words(counts)}"


def _verdict_predicate(verdict: Verdict, n: int) -> str:
    """Return what n comparisons do, as a predicate: “agrees with the thesis”, “are undecided”."""
    if verdict is Verdict.OPEN:
        return f"{'are' if n > 1 else 'is'} undecided"
    end = "" if n > 1 else "s"
    return f"agree{end} with the thesis" if verdict is Verdict.HOLDS else f"contradict{end} it"


def _step_row(step: Comparison) -> dict[str, object]:
    """Return one comparison of the thesis's ordering as a table row (dict)."""
    more, less = step.more, step.less
    return {
        "leaks more": encoder_title(more.encoder),
        "leaks less": encoder_title(less.encoder),
        "attack": INVERSION_ATTACKS[more.attack].title,
        "here": _MARKS[step.verdict],
        "F1 of the first": more.f1.format(),
        "F1 of the second": less.f1.format(),
        "Corò 2022 (MSP)": f"{step.paper[0]:.1f} and {step.paper[1]:.1f}",
    }


def points_table(points: Sequence[Point]) -> None:
    """Draw the table of all points, with those of Corò (2022), and its download."""
    paper = {
        p.encoder: p
        for p in paper_points(
            control_value("encoder"), control_value("domain"), control_value("view")
        )
    }
    rows = [_point_row(point, paper.get(point.leak.encoder)) for point in points]
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
                help="The same attack; words that it cannot name count as missed.",
            ),
        },
    )
    save_csv(
        lambda: table_csv(rows),
        "representations",
        about="The table as shown, for spreadsheets",
        is_disabled=not rows,
    )


def _point_row(point: Point, paper: PaperPoint | None) -> dict[str, object]:
    """Return a point as a table row (dict), beside that of Corò (2022) if there is one."""
    leak, useful = point.leak, point.useful
    return {
        "encoder": encoder_title(leak.encoder),
        "attack": INVERSION_ATTACKS[leak.attack].title,
        "utility, macro-F1": float(useful.parts()[0]) if useful else None,
        "utility, 95 % CI": useful.parts()[1] if useful else None,
        "Corò 2022: utility": round(paper.useful, 1) if paper else None,
        "leakage, F1": float(leak.f1.parts()[0]),
        "leakage, 95 % CI": leak.f1.parts()[1],
        "Corò 2022: leakage under MSP": round(paper.leak, 1) if paper else None,
        "guessing": round(leak.f1.chance, 1),
        "precision": round(leak.precision, 1),
        "recall": round(leak.recall, 1),
        "weighted F1": round(leak.weighted_f1, 1),
        _ALL_WORDS: None if leak.all_words is None else round(leak.all_words, 1),
        "F1, attack's own words": round(leak.own_vocabulary_f1, 1),
        "largest class alone": round(useful.chance, 1) if useful else None,
        "utility, n": useful.n if useful else None,
        "leakage, n": leak.f1.n,
        "fitted on": leak.n_fitted_on,
    }
