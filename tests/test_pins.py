"""What a pin of each page holds: what a number rests on, and nothing that was typed unasked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from visiting import PARCELS, open_page, run_until

from leakscope.core.cli import build_parser
from leakscope.core.encoders.minilm import load_minilm
from leakscope.core.findings.finding import OPENS, RESTS_ON, Finding
from leakscope.core.pages import PAGES
from leakscope.core.story.deck import make_deck
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.html import html_report
from leakscope.core.story.reading import story_from_data
from leakscope.core.studies.inversion.representation_summary import FILES, SHIPPED
from leakscope.core.studies.tradeoff.summary import SHIPPED as TRADEOFF
from leakscope.dashboard.attributes.state import key_of as attributes_key
from leakscope.dashboard.audit.state import PERSONAL_KEY
from leakscope.dashboard.membership.state import FILE_KEY
from leakscope.dashboard.projection import job as map_jobs
from leakscope.dashboard.projection.state import key_of as map_key
from leakscope.dashboard.story import state
from leakscope.dashboard.story.pinning import EXAMPLE, NOTHING_REPEATS, OWN_FILE, OWN_ROWS

ROOT = Path(__file__).parents[1]
MARK = "Quorvex"
SENTENCE = f"The {MARK} boat reached the harbour of {MARK} at dawn."
NAMES = {
    "text": f"Ada {MARK} sold the boat.\nThe court fined [Tom Orrin].",
    "names": f"Ada {MARK}\nTom Orrin",
}
TABLE = "\n".join(
    [f"text,{MARK}kind,{MARK}number"]
    + [
        f"The {a} {b} the parcel near the mill.,{MARK} {a},{i}.5"
        for i, (a, b) in enumerate(PARCELS)
    ]
)
ANSWERS = f"member,true_class,a,{MARK}\n" + "yes,a,0.9,0.1\nno,a,0.6,0.4\n" * 20


def opened(app: AppTest, name: str, **asked: str) -> AppTest:
    return waited(open_page(app, name, **asked))


def waited(page: AppTest) -> AppTest:
    """Run the page until its finding stands, unless its rows do not ship."""
    return run_until(
        page,
        lambda page: (
            not page.title[0].value.endswith("?")
            or any(menu.proto.id.count("add-to-story") for menu in page.get("button"))
        ),
    )


def pinned(page: AppTest, name: str, *, with_typed: bool = False) -> Pin:
    """Return the pin of what a page shows, as its button or its menu would make it."""
    page.session_state["_story_requested"] = (name, with_typed)
    page.run()
    assert not page.exception
    found: list[state.NumberedPin] = page.session_state["_story_pins"]
    return found[-1].pin


def on_the_map(app: AppTest) -> AppTest:
    map_jobs._corpus_maps().clear()
    page = opened(app, "projection", text=SENTENCE)
    page.selectbox(key=map_key("corpus")).set_value("upload").run()
    page.file_uploader(key=map_key("file")).upload(f"{MARK}.csv", TABLE.encode(), "text/csv").run()
    page = waited(page)
    page.selectbox(key=map_key("colour")).set_value(f"{MARK}kind")
    page.selectbox(key=map_key("shape")).set_value(f"{MARK}number")
    page.text_input(key=map_key("search")).set_value(MARK).run()
    return page


def study_of_defences(app: AppTest) -> AppTest:
    rows = (TRADEOFF / "tradeoff.json").read_text("utf-8")
    rows = rows.replace(": TREC", f": {MARK} task").replace('"AMD', f'"{MARK}')
    page = opened(app, "tradeoff", text=SENTENCE)
    page.file_uploader(key="own-tradeoff").upload(f"{MARK}.json", rows.encode(), "a/json").run()
    page.session_state["vectors_used_for"] = "classification"
    page.session_state["task"] = f"{MARK} task"
    return page.run()


def study_of_encoders(app: AppTest) -> AppTest:
    page = opened(app, "representations", text=SENTENCE)
    sent = []
    for study in ("encoders", "classification"):
        rows = (SHIPPED / FILES[study]).read_text("utf-8")
        sent.append(
            (f"{MARK}.json", rows.replace('"minilm"', f'"st:{MARK}/model"').encode(), "a/json")
        )
    page.file_uploader(key="own-representations").set_value(sent).run()
    return page


def labels_of_authors(app: AppTest) -> AppTest:
    page = opened(app, "attributes", text=SENTENCE)
    page.selectbox(key=attributes_key("corpus")).set_value("upload").run()
    name = f"{MARK}.csv"
    page.file_uploader(key=attributes_key("file")).upload(name, TABLE.encode(), "text/csv").run()
    return page


def answers_of_a_classifier(app: AppTest) -> AppTest:
    page = opened(app, "membership")
    page.file_uploader(key=FILE_KEY).upload(f"{MARK}.csv", ANSWERS.encode(), "text/csv").run()
    return page


def vectors_of_letters(app: AppTest) -> AppTest:
    texts = [f"{MARK} wrote letter {i} about the boat in the harbour." for i in range(36)]
    vectors = load_minilm(device="cpu").encode(texts)
    rows = [
        json.dumps({"id": f"{MARK}-{i}", "text": text, "vector": vector})
        for i, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True))
    ]
    page = opened(app, "audit")
    sent = (f"{MARK}.jsonl", "\n".join(rows).encode(), "a/json")
    page.file_uploader(key="audit-vectors").upload(*sent).run()
    page.checkbox(key=PERSONAL_KEY).set_value(False).run()
    page.button(key="audit-start").click().run()
    page = run_until(page, lambda p: not any("An example" in part.value for part in p.markdown))
    assert not page.error
    return page


VISITS: dict[str, Callable[[AppTest], AppTest]] = {
    "overview": lambda app: opened(app, "overview", text=SENTENCE),
    "inversion": lambda app: opened(app, "inversion", text=SENTENCE, attack="probe_mlc"),
    "names": lambda app: opened(app, "names", **NAMES),
    "audit": vectors_of_letters,
    "projection": on_the_map,
    "representations": study_of_encoders,
    "attributes": labels_of_authors,
    "membership": answers_of_a_classifier,
    "memorisation": lambda app: opened(app, "memorisation", canary=f"{MARK} lives here"),
    "deniability": lambda app: opened(app, "deniability", text=SENTENCE),
    "tradeoff": study_of_defences,
    "training": lambda app: opened(app, "training", text=SENTENCE),
    "glossary": lambda app: opened(app, "glossary", text=SENTENCE),
}
"""Each page with something of the visitor's own in everything that takes it."""

OPENS_OTHERWISE = {
    "projection": OWN_FILE,
    "audit": OWN_FILE,
    "tradeoff": OWN_ROWS,
    "representations": OWN_ROWS,
}
ASKS = {"inversion", "names", "memorisation", "deniability", *OPENS_OTHERWISE}
"""Pages whose pin could show it, and that ask."""


def test_every_page_that_can_be_pinned_is_tried() -> None:
    assert set(VISITS) == set(PAGES) - {"story"}


def slide_of(pin: Pin) -> Finding:
    assert pin.slide is not None
    return pin.slide


@pytest.mark.slow
@pytest.mark.parametrize("name", VISITS)
def test_nothing_of_the_visitors_own_is_pinned_unasked_and_a_pin_says_what_it_opens(
    small_app: AppTest, name: str
) -> None:
    page = VISITS[name](small_app)
    asks = any(f"add-to-story-{name}" in menu.proto.id for menu in page.get("menu_button"))
    assert asks == (name in ASKS)
    for with_typed in (False, True) if asks else (False,):
        pin = pinned(page, name, with_typed=with_typed)
        held = json.dumps(pin.to_dict(), ensure_ascii=False).lower()
        assert (MARK.lower() in held) == with_typed and slide_of(pin).title
        if asks:
            check_opens(pin, OPENS_OTHERWISE.get(name, "" if with_typed else EXAMPLE))
    if asks:
        page.switch_page(str(ROOT / "pages" / "story.py")).run()
        said = " ".join(caption.value for caption in page.caption).replace("\\", "")
        assert OPENS_OTHERWISE.get(name, EXAMPLE) in said


def check_opens(pin: Pin, why: str) -> None:
    """A pin is live unless it says why it is not, on its slide alone and not among its facts."""
    is_live = why in ("", EXAMPLE)
    assert dict(slide_of(pin).facts).get(OPENS, "") == why and pin.is_live == is_live
    deck = make_deck(Story(title="t", pins=(pin,)), "2026-03-01")
    (shown,) = deck.pages
    assert bool(shown.live) == is_live and OPENS not in dict(shown.facts)
    assert not pin.parameters or is_live
    html = html_report(deck, base="")
    assert why in html.replace("&#39;", "'") and ("Open it live" in html) == is_live


@pytest.mark.slow
@pytest.mark.parametrize("name", VISITS)
def test_every_page_has_a_pin_with_its_facts_and_can_be_presented_linked_and_saved(
    small_app: AppTest, name: str
) -> None:
    page = opened(small_app, name)
    check_toolbar(page)
    pin = pinned(page, name)
    facts = dict(slide_of(pin).facts)
    assert [fact for fact in RESTS_ON if not facts.get(fact, "").strip()] == []
    assert pin.is_live and OPENS not in facts
    (again,) = story_from_data(json.loads(json.dumps(Story(title="t", pins=(pin,)).to_dict()))).pins
    assert again == pin
    page.button(key="present").click().run()
    assert not page.exception
    assert not {"Link", "Save"} & set(popovers(page)), "presented, controls are gone"
    page.button(key="present-leave").click().run()
    check_toolbar(page)


def popovers(page: AppTest) -> list[str]:
    return [block.proto.popover.label for block in page.get("popover")]


def check_toolbar(page: AppTest) -> None:
    assert not page.exception and page.button(key="present")
    assert {"Link", "Save"} <= set(popovers(page))


def test_the_toolbar_is_there_though_an_encoder_is_refused(small_app: AppTest) -> None:
    small_app.session_state["encoder"] = "mlm:/no/such/folder"
    page = open_page(small_app, "deniability")
    assert page.error
    check_toolbar(page)


def test_what_is_saved_stands_under_save(small_app: AppTest) -> None:
    page = open_page(small_app, "tradeoff")
    save = next(b for b in page.get("popover") if b.proto.popover.label == "Save")
    assert len(save.get("download_button")) == 1


def test_a_page_without_what_is_typed_does_not_warn_of_it(small_app: AppTest) -> None:
    for name, is_told in (("overview", False), ("inversion", True)):
        page = open_page(small_app, name)
        assert any("contains what you typed" in c.value for c in page.caption) == is_told


def asked(commands: tuple[str, ...]) -> list[dict[str, object]]:
    """Return what the command line takes of commands: each has to be understood."""
    words = [shlex.split(command) for command in commands if command.startswith("leakscope ")]
    return [vars(build_parser().parse_args(each[1:])) for each in words]


def test_the_command_of_a_pin_has_the_settings_in_force(small_app: AppTest) -> None:
    page = opened(small_app, "inversion", attack="probe_mlc,msp")
    page.session_state["_settings"] = {"probe_mlc": {"answer_count": "threshold"}}
    pin = pinned(page.run(), "inversion")
    commands = slide_of(pin).commands
    assert [each["attack"] for each in asked(commands)] == ["msp", "probe_mlc"]
    assert ["answer_count=threshold" in command for command in commands] == [False, True]
    assert "default settings" in dict(slide_of(pin).facts)[OPENS]


@pytest.mark.slow
def test_a_command_is_given_for_the_map_that_it_draws_alone(small_app: AppTest) -> None:
    map_jobs._corpus_maps().clear()
    page = opened(small_app, "projection")
    shipped = "python -m scripts.projection_map"
    assert slide_of(pinned(page, "projection")).commands == (shipped,)
    page.session_state[map_key("n_moved")] = 50
    page.selectbox(key=map_key("defence")).set_value("int8").run()
    pin = pinned(page, "projection")
    assert slide_of(pin).commands[0] == shipped and "moves" in slide_of(pin).commands[1]
    assert ("defence", "int8") in pin.parameters and ("n_moved", "50") in pin.parameters
    facts = dict(slide_of(pin).facts)
    assert "of 50 protected vectors" in facts["Moved"]
    figure = slide_of(pin).figure
    assert figure is not None
    assert figure["layout"]["margin"]["t"] == 60  # no room for the tool bar of a page
    drawn = {str(trace.get("name")) for trace in figure["data"]}
    assert {"before → after", "after the defence (50)", "your sentence"} <= drawn
    page.session_state[map_key("method")] = "pca"
    page = waited(page.run())
    (none,) = slide_of(pinned(page, "projection")).commands
    assert none.startswith("none: only the page draws this map")


@pytest.mark.slow
def test_a_map_opens_with_what_stands_under_its_further_settings(small_app: AppTest) -> None:
    map_jobs._corpus_maps().clear()
    page = opened(
        small_app,
        "projection",
        method="pca",
        search="harbour",
        n_neighbors="30",
        min_dist="0.25",
        perplexity="12.0",
        seed="7",
        metric="euclidean",
    )
    pin = pinned(page, "projection", with_typed=True)
    told = dict(pin.parameters)
    assert told["search"] == "harbour" and (told["metric"], told["seed"]) == ("euclidean", "7")
    assert (told["n_neighbors"], told["min_dist"], told["perplexity"]) == ("30", "0.25", "12.0")
    figure = slide_of(pin).figure
    assert figure is not None
    assert any(str(trace.get("name")).startswith("found (") for trace in figure["data"])
    alone = pinned(page, "projection")
    assert "search" not in dict(alone.parameters)
    assert not any("found (" in str(t.get("name")) for t in (slide_of(alone).figure or {})["data"])


@pytest.mark.slow
def test_what_no_command_repeats_says_so(small_app: AppTest) -> None:
    pin = pinned(on_the_map(small_app), "projection")
    assert slide_of(pin).commands == (NOTHING_REPEATS,)
    figure = slide_of(pin).figure
    assert figure is not None
    assert any("group 1, group" in str(trace.get("name")) for trace in figure["data"])
    assert "have the same group" in slide_of(pin).title


@pytest.mark.slow
def test_the_name_of_an_encoder_that_was_typed_is_pinned_only_where_it_is_asked_for(
    small_app: AppTest, tiny_bert: Path
) -> None:
    name = f"mlm:{tiny_bert}"
    small_app.session_state["encoder"] = name
    page = opened(small_app, "deniability")
    alone, whole = (pinned(page, "deniability", with_typed=typed) for typed in (False, True))
    assert tiny_bert.name not in json.dumps(alone.to_dict())
    assert "YOUR ENCODER" in slide_of(alone).commands[0]
    assert dict(whole.parameters)["encoder"] == name and name in slide_of(whole).commands[0]


def test_a_view_that_no_address_holds_says_so(small_app: AppTest) -> None:
    page = opened(small_app, "attributes")
    assert OPENS not in dict(slide_of(pinned(page, "attributes")).facts)
    page.session_state[attributes_key("measured_k")] = 5
    told = dict(slide_of(pinned(page, "attributes")).facts)[OPENS]
    assert told.startswith("at the default view of the page")


def test_a_pin_of_the_trap_repeats_its_part_alone(small_app: AppTest) -> None:
    pin = pinned(opened(small_app, "training"), "training")
    assert len(slide_of(pin).commands) == 1
