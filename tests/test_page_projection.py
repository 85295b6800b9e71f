from __future__ import annotations

import re
import time
from collections.abc import Callable
from unittest.mock import Mock

import job_work
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import uploads
from core.corpora.memory_file import MemoryFile
from core.defences.metric_dp.promised import is_promising
from core.encoders.at_hand import encoder_at_hand
from core.projection import ProjectionSpec, project
from core.projection.job import draw_map
from core.projection.moves import movable
from core.projection.points import upload_points
from core.projection.quality import NeighbourScore
from core.projection.shipped import N_POINTS, SHIPPED
from core.results import Interval, Score
from core.specs import AttackSpec, EncoderSpec
from core.store import load_artifact
from dashboard import state
from dashboard.projection import controls as map_controls
from dashboard.projection import job as map_jobs
from dashboard.projection import picked as map_picked
from dashboard.projection import selection as map_selection
from dashboard.projection import sentences as map_sentences
from dashboard.projection import state as map_state
from dashboard.projection import views as map_views
from dashboard.projection.state import MapRequest, key_of

TEXT = "The harbour master counted twelve ships."
QUESTION = "Which texts belong together?"
TABLE = "\n".join(
    ["text,kind,who"]
    + [f"The {a} {b} the parcel near the mill {i} times.,{a},{b}"
       for i, (a, b) in enumerate((a, b) for a in ("baker", "nurse", "pilot", "judge")
                                  for b in ("weighed", "painted", "returned", "mislaid"))]
)  # fmt: skip
Open = Callable[..., AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    map_jobs._shared().clear()

    def visit(**address: str) -> AppTest:
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/projection.py").run()
        assert not small_app.exception
        return small_app

    return visit


def drawn(page: AppTest) -> AppTest:
    """Wait until the job of the page has drawn its map."""
    end = time.monotonic() + 120
    while page.title[0].value == QUESTION and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def told(page: AppTest) -> str:
    return " ".join(m.value for m in page.markdown)


def control(page: AppTest, kind: str, name: str):
    return getattr(page, kind)(key=key_of(name))


def test_the_first_visit_opens_with_a_finding(opened: Open) -> None:
    page = opened()
    assert "neighbours on this map share their collection" in page.title[0].value and not page.error
    assert f"{N_POINTS:,} of 18,064 sentences, drawn at random (seed 0)" in told(page)
    assert "Trustworthiness" in told(page) and "asked of 1,000 points" in told(page)


def test_the_shipped_map_is_whole() -> None:
    arrays, _ = load_artifact(SHIPPED / "minilm" / "vectors")
    assert arrays["vectors"].shape == (N_POINTS, 384)


def test_a_link_opens_a_view(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (map_state, map_controls):  # 500, the fewest, take 20 s to encode
        monkeypatch.setattr(module, "COUNTS", (60, 2000))
    page = drawn(opened(corpus="lee", n="60", method="pca", dims="3", colour="words", text=TEXT))
    assert control(page, "selectbox", "corpus").value == "lee"
    assert control(page, "selectbox", "colour").value == "words"
    assert page.text_input(key=state.TEXT_KEY).value == TEXT
    assert "60 of " in told(page) and "of the variance" in told(page) and not page.error


@pytest.mark.parametrize(
    "wrong",
    [{"corpus": "upload"}, {"corpus": "/etc/passwd"}, {"method": "isomap"}, {"eta": "-1"},
     {"n": "7"}, {"defence": "random_projection"}, {"encoder": "st:somebody/some-model"}],
    ids=str,
)  # fmt: skip
def test_what_a_link_may_not_open_is_told(opened: Open, wrong: dict[str, str]) -> None:
    page = opened(**wrong)
    (name,) = wrong
    assert name in " ".join(w.value for w in page.warning).replace("\\", "") and not page.error


def test_an_unknown_column_of_a_link_is_told(opened: Open) -> None:
    page = opened(colour="nonsense")
    assert "no such column" in " ".join(w.value for w in page.warning)
    assert control(page, "selectbox", "colour").value == "collection"


def test_every_defence_moves_points(opened: Open) -> None:
    page = opened(text=TEXT)
    page.session_state[key_of("n_moved")] = 50
    for name in movable():
        control(page, "selectbox", "defence").set_value(name).run()
        assert not page.exception and not page.error, name
        assert "of 50 protected vectors are still nearest to their own" in told(page), name
        assert ("odds of up to" in told(page)) == is_promising(name), name


def test_eta_moves_points_less_and_less(opened: Open) -> None:
    page = opened(eta="60")
    page.session_state[key_of("n_moved")] = 50
    shares = []
    for eta in (30.0, 60.0, 200.0):
        page.select_slider(key=key_of("strength")).set_value(eta).run()
        found = next(m.value for m in page.markdown if "protected vectors" in m.value)
        shares.append(float(found.split("%")[0].strip("*")))
    assert shares == sorted(shares) and shares[0] < 20 and shares[-1] > 90


def test_searching_counts_what_it_finds(opened: Open) -> None:
    page = opened()
    control(page, "text_input", "search").set_value("GOVERNMENT").run()
    (line,) = [m.value for m in page.markdown if "texts hold" in m.value]
    assert 0 < int(line.split(" of ")[0]) < N_POINTS
    control(page, "text_input", "search").set_value("<b>*x*</b>").run()
    assert "0 of 2,000 texts hold" in told(page) and "<b>" not in told(page)


@pytest.mark.parametrize(("text", "wrong"), [("", "empty"), ("null\0byte", "null byte")])
def test_a_sentence_that_has_no_place_is_told(opened: Open, text: str, wrong: str) -> None:
    page = opened()
    page.text_input(key=state.TEXT_KEY).set_value(text).run()
    assert wrong in " ".join(e.value for e in page.error) and "Trustworthiness" in told(page)


def test_an_upload_is_drawn_and_stays_in_the_session(opened: Open, leakscope_home) -> None:
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    assert page.title[0].value == QUESTION and "Choose a file" in page.info[0].value
    control(page, "file_uploader", "file").upload("parcels.csv", TABLE.encode(), "text/csv").run()
    page = drawn(page)
    assert "All 16 rows" in told(page) and not page.error
    assert control(page, "selectbox", "colour").value == "kind"
    assert list(leakscope_home.rglob("*")) == []
    assert not any(request.is_private for request in map_jobs._shared())


def test_a_table_in_cp1252_is_drawn_with_a_note_and_its_longest_texts(opened: Open) -> None:
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    rows = [f"{i};The “parcel” near the café, number {i}" for i in range(16)]
    content = "\n".join(["who;said", *rows]).encode("cp1252")
    control(page, "file_uploader", "file").upload("old.csv", content, "text/csv").run()
    page = drawn(page)
    assert not page.error and "All 16 rows" in told(page)
    (column,) = [box for box in page.selectbox if box.label == "Column of the texts"]
    assert column.value == "said"
    captions = " ".join(caption.value for caption in page.caption).replace("\\", "")
    assert "old.csv is read as cp1252: not UTF-8" in captions


@pytest.mark.parametrize(
    ("name", "content", "wrong"),
    [("zip.csv", b"PK\x03\x04abc", "ZIP"), ("few.csv", b"text\nOne text.\n", "10 to 50,000"),
     ("gap.csv", b"text,kind\n,1\n,2\n", "no text")],
)  # fmt: skip
def test_a_file_that_cannot_be_drawn_is_told(
    opened: Open, name: str, content: bytes, wrong: str
) -> None:
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    control(page, "file_uploader", "file").upload(name, content, "text/csv").run()
    page = drawn(page)
    assert wrong in " ".join(e.value for e in page.error).replace("\\", "")


def test_a_selection_survives_a_change_of_the_figure() -> None:
    request = MapRequest(source="lee", n=500, on=EncoderSpec(), spec=ProjectionSpec())
    store: dict[str, object] = {}
    picked = _picker(store)
    assert picked(request, [1, 2], "a") == [1, 2]
    assert picked(request, [], "b") == [1, 2], "another figure forgets, the table does not"
    assert picked(request, [], "b") == [1, 2], "nor when the page is run again"
    assert picked(request, [3], "b") == [3]
    assert picked(request, [], "b") == [], "the same figure without its selection: undone"


def test_a_figure_marks_what_it_forgot_and_stays_the_same_while_one_selects() -> None:
    request = MapRequest(source="lee", n=500, on=EncoderSpec(), spec=ProjectionSpec())
    store: dict[str, object] = {}
    picked = _picker(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(map_picked.st, "session_state", store)
        assert map_picked.marked_rows(request, "a") == ()
        picked(request, [1, 2], "a")
        assert map_picked.marked_rows(request, "a") == (), "the chart knows by itself"
        assert map_picked.marked_rows(request, "b") == (1, 2)
        picked(request, [], "b")
        picked(request, [3], "b")
        assert map_picked.marked_rows(request, "b") == (1, 2), "a change would undo the new loop"
        assert map_picked.marked_rows(request, "c") == (3,)


def test_a_selection_is_attacked_without_and_with_the_defence(opened: Open) -> None:
    page = opened()
    rows = list(range(0, 60, 10))
    request = MapRequest(source="bundled", n=N_POINTS, on=EncoderSpec(), spec=ProjectionSpec())
    page.session_state["_picked"] = map_picked._Picked(request, rows, None)
    page.run()
    assert "without the defence" not in told(page) and "of 10 words** (F1" in told(page)
    control(page, "selectbox", "defence").set_value("text_to_text").run()
    page.select_slider(key=key_of("strength")).set_value(30.0).run()
    assert "with it (Text to text at η 30), n = " in told(page) and not page.error
    table = next(f.value for f in page.dataframe if "protected f1" in f.value)
    assert len(table) == len(rows) and (table["f1"] != table["protected f1"]).any()
    page.button(key="clear-selection").click().run()
    assert "Draw a loop" in told(page)


def test_selected_texts_are_written_back_and_stay(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_sentences, "read_all", job_work.write_back)
    page = opened()
    request = MapRequest(source="bundled", n=N_POINTS, on=EncoderSpec(), spec=ProjectionSpec())
    page.session_state["_picked"] = map_picked._Picked(request, [3, 8], None)
    page.run()
    page.button(key="write-back").click().run()
    end = time.monotonic() + 120
    while "word for word**" not in told(page) and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert re.search(r"All 2, .*\*\*0 of 2 .* by ROUGE-L: \*\*\d+\*\* \[", told(page))
    drawn_now = [h.proto.body for h in page.get("html") if "As read, cosine 0.871" in h.proto.body]
    assert len(drawn_now) == 2 and not any("<b>" in body for body in drawn_now)
    monkeypatch.setattr(map_sentences.work, "take", lambda *_: pytest.fail("it is kept"))
    page.run()
    assert "word for word**" in told(page)
    page.button(key="clear-selection").click().run()
    assert "word for word**" not in told(page)


def test_what_was_written_of_a_few_is_held_against_any_sentence() -> None:
    texts = ["The ministers met in Vienna to speak about the price of grain.",
             "Nobody had seen the old ferry leave the harbour that night."]  # fmt: skip
    told_of = map_sentences.said(texts, [texts[0], ""], 9)
    assert told_of.startswith("2 of 9, drawn at random, from the vectors as they are")
    assert "**1 of 2 right word for word**" in told_of and "**50** [0, 100]" in told_of
    alone = map_sentences.said(texts[:1], texts[:1], 1)
    assert "**100**;" in alone, "of one text no interval"


def test_a_job_on_sentences_brings_its_selection_back(monkeypatch) -> None:
    spec = ProjectionSpec()
    shared = MapRequest(source="lee", n=500, on=EncoderSpec(), spec=spec)
    own = MapRequest(source="f" * 64, n=9, on=EncoderSpec(), spec=spec, is_private=True)
    attack = AttackSpec(name=map_sentences.ATTACK)
    asked = [map_sentences.SentencesRequest(map=m, rows=(1, 4), spec=attack) for m in (shared, own)]
    dropped: list[object] = []
    monkeypatch.setattr(map_sentences.work, "adopt", lambda _: asked)
    monkeypatch.setattr(map_sentences.work, "drop", dropped.append)
    monkeypatch.setattr(map_picked.st, "session_state", {})
    map_sentences.adopt_sentences_job()
    assert dropped == asked[1:], "its file is gone with the session"
    assert map_picked.marked_rows(shared, "a figure") == (1, 4)


def test_the_shipped_vectors_serve_other_maps(monkeypatch) -> None:
    """Nothing of the bundled map is encoded again: here, nothing could be."""
    encoder = encoder_at_hand(EncoderSpec())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a text was encoded")

    monkeypatch.setattr(type(encoder), "encode", refuse)
    spec = ProjectionSpec(method="pca", n_components=3)
    request = MapRequest(source="bundled", n=N_POINTS, on=EncoderSpec(), spec=spec)
    _, _, layout = draw_map(request, None)
    assert layout.coordinates.shape == (N_POINTS, 3)


def test_rows_without_a_text_are_skipped_and_counted(opened: Open) -> None:
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    gaps = f"{TABLE}\n,nurse,painted\n  ,judge,mislaid\n"
    control(page, "file_uploader", "file").upload("gaps.csv", gaps.encode(), "text/csv").run()
    page = drawn(page)
    assert "All 16 rows (skipped besides: 2 without a text)" in told(page) and not page.error


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [(3.0, 2.6, 3.2, "less than by chance"), (3.2, 2.9, 3.6, "no more than by chance"),
     (4.0, 3.7, 4.4, "4.0 of 10 neighbours")],
)  # fmt: skip
def test_the_finding_holds_the_interval_against_chance(
    monkeypatch, value: float, low: float, high: float, words: str
) -> None:
    agreement = NeighbourScore(Score(value, Interval(low, high), 99, 3.3), 10)
    monkeypatch.setattr(map_views, "_agreement", lambda *_: agreement)
    file = MemoryFile("f.csv", b"text,kind\n" + b"One text,a\n" * 12)
    points = upload_points(file, 12, others=("kind",))
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    map_of = map_jobs.DrawnMap.of(points, vectors, project(vectors, ProjectionSpec(method="pca")))
    slot = Mock()
    map_views.finding(slot, map_of, "kind")
    assert words in slot.title.call_args.args[0]


def _picker(store: dict[str, object]) -> Callable[..., list[int]]:
    def picked(request: MapRequest, rows: list[int], figure: object) -> list[int]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(map_picked.st, "session_state", store)
            return map_picked.selection_of(request, rows, figure)

    return picked


def test_the_table_itself_holds_no_formula() -> None:
    """Streamlit puts a download button of its own on a table, which writes cells as they are."""
    file = MemoryFile("f.csv", b"text,=kind\n" + b"=1+1 is two,@SUM(A1)\n" * 12)
    points = upload_points(file, 12, others=("=kind",))
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    map_of = map_jobs.DrawnMap.of(points, vectors, project(vectors, ProjectionSpec(method="pca")))
    row = map_selection._shown(map_of, 0, None)
    assert row == {"text": "'=1+1 is two", "'=kind ": "'@SUM(A1)", "words ": "3"}


def test_a_reload_says_that_an_own_file_was_forgotten(opened: Open) -> None:
    assert not any("is forgotten" in w.value for w in opened().warning)
    page = opened(own="1")
    assert [w.value for w in page.warning if "is forgotten" in w.value]


@pytest.fixture
def few_characters(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what has this process read files, with a limit that another would not know of."""

    def read(reader: Callable[..., object], *arguments: object, **options: object) -> object:
        return reader(*arguments, **options)

    def limit(n: int) -> None:
        monkeypatch.setattr(uploads, "MAX_CHARACTERS_READ", n)
        for module in (map_state, map_controls):
            monkeypatch.setattr(module, "parsed", read)

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


def test_a_file_with_another_column_that_can_be_drawn_stays(
    opened: Open, few_characters: Callable[[int], None]
) -> None:
    few_characters(300)
    page = opened()
    control(page, "selectbox", "corpus").set_value(map_state.UPLOAD).run()
    control(page, "file_uploader", "file").upload("p.csv", TABLE.encode(), "text/csv").run()
    assert "characters together" in page.error[0].value.replace("\\", "")
    (column,) = [box for box in page.selectbox if box.label == "Column of the texts"]
    column.set_value("kind").run()
    assert "All 16 rows" in told(drawn(page)) and not page.error


def test_a_refused_file_is_cleared_and_said_and_the_next_is_taken(opened: Open) -> None:
    page = opened()
    control(page, "selectbox", "corpus").set_value("upload").run()
    page.file_uploader(key=key_of("file")).upload("bad.csv", b"%PDF-1.7 x", "text/csv").run()
    assert not page.exception and "is a PDF" in page.error[0].value.replace("\\", "")
    (again,) = page.file_uploader
    assert again.key == map_state.key_of("file") + "-1", "empty, for the next"
    vectors = '{"emb": [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n{"emb": [1, 2, 3, 4, 5, 6, 7, 8, 9], "n": 1}'
    again.upload("v.jsonl", f'{{"n": 1, {vectors[1:]}'.encode(), "text/plain").run()
    said = page.error[0].value.replace("\\", "")
    assert "holds vectors" in said and "Add a column of the texts" in said
    (again,) = page.file_uploader
    again.upload("parcels.csv", TABLE.encode(), "text/csv").run()
    page = drawn(page)
    assert not page.error and "All 16 rows" in told(page)
    assert control(page, "selectbox", "colour").value == "kind"
