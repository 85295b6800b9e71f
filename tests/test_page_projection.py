from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import job_work
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from visiting import PARCELS, Open, open_page, run_until

from leakscope.core.corpora import uploads
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.defences.metric_dp.distances import has_d_chi_guarantee
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.figures.point_map import bits_of
from leakscope.core.findings.projection import map_neighbours
from leakscope.core.projection import ProjectionSpec, project
from leakscope.core.projection.displacement import placeable_defences
from leakscope.core.projection.job import draw_map
from leakscope.core.projection.points import upload_points
from leakscope.core.projection.quality import NeighbourScore
from leakscope.core.projection.shipped import N_POINTS
from leakscope.core.results import Interval, Score
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.dashboard.projection import controls as map_controls
from leakscope.dashboard.projection import job as map_jobs
from leakscope.dashboard.projection import selection as map_selection
from leakscope.dashboard.projection import sentences as map_sentences
from leakscope.dashboard.projection import state as map_state
from leakscope.dashboard.projection import views as map_views
from leakscope.dashboard.projection.state import MapRequest, key_of
from leakscope.dashboard.ui import state

TEXT = "The harbour master counted twelve ships."
QUESTION = "Which texts belong together?"
TABLE = "\n".join(
    ["text,kind,who"]
    + [
        f"The {a} {b} the parcel near the mill {i} times.,{a},{b}"
        for i, (a, b) in enumerate(PARCELS)
    ]
)


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    map_jobs._corpus_maps().clear()

    return partial(open_page, small_app, "projection")


def drawn(page: AppTest) -> AppTest:
    """Wait until the job of the page has drawn its map."""
    return run_until(page, lambda page: page.title[0].value != QUESTION)


def told(page: AppTest) -> str:
    return " ".join(m.value for m in page.markdown)


def control(page: AppTest, kind: str, name: str):
    return getattr(page, kind)(key=key_of(name))


def test_the_first_visit_opens_with_a_finding_and_searching_counts(opened: Open) -> None:
    page = opened()
    assert "on average come from the same document" in page.title[0].value
    assert "come from the same collection" in told(page) and not page.error
    assert f"{N_POINTS:,} of 18,064 sentences, chosen at random (seed 0)" in told(page)
    assert "The map's trustworthiness is **" in told(page) and "1,000 of the points" in told(page)
    assert not any("removed your file" in w.value for w in page.warning)
    control(page, "text_input", "search").set_value("GOVERNMENT").run()
    (line,) = [m.value for m in page.markdown if "texts contain" in m.value]
    assert 0 < int(line.split(" of ")[0]) < N_POINTS
    control(page, "text_input", "search").set_value("<b>*x*</b>").run()
    assert "0 of 2,000 texts contain" in told(page) and "<b>" not in told(page)


@pytest.mark.slow
def test_a_link_opens_a_view(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_state, "COUNTS", (60, 2000))  # 500, the fewest, take 20 s to encode
    page = drawn(opened(corpus="lee", n="60", method="pca", dims="3", colour="words", text=TEXT))
    assert control(page, "selectbox", "corpus").value == "lee"
    assert control(page, "selectbox", "colour").value == "words"
    assert page.text_input(key=state.TEXT_KEY).value == TEXT
    assert "60 of " in told(page) and "of the variance" in told(page) and not page.error


@pytest.mark.slow
def test_every_defence_moves_points_and_eta_less_and_less(opened: Open) -> None:
    page = opened(text=TEXT)
    page.session_state[key_of("n_moved")] = 50
    for name in placeable_defences():
        control(page, "selectbox", "defence").set_value(name).run()
        assert not page.exception and not page.error, name
        assert "of 50 protected vectors are still nearest to their own" in told(page), name
        is_told = "whoever sees the output may tell apart" in told(page)
        assert is_told == has_d_chi_guarantee(name), name
    control(page, "selectbox", "defence").set_value("text_to_text").run()
    shares = []
    for eta in (30.0, 60.0, 200.0):
        page.select_slider(key=key_of("strength")).set_value(eta).run()
        found = re.search(r"([\d.]+) % of 50 protected vectors", told(page))
        shares.append(float(found[1]))
    assert shares == sorted(shares) and shares[0] < 20 and shares[-1] > 90


@pytest.mark.slow
def test_an_upload_is_drawn_and_stays_in_the_session(opened: Open, leakscope_home) -> None:
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    assert page.title[0].value == QUESTION and "Choose a file" in page.info[0].value
    control(page, "file_uploader", "file").upload("parcels.csv", TABLE.encode(), "text/csv").run()
    page = drawn(page)
    assert "All 16 rows" in told(page) and not page.error
    assert control(page, "selectbox", "colour").value == "kind"
    assert list(leakscope_home.rglob("*")) == []
    assert not any(request.is_private for request in map_jobs._corpus_maps())


def test_a_selection_belongs_to_its_map(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (
        MapRequest(source="lee", n=n, on=EncoderSpec(), spec=ProjectionSpec()) for n in (500, 1000)
    )
    monkeypatch.setattr(map_state.st, "session_state", {})
    assert map_state.selected_rows(one) == []
    map_state.select(one, [3, 1])
    assert map_state.selected_rows(one) == [1, 3]
    assert map_state.selected_rows(other) == [], "rows of another map"
    map_state.clear_selection()
    assert map_state.selected_rows(one) == []


def test_what_is_picked_on_an_earlier_map_is_no_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    picked = SimpleNamespace(picked={"key": "first", "bits": bits_of([2, 9], 12)})
    monkeypatch.setattr(map_views.st, "session_state", {"map": picked})
    found: list[list[int]] = []
    map_views._forward_selection("map", "second", 12, found.append)
    assert found == []
    map_views._forward_selection("map", "first", 12, found.append)
    assert found == [[2, 9]]


@pytest.mark.slow
def test_a_selection_is_attacked_without_and_with_the_defence(opened: Open) -> None:
    page = opened()
    rows = list(range(0, 60, 10))
    request = MapRequest(source="bundled", n=N_POINTS, on=EncoderSpec(), spec=ProjectionSpec())
    page.session_state[map_state._SELECTED] = (request, rows)
    page.run()
    assert "without the defence, and" not in told(page) and "of 10 words** (F1" in told(page)
    control(page, "selectbox", "defence").set_value("text_to_text").run()
    page.select_slider(key=key_of("strength")).set_value(30.0).run()
    assert "with it (Text to text at η 30), n = " in told(page) and not page.error
    table = next(f.value for f in page.dataframe if "protected f1" in f.value)
    assert len(table) == len(rows) and (table["f1"] != table["protected f1"]).any()
    page.button(key="clear-selection").click().run()
    assert "Draw a loop" in told(page)


@pytest.mark.slow
def test_selected_texts_are_written_back_and_stay(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_sentences, "invert_all", job_work.write_back)
    page = opened()
    request = MapRequest(source="bundled", n=N_POINTS, on=EncoderSpec(), spec=ProjectionSpec())
    page.session_state[map_state._SELECTED] = (request, [3, 8])
    page.run()
    page.button(key="write-back").click().run()
    run_until(page, lambda page: "word for word**" in told(page))
    assert re.search(r"All 2 texts, .*\*\*0 of 2 .* ROUGE-L is \*\*\d+\*\* \(95 % CI ", told(page))
    drawn_now = [
        h.proto.body for h in page.get("html") if "As recovered, cosine 0.871" in h.proto.body
    ]
    assert len(drawn_now) == 2 and not any("<b>" in body for body in drawn_now)
    monkeypatch.setattr(map_sentences.work, "draw_job", lambda *_: pytest.fail("it is kept"))
    page.run()
    assert "word for word**" in told(page)
    page.button(key="clear-selection").click().run()
    assert "word for word**" not in told(page)


def test_a_job_on_sentences_brings_its_selection_back(monkeypatch) -> None:
    spec = ProjectionSpec()
    shared = MapRequest(source="lee", n=500, on=EncoderSpec(), spec=spec)
    own = MapRequest(source="f" * 64, n=9, on=EncoderSpec(), spec=spec, is_private=True)
    attack = AttackSpec(name=map_sentences.ATTACK)
    asked = [map_sentences.SentencesRequest(map=m, rows=(1, 4), spec=attack) for m in (shared, own)]
    dropped: list[object] = []
    monkeypatch.setattr(map_sentences.work, "adopt_jobs", lambda _: asked)
    monkeypatch.setattr(map_sentences.work, "drop", dropped.append)
    monkeypatch.setattr(map_state.st, "session_state", {})
    map_sentences.adopt_sentences_job()
    assert dropped == asked[1:], "its file is gone with the session"
    assert map_state.selected_rows(shared) == [1, 4]


def test_the_shipped_vectors_serve_other_maps(monkeypatch) -> None:
    """Nothing of the bundled map is encoded again: here, nothing could be."""
    encoder = shared_encoder(EncoderSpec())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a text was encoded")

    monkeypatch.setattr(type(encoder), "encode", refuse)
    spec = ProjectionSpec(method="pca", n_components=3)
    request = MapRequest(source="bundled", n=N_POINTS, on=EncoderSpec(), spec=spec)
    _, _, layout = draw_map(request, None)
    assert layout.coordinates.shape == (N_POINTS, 3)


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (3.0, 2.6, 3.2, "less often than by chance"),
        (3.2, 2.9, 3.6, "no more often than by chance"),
        (4.0, 3.7, 4.4, "Of the 10 points nearest to a text on the map, 4.0 on average"),
    ],
)
def test_the_finding_holds_the_interval_against_chance(
    value: float, low: float, high: float, words: str
) -> None:
    agreement = NeighbourScore(Score(value, Interval(low, high), 99, 3.3), 10)
    file = MemoryFile("f.csv", b"text,kind\n" + b"One text,a\n" * 12)
    points = upload_points(file, 12, others=("kind",))
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    layout = project(vectors, ProjectionSpec(method="pca"))
    found = map_neighbours(points, layout, {"kind": agreement}, source="a file", commands=())
    assert words in found.title


def test_the_table_itself_holds_no_formula() -> None:
    """Streamlit puts a download button of its own on a table, which writes cells as they are."""
    file = MemoryFile("f.csv", b"text,=kind\n" + b"=1+1 is two,@SUM(A1)\n" * 12)
    points = upload_points(file, 12, others=("=kind",))
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    map_of = map_jobs.DrawnMap(points, vectors, project(vectors, ProjectionSpec(method="pca")))
    row = map_selection._table_row(map_of, 0, None)
    assert row == {"text": "'=1+1 is two", "'=kind ": "'@SUM(A1)", "words ": "3"}


def test_a_reload_says_that_an_own_file_was_forgotten(opened: Open) -> None:
    page = opened(own="1")
    assert [w.value for w in page.warning if "removed your file" in w.value]


@pytest.fixture
def few_characters(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what has this process read files, with a limit that another would not know of."""

    def read(reader: Callable[..., object], *arguments: object, **options: object) -> object:
        return reader(*arguments, **options)

    def limit(n: int) -> None:
        monkeypatch.setattr(uploads, "MAX_CHARACTERS_READ", n)
        for module in (map_state, map_controls):
            monkeypatch.setattr(module, "run_reader", read)

    return limit


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("text\n" + "A parcel lies near the mill.\n" * 12 + "one,two,three\n", "has 3 cells"),
        ("text\n" + "A parcel lies near the mill.\n" * 40, "characters together"),
    ],
    ids=["a broken row further down", "too much text"],
)
def test_a_file_that_is_refused_while_its_texts_are_read_is_cleared(
    opened: Open, content: str, wrong: str, few_characters: Callable[[int], None]
) -> None:
    few_characters(800)
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    page.file_uploader(key=key_of("file")).upload("sent.csv", content.encode(), "text/csv").run()
    assert not page.exception and wrong in page.error[0].value.replace("\\", "")
    (again,) = page.file_uploader
    assert again.key == map_state.key_of("file") + "-1", "empty, for the next"


@pytest.mark.slow
def test_a_file_with_another_column_that_can_be_drawn_stays(
    opened: Open, few_characters: Callable[[int], None]
) -> None:
    few_characters(300)
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    control(page, "file_uploader", "file").upload("p.csv", TABLE.encode(), "text/csv").run()
    assert "characters together" in page.error[0].value.replace("\\", "")
    (column,) = [box for box in page.selectbox if box.label == "Text column"]
    column.set_value("kind").run()
    assert "All 16 rows" in told(drawn(page)) and not page.error


@pytest.mark.slow
def test_a_refused_file_is_cleared_and_said_and_the_next_is_taken(opened: Open) -> None:
    page = opened(method="pca")  # UMAP is compiled for a minute
    control(page, "selectbox", "corpus").set_value("upload").run()
    page.file_uploader(key=key_of("file")).upload("bad.csv", b"%PDF-1.7 x", "text/csv").run()
    assert not page.exception and "is a PDF" in page.error[0].value.replace("\\", "")
    (again,) = page.file_uploader
    assert again.key == map_state.key_of("file") + "-1", "empty, for the next"
    vectors = '{"emb": [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n{"emb": [1, 2, 3, 4, 5, 6, 7, 8, 9], "n": 1}'
    again.upload("v.jsonl", f'{{"n": 1, {vectors[1:]}'.encode(), "text/plain").run()
    said = page.error[0].value.replace("\\", "")
    assert "contains vectors" in said and "Add a column with the texts" in said
    (again,) = page.file_uploader
    again.upload("parcels.csv", TABLE.encode(), "text/csv").run()
    page = drawn(page)
    assert not page.error and "All 16 rows" in told(page)
    assert control(page, "selectbox", "colour").value == "kind"
