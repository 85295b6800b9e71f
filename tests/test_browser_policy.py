"""Every page works under the content security policy, and no typed link is one, in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_browser import (  # noqa: F401 - fixtures
    Visit,
    browser,
    patience,
    server,
    sync_api,
    visit,
)
from test_browser_projection import ROWS, opened, table, upload

from core.studies import (
    attribute_curves,
    membership_shipped,
    memorisation_summary,
    training_summary,
)

pytestmark = pytest.mark.browser
BAIT = "www.evil.test/login http://evil.test a@evil.test"
MEASURED = {  # pages that draw nothing before somebody clicks, until their study was run
    "/attributes": attribute_curves.SHIPPED.exists(),
    "/membership": membership_shipped.SHIPPED.exists(),
    "/memorisation": memorisation_summary.SHIPPED.exists(),
    "/training": training_summary.SHIPPED.exists(),
}
DRAWN = ["/", "/inversion", "/representations", "/names", "/deniability", "/tradeoff"]
DRAWN += [path for path, is_measured in MEASURED.items() if is_measured]


@pytest.mark.parametrize("path", DRAWN)
def test_a_page_and_its_figures_draw_and_ask_no_other_host(visit: Visit, path: str) -> None:  # noqa: F811
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    page = visit.open(path).page
    figure = page.locator(".js-plotly-plot .main-svg").first
    figure.wait_for()
    sync_api.expect(figure).to_be_visible()
    own = (visit.address, f"ws{visit.address.removeprefix('http')}", "data:", "blob:")
    assert asked and [url for url in asked if not url.startswith(own)] == []


def test_the_map_takes_an_upload_and_gives_a_figure(visit: Visit, tmp_path: Path) -> None:  # noqa: F811
    page = opened(visit)  # the map draws with WebGL, which compiles its programs
    upload(page, "parcels.csv", table(ROWS))
    sync_api.expect(page.get_by_text("All 27 rows")).to_be_visible()
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download() as download:
        page.locator("[data-title*='ownload']").first.click()
    download.value.save_as(tmp_path / "figure")
    assert (tmp_path / "figure").stat().st_size > 1000
    with page.expect_request(lambda request: request.method == "DELETE"):  # another takes its place
        page.locator("input[type=file]").set_input_files(
            {"name": "more.csv", "mimeType": "text/csv", "buffer": table(ROWS[:20])}
        )
    sync_api.expect(page.get_by_text("All 19 rows")).to_be_visible()


def test_a_script_from_elsewhere_does_not_run(visit: Visit) -> None:  # noqa: F811
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


@pytest.mark.parametrize("path", ["/inversion", "/deniability", "/projection"])
def test_what_looks_like_a_link_is_none(visit: Visit, path: str) -> None:  # noqa: F811
    page = visit.open(path, text=BAIT, attack=BAIT, encoder=BAIT, colour=BAIT).page
    sync_api.expect(page.get_by_text("The address asks for").first).to_contain_text("evil.test")
    assert page.locator("a[href*='evil']").count() == 0
