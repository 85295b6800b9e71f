"""The page of trade-offs: what is read, the frontier, and two settings on one sentence."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from tradeoff_rows import ROWS, row, write

from core.corpora import bundled_sentences
from core.defences import shipped
from core.studies import tradeoff_setting, tradeoff_tried
from core.studies.tradeoff_files import SHIPPED, load_tradeoff
from dashboard import cache
from dashboard.tradeoff import sides, state, tried

TEXT = "The harbour master counted twelve ships."
CHAIN = "text_to_text:eta=60+int8"
Open = Callable[..., AppTest]


@pytest.fixture
def visit(small_app: AppTest) -> Open:
    def visited(**address: str) -> AppTest:
        small_app.run()
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/tradeoff.py").run()
        assert not small_app.exception
        return small_app

    return visited


@pytest.fixture
def all_kinds(visit: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Visit the page with rows in which words, an attribute and members were read."""
    found = load_tradeoff(write(tmp_path))
    monkeypatch.setattr(cache, "tradeoff", lambda on: found)
    return visit


@pytest.fixture
def few_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the attacker know fewer sentences, for this test alone."""

    def forget() -> None:
        tried._own_texts.clear()
        tried._law.clear()

    forget()
    monkeypatch.setattr(tried, "bundled_sentences", lambda: bundled_sentences()[:1000])
    yield
    forget()


def told(page: AppTest) -> str:
    parts = [*page.markdown, *page.caption, *page.info, *page.error, *page.warning]
    return " ".join(part.value for part in parts).replace("\\", "")


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def reader(page: AppTest) -> object:
    return page.segmented_control(key=state.READS_KEY)


@pytest.fixture
def words_alone(visit: Open, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Visit the page with rows of the table in which words alone were read."""
    found = load_tradeoff(SHIPPED / "minilm.json")
    monkeypatch.setattr(cache, "tradeoff", lambda on: found)
    return visit


def test_rows_of_words_alone_offer_no_choice_and_say_what_is_missing(words_alone: Open) -> None:
    page = words_alone()
    assert [each.key for each in page.segmented_control] == [state.USE_KEY]
    assert "Measured behind each defence: words recovered, F1. Not measured: an attribute" in told(
        page
    )
    assert "python -m core study tradeoff --spec docs/presets/tradeoff-all.spec.json" in told(page)
    times = page.dataframe[1].value["a text"]
    assert all(re.fullmatch(r"\d\S* ms", each) for each in times)


def test_headline_tables_and_costs_follow_what_the_attacker_is_after(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, keep="80")
    assert reader(page).options == ["Words", "An attribute", "Membership"]  # type: ignore[attr-defined]
    assert "Gaussian noise, σ 0.05" in page.title[0].value
    said = "reads words with a score of **20** [19, 21] instead of **60**"
    assert said in told(page)
    assert "Not measured" not in told(page)
    numbers = page.dataframe[1].value
    assert list(numbers["leaks"])[:2] == [60, 20] and numbers["training"][4] == "23 min"
    assert numbers["a text"][0] == "4.2 ms" and numbers["a text"][1] == "not timed"
    reader(page).set_value("attribute").run()  # type: ignore[attr-defined]
    assert not page.exception and "LEACE leaks the attribute least" in page.title[0].value
    assert "names the attribute of **11 [10, 12]** % of texts instead of **40" in told(page)
    assert "LEACE: 11 [10, 12]" in page.dataframe[0].value["best"][1]
    assert list(page.dataframe[1].value["leaks"])[:2] == [40, 39]
    assert page.selectbox(key=state.POINT_KEY).value == "leace", "A follows the headline"


def test_an_address_asks_for_members_and_those_not_attacked_are_left_out(all_kinds: Open) -> None:
    page = all_kinds(reads="membership", keep="70")
    assert "tells texts of the training from others with an AUC of **52" in told(page)
    assert len(page.dataframe[1].value) == 3 and "4 settings were not measured for this" in told(
        page
    )
    assert "Text to text, then 8-bit quantising, η 60" in page.title[0].value


def test_a_plus_that_was_typed_into_an_address_joins_a_chain(visit: Open) -> None:
    page = visit(text=TEXT, against=CHAIN.replace("+", " "))
    assert page.selectbox(key=state.AGAINST_KEY).value == CHAIN and not page.warning


def test_an_address_may_not_ask_for_what_was_not_measured(words_alone: Open) -> None:
    page = words_alone(reads="attribute")
    assert "reads=attribute. reads can be words" in told(page) and len(page.dataframe) == 2


def test_two_settings_stand_side_by_side_and_the_words_are_parted(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point="gaussian:sigma=0.05")
    assert page.selectbox(key=state.POINT_KEY).value == "gaussian:sigma=0.05"
    assert page.selectbox(key=state.AGAINST_KEY).value == "none"
    shown = html(page)
    assert "What an attacker reads who knows this defence, and undoes it" in shown
    assert "as well as 2,000 defended sentences teach" in shown
    assert "What an attacker reads</p>" in shown
    for title in ("Both give away", "Only A gives away", "Only B gives away"):
        assert title in shown
    page.selectbox(key=state.AGAINST_KEY).set_value("gaussian:sigma=0.05").run()
    parts = {t: html(page).split(f'{t}</p>')[1].split("<p")[0] for t in (
        "Only A gives away", "Only B gives away")}  # fmt: skip
    assert not any("ls-read" in part for part in parts.values()), "the same draw of the same noise"


def test_the_text_that_is_shown_is_the_one_that_is_attacked(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point=CHAIN, against="text_to_text:eta=1000000")
    assert not page.error
    shown = html(page)
    assert shown.count("What is released: one draw") == 1
    assert shown.count("What is encoded: one draw") == 1, "of the chain a vector is released"
    assert "7 of 7 tokens came back unchanged" in shown, "at such an η nothing is changed"
    assert "Text to text, η 1e+06, not measured" in page.selectbox(key=state.AGAINST_KEY).options


def test_the_trained_defence_that_ships_is_tried_alone_and_in_a_chain(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point="adversarial:weight=1", against="adversarial+int8")
    assert not page.error and "none ships" not in told(page)
    shown = html(page)
    assert shown.count("who knows this defence, and undoes it as well as") == 2
    assert "trained on 20,000 sentences with seed 0" in told(page)
    assert "who wrote a sentence" not in told(page)
    hides = "adversarial:against=attribute,weight=1"
    page = all_kinds(text=TEXT, point=hides, against="leace")
    assert not page.error and "none ships" not in told(page)
    assert told(page).count("It was trained to hide who wrote a sentence") == 2
    assert "trained on 20,000 sentences; what" in told(page), "a closed form has no seed"
    assert html(page).count("who knows this defence, and undoes it as well as") == 2
    page = all_kinds(text=TEXT, point="text_to_text:eta=60+adversarial")
    assert "cannot stand with Text to text" in " ".join(each.value for each in page.warning)


def test_one_that_is_damaged_costs_its_side_alone(
    all_kinds: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(shipped.SHIPPED / "minilm", tmp_path / "minilm")
    next((tmp_path / "minilm" / "adversarial").glob("*.safetensors")).write_bytes(b"cut off")
    find = shipped.find_shipped
    for module in (tradeoff_setting, tradeoff_tried, sides):
        monkeypatch.setattr(module, "find_shipped", lambda spec, on: find(spec, on, tmp_path))
    page = all_kinds(text=TEXT, point="adversarial", against="int8")
    assert "is truncated or was altered" in told(page)
    assert "undoes it as well as" in html(page), "the other side is drawn"


def test_a_trained_defence_says_how_to_train_it(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point="adversarial:against=words,weight=0.5")
    assert "Adversarial training is trained" in told(page) and not page.error
    assert (
        "python -m core defend --defence adversarial --set against=words --set weight=0.5 "
        "--texts FILE --out DIR"
    ) in [block.value for block in page.code]
    assert "Both give away" not in html(page), "one side alone was attacked"


def test_a_set_of_its_own_for_each_token_is_said_to_promise_nothing(
    all_kinds: Open, few_known: None
) -> None:
    page = all_kinds(text=TEXT, point="custext:epsilon=4,mapping=aggressive")
    assert "Promises nothing: each token has a set of its own, and its set shows" in told(page)
    assert "What this ε promises." in told(page) and "take mapping=conservative" in told(page)
    numbers = page.dataframe[1].value
    assert numbers["promise"][6].startswith("nothing: each token has a set of its own")


@pytest.mark.parametrize("eta", ["0", "-1", "nan", "1e308", "inf", "much"])
@pytest.mark.parametrize("name", ["point", "against"])
def test_an_eta_that_is_none_is_told_from_the_address(visit: Open, name: str, eta: str) -> None:
    page = visit(**{name: f"text_to_text:eta={eta}"})
    why = "must be a number" if eta == "much" else "must lie in"
    assert f"{name}=text_to_text:eta={eta}" in told(page) and why in told(page)
    assert page.selectbox(key=state.AGAINST_KEY).value == "none"


def composing(page: AppTest, *stages: str) -> AppTest:
    page.selectbox(key=state.AGAINST_KEY).set_value(state.OWN).run()
    page.multiselect(key="own_B_stages").set_value(list(stages)).run()
    assert not page.exception
    return page


def test_a_chain_of_ones_own_is_tried_at_once(visit: Open) -> None:
    page = composing(visit(text=TEXT), "text_to_text", "gaussian", "int8")
    assert not page.error and "What is encoded: one draw" in html(page)
    assert "After Text to text, Gaussian noise, 8-bit quantising can stand" in told(page)
    assert f"against={'text_to_text%3Aeta%3D75%2Bgaussian%3Asigma%3D0.05%2Bint8'}" in " ".join(
        code.value for code in page.code
    )


def test_stages_that_cannot_follow_each_other_say_why_and_what_can(visit: Open) -> None:
    page = composing(visit(text=TEXT), "int8", "text_to_text")
    assert "Put it before: text_to_text+int8" in told(page)
    assert "After 8-bit quantising can stand" in told(page)
    composing(page)
    assert "Pick a stage" in told(page)


@pytest.mark.parametrize(
    ("typed", "why"),
    [("0", "must lie in"), ("-2", "must lie in"), ("NaN", "must lie in"), ("1e308", "must lie in"),
     ("", "must be a number"), ("60+binary", "must be a number")],
)  # fmt: skip
def test_an_eta_that_is_none_is_told_where_it_is_typed(visit: Open, typed: str, why: str) -> None:
    page = composing(visit(text=TEXT), "text_to_text", "int8")
    page.text_input(key="own_B_text_to_text_eta").set_value(typed).run()
    assert not page.exception and why in " ".join(e.value for e in page.error).replace("\\", "")


@pytest.mark.parametrize("name", ["santext", "custext", "tem"])
def test_an_epsilon_that_is_none_is_told_where_it_is_typed(visit: Open, name: str) -> None:
    page = composing(visit(text=TEXT), name, "int8")
    for typed, why in [("0", "must lie in"), ("-1", "must lie in"), ("nan", "must lie in"),
                       ("1e308", "must lie in"), ("much", "must be a number")]:  # fmt: skip
        page.text_input(key=f"own_B_{name}_epsilon").set_value(typed).run()
        assert not page.exception
        said = " ".join(e.value for e in page.error).replace("\\", "")
        assert "epsilon" in said and why in said, typed
    page.text_input(key=f"own_B_{name}_epsilon").set_value("8").run()
    assert not page.exception and not page.error and "What is encoded: one draw" in html(page)


def test_noise_beyond_all_numbers_is_told(visit: Open) -> None:
    page = visit(text=TEXT, point="gaussian:sigma=1e308")
    assert "sigma must lie in" in told(page)
    page = visit(text=TEXT, point="truncation:dimension=9999")
    assert "dimension must lie in [1, 384]" in told(page)


@pytest.mark.parametrize(
    ("point", "released", "how"),
    [("text_to_text:eta=1000000", "text</p>", "The figure above also has an attacker who knows"),
     ("token_representation:eta=1000", "vectors of tokens, knowing the mechanism</p>",
      "by how 900 sentences"),
     ("tem:epsilon=1000", "text, knowing the mechanism</p>", "nothing brought back more")],
)  # fmt: skip
def test_what_is_released_as_tokens_is_read_off_them(
    visit: Open, few_known: None, point: str, released: str, how: str
) -> None:
    page = visit(text=TEXT, point=point)
    shown = html(page)
    assert f"What an attacker reads off the released {released}" in shown and how in told(page)
    parts = (shown.split(f"{title}</p>")[1] for title in ("Both give away", "Only A gives away"))
    read = {w for part in parts for w in re.findall(r'ls-read"[^>]*>([^<]+)<', part.split("<p")[0])}
    lost = {"harbour", "master", "counted", "twelve", "ships"} - read
    assert len(lost) <= point.startswith("tem:"), "which draws any token once in a thousand"


def test_behind_chosen_tokens_the_likeliest_are_read(visit: Open, few_known: None) -> None:
    page = visit(text=TEXT, point="custext:epsilon=4", against="custext:epsilon=4,k=200")
    shown = html(page)
    assert "What an attacker reads off the released text, knowing the mechanism</p>" in shown
    assert "What an attacker reads off the released text</p>" in shown, "too many for seconds"
    assert "None of them nearly repeats yours" in told(page) and not page.error
    for typed in ("🙂", "[UNK] [PAD] [MASK]", "word " * 400, "שלום עולם", "."):
        page = visit(text=typed, point="custext:epsilon=4", against="token_representation:eta=60")
        assert not page.exception and not page.error, typed
        assert html(page).count("knowing the mechanism</p>") == 2, typed


def test_the_noise_is_drawn_again_on_demand(visit: Open) -> None:
    page = visit(text=TEXT, point="text_to_text:eta=20")
    before = html(page)
    page.run()
    assert html(page) == before
    page.button(key="draw_again").click().run()
    assert html(page) != before


def test_a_projected_vector_is_led_back_and_read(visit: Open) -> None:
    page = visit(text=TEXT, point="random_projection:dimension=192", against="text_to_text:eta=90")
    shown = html(page)
    assert not page.error and "who knows this defence" in shown
    page.selectbox(key=state.AGAINST_KEY).set_value(state.OWN).run()
    shown = html(composing(page, "text_to_text", "truncation"))
    assert "who was not trained for this defence" in shown, "a changed text is not led back"
    assert "Both give away" in shown


# How long a text may take


def test_a_limit_of_time_leaves_out_what_is_slower_and_marks_what_was_not_timed(
    all_kinds: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = row("gaussian", 86, 20, 39, 60, sigma=0.05, facts={"milliseconds_a_text": 30.0})
    rows = [slow if each["defence"] == "gaussian" else each for each in ROWS]
    found = load_tradeoff(write(tmp_path, rows))
    monkeypatch.setattr(cache, "tradeoff", lambda on: found)
    page = all_kinds(text=TEXT, keep="80")
    assert page.select_slider(key=state.LIMIT_KEY).value == "any"
    assert "Gaussian noise, σ 0.05" in page.title[0].value and len(table(page)) == 7
    assert "not timed: kept" not in told(page)
    page.select_slider(key=state.LIMIT_KEY).set_value("10").run()
    assert not page.exception
    said = told(page)
    assert "1 of 7 settings takes more than 10 ms a text and is left out. 3 were not timed" in said
    assert "Adversarial training" in page.title[0].value, "the best of what is left"
    assert "marked “not timed”. The one in the headline is among them." in said
    shown = table(page)
    assert "Gaussian noise" not in set(shown["defence"]) and len(shown) == 6
    assert list(shown["a text"]).count("not timed") == 3
    assert page.selectbox(key=state.AGAINST_KEY).options[2].startswith("Gaussian"), "to compare"
    page.select_slider(key=state.LIMIT_KEY).set_value("2").run()
    assert "3 of 7 settings take more than 2 ms" in told(page)
    assert "No defence takes longer, too" in told(page) and "No defence" in set(
        table(page)["defence"]
    )


def test_an_address_asks_for_a_limit_of_time_where_anything_was_timed(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, ms="5")
    assert page.select_slider(key=state.LIMIT_KEY).value == "5" and not page.warning
    page.query_params["ms"] = "3"
    page.run()
    assert "ms=3. ms can be any, 1, 2, 5" in told(page)


def test_without_times_there_is_no_limit_to_set(
    visit: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_tradeoff(write(tmp_path, [replace(each, facts={}) for each in ROWS]))
    monkeypatch.setattr(cache, "tradeoff", lambda on: found)
    page = visit(ms="5")
    assert not page.select_slider and "ms=5. ms can be any." in told(page)


def test_a_network_that_reads_what_is_sent_says_what_leaves_and_promises_that(
    all_kinds: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_of = {"eta": 75.0, "network": "transformer", "sends": "text_to_text"}
    network = row("constrained", 92, 21, 20, facts={"training_minutes": 3.0}, **told_of)
    found = load_tradeoff(write(tmp_path, [*ROWS, network]))
    monkeypatch.setattr(cache, "tradeoff", lambda on: found)
    name = "constrained:eta=75,network=transformer,sends=text_to_text"
    page = all_kinds(text=TEXT, point=name)
    assert page.selectbox(key=state.POINT_KEY).value == name and not page.error
    assert "releases nothing itself. What leaves is what its users" in told(page)
    assert "*Promises what its users' mechanism promises, of each time" in told(page)
    (shown,) = [r for _, r in table(page).iterrows() if "fine-tuned" in r["defence"]]
    own = [r for _, r in table(page).iterrows() if r["defence"] == "Text to text"]
    assert not own and shown["training"] == "3 min"
    assert shown["promise"].endswith(" to 1"), "the odds of text to text"


def table(page: AppTest) -> pd.DataFrame:
    found: pd.DataFrame = page.dataframe[1].value
    return found
