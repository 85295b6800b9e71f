from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from test_cli_membership import answers
from test_membership_studies import words_study, write_books

from core.assets import ASSETS
from core.attacks.membership.classifiers.own_file import attack_example, attack_upload
from core.attacks.membership.drawn import curve_with_band, score_shares
from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import AtRate, predictive_value
from core.attacks.membership.verdict import worth_at
from core.corpora.memory_file import MemoryFile
from core.errors import ArtifactError, InvalidInputError
from core.figures.membership import decile_figure, roc_figure, score_figure
from core.registry import Look
from core.results import Interval, Score
from core.story.format import RESTS_ON, YEARS
from core.story.views_told import members
from core.studies import membership_shipped
from core.studies.membership_classifiers import MembershipClassifierStudy
from core.studies.membership_shipped import FILES, Measured, load_measured, strongest, verdict
from core.studies.registry import run_study
from core.studies.tables import write_rows
from dashboard import cache
from dashboard.membership import state
from dashboard.membership.measured import QUESTION
from dashboard.membership.state import OwnRequest

Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def rows_of_studies(
    tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, small_texts: list[str]
) -> Iterator[Path]:
    """A folder like assets/membership with the rows of two small studies."""
    folder = tmp_path_factory.mktemp("membership")
    rng = np.random.default_rng(0)
    posts, shipped = folder / "posts.csv", folder / "shipped"
    lines = [f"u{i % 50},{'abc'[rng.integers(3)]},{text}" for i, text in enumerate(small_texts)]
    posts.write_text("\n".join(["user_id,topic,text", *lines]) + "\n", encoding="utf-8")
    shipped.mkdir()
    studies = {
        "membership-classifiers": MembershipClassifierStudy(
            corpora=(f"posts={posts}:topic",), encoder=f"mlm:{tiny_bert}", n_shadows=4,
            seeds=(0, 1), least=2, splits=("user",),
            classifier_attacks=("threshold", "user_votes"),
        ),
        "membership-words": words_study(
            write_books(folder / "books.csv"), similarities=("cosine", "centred")
        ),
    }  # fmt: skip
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
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/membership.py").run()
        assert not small_app.exception
        return small_app

    yield visit
    cache.membership.clear()


def told(page: AppTest) -> str:
    parts = [*page.title, *page.markdown, *page.caption, *page.info, *page.warning]
    return " ".join(part.value for part in parts).replace("\\", "")


def attacked(page: AppTest) -> AppTest:
    """Wait until the job of the page is done."""
    end = time.monotonic() + 120
    while not page.error and time.monotonic() < end:
        if any(frame.value.columns[0] == "attack" and "by lot" in frame.value.columns
               for frame in page.dataframe):  # fmt: skip
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
    commands = [code for code in shown if code.startswith("python")]  # beside the page's address
    assert [command.split()[4] for command in commands] == [*FILES]
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
        assert f"right {100 * auc.value:.0f} % of the time" in page.title[0].value
    said = f"{100 * auc.value:.1f} [{100 * auc.ci95.low:.1f}, {100 * auc.ci95.high:.1f}]"
    assert said in told(page)
    assert f"Of {auc.n:,} {best.unit}; means over" in told(page)
    assert len(page.get("plotly_chart")) >= 1


def test_a_classifier_is_shown_with_its_curve_and_a_rate_that_cannot_be_told(
    opened: Open, rows_of_studies: Path, found: list[Measured]
) -> None:
    (votes,) = [one for one in found if one.attack == "user_votes-loss"]
    page = opened(rows_of_studies, model="linear", attack=votes.attack)
    assert votes.n_draws == 2 and "means over 2 draws" in told(page)
    assert votes.null is not None and "Of a model that was trained on neither it is" in told(page)
    assert votes.curve[0][0] * votes.n_outsiders >= 1 - 1e-9 and votes.curve[-1][0] == 1
    assert not votes.at[-1].is_shown and "not resolvable" in told(page)
    assert all(s.ci95.low <= s.value <= s.ci95.high for _, s in votes.curve)
    assert "chance alone says" in told(page)


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
    assert worth_at(at, 0.5).value == pytest.approx(0.85 / 0.95)


def test_a_finding_is_pinned_with_its_curve(opened: Open, rows_of_studies: Path) -> None:
    page = opened(rows_of_studies)
    page.button(key="add-to-story-membership").click().run()
    assert not page.exception
    (placed,) = page.session_state["_story_pins"]
    assert placed.pin.slide.figure["data"] and placed.pin.slide.commands
    assert page.title[0].value.replace("\\", "") == placed.pin.slide.title
    facts = dict(placed.pin.slide.facts)
    assert [fact for fact in RESTS_ON if not facts.get(fact)] == []
    assert not facts["Data"].startswith("none")


def test_words_are_shown_by_how_frequent_they_are(opened: Open, rows_of_studies: Path) -> None:
    page = opened(rows_of_studies, model="word2vec", data="books", attack="cosine-3")
    tables = [f.value for f in page.dataframe if "tenth" in f.value.columns]
    assert len(tables) == 1 and set(tables[0]["attack"]) == {
        "Mean cosine, windows of 3 words", "Mean cosine, frequency taken off, windows of 3 words"
    }  # fmt: skip
    assert tables[0]["tenth"].max() > 5
    page = opened(rows_of_studies, data="books-both")
    assert "control" in page.title[0].value and "trained on both halves" in told(page)


def test_a_link_opens_a_view_and_says_what_there_is_not(
    opened: Open, rows_of_studies: Path
) -> None:
    page = opened(rows_of_studies, model="word2vec", prior="101", rate="0.01", attack="nonsense")
    assert page.session_state[state.MODEL_KEY] == "word2vec"
    assert page.session_state[state.PRIOR_KEY] == 101
    assert page.session_state[state.RATE_KEY] == 0.01
    assert "nonsense" in page.warning[0].value and not page.error


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
    with pytest.raises(ArtifactError, match="Make it anew"):
        load_measured(folder)


def test_what_ships_can_be_read() -> None:
    if not membership_shipped.SHIPPED.exists():
        pytest.skip("nothing was measured")
    assert load_measured()


# A classifier of one's own


def test_an_upload_is_attacked_as_by_the_command_and_stays_in_the_session(
    opened: Open, leakscope_home: Path
) -> None:
    content = as_csv()
    page = upload(opened(), content)
    assert not page.error
    (table,) = [f.value for f in page.dataframe if "by lot" in f.value.columns]
    record = attack_upload(MemoryFile("answers.csv", content)).record
    design = table[table["attack"].str.startswith("Shadow design alone")]
    assert len(design) == 1 and "not above chance" in design["AUC"].iloc[0]
    table = table.drop(design.index)
    assert len(table) == len(record["sample"]) + len(record["user"])
    aucs = {each["auc"] for level in ("sample", "user") for each in record[level].values()}
    assert {cell.split()[0] for cell in table["AUC"]} == {f"{100 * auc:.1f}" for auc in aucs}
    assert (table["found at 0.1 %"] == "not resolvable").all()
    assert "Simulated" not in told(page)
    first = record["verdict"].partition(". ")[0].removesuffix(".")
    assert f"Your classifier: {first}" in told(page)
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == []


def test_after_an_upload_the_page_is_about_the_file(opened: Open, rows_of_studies: Path) -> None:
    page = upload(opened(rows_of_studies), as_csv())
    assert not page.error and not page.exception
    record = attack_upload(MemoryFile("answers.csv", as_csv())).record
    first = record["verdict"].partition(". ")[0].removesuffix(".")
    assert page.title[0].value.replace("\\", "") == f"Your classifier: {first}"
    assert len(page.title) == 1, "what was measured here is no title any more"
    assert any("What was measured here" in part.value for part in page.header)
    page.button(key="add-to-story-membership").click().run()
    assert not page.exception
    (placed,) = page.session_state["_story_pins"]
    slide = placed.pin.slide
    assert slide.title == f"Your classifier: {first}" and slide.figure is not None
    facts = dict(slide.facts)
    assert "a file of one's own" in facts["Data"] and f"{record['n']:,} samples" in facts["n"]
    assert not placed.pin.is_live and placed.pin.parameters == ()


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "empty"),
        (b"member,label,p_a\n1,a,1\n0,a,1\n", "one class alone"),
        (b"member,label,p_a,p_b\n1,a,.5,.5\n1,b,.5,.5\n", "members and others"),
        (b"member,label,p_a,p_b\n1,a,.5,.4\n0,b,.5,.5\n", "do not sum to 1"),
        (b"member,label,p_a,p_b\n1,,.5,.5\n0,b,.5,.5\n", "has no label"),
        (b"PK\x03\x04abc", "ZIP"),
        (b"member,label,p_a,p_b,user\n1,a,.5,.5,\n0,b,.5,.5,x\n", "has no user"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(opened: Open, content: bytes, wrong: str) -> None:
    page = upload(opened(), content)
    assert wrong in " ".join(e.value for e in page.error).replace("\\", "")


def test_an_upload_has_fewer_probabilities_than_a_file_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from core.attacks.membership.classifiers import own_file

    monkeypatch.setattr(own_file, "MOST_UPLOADED_CELLS", 100)
    with pytest.raises(
        InvalidInputError,
        match=r"beyond 100 probab.*: 33 rows of 3 classes",
    ):
        attack_upload(MemoryFile("a.csv", as_csv()))


def warnings_of(page: AppTest) -> str:
    return " ".join(warning.value for warning in page.warning).replace("\\", "")


def test_shadow_models_of_members_alone_are_a_warning_in_the_headline_and_no_leak(
    opened: Open,
) -> None:
    case = Path(__file__).parent / "cases" / "membership" / "shadows_of_members_no_leak.csv"
    page = upload(opened(), case.read_bytes())
    assert not page.error
    assert page.title[0].value.startswith("Your classifier: The shadow models cannot be used")
    assert "no evidence of a leak" in page.warning[0].value
    assert "None of 10 attacks finds members" in told(page)
    (table,) = [f.value for f in page.dataframe if "by lot" in f.value.columns]
    lira = table[table["attack"].str.startswith("LiRA")]
    rates = [name for name in table.columns if name.startswith("found at")]
    assert len(lira) == 2 and set(lira[rates].to_numpy().ravel()) == {"not valid"}
    assert "above chance" in table["AUC"].iloc[-1]
    assert "of those whom it calls members" in told(page), "of an attack that is valid"
    page.selectbox(key=state.OWN_ATTACK_KEY).set_value("lira_online").run()
    assert "Not valid here" in warnings_of(page)
    assert "of those whom it calls members" not in told(page)
    assert "not valid with these shadow models" in told(page)
    assert "this attack is not valid here" in told(page), "nor is there a verdict on a sample"


def test_texts_that_tell_members_alone_are_a_warning_in_the_headline(opened: Open) -> None:
    frame = answers()
    own = frame["shadow"].astype(str) == ""
    of_member = frame[own].set_index("sample")["member"].astype(int)
    frame["text"] = [f"{'old' if of_member[s] else 'new'} letter" for s in frame["sample"]]
    page = upload(opened(), frame.to_csv(index=False).encode())
    assert not page.error
    assert "Members and non-members differ" in page.title[0].value.replace("\\", "")
    assert "no evidence of a leak" in page.warning[0].value
    (table,) = [f.value for f in page.dataframe if "by lot" in f.value.columns]
    blind = table[table["attack"].str.startswith("Blind baseline")]
    assert blind["AUC"].iloc[0].startswith("100.0")


def test_the_example_says_that_it_is_made_up(opened: Open) -> None:
    page = opened()
    assert "Simulated" not in told(page)
    page.button(key="membership-example").click().run()
    page = attacked(page)
    assert "Simulated" in page.warning[0].value and "no classifier was trained" in told(page)
    assert "made-up user 1" in told(page) and not page.error
    assert "Simulated: Summed likelihood ratios: of BaVarIA (users)" in told(page)
    assert "Simulated: made-up scores" in told(page)
    found = attack_example()
    assert (
        found.record["simulated"]
        and "simulated" not in attack_upload(MemoryFile("a.csv", as_csv())).record
    )
    inference = found.record["user"]["user_inference"]
    assert inference["auc"] > found.record["sample"]["feature loss"]["auc"] > 0.6
    assert abs(inference["auc_shuffled"] - 0.5) < 0.05


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


def test_a_verdict_means_less_the_rarer_members_are(opened: Open) -> None:
    page = upload(opened(), as_csv())
    page.selectbox(key=state.OWN_ATTACK_KEY).set_value("user_inference").run()

    def worth() -> float:
        (line,) = [m.value for m in page.markdown if "of those whom it calls" in m.value]
        return float(line.split("**")[3].partition(" %")[0])

    page.select_slider(key=state.PRIOR_KEY).set_value(2).run()
    often = worth()
    page.select_slider(key=state.PRIOR_KEY).set_value(1001).run()
    assert worth() < often and "one in 1,001" in told(page)
    assert "Called a member" in told(page) or "Not called a member" in told(page)
    assert "In truth, as the table says" in told(page)


def test_a_rate_that_the_others_cannot_tell_gives_no_verdict(opened: Open) -> None:
    page = upload(opened(rate="0.001"), as_csv())
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
    found = worth_at(at, 1 / 11)
    assert found.value == pytest.approx((0.5 / 11) / (0.5 / 11 + 0.1 * 10 / 11))
    assert found.ci95.low < predictive_value(0.4, 0.1, 1 / 11) < found.value < found.ci95.high
    free = worth_at(at, 1 / 11, is_called=False)
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
    assert [t.name for t in figure.data] == ["chance", "95 % interval", "95 % interval", "attack"]
    assert list(figure.data[0].x) == list(figure.data[0].y)
    alone = roc_figure([(0.1, Score(0.0, Interval(0.0, 0.3), 9, 0.1))], has_curve=False)
    assert alone.data[-1].y == (None,), "nothing has no place on a logarithmic axis"


def test_shares_of_scores_are_of_either_kind_and_marked() -> None:
    scores = np.array([0.0, 0.1, 0.2, np.inf, -np.inf, 0.15])
    shares = score_shares(Ranking(scores, np.array([True, True, False, True, False, False])))
    assert shares.members.sum() == pytest.approx(100) == shares.outsiders.sum()
    figure = score_figure(shares, marked=np.inf)
    assert figure.layout.shapes[0].x0 == shares.edges[-1]
    assert figure.data[0].marker.pattern.shape != figure.data[1].marker.pattern.shape


def test_tenths_have_symbols_of_their_own() -> None:
    points = [(i, Score(i / 20, Interval(0.0, 1.0), 9, 0.0)) for i in range(1, 11)]
    looks = Look("#0072B2", "circle"), Look("#D55E00", "diamond")
    figure = decile_figure([("one", looks[0], points), ("other", looks[1], points[:3])])
    assert [t.marker.symbol for t in figure.data] == ["circle", "diamond"]
    assert list(figure.data[0].x) == [*range(1, 11)]
    both = decile_figure([("5 words", looks[0], points), ("11 words", looks[0], points)])
    assert [t.line.dash for t in both.data] == ["solid", "dash"], "of one attack, told by stroke"


def test_what_is_shipped_of_rare_words_is_told_with_them(opened: Open) -> None:
    page = opened(ASSETS / "membership", model="word2vec")
    assert "Of the rarest tenth of words it is **9" in told(page)


def test_what_the_year_tells_is_shown_and_is_no_headline(opened: Open) -> None:
    shipped = load_measured(ASSETS / "membership")
    by_year = [one for one in shipped if one.is_by_year]
    assert by_year and strongest(by_year) in by_year
    best = strongest(shipped)
    assert best not in by_year
    assert max(one.auc.ci95.low for one in by_year) > best.auc.ci95.low, "or it proves nothing"
    page = opened(ASSETS / "membership")
    assert page.session_state[state.DATA_KEY] == best.data
    (data,) = [box for box in page.selectbox if box.key == state.DATA_KEY]
    assert any("by year" in option for option in data.options)
    assert "who was there" not in told(page)
    page = opened(ASSETS / "membership", data=by_year[0].data)
    assert "a year says who was there" in told(page)
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
