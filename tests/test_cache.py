from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from counting import CountingEncoder

from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.shards import list_shards, write_shard
from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError, StorageError
from leakscope.core.protocols import Encoder, WhiteBoxEncoder
from leakscope.core.storage import encryption
from leakscope.core.storage.atomic_files import unfinished

if TYPE_CHECKING:  # a subprocess imports this file, and should not wait for PyTorch
    from leakscope.core.encoders.transformer import TransformerEncoder


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
    assert seen[3:] == [(1.0, "All 50 texts were already encoded")]

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
    with pytest.raises(ArtifactError, match=f"{filled[2].name} is truncated.*Move this file away"):
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
    from leakscope.core.encoders.shards import text_key

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


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_folder_that_cannot_be_made_is_done_without_and_told_once(
    inner: CountingEncoder,
    tmp_path: Path,
    is_locked: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    if is_locked:
        monkeypatch.setenv("LEAKSCOPE_KEY", "a phrase of some length")
    derived: list[bytes] = []
    of_phrase = encryption._derive.__wrapped__
    monkeypatch.setattr(
        encryption, "_derive", lambda *given: derived.append(given[0]) or of_phrase(*given)
    )
    encoder = CachedEncoder(inner, blocker, block_size=4)
    for _ in range(2):
        assert np.array_equal(encoder.encode(TEXTS), inner.encode(TEXTS))
    assert len(derived) == is_locked, "which takes most of a second"
    (record,) = caplog.records
    assert "cannot be cached, so texts are encoded again" in record.message
    assert "Could not write" in record.message and "choose another folder" in record.message


def test_a_full_disk_is_told_since_it_can_be_emptied(
    inner: CountingEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("leakscope.core.encoders.shards.atomic_write", full)
    with pytest.raises(StorageError, match="Free some disk space"):
        CachedEncoder(inner, tmp_path).encode(["a"])


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
    left = filled[0].with_name(".killed.unfinished")
    left.write_bytes(b"half")
    with unfinished(filled[0].parent) as begun:  # as another process would hold it
        CachedEncoder(inner, tmp_path).encode(["new"])
        assert begun.path.exists()
    assert not left.exists()
