"""The page of audits: its example, vectors of one's own, and what of them may be passed on."""

from __future__ import annotations

import io
import json
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited import write_jsonl
from streamlit.testing.v1 import AppTest

from leakscope.core.audit.identification import random_rotation
from leakscope.core.audit.summary import (
    EXAMPLE,
    AuditSummary,
    PersonalData,
    PersonalKind,
    RowWords,
    example_summary,
)
from leakscope.core.cli import build_parser
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError
from leakscope.core.findings.audit import audit_slide, audit_title
from leakscope.core.results import Interval, Score
from leakscope.core.story.deck import audit_deck
from leakscope.core.story.html import html_report
from leakscope.dashboard.audit import job, state, views
from leakscope.dashboard.audit.controls import AuditInput

Open = Callable[[], AppTest]


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    def visit() -> AppTest:
        small_app.run()
        page = small_app.switch_page("../pages/audit.py").run()
        assert not page.exception
        return page

    return visit


@pytest.fixture(scope="module")
def letters(minilm: TransformerEncoder, bundled: list[str]) -> tuple[list[str], np.ndarray]:
    texts = bundled[5::140][:120]
    return texts, minilm.encode(texts)


def as_npy(vectors: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, vectors)
    return file.getvalue()


def as_jsonl(letters: tuple[list[str], np.ndarray], folder: Path) -> bytes:
    return write_jsonl(folder / "letters.jsonl", *letters).read_bytes()


def shown(page: AppTest) -> str:
    return " ".join(part.value for part in [*page.title, *page.markdown, *page.caption]).replace(
        "\\", ""
    )


def audited(
    page: AppTest,
    name: str,
    content: bytes,
    texts: bytes | None = None,
    *,
    looks_for_personal: bool = False,
) -> AppTest:
    page.file_uploader(key="audit-vectors").upload(name, content, "application/octet-stream").run()
    if texts is not None:
        page.file_uploader(key="audit-texts").upload("texts.txt", texts, "text/plain").run()
    assert not page.exception
    page.checkbox(key=state.PERSONAL_KEY).set_value(looks_for_personal)  # and in the same moment
    page.button(key="audit-start").click().run()
    end = time.monotonic() + 240
    while not page.error and "An example" in shown(page) and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def test_the_first_visit_opens_with_the_answer_of_an_example(opened: Open) -> None:
    page = opened()
    found = example_summary()
    assert found.f1 is not None and found.recall is not None
    assert "of the words that it can name" in page.title[0].value
    said = shown(page)
    assert "An example: news articles" in said and found.answer.replace("\\", "") in said
    value, interval = found.f1.parts()
    assert f"is {value} (95 % CI {interval}; {found.f1.n:,} vectors, " in said
    assert page.title[0].value.replace("\\", "").startswith("Example: an attacker")
    assert page.get("plotly_chart") and page.dataframe
    for row in found.rows:
        assert all(set(word[1:]) <= {"•"} for word in row.recovered)


@pytest.mark.slow
def test_vectors_with_texts_are_measured_and_the_page_is_about_them(
    opened: Open,
    letters: tuple[list[str], np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("presidio_analyzer")
    monkeypatch.setattr(job, "_IDENTIFIERS", 2)
    content = as_jsonl(letters, tmp_path)
    page = audited(opened(), "letters.jsonl", content, looks_for_personal=True)
    said = shown(page)
    assert "identifiers were found in 120 texts (2 tested, chosen at random)" in said
    assert any(header.value == "Personal data" for header in page.header)
    assert (
        "An example" not in said
        and "from minilm (all-MiniLM-L6-v2): the 120 known texts, encoded again, give" in said
    )
    assert "of the words that it can name" in page.title[0].value
    masked = page.dataframe[0].value["words"]
    assert masked.str.contains("•").any()
    page.toggle(key=state.WORDS_KEY).set_value(True).run()
    words = page.dataframe[0].value["words"]
    assert not words.str.contains("•").any()
    known = {word for text in letters[0] for word in text.lower().split()}
    assert any(word in known for cell in words for word in cell.split(", "))
    assert len(page.get("download_button")) >= 3
    page.button(key="present").click().run()
    assert not page.exception and "An example" not in shown(page), "presented, it is the own result"


@pytest.mark.slow
def test_texts_of_their_own_file_are_taken_and_their_number_is_checked(
    opened: Open, letters: tuple[list[str], np.ndarray]
) -> None:
    texts, vectors = letters
    page = audited(opened(), "v.npy", as_npy(vectors), "\n".join(texts).encode())
    assert "known texts" in shown(page)
    other = audited(opened(), "v.npy", as_npy(vectors[:-1]), "\n".join(texts).encode())
    assert "there are 120 texts" in other.error[0].value.replace("\\", "")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.npy", b"\x80\x04.", "Python pickle"),
        ("v.npy", b"nothing", "truncated, damaged"),
        ("v.csv", b"a,b\n1,2\n", "no column contains vectors"),
    ],
)
def test_damaged_files_are_answered_in_words(
    opened: Open, name: str, content: bytes, message: str
) -> None:
    page = audited(opened(), name, content)
    assert message in page.error[0].value.replace("\\", "")
    assert "An example" in shown(page), "the example stays"


@pytest.mark.slow
def test_vectors_of_another_encoder_are_not_attacked(
    opened: Open, letters: tuple[list[str], np.ndarray]
) -> None:
    page = audited(
        opened(), "v.npy", as_npy((letters[1] @ random_rotation(384, 0)).astype(np.float32))
    )
    assert "could not be measured" in page.title[0].value
    assert "do not look like those of minilm" in shown(page)


@pytest.mark.slow
def test_what_would_leak_otherwise_is_asked_for_and_drawn(
    opened: Open,
    letters: tuple[list[str], np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(job.work, "start", lambda *given: started.append(given))
    page = opened()
    page.file_uploader(key="audit-vectors").upload("v.jsonl", as_jsonl(letters, tmp_path)).run()
    page.session_state[state.WHAT_IF_KEY] = ["rotation"]
    page.button(key="audit-start").click().run()
    request, *_, spec = started[0]
    assert request.what_if == spec.what_if == ("rotation",)
    f1 = {"value": 41.0, "ci95": [39.0, 43.0], "n": 500, "chance": 4.0}
    table = {"answer": "Few.", "unrotated": f1, "points": [{"k": 30, "f1": {**f1, "value": 9.5}}]}
    report = json.loads(EXAMPLE.read_text("utf-8")) | {"what_if": {"rotation": table}}
    page.session_state["_audits"] = {request: report}
    page.run()
    assert not page.exception and "Few." in shown(page)
    drawn = page.dataframe[0].value
    assert list(drawn.iloc[:, 0]) == ["not rotated", "rotated, 30 known pairs"]
    assert drawn["F1"][1].startswith("9.5")


def test_a_report_without_words_holds_none(letters: tuple[list[str], np.ndarray]) -> None:
    found = replace(
        example_summary(),
        source="/home/ada/letters.npy",
        rows=(RowWords("ada-17", 1.0, 2, ("harbour", "lantern")),),
    )
    without = html_report(audit_deck(found))
    assert not any(word in without for word in ("harbour", "lantern", "ada-17", "ada/"))
    assert 'class="slide cover"' not in without and 'class="appendix"' not in without
    assert "Not tested" in without and "What to do" in without and found.date in without
    whole = html_report(audit_deck(found, with_words=True))
    assert "ada/letters.npy" in whole
    assert audit_slide(found, with_words=True).table is not None


@pytest.mark.parametrize("damage", ["source", "token_set_f1", "not_tested", "encoder", "recall"])
def test_a_damaged_report_is_refused(damage: str) -> None:
    told = json.loads(EXAMPLE.read_text("utf-8"))
    AuditSummary.from_dict(told)
    for changed in ({k: v for k, v in told.items() if k != damage}, told | {damage: {"a": []}}):
        if damage in ("source", "encoder") and damage in changed:
            continue  # any text will do
        with pytest.raises(ArtifactError, match="not an audit report"):
            AuditSummary.from_dict(changed)
    with pytest.raises(ArtifactError):
        AuditSummary.from_dict([told])
    for name, huge in (("n_rows", float("inf")), ("recall", float("inf")), ("seed", 1e999)):
        with pytest.raises(ArtifactError):
            AuditSummary.from_dict(told | {name: huge})


def test_the_command_has_the_files_of_the_visitor_and_a_gate() -> None:
    request = state.AuditRequest(
        source="0" * 64,
        name="my vectors.npy",
        collection="",
        texts="1" * 64,
        encoder="minilm",
        defence="",
        looks_for_personal=True,
        what_if=(),
        n=200,
        seed=3,
    )
    files = AuditInput(request, MemoryFile("v.npy", b""), MemoryFile("texts.txt", b""))
    repeat, gate = views.commands_of(files)
    start = "leakscope audit 'my vectors.npy' --texts texts.txt --encoder minilm --personal"
    assert repeat == f"{start} --sample 200 --seed 3 --json report.json"
    assert gate == f"{start} --sample 200 --seed 3 --max-f1 30"
    assert views.commands_of(None)[1] == "leakscope audit SOURCE --max-f1 30"
    for command in (repeat, gate):
        options = vars(build_parser().parse_args(shlex.split(command)[1:]))
        assert options["sample"] == 200 and options["seed"] == 3


def test_identifiers_are_counted_by_kind_and_in_the_title() -> None:
    def kind(name: str, n: int, confirmable: float) -> PersonalKind:
        rate = Score(confirmable, Interval(10, 100), n)
        none = Score(0.0, Interval(0, 90), n)
        return PersonalKind(name, 9, n, none, rate, none, none)

    found = PersonalData("12 found.", (kind("name", 4, 75.0), kind("phone", 2, 100.0)))
    assert (found.n_tested, found.n_learned) == (6, 5)
    assert found.by_kind == (
        "Confirmable, by kind: name 3 of 4 (75 %, 95 % CI 10–100); phone 2 of 2 (100 %, 95 % CI "
        "10–100)."
    )
    assert PersonalData("none", ()).by_kind == ""
    summary = replace(example_summary(), personal=found)
    assert audit_title(summary).endswith(", and recovers or confirms 5 of 6 identifiers tested")
    assert "Only a sample" not in audit_slide(summary).caveat, "all of its rows were attacked"
    sampled = replace(summary, n_rows=summary.n_sampled + 1)
    assert "Only a sample of the rows was attacked." in audit_slide(sampled).caveat
