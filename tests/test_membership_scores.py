"""How scores of members and of others lie: what rows hold of it, and what the page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, open_page

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.roc import auc
from leakscope.core.attacks.membership.score_distribution import (
    STORED_BINS,
    percentile_half_above,
    rank_shares,
    score_counts,
    shares_from_counts,
)
from leakscope.core.errors import ArtifactError
from leakscope.core.figures.membership import rank_figure
from leakscope.core.studies.membership import shipped as membership_shipped
from leakscope.core.studies.membership.classifier_rows import _curve_points
from leakscope.core.studies.membership.halves import Scored, group_rows
from leakscope.core.studies.membership.shipped import FILES, Measured, load_measured
from leakscope.dashboard import cache

SHIPPED = RESULTS


def drawn(shift: float, *, decimals: int = 9, n: int = 4000) -> Ranking:
    rng = np.random.default_rng(0)
    members = np.arange(n) % 2 == 0
    return Ranking((rng.normal(size=n) + shift * members).round(decimals), members)


def test_a_row_holds_counts_alone_and_they_are_read_as_shares() -> None:
    scores = np.array([0.0, 1.0, 1.0, np.inf, -np.inf, 0.5])
    members = np.array([True, True, False, True, False, False])
    stored = json.loads(json.dumps(score_counts(Ranking(scores, members))))
    assert set(stored) == {"ends", "members", "outsiders"}
    assert len(stored["members"]) == len(stored["outsiders"]) == STORED_BINS
    assert sum(stored["members"]) == 3 == sum(stored["outsiders"])
    assert stored["members"][-1] == 2, "one at the end, one beyond it"
    shares = shares_from_counts(stored)
    assert shares.members.sum() == pytest.approx(100) and shares.members[-1] == pytest.approx(
        200 / 3
    )
    assert (shares.edges[0], shares.edges[-1]) == tuple(stored["ends"])


def test_half_of_the_members_lie_above_the_median() -> None:
    ranking = drawn(1.0)
    share = percentile_half_above(shares_from_counts(score_counts(ranking)))
    outside = ranking.scores[~ranking.members]
    true = 100 * (outside < np.median(ranking.scores[ranking.members])).mean()
    assert true - 15 < share <= true, "a range at most less, never more"


def test_a_curve_tells_how_scores_lie_by_those_of_the_others() -> None:
    ranking = drawn(1.0)
    found = rank_shares(
        [tuple(p) for p in _curve_points(ranking)], auc(ranking, n_resamples=2).value
    )
    assert found is not None
    outside = np.sort(ranking.scores[~ranking.members])
    inside = ranking.scores[ranking.members]
    cuts = [
        outside[min(round(len(outside) * b / 100), len(outside)) - 1] for b in found.bounds[1:-1]
    ]
    counted, _ = np.histogram(inside, [-np.inf, *cuts, np.inf])
    assert np.abs(found.members - 100 * counted / len(inside)).max() < 0.2
    assert found.members.sum() == pytest.approx(100) == found.outsiders.sum()
    assert found.bounds[0] == 0 and found.bounds[-1] == 100 and (np.diff(found.bounds) > 0).all()
    assert found.members[-1] > 3 * found.outsiders[-1], "members are many where others are few"
    figure = rank_figure(found)
    assert figure.data[0].marker.pattern.shape != figure.data[1].marker.pattern.shape
    assert len(figure.data[0].x) == len(found.members)


def test_a_curve_of_many_equal_scores_tells_nothing_of_them() -> None:
    ranking = drawn(1.0, decimals=0)
    points = [tuple(p) for p in _curve_points(ranking)]
    assert rank_shares(points, auc(ranking, n_resamples=2).value) is None


def test_rows_of_halves_hold_counts_of_all_with_true_membership_alone() -> None:
    rng = np.random.default_rng(0)
    n = 600
    members, labelled = np.arange(n) % 2 == 0, np.arange(n) % 5 == 0
    scores, groups = rng.normal(size=n) + members, np.repeat([0, 1], n // 2)
    scored = Scored(scores, members, labelled, np.arange(n), groups)
    rows = group_rows(scored, {}, 0)
    held = {(row["decile"], row["labels"]) for row in rows if "score_counts" in row.facts}
    assert held == {(0, "true")} and len(rows) == 3
    (row,) = [row for row in rows if "score_counts" in row.facts]
    counts = row.facts["score_counts"]
    assert sum(counts["members"]) + sum(counts["outsiders"]) == row["n"], "no labelled one"


# The page


@pytest.fixture
def opened(small_app: AppTest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    def visit(folder: Path = SHIPPED, **address: str) -> AppTest:
        monkeypatch.setattr(membership_shipped, "SHIPPED", folder)
        cache.membership.clear()
        return open_page(small_app, "membership", **address)

    yield visit
    cache.membership.clear()


def table_of(page: AppTest) -> list[dict[str, str]]:
    tables = [part.value for part in page.markdown if "| members, % |" in part.value]
    if not tables:
        return []
    head, _, *lines = (line.strip("| ").split(" | ") for line in tables[0].splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def said(page: AppTest) -> str:
    return " ".join(part.value for part in [*page.markdown, *page.caption, *page.info])


def without_counts(folder: Path, name: str, tmp_path: Path) -> Path:
    """Copy rows as they shipped before any count of scores was stored."""
    table = json.loads((folder / name).read_text(encoding="utf-8"))
    for row in table["rows"]:
        row.pop("score_counts", None)
    (tmp_path / name).write_text(json.dumps(table), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_rows_measured_before_are_drawn_by_the_others_scores(opened: Open, tmp_path: Path) -> None:
    folder = without_counts(SHIPPED, FILES["membership-classifiers"], tmp_path)
    page = opened(folder)
    assert not page.error
    lines = table_of(page)
    assert len(lines) >= 5 and "percentile of non-members: from" in lines[0]
    assert sum(float(line["members, %"]) for line in lines) == pytest.approx(100, abs=0.5)
    one = membership_shipped.strongest(load_measured(folder))
    rate = next(rate for rate, score in one.curve if score.value >= 0.5)
    assert f"above **{100 * (1 - rate):.0f} %** of the non-members" in said(page)
    assert len(page.get("plotly_chart")) >= 2


def test_rows_that_hold_counts_are_drawn_from_them(opened: Open, tmp_path: Path) -> None:
    name = FILES["membership-words"]
    table = json.loads((SHIPPED / name).read_text(encoding="utf-8"))
    counts = {"ends": [0.0, 1.0], "members": [0, 1, 3], "outsiders": [2, 1, 1]}
    for row in table["rows"]:
        if row["decile"] == 0 and row["labels"] == "true":
            row["score_counts"] = counts
    (tmp_path / name).write_text(json.dumps(table), encoding="utf-8")
    page = opened(tmp_path)
    lines = table_of(page)
    assert [line["members, %"] for line in lines] == ["0.0", "25.0", "75.0"]
    assert [line["non-members, %"] for line in lines] == ["50.0", "25.0", "25.0"]
    assert "above **75 %** of the non-members" in said(page)
    for row in table["rows"]:
        if "score_counts" in row:
            row["score_counts"] = {**counts, "members": [0, 0, 0]}
    (tmp_path / name).write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(ArtifactError, match="Run the study again"):
        load_measured(tmp_path)


@pytest.mark.slow
def test_rows_that_cannot_tell_say_so_and_what_stores_it(opened: Open, tmp_path: Path) -> None:
    folder = without_counts(SHIPPED, FILES["membership-words"], tmp_path)
    page = opened(folder)
    assert not table_of(page) and not page.error
    assert "not the distribution of the scores" in said(page)
    assert "leakscope study membership-words" in said(page)
    folder = without_counts(SHIPPED, FILES["membership-classifiers"], tmp_path)
    (folder / FILES["membership-words"]).unlink()
    tied = next(one for one in load_measured(folder) if one.ranks is None and one.curve)
    page = opened(folder, model=tied.model, data=tied.data, attack=tied.attack)
    assert not table_of(page) and "Many scores of this attack are equal" in said(page)


@pytest.mark.slow
def test_attacks_on_probabilities_tell_and_attacks_on_right_or_wrong_do_not(tmp_path: Path) -> None:
    folder = without_counts(SHIPPED, FILES["membership-classifiers"], tmp_path)
    found: list[Measured] = load_measured(folder)
    for name in ("feature-loss", "lira_online", "bavaria", "user_inference"):
        assert all(one.ranks is not None for one in found if one.attack == name), name
    for name in ("feature-correctness", "feature-rank", "threshold-rank"):
        assert all(one.ranks is None for one in found if one.attack == name), name
