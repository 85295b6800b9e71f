"""Fixtures that every test file may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.encoders.transformer import TransformerEncoder

SMALL_WORDS = """
    minister money river doctor garden winter letter bridge market harbour teacher window engine
    forest station dinner summer cousin border island ticket planet orange candle hammer rabbit
    lawyer tunnel silver museum castle butter pencil desert turtle violin carpet basket ladder
    monday friday london berlin paris madrid vienna lisbon
""".split()  # noqa: SIM905 - a list literal would take 45 lines
SMALL_STOP_WORDS = ["the", "and", "with", "from", "was", "near"]


@pytest.fixture(autouse=True)
def leakscope_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Keep derived data of the tests out of the user's cache."""
    home = tmp_path_factory.mktemp("home")
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
    """400 sentences of 3 to 6 of SMALL_WORDS, common ones more often, between stop words."""
    import numpy as np

    rng = np.random.default_rng(0)
    share = 1 / np.arange(3, len(SMALL_WORDS) + 3)
    texts = []
    for _ in range(400):
        n = rng.integers(3, 7)
        chosen = rng.choice(SMALL_WORDS, size=n, replace=False, p=share / share.sum())
        pairs = zip(rng.choice(SMALL_STOP_WORDS, size=n), chosen, strict=True)
        texts.append(" ".join(f"{stop} {word}" for stop, word in pairs) + ".")
    return texts
