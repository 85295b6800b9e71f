from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from counting import CountingEncoder

from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.shards import list_shards

SCRIPT = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, "tests")
from counting import CountingEncoder
from leakscope.core.encoders.cache import CachedEncoder

folder, first, last, seconds, limit = sys.argv[1:]
inner = CountingEncoder()
quick = inner.encode
def slow(texts, on_progress):
    time.sleep(float(seconds))
    print("block", flush=True)
    return quick(texts, on_progress)
inner.encode = slow
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
cached = CachedEncoder(inner, Path(folder), block_size=10)
texts = [f"text {i:04}" for i in range(int(first), int(last))]
try:
    vectors = cached.encode(texts)
    print(json.dumps({"asked": len(inner.asked), "sum": float(vectors.sum())}))
except Exception as error:
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
"""


def start(
    folder: Path, first: int, last: int, *, seconds: float = 0.0, limit: int = 0
) -> subprocess.Popen[str]:
    arguments = [str(folder), str(first), str(last), str(seconds), str(limit)]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    )


def numbered(first: int, last: int) -> list[str]:
    return [f"text {i:04}" for i in range(first, last)]


def test_kill_loses_one_block_at_most(tmp_path: Path) -> None:
    with start(tmp_path, 0, 200, seconds=0.2) as process:
        assert process.stdout is not None
        for _ in range(4):  # three blocks are written when the fourth is announced
            assert process.stdout.readline() == "block\n"
        process.kill()
    (folder,) = tmp_path.iterdir()
    n_kept = 10 * len(list_shards(folder))
    assert n_kept >= 30
    inner = CountingEncoder()
    vectors = CachedEncoder(inner, tmp_path, block_size=10).encode(numbered(0, 200))
    assert len(inner.asked) == 200 - n_kept
    np.testing.assert_array_equal(vectors, CountingEncoder().encode(numbered(0, 200)))


def test_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    cached = CachedEncoder(CountingEncoder(), tmp_path)
    cached.encode(["an older text"])
    before = {path: path.read_bytes() for path in list_shards(cached.folder)}
    with start(tmp_path, 0, 30, limit=100) as process:  # no file may grow beyond 100 bytes
        out = process.communicate()[0].splitlines()
    problem = json.loads(out[-1])
    assert problem["error"] == "StorageError"
    assert "File too large" in problem["message"]
    assert "kept" in problem["message"]
    assert {path: path.read_bytes() for path in cached.folder.iterdir()} == before


@pytest.mark.slow
def test_processes_that_write_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    ranges = [(0, 120), (60, 180), (0, 120)]
    running = [start(tmp_path, *span, seconds=0.02) for span in ranges]
    for process, span in zip(running, ranges, strict=True):
        result = json.loads(process.communicate()[0].splitlines()[-1])
        assert result["sum"] == pytest.approx(
            float(CountingEncoder().encode(numbered(*span)).sum())
        )
    inner = CountingEncoder()
    vectors = CachedEncoder(inner, tmp_path).encode(numbered(0, 180))
    assert inner.asked == []
    np.testing.assert_array_equal(vectors, CountingEncoder().encode(numbered(0, 180)))
    (folder,) = tmp_path.iterdir()
    assert {path.suffix for path in folder.iterdir()} == {".safetensors"}
