"""`privatize` with every mechanism and with chains; what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.cli.privatize import MECHANISMS
from core.defences.metric_dp.beside import readable
from core.defences.metric_dp.files import BATCH_ROWS, each
from core.defences.registry import DEFENCES
from core.encoders.transformer import TransformerEncoder


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


def test_every_mechanism_that_promises_something_is_offered() -> None:
    promising = [name for name, entry in DEFENCES.items() if entry.guarantee and entry.strengths]
    assert {*MECHANISMS} <= {*promising}
    of_tokens = [n for n in promising if DEFENCES[n].acts_on in ("text", "tokens")]
    assert {*of_tokens} <= {*MECHANISMS}


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
    assert sum(shares.values()) == pytest.approx(1) and told["replacement_ranks"]["n"] > 100
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
    assert "Vectors cannot stand beside texts" in run(core, tiny_bert, table, *vectors).refusal()
    assert not beside.exists() and not table.with_name("out.parquet").exists()


def test_a_text_that_begins_with_a_word_piece_is_readable() -> None:
    change = readable(each(lambda texts: [f"##{text}, ## and {text}" for text in texts]))
    expected = [["pacemar, ## and pacemar", "er, ## and er"], []]
    assert list(change([["pacemar", "er"], []])) == expected


def test_word_pieces_are_joined_wherever_they_stand(minilm: TransformerEncoder) -> None:
    pieces = ["##er", "garden", "##er", "the", "##ing"]
    ids = [minilm.tokens.index(piece) for piece in pieces]
    ((text,),) = readable(each(lambda texts: [minilm.text_of(ids) for _ in texts]))([["one"]])
    assert text == "er gardener theing"


def test_what_an_epsilon_promises_is_said(core: Any, tiny_bert: Path, table: Path) -> None:
    told = run(core, tiny_bert, table, "--mechanism", "custext:k=8", "--epsilon", "1").out
    assert "At ε = 1 the output can tell a token from another of its set of 8" in told
    assert "nothing is promised between sets" in told and "odds of up to 2.8 to 1" in told
    assert "In sentences that ship: of " in told and "nearest neighbours" in told
    assert "garden" not in told


def test_a_chain_writes_vectors_and_says_what_it_promises(
    core: Any, tiny_bert: Path, table: Path
) -> None:
    told = run(core, tiny_bert, table, "--defence", "text_to_text:eta=60+int8")
    assert told.status == 0 and "what follows keeps that promise" in told.out
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
    ("arguments", "said"),
    [
        (["--mechanism", "santext"], "Give --epsilon"),
        ([], "Give --eta"),
        (["--mechanism", "santext", "--eta", "5"], "--eta is none of santext"),
        (["--mechanism", "text_to_text", "--epsilon", "5"], "--epsilon is none of text_to_text"),
        (["--mechanism", "santex", "--epsilon", "5"], "Did you mean 'santext'"),
        (["--mechanism", "gaussian"], "--mechanism must be one of"),
        (["--mechanism", "gaussian+sequence_representation"], "or begin with one"),
        (["--mechanism", "int8+santext", "--epsilon", "1"], "Put it before"),
        (["--mechanism", "custext", "--epsilon", "1"], "k must lie in [2, "),
        (["--mechanism", "santext", "--epsilon", "1", "--candidates", "some"], "candidates"),
        *(
            (["--mechanism", name, f"--epsilon={bad}"], "epsilon")
            for name in ("santext", "santext_plus", "custext", "tem")
            for bad in ("0", "-1", "nan", "1e308")
        ),
        *(([f"--eta={bad}"], "eta") for bad in ("0", "-1", "nan", "inf", "1e308")),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    core: Any, tiny_bert: Path, table: Path, arguments: list[str], said: str
) -> None:
    if "custext" in arguments and said.startswith("k"):
        arguments = ["--mechanism", "custext:k=4000", "--epsilon", "1"]
    assert said in run(core, tiny_bert, table, *arguments).refusal()
    assert not table.with_name("out.parquet").exists()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl", b'{"id": "1", "text": "the garden"}\n{"id": "\\ud800", "text": "a river"}\n',
         "line 2: 'id' holds a broken character (lone surrogate). Write it again as UTF-8."),
        ("b.jsonl", b'{"text": "the garden", "more": {"deep": ["\\udfff"]}}\n',
         "line 1: 'more' holds a broken character"),
        ("c.csv", b"id,text\n\xed\xa0\x80,the garden bridge\n", "line 2: is not UTF-8 (byte 1)"),
    ],
)  # fmt: skip
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


def test_a_chain_can_be_listed(core: Any) -> None:
    whole, *stages = core("list", "--defence", "text_to_text:eta=60+int8", "--json").json()[
        "defences"
    ]
    assert "keeps that promise" in whole["guarantee"]
    assert [stage["name"] for stage in stages] == ["text_to_text", "int8"]
    assert "Put it before" in core("list", "--defence", "int8+santext").refusal()
