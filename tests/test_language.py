"""A text in another language is called so; short texts, names and numbers are not."""

from __future__ import annotations

import pytest

from leakscope.core.corpora import bundled_sentences
from leakscope.core.language import FREQUENT_WORDS, language_evidence
from leakscope.core.text import STOP_WORDS

ENGLISH = (
    "I am still waiting on my card, could you please tell me when it arrives?",
    "The patient has idiopathic pulmonary fibrosis and is treated with nintedanib.",
    "Paracetamol ibuprofen amoxicillin",
    "Shares slump on profit warning",
    "Please wire 200 euros to IBAN DE89 3704 0044 0532 0130 00 by Friday.",
    "see https://example.org/una/pagina/molto/lunga/di/cose for the list",
    "The café has a naïve décor, and my fiancée left her résumé there.",
    "PLEASE CALL BACK BEFORE NOON ABOUT THE INVOICE",
)
NEITHER = (
    "Giovanni Bianchi",
    "Giovanni Bianchi, Luisa Rossi, Matteo Ferrari, Chiara Esposito, Paolo Conti",
    "+39 02 5550142",
    "IT60 X054 2811 1010 0000 0123 456",
    "dana.quendorf@example.com",
    "Buongiorno",
    "ciao come stai",
    "ok",
    "12345",
)
OTHERS = (
    "Vorrei sapere quando arrivano i soldi sul mio conto corrente",
    "Ich möchte gerne wissen, wann mein Geld auf dem Konto ankommt",
    "Bitte überweisen Sie 300 Euro an Frau Müller-Lüdenscheidt, ihre Kontonummer ist 4711.",
    "Je voudrais savoir quand mon argent arrive sur le compte",
    "Quiero saber cuándo llega mi dinero a la cuenta",
    "Eu quero saber quando o dinheiro chega na minha conta",
    "Ik wil graag weten wanneer mijn geld op de rekening staat",
    "VORREI SAPERE QUANDO ARRIVANO I SOLDI SUL MIO CONTO CORRENTE",
    "Я хочу знать, когда придут деньги",
    "我想知道我的钱什么时候到账",
    "אני רוצה לדעת מתי הכסף מגיע",
)


@pytest.mark.parametrize("text", [*ENGLISH, *NEITHER])
def test_english_names_numbers_and_short_texts_are_not_called_another_language(text: str) -> None:
    assert not language_evidence(text).is_unlike_english


@pytest.mark.parametrize("text", OTHERS)
def test_another_language_is_recognised(text: str) -> None:
    assert language_evidence(text).is_unlike_english


def test_names_numbers_and_addresses_are_not_counted() -> None:
    found = language_evidence("We saw Dana Quendorf, 48151, at dana@quendorf.org and x/y.")
    assert (found.n_stop, found.n_frequent, found.n_other) == (3, 1, 0)


def test_hardly_any_english_text_is_called_another_language() -> None:
    texts = bundled_sentences()[::20]
    flagged = [text for text in texts if language_evidence(text).is_unlike_english]
    assert len(texts) > 500 and len(flagged) <= 0.005 * len(texts), flagged[:3]


def test_the_list_of_frequent_words_holds_words_that_can_be_counted() -> None:
    assert len(FREQUENT_WORDS) == 5000 and not FREQUENT_WORDS & STOP_WORDS
    assert all(word == word.lower() and word.isalpha() and len(word) > 1 for word in FREQUENT_WORDS)
