"""The cache tells what it holds, forgets on request, and is nobody else's business."""

from __future__ import annotations

import json
import os
import pickle
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_python
from counting import CountingEncoder

from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.encrypted_shards import EncryptedShards, list_locked, name_locked
from leakscope.core.encoders.shards import list_shards, text_key
from leakscope.core.errors import ArtifactError, InvalidInputError, MissingDependencyError
from leakscope.core.storage import encryption
from leakscope.core.storage.artifacts import write_json
from leakscope.core.storage.atomic_files import private_umask
from leakscope.core.storage.cache_folder import CACHED, MARKER, cache_dir
from leakscope.core.storage.encryption import (
    KEY,
    KEY_FILE,
    LOCK_FILE,
    NO_CACHE,
    Lock,
    find_lock,
    is_cache_off,
    read_key,
)

TEXTS = [f"the patient of room {i} was given insulin" for i in range(30)]
PHRASE = "correct horse battery"


def modes(folder: Path) -> set[tuple[bool, str]]:
    """Return what rights there are below a folder, itself included."""
    return {(p.is_dir(), oct(p.stat().st_mode & 0o777)) for p in (folder, *folder.rglob("*"))}


PRIVATE = {(True, "0o700"), (False, "0o600")}


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o177])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv(KEY, PHRASE)
    monkeypatch.setattr("leakscope.core.storage.encryption.COST", 2**10)


@pytest.fixture
def filled(leakscope_home: Path) -> Path:
    """A cache with something of every kind."""
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    names = {"layouts": "a" * 64, "representations": f"tfidf-{'a' * 24}", "deniability": "a" * 32}
    for kind, name in names.items():
        write_json(cache_dir(kind, name, "model.json"), {"encoder": f"of {kind}"})
    write_json(cache_dir("backends", f"{'b' * 32}.json"), {})
    write_json(cache_dir("compiled", "b" * 16, "index.json"), {})
    write_json(cache_dir("studies", "encoders", "cells", "c.json"), {"rows": []})
    return leakscope_home


def test_all_of_the_cache_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    CachedEncoder(CountingEncoder(), root).encode(TEXTS)
    write_json(root / "a" / "b" / "c.json", {})
    assert modes(root) == PRIVATE


def test_so_is_all_that_is_encrypted(umask: int, keyed: None, tmp_path: Path) -> None:
    CachedEncoder(CountingEncoder(), tmp_path / "cache").encode(TEXTS)
    assert modes(tmp_path / "cache") == PRIVATE


def test_commands_leave_nothing_that_others_read(
    umask: int, core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path, leakscope_home: Path
) -> None:
    encoder = f"--encoder mlm:{tiny_bert} --device cpu"
    core(f"train {encoder} --attack retrieval --corpus {corpus} --out {tmp_path / 'attack'}")
    core(f"fit --encoder tfidf --corpus {corpus} --out {tmp_path / 'tfidf'}")
    core(f"privatize {encoder} --eta 75 --in {corpus} --out {tmp_path / 'p.txt'}")
    for made in (tmp_path / "attack", tmp_path / "tfidf", leakscope_home / "embeddings"):
        assert modes(made) == PRIVATE, made
    assert modes(tmp_path / "p.txt") == {(False, "0o600")}


@pytest.mark.slow
def test_the_search_for_settings_keeps_its_database_private(leakscope_home: Path) -> None:
    from leakscope.core.studies.inversion.tuning import open_trials

    before = os.umask(0)
    try:
        with private_umask(), open_trials(cache_dir("studies", "t"), {}, 0):
            pass
        assert modes(cache_dir("studies", "t")) == PRIVATE
    finally:
        os.umask(before)


def test_an_older_cache_is_made_private_by_the_next_command(
    core: Any, filled: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o644)
    (filled / "embeddings" / "link").symlink_to(outside)
    for path in (filled, *filled.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert core("list").status == 0
    (filled / "embeddings" / "link").unlink()
    for kind in CACHED:
        assert modes(filled / kind) <= PRIVATE
    assert outside.stat().st_mode & 0o777 == 0o644


# No cache


@pytest.mark.parametrize(
    ("told", "is_off"),
    [
        (None, False),
        ("", False),
        ("0", False),
        ("no", False),
        ("False", False),
        ("1", True),
        ("yes", True),
        ("anything", True),
    ],
)
def test_the_environment_turns_the_cache_off(
    told: str | None, is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NO_CACHE, raising=False)
    if told is not None:
        monkeypatch.setenv(NO_CACHE, told)
    assert is_cache_off() is is_off


def test_without_a_cache_nothing_is_written_and_nothing_read(
    leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = CachedEncoder(CountingEncoder()).encode(TEXTS)
    before = {p: p.stat().st_mtime_ns for p in leakscope_home.rglob("*")}
    monkeypatch.setenv(NO_CACHE, "1")
    inner = CountingEncoder()
    np.testing.assert_array_equal(CachedEncoder(inner).encode([*TEXTS, "a new one"])[:-1], expected)
    assert len(inner.asked) == len(TEXTS) + 1
    assert {p: p.stat().st_mtime_ns for p in leakscope_home.rglob("*")} == before


def test_a_command_without_a_cache_leaves_none(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path, leakscope_home: Path
) -> None:
    given = shlex.split(f"train --encoder mlm:{tiny_bert} --attack prior --corpus {corpus} --json")
    core(*given, "--out", tmp_path / "one", "--no-cache").json()
    assert not (leakscope_home / "embeddings").exists()
    assert NO_CACHE not in os.environ
    core(*given, "--out", tmp_path / "two").json()
    assert (leakscope_home / "embeddings").exists()


def test_every_command_that_encodes_has_the_switch() -> None:
    from test_cli_files import parsers

    from leakscope.core.cli import COMMANDS, build_parser
    from leakscope.dashboard.server import command

    found = dict(parsers(build_parser(commands={"serve": command, **COMMANDS}), ""))
    without = {name.split()[0] for name, options in found.items() if "--no-cache" not in options}
    encoding_none = {"audit-mechanism", "membership", "memorise", "report", "cache", "list"}
    assert without == encoding_none, "these encode no text of the user's"


def test_maps_are_not_kept_either(leakscope_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakscope.core.projection.layout_cache import project_cached
    from leakscope.core.projection.spec import ProjectionSpec

    monkeypatch.setenv(NO_CACHE, "1")
    vectors = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
    project_cached(vectors, ProjectionSpec(method="pca"))
    assert not (leakscope_home / "layouts").exists()


def test_processes_of_a_server_inherit_the_switch() -> None:
    program = "from leakscope.core.storage.encryption import is_cache_off; print(is_cache_off())"
    out = run_python(program, env={**os.environ, NO_CACHE: "1"})
    assert out.stdout.strip() == "True"


# A key


def test_encrypted_vectors_come_back_bit_equal(keyed: None, tmp_path: Path) -> None:
    expected = CountingEncoder().encode(TEXTS)
    cached = CachedEncoder(CountingEncoder(), tmp_path, block_size=10)
    np.testing.assert_array_equal(cached.encode(TEXTS), expected)
    inner = CountingEncoder()
    again = CachedEncoder(inner, tmp_path).encode([TEXTS[3], TEXTS[3], *TEXTS])
    np.testing.assert_array_equal(again[2:], expected)
    assert inner.asked == [] and len(list_locked(cached.folder)) == 3


def test_sparse_vectors_are_encrypted_as_well(keyed: None, tmp_path: Path) -> None:
    from scipy import sparse

    lock = find_lock(tmp_path)
    assert lock is not None
    shelf = EncryptedShards(tmp_path, "e-float32", 50, "tfidf", lock)
    vectors = sparse.random_array((4, 50), density=0.1, rng=0, dtype=np.float32).tocsr()
    path = shelf.write([shelf.key(text) for text in TEXTS[:4]], vectors)
    assert (shelf.vectors(path) != vectors).nnz == 0


def test_nothing_on_disk_can_be_told_by_guessing(
    leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = CountingEncoder()
    vectors = CachedEncoder(inner).encode(TEXTS)
    guesses = [
        inner.fingerprint[:32].encode(),
        inner.name.encode(),
        vectors[0].tobytes(),
        *(text_key(text) for text in TEXTS),
    ]

    def found() -> list[bytes]:
        files = [p for p in (leakscope_home / "embeddings").rglob("*") if p.is_file()]
        whole = b"".join(str(p).encode() + p.read_bytes() for p in files)
        return [guess for guess in guesses if guess in whole]

    assert found() == guesses, "unencrypted, each of them is there"
    (shard,) = list_shards(CachedEncoder(inner).folder)
    shard.unlink()
    shard.parent.rmdir()
    pytest.importorskip("cryptography")
    monkeypatch.setattr("leakscope.core.storage.encryption.COST", 2**10)
    monkeypatch.setenv(KEY, PHRASE)
    CachedEncoder(inner).encode(TEXTS)
    assert found() == []


def test_the_same_text_and_key_have_other_names_in_another_cache(
    keyed: None, tmp_path: Path
) -> None:
    one, two = find_lock(tmp_path / "a"), find_lock(tmp_path / "b")
    assert one is not None and two is not None
    assert one.name(b"text", 16) != two.name(b"text", 16)
    assert find_lock(tmp_path / "a") == one and repr(one) == "Lock()"


def test_a_wrong_key_is_refused_and_changes_nothing(
    keyed: None,
    core: Any,
    corpus: Path,
    leakscope_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    before = {p: p.read_bytes() for p in leakscope_home.rglob("*") if p.is_file()}
    monkeypatch.setenv(KEY, "another phrase")
    told = "not the one that encrypts .*--no-cache goes on.*cache clear --kind embeddings"
    with pytest.raises(InvalidInputError, match=told):
        CachedEncoder(CountingEncoder()).encode(["new"])
    refused = core("evaluate", "--attack", "prior", "--texts", corpus).refusal()
    assert "not the one that encrypts" in refused
    assert {p: p.read_bytes() for p in leakscope_home.rglob("*") if p.is_file()} == before
    monkeypatch.setenv(NO_CACHE, "1")
    CachedEncoder(CountingEncoder()).encode(["new"])
    monkeypatch.delenv(NO_CACHE)
    monkeypatch.setenv(KEY, PHRASE)
    inner = CountingEncoder()
    CachedEncoder(inner).encode(TEXTS)
    assert inner.asked == [], "nothing was lost"


def test_a_lost_key_is_left_behind_by_clearing(
    keyed: None, core: Any, leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    monkeypatch.setenv(KEY, "another phrase")
    assert core("cache", "clear", "--kind", "embeddings").status == 0
    assert not (leakscope_home / "embeddings" / LOCK_FILE).exists()
    CachedEncoder(CountingEncoder()).encode(TEXTS)


def test_a_key_file_is_the_same_as_a_phrase(
    tmp_path: Path, keyed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = find_lock(tmp_path)
    (tmp_path / "key").write_text(f"{PHRASE}\n")
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "key"))
    with pytest.raises(InvalidInputError, match="not both"):
        find_lock(tmp_path)
    monkeypatch.delenv(KEY)
    assert find_lock(tmp_path) == lock


@pytest.mark.parametrize("phrase", ["", "short"])
def test_a_key_that_is_none_is_refused(phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, phrase)
    with pytest.raises(InvalidInputError, match=r"at least 12 characters, got \d.*unset it"):
        find_lock()


def test_the_least_length_of_a_key_is_one_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "é" * 11)
    with pytest.raises(InvalidInputError, match="at least 12 characters, got 11"):
        read_key()
    monkeypatch.setenv(KEY, "é" * 12)
    assert read_key() == ("é" * 12).encode()


def test_a_lock_says_what_a_guess_costs(keyed: None, tmp_path: Path) -> None:
    assert encryption.COST == 2**10, "of the tests"
    made = find_lock(tmp_path / "cheap")
    told = json.loads((tmp_path / "cheap" / LOCK_FILE).read_text())
    assert told["n"] == 2**10
    (tmp_path / "cheap" / LOCK_FILE).write_text(json.dumps(told | {"n": 2**11}))
    with pytest.raises(InvalidInputError, match="not the one that encrypts"):
        find_lock(tmp_path / "cheap")
    (tmp_path / "cheap" / LOCK_FILE).write_text(json.dumps(told | {"n": 2**40}))
    with pytest.raises(ArtifactError, match="is damaged"):
        find_lock(tmp_path / "cheap")
    assert made is not None


@pytest.mark.parametrize("file", ["missing", "/dev/zero", ".", "long", ""])
def test_a_key_file_that_is_none_is_refused(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("long").write_bytes(b"x" * 5000)
    monkeypatch.setenv(KEY_FILE, file)
    with pytest.raises(InvalidInputError, match=r"cannot be read: .* Name a file"):
        find_lock()


def test_without_the_package_nothing_is_written_unencrypted(
    leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, PHRASE)
    monkeypatch.setattr("leakscope.core.storage.encryption.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pip install cryptography=="):
        CachedEncoder(CountingEncoder()).encode(TEXTS)
    assert list(leakscope_home.rglob("*")) == []


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.5, 0.999])
def test_an_altered_encrypted_shard_is_refused_by_name(
    keyed: None, tmp_path: Path, share: float
) -> None:
    cached = CachedEncoder(CountingEncoder(), tmp_path)
    cached.encode(TEXTS)
    (shard,) = list_locked(cached.folder)
    content = bytearray(shard.read_bytes())
    content[int(share * len(content))] ^= 4
    shard.write_bytes(content)
    with pytest.raises(ArtifactError, match=f"{shard.name} is truncated.*Move this file away"):
        CachedEncoder(CountingEncoder(), tmp_path).encode(TEXTS)


@pytest.mark.parametrize("length", [0, 7, 70, 200, -1])
def test_a_truncated_encrypted_shard_is_refused_by_name(
    keyed: None, tmp_path: Path, length: int
) -> None:
    cached = CachedEncoder(CountingEncoder(), tmp_path)
    cached.encode(TEXTS)
    (shard,) = list_locked(cached.folder)
    os.truncate(shard, length if length >= 0 else shard.stat().st_size - 1)
    with pytest.raises(ArtifactError, match=shard.name):
        CachedEncoder(CountingEncoder(), tmp_path).encode(TEXTS)


def test_what_an_encrypted_text_is_found_by_hangs_on_the_key_of_its_cache(
    keyed: None, tmp_path: Path
) -> None:
    found = set[bytes]()
    for folder in (tmp_path / "a", tmp_path / "b"):
        lock = find_lock(folder)
        assert lock is not None
        found.add(EncryptedShards(folder, "e-float32", 4, "tfidf", lock).key(TEXTS[0]))
    assert len(found) == 2 and text_key(TEXTS[0]) not in found


def test_a_shard_opens_in_the_folder_of_its_encoder_alone(keyed: None, tmp_path: Path) -> None:
    lock = find_lock(tmp_path)
    assert lock is not None
    one, two = (EncryptedShards(tmp_path, name, 4, name, lock) for name in ("one", "two"))
    key = one.key(TEXTS[0])
    path = one.write([key], np.ones((1, 4), np.float32))
    two.folder.mkdir()
    moved = path.rename(two.folder / path.name)
    for read in (two.keys, two.vectors, lambda shard: name_locked(shard, lock)):
        with pytest.raises(ArtifactError, match=path.name):
            read(moved)
    assert one.keys(moved.rename(path)) == [key]


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"format": 1, "salt": 3, "check": ""}'])
def test_a_damaged_lock_names_the_remedy(keyed: None, tmp_path: Path, damage: str) -> None:
    find_lock(tmp_path)
    (tmp_path / LOCK_FILE).write_text(damage)
    with pytest.raises(ArtifactError, match="is damaged"):
        find_lock(tmp_path)


def test_what_was_sealed_opens_with_its_key_and_context_alone(keyed: None) -> None:
    lock = Lock(b"a" * 32, b"b" * 32)
    sealed = lock.seal(b"content", b"here")
    assert lock.open(sealed, b"here") == b"content" and lock.seal(b"content", b"here") != sealed
    for other, context in ((lock, b"there"), (Lock(b"c" * 32, b"b" * 32), b"here")):
        with pytest.raises(ValueError, match="does not open"):
            other.open(sealed, context)


def test_no_key_travels_with_an_encoder(keyed: None, tmp_path: Path) -> None:
    cached = CachedEncoder(CountingEncoder(), tmp_path)
    cached.encode(TEXTS)
    lock = find_lock(tmp_path)
    assert lock is not None
    whole = pickle.dumps(cached)
    assert not any(part in whole for part in (lock.sealing, lock.naming, PHRASE.encode()))
    inner = pickle.loads(whole)
    inner._encoder.asked.clear()
    inner.encode(TEXTS)
    assert inner._encoder.asked == []


def test_a_forgotten_key_is_noted(
    keyed: None,
    core: Any,
    corpus: Path,
    tiny_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    monkeypatch.delenv(KEY)
    given = ["train", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--corpus", corpus]
    assert "no key is given" in core(*given, "--out", tmp_path / "a").err
    assert "no key is given" not in core(*given, "--out", tmp_path / "b", "--no-cache").err


# What is kept


def test_the_list_says_what_is_kept(core: Any, filled: Path) -> None:
    told = core("cache", "list", "--json").json()
    assert told["folder"] == str(filled)
    by_kind = {each["kind"]: each for each in told["kept"]}
    assert set(by_kind) == set(CACHED) and len(told["kept"]) == len(CACHED)
    of = by_kind["embeddings"]
    assert (of["encoder"], of["n_vectors"], of["n_files"]) == ("counting", len(TEXTS), 1)
    on_disk = sum(p.stat().st_size for p in (filled / "embeddings").rglob("*") if p.is_file())
    assert of["n_bytes"] == on_disk and 0 <= of["hours"] < 1 and of["is_encrypted"] is False
    assert by_kind["layouts"]["encoder"] == "of layouts"
    shown = core("cache", "list").out
    assert "counting" in shown and "30 vectors" in shown and str(filled) in shown


def test_the_list_names_encrypted_encoders_to_those_with_the_key(
    keyed: None, core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    (with_key,) = core("cache", "list", "--json").json()["kept"]
    monkeypatch.delenv(KEY)
    (without,) = core("cache", "list", "--json").json()["kept"]
    assert with_key["encoder"] == "counting" and without["encoder"] == ""
    assert with_key["n_vectors"] == without["n_vectors"] == len(TEXTS)
    assert with_key["is_encrypted"] and without["is_encrypted"]


def left(home: Path) -> set[str]:
    return {kind for kind in CACHED if {p.name for p in (home / kind).glob("*")} - {MARKER}}


def test_clearing_takes_all_but_finished_cells(core: Any, filled: Path) -> None:
    told = core("cache", "clear", "--json").json()
    assert {each["kind"] for each in told["removed"]} == set(CACHED) - {"studies"}
    assert left(filled) == {"studies"}
    assert core("cache", "clear").out.startswith("0 removed")
    core("cache", "clear", "--kind", "studies")
    assert left(filled) == set()


def test_clearing_can_be_by_kind_encoder_and_age(core: Any, filled: Path) -> None:
    core("cache", "clear", "--kind", "layouts", "--kind", "backends")
    assert left(filled) == set(CACHED) - {"layouts", "backends"}
    core("cache", "clear", "--encoder", "of deniability")
    assert left(filled) == {"embeddings", "representations", "compiled", "studies"}
    core("cache", "clear", "--older-than", "1")
    assert "embeddings" in left(filled)
    for path in (filled / "embeddings").rglob("*"):
        os.utime(path, (0, 0))
    core("cache", "clear", "--older-than", "1")
    assert left(filled) == {"representations", "compiled", "studies"}
    assert "from 0" in core("cache", "clear", "--older-than", "nan").refusal()


def test_only_unencrypted_vectors_can_be_cleared(
    filled: Path, core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv(KEY, PHRASE)
    CachedEncoder(CountingEncoder()).encode(TEXTS)
    assert len(core("cache", "clear", "--unencrypted", "--json").json()["removed"]) == 1
    inner = CountingEncoder()
    CachedEncoder(inner).encode(TEXTS)
    assert inner.asked == [] and left(filled) == set(CACHED)


def test_clearing_follows_no_links(core: Any, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    link = filled / "layouts" / ("c" * 64)
    link.symlink_to(tmp_path / "mine")
    core("cache", "clear")
    assert left(filled) == {"studies", "layouts"} and (tmp_path / "mine" / "file").exists()
    assert link.is_symlink()


def test_an_empty_cache_is_no_mistake(core: Any, leakscope_home: Path) -> None:
    assert json.loads(core("cache", "list", "--json").out)["kept"] == []
    assert core("cache", "clear").status == 0
    (leakscope_home / "embeddings").write_text("a file")
    assert core("cache", "list").status == 0
