from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from test_memorisation_study import make_small, study
from visiting import Open, open_page

from leakscope.core.assets import ROOT
from leakscope.core.attacks.membership.memorisation.texts import upload_texts
from leakscope.core.cli import build_parser
from leakscope.core.cli.shared.spec_file import with_spec
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.figures.memorisation import audit_figure, insertions_figure
from leakscope.core.results.tables import write_rows
from leakscope.core.studies.memorisation import summary as memorisation_summary
from leakscope.core.studies.memorisation.study import markdown
from leakscope.core.studies.memorisation.summary import SHIPPED, load_memorisation
from leakscope.core.studies.registry import run_study
from leakscope.dashboard import cache
from leakscope.dashboard.memorisation.measured import MEASURE, QUESTION
from leakscope.dashboard.memorisation.state import key_of
from leakscope.dashboard.ui.leakage import memorise_command

SMALL = {"corpus": "lee", "n": "200", "epochs": "2", "draw": "100"}
SECRET = "My pin is {digits:2}"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, small_texts: list[str]) -> Iterator[Path]:
    """The rows of a tiny study, audits of private training included, as a file that ships."""
    folder = tmp_path_factory.mktemp("memorisation")
    corpus, path = folder / "corpus.txt", folder / "rows.json"
    corpus.write_text("\n".join(small_texts), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKSCOPE_HOME", str(folder))
        make_small(patch)
        asked = study(
            corpus,
            models=("lstm", "transformer"),
            n_generated=0,
            audit_epsilons=(0.0, 4.0),
            n_audits=2,
        )
        found = run_study("memorisation", asked, folder)
    assert [row.error for row in found if row.error] == []
    write_rows(path, "memorisation", found, markdown(found))
    yield path


@pytest.fixture
def opened(small_app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    def visit(shipped: Path = tmp_path / "none.json", **address: str) -> AppTest:
        monkeypatch.setattr(memorisation_summary, "SHIPPED", shipped)
        cache.memorisation.clear()
        return open_page(small_app, "memorisation", **address)

    yield visit
    cache.memorisation.clear()


def planted(page: AppTest) -> AppTest:
    """Press the button and wait until the job is done."""
    page.button(key="memorise-start").click().run()
    end = time.monotonic() + 180
    while not page.header and not page.error and time.monotonic() < end:
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
    assert page.title[0].value != QUESTION and "memorise" in page.title[0].value
    n = load_memorisation(rows).planted[-1].exposure.n
    assert page.title[0].value.endswith(f"\\(mean of {n} secrets\\)") and n > 1
    assert "100 possible values" in told(page) and "0 bits is last, 6.6 is first" in told(page)
    insertions, audits = (frame.value for frame in page.dataframe)
    assert len(insertions) == 4 and set(insertions["Planted"]) == {"never", "8 times"}
    assert len(audits) == 3 and list(audits["accountant's ε"]).count("none") == 1
    assert "audits** of training with differential privacy" in told(page)


def test_rows_are_summed_up_over_seeds_and_no_promise_comes_last(rows: Path) -> None:
    found = load_memorisation(rows)
    assert [(p.model, p.insertions) for p in found.planted] == [
        ("lstm", 0),
        ("lstm", 8),
        ("transformer", 0),
        ("transformer", 8),
    ]
    assert all(p.exposure.n_seeds == 2 and p.exposure.has_interval for p in found.planted)
    assert not any(p.is_above_chance for p in found.planted if p.insertions == 0)
    assert [(a.access, a.target) for a in found.audited] == [
        ("gradients", 4.0),
        ("texts", 4.0),
        ("texts", float("inf")),
    ]
    assert all(len(a.bounds) == len(a.shuffled) == 2 for a in found.audited)
    assert found.law.most == pytest.approx(6.644, abs=1e-3) and found.n_values == 100
    figure = audit_figure(found.audited)
    assert list(figure.layout.xaxis.ticktext) == ["ε = 4", "no guarantee"]
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
    with pytest.raises(ArtifactError, match="Run the study again"):
        load_memorisation(damaged)
    page = opened(damaged)
    assert "Run the study again" in errors(page) and page.button(key="memorise-start")


@pytest.mark.slow
def test_a_canary_is_planted_watched_and_sampled(opened: Open, leakscope_home: Path) -> None:
    page = planted(opened(canary=SECRET, insertions="64", **SMALL))
    assert not page.error and "of 6.6 bits" in page.header[0].value
    assert "My pin is " in told(page) and "of 100 possible secrets" in told(page)
    epochs, places = (frame.value for frame in page.dataframe)
    assert list(epochs["epoch"]) == [1, 2] and (epochs["exposure, bits"] <= 6.65).all()
    assert epochs["never planted, bits"].between(0.5, 3).all()
    assert len(places) == 3 and list(places["texts sampled"]) == [100, 100, 100]
    assert "texts contain the canary" in told(page)
    assert "job" in page.query_params, "a reload would lose what took minutes"
    page.selectbox(key=key_of("shown_sampler")).set_value("prefix").run()
    shown = "\n".join(part.value for part in page.html)
    assert "ls-sentence" in shown and not page.exception
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == [], "typed text on the disk"


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_typed_just_before_the_click_is_what_is_planted(opened: Open) -> None:
    page = opened(canary="x 1", **{**SMALL, "draw": "0"})
    page.text_input(key=key_of("canary")).set_value(SECRET)
    page = planted(page)
    assert not page.error and "of 6.6 bits" in page.header[0].value


@pytest.mark.parametrize(
    ("canary", "wrong"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("x 7" * 60, "at most 150"),
        ("{digits:99}", "40"),
        ("{foo:3}", "{digits:N}"),
        ("pin 7 \0", "null byte"),
        ("y" * 30_000, "at most 20,000"),
    ],
    ids=["nothing", "blank", "long", "random", "format", "null", "huge"],
)
def test_what_cannot_be_planted_is_told_at_once(opened: Open, canary: str, wrong: str) -> None:
    page = opened()
    page.text_input(key=key_of("canary")).set_value(canary).run()
    assert wrong in errors(page) and not page.exception
    assert not [b for b in page.button if b.key == "memorise-start"]


@pytest.mark.slow
def test_hostile_text_is_shown_as_it_is(opened: Open) -> None:
    page = planted(opened(canary="<img src=x onerror=alert(1)> $x$ :red[7]", **SMALL))
    assert not page.error and "<img src=x" in told(page)
    assert not any("<img" in part.value for part in page.html)


@pytest.mark.slow
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
    assert any("No texts were sampled" in info.value for info in page.info)
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == []


def test_sentences_of_an_upload_are_bounded_and_each_stands_once(small_texts: list[str]) -> None:
    twice = "\n".join(["text", *(f'"{t} {t}"' for t in small_texts[:50])]).encode()
    found = upload_texts(MemoryFile("a.csv", twice), 30)
    assert len(found) == 30 == len(set(found)) and set(found) <= set(small_texts)
    with pytest.raises(InvalidInputError, match="at least 20"):
        upload_texts(MemoryFile("a.csv", b"text\none\n"), 30)


@pytest.mark.parametrize("canary", ["It's $(rm) 7", "--json"])
def test_the_commands_of_the_page_are_understood(
    canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    own = shlex.split(memorise_command("bundled", canary, {"n_texts": 200, "model": "lstm"}, 2))
    parsed = build_parser().parse_args(own[1:])
    assert (parsed.canary, parsed.n_texts, parsed.seed) == (canary, 200, [0, 1])
    measuring = build_parser().parse_args(with_spec(shlex.split(MEASURE)[1:]))
    assert measuring.target.endswith("#text") and measuring.out == SHIPPED.relative_to(ROOT)
