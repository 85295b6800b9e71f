"""Settings that were chosen with test data in view are named in one place, and are what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.settings import CHOSEN, Chosen, markdown, value_of

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("chosen", CHOSEN, ids=lambda c: f"{c.where} {' '.join(c.values)}")
def test_each_is_still_a_setting_with_that_value(chosen: Chosen) -> None:
    found = {name: value_of(chosen.where, name) for name in chosen.values}
    assert found == chosen.values
    assert (DOCS / chosen.why).exists() and chosen.seen and chosen.flatters


@pytest.mark.parametrize(
    "where",
    [
        "weights msp",
        "attack msp",
        "encoder doc2vec",
        "module leakscope.core.studies.tradeoff.attack",
    ],
)
def test_a_setting_that_is_none_is_noticed(where: str) -> None:
    with pytest.raises(KeyError):
        value_of(where, "nonsense")


def test_the_page_names_each_of_them() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert page == markdown()
    for chosen in CHOSEN:
        assert all(f"`{name}` {value}" in page for name, value in chosen.values.items())


def test_decisions_that_looked_at_test_texts_are_named() -> None:
    """A decision that measures on BBC or AG News and decides a setting stands on the page."""
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    aside = {"0009"}  # says itself that the two cannot be told apart on MiniLM, and fixes no value
    for path in sorted((DOCS / "decisions").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if ("| BBC" in text or "| AG News" in text) and path.name[:4] not in aside:
            assert path.name in page, f"{path.name} measured on test texts"
