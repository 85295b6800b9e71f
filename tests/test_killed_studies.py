"""Studies of what is inferred that are killed do nothing finished again."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import test_attribute_study
import test_membership_classifier_study
import test_memorisation_study
from processes import running_process, wait_until

from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes.study import AttributeStudy
from leakscope.core.studies.membership import trained_classifiers
from leakscope.core.studies.membership.classifiers import MembershipClassifierStudy
from leakscope.core.studies.registry import run_study

books, posts = test_attribute_study.books, test_membership_classifier_study.posts
ROOT = Path(__file__).parents[1]

RUN = """
import sys, time
sys.path[:0] = ["tests"]
from pathlib import Path
import pytest
import test_killed_studies
from leakscope.core.studies.attributes import study as attributes
from leakscope.core.studies.membership import classifiers as membership_classifiers
from leakscope.core.studies.memorisation import study as memorisation
from leakscope.core.studies.registry import run_study

def slowed(real):
    def slow(*given, **named):
        time.sleep(0.5)
        return real(*given, **named)
    return slow

attributes.run_cases = slowed(attributes.run_cases)
membership_classifiers.evaluate = slowed(membership_classifiers.evaluate)
memorisation.run_planted = slowed(memorisation.run_planted)
memorisation.audit_model = slowed(memorisation.audit_model)
test_killed_studies.test_memorisation_study.make_small(pytest.MonkeyPatch())
name, folder, *given = sys.argv[1:]
run_study(name, test_killed_studies.ASKED[name](*map(Path, given)), Path(folder))
"""


def of_authors(books: Path) -> AttributeStudy:
    return test_attribute_study.study(
        books, attribute_attacks=("majority", "words"), labels=(4,), sizes=(6,), seeds=(0, 1)
    )


def of_members(posts: Path, tiny_bert: Path) -> MembershipClassifierStudy:
    attacks = ("threshold", "user_learned", "user_votes")
    return test_membership_classifier_study.study(
        posts, tiny_bert, splits=("user",), n_shadows=0, classifier_attacks=attacks
    )


ASKED: dict[str, Any] = {
    "attributes": of_authors,
    "membership-classifiers": of_members,
    "memorisation": test_memorisation_study.study,
}


def killed(name: str, folder: Path, *given: Path, least: int = 1) -> dict[Path, int]:
    """Run a study, kill it once it has so many cells, and return when these were written."""
    cells = folder / "cells"
    with running_process([sys.executable, "-c", RUN, name, folder, *given], cwd=ROOT) as process:
        wait_until(lambda: len(list(cells.glob("*.json"))) >= least, process, seconds=120)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert least <= len(before) < len(ASKED[name](*given).cells())
    return before


def told(rows: list[Row]) -> list[Any]:
    """Return what rows say, but for how long it took."""
    assert [row.error for row in rows if row.error] == []
    return [(row.cell, row.scores, row.facts) for row in rows]


def check_kept(before: dict[Path, int], folder: Path, n_cells: int) -> None:
    """Hold that no cell of before was written anew, and that all are there."""
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert len(list((folder / "cells").glob("*.json"))) == n_cells


@pytest.mark.slow
def test_a_killed_study_of_attributes_measures_no_cell_twice(books: Path, tmp_path: Path) -> None:
    before = killed("attributes", tmp_path / "killed", books)
    again, apart = (
        run_study("attributes", of_authors(books), tmp_path / name) for name in ("killed", "whole")
    )
    assert told(again) == told(apart)
    check_kept(before, tmp_path / "killed", len(of_authors(books).cells()))


@pytest.mark.slow
def test_a_killed_study_of_members_trains_no_classifier_twice(
    posts: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, asked = "membership-classifiers", of_members(posts, tiny_bert)
    before = killed(name, tmp_path / "killed", posts, tiny_bert)
    apart = told(run_study(name, asked, tmp_path / "whole"))
    monkeypatch.setattr(trained_classifiers, "make_classifiers", None)  # they are there
    assert told(run_study(name, asked, tmp_path / "killed")) == apart
    check_kept(before, tmp_path / "killed", len(asked.cells()))


@pytest.mark.slow
@pytest.mark.parametrize("least", [1, 5], ids=["in the exposures", "in the audits"])
def test_a_killed_study_of_canaries_trains_no_model_twice(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    test_memorisation_study.make_small(monkeypatch)
    asked = test_memorisation_study.study(corpus)
    assert [cell["part"] for cell in asked.cells()] == ["exposure"] * 4 + ["audit"] * 2
    before = killed("memorisation", tmp_path / "killed", corpus, least=least)
    again, apart = (
        run_study("memorisation", asked, tmp_path / name) for name in ("killed", "whole")
    )
    assert told(again) == told(apart)
    check_kept(before, tmp_path / "killed", len(asked.cells()))
