"""The formulas and settings behind the page of representations, and what it does not say."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.encoders import ENCODERS
from core.figures.representations import collection_title, encoder_title
from core.studies.prepared import QUICK
from core.studies.representation_summary import Point, Representations
from dashboard.calm import plain
from dashboard.origin import show_origin
from dashboard.representations.state import chosen

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed(found: Representations | None, points: Sequence[Point]) -> None:
    """Draw the scores, the settings of the thesis, and where ours differ."""
    with st.expander("How this is computed", icon=":material/function:"):
        _leakage()
        _usefulness()
        if found is not None:
            _measured(found, points)
        _differences()
        _sentence()
        _encoders(list(dict.fromkeys([*(p.leak.encoder for p in points), *chosen("encoder")])))


def _leakage() -> None:
    st.markdown(
        "**Leaks.** $W(x)$ is the set of words of the sentence $x$ without stop words, $\\hat W$ "
        "the set that the attack answers from the vector alone. Precision, recall and F1 are taken "
        "per sentence and averaged (Corò 2022, Eq. 4.6; times 100):"
    )
    st.latex(
        r"F_1 = \frac{1}{n}\sum_{x} \frac{2 P_x R_x}{P_x + R_x}, \quad "
        r"P_x = \frac{|W(x) \cap \hat W|}{|\hat W|}, \quad "
        r"R_x = \frac{|W(x) \cap \hat W|}{|W(x)|}"
    )
    st.markdown("The weighted F1 counts a word by how rare it is in the target texts (Eq. 4.7):")
    st.latex(r"\alpha_w = \log\frac{|D_{\text{target}}| + 1}{c(w) + 1}")
    st.markdown(
        "Cross-domain, the words count that both domains hold, $V_{in} \\cap V_{cross}$ (Table "
        "5.2); *F1, attack's own words* counts all of $V_{cross}$ (Table A.2)."
    )


def _usefulness() -> None:
    st.markdown(
        "**Useful.** A linear classifier, trained by stochastic gradient descent on the frozen "
        "vectors of 70 % of the articles, its settings by five-fold cross-validation, tells the "
        "topic of the other 30 %. The F1 of each topic, averaged over topics (§4.1.3):"
    )
    st.latex(
        r"\text{macro-}F_1 = \frac{1}{C} \sum_{c=1}^{C} "
        r"\frac{tp_c}{tp_c + \frac{1}{2}(fp_c + fn_c)}"
    )


def _measured(found: Representations, points: Sequence[Point]) -> None:
    sizes = sorted({p.leak.n_fitted_on for p in points})
    fitted = " or ".join(f"{size:,}" for size in sizes) or "no"
    failed = f" {found.n_failed} cells could not be measured." if found.n_failed else ""
    st.markdown(
        f"**Here.** Leakage on {_collection(found, 'encoders')}, usefulness on "
        f"{_collection(found, 'classification')}. In the rows shown, encoders and attacks "
        f"are fitted on {fitted} sentences; the targets come from documents that are not among "
        f"them.{failed} Intervals are 95 % bootstraps over target sentences and test articles; "
        "over several seeds, the greater of the error within and the spread between them."
    )

    show_origin([each for point in points for each in point.leak.provenances])
    if found.more_texts:
        st.markdown(
            "**Attacks with more texts.** Those that ship with Leakscope, on other sentences of "
            "the same collection. They answer other words, and count on those that they share "
            "with the texts, so that their F1 is close to being comparable, not exactly so."
        )


def _collection(found: Representations, study: str) -> str:
    name = found.targets[study]
    return f"{plain(collection_title(name))} ({plain(name)})"


def _differences() -> None:
    st.markdown(
        "**Where ours differs from the thesis, Corò (2022).** English news of five classes instead "
        "of an Italian newspaper of eight. Fewer texts: the thesis fits its encoders on 500,000 "
        "articles of an encyclopaedia and its attack on up to 849,692 sentences. In the thesis, "
        "encoders are fitted cross-domain throughout, and in-domain is the attack alone; here, "
        "*in-domain* fits both on the collection under attack, and the usefulness is that of "
        "encoders fitted on it. Its Sentence-BERT is an Italian BERT; ours is all-MiniLM-L6-v2. It "
        "shows one attack, multi-set prediction; the hollow diamonds pair its Table 5.2 with the "
        "cross-domain columns of its Table 5.1."
    )


def _sentence() -> None:
    settings = ", ".join(f"{name} {value:,}" for name, value in QUICK.settings)
    title = INVERSION_ATTACKS[QUICK.name].title.lower()
    st.markdown(
        f"**The sentence.** Each encoder is fitted on the chosen collection and attacked by the "
        f"{title} ({settings}), the same for all: it encodes each word of the collection alone and "
        "answers the nearest ten, or, of a bag of words, all that are in it. It is a quick attack "
        "and weaker than those of the figure. Where trained weights come with an encoder, the "
        "probe-started classifier answers besides; it saw far more texts, so do not compare it "
        "with the probes of the others."
    )
    st.latex(r"\text{score}(w) = \cos\big(\Phi(x) - \mu,\ \Phi(w) - \mu_V\big)")


def _encoders(names: Sequence[str]) -> None:
    if names:
        st.markdown("**The encoders.**")
    for name in names:
        entry = ENCODERS.get(name)
        about = (
            ""
            if entry is None
            else (f" {entry.summary.removesuffix('.')}; {entry.cost}. *{entry.reference}.*")
        )
        st.markdown(f"- **{plain(encoder_title(name))}**.{about}")
        if entry is not None and entry.formula:
            st.latex(entry.formula)


def caveats() -> None:
    """Draw what the page does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- What is read is a lower bound: another attack, or more texts, may read more.\n"
            "- Useful means sorting news by topic, by a linear classifier. An encoder that does "
            "badly at it may serve well for searching.\n"
            "- Doc2Vec and the means of word vectors are fitted on few texts here. Fitted on "
            "more, they are more useful and may leak otherwise.\n"
            "- A typed sentence is one example, not a measurement."
        )
