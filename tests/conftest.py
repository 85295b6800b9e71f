"""Fixtures that all test files can use."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import browser, fitting, profile, server, visit  # noqa: F401 - fixtures
from command_line import Outcome
from job_work import JobsAtHome, use_weights
from streamlit import config
from streamlit.components.v2 import manifest_scanner

from leakscope.core.compiled import machine_code_folder
from leakscope.core.encoders import backends
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.protocols import OnProgress

# Machine code is also derived data, but slow to compile: all tests share the user's cache.
os.environ.setdefault("NUMBA_CACHE_DIR", str(machine_code_folder()))

# Pages without a server read no settings file: set the address, so that they count as local.
config.set_option("server.address", "localhost")

# Each run of a page without a server scans all installed packages for components, for a quarter of
# a second.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

    from tools.fuzz.kit import Kit

SMALL_WORDS = """
    minister money river doctor garden winter letter bridge market harbour teacher window engine
    forest station dinner summer cousin border island ticket planet orange candle hammer rabbit
    lawyer tunnel silver museum castle butter pencil desert turtle violin carpet basket ladder
    monday friday london berlin paris madrid vienna lisbon
""".split()  # noqa: SIM905 - a list literal would take 45 lines
SMALL_STOP_WORDS = ["the", "and", "with", "from", "was", "near"]


_HOMES = count()


@pytest.fixture(autouse=True)
def leakscope_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Set LEAKSCOPE_HOME to a new folder for each test."""
    # Numbered here instead of by `mktemp`, which lists all folders to find the next number.
    home = tmp_path_factory.getbasetemp() / "homes" / f"{next(_HOMES)}"
    home.mkdir(parents=True)
    monkeypatch.setenv("LEAKSCOPE_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def vectors_of_other_tests(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encode a corpus once for all tests and runs, though each has an empty cache of its own.

    That took most of the time of attacks that are trained. What a test writes to its own cache
    stays as it is.
    """
    shared = pytestconfig.cache.mkdir("vectors")
    encode_new = CachedEncoder._encode_new

    def from_others(self: CachedEncoder, new: dict[bytes, str], on_progress: OnProgress) -> Any:
        """Take the vectors of many texts from the shared cache, which encodes what it lacks."""
        if len(new) < 200 or self.name != "minilm" or self._root == shared:
            yield from encode_new(self, new, on_progress)
            return
        vectors = CachedEncoder(self._encoder, shared).encode(list(new.values()), on_progress)
        self._try_write(list(new.values()), vectors)
        yield list(new), vectors

    monkeypatch.setattr(CachedEncoder, "_encode_new", from_others)


@pytest.fixture(autouse=True)
def torch_encodes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave OpenVINO to its own tests: to convert and time it takes seconds for each empty cache.

    Which library is faster beside another worker is also chance.
    """
    if request.module.__name__ not in ("test_backends", "test_openvino"):
        monkeypatch.setattr(backends.Backend, "_time_and_store", lambda self: False)


@pytest.fixture(scope="session")
def minilm() -> TransformerEncoder:
    """The bundled encoder, loaded once."""
    from leakscope.core.encoders.minilm import load_minilm

    return load_minilm(device="cpu")


@pytest.fixture(scope="session")
def bundled() -> list[str]:
    """The sentences of the bundled corpora."""
    from leakscope.core.corpora import bundled_sentences

    return list(bundled_sentences())


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a masked language model with 3 layers, random weights and SMALL_WORDS."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("tiny-bert")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *SMALL_STOP_WORDS, *SMALL_WORDS]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tiny_bert: Path) -> TransformerEncoder:
    """A white-box encoder of 32 dimensions, fast enough for every attack."""
    return TransformerEncoder(tiny_bert, name="mlm:tiny", max_length=64, device="cpu")


@pytest.fixture(scope="session")
def small_texts() -> list[str]:
    """400 sentences of 4 to 7 of SMALL_WORDS by Zipf's law, each after a stop word."""
    import numpy as np

    rng = np.random.default_rng(0)
    share = 1 / np.arange(3, len(SMALL_WORDS) + 3)
    texts = []
    for _ in range(400):
        n = rng.integers(4, 8)
        chosen = rng.choice(SMALL_WORDS, size=n, replace=False, p=share / share.sum())
        pairs = zip(rng.choice(SMALL_STOP_WORDS, size=n), chosen, strict=True)
        texts.append(" ".join(f"{stop} {word}" for stop, word in pairs).capitalize() + ".")
    return texts


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Artefacts for the fuzzing tests, which damage them and check the error messages."""
    from tools.fuzz.kit import make_kit

    return make_kit(tmp_path_factory.mktemp("fuzz") / "kit")


@pytest.fixture
def core(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs a command line in this process."""
    from leakscope.core.cli import main

    def run(typed: object = "", *arguments: object) -> Outcome:
        """Run a command line: a string that is split, then whole arguments; return its outcome."""
        capsys.readouterr()
        try:
            status = main([*shlex.split(str(typed)), *map(str, arguments)])
        except SystemExit as stop:  # argparse: --help and mistakes in the arguments
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def corpus(tmp_path: Path, small_texts: list[str]) -> Path:
    """A file with the small texts, one per line."""
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(small_texts), encoding="utf-8")
    return path


@pytest.fixture
def trained(core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path) -> Path:
    """The folder of a prior-only attack on the tiny encoder, trained by the command line."""
    out = tmp_path / "prior"
    core(
        f"train --encoder mlm:{tiny_bert} --attack prior --corpus {corpus} --out {out} --json"
    ).json()
    return out


@pytest.fixture(scope="session")
def small_weights(
    tmp_path_factory: pytest.TempPathFactory, minilm: TransformerEncoder, bundled: list[str]
) -> Path:
    """A folder like assets/weights, with attacks on MiniLM trained briefly on 300 sentences."""
    from leakscope.core.attacks.inversion import make_attack, save_attack
    from leakscope.core.specs import AttackSpec

    folder = tmp_path_factory.mktemp("weights")
    texts = bundled[::60][:300]
    vectors = minilm.encode(texts)
    settings = {
        "mlc": {"vocabulary_size": 400, "epochs": 2},
        "probe_mlc": {"vocabulary_size": 400, "epochs": 1, "hidden": 8, "substitutions": 0},
        "msp": {"vocabulary_size": 400, "epochs": 1, "hidden": 16},
        "search": {
            "vocabulary_size": 200,
            "base_epochs": 1,
            "base_substitutions": 0,
            "n_calibration": 20,
            "n_candidates": 5,
            "n_rounds": 1,
            "n_corrected": 60,
            "n_mapped": 60,
            "corrector_hidden": 8,
            "corrector_epochs": 1,
        },
    }
    scores = {"n": 20, "token_set_f1": 12.0, "token_set_f1_ci95": [10.0, 14.0], "prior_f1": 6.0}
    for name, chosen in settings.items():
        attack = make_attack(AttackSpec.of(name, chosen)).fit(minilm, texts, vectors)
        record = {
            "n_texts": len(texts),
            "seconds": 90.0,
            "held_out": scores,
            "hardware": {"device": "cpu", "chip": "x86_64", "n_cpus": 2},
        }
        save_attack(attack, folder / "minilm" / name, training=record)
    return folder


@pytest.fixture(scope="session")
def app_jobs(small_weights: Path) -> Iterator[JobsAtHome]:
    """The job queue of `small_app`, with one process for all tests, since it starts slowly."""
    jobs = JobsAtHome(prepare=partial(use_weights, small_weights))
    yield jobs
    jobs.close()


def forget_weights() -> None:
    """Clear the caches of pages that depend on the weights."""
    from leakscope.dashboard import cache
    from leakscope.dashboard.ui import leakage

    for cached in (
        cache.open_attack_once,
        cache.opened_attacks,
        cache.prior_answer,
        cache.shipped_records,
        cache.shipped_settings,
        leakage._cached_figures,
        leakage._cached_recalls,
    ):
        cached.clear()


@pytest.fixture
def shipped_app() -> Iterator[AppTest]:
    """The dashboard with the shipped weights, before its first run."""
    from streamlit.testing.v1 import AppTest

    forget_weights()
    app = Path(__file__).parents[1] / "dashboard" / "app.py"
    yield AppTest.from_file(str(app), default_timeout=180)
    forget_weights()


@pytest.fixture
def small_app(
    shipped_app: AppTest,
    small_weights: Path,
    app_jobs: JobsAtHome,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[AppTest]:
    """The dashboard with `small_weights`, before its first run."""
    from leakscope.core.attacks.inversion import shipped
    from leakscope.dashboard import cache

    monkeypatch.setattr(shipped, "WEIGHTS", small_weights)
    monkeypatch.setattr(cache, "jobs", lambda: app_jobs)
    yield shipped_app
    app_jobs.forget_all()
