"""The workflow and the hook in docs/gate, run as a build server and pre-commit run them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from leakscope.core.encoders.transformer import TransformerEncoder

ROOT = Path(__file__).parents[1]
GATE = ROOT / "docs" / "gate"
WORKFLOW = GATE / "leakscope.yml"
HOOK = GATE / "pre-commit-config.yaml"
INSTALL = "Install Leakscope"
"""The step that is not run: the environment of the tests has the packages already."""


AUDIT = "leakscope audit"
FAST = f"{AUDIT} --attack probe_mlc"
"""What the tests run in place of AUDIT: the default attack needs a minute for 30 vectors."""


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return found


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workflow()["jobs"]["audit"]["steps"]
    return found


@pytest.fixture
def repository(tmp_path: Path, minilm: TransformerEncoder, bundled: list[str]) -> Path:
    """A folder with 30 vectors and their texts."""
    texts = [" ".join(text.split()) for text in bundled[5::140][:30]]
    folder = tmp_path / "repository"
    folder.mkdir()
    np.save(folder / "vectors.npy", minilm.encode(texts))
    (folder / "texts.txt").write_text("\n".join(texts))
    return folder


@pytest.fixture
def environment(tmp_path: Path, leakscope_home: Path) -> dict[str, str]:
    """The variables of a shell with the tests' own `python`, and the checkout's `leakscope`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    own = shlex.quote(sys.executable)
    for name, command in {"python": own, "leakscope": f"{own} -m leakscope"}.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
        "LEAKSCOPE_HOME": str(leakscope_home),
    }


def bash(
    script: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does where a step's shell is bash."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )


def test_the_workflow_may_do_what_it_needs_and_no_more() -> None:
    assert workflow()["permissions"] == {"contents": "read", "security-events": "write"}
    used = [step["uses"] for step in steps() if "uses" in step]
    assert all(re.fullmatch(r"[\w./-]+@v\d+", action) for action in used)
    names = [action.partition("@")[0] for action in used]
    assert names == [
        "actions/checkout",
        "actions/setup-python",
        "actions/cache",
        "actions/upload-artifact",
        "github/codeql-action/upload-sarif",
    ]
    late = [step for step in steps() if "upload" in step.get("uses", "")]
    assert all("!cancelled()" in step["if"] for step in late), "else a failed audit shows nothing"


def test_the_workflow_installs_the_wheel_with_what_writes_its_files() -> None:
    from leakscope.core import __version__

    (install,) = [step["run"] for step in steps() if step["name"] == INSTALL]
    assert install == 'python -m pip install "./${LEAKSCOPE}[gate]"'
    assert workflow()["env"]["LEAKSCOPE"] == f"leakscope-{__version__}-py3-none-any.whl"
    assert 'gate = ["junitparser' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_steps_pass_below_a_limit_and_fail_above_it(
    repository: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("junitparser")
    pytest.importorskip("sarif_pydantic")
    scripts = [step["run"] for step in steps() if "run" in step and step["name"] != INSTALL]
    (script,) = (script.replace(AUDIT, FAST) for script in scripts)
    told = {**environment, **workflow()["env"]}

    loose = bash(script, repository, {**told, "MAX_F1": "100"})
    assert loose.returncode == 0, loose.stderr
    report = json.loads((repository / "report.json").read_text())
    assert [check["name"] for check in report["checks"]] == ["max-f1"]

    (repository / "report.json").rename(repository / told["BASELINE"])
    tight = bash(script, repository, {**told, "MAX_F1": "5"})
    assert tight.returncode == 1, tight.stderr
    checks = json.loads((repository / "report.json").read_text())["checks"]
    assert {c["name"]: c["outcome"] for c in checks} == {"max-f1": "failed", "baseline": "passed"}
    assert "<failure" in (repository / "checks.xml").read_text()
    (run,) = json.loads((repository / "checks.sarif").read_text())["runs"]
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert place == "vectors.npy", "GitHub shows results of files of the repository alone"


def hook() -> dict[str, Any]:
    (repository,) = yaml.safe_load(HOOK.read_text(encoding="utf-8"))["repos"]
    (found,) = repository["hooks"]
    return dict(found)


@pytest.mark.slow
def test_the_hook_stops_a_commit_of_vectors_that_leak_too_much(
    repository: Path, environment: dict[str, str]
) -> None:
    told = hook()
    found = bash(told["entry"].replace(AUDIT, FAST), repository, environment)
    assert found.returncode == 1 and "FAILED max-f1" in found.stdout
    for name, is_audited in (("vectors.npy", True), ("texts.txt", True), ("a/vectors.npy", False)):
        assert bool(re.search(told["files"], name)) == is_audited


@pytest.mark.slow
def test_pre_commit_runs_the_hook_where_vectors_change(
    repository: Path, environment: dict[str, str]
) -> None:
    if importlib.util.find_spec("pre_commit") is None:
        pytest.skip("pre-commit is not installed")
    config = HOOK.read_text(encoding="utf-8")
    assert "--max-f1 30" in config
    loose = config.replace("f1 30", "f1 100").replace(AUDIT, FAST)
    (repository / ".pre-commit-config.yaml").write_text(loose)
    (repository / "notes.md").write_text("notes\n")
    run = "git add --all && python -m pre_commit run --verbose"
    first = bash(f"git init --quiet && {run}", repository, environment)
    assert first.returncode == 0 and "PASSED max-f1" in first.stdout, first.stdout + first.stderr
    commit = "git -c user.name=a -c user.email=a@example.org commit --quiet -m first --no-verify"
    later = bash(f"{commit} && echo more >> notes.md && {run}", repository, environment)
    assert later.returncode == 0 and "Skipped" in later.stdout
