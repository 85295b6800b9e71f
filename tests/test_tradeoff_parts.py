"""The trade-off's other parts: attributes, members, costs, and defences that are trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tradeoff_scene
from tradeoff_scene import encoder_of, last_cells

from leakscope.core.assets import RESULTS
from leakscope.core.errors import InvalidInputError
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.deniability.odds import format_odds_cell
from leakscope.core.studies.registry import cells_of, run_study
from leakscope.core.studies.runner import cell_key
from leakscope.core.studies.tradeoff import attack as tradeoff_attack
from leakscope.core.studies.tradeoff import guards as tradeoff_guards
from leakscope.core.studies.tradeoff import study as tradeoff_study
from leakscope.core.studies.tradeoff import trained_defences
from leakscope.core.studies.tradeoff import use as tradeoff_use
from leakscope.core.studies.tradeoff.attack import ATTACKERS
from leakscope.core.studies.tradeoff.guards import (
    DefenceTexts,
    attribute_texts,
    defence_training_texts,
    guard_of,
)
from leakscope.core.studies.tradeoff.study import TradeoffStudy, measure
from leakscope.core.studies.tradeoff.summary import promises, summarise
from leakscope.core.studies.tradeoff.tables import markdown
from leakscope.core.studies.tradeoff.texts import auxiliary_texts, draw_texts, spare_texts

ADVERSARIAL = "adversarial:weight=1,epochs=2,adversary_hidden=16,hidden=16"
PARTS = ["attack", "use", "attribute", "membership"]

files, study = tradeoff_scene.files, tradeoff_scene.study


@pytest.mark.slow
def test_every_family_of_defences_is_a_point_with_all_that_is_read_and_what_it_costs(
    study: TradeoffStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opacus")
    fitted: list[str] = []
    fit = trained_defences._train

    def watched(spec: Any, *given: Any) -> Any:
        fitted.append(spec.name)
        return fit(spec, *given)

    monkeypatch.setattr(trained_defences, "_train", watched)
    told = (
        "none",
        "text_to_text:eta=1",
        ADVERSARIAL,
        f"{ADVERSARIAL}+gaussian:sigma=0.1",
        "leace",
        "private_head:epsilon=8,steps=10,batch_size=50",
    )
    rows = run_study("tradeoff", replace(study, defences=told), tmp_path)
    assert [row.error for row in rows if row.error] == []
    parts: dict[str, list[str]] = {}
    for row in rows:
        parts.setdefault(row["defence"], []).append(row["part"])
    assert parts.pop("private_head") == ["use", "membership"], "vectors stay as they are"
    assert all(found == PARTS for found in parts.values()) and len(parts) == 5
    # The chain's adapter is the adapter alone: both are told the same.
    assert sorted(fitted) == ["adversarial", "leace"], "each is trained once for all of its cells"
    found = summarise(rows)
    plain, changed, adversarial, chain, leace, private = found.points
    assert (chain.defence, private.defence) == ("adversarial+gaussian", "private_head")
    for point in found.points:
        assert {*point.attribute} >= {"linear", "mlp", "knn"} and len(point.membership) == 6
        assert point.milliseconds and point.training_minutes is not None and point.utility["first"]
        assert all(49.9 < each.chance < 50.1 for each in point.membership.values())
    assert "tokens" in changed.attribute and "tokens" not in plain.attribute
    assert plain.training_minutes == changed.training_minutes == 0
    assert adversarial.training_minutes == chain.training_minutes
    assert plain.attribute["linear"].value > 90 > leace.attribute["linear"].value
    assert max(each.value for each in changed.attribute.values()) < 75, "almost no word is left"
    assert {*plain.leaks} == {"tuned"} and {*leace.leaks} == {*chain.leaks} == {
        "tuned",
        "retrieval",
        "probe_mlc",
    }
    chances = {each.chance for each in leace.leaks.values()}
    assert len(chances) == 1, "of the same words"
    assert private.leaks == plain.leaks and private.attribute == plain.attribute
    assert private.change["first"].value == pytest.approx(
        private.utility["first"].value - plain.utility["first"].value
    )
    few = [row for row in rows if row["part"] in ("attack", "use") or row["defence"] == "none"]
    assert [bool(p.attribute) for p in summarise(few).points] == [True, *[False] * 4, True]
    without = [row for row in rows if (row["defence"], row["part"]) != ("leace", "attack")]
    assert "leace" not in {point.defence for point in summarise(without).points}
    for row in rows:
        for each in row.facts.get("attackers_told", {}).values():
            assert (
                each["family"]
                and each["access"]
                and (each["n_known"] or each["family"] in ("Feature alone", "token decoder"))
            )
        assert ("attackers_told" in row.facts) is (row["part"] != "use")
    table = markdown([Row.from_dict(row.to_dict(), row.cell) for row in rows])
    assert private.leaves_vectors and not promises(private) and not leace.leaves_vectors
    assert "| attribute inferred, % | by | membership inferred, AUC | by |" in table
    assert "| defence | strength | training, minutes |" in table
    assert "against words" in table and "λ 1" in table and "ε 8" in table
    assert "## The attackers" in table and "| knn | attribute | nearest neighbours |" in table
    assert "leak as without a defence" in table


# A network that reads what is sent


@pytest.mark.slow
def test_a_network_under_noise_is_a_point_whose_words_are_read_as_behind_what_it_is_sent(
    study: TradeoffStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tradeoff_study._network_entries
    more = {"epochs": 30, "learning_rate": 0.01}  # of 160 texts

    def longer(*given: Any) -> Cell:
        cell = usual(*given)
        return {**cell, "reader_settings": {**cell["reader_settings"], **more}}

    monkeypatch.setattr(tradeoff_study, "_network_entries", longer)
    told = (
        "none",
        "text_to_text:eta=1",
        "text_to_text:eta=1000",
        "constrained:eta=1,network=bilstm",
        "constrained:eta=1000,network=bilstm",
    )
    asked = replace(study, defences=told, membership="", pairs=())
    rows = run_study("tradeoff", asked, tmp_path)
    assert [row.error for row in rows if row.error] == []
    parts = [row["part"] for row in rows if row["defence"] == "constrained"]
    assert parts == ["use", "use"], "it releases nothing of its own"
    plain, noisy, clear, of_noisy, of_clear = summarise(rows).points
    for sent, network in ((noisy, of_noisy), (clear, of_clear)):
        assert network.leaks == sent.leaks
        assert network.attribute == sent.attribute
        assert network.token_inversion == sent.token_inversion
        assert network.milliseconds and network.training_minutes
        assert promises(network) and not network.leaves_vectors
        assert network.change["first"].value == pytest.approx(
            network.utility["first"].value - plain.utility["first"].value
        )
    assert of_noisy.leaks != plain.leaks
    # Forty texts: of what noise leaves nothing it guesses, within three standard deviations.
    assert of_noisy.utility["first"].value < 75 < 95 < of_clear.utility["first"].value
    assert of_noisy.token_inversion is not None and of_noisy.token_inversion.value < 50
    assert of_clear.label == "η 1000, network bilstm, sends text_to_text"
    without = [row for row in rows if row["defence"] != "text_to_text"]
    assert [point.defence for point in summarise(without).points] == ["none"]
    table = markdown([Row.from_dict(row.to_dict(), row.cell) for row in rows])
    assert "constrained is a network fine-tuned under noise" in table
    assert not list((tmp_path / "training").rglob("*")), "no checkpoint is left"


@pytest.mark.slow
def test_a_network_s_cell_does_not_change_those_of_what_it_is_sent(study: TradeoffStudy) -> None:
    both = replace(study, defences=("none", "text_to_text:eta=1"))
    more = replace(both, defences=(*both.defences, "constrained:eta=1"))
    former = {cell_key(cell) for cell in cells_of("tradeoff", both)}
    (new,) = (c for c in cells_of("tradeoff", more) if cell_key(c) not in former)
    assert former < {cell_key(cell) for cell in cells_of("tradeoff", more)}
    assert (new["part"], new["reader"]) == ("use", "transformer")
    assert new["reader_settings"]["learning_rate"] == 1e-4, "as its own study has it"
    assert new["defence_settings"] == {
        "eta": 1.0,
        "network": "transformer",
        "sends": "text_to_text",
    }
    assert new["reader_settings"]["releases"] == "once", "one release is what attackers have"
    (fresh,) = (
        c
        for c in cells_of("tradeoff", replace(more, releases="every_epoch"))
        if cell_key(c) not in former
    )
    assert "releases" not in fresh["reader_settings"], "as in rows of earlier versions"


@pytest.mark.parametrize(("releases", "n"), [("once", 1), ("every_epoch", 3)])
def test_a_network_s_odds_are_composed_over_the_releases_that_it_saw(releases: str, n: int) -> None:
    rows = [row for row in read_rows(RESULTS / "tradeoff-all.json", "tradeoff") if row["seed"] == 0]
    told = {"releases": "once"} if releases == "once" else {}
    changed = [
        replace(row, facts={**row.facts, "reader_settings": {**row["reader_settings"], **told}})
        if row["defence"] == "constrained"
        else row
        for row in rows
    ]
    (point,) = (p for p in summarise(changed).points if p.defence == "constrained")
    assert point.releases == n
    page = markdown(changed)
    *_, line = (line for line in page.splitlines() if line.startswith("| constrained |"))
    assert line.endswith(f" {format_odds_cell(point.spec, 'minilm', n)} |")
    assert ("the number of releases of a text in the column beside them" in page) == (n > 1)
    assert ("the attackers here have only one" in page) == (n > 1)


# Whose texts are whose


@pytest.mark.parametrize("told", [ADVERSARIAL, "leace"])
def test_a_defence_learns_from_texts_that_no_attacker_holds_and_that_are_not_attacked(
    study: TradeoffStudy, told: str
) -> None:
    encoder, cells = encoder_of(study), last_cells(replace(study, defences=(told,)))
    found = defence_training_texts(cells["attack"], encoder)
    drawn, sides = (
        tradeoff_guards.draw_word_texts(cells["attack"], encoder),
        attribute_texts(cells["attribute"]),
    )
    taken = {*drawn.known, *drawn.held, *drawn.targets, *sides.known, *sides.targets}
    task: Any = tradeoff_use.open_tasks(study.tasks, ())[0]
    assert taken | {*task.texts} == found.others
    assert len(found.defence) >= 40 and not found.others & {*found.defence}
    assert (found.defence_labels is not None) == (told == "leace")
    assert [*cells] == PARTS
    assert all(defence_training_texts(cells[part], encoder) == found for part in PARTS), (
        "in every part the same"
    )


def test_a_text_of_a_defence_that_an_attacker_knows_is_refused(
    study: TradeoffStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match="1 training texts of a defence are known"):
        DefenceTexts(("One text.", "Another."), None, frozenset({"one TEXT"}))
    encoder, cell = encoder_of(study), last_cells(replace(study, defences=(ADVERSARIAL,)))["use"]
    known = tradeoff_guards.draw_word_texts({**cell["taught"], **cell}, encoder).known
    monkeypatch.setattr(tradeoff_guards, "_defence_sentences", lambda cell, encoder: known[:50])
    monkeypatch.setattr(tradeoff_guards, "near_duplicates", lambda *given: frozenset())
    with pytest.raises(InvalidInputError, match="50 training texts of a defence"):
        defence_training_texts(cell, encoder)


def test_what_nearly_repeats_a_known_text_is_not_learnt_from(study: TradeoffStudy) -> None:
    encoder, asked = encoder_of(study), replace(study, defences=(ADVERSARIAL,))
    spare = tradeoff_guards._defence_sentences
    cell = last_cells(asked)["use"]
    known = tradeoff_guards.draw_word_texts({**cell["taught"], **cell}, encoder).known
    again = tuple(f"{text} Still." for text in known[:30])
    cell["taught"]["near"] = 0.8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            tradeoff_guards, "_defence_sentences", lambda *given: (*spare(*given), *again)
        )
        assert not {*again} & {*defence_training_texts(cell, encoder).defence}


def test_spare_texts_are_nobody_s_under_any_seed(study: TradeoffStudy) -> None:
    texts = auxiliary_texts("")
    drawn = [draw_texts(texts, 120, 40, seed, near=1.0) for seed in range(3)]
    taken = {text for each in drawn for part in each.parts for text in part}
    spare = [spare_texts(texts, 120, 40, 30, seed, near=1.0) for seed in range(3)]
    assert all(len(each) == 30 and not taken & {*each} for each in spare)
    assert len({*spare}) == 3, "another seed, another draw"


def test_attackers_on_an_attribute_see_defended_vectors_and_never_a_target(
    study: TradeoffStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = last_cells(replace(study, defences=(ADVERSARIAL,)))["attribute"]
    seen: list[tuple[Any, Any]] = []
    attack = tradeoff_attack.attribute_scores

    def watched(cell: Cell, protected: Any, sides: Any) -> Any:
        seen.append((protected, sides))
        return attack(cell, protected, sides)

    monkeypatch.setattr(tradeoff_attack, "attribute_scores", watched)
    measure(cell, tmp_path)
    ((protected, sides),) = seen
    encoder = encoder_of(study)
    guard = guard_of(cell, encoder, tmp_path)
    assert protected.fingerprint == guard.protect(encoder).fingerprint != encoder.fingerprint
    plain = encoder.encode(sides.targets)
    assert np.abs(protected.encode(sides.targets) - plain).max() > 1e-3
    assert not {*sides.known, *sides.defence} & {*sides.targets}
    assert not {*sides.known} & {*sides.defence}


def test_members_are_told_by_the_defended_vectors_of_training_texts_alone(
    study: TradeoffStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opacus")
    lessons: list[tuple[Any, Any]] = []
    fit = tradeoff_use.PrivateHeads.fit_vectors

    def watched(self: Any, lesson: Any, vectors: Any, **more: Any) -> Any:
        lessons.append((lesson, vectors))
        return fit(self, lesson, vectors, **more)

    monkeypatch.setattr(tradeoff_use.PrivateHeads, "fit_vectors", watched)
    cell = last_cells(replace(study, defences=("truncation:dimension=8",)))["membership"]
    (row,) = measure(cell, tmp_path)
    ((lesson, vectors),) = lessons
    assert vectors.shape == (100, 8), "behind the defence"
    task: Any = tradeoff_use.open_tasks(study.tasks, ())[0]
    _, held = task.parts(seed=0)
    assert not {*lesson.texts} & {task.texts[i] for i in held}
    assert lesson.trained[0].sum() == 50 and (lesson.trained[1:].sum(0) == 1).all()
    assert row["n_members"] == 50 and row.scores["membership_auc: feature"].n == 100
    assert all(abs(value - 0.5) < 0.12 for value in row["control_aucs"].values())
    assert not any((tmp_path / "training").rglob("model*"))


# What is missing is told before anything is measured


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"defences": ("leace",), "attributes": ""}, "--attributes NAME=FILE"),
        ({"defences": ("adversarial:against=attribute",), "attributes": ""}, "hides an attribute"),
        ({"defences": ("none", "private_head"), "membership": ""}, "by --membership"),
        ({"defences": ("private_head",)}, "Add `none` to --defences"),
        ({"membership": "frist"}, "must be the name of one of --tasks .*first"),
        ({"defences": ("int8+leace",)}, "LEACE is trained on vectors of .* Put it first"),
        ({"defences": ("private_head+int8",)}, "Use it alone"),
        ({"defences": ("constrained+int8",)}, "reads protected texts. Use it alone"),
        ({"defences": ("constrained:eta=60", "text_to_text:eta=75")}, "Add `text_to_text:eta=60`"),
        (
            {"defences": ("none", "private_head:epsilon=0.001")},
            "an epsilon of 0, .* or of at least 0.01",
        ),
        (
            {"defences": ("text_to_text:eta=75", "constrained"), "tasks": (), "membership": ""},
            "Name one by --tasks",
        ),
        (
            {"defences": ("constrained:sends=sequence_representation,network=bilstm",)},
            "network=transformer",
        ),
        ({"n_shadows": 3}, "must be even"),
        ({"attributes": "who=nothing.csv"}, "nothing.csv is not a file"),
    ],
)
def test_what_cannot_be_measured_is_told_first(
    study: TradeoffStudy, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        replace(study, **change).cells()


@pytest.mark.slow
def test_time_is_a_cell_of_its_own_where_that_is_asked_for(
    study: TradeoffStudy, tmp_path: Path
) -> None:
    told = ("none", "rounding", "leace")
    asked = replace(study, defences=told, seeds=(0,), rounds_timed=2, membership="")
    rows = run_study("tradeoff", asked, tmp_path)
    timed = [row for row in rows if row["part"] == "time"]
    assert [row["defence"] for row in timed] == list(told) and not any(row.error for row in rows)
    for row, point in zip(timed, summarise(rows).points, strict=True):
        assert not row.scores and row["milliseconds_alone"] > 0
        assert point.milliseconds == row["milliseconds_a_text"], "that of its own cell alone"
        assert point.milliseconds_alone == row["milliseconds_alone"]
    assert "in turn with the encoder alone, which took" in markdown(rows)
    assert "in turn" not in markdown([row for row in rows if row["part"] != "time"])
    assert replace(asked, rounds_timed=0).cells() == [
        cell for cell in asked.cells() if cell["part"] != "time"
    ]
    network = replace(asked, defences=("none", "private_head"), membership="first")
    assert [c["defence"] for c in network.cells() if c["part"] == "time"] == ["none"]


def test_who_reads_likely_tokens_has_a_cell_of_their_own_where_tokens_are_released(
    study: TradeoffStudy,
) -> None:
    """So that one command asks for all, and no attacker is measured again as another is added."""
    bare = replace(study, attributes="", membership="", tasks=(), attackers=ATTACKERS)
    asked = replace(bare, defences=("none", "text_to_text:eta=75"), seeds=(0,))
    told = [(cell["defence"], cell["attackers"]) for cell in asked.cells()]
    others = ["tuned", "search", "tokens"]
    assert told == [("none", others), ("text_to_text", others), ("text_to_text", ["posterior"])]
    without = replace(asked, attackers=tuple(others))
    assert without.cells() == asked.cells()[:2]
    alone = replace(asked, attackers=("posterior",))
    assert alone.cells()[1] == asked.cells()[2]
