"""The study of what replaces a token: its counts, its intervals, and the table that ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.replacement_ranks import ReplacementRanks, bundled_tokens
from leakscope.core.intervals import percent_interval, wilson_interval
from leakscope.core.results.rows import Row
from leakscope.core.studies.deniability import replacements
from leakscope.core.studies.deniability.replacements import (
    CLASSES,
    ReplacementStudy,
    measure,
)


@pytest.fixture(scope="module")
def rows(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    asked = ReplacementStudy(
        defences=("santext:epsilon=0.01", "santext:epsilon=500", "custext:epsilon=2,k=8"),
        encoder=f"mlm:{tiny_bert}",
        n_texts=30,
    )
    folder = tmp_path_factory.mktemp("cells")
    return [
        Row(cell, row.scores, row.facts) for cell in asked.cells() for row in measure(cell, folder)
    ]


def test_classes_are_shares_of_all_tokens_beside_what_an_even_draw_gives(rows: list[Row]) -> None:
    for row in rows:
        scores = [row.scores[name] for name in CLASSES]
        assert sum(score.value for score in scores) == pytest.approx(100)
        assert sum(score.chance for score in scores) == pytest.approx(100)
        assert scores[0].chance == pytest.approx(100 / row["n_candidates"])
        assert scores[1].chance == pytest.approx(1000 / row["n_candidates"])
        assert all(score.n == scores[0].n > 100 for score in scores)


def test_a_great_epsilon_returns_the_token_and_a_small_one_any(
    rows: list[Row], tiny_encoder: Any
) -> None:
    ids, _ = bundled_tokens(tiny_encoder, 30)
    could = 100 * float(np.isin(ids, candidate_ids(tiny_encoder, "regular")).mean())
    any_of_them, own, of_eight = (row.scores["0"] for row in rows)
    assert 5 < could < 100, "some are [UNK], which never comes out"
    assert own.value == pytest.approx(could)
    assert any_of_them.value < could / 4 and any_of_them.value < of_eight.value < could


def test_intervals_are_over_sentences_and_not_over_tokens(
    rows: list[Row], tiny_encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all tokens of every other sentence come back, there are as many trials as sentences."""
    ids, texts = bundled_tokens(tiny_encoder, 30)
    assert len(ids) == rows[0].scores["0"].n and set(texts.tolist()) == set(range(30))

    def every_other(distances: Any, original: Any, replaced: Any) -> Any:
        return ReplacementRanks(5000 * (texts % 2), len(distances.ids))

    monkeypatch.setattr(replacements, "replacement_ranks", every_other)
    (row,) = measure(rows[0].cell, Path())
    found, n_back = row.scores["0"], int((texts % 2 == 0).sum())
    naive = wilson_interval(n_back, len(ids))
    assert found.value == pytest.approx(100 * n_back / len(ids))
    assert found.ci95.high - found.ci95.low > 3 * (naive.high - naive.low)
    held = 100.0 * (texts % 2 == 0)
    assert found.ci95 == percent_interval(held, groups=texts.tolist(), seed=0)


def test_where_no_token_is_of_a_class_its_share_may_be_above_none() -> None:
    held, groups = np.zeros(600, np.bool_), [i // 20 for i in range(600)]
    assert replacements._interval(held, groups, 0) == wilson_interval(0, 30)
    assert replacements._interval(~held, groups, 0) == wilson_interval(30, 30)
    held[:9] = True
    assert replacements._interval(held, groups, 0).high > 1.5
