"""The formulas behind the page of maps, and what a map does not say."""

from __future__ import annotations

import streamlit as st

from core.defences.registry import DEFENCES, DefenceEntry
from core.projection.spec import METHODS, ProjectionSpec
from core.specs import DefenceSpec

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed(spec: ProjectionSpec, defence: DefenceSpec | None = None) -> None:
    """Draw how the map and its numbers come about, and what the defence in force does."""
    method = METHODS[spec.method]
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            f"**{method.title}** ({method.reference}) keeps: {method.keeps}\n\n"
            f"**A new sentence.** {method.places_new}\n\n"
            "**A defence.** Protected vectors are placed in the same way, on the same map. The "
            "noise is the same draw at every strength, so that the strength alone moves the "
            "points. A selection is attacked twice, without and with it, by the same attack, which "
            "was trained on vectors without a defence; the noise is drawn anew for the "
            "selection.\n\n"
            "**The sentences themselves.** Of at most five selected texts, drawn by chance, "
            "`reconstruct` writes whole sentences from the vectors without a defence, each by as "
            "many queries of the encoder as its settings on *Inversion* say. ROUGE-L is the "
            "F-measure of the longest run of words, gaps allowed, that both have in the same "
            "order; beside it stands that of bundled sentences of about the same length, drawn "
            "by chance."
        )
        if defence is not None:
            _defence(DEFENCES[defence.name])
        st.markdown(
            "**Trustworthiness** (Venna & Kaski 2001) asks each of $n$ points for its $k$ nearest "
            "neighbours on the map. Those that are not among its $k$ nearest by their vectors "
            "count against the map, by their rank $r$ there:"
        )
        st.latex(
            r"T(k) = 1 - \frac{2}{n k (2N - 3k - 1)} \sum_{i=1}^{n} \sum_{j \in U_k(i)} "
            r"\big(r(i, j) - k\big)"
        )
        st.markdown(
            "$N$ points are on the map, of which at most 1,000, drawn at random, are asked.\n\n"
            "**Neighbours that share a column**: the 10 nearest on the map of at most 2,000 "
            "points, beside what points scattered at random would have. Intervals are percentile "
            "bootstraps over the distinct texts of the points asked."
        )


def _defence(entry: DefenceEntry) -> None:
    st.markdown(
        f"**{entry.title}** ({entry.reference}). {entry.summary} How it is used: {entry.cost}."
    )
    if entry.formula:
        st.latex(entry.formula)


def caveats() -> None:
    """Draw what the map does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- UMAP and t-SNE draw near things near. The distance between two far groups, the "
            "size of a group and the shape of the whole mean little; another seed arranges them "
            "otherwise.\n"
            "- A group on the map is not a proof of a class, and points that lie apart may be "
            "close among the vectors: the trustworthiness says how often.\n"
            "- Points that a defence moved can look hidden in a crowd and be linked all the same; "
            "go by the number, not by the picture.\n"
            "- What one attack does not recover, another may."
        )
