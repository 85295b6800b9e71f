"""Journeys through the page of trade-offs in a real Chromium."""

from __future__ import annotations

from pathlib import Path

from browsing import TEXT, Visit, choose_option, headline, sync_api
from pytest import mark

pytestmark = mark.browser
CHAIN = "text_to_text:eta=90+int8"


def opened(visit: Visit, **params: str) -> sync_api.Page:
    page = visit.open("/tradeoff", **params).page
    sync_api.expect(headline(page)).to_be_visible()
    sync_api.expect(page.get_by_text("What this does not show")).to_be_visible()
    return page


def side(page: sync_api.Page, letter: str) -> sync_api.Locator:
    return page.locator(f".st-key-side-{letter}").filter(visible=True).first


def read(card: sync_api.Locator) -> None:
    """Wait until a side is attacked."""
    sync_api.expect(card.get_by_text("This quick attacker")).to_be_visible()


def test_two_settings_stand_beside_each_other_or_below(fitting: Visit) -> None:
    page = opened(fitting, text=TEXT, point=CHAIN, against="binary")
    a, b = side(page, "A"), side(page, "B")
    for card in (a, b):
        read(card)
    sync_api.expect(a.get_by_text("Encoded, one draw")).to_be_visible()
    sync_api.expect(page.get_by_text("Recovered from both")).to_be_visible()
    page.locator(".js-plotly-plot").first.wait_for()
    for is_below in ("b.top >= a.bottom", "b.left >= a.right"):
        # Both places are read at one moment: what loads above them still moves both.
        page.wait_for_function(
            f"""() => {{
                const [a, b] = ['.st-key-side-A', '.st-key-side-B'].map(
                    card => [...document.querySelectorAll(card)]
                        .map(e => e.getBoundingClientRect()).find(place => place.width > 0));
                return a && b && {is_below};
            }}"""
        )
        fitting.fits_both()


def test_a_click_chooses_a_and_a_chain_of_ones_own_is_b(
    visit: Visit,
    server: tuple[str, Path],
) -> None:
    page = opened(visit, text=TEXT, task="SUBJ")
    figure = page.locator(".js-plotly-plot").first
    figure.wait_for()
    figure.locator(".scatterlayer .trace").nth(1).locator(".point").nth(3).click(force=True)
    chosen = page.get_by_role("combobox", name="A: this defence")
    sync_api.expect(chosen).to_have_value("Text to text, η 90")
    sync_api.expect(side(page, "A").get_by_text("Released, one draw")).to_be_visible()
    read(side(page, "B"))
    against = page.get_by_role("combobox", name="B: compared with")
    choose_option(against, "Your own defence or chain")
    b = side(page, "B")
    read(b)
    strength = b.get_by_role("textbox", name="Text to text: η")
    strength.fill("0")
    strength.press("Enter")
    sync_api.expect(b.get_by_text("must lie in")).to_be_visible()
    strength.fill("200")
    strength.press("Enter")
    sync_api.expect(
        b.get_by_text("At η = 200, whoever sees the output may tell apart")
    ).to_be_visible()
    read(b)
    sync_api.expect(page.get_by_text("Recovered only from B")).to_be_visible()


def test_an_address_that_asks_for_no_setting_is_told(visit: Visit) -> None:
    page = opened(
        visit, text=TEXT, task="SUBJ", point="text_to_text:eta=nan", against="int8+text_to_text"
    )
    told = page.get_by_role("alert").first
    sync_api.expect(told).to_contain_text("eta must lie in")
    sync_api.expect(told).to_contain_text("Change the order: text_to_text+int8")
    read(side(page, "A"))
