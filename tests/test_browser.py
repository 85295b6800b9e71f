"""Journeys through the served dashboard, with the weights that ship, in a real Chromium."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from browsing import PATIENCE, TEXT, Visit, headline, settled_top, skip_or_fail, sync_api

from leakscope.core.attacks.inversion import INVERSION_ATTACKS

pytestmark = pytest.mark.browser

PROBE = INVERSION_ATTACKS["probe_mlc"].title
RECONSTRUCTION = INVERSION_ATTACKS["reconstruct"].title
BAIT = "www.evil.test/login http://evil.test a@evil.test"


def test_the_overview_has_an_answer_and_leads_to_the_next_page(visit: Visit) -> None:
    page = visit.open("/").page
    sync_api.expect(headline(page)).to_contain_text("No: treat them as personal data")
    found = page.get_by_role("heading", level=2).first
    sync_api.expect(found).to_contain_text("The attacker recovered")
    page.get_by_role("button", name="Try your own sentence").click()
    page.wait_for_url("**/inversion")
    visit.answered(PROBE)


def test_typing_shows_recovered_words_as_one_types(visit: Visit) -> None:
    page = visit.open("/inversion", attack="probe_mlc").page
    visit.answered(PROBE)
    line = page.get_by_role("textbox", name="Your sentence")
    line.fill("")
    line.press_sequentially(TEXT, delay=5)  # neither Enter nor Tab: it answers live
    sync_api.expect(page.locator("mark", has_text="minister")).to_be_visible()
    assert "text=" not in page.url, "what is typed stays out of the address"


def test_slow_attacks_start_stop_survive_a_reload_and_answer(visit: Visit) -> None:
    page = visit.open("/inversion", text=TEXT, attack=["relaxation", "sparse"]).page
    page.get_by_role("button", name="Run continuous relaxation").click()
    page.locator("[class*='st-key-stop-'] button").filter(visible=True).first.click()
    again = page.get_by_role("button", name="Run continuous relaxation again")
    sync_api.expect(again).to_be_visible()
    sync_api.expect(page.get_by_text("Nothing was kept")).to_be_visible()
    page.get_by_role("button", name="Run sparse coding").click()
    page.wait_for_function("() => location.search.includes('job=')", timeout=PATIENCE)
    page.reload()
    card = visit.answered(INVERSION_ATTACKS["sparse"].title)
    sync_api.expect(card).to_contain_text("for this text")


def test_the_strongest_attack_answers_above_the_fold_and_the_input_stays(visit: Visit) -> None:
    page = visit.page
    for width, height in ((390, 844), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        visit.open("/inversion")
        sync_api.expect(headline(page)).to_contain_text("The attacker recovered")
        sentence = page.locator(".st-key-answer .ls-sentence").filter(visible=True).first
        box = sentence.bounding_box()
        assert box is not None and box["y"] + box["height"] <= height, (width, box)
        assert (
            INVERSION_ATTACKS["search"].title.lower()
            in page.locator(".st-key-headline").inner_text()
        )
    line = page.get_by_role("textbox", name="Your sentence")
    before = settled_top(line)
    line.fill("A minister.")
    sync_api.expect(headline(page)).to_contain_text("The attacker recovered 1 of 1 word")
    assert abs(before - settled_top(line)) < 2


def test_a_link_opens_in_a_fresh_session_and_its_results_download(
    visit: Visit, tmp_path: Path
) -> None:
    text = f"=1+1 {TEXT}"
    page = visit.open("/inversion", text=text, attack=["mlc", "probe_mlc"]).page
    for name in ("mlc", "probe_mlc"):
        card = visit.answered(INVERSION_ATTACKS[name].title)
        sync_api.expect(card.locator(".ls-sentence")).to_contain_text("searched his")
    sync_api.expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(text)
    page.get_by_role("button", name="Save").click()
    for name in ("JSON", "CSV"):
        with page.expect_download() as download:
            page.locator(f".st-key-inversion-{name.lower()}").get_by_role("button").first.click()
        download.value.save_as(tmp_path / name)
    found = {each["attack"]: each for each in json.loads((tmp_path / "JSON").read_text("utf-8"))}
    assert set(found) == {"mlc", "probe_mlc"} and {each["text"] for each in found.values()} == {
        text
    }
    right = {word["word"] for word in found["probe_mlc"]["words"] if word["is_in_text"]}
    assert "minister" in right
    rows = list(csv.DictReader((tmp_path / "CSV").open(encoding="utf-8-sig", newline="")))
    assert {r["text"] for r in rows} == {f"'{text}"}, "no cell starts a formula"
    for name, one in found.items():
        ranked = [r["word"] for r in rows if r["attack"] == name and r["rank"]]
        assert ranked == [word["word"] for word in one["words"]]


@pytest.mark.parametrize("path", ["/", "/inversion", "/deniability", "/tradeoff"])
def test_every_page_fits_width_and_theme(fitting: Visit, path: str) -> None:
    page = fitting.open(path).page
    if path == "/tradeoff":
        page.get_by_role("tab", name="On your sentence").click()
    sync_api.expect(page.locator(".ls-sentence").last).to_be_visible()
    page.locator(".js-plotly-plot").first.wait_for()


def test_bad_input_and_markup_do_no_harm(visit: Visit) -> None:
    page = visit.open(
        "/inversion", text="<script>alert(1)</script> :red[government] $x$", attack="probe_mlc"
    ).page
    visit.answered(PROBE)
    sync_api.expect(page.locator(".st-key-answer .ls-sentence")).to_have_text(
        "<script>alert(1)</script> :red[government] $x$"
    )
    line = page.get_by_role("textbox", name="Your sentence")
    for text, told in (("\N{GRINNING FACE}", "nothing to recover"), ("the of", "stop words")):
        line.fill(text)
        sync_api.expect(page.get_by_role("alert")).to_contain_text(told)


def test_presenting_hides_the_controls(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 800})
    visit.open("/inversion", attack="probe_mlc")
    visit.answered(PROBE)
    page.get_by_role("button", name="Present").click()
    sync_api.expect(page.get_by_role("textbox", name="Your sentence")).to_be_hidden()
    stage = page.locator(".st-key-stage .ls-sentence")
    sync_api.expect(stage).to_contain_text("merger")
    box = stage.bounding_box()
    assert box is not None and box["y"] + box["height"] <= 800, f"the punchline is cut off: {box}"
    # The keys work from the moment that the buttons that own them are there.
    page.get_by_role("button", name="Next").wait_for()
    for key, word in (("ArrowRight", "diabetes"), ("PageUp", "merger"), ("PageDown", "diabetes")):
        page.keyboard.press(key)
        shown = page.locator(".ls-sentence").filter(visible=True).first
        sync_api.expect(shown).to_contain_text(word)
    page.keyboard.press("Escape")
    sync_api.expect(page.get_by_role("textbox", name="Your sentence")).to_be_visible()


def test_the_slider_of_eta_and_new_draws_move_text_and_numbers(visit: Visit) -> None:
    page = visit.open("/deniability", text=TEXT, eta="45").page
    sync_api.expect(headline(page)).to_contain_text("At η = 45,")
    sentence = page.locator(".ls-sentence").filter(visible=True).first
    before = sentence.inner_text()
    page.get_by_role("button", name="Draw again").click()
    sync_api.expect(sentence).not_to_have_text(before)
    page.get_by_role("button", name="Try η =").first.click()
    sync_api.expect(headline(page)).to_contain_text("At η = 54,")
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("End")
    sync_api.expect(headline(page)).to_contain_text(
        re.compile(r"At η = 200, nearly all of your text is published: (100\.0|99\.\d) %")
    )
    sync_api.expect(sentence).to_contain_text("finance minister resigned")
    assert "eta=" not in page.url and "text=" not in page.url, "the address no longer holds"
    slider.press("Home")
    sync_api.expect(headline(page)).to_contain_text(
        re.compile(r"At η = 15, hardly anything of your text is left: 0\.\d %")
    )


def test_a_click_on_a_point_shows_a_sentence_at_its_setting(visit: Visit) -> None:
    page = visit.open("/tradeoff", text=TEXT, task="SUBJ").page
    figure = page.locator(".js-plotly-plot").first
    figure.wait_for()
    sync_api.expect(page.get_by_role("heading", name="(SUBJ)").first).to_be_visible()
    figure.locator(".scatterlayer .trace").nth(1).locator(".point").nth(3).click(force=True)
    chosen = page.get_by_role("combobox", name="A: this defence")
    sync_api.expect(chosen).to_have_value("Text to text, η 90")
    sync_api.expect(page.get_by_text("Released, one draw")).to_be_visible()


def test_a_missing_part_of_the_tests_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKSCOPE_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception):
        skip_or_fail("no browser")
    monkeypatch.delenv("LEAKSCOPE_REQUIRE_BROWSER")
    with pytest.raises(pytest.skip.Exception):
        skip_or_fail("no browser")


UNSEEN = "My neighbour keeps two old bicycles in her garden shed."
WATCHED = """() => {
    window.seen = [];
    new MutationObserver(() => {
        const drawn = document.querySelectorAll(
            '.st-key-card-reconstruct [data-testid="stHtml"] > .ls-sentence');
        for (const one of drawn)
            if (window.seen.at(-1) !== one.textContent) window.seen.push(one.textContent);
    }).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
"""Writes down each sentence that stands on the card."""


def test_a_sentence_is_read_back_step_by_step(visit: Visit) -> None:
    page = visit.open("/inversion", text=UNSEEN, attack="reconstruct").page
    button = page.get_by_role("button", name=f"Run {RECONSTRUCTION.lower()}")
    button.wait_for()
    page.evaluate(WATCHED)
    button.click()
    card = visit.answered(RECONSTRUCTION)
    seen = page.evaluate("window.seen")
    assert len(seen) >= 2, "it grew while it was read"
    sync_api.expect(card.get_by_text("The reconstructed sentence, cosine")).to_be_visible()
    told = card.get_by_text(re.compile(r"^\d+ of its \d+ words are in the text, \d+ of them"))
    counts = list(map(int, re.findall(r"\d+", told.first.inner_text())))
    sentence = card.locator("[data-testid=stHtml] > .ls-sentence").first
    assert sentence.locator("mark.ls-hit").count() == counts[0] > 0
    assert sentence.locator("u > mark.ls-hit").count() == counts[2]
    sync_api.expect(card.get_by_text("not calibrated on text like this")).to_be_visible()
    card.get_by_text("Steps of the search").click()
    steps = card.locator(".ls-steps > li").filter(visible=True)
    sync_api.expect(steps.first).to_contain_text("Before the first query")
    sync_api.expect(steps.last).to_contain_text(sentence.inner_text())
    visit.fits_both()


def test_a_script_from_elsewhere_does_not_run(visit: Visit) -> None:
    page = visit.open("/inversion").page
    visit.answered("Probe-started classifier")
    ran = page.evaluate(
        """() => new Promise(done => {
            const script = document.createElement('script');
            script.textContent = 'window.ran = true';
            document.body.append(script);
            setTimeout(() => done(window.ran === true), 200);
        })"""
    )
    assert not ran
    refused, visit.complaints = visit.complaints, []
    assert len(refused) == 1 and "Content Security Policy" in refused[0]


def test_a_visit_complains_of_other_hosts(visit: Visit) -> None:
    with pytest.raises(sync_api.Error):
        visit.page.goto("http://127.0.0.1:1/")
    heard, visit.complaints = visit.complaints, []
    assert any(line.startswith("asks for http://127.0.0.1:1/") for line in heard)


@pytest.mark.parametrize("path", ["/inversion", "/deniability", "/projection"])
def test_what_looks_like_a_link_is_none(visit: Visit, path: str) -> None:
    page = visit.open(path, text=BAIT, attack=BAIT, encoder=BAIT, colour=BAIT).page
    sync_api.expect(page.get_by_text("This link contains unknown values").first).to_contain_text(
        "evil.test"
    )
    assert page.locator("a[href*='evil']").count() == 0
