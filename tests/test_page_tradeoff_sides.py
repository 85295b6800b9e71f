"""The page of trade-offs: what is read, the frontier, and two settings on one sentence."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from tradeoff_rows import ROWS, row, write_rows
from visiting import Open, open_page

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences import setting as tradeoff_setting
from leakscope.core.defences import stored
from leakscope.core.defences import tried as tradeoff_tried
from leakscope.core.formatting import describe_leak
from leakscope.core.studies.tradeoff import summary
from leakscope.core.studies.tradeoff.choice import leak_of
from leakscope.core.studies.tradeoff.summary import SHIPPED, load_tradeoff
from leakscope.dashboard.tradeoff import comparison, live_attack, state

TEXT = "The harbour master counted twelve ships."
CHAIN = "text_to_text:eta=60+int8"


@pytest.fixture
def visit(small_app: AppTest) -> Open:
    def visited(**address: str) -> AppTest:
        small_app.run()
        return open_page(small_app, "tradeoff", **address)

    return visited


@pytest.fixture
def all_kinds(visit: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Visit the page with rows in which words, an attribute and members were read."""
    found = load_tradeoff(write_rows(tmp_path))
    monkeypatch.setattr(summary, "shipped_tradeoff", lambda: found)
    return visit


@pytest.fixture
def few_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the attacker know fewer sentences, for this test alone."""

    def forget() -> None:
        live_attack._attacker_texts.clear()
        live_attack._mechanism_law.clear()

    forget()
    monkeypatch.setattr(live_attack, "bundled_sentences", lambda: bundled_sentences()[:1000])
    yield
    forget()


def told(page: AppTest) -> str:
    parts = [*page.markdown, *page.caption, *page.info, *page.error, *page.warning]
    return " ".join(part.value for part in parts).replace("\\", "")


def title(page: AppTest) -> str:
    return str(page.title[0].value).replace("\\", "")


def html(page: AppTest) -> str:
    return "\n".join(part.value for part in page.html)


def reader(page: AppTest) -> object:
    return page.segmented_control(key=state.READS_KEY)


@pytest.fixture
def words_alone(visit: Open, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Visit the page with rows of the table in which words alone were read."""
    found = load_tradeoff(SHIPPED / "tradeoff.json")
    monkeypatch.setattr(summary, "shipped_tradeoff", lambda: found)
    return visit


def test_rows_of_words_alone_offer_no_choice_and_say_what_is_missing(words_alone: Open) -> None:
    page = words_alone()
    assert [each.key for each in page.segmented_control] == [state.USE_KEY]
    assert "Measured for each defence: words recovered, F1. Not measured: an attribute" in told(
        page
    )
    assert "leakscope study tradeoff --spec docs/presets/tradeoff-all.spec.json" in told(page)
    times = page.dataframe[2].value["a text"]
    assert all(re.fullmatch(r"\d\S* ms", each) for each in times)


def test_headline_tables_and_costs_follow_what_the_attacker_is_after(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, keep="80")
    assert reader(page).options == ["Words", "An attribute", "Membership"]  # type: ignore[attr-defined]
    assert "Gaussian noise, σ 0.05" in title(page)
    said = "recovers words with an F1 of **20** (95 % CI 19–21) instead of **60**"
    assert said in told(page)
    assert "Not measured" not in told(page)
    numbers = page.dataframe[2].value
    assert list(numbers["leaks"])[:2] == [60, 20] and numbers["training"][4] == "23 min"
    assert numbers["a text"][0] == "4.2 ms" and numbers["a text"][1] == "not timed"
    reader(page).set_value("attribute").run()  # type: ignore[attr-defined]
    assert not page.exception and "LEACE leaks the attribute least" in title(page)
    assert "infers the attribute of **11 %** of texts (95 % CI 10–12) instead of **40" in told(page)
    assert "LEACE: 11 [10, 12]" in page.dataframe[1].value["best"][1]
    assert list(page.dataframe[2].value["leaks"])[:2] == [40, 39]
    assert page.selectbox(key=state.POINT_KEY).value == "leace", "A follows the headline"


def test_an_address_asks_for_members_and_those_not_attacked_are_left_out(all_kinds: Open) -> None:
    page = all_kinds(reads="membership", keep="70")
    assert "recognises training texts with an AUC of **52" in told(page)
    assert len(page.dataframe[2].value) == 3 and "4 settings were not measured for this" in told(
        page
    )
    assert "Text to text, then 8-bit quantising, η 60" in title(page)


def test_a_plus_that_was_typed_into_an_address_joins_a_chain(visit: Open) -> None:
    page = visit(text=TEXT, against=CHAIN.replace("+", " "))
    assert page.selectbox(key=state.AGAINST_KEY).value == CHAIN and not page.warning


def test_two_settings_stand_side_by_side_and_the_words_are_parted(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point="gaussian:sigma=0.05")
    assert page.selectbox(key=state.POINT_KEY).value == "gaussian:sigma=0.05"
    assert page.selectbox(key=state.AGAINST_KEY).value == "none"
    shown = html(page)
    assert "This quick attacker knows the defence and learned from 2,000 defended" in shown
    assert "sentences how to undo it. It recovers:</p>" in shown
    assert "This quick attacker recovers:</p>" in shown
    assert "the attacks in the figure are stronger" in page.info[0].value
    for place in ("gaussian:sigma=0.05", "none"):
        points = summary.shipped_tradeoff().points
        point = next(p for p in points if state.setting_name_of(p) == place)
        assert describe_leak(leak_of(point), is_bold=True) in told(page), "beside a quick attack"
    for title in ("Recovered from both", "Recovered only from A", "Recovered only from B"):
        assert title in shown
    page.selectbox(key=state.AGAINST_KEY).set_value("gaussian:sigma=0.05").run()
    parts = {
        t: html(page).split(f"{t}</p>")[1].split("<p")[0]
        for t in ("Recovered only from A", "Recovered only from B")
    }
    assert not any("ls-read" in part for part in parts.values()), "the same draw of the same noise"


@pytest.mark.slow
def test_the_text_that_is_shown_is_the_one_that_is_attacked(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point=CHAIN, against="text_to_text:eta=1000000")
    assert not page.error
    shown = html(page)
    assert shown.count("Released, one draw") == 1
    assert shown.count("Encoded, one draw") == 1, "of the chain a vector is released"
    assert "7 of 7 tokens came back unchanged" in shown, "at such an η nothing is changed"
    assert "Text to text, η 1e+06, not measured" in page.selectbox(key=state.AGAINST_KEY).options


@pytest.mark.slow
def test_the_trained_defence_that_ships_is_tried_alone_and_in_a_chain(all_kinds: Open) -> None:
    page = all_kinds(text=TEXT, point="adversarial:weight=1", against="adversarial+int8")
    assert not page.error and "none ships" not in told(page)
    shown = html(page)
    assert shown.count("quick attacker knows the defence and learned from") == 2
    assert "trained on 20,000 sentences with random seed 0" in told(page)
    assert "who wrote a sentence" not in told(page)
    hides = "adversarial:against=attribute,weight=1"
    page = all_kinds(text=TEXT, point=hides, against="leace")
    assert not page.error and "none ships" not in told(page)
    assert told(page).count("It was trained to hide who wrote a sentence") == 2
    assert "trained on 20,000 sentences. The" in told(page), "a closed form has no seed"
    assert html(page).count("quick attacker knows the defence and learned from") == 2
    page = all_kinds(text=TEXT, point="text_to_text:eta=60+adversarial")
    assert "cannot be chained with Text to text" in " ".join(each.value for each in page.warning)


def test_one_that_is_damaged_costs_its_side_alone(
    all_kinds: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(stored.SHIPPED / "minilm", tmp_path / "minilm")
    next((tmp_path / "minilm" / "adversarial").glob("*.safetensors")).write_bytes(b"cut off")
    find = stored.find_shipped
    for module in (tradeoff_setting, tradeoff_tried, comparison):
        monkeypatch.setattr(module, "find_shipped", lambda spec, on: find(spec, on, tmp_path))
    page = all_kinds(text=TEXT, point="adversarial", against="int8")
    assert "is truncated or was altered" in told(page)
    assert "how to undo it. It recovers" in html(page), "the other side is drawn"


@pytest.mark.slow
def test_a_set_of_its_own_for_each_token_is_said_to_promise_nothing(
    all_kinds: Open, few_known: None
) -> None:
    page = all_kinds(text=TEXT, point="custext:epsilon=4,mapping=aggressive")
    assert "Guarantee: none, because each token has its own set, and the set is visible" in told(
        page
    )
    assert "What this ε guarantees." in told(page) and "Use mapping=conservative" in told(page)
    numbers = page.dataframe[2].value
    assert numbers["promise"][6].startswith("none, because each token has its own set")


def composing(page: AppTest, *stages: str) -> AppTest:
    page.selectbox(key=state.AGAINST_KEY).set_value(state.OWN).run()
    page.multiselect(key="own_B_stages").set_value(list(stages)).run()
    assert not page.exception
    return page


@pytest.mark.slow
def test_a_chain_of_ones_own_is_tried_at_once_or_told_why_it_cannot_be(visit: Open) -> None:
    page = composing(visit(text=TEXT), "text_to_text", "gaussian", "int8")
    assert not page.error and "Encoded, one draw" in html(page)
    assert "After Text to text, Gaussian noise, 8-bit quantising, you can add" in told(page)
    assert f"against={'text_to_text%3Aeta%3D75%2Bgaussian%3Asigma%3D0.05%2Bint8'}" in " ".join(
        code.value for code in page.code
    )
    composing(page, "int8", "text_to_text")
    assert "Change the order: text_to_text+int8" in told(page)
    assert "After 8-bit quantising, you can add" in told(page)
    composing(page)
    assert "Choose a stage" in told(page)


@pytest.mark.slow
def test_an_eta_that_is_none_is_told_where_it_is_typed(visit: Open) -> None:
    page = composing(visit(text=TEXT), "text_to_text", "int8")
    wrong = {"must lie in": ("0", "-2", "NaN", "1e308"), "must be a number": ("", "60+binary")}
    for why, typed in ((why, typed) for why, all_typed in wrong.items() for typed in all_typed):
        page.text_input(key="own_B_text_to_text_eta").set_value(typed).run()
        told = " ".join(e.value for e in page.error).replace("\\", "")
        assert not page.exception and why in told, typed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "released", "how"),
    [
        (
            "text_to_text:eta=1000000",
            "text. It recovers:</p>",
            "The figure above also includes an attacker",
        ),
        (
            "token_representation:eta=1000",
            "vectors of tokens and knows the mechanism. It recovers:</p>",
            "frequencies in 900 sentences",
        ),
        (
            "tem:epsilon=1000",
            "text and knows the mechanism. It recovers:</p>",
            "nothing else recovered more",
        ),
    ],
)
def test_what_is_released_as_tokens_is_read_off_them(
    visit: Open, few_known: None, point: str, released: str, how: str
) -> None:
    page = visit(text=TEXT, point=point)
    shown = html(page)
    assert f"This quick attacker has the released {released}" in shown and how in told(page)
    titles = ("Recovered from both", "Recovered only from A")
    parts = (shown.split(f"{title}</p>")[1] for title in titles)
    read = {w for part in parts for w in re.findall(r'ls-read"[^>]*>([^<]+)<', part.split("<p")[0])}
    lost = {"harbour", "master", "counted", "twelve", "ships"} - read
    assert len(lost) <= point.startswith("tem:"), "which draws any token once in a thousand"


@pytest.mark.slow
def test_behind_chosen_tokens_the_likeliest_are_read(visit: Open, few_known: None) -> None:
    page = visit(text=TEXT, point="custext:epsilon=4", against="custext:epsilon=4,k=200")
    shown = html(page)
    released = "This quick attacker has the released text"
    assert f"{released} and knows the mechanism. It recovers:</p>" in shown
    assert f"{released}. It recovers:</p>" in shown, "too many for seconds"
    assert "None of these sentences nearly repeats yours" in told(page) and not page.error
    for typed in ("🙂", "[UNK] [PAD] [MASK]", "word " * 400, "שלום עולם", "."):
        page = visit(text=typed, point="custext:epsilon=4", against="token_representation:eta=60")
        assert not page.exception and not page.error, typed
        assert html(page).count("and knows the mechanism. It recovers:</p>") == 2, typed


@pytest.mark.slow
def test_the_noise_is_drawn_again_on_demand(visit: Open) -> None:
    page = visit(text=TEXT, point="text_to_text:eta=20")
    before = html(page)
    page.run()
    assert html(page) == before
    page.button(key="draw_again").click().run()
    assert html(page) != before


@pytest.mark.slow
def test_a_projected_vector_is_led_back_and_read(visit: Open) -> None:
    page = visit(text=TEXT, point="random_projection:dimension=192", against="text_to_text:eta=90")
    shown = html(page)
    assert not page.error and "This quick attacker knows the defence" in shown
    page.selectbox(key=state.AGAINST_KEY).set_value(state.OWN).run()
    shown = html(composing(page, "text_to_text", "truncation"))
    assert "attacker was not trained for this defence" in shown, "a changed text is not led back"
    assert "Recovered from both" in shown


# How long a text may take


def test_a_limit_of_time_leaves_out_what_is_slower_and_marks_what_was_not_timed(
    all_kinds: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = row("gaussian", 86, 20, 39, 60, sigma=0.05, facts={"milliseconds_a_text": 30.0})
    rows = [slow if each["defence"] == "gaussian" else each for each in ROWS]
    found = load_tradeoff(write_rows(tmp_path, rows))
    monkeypatch.setattr(summary, "shipped_tradeoff", lambda: found)
    page = all_kinds(text=TEXT, keep="80")
    assert page.select_slider(key=state.LIMIT_KEY).value == "any"
    assert "Gaussian noise, σ 0.05" in title(page) and len(table(page)) == 7
    assert "not timed: shown hollow" not in told(page)
    page.select_slider(key=state.LIMIT_KEY).set_value("10").run()
    assert not page.exception
    said = told(page)
    assert (
        "1 of 7 settings takes more than 10 ms per text and is left out. 3 were not timed" in said
    )
    assert "Adversarial training" in title(page), "the best of what is left"
    assert "marked “not timed”. This includes the headline's setting." in said
    shown = table(page)
    assert "Gaussian noise" not in set(shown["defence"]) and len(shown) == 6
    assert list(shown["a text"]).count("not timed") == 3
    assert page.selectbox(key=state.AGAINST_KEY).options[2].startswith("Gaussian"), "to compare"
    page.select_slider(key=state.LIMIT_KEY).set_value("2").run()
    assert "3 of 7 settings take more than 2 ms" in told(page)
    assert "“No defence” is also slower" in told(page) and "No defence" in set(
        table(page)["defence"]
    )


def test_a_network_that_reads_what_is_sent_says_what_leaves_and_promises_that(
    all_kinds: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = {"eta": 75.0, "network": "transformer", "sends": "text_to_text"}
    network = row("constrained", 92, 21, 20, facts={"training_minutes": 3.0}, **reads)
    found = load_tradeoff(write_rows(tmp_path, [*ROWS, network]))
    monkeypatch.setattr(summary, "shipped_tradeoff", lambda: found)
    name = "constrained:eta=75,network=transformer,sends=text_to_text"
    page = all_kinds(text=TEXT, point=name)
    assert page.selectbox(key=state.POINT_KEY).value == name and not page.error
    assert "it releases nothing itself. Choose the mechanism" in told(page)
    assert "*Guarantee: that of the mechanism on its input, for each release" in told(page)
    (shown,) = [r for _, r in table(page).iterrows() if "fine-tuned" in r["defence"]]
    own = [r for _, r in table(page).iterrows() if r["defence"] == "Text to text"]
    assert not own and shown["training"] == "3 min"
    assert shown["promise"].endswith(" to 1"), "the odds of text to text"


def table(page: AppTest) -> pd.DataFrame:
    found: pd.DataFrame = page.dataframe[2].value
    return found
