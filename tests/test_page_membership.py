from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from test_cli_membership import answers
from test_membership_classifier_study import study as small_study
from test_membership_studies import words_study, write_books, write_posts
from visiting import Open, open_page

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.membership.classifiers.own_file import attack_example, attack_upload
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import AtRate, predictive_value
from leakscope.core.attacks.membership.score_distribution import curve_with_band
from leakscope.core.attacks.membership.verdict import membership_probability
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.figures.membership import roc_figure
from leakscope.core.findings.finding import YEARS
from leakscope.core.findings.membership import QUESTION, members
from leakscope.core.results import Interval, Score
from leakscope.core.results.tables import write_rows
from leakscope.core.studies.membership import shipped as membership_shipped
from leakscope.core.studies.membership.shipped import (
    FILES,
    Measured,
    load_measured,
    strongest,
    verdict,
)
from leakscope.core.studies.registry import run_study
from leakscope.dashboard import cache
from leakscope.dashboard.membership import state
from leakscope.dashboard.membership.state import OwnRequest


@pytest.fixture(scope="module")
def rows_of_studies(
    tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, small_texts: list[str]
) -> Iterator[Path]:
    """A folder like results/ with the rows of two small studies."""
    folder = tmp_path_factory.mktemp("membership")
    posts, shipped = write_posts(folder / "posts.csv", small_texts), folder / "shipped"
    shipped.mkdir()
    attacks = ("threshold", "user_votes")
    studies = {
        "membership-classifiers": small_study(
            posts, tiny_bert, seeds=(0, 1), splits=("user",), classifier_attacks=attacks
        ),
        "membership-words": words_study(
            write_books(folder / "books.csv"), similarities=("cosine", "centred")
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKSCOPE_HOME", str(folder / "home"))
        for name, study in studies.items():
            rows = run_study(name, study, folder / name)
            assert [row.error for row in rows if row.error] == []
            write_rows(shipped / FILES[name], name, rows, "")
    yield shipped


@pytest.fixture
def found(rows_of_studies: Path) -> list[Measured]:
    return load_measured(rows_of_studies)


@pytest.fixture
def opened(small_app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    def visit(folder: Path = tmp_path / "nothing", **address: str) -> AppTest:
        monkeypatch.setattr(membership_shipped, "SHIPPED", folder)
        cache.membership.clear()
        return open_page(small_app, "membership", **address)

    yield visit
    cache.membership.clear()


def told(page: AppTest) -> str:
    parts = [*page.title, *page.markdown, *page.caption, *page.info, *page.warning]
    return " ".join(part.value for part in parts).replace("\\", "")


def attacked(page: AppTest) -> AppTest:
    """Wait until the job of the page is done."""
    end = time.monotonic() + 120
    while not page.error and time.monotonic() < end:
        if any(
            frame.value.columns[0] == "attack" and "permuted labels" in frame.value.columns
            for frame in page.dataframe
        ):
            break
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def upload(page: AppTest, content: bytes, name: str = "answers.csv") -> AppTest:
    page.file_uploader(key=state.FILE_KEY).upload(name, content, "text/csv").run()
    return attacked(page)


def as_csv(**more: Sequence[str]) -> bytes:
    """Return what a classifier and three shadows say of 240 samples of 40 users."""
    frame = answers()
    for name, values in more.items():
        frame[name] = values
    return frame.to_csv(index=False).encode()


# What was measured


def test_where_nothing_was_measured_the_page_says_so_and_how(opened: Open) -> None:
    page = opened()
    assert page.title[0].value == QUESTION and not page.error
    assert "Nothing was measured" in page.info[0].value
    shown = [block.value for block in page.code]
    commands = [code for code in shown if code.startswith("leakscope ")]
    assert [command.split()[2] for command in commands] == [*FILES]
    for command in commands:
        words = command.split()
        assert (Path(__file__).parents[1] / words[words.index("--spec") + 1]).exists()
    assert not page.get("plotly_chart") and page.file_uploader(key=state.FILE_KEY)


def test_the_page_opens_with_the_strongest_of_what_was_measured(
    opened: Open, rows_of_studies: Path, found: list[Measured]
) -> None:
    page = opened(rows_of_studies)
    best = strongest(found)
    assert not best.is_control and not page.error
    assert page.session_state[state.MODEL_KEY] == best.model
    assert page.session_state[state.ATTACK_KEY] == best.attack
    auc = best.auc
    if auc.ci95.low > 0.5:
        percent = f"{100 * auc.value:.0f} % of the time"
        assert f"Of two {best.unit}, one of them in the training data" in told(page)
        assert f"the attack picks the right one {percent}" in told(page)
    low, high = 100 * auc.ci95.low, 100 * auc.ci95.high
    said = f"**{100 * auc.value:.1f}** (95 % CI {low:.1f}–{high:.1f})"
    assert said in told(page)
    assert f"n = {auc.n:,} {best.unit}; numbers are means over" in told(page)
    assert len(page.get("plotly_chart")) >= 1


def test_no_interval_of_a_mean_over_draws_leaves_what_a_share_can_be(
    found: list[Measured],
) -> None:
    (votes,) = [one for one in found if one.attack == "user_votes-loss"]
    rows = [
        replace(row, scores=row.scores | {"tpr_at_10": Score(tpr, Interval(tpr, 1.0), 20, 0.1)})
        for row, tpr in zip(votes.rows, (0.7, 1.0), strict=True)
    ]
    at = replace(votes, rows=tuple(rows)).at[0]
    assert at.tpr.value == 0.85 and at.tpr.ci95.high == 1.0
    assert membership_probability(at, 0.5).value == pytest.approx(0.85 / 0.95)


def test_rows_that_cannot_be_read_are_told_and_the_rest_works(
    opened: Open, rows_of_studies: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    (folder / FILES["membership-words"]).write_text('{"study": "names", "rows": [{"n": 1}]}')
    page = opened(folder)
    assert "membership-words" in page.error[0].value.replace("\\", "")
    assert page.file_uploader(key=state.FILE_KEY) and page.title[0].value == QUESTION
    flat = json.loads((rows_of_studies / FILES["membership-classifiers"]).read_text())
    for row in flat["rows"]:
        del row["n_member_users"]
    (folder / FILES["membership-words"]).unlink()
    (folder / FILES["membership-classifiers"]).write_text(json.dumps(flat))
    with pytest.raises(ArtifactError, match="Run the study again"):
        load_measured(folder)


@pytest.mark.slow
def test_what_ships_can_be_read() -> None:
    if not membership_shipped.SHIPPED.exists():
        pytest.skip("nothing was measured")
    assert load_measured()


# A classifier of one's own


@pytest.mark.slow
def test_after_an_upload_the_page_is_about_the_file_as_the_command_is(
    opened: Open, rows_of_studies: Path, leakscope_home: Path
) -> None:
    content = as_csv()
    page = upload(opened(rows_of_studies), content)
    assert not page.error
    record = attack_upload(MemoryFile("answers.csv", content)).record
    (table,) = [f.value for f in page.dataframe if "permuted labels" in f.value.columns]
    design = table[table["attack"].str.startswith("Shadow design alone")]
    assert len(design) == 1 and "not above chance" in design["AUC"].iloc[0]
    table = table.drop(design.index)
    assert len(table) == len(record["sample"]) + len(record["user"])
    aucs = {each["auc"] for level in ("sample", "user") for each in record[level].values()}
    assert {cell.split()[0] for cell in table["AUC"]} == {f"{100 * auc:.1f}" for auc in aucs}
    assert (table["found at 0.1 %"] == "not resolvable").all()
    assert "Simulated" not in told(page)
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == []
    first = record["verdict"].partition(". ")[0].removesuffix(".")
    assert page.title[0].value.replace("\\", "") == f"Your classifier: {first}"
    assert len(page.title) == 1, "what was measured on other models is no title any more"
    assert any("Measured on other models" in part.value for part in page.header)
    page.button(key="add-to-story-membership").click().run()
    assert not page.exception
    (placed,) = page.session_state["_story_pins"]
    slide = placed.pin.slide
    assert slide.title == f"Your classifier: {first}" and slide.figure is not None
    facts = dict(slide.facts)
    assert "your own file" in facts["Data"] and f"{record['n']:,} samples" in facts["n"]
    assert not placed.pin.is_live and placed.pin.parameters == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"member,label,p_a,p_b\n1,a,.5,.4\n0,b,.5,.5\n", "do not sum to 1"),
        (b"PK\x03\x04abc", "ZIP"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(opened: Open, content: bytes, wrong: str) -> None:
    page = upload(opened(), content)
    assert wrong in " ".join(e.value for e in page.error).replace("\\", "")


def test_an_upload_has_fewer_probabilities_than_a_file_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from leakscope.core.attacks.membership.classifiers import own_file

    monkeypatch.setattr(own_file, "MOST_UPLOADED_CELLS", 100)
    with pytest.raises(
        InvalidInputError,
        match=r"beyond 100 probab.*: 33 rows of 3 classes",
    ):
        attack_upload(MemoryFile("a.csv", as_csv()))


def warnings_of(page: AppTest) -> str:
    return " ".join(warning.value for warning in page.warning).replace("\\", "")


@pytest.mark.slow
def test_shadow_models_of_members_alone_are_a_warning_in_the_headline_and_no_leak(
    opened: Open,
) -> None:
    case = Path(__file__).parent / "cases" / "membership" / "shadows_of_members_no_leak.csv"
    page = upload(opened(), case.read_bytes())
    assert not page.error
    title = page.title[0].value.replace("\\", "")
    assert title.startswith("Your classifier: The shadow models cannot be used")
    assert "no evidence of a leak" in page.warning[0].value
    assert "None of 10 attacks finds members" in told(page)
    (table,) = [f.value for f in page.dataframe if "permuted labels" in f.value.columns]
    lira = table[table["attack"].str.startswith("LiRA")]
    rates = [name for name in table.columns if name.startswith("found at")]
    assert len(lira) == 2 and set(lira[rates].to_numpy().ravel()) == {"not valid"}
    assert "above chance" in table["AUC"].iloc[-1]
    assert "** of those called members are members" in told(page), "of an attack that is valid"
    page.selectbox(key=state.OWN_ATTACK_KEY).set_value("lira_online").run()
    assert "Not valid here" in warnings_of(page)
    assert "** of those called members are members" not in told(page)
    assert "is not valid with these shadow models" in told(page)
    assert "this attack is not valid here" in told(page), "nor is there a verdict on a sample"


@pytest.mark.slow
def test_texts_that_tell_members_alone_are_a_warning_in_the_headline(opened: Open) -> None:
    frame = answers()
    own = frame["shadow"].astype(str) == ""
    of_member = frame[own].set_index("sample")["member"].astype(int)
    frame["text"] = [f"{'old' if of_member[s] else 'new'} letter" for s in frame["sample"]]
    page = upload(opened(), frame.to_csv(index=False).encode())
    assert not page.error
    assert "Members and non-members differ" in page.title[0].value.replace("\\", "")
    assert "no evidence of a leak" in page.warning[0].value
    (table,) = [f.value for f in page.dataframe if "permuted labels" in f.value.columns]
    blind = table[table["attack"].str.startswith("Blind baseline")]
    assert blind["AUC"].iloc[0].startswith("100.0")


@pytest.mark.slow
def test_the_example_says_that_it_is_made_up(opened: Open) -> None:
    page = opened()
    assert "Simulated" not in told(page)
    page.button(key="membership-example").click().run()
    page = attacked(page)
    assert "Simulated" in page.warning[0].value and "no classifier was trained" in told(page)
    assert "made-up user 1" in told(page) and not page.error
    assert "**Simulated.** If one in 11 is a member" in told(page)
    assert "(attack: Summed likelihood ratios of BaVarIA (users))" in told(page).replace("\\", "")
    assert "Simulated: made-up scores" in told(page)
    found = attack_example()
    assert (
        found.record["simulated"]
        and "simulated" not in attack_upload(MemoryFile("a.csv", as_csv())).record
    )
    inference = found.record["user"]["user_inference"]
    assert inference["auc"] > found.record["sample"]["feature loss"]["auc"] > 0.6
    assert abs(inference["auc_shuffled"] - 0.5) < 0.05


@pytest.mark.slow
def test_hostile_names_and_texts_are_shown_as_they_are(opened: Open) -> None:
    frame = answers()
    name = "<b>*=1+1*</b> $x$ www.evil.test"
    frame["user"] = frame["user"].where(frame["user"] != frame["user"].iloc[0], name)
    frame["text"] = "=HYPERLINK(1)"
    page = upload(opened(), frame.to_csv(index=False).encode())
    page.selectbox(key=state.OWN_ATTACK_KEY).set_value("user_inference").run()
    names = sorted(set(frame["user"]))
    page.selectbox(key=f"{state.WHO_KEY}_User").set_value(names.index(name)).run()
    assert not page.error
    assert any("\\<b\\>" in m.value for m in page.markdown)
    assert not any("<b>" in m.value for m in page.markdown)
    (texts,) = [f.value for f in page.dataframe if "sample" in f.value.columns]
    assert len(texts) == 6 and set(texts["sample"]) == {"'=HYPERLINK(1)"}


@pytest.mark.slow
def test_a_verdict_means_less_the_rarer_members_are_and_nothing_beyond_the_others(
    opened: Open,
) -> None:
    page = upload(opened(), as_csv())
    page.selectbox(key=state.OWN_ATTACK_KEY).set_value("user_inference").run()

    def worth() -> float:
        (line,) = [
            m.value for m in page.markdown if "** of those called members are members" in m.value
        ]
        return float(line.split("**")[1].partition(" %")[0])

    page.select_slider(key=state.PRIOR_KEY).set_value(2).run()
    often = worth()
    page.select_slider(key=state.PRIOR_KEY).set_value(1001).run()
    assert worth() < often and "one in 1,001" in told(page)
    assert "Called a member" in told(page) or "Not called a member" in told(page)
    assert "The threshold comes from shadow models" in told(page)
    assert "According to the table" in told(page) and "the verdict is" in told(page)
    page.segmented_control(key=state.RATE_KEY).set_value(0.001).run()
    assert "No verdict: with" in told(page) and "is not resolvable" in told(page)


def test_a_file_that_went_with_a_reload_is_asked_for_again(opened: Open) -> None:
    page = opened()
    page.session_state["_membership_request"] = OwnRequest(digest="0" * 64, name="a.csv")
    page.run()
    assert not page.exception and not page.error
    assert "_membership_request" not in page.session_state


# The mathematics behind it, and the figures


def test_an_accusation_is_worth_what_bayes_says() -> None:
    at = AtRate(0.1, 0.0, Score(0.5, Interval(0.4, 0.6), 40, 0.1), 40)
    found = membership_probability(at, 1 / 11)
    assert found.value == pytest.approx((0.5 / 11) / (0.5 / 11 + 0.1 * 10 / 11))
    assert found.ci95.low < predictive_value(0.4, 0.1, 1 / 11) < found.value < found.ci95.high
    free = membership_probability(at, 1 / 11, is_called=False)
    assert free.value == pytest.approx((0.5 / 11) / (0.5 / 11 + 0.9 * 10 / 11))
    assert free.ci95.low < free.value < free.ci95.high


def test_the_curve_begins_where_one_accusation_can_be_seen_and_holds_the_line_of_chance() -> None:
    rng = np.random.default_rng(0)
    members = np.arange(400) < 200
    points = curve_with_band(Ranking(rng.normal(size=400), members))
    assert points[0][0] == pytest.approx(1 / 200)
    inside = [s.ci95.low <= rate <= s.ci95.high for rate, s in points]
    assert np.mean(inside) > 0.7, "random scores lie on the line of chance"
    figure = roc_figure(points)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert [t.name for t in figure.data] == ["chance", "95 % CI", "95 % CI", "attack"]
    assert list(figure.data[0].x) == list(figure.data[0].y)
    alone = roc_figure([(0.1, Score(0.0, Interval(0.0, 0.3), 9, 0.1))], has_curve=False)
    assert alone.data[-1].y == (None,), "nothing has no place on a logarithmic axis"


@pytest.mark.slow
def test_what_the_year_tells_is_shown_and_is_no_headline(opened: Open) -> None:
    shipped = load_measured(RESULTS)
    by_year = [one for one in shipped if one.is_by_year]
    assert by_year and strongest(by_year) in by_year
    best = strongest(shipped)
    assert best not in by_year
    assert max(one.auc.ci95.low for one in by_year) > best.auc.ci95.low, "or it proves nothing"
    page = opened(RESULTS)
    assert page.session_state[state.DATA_KEY] == best.data
    (data,) = [box for box in page.selectbox if box.key == state.DATA_KEY]
    assert any("by year" in option for option in data.options)
    assert "when people wrote, not how" not in told(page)
    page = opened(RESULTS, data=by_year[0].data)
    assert "when people wrote, not how" in told(page)
    slide = members()
    assert slide.title == verdict(best) and slide.table is not None
    assert any("by year" in row[1] for row in slide.table.rows)
    assert any(name == YEARS for name, _ in slide.facts)


def test_what_is_downloaded_is_json_without_texts() -> None:
    secret = "The violinist hid the ledger."
    found = attack_upload(MemoryFile("a.csv", as_csv(text=[secret] * len(answers()))))
    assert set(found.texts) == {secret}
    stored = json.dumps(found.record)
    assert secret not in stored and json.loads(stored)["n"] == len(found.texts)
    rows = list(csv.reader(io.StringIO(as_csv().decode())))
    assert len(rows) - 1 == 4 * len(found.texts), "texts are those of the classifier's own rows"
