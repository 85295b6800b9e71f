"""Present, Link and Save: what every page offers."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

PAGES = sorted(
    {path.stem for path in (Path(__file__).parents[1] / "pages").glob("*.py")} - {"story"}
)
"""All but the one that presents and saves what was pinned on the others."""


def on(app: AppTest, page: str) -> AppTest:
    app.run()
    return app.switch_page(f"../pages/{page}.py").run()


def labels(page: AppTest) -> list[str]:
    return [block.proto.popover.label for block in page.get("popover")]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_presented_linked_and_saved(small_app: AppTest, name: str) -> None:
    page = on(small_app, name)
    assert not page.exception
    assert {"Link", "Save"} <= set(labels(page))
    page.button(key="present").click().run()
    assert not page.exception
    assert not {"Link", "Save"} & set(labels(page)), "presented, controls are gone"
    page.button(key="present-leave").click().run()
    assert not page.exception and page.button(key="present")


def check_offers(page: AppTest) -> None:
    assert not page.exception and page.button(key="present")
    assert {"Link", "Save"} <= set(labels(page))


def test_deniability_of_an_encoder_that_is_refused_offers_them(small_app: AppTest) -> None:
    small_app.session_state["encoder"] = "mlm:/no/such/folder"
    page = on(small_app, "deniability")
    assert page.error
    check_offers(page)


def test_what_is_saved_stands_under_save(small_app: AppTest) -> None:
    page = on(small_app, "tradeoff")
    save = next(b for b in page.get("popover") if b.proto.popover.label == "Save")
    assert len(save.get("download_button")) == 1


def test_a_page_without_what_is_typed_does_not_warn_of_it(small_app: AppTest) -> None:
    told = "contains what you typed"
    page = on(small_app, "overview")
    assert not any(told in caption.value for caption in page.caption)
    page = on(small_app, "inversion")
    assert any(told in caption.value for caption in page.caption)
