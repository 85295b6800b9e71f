from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import streamlit as st

from leakscope.core.studies.tradeoff.summary import shipped_tradeoff
from leakscope.core.studies.training.summary import (
    Adversarial,
    Pretrained,
    PrivateTraining,
    UnderNoise,
)
from leakscope.dashboard import cache
from leakscope.dashboard.address import Address, NotOffered, Parameter
from leakscope.dashboard.attributes import state as attributes
from leakscope.dashboard.audit import state as audit
from leakscope.dashboard.deniability import state as deniability
from leakscope.dashboard.deniability.views import eta_steps
from leakscope.dashboard.inversion import state as inversion
from leakscope.dashboard.membership import state as membership
from leakscope.dashboard.memorisation import state as memorisation
from leakscope.dashboard.names import controls as names_controls
from leakscope.dashboard.names import state as names
from leakscope.dashboard.projection import state as projection
from leakscope.dashboard.representations import state as representations
from leakscope.dashboard.tradeoff import state as tradeoff
from leakscope.dashboard.training import state as training
from leakscope.dashboard.ui import encoder_choice
from leakscope.dashboard.ui.errors import plain

TEXT = "The harbour master counted 12 ships & left? é ü 🦊\nA second line."


class Query(dict[str, list[str]]):
    """The parameters of an address, in memory."""

    def get_all(self, name: str) -> list[str]:
        return list(self.get(name, []))


class Session:
    """A visitor's session: its state, its address, and what the page told it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.told: list[str] = []
        self.links: list[str] = []
        self.open({})

    def open(self, query: dict[str, list[str]]) -> None:
        """Start afresh with an address."""
        self.state: dict[str, Any] = {}
        self.query = Query(query)
        self.patch.setattr(st, "session_state", self.state)
        self.patch.setattr(st, "query_params", self.query)
        self.patch.setattr(st, "warning", lambda told, **_: self.told.append(told))
        self.patch.setattr(st, "caption", lambda *_: None)
        self.patch.setattr(st, "code", lambda link, **_: self.links.append(link))
        self.patch.setattr(st, "context", SimpleNamespace(url="http://localhost:8501/names?x=1"))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    yield Session(monkeypatch)


def of_deniability() -> Address:
    deniability.keep_eta(75.0, eta_steps(384))
    return deniability.address(eta_steps(384))


def of_membership() -> Address:
    facts = [("linear", "news", "lira"), ("words", "novels", "fixed")]
    measured = [SimpleNamespace(model=m, data=d, attack=a) for m, d, a in facts]
    return membership.address(measured)  # type: ignore[arg-type]


def of_training() -> Address:
    """Of what was measured only what an address may name."""

    def points(kind: type, **facts: Any) -> Any:
        points = tuple(SimpleNamespace(**facts, task=task) for task in ("sst2", "mrpc"))
        return kind(points=points, provenances=())

    settings = [SimpleNamespace(encoder=name, hides="words") for name in ("minilm", "dual")]
    heads = (SimpleNamespace(task="news"),)
    return training.address(
        {
            "adversary": Adversarial(tuple(settings), (), {}, "author", {}, ()),  # type: ignore[arg-type]
            "noise": points(UnderNoise, reader="bilstm"),
            "pretraining": points(Pretrained, mechanism="text_to_text", eta=98.5),
            "private": PrivateTraining(heads, (), 1e-5, ()),  # type: ignore[arg-type]
        }
    )


PAGES: dict[str, Callable[[], Address]] = {
    "audit": audit.address,
    "names": lambda: names.address(
        names_controls.sample_request(), names_controls.selectable_attacks()
    ),
    "attributes": lambda: attributes.address(["articles", "collections"]),
    "membership": of_membership,
    "memorisation": memorisation.address,
    "training": of_training,
    "tradeoff": lambda: tradeoff.address(shipped_tradeoff()),
    "deniability": of_deniability,
    "representations": lambda: representations.address(cache.representations()),
    "projection": projection.adopt_address,
    "inversion": inversion.address,
    "encoder": encoder_choice.address,
}
VIEWS: dict[str, dict[str, Any]] = {
    "audit": {"audit_n": 1_000},
    "names": {"names_sentences": TEXT, "names_names": "Ada Q\nTom, Orrin", "names_attack": "msp"},
    "attributes": {
        "attributes_corpus": "collections",
        "attributes_labels": 50,
        "attributes_each": 5,
        "attributes_text": TEXT,
    },
    "membership": {
        "membership_model": "words",
        "membership_data": "novels",
        "membership_attack": "fixed",
        "membership_prior": 101,
        "membership_rate": 0.01,
    },
    "memorisation": {
        "memorise_canary": "Tarnquell & {digits:3}? é 🦊",
        "memorise_insertions": 4,
        "memorise_epochs": 20,
        "memorise_model": "transformer",
        "memorise_corpus": "lee",
        "memorise_n": 500,
        "memorise_tokens": "words",
        "memorise_draw": 100,
        "memorise_models": 2,
    },
    "training": {
        "training_part": "private",
        "training_hides": "attribute",
        "training_encoder": "dual",
        "training_task": "news",
        "training_network": "bilstm",
        "training_sends": "text_to_text",
        "training_eta": "98.5",
        "training_weight": "10",
    },
    "tradeoff": {
        "sentence": TEXT,
        "vectors_used_for": "classification",
        "task": "TREC",
        "share_to_keep": 80,
        "point": "text_to_text:eta=90",
        "against": "custext:epsilon=4,mapping=aggressive+int8",
    },
    "deniability": {"sentence": TEXT, "eta": 15.5},
    "representations": {
        "rep_encoder": ["tfidf", "minilm"],
        "rep_attack": ["msp"],
        "rep_domain": "in",
        "rep_view": "text",
        "rep_corpus": "lee",
        "rep_n": 1000,
        "sentence": TEXT,
    },
    "projection": {
        "map_corpus": "lee",
        "map_n": 500,
        "map_method": "pca",
        "map_dims": 3,
        "map_colour": "words",
        "map_shape": "document",
        "map_defence": "token_representation",
        "map_strength": 60.0,
        "sentence": TEXT,
    },
    "inversion": {"sentence": TEXT, "chosen_attacks": ["probe", "mlc"], "counts_stop_words": True},
    "encoder": {"encoder": "mlm:measured"},
}


@pytest.fixture(autouse=True)
def one_encoder_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_choice, "known_encoders", lambda: ["mlm:measured"])


@pytest.mark.parametrize("page", PAGES)
def test_a_link_made_from_a_view_opens_the_same_view(session: Session, page: str) -> None:
    PAGES[page]().adopt()
    assert all(session.state[key] != value for key, value in VIEWS[page].items()), "it tells nought"
    session.state.update(VIEWS[page])
    PAGES[page]().show_link()
    (link,) = session.links
    assert urlsplit(link).netloc == "localhost:8501"
    session.open(parse_qs(urlsplit(link).query, strict_parsing=True))
    address = PAGES[page]()
    address.adopt()
    assert {key: session.state[key] for key in VIEWS[page]} == VIEWS[page]
    assert not address.refused
    address.adopt()
    assert session.query, "it still tells the truth"


def run(page: str) -> None:
    """Let a page take over its address as each run of it does: once."""
    address = PAGES[page]()
    if page != "projection":  # which has done so
        address.adopt()


@pytest.mark.parametrize("page", PAGES)
def test_what_a_browser_asks_before_it_heard_undoes_nothing(session: Session, page: str) -> None:
    """A click soon after another is sent with the address that the first has left behind."""
    run(page)
    session.state.update(VIEWS[page])
    PAGES[page]().show_link()
    link = parse_qs(urlsplit(session.links[0]).query, strict_parsing=True)
    session.open(dict(link))
    run(page)
    key, chosen = next(iter(VIEWS[page].items()))
    other = next(p.default for p in PAGES[page]().parameters if p.key == key)
    assert other != chosen
    session.state[key] = other
    run(page)
    assert not session.query
    session.query.update(link)
    run(page)
    assert session.state[key] == other and not session.query, "an old address came back"
    run(page)  # the browser has heard
    session.query.update(link)
    run(page)
    assert session.state[key] == chosen, "the same link, opened again"


HOSTILE = {
    "20 kB": "x" * 20_000,
    "20 kB of digits": "9" * 20_000,
    "20 digits": "9" * 20,
    "null byte": "msp\0",
    "lone surrogate": "\ud800",
    "nothing": "",
    "spaces": "  ",
    "unknown": "nonsense",
    "list": "nonsense," * 3000,
    "NaN": "nan",
    "infinite": "inf",
    "overflowing": "1e999",
    "below": "-5",
    "zero": "0",
    "hexadecimal": "0x10",
    "private": "upload",
    "path": "../../etc/passwd",
    "markup": "<b>[here](https://example.org)</b> :red[x] $x$ `x`",
}


def free_text(parameter: Parameter) -> bool:
    return parameter.options is None and parameter.read is None


@pytest.mark.slow
@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("page", PAGES)
def test_a_hostile_address_is_refused_in_few_words(session: Session, page: str, value: str) -> None:
    PAGES[page]().adopt()
    before = dict(session.state)
    parameters = PAGES[page]().parameters
    asked = [
        p
        for p in parameters
        if not free_text(p)
        and p.name != "stop_words"
        and value not in map(str, p.options or ())
        and (p.name, value) != ("seed", "0")  # which is one
    ]
    session.open({p.name: [value] for p in asked})
    address = PAGES[page]()
    address.adopt()
    address.warn_of_refused()
    for parameter in asked:
        if parameter.name != "eta":  # the nearest that there is
            assert session.state[parameter.key] == before[parameter.key], parameter.name
    assert session.state.get("eta", 75.0) in eta_steps(384)
    told = "".join(session.told)
    is_list = not value.replace(",", "").strip()
    wrong = {p.name for p in asked if not (p.is_many and is_list)}
    if page == "projection" and value == "9" * 20:
        wrong.remove("eta")  # the map takes any strength, and shows the nearest step of its slider
    assert {name for name, _ in address.refused} == wrong
    assert len(told) < 1300 and "[here](" not in told and "<b>" not in told
    told.encode("utf-8")


WITHOUT_TEXT = {"audit", "encoder", "membership", "training"}


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in WITHOUT_TEXT])
def test_hostile_text_is_taken_as_text(session: Session, page: str) -> None:
    for value in HOSTILE.values():
        texts = [p for p in PAGES[page]().parameters if free_text(p)]
        session.open({p.name: [value] for p in texts})
        address = PAGES[page]()
        address.adopt()
        assert not address.refused and texts
        for parameter in texts:
            taken = session.state[parameter.key]
            assert taken == value.replace("\ud800", "\N{REPLACEMENT CHARACTER}")
            taken.encode("utf-8")


COLOURS = ("red", "green", "blue")


def example() -> Address:
    def even(text: str) -> int:
        if int(text) % 2:
            raise NotOffered(int(text) + 1)
        return int(text)

    return Address(
        "example",
        (
            Parameter(name="text", key="typed", default="a default"),
            Parameter(name="size", key="the_size", default=2, options=(1, 2, 3)),
            Parameter(
                name="colour",
                key="colours",
                default=["red"],
                options=COLOURS,
                is_many=True,
                hint="There are three.",
            ),
            Parameter(name="even", key="even", default=0, read=even),
        ),
    )


def test_an_address_is_taken_over_once(session: Session) -> None:
    session.open({"size": ["3"], "text": ["typed elsewhere"]})
    assert example().adopt() == {"size", "text"}
    assert session.state["the_size"] == 3 and session.state["colours"] == ["red"]
    session.state["the_size"] = 1
    assert example().adopt() == set()
    assert session.state["the_size"] == 1, "the visitor's choice stands"
    session.query.update(size=["2"])
    assert example().adopt() == {"size"}
    assert session.state["the_size"] == 2, "another address is another wish"
    assert session.state["typed"] == "typed elsewhere"


@pytest.mark.parametrize(
    ("key", "value"), [("typed", "b"), ("the_size", 2), ("colours", ["blue"]), ("even", 8)]
)
def test_an_address_that_no_longer_holds_is_emptied(
    session: Session, key: str, value: object
) -> None:
    asked = {"text": ["a"], "size": ["3"], "colour": ["green"], "even": ["4"]}
    session.open({**asked, "present": ["1"], "job": ["abc"], "other": ["x"]})
    example().adopt()
    example().adopt()
    assert set(asked) <= set(session.query), "nothing has changed"
    session.state[key] = value
    example().adopt()
    assert session.query == {"job": ["abc"], "other": ["x"]}, "the job and what is not ours stay"


def test_what_the_address_does_not_name_may_change(session: Session) -> None:
    session.open({"text": ["a"], "colour": ["green", "blue"]})
    example().adopt()
    session.state.update(the_size=1, even=8, colours=["blue", "green"])
    example().adopt()
    assert set(session.query) == {"text", "colour"}


def test_what_is_refused_is_told_until_its_control_moves(session: Session) -> None:
    session.open({"size": ["7"], "colour": ["green,*mauve*"], "even": ["5"], "text": ["a"]})
    example().adopt()
    address = example()
    assert address.refused == (("size", "7"), ("colour", "*mauve*"), ("even", "5"))
    standing = (session.state["the_size"], session.state["colours"], session.state["even"])
    assert standing == (2, ["green"], 6)
    address.warn_of_refused("Shown instead: 2.")
    (told,) = session.told
    assert plain("size=7, colour=*mauve*, even=5.").rstrip("\\.") in told
    assert told.endswith("There are three. Shown instead: 2.")
    session.state["the_size"] = 1
    example().adopt()
    example().warn_of_refused()
    assert len(session.told) == 1 and not session.query


def test_repeated_names_are_a_list_or_the_last_counts(session: Session) -> None:
    session.open({"size": ["1", "3"], "colour": ["blue", "red,blue", " red "], "text": ["a", "b"]})
    example().adopt()
    assert session.state["the_size"] == 3 and session.state["typed"] == "b"
    assert session.state["colours"] == ["red", "blue"], "each once, in the order of the page"


def test_pages_keep_their_addresses_apart(session: Session) -> None:
    session.open({"encoder": ["mlm:measured"], "text": ["a"]})
    inversion.address().adopt()
    encoder_choice.address().adopt()
    session.state["sentence"] = "b"
    inversion.address().adopt()
    assert session.query == {"encoder": ["mlm:measured"]}
    encoder_choice.address().adopt()
    assert session.query, "it holds as before"


def test_an_eta_alone_chooses_a_defence_that_takes_it(session: Session) -> None:
    session.open({"eta": ["60"]})
    projection.adopt_address()
    assert projection.choice("defence") == "text_to_text" and projection.choice("strength") == 60
    session.open({"eta": ["60"], "defence": ["sequence_representation"]})
    projection.adopt_address()
    assert projection.choice("defence") == "sequence_representation"
    session.open({"eta": ["-60"]})
    assert projection.adopt_address().refused == (("eta", "-60"),)
    assert projection.choice("defence") == "none"
