"""What does a text embedding give away? One example, computed here and now."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.figures import inversion as figures
from core.results import Score
from core.said import leak_said
from core.spreadsheets import table_csv
from core.studies.listed_summary import undefended_said
from dashboard import cache, compiling, markup
from dashboard.address import Address
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.inversion import answers, cost, pinned, views
from dashboard.leakage import how_much_leaks, train_command, training_said
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar
from dashboard.way import show_roles

# What reads the example, and the attack on which it is built.
ATTACK, BASE = "search", "probe_mlc"

sample = cache.samples()[0]

headline = Noted(st.container())
with st.container(horizontal=True, gap="xsmall"):
    if st.button(
        "Try your own sentence",
        type="primary",
        key="try-it",
        icon=":material/edit:",
        help="Opens the inversion page. What you type stays in the memory of this computer.",
    ):
        st.switch_page(Path(__file__).with_name("inversion.py"))
    toolbar(Address("", ()).show_link)
st.markdown(
    "Search engines, chat assistants and fraud filters turn each text into a list of numbers, its "
    "**embedding**, and store it, often beside no text at all. That feels safe: nobody can read "
    "numbers. Leakscope shows what an attacker reads from them all the same."
)
with compiling.opening(headline, answers.ENCODER):
    text = sample["text"]
    vector = cache.encoder(answers.ENCODER).encode([text])
    reading = answers.live_reading(answers.request_for(ATTACK, text), vector)
    views.show_finding(headline, [reading])

with st.container(border=True, gap="xxsmall"):
    st.html(markup.label("1. What was written (an invented e-mail)") + markup.quoted(text))
    views.vector_panel(vector, lead="2. What is stored: ")
    st.html(markup.label("3. What the attacker reads from the numbers alone"))
    st.html(markup.marked_sentence(reading))
    with st.container(horizontal=True, gap="medium"):
        st.html(markup.wrong_words(reading), width="content")
        st.html(markup.legend([reading]), width="content")
    st.caption(
        f"{INVERSION_ATTACKS[ATTACK].title}, {cost.cost_in_words(reading)} on this computer "
        "just now."
    )
story_button("overview", [], headline, lambda _: pinned.seen([reading], True))
st.header("What brings you here?", anchor=False)
show_roles()

measured = cache.shipped_records(answers.ENCODER)
if measured:
    st.header("Not one lucky example", anchor=False)
    st.markdown(
        "Averaged over sentences that no attack was trained on, nor on any that nearly repeats "
        "them: the attacks that answer at once. The one above corrects what the "
        f"{INVERSION_ATTACKS[BASE].title.lower()} answers. The dotted line is an attacker who "
        "never looks at the numbers."
    )
    scores = {
        name: Score.of_record(record["held_out"], "token_set_f1", chance="prior_f1")
        for name, record in measured.items()
    }
    recalls = {name: record["held_out"].get("recall") for name, record in measured.items()}
    told = ", ".join(
        f"{INVERSION_ATTACKS[n].title} {leak_said(f1, recalls[n])}" for n, f1 in scores.items()
    )
    st.plotly_chart(
        figures.shipped_scores(scores),
        key="shipped",
        config=chart_config(),
        alt=f"F1 of the words read, by attack: {told}",
    )
    rows = [
        {"attack": name, "f1": f1.value, "low": f1.ci95.low, "high": f1.ci95.high, "n": f1.n,
         "guessing": f1.chance, "recall": recalls[name]}
        for name, f1 in scores.items()
    ]  # fmt: skip
    save_csv(lambda: table_csv(rows), "overview", about="What each attack reads, a row an attack")
how_much_leaks("overview", *(train_command(name, record) for name, record in measured.items()))

st.header("What to know", anchor=False)
for column, (title, body) in zip(
    st.columns(3, gap="medium"),
    (
        (
            "Who could do this?",
            "Anyone who gets hold of stored vectors and can use the same "
            "encoder: an intruder, a hosting company, a curious colleague. Most attacks here need "
            f"no access to the encoder's inside{training_said(measured)}.",
        ),
        (
            "What leaks?",
            "Mostly the words that carry the meaning: subjects, places, events, "
            "conditions, often names. Small words are not scored here. Another attack writes "
            "short sentences back word for word: **Inversion**, “On many sentences”. Names and "
            "numbers that an attack has no word for are not tested above: treat them as leaked. "
            f"{undefended_said()}",
        ),
        (
            "Can I store texts as vectors?",
            "Only under the protection that the texts themselves need: the same access rules, "
            "encryption and retention, the same care when they leave the house. What changes the "
            "vectors themselves comes on top: **Trade-off** says what each such defence saves and "
            "costs.",
        ),
    ),
    strict=True,
):
    with column:
        st.subheader(title, anchor=False)
        st.markdown(body)
st.caption(
    "Leakscope measures; it does not certify. It shows what these attackers read from this "
    "encoder's vectors of English sentences. Nothing you type is stored, logged or sent anywhere."
)
