"""A language model that knows its texts by heart exposes what was planted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memorising_models import UNKNOWN_BITS, MemorisingLanguageModel

from leakscope.core.attacks.membership.memorisation import experiment
from leakscope.core.results.rows import Row
from leakscope.core.studies.memorisation import study as memorisation
from leakscope.core.studies.memorisation.study import MemorisationStudy

Measured = Callable[[int], Row]


@pytest.fixture
def measured(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Measure a model that knows its texts by heart, canaries being planted so many times."""

    def trained(
        texts: Sequence[str], held_out: Sequence[str], *_: Any, measure: Any, **more: Any
    ) -> tuple[MemorisingLanguageModel, list[dict[str, Any]]]:
        model = MemorisingLanguageModel(texts)
        return model, [{"bits_a_token": float(model.bits(held_out).mean()), **measure(model)}]

    monkeypatch.setattr(experiment, "train_network", trained)
    monkeypatch.setattr(
        experiment, "log_perplexities", lambda model, tokens, texts: model.bits(texts)
    )
    monkeypatch.setattr(memorisation, "FORMATS", ("my pin is {digits:2}", "code {digits:2}"))

    def row(insertions: int) -> Row:
        study = MemorisationStudy(
            target=str(corpus),
            models=("lstm",),
            insertions=(insertions,),
            n_texts=300,
            n_canaries=2,
            n_generated=0,
            seeds=(0,),
            audit_epsilons=(),
        )
        (cell,) = study.cells()
        (found,) = memorisation.measure(cell, tmp_path)
        return found

    return row


def test_a_model_that_knows_its_texts_by_heart_exposes_what_was_planted_alone(
    measured: Measured,
) -> None:
    without, planted = measured(0), measured(1)
    for row in (without, planted):
        control = row.scores["control_exposure"]
        assert control.value <= control.chance
        assert row["bits_a_token"] == UNKNOWN_BITS, "what is held out was not learnt"
    assert without.scores["exposure"].value <= without.scores["exposure"].chance
    assert planted.scores["exposure"].value == pytest.approx(np.log2(100))


def test_a_control_that_was_planted_would_be_exposed(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = experiment.plant
    monkeypatch.setattr(experiment, "plant", lambda texts, planted, n: whole(texts, planted, n + 1))
    score = measured(0).scores["exposure"]
    assert score.value > score.chance + 4


def test_texts_that_are_held_out_and_learnt_would_be_known(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = experiment.split_held_out

    def leaking(texts: list[str], seed: int) -> tuple[list[str], list[str]]:
        known, held = whole(texts, seed)
        return [*known, *held[::2]], held

    monkeypatch.setattr(experiment, "split_held_out", leaking)
    assert measured(0)["bits_a_token"] == pytest.approx(UNKNOWN_BITS / 2, abs=0.5)
