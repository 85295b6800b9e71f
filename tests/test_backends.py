from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.encoders import backends, load_encoder
from leakscope.core.encoders.backends import BULK, Backend, read_timing, times_faster
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError, MissingDependencyError, StorageError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.specs import EncoderSpec
from leakscope.core.storage.artifacts import cache_dir
from leakscope.core.training.record import hardware

DIMENSION = 8


class FakeModel:
    """Stands for the converted model: answers with ones, and may fail to be converted."""

    fails = False

    def __init__(self, model: Any, layer: int, tokenize: Any, **options: Any) -> None:
        if self.fails:
            raise RuntimeError("no conversion rule")
        self.layer, self.options = layer, options

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        return np.ones((len(texts), DIMENSION), np.float32)


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pretend that OpenVINO is installed; each measurement takes the next of these ratios."""
    given: list[float] = []
    monkeypatch.setattr(backends, "is_installed", lambda: True)
    monkeypatch.setattr(backends, "require_openvino", lambda: None)
    monkeypatch.setattr(backends, "processor", lambda: ("chip", ("float32", "bfloat16")))
    monkeypatch.setattr(backends, "version", lambda library: "1")
    monkeypatch.setattr(backends, "OpenVINOModel", FakeModel)
    monkeypatch.setattr(backends, "times_faster", lambda first, second: given.pop(0))
    return given


def backend(asked: str = "auto", **other: Any) -> Backend:
    options: dict[str, Any] = {
        "name": "tiny",
        "fingerprint": "f" * 64,
        "model": object(),
        "layer": 3,
        "tokenize": None,
        "with_torch": lambda texts: None,
        "device": torch.device("cpu"),
        "precision": "float32",
    }
    return Backend(asked, **(options | other))


def test_the_faster_is_chosen_and_remembered(ratios: list[float]) -> None:
    ratios += [2.4]
    first = backend()
    assert first.name == "torch"  # nothing is measured by asking
    assert first.takes(BULK)
    assert first.name == "openvino"
    again = backend()  # as in another process
    assert again.name == "openvino"
    assert again.takes(BULK)
    assert ratios == []


def test_the_slower_is_never_taken_nor_measured_again(ratios: list[float]) -> None:
    ratios += [1.05, 9.0]
    assert not backend().takes(BULK)
    assert not backend().takes(10 * BULK)
    assert ratios == [9.0]


@pytest.mark.parametrize(
    "other", [{"fingerprint": "e" * 64}, {"precision": "bfloat16"}, {"threads": 1}, {"chip": "x"}]
)
def test_other_circumstances_are_measured_anew(
    ratios: list[float], other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios += [2.0, 0.5]
    assert backend().takes(BULK)
    if other.pop("threads", 0):
        monkeypatch.setattr(torch, "get_num_threads", lambda: torch.get_num_interop_threads() + 99)
    if other.pop("chip", ""):
        monkeypatch.setattr(backends, "processor", lambda: ("other", ("float32", "bfloat16")))
    assert not backend(**other).takes(BULK)
    assert ratios == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"is_faster": "yes"}', "{}", "\0\0"])
def test_a_damaged_memory_is_measured_anew_and_mended(ratios: list[float], content: str) -> None:
    ratios += [2.0, 2.0]
    assert backend().takes(BULK)
    (memory,) = cache_dir("backends").glob("*.json")
    memory.write_text(content)
    assert read_timing(memory) is None
    assert backend().takes(BULK)
    assert ratios == []
    assert read_timing(memory) is True


def test_a_memory_that_cannot_be_written_does_not_matter(
    ratios: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: Any) -> None:
        raise StorageError("the disk is full")

    ratios += [2.0]
    monkeypatch.setattr(backends, "write_json", full)
    chosen = backend()
    assert chosen.takes(BULK)
    assert chosen.takes(BULK)


def test_few_texts_in_float32_stay_with_torch(ratios: list[float]) -> None:
    assert not backend().takes(BULK - 1)
    assert not backend().takes(0)
    assert list(cache_dir("backends").glob("*")) == []
    said: list[str] = []
    ratios += [2.0]
    backend().takes(BULK, lambda _, message: said.append(message))
    assert said == ["Measuring once whether OpenVINO is faster here"]


def test_in_bfloat16_one_library_computes_all_texts(ratios: list[float]) -> None:
    ratios += [2.0]
    chosen = backend(precision="bfloat16")
    assert chosen.takes(1)
    assert chosen.arithmetic() == "bfloat16-openvino"
    assert backend(precision="bfloat16", asked="torch").arithmetic() == "bfloat16"
    assert backend("openvino").arithmetic() == "float32"


def test_what_is_asked_for_is_not_measured(ratios: list[float]) -> None:
    assert backend("openvino").takes(1)
    assert not backend("torch").takes(10 * BULK)
    assert backend("openvino").encode(["a"], 3, no_progress).shape == (1, DIMENSION)


def test_a_model_that_cannot_be_converted_stays_with_torch(
    ratios: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeModel, "fails", True)
    assert not backend().takes(BULK)
    assert backend().name == "torch"
    with pytest.raises(InvalidInputError, match=r"cannot convert 'tiny' .*--backend torch"):
        backend("openvino").encode(["a"], 3, no_progress)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"device": torch.device("meta")}, "the device is meta"),
        ({"model": None}, "not the plain mean"),
        ({"layer": 0}, "layer 0 is a look-up"),
        ({"precision": "float16"}, "the precision is float16"),
    ],
)
def test_what_openvino_cannot_do_is_told_where_asked_for(
    ratios: list[float], other: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"{says}.*'auto' or 'torch'"):
        backend("openvino", **other)
    assert not backend(**other).takes(BULK)


def test_bfloat16_needs_a_processor_that_has_it(
    ratios: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "processor", lambda: ("old", ("float32",)))
    with pytest.raises(InvalidInputError, match="does not support bfloat16"):
        backend("openvino", precision="bfloat16")
    assert backend(precision="bfloat16").arithmetic() == "bfloat16"


def test_without_openvino_torch_computes_unless_it_was_asked_for(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "is_installed", lambda: False)
    name = f"mlm:{tiny_bert}"
    plain = load_encoder(EncoderSpec(name=name, backend="torch")).encode(["the minister"] * BULK)
    np.testing.assert_array_equal(load_encoder(name).encode(["the minister"] * BULK), plain)
    with pytest.raises(MissingDependencyError, match=r"pip install openvino=="):
        load_encoder(EncoderSpec(name=name, backend="openvino"))
    with pytest.raises(InvalidInputError, match="backend must be one of"):
        load_encoder(EncoderSpec(name=name, backend="abacus"))


def test_an_installation_that_is_broken_leaves_the_work_to_torch(
    ratios: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ImportError("libopenvino.so: cannot open shared object file")

    monkeypatch.setattr(backends, "processor", broken)
    for precision in ("float32", "bfloat16"):
        choice = backend(precision=precision)
        assert choice.name == choice.settle() == "torch" and not choice.takes(10 * BULK)
        assert choice.arithmetic() == precision
    with pytest.raises(InvalidInputError, match=r"cannot be used .ImportError: libopenvino"):
        backend("openvino", precision="bfloat16")


def test_a_model_that_fails_while_it_is_measured_stays_with_torch(
    ratios: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(first: object, second: object) -> float:
        raise RuntimeError("inference failed")

    monkeypatch.setattr(backends, "times_faster", fail)
    assert backend().settle() == "torch"


def clocked(seconds: dict[str, list[float]]) -> tuple[Callable[[], float], dict[str, list[int]]]:
    """Return a clock, and the calls of work that takes these seconds a text, in turn."""
    now, calls = [0.0], {name: [] for name in seconds}  # type: ignore[var-annotated]
    takes: dict[str, Iterator[float]] = {name: iter(values) for name, values in seconds.items()}

    def work(name: str) -> Callable[[list[str]], None]:
        def encode(texts: list[str]) -> None:
            calls[name].append(len(texts))
            now[0] += next(takes[name]) * len(texts)

        return encode

    calls["_"] = []
    clock = lambda: now[0]  # noqa: E731 - it is one
    clock.first, clock.second = work("first"), work("second")  # type: ignore[attr-defined]
    return clock, calls


def test_speed_is_the_best_of_interleaved_rounds() -> None:
    # Some rounds are slowed down by other work: they do not count.
    clock, calls = clocked({"first": [0.1, 0.001, 0.9] * 9, "second": [0.01, 0.005, 0.01] * 9})
    ratio = times_faster(clock.first, clock.second, clock=clock)  # type: ignore[attr-defined]
    assert ratio == pytest.approx(5)
    assert calls["first"] == calls["second"]


@pytest.mark.parametrize("seconds", [0.0001, 0.01, 0.05])
def test_measuring_ends_within_five_seconds(seconds: float) -> None:
    clock, calls = clocked({"first": [seconds] * 99, "second": [seconds] * 99})
    assert times_faster(clock.first, clock.second, clock=clock) == pytest.approx(1)  # type: ignore[attr-defined]
    assert clock() < 5
    assert 2 <= len(calls["first"]) <= 10


def test_shelves_and_records_tell_precision_and_library_apart(
    tiny_bert: Path, tmp_path: Path, ratios: list[float], small_texts: list[str]
) -> None:
    ratios += [2.0]
    name = f"mlm:{tiny_bert}"
    opened = {
        (precision, asked): load_encoder(
            EncoderSpec(name=name, precision=precision, backend=asked, device="cpu")
        )
        for precision in ("float32", "bfloat16")
        for asked in ("torch", "auto")
    }
    shelves = {key: CachedEncoder(encoder, tmp_path).folder.name for key, encoder in opened.items()}
    assert shelves["float32", "torch"] == shelves["float32", "auto"]
    assert len(set(shelves.values())) == 3
    assert len({encoder.fingerprint for encoder in opened.values()}) == 1
    record = hardware(opened["bfloat16", "auto"])
    assert (record["precision"], record["backend"]) == ("bfloat16", "openvino")
    record = hardware(opened["float32", "torch"])
    assert (record["precision"], record["backend"]) == ("float32", "torch")

    from leakscope.core.attacks.inversion import make_attack

    encoder = opened["float32", "torch"]
    attack = make_attack("prior").fit(encoder, small_texts)
    result = evaluate(attack, encoder, small_texts[:20])
    assert (result.precision, result.backend) == ("float32", "torch")


def test_what_is_compiled_stays_in_its_process(ratios: list[float]) -> None:
    here = backend("openvino")
    here.encode(["a"], 3, no_progress)
    there = copy.copy(here)  # as a worker gets it
    assert there._compiled is None
    assert there.encode(["a"], 3, no_progress).shape == (1, DIMENSION)
