"""Fetch the collections whose licence allows it: `python -m scripts.fetch_data FOLDER`.

Each source is read from its repository at one commit, made into a table and written as Parquet. It
is written only where its sha256 is that of `docs/data.json`, so that a study measures on the same
texts as the published table.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from leakscope.core.storage.atomic_files import atomic_write
from tools.data import load_facts

ROOT = Path(__file__).resolve().parents[1]
Files = Mapping[PurePosixPath, bytes]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a collection comes from, and how its table is made.

    Attributes
    ----------
    repository : str
        `OWNER/NAME` on GitHub.
    commit : str
        Its full name.
    pattern : str
        The files that are read, as `pathlib` matches them.
    to_table : callable
        Makes a table of those files, by their paths.
    compression_level : int, optional
        zstd's level; the default of the writer where none is given.
    tables : tuple of str
        The published tables that need no other collection.
    """

    repository: str
    commit: str
    pattern: str
    to_table: Callable[[Files], pd.DataFrame]
    compression_level: int | None = None
    tables: tuple[str, ...] = ()

    @property
    def archive(self) -> str:
        """The file name of the archive of the repository at the commit."""
        return f"{self.repository.partition('/')[2]}-{self.commit}.tar.gz"

    @property
    def url(self) -> str:
        """The address at which GitHub serves the archive."""
        return f"https://codeload.github.com/{self.repository}/tar.gz/{self.commit}"


def banking77(files: Files) -> pd.DataFrame:
    """Build a table of bank customers' questions, intents and splits from the archive's files."""
    parts = [
        pd.read_csv(
            io.BytesIO(files[PurePosixPath(f"banking_data/{split}.csv")]),
            dtype=str,
            keep_default_na=False,
        )
        .rename(columns={"category": "label"})
        .assign(split=split)
        for split in ("train", "test")
    ]
    return pd.concat(parts, ignore_index=True)


def web_treebank(files: Files) -> pd.DataFrame:
    """Build a table of sentences from the archive's files, without repeats within a genre."""
    rows = []
    for path in sorted(files):
        lines = files[path].decode("utf-8").splitlines()
        texts = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
        document = path.name.removesuffix(".xml.conllu")
        rows += [
            (path.parent.name, document, i, " ".join(text.split())) for i, text in enumerate(texts)
        ]
    table = pd.DataFrame(rows, columns=["genre", "doc_id", "sent_id", "text"])
    table = table.drop_duplicates(["genre", "text"], ignore_index=True)
    return table.astype({"sent_id": "int16"})


SOURCES: dict[str, Source] = {
    "banking77.parquet": Source(
        repository="PolyAI-LDN/task-specific-datasets",
        commit="57ec275d8078af65b7731c2a98be812d844a6d6b",
        pattern="banking_data/*.csv",
        to_table=banking77,
        tables=("tradeoff-banking",),
    ),
    "ewt_web_and_email.parquet": Source(
        repository="UniversalDependencies/UD_English-EWT",
        commit="15d613d8447b3478787d4c278730a1e48a945efb",
        pattern="not-to-release/sources/*/*.conllu",
        to_table=web_treebank,
        compression_level=19,
        tables=("memorisation",),
    ),
}
"""By the name of the file. Both are under a Creative Commons licence: BY 4.0, and BY-SA 4.0."""


class FetchError(Exception):
    """A source that cannot be read, or that is another than the tables were measured on."""


def read_archive(archive: bytes, pattern: str) -> Files:
    """Read a gzipped tar archive; return the contents of files that match a pattern, by path.

    Raises
    ------
    FetchError
        Where the bytes are no such archive.
    """
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                content = tar.extractfile(member) if path.match(pattern) else None
                if content is not None:
                    found[path] = content.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FetchError(f"The archive cannot be read: {error}. Fetch it again.") from error
    return found


def download(url: str) -> bytes:
    """Fetch an address and return the bytes that it serves.

    Raises
    ------
    FetchError
        Where nothing is served.
    """
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            return bytes(reply.read())
    except (urllib.error.URLError, OSError) as error:
        raise FetchError(
            f"{url} cannot be fetched: {error}. Check the connection; or fetch the archive "
            "elsewhere and name its folder by --archives."
        ) from error


def build(name: str, archive: bytes) -> bytes:
    """Build a collection as Parquet bytes from an archive; raise if its checksum is unexpected.

    Raises
    ------
    FetchError
        Where the result is not the collection that the tables were measured on.
    """
    source = SOURCES[name]
    files = read_archive(archive, source.pattern)
    try:
        table = source.to_table(files)
    except KeyError as error:
        raise FetchError(f"{name}: the archive has no {error}. Fetch it again.") from error
    written = io.BytesIO()
    table.to_parquet(
        written, index=False, compression="zstd", compression_level=source.compression_level
    )
    expected = next(fact["sha256"] for fact in load_facts() if fact["file"] == name)
    found = hashlib.sha256(written.getvalue()).hexdigest()
    if found != expected:
        raise FetchError(
            f"{name}: its sha256 is {found} ({len(table):,} rows); {expected} was expected. "
            "Fetch the archive again, and install the pinned packages (make run, make test)."
        )
    return written.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch and write collections, and print the commands that repeat the tables made from them."""
    parser = argparse.ArgumentParser(prog="python -m scripts.fetch_data", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the collections are written")
    parser.add_argument(
        "--only", nargs="+", choices=SOURCES, default=[*SOURCES], help="these collections alone"
    )
    parser.add_argument(
        "--archives", type=Path, help="a folder with the archives; nothing is then fetched"
    )
    args = parser.parse_args(arguments)
    for name in args.only:
        source = SOURCES[name]
        target = args.folder / name
        try:
            if args.archives is None:
                print(f"{name}: fetching {source.url}", file=sys.stderr)
                archive = download(source.url)
            else:
                archive = (args.archives / source.archive).read_bytes()
            args.folder.mkdir(parents=True, exist_ok=True)
            atomic_write(target, build(name, archive))
        except (FetchError, OSError) as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{target}: written; its sha256 is as published.")
        for table in source.tables:
            spec = Path("results", f"{table}.spec.json")
            study = json.loads((ROOT / spec).read_text("utf-8"))["study"]
            command = f"leakscope study {study} --spec {spec} --files {args.folder}"
            print(f"  To repeat its table: .venv/bin/{command}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
