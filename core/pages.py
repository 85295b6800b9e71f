"""The dashboard's pages: title, icon, menu group, caveat, and the page suggested next.

A page is its file in `pages/` and its entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LOWER = (
    "What these attackers missed is not proven safe: a better attack, or more training texts, may "
    "recover it."
)
"""Caveat that applies to every attack."""
_UNSCORED = "Stop words and words outside an attack's vocabulary are not scored."


@dataclass(frozen=True)
class Page:
    """A page of the dashboard.

    Attributes
    ----------
    title : str
        Title in the menu and in stories.
    icon : str
        Name of a Material Symbols icon.
    tip : str
        What it shows, in a sentence.
    group : str
        The heading above it in the menu; empty where it has none.
    following : str
        The page suggested next.
    question : str
        The question that the next page answers.
    advice : str
        What a reader should do with the page's answer.
    terms : tuple of str
        Glossary terms that the page explains.
    caveat : str
        What its figures do not show; printed on each of its slides.
    """

    title: str
    icon: str
    tip: str
    group: str = ""
    following: str = "overview"
    question: str = ""
    advice: str = ""
    terms: tuple[str, ...] = ()
    caveat: str = ""


PAGES: Mapping[str, Page] = {
    "overview": Page(
        "Overview",
        "visibility",
        "What a text embedding leaks, with one live example.",
        following="inversion",
        question="Which words leak from a sentence of your own?",
        advice="Protect stored vectors as you protect the texts. Then choose your role below.",
        terms=("embedding", "encoder", "attacker", "guessing", "F1"),
        caveat=f"{LOWER} {_UNSCORED} The score ignores word order; another attack, reconstruction, "
        "recovers whole sentences. One encoder, English.",
    ),
    "audit": Page(
        "Audit",
        "fact_check",
        "Load your own vectors from a file or a store: which encoder made them, and what leaks.",
        following="projection",
        question="What do the vectors of many texts reveal together?",
        advice="Test the vectors of your own texts below, and see which rows leak most.",
        terms=("encoder", "F1", "recall", "guessing", "vocabulary", "interval", "lower bound"),
        caveat=f"{LOWER} Only a sample of the rows was attacked. Words outside the attack's "
        "vocabulary were not tested.",
    ),
    "story": Page(
        "Story",
        "auto_stories",
        "The views that you pinned, in your order: present them, or download a report.",
        following="overview",
        question="What does all of it show? Back to the start.",
    ),
    "glossary": Page(
        "Glossary",
        "menu_book",
        "What the terms on these pages mean.",
        following="overview",
        question="What does a text embedding leak?",
        caveat="The terms as these pages use them. Papers define some of them more narrowly.",
    ),
    "inversion": Page(
        "Inversion",
        "undo",
        "Type a sentence and see which of its words an attacker recovers from the vector alone.",
        group="What leaks",
        following="names",
        question="Can an attacker recover names?",
        advice="Type your own sentence. Treat every word as readable by anyone who gets the "
        "vector: a missed word is not proven safe.",
        terms=("inversion", "F1", "precision", "recall", "guessing", "stop word", "vocabulary"),
        caveat=f"{LOWER} One sentence is an example, not a measurement. {_UNSCORED} One encoder, "
        "English.",
    ),
    "names": Page(
        "Names",
        "badge",
        "Put names into sentences and see which ones an attacker recovers from the vectors.",
        group="What leaks",
        following="audit",
        question="What leaks from your own vectors?",
        advice="Remove names before encoding if the search does not need them; otherwise protect "
        "vectors like the names themselves.",
        terms=("vector", "vocabulary", "interval", "lower bound"),
        caveat="A surname that is also an everyday word counts as recovered. An attacker who looks "
        "for one name can train for it, or test candidates one by one.",
    ),
    "projection": Page(
        "Map",
        "scatter_plot",
        "Many texts, placed by their vectors, and where a defence moves them.",
        group="What leaks",
        following="representations",
        question="Would another encoder leak less?",
        advice="Limit who can get many vectors at once: they show which texts belong together. "
        "Draw a loop around points to see which words leak.",
        terms=("embedding", "encoder", "noise", "F1"),
        caveat="A map places similar texts side by side; its clusters prove nothing by themselves.",
    ),
    "representations": Page(
        "Representations",
        "compare_arrows",
        "Which way of turning text into vectors leaks least at equal utility.",
        group="What leaks",
        following="attributes",
        question="Does a vector reveal who wrote the text?",
        advice="Choose the encoder by its utility, and do not count on it for privacy: every "
        "useful one leaks words.",
        terms=("encoder", "utility", "F1", "auxiliary texts", "interval"),
        caveat=f"{LOWER} Utility is measured by sorting news by topic: an encoder that is poor at "
        "it may still be good at search.",
    ),
    "attributes": Page(
        "Attributes",
        "person_search",
        "Who wrote it, or any other label: what an attacker infers from a few labelled texts.",
        group="What can be inferred",
        following="membership",
        question="Does a model reveal which texts it was trained on?",
        advice="Do not call vectors anonymous: their author can sometimes be inferred. Test your "
        "own texts below.",
        terms=("attribute", "guessing", "interval"),
        caveat="How much of it is topic and how much is style depends on the texts. A control with "
        "shuffled labels is shown beside it.",
    ),
    "membership": Page(
        "Membership",
        "group_search",
        "Which texts a model was trained on, and how reliable such a verdict is.",
        group="What can be inferred",
        following="memorisation",
        question="Does a model memorise what it was trained on?",
        advice="This concerns those who train a model. Before you believe a verdict about one "
        "person, set below how many users you expect to be members.",
        terms=("membership", "AUC", "guessing", "interval"),
        caveat="How far a verdict can be trusted depends on its false positives and on how many of "
        "the texts are members.",
    ),
    "memorisation": Page(
        "Memorisation",
        "psychology",
        "Plant a secret among a model's training texts and see whether the model memorises it.",
        group="What can be inferred",
        following="deniability",
        question="How much noise does it take to hide a word?",
        advice="If you train a model, remove secrets and repeated texts first.",
        terms=("canary", "exposure", "differential privacy", "epsilon (ε)"),
        caveat=("A small model trained on few texts; large models were not measured."),
    ),
    "deniability": Page(
        "Deniability",
        "blur_on",
        "Drag η and see how a sentence changes, and how often each of its words survives.",
        group="Defences",
        following="tradeoff",
        question="Which defence protects best, and what does it cost?",
        advice="Do not rely on this noise alone: read below what the chosen η guarantees, and "
        "control who gets the output.",
        terms=("deniability", "eta (η)", "noise", "token", "guarantee"),
        caveat="The higher the odds at η, the less a denial is worth, and an attacker "
        "may guess it from the rest of the sentence. Values of η cannot be compared between "
        "encoders.",
    ),
    "tradeoff": Page(
        "Trade-off",
        "balance",
        "What each defence protects, and what it costs in utility.",
        group="Defences",
        following="training",
        question="Does training for privacy withstand a new attacker?",
        advice="Choose your task and the utility to keep. If what remains leaks too much, control "
        "who gets the vectors: see Other protection.",
        terms=("defence", "utility", "guarantee", "F1", "lower bound", "interval"),
        caveat="A setting that leaks little to these attackers may leak more to a better one. A "
        "mechanism guarantees a ratio of odds, not a score. One encoder, English, short texts.",
    ),
    "training": Page(
        "Training",
        "model_training",
        "Whether training for privacy withstands attackers who were not part of it.",
        group="Defences",
        following="story",
        question="How do you present it to others?",
        advice="Judge such a training only by attackers that are trained afterwards.",
        terms=("defence", "differential privacy", "epsilon (ε)", "F1"),
        caveat="Only attackers trained afterwards count: beating the adversary in training proves "
        "little.",
    ),
}
"""The pages in menu order; following each page's `following` visits every page once."""
