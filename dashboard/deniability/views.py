"""The cards of the deniability page: sentence, tokens, η, vocabulary, and how it is computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import streamlit as st

from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from leakscope.core.defences.deniability.eta_choice import (
    MECHANISM,
    EtaChoice,
    choose_by_corpus,
    choose_by_tokens,
)
from leakscope.core.defences.deniability.geometry import Geometry
from leakscope.core.defences.deniability.sentence import DeniableSentence, TokenDeniability
from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
from leakscope.core.defences.metric_dp.audit.choices import CHOICES
from leakscope.core.defences.metric_dp.audit.mechanism import (
    ALPHA,
    Audit,
    audit,
    defence_factory,
    list_untested,
)
from leakscope.core.defences.metric_dp.distances import has_d_chi_guarantee
from leakscope.core.defences.metric_dp.eta_grid import eta_steps
from leakscope.core.defences.metric_dp.guarantee import Guarantees
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.errors import CoreError, InvalidInputError
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.deniability import (
    all_outcomes,
    describe_scales,
    distances_and_noise,
    near_words,
    privatised_sentence,
    recommended_eta,
)
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_percent
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.specs import EncoderSpec
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.deniability import replacements
from leakscope.core.studies.tradeoff import summary
from leakscope.dashboard import cache
from leakscope.dashboard.deniability import state
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion.pinned import is_typed
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui import encoder_choice, markup
from leakscope.dashboard.ui.downloads import save_csv, save_json
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_answer, show_figure, show_finding, show_numbers
from leakscope.dashboard.ui.guarantee import guarantees_of
from leakscope.dashboard.ui.leakage import deniability_command
from leakscope.dashboard.ui.own_file import upload_facts
from leakscope.dashboard.ui.session_results import SessionCache
from leakscope.dashboard.ui.state import text


def deniable_sentence(text: str, encoder: WhiteBoxEncoder, on: EncoderSpec) -> DeniableSentence:
    """Compute the deniability statistics of a sentence, cached in the session."""
    cached = state.deniable_of((text, on))
    if cached is not None:
        return cached
    engine = cache.deniability_engine(on)
    return state.remember_deniable((text, on), DeniableSentence(encoder, engine, text))


def finding(
    sentence: DeniableSentence,
    eta: float,
    steps: Sequence[float],
    on: EncoderSpec,
    released: Sequence[str],
    *,
    with_typed: bool = True,
) -> Finding:
    """Build the finding on how much of the sentence stays unchanged at η.

    Parameters
    ----------
    released : sequence of str
        One draw of the privatised sentence, token by token.
    with_typed : bool
        Whether the finding may contain typed text.
    """
    typed, statistics = text(), cache.token_statistics(on)
    is_shown = with_typed or not is_typed(typed)
    is_named = with_typed or not encoder_choice.is_typed(on)
    command = deniability_command(
        typed if is_shown else "YOUR SENTENCE", eta, on.name if is_named else "YOUR ENCODER"
    )
    return privatised_sentence(
        sentence,
        eta,
        steps,
        promises=guarantees_of(MECHANISM, eta, typed, on),
        statistics=statistics and statistics[0],
        measured=measured_tradeoff(on),
        released=released if is_shown else None,
        encoder=on.name if is_named and encoder_choice.address().query() else "",
        commands=(command,)
        if encoder_choice.is_typed(on)
        else (command, command_of("deniability")),
    )


def privatised_card(sentence: DeniableSentence, released: Sequence[str]) -> None:
    """Draw one noisy release of the sentence, with the original beside it on request."""
    st.html(markup.label("Released, one draw"))
    is_beside = st.toggle(
        "Before and after side by side",
        key=state.BESIDE_KEY,
        persist_state="session",
        help="Shows the original sentence beside the released one",
    )
    if is_beside:
        before, after = st.columns(2, gap="medium")
        before.html(markup.label("Before") + markup.plain_paragraph(text()))
        after.html(markup.label("After") + markup.privatised_sentence(sentence.tokens, released))
    else:
        st.html(markup.privatised_sentence(sentence.tokens, released))
    st.html(markup.token_legend())
    st.caption(ONE_DRAW)
    n_unknown = sentence.tokens.count("[UNK]")
    if n_unknown:
        what = "1 token is" if n_unknown == 1 else f"{n_unknown} tokens are"
        st.caption(
            f"{what} unknown to the encoder ([UNK]). It encodes only that a token is there, and "
            "only this is what the noise hides."
        )


def token_table(found: Sequence[TokenDeniability], n_draws: int) -> None:
    """Draw a table of each token's statistics and its most frequent replacements."""
    rows = [
        {
            "token": token.token,
            "N_w": token.n_w,
            "S_w": token.s_w,
            "half at η": round(token.eta_star_median, 1),
            "turns into": ", ".join(f"{other} ({n})" for other, n in token.replacements),
        }
        for token in found
    ]
    columns = st.column_config
    st.dataframe(
        rows,
        key="tokens",
        hide_index=True,
        column_config={
            "token": columns.TextColumn(
                "Token", help="As the encoder splits the text; ## continues a word", pinned=True
            ),
            "N_w": columns.ProgressColumn(
                f"N_w: unchanged, of {n_draws:,}",
                min_value=0,
                max_value=n_draws,
                format="%d",
                help="How many draws return the token itself. A small N_w protects it from "
                "readers who take the released token as the original.",
            ),
            "S_w": columns.ProgressColumn(
                f"S_w: outcomes, of {n_draws:,}",
                min_value=0,
                max_value=n_draws,
                format="%d",
                help="How many different tokens the draws return. A large S_w hides the token "
                "among many.",
            ),
            "half at η": columns.NumberColumn(
                "Half unchanged at η",
                format="%.1f",
                help="At this η, half of the draws return the token itself",
            ),
            "turns into": columns.TextColumn(
                "Replaced by (draws)", width="large", help="The ten most frequent outcomes"
            ),
        },
    )


def vocabulary_cards(found: VocabularyDeniability, geometry: Geometry, eta: float) -> None:
    """Draw the histograms over all tokens, and their distances compared with the noise."""
    shown = {"histograms": all_outcomes(found, eta), "geometry": distances_and_noise(geometry, eta)}
    for column, (name, finding) in zip(st.columns(2, gap="medium"), shown.items(), strict=True):
        show_figure(column, finding, name)
        if finding.body:
            column.caption(finding.body)


def replacements_card() -> None:
    """Draw the finding on near-word replacements, or a note that it was not measured."""
    st.header("How often does a near word replace a token?", anchor=False)
    try:
        rows = cache.token_replacements() if replacements.SHIPPED.exists() else []
    except CoreError as error:
        show_error(error, title="The replacement results cannot be read")
        return
    if rows:
        show_finding(st.container(), near_words(rows), "replacements", is_title=False)
        return
    st.info(
        "Not measured yet: no results ship with this version. In a checkout, run "
        "`leakscope study replacements --out results/replacements.json`; this takes some minutes.",
        icon=":material/hourglass_empty:",
    )


def downloads(
    text: str, on: EncoderSpec, eta: float, found: Sequence[TokenDeniability], n_draws: int
) -> None:
    """Draw buttons that download the tokens' statistics of a sentence."""
    facts = {"text": text, "encoder": on.name, "eta": eta, "n_draws": n_draws}
    save_json(
        lambda: json.dumps(
            {**facts, "tokens": [asdict(f) for f in found]},
            ensure_ascii=False,
            indent=1,
        ),
        "deniability",
        about="All statistics, for programs. The file contains your sentence.",
    )
    save_csv(
        lambda: table_csv(
            [
                {**asdict(t), "replacements": " ".join(f"{w}:{n}" for w, n in t.replacements)}
                for t in found
            ]
        ),
        "deniability",
        about="One row per token, for spreadsheets. The file contains your sentence.",
    )


ONE_DRAW = (
    "Release at most one of these outputs: with two, the odds below are squared. Moving the slider "
    "reuses the same draw: two such outputs together void the guarantee."
)
"""The warning for "Draw again" and the slider: both show further outputs of one sentence."""


def eta_slider(dimension: int) -> float:
    """Draw the slider of η and return the selected η."""
    return float(
        st.select_slider(
            "η (eta): less noise to the right",
            eta_steps(dimension),
            key=state.ETA_KEY,
            persist_state="session",
            format_func=lambda eta: f"{eta:g}",
            help="The privacy parameter. To the left, more noise replaces more tokens, by less "
            "similar ones. To the right, less noise keeps more of the text, for readers and for "
            "attackers. Equal steps change the noise by equal factors. Moving the slider keeps the "
            "noise of one draw: never release outputs at two η.",
        )
    )


def draw_again_button() -> None:
    """Draw the button that replaces the session's noise seed."""
    st.button(
        "Draw again",
        key="draw-again",
        icon=":material/casino:",
        help="Privatises the sentence with new noise. Moving the slider keeps the draw, so that "
        "only η changes the output. Release only one output: each further draw of the same "
        "sentence raises the odds to a higher power.",
        on_click=state.draw_again,
    )


_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def eta_choice_card(
    found: VocabularyDeniability, on: EncoderSpec, steps: Sequence[float], text: str
) -> None:
    """Draw the η recommended for real text, and those of two stricter rules in an expander."""
    measured = measured_tradeoff(on)

    def draw(key: str, choice: EtaChoice, rule: str, effect: str, why: str = "") -> None:
        """Draw a recommended η: its answer, a button that sets the slider, and its numbers."""
        at = None if choice.eta is None else guarantees_of(MECHANISM, choice.eta, text, on)
        found = recommended_eta(choice, rule, effect, guarantees=at, measured=measured, why=why)
        show_answer(st, found, is_title=False)
        if choice.eta is not None:
            st.button(
                f"Try η = {choice.eta:g} on your sentence",
                key=f"use-{key}",
                icon=":material/straighten:",
                help="Sets the slider to this η",
                on_click=state.set_eta,
                args=(choice.eta, steps),
            )
        show_numbers(st, found, f"eta-{key}")

    left, right = st.columns((2, 1), gap="large")
    with right:
        recovered = st.slider(
            "Tokens that may stay unchanged",
            state.RECOVERED[0],
            state.RECOVERED[-1],
            format="%d %%",
            key=state.RECOVERED_KEY,
            help="The average case: over all tokens of real text, so frequent tokens count more",
        )
        corpus = st.selectbox(
            "Text",
            [*_CORPORA, OWN],
            key="corpus",
            help="Bundled texts or your own file. The more similar the text is to what you will "
            "release, the better the η fits",
        )
        counts = (
            upload_token_counts(on) if corpus == OWN else cache.token_counts(_CORPORA[corpus], on)
        )
        if counts:
            st.caption(f"{sum(counts.values()):,} tokens counted.")
    if counts:
        chosen = choose_by_corpus(found, counts, recovered=recovered / 100)
        why = (
            "**This is no recommendation**: of the η tried, it is the one with the least noise. "
            "The share is an average over the whole text: a rare token, such as a name, may stay "
            "unchanged more often. The rules below cover rare tokens."
        )
        with left:
            effect = f"leaves at most {recovered} % of the tokens of real text unchanged"
            draw("corpus", chosen, "the rule for real text", effect, why)
    with st.expander("Two other rules, for every token of the vocabulary", icon=":material/rule:"):
        by_worst, by_most = st.columns(2, gap="medium")
        with by_worst:
            changed = st.slider(
                "Every token changes in at least",
                5,
                99,
                50,
                5,
                format="%d%%",
                key="worst-changed",
                help="The strictest rule: it applies to each of the encoder's tokens",
            )
            chosen = choose_by_tokens(found, changed=changed / 100)
            effect = f"changes every token in at least {changed} % of draws"
            draw("worst", chosen, "the rule for the worst token", effect)
        with by_most:
            share = st.slider(
                "Share of tokens that change in half of the cases",
                50,
                99,
                95,
                1,
                format="%d%%",
                key="most-share",
                help="A few tokens far from all others determine the strictest rule; this rule "
                "leaves them out",
            )
            chosen = choose_by_tokens(found, changed=0.5, share=share / 100)
            effect = f"changes {share} % of all tokens in at least half of the draws"
            draw("most", chosen, "the rule for most tokens", effect)
        st.caption(describe_scales(measured, MECHANISM))


def measured_tradeoff(on: EncoderSpec) -> summary.Tradeoff | None:
    """Return the trade-off study's results for the bundled encoder; None for other encoders."""
    return summary.shipped_tradeoff() if on == answers.ENCODER else None


OWN = "Your own file"
_COUNTS: SessionCache[tuple[str, str, EncoderSpec], dict[int, int]] = SessionCache("_own_counts", 4)


def upload_token_counts(on: EncoderSpec) -> dict[int, int]:
    """Draw the upload of a text file; return its counts by token id, {} without a file."""
    sent = st.file_uploader(
        "A file with texts",
        type=[*TABLE_TYPES, "txt"],
        key="own-text",
        help=f"CSV, TSV, JSON or Parquet with a column of texts, or one text per line. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB; the first {MAX_UPLOAD_ROWS:,} rows are used. It stays in "
        "the memory of this computer during your session; only its tokens are counted.",
    )
    if sent is None:
        st.info(
            "Choose a file with texts like those that you will release.", icon=":material/upload:"
        )
        return {}
    file = MemoryFile(sent.name, sent.getvalue())
    digest = hashlib.sha256(file.content).hexdigest()
    try:
        facts = upload_facts(file, digest)
        column = facts.columns.text if facts.names else None
        counts = _COUNTS.once((digest, column or "", on), partial(_count_tokens, file, column, on))
    except CoreError as error:
        show_error(error, title="The tokens of this file cannot be counted")
        return {}
    if column:
        st.caption(f"Counted the column {plain(column)}, which has the longest texts.")
    return counts


def _count_tokens(file: MemoryFile, column: str | None, on: EncoderSpec) -> dict[int, int]:
    """Read an upload's texts in another process and count their tokens, by token id.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or has no token.
    """
    from leakscope.core.corpora.uploads import read_upload
    from leakscope.core.defences.deniability.eta_choice import corpus_counts
    from leakscope.core.encoders.white_box import require_white_box

    rows, _, _ = run_reader(read_upload, file, text=column)
    texts = [row.text for row in rows]
    counts = corpus_counts(require_white_box(cache.encoder(on), "Counting tokens"), texts)
    if not counts:
        raise InvalidInputError(
            "The file contains no token that this encoder knows. Choose another file."
        )
    return counts


def how_it_is_computed(guarantees: Guarantees, eta: float) -> None:
    """Draw an explanation of the guarantee and its odds, the mechanism, its audit, statistics."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            r"**The guarantee** ($d_\chi$-privacy): near tokens produce any output with almost the "
            "same probability. The nearer two tokens are, the harder they are to distinguish."
        )
        st.latex(r"P[M(x) = y] \le e^{\eta\, d(x, x')}\, P[M(x') = y]")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in guarantees.sentences))
        st.markdown(
            "**The mechanism** adds noise $N$ to the token's vector $x$ and releases the nearest "
            "token. The length of the noise is Gamma-distributed, its direction uniform."
        )
        st.latex(
            r"M'(x) = \arg\min_{w} \lVert \varphi(w) - (\varphi(x) + N) \rVert_2, \qquad "
            r"p(N) \propto e^{-\eta \lVert N \rVert}, \qquad \mathbb E \lVert N \rVert = n / \eta"
        )
        _audit_button(eta)
        st.markdown(
            "**$N_w$** is how many of 1,000 draws return the token itself; **$S_w$** is how many "
            "different tokens the draws return. Both are exact at every η. Each draw scales with "
            "1/η, so the returned token is the lowest of several lines in 1/η. All crossings of "
            "these lines are computed once."
        )
        st.caption("Qu et al. (2021), Eq. 2–4 and §5.3. All tokens share the same draws.")


_AUDITED = tuple(name for name in DEFENCES if has_d_chi_guarantee(name) and name not in CHOICES)
"""The d_χ-private mechanisms of this page."""


@st.cache_data(show_spinner="Auditing the mechanisms …", max_entries=64)
def _audit_mechanisms(eta: float) -> dict[str, Audit]:
    """Audit each mechanism at η, cached; return the audits by name."""
    return {
        name: audit(defence_factory(name, eta), DEFENCES[name].acts_on, eta) for name in _AUDITED
    }


def _audit_button(eta: float) -> None:
    """Draw a button that audits the mechanisms at η, and the result once it was clicked."""
    is_asked = st.button(
        "Audit the mechanisms",
        key="audit",
        icon=":material/fact_check:",
        help="Draws noise at the η of the slider, on this computer, and tests whether it follows "
        "the formula. This takes a few seconds",
    )
    if is_asked:
        st.session_state["_audited"] = eta
    if st.session_state.get("_audited") == eta:
        st.markdown(_describe_audits(eta))
    st.caption(
        "`leakscope audit-mechanism` tests other random seeds and noise from other processes, too. "
        "`results/audit.md` lists which broken mechanisms the audit catches, and how often."
    )


def _describe_audits(eta: float) -> str:
    """Audit all mechanisms at η (cached) and describe the results in Markdown."""
    lines = []
    for name, found in _audit_mechanisms(eta).items():
        verdict = f"not refuted by {len(found.p_values)} tests of {found.n_draws:,} draws"
        if found.is_refuted:
            tests = ", ".join(found.refuted_by)
            verdict = f"refuted by {tests}: release nothing until it passes"
        lines.append(f"- **{DEFENCES[name].title}**: {verdict}")
    kinds = dict.fromkeys(DEFENCES[name].acts_on for name in _AUDITED)
    untested = dict.fromkeys(each for kind in kinds for each in list_untested(kind))
    return "\n".join(
        [
            f"**Audit of the mechanisms**, run here at η = {eta:g}:\n",
            *lines,
            "\n"
            f"An audit refutes a correct mechanism in {format_percent(ALPHA)} of runs. For "
            "released numbers, it tests the noise's length, direction and independence and the "
            "outputs' grid. For released tokens, it tests their frequencies. It also bounds the "
            "odds for two near inputs.",
            f"\n**Not tested**: {' '.join(untested)}",
        ]
    )


def caveats() -> None:
    """Draw the limitations of the deniability page's numbers."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The higher the odds at this η, the less an author's denial of a changed token is "
            "worth. The odds are limits for every attacker, not what a tested attacker reached. "
            "An attacker may also guess the token from the rest of the sentence. The share "
            "of unchanged tokens is what the simplest attacker recovers; others may recover "
            "more.\n"
            "- The guarantee holds per token. It weakens with the length of a text, because "
            "distances add up.\n"
            "- It covers one release. After k releases of the same text, by *Draw again*, in two "
            "columns or in two files, the odds are raised to the power k.\n"
            "- Never release outputs of the same draw at two values of η. They share their noise, "
            "and an attacker may solve for it: no guarantee covers both together.\n"
            "- The number of tokens is visible. White space and line breaks are lost.\n"
            "- The statistics use fixed draws that all tokens share. A release needs new noise "
            "from a cryptographic source, as `leakscope privatize` draws it.\n"
            "- The scale of η depends on the encoder's distances. Do not use a value of one "
            "encoder for another."
        )
