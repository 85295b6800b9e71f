"""Every command that takes `--defence` takes a chain: it is an encoder like any other."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_bad_defences import options_that_name_defences

from leakscope.core.cli.shared.defended import training_encoder
from leakscope.core.defences.adaptive_attack import adapt_to_defence
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.specs import AttackSpec
from leakscope.core.storage.artifacts import load_artifact
from scripts.model_cards import _defence_line

CHAINS = (
    "text_to_text:eta=60+int8",
    "custext:epsilon=4,k=8+token_representation:eta=1e3+truncation:dimension=12",
)
TEXT = "the minister and the river"
ELSEWHERE = {"audit", "study tradeoff", "study reconstruct", "study listed", "study replacements"}
"""Whose chains tests/test_audit_options.py, tests/test_contract_defences.py,
tests/test_reconstruct.py and tests/test_listed.py measure; the last one counts token for token, and
refuses them (tests/test_deniability_study.py)."""


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch, small_texts: list[str]) -> None:
    """Let the attacker learn of sentences whose words the tiny encoder knows."""
    monkeypatch.setattr(
        "leakscope.core.defences.adaptive_attack.bundled_sentences", lambda: small_texts
    )


@pytest.fixture
def table(tmp_path: Path, small_texts: list[str]) -> Path:
    path = tmp_path / "texts.parquet"
    texts = [f"{('river money', 'and with')[i % 2]} {t}" for i, t in enumerate(small_texts[:120])]
    pd.DataFrame({"text": texts, "author": list("ab" * 60)}).to_parquet(path)
    return path


@pytest.fixture
def probe(core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path) -> Path:
    """An attack that reads vectors, trained on the encoder without a defence."""
    out = tmp_path / "probe"
    core(
        f"train --encoder mlm:{tiny_bert} --attack probe --corpus {corpus} --min-words 2 "
        f"--out {out} --json"
    ).json()
    return out


def lines(tiny_bert: Path, weights: Path, corpus: Path, table: Path) -> dict[str, list[str]]:
    """Return a right line of each command, up to the defence."""
    attack = f"--attack prior --weights {weights}"
    trained = f"--attack prior --corpus {corpus} --min-words 2 --out {table.with_name('trained')}"
    given = {
        "invert": f"{attack} --text '{TEXT}' --json --defence",
        "evaluate": f"{attack} --texts {corpus} --limit 20 --json --defence",
        "attributes": f"--texts {table} --n-targets 20 --json --defence",
        "privatize": f"--in {table} --out {table.with_name('out.parquet')} --json --mechanism",
        "train": f"{trained} --json --defence",
    }
    encoder = f"--encoder mlm:{tiny_bert} "
    known = {command: shlex.split(encoder + line) for command, line in given.items()}
    return {**known, "list": ["--json", "--defence"]}


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_every_command_that_takes_a_defence_takes_a_chain(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path, table: Path, chain: str
) -> None:
    right = lines(tiny_bert, trained, corpus, table)
    assert {*right} | ELSEWHERE == {command for command, _ in options_that_name_defences()}
    for command, option in options_that_name_defences():
        if command not in ELSEWHERE:
            assert right[command][-1] == option
            told = core(command, *right[command], chain).json()
            first = told[0] if command == "invert" else told.get("defences", [told])[0]
            names = {first.get(name) for name in ("defence", "mechanism", "name")}
            if command == "train":  # its record tells the numbers as a link does
                assert read_defence(first["defence"]) == read_defence(chain)
                continue
            assert {chain, read_defence(chain).name} & names, command


def scored(core: Any, weights: Path, tiny_bert: Path, corpus: Path, *defence: str) -> Any:
    return core(
        f"evaluate --encoder mlm:{tiny_bert} --attack probe --weights {weights} --texts {corpus} "
        "--limit 60 --json",
        *defence,
    ).json()


def test_what_changes_nothing_is_read_as_without_and_what_hides_all_is_guessed(
    core: Any, probe: Path, tiny_bert: Path, corpus: Path
) -> None:
    plain = scored(core, probe, tiny_bert, corpus)
    assert plain["token_set_f1"] > plain["baseline"]["token_set_f1"] + 10 and "defence" not in plain
    none = scored(core, probe, tiny_bert, corpus, "--defence", "none")
    timed = ("sentences_per_second", "defence")
    assert {**none, **dict.fromkeys(timed)} == {**plain, **dict.fromkeys(timed)}
    for fine in (
        "rounding:decimals=7",
        "text_to_text:eta=1e6+rounding:decimals=6",
        "random_projection:dimension=32",
    ):
        found = scored(core, probe, tiny_bert, corpus, "--defence", fine)
        assert found["token_set_f1"] == pytest.approx(plain["token_set_f1"], abs=3), fine
        kept = ("attack", "settings", "training", "vocabulary_size", "device")
        assert all(found[name] == plain[name] for name in kept)
        assert found["encoder"].startswith(plain["encoder"] + " + ")
    for chain in ("gaussian:sigma=1e3+int8", "text_to_text:eta=1e-3+truncation:dimension=16"):
        found = scored(core, probe, tiny_bert, corpus, "--defence", chain)
        assert found["token_set_f1"] < found["baseline"]["token_set_f1"] + 5, chain


def test_a_measurement_repeats_under_its_seed_and_what_is_typed_has_fresh_noise(
    core: Any, probe: Path, tiny_bert: Path, corpus: Path
) -> None:
    chain = ("--defence", "gaussian:sigma=0.2+rounding:decimals=3")
    first, again = (scored(core, probe, tiny_bert, corpus, *chain) for _ in range(2))
    assert first["token_set_f1"] == again["token_set_f1"]
    assert first["encoder_fingerprint"] == again["encoder_fingerprint"]
    typed = (
        f"invert --encoder mlm:{tiny_bert} --attack probe --weights {probe} --text '{TEXT}' "
        "--json --defence gaussian:sigma=2"
    )
    one, other = (core(typed).json()[0] for _ in range(2))
    assert one["words"] != other["words"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["invert", "evaluate", "attributes", "train"])
def test_it_says_what_an_eta_guarantees(
    core: Any, trained: Path, tiny_bert: Path, corpus: Path, table: Path, command: str
) -> None:
    given = [command, *lines(tiny_bert, trained, corpus, table)[command]]

    def told(defence: str) -> str:
        shutil.rmtree(table.with_name("trained"), ignore_errors=True)  # another attack's place
        return str(core(*given, defence).err)

    *_, said = told("text_to_text:eta=1e3+int8").splitlines()
    assert "η 1000 of text_to_text guarantees, for a text such as" in said
    assert "between nearest neighbours" in said and "for a whole sentence of" in said
    assert "practically no guarantee. Ordinary differential privacy names one ε" in said
    *_, vector = told("sequence_representation:eta=1").splitlines()
    assert (
        "odds of at most" in vector
        and "between two texts a typical (median) distance apart" in vector
    )
    *_, tem = told("tem:epsilon=2").splitlines()
    assert "ε 2 of tem guarantees" in tem and "γ" in tem
    assert "odds" not in told("gaussian:sigma=0.1")


def test_what_is_typed_is_kept_nowhere(
    core: Any, trained: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    encode = CachedEncoder.encode

    def noted(self: Any, texts: Any, *more: Any) -> Any:
        kept.extend(texts)
        return encode(self, texts, *more)

    monkeypatch.setattr(type(CachedEncoder(_bert(tiny_bert))), "encode", noted)
    typed = shlex.split(
        f"invert --encoder mlm:{tiny_bert} --attack prior --weights {trained} "
        "--text 'A garden of which no corpus tells' --defence"
    )
    for chain in ("int8", *CHAINS):
        assert core(*typed, chain).status == 0
    assert len(kept) >= 300 and not any("no corpus tells" in text for text in kept)


def _bert(folder: Path) -> TransformerEncoder:
    return TransformerEncoder(folder, name="mlm:tiny", max_length=64, device="cpu")


@pytest.mark.parametrize(
    ("attack", "chain", "is_own"),
    [
        ("probe", "int8", False),  # who tries texts puts them behind what is certain
        ("search", "gaussian:sigma=0.1+int8", False),
        ("search", "gaussian:sigma=0.1", True),
        ("relaxation", "int8", True),  # which reads gradients
    ],
)
def test_an_attack_tries_its_own_texts_behind_what_is_certain(
    tiny_encoder: TransformerEncoder, attack: str, chain: str, is_own: bool
) -> None:
    from leakscope.core.attacks.inversion.prior import PriorAttack

    read = PriorAttack()
    spec, defence = AttackSpec(name=attack), read_defence(chain)
    found = adapt_to_defence(read, tiny_encoder, defence, spec)
    assert (found.queried is tiny_encoder) == is_own
    assert found.queried.fingerprint == tiny_encoder.fingerprint
    assert found.changed.name.startswith(tiny_encoder.name + " + ")


def test_a_trained_defence_and_then_noise_are_a_chain(
    core: Any, table: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "d"
    core(
        f"defend --defence leace --encoder mlm:{tiny_bert} --texts {table} --label-column author "
        f"--out {out} --json"
    ).json()
    asked = ["attributes", "--texts", table, "--n-targets", 20, "--json", "--encoder"]
    plain = core(*asked, f"mlm:{tiny_bert}").json()
    both = core(*asked, f"defended:{out}", "--defence", "gaussian:sigma=0.01+int8").json()
    assert both["defence"] == "gaussian:sigma=0.01+int8" and both["encoder"] == f"defended:{out}"
    assert both["top1"] < plain["top1"]
    refused = core(*asked, f"defended:{out}", "--defence", "text_to_text:eta=60").refusal()
    assert "text" in refused.lower() and "encoder" in refused


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
