"""The container: nothing but a temporary folder can be written, and its user has no name."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browsing import ROOT, free_port, open_tab, sync_api
from processes import running_process

BASE = "python:3.11-slim"
USER, GROUP = 12345, 0
"""As orchestrators draw them: any number, in the group of root."""
TITLE = "The attacker recovered "
ENTRY = ["serve", "--host", "0.0.0.0", "--allow-host", "localhost"]

READ_ONLY = """
set -e
mount --make-rprivate /
mount --bind / "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs -o mode=1777 tmpfs "$1/$2"
mount --rbind /dev "$1/dev"
mount --rbind /proc "$1/proc"
root="$1"; shift 2
exec chroot "$root" "$@"
"""
"""Run a command where all disks are as in a container: $2 alone can be written, in memory."""


def health(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/_stcore/health", headers={"Host": f"localhost:{port}"})
        return connection.getresponse().status


def wait_until_healthy(port: int, is_alive: Callable[[], bool], said: Callable[[], str]) -> None:
    end = time.monotonic() + 240
    while time.monotonic() < end and is_alive():
        with contextlib.suppress(OSError, http.client.HTTPException):
            if health(port) == 200:
                return
        time.sleep(0.3)
    pytest.fail(f"The server did not start: {said()}")


def answers(browser: sync_api.BrowserContext, port: int) -> None:
    """See that a visitor gets an answer, and a page that compiles loops, too."""
    with open_tab(browser) as page:
        for path, title in (("/", TITLE), ("/deniability", "At η = ")):
            page.goto(f"http://localhost:{port}{path}")
            sync_api.expect(page.locator("h1, h2").filter(has_text=title).first).to_be_visible()
            assert page.get_by_test_id("stException").count() == 0


@pytest.fixture
def in_container(tmp_path: Path) -> Iterator[int]:
    """Serve the checkout to a user without a name, with a file system that cannot be written."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can make a file system that cannot be written")
    room = next((name for name in ("mnt", "media", "srv") if is_apart(Path("/", name))), None)
    if room is None:
        pytest.skip("no folder can be hidden behind one that can be written")
    root = tmp_path / "root"
    root.mkdir()
    tmp_path.chmod(0o755)
    alone = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(root), room]
    stranger = ["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups"]
    bare = ["env", "-i", f"--chdir={ROOT}", f"PATH={os.environ['PATH']}", f"TMPDIR=/{room}"]
    bare += ["HF_HUB_OFFLINE=1", "LEAKSCOPE_HOME=/home/leakscope/cache"]
    inside = [*alone, *bare, *stranger]
    tried = subprocess.run(
        [*inside, sys.executable, "-c", "open('/mine', 'w')"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "Read-only file system" not in tried.stderr:
        pytest.skip(f"no file system can be made that cannot be written: {tried.stderr[-300:]}")
    if subprocess.run([*inside, sys.executable, "-c", "import leakscope"], check=False).returncode:
        pytest.skip("other users may not run this checkout")
    port, log = free_port(), tmp_path / "output.txt"
    command = [*inside, sys.executable, "-m", "leakscope", *ENTRY, "--port", str(port)]
    with log.open("w") as out, running_process(command, output=out, cwd=ROOT) as process:
        wait_until_healthy(port, lambda: process.poll() is None, log.read_text)
        yield port
    told = log.read_text()
    assert "Traceback" not in told, told


def is_apart(folder: Path) -> bool:
    """Return whether a folder can be hidden: neither the checkout nor Python lies in it."""
    needed = (ROOT, Path(sys.executable), Path(sys.executable).resolve())
    return folder.is_dir() and not any(each.is_relative_to(folder) for each in needed)


@pytest.mark.browser
def test_any_user_serves_from_a_file_system_that_cannot_be_written(
    browser: sync_api.BrowserContext, in_container: int
) -> None:
    answers(browser, in_container)


def asked(*command: str) -> str:
    """Return what a command answers; empty where it fails."""
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    return ""


@pytest.fixture(scope="module")
def engine() -> str:
    """What builds and runs images here."""
    for name in ("podman", "docker"):
        if asked(name, "info"):
            return name
    pytest.skip("neither podman nor docker runs here")


@pytest.fixture(scope="module")
def base(engine: str) -> str:
    """The base of the image by its digest."""
    named = (engine, "image", "inspect", "--format", "{{index .RepoDigests 0}}", BASE)
    digest = asked(*named) or (asked(engine, "pull", BASE) and asked(*named))
    if not digest:
        pytest.skip(f"{BASE} is not here, and no registry has it")
    return digest


def built(engine: str, base: str) -> subprocess.CompletedProcess[str]:
    command = [engine, "build", "-f", "docs/Containerfile", "-t", "leakscope-test"]
    command += ["--build-arg", f"BASE={base}", "--build-arg", "PIP_FLAGS=--no-compile", "."]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_an_image_whose_base_may_change_is_not_built(engine: str, base: str) -> None:
    refused = built(engine, BASE)
    assert refused.returncode != 0 and "by its digest" in refused.stdout + refused.stderr


@pytest.mark.browser
@pytest.mark.timeout(3600)
def test_the_image_serves_any_user_from_a_file_system_that_cannot_be_written(
    browser: sync_api.BrowserContext, engine: str, base: str
) -> None:
    done = built(engine, base)
    assert done.returncode == 0, done.stderr[-3000:]
    port, name = free_port(), f"leakscope-test-{os.getpid()}"
    bare = f"run --rm --detach --read-only --tmpfs /tmp --name {name} --user {USER}:{GROUP}"
    assert asked(engine, *bare.split(), "--publish", f"127.0.0.1:{port}:8501", "leakscope-test")
    try:
        wait_until_healthy(
            port, lambda: name in asked(engine, "ps"), lambda: asked(engine, "logs", name)
        )
        answers(browser, port)
    finally:
        asked(engine, "kill", name)
