"""The engine from Python: four functions, the README's example, and how to cite it."""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from audited import learn_briefly

import leakscope
from leakscope import audit, evaluate, invert, protect
from leakscope.core import __version__
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import EncoderSpec

ROOT = Path(__file__).parents[1]
FAST = "probe_mlc"


@pytest.fixture(scope="module")
def texts(bundled: list[str]) -> list[str]:
    return [" ".join(text.split()) for text in bundled[5::140][:60]]


@pytest.fixture(scope="module")
def vectors(minilm: TransformerEncoder, texts: list[str]) -> np.ndarray:
    return minilm.encode(texts)


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have attackers learn a defence from 300 sentences."""
    learn_briefly(monkeypatch, 300)


def test_importing_it_is_fast_and_imports_no_library() -> None:
    code = """
import sys, time
start = time.perf_counter()
from leakscope import audit, evaluate, invert, protect
seconds = time.perf_counter() - start
heavy = {"numpy", "pandas", "scipy", "sklearn", "torch", "transformers"}
print(seconds < 0.5, sorted(heavy & set(sys.modules)))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split(maxsplit=1) == ["True", "[]\n"]


@pytest.mark.slow
def test_an_array_is_audited_as_the_file_that_holds_it(
    tmp_path: Path, vectors: np.ndarray, texts: list[str]
) -> None:
    np.save(tmp_path / "v.npy", vectors)
    (tmp_path / "t.txt").write_text("\n".join(texts))
    before = vectors.copy()
    found = audit(vectors, texts, attack=FAST)
    stored = audit(tmp_path / "v.npy", tmp_path / "t.txt", attack=FAST)
    assert found.f1 is not None and found.f1 == stored.f1
    assert found.f1_by_row == stored.f1_by_row and len(found.f1_by_row) > 50
    assert found.source == "array" and found.identification.encoder == "minilm"
    value, interval = found.f1.parts()
    assert f"is {value} (95 % CI {interval}; {found.f1.n:,} vectors, " in found.sentence
    assert (vectors == before).all()
    assert audit(vectors.astype(np.float64).tolist(), texts, attack=FAST).f1 == found.f1
    few = audit(str(tmp_path / "v.npy"), texts, attack=FAST, n=30, seed=1)
    assert few.f1 is not None and few.f1.n <= 30


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros(5), "not a matrix"),
        ([[1.0, 2.0], [1.0]], "vectors of equal length"),
        (np.array([["a", "b"]]), "not real numbers"),
        (np.full((40, 384), np.nan), "NaN"),
        (np.zeros((40, 384)), "only zeros"),
        ("absent.npy", "does not exist"),
    ],
)
def test_sources_that_hold_no_vectors_are_refused(source: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        audit(source)


def test_texts_that_are_none_are_refused_without_quoting_them(vectors: np.ndarray) -> None:
    for call in (lambda: audit(vectors, "My diary."), lambda: evaluate("My diary.")):
        with pytest.raises(InvalidInputError, match="got one string") as caught:
            call()
        assert "diary" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="60 vectors, but there are 1 texts"):
        audit(vectors, ["one text"])
    with pytest.raises(InvalidInputError, match=r"n must lie in \[30"):
        audit(vectors, n=5)


def test_texts_and_their_vectors_give_the_same_words(
    minilm: TransformerEncoder, vectors: np.ndarray, texts: list[str]
) -> None:
    of_texts = invert(texts[:3], encoder=minilm, attack=FAST)
    of_vectors = invert(minilm.encode(texts[:3]), encoder=EncoderSpec(name="minilm"), attack=FAST)
    words = [found.word_set for found in of_texts]
    assert words == [found.word_set for found in of_vectors] and all(words)
    (one,) = invert(texts[0], encoder=minilm, attack=FAST)
    assert str(one) == ", ".join(found.word for found in one.words)
    with pytest.raises(InvalidInputError, match="384"):
        invert(vectors[:, :20], encoder=minilm, attack=FAST)
    with pytest.raises(InvalidInputError):
        invert(["fine", 5], encoder=minilm, attack=FAST)  # type: ignore[list-item]


@pytest.mark.slow
@pytest.mark.usefixtures("few_pairs")
def test_vectors_behind_a_defence_are_read_by_an_attacker_who_knows_it(
    minilm: TransformerEncoder, texts: list[str]
) -> None:
    protected = protect(texts[:3], "int8", encoder=minilm)
    known = invert(protected, encoder=minilm, attack=FAST, defence="int8")
    same = invert(texts[:3], encoder=minilm, attack=FAST, defence="int8")
    assert [found.word_set for found in known] == [found.word_set for found in same]


@pytest.mark.slow
@pytest.mark.usefixtures("few_pairs")
def test_an_audit_knows_the_defence_that_is_named(
    minilm: TransformerEncoder, texts: list[str]
) -> None:
    protected = protect(texts, "gaussian:sigma=0.03", encoder=minilm)
    known = audit(protected, texts, attack=FAST, defence="gaussian:sigma=0.03")
    assert known.f1 is not None and known.to_dict()["defence"].startswith("gaussian")
    assert audit(protected, texts, attack=FAST).to_dict()["defence"] is None


def test_noise_is_fresh_unless_a_seed_is_given(
    minilm: TransformerEncoder, vectors: np.ndarray, texts: list[str]
) -> None:
    def protected(**more: Any) -> np.ndarray:
        found: np.ndarray = protect(texts[:4], "gaussian:sigma=0.05", encoder=minilm, **more)
        return found

    assert (protected(seed=1) == protected(seed=1)).all()
    assert (protected() != protected()).any()
    assert protected().dtype == np.float32 and protected().shape == (4, 384)
    assert np.allclose(protect(texts[:4], "none", encoder=minilm), vectors[:4], atol=1e-6)
    with pytest.raises(InvalidInputError, match="got 'gausian'"):
        protect(texts, "gausian", encoder=minilm)


@pytest.mark.slow
@pytest.mark.usefixtures("few_pairs")
def test_a_score_is_that_of_the_command(
    core: Any, tmp_path: Path, minilm: TransformerEncoder, texts: list[str]
) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(texts))
    for defence in (None, "gaussian:sigma=0.05"):
        more = [] if defence is None else ["--defence", defence]
        told = core(
            f"evaluate --attack {FAST} --texts {path} --limit 40 --seed 2 --device cpu --json",
            *more,
        ).json()
        found = evaluate(path, encoder=minilm, attack=FAST, defence=defence, limit=40, seed=2)
        assert found.attack == FAST and found.texts == "t.txt"
        assert found.scores.token_set_f1 == pytest.approx(told["token_set_f1"], abs=1e-6)
        low = found.scores.token_set_f1_ci95.low
        assert low == pytest.approx(told["token_set_f1_ci95"][0], abs=1e-6)
        assert found.baseline.token_set_f1 == pytest.approx(told["baseline"]["token_set_f1"])
        assert str(found) == found.sentence and "n 40; guessing: " in found.sentence


def readme_example() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = [c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "leakscope" in c]
    return str(code)


@pytest.mark.slow
@pytest.mark.usefixtures("few_pairs")
def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: np.ndarray, texts: list[str]
) -> None:
    np.save(tmp_path / "vectors.npy", vectors[:30])
    (tmp_path / "letters.txt").write_text("\n".join(texts[:30]))
    monkeypatch.chdir(tmp_path)
    out, names = io.StringIO(), dict[str, Any]()
    with contextlib.redirect_stdout(out):
        exec(readme_example(), names)
    lines = out.getvalue().splitlines()
    assert lines[0] == names["report"].sentence and "F1" in lines[0]
    assert "minister" in lines[-2] and lines[-1].startswith("The attack probe_mlc recovers")
    assert names["vectors"].shape == (30, 384)
    assert len(readme_example().splitlines()) <= 10


def test_the_examples_of_the_package_hold() -> None:
    failed, tried = doctest.testmod(leakscope)
    assert tried and not failed


def cited() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return found


def test_the_citation_names_what_is_released() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = cited()
    assert told["version"] == __version__
    assert told["license"] == project["license"]
    assert told["title"].lower() == project["name"]
    assert told["keywords"] == project["keywords"]


def citation_schema() -> Path | None:
    """Return the schema of CFF 1.2.0: the file that CFF_SCHEMA names, or cffconvert's."""
    if place := os.environ.get("CFF_SCHEMA"):
        return Path(place)
    if (found := importlib.util.find_spec("cffconvert")) is None or found.origin is None:
        return None
    return Path(found.origin).parent / "schemas" / "1.2.0" / "schema.json"


def test_the_citation_is_valid_by_the_schema_of_its_format() -> None:
    place = citation_schema()
    if place is None:
        pytest.skip("CFF_SCHEMA names no schema, and cffconvert is not installed")
    import jsonschema

    schema = json.loads(place.read_text(encoding="utf-8"))
    checker = jsonschema.validators.validator_for(schema)(schema)
    checker.validate(cited())
    assert list(checker.iter_errors({**cited(), "authors": []})), "the schema refuses nothing"
