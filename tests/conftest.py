"""Fixtures that every test file may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import browser, fitting, profile, server, visit  # noqa: F401 - fixtures
from command_line import Outcome
from job_work import JobsAtHome, use_weights
from streamlit import config

from core.compiled import machine_code_folder
from core.encoders.transformer import TransformerEncoder

# Machine code is derived data too, but compiling takes seconds: all tests share the user's.
os.environ.setdefault("NUMBA_CACHE_DIR", str(machine_code_folder()))

# Pages without a server read no settings file: they are pages of this computer alone.
config.set_option("server.address", "localhost")

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
    """Keep derived data of the tests out of the user's cache."""
    # Numbered here, in a folder of their own, where `mktemp` makes none: pytest would list all that
    # there are to find the next number.
    home = tmp_path_factory.getbasetemp() / "homes" / f"{next(_HOMES)}"
    home.mkdir(parents=True)
    monkeypatch.setenv("LEAKSCOPE_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def minilm() -> TransformerEncoder:
    """The bundled encoder, opened once."""
    from core.encoders.minilm import load_minilm

    return load_minilm(device="cpu")


@pytest.fixture(scope="session")
def bundled() -> list[str]:
    """The sentences of the bundled corpora."""
    from core.corpora import bundled_sentences

    return list(bundled_sentences())


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model of 3 layers with random weights that knows SMALL_WORDS, a folder."""
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
    """400 sentences of 4 to 7 of SMALL_WORDS, common ones more often, between stop words."""
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
    """What is damaged to see whether it is answered in words."""
    from tools.fuzz.kit import make_kit

    return make_kit(tmp_path_factory.mktemp("fuzz") / "kit")


@pytest.fixture
def core(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command of the command line in this process."""
    from core.cli import main

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse: --help and mistakes in the arguments
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def corpus(tmp_path: Path, small_texts: list[str]) -> Path:
    """The small texts as a file, one a line."""
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(small_texts), encoding="utf-8")
    return path


@pytest.fixture
def trained(core: Any, corpus: Path, tiny_bert: Path, tmp_path: Path) -> Path:
    """The prior-only attack of the tiny encoder, trained by the command line."""
    out = tmp_path / "prior"
    core("train", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--corpus", corpus,
         "--out", out, "--json").json()  # fmt: skip
    return out


@pytest.fixture(scope="session")
def small_weights(
    tmp_path_factory: pytest.TempPathFactory, minilm: TransformerEncoder, bundled: list[str]
) -> Path:
    """A folder like assets/weights with attacks of MiniLM trained on 300 sentences for a moment."""
    from core.attacks.inversion import make_attack, save_attack
    from core.specs import AttackSpec

    folder = tmp_path_factory.mktemp("weights")
    texts = bundled[::60][:300]
    vectors = minilm.encode(texts)
    settings = {
        "mlc": {"vocabulary_size": 400, "epochs": 2},
        "probe_mlc": {"vocabulary_size": 400, "epochs": 1, "hidden": 8, "substitutions": 0},
        "msp": {"vocabulary_size": 400, "epochs": 1, "hidden": 16},
        "search": {"vocabulary_size": 200, "base_epochs": 1, "base_substitutions": 0,
                   "n_calibration": 20, "n_candidates": 5, "n_rounds": 1,
                   "n_corrected": 60, "n_mapped": 60,
                   "corrector_hidden": 8, "corrector_epochs": 1},
    }  # fmt: skip
    scores = {"n": 20, "token_set_f1": 12.0, "token_set_f1_ci95": [10.0, 14.0], "prior_f1": 6.0}
    for name, chosen in settings.items():
        attack = make_attack(AttackSpec.of(name, chosen)).fit(minilm, texts, vectors)
        record = {"n_texts": len(texts), "seconds": 90.0, "held_out": scores,
                  "hardware": {"device": "cpu", "chip": "x86_64", "n_cpus": 2}}  # fmt: skip
        save_attack(attack, folder / "minilm" / name, training=record)
    return folder


@pytest.fixture(scope="session")
def app_jobs(small_weights: Path) -> Iterator[JobsAtHome]:
    """The jobs of `small_app`: one process for all tests, since starting it takes seconds."""
    jobs = JobsAtHome(prepare=partial(use_weights, small_weights))
    yield jobs
    jobs.close()


@pytest.fixture
def small_app(
    small_weights: Path, app_jobs: JobsAtHome, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AppTest]:
    """The dashboard with `small_weights`, before its first run."""
    from streamlit.testing.v1 import AppTest

    from core.attacks.inversion import shipped
    from dashboard import cache, leakage

    def forget() -> None:
        for cached in (cache.opened, cache.open_names, cache.guess):
            cached.clear()
        for cached in (leakage._figures, leakage._recalls):
            cached.clear()
        for cached in (cache.shipped_records, cache.shipped_settings):
            cached.clear()

    forget()
    monkeypatch.setattr(shipped, "WEIGHTS", small_weights)
    monkeypatch.setattr(cache, "jobs", lambda: app_jobs)
    app = Path(__file__).parents[1] / "dashboard" / "app.py"
    yield AppTest.from_file(str(app), default_timeout=180)
    app_jobs.forget_all()
    forget()


@pytest.fixture
def shipped_app() -> Iterator[AppTest]:
    """The dashboard with the weights that ship."""
    from streamlit.testing.v1 import AppTest

    from dashboard import cache

    def forget() -> None:
        for cached in (cache.opened, cache.guess, cache.shipped_records, cache.shipped_settings):
            cached.clear()

    forget()
    app = Path(__file__).parents[1] / "dashboard" / "app.py"
    yield AppTest.from_file(str(app), default_timeout=180)
    forget()
