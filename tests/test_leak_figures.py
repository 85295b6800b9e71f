"""How much leaks: one line a page, of the files that ship, and what repeats it."""

from __future__ import annotations

import ast
import json
import shlex
from pathlib import Path

import pytest

from core.attacks.inversion import shipped
from core.cli import build_parser
from core.cli.spec_file import with_spec
from core.said import of_ten
from core.studies.leak_figures import F1, leak_figures, recalls
from dashboard.leakage import (
    TITLES,
    command_of,
    deniability_command,
    invert_command,
    line_of,
    train_command,
)

ROOT = Path(__file__).parents[1]
SPECS = sorted((ROOT / "docs" / "results").glob("*.spec.json"))
TELLS_OF_OTHERS = {"glossary", "story"}
"""Pages that show no figures of their own; each slide has its own line and commands."""
PAGES = sorted({path.stem for path in (ROOT / "pages").glob("*.py")} - TELLS_OF_OTHERS)


def rows(name: str) -> list[dict]:
    return json.loads((ROOT / name).read_text("utf-8"))["rows"]


def asked_of(page: str) -> list[str]:
    """Return what a page hands to the helper that draws its line."""
    tree = ast.parse((ROOT / "pages" / f"{page}.py").read_text("utf-8"))
    return [
        argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "how_much_leaks"
        for argument in node.args
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_its_line_and_a_command_that_repeats_it(page: str) -> None:
    own, *commands = asked_of(page)
    assert own == page and commands
    line = line_of(page, leak_figures())
    assert "How much leaks" in line and "On other texts or to other attackers" in line
    for name in commands:
        if name.isidentifier() or ("-" in name and " " not in name):
            assert (ROOT / "docs" / "results" / f"{name}.spec.json").exists()


def test_the_figures_are_those_of_the_files() -> None:
    found = leak_figures()
    assert list(found) == list(TITLES)
    news = {(r["attack"], r["domain"]): r
            for r in rows("assets/representations/more_texts.json")}  # fmt: skip
    assert found["inversion"].score.value == news["search", "cross"]["token_set_f1"]
    assert f"reads {of_ten(news['probe_mlc', 'cross']['recall'])}" in found["inversion"].why
    own = [r["token_set_f1"] for r in rows("docs/results/representations.json")
           if (r["encoder"], r["domain"]) == ("minilm", "cross")]  # fmt: skip
    assert found["representations"].score.value == max(own)
    record = json.loads((ROOT / "assets/weights/minilm/probe_mlc/model.json").read_text("utf-8"))
    assert found["overview"].score.value == record["training"]["held_out"]["token_set_f1"]
    names = next(r for r in rows("docs/results/names.json")
                 if (r["kind"], r.get("knows"), r["domain"], r["n_added"]) ==
                 ("probing", "alone", "cross", 0))  # fmt: skip
    assert found["names"].score.value == names["hits_1"]["value"]
    assert recalls()["names and numbers"] == next(
        r["name_recall"] for r in rows("docs/results/inversion-bbc.json")
        if (r["attack"], r["auxiliary"]) == ("probe_mlc", "cross")
    )  # fmt: skip


def test_each_line_tells_its_own_figure_first() -> None:
    found = leak_figures()
    for page, figure in found.items():
        line = line_of(page, found)
        assert line.startswith(("**How much leaks", "A sentence is"))
        assert f"How much leaks: {figure.said}" in line and figure.score.said(0) in line
        assert figure.texts in line and figure.attacker in line
    assert line_of("overview", {}) == ""


def test_figures_beside_each_other_have_one_scale() -> None:
    found = leak_figures()
    for page in found:
        _, _, beside = line_of(page, found).partition("On other texts or to other attackers: ")
        assert beside.startswith("F1 of the words read (0 is none"), "what F1 is stands with it"
        assert "of 10 words" not in beside and "of 100" not in beside
        for other, figure in found.items():
            said = f"{TITLES[other]} {figure.score.value:.0f}"
            assert (said in beside) == (other != page)
        others = [f for name, f in found.items() if name != page and f.measure != F1]
        assert all(f"{f.score.value:.0f} % of names" in beside for f in others)


def test_every_word_and_names_stand_beside_the_mean_where_the_files_hold_them() -> None:
    found = leak_figures()
    news = next(r for r in rows("docs/results/inversion-bbc.json")
                if (r["attack"], r["auxiliary"]) == ("search", "cross"))  # fmt: skip
    every = round(news["unrestricted_f1"])
    assert found["inversion"].said.endswith(f", F1 of every word {every}")
    assert every != round(news["token_set_f1"])
    line = line_of("inversion", found)
    for name, title in (("name_recall", "names and numbers"), ("number_recall", "numbers alone"),
                        ("rare_recall", "rare words")):  # fmt: skip
        assert f"{news[name]:.0f} % of {title}" in line
    record = json.loads((ROOT / "assets/weights/minilm/probe_mlc/model.json").read_text("utf-8"))
    kept = record["training"]["held_out"]
    assert f"{kept['rare_recall']:.0f} % of rare words" in line_of("overview", found)
    assert found["overview"].all_words == kept["unrestricted_f1"]
    assert found["tradeoff"].all_words is not None and found["representations"].all_words
    assert found["names"].all_words is None and "every word" not in found["names"].said
    assert "% of" not in line_of("tradeoff", found).partition("On other texts")[0], "not counted"


def test_without_files_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    assert "overview" not in leak_figures() and "inversion" in leak_figures()


@pytest.mark.parametrize(
    "command",
    [
        invert_command("It's --text; $(rm)", "msp", {"answer_count": "expected_f1"}),
        deniability_command("a 'b'", 62.5, "minilm"),
        train_command("probe_mlc", {"seed": 0, "n_held_out": 4000, "settings": {"decay": True}}),
        *map(command_of, ("representations", "classification", "inversion-bbc", "names",
                          "tradeoff", "deniability")),
    ],
)  # fmt: skip
def test_the_commands_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "core"]
    parsed = build_parser().parse_args(with_spec(words[3:]))
    if hasattr(parsed, "text"):
        assert parsed.text in (["It's --text; $(rm)"], "a 'b'")


@pytest.mark.parametrize(
    "spec", sorted((ROOT / "docs" / "results").glob("*.spec.json")), ids=lambda path: path.name
)
def test_the_command_of_a_table_names_the_study_of_its_specification(spec: Path) -> None:
    study = json.loads(spec.read_text(encoding="utf-8"))["study"]
    words = command_of(spec.name.removesuffix(".spec.json")).split()
    assert (
        words[:5] == ["python", "-m", "core", "study", study] and Path(words[6]).name == spec.name
    )
