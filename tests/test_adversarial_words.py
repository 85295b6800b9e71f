"""Fresh attackers on words: each knows the defence, and asks it for what it tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import SMALL_WORDS

from leakscope.core.attacks.inversion.prior import PriorAttack
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.tradeoff.trained_defences import MemoizedEncoder, ProtectedEncoder
from leakscope.core.studies.training import adversarial_words
from leakscope.core.studies.training.adversarial import AdversarialStudy
from leakscope.core.studies.training.adversarial_texts import Sides
from leakscope.core.studies.training.adversarial_words import WORD_ATTACKERS, word_scores


def texts_of(n: int, seed: int) -> tuple[str, ...]:
    rng = np.random.default_rng(seed)
    return tuple(
        " ".join(rng.choice(SMALL_WORDS, 4, replace=False)) + f" {seed}x{i}" for i in range(n)
    )


def sides_of(n_known: int, n_targets: int) -> Sides:
    known, targets = texts_of(n_known, 1), texts_of(n_targets, 2)
    one = ("a",)
    return Sides(
        one,
        one,
        (),
        (),
        known,
        one * n_known,
        targets,
        one * n_targets,
        tuple(map(str, range(n_targets))),
        0,
    )


def cell_of(*names: str, start: str = "") -> dict[str, Any]:
    settings = {"probe_mlc": {"epochs": 10, "hidden": 32, "substitutions": 0}, "msp": {"epochs": 2}}
    return {"attackers": list(names), "settings": settings, "start": start, "seed": 0}


class Bags:
    """The sum of directions of a text's words, a unit vector; what it was asked is kept."""

    name, fingerprint, dimension = "bags", "b" * 64, 48

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], on_progress: object = None) -> Any:
        self.asked += texts
        rows = []
        for text in texts:
            found = np.full(self.dimension, 1e-3)
            for word in text.split():
                seed = sum(ord(c) * 31**i for i, c in enumerate(word))
                found = found + np.random.default_rng(seed).normal(size=self.dimension)
            rows.append(found / np.linalg.norm(found))
        return np.array(rows, np.float32).reshape(-1, self.dimension)


@pytest.mark.slow
def test_the_search_tries_lists_of_words_on_what_is_defended() -> None:
    bare, kept = Bags(), Bags()
    trained = ProtectedEncoder(MemoizedEncoder(kept), bare)
    sides = sides_of(200, 20)
    found = word_scores(cell_of("probe_mlc", "search", "msp"), trained, trained, sides)
    assert [told["family"] for _, told in found.values()] == [
        "probe-started classifier",
        "re-embedding search",
        "multi-set prediction",
    ]
    own = {*sides.known, *sides.targets, *SMALL_WORDS}
    tried = [text for text in bare.asked if text not in own and len(text.split()) > 1]
    assert len(tried) > 20 * 20, "each target's lists are encoded behind the defence"
    assert not set(tried) & set(kept.asked), "and none of them is kept"
    score, told = found["search"]
    assert score.value > score.chance + 20 and told["starts_shipped"] is False
    assert len({score.n for score, _ in found.values()}) == 1, "judged on the same words"


def test_correctors_that_begin_with_nothing_change_no_answer() -> None:
    trained = ProtectedEncoder(MemoizedEncoder(Bags()), Bags())
    scene = adversarial_words._AttackSetup(
        cell_of(), trained.encoder, trained.encoder, trained.bare, sides_of(120, 20)
    )
    search = adversarial_words._untrained_search(scene.fresh.attack, 0)
    vectors = Bags().encode(texts_of(5, 3))
    first, after = search.corrections_.first(vectors), search.corrections_.rank(Bags(), vectors)
    assert len(search.corrections_.correctors) == 1
    assert [list(one) for one in first.lists] == [list(one) for one in after.lists]


@pytest.mark.parametrize("better", ["tuned", "fresh"])
def test_the_search_is_over_the_classifier_that_reads_more_of_texts_set_aside(better: str) -> None:
    bags = MemoizedEncoder(Bags())
    scene = adversarial_words._AttackSetup(
        cell_of(start="ships"), bags, bags, bags, sides_of(200, 20)
    )
    good = scene.fresh
    weak = replace(good, reader=PriorAttack().fit(bags, texts_of(50, 4)))
    vars(scene).update({"tuned": weak, "fresh": weak, better: good})
    assert scene._stronger is good
    none = {**scene.cell, "start": ""}
    assert replace(scene, cell=none)._stronger.lift is None, "where none ships it is trained anew"


@pytest.mark.slow
def test_where_nothing_is_changed_the_search_is_over_what_ships(
    minilm: TransformerEncoder,
) -> None:
    base = ProtectedEncoder(minilm, minilm)
    cell = cell_of("tuned", "search", start="ships")
    found = word_scores(cell, base, base, sides_of(120, 20))
    assert found["search"][1]["starts_shipped"] and found["search"][0].value > 50


def test_cells_name_who_can_attack_and_set_prediction_takes_its_own_epochs(
    tmp_path: Any,
) -> None:
    target = tmp_path / "t.csv"
    target.write_text("author,text\na,b\n")

    def cells(**more: Any) -> list[dict[str, Any]]:
        given: dict[str, Any] = {"target": f"{target}#text", "hides": ("words",), "seeds": (0,)}
        return AdversarialStudy(**(given | more)).cells()

    by = {cell["encoder"]: cell for cell in cells()}
    assert by["minilm"]["attackers"] == list(WORD_ATTACKERS) and by["minilm"]["start"]
    assert by["adversarial_lstm"]["attackers"] == ["probe_mlc", "search", "msp"]
    assert by["minilm"]["settings"]["msp"] == {}, "a hundred epochs at most, by its patience"
    assert cells(msp_epochs=3)[0]["settings"]["msp"] == {"epochs": 3}
    with pytest.raises(InvalidInputError, match="there are none for dual_lstm"):
        cells(encoders=("dual_lstm",), word_attackers=("tuned",))
