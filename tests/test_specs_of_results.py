"""Every table of the docs is repeated by the specification that stands beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.cli import build_parser
from leakscope.core.cli.shared.spec_file import with_spec
from leakscope.core.cli.study import spec_of, study_from
from leakscope.core.defences.registry import all_defences
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.registry import STUDIES

RESULTS = Path(__file__).parents[1] / "results"
SPECS = sorted(RESULTS.glob("*.spec.json"))
PRESETS = sorted((RESULTS.parent / "docs" / "presets").glob("*.spec.json"))
"""What can be asked for as it stands, and has no table in the docs."""
FITS = sorted(RESULTS.glob("*.fit.json"))
# What a machine decides, or the file that was read.
ASIDE = {
    "content",
    "contents",
    "corpus",
    "target",
    "other",
    "trial",
    "encoder_fingerprint",
    "encoder_precision",
}


def name_of(path: Path) -> str:
    return path.name


def parsed(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """Return the study that a specification describes, without the files that it names."""
    monkeypatch.setattr(
        "leakscope.core.cli.shared.study_files.checked_reference", lambda name, columns=None: name
    )
    monkeypatch.setattr(
        "leakscope.core.cli.shared.study_files.checked_columns", lambda path, columns: columns
    )
    monkeypatch.setattr("leakscope.core.cli.shared.study_files.check_source", lambda name: None)
    monkeypatch.setattr("leakscope.core.cli.shared.study_files.pair_columns", lambda path: None)
    arguments = build_parser().parse_args(with_spec(["study", "--spec", str(path)]))
    name = arguments.name
    assert arguments.out == path.with_name(path.name.replace(".spec", ""))
    return name, study_from(arguments, STUDIES[name].kind)


def test_every_table_of_a_study_has_its_specification() -> None:
    names = {path.name.removesuffix(".spec.json") for path in SPECS}
    tables = {path.name.removesuffix(".json") for path in RESULTS.glob("*.json")}
    tables = {name for name in tables if not name.endswith((".spec", ".fit"))}
    of_tools = {"faults", "fuzz", "more-texts", "mutants", "rate-coverage", "task-repeats"}
    assert tables - names <= of_tools, "those are of tools, not of studies"


@pytest.mark.parametrize("path", [*SPECS, *PRESETS], ids=name_of)
def test_a_specification_describes_a_study_and_is_what_the_study_writes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, study = parsed(path, monkeypatch)
    assert spec_of(name, study) == json.loads(path.read_text(encoding="utf-8"))


def test_the_preset_of_all_defences_leaves_none_out() -> None:
    named = json.loads((PRESETS[0].parent / "tradeoff-all.spec.json").read_text("utf-8"))[
        "defences"
    ]
    stages = [stage.partition(":")[0] for each in named for stage in each.split("+")]
    assert set(stages) == set(all_defences()), "what is new has to be measured, too"
    kinds = {each.partition(",")[0] for each in named if each.startswith("adversarial:")}
    assert kinds == {"adversarial:against=words", "adversarial:against=attribute"}
    assert any(
        "+" in each and stage.partition(":")[0] in TRAINED_DEFENCES
        for each in named
        for stage in each.split("+")[:1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_its_table_has_the_rows_that_it_asks_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leakscope.core.studies.domains.content_of", lambda corpus: "")
    monkeypatch.setattr("leakscope.core.studies.domains._check_documents", lambda *of: None)
    name, study = parsed(path, monkeypatch)
    module = STUDIES[name].kind.__module__
    digests = ("content_of", "_content_of", "corpus_content", "table_digest", "auxiliary_digest")
    for asks in (
        module,
        "leakscope.core.studies.tradeoff.study",
        "leakscope.core.studies.training.constrained",
        "leakscope.core.studies.inversion.representations",
    ):
        for digest in digests:
            monkeypatch.setattr(f"{asks}.{digest}", lambda *of: "", raising=False)
        every = lambda *texts: ["" for _ in texts[0]]  # noqa: E731
        monkeypatch.setattr(f"{asks}.contents_of", every, raising=False)
    table = path.with_name(path.name.replace(".spec", ""))
    # 0 asks for all texts, and rows tell how many there were.
    aside = ASIDE | {name for name in ("n_train", "n_test") if getattr(study, name, None) == 0}
    asked = [{k: v for k, v in cell.items() if k not in aside} for cell in study.cells()]
    rows = read_rows(table, name)
    kept = {key for row in rows for key in row} & asked[0].keys() - {"study", "names"}
    assert kept, "rows that say nothing of what was asked for cannot be held against it"

    def shown(entries: Any) -> str:
        known = {key: entries.get(key) for key in sorted(kept)}
        return json.dumps(known, sort_keys=True)

    assert {shown(cell) for cell in asked} == {shown(row) for row in rows}


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_its_table_is_rendered_from_its_rows(path: Path) -> None:
    rows = path.with_name(path.name.replace(".spec", ""))
    name = json.loads(path.read_text(encoding="utf-8"))["study"]
    table = STUDIES[name].markdown(read_rows(rows, name))
    assert table == rows.with_suffix(".md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_no_table_tells_a_folder_of_who_measured_it(path: Path) -> None:
    rows = path.with_name(path.name.replace(".spec", ""))
    for table in filter(Path.exists, (path, rows, rows.with_suffix(".md"))):
        assert not re.search(r"[\"= ]/(tmp|home|work|root|Users|data)/", table.read_text("utf-8"))


@pytest.mark.parametrize("path", FITS, ids=name_of)
def test_a_fitted_encoder_has_its_specification(path: Path) -> None:
    arguments = build_parser().parse_args(with_spec(["fit", "--spec", str(path)]))
    given = json.loads(path.read_text(encoding="utf-8"))
    assert (arguments.encoder, str(arguments.out)) == (given["encoder"], given["out"])
    assert arguments.settings == [f"{key}={value}" for key, value in given["set"].items()]
