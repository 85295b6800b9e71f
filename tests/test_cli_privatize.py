"""`privatize` with every mechanism and with chains; what it refuses."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core.defences.metric_dp.files import (
    BATCH_ROWS,
    map_batches,
    privatize_file,
    strip_leading_mark,
    write_before_and_after,
)
from leakscope.core.defences.metric_dp.identifiers import identifiers_in
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError, StorageError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    source = tmp_path / "a.parquet"
    texts = ["the garden bridge", "", "money river", "doctor winter minister"]
    pd.DataFrame({"id": range(4), "text": texts}).to_parquet(source)
    return source


def run(core: Any, tiny_bert: Path, source: Path, *more: object) -> Any:
    out = source.with_name("out" + source.suffix)
    return core("privatize", "--encoder", f"mlm:{tiny_bert}", "--in", source, "--out", out, *more)


def texts_of(source: Path) -> list[str]:
    return list(pd.read_parquet(source.with_name("out.parquet"))["text"])


@pytest.mark.parametrize("name", ["santext", "santext_plus", "custext", "tem"])
def test_texts_are_privatised_at_an_epsilon(
    core: Any, tiny_bert: Path, table: Path, name: str
) -> None:
    small = f"{name}:k=8" if name == "custext" else name
    told = run(core, tiny_bert, table, "--mechanism", small, "--epsilon", "2", "--json").json()
    assert told["mechanism"] == name and told["epsilon"] == 2 and told["rows"] == 4
    assert told["guarantee"] == DEFENCES[name].guarantee
    assert told["promise"]["nearest"]["epsilon"] > 0
    shares = told["replacement_ranks"]["shares"]
    assert sum(shares.values()) == pytest.approx(1) and told["replacement_ranks"]["n"] >= 8
    found = texts_of(table)
    assert found[1] == "" and len(found) == 4 and all(found[i] for i in (0, 2, 3))


def test_a_great_epsilon_changes_nothing_and_a_small_one_nearly_all(
    core: Any, tiny_bert: Path, table: Path
) -> None:
    given = ("--mechanism", "santext", "--epsilon")
    assert run(core, tiny_bert, table, *given, "1e5").status == 0
    plain = list(pd.read_parquet(table)["text"])
    assert texts_of(table) == plain
    table.with_name("out.parquet").unlink()
    assert run(core, tiny_bert, table, *given, "1e-3").status == 0
    assert all(a != b for a, b in zip(texts_of(table), plain, strict=True) if b)


def test_before_and_after_stand_side_by_side_on_request(
    core: Any, tiny_bert: Path, table: Path
) -> None:
    beside = table.with_name("beside.csv")
    given = ("--mechanism", "santext", "--epsilon", "2", "--beside", beside)
    assert run(core, tiny_bert, table, *given).status == 0
    found = pd.read_csv(beside)
    before = [text for text in pd.read_parquet(table)["text"] if text]
    assert list(found["before"]) == before and list(found["after"]) == [
        text for text in texts_of(table) if text
    ]
    table.with_name("out.parquet").unlink()
    assert "not overwritten" in run(core, tiny_bert, table, *given).refusal()
    beside.unlink()
    vectors = ("--mechanism", "text_to_text:eta=60+int8", "--beside", beside)
    assert (
        "Vectors cannot be listed beside texts" in run(core, tiny_bert, table, *vectors).refusal()
    )
    assert not beside.exists() and not table.with_name("out.parquet").exists()


def test_no_text_beside_another_is_a_formula(tmp_path: Path) -> None:
    target = tmp_path / "beside.csv"
    with write_before_and_after(
        map_batches(lambda texts: [f"@{text}" for text in texts]), target
    ) as change:
        assert list(change([["=HYPERLINK(1)", "-3"]])) == [["@=HYPERLINK(1)", "@-3"]]
    told = ["before,after", "'=HYPERLINK(1),'@=HYPERLINK(1)", "-3,'@-3"]
    assert target.read_text(encoding="utf-8").splitlines() == told


def test_no_cell_of_a_released_table_is_a_formula(
    core: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in.csv"
    rows = ['=1+1,"the garden",-0.5,x;=2', '@x,"the river",3,plain']
    source.write_text("\n".join(["=head,text,score,note", *rows]) + "\n", encoding="utf-8")
    told = run(core, tiny_bert, source, "--text-column", "text", "--eta", "60").out
    written = source.with_name("out.csv").read_text(encoding="utf-8").splitlines()
    cells = [re.split("[,;]", line) for line in written]
    assert not [c for line in cells for c in line if c.startswith(("=", "+", "@"))]
    assert cells[0][0] == "'=head" and cells[1][2] == "-0.5", "numbers stay numbers"
    assert "4 cells that a spreadsheet would take for a formula" in told


def test_a_text_that_begins_with_a_word_piece_is_readable() -> None:
    change = strip_leading_mark(
        map_batches(lambda texts: [f"##{text}, ## and {text}" for text in texts])
    )
    expected = [["pacemar, ## and pacemar", "er, ## and er"], []]
    assert list(change([["pacemar", "er"], []])) == expected


def test_word_pieces_are_joined_wherever_they_stand(minilm: TransformerEncoder) -> None:
    pieces = ["##er", "garden", "##er", "the", "##ing"]
    ids = [minilm.tokens.index(piece) for piece in pieces]
    ((text,),) = strip_leading_mark(
        map_batches(lambda texts: [minilm.text_of(ids) for _ in texts])
    )([["one"]])
    assert text == "er gardener theing"


def test_it_says_what_an_epsilon_guarantees(core: Any, tiny_bert: Path, table: Path) -> None:
    told = run(core, tiny_bert, table, "--mechanism", "custext:k=8", "--epsilon", "1").out
    assert "nothing is guaranteed between sets" in told
    assert "At ε = 1, whoever sees the output may tell apart a token and another" in told
    assert "with odds of up to 2.8 to 1" in told
    assert "In texts of this file: of " in told and "nearest neighbours" in told
    assert "garden" not in told


def test_a_chain_writes_vectors_and_says_what_it_promises(
    core: Any, tiny_bert: Path, table: Path
) -> None:
    told = run(core, tiny_bert, table, "--defence", "text_to_text:eta=60+int8")
    assert told.status == 0 and "later stages keep this guarantee" in told.out
    vectors = np.stack(pd.read_parquet(table.with_name("out.parquet"))["vector"])
    assert vectors.shape == (4, 32) and not vectors[1].any() and vectors[0].any()
    steps = vectors[0] / (np.abs(vectors[0]).max() / 127)
    assert steps == pytest.approx(np.round(steps), abs=1e-2), "eight bits"
    again = table.with_name("out.parquet")
    again.unlink()
    two = run(
        core, tiny_bert, table, "--mechanism", "text_to_text+santext:epsilon=9", "--eta", "60"
    )
    assert two.status == 0 and len(texts_of(table)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("first", [None, "the garden bridge"])
def test_many_cells_without_text_in_a_row_have_zero_vectors(
    core: Any, tiny_bert: Path, table: Path, first: str | None
) -> None:
    texts = [first] * BATCH_ROWS + [""] * BATCH_ROWS + ["money river"]
    pd.DataFrame({"text": texts}).to_parquet(table)
    way = "--mechanism", "sequence_representation", "--eta", "200"
    assert run(core, tiny_bert, table, *way).status == 0
    vectors = np.stack(pd.read_parquet(table.with_name("out.parquet"))["vector"])
    assert vectors.shape == (len(texts), 32)
    assert vectors.any(axis=1).tolist() == [bool(text) for text in texts]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "a.jsonl",
            b'{"id": "1", "text": "the garden"}\n{"id": "\\ud800", "text": "a river"}\n',
            "line 2: 'id' holds a broken character (lone surrogate). Write it again as UTF-8.",
        ),
        (
            "b.jsonl",
            b'{"text": "the garden", "more": {"deep": ["\\udfff"]}}\n',
            "line 1: 'more' holds a broken character",
        ),
        ("c.csv", b"id,text\n\xed\xa0\x80,the garden bridge\n", "line 2: is not UTF-8 (byte 1)"),
    ],
)
def test_half_a_character_in_another_column_is_refused(
    core: Any, tiny_bert: Path, tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(content)
    asked = run(core, tiny_bert, tmp_path / name, "--eta", "1", "--text-column", "text")
    assert told in asked.refusal()
    assert not (tmp_path / name).with_stem("out").exists()


def test_an_audit_takes_an_epsilon(core: Any) -> None:
    given = ("audit-mechanism", "--mechanism", "tem", "--no-processes")
    answer = core(*given, "--epsilon", "3", "--json").json()
    assert answer["epsilon"] == 3 and not answer["audits"][0]["is_refuted"]
    assert "epsilon" in core(*given, "--epsilon", "nan").refusal()


def test_repeated_texts_are_counted_and_their_odds_composed(
    core: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    source = tmp_path / "a.txt"
    texts = ["The garden  bridge", "money river", "the garden bridge", "", "the Garden bridge"]
    source.write_text("\n".join([*texts, "money river", "doctor"]) + "\n", encoding="utf-8")
    given = ("--mechanism", "text_to_text", "--eta", "2")
    told = run(core, tiny_bert, source, *given, "--json").json()
    repeats = told["repeats"]
    assert (repeats["most_frequent"], repeats["n_repeated"]) == (3, 2)
    for name in ("nearest", "median", "whole"):
        one, left = told["promise"][name], repeats["promise"][name]
        assert left["epsilon"] == pytest.approx(3 * one["epsilon"]) and left["releases"] == 3
    source.with_name("out.txt").unlink()
    said = run(core, tiny_bert, source, *given).out
    assert "2 texts occur more than once. The most frequent text occurs 3 times" in said
    assert "to the power 3" in said and "after 3 releases" in said
    assert "in any rows, columns or files" in said, "composition is said where it is released"
    source.write_text("money river\ndoctor\n", encoding="utf-8")
    source.with_name("out.txt").unlink()
    assert "No text occurs more than once" in run(core, tiny_bert, source, *given).out


IBAN = "DE89 3704 0044 0532 0130 00"


@pytest.fixture
def personal(tmp_path: Path) -> Path:
    """A table with identifiers in its texts and in other columns, and the texts' own vectors."""
    source = tmp_path / "p.parquet"
    frame = {
        "customer": [48219934, 7, 12],
        "mail": ["ada@example.org", "", "bob@example.com and carl@example.com"],
        "day": ["2024-11-30", "2024-12-01", "30.11.2024"],
        "score": [0.73450123, 0.5, 0.25],
        "text": [f"Pay {IBAN} today.", "Write to ada@example.org.", "Call +43 660 1234567 at 5."],
        "embedding": [[0.25] * 16] * 3,
    }
    pd.DataFrame(frame).to_parquet(source)
    return source


def test_what_passes_through_unchanged_is_named_and_its_identifiers_are_counted(
    core: Any, tiny_bert: Path, personal: Path
) -> None:
    told = run(core, tiny_bert, personal, "--eta", "1", "--json").json()["passed_through"]
    assert told["columns"] == ["customer", "mail", "day", "score", "embedding"]
    assert told["vectors"] == ["embedding"]
    digits, mail = "number of 6 or more digits", "e-mail address"
    assert told["identifiers_in_columns"] == {"customer": {digits: 1}, "mail": {mail: 3}}
    assert told["identifiers_in_texts"] == {"IBAN": 1, mail: 1, digits: 1}
    personal.with_name("out.parquet").unlink()
    said = run(core, tiny_bert, personal, "--eta", "1").out
    assert "Passed through unchanged: customer, mail, day, score, embedding." in said
    assert "The column mail contains 3 e-mail addresses, unchanged." in said
    assert "embedding contains vectors. Vectors of the unprotected texts reveal" in said
    assert " of 3 identifier-like strings in the texts " in said
    assert "ada" not in said and "3704" not in said, "the summary quotes nothing"


def test_identifiers_that_come_out_verbatim_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text(f"id,text\n1,Pay {IBAN} now.\n2,Write to ada@example.org.\n3,Nothing.\n")

    def half(texts: Sequence[str]) -> list[str]:
        return [text.lower().replace(" ", "  ") if "pay" in text.lower() else "x" for text in texts]

    done = privatize_file(source, tmp_path / "b.csv", map_batches(half))
    assert done.n_rows == 3 and sorted(done.texts) == [
        "Nothing.",
        f"Pay {IBAN} now.",
        "Write to ada@example.org.",
    ]
    assert dict(done.passed.in_texts) == {"IBAN": 1, "e-mail address": 1}
    assert +done.passed.left_in_texts == {"IBAN": 1}
    assert done.passed.sentences[-1] == (
        "1 of 2 identifier-like strings in the texts is in the output verbatim (1 IBAN)."
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nothing at 10:30 on 30.11.2024, 2024-11-30, for 1,234,567.89 or 0.123456789", []),
        ("0660 123 45 67, (01) 234-567 and 12345", ["0660 123 45 67", "(01) 234-567"]),
        ("x@y.z, a.b+c@d-e.org.", ["x@y.z", "a.b+c@d-e.org"]),
        (
            "at61 1904 3002 3457 3201 and GB29NWBK60161331926819",
            ["at61 1904 3002 3457 3201", "GB29NWBK60161331926819"],
        ),
        ("card 4111 1111 1111 1111", ["4111 1111 1111 1111"]),
    ],
)
def test_what_looks_like_an_identifier(text: str, found: list[str]) -> None:
    assert [string for _, string in identifiers_in(text)] == found


def test_the_texts_of_a_report_are_drawn_from_the_whole_file(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("\n".join(f"text {i}" for i in range(5000)))
    done = privatize_file(source, tmp_path / "b.txt", map_batches(list))
    numbers = [int(text.split()[1]) for text in done.texts]
    assert len(set(numbers)) == 40 and 1500 < np.mean(numbers) < 3500


def test_the_report_is_about_this_file(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    found = []
    for name, text in (("short", "garden"), ("long", "garden bridge river winter " * 8)):
        source = tmp_path / name / "a.csv"
        source.parent.mkdir()
        source.write_text("text\n" + f"{text}\n" * 5)
        told = run(core, tiny_bert, source, "--eta", "60", "--json").json()
        found.append((told["promise"]["whole"], told["replacement_ranks"]["n"]))
        source.with_name("out.csv").unlink()
        said = run(core, tiny_bert, source, "--eta", "60").out
        assert "For a text of median length in this file:" in said
        assert "insulin" not in said and "garden" not in said and "one of its tokens" in said
    assert found[0] == (None, 5) and found[1][1] == 5 * 32
    assert "this text of 32 tokens" in found[1][0]["what"]


def test_vectors_of_any_table_go_to_parquet(core: Any, tiny_bert: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "b.parquet"
    source.write_text("id,text,n\n1,the garden,2.5\n2,,3\n3,money river,4\n")
    given = ("privatize", "--encoder", f"mlm:{tiny_bert}", "--in", source, "--eta", "60", "--out")
    way = ("--mechanism", "token_representation")
    assert "Use the ending .parquet" in core(*given, tmp_path / "b.csv", *way).refusal()
    told = core(*given, out, *way, "--json").json()
    found = pd.read_parquet(out)
    assert list(found) == ["id", "n", "vector"] and list(found["n"]) == ["2.5", "3", "4"]
    vectors = np.stack(found["vector"])
    assert vectors.shape == (3, 32) and not vectors[1].any() and told["rows"] == 3
    assert "Use the ending .csv" in core(*given, tmp_path / "c.parquet").refusal()
    assert core(*given, tmp_path / "c.csv").status == 0


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
