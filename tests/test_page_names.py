from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from leakscope.core.findings.names import names
from leakscope.core.findings.prose import plain
from leakscope.core.names.experiment import NOT_TESTABLE
from leakscope.core.studies.names.tables import SHIPPED, load_rows
from leakscope.dashboard.names import state as names_state
from leakscope.dashboard.names.views import QUESTION

SENTENCES = "Ada Quell sold the boat to a museum.\nThe court fined Orrin for the boat."
NAMES = "Ada Quell\nTom Orrin"
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    def visit(**address: str) -> AppTest:
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/names.py").run()
        assert not small_app.exception
        return computed(small_app)

    return visit


def computed(page: AppTest) -> AppTest:
    """Wait until the job of the page is done."""
    end = time.monotonic() + 120
    while page.title[0].value == QUESTION and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def told(page: AppTest) -> str:
    return " ".join(m.value for m in page.markdown).replace("\\", "")


def test_the_first_visit_opens_with_the_strongest_and_what_was_measured(
    opened: Open,
) -> None:
    page = opened()
    assert not page.error
    in_title = re.fullmatch(
        r"From (\d+) of (\d+) vectors, an attacker with a list of 5 names picked the right one",
        page.title[0].value.replace("\\", ""),
    )
    assert in_title
    n_found, n = in_title.groups()
    percent = f"{100 * int(n_found) / int(n):.0f}"
    matrix, probes = (frame.value for frame in page.dataframe[:2])
    assert len(matrix) == 25 and len(probes) == 3
    shares = [float(re.match(r"[\d.]+", cell)[0]) for cell in probes["found, %"]]  # type: ignore[index]
    assert percent == f"{max(shares):.0f}"
    said = told(page).replace("*", "")
    assert "does not know the sentence" in said
    assert (
        "Attackers who know more (recovered words, or the rest of the sentence) found it as often."
        in said
    )
    assert re.search(r"an attacker with a list of \d+ names found the right one in \d+ of", said)
    found = rf"This attacker found the name in {n_found} of {n} vectors \({percent} %, 95 % CI"
    assert re.search(found, said)
    assert "guessing finds 20 %" in said

    rows = load_rows(SHIPPED)
    sums, unseen = (frame.value for frame in page.dataframe[3:5])
    assert all("[" in cell and ", n " in cell for cell in sums["guessing, %"])
    assert all("[" in cell and ", n " in cell for cell in sums["false positives, %"])
    assert "not independent of each other" in said
    finding = names()
    assert plain(finding.title) in [heading.value for heading in page.header]
    assert all(part in [m.value for m in page.markdown] for part in finding.body.split("\n\n"))
    assert len(sums) == sum(row["kind"] == "substitution" for row in rows) and len(unseen) >= 1


def test_a_name_that_no_answer_holds_is_not_testable_and_never_zero(opened: Open) -> None:
    page = opened(text="[Xqzorb] sold the boat to Vrblk.", names="Xqzorb\nVrblk")
    said = told(page)
    assert "Without a list, the surnames are **not testable by this attack**" in said
    assert "no evidence of safety" in said
    assert not re.search(r"\b0 %", page.title[0].value) and "0 of 0" not in said
    cells = page.dataframe[0].value
    assert cells["recovered, %"].isna().all() and set(cells["note"]) == {NOT_TESTABLE}
    assert "**Xqzorb** is not testable by this attack" in said
    assert any("▨ surname not testable" in caption.value for caption in page.caption)
    assert not any("○ surname not recovered" in caption.value for caption in page.caption)


def test_a_cell_shows_its_sentences_with_the_name_put_in_and_nothing_reaches_the_disk(
    opened: Open, leakscope_home: Path
) -> None:
    page = opened(text=SENTENCES, names=NAMES)
    page.selectbox(key=names_state.ROW_KEY).set_value(1)
    page.selectbox(key=names_state.COLUMN_KEY).set_value(0).run()
    shown = "\n".join(part.value for part in page.html)
    assert "fined" in shown and "Quell" in shown and "Orrin" not in shown
    assert "**Quell** is not testable by this attack" in told(page)
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == []


def test_names_in_brackets_and_the_placeholder_are_taken(opened: Open) -> None:
    typed = "[Eve Lind] sold the boat.\nThen [name] left the town.\nQuell came back."
    page = opened(text=typed, names=NAMES)
    matrix = page.dataframe[0].value
    assert set(matrix["original name"]) == {"Ada Quell", "Eve Lind", "[name]"}
    assert set(matrix["inserted name"]) == {"Ada Quell", "Tom Orrin", "Eve Lind"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sentences", "names", "wrong"),
    [
        ("", NAMES, "no sentence"),
        (SENTENCES, "", "no name"),
        ("x" * 100_000, NAMES, "at most 20,000"),
        (SENTENCES, f"{NAMES}\n<b>*Xan*</b>", "not a person's name"),
        ("אמר קוול אתמול שהסירה נמכרה.", "קוול\nTom Orrin", ""),
    ],
)
def test_bad_input_is_told(opened: Open, sentences: str, names: str, wrong: str) -> None:
    page = opened(text="Quell left the town.", names=NAMES)
    page.text_area(key=names_state.SENTENCES_KEY).set_value(sentences)
    page.text_area(key=names_state.NAMES_KEY).set_value(names).run()
    page = computed(page)
    errors = " ".join(e.value for e in page.error).replace("\\", "")
    assert wrong in errors and bool(wrong) == bool(errors)
    assert page.header, "what was measured is shown all the same"


@pytest.mark.slow
def test_the_examples_come_back(opened: Open) -> None:
    page = opened(text=SENTENCES, names=NAMES)
    page.button(key="names-samples").click().run()
    assert "Clara Weber" in page.text_area(key=names_state.NAMES_KEY).value
    assert "text" not in page.query_params
    assert len(computed(page).dataframe[0].value) == 25
