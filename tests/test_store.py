from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leakscope.core.errors import ArtifactError, StorageError
from leakscope.core.storage.artifacts import (
    cache_dir,
    digest_file,
    load_artifact,
    read_json,
    read_whole,
    save_artifact,
    storage_errors,
    write_json,
)

ARRAYS = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.array([1.5], np.float16)}


def arrays_file(folder: Path) -> Path:
    (path,) = folder.glob("model-*.safetensors")
    return path


def test_artifact_comes_back_as_it_was_written(tmp_path: Path) -> None:
    save_artifact(tmp_path / "a", ARRAYS, {"name": "é", "n": 3})
    arrays, meta = load_artifact(tmp_path / "a")
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert (meta["name"], meta["n"]) == ("é", 3)


def test_artifact_may_hold_no_array(tmp_path: Path) -> None:
    save_artifact(tmp_path, {}, {"n": 1})
    assert load_artifact(tmp_path)[0] == {}


def test_arrays_that_are_views_are_written_in_their_own_order(tmp_path: Path) -> None:
    save_artifact(tmp_path, {"t": ARRAYS["w"].T, "s": ARRAYS["w"][:, ::2]}, {})
    arrays, _ = load_artifact(tmp_path)
    np.testing.assert_array_equal(arrays["t"], ARRAYS["w"].T)
    np.testing.assert_array_equal(arrays["s"], ARRAYS["w"][:, ::2])


def test_replacing_leaves_the_new_artifact_alone(tmp_path: Path) -> None:
    save_artifact(tmp_path, ARRAYS, {"n": 1})
    save_artifact(tmp_path, {"w": np.zeros(2)}, {"n": 2})
    arrays, meta = load_artifact(tmp_path)
    assert meta["n"] == 2
    assert list(arrays) == ["w"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failure_before_the_seal_keeps_the_older_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_artifact(tmp_path, ARRAYS, {"n": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("leakscope.core.storage.artifacts.write_json", full)
    with pytest.raises(StorageError, match="No space left on device"):
        save_artifact(tmp_path, {"w": np.zeros(2)}, {"n": 2})
    arrays, meta = load_artifact(tmp_path)
    assert meta["n"] == 1
    np.testing.assert_array_equal(arrays["w"], ARRAYS["w"])


KILL_WHILE_SAVING = """
import itertools, sys
from pathlib import Path
import numpy as np
from leakscope.core.storage.artifacts import save_artifact
for i in itertools.count():
    save_artifact(Path(sys.argv[1]), {"w": np.full(200_000, i, np.float32)}, {"n": i})
    if i == 2:
        print("ready", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011])
def test_kill_at_any_moment_leaves_one_whole_artifact(tmp_path: Path, delay: float) -> None:
    command = [sys.executable, "-c", KILL_WHILE_SAVING, str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if delay:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(delay)
        process.kill()
    arrays, meta = load_artifact(tmp_path / "a")
    assert meta["n"] >= 2
    assert (arrays["w"] == meta["n"]).all()


def test_truncated_arrays_are_refused_by_name(tmp_path: Path) -> None:
    save_artifact(tmp_path, ARRAYS, {})
    path = arrays_file(tmp_path)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(ArtifactError, match=f"{path.name} is truncated or was altered"):
        load_artifact(tmp_path)


@pytest.mark.parametrize("position", [0, 9, -1])
def test_one_altered_byte_is_refused_by_name(tmp_path: Path, position: int) -> None:
    save_artifact(tmp_path, ARRAYS, {})
    path = arrays_file(tmp_path)
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=path.name):
        load_artifact(tmp_path)


def test_missing_parts_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"nowhere.*model.json does not exist"):
        load_artifact(tmp_path / "nowhere")
    save_artifact(tmp_path, ARRAYS, {})
    path = arrays_file(tmp_path)
    path.unlink()
    with pytest.raises(ArtifactError, match=f"{path.name} is missing"):
        load_artifact(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "damaged or not JSON"),
        ("[]", "not an artifact of format 1"),
        ('{"format": 99}', "not an artifact of format 1"),
        ('{"format": 1}', "is missing"),
        ("\xff", "damaged or not JSON"),
    ],
)
def test_damaged_or_foreign_json_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "model.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ArtifactError, match=says):
        load_artifact(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,  # a header of 2^64 bytes
        (2**40).to_bytes(8, "little") + b"{}",
        (20).to_bytes(8, "little") + b'{"w":{"dtype":"F32"}',
        b"\x80\x04\x95not a pickle either",
    ],
)
def test_hostile_header_under_a_valid_seal_is_refused(tmp_path: Path, content: bytes) -> None:
    save_artifact(tmp_path, ARRAYS, {})
    path = arrays_file(tmp_path)
    path.write_bytes(content)
    meta = json.loads((tmp_path / "model.json").read_text())
    write_json(tmp_path / "model.json", {**meta, "arrays_sha256": digest_file(path)})
    with pytest.raises(ArtifactError, match="is not a safetensors file"):
        load_artifact(tmp_path)


def test_an_artifact_cannot_name_a_file_outside_its_folder(tmp_path: Path) -> None:
    save_artifact(tmp_path / "a", ARRAYS, {})
    outside = arrays_file(tmp_path / "a").rename(tmp_path / "outside.safetensors")
    meta = json.loads((tmp_path / "a" / "model.json").read_text())
    write_json(tmp_path / "a" / "model.json", {**meta, "arrays_file": f"../{outside.name}"})
    with pytest.raises(ArtifactError, match="is missing"):
        load_artifact(tmp_path / "a")


def test_json_that_cannot_be_written_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"n": 1})
    with pytest.raises(TypeError):
        write_json(path, {"n": object()})
    assert read_json(path) == {"n": 1}


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    with pytest.raises(StorageError, match=r"Could not write .*choose another folder"):
        save_artifact(blocker / "a", ARRAYS, {})
    with pytest.raises(StorageError, match="Could not write"):
        write_json(blocker / "a.json", {})


def test_storage_errors_lets_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(KeyError), storage_errors(tmp_path):
        raise KeyError("x")


def test_cache_dir_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKSCOPE_HOME", str(tmp_path))
    assert cache_dir("a", "b") == tmp_path / "a" / "b"
    monkeypatch.delenv("LEAKSCOPE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir("a") == tmp_path / "home" / ".cache" / "leakscope" / "a"


def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("leakscope.core.storage.atomic_files.os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_json(tmp_path / "x.json", {"n": 1})
    assert list(tmp_path.iterdir()) == []


READ_IN_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from leakscope.core.storage.artifacts import read_whole
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, resource.RLIM_INFINITY))
print(len(read_whole(Path(sys.argv[1]), 16 * 2**30)))
"""


def test_a_small_file_takes_little_memory_whatever_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(70))
    command = [sys.executable, "-c", READ_IN_LITTLE_MEMORY, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "70\n"), done.stderr


def test_a_file_is_read_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    monkeypatch.setattr("leakscope.core.storage.artifacts._PIECE_BYTES", 7)
    for at_most in (100, 101, 1000):
        assert read_whole(path, at_most) == bytes(range(100))
    for at_most in (99, 98, 7, 6, 0):
        with pytest.raises(ValueError, match=f"more than {at_most} bytes"):
            read_whole(path, at_most)
