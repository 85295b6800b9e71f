"""Finished means that all of it reads back: a file that is gone or cut short is made again.

Or the command refuses it by name, and what the refusal says to do helps.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.storage.artifacts import read_json, write_json
from leakscope.core.storage.cache_folder import MARKER
from tools.faults.tries import results_of

DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
}


@dataclass(frozen=True)
class Run:
    """A finished run: its command, the folders that it wrote to, and a copy of what it left."""

    again: Callable[[], Any]
    folders: tuple[Path, ...]
    copy: Path

    def files(self) -> Iterator[Path]:
        for folder in self.folders:
            found = (path for path in folder.rglob("*") if path.is_file())
            yield from sorted(path for path in found if path.name != MARKER)  # no result

    def results(self) -> list[dict[str, Any]]:
        """Return what is in the files; encoders that cells share are made where one needs them."""
        return [
            {name: what for name, what in results_of(folder).items() if "/encoders/" not in name}
            for folder in self.folders
        ]

    def restore(self) -> None:
        for i, folder in enumerate(self.folders):
            shutil.rmtree(folder)
            shutil.copytree(self.copy / str(i), folder)


@pytest.fixture
def news(tmp_path: Path, small_texts: list[str]) -> Path:
    path = tmp_path / "news.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label_name"])
        writer.writerows(
            [" ".join(small_texts[i : i + 4]), "ab"[i // 4 % 2]] for i in range(0, 400, 4)
        )
    return path


@pytest.fixture(params=["train", "fit", "study", "attributes", "tune"])
def finished(
    request: pytest.FixtureRequest,
    core: Any,
    news: Path,
    corpus: Path,
    tiny_bert: Path,
    tmp_path: Path,
    leakscope_home: Path,
) -> Run:
    out = tmp_path / "out"
    texts = f"--target {news} --other {news}"
    commands = {
        "train": f"train --encoder mlm:{tiny_bert} --attack prior --corpus {corpus} --out {out}",
        "fit": f"fit --encoder tfidf --corpus {corpus} --out {out}",
        "study": f"study encoders {texts} --n-auxiliary 120 --encoders tfidf hashing "
        f"--attacks probe --domains in --n-targets 10 --out {out / 'table.json'}",
        "attributes": f"study attributes {texts} --label-column label_name "
        "--attacks majority linear --encoders hashing --n-labels 2 --n-per-label 3 --seeds 0 "
        f"--out {out / 'table.json'}",
        "tune": f"tune --attack retrieval {texts} --n-auxiliary 120 --encoder hashing --trials 2 "
        f"--out {out / 'tuned.json'}",
    }
    given = f"{commands[request.param]} --json"
    core(given).json()
    studies = leakscope_home / "studies"
    folders = (out, studies) if studies.exists() else (out,)
    for i, folder in enumerate(folders):
        shutil.copytree(folder, tmp_path / "copy" / str(i))
    return Run(lambda: core(given), folders, tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGES)
def test_what_is_gone_or_cut_short_is_made_again_or_refused_with_what_helps(
    finished: Run, how: str, tmp_path: Path
) -> None:
    before = finished.results()
    files = list(finished.files())
    assert len(files) >= 2
    for path in files:
        DAMAGES[how](path)
        outcome = finished.again()
        if outcome.status != 0:
            told = outcome.refusal()
            assert str(path) in told and "ove it a" in told and "elete" not in told
            path.rename(tmp_path / "aside")
            outcome = finished.again()
        assert outcome.status == 0, f"{path}: {outcome.err}"
        assert finished.results() == before, path
        finished.restore()


def test_a_record_that_lacks_a_part_is_no_finished_run(
    core: Any, corpus: Path, tiny_bert: Path, trained: Path
) -> None:
    given = f"train --encoder mlm:{tiny_bert} --attack prior --corpus {corpus} --out {trained}"
    meta = read_json(trained / "model.json")
    del meta["training"]["held_out"]
    write_json(trained / "model.json", meta)
    assert core(given).status == 0
    assert "held_out" in read_json(trained / "model.json")["training"]


@pytest.mark.parametrize("how", DAMAGES)
def test_an_encoder_that_cells_share_is_fitted_again_where_it_is_damaged(
    core: Any, news: Path, tmp_path: Path, leakscope_home: Path, how: str
) -> None:
    def rows(*attacks: str) -> Any:
        return core(
            f"study encoders --target {news} --other {news} --encoders tfidf --attacks "
            f"{' '.join(attacks)} --domains in --n-targets 10 --out {tmp_path / 't.json'} --json"
        ).json()["rows"]

    (first,) = rows("probe")
    files = sorted((leakscope_home / "studies").rglob("encoders/*/*"))
    assert len(files) == 2
    for path, attack in zip(files, ("prior", "retrieval"), strict=True):
        DAMAGES[how](path)
        both = rows("probe", attack)
        assert both[0] == first and "token_set_f1" in both[1]


def test_an_encoder_whose_code_is_another_is_fitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakscope.core.encoders.registry import ENCODERS
    from leakscope.core.studies.domains import open_encoder

    fitted: list[int] = []

    def texts() -> list[str]:
        fitted.append(1)
        return [f"The minister of state {i} met doctors." for i in range(30)]

    def opened() -> None:
        open_encoder("hashing", {"target": "a"}, texts, tmp_path, contents=["b"])

    opened()
    opened()
    assert len(fitted) == 1
    entry = ENCODERS["hashing"]
    monkeypatch.setitem(ENCODERS, "hashing", replace(entry, version=entry.version + 1))
    opened()
    assert len(fitted) == 2, "the vectors of its former code would be shown as new"


@pytest.mark.parametrize("how", DAMAGES)
def test_an_attack_that_cells_share_is_trained_again_where_it_is_damaged(
    tmp_path: Path, how: str
) -> None:
    from leakscope.core.encoders.fitted import make_encoder
    from leakscope.core.studies.names.study import _fitted_attack

    texts = [f"The minister of state {i} met doctors." for i in range(30)]
    encoder = make_encoder("hashing").fit(texts)
    cell = {"attack": "prior", "settings": {}, "seed": 0, "part": "4"}
    one: Any = _fitted_attack(cell, encoder, texts, tmp_path)
    files = sorted((tmp_path / "attacks").rglob("model*"))
    whole = [path.read_bytes() for path in files]
    assert len(files) == 2
    for path in files:
        DAMAGES[how](path)
        again: Any = _fitted_attack(cell | {"part": "40"}, encoder, texts, tmp_path)
        assert again.vocabulary_ == one.vocabulary_
        assert [each.read_bytes() for each in files] == whole
