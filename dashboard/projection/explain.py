"""The formulas and caveats of the map page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.projection.spec import METHODS, ProjectionSpec
from leakscope.core.specs import DefenceSpec


def how_it_is_computed(spec: ProjectionSpec, defence: DefenceSpec | None = None) -> None:
    """Draw explanations of the map's method, the selected defence and the map's scores."""
    method = METHODS[spec.method]
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            f"**{method.title}** ({method.reference}) preserves: {method.keeps}\n\n"
            f"**A new sentence.** {method.places_new}\n\n"
            "**A defence.** Protected vectors are placed on the same map in the same way. The "
            "noise is the same sample at every strength, so that only the strength moves the "
            "points. The same attack, trained on vectors without a defence, attacks a selection "
            "with and without the defence; the selection gets new noise.\n\n"
            "**Whole sentences.** `reconstruct` writes sentences from the undefended vectors of at "
            "most five selected texts, chosen at random. Its settings on *Inversion* limit the "
            "queries of the encoder. ROUGE-L is the F-measure of the longest common subsequence "
            "of words. The baseline is random bundled sentences of about the same length."
        )
        if defence is not None:
            entry = DEFENCES[defence.name]
            about = f"**{entry.title}** ({entry.reference}). {entry.summary} Cost: {entry.cost}."
            st.markdown(about)
            if entry.formula:
                st.latex(entry.formula)
        st.markdown(
            "**Trustworthiness** (Venna & Kaski 2001) compares the $k$ nearest neighbours of each "
            "of $n$ points on the map with those among the vectors. $U_k(i)$ are the neighbours "
            "on the map that are not among the $k$ nearest vectors; each counts against the map "
            "by its rank $r$ among the vectors:"
        )
        st.latex(
            r"T(k) = 1 - \frac{2}{n k (2N - 3k - 1)} \sum_{i=1}^{n} \sum_{j \in U_k(i)} "
            r"\big(r(i, j) - k\big)"
        )
        st.markdown(
            "The map has $N$ points; a random sample of at most 1,000 of them is compared.\n\n"
            "**Neighbours that share a value** are counted among the 10 nearest on the map, for at "
            "most 2,000 points, and compared with points scattered at random. Intervals are "
            "percentile bootstraps over the distinct texts of the sampled points."
        )


def caveats() -> None:
    """Draw the limitations of a map."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- UMAP and t-SNE place similar texts side by side. Distances between distant groups, "
            "sizes of groups and the overall shape mean little; another seed changes them.\n"
            "- A group on the map does not prove a class. Points far apart on the map may have "
            "similar vectors: the trustworthiness measures how often.\n"
            "- Texts of the same document need not be by the same person.\n"
            "- A point that a defence moved into a crowd may still be linked to its original. "
            "Trust the number, not the picture.\n"
            "- What one attack does not recover, another may."
        )
