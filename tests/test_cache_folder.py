"""The cache touches what is its own: not the folders of others, nor what is in use."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counting import CountingEncoder

from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.encrypted_shards import EncryptedShards, list_locked
from leakscope.core.encoders.shards import list_shards, text_key, write_shard
from leakscope.core.storage.artifacts import write_json
from leakscope.core.storage.atomic_files import (
    atomic_write,
    make_folder,
    make_private,
    private_umask,
)
from leakscope.core.storage.cache_contents import remove
from leakscope.core.storage.cache_folder import CACHED, MARKER, cache_dir, is_ours
from leakscope.core.storage.encryption import KEY, LOCK_FILE, find_lock

TEXTS = [f"a letter of {i} lines" for i in range(12)]


def rights(path: Path) -> str:
    return oct(stat.S_IMODE(path.lstat().st_mode))


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv(KEY, "correct horse battery")
    monkeypatch.setattr("leakscope.core.storage.encryption.COST", 2**10)


@pytest.fixture
def thesis(leakscope_home: Path) -> Path:
    """Somebody's own work, in folders of the names that the cache uses."""
    for kind in CACHED:
        (leakscope_home / kind).mkdir(mode=0o755)
        (leakscope_home / kind).chmod(0o755)
    (leakscope_home / "studies" / "run.sh").write_text("#!/bin/sh")
    (leakscope_home / "studies" / "run.sh").chmod(0o755)
    for kind in set(CACHED) - {"studies"}:
        (leakscope_home / kind / "mine.npy").write_bytes(b"mine")
    return leakscope_home


# Whose it is


def test_folders_of_others_are_neither_secured_nor_cleared(core: Any, thesis: Path) -> None:
    before = {path: rights(path) for path in thesis.rglob("*")}
    assert core("list").status == 0
    for kind in CACHED:
        done = core("cache", "clear", "--kind", kind)
        assert done.out.startswith("0 removed") and f"touch {thesis / kind / MARKER}" in done.err
    assert {path: rights(path) for path in thesis.rglob("*")} == before


def test_writing_beside_the_work_of_others_does_not_make_it_ours(thesis: Path) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    assert not is_ours("embeddings") and remove(["embeddings"]).removed == []
    assert (thesis / "embeddings" / "mine.npy").exists()


def test_a_folder_that_we_made_is_ours_and_names_of_others_in_it_are_not(
    core: Any, leakscope_home: Path
) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    assert is_ours("embeddings") and not is_ours("studies")
    (leakscope_home / "embeddings" / "mine.npy").write_bytes(b"mine")
    assert len(remove().removed) == 1
    left = {path.name for path in (leakscope_home / "embeddings").iterdir()}
    assert left == {MARKER, "mine.npy"}
    assert "is not marked" not in core("cache", "list").err


def test_a_run_that_was_killed_before_the_mark_leaves_it_to_the_next(leakscope_home: Path) -> None:
    (leakscope_home / "layouts").mkdir()
    assert not is_ours("layouts")
    write_json(cache_dir("layouts", "a" * 64, "model.json"), {})
    assert is_ours("layouts")


def test_the_default_folder_needs_no_mark(
    core: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEAKSCOPE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    old = tmp_path / ".cache" / "leakscope" / "layouts" / ("a" * 64)
    old.mkdir(parents=True)
    old.parent.chmod(0o755)
    old.chmod(0o755)
    assert core("list").status == 0
    assert (rights(old), rights(old.parent)) == ("0o700", "0o700")
    assert [each.name for each in remove().removed] == [old.name]


def test_a_folder_that_is_a_link_is_not_ours(leakscope_home: Path, tmp_path: Path) -> None:
    (tmp_path / MARKER).touch()
    (tmp_path / ("a" * 64)).mkdir()
    (leakscope_home / "layouts").symlink_to(tmp_path)
    assert not is_ours("layouts") and remove().removed == []


def test_rights_of_the_owner_stay_and_one_refusal_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {"a": 0o755, "b": 0o444, "c": 0o644, "d": 0o640}
    for name, mode in modes.items():
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(mode)
    tmp_path.chmod(0o2755)
    chmod = Path.chmod

    def refuse(self: Path, mode: int) -> None:
        if self.name == "a":
            raise PermissionError("not today")
        chmod(self, mode)

    monkeypatch.setattr(Path, "chmod", refuse)
    make_private(tmp_path)
    assert [rights(tmp_path / name) for name in "abcd"] == ["0o755", "0o400", "0o600", "0o600"]
    assert rights(tmp_path) == "0o2700"


def test_files_of_other_owners_are_left(
    leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(cache_dir("layouts", "a" * 64, "model.json"), {})
    (leakscope_home / "layouts").chmod(0o755)
    monkeypatch.setattr("leakscope.core.storage.atomic_files.os.geteuid", lambda: os.getuid() + 1)
    make_private(leakscope_home / "layouts")
    assert rights(leakscope_home / "layouts") == "0o755"
    assert remove().removed == []


# Public files


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("is_command", [True, False])
def test_public_files_heed_the_umask_in_a_command_and_in_a_program(
    is_command: bool, umask: int, tmp_path: Path
) -> None:
    def write() -> None:
        make_folder(tmp_path / "public", is_public=True)
        atomic_write(tmp_path / "public" / "table.md", b"x", is_public=True)

    if is_command:
        with private_umask(), private_umask():
            write()
    else:
        write()
    assert rights(tmp_path / "public") == oct(0o777 & ~umask)
    assert rights(tmp_path / "public" / "table.md") == oct(0o666 & ~umask)


@pytest.mark.parametrize("is_public", [True, False])
@pytest.mark.parametrize("is_command", [True, False])
def test_folders_keep_the_group_of_the_one_above(
    is_public: bool, is_command: bool, tmp_path: Path
) -> None:
    tmp_path.chmod(0o2755)
    if is_command:
        with private_umask():
            make_folder(tmp_path / "a" / "b", is_public=is_public)
    else:
        make_folder(tmp_path / "a" / "b", is_public=is_public)
    assert all(path.stat().st_mode & stat.S_ISGID for path in tmp_path.rglob("*"))


# In use


def test_clearing_beside_a_running_process_costs_time_and_nothing_else() -> None:
    inner = CountingEncoder()
    cached = CachedEncoder(inner, block_size=4)
    expected = cached.encode(TEXTS)
    remove()
    inner.asked.clear()
    np.testing.assert_array_equal(cached.encode([*TEXTS[:2], *TEXTS]), expected[[0, 1, *range(12)]])
    assert sorted(inner.asked) == sorted(TEXTS) and len(list_shards(cached.folder)) == 3
    cached.encode(TEXTS)
    assert len(inner.asked) == len(TEXTS), "they are kept again"


def test_a_shard_that_goes_between_its_listing_and_its_reading_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_shard(tmp_path / "a", [text_key("b")], np.ones((1, 4), np.float32))
    cached = CachedEncoder(CountingEncoder(), tmp_path)
    monkeypatch.setattr(cached._shards, "shards", lambda: [path])
    path.unlink()
    assert cached.encode(["b"]).shape == (1, 4)


def test_a_folder_that_is_cleared_while_it_is_written_to_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sync, removed = os.fsync, []

    def fsync(handle: int) -> None:
        sync(handle)
        if not removed and any(cache_dir("embeddings").glob("*/*.unfinished")):
            removed.extend(remove(["embeddings"]).removed)

    monkeypatch.setattr("leakscope.core.storage.atomic_files.os.fsync", fsync)
    cached = CachedEncoder(CountingEncoder())
    cached.encode(TEXTS)
    assert len(removed) == 1 and len(list_shards(cached.folder)) == 1


def cleared_with(**filters: Any) -> Callable[[], Any]:
    return lambda: remove(**filters)


@pytest.mark.parametrize(
    "clear",
    [
        cleared_with(kinds=["layouts"]),
        cleared_with(encoder="counting"),
        cleared_with(kinds=["embeddings"], older_than_hours=1e-9),
        cleared_with(is_unencrypted=True),
    ],
)
def test_a_lock_goes_with_all_vectors_alone(keyed: None, clear: Callable[[], Any]) -> None:
    find_lock()
    clear()
    assert (cache_dir("embeddings") / LOCK_FILE).exists()
    remove()
    assert not (cache_dir("embeddings") / LOCK_FILE).exists()


def test_a_lock_in_use_that_was_removed_is_written_back(keyed: None) -> None:
    cached = CachedEncoder(CountingEncoder())
    cached.encode(TEXTS[:6])
    remove()
    cached.encode(TEXTS[6:])
    inner = CountingEncoder()
    CachedEncoder(inner).encode(TEXTS[6:])
    assert inner.asked == [], "a later process opens them"


def test_a_lock_that_took_the_place_of_ours_is_taken_up(keyed: None) -> None:
    cached = CachedEncoder(CountingEncoder())
    cached.encode(TEXTS[:6])
    remove()
    other = CachedEncoder(CountingEncoder())
    other.encode(["from another process"])
    cached.encode(TEXTS)
    assert cached.folder == other.folder
    inner = CountingEncoder()
    CachedEncoder(inner).encode([*TEXTS, "from another process"])
    assert inner.asked == []


def test_a_lock_whose_shard_came_while_it_was_removed_is_put_back(
    keyed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = find_lock()
    assert lock is not None
    unlink, root = Path.unlink, cache_dir("embeddings")

    def unlinked(self: Path, missing_ok: bool = False) -> None:
        if self.name == LOCK_FILE:
            shelf = EncryptedShards(root, "e-float32", 4, "e", lock)
            shelf.write([shelf.key("a")], np.ones((1, 4), np.float32))
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlinked)
    remove()
    monkeypatch.undo()
    assert (root / LOCK_FILE).exists() and any(map(list_locked, root.iterdir()))


# By encoder


def test_vectors_are_cleared_by_any_name_and_those_without_one_are_told(core: Any) -> None:
    vectors = np.ones((1, 4), np.float32)
    for folder, name in (("a", "one"), ("a", "another"), ("b", ""), ("c", "third")):
        place = cache_dir("embeddings", f"{folder * 32}-float32")
        write_shard(place, [text_key(f"{folder}{name}")], vectors, encoder=name)
    done = core("cache", "clear", "--encoder", "one", "--json")
    assert [each["encoder"] for each in done.json()["removed"]] == ["another, one"]
    assert "Entries not removed because their encoder is unknown: 1." in done.err
    assert "cache clear --kind embeddings" in done.err and "Or give the key" not in done.err
    assert {p.name[0] for p in cache_dir("embeddings").iterdir()} == {"b", "c", "."}
    assert "were left" not in core("cache", "clear", "--encoder", "third", "--kind", "studies").err


def test_encrypted_vectors_of_an_unknown_encoder_ask_for_the_key(
    keyed: None, core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    phrase = os.environ[KEY]
    monkeypatch.delenv(KEY)
    done = core("cache", "clear", "--encoder", "counting")
    assert done.out.startswith("0 removed") and "Or give the key" in done.err
    monkeypatch.setenv(KEY, phrase)
    assert core("cache", "clear", "--encoder", "counting").out.splitlines()[-1].startswith("1 ")
