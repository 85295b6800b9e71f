"""Where nothing can be written: what needs no disk goes on, the rest says so before its work."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browsing import ROOT

from leakscope.core.defences.deniability import measured
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import StorageError
from leakscope.core.storage.artifacts import check_writable
from leakscope.core.storage.cache_folder import cache_dir

STRANGER = 54321
"""A user that the system does not know, as containers are often given."""


@pytest.fixture
def labelled(small_texts: Sequence[str], tmp_path: Path) -> Path:
    """A table of texts with two classes."""
    path = tmp_path / "labelled.csv"
    rows = (f'"{text}",{"ab"[i % 2]}' for i, text in enumerate(small_texts))
    path.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    return path


@pytest.fixture
def no_place(tmp_path: Path) -> Path:
    """A folder that nobody can make, root included: it would lie in a file."""
    (tmp_path / "file").touch()
    return tmp_path / "file" / "folder"


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user of whom the system knows no home folder."""

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("HOME", "LEAKSCOPE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where an encoder is asked for anything."""

    def encode(*_: object, **__: object) -> None:
        pytest.fail("work was done before the place for it was looked at")

    for name in ("encode", "encode_layer", "embed_token_vectors"):
        monkeypatch.setattr(TransformerEncoder, name, encode)


@pytest.mark.parametrize(
    "command",
    [
        "train --encoder mlm:{bert} --attack prior --corpus {texts}",
        "defend --encoder mlm:{bert} --defence leace --label-column label --texts {texts}",
        "train-private --encoder mlm:{bert} --epsilon 3 --delta 1e-4 --label-column label "
        "--texts {texts}",
        "fit --encoder tfidf --corpus {texts}",
    ],
)
def test_a_result_that_could_not_be_kept_is_told_before_the_work(
    core: Any, command: str, labelled: Path, no_place: Path, tiny_bert: Path, no_work: None
) -> None:
    told = core(command.format(bert=tiny_bert, texts=labelled), "--out", no_place).refusal()
    assert "Could not write" in told and "choose another folder" in told


@pytest.mark.parametrize(
    "command",
    [
        "study encoders --target {texts} --other {texts} --encoders mlm:{bert} --attacks prior "
        "--domains in --n-auxiliary 60 --n-targets 20",
        "tune --attack probe --target {texts} --encoder mlm:{bert} --trials 2 --n-auxiliary 60",
    ],
)
def test_cells_that_could_not_be_kept_are_told_before_they_are_measured(
    core: Any,
    command: str,
    labelled: Path,
    no_home: None,
    tiny_bert: Path,
    no_work: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = command.format(bert=tiny_bert, texts=labelled)
    told = core(given, "--out", tmp_path / "found.json").refusal()
    assert "No home folder is known: set LEAKSCOPE_HOME to a folder that can be written" in told
    monkeypatch.undo()  # ends `no_work`, too: the remedy is followed
    monkeypatch.setenv("LEAKSCOPE_HOME", str(tmp_path / "home"))
    assert core(given, "--out", tmp_path / "found.json").status == 0
    assert (tmp_path / "home" / "studies").is_dir()


def test_statistics_that_could_not_be_kept_are_told_before_they_are_measured(
    tiny_encoder: TransformerEncoder, no_home: None, no_work: None
) -> None:
    with pytest.raises(StorageError, match="set LEAKSCOPE_HOME"):
        measured.measure_statistics(tiny_encoder, n_draws=10)


@pytest.mark.slow
def test_without_a_home_folder_commands_go_on(
    core: Any, labelled: Path, no_home: None, tiny_bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not cache_dir().exists()
    assert "minilm" in core("list").out
    assert core("cache", "list", "--json").json()["kept"] == []
    told = core(
        f"evaluate --attack retrieval --encoder mlm:{tiny_bert} --texts {labelled} --limit 20"
    )
    assert told.status == 0 and "prior only" in told.out
    (said,) = {record.message for record in caplog.records if "cannot be cached" in record.message}
    assert "No home folder is known: set LEAKSCOPE_HOME to a folder that can be written" in said
    assert not cache_dir().exists()


def test_a_folder_that_takes_files_is_left_as_it_was(tmp_path: Path) -> None:
    check_writable(tmp_path)
    check_writable(tmp_path / "new" / "newer")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def strange_place() -> Iterator[Path]:
    """A folder that others may read: those of pytest are closed to them."""
    folder = Path(tempfile.mkdtemp(prefix="leakscope-test-"))
    folder.chmod(0o755)
    yield folder
    for each in folder.iterdir():
        each.chmod(0o700)
    shutil.rmtree(folder)


def run_by_another(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command where nothing of this user's can be read: by one that nobody knows, if root."""
    be = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    be *= os.getuid() == 0
    found = [*be, sys.executable, "-c", "import leakscope"]
    if subprocess.run(found, check=False, cwd=ROOT, capture_output=True).returncode:
        pytest.skip("other users may not run this checkout")
    bare = {
        "PATH": os.environ["PATH"],
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    return subprocess.run(
        [*be, sys.executable, "-m", "leakscope", *command],
        env=bare,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HOME", "LEAKSCOPE_HOME", ""])
def test_a_home_that_is_closed_or_unknown_ends_no_command(
    strange_place: Path, small_texts: Sequence[str], name: str
) -> None:
    """Another process, so that all libraries, too, look for a home folder in vain."""
    if not name and os.getuid() != 0:
        pytest.skip("only root can be a user whom the system does not know")
    closed, texts = strange_place / "closed", strange_place / "texts.txt"
    closed.mkdir(mode=0)
    texts.write_text("\n".join(small_texts[:40]), encoding="utf-8")
    homes = {name: str(closed / "below")} if name else {}
    for command in (["list"], ["cache", "list"]):
        done = run_by_another(*command, **homes)
        assert done.returncode == 0, done.stderr
    read = ["evaluate", "--attack", "probe_mlc", "--texts", str(texts)]
    done = run_by_another(*read, **homes)
    assert done.returncode == 0 and "prior only" in done.stdout, done.stderr
    assert "bug in Leakscope" not in done.stderr
    fit = ["train", "--attack", "prior", "--corpus", str(texts), "--out", str(closed / "out")]
    refused = run_by_another(*fit, **homes)
    assert refused.returncode == 2 and "Permission denied" in refused.stderr
    assert "bug in Leakscope" not in refused.stderr
    study = shlex.split(
        f"study encoders --target {texts!s} --other {texts!s} --attacks prior "
        f"--out {strange_place / 'out.json'!s}"
    )
    strange_place.chmod(0o777)
    refused = run_by_another(*study, **homes)
    said = {
        "HOME": "is closed to this user",
        "LEAKSCOPE_HOME": "may not enter",
        "": "No home folder is known",
    }[name]
    assert refused.returncode == 2, refused.stderr
    assert f"{said}: set LEAKSCOPE_HOME to a folder that can be written" in refused.stderr
