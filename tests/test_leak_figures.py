"""The leakage figures that pages compare, and the command that repeats each page's own."""

from __future__ import annotations

import ast
import json
import shlex
from pathlib import Path

import pytest

from leakscope.core.attacks.inversion import shipped
from leakscope.core.cli import build_parser
from leakscope.core.cli.shared.spec_file import with_spec
from leakscope.core.formatting import format_out_of_ten
from leakscope.core.studies.leak_figures import leak_figures, recalls
from leakscope.dashboard.ui.leakage import (
    TITLES,
    command_of,
    deniability_command,
    invert_command,
    train_command,
)

ROOT = Path(__file__).parents[1]
TELLS_OF_OTHERS = {"glossary", "story"}
"""Pages that show no figures of their own; each slide has its own line and commands."""
PAGES = sorted({path.stem for path in (ROOT / "pages").glob("*.py")} - TELLS_OF_OTHERS)


def rows(name: str) -> list[dict]:
    return json.loads((ROOT / name).read_text("utf-8"))["rows"]


def asked_of(page: str) -> list[str]:
    """Return what a page hands to the helper that offers its commands."""
    tree = ast.parse((ROOT / "pages" / f"{page}.py").read_text("utf-8"))
    return [
        argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "command_button"
        for argument in node.args
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_a_command_that_repeats_it(page: str) -> None:
    own, *commands = asked_of(page)
    assert own == page and commands
    for name in commands:
        if name.isidentifier() or ("-" in name and " " not in name):
            assert (ROOT / "results" / f"{name}.spec.json").exists()


def test_the_figures_are_those_of_the_files() -> None:
    found = leak_figures()
    assert list(found) == list(TITLES)
    news = {(r["attack"], r["domain"]): r for r in rows("results/more-texts.json")}
    assert found["inversion"].score.value == news["search", "cross"]["token_set_f1"]
    assert (
        f"recovers {format_out_of_ten(news['probe_mlc', 'cross']['recall'])}"
        in found["inversion"].why
    )
    own = [
        r["token_set_f1"]
        for r in rows("results/representations.json")
        if (r["encoder"], r["domain"]) == ("minilm", "cross")
    ]
    assert found["representations"].score.value == max(own)
    record = json.loads((ROOT / "assets/weights/minilm/probe_mlc/model.json").read_text("utf-8"))
    assert found["overview"].score.value == record["training"]["held_out"]["token_set_f1"]
    names = next(
        r
        for r in rows("results/names.json")
        if (r["kind"], r.get("knows"), r["domain"], r["n_added"])
        == ("probing", "alone", "cross", 0)
    )
    assert found["names"].score.value == names["hits_1"]["value"]
    assert recalls()["names and numbers"] == next(
        r["name_recall"]
        for r in rows("results/inversion-bbc.json")
        if (r["attack"], r["auxiliary"]) == ("probe_mlc", "cross")
    )


def test_without_files_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    assert "overview" not in leak_figures() and "inversion" in leak_figures()


@pytest.mark.parametrize(
    "command",
    [
        invert_command("It's --text; $(rm)", "msp", {"answer_count": "expected_f1"}),
        deniability_command("a 'b'", 62.5, "minilm"),
        train_command("probe_mlc", {"seed": 0, "n_held_out": 4000, "settings": {"decay": True}}),
        *map(
            command_of,
            (
                "representations",
                "classification",
                "inversion-bbc",
                "names",
                "tradeoff",
                "deniability",
            ),
        ),
    ],
)
def test_the_commands_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)
    assert words[0] == "leakscope"
    parsed = build_parser().parse_args(with_spec(words[1:]))
    if hasattr(parsed, "text"):
        assert parsed.text in (["It's --text; $(rm)"], "a 'b'")


@pytest.mark.parametrize(
    "spec", sorted((ROOT / "results").glob("*.spec.json")), ids=lambda path: path.name
)
def test_the_command_of_a_table_names_the_study_of_its_specification(spec: Path) -> None:
    study = json.loads(spec.read_text(encoding="utf-8"))["study"]
    words = command_of(spec.name.removesuffix(".spec.json")).split()
    assert words[:3] == ["leakscope", "study", study] and Path(words[4]).name == spec.name
