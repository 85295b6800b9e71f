"""Every figure of the documentation is written from a result file, or says why no file has it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from core.results import Interval, Score
from core.studies.tables import read_rows
from tools import data
from tools.figures.__main__ import documents, main, outcome
from tools.figures.sources import KEPT, render, score_of
from tools.figures.spans import blocks, rewritten, spots
from tools.figures.tables import whole

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*documents(), *whole()]
MOST_RECORDED = 213
"""Figures of decisions that were written down once; new ones belong in a result file."""
SETTINGS_AND_PAPERS = {
    "dashboard/deniability/views.py": {"1 %"},
    "dashboard/representations/explain.py": {"70 %", "30 %"},
    "dashboard/deniability/pinned.py": {"95 %"},
    "dashboard/names/pinned.py": {"95 %"},
    "dashboard/projection/pinned.py": {"95 %"},
    "dashboard/representations/pinned.py": {"95 %"},
    "dashboard/representations/views.py": {"95 %"},
    "dashboard/projection/explain.py": {"2,000 points"},
    "dashboard/tradeoff/explain.py": {"95 %"},
    "dashboard/tradeoff/views.py": {"95 %"},
}
"""What pages spell out and did not measure: what an interval is, how a task is split."""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_says_what_its_files_say(path: Path) -> None:
    new, faults = outcome(path)
    assert faults == [], "name the source of each figure in a comment below its block"
    assert new == path.read_text(encoding="utf-8"), "run `make figures`"


def test_tables_of_tools_are_compared_with_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = ROOT / "docs" / "results"
    for name in ("faults", "fuzz", "mutants"):
        assert results / f"{name}.md" in whole() and results / f"{name}.md" not in documents()
    (tmp_path / "docs" / "results").mkdir(parents=True)
    told = json.loads((results / "fuzz.json").read_text("utf-8"))
    told["counts"][0]["cases"] += 1
    (tmp_path / "docs" / "results" / "fuzz.json").write_text(json.dumps(told))
    monkeypatch.setattr("tools.figures.tables.ROOT", tmp_path)
    table = whole()[tmp_path / "docs" / "results" / "fuzz.md"]()
    assert table != (results / "fuzz.md").read_text("utf-8")


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 160


def test_the_readme_and_the_results_render_what_they_measured() -> None:
    for name, least in (("README.md", 15), ("docs/results/README.md", 200)):
        text = (ROOT / name).read_text(encoding="utf-8")
        told = [source for block in blocks(text) for source in block.sources()]
        assert sum(source.partition(" ")[0] not in KEPT for source in told) >= least
    for name in ("README.md", "docs/results/README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        told = [source for block in blocks(text) for source in block.sources()]
        assert not any(source.startswith("recorded") for source in told)


def test_figures_that_nothing_repeats_do_not_grow() -> None:
    told = [
        source
        for path in documents()
        for block in blocks(path.read_text(encoding="utf-8"))
        for source in block.sources()
    ]
    assert sum(source.startswith("recorded") for source in told) <= MOST_RECORDED


def test_every_decision_stands_in_the_index_with_its_day() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.glob("0*.md"):
        (line,) = [line for line in index.splitlines() if f"({path.name})" in line]
        assert re.fullmatch(r"\| \d+ \| \[.+\]\(.+\) \| 20\d\d-\d\d-\d\d \|", line)


TEXT = """# Title

Python 3.11 reads 41.5 [40.0, 43.2] in Table 5.2 of 500: `0.5`, [x](a-1.5.md), 95 % intervals.
It is 2.5× faster, in 7 ms.
<!-- figures: eos settings.end_token=True · setting of mine · recorded once -->

| a | F1 |
|---|---|
| `x` | **1.0** [0.5, 1.5] |
"""


def test_figures_are_found_and_names_are_not() -> None:
    first, table = (spots(block.text) for block in blocks(TEXT) if spots(block.text))
    assert [TEXT[s.start + 9 : s.end + 9] for s in first] == ["41.5 [40.0, 43.2]", "2.5×", "7 ms"]
    assert [s.value for s in table] == ["1.0"]
    row = blocks(TEXT.partition("|")[1] + TEXT.partition("|")[2])
    assert [b.text[s.start : s.end] for b in row for s in spots(b.text)] == ["**1.0** [0.5, 1.5]"]


def test_a_figure_is_written_anew_and_one_without_a_source_is_refused() -> None:
    eos = json.loads((ROOT / "docs" / "results" / "eos.json").read_text(encoding="utf-8"))
    new, faults = rewritten(TEXT, render)
    (stands,) = {r["token_set_f1"] for r in eos["rows"] if r["settings"].get("end_token")}
    assert f"reads {stands:.1f} [" in new and "2.5× faster, in 7 ms" in new
    assert len(faults) == 1 and "1 figures (1.0)" in faults[0]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [("file assets/first_settings.json", "''"),
     ("file docs/results/eos.json rows", "no number"), ("bench jobs", "no number"),
     ("eos settings.end_token=9", "0 different rows"), ("eos", "2 different rows"),
     ("eos settings.end_token=True nonsense", "no nonsense"), ("bench jobs nonsense", "0 bench"),
     ("eos settings.end_token=True precision", "no interval"), ("nonsense", "nonsense")],
)  # fmt: skip
def test_a_source_that_does_not_exist_is_told(source: str, wrong: str) -> None:
    _, faults = rewritten(f"It is 1.0 [0.5, 1.5].\n<!-- figures: {source} -->\n", render)
    assert len(faults) == 1 and wrong in faults[0]


@pytest.mark.parametrize(
    ("value", "stands", "said"),
    [(-2.25, "−1.0", "−2.2"), (-2.25, "-1.0", "-2.2"), (-2.25, "1.0", "−2.2"),
     (-0.04, "−1.0", "0.0"), (-0.04, "-1.00", "-0.04"), (-0.04, "+1.0", "+0.0"),
     (3.0, "−1.0", "3.0"), (3.0, "+1.0", "+3.0"), (-1234.5, "−1.0", "−1,234.5")],
)  # fmt: skip
def test_a_minus_stays_the_sign_that_stands(
    value: float, stands: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.figures.sources.score_of", lambda source: Score(value))
    assert render("eos", stands) == said


def test_an_interval_keeps_its_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    score = Score(-1.0, Interval(-2.0, -0.01))
    monkeypatch.setattr("tools.figures.sources.score_of", lambda source: score)
    assert render("eos", "**−9.9** [−9.9, −9.9]") == "**−1.0** [−2.0, 0.0]"


def test_sources_that_are_worked_out() -> None:
    rows = json.loads((ROOT / "docs/results/learning.json").read_text("utf-8"))["rows"]
    f1 = {row["n_auxiliary"]: row["token_set_f1"] for row in rows}
    wiki, news = (
        f"reconstruct-{of} reader=reconstruct budget=2000 length=9-16 rouge_l"
        for of in ("wikipedia", "bbc")
    )
    first, second, both = score_of(wiki), score_of(news), score_of(f"{wiki} minus {news} apart")
    assert both.value == pytest.approx(first.value - second.value)
    wide = both.ci95.high - both.ci95.low
    ends = [score.ci95.high - score.ci95.low for score in (first, second)]
    assert max(ends) < wide < sum(ends), "wider than either, narrower than both laid together"
    half = score_of("learning n_auxiliary=128000 minus learning n_auxiliary=32000 over 2")
    assert half.value == pytest.approx((f1[128000] - f1[32000]) / 2)
    ratio = score_of("ratio of learning n_auxiliary=128000 to learning n_auxiliary=32000")
    assert ratio.value == pytest.approx(f1[128000] / f1[32000])
    assert score_of("greatest of learning").value == max(f1.values())
    assert score_of("least of learning").value == min(f1.values())
    mean = score_of("mean of attributes-novels top1 attribute_attack=majority n_labels=20 "
                    "n_per_label=10")  # fmt: skip
    assert mean.value == pytest.approx(0.05, abs=0.001) and mean.has_interval and mean.n_seeds == 5
    both = score_of("pooled up to 16 of reconstruct-wikipedia reader=reconstruct budget=2000 exact")
    rows = json.loads((ROOT / "docs/results/reconstruct-wikipedia.json").read_text("utf-8"))["rows"]
    short = [(row["n"], row["exact"]) for row in rows if row["length"] in ("4-8", "9-16")
             and (row["reader"], row["budget"]) == ("reconstruct", 2000)]  # fmt: skip
    assert len(short) == 2 and both.n == sum(n for n, _ in short) and both.has_interval
    assert both.value == pytest.approx(sum(n * exact for n, exact in short) / both.n)
    told = score_of('bench jobs "another visitor\'s page with a job / without" note 1')
    assert told.value == 1.78


def test_the_check_fails_where_a_figure_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("It reads 99.9.\n<!-- figures: greatest of learning -->\n")
    for name in ("documents", "whole"):
        monkeypatch.setattr(f"tools.figures.__main__.{name}", lambda: [])
    monkeypatch.setattr("tools.figures.__main__.documents", lambda: [page])
    monkeypatch.setattr("tools.figures.__main__.whole", dict)
    monkeypatch.setattr("tools.figures.__main__.ROOT", tmp_path)
    assert main(["--check"]) == 1 and "99.9" in capsys.readouterr().err
    assert "99.9" in page.read_text()
    rows = read_rows(ROOT / "docs" / "results" / "learning.json", "scaling")
    most = max(row.scores["token_set_f1"].value for row in rows)
    assert main([]) == 0 and f"It reads {most:.1f}." in page.read_text()
    assert main(["--check"]) == 0


def literals(path: Path) -> set[str]:
    """Return the figures that a page's file spells out in a text that it shows."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value[spot.start : spot.end].strip()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        if id(node) not in told and not re.search(r"[{};]|\\\\", node.value)
        for spot in spots(node.value)
    }


@pytest.mark.parametrize(
    "path",
    [p for layer in ("dashboard", "pages") for p in sorted((ROOT / layer).rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_pages_read_their_figures_from_files(path: Path) -> None:
    known = SETTINGS_AND_PAPERS.get(str(path.relative_to(ROOT)), set())
    assert literals(path) <= known, "take it from a result file while the page is drawn"


def test_the_check_of_pages_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text('"""It reads 1.5 of 3."""\nst.markdown("The attack reads 48.3 of them.")\n')
    assert literals(page) == {"48.3"}


def test_every_file_of_a_table_has_its_source(tmp_path: Path) -> None:
    facts = json.loads(data.FACTS.read_text(encoding="utf-8"))
    assert set(data.asked_by()) <= {fact["file"] for fact in facts}
    for fact in facts:
        assert re.fullmatch(r"[0-9a-f]{64}", fact["sha256"]) and fact["rows"] > 0
        assert fact["licence"] and fact["made"] and fact["columns"]
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{8,}", s) for s in fact["sources"])
    assert not [line for line in data.markdown().splitlines() if "/work" in line]


def test_a_folder_is_compared_with_the_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts.json"
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    facts.write_text(json.dumps([{"file": "a.parquet", "sha256": digest}]))
    monkeypatch.setattr(data, "FACTS", facts)
    assert data.main([str(tmp_path)]) == 1 and "not there" in capsys.readouterr().err
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.parquet").write_text("hello!")
    assert data.main([str(tmp_path)]) == 1 and "another file" in capsys.readouterr().err
    (tmp_path / "deep" / "a.parquet").write_text("hello")
    assert data.main([str(tmp_path)]) == 0
    assert data.main([str(tmp_path / "nothing")]) == 2
