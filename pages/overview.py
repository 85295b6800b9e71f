"""What does a text embedding leak? One example, computed live."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.findings.overview import held_out_scores, shipped_of
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.inversion.listed_summary import describe_undefended
from leakscope.dashboard import cache
from leakscope.dashboard.address import Address
from leakscope.dashboard.inversion import answers, cost, pinned, views
from leakscope.dashboard.server import compiling
from leakscope.dashboard.story.pinning import PinnedView, pin_button
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import show_answer, show_finding
from leakscope.dashboard.ui.leakage import command_button, describe_training, train_command
from leakscope.dashboard.ui.next_question import show_roles
from leakscope.dashboard.ui.toolbar import toolbar

# The attack on the example, and the base attack that it corrects.
ATTACK, BASE = "search", "probe_mlc"

sample = cache.samples()[0]

st.title("Is it safe to store embeddings? No: treat them as personal data", anchor=False)
headline = st.container()
with st.container(horizontal=True, gap="xsmall"):
    if st.button(
        "Try your own sentence",
        type="primary",
        key="try-it",
        icon=":material/edit:",
        help="Opens the page Inversion. Your sentence stays in the memory of this computer.",
    ):
        st.switch_page(Path(__file__).with_name("inversion.py"))
    toolbar(Address("", ()).show_link)
st.markdown(
    "Search engines and chat assistants store each text as a list of numbers, its **embedding**. "
    f"This is what an attacker recovers from one, computed on {date.today():%-d %B %Y}:"
)
with compiling.opening_encoder(headline, answers.ENCODER):
    text = sample["text"]
    vector = cache.encoder(answers.ENCODER).encode([text])
    reading = answers.live_reading(answers.request_for(ATTACK, text), vector)
    finding = pinned.finding([reading])

with st.container(border=True, gap="xxsmall"):
    st.html(markup.label("1. The text (an invented e-mail)") + markup.plain_paragraph(text))
    views.vector_panel(vector, lead="2. The embedding: ")
    st.html(markup.label("3. What the attacker recovers from the numbers alone"))
    st.html(markup.marked_sentence(reading))
    with st.container(horizontal=True, gap="medium"):
        st.html(markup.wrong_words(reading), width="content")
        st.html(markup.legend([reading]), width="content")
    st.caption(
        f"{cost.cost_in_sentences(reading)} Other sentences leak more words, or fewer: see “Many "
        "sentences”."
    )
show_answer(headline, finding, is_title=False, below=st.container())
pin_button("overview", [], lambda _: PinnedView(finding=finding))
st.header("What brings you here?", anchor=False)
show_roles()

measured = cache.shipped_records(answers.ENCODER)
many, who, what, may = st.tabs(
    ["Many sentences", "Who could do this?", "What leaks?", "May I store vectors?"]
)
shown = ""
if measured:
    average = shipped_of(measured)
    shown = f" {average.title}."
    with many:
        show_finding(st.container(), average, "shipped", is_title=False)
        st.caption(
            "The chart leaves out the attack of the example (the "
            f"{INVERSION_ATTACKS[ATTACK].title.lower()}), which improves the answers of the "
            f"{INVERSION_ATTACKS[BASE].title.lower()}. The dotted line is guessing."
        )
        rows = [
            {
                "attack": name,
                "f1": f1.value,
                "low": f1.ci95.low,
                "high": f1.ci95.high,
                "n": f1.n,
                "guessing": f1.chance,
                "recall": measured[name]["held_out"].get("recall"),
            }
            for name, f1 in held_out_scores(measured).items()
        ]
        save_csv(
            lambda: table_csv(rows),
            "overview",
            about="What each attack recovers, one row per attack",
        )
command_button("overview", *(train_command(name, record) for name, record in measured.items()))

who.markdown(
    "Anyone who obtains stored vectors and can use the same encoder: an intruder, a hosting "
    "company, a curious colleague. Most attacks here only need to use the encoder. They do not "
    f"need its internal numbers (weights).{describe_training(measured)}"
)
what.markdown(
    "An attacker recovers words such as subjects, places, events and conditions, and some names. "
    "Stop words are not scored here. Another attack recovers some short sentences word for word; "
    "**Inversion** shows how many, under “On many sentences”. An attack can name only the words "
    "of its vocabulary. Names and numbers outside it were not tested above: assume that they leak. "
    f"{describe_undefended()}"
)
may.markdown(
    f"Not unprotected.{shown} Give vectors the same access control, encryption and retention as "
    "the texts, and share them with the same care. If the texts contain personal data, treat the "
    "vectors as personal data too. Defences also change the vectors themselves: **Trade-off** "
    "shows what each one protects and costs."
)
st.caption(
    "Leakscope measures; it does not certify. This page covers English sentences and one encoder, "
    "all-MiniLM-L6-v2. What you type goes only to the computer that runs Leakscope; it is not "
    "stored or logged."
)
