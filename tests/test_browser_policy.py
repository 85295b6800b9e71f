"""What the content security policy lets through, and no typed link is one, in Chromium.

That every page works under it and asks no other host is seen at each visit: see `browsing.Visit`.
"""

from __future__ import annotations

import pytest
from browsing import Visit, sync_api

pytestmark = pytest.mark.browser
BAIT = "www.evil.test/login http://evil.test a@evil.test"


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
