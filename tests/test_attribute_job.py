"""What a page infers of one's own texts: the file, the job, the curves, and their figures."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from test_attribute_study import lines as author_lines

from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.experiment import Guess, top_labels
from leakscope.core.attacks.attributes.parts import LabelEvidence, TopicMap
from leakscope.core.attacks.attributes.sources import (
    ATTRIBUTE_CORPORA,
    load_examples,
    read_uploaded_examples,
)
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.figures.attributes import (
    accuracy_figure,
    confusion_figure,
    guesses_figure,
    reasons_figure,
)
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.attributes.curves import (
    View,
    curves,
    labelled_sources,
    load_rows,
    mean_at,
    row_with_confusions,
    table,
    views_of,
)
from leakscope.core.studies.attributes.job import infer_attribute
from leakscope.core.studies.attributes.request import AttributeRequest
from leakscope.core.studies.attributes.rows import anonymise_labels

AUTHORS = ("Ána", "<b>Bob</b>", "Çelik %{x}", "山田")

lines = partial(author_lines, authors=AUTHORS, n_per_book=10)


def as_file(rows: list[tuple[str, ...]], head: tuple[str, ...] = ("body", "who", "book")):
    out = io.StringIO()
    csv.writer(out).writerows([head, *rows])
    return MemoryFile("mine.csv", out.getvalue().encode())


def read(rows: list[tuple[str, ...]], group: str | None = "book") -> Examples:
    return read_uploaded_examples(as_file(rows), text="body", label="who", group=group)


def row(score: float, **facts: object) -> Row:
    given = {
        "attribute_attack": "linear",
        "encoder": "minilm",
        "label": "author",
        "seed": 0,
        "labelled_from": "group",
        "n_labels": 4,
        "n_per_label": 5,
        "is_shuffled": False,
        "n": 100,
        "split": "group",
    }
    told = Score(score, Interval(score - 0.1, score + 0.1), 100, 0.25)
    return Row(scores={"top1": told, "top5": told}, facts={**given, **facts})


def test_an_upload_gives_texts_labels_and_groups() -> None:
    found = read([*lines(10), ("Nobody said this river.", "", "x")])
    assert len(found.texts) == 40 and found.n_unlabelled == 1 and found.groups is not None
    assert set(found.labels) == set(AUTHORS) and found.groups[10] == "1/0"
    assert read(lines(10), group=None).groups is None


@pytest.mark.parametrize(
    ("rows", "group", "wrong"),
    [
        ([("a river", "A", "1"), ("a garden", "A", "2")], "book", "at least two labels"),
        ([("a river", "", "1"), ("a garden", "", "2")], "book", "contains no label"),
        ([("a river", "A", "1"), ("a garden", "B", "")], "book", "has a label but no 'book'"),
        ([("a river", "A", "1"), ("a garden", "B", "1")], "book", "several labels"),
        ([("a river", "A", "1"), ("a garden", "B", "2")], "who", "different columns"),
        ([("a river", "A", "1")], "year", "no column 'year'"),
    ],
)
def test_what_an_upload_lacks_is_told(rows: list[tuple[str, ...]], group: str, wrong: str) -> None:
    with pytest.raises(InvalidInputError, match=wrong):
        read(rows, group)


def test_a_bundled_corpus_has_labels_and_documents() -> None:
    found = load_examples("collections")
    assert set(found.labels) == {"lee", "wikipedia"} and found.groups is not None
    articles = load_examples("articles")
    assert articles.labels == articles.groups and len(set(articles.labels)) > 50


@pytest.fixture(scope="module")
def request_for(tiny_bert: Path) -> AttributeRequest:
    return AttributeRequest(
        source="0" * 64,
        on=EncoderSpec(name=f"mlm:{tiny_bert}"),
        n_labels=5,
        n_per_label=10,
        text_column="body",
        label_column="who",
        group_column="book",
        is_upload=True,
    )


def test_the_job_measures_every_size_and_names_unseen_texts_of_other_books(
    request_for: AttributeRequest, leakscope_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    known: list[tuple[list[str], list[str]]] = []
    fit = TopicMap.fit

    def noted(self: TopicMap, texts: list[str], vectors: object, groups: list[str]) -> TopicMap:
        known.append((texts, groups))
        return fit(self, texts, vectors, groups)

    monkeypatch.setattr(TopicMap, "fit", noted)
    examples = read(lines())
    found = infer_attribute(request_for, examples, lambda done, _: seen.append(done))
    assert seen == sorted(seen) and seen[0] == 0
    rows = list(found.rows)
    assert labelled_sources(rows) == ["group"] and views_of(rows, "group") == ([2, 4], [2, 5, 10])
    at = View("group", 4, 10)
    words = mean_at(rows, at, "words", "top1")
    probe = mean_at(rows, at, "linear", "top1", request_for.on.name)
    assert words is not None and words.value > 0.9 and probe is not None
    (control,) = [r for r in rows if r["is_shuffled"]]
    assert control["attribute_attack"] == "linear"
    assert probe.value > control.scores["top1"].value
    assert {label for _, label in found.unseen} == set(found.labels) == set(AUTHORS)
    assert row_with_confusions(rows, "group", request_for.on.name) is not None
    kept = [p for p in leakscope_home.rglob("*") if p.is_file()]
    assert kept == [], "vectors of an upload are on the disk"
    book_of = dict(zip(examples.texts, examples.groups or (), strict=True))
    topics, groups = known[-1]
    assert len(topics) > 40 and not {book_of[text] for text, _ in found.unseen} & set(groups)
    texts, truth = zip(*found.unseen, strict=True)
    vectors = shared_encoder(request_for.on).encode(list(texts))
    said = [top_labels(found.linear, found.labels, vector) for vector in vectors]
    assert all(len(g) == 4 and sum(x.probability for x in g) == pytest.approx(1) for g in said)
    assert found.topic is not None
    assert np.mean([g[0].label == true for g, true in zip(said, truth, strict=True)]) > 0.4


def test_labels_with_too_few_texts_are_left_out(request_for: AttributeRequest) -> None:
    few = [("A single winter letter", "Eve", "9/9")]
    found = infer_attribute(request_for, read([*lines(), *few]))
    assert "Eve" not in found.labels and len(found.labels) == 4
    with pytest.raises(InvalidInputError, match="labels have"):
        infer_attribute(replace(request_for, n_per_label=50), read(lines(10)))


def test_curves_keep_what_is_fixed_and_average_seeds() -> None:
    rows = [
        row(0.4),
        row(0.6, seed=1),
        row(0.8, n_per_label=10),
        row(0.3, n_labels=8),
        row(0.2, is_shuffled=True),
        row(0.5, attribute_attack="words", encoder=""),
        row(0.9, labelled_from="run"),
    ]
    found = curves(rows, View("group", 4, 5), "n_per_label")
    assert [(c.attack, c.sizes, c.is_shuffled) for c in found] == [
        ("linear", (5, 10), False),
        ("words", (5,), False),
        ("linear", (5,), True),
    ]
    assert [s.value for s in found[0].scores] == pytest.approx([0.5, 0.8])
    along = curves(rows, View("group", 4, 5), "n_labels")
    assert along[0].sizes == (4, 8) and along[0].scores[1].value == 0.3
    assert labelled_sources(rows) == ["run", "group"] and len(table(rows)) == len(rows)


def test_labels_that_are_people_are_numbered_where_that_is_asked_for() -> None:
    pairs = [["Ada", "Eve", 0.4], ["Bob", "Ada", 0.2]]
    mixed = {"mixed_labels": ["Ada", "Bob"], "mixed_pairs": pairs, "mixed_shares": [[0.6, 0.0]]}
    failed = Row(error="InvalidInputError: 'Ada' has 3 texts")
    found, plain, without = anonymise_labels([row(0.4, **mixed), row(0.5), failed])
    assert found["mixed_labels"] == ["label 1", "label 2"]
    assert found["mixed_pairs"] == [["label 1", "label 3", 0.4], ["label 2", "label 1", 0.2]]
    assert found["mixed_shares"] == mixed["mixed_shares"] and plain == row(0.5)
    assert without.error == "InvalidInputError"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"study": "names", "rows": []}',
        '{"study": "attributes", "rows": []}',
        '{"study": "attributes", "rows": [{"n": 1}]}',
    ],
)
def test_a_damaged_file_of_rows_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "minilm.json"
    path.write_text(content)
    with pytest.raises(ArtifactError, match=r"minilm\.json"):
        load_rows(path)


def test_figures_show_hostile_labels_as_text_and_mark_the_truth() -> None:
    guesses = [Guess("<b>x</b> %{y}", 0.7), Guess("山田", 0.3)]
    figure = guesses_figure(guesses, truth="山田")
    ticks = figure.layout.yaxis.ticktext
    assert "&lt;b&gt;" in ticks[0] and "<b>" not in ticks[0] and "%" not in ticks[0]
    assert ticks[1] == "● 山田" and figure.data[0].text == ("70 %", "30 %")
    shown = reasons_figure(
        ["a", "b"], [LabelEvidence(0, 1.0, -2.0, 0.0), LabelEvidence(1, 0.5, 0.5, 0.0)]
    )
    assert [list(bar.x) for bar in shown.data] == [[1.0, 0.5], [-2.0, 0.5]]
    assert shown.data[1].marker.pattern.shape == "/", "not by colour alone"
    mixed = confusion_figure(["<i>a", "b"], [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    assert list(mixed.data[0].z[0]) == [50.0, 25.0, 25.0] and len(mixed.layout.shapes) == 2
    whole = confusion_figure(["a", "b"], [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert whole.layout.xaxis.ticktext == ("a", "b"), "there is no other label"
    assert "<i>" not in str(mixed.layout.xaxis.ticktext)


def test_draws_of_the_same_books_are_one_sample() -> None:
    rows = [row(0.4, seed=seed) for seed in range(5)]
    score = mean_at(rows, View("group", 4, 5), "linear", "top1", "minilm")
    one = rows[0].scores["top1"]
    assert score is not None and (score.n, score.n_seeds) == (one.n, 5)
    width = score.ci95.high - score.ci95.low
    assert width == pytest.approx(one.ci95.high - one.ci95.low), "five draws are not five times"


def test_accuracy_has_control_guessing_and_a_shape_of_its_own_for_each_attack() -> None:
    rows = [
        row(0.4),
        row(0.3, attribute_attack="words", encoder=""),
        row(0.2, is_shuffled=True),
        row(0.2, attribute_attack="words", encoder="", is_shuffled=True),
    ]
    figure = accuracy_figure(curves(rows, View("group", 4, 5), "n_per_label"), "n_per_label", 1)
    named = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert named == ["Linear probe", "Bag of words", "shuffled labels", "guessing"], "one a kind"
    told = {trace.hovertemplate.split(":")[0] for trace in figure.data}
    assert {"Linear probe, shuffled labels", "Bag of words, shuffled labels"} <= told
    assert len({trace.marker.symbol for trace in figure.data}) == 4
    assert list(figure.data[-1].y) == [0.25]


def test_every_corpus_says_what_is_inferred() -> None:
    for source in ATTRIBUTE_CORPORA.values():
        assert source.attribute and source.summary and source.split in ("row", "run", "group")
