from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from core.encoders.cache import CachedEncoder
from core.encoders.shards import list_shards, write_shard
from core.errors import ArtifactError, InvalidInputError, StoppedError, StorageError
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress

if TYPE_CHECKING:  # a subprocess imports this file, and should not wait for PyTorch
    from core.encoders.transformer import TransformerEncoder


class CountingEncoder:
    """Encodes a text as numbers drawn from its bytes, and keeps what it was asked."""

    name = "counting"
    dimension = 4
    fingerprint = "f" * 64
    precision = "float32"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        self.asked += texts
        out = np.empty((len(texts), self.dimension), np.float32)
        for i, text in enumerate(texts):
            seed = list(text.encode())
            out[i] = np.random.default_rng(seed).normal(size=self.dimension)
        on_progress(1.0, "done")
        return out


TEXTS = [f"text {'x' * (i % 17)} {i}" for i in range(50)]


@pytest.fixture
def inner() -> CountingEncoder:
    return CountingEncoder()


@pytest.fixture
def filled(inner: CountingEncoder, tmp_path: Path) -> list[Path]:
    """Five shards of ten texts each."""
    cached = CachedEncoder(inner, tmp_path, block_size=10)
    cached.encode(TEXTS)
    shards = list_shards(cached.folder)
    assert len(shards) == 5
    inner.asked.clear()
    return shards


def test_cached_vectors_are_bit_equal(inner: CountingEncoder, tmp_path: Path) -> None:
    expected = CountingEncoder().encode(TEXTS)
    for _ in range(2):  # the second encoder reads from disk alone
        cached = CachedEncoder(inner, tmp_path, block_size=10)
        np.testing.assert_array_equal(cached.encode(TEXTS), expected)
    assert len(inner.asked) == len(TEXTS)
    rows = [3, 3, 40]
    np.testing.assert_array_equal(cached.encode([TEXTS[i] for i in rows]), expected[rows])


def test_only_new_and_different_texts_are_encoded(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path
) -> None:
    cached = CachedEncoder(inner, tmp_path, block_size=10)
    texts = ["new", TEXTS[0], "new", "newer", TEXTS[1]]
    vectors = cached.encode(texts)
    assert inner.asked == ["newer", "new"]  # longest first, once each
    np.testing.assert_array_equal(vectors, CountingEncoder().encode(texts))


def test_it_is_the_encoder_it_wraps(inner: CountingEncoder, tmp_path: Path) -> None:
    cached = CachedEncoder(inner, tmp_path)
    assert isinstance(cached, Encoder)
    assert not isinstance(cached, WhiteBoxEncoder)
    assert (cached.name, cached.dimension) == ("counting", 4)
    assert cached.fingerprint == inner.fingerprint
    assert cached.precision == "float32"
    assert cached.encode([]).shape == (0, 4)
    with pytest.raises(AttributeError):
        _ = cached.token_vectors


def test_white_box_encoders_stay_open(minilm: TransformerEncoder, tmp_path: Path) -> None:
    cached = CachedEncoder(minilm, tmp_path)
    assert isinstance(cached, WhiteBoxEncoder)
    assert cached.n_layers == 6
    assert cached.tokens == minilm.tokens
    assert cached.token_ids(["rain"]) == minilm.token_ids(["rain"])
    np.testing.assert_array_equal(
        cached.encode_layer(["rain"], 2), minilm.encode_layer(["rain"], 2)
    )


def test_minilm_comes_back_bit_equal(minilm: TransformerEncoder, tmp_path: Path) -> None:
    texts = [f"sentence number {i} {'and more ' * (i % 9)}" for i in range(150)]
    direct = minilm.encode(texts)
    np.testing.assert_array_equal(CachedEncoder(minilm, tmp_path).encode(texts), direct)
    np.testing.assert_array_equal(CachedEncoder(minilm, tmp_path).encode(texts), direct)


def test_fingerprint_and_precision_have_their_own_shelves(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path
) -> None:
    for name, value in (("fingerprint", "e" * 64), ("precision", "float16")):
        other = CountingEncoder()
        setattr(other, name, value)
        CachedEncoder(other, tmp_path).encode(TEXTS)
        assert len(other.asked) == len(TEXTS)


def test_default_folder_lies_below_the_home(inner: CountingEncoder, leakscope_home: Path) -> None:
    cached = CachedEncoder(inner)
    cached.encode(["a text"])
    assert cached.folder.is_relative_to(leakscope_home / "embeddings")
    assert len(list_shards(cached.folder)) == 1


def test_progress_counts_new_texts_and_can_stop(inner: CountingEncoder, tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    cached = CachedEncoder(inner, tmp_path, block_size=20)
    cached.encode(TEXTS, lambda *step: seen.append(step))
    assert [fraction for fraction, _ in seen] == [0.4, 0.8, 1.0]
    assert seen[0][1] == "Encoded 20 of 50 new texts"
    cached.encode(TEXTS, lambda *step: seen.append(step))
    assert seen[3:] == [(1.0, "All 50 texts were encoded before")]

    def stop(fraction: float, message: str) -> None:
        if fraction > 0.5:
            raise StoppedError("enough")

    others = [f"other {i}" for i in range(40)]
    with pytest.raises(StoppedError):
        cached.encode(others, stop)
    inner.asked.clear()
    cached.encode(others)
    assert len(inner.asked) == 20  # the first block was kept


def test_bad_texts_are_named_by_their_row(inner: CountingEncoder, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="text 2 is empty"):
        CachedEncoder(inner, tmp_path).encode(["fine", " "])
    assert inner.asked == []


def test_typed_text_leaves_no_trace_in_shards(filled: list[Path]) -> None:
    assert not any(b"text x" in shard.read_bytes() for shard in filled)


@pytest.mark.parametrize("length", [0, 7, 100, -1])
def test_truncated_shard_is_refused_by_name(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path, length: int
) -> None:
    os.truncate(filled[2], length if length >= 0 else filled[2].stat().st_size - 1)
    with pytest.raises(ArtifactError, match=f"{filled[2].name} is truncated.*Delete this file"):
        CachedEncoder(inner, tmp_path).encode(TEXTS)
    assert inner.asked == []  # nothing is silently encoded again
    filled[2].unlink()
    vectors = CachedEncoder(inner, tmp_path).encode(TEXTS)
    np.testing.assert_array_equal(vectors, CountingEncoder().encode(TEXTS))
    assert len(inner.asked) == 10  # the remedy costs one shard


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.99])
def test_altered_shard_is_refused_by_name(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path, share: float
) -> None:
    content = bytearray(filled[1].read_bytes())
    content[int(share * len(content))] ^= 4
    filled[1].write_bytes(content)
    with pytest.raises(ArtifactError, match=filled[1].name):
        CachedEncoder(inner, tmp_path).encode(TEXTS)


def test_shards_of_another_shape_are_refused(inner: CountingEncoder, tmp_path: Path) -> None:
    cached = CachedEncoder(inner, tmp_path)
    write_shard(cached.folder, [b"k" * 16], np.zeros((1, 4), np.float32))
    cached.encode(["a"])
    from core.encoders.shards import text_key

    path = write_shard(cached.folder, [text_key("b")], np.zeros((1, 5), np.float32))
    with pytest.raises(ArtifactError, match=path.name):
        CachedEncoder(inner, tmp_path).encode(["b"])


def test_pickle_under_a_shards_name_is_refused(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path
) -> None:
    evil = filled[0].with_name("shard-evil.safetensors")
    evil.write_bytes(b"\x80\x04cos\nsystem\n(S'exit'\ntR.")
    with pytest.raises(ArtifactError, match=r"shard-evil\.safetensors"):
        CachedEncoder(inner, tmp_path).encode(TEXTS)


SCRIPT = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, "tests")
from test_cache import CountingEncoder
from core.encoders.cache import CachedEncoder

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


def test_full_disk_is_told_and_loses_nothing(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in filled}
    with start(tmp_path, 0, 30, limit=100) as process:  # no file may grow beyond 100 bytes
        out = process.communicate()[0].splitlines()
    problem = json.loads(out[-1])
    assert problem["error"] == "StorageError"
    assert "File too large" in problem["message"]
    assert "kept" in problem["message"]
    assert {path: path.read_bytes() for path in filled[0].parent.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_a_storage_error(
    inner: CountingEncoder, tmp_path: Path
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    with pytest.raises(StorageError, match="Could not write"):
        CachedEncoder(inner, blocker).encode(["a"])


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


def test_a_running_encoder_sees_what_others_have_written(
    inner: CountingEncoder, tmp_path: Path
) -> None:
    early = CachedEncoder(inner, tmp_path)
    early.encode(TEXTS[:5])
    CachedEncoder(CountingEncoder(), tmp_path).encode(TEXTS)
    inner.asked.clear()
    early.encode(TEXTS)
    assert inner.asked == []


def test_abandoned_beginnings_are_removed(
    inner: CountingEncoder, filled: list[Path], tmp_path: Path
) -> None:
    old, young = filled[0].with_name("old.tmp"), filled[0].with_name("young.tmp")
    for path in (old, young):
        path.write_bytes(b"half")
    yesterday = time.time() - 86_400
    os.utime(old, (yesterday, yesterday))
    CachedEncoder(inner, tmp_path).encode(["new"])
    assert not old.exists()
    assert young.exists()  # another process may be writing it


def test_hits_are_far_faster_than_encoding(minilm: TransformerEncoder, tmp_path: Path) -> None:
    texts = [f"a sentence about the matter number {i}" for i in range(256)]
    cached = CachedEncoder(minilm, tmp_path)
    start_cold = time.perf_counter()
    cached.encode(texts)
    cold = time.perf_counter() - start_cold
    warm = []
    for _ in range(5):
        start_warm = time.perf_counter()
        CachedEncoder(minilm, tmp_path).encode(texts)
        warm.append(time.perf_counter() - start_warm)
    assert cold > 20 * min(warm)  # benchmarks/cached_encoding.py measures the real ratio
