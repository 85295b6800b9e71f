"""An attack, an encoder and a defence, each added by one file and one entry, are found everywhere.

On the command line, in the contracts, and on the pages: with formula, colour and cost.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import test_contract_attacks as attacks
import test_contract_defences as defences
import test_contract_encoders as encoders
import toy_attack
import toy_defence
import toy_encoder
from streamlit.testing.v1 import AppTest

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.shipped import save_attack
from leakscope.core.defences.registry import DEFENCES, all_defences
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.figures.inversion import shipped_scores
from leakscope.core.figures.representations import representations_figure
from leakscope.core.figures.tradeoff import tradeoff_figure
from leakscope.core.registry import marker_style, marker_styles
from leakscope.core.results import Interval, Score
from leakscope.core.specs import inference_settings, search_space
from leakscope.core.studies.inversion import representation_summary
from leakscope.core.studies.inversion.representation_summary import load_representations
from leakscope.core.studies.tradeoff.summary import shipped_tradeoff
from leakscope.dashboard.projection.state import key_of as map_key
from leakscope.dashboard.representations.state import key_of as representation_key

ATTACK, ENCODER, DEFENCE = "echo", "letters", "clipping"
TEXT = "The government said the river is near the city of London."


@pytest.fixture(autouse=True, scope="module")
def added() -> Iterator[None]:
    """Add one entry to each registry, and nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(INVERSION_ATTACKS, ATTACK, toy_attack.ENTRY)
        patch.setitem(ENCODERS, ENCODER, toy_encoder.ENTRY)
        patch.setitem(DEFENCES, DEFENCE, toy_defence.ENTRY)
        yield


# The contracts


@pytest.fixture(scope="module")
def echo(added: None, tiny_encoder: TransformerEncoder, small_texts: list[str]) -> attacks.Fitted:
    return attacks.fit_tiny(ATTACK, tiny_encoder, small_texts)


@pytest.mark.parametrize("check", attacks.ENTRY_CHECKS, ids=lambda check: check.__name__)
def test_the_attack_s_entry_keeps_the_contract(
    check: Callable[..., None], tiny_encoder: TransformerEncoder
) -> None:
    check(ATTACK, tiny_encoder)


@pytest.mark.parametrize("check", attacks.CHECKS, ids=lambda check: check.__name__)
def test_the_attack_keeps_the_contract(
    check: Callable[..., None], echo: attacks.Fitted, tmp_path: Path
) -> None:
    check(echo, tmp_path)


@pytest.mark.parametrize("check", encoders.CHECKS, ids=lambda check: check.__name__)
def test_the_encoder_keeps_the_contract(
    check: Callable[..., None], small_texts: list[str], tmp_path: Path
) -> None:
    fitted = encoders.learn(encoders.tiny(ENCODER), small_texts)
    check(encoders.Case(ENCODER, fitted, small_texts, {}), tmp_path)


@pytest.mark.parametrize("check", defences.CHECKS, ids=lambda check: check.__name__)
def test_the_defence_keeps_the_contract(
    check: Callable[..., None], tiny_encoder: TransformerEncoder
) -> None:
    check(DEFENCE, tiny_encoder)


# The command line


def test_the_command_line_lists_them_with_settings_and_cost(core: Any) -> None:
    listed = core("list", "--json").json()
    names = {section: [entry["name"] for entry in listed[section]] for section in listed}
    assert ATTACK in names["attacks"] and DEFENCE in names["defences"]
    assert f"{ENCODER}:FOLDER" in names["encoders"]
    for what, name, told in (
        ("attack", ATTACK, "n_words = 5: Echoed words, at most (1 ≤ value ≤ 50)"),
        ("encoder", ENCODER, "power = 0.5: Of the counts (0.1 ≤ value ≤ 2.0)"),
        ("defence", DEFENCE, "bound = 0.05: Greatest magnitude (0.0 ≤ value)"),
    ):
        assert told in core("list", f"--{what}", name).out
        (entry,) = core("list", f"--{what}", name, "--json").json()[f"{what}s"]
        assert entry["cost"]
    assert ATTACK in core("invert", "--help").out.replace(",", " ").split()
    assert ENCODER in core("fit", "--help").out


def test_the_attack_is_trained_scored_and_asked_by_the_command_line(
    core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    on, out = ("--encoder", f"mlm:{tiny_bert}", "--attack", ATTACK), tmp_path / "echo"
    record = core("train", *on, "--corpus", corpus, "--out", out, "--json").json()
    assert record["attack"] == ATTACK
    scored = core("evaluate", *on, "--weights", out, "--texts", corpus, "--limit", 20, "--json")
    # It has seen these texts, so that it echoes them.
    assert scored.json()["token_set_f1"] > 80
    asked = ("invert", *on, "--weights", out, "--set", "n_words=2", "--text")
    (answer,) = core(*asked, corpus.read_text().splitlines()[0], "--json").json()
    assert len(answer["words"]) == 2
    assert (
        "n_words must lie in [1, 50]"
        in core(*asked[:-3], "--set", "n_words=0", "--text", "fine").refusal()
    )


def test_the_encoder_is_fitted_and_opened_by_the_command_line(
    core: Any, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "letters"
    fit = ("fit", "--encoder", ENCODER, "--corpus", corpus, "--set", "power=1", "--out", out)
    assert core(*fit, "--json").json()["dimension"] == 27
    (answer,) = core(
        f"invert --encoder {ENCODER}:{out} --attack probe "
        "--text 'The minister crossed the river' --json"
    ).json()
    assert answer["encoder"] == ENCODER and answer["words"]


def test_a_search_and_the_live_controls_know_what_the_settings_declare() -> None:
    kind = INVERSION_ATTACKS[ATTACK].kind
    assert list(search_space(kind)) == list(inference_settings(kind)) == ["n_words"]


# The pages


@pytest.fixture
def page(
    small_app: AppTest,
    small_weights: Path,
    minilm: TransformerEncoder,
    bundled: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AppTest:
    """The dashboard, with weights of the toy attack beside the others."""
    from leakscope.core.attacks.inversion import make_attack, shipped

    weights = tmp_path / "weights"
    shutil.copytree(small_weights, weights)
    texts = [TEXT, *bundled[::600]]
    attack = make_attack(ATTACK).fit(minilm, texts)
    scores = {"n": 20, "token_set_f1": 33.0, "token_set_f1_ci95": [30.0, 36.0], "prior_f1": 6.0}
    record = {"n_texts": len(texts), "seconds": 2.0, "held_out": scores}
    save_attack(attack, weights / "minilm" / ATTACK, training=record)  # type: ignore[arg-type]
    monkeypatch.setattr(shipped, "WEIGHTS", weights)
    return small_app.run()


def visited(page: AppTest, name: str, **address: str | list[str]) -> AppTest:
    for key, value in address.items():
        page.query_params[key] = value
    page.switch_page(f"../pages/{name}.py").run()
    assert not page.exception and not page.error
    return page


def told(page: AppTest) -> str:
    parts = (*page.markdown, *page.caption, *page.html, *page.subheader, *page.latex)
    return "\n".join(str(part.value) for part in parts)


def chart_colours(page: AppTest) -> str:
    return "".join(chart.proto.spec for chart in page.get("plotly_chart"))


@pytest.mark.slow
def test_the_page_of_inversion_offers_the_attack_and_shows_what_belongs_to_it(
    page: AppTest,
) -> None:
    visited(page, "inversion", text=TEXT, attack=["mlc", ATTACK])
    (choice,) = [group for group in page.button_group if group.label == "Attacks"]
    assert any("Echo" in option for option in choice.options)
    said = told(page)
    assert "Echo" in [heading.value for heading in page.subheader]
    assert "In the order chosen by the attack" in said, "the class declares it"
    assert toy_attack.ENTRY.formula in said
    assert "needs example texts with their vectors; answers as you type" in said
    assert "example texts with their vectors" in said and "to train once" in said
    assert marker_style(INVERSION_ATTACKS, ATTACK).colour in chart_colours(page)
    page.session_state["more-settings"] = True
    page.run()
    page.number_input(key=f"setting-{ATTACK}-n_words").set_value(1).run()
    assert not page.exception and "Echoed words" in str(
        [widget.help for widget in page.number_input]
    )


@pytest.mark.slow
def test_the_page_of_maps_offers_the_defence_and_shows_what_belongs_to_it(page: AppTest) -> None:
    visited(page, "projection", text=TEXT)
    choice = page.selectbox(key=map_key("defence"))
    assert "Clipping" in choice.options
    page.session_state[map_key("n_moved")] = 50
    choice.set_value(DEFENCE).run()
    assert not page.exception and not page.error
    said = told(page)
    assert "of 50 protected vectors are still nearest to their own" in said
    assert toy_defence.ENTRY.formula in said and toy_defence.ENTRY.cost in said
    slider = page.select_slider(key=map_key("strength"))
    assert slider.label == "Greatest magnitude kept" and slider.value == 0.05


@pytest.mark.slow
def test_the_page_of_representations_offers_the_encoder_and_shows_what_belongs_to_it(
    page: AppTest,
) -> None:
    visited(page, "representations", encoder=["tfidf", ENCODER])
    choice = page.multiselect(key=representation_key("encoder"))
    assert "Letters" in choice.options and choice.value == ["tfidf", ENCODER]
    said = told(page)
    assert toy_encoder.ENTRY.formula in said and "fitted on texts in any order" in said


# The figures


def test_no_other_has_their_look() -> None:
    for registry, name in ((INVERSION_ATTACKS, ATTACK), (ENCODERS, ENCODER), (DEFENCES, DEFENCE)):
        looks = marker_styles(registry)
        look = looks.pop(name)
        assert look.colour.startswith("#") and look.symbol and look not in looks.values()


def test_a_third_and_a_fourth_entry_are_told_apart() -> None:
    many = {f"toy_{i}": replace(toy_attack.ENTRY, title=f"Toy {i}") for i in range(40)}
    known = marker_styles(INVERSION_ATTACKS)
    looks = marker_styles(INVERSION_ATTACKS | many)
    assert len(set(looks.values())) == len(looks)
    assert {name: looks[name] for name in known} == known, "those that were there keep theirs"


def test_the_attack_is_drawn_in_its_colour() -> None:
    score = Score(40.0, Interval(38.0, 43.0), 100, 6.0)
    (colour,) = shipped_scores({ATTACK: score}).data[0].marker.color
    assert colour == marker_style(INVERSION_ATTACKS, ATTACK).colour


def test_the_encoder_is_drawn_in_its_colour_under_its_name() -> None:
    found = load_representations(representation_summary.SHIPPED)
    point = found.points(["tfidf"], ["msp"], "cross", "titles")[0]
    mine = replace(point, leak=replace(point.leak, encoder=ENCODER))
    figure = representations_figure([point, mine])
    colours = [list(t.marker.color) for t in figure.data if t.marker.color and t.customdata]
    assert colours == [[ENCODERS["tfidf"].colour, marker_style(ENCODERS, ENCODER).colour]]
    assert "Letters" in [name for trace in figure.data for name in trace.text or ()]


def test_the_defence_is_drawn_in_its_colour_under_its_name() -> None:
    found = shipped_tradeoff()
    mine = replace(found.points[1], defence=DEFENCE)
    figure = tradeoff_figure(replace(found, points=(found.undefended, mine)), found.tasks[0])
    (line,) = [trace for trace in figure.data if trace.name == "Clipping"]
    assert (line.marker.color, line.marker.symbol) == marker_style(all_defences(), DEFENCE)
