"""A server that is started again under an open page: what was typed stays, and so does the next."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from browsing import WITH_ROWS, free_port, open_tab, serve_dashboard
from training_rows import write_shipped

with suppress(ImportError):
    from playwright import sync_api

pytestmark = pytest.mark.browser

FIRST = "The surgeon Anna called Berlin about the insulin."
NEXT = "A nurse painted the harbour in Lisbon."
ASKED = "The judge visited the river."


@pytest.mark.parametrize("query", ["", f"?text={ASKED}"], ids=["bare", "with a text of its own"])
def test_what_is_typed_around_a_restart_stays(
    browser: sync_api.BrowserContext, tmp_path: Path, query: str
) -> None:
    program, port = ["-c", WITH_ROWS, str(write_shipped(tmp_path / "rows"))], free_port()
    with open_tab(browser) as page:
        line = page.get_by_role("textbox", name="Your sentence")
        with serve_dashboard(tmp_path, program, port) as (address, _):
            page.goto(f"{address}/inversion{query}")
            if query:
                sync_api.expect(line).to_have_value(ASKED)
            line.fill(FIRST)
            line.press("Enter")
            sync_api.expect(page.get_by_text("surgeon").first).to_be_visible()
        with serve_dashboard(tmp_path, program, port):
            sync_api.expect(line).to_have_value(FIRST)
            line.fill(NEXT)
            line.press("Enter")
            sync_api.expect(page.get_by_text("harbour").first).to_be_visible()
            sync_api.expect(line).to_have_value(NEXT)
