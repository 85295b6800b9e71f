"""What decides a measurement is part of its key: another file, default or version, another cell."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leakscope.core.attacks.inversion import shipped
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.errors import InvalidInputError
from leakscope.core.registry import Entry
from leakscope.core.results.rows import Cell
from leakscope.core.specs import settings_of
from leakscope.core.storage.artifacts import read_json, write_json
from leakscope.core.studies import context, domains, named_texts
from leakscope.core.studies.attributes import study as attributes
from leakscope.core.studies.deniability import study as deniability
from leakscope.core.studies.inversion import attacks, reconstruct, tuning
from leakscope.core.studies.membership import classifiers as membership_classifiers
from leakscope.core.studies.membership import halves as membership_halves
from leakscope.core.studies.membership import words as membership_words
from leakscope.core.studies.registry import STUDIES, cells_of, run_study
from leakscope.core.studies.runner import cell_key
from leakscope.core.studies.tradeoff import texts as tradeoff_texts
from leakscope.core.studies.training import tuned_networks


@dataclass(frozen=True)
class Scene:
    """The files that studies are given."""

    news: Path
    pairs: Path
    encoder: Path
    posts: Path

    @property
    def names(self) -> dict[str, Any]:
        return {"target": str(self.news), "other": str(self.news)}


def _encoders(scene: Scene) -> dict[str, Any]:
    return scene.names | {"encoders": ("tfidf", f"mlm:{scene.encoder}")}


SCENES: dict[str, Callable[[Scene], dict[str, Any]]] = {
    "encoders": lambda s: _encoders(s) | {"attacks": ("msp",)},
    "attacks": lambda s: {"target": str(s.news), "attacks": ("mlc", "relaxation")},
    "reconstruct": lambda s: {"target": str(s.news), "lengths": ("4-8", "9-16")},
    "classification": lambda s: _encoders(s) | {"title_column": "text"},
    "paragraphs": _encoders,
    "eos": _encoders,
    "scaling": _encoders,
    "layers": lambda s: scene_of_layers(s),
    "names": lambda s: _encoders(s) | {"attacks": ("mlc",)},
    "deniability": lambda s: {"corpora": (f"news={s.news}",)},
    "memorisation": lambda s: {"target": str(s.news), "seeds": (0,)},
    "audit": lambda s: {},
    "replacements": lambda s: {"encoder": f"mlm:{s.encoder}"},
    "attributes": lambda s: {
        "target": str(s.news),
        "other": str(s.news),
        "label_column": "label",
        "encoders": ("tfidf", f"mlm:{s.encoder}"),
        "attribute_attacks": ("words", "linear"),
        "labels": (2,),
        "sizes": (3,),
        "seeds": (0,),
    },
    "constrained": lambda s: {
        "tasks": (f"news={s.news}",),
        "encoder": f"mlm:{s.encoder}",
        "etas": (75.0,),
        "seeds": (0,),
    },
    "adaptive": lambda s: {
        "tasks": (f"news={s.news}",),
        "encoder": f"mlm:{s.encoder}",
        "etas": (75.0, 90.0),
        "other": str(s.news),
        "seeds": (0,),
    },
    "tradeoff": lambda s: {
        "tasks": (f"news={s.news}",),
        "searches": (f"pairs={s.pairs}",),
        "encoder": f"mlm:{s.encoder}",
        "auxiliary": str(s.news),
        "defences": (
            "none",
            "gaussian",
            "truncation",
            "leace",
            "adversarial:weight=1",
            "private_head:epsilon=1",
        ),
        "attributes": f"who={s.news}",
        "label_column": "label",
        "n_labels": 2,
        "membership": "news",
    },
    "listed": lambda s: {
        "encoder": f"mlm:{s.encoder}",
        "auxiliary": str(s.news),
        "seeds": (0,),
        "defences": ("none", "gaussian", "truncation"),
    },
    "adversarial": lambda s: {
        "target": str(s.news),
        "label_column": "label",
        "tasks": (f"news={s.news}",),
        "encoders": (f"mlm:{s.encoder}", "dual_lstm"),
        "seeds": (0,),
    },
    "membership-classifiers": lambda s: {
        "corpora": (f"posts={s.posts}:label",),
        "encoder": f"mlm:{s.encoder}",
        "n_shadows": 2,
        "classifiers": ("linear", "lstm"),
        "seeds": (0,),
    },
    "private-training": lambda s: {
        "tasks": (f"news={s.news}",),
        "target": str(s.news),
        "encoder": f"mlm:{s.encoder}",
        "epsilons": (0.0, 1.0),
        "seeds": (0,),
    },
    "membership-words": lambda s: {"target": str(s.news), "seeds": (0, 1)},
    "membership-sentences": lambda s: {"target": str(s.news), "seeds": (0,)},
}
"""A small study of each kind."""


def scene_of_layers(scene: Scene) -> dict[str, Any]:
    return scene.names | {"encoders": ("minilm", f"mlm:{scene.encoder}"), "layers": (0, 1)}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    names = ("news.csv", "pairs.csv", "encoder", "posts.csv")
    found = Scene(*(tmp_path / name for name in names))
    found.encoder.mkdir()
    (found.encoder / "model.json").write_text("{}")
    write_texts(found, "")
    fixed = SimpleNamespace(name="minilm", fingerprint="one", precision="float32")
    monkeypatch.setattr(attacks, "_encoder", lambda precision: fixed)
    monkeypatch.setattr(reconstruct, "_encoder", lambda precision: fixed)
    return found


def write_texts(scene: Scene, more: str) -> None:
    """Write the files of a scene, and forget what was read of others at the same paths."""
    lines = [f"The minister of state {i}{more} met doctors,{'ab'[i % 2]}" for i in range(60)]
    scene.news.write_text("\n".join(["text,label", *lines]) + "\n")
    pairs = [f"Where is the river {i}{more}?,In which land lies river {i}?" for i in range(60)]
    posts = [f"u{i % 30},The minister {i}{more} met doctors,{'ab'[i % 2]}" for i in range(60)]
    scene.posts.write_text("\n".join(["user_id,text,label", *posts]) + "\n")
    scene.pairs.write_text("\n".join(["question1,question2", *pairs]) + "\n")
    for cached in (
        attributes._read_examples,
        attributes._content_of,
        domains.content_of,
        deniability.content_of,
        named_texts.open_classed,
        membership_classifiers.content_of,
        membership_halves.open_documents,
        membership_words._numbered_documents,
        tradeoff_texts._read_sentences,
        tradeoff_texts.auxiliary_texts,
        tradeoff_texts.auxiliary_documents,
        named_texts._open_task,
        tuned_networks.examples_of,
    ):
        cached.cache_clear()


def cells_in(name: str, scene: Scene) -> list[Cell]:
    """Return the cells of a study, each with what measures it."""
    if name == "tuning":
        study = tuning.TuningStudy(attack="msp", encoder=f"mlm:{scene.encoder}", **scene.names)
        return [study.cell({"epochs": 3})]
    return cells_of(name, STUDIES[name].kind(**SCENES[name](scene)))


def measured_by(name: str, cell: Cell) -> Cell:
    return cell if name == "tuning" else STUDIES[name].named(cell)


def entries_in(name: str, cells: list[Cell], family: str) -> dict[str, Entry]:
    """Return the things of a registry that measure the cells of a study."""
    registry = context.FAMILIES[family]
    named = [str(measured_by(name, cell).get(family, "")).partition(":")[0] for cell in cells]
    return {each: registry[each] for each in dict.fromkeys(named) if each in registry}


def of_family(name: str, cell: Cell, family: str) -> bool:
    named = str(measured_by(name, cell).get(family, "")).partition(":")[0]
    return named in context.FAMILIES[family]


def change_data(name: str, cells: list[Cell], scene: Scene, patch: pytest.MonkeyPatch) -> Any:
    write_texts(scene, " again")
    return lambda cell: bool({"contents", "content"} & cell.keys())


def change_folder(name: str, cells: list[Cell], scene: Scene, patch: pytest.MonkeyPatch) -> Any:
    (scene.encoder / "model.json").write_text('{"refitted": true}')
    return lambda cell: str(scene.encoder) in str(cell.get("encoder", ""))


def change_precision(name: str, cells: list[Cell], scene: Scene, patch: pytest.MonkeyPatch) -> Any:
    patch.setattr("leakscope.core.training.devices.pick_precision", lambda device: "float16")
    fixed = SimpleNamespace(name="minilm", fingerprint="one", precision="float16")
    patch.setattr(attacks, "_encoder", lambda precision: fixed)
    patch.setattr(reconstruct, "_encoder", lambda precision: fixed)
    return lambda cell: "encoder" in cell


def raise_versions(family: str) -> Callable[..., Any]:
    def change(name: str, cells: list[Cell], scene: Scene, patch: pytest.MonkeyPatch) -> Any:
        registry: Any = context.FAMILIES[family]
        for each, entry in entries_in(name, cells, family).items():
            patch.setitem(registry, each, dataclasses.replace(entry, version=entry.version + 1))
        return lambda cell: of_family(name, cell, family)

    return change


def raise_study(name: str, cells: list[Cell], scene: Scene, patch: pytest.MonkeyPatch) -> Any:
    if name == "tuning":
        patch.setattr(tuning, "VERSION", tuning.VERSION + 1)
    else:
        entry = STUDIES[name]
        patch.setitem(STUDIES, name, dataclasses.replace(entry, version=entry.version + 1))
    return lambda cell: True


def change_defaults(family: str) -> Callable[..., Any]:
    """Change a default of each thing that has one which the study leaves open."""

    def change(name: str, cells: list[Cell], scene: Scene, patch: pytest.MonkeyPatch) -> Any:
        touched = set()
        for each, entry in entries_in(name, cells, family).items():
            given = {
                setting
                for cell in cells
                for setting in cell.get(GIVEN[family], {})
                if str(measured_by(name, cell).get(family)) == each
            }
            if family == "encoder":
                given = set()  # a cell tells all of them
            fixed = getattr(entry, "fixed", {})
            fields = {} if not isinstance(entry.kind, type) else settings_of(entry.kind)
            left = [f for n, f in fields.items() if n not in given and n not in fixed]
            if left:
                set_default(patch, entry.kind, left[0])
                touched.add(each)
        return lambda cell: str(measured_by(name, cell).get(family, "")) in touched

    return change


def set_default(patch: pytest.MonkeyPatch, kind: Any, field: Any) -> None:
    """Give a setting another default, where it is declared and where a thing is made."""
    value = field.default
    other: Any = f"{value}-other" if isinstance(value, str) else (value or 0) + 1
    other = value / 2 if isinstance(value, float) else other
    patch.setattr(field, "default", other)
    taken = list(inspect.signature(kind.__init__).parameters.values())
    if kind.__init__.__kwdefaults__:
        patch.setitem(kind.__init__.__kwdefaults__, field.name, other)
    else:
        usual = [p.default for p in taken if p.default is not inspect.Parameter.empty]
        place = [p.name for p in taken if p.default is not inspect.Parameter.empty]
        usual[place.index(field.name)] = other
        patch.setattr(kind.__init__, "__defaults__", tuple(usual))
    assert getattr(kind(), field.name) == other


GIVEN = {"attack": "settings", "encoder": "encoder_settings", "defence": "defence_settings"}

OURS = "membership-classifiers"
"""It attacks classifiers, by attacks of their own."""
MEMBERSHIP = ("membership-words", "membership-sentences")
"""They have attacks of their own, whose code is the study's, and train what they attack."""

PRIVATE = "private-training"
"""It attacks classifiers that it trains, by several attacks in a cell."""

UNDER_NOISE = ("constrained", "adaptive")
"""They train networks that read what the noise leaves, and attack nothing."""

OWN_ATTACKS = (OURS, *MEMBERSHIP, PRIVATE, "memorisation", "attributes", "listed", *UNDER_NOISE)
"""Studies that put no attack of inversion to the test."""

WITHOUT_FILES = {"audit", "replacements"}

CHANGES: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "what a file of texts holds": (change_data, WITHOUT_FILES),
    "what the folder of an encoder holds": (
        change_folder,
        {"attacks", "reconstruct", "deniability", "audit", "memorisation", *MEMBERSHIP},
    ),
    "precision": (change_precision, {"audit", "memorisation"}),
    "the version of an attack": (
        raise_versions("attack"),
        {"classification", "deniability", "audit", "replacements", *OWN_ATTACKS},
    ),
    "the version of a classifier": (
        raise_versions("classifier"),
        {*STUDIES, "tuning"} - {OURS, PRIVATE, "tradeoff"},
    ),
    "the version of an attack on classifiers": (
        raise_versions("classifier_attack"),
        {*STUDIES, "tuning"} - {OURS},
    ),
    "the version of an attack on an attribute": (
        raise_versions("attribute_attack"),
        {*STUDIES, "tuning"} - {"attributes", "adversarial", "listed", "tradeoff"},
    ),
    "the version of a network under noise": (
        raise_versions("reader"),
        {*STUDIES, "tuning"} - {*UNDER_NOISE},
    ),
    "the version of a loss under noise": (
        raise_versions("objective"),
        {*STUDIES, "tuning"} - {"adaptive"},
    ),
    "the version of an encoder": (raise_versions("encoder"), {"audit", "memorisation"}),
    "the version of a defence": (
        raise_versions("defence"),
        {*STUDIES, "tuning"}
        - {"reconstruct", "deniability", "audit", "replacements", "listed", "tradeoff"}
        - {*UNDER_NOISE},
    ),
    "the version of a trained defence": (
        raise_versions("trained_defence"),
        {*STUDIES, "tuning"} - {"adversarial", "tradeoff"},
    ),
    "the version of the study": (raise_study, set()),
    "a default of an attack": (
        change_defaults("attack"),
        # A cell of the attacks gives each setting; that of reconstruct those of its weights, which
        # are as new as the code.
        {
            "attacks",
            "classification",
            "deniability",
            "audit",
            "replacements",
            "reconstruct",
            *OWN_ATTACKS,
        },
    ),
    "a default of an encoder": (
        change_defaults("encoder"),
        # Those attack encoders that are fitted elsewhere.
        {
            "attacks",
            "reconstruct",
            "layers",
            "deniability",
            "audit",
            "replacements",
            "memorisation",
            "listed",
            "tradeoff",
            "tuning",
            OURS,
            PRIVATE,
            *UNDER_NOISE,
        },
    ),
    "a default of a defence": (
        change_defaults("defence"),
        # A cell of the trade-off gives each setting, at every strength.
        {*STUDIES, "tuning"} - {"deniability", "audit", "replacements", *UNDER_NOISE},
    ),
}
"""What is changed, and the studies that have nothing of the kind."""


def test_every_study_is_put_to_the_test() -> None:
    assert SCENES.keys() == STUDIES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", [*STUDIES, "tuning"])
def test_what_decides_a_cell_changes_its_key(
    name: str, what: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, without = CHANGES[what]
    before = cells_in(name, scene)
    assert [cell_key(c) for c in cells_in(name, scene)] == [cell_key(c) for c in before]
    concerns = change(name, before, scene, monkeypatch)
    after = cells_in(name, scene)
    assert len(after) == len(before)
    changed = [cell_key(a) != cell_key(b) for a, b in zip(after, before, strict=True)]
    assert changed == [concerns(cell) for cell in before]
    assert any(changed) is (name not in without)


@pytest.mark.parametrize("name", [n for n in SCENES if n not in WITHOUT_FILES])
def test_another_file_at_the_path_is_refused(name: str, scene: Scene, tmp_path: Path) -> None:
    """Where the texts have changed since a study was begun, nothing of it is measured."""
    cell = next(c for c in cells_in(name, scene) if {"contents", "content"} & c.keys())
    if name == "tradeoff":  # which opens its encoder first
        cell = {**cell, "encoder": "minilm"}
    write_texts(scene, " again")
    with pytest.raises(InvalidInputError, match=r"changed since the study was started"):
        STUDIES[name].measure(cell, tmp_path)


def test_another_encoder_of_the_same_name_is_told_by_its_fingerprint(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {cell_key(cell) for cell in cells_in("attacks", scene)}
    other = SimpleNamespace(name="minilm", fingerprint="two", precision="float32")
    monkeypatch.setattr(attacks, "_encoder", lambda precision: other)
    assert not before & {cell_key(cell) for cell in cells_in("attacks", scene)}


@pytest.mark.parametrize("name", ["attacks", "tradeoff"])
def test_weights_that_ship_are_told_where_they_are_not_the_first(
    name: str, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SCENES[name](scene) | ({"encoder": "minilm"} if name == "tradeoff" else {})
    study = STUDIES[name].kind(**settings)
    before = cells_of(name, study)
    assert all("shipped" not in cell for cell in before)
    for each in ("probe_mlc", "search", "mlc", "relaxation"):
        path = shipped.WEIGHTS / "minilm" / each / "model.json"
        (tmp_path / "minilm" / each).mkdir(parents=True)
        (tmp_path / "minilm" / each / "model.json").write_bytes(path.read_bytes())
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    assert [cell_key(c) for c in cells_of(name, study)] == [cell_key(c) for c in before]
    beside = STUDIES[name].beside[0]
    place = tmp_path / "minilm" / beside / "model.json"
    write_json(place, {**read_json(place), "arrays_sha256": "1" * 64})
    after = cells_of(name, study)
    assert all((beside in c.get("shipped", {})) is ("attack" in c) for c in after)


def test_a_model_of_the_hub_is_told_by_its_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    lying: dict[str, str] = {}
    opened: list[str] = []

    def fetch(name: str) -> None:
        opened.append(name)
        lying["owner/model"] = "a" * 40

    monkeypatch.setattr(context, "_download", fetch)
    monkeypatch.setattr(context, "_cached_revision", lambda kind, model: lying.get(model, ""))
    told = context.cell_context({"encoder": "st:owner/model"})
    assert told == {"encoder_revision": "a" * 16} and opened == ["st:owner/model"]
    lying["owner/model"] = "b" * 40
    assert context.cell_context({"encoder": "st:owner/model"}) != told
    assert opened == ["st:owner/model"], "it is opened where it is not here yet, and only there"
    assert context.cell_context({"encoder": "minilm"}) == {}


def test_a_machine_of_another_kind_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(context, "_cached_revision", lambda kind, model: "b" * 40)
    here = {"encoder": "st:owner/model", "encoder_revision": "b" * 16}
    context.check_machine({**here, **context.precision_of(here)})
    with pytest.raises(InvalidInputError, match=r"holds the encoder in the state b+, .* a+:"):
        context.check_machine({**here, "encoder_revision": "a" * 16})
    monkeypatch.setattr(context, "precision_of", lambda cell: {"precision": "float16"})
    with pytest.raises(InvalidInputError, match=r"vectors in float16, .* float32: .* one kind"):
        context.check_machine({"encoder": "minilm"})
    study = STUDIES["eos"].kind(target=str(tmp_path / "news.csv"))
    rows = run_study("eos", study, tmp_path, cells=[{"encoder": "minilm"}])
    assert "computes vectors in float16" in rows[0].error


def test_a_model_that_cannot_be_had_joins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert context.cell_context({"encoder": "mlm:nobody/nothing-at-all"}) == {}


def test_a_default_that_the_cell_gives_itself_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = {"attack": "msp", "settings": {"epochs": 3}}
    field = settings_of(INVERSION_ATTACKS["msp"].kind)["epochs"]
    monkeypatch.setattr(field, "default", 99)
    assert context.cell_context(cell) == {}
    assert context.cell_context({"attack": "msp"}) == {"defaults": {"attack": {"epochs": 99}}}


def test_finished_cells_of_today_keep_their_names() -> None:
    """Where nothing is unusual nothing joins a cell: what was measured before stays measured."""
    for cell in (
        {"attack": "msp", "encoder": "minilm", "settings": {}},
        {"attack": "probe_mlc", "encoder": "minilm", "encoder_precision": "auto"},
        {"encoder": "tfidf"},
        {"defence": "gaussian", "defence_settings": {"sigma": 0.1}},
    ):
        assert context.cell_context(cell, beside=("search",)) == {}, cell
