"""The sentence of the board's story: what ships is what would be read today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.attacks.inversion.reading import Mark, prior_words, read_vector
from core.attacks.inversion.sentence import read_said, scored_said
from core.attacks.inversion.shipped import open_attack
from core.encoders.transformer import TransformerEncoder
from core.errors import ArtifactError
from core.store import read_json, read_sealed, write_sealed
from core.story import example
from core.story.deck import make_deck
from core.story.format import Pin, Story


def stored() -> dict[str, Any]:
    found, is_sealed = read_sealed(example.EXAMPLE)
    assert is_sealed
    return found


def test_it_is_what_would_be_read(minilm: TransformerEncoder) -> None:
    attack, text = open_attack(example.ATTACK, minilm), example.sample_text()
    prior = prior_words(minilm, attack, False)
    reading = read_vector(example.ATTACK, attack, minilm, text, minilm.encode([text]), prior)
    fresh, kept = example.packed(reading, minilm), stored()
    assert fresh["of"] == kept["of"], "make it anew: python -m core.story.example"
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
    assert slide.title == read_said(len(marked), kept["n_scored"], n_unnamed)
    assert scored_said(kept["n_scored"], n_unnamed) in dict(slide.facts)["n"]
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
    with pytest.raises(ArtifactError, match="Make it anew"):
        example.example()
    write_sealed(path, {**kept, "pieces": [["Martin", "sold"]]})
    with pytest.raises(ArtifactError, match="holds no reading"):
        example.example()
    path.write_text(path.read_text().replace('"sold"', '"read"'))
    with pytest.raises(ArtifactError, match="was altered"):
        example.example()
    path.unlink()
    with pytest.raises(ArtifactError, match="does not exist"):
        example.example()
    assert read_json(example.SAMPLES)[0]["text"] == kept["of"]["text"]


@pytest.mark.parametrize("held", ["[]", "{}", '[{"title": "no text"}]'])
def test_samples_without_a_sentence_are_refused(
    held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "samples.json"
    path.write_text(held, encoding="utf-8")
    monkeypatch.setattr(example, "SAMPLES", path)
    with pytest.raises(ArtifactError, match="holds no sentence"):
        example.sample_text()
