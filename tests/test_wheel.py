"""What is built, installed and started outside the checkout: as those do who get the wheel."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from processes import kill_session
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from leakscope.core import __version__
from leakscope.core.cli import COMMANDS

ROOT = Path(__file__).parents[1]
BUILT_FROM = (
    "core",
    "dashboard",
    "leakscope",
    "pages",
    "assets",
    "results",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "README.md",
    "LICENSE",
)
BESIDE = ("benchmarks", "scripts", "tools")
"""Folders of the checkout that are in no wheel."""
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
TEXT = "The finance minister resigned after police searched his office in Berlin."
PATIENCE = 240.0
RENDER = """
import json, sys
from pathlib import Path
from leakscope import dashboard
from streamlit.testing.v1 import AppTest
app = Path(dashboard.__file__).with_name("app.py")
found = {}
opened = AppTest.from_file(str(app), default_timeout=200).run()
for page in sorted((app.parents[1] / "pages").glob("*.py")):
    opened.switch_page(str(page)).run()
    found[page.stem] = {
        "title": [part.value for part in opened.title],
        "faults": [part.value for part in [*opened.exception, *opened.error]],
    }
print(json.dumps({"app": str(app), "pages": found}))
"""


@dataclass(frozen=True)
class Installed:
    """A new environment with the wheel in it, and a folder that is not the checkout."""

    environment: Path
    elsewhere: Path

    @property
    def variables(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return {**kept, "HF_HUB_OFFLINE": "1", "LEAKSCOPE_HOME": str(self.elsewhere / "home")}

    def start(self, command: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.environment / "bin" / command), *arguments],
            cwd=self.elsewhere,
            env=self.variables,
            start_new_session=True,
            text=True,
            encoding="utf-8",
            # A background job of a shell ignores Ctrl-C, and its children would too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            **options,
        )

    def run(self, command: str, *arguments: str) -> str:
        """Return what a command writes to standard output."""
        pipe = subprocess.PIPE
        process = self.start(command, *arguments, stdout=pipe, stderr=pipe)
        try:
            out, err = process.communicate(timeout=400)
        finally:
            kill_session(process)
        assert process.returncode == 0, err
        return str(out)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building leaves files beside its source."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    for name in (*BUILT_FROM, *BESIDE):
        ignored = shutil.ignore_patterns("__pycache__")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True)
    shutil.rmtree(source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own, beside the packages that are here already."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment)
    python = environment / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", where], stdout=subprocess.PIPE, text=True, check=True)
    outer = sysconfig.get_path("purelib")  # where the network would be needed otherwise
    Path(found.stdout.strip(), "outer.pth").write_text(outer + "\n", encoding="utf-8")
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True)
    return Installed(environment, tmp_path_factory.mktemp("elsewhere"))


@dataclass(frozen=True)
class Served:
    port: int
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        address = f"http://localhost:{self.port}{path}"
        asked = urllib.request.Request(address, headers={"accept": "text/html"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def served(installed: Installed) -> Iterator[Served]:
    """The installed server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = installed.elsewhere / "server.log"
    with log.open("w") as out:
        process = installed.start("leakscope", "serve", "--port", str(port), stdout=out, stderr=out)
    server, latest = Served(port, log), time.monotonic() + PATIENCE
    try:
        while True:
            try:
                server.get("/_stcore/health")
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < latest, log.read_text()
                time.sleep(0.2)
        yield server
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
    finally:
        kill_session(process)
    assert status == 130 and "Traceback" not in log.read_text()


@pytest.mark.slow
def test_the_wheel_holds_what_the_checkout_holds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    shipped = {
        f"leakscope/{path.relative_to(ROOT)}".replace("leakscope/leakscope/", "leakscope/")
        for name in BUILT_FROM[:6]
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped - held == {"leakscope/assets/screenshot.png"}, (
        "README's picture is no part of the tool"
    )
    assert not any(name.startswith(tuple(f"leakscope/{part}/" for part in BESIDE)) for name in held)
    tops = {name.partition("/")[0] for name in held}
    assert tops == {"leakscope", f"leakscope-{__version__}.dist-info"}
    assert wheel.stat().st_size < 95e6, "PyPI takes 100 MB"


@pytest.mark.slow
def test_one_command_has_all_commands(installed: Installed) -> None:
    for command in (["leakscope"], ["python", "-m", "leakscope"]):
        assert installed.run(*command, "--version").strip() == f"Leakscope {__version__}"
    told = installed.run("leakscope", "--help")
    assert "usage: leakscope" in told
    assert all(f"\n    {name}" in told for name in ["serve", *COMMANDS])
    assert "minilm" in installed.run("leakscope", "list")


@pytest.mark.slow
def test_the_installed_command_reads_words_with_the_weights_that_ship(installed: Installed) -> None:
    said = installed.run("leakscope", "invert", "--text", TEXT, "--json")
    words = {found["word"] for found in json.loads(said)[0]["words"]}
    assert {"minister", "police"} <= words


@pytest.mark.slow
def test_every_installed_page_opens_with_a_finding(installed: Installed) -> None:
    said = json.loads(installed.run("python", "-c", RENDER))
    assert Path(said["app"]).is_relative_to(installed.environment)
    assert sorted(said["pages"]) == PAGES
    for name, page in said["pages"].items():
        assert page["title"] and not page["faults"], (name, page)


@pytest.mark.slow
def test_every_page_is_served(served: Served) -> None:
    assert served.get("/_stcore/health") == (200, "ok")
    for name in ["", *PAGES]:
        status, body = served.get(f"/{name}")
        assert status == 200 and "BACKEND_BASE_URL" in body
    assert f"http://localhost:{served.port}" in served.log.read_text()


@pytest.mark.slow
def test_the_installed_server_keeps_the_settings_of_the_checkout(served: Served) -> None:
    message, told = BackMsg(), dict[str, Any]()
    message.rerun_script.page_name = "tradeoff"
    with connect(f"ws://localhost:{served.port}/_stcore/stream", max_size=None) as line:
        line.send(message.SerializeToString())
        while not {"new_session", "navigation"} <= told.keys():
            answer = ForwardMsg.FromString(line.recv(PATIENCE, decode=False))
            kind = str(answer.WhichOneof("type"))
            told[kind] = getattr(answer, kind)
    session = told["new_session"]
    assert session.config.gather_usage_stats is False
    assert session.custom_theme.light.primary_color == "#0072B2"
    opened_by = {page.url_pathname or "overview" for page in told["navigation"].app_pages}
    assert sorted(opened_by) == PAGES


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no second local address")
def test_only_this_computer_reaches_the_server(served: Served) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.2", served.port))  # fails where the server listens on all addresses
