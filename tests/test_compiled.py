"""Compiled loops: where their machine code is kept, and who waits for it."""

from __future__ import annotations

import ast
import asyncio
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from leakscope.core import compiled
from leakscope.core.storage import atomic_files
from leakscope.dashboard.server import compiling

ROOT = Path(__file__).parents[1]
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.slow
def test_loops_are_compiled_by_way_of_core_compiled() -> None:
    """Otherwise their machine code would lie beside the source, and be stale unnoticed."""
    found = set()
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and "njit" in {a.name for a in node.names}:
                found.add((path.name, node.module))
    assert {("compiled.py", "numba"), ("envelope_kernel.py", "leakscope.core.compiled")} <= found
    assert {name for name, module in found if module == "numba"} == {"compiled.py"}


def test_machine_code_has_a_folder_for_each_state_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled.machine_code_folder().is_relative_to(os.environ["LEAKSCOPE_HOME"])
    monkeypatch.setattr(compiled, "_CORE", tmp_path)
    (tmp_path / "loop.py").write_text("from leakscope.core.compiled import njit\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    before = compiled.machine_code_folder()
    (tmp_path / "other.py").write_text("x = 2\n")
    assert compiled.machine_code_folder() == before
    (tmp_path / "loop.py").write_text("from leakscope.core.compiled import njit\nx = 2\n")
    assert compiled.machine_code_folder() != before


@pytest.mark.slow
def test_preparing_leaves_machine_code_that_the_next_process_finds(tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    variables = {**kept, "LEAKSCOPE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "leakscope.core.compile_ahead"]
    subprocess.run(command, cwd=ROOT, env=variables, check=True)
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "compiled").rglob("*.nbc")}
    for name in ("walk_tokens", "edit_scores", "run_rounds"):
        assert any(name in path.name for path in made), name
    read = [sys.executable, "-m", "leakscope", "invert", "--attack", "reconstruct"]
    for later in (command, [*read, "--set", "n_queries=200", "--text", "The ship left at dawn."]):
        subprocess.run(later, cwd=ROOT, env=variables, check=True, stdout=subprocess.DEVNULL)
        found = (tmp_path / "compiled").rglob("*.nbc")
        assert {path: path.stat().st_mtime_ns for path in found} == made


def test_the_server_prepares_while_it_runs_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PREPARE", SLEEP)
    seen = []

    async def serve() -> None:
        async with compiling.lifespan(None):
            seen.extend(compiling._running)
            assert seen[0].poll() is None

    asyncio.run(serve())
    assert seen[0].returncode is not None and compiling._running == []


def page() -> None:
    import streamlit as st

    from leakscope.dashboard.server import compiling

    compiling.wait_for_loops()
    st.title("Here")


def test_a_page_waits_until_all_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"])
    monkeypatch.setattr(compiling, "_running", [process])
    assert AppTest.from_function(page, default_timeout=60).run().title[0].value == "Here"
    assert process.returncode == 0


def test_a_page_gives_up_on_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(SLEEP)
    monkeypatch.setattr(compiling, "_running", [process])
    monkeypatch.setattr(compiling, "_LONGEST", 0.2)
    start = time.monotonic()
    assert AppTest.from_function(page, default_timeout=60).run().title[0].value == "Here"
    assert process.wait(30) != 0 and time.monotonic() - start < 60


_POISON = b"cos\nsystem\n(S'touch %s'\ntR."
"""A pickle that runs a command when it is read."""


@pytest.mark.slow
@pytest.mark.parametrize("is_open", [False, True])
def test_machine_code_that_others_may_have_put_there_is_not_read(
    tmp_path: Path, is_open: bool
) -> None:
    kept = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    variables = {**kept, "LEAKSCOPE_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "leakscope.core.compile_ahead", "map"]
    subprocess.run(command, cwd=ROOT, env=variables, check=True)
    indices = list((tmp_path / "home" / "compiled").rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(_POISON % str(tmp_path / "ran").encode())
    if is_open:
        (folder,) = (path for path in (tmp_path / "home" / "compiled").iterdir() if path.is_dir())
        folder.chmod(0o777)
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert (tmp_path / "ran").exists() is not is_open, "else the poison is none"
    assert ("not yours alone" in done.stderr) is is_open
    assert not is_open or done.returncode == 0, "it compiles for itself"


@pytest.mark.parametrize("at", ["folder", "parent"])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_or_exchange_is_not_safe(
    tmp_path: Path, at: str, mode: int
) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert atomic_files.is_safe(folder)
    (folder if at == "folder" else folder.parent).chmod(mode)
    assert not atomic_files.is_safe(folder)
    if at == "parent":
        folder.parent.chmod(mode | stat.S_ISVTX)
        assert atomic_files.is_safe(folder), "as in /tmp, nobody can exchange it"


def test_what_is_another_users_or_missing_is_not_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "linked").symlink_to(tmp_path)
    assert not atomic_files.is_safe(tmp_path / "linked") and not atomic_files.is_safe(
        tmp_path / "none"
    )
    monkeypatch.setattr("leakscope.core.storage.atomic_files.os.geteuid", lambda: os.getuid() + 1)
    assert not atomic_files.is_safe(tmp_path)
