"""Open a dashboard page in tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

from streamlit.testing.v1 import AppTest

from leakscope.dashboard import cache

Open = Callable[..., AppTest]
PARCELS = [
    *product(("baker", "nurse", "pilot", "judge"), ("weighed", "painted", "returned", "mislaid"))
]
"""Who did what with a parcel, for tables of 16 rows."""


def open_page(app: AppTest, name: str, /, **address: str | list[str]) -> AppTest:
    """Open a page with query parameters and run it."""
    for parameter, value in address.items():
        app.query_params[parameter] = value
    app.switch_page(f"../pages/{name}.py").run()
    assert not app.exception
    return app


def run_until(page: AppTest, holds: Callable[[AppTest], bool], seconds: float = 120.0) -> AppTest:
    """Run a page until a condition holds or it shows an error."""
    end = time.monotonic() + seconds
    while not holds(page) and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def job_in(page: AppTest) -> str:
    """Return the id of the job in the address; "" if there is none."""
    found = page.query_params.get("job", "")
    return found if isinstance(found, str) else found[0]


def finish_job(page: AppTest, *, seconds: float = 300) -> AppTest:
    """Wait until the job in the address has ended, and run the page again."""
    cache.jobs().wait(job_in(page), timeout=seconds)
    page.run()
    assert not page.exception
    return page
