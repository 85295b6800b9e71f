"""No library sends anything or looks up a name: processes watched from outside by strace."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_CALLS = "connect,sendto,sendmsg,sendmmsg"
_OUTSIDE = re.compile(r"sa_family=AF_INET6?\b")


def outside(tmp_path: Path, *command: object, **environment: str) -> tuple[list[str], list[Path]]:
    """Run a command; return its calls to other computers, and the files that it left at home."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    home, log = tmp_path / "home", tmp_path / "calls"
    home.mkdir()
    kept = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "LEAKSCOPE_HOME": str(tmp_path / "derived"),
        "HF_HUB_OFFLINE": "1",
        **environment,
    }
    watched = ["strace", "--follow-forks", "-qq", f"--trace={_CALLS}", "--output", log, *command]
    done = subprocess.run(
        list(map(str, watched)), cwd=ROOT, env=kept, capture_output=True, text=True, timeout=600
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("strace may not watch processes here")
    assert done.returncode == 0, done.stderr
    calls = [line for line in log.read_text().splitlines() if _OUTSIDE.search(line)]
    return calls, [path for path in home.rglob("*") if path.is_file()]


def code(text: str) -> list[object]:
    return [sys.executable, "-c", text]


FEATURES = {
    "an attack": [
        sys.executable,
        "-m",
        "leakscope",
        "invert",
        "--attack",
        "probe_mlc",
        "--text",
        "The minister resigned.",
    ],
    "OpenVINO": code(
        "from leakscope.core.encoders import load_encoder\n"
        "from leakscope.core.specs import EncoderSpec\n"
        "texts = [f'sentence {i} of a river' for i in range(40)]\n"
        "try:\n"
        "    load_encoder(EncoderSpec(name='minilm', backend='openvino')).encode(texts)\n"
        "except ImportError:\n"
        "    pass\n"
    ),
    "ONNX Runtime": code(
        "import leakscope, time\n"
        "try:\n"
        "    import onnxruntime\n"
        "except ImportError:\n"
        "    raise SystemExit\n"
        "time.sleep(3)\n"
    ),
    "Sentence-Transformers": code(
        "from leakscope.core.encoders.minilm import minilm_folder\n"
        "from leakscope.core.encoders import load_encoder\n"
        "load_encoder(f'st:{minilm_folder()}').encode(['a river'])\n"
    ),
    "maps": code("import leakscope, umap, numba, sklearn, gensim, optuna\n"),
    "pages": code(
        "import leakscope, streamlit, plotly, choreographer\nimport leakscope.dashboard.serve\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FEATURES)
def test_nothing_is_sent_and_nothing_is_left_to_be_sent(tmp_path: Path, name: str) -> None:
    calls, left = outside(tmp_path, *FEATURES[name])
    assert calls == []
    assert [path for path in left if "telemetry" in str(path).lower() or path.suffix == ".db"] == []


def test_a_name_that_is_looked_up_would_be_seen(tmp_path: Path) -> None:
    calls, _ = outside(
        tmp_path,
        *code(
            "import socket\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "s.sendto(b'x', ('192.0.2.1', 53))\n"
        ),
    )
    assert len(calls) == 1


@pytest.mark.slow
def test_what_is_left_to_be_sent_would_be_seen(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    _, left = outside(tmp_path, *code("import onnxruntime, time; time.sleep(3)"))
    assert any("onnxruntime" in str(path) for path in left), "else its setting is of no use"
