"""The sentence of the board's story: what ships is what would be read today."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from story_pages import numbers, open_live, strip_markdown, text_of
from streamlit.testing.v1 import AppTest

from leakscope.core.attacks.inversion.reading import Mark, Reading, prior_words, read_vector
from leakscope.core.attacks.inversion.sentence import describe_scored, format_recall
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError
from leakscope.core.findings import reading as example
from leakscope.core.storage.artifacts import read_json, read_sealed, write_sealed
from leakscope.core.story.deck import make_deck
from leakscope.core.story.format import Pin, Story
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from scripts.story_example import packed


def stored() -> dict[str, Any]:
    return read_sealed(example.EXAMPLE)


def test_it_is_what_would_be_read(minilm: TransformerEncoder) -> None:
    attack, text = open_attack(example.ATTACK, minilm), example.sample_text()
    prior = prior_words(minilm, attack, False)
    reading = read_vector(example.ATTACK, attack, minilm, text, minilm.encode([text]), prior)
    fresh, kept = packed(reading, minilm), stored()
    assert fresh["of"] == kept["of"], "make it again: python -m scripts.story_example"
    changed = [a for a, b in zip(fresh["pieces"], kept["pieces"], strict=True) if a != b]
    assert len(changed) <= 1, "another processor may round a word over a threshold"
    assert {n: fresh[n] for n in ("n_words", "n_scored", "n_texts", "dimension")} == {
        n: kept[n] for n in ("n_words", "n_scored", "n_texts", "dimension")
    }


def test_the_slide_counts_what_it_marks_and_opens_at_its_sentence() -> None:
    kept, slide = stored(), example.example()
    marked = {piece.lower() for piece, mark in slide.sentence if mark == Mark.RECOVERED}
    assert len(marked) == kept["n_recovered"]
    n_unnamed = kept["n_words"] - kept["n_scored"]
    assert slide.title == format_recall(len(marked), kept["n_scored"], n_unnamed)
    assert describe_scored(kept["n_scored"], n_unnamed) in dict(slide.facts)["n"]
    assert "".join(piece for piece, _ in slide.sentence) == example.sample_text()
    pin = Pin(page="inversion", shows="example")
    (page,) = make_deck(Story(title="t", pins=(pin,)), "2026-03-01").pages
    assert page.live.startswith("/inversion?text=Martin%2C") and "attack=search" in page.live


def test_what_is_of_another_sentence_or_damaged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = stored()
    path = tmp_path / "example.json"
    monkeypatch.setattr(example, "EXAMPLE", path)
    write_sealed(path, {**kept, "of": {**kept["of"], "text": "Another."}})
    with pytest.raises(ArtifactError, match="Create it again"):
        example.example()
    write_sealed(path, {**kept, "pieces": [["Martin", "sold"]]})
    with pytest.raises(ArtifactError, match="contains no reading"):
        example.example()
    path.write_text(path.read_text().replace('"sold"', '"read"'))
    with pytest.raises(ArtifactError, match="was altered"):
        example.example()
    path.unlink()
    with pytest.raises(ArtifactError, match="does not exist"):
        example.example()
    assert read_json(example.SAMPLES)[0]["text"] == kept["of"]["text"]


def test_the_example_says_what_the_page_reads_of_its_sentence(
    shipped_app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ships may have been read on another processor: here the slide is of what is read now."""
    page = open_live(shipped_app, "example", example.example(), {})
    (reading,) = page.session_state["_readings"].values()
    assert isinstance(reading, Reading) and reading.text == example.sample_text()
    kept = example.read_sealed(example.EXAMPLE)
    encoder = cache.encoder(ENCODER)
    monkeypatch.setattr(example, "EXAMPLE", tmp_path / "example.json")
    write_sealed(example.EXAMPLE, {**packed(reading, encoder), "provenance": kept["provenance"]})
    slide, shown = example.example(), text_of(page)
    assert strip_markdown(page.title[0].value) == slide.title
    said = f"(F1 {page.metric[1].value})."
    assert said in slide.body.replace("*", "")
    guessed = page.metric[1].delta.removeprefix("guessing: ")
    assert f"(F1 {guessed})" in slide.body
    n_guessed = int(page.metric[0].delta.split()[-1])
    assert f"without the vector gets {n_guessed or 'none'} right" in slide.body
    marked = next(
        part.value for part in page.html if "<mark" in part.value or "ls-miss" in part.value
    )
    for look, kind in (("hit", Mark.RECOVERED), ("miss", Mark.MISSED)):
        words = re.findall(rf'class="ls-{look}"[^>]*>([^<]+)<', marked)
        assert words == [piece for piece, mark in slide.sentence if mark == kind.value] != []
    wrong = re.search(r"Wrong answers: (.*?)\. F1 also counts", slide.body)
    assert {*(wrong[1].split(", ") if wrong else [])} == {word.word for word in reading.wrong}
    facts = dict(slide.facts)
    n_texts, n_queries = numbers(facts["Cost"])
    assert f"{n_texts:,.0f}" in shown and f"{n_queries:.0f} for this text" in shown
    assert facts["Access"] in shown and facts["Attacker"] in shown
    assert numbers(facts["n"]) == [1, len(reading.targets)]
    assert f"became {encoder.dimension} numbers" in slide.body and f"{encoder.dimension}" in shown
