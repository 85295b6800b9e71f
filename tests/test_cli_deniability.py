from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core.defences.metric_dp.files import BATCH_ROWS, map_batches, privatize_file
from leakscope.core.errors import InvalidInputError, StorageError


def test_deniability_prints_the_documented_json(core: Any, tiny_bert: Path) -> None:
    answer = core(
        f"deniability --encoder mlm:{tiny_bert} --text 'the money river' --eta 20 --n-draws 200 "
        "--json"
    ).json()
    assert answer["eta"] == 20 and answer["n_draws"] == 200
    assert [t["token"] for t in answer["tokens"]] == ["the", "money", "river"]
    for token in answer["tokens"]:
        assert 0 <= token["n_w"] <= 200 and 1 <= token["s_w"] <= 200
        counts = [r["count"] for r in token["replacements"]]
        assert counts == sorted(counts, reverse=True) and sum(counts) <= 200
        own = [r["count"] for r in token["replacements"] if r["token"] == token["token"]]
        assert own in ([], [token["n_w"]])
        assert (token["eta_star_median"] <= 20) == (token["n_w"] >= 100)
    assert answer["privatized"]


def test_deniability_follows_eta(core: Any, tiny_bert: Path) -> None:
    def come_back(eta: float) -> int:
        answer = core(
            f"deniability --encoder mlm:{tiny_bert} --text 'money river' --eta {eta} "
            "--n-draws 200 --json"
        ).json()
        return sum(token["n_w"] for token in answer["tokens"])

    assert come_back(10) < come_back(200) < come_back(20_000) == 400


def test_deniability_says_what_eta_promises(core: Any, tiny_bert: Path) -> None:
    given = shlex.split(f"deniability --encoder mlm:{tiny_bert} --text 'money river' --n-draws 50")
    told = core(*given, "--eta", "50").out
    assert (
        "At η = 50, whoever sees the output may tell apart" in told
        and "Ordinary differential privacy" in told
    )
    small, large = (core(*given, "--eta", eta, "--json").json()["promise"] for eta in (1, 10))
    for pair in ("nearest", "median", "whole"):
        assert large[pair]["epsilon"] == pytest.approx(10 * small[pair]["epsilon"])
        assert small[pair]["epsilon"] == pytest.approx(small[pair]["distance"])
    assert small["whole"]["epsilon"] > small["median"]["epsilon"]


@pytest.mark.parametrize("mechanism", ["text_to_text", "sequence_representation"])
def test_privatising_says_what_eta_promises_and_nothing_of_the_texts(
    core: Any, tiny_bert: Path, tmp_path: Path, mechanism: str
) -> None:
    source = tmp_path / "a.parquet"
    pd.DataFrame({"text": ["the garden bridge", "money river"]}).to_parquet(source)
    told = privatize(core, tiny_bert, source, tmp_path / "b.parquet", "--mechanism", mechanism)
    assert (
        re.search(r"(?s)may tell apart .* with odds of up to 10", told.out)
        and "practically no guarantee" in told.out
    )
    assert "garden" not in told.out
    summary = privatize(core, tiny_bert, source, tmp_path / "c.parquet", "--json").json()
    assert summary["promise"]["nearest"]["epsilon"] > 10


# Files --------------------------------------------------------------------------------------


def privatize(core: Any, tiny_bert: Path, source: Path, out: Path, *more: object) -> Any:
    return core(f"privatize --encoder mlm:{tiny_bert} --eta 1e6 --in {source} --out {out}", *more)


def test_lines_stay_lines(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_bytes(b"Money RIVER\n\n  \r\nthe garden\r\nwithout an end: bridge")
    summary = privatize(core, tiny_bert, source, out, "--json").json()
    assert summary["rows"] == 5 and summary["mechanism"] == "text_to_text"
    lines = out.read_bytes().split(b"\n")
    assert lines[0] == b"money river" and lines[1] == b"" and lines[3] == b"the garden\r"
    assert lines[4].endswith(b"bridge") and b"without" not in lines[4]


def test_tables_keep_order_and_other_columns(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    rows = [["1", "money, river", "x;y"], ["2", "", 'a "b"'], ["3", "garden", "line\nbreak"]]
    source, out = tmp_path / "a.csv", tmp_path / "b.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text", "note"], *rows])
    assert privatize(core, tiny_bert, source, out).status == 0
    with out.open(newline="") as file:
        header, *found = list(csv.reader(file))
    assert header == ["id", "text", "note"]
    assert [(r[0], r[2]) for r in found] == [(r[0], r[2]) for r in rows]
    assert found[0][1].split()[-1] == "river" and found[1][1] == "" and found[2][1] == "garden"


def test_jsonl_keeps_other_fields(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    records = [{"text": "money", "n": [1, {"é": None}]}, {"text": None, "n": 2}]
    source, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_text("\n".join(json.dumps(r) for r in records))
    assert privatize(core, tiny_bert, source, out).status == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == records


def test_parquet_keeps_types_and_rows_over_batches(
    core: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    n = BATCH_ROWS + 7
    frame = pd.DataFrame(
        {
            "id": np.arange(n, dtype=np.int32),
            "text": ["money river"] * (n - 2) + [None, "garden"],
            "when": pd.date_range("2020-01-01", periods=n),
        }
    )
    source, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    frame.to_parquet(source)
    assert privatize(core, tiny_bert, source, out).status == 0
    found = pd.read_parquet(out)
    pd.testing.assert_frame_equal(found, frame)


def test_vectors_go_to_parquet_only(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pd.DataFrame({"text": ["money", "", "river garden"], "id": [1, 2, 3]}).to_parquet(source)
    for mechanism in ("sequence_representation", "token_representation"):
        out.unlink(missing_ok=True)
        outcome = privatize(core, tiny_bert, source, out, "--mechanism", mechanism)
        assert outcome.status == 0, outcome.err
        found = pd.read_parquet(out)
        assert list(found) == ["id", "vector"] and found.id.tolist() == [1, 2, 3]
        assert found.vector.map(len).tolist() == [32, 32, 32] and not found.vector[1].any()
    text = tmp_path / "a.txt"
    text.write_text("money")
    refused = privatize(core, tiny_bert, text, tmp_path / "c.txt", "--mechanism", mechanism)
    assert "Use the ending .parquet" in refused.refusal()
    followed = privatize(core, tiny_bert, text, tmp_path / "c.parquet", "--mechanism", mechanism)
    assert followed.status == 0 and list(pd.read_parquet(tmp_path / "c.parquet")) == ["vector"]
    assert not (tmp_path / "c.txt").exists()


def test_noise_is_fresh_and_repeats_under_a_seed(
    core: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    source = tmp_path / "a.txt"
    source.write_text("money river garden\n" * 20)
    texts = []
    for i, seed in enumerate((["--seed", 1], ["--seed", 1], [], [])):
        out = tmp_path / f"{i}.txt"
        core(f"privatize --encoder mlm:{tiny_bert} --eta 20 --in {source} --out {out}", *seed)
        texts.append(out.read_text())
    assert texts[0] == texts[1]
    assert len(set(texts[1:])) == 3
    assert len(set(texts[2].splitlines())) > 1, "equal lines get noise of their own"


def test_no_file_is_overwritten(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("money")
    out.write_text("precious")
    assert "not overwritten" in privatize(core, tiny_bert, source, out).refusal()
    assert "not overwritten" in privatize(core, tiny_bert, source, source).refusal()
    assert out.read_text() == "precious"

    late = tmp_path / "late.txt"

    def change(texts: Any) -> list[str]:
        late.write_text("came meanwhile")
        return list(texts)

    with pytest.raises(InvalidInputError, match="not overwritten"):
        privatize_file(source, late, map_batches(change))
    assert late.read_text() == "came meanwhile"


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("money")

    def full(texts: Any) -> list[str]:
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left"):
        privatize_file(source, out, map_batches(full))
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
