"""The page about a server for others says what the code does."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from served import serve_recorded

from leakscope.core.cli import COMMANDS, build_parser
from leakscope.core.corpora.readers import bounded_reading
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES, MAX_UPLOAD_ROWS
from leakscope.core.jobs import Jobs
from leakscope.core.storage.encryption import KEY, KEY_FILE, NO_CACHE
from leakscope.dashboard.server import command, policy
from leakscope.dashboard.server.policy import Policy
from leakscope.dashboard.server.reader_processes import LONGEST_SECONDS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CONTAINER = (ROOT / "docs" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def cell(name: str) -> str:
    """Return a row's default from the table of limits."""
    (row,) = re.findall(rf"^\| {re.escape(name)} \| (.*?) \|", PAGE, re.MULTILINE)
    return str(row)


def test_the_limits_are_those_of_the_code() -> None:
    jobs, mb = Jobs(), 2**20
    assert cell("visitors at once") == str(Policy.sessions)
    assert cell("one upload") == f"{Policy.file_bytes // mb} MB"
    assert Policy.file_bytes == MAX_UPLOAD_BYTES and Policy.session_bytes == 2 * Policy.file_bytes
    assert cell("uploads held for all visitors together") == f"{Policy.all_bytes // mb:,} MB"
    told = cell("waiting slow jobs, per visitor and in total")
    assert told.startswith(f"{jobs.max_waiting_each} and {jobs.max_waiting};")
    told = cell("waiting slow jobs, per account or address")
    assert told.startswith(f"{jobs.max_waiting - jobs.max_waiting_each}, ")
    longest = cell("longest run of one slow job").replace("`", "").split()
    patience = jobs.patience
    assert [float(longest[0]), float(longest[2])] == [
        patience.longest_seconds / 60,
        patience.crowded_longest_seconds / 60,
    ]
    gigabytes, seconds = re.findall(r"`(\d+)`", cell("reading one upload"))
    assert int(gigabytes) * 2**30 == bounded_reading.MOST_BYTES and int(seconds) == LONGEST_SECONDS
    (seconds,) = re.findall(r"`(\d+)` s", cell("printing one report"))
    assert int(seconds) == LONGEST_SECONDS
    assert f"{MAX_UPLOAD_ROWS:,} rows" in PAGE
    assert f"{jobs.keep_seconds / 60:.0f} minutes after it was last viewed" in PAGE


def test_every_variable_that_is_named_is_read() -> None:
    known = {policy.ENCODERS, policy.MAX_SESSIONS, policy.MAX_UPLOADS, policy.PROXY}
    known |= {"LEAKSCOPE_HOME", "LEAKSCOPE_DEBUG"}
    known |= {KEY, KEY_FILE, NO_CACHE}
    assert set(re.findall(r"LEAKSCOPE_[A-Z_]+", PAGE + SECURITY + CONTAINER)) == known


def test_the_container_starts_a_server_that_the_command_knows() -> None:
    words = [
        json.loads(re.findall(rf"^{kind} (\[.*\])$", CONTAINER, re.MULTILINE)[0])
        for kind in ("ENTRYPOINT", "CMD")
    ]
    program, *arguments = [*words[0], *words[1]]
    assert program.endswith("/leakscope")
    read = build_parser({"serve": command, **COMMANDS}).parse_args(arguments)
    assert command._streamlit_flags(read)
    with pytest.raises(Exception, match="--allow-host NAME"):
        command._streamlit_flags(build_parser({"serve": command}).parse_args([*words[0][1:]]))
    for path in re.findall(r"-[rc] (\S+\.txt)", CONTAINER):
        assert (ROOT / path).is_file()
    assert re.search(r"^USER [1-9]\d*$", CONTAINER, re.MULTILINE), (
        "a number is known not to be root"
    )
    assert re.search(r"^HEALTHCHECK .*localhost:8501/_stcore/health", CONTAINER, re.MULTILINE)


def test_what_is_built_into_the_image_is_what_is_installed() -> None:
    kept = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    assert kept[1] == "*", "what is not named stays out"
    named = {line[1:] for line in kept if line.startswith("!")}
    assert all((ROOT / name).exists() for name in named)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (folders,) = re.findall(r"FOLDERS = \((.*)\)", (ROOT / "setup.py").read_text(encoding="utf-8"))
    needed = {*re.findall(r'"(\w+)"', folders), "leakscope", "setup.py", "pyproject.toml"}
    needed |= {project["project"]["readme"], "LICENSE"}
    needed |= {*re.findall(r"-[rc] (\S+\.txt)", CONTAINER)}
    assert named == needed


def test_the_proxy_undoes_no_promise() -> None:
    (config,) = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
    directives = [shlex.split(line, comments=True) for line in config.splitlines()]
    said = {words[0]: words[1:] for words in directives if words}
    assert said["proxy_request_buffering"] == ["off;"] and "$uri" in config
    assert "$request " not in config and "$args" not in config and "$request_uri" not in config
    assert said["proxy_set_header"] == ["Connection", "upgrade;"]


def test_the_tests_that_are_named_exist() -> None:
    named = re.findall(r"`(tests/\w+\.py)`", PAGE + SECURITY)
    assert named and all((ROOT / path).is_file() for path in named)


def test_every_promise_has_tests_that_exist() -> None:
    told = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    rows = [row for row in told.splitlines() if row.startswith("| ") and "| tests |" not in row]
    assert len(rows) > 30
    for row in rows:
        tests = re.findall(r"`(tests/\w+\.py)::(test_\w+)`", row)
        assert tests, row
        for path, name in tests:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (path, name)


@pytest.mark.slow
def test_pages_below_a_base_path_are_guarded_alike(tmp_path: Path) -> None:
    with serve_recorded(tmp_path, "--base-path", "/tools/leak/") as server:
        status, headers, document = server.request("/tools/leak/", headers={"Accept": "text/html"})
        assert status == 200 and b"window.location.origin + '/tools/leak'" in document
        assert "sha256-" in headers["content-security-policy"]
        assert server.request("/tools/leak/_stcore/health")[0] == 200
        (line,) = server.output.read_text().splitlines()
        address = f"http://localhost:{server.port}/tools/leak"
        assert line == f"Leakscope is running at {address} (Ctrl-C stops it)."
        assert server.request("/tools/leak/_stcore/metrics")[0] == 404
        assert server.request("/tools/leak/_stcore/upload_file/a/b", "PUT")[0] == 411
