from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from training_rows import adversarial_rows, constrained_rows, private_rows, ship

from core.assets import ROOT
from core.cli import build_parser
from core.cli.spec_file import with_spec
from core.defences.registry import DEFENCES
from core.results import Interval, Score
from core.specs import DefenceSpec
from core.store import write_json
from core.story.format import RESTS_ON
from core.studies import read_under_noise, training_summary
from core.studies.odds import ODDS, kept_odds
from core.studies.read_under_noise import load_read_under_noise
from core.studies.tables import table_of
from core.studies.training_points import TrialRequest
from core.studies.training_summary import FILES, SHIPPED
from dashboard import cache
from dashboard.training import private, state
from dashboard.training.missing import QUESTION, command_of
from dashboard.training.state import PARTS, STUDIES, key_of

Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ship(tmp_path_factory.mktemp("training") / "rows")


@pytest.fixture
def opened(small_app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    def visit(shipped: Path = tmp_path / "none", **address: str) -> AppTest:
        monkeypatch.setattr(training_summary, "SHIPPED", shipped)
        cache.training.clear()
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/training.py").run()
        assert not small_app.exception
        return small_app

    yield visit
    cache.training.clear()


def told(page: AppTest) -> str:
    return " ".join(part.value for kind in ("markdown", "caption") for part in getattr(page, kind))


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


def test_without_an_address_the_trap_is_what_is_missing_first(opened: Open) -> None:
    assert "Against an adversary" in opened().info[0].value


def test_figures_of_a_former_version_say_so_and_which_command_measures_them_anew(
    opened: Open, tmp_path: Path
) -> None:
    former = constrained_rows()
    for row in former:
        row.cell["versions"] = {"study": 2}
    page = opened(ship(tmp_path / "former", "constrained", rows=former))
    (warned,) = page.warning
    assert "version 2 of the study measured them, and today's is version 4: " in warned.value
    assert "tested on that and no longer on its test part" in warned.value
    assert codes(page).count(command_of("noise")) == 2, "below it, and where all are repeated"
    for row in former:
        row.cell["versions"] = {"study": 3}
    page = opened(ship(tmp_path / "former", "constrained", rows=former))
    assert "no longer" not in page.warning[0].value and "text by text" in page.warning[0].value
    assert page.warning[0].value.startswith("These figures are older")
    page = opened(ship(tmp_path / "todays", "constrained"))
    assert not page.warning and page.get("plotly_chart")
    assert codes(page).count(command_of("noise")) == 1
    beside = tmp_path / "todays" / "constrained-other.json"
    for row in former:
        row.cell["seed"] += 10
    write_json(beside, table_of("constrained", former))
    page = opened(tmp_path / "todays")
    told_of = "Some of these figures (constrained-other) are older"
    assert page.warning[0].value.startswith(told_of)
    command = command_of("noise", "constrained-other")
    assert command in codes(page) and command.endswith(f"assets/training/{beside.name}")
    assert "docs/results/constrained-other.spec.json" in command


@pytest.mark.parametrize("part", PARTS)
def test_each_part_shows_as_soon_as_its_file_is_there(
    opened: Open, part: str, tmp_path: Path
) -> None:
    page = opened(ship(tmp_path / "some", STUDIES[part]))
    assert page.session_state[key_of("part")] == part, "it opens on what was measured"
    assert page.title[0].value != QUESTION and page.get("plotly_chart") and page.dataframe
    assert "Leakscope 9.8.7" in told(page).replace("\\", ""), "where it comes from"
    assert not page.info and not page.error
    other = next(name for name in PARTS if name != part)
    page.button_group(key=key_of("part")).set_value(other).run()
    assert "not measured yet" in page.info[0].value and page.title[0].value == QUESTION


def test_the_trap_is_told_in_plain_words(opened: Open, rows: Path) -> None:
    page = opened(rows)
    assert page.title[0].value.startswith("In training words were read with a score of 8 of 100")
    assert "a fresh attacker reads them with 34" in page.title[0].value
    said = told(page)
    assert "With λ_w 3, under which least was read in training" in said
    assert "**8.3** [7.2, 9.4]" in said and "**34.5** [33.4, 35.6]" in said
    assert "Guessing reaches 4.0 there and 4.0 here" in said
    twin = "The same training without pressure (λ = 0): an F1 of **43.8** [42.7, 44.9] in training"
    assert twin in said and "Without a defence it is an F1 of" in said
    assert (
        "**no setting surely did it**" in said and "The best at that price: λ_w 0.3 leaves" in said
    )
    assert "At any price: λ_w 3" in said
    settings, epochs, goals = (frame.value for frame in page.dataframe)
    assert list(settings["defence"]) == [
        "no defence", "λ_w 0", "λ_w 0.3", "λ_w 3"
    ]  # fmt: skip
    assert {
        "fresh: probe-started classifier, as it ships, tuned",
        "fresh: probe-started classifier, trained anew",
        "fresh: re-embedding search",
        "fresh: multi-set prediction",
        "usefulness, points",
    } <= set(settings.columns)
    assert len(epochs) == 8
    assert list(goals["goal"]) == ["not met"] * 4


def test_an_attribute_stands_beside_leace(opened: Open, rows: Path) -> None:
    page = opened(rows, hides="attribute", encoder="adversarial_lstm")
    assert page.title[0].value.startswith("In training the author looked hidden (")
    assert "% right); a fresh attacker is right about" in page.title[0].value
    assert "LEACE, which takes off in closed form" in told(page) and "to a linear one" in told(page)
    assert "without pressure (λ = 0)" in told(page), "a dual encoder's twin is its undefended one"
    assert "Without a defence it is" not in told(page)
    frame = page.dataframe[0].value
    assert "LEACE" in set(frame["defence"])
    stopped = frame[frame["defence"] == "λ_s 10"]
    assert list(stopped["in training"]) == ["ran away and was stopped"]


def test_where_fresh_attackers_read_no_more_no_trap_is_claimed(
    opened: Open, tmp_path: Path
) -> None:
    page = opened(ship(tmp_path / "h", "adversarial", rows=adversarial_rows(holds=True)))
    assert page.title[0].value.startswith("Pressure did not surely take more")


def test_a_goal_that_was_met_names_its_setting(opened: Open, tmp_path: Path) -> None:
    found = adversarial_rows(encoders=("minilm",), holds=True)
    for row in found:  # the strongest λ costs nothing
        for name in [n for n in row.scores if n.startswith("change of ")]:
            row.scores[name] = Score(-0.2, Interval(-0.9, 0.5), 500, 0.0)
    page = opened(ship(tmp_path / "met", "adversarial", rows=found))
    assert "at most: **met**. λ_w 3 leaves" in told(page).replace("\\", "")


def test_curves_under_noise_say_their_texts_and_the_paper_s_figures(
    opened: Open, rows: Path
) -> None:
    page = opened(rows, part="noise", task="sst2", network="bilstm")
    assert "Without noise the BiLSTM reaches" in told(page)
    assert "Trained on 4,000 texts and tested on 872" in told(page)
    assert "above token representation, in points on the same texts: **" in told(page)
    assert "Hollow diamonds: Qu et al. (2021)" in told(page)
    (frame,) = (frame.value for frame in page.dataframe)
    etas = [set(frame["η"][frame["sends"] == DEFENCES[name].title])
            for name in ("text_to_text", "token_representation")]  # fmt: skip
    n = len(etas[0] & etas[1])
    assert page.title[0].value.endswith(f"at {'both' if n == 2 else f'all {n}'} η measured"), n
    assert list(frame["the paper's, %"])[:1] == ["84.1"] and "67.0" in set(frame["the paper's, %"])
    page.button_group(key=key_of("task")).set_value("mrpc").run()
    assert "Of this task the paper prints nothing" in told(page)


def test_what_is_read_of_what_is_sent_stands_beside_what_the_network_is_worth(
    opened: Open, rows: Path
) -> None:
    read = load_read_under_noise()
    low, high = (read["token_representation", eta] for eta in (65.0, 98.5))
    page = opened(rows, part="noise", task="sst2", network="bilstm")
    assert (f"Token representation: **{low.said()}** at η 65, **{high.said()}** at η 98.5."
            in told(page))  # fmt: skip
    (frame,) = (frame.value for frame in page.dataframe)
    by = dict(zip(zip(frame["sends"], frame["η"], strict=True),
                  frame["words read of one release, F1"], strict=True))  # fmt: skip
    assert by["Token representation", "65"] == low.said()
    assert by["Token representation", "50"] == by["No defence", "none"] == "–"
    assert "Each training text is released once." in told(page)


def test_releases_are_printed_wherever_odds_are(opened: Open, tmp_path: Path) -> None:
    fresh = constrained_rows(releases=("every_epoch",))
    folder = ship(tmp_path / "fresh", "constrained", rows=fresh)
    page = opened(folder, part="noise", task="sst2", network="bilstm")
    said = told(page).replace("\\", "")
    assert "A training text is released once per epoch" in said and "8 times" in said
    assert "Text to text, after 8 releases of a text, promises odds of" in said
    (frame,) = (frame.value for frame in page.dataframe)
    odds = dict(zip(zip(frame["sends"], frame["η"], strict=True), frame[ODDS.lower()], strict=True))
    spec = DefenceSpec.of("text_to_text", {"eta": 65.0})
    assert odds["Text to text", "65"] == kept_odds(spec, "minilm", 8)
    assert set(frame["releases of a text"]) == {0, 8}


@pytest.mark.parametrize("content", [None, "{", '{"study": "audit", "rows": []}'])
def test_without_what_is_read_the_part_is_drawn_all_the_same(
    opened: Open, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = tmp_path / "read.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    monkeypatch.setattr(read_under_noise, "SHIPPED", path)
    cache.read_under_noise.clear()
    page = opened(rows, part="noise", task="sst2", network="bilstm")
    cache.read_under_noise.clear()
    assert "Without noise the BiLSTM reaches" in told(page)
    assert "What is read of what is sent**" not in told(page)
    said = "".join(each.value for each in page.error).replace("\\", "")
    assert (path.name in said) is (content is not None)


def test_a_network_that_learns_nothing_is_no_verdict_on_mechanisms(
    opened: Open, tmp_path: Path
) -> None:
    found = constrained_rows()
    for row in found:
        if row.cell["defence"] == "none":
            row.scores["accuracy"] = Score(69.0, Interval(66.0, 72.0), 500, 68.4)
    rows = ship(tmp_path / "nothing", "constrained", rows=found)
    page = opened(rows, part="noise", task="mrpc", network="bilstm")
    assert page.title[0].value == "This network learns nothing here, with noise or without"
    assert "not surely above guessing (68.4) either" in told(page)
    assert "above token representation" not in told(page)


def test_pretraining_says_what_it_won_back_and_that_it_is_a_subset(
    opened: Open, rows: Path
) -> None:
    page = opened(rows, part="pretraining", task="sst2", sends="token_representation", eta="65")
    assert page.title[0].value == "Pretraining under noise wins back 60 % of what the noise costs"
    said = told(page)
    assert "the goal of 50 % is surely met" in said and "at its η 100, come to 44 %" in said
    assert "Denoising MLM beside Vanilla MLM by 7.8 [6.0, 9.6] points: more" in said
    assert "On the same texts, Denoising MLM beside Probability MLM by" in said
    assert "points: more: surely in the order of the paper." in said
    assert "pretrained on 4,000,000 tokens at this η, 8,000,000 with" in said
    assert "7,800,000 of them of texts not seen before" in said
    assert "the paper's saw 32,768,000,000, 4,096 times as many" in said
    adapted, losses = (frame.value for frame in page.dataframe)
    assert len(adapted) == 6 and len(losses) == 15
    page.button_group(key=key_of("eta")).set_value("98.5").run()
    assert "at η 98.5" in told(page) and not page.exception


def test_privacy_says_what_it_costs_what_it_leaves_and_what_was_spent(
    opened: Open, rows: Path
) -> None:
    page = opened(rows, part="private", task="sst2")
    assert page.title[0].value.startswith("At ε = 1 accuracy changes by −2.4 points")
    said = told(page)
    assert "at most 2 points at ε = 8: surely met" in said
    assert "at most 5 points at ε = 1: surely met" in said
    assert "an AUC of at most 55 at ε = 1: surely met" in said
    assert "No promise: accuracy" in said and "ε = 8.0 where it is 1 of one text" in said
    assert "they differ by at most **0.3 %**" in said or "**0.4 %**" in said
    heads, models, spent = (frame.value for frame in page.dataframe)
    assert len(heads) == 6 and list(models["ε of one text"]) == ["1", "8", "∞"] and len(spent) == 18
    assert {"opacus", "dp-accounting", "privacy loss", "of 10 texts"} <= set(spent.columns)
    assert "The unit of ε is a text, which is a row of the file" in said
    assert "names of the classes are public" in said and "of 10 texts together)" in said


def test_language_models_alone_are_shown(opened: Open, tmp_path: Path) -> None:
    page = opened(ship(tmp_path / "m", "private-training", rows=private_rows(tasks=())))
    assert len(page.dataframe) == 2 and not page.error and page.get("plotly_chart")


def test_a_damaged_file_is_told_calmly_and_the_other_parts_stand(
    opened: Open, tmp_path: Path
) -> None:
    folder = ship(tmp_path / "damaged", "adversarial", "constrained")
    path = folder / FILES["adversarial"]
    table = json.loads(path.read_text(encoding="utf-8"))
    for row in table["rows"]:
        row.pop("when")
    path.write_text(json.dumps(table), encoding="utf-8")
    page = opened(folder, part="adversary")
    assert "Make it anew" in page.error[0].value.replace("\\", "")
    assert command_of("adversary") in codes(page) and page.title[0].value == QUESTION
    page.button_group(key=key_of("part")).set_value("noise").run()
    assert not page.error and page.get("plotly_chart")


def test_what_an_address_may_not_ask_is_told(opened: Open, rows: Path) -> None:
    page = opened(rows, part="nonsense", encoder="/etc/passwd", hides="names")
    refused = page.warning[0].value.replace("\\", "")
    assert "part=nonsense" in refused and "passwd" in refused and "hides=names" in refused
    assert page.title[0].value.startswith("In training words were read") and not page.error


def test_presented_the_controls_are_gone_and_the_picture_stands(opened: Open, rows: Path) -> None:
    page = opened(rows, part="noise")
    page.button(key="present").click().run()
    assert not page.get("button_group") and page.get("plotly_chart")
    assert page.button(key="present-leave")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = TrialRequest(n_defence=60, n_known=40, n_targets=20, epochs=3)
    monkeypatch.setattr(state, "USUAL", asked)


def test_the_trap_is_sprung_here_and_now(opened: Open, small: None, leakscope_home: Path) -> None:
    page = opened(weight="3")
    page.button(key="training-start").click().run()
    assert "job" in page.query_params and not page.exception
    end = time.monotonic() + 180
    while not page.subheader and not page.error and time.monotonic() < end:
        time.sleep(0.2)
        page.run()
    assert not page.error and "words were read with a score of " in page.subheader[0].value
    assert "where nothing was hidden from it (λ = 0)" in told(page)
    (frame,) = (frame.value for frame in page.dataframe)
    assert list(frame["defence"]) == ["no defence", *["λ_w 0"] * 4, *["λ_w 3"] * 4]
    assert list(frame["when"])[-2:] == ["epoch 3", "fresh, afterwards"]
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
def test_the_commands_of_the_page_are_understood(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words: Sequence[str] = shlex.split(command_of(part))
    asked = build_parser().parse_args(with_spec(list(words[3:])))
    assert asked.out == (SHIPPED / FILES[STUDIES[part]]).relative_to(ROOT)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_pinned_with_its_figure(opened: Open, rows: Path, part: str) -> None:
    page = opened(rows, part=part)
    page.button(key="add-to-story-training").click().run()
    assert not page.exception
    ((slide,),) = ([each.pin.slide] for each in page.session_state["_story_pins"])
    assert slide.title and slide.figure["data"] and slide.alt and slide.caveat
    assert any(words in slide.body for words in ("95 % intervals", "intervals"))
    facts = dict(slide.facts)
    assert [fact for fact in RESTS_ON if not facts.get(fact)] == []
    assert not facts["Data"].startswith("none")
    assert slide.commands == (command_of(part),)


@pytest.mark.parametrize("part", PARTS)
def test_the_command_of_a_part_names_the_specification_of_what_ships(part: str) -> None:
    spec = ROOT / command_of(part).split("--spec ")[1].split(" ")[0]
    study = json.loads(spec.read_text())["study"]
    assert study == STUDIES[part]
    shipped = SHIPPED / FILES[study]
    assert spec.parent.name == ("results" if shipped.exists() else "presets")
    for table in [shipped, *SHIPPED.glob(f"{shipped.stem}-*.json")] if shipped.exists() else []:
        name = f"{study}{table.stem.removeprefix(shipped.stem)}"
        measured = ROOT / "docs" / "results" / f"{name}.json"
        assert f"docs/results/{name}.spec.json" in command_of(part, name)
        assert command_of(part, name).endswith(f"--out assets/training/{table.name}")
        assert measured.with_suffix(".spec.json").exists()
        assert json.loads(measured.read_text())["rows"] == json.loads(table.read_text())["rows"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(-1.0, 1.5, "surely met"), (2.5, 4.0, "surely missed"), (1.0, 2.6, "met by the mean"),
     (1.9, 2.6, "missed by the mean")],
)  # fmt: skip
def test_a_goal_is_judged_by_the_interval(low: float, high: float, said: str) -> None:
    assert private._met((low + high) / 2, low, high, 2.0).startswith(said)
