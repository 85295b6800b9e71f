from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.assets import ROOT
from core.attacks.membership.memorisation.texts import upload_texts
from core.cli import build_parser
from core.cli.spec_file import with_spec
from core.corpora.memory_file import MemoryFile
from core.errors import ArtifactError, InvalidInputError
from core.figures.memorisation import audit_figure, growth_figure, insertions_figure
from core.figures.style import LEAKED, MISSED
from core.results import Score
from core.studies import memorisation, memorisation_summary
from core.studies.memorisation import MemorisationStudy, markdown
from core.studies.memorisation_summary import SHIPPED, load_memorisation
from core.studies.registry import run_study
from core.studies.tables import write_rows
from dashboard import cache
from dashboard.leakage import memorise_command
from dashboard.memorisation import job as memorise_job
from dashboard.memorisation.measured import MEASURE, QUESTION
from dashboard.memorisation.state import key_of

SMALL = {"corpus": "lee", "n": "200", "epochs": "2", "draw": "100"}
SECRET = "My pin is {digits:2}"
Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, small_texts: list[str]) -> Iterator[Path]:
    """The rows of a tiny study, audits of private training included, as a file that ships."""
    folder = tmp_path_factory.mktemp("memorisation")
    corpus, path = folder / "corpus.txt", folder / "rows.json"
    corpus.write_text("\n".join(small_texts), encoding="utf-8")
    small = {"hidden": 16, "max_length": 48, "batch_size": 32}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKSCOPE_HOME", str(folder))
        patch.setattr(memorisation, "_SETTINGS", replace(memorisation._SETTINGS, **small))
        for access, settings in memorisation._AUDITED.items():
            patch.setitem(memorisation._AUDITED, access, replace(settings, epochs=1, n_texts=40,
                                                                 **small))  # fmt: skip
            patch.setitem(memorisation._CANARIES, access, (20, 10))
        patch.setattr(memorisation, "FORMATS", ("my pin is {digits:2}", "code {digits:2}"))
        study = MemorisationStudy(
            target=str(corpus), models=("lstm", "transformer"), insertions=(0, 8), epochs=2,
            n_texts=80, n_canaries=2, n_generated=0, seeds=(0, 1), audit_epsilons=(0.0, 4.0),
            n_audits=2,
        )  # fmt: skip
        found = run_study("memorisation", study, folder)
    assert [row.error for row in found if row.error] == []
    write_rows(path, "memorisation", found, markdown(found))
    yield path


@pytest.fixture
def opened(small_app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    def visit(shipped: Path = tmp_path / "none.json", **address: str) -> AppTest:
        monkeypatch.setattr(memorisation_summary, "SHIPPED", shipped)
        cache.memorisation.clear()
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/memorisation.py").run()
        assert not small_app.exception
        return small_app

    yield visit
    cache.memorisation.clear()


def planted(page: AppTest) -> AppTest:
    """Press the button and wait until the job is done."""
    page.button(key="memorise-start").click().run()
    end = time.monotonic() + 180
    while not page.subheader and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def told(page: AppTest) -> str:
    return " ".join(m.value for m in page.markdown).replace("\\", "")


def errors(page: AppTest) -> str:
    return " ".join(e.value for e in page.error).replace("\\", "")


def test_where_nothing_was_measured_the_page_says_so_and_which_command_does(opened: Open) -> None:
    page = opened()
    assert page.title[0].value == QUESTION and not page.error
    assert MEASURE in page.info[0].value and "Not measured" in page.info[0].value
    assert page.button(key="memorise-start")
    assert any("digits × 4, 10,000 values" in c.value.replace("\\", "") for c in page.caption)
    assert not page.dataframe, "no figure is made up"


def test_the_rows_of_a_study_open_the_page_with_a_finding(opened: Open, rows: Path) -> None:
    page = opened(rows)
    assert page.title[0].value != QUESTION and "secret stands out" in page.title[0].value
    n = load_memorisation(rows).planted[-1].exposure.n
    assert page.title[0].value.endswith(f"(mean of {n} canaries)") and n > 1
    assert "100 possible values" in told(page) and "of 6.6 bits at most" in told(page)
    insertions, audits = (frame.value for frame in page.dataframe)
    assert len(insertions) == 4 and set(insertions["times planted"]) == {0, 8}
    assert len(audits) == 3 and list(audits["accountant's ε"]).count("none") == 1
    assert "audits** of private training" in told(page)


def test_rows_are_summed_up_over_seeds_and_no_promise_comes_last(rows: Path) -> None:
    found = load_memorisation(rows)
    assert [(p.model, p.insertions) for p in found.planted] == [
        ("lstm", 0), ("lstm", 8), ("transformer", 0), ("transformer", 8)
    ]  # fmt: skip
    assert all(p.exposure.n_seeds == 2 and p.exposure.has_interval for p in found.planted)
    assert not any(p.stands_out for p in found.planted if p.insertions == 0)
    assert [(a.access, a.target) for a in found.audited] == [
        ("gradients", 4.0), ("texts", 4.0), ("texts", float("inf"))
    ]  # fmt: skip
    assert all(len(a.bounds) == len(a.shuffled) == 2 for a in found.audited)
    assert found.law.most == pytest.approx(6.644, abs=1e-3) and found.n_values == 100
    figure = audit_figure(found.audited)
    assert list(figure.layout.xaxis.ticktext) == ["ε = 4", "no promise"]
    assert len({t.marker.symbol for t in figure.data}) == 3, "never by colour alone"
    ticks = set(figure.layout.xaxis.tickvals)
    assert all(set(trace.x) <= ticks for trace in figure.data), "each at the ε that it is of"
    lines = insertions_figure(found).data
    assert [t.name for t in lines] == ["LSTM", "Transformer"] and list(lines[0].x) == [0, 1]
    assert list(insertions_figure(found).layout.xaxis.ticktext) == ["0", "8"]
    assert all(p.exposure.ci95.high <= found.law.most + 1e-9 for p in found.planted)
    assert len({(t.marker.symbol, t.line.dash) for t in lines}) == 2


def test_damaged_rows_are_told_and_the_rest_of_the_page_stands(
    opened: Open, rows: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "rows.json"
    table = json.loads(rows.read_text(encoding="utf-8"))
    table["rows"] = [row for row in table["rows"] if row["part"] != "exposure"]
    damaged.write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(ArtifactError, match="Make it anew"):
        load_memorisation(damaged)
    page = opened(damaged)
    assert "Make it anew" in errors(page) and page.button(key="memorise-start")


def test_a_canary_is_planted_watched_and_sampled(opened: Open, leakscope_home: Path) -> None:
    page = planted(opened(canary=SECRET, insertions="64", **SMALL))
    assert not page.error and "of 6.6 bits" in page.subheader[0].value
    assert "My pin is " in told(page) and "of the 100 that could stand" in told(page)
    epochs, places = (frame.value for frame in page.dataframe)
    assert list(epochs["epoch"]) == [1, 2] and (epochs["exposure, bits"] <= 6.65).all()
    assert epochs["planted nowhere, bits"].between(0.5, 3).all()
    assert len(places) == 3 and list(places["texts drawn"]) == [100, 100, 100]
    assert "hold the canary" in told(page)
    assert "job" in page.query_params, "a reload would lose what took minutes"
    page.selectbox(key=key_of("shown_sampler")).set_value("prefix").run()
    shown = "\n".join(part.value for part in page.html)
    assert "ls-sentence" in shown and not page.exception
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == [], "typed text on the disk"


def test_a_job_is_watched_stopped_and_offered_again(opened: Open) -> None:
    page = opened(canary=SECRET, corpus="lee", n="500", epochs="50")
    page.button(key="memorise-start").click().run()
    assert "job" in page.query_params and not page.get("plotly_chart")
    end = time.monotonic() + 120
    while not page.get("plotly_chart") and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert page.get("plotly_chart") and not page.exception, "it grows before the visitor's eyes"
    (job_id,) = page.session_state["_jobs"].values()
    cache.jobs().stop(job_id)
    cache.jobs().wait(job_id, 60)
    page.run()
    assert page.button(key="memorise-start").label == "Train again" and not page.error
    assert any("Stopped after" in caption.value for caption in page.caption)


def test_what_is_typed_just_before_the_click_is_what_is_planted(opened: Open) -> None:
    page = opened(canary="x 1", **{**SMALL, "draw": "0"})
    page.text_input(key=key_of("canary")).set_value(SECRET)
    page = planted(page)
    assert not page.error and "of 6.6 bits" in page.subheader[0].value


def test_a_link_opens_a_view_and_what_it_may_not_ask_is_told(opened: Open) -> None:
    page = opened(canary="Code {letters:3}", model="transformer", insertions="4", epochs="7",
                  corpus="/etc/passwd", n="7")  # fmt: skip
    assert page.text_input(key=key_of("canary")).value == "Code {letters:3}"
    assert page.session_state[key_of("model")] == "transformer"
    assert page.select_slider(key=key_of("insertions")).value == 4
    assert page.slider(key=key_of("epochs")).value == 7
    assert page.selectbox(key=key_of("corpus")).value == "bundled"
    refused = page.warning[0].value.replace("\\", "")
    assert "passwd" in refused and "n=7" in refused and not page.error


@pytest.mark.parametrize(
    ("canary", "wrong"),
    [("", "empty"), ("   ", "empty"), ("x 7" * 60, "at most 150"), ("{digits:99}", "40"),
     ("{foo:3}", "{digits:N}"), ("pin 7 \0", "null byte"), ("y" * 30_000, "at most 20,000")],
    ids=["nothing", "blank", "long", "random", "format", "null", "huge"],
)  # fmt: skip
def test_what_cannot_be_planted_is_told_at_once(opened: Open, canary: str, wrong: str) -> None:
    page = opened()
    page.text_input(key=key_of("canary")).set_value(canary).run()
    assert wrong in errors(page) and not page.exception
    assert not [b for b in page.button if b.key == "memorise-start"]


def test_hostile_text_is_shown_as_it_is(opened: Open) -> None:
    page = planted(opened(canary="<img src=x onerror=alert(1)> $x$ :red[7]", **SMALL))
    assert not page.error and "<img src=x" in told(page)
    assert not any("<img" in part.value for part in page.html)


def test_a_canary_without_anything_random_fails_with_a_message(opened: Open) -> None:
    page = planted(opened(canary="the of and", **SMALL))
    assert "nothing random" in errors(page)


def test_an_upload_is_trained_on_and_stays_in_the_session(
    opened: Open, small_texts: list[str], leakscope_home: Path
) -> None:
    page = opened(canary=SECRET, n="200", epochs="1", draw="0")
    page.selectbox(key=key_of("corpus")).set_value("upload").run()
    assert "Choose a file" in page.info[1].value
    assert not [b for b in page.button if b.key == "memorise-start"]
    few = "\n".join(small_texts[:5]).encode()
    page.file_uploader(key=key_of("file")).upload("few.txt", few, "text/plain").run()
    assert "at least 20 different sentences" in errors(page)
    file = "\n".join(["id,text", *(f'{i},"{t}"' for i, t in enumerate(small_texts[:100]))])
    page.file_uploader(key=key_of("file")).upload("a.csv", file.encode(), "text/csv").run()
    page = planted(page)
    assert not page.error and "among 90 sentences" in told(page)
    assert any("No texts were drawn" in info.value for info in page.info)
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == []


def test_sentences_of_an_upload_are_bounded_and_each_stands_once(small_texts: list[str]) -> None:
    twice = "\n".join(["text", *(f'"{t} {t}"' for t in small_texts[:50])]).encode()
    found = upload_texts(MemoryFile("a.csv", twice), 30)
    assert len(found) == 30 == len(set(found)) and set(found) <= set(small_texts)
    with pytest.raises(InvalidInputError, match="at least 20"):
        upload_texts(MemoryFile("a.csv", b"text\none\n"), 30)


def test_exposure_grows_between_the_law_and_the_ceiling() -> None:
    law = memorisation_summary.law_of(1024)
    figure = growth_figure([Score(1.0), Score(9.0)], [1.4, 1.5], law, 4)
    own, controls = figure.data
    assert list(own.x) == [1, 2] and list(own.y) == [1.0, 9.0]
    assert own.line.color == LEAKED and controls.line.color == MISSED
    assert own.marker.symbol != controls.marker.symbol
    lines = sorted(s.y0 for s in figure.layout.shapes if s.type == "line")
    assert lines == [pytest.approx(1.44, abs=0.01), 10.0]
    (band,) = (s for s in figure.layout.shapes if s.type == "rect")
    assert band.y1 == pytest.approx(law.high) and figure.layout.xaxis.range[1] == 4.5
    live = growth_figure([Score(1.0)], (), memorisation_summary.law_of(None), 4)
    assert len(live.data) == 1 and sum(s.type == "line" for s in live.layout.shapes) == 1


def test_the_bar_leaves_to_the_chart_what_the_chart_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "Seed 0 (1 of 1): Epoch 3 of at most 10, exposure by epoch 0.4 2.1 bits, 9 texts/s"
    offers: list[Any] = []
    monkeypatch.setattr(memorise_job.work, "drop_others", lambda *given: None)
    monkeypatch.setattr(memorise_job.work, "take", lambda request, offer: offers.append(offer))
    monkeypatch.setattr(memorise_job.state, "result_of", lambda request: None)
    memorise_job.experiment(memorise_job.MemoriseRequest(corpus="lee", canary="x 1"), None, None)
    assert offers[0].tells(message) == "Seed 0 (1 of 1): Epoch 3 of at most 10, 9 texts/s"


@pytest.mark.parametrize("canary", ["It's $(rm) 7", "--json"])
def test_the_commands_of_the_page_are_understood(
    canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    own = shlex.split(memorise_command("bundled", canary, {"n_texts": 200, "model": "lstm"}, 2))
    parsed = build_parser().parse_args(own[3:])
    assert (parsed.canary, parsed.n_texts, parsed.seed) == (canary, 200, [0, 1])
    measuring = build_parser().parse_args(with_spec(shlex.split(MEASURE)[3:]))
    assert measuring.target.endswith("#text") and measuring.out == SHIPPED.relative_to(ROOT)
