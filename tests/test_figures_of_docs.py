"""Every figure of the documentation is written from a result file, or says why no file has it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from source_files import offenders, python_files, relative_name

from leakscope.core.results import Score
from leakscope.core.results.tables import read_rows
from tools import data
from tools.figures.__main__ import documents, main, outcome
from tools.figures.sources import score_of
from tools.figures.tables import whole
from tools.figures.templates import render, render_text, spots, templates

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*documents(), *whole()]
MOST_RECORDED = 213
"""Figures of decisions that were written down once; new ones belong in a result file."""
SETTINGS_AND_PAPERS = {
    "dashboard/deniability/views.py": {"1 %"},
    "dashboard/representations/explain.py": {"70 %", "30 %"},
    "dashboard/projection/pinned.py": {"95 %"},
    "dashboard/representations/views.py": {"95 %"},
    "dashboard/projection/explain.py": {"2,000 points"},
    "dashboard/tradeoff/explain.py": {"95 %"},
    "dashboard/tradeoff/views.py": {"95 %"},
}
"""What pages spell out and did not measure: what an interval is, how a task is split."""


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_says_what_its_files_say(path: Path) -> None:
    new, faults = outcome(path)
    assert faults == [], "write each figure as an expression of a template"
    assert new == path.read_text(encoding="utf-8"), "run `make figures`"


def test_tables_of_tools_are_compared_with_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = ROOT / "results"
    for name in ("faults", "fuzz", "mutants"):
        assert results / f"{name}.md" in whole() and results / f"{name}.md" not in documents()
    (tmp_path / "results").mkdir(parents=True)
    told = json.loads((results / "fuzz.json").read_text("utf-8"))
    told["counts"][0]["cases"] += 1
    (tmp_path / "results" / "fuzz.json").write_text(json.dumps(told))
    monkeypatch.setattr("tools.figures.tables.ROOT", tmp_path)
    table = whole()[tmp_path / "results" / "fuzz.md"]()
    assert table != (results / "fuzz.md").read_text("utf-8")


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_pages_of_results_are_short_and_listed() -> None:
    folder = ROOT / "docs" / "results"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert len(index.splitlines()) <= 60
    for path in set(folder.glob("*.md")) - {folder / "README.md"}:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 150 and f"]({path.name})" in index
        opening = text.partition("\n# ")[2].partition("\n\n")[2]
        assert opening.startswith("- "), "a page opens with its findings"


def sources_of(*paths: Path) -> list[str]:
    """Return the sources of the figures of documents."""
    return [source for path in paths for source in render(templates()[path]).sources]


def is_measured(source: str) -> bool:
    """Return whether a figure is of a file."""
    return source.partition(" ")[0] not in ("paper", "setting", "recorded")


@pytest.mark.slow
def test_the_readme_and_the_results_render_what_they_measured() -> None:
    results = [path for path in templates() if path.parent == ROOT / "docs" / "results"]
    for paths, least in (([ROOT / "README.md"], 15), (results, 900)):
        told = sources_of(*paths)
        assert sum(is_measured(source) for source in told) >= least
        assert not any(source.startswith("recorded") for source in told)


@pytest.mark.slow
def test_figures_that_nothing_repeats_do_not_grow() -> None:
    told = sources_of(*templates())
    assert sum(source.startswith("recorded") for source in told) <= MOST_RECORDED


def test_a_rendered_document_names_its_template() -> None:
    assert templates()
    for document, template in templates().items():
        first = document.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("<!-- ") and str(template.relative_to(ROOT)) in first


def test_every_decision_stands_in_the_index_with_its_day() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.glob("0*.md"):
        (line,) = [line for line in index.splitlines() if f"({path.name})" in line]
        assert re.fullmatch(r"\| \d+ \| \[.+\]\(.+\) \| 20\d\d-\d\d-\d\d \|", line)


TEXT = """# Title

Python 3.11 reads {{ fig("eos settings.end_token=True", 1) }} in Table 5.2 of 500: `0.5`,
[x](a-1.5.md), 95 % intervals. It is {{ setting("2.5", "mine") }}× faster, in 7 ms.

```sh
leakscope --share 0.5
```

| a | F1 |
|---|---|
| `x` | **1.0** [0.5, 1.5] |
{% for name in ["True", "None"] %}
| {{ name }} | {{ bold("eos settings.end_token=" ~ name, 1) }} |
{% endfor %}
"""


def test_figures_are_found_and_names_are_not() -> None:
    line = "Python 3.11 reads 41.5 [40.0, 43.2] in Table 5.2 of 500: `0.5`, [x](a-1.5.md)."
    assert [line[s.start : s.end] for s in spots(line)] == ["41.5 [40.0, 43.2]"]
    assert [s.value for s in spots("2.5× in 7 ms, 95 % intervals, ≤ 8 %")] == ["2.5", "7", "8"]
    row = "| `x` | **1.0** [0.5, 1.5] |"
    assert [row[s.start : s.end] for s in spots(row)] == ["**1.0** [0.5, 1.5]"]


def test_a_figure_is_rendered_and_one_that_was_typed_is_refused() -> None:
    eos = json.loads((ROOT / "results" / "eos.json").read_text(encoding="utf-8"))
    made = render_text(TEXT)
    (stands,) = {r["token_set_f1"] for r in eos["rows"] if r["settings"].get("end_token")}
    assert f"reads {stands:.1f} [" in made.text and "2.5× faster, in 7 ms" in made.text
    assert f"| True | **{stands:.1f}** [" in made.text and "{" not in made.text
    assert made.sources.count("eos settings.end_token=True") == 2
    typed_there = [re.findall(r": (.+) has no source", fault)[0] for fault in made.faults]
    assert typed_there == ["7 ms", "**1.0** [0.5, 1.5]"]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("file assets/first_settings.json", "''"),
        ("file results/eos.json rows", "no number"),
        ("bench jobs", "no number"),
        ("eos settings.end_token=9", "0 different rows"),
        ("eos", "2 different rows"),
        ("eos settings.end_token=True nonsense", "no nonsense"),
        ("bench jobs nonsense", "0 bench"),
        ("eos settings.end_token=True precision", "no interval"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_source_that_does_not_exist_is_told(source: str, wrong: str) -> None:
    faults = render_text(f'It is {{{{ fig("{source}", 1) }}}}.\n').faults
    assert len(faults) == 1 and wrong in faults[0]


def test_sources_that_are_worked_out() -> None:
    rows = json.loads((ROOT / "results/learning.json").read_text("utf-8"))["rows"]
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
    mean = score_of(
        "mean of attributes-novels top1 attribute_attack=majority n_labels=20 n_per_label=10"
    )
    assert mean.value == pytest.approx(0.05, abs=0.001) and mean.has_interval and mean.n_seeds == 5
    both = score_of("pooled up to 16 of reconstruct-wikipedia reader=reconstruct budget=2000 exact")
    rows = json.loads((ROOT / "results/reconstruct-wikipedia.json").read_text("utf-8"))["rows"]
    short = [
        (row["n"], row["exact"])
        for row in rows
        if row["length"] in ("4-8", "9-16")
        and (row["reader"], row["budget"]) == ("reconstruct", 2000)
    ]
    assert len(short) == 2 and both.n == sum(n for n, _ in short) and both.has_interval
    assert both.value == pytest.approx(sum(n * exact for n, exact in short) / both.n)
    told = score_of('bench jobs "another visitor\'s page with a job / without" note 1')
    assert told.value == 1.78


def test_the_check_fails_where_a_figure_was_typed_or_a_result_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, template = tmp_path / "page.md", tmp_path / "docs" / "templates" / "page.md.j2"
    template.parent.mkdir(parents=True)
    template.write_text('It reads {{ num("greatest of learning", 1) }}.\n')
    page.write_text("It reads 99.9.\n")
    monkeypatch.setattr("tools.figures.__main__.documents", lambda: [page])
    monkeypatch.setattr("tools.figures.__main__.whole", dict)
    for module in ("__main__", "templates"):
        monkeypatch.setattr(f"tools.figures.{module}.ROOT", tmp_path)
    monkeypatch.setattr("tools.figures.templates.TEMPLATES", template.parent)
    assert main(["--check"]) == 1 and "99.9" in capsys.readouterr().err
    assert "99.9" in page.read_text()
    rows = read_rows(ROOT / "results" / "learning.json", "scaling")
    most = max(row.scores["token_set_f1"].value for row in rows)
    assert main([]) == 0 and f"It reads {most:.1f}." in page.read_text()
    assert main(["--check"]) == 0
    with monkeypatch.context() as changed:
        changed.setattr("tools.figures.templates.score_of", lambda source: Score(most + 1))
        assert main(["--check"]) == 1 and f"{most + 1:.1f}" in capsys.readouterr().err
    template.write_text("It reads 99.9.\n")
    assert main([]) == 1 and f"It reads {most:.1f}." in page.read_text()
    assert "99.9 has no source" in capsys.readouterr().err


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


def test_pages_read_their_figures_from_files() -> None:
    def unknown(path: Path) -> set[str]:
        return literals(path) - SETTINGS_AND_PAPERS.get(relative_name(path), set())

    found = offenders(python_files("dashboard", "pages"), unknown)
    assert found == {}, "take it from a result file while the page is drawn"


def test_the_check_of_pages_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text('"""It reads 1.5 of 3."""\nst.markdown("The attack reads 48.3 of them.")\n')
    assert literals(page) == {"48.3"}


def test_every_file_of_a_table_has_its_source(tmp_path: Path) -> None:
    facts = json.loads(data.FACTS.read_text(encoding="utf-8"))
    assert set(data.tables_by_file()) <= {fact["file"] for fact in facts}
    for fact in facts:
        assert re.fullmatch(r"[0-9a-f]{64}", fact["sha256"]) and fact["rows"] > 0
        assert fact["licence"] and fact["made"] and fact["columns"]
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{8,}", s) for s in fact["sources"])
    assert not [line for line in data.markdown().splitlines() if "/work" in line]
