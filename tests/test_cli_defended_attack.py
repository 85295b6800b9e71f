"""An attack that was trained behind a defence reads vectors behind the same, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.cli.shared.defended import training_encoder
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.storage.artifacts import load_artifact
from scripts.model_cards import _defence_line

TEXT = "the minister and the river"


def given(command: str, bert: Path, *more: object) -> list[object]:
    return [command, "--encoder", f"mlm:{bert}", "--attack", "probe", *more, "--json"]


@pytest.fixture
def train(core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path) -> Any:
    def trained(out: str, *defence: str) -> tuple[Path, Any]:
        folder = tmp_path / out
        line = given("train", tiny_bert, "--corpus", corpus, "--min-words", 2, "--out", folder)
        return folder, core(*line, *defence)

    return trained


def test_it_reads_what_it_was_trained_for_and_its_record_and_card_tell_what(
    core: Any, train: Any, corpus: Path, tiny_bert: Path
) -> None:
    told = "gaussian:sigma=0.02+truncation:dimension=24"
    folder, outcome = train("own", "--defence", told)
    record = outcome.json()
    assert record["defence"] == told and len(record["undefended_fingerprint"]) == 64
    assert record["encoder"].endswith("GaussianNoise(sigma=0.02) + Truncation(dimension=24)")
    _, meta = load_artifact(folder)
    assert meta["training"]["defence"] == told and meta["state"]["encoder_dimension"] == 24
    assert f"trained behind `{told}`" in _defence_line(meta["training"])[0] and not _defence_line(
        {}
    )
    assert train("own", "--defence", told)[1].json() == record, "it is found finished"
    line = given("evaluate", tiny_bert, "--weights", folder, "--texts", corpus, "--limit", 60)
    found = core(*line, "--defence", told)
    scores, note = found.json(), found.err
    assert scores["token_set_f1"] > scores["baseline"]["token_set_f1"] + 5
    assert scores["training"]["defence"] == told and scores["defence"] == told
    assert "was trained behind gaussian" in note and "linear map" not in note
    typed = given("invert", tiny_bert, "--weights", folder, "--text", TEXT, "--defence", told)
    one, other = (core(*typed).json()[0]["words"] for _ in range(2))
    assert one != other, "noise is drawn anew"


@pytest.mark.parametrize("command", ["invert", "evaluate"])
def test_vectors_that_are_not_behind_the_same_are_refused(
    core: Any, train: Any, corpus: Path, tiny_bert: Path, command: str
) -> None:
    own = "gaussian:sigma=0.2"
    folder, _ = train("own", "--defence", own)
    texts = ["--text", TEXT] if command == "invert" else ["--texts", corpus, "--limit", 20]
    line = given(command, tiny_bert, "--weights", folder, *texts)
    for told in ((), "none", "gaussian:sigma=0.3", f"{own}+int8", "int8"):
        said = core(*line, *(("--defence", told) if told else ())).refusal()
        assert (
            f"was trained behind the defence {own}, but these vectors are behind "
            f"{told or 'none'}. Give --defence {own}, or"
        ) in said
    assert core(*line, "--defence", own).status == 0


def test_another_matrix_and_another_encoder_are_refused(
    core: Any, train: Any, tiny_bert: Path
) -> None:
    told = "random_projection:dimension=12,seed=3"
    folder, _ = train("own", "--defence", told)
    line = given("invert", tiny_bert, "--weights", folder, "--text", TEXT)
    line.append("--defence")
    assert core(*line, told).status == 0
    said = core(*line, "random_projection:dimension=12").refusal()
    assert "random_projection:dimension=12. Give" in said
    assert "belong together" in core("invert", "--layer", 0, *line[1:], told).refusal()


def test_without_a_defence_a_record_is_what_it_always_was_and_another_is_another_attack(
    train: Any,
) -> None:
    folder, outcome = train("plain", "--defence", "none")
    assert not {"defence", "undefended_fingerprint"} & outcome.json().keys()
    assert "contains another trained attack" in train("plain", "--defence", "int8")[1].refusal()
    assert "defence" not in load_artifact(folder)[1]["training"]


def test_it_is_trained_on_protected_vectors_and_on_the_same_after_a_kill(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    spec, texts = read_defence("gaussian:sigma=0.2"), small_texts[:30]
    first, again, other = (training_encoder(tiny_encoder, spec, seed)[0] for seed in (4, 4, 5))
    noisy = first.encode(texts)
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert np.array_equal(noisy, again.encode(texts))
    assert 0.15 < np.std(noisy - tiny_encoder.encode(texts)) < 0.25
    assert training_encoder(tiny_encoder, None, 4)[0].fingerprint == tiny_encoder.fingerprint
