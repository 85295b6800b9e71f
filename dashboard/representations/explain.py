"""The formulas, settings and limitations of the representations page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.encoders import ENCODERS
from leakscope.core.figures.representations import collection_title, encoder_title
from leakscope.core.findings.prose import plain
from leakscope.core.studies.inversion.prepared import QUICK
from leakscope.core.studies.inversion.representation_summary import Point, Representations
from leakscope.dashboard.representations.state import control_value
from leakscope.dashboard.ui.provenance import show_provenance


def how_it_is_computed(found: Representations | None, points: Sequence[Point]) -> None:
    """Draw the scores' formulas, the settings, differences from the thesis, and the encoders."""
    with st.expander("How this is computed", icon=":material/function:"):
        _explain_leakage()
        _explain_utility()
        if found is not None:
            _settings_here(found, points)
        _explain_differences()
        _explain_quick_attack()
        _describe_encoders(
            list(dict.fromkeys([*(p.leak.encoder for p in points), *control_value("encoder")]))
        )


def _explain_leakage() -> None:
    """Draw the formulas of the leakage scores."""
    st.markdown(
        "**Leakage.** $W(x)$ is the set of words of the sentence $x$ without stop words, and "
        "$\\hat W$ is the set that the attack answers from the vector alone. Precision, recall and "
        "F1 are computed per sentence and averaged (Corò 2022, Eq. 4.6; times 100):"
    )
    st.latex(
        r"F_1 = \frac{1}{n}\sum_{x} \frac{2 P_x R_x}{P_x + R_x}, \quad "
        r"P_x = \frac{|W(x) \cap \hat W|}{|\hat W|}, \quad "
        r"R_x = \frac{|W(x) \cap \hat W|}{|W(x)|}"
    )
    st.markdown("The weighted F1 gives rarer words in the target texts more weight (Eq. 4.7):")
    st.latex(r"\alpha_w = \log\frac{|D_{\text{target}}| + 1}{c(w) + 1}")
    st.markdown(
        "Cross-domain scores count only words of both domains, $V_{in} \\cap V_{cross}$ (Table "
        "5.2). *F1, attack's own words* counts all of $V_{cross}$ (Table A.2)."
    )


def _explain_utility() -> None:
    """Draw the formula of the utility score."""
    st.markdown(
        "**Utility.** A linear classifier is trained by stochastic gradient descent on the frozen "
        "vectors of 70 % of the articles, with settings from five-fold cross-validation. It "
        "predicts the topic of the other 30 %. The F1 of each topic is averaged over the topics "
        "(§4.1.3):"
    )
    st.latex(
        r"\text{macro-}F_1 = \frac{1}{C} \sum_{c=1}^{C} "
        r"\frac{tp_c}{tp_c + \frac{1}{2}(fp_c + fn_c)}"
    )


def _settings_here(found: Representations, points: Sequence[Point]) -> None:
    """Draw which texts the results were measured on, and their provenance."""
    sizes = sorted({p.leak.n_fitted_on for p in points})
    fitted = " or ".join(f"{size:,}" for size in sizes) or "no"
    failed = f" {found.n_failed} settings could not be tested." if found.n_failed else ""
    st.markdown(
        f"**Data.** Leakage is measured on {_collection_title(found, 'encoders')}, utility on "
        f"{_collection_title(found, 'classification')}. In the rows shown, encoders and attacks "
        f"are fitted on {fitted} sentences. The targets come from other documents.{failed} "
        "Intervals are 95 % bootstraps over target sentences and test articles. With several "
        "seeds, they use the larger of the error within seeds and the spread between them."
    )

    show_provenance([each for point in points for each in point.leak.provenances])
    if found.more_texts:
        st.markdown(
            "**Attacks with more texts.** These are the attacks shipped with Leakscope, on other "
            "sentences of the same collection. They can name different words, and each is scored "
            "on those of its words that occur in the texts. So their F1 is only roughly "
            "comparable."
        )


def _collection_title(found: Representations, study: str) -> str:
    """Return the title of the collection of texts on which a study was measured."""
    name = found.targets[study]
    return f"{plain(collection_title(name))} ({plain(name)})"


def _explain_differences() -> None:
    """Draw how the experiments differ from Corò (2022)."""
    st.markdown(
        "**Differences from the thesis, Corò (2022).** We use English news with five classes; the "
        "thesis uses an Italian newspaper with eight. We use fewer texts: the thesis fits its "
        "encoders on 500,000 articles of an encyclopaedia and its attack on up to 849,692 "
        "sentences. Its encoders are always fitted cross-domain, and only its attack is fitted "
        "in-domain. Our *in-domain* fits both on the collection under attack, and utility is "
        "measured for these encoders. Its Sentence-BERT is an Italian BERT; ours is "
        "all-MiniLM-L6-v2. It has one attack, multi-set prediction. The hollow diamonds pair its "
        "Table 5.2 with the cross-domain columns of its Table 5.1."
    )


def _explain_quick_attack() -> None:
    """Draw how the quick attack on the typed sentence works."""
    settings = ", ".join(f"{name} {value:,}" for name, value in QUICK.settings)
    title = INVERSION_ATTACKS[QUICK.name].title.lower()
    st.markdown(
        f"**The sentence.** Each encoder is fitted on the chosen collection. The {title} "
        f"({settings}) attacks all of them: it encodes each word of the collection by itself and "
        "answers the nearest ten. For a bag of words, it answers every word in it. This attack is "
        "quick, and weaker than those in the figure. If an encoder has shipped weights, the "
        "probe-started classifier is shown as well. It was trained on far more texts, so do not "
        "compare it with the probes of other encoders."
    )
    st.latex(r"\text{score}(w) = \cos\big(\Phi(x) - \mu,\ \Phi(w) - \mu_V\big)")


def _describe_encoders(names: Sequence[str]) -> None:
    """Draw the description of each named encoder."""
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
    """Draw the limitations of the representations page."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- Leakage is a lower bound: another attack, or more training texts, may recover "
            "more.\n"
            "- Utility means sorting news by topic with a linear classifier. An encoder that is "
            "poor at it may still be good at search.\n"
            "- Doc2Vec and the averaged word vectors are fitted on few texts here. Fitted on more "
            "texts, they are more useful, and their leakage may differ.\n"
            "- A typed sentence is one example, not a measurement."
        )
