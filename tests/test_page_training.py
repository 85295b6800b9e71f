from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from training_rows import adversarial_rows, constrained_rows, write_shipped
from visiting import Open, open_page

from leakscope.core.assets import ROOT
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.findings.finding import RESTS_ON
from leakscope.core.findings.training import QUESTION, judge_goal
from leakscope.core.results import Interval, Score
from leakscope.core.results.tables import rows_to_json
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import write_json
from leakscope.core.story.format import Story
from leakscope.core.story.reading import story_from_data
from leakscope.core.studies.deniability.odds import ODDS, format_odds_cell
from leakscope.core.studies.training import summary as training_summary
from leakscope.core.studies.training.summary import (
    SHIPPED,
    TABLES,
    TrialRequest,
    load_read_under_noise,
)
from leakscope.dashboard import cache
from leakscope.dashboard.training import state
from leakscope.dashboard.training.missing import command_of
from leakscope.dashboard.training.state import PARTS, STUDIES, key_of


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shipped(tmp_path_factory.mktemp("training") / "rows")


@pytest.fixture
def opened(small_app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    def visit(shipped: Path = tmp_path / "none", **address: str) -> AppTest:
        monkeypatch.setattr(training_summary, "SHIPPED", shipped)
        cache.training.clear()
        return open_page(small_app, "training", **address)

    yield visit
    cache.training.clear()


def told(page: AppTest) -> str:
    return " ".join(part.value for kind in ("markdown", "caption") for part in getattr(page, kind))


def title(page: AppTest) -> str:
    return str(page.title[0].value).replace("\\", "")


def facts_of(page: AppTest) -> dict[str, str]:
    """Return what the finding rests on, as the page lists it."""
    listed = next(part.value for part in page.markdown if part.value.startswith("- **Data**"))
    facts = (line.removeprefix("- **").partition("**: ") for line in listed.splitlines())
    return {name.replace("\\", ""): said.replace("\\", "") for name, _, said in facts}


def codes(page: AppTest) -> list[str]:
    return [code.value for code in page.code]


@pytest.mark.parametrize("part", PARTS)
def test_where_nothing_was_measured_each_part_says_so_and_which_command_does(
    opened: Open, part: str
) -> None:
    page = opened(part=part)
    assert page.title[0].value == QUESTION and not page.error
    assert bool([b for b in page.button if b.key == "training-start"]) is (part == "adversary")
    assert f"**{PARTS[part]}**: not measured yet" in page.info[0].value
    assert command_of(part) in codes(page)
    assert not page.dataframe and not page.get("plotly_chart"), "no figure is made up"


@pytest.mark.slow
def test_figures_of_a_former_version_say_so_and_which_command_measures_them_anew(
    opened: Open, tmp_path: Path
) -> None:
    former = constrained_rows()
    for row in former:
        row.cell["versions"] = {"study": 2}
    page = opened(write_shipped(tmp_path / "former", "constrained", rows=former))
    (warned,) = page.warning
    assert "version 2 of the study, and the current one is version 4: " in warned.value
    assert "where it has one, not on its test part" in warned.value
    assert codes(page).count(command_of("noise")) == 2, "below it, and where all are repeated"
    for row in former:
        row.cell["versions"] = {"study": 3}
    page = opened(write_shipped(tmp_path / "former", "constrained", rows=former))
    assert "test part" not in page.warning[0].value and "text by text" in page.warning[0].value
    assert page.warning[0].value.startswith("These results are out of date")
    page = opened(write_shipped(tmp_path / "todays", "constrained"))
    assert not page.warning and page.get("plotly_chart")
    assert codes(page).count(command_of("noise")) == 1
    beside = tmp_path / "todays" / "constrained-once.json"
    for row in former:
        row.cell["seed"] += 10
    write_json(beside, rows_to_json("constrained", former))
    page = opened(tmp_path / "todays")
    some = "Some of these results (constrained-once) are out of date"
    assert page.warning[0].value.startswith(some)
    command = command_of("noise", "constrained-once")
    assert command in codes(page) and command.endswith(f"results/{beside.name}")
    assert "results/constrained-once.spec.json" in command


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_each_part_shows_as_soon_as_its_file_is_there(
    opened: Open, part: str, tmp_path: Path
) -> None:
    page = opened(write_shipped(tmp_path / "some", STUDIES[part]))
    assert page.session_state[key_of("part")] == part, "it opens on what was measured"
    assert page.title[0].value != QUESTION and page.get("plotly_chart") and page.dataframe
    assert "Leakscope 9.8.7" in told(page).replace("\\", ""), "where it comes from"
    assert not page.info and not page.error
    other = next(name for name in PARTS if name != part)
    page.button_group(key=key_of("part")).set_value(other).run()
    assert "not measured yet" in page.info[0].value and page.title[0].value == QUESTION


@pytest.mark.slow
def test_the_trap_is_told_in_plain_words(opened: Open, rows: Path) -> None:
    page = opened(rows)
    assert title(page) == (
        "After training to hide words, a new attacker reaches F1 34 instead of 46: a significant "
        "difference"
    )
    said = told(page).replace("\\", "")
    assert "to hide words from one attacker (weight λ_w 3). A new attacker, on " in said
    assert "This is its lowest score over all measured weights." in said
    assert "reaches only an F1 of **8.3** (on a different vocabulary)" in said
    assert "8.3 (95 % CI 7.2–9.4)" in said and "**34.5** (95 % CI 33.4–35.6)" in said
    assert said.count("guessing: 4.0)") == 2
    twin = "Its attacker then reaches an F1 of 43.8 (95 % CI 42.7–44.9), and a new attacker"
    assert twin in said and "With λ_w 0, training hides nothing." in said
    assert " with it and of 46.5 (95 % CI " in said
    assert " without it; the intervals do not overlap." in said
    assert (
        "No setting was shown to meet the goal." in said
        and "λ_w 0.3 leaks least of the settings shown to cost at most 2 points: " in said
    )
    assert "λ_w 3 leaks least, cost aside: " in said
    settings, tasks, epochs, goals = (frame.value for frame in page.dataframe)
    assert list(settings["defence"]) == ["no defence", "λ_w 0", "λ_w 0.3", "λ_w 3"]
    assert {
        "new attacker: probe-started classifier, tuned from shipped weights",
        "new attacker: probe-started classifier, trained from scratch",
        "new attacker: re-embedding search",
        "new attacker: multi-set prediction",
        "change in utility, points",
    } <= set(settings.columns)
    assert {"change in utility, points", "TREC, points", "minutes of training"} <= set(
        tasks.columns
    )
    assert len(epochs) == 8 and list(tasks["defence"]) == list(settings["defence"])
    assert list(goals["goal"]) == ["not met"] * 4


@pytest.mark.slow
def test_an_attribute_stands_beside_leace(opened: Open, rows: Path) -> None:
    page = opened(rows, hides="attribute", encoder="adversarial_lstm")
    assert "a new attacker infers the author of " in title(page)
    assert " % of the texts instead of " in title(page)
    assert "LEACE removes what a linear" in told(page) and "a linear attacker" in told(page)
    assert "With λ_s 0, training" in told(page), "a dual encoder's twin is its undefended one"
    assert told(page).count(" without it; the intervals ") == 1
    frame = page.dataframe[0].value
    assert "LEACE" in set(frame["defence"])
    stopped = frame[frame["defence"] == "λ_s 10"]
    assert list(stopped["in training"]) == ["diverged and was stopped"]


def test_where_fresh_attackers_read_no_more_no_trap_is_claimed(
    opened: Open, tmp_path: Path
) -> None:
    page = opened(write_shipped(tmp_path / "h", "adversarial", rows=adversarial_rows(holds=True)))
    assert title(page).startswith("After training to hide words, a new attacker reaches F1 ")
    assert title(page).endswith(": a significant difference")
    assert (
        "the defence did not lower the score in training significantly more than the score of new "
        "attackers" in told(page)
    )


@pytest.mark.slow
def test_curves_under_noise_say_their_texts_what_is_recovered_and_the_paper_s_figures(
    opened: Open, rows: Path
) -> None:
    page = opened(rows, part="noise", task="sst2", network="bilstm")
    assert "accuracy of the BiLSTM in per cent" in told(page) and "Without noise: **" in told(page)
    assert "trained on 4,000 texts at each η" in facts_of(page)["Cost"]
    assert facts_of(page)["n"].startswith("872 texts tested")
    assert "Text to text minus token representation, in points on the same texts: **" in told(page)
    assert "Hollow diamonds: Qu et al. (2021)" in told(page)
    (frame,) = (frame.value for frame in page.dataframe)
    etas = [
        set(frame["η"][frame["sends"] == DEFENCES[name].title])
        for name in ("text_to_text", "token_representation")
    ]
    n = len(etas[0] & etas[1])
    assert title(page).endswith(f"at {n} of {n} values of η"), n
    read = load_read_under_noise()
    low, high = (read["token_representation", eta].format() for eta in (65.0, 98.5))
    assert f"Token representation: **{low}** at η 65, **{high}** at η 98.5." in told(page)
    settings = zip(frame["sends"], frame["η"], strict=True)
    by = dict(zip(settings, frame["words recovered from one release, F1"], strict=True))
    assert by["Token representation", "65"] == low
    assert by["Token representation", "50"] == by["No defence", "none"] == "–"
    assert facts_of(page)["Releases"] == "each training text is released once"
    theirs = list(frame["paper: accuracy, %"])
    assert theirs[:1] == ["84.1"] and "67.0" in theirs
    page.button_group(key=key_of("task")).set_value("mrpc").run()
    assert "The paper has no results for this task" in told(page)


def test_releases_are_printed_wherever_odds_are(opened: Open, tmp_path: Path) -> None:
    fresh = constrained_rows(releases=("every_epoch",))
    folder = write_shipped(tmp_path / "fresh", "constrained", rows=fresh)
    page = opened(folder, part="noise", task="sst2", network="bilstm")
    said = told(page).replace("\\", "")
    releases = facts_of(page)["Releases"]
    assert releases.startswith("a training text is released once per epoch")
    assert "8 times" in releases
    assert (
        "The output of text to text, after 8 releases of a text, can shift the odds between "
        "nearest neighbours by up to " in said
    )
    (frame,) = (frame.value for frame in page.dataframe)
    odds = dict(zip(zip(frame["sends"], frame["η"], strict=True), frame[ODDS.lower()], strict=True))
    spec = DefenceSpec.of("text_to_text", {"eta": 65.0})
    assert odds["Text to text", "65"] == format_odds_cell(spec, "minilm", 8)
    assert set(frame["releases of a text"]) == {"0", "8"}


@pytest.mark.parametrize("content", [None, "{", '{"study": "audit", "rows": []}'])
def test_without_what_is_read_the_part_is_drawn_all_the_same(
    opened: Open, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = tmp_path / "read.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    monkeypatch.setattr(training_summary, "RECOVERED", path)
    cache.recall_under_noise.clear()
    page = opened(rows, part="noise", task="sst2", network="bilstm")
    cache.recall_under_noise.clear()
    assert "accuracy of the BiLSTM in per cent" in told(page) and "Without noise: **" in told(page)
    assert "What an attacker recovers from the sent texts" not in told(page)
    said = "".join(each.value for each in page.error).replace("\\", "")
    assert (path.name in said) is (content is not None)


@pytest.mark.slow
def test_a_network_that_learns_nothing_is_no_verdict_on_mechanisms(
    opened: Open, tmp_path: Path
) -> None:
    found = constrained_rows()
    for row in found:
        if row.cell["defence"] == "none":
            row.scores["accuracy"] = Score(69.0, Interval(66.0, 72.0), 500, 68.4)
    rows = write_shipped(tmp_path / "nothing", "constrained", rows=found)
    page = opened(rows, part="noise", task="mrpc", network="bilstm")
    assert title(page) == "This network learns nothing here, with or without noise"
    assert "not significantly above guessing (68.4) either" in told(page)
    assert "minus token representation" not in told(page)


def test_pretraining_says_what_it_won_back_and_that_it_is_a_subset(
    opened: Open, rows: Path
) -> None:
    page = opened(rows, part="pretraining", task="sst2", sends="token_representation", eta="65")
    assert title(page) == "Pretraining under noise recovers 60 % of the accuracy that noise costs"
    said = told(page)
    assert "the goal of 50 % is significantly met" in said
    assert "at its η 100, correspond to 44 %" in said
    assert "better than Vanilla MLM (7.8 points, 95 % CI 6.0–9.6)" in said
    assert "On the same texts, Denoising MLM is significantly better than Probability MLM (" in said
    assert ". The paper's order is confirmed." in said
    assert "pretrained on 4,000,000 tokens at this η, and on 8,000,000 with" in said
    assert "7,800,000 are from texts not seen before" in said
    assert "The paper used 32,768,000,000, 4,096 times as many" in said
    adapted, losses, tokens = (frame.value for frame in page.dataframe)
    assert len(adapted) == len(tokens) == 6 and len(losses) == 15
    page.button_group(key=key_of("eta")).set_value("98.5").run()
    assert "at η 98.5" in told(page) and not page.exception


def test_privacy_says_what_it_costs_what_it_leaves_and_what_was_spent(
    opened: Open, rows: Path
) -> None:
    page = opened(rows, part="private", task="sst2")
    assert title(page).startswith("At ε = 1, accuracy changes by −2.4 points")
    said = told(page)
    assert "a loss of at most 2 points at ε = 8: met by the whole interval" in said
    assert "a loss of at most 5 points at ε = 1: met by the whole interval" in said
    assert "an AUC of at most 55 at ε = 1: met by the whole interval" in said
    assert "No guarantee: accuracy" in said and "ε = 8.0 instead of 1" in said
    assert "They differ by at most **0.3 %**" in said or "**0.4 %**" in said
    heads, models, spent = (frame.value for frame in page.dataframe)
    assert (
        len(heads) == 6 and list(models["ε for one text"]) == ["1", "8", "∞"] and len(spent) == 18
    )
    assert {"opacus", "dp-accounting", "privacy loss", "for 10 texts"} <= set(spent.columns)
    unit = "one text, which is one row of the file"
    assert facts_of(page)["Unit of ε"].startswith(unit)
    assert "class names are public" in said and "for 10 texts together)" in said


@pytest.mark.slow
def test_a_damaged_file_is_told_calmly_and_the_other_parts_stand(
    opened: Open, tmp_path: Path
) -> None:
    folder = write_shipped(tmp_path / "damaged", "adversarial", "constrained")
    path = folder / "adversarial.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    for row in table["rows"]:
        row.pop("when")
    path.write_text(json.dumps(table), encoding="utf-8")
    page = opened(folder, part="adversary")
    assert "Run the study again" in page.error[0].value.replace("\\", "")
    assert command_of("adversary") in codes(page) and page.title[0].value == QUESTION
    page.button_group(key=key_of("part")).set_value("noise").run()
    assert not page.error and page.get("plotly_chart")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = TrialRequest(n_defence=60, n_known=40, n_targets=20, epochs=3)
    monkeypatch.setattr(state, "USUAL", asked)


@pytest.mark.slow
def test_the_trap_is_sprung_here_and_now(opened: Open, small: None, leakscope_home: Path) -> None:
    page = opened(weight="3")
    page.button(key="training-start").click().run()
    assert "job" in page.query_params and not page.exception
    end = time.monotonic() + 180
    while not page.subheader and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.error and "a new attacker reaches F1 " in page.subheader[0].value
    assert "where nothing was hidden from it (λ = 0)" in told(page)
    (frame,) = (frame.value for frame in page.dataframe)
    assert list(frame["defence"]) == ["no defence", *["λ_w 0"] * 4, *["λ_w 3"] * 4]
    assert list(frame["when"])[-2:] == ["epoch 3", "new attacker, afterwards"]
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == [], "nothing is kept"
    page.button_group(key=key_of("weight")).set_value("10").run()
    assert not page.subheader and page.button(key="training-start")
    page.button_group(key=key_of("weight")).set_value("3").run()
    assert page.subheader, "it is kept for this session"


def test_a_reloaded_page_finds_its_training_again(opened: Open, small: None) -> None:
    page = opened(weight="10")
    page.button(key="training-start").click().run()
    job = page.query_params["job"]
    del page.session_state["_jobs"]  # as in a session that begins
    page.session_state[key_of("weight")] = "1"
    page.query_params.clear()
    page.query_params["job"] = job
    page.run()
    assert page.session_state[key_of("weight")] == "10" and not page.exception


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_pinned_with_its_figure(opened: Open, rows: Path, part: str) -> None:
    page = opened(rows, part=part)
    page.button(key="add-to-story-training").click().run()
    assert not page.exception
    ((slide,),) = ([each.pin.slide] for each in page.session_state["_story_pins"])
    assert slide.title and slide.figure["data"] and slide.alt and slide.caveat
    facts = dict(slide.facts)
    assert [fact for fact in RESTS_ON if not facts.get(fact)] == []
    assert not facts["Data"].startswith("none") and facts["Interval"].startswith("95 %")
    story = Story(title="t", pins=(page.session_state["_story_pins"][0].pin,))
    assert story_from_data(json.loads(json.dumps(story.to_dict()))) == story, (
        "its table is none too wide"
    )
    assert slide.commands == (command_of(part),)


@pytest.mark.parametrize("part", PARTS)
def test_the_command_of_a_part_names_the_specification_of_what_ships(part: str) -> None:
    spec = ROOT / command_of(part).split("--spec ")[1].split(" ")[0]
    study = json.loads(spec.read_text())["study"]
    assert study == STUDIES[part]
    names = [name for name in TABLES[study] if (SHIPPED / f"{name}.json").exists()]
    assert spec.parent.name == ("results" if names else "presets")
    for name in names:
        assert f"--spec results/{name}.spec.json" in command_of(part, name)
        assert command_of(part, name).endswith(f"--out results/{name}.json")
        assert (SHIPPED / f"{name}.spec.json").exists()


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-1.0, 1.5, "met by the whole interval"),
        (2.5, 4.0, "missed by the whole interval"),
        (1.0, 2.6, "met by the mean"),
        (1.9, 2.6, "missed by the mean"),
    ],
)
def test_a_goal_is_judged_by_the_interval(low: float, high: float, said: str) -> None:
    assert judge_goal((low + high) / 2, low, high, 2.0).startswith(said)
