from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, open_page

from leakscope.core.defences.metric_dp.audit.mechanism import MakeDefence, defence_factory
from leakscope.core.defences.metric_dp.exponential_guarantee import shipped_guarantees
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.errors import InvalidInputError
from leakscope.core.findings.deniability import _title_and_body, privatised_sentence
from leakscope.core.jobs import JobState
from leakscope.core.pages import PAGES
from leakscope.core.results import Interval, Score
from leakscope.core.specs import DefenceSpec, EncoderSpec
from leakscope.core.studies.deniability import replacements
from leakscope.core.studies.deniability.mechanism_audit import BY_NOISE
from leakscope.core.studies.tradeoff.summary import shipped_tradeoff
from leakscope.dashboard import cache
from leakscope.dashboard.deniability import state as defence_state
from leakscope.dashboard.deniability import views
from leakscope.dashboard.deniability.views import OWN
from leakscope.dashboard.server import policy
from leakscope.dashboard.ui import state

TEXT = "The harbour master counted twelve ships."
APP = Path(__file__).parents[1] / "dashboard" / "app.py"


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    def visit(typed_encoder: str = "minilm", **address: str) -> AppTest:
        # The simulated picker takes nothing but its options.
        small_app.session_state["encoder"] = typed_encoder
        return open_page(small_app, "deniability", **address)

    return visit


@pytest.fixture
def minilm_copy() -> str:
    """The bundled model by its folder: another encoder, too large to be measured in a moment."""
    from leakscope.core.encoders.minilm import minilm_folder

    return f"mlm:{minilm_folder()}"


def share(page: AppTest) -> float:
    """Return the percentage of the headline."""
    return float(title(page).split(", ")[1].split("%")[0].split()[-1])


def title(page: AppTest) -> str:
    return str(page.title[0].value).replace("\\", "")


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def messages(page: AppTest) -> str:
    return " ".join(e.value for e in page.error).replace("\\", "")


def slider(page: AppTest):
    return page.select_slider(key=defence_state.ETA_KEY)


@pytest.mark.slow
def test_the_first_visit_opens_with_a_finding(opened: Open) -> None:
    page = opened()
    assert title(page).startswith("At η = 75, ")
    assert any("of the tokens of real text unchanged" in part.value for part in page.header)
    assert "This is no recommendation" in " ".join(part.value for part in page.markdown)
    (folded,) = [e for e in page.expander if "Two other rules" in e.label]
    assert {button.key for button in folded.button} == {"use-worst", "use-most"}
    assert 20 < share(page) < 90
    assert "95 % CI" in page.markdown[0].value
    assert "came back unchanged" in html(page) and not page.error
    assert len(page.dataframe[0].value) > 5


def sentence_of(value: float) -> Any:
    """Return a sentence of six tokens, of which so many per cent come back at any η."""
    score = Score(value, Interval(max(value - 1, 0), min(value + 1, 100)), 1000)
    return SimpleNamespace(unchanged=lambda eta: score, ids=range(6))


@pytest.mark.parametrize(
    ("eta", "value", "verdict", "told"),
    [
        (200, 100.0, "nearly all of your text is published: 100 %", "Already at η = 120"),
        (120, 96.0, "nearly all of your text is published: 96 %", "**Leakage**"),
        (90, 80.0, "most of your text is published: 80 %", "**Leakage**"),
        (75, 52.0, "52 % of this text's tokens stay unchanged", ""),
        (45, 8.0, "hardly anything of your text is left: 8 %", "**What that costs.** At η = 45"),
        (15, 0.1, "hardly anything of your text is left: 0", "Already at η = 45"),
    ],
)
def test_the_verdict_changes_with_eta(eta: float, value: float, verdict: str, told: str) -> None:
    title, beside = _title_and_body(sentence_of(value), eta, shipped_tradeoff())
    assert title.startswith(f"At η = {eta}, {verdict}") and told in beside
    assert ("What that costs" in beside) is (value <= 10)
    assert ("This protects almost nothing" in beside) is (value >= 95)
    assert ("more than from vectors without a defence" in beside) is (eta >= 90)
    assert ("**Utility**" in beside) is (value <= 10), "the cost is that of the measured tasks"


def test_a_verdict_without_measured_costs_says_so() -> None:
    _, beside = _title_and_body(sentence_of(1), 20, None)
    assert "was not measured for this encoder" in beside
    assert "**Leakage**" not in _title_and_body(sentence_of(99), 200, None)[1]


def test_a_finding_without_its_text_names_no_token_of_it() -> None:
    promises = shipped_guarantees(DefenceSpec.of("text_to_text", {"eta": 75.0}), "minilm")
    assert promises is not None
    named = re.findall(r"“([^”]+)”", promises.headline)
    tokens = ["it", *named, "is", "so", "."]
    sentence: Any = SimpleNamespace(
        **vars(sentence_of(52.0)),
        n_draws=1000,
        tokens=tokens,
        curves=lambda etas: np.full((6, len(etas)), 520.0),
    )
    told = partial(privatised_sentence, sentence, 75.0, [60.0, 75.0, 90.0], promises=promises)
    whole, hidden = (str(told(released=each).to_dict()) for each in (tokens, None))
    assert len(named) == 2 and all(name in whole for name in named)
    assert not any(name in hidden for name in named)
    assert promises.nearest.odds in hidden and promises.median.odds in hidden


@pytest.mark.parametrize("value", [0.02, 0.2, 3.4, 99.4, 99.96, 100.0])
def test_the_share_of_a_verdict_lies_within_its_interval(value: float) -> None:
    title, beside = _title_and_body(sentence_of(value), 75, None)
    shown = re.search(r"([\d.]+) % of", title)
    ends = re.search(r"95 % CI ([\d.]+)–([\d.]+) %", beside)
    assert shown and ends and float(ends[1]) <= float(shown[1]) <= float(ends[2]), title


@pytest.mark.slow
def test_the_rule_of_real_text_takes_a_file_of_ones_own(opened: Open) -> None:
    page = opened()
    page.selectbox(key="corpus").set_value(OWN).run()
    assert not page.exception and "Choose a file" in page.info[0].value
    assert len([b for b in page.button if b.key == "use-corpus"]) == 0
    body = "title,body\n" + "".join(f"a{i},the garden by the river {i}\n" for i in range(30))
    page.file_uploader(key="own-text").upload("own.csv", body.encode(), "text/csv").run()
    said = " ".join(caption.value for caption in page.caption)
    assert not page.exception and not page.error
    assert "the column body" in said and "180 tokens counted" in said
    page.file_uploader(key="own-text").upload("own.csv", b"\xff\xfe\x00bad", "text/csv").run()
    assert not page.exception and page.error


@pytest.mark.slow
def test_a_long_text_has_an_area_and_says_how_much_is_encoded(opened: Open) -> None:
    page = opened(text="The garden lies by the river. " * 80)
    assert page.text_area(key="text-area").value.startswith("The garden")
    said = next(c.value for c in page.caption if "words are encoded" in c.value)
    n_read, n = (int(part) for part in re.findall(r"\d+", said)[:2])
    assert n == 480 and 100 < n_read < 254
    page.text_area(key="text-area").set_value(TEXT).run()
    assert "6 of 6 words are encoded." in " ".join(c.value for c in page.caption)
    page.button(key="long-text").click().run()
    assert page.text_input(key=state.TEXT_KEY).value == TEXT and not page.text_area


@pytest.mark.slow
def test_a_link_carries_text_and_eta_until_they_change(opened: Open) -> None:
    page = opened(text=TEXT, eta="40.2")
    assert slider(page).value == 40 and page.text_input(key=state.TEXT_KEY).value == TEXT
    assert list(page.dataframe[0].value["token"])[:2] == ["the", "harbour"]
    slider(page).set_value(60.0).run()
    assert title(page).startswith("At η = 60, ") and "eta" not in page.query_params


@pytest.mark.slow
def test_what_the_encoder_does_not_know_is_told(opened: Open) -> None:
    page = opened(text="\N{GRINNING FACE} rain")
    assert any("1 token is unknown" in c.value for c in page.caption)


def test_text_odds_and_replacements_follow_the_slider_draws_and_rules(opened: Open) -> None:
    page = opened(text=TEXT)
    told = check_odds(page)
    check_replacements(page)
    before, finding = html(page), title(page)
    page.button(key="draw-again").click().run()
    assert html(page) != before and title(page) == finding
    shares = []
    for eta in (15.0, 75.0, 200.0):
        slider(page).set_value(eta).run()
        assert not page.exception
        shares.append(share(page))
        if eta == 15:
            (less,) = [m.value for m in page.markdown if "may tell apart" in m.value][:1]
            assert exponent(less) < exponent(told)
    assert shares[0] < 10 < shares[1] < 97 < shares[2]
    page.button(key="use-worst").click().run()
    assert slider(page).value == 42
    page.slider(key="worst-changed").set_value(90).run()
    assert not page.exception
    page.button(key="use-worst").click().run()
    assert slider(page).value < 42


def check_odds(page: AppTest) -> str:
    """Check that the guarantee of η is beside it with all its odds; return its first mention."""
    said = [m.value.replace("\\", "") for m in page.markdown if "may tell apart" in m.value]
    assert "whoever sees the output may tell apart" in said[0]
    assert "practically no guarantee" in said[0]
    assert all("odds" in each.lower() for each in said), "never without its number"
    in_sight = [each for each in said if each.startswith(("**What this", "At η = "))]
    assert len(in_sight) > 1
    for each in in_sight:
        assert "for a whole sentence of" in each and "practically no guarantee" in each
        assert "two words a typical (median) distance apart, the odds are up to" in each
    return str(said[0])


def check_replacements(page: AppTest) -> None:
    """Check that what replaces a token is shown for every mechanism, from the rows that ship."""
    rows = replacements.load_replacements()
    assert {row["defence"] for row in rows} == {*replacements.MECHANISMS}
    near = max((row.scores["1-10"] for row in rows), key=lambda score: score.value)
    (told,) = [m.value for m in page.markdown if "10 nearest neighbours" in m.value]
    value, interval = near.parts()
    assert f"**{value} %** of the tokens (95 % CI {interval})" in told.replace("\\", "")
    (table,) = [d.value for d in page.dataframe if "the token itself, %" in d.value.columns]
    assert len(table) == len(rows)
    assert list(table["the token itself, %"]) == [row.format("0") for row in rows]


@pytest.mark.parametrize("text", ["café مرحبا 😀", "<b>bold</b> & [SEP]", "2+2=4"])
def test_unusual_text_does_no_harm(opened: Open, text: str) -> None:
    page = opened(text=text)
    assert not page.exception and not page.error
    assert "<b>" not in html(page)


@pytest.fixture
def on_tiny(opened: Open, tiny_bert: Path, small_texts: list[str]) -> AppTest:
    page = opened(typed_encoder=f"mlm:{tiny_bert}", text=small_texts[0])
    assert not page.error, messages(page)
    return page


def jobs_of(page: AppTest) -> list[str]:
    """Return the jobs that the address names; AppTest says one as a string."""
    found = page.query_params.get("job", [])
    return [found] if isinstance(found, str) else list(found)


def measured(page: AppTest) -> None:
    """Start the job of the page, and come back when it is done."""
    page.button(key="measure-tokens").click().run()
    assert not page.exception
    # A job as small as this may be done, and off the address, before the page is drawn.
    for job_id in jobs_of(page):
        job = cache.jobs().wait(job_id, timeout=120)
        assert job is not None and job.state is JobState.DONE, job
    page.run()
    assert not page.exception
    assert not [b for b in page.button if b.key == "measure-tokens"], "it was not measured"


@pytest.mark.slow
def test_another_encoder_answers_at_once_and_is_measured_when_asked(on_tiny: AppTest) -> None:
    page = on_tiny
    assert slider(page).options[0] == "1.25" and "tokens stay unchanged" in title(page)
    assert not [b for b in page.button if b.key == "use-most"]
    assert any(c.value.startswith("Encoder: mlm") for c in page.caption)
    measured(page)
    assert any("tokens, at the measured η nearest to yours" in c.value for c in page.caption)
    page.button(key="use-most").click().run()
    assert not page.exception


@pytest.mark.slow
def test_what_was_measured_is_at_hand_for_others_and_in_links(
    on_tiny: AppTest, tiny_bert: Path
) -> None:
    measured(on_tiny)
    other = AppTest.from_file(str(APP), default_timeout=180)
    other.run()
    other.query_params["encoder"] = f"mlm:{tiny_bert}"
    other.switch_page("../pages/deniability.py").run()
    assert not other.exception and not other.warning
    assert other.selectbox(key="encoder").value == f"mlm:{tiny_bert}"
    assert not [b for b in other.button if b.key == "measure-tokens"]


def test_a_link_opens_no_encoder_that_is_new(opened: Open, tiny_bert: Path) -> None:
    page = opened(encoder=f"mlm:{tiny_bert}")
    assert "has not been measured" in page.warning[0].value
    assert page.selectbox(key="encoder").value == "minilm"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mlm:/no/such/folder", "nonsense", "st:", "mlm:../../etc", "minilmm"]
)
def test_an_encoder_that_cannot_be_opened_is_told_and_can_be_changed(
    opened: Open, name: str
) -> None:
    page = opened(typed_encoder=name)
    assert page.error[0].value
    page.selectbox(key="encoder").set_value("minilm").run()
    assert not page.exception and not page.error
    assert title(page).startswith("At η = 75, ")


@pytest.mark.parametrize("family", ["mlm", "st"])
def test_an_encoder_that_nobody_has_is_told_with_the_remedy(
    opened: Open, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(model: str) -> int:
        asked.append(model)
        raise ConnectionError("no network in this test")

    monkeypatch.setattr("leakscope.core.encoders.hub._ask_hub", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    page = opened(typed_encoder=f"{family}:does/not-exist")
    assert asked == ["does/not-exist"]
    assert not page.exception
    assert "Check the spelling" in page.error[0].value
    assert page.selectbox(key="encoder").value == f"{family}:does/not-exist"


@pytest.mark.slow
def test_measuring_can_be_stopped(opened: Open, minilm_copy: str) -> None:
    page = opened(typed_encoder=minilm_copy)
    page.button(key="measure-tokens").click().run()
    (job_id,) = jobs_of(page)
    cache.jobs().stop(job_id)
    job = cache.jobs().wait(job_id, timeout=120)
    assert job is not None and job.state is JobState.STOPPED
    page.run()
    assert not page.exception and page.button(key="measure-tokens")
    assert any("Nothing was kept" in c.value for c in page.caption)


def test_a_server_for_others_loads_listed_encoders_alone(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tiny_bert: Path, minilm_copy: str
) -> None:
    listed = f"mlm:{tiny_bert}"
    served = policy.Policy(hosts=("leak.example.org",), encoders=(listed,))
    monkeypatch.setattr(policy, "current_policy", lambda: served)
    monkeypatch.setattr(
        "leakscope.dashboard.ui.encoder_choice.known_encoders", lambda: [listed, minilm_copy]
    )
    page = opened(typed_encoder=minilm_copy, text=TEXT)
    assert "does not allow this encoder" in messages(page)
    with pytest.raises(InvalidInputError, match="may not load"):
        cache.encoder(EncoderSpec(name="mlm:/another/folder"))
    page.run()
    assert not page.error and "token" in title(page)
    offered = page.selectbox(key="encoder").options
    assert len(offered) == 2 and listed in offered and minilm_copy not in offered
    page.selectbox(key="encoder").set_value(listed).run()
    assert not page.error


def test_a_link_to_an_encoder_that_is_not_listed_is_refused(
    opened: Open, monkeypatch: pytest.MonkeyPatch, minilm_copy: str
) -> None:
    served = policy.Policy(hosts=("leak.example.org",), encoders=())
    monkeypatch.setattr(policy, "current_policy", lambda: served)
    monkeypatch.setattr(
        "leakscope.dashboard.ui.encoder_choice.known_encoders", lambda: [minilm_copy]
    )
    page = opened(encoder=minilm_copy)
    assert any("listed under Encoder" in warning.value for warning in page.warning)
    assert page.selectbox(key="encoder").value == "minilm"


def exponent(told: str) -> int:
    power = re.search("10([⁰¹²³⁴⁵⁶⁷⁸⁹]+) to 1", told)
    assert power
    return int(power[1].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))


def seeded(make: MakeDefence) -> MakeDefence:
    """Seed noise for release, too: by chance, an audit in a hundred refutes a true mechanism."""
    fresh = itertools.count(1000)
    return lambda seed: make(next(fresh) if seed is None else seed)


def test_the_audit_is_behind_how_this_is_computed_and_tells_what_is_refuted(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited(careless: str = "") -> str:
        def make(name: str, eta: float) -> MakeDefence:
            return seeded(defence_factory(name, 1.2 * eta if name == careless else eta))

        monkeypatch.setattr(views, "defence_factory", make)
        views._audit_mechanisms.clear()
        page.button(key="audit").click().run()
        views._audit_mechanisms.clear()
        start = "**Audit of the mechanisms**"
        (told,) = [m.value for m in page.markdown if m.value.startswith(start)]
        return str(told)

    page = opened(text=TEXT)
    assert any("leakscope audit-mechanism" in c.value for c in page.caption)
    told = audited()
    assert "at η = 75" in told and told.count("not refuted by ") == 3
    assert all(DEFENCES[name].title in told for name in BY_NOISE)
    (line,) = [
        line for line in audited("sequence_representation").splitlines() if ": refuted by" in line
    ]
    assert "Sequence representation" in line and "release nothing until it passes" in line


def test_no_page_is_said_to_make_words_deniable_without_the_odds_beside() -> None:
    """In a menu there is no number: it stands on the page, beside what it promises."""
    tips = [page.tip for page in PAGES.values()]
    assert any("Drag η" in tip for tip in tips)
    assert not [tip for tip in tips if re.search(r"\bden(y|ied|iable)\b", tip)]


@pytest.fixture
def put_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Have other rows of what replaces tokens in the place of those that ship."""

    def put(content: str | None) -> Path:
        path = tmp_path / "replacements.json"
        if content is not None:
            path.write_text(content, encoding="utf-8")
        monkeypatch.setattr(replacements, "SHIPPED", path)
        cache.token_replacements.clear()
        return path

    yield put
    cache.token_replacements.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [None, "{", '{"study": "audit", "rows": []}', '{"study": "replacements", "rows": [{"0": 1}]}'],
)
def test_rows_that_are_not_there_or_damaged_cost_that_part_alone(
    opened: Open, put_rows: Callable[..., Path], content: str | None
) -> None:
    path = put_rows(content)
    page = opened(text=TEXT)
    told = messages(page) + " ".join(i.value for i in page.info)
    assert "leakscope study replacements" in told or "run the command that made it" in told
    assert (path.name in messages(page)) is (content is not None)
    assert any("What this does not show" in e.label for e in page.expander), "the rest is drawn"
