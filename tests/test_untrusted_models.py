"""A model's own code is never run, whatever stands on standard input, and no pickle is read."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leakscope.core.encoders import load_encoder
from leakscope.core.errors import ModelUnavailableError

ROOT = Path(__file__).parents[1]
LOADERS = ("from_pretrained", "SentenceTransformer")


@pytest.mark.slow
def test_every_model_and_tokeniser_is_opened_without_its_own_code() -> None:
    found = 0
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in LOADERS:
                found += 1
                told = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
                assert told.get("trust_remote_code") is False, f"{path}:{node.lineno}"
    assert found >= 4


@pytest.fixture
def with_code(tiny_bert: Path, tmp_path: Path) -> Path:
    """A model whose configuration names code beside it, which leaves a mark when it is run."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    (folder / "own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "from transformers import BertConfig as Own, BertModel as OwnModel\n"
    )
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.OwnModel"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("family", ["mlm", "st"])
def test_yes_on_standard_input_runs_no_code_of_a_model(
    with_code: Path, tmp_path: Path, family: str
) -> None:
    command = [sys.executable, "-m", "leakscope", "invert", "--encoder", f"{family}:{with_code}"]
    command += ["--attack", "prior", "--text", "the river"]
    done = subprocess.run(
        command, cwd=ROOT, input="y\ny\ny\n", capture_output=True, text=True, timeout=300
    )
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 2 and "could not be loaded" in done.stderr
    assert "Traceback" not in done.stderr


def saved(tiny_bert: Path, folder: Path) -> Path:
    """A Sentence-Transformers folder with a layer of its own weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

    body = Transformer(str(tiny_bert), max_seq_length=64)
    SentenceTransformer(modules=[body, Pooling(32, "mean"), Dense(32, 16)], device="cpu").save(
        str(folder)
    )
    return folder


def test_a_layer_that_is_pickled_is_refused_by_name(tiny_bert: Path, tmp_path: Path) -> None:
    import torch

    folder = saved(tiny_bert, tmp_path / "st")
    assert load_encoder(f"st:{folder}").dimension == 16
    (layer,) = folder.glob("*Dense")
    torch.save({}, layer / "pytorch_model.bin")
    assert load_encoder(f"st:{folder}").dimension == 16, "its safetensors are read instead"
    (layer / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailableError, match=r"2_Dense.pytorch_model.bin is a pickle"):
        load_encoder(f"st:{folder}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [None, b"", b"\x00" * 64, b'{"a": 1'],
    ids=["missing", "empty", "zeros", "cut"],
)
@pytest.mark.parametrize(
    ("family", "at"),
    [
        ("mlm", "model.safetensors"),
        ("mlm", "config.json"),
        ("mlm", "tokenizer.json"),
        ("st", "model.safetensors"),
        ("st", "config.json"),
        ("st", "modules.json"),
        ("st", "2_Dense/model.safetensors"),
        ("st", "2_Dense/config.json"),
        ("st", "1_Pooling/config.json"),
    ],
)
def test_a_damaged_or_missing_part_of_a_model_is_no_fault_of_ours(
    tiny_bert: Path, tmp_path: Path, family: str, at: str, content: bytes | None
) -> None:
    folder = tmp_path / "model"
    if family == "st":
        saved(tiny_bert, folder)
    else:
        shutil.copytree(tiny_bert, folder)
    part = folder / at
    if not part.exists():
        pytest.skip(f"this model has no {at}")
    if content is None:
        part.unlink()
    else:
        part.write_bytes(content)
    try:
        encoder = load_encoder(f"{family}:{folder}")
    except ModelUnavailableError as error:
        assert str(folder) in str(error)
    else:  # a part that can be made up for, such as a list of layers
        assert encoder.encode(["the river"]).shape == (1, encoder.dimension)


def test_a_layer_without_weights_is_not_drawn_at_random(tiny_bert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    weights = load_file(folder / "model.safetensors")
    gone = next(name for name in weights if "attention" in name)
    save_file({k: v for k, v in weights.items() if k != gone}, folder / "model.safetensors")
    with pytest.raises(ModelUnavailableError, match="lacks the weights of 1 of its parts"):
        load_encoder(f"mlm:{folder}")
