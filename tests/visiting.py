"""Open a dashboard page in tests."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

Open = Callable[..., AppTest]


def open_page(app: AppTest, name: str, /, **address: str | list[str]) -> AppTest:
    """Open a page with query parameters and run it."""
    for parameter, value in address.items():
        app.query_params[parameter] = value
    app.switch_page(f"../pages/{name}.py").run()
    assert not app.exception
    return app
