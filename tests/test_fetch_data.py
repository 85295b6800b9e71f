"""Collections that are fetched: shaped as documented, and never other than published."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from leakscope.core.storage.artifacts import digest_file
from scripts import fetch_data
from scripts.fetch_data import SOURCES, FetchError, build, main, read_archive
from tools import data
from tools.data import load_facts, tables_by_file

TREEBANK = """# newdoc id = reviews-1
# text = Highly  recommended
1\tHighly\thighly
# text = Go there.
# text = Highly recommended
"""


def packed(files: dict[str, str]) -> bytes:
    """Return files as GitHub packs a repository: gzipped, below a folder of its name."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"repository-commit/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


BANKING = {
    "banking_data/train.csv": 'text,category\n"Where, please,  is it?",arrival\n',
    "banking_data/test.csv": "text,category\nNA,atm\n",
    "banking_data/categories.json": "[]",
}


def test_questions_are_read_with_their_intent_and_split() -> None:
    files = read_archive(packed(BANKING), SOURCES["banking77.parquet"].pattern)
    table = fetch_data.banking77(files)
    assert table.to_dict("list") == {
        "text": ["Where, please,  is it?", "NA"],
        "label": ["arrival", "atm"],
        "split": ["train", "test"],
    }


def test_sentences_keep_their_order_and_repeats_of_a_genre_are_dropped() -> None:
    table = fetch_data.web_treebank(
        {
            PurePosixPath("sources/weblog/b.xml.conllu"): b"# text = Go there.\n",
            PurePosixPath("sources/reviews/1.xml.conllu"): TREEBANK.encode(),
        }
    )
    assert table.to_numpy().tolist() == [
        ["reviews", "1", 0, "Highly recommended"],
        ["reviews", "1", 1, "Go there."],
        ["weblog", "b", 0, "Go there."],
    ]


def test_what_is_not_the_published_collection_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SOURCES["banking77.parquet"]
    (tmp_path / source.archive).write_bytes(packed(BANKING))
    asked = [str(tmp_path / "data"), "--only", "banking77.parquet", "--archives", str(tmp_path)]
    assert main(asked) == 1
    assert "sha256" in capsys.readouterr().err
    assert not (tmp_path / "data" / "banking77.parquet").exists()


@pytest.mark.parametrize(
    "archive",
    [b"", b"none", packed(BANKING)[:100], packed({})],
    ids=["empty", "no archive", "cut", "without files"],
)
def test_a_damaged_archive_is_named(archive: bytes) -> None:
    with pytest.raises(FetchError, match=r"archive.*[Ff]etch"):
        build("banking77.parquet", archive)


def test_each_source_is_the_documented_one_and_repeats_a_published_table() -> None:
    facts = {fact["file"]: fact for fact in load_facts()}
    readers = tables_by_file()
    for name, source in SOURCES.items():
        assert facts[name]["sources"] == [f"{source.repository}@{source.commit[:8]}"]
        assert "CC BY" in facts[name]["licence"]
        for table in source.tables:
            others = {file for file, tables in readers.items() if table in tables} - {name}
            assert not others


def test_the_published_collection_is_written_and_its_study_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = fetch_data.banking77(read_archive(packed(BANKING), "banking_data/*.csv"))
    published = tmp_path / "published.parquet"
    table.to_parquet(published, index=False, compression="zstd")
    fact = {"file": "banking77.parquet", "sha256": digest_file(published)}
    monkeypatch.setattr(data, "FACTS", tmp_path / "facts.json")
    data.FACTS.write_text(json.dumps([fact]))
    monkeypatch.setattr(fetch_data, "download", lambda _: packed(BANKING))
    assert main([str(tmp_path), "--only", "banking77.parquet"]) == 0
    assert (tmp_path / "banking77.parquet").read_bytes() == published.read_bytes()
    assert "leakscope study tradeoff --spec results/tradeoff-banking" in capsys.readouterr().out
