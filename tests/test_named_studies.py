"""Paragraphs, [EOS], scaling and layers: the studies of one table or figure each."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.errors import InvalidInputError
from leakscope.core.figures.layers import layers_figure
from leakscope.core.figures.learning import scaling_figure
from leakscope.core.results.rows import Row
from leakscope.core.studies.domains import check_contents, content_of, open_domain
from leakscope.core.studies.inversion import layers, paragraphs, scaling
from leakscope.core.studies.inversion.paragraphs import open_passages
from leakscope.core.studies.inversion.representations import EncoderStudy
from leakscope.core.studies.registry import cells_of, run_study
from leakscope.core.text import word_set, words

MSP = ["--set", "epochs=2", "--set", "hidden=16", "--set", "learning_rate=0.01"]


@pytest.fixture
def articles(tmp_path: Path, small_texts: list[str]) -> str:
    """Fifty articles of eight sentences, as CSV."""
    path = tmp_path / "articles.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        writer.writerows([" ".join(small_texts[i : i + 8])] for i in range(0, 400, 8))
    return str(path)


def test_paragraphs_are_made_of_the_sentences_that_are_known(articles: str) -> None:
    place = {"target": articles, "other": articles, "n_auxiliary": 100, "n_targets": 6, "seed": 0}
    inside = open_passages(**place, domain="in", n_words=(20, 40))
    assert 100 <= len(inside.sentences) < 110 and len(inside.targets) == 6
    assert all(20 <= len(words(text)) <= 40 for text in inside.paragraphs)
    known = set(inside.sentences)
    joined = set().union(*map(word_set, inside.sentences))
    assert all(word_set(text) <= joined for text in inside.paragraphs)
    assert not any(sentence in known for p in inside.targets for sentence in p.sentences)
    assert open_passages(**place, domain="cross", n_words=(20, 40)).targets == inside.targets
    with pytest.raises(InvalidInputError, match="no article long enough"):
        open_passages(**place, domain="in", n_words=(500, 600))


@pytest.mark.slow
def test_reading_sentence_by_sentence_gives_more_away(
    core: Any, articles: str, tmp_path: Path
) -> None:
    out = tmp_path / "table.json"
    rows = core(
        f"study paragraphs --target {articles} --other {articles} --encoders minilm "
        "--attacks retrieval --domains in --paragraph-words 20 40 --n-auxiliary 200 --n-targets 15 "
        f"--set n_neighbors=5 --out {out} --json"
    ).json()["rows"]
    told = [(row["trained_on"], row["read"]) for row in rows]
    assert told == [
        ("sentences", "paragraph"),
        ("sentences", "sentences"),
        ("paragraphs", "paragraph"),
        ("paragraphs", "sentences"),
    ]
    by = {pair: row["token_set_f1"] for pair, row in zip(told, rows, strict=True)}
    assert by["sentences", "sentences"] > by["sentences", "paragraph"] + 3
    assert {row["n"] for row in rows} == {15} and len({row["prior_f1"] for row in rows}) == 1
    assert all(row["n_sentences"] >= 30 and row["mean_words"] > 8 for row in rows)
    for row in rows:
        assert row["token_set_f1_ci95"][0] <= row["token_set_f1"] <= row["token_set_f1_ci95"][1]
    assert "its sentences' vectors" in out.with_suffix(".md").read_text()


def test_words_of_a_paragraph_are_those_of_its_sentences(articles: str, tmp_path: Path) -> None:
    study = paragraphs.ParagraphStudy(
        target=articles,
        other=articles,
        encoders=("hashing",),
        attacks=("probe",),
        domains=("in",),
        trained_on=("sentences",),
        n_auxiliary=300,
        n_targets=10,
        n_words=(20, 40),
    )
    whole, parts = run_study("paragraphs", study, tmp_path)
    # The probe reads every known word of a hashed bag of words, whole or in parts.
    assert whole["token_set_f1"] > 95 and parts["token_set_f1"] > 95
    assert parts["token_set_f1"] > whole["prior_f1"] + 10


def test_an_attack_on_paragraphs_names_as_many_words_as_they_hold(bundled: list[str]) -> None:
    from leakscope.core.attacks.inversion.msp.attack import MSPAttack
    from leakscope.core.encoders.fitted import make_encoder

    texts = [" ".join(bundled[i : i + 6]) for i in range(0, 360, 6)]
    encoder = make_encoder("hashing").fit(texts)
    attack = MSPAttack(epochs=1, hidden=8, answer_count="mean", n_negatives=20).fit(encoder, texts)
    answered = attack.invert(encoder, encoder.encode(texts[:2]))
    assert attack.n_steps_ > 30
    assert [len(answer.words) for answer in answered] == [attack.n_steps_] * 2


@pytest.mark.slow
def test_eos_is_measured_without_and_with(core: Any, articles: str, tmp_path: Path) -> None:
    out = tmp_path / "eos.json"
    rows = core(
        f"study eos --target {articles} --other {articles} --encoders hashing minilm "
        "--n-auxiliary 200 --n-targets 20",
        *MSP,
        "--out",
        out,
        "--json",
    ).json()["rows"]
    assert [row["settings"].get("end_token") for row in rows] == [None, True] * 2
    assert all(row["settings"]["answer_count"] == "mean" for row in rows)
    table = out.with_suffix(".md").read_text()
    assert "| minilm | in | yes |" in table and "64.0 | 18.8 | 27.2 |" in table
    assert "41.4" not in next(line for line in table.splitlines() if "| hashing |" in line)


@pytest.mark.slow
def test_scaling_says_what_a_doubling_gains(articles: str, tmp_path: Path) -> None:
    study = scaling.ScalingStudy(
        target=articles,
        other=articles,
        encoders=("minilm",),
        attacks=("retrieval",),
        domains=("in",),
        sizes=(50, 100, 200),
        n_targets=30,
        attack_settings=(("n_neighbors", 3),),
    )
    rows = run_study("scaling", study, tmp_path)
    assert [row["n_fitted_on"] for row in rows] == [50, 100, 200]
    table = scaling.markdown(rows)
    assert "points of F1 per doubling" in table and "166,377" in table
    figure = scaling_figure(rows)
    assert list(figure.data[0].x) == [50, 100, 200]
    assert list(figure.data[0].y) == [row["token_set_f1"] for row in rows]


def test_layers_are_cells_of_a_study(articles: str, tmp_path: Path, tiny_bert: Path) -> None:
    study = layers.LayerStudy(
        target=articles,
        other=articles,
        encoders=(f"mlm:{tiny_bert}",),
        layers=(0, 3),
        n_auxiliary=150,
        n_targets=2,
        attack_settings=(("length", 4), ("n_steps", 3), ("candidates", "tokens")),
    )
    rows = run_study("layers", study, tmp_path)
    assert [(row.get("layer"), row.get("equation")) for row in rows] == [
        (0, "Eq. 5"),
        (0, "Eq. 7"),
        (3, "Eq. 5"),
        (3, "Eq. 7"),
    ]
    assert all(row["n"] == 2 and 0 <= row["token_set_f1"] <= 100 for row in rows), rows
    assert re.search(r"\| 3 \| Eq. 7 \| 2 of [12] documents \|", layers.markdown(rows))
    assert {row["unit"] for row in rows} == {"document"}
    assert len(layers_figure(rows).data) == 2


def test_another_file_at_the_same_path_is_refused(articles: str) -> None:
    cell = {
        "target": articles,
        "other": articles,
        "domain": "in",
        "contents": [content_of(articles), content_of(articles)],
    }
    check_contents(cell)
    with pytest.raises(InvalidInputError, match="has changed since the study was started"):
        check_contents(cell | {"contents": ["0" * 16, "0" * 16]})


def test_one_file_as_both_domains_leaves_its_targets_unknown(
    tmp_path: Path, small_texts: list[str]
) -> None:
    path, copy = tmp_path / "texts.csv", tmp_path / "copy.csv"
    for place in (path, copy):
        place.write_text("text\n" + "\n".join(small_texts))
    for other in (path, copy):
        found = open_domain(str(path), str(other), "cross", 10_000, 20, 0)
        assert found.targets and not set(found.targets) & set(found.auxiliary)


def test_attackers_of_another_domain_know_no_sentence_of_the_one_attacked(
    tmp_path: Path, small_texts: list[str]
) -> None:
    half = len(small_texts) // 2
    path, other = tmp_path / "texts.csv", tmp_path / "other.csv"
    path.write_text("text\n" + "\n".join(small_texts[:half]))
    other.write_text("text\n" + "\n".join(small_texts[half:]))
    known = {
        name: set(open_domain(str(path), str(other), name, 10_000, 20, 0).auxiliary)
        for name in ("in", "cross")
    }
    assert known["in"] and known["in"] <= set(small_texts[:half])
    assert known["cross"] and known["cross"] <= set(small_texts[half:])


def test_an_encoder_is_fitted_anew_where_another_file_lies(
    tmp_path: Path, small_texts: list[str]
) -> None:
    path = tmp_path / "texts.csv"

    def measured(texts: list[str]) -> Row:
        path.write_text("text\n" + "\n".join(texts))
        open_domain.cache_clear()
        content_of.cache_clear()
        study = EncoderStudy(
            target=str(path),
            other=str(path),
            encoders=("tfidf",),
            attacks=("probe",),
            domains=("in",),
            n_targets=20,
        )
        (row,) = run_study("encoders", study, tmp_path / "cells")
        return row

    measured([text.replace("e", "i") for text in small_texts])
    row = measured(small_texts)
    assert row["token_set_f1"] > 99, "a probe reads every word that its encoder knows"


def test_an_encoder_in_a_folder_counts_by_what_it_holds(tmp_path: Path) -> None:
    from leakscope.core.encoders.fitted import make_encoder, save_encoder

    def cell(texts: list[str]) -> dict[str, Any]:
        folder = tmp_path / "lsa"
        save_encoder(make_encoder("hashing").fit(texts), folder, training={"n": len(texts)})
        study = EncoderStudy(
            target=__file__,
            other=__file__,
            encoders=(f"hashing:{folder}",),
            attacks=("probe",),
            domains=("in",),
        )
        return cells_of("encoders", study)[0]

    first, again, other = cell(["a"] * 30), cell(["a"] * 30), cell(["a"] * 31)
    assert first == again and first != other


def test_a_seed_is_no_setting(articles: str) -> None:
    study = EncoderStudy(target=articles, other=articles, attack_settings=(("seed", 3),))
    with pytest.raises(InvalidInputError, match="--seeds"):
        study.cells()


def test_where_every_cell_fails_the_former_table_stays(
    core: Any, articles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "table.json"
    out.write_text("former")

    def fail(*_: object) -> None:
        raise ValueError("cannot be measured")

    monkeypatch.setattr("leakscope.core.studies.inversion.representations.open_encoder", fail)
    line = core(
        f"study encoders --target {articles} --other {articles} --encoders tfidf --attacks probe "
        f"--domains in --out {out}"
    )
    assert line.status == 2 and "no file was written" in line.err
    assert out.read_text() == "former" and not out.with_suffix(".md").exists()
