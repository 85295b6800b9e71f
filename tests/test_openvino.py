from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import run_python

from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.backends import is_installed, processor
from leakscope.core.encoders.minilm import minilm_folder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.protocols import Vectors
from leakscope.core.specs import EncoderSpec

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="openvino is not installed: see README.md"
)

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def varied(bundled: list[str]) -> list[str]:
    """Short and long texts, beyond what the encoder reads, in several scripts, repeated words."""
    long = [" ".join(bundled[i : i + 15]) for i in range(0, 90, 15)]
    strange = [
        "Rain",
        ".",
        "😀",
        "مرحبا بالعالم",
        "日本語のテキストです",
        "ΑΒΓ äöü ñ",
        "x" * 3000,
        "one " * 700,
    ]
    return [*bundled[:60], *long, *strange]


def lowest_cosine(a: Vectors, b: Vectors) -> float:
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(((a * b).sum(1) / norms).min())


@pytest.fixture(scope="module")
def fast() -> TransformerEncoder:
    """The encoder in float32, compiled once for all tests."""
    return opened()


@pytest.fixture(scope="module")
def expected(minilm: TransformerEncoder, varied: list[str]) -> Vectors:
    """The vectors that torch gives."""
    return minilm.encode(varied)


def opened(precision: str = "float32", layer: int | None = None) -> TransformerEncoder:
    spec = EncoderSpec(layer=layer, precision=precision, backend="openvino", device="cpu")
    encoder = load_encoder(spec)
    assert isinstance(encoder, TransformerEncoder)
    return encoder


@pytest.mark.slow
def test_float32_agrees_with_torch_to_the_last_bits(
    minilm: TransformerEncoder, fast: TransformerEncoder, varied: list[str], expected: Vectors
) -> None:
    assert (fast.backend, fast.arithmetic) == ("openvino", "float32")
    assert fast.fingerprint == minilm.fingerprint
    np.testing.assert_allclose(fast.encode(varied), expected, atol=2e-6)


@pytest.mark.slow
def test_bfloat16_stays_close_to_torch_float32(
    fast: TransformerEncoder, varied: list[str], expected: Vectors
) -> None:
    if "bfloat16" not in processor()[1]:
        pytest.skip("this processor has no bfloat16")
    encoder = opened("bfloat16")
    vectors = encoder.encode(varied)
    assert vectors.dtype == np.float32
    assert lowest_cosine(vectors, expected) >= 0.9999
    assert not np.array_equal(vectors, fast.encode(varied))
    assert encoder.arithmetic == "bfloat16-openvino"


@pytest.mark.slow
@pytest.mark.parametrize("layer", [0, 1])  # the last is what `encode` gives
def test_every_layer_agrees(
    minilm: TransformerEncoder, fast: TransformerEncoder, varied: list[str], layer: int
) -> None:
    np.testing.assert_allclose(
        fast.encode_layer(varied, layer), minilm.encode_layer(varied, layer), atol=1e-5
    )


def test_the_gradients_stay_with_torch(fast: TransformerEncoder) -> None:
    (ids,) = fast.token_ids(["The minister resigned."])
    vectors = fast.token_vectors[ids][None].clone().requires_grad_(True)
    fast.embed_token_vectors(vectors)[0, 0].backward()
    assert vectors.grad is not None
    assert vectors.grad.abs().sum() > 0


@pytest.mark.slow
def test_a_plain_sentence_transformer_agrees_and_others_stay_with_torch(
    varied: list[str], tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    name = f"st:{minilm_folder()}"
    plain, fast = (load_encoder(EncoderSpec(name=name, backend=b)) for b in ("torch", "openvino"))
    np.testing.assert_allclose(fast.encode(varied), plain.encode(varied), atol=2e-6)

    body = Transformer(str(minilm_folder()))
    first_token = SentenceTransformer(modules=[body, Pooling(384, "cls")], device="cpu")
    first_token.save(str(tmp_path / "cls"))
    with pytest.raises(InvalidInputError, match="not the plain mean"):
        load_encoder(EncoderSpec(name=f"st:{tmp_path / 'cls'}", backend="openvino"))


@pytest.mark.slow
def test_progress_ends_at_one_and_stopping_stops(
    fast: TransformerEncoder, varied: list[str]
) -> None:
    seen: list[float] = []
    fast.encode(varied, lambda fraction, _: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0

    def stop(fraction: float, message: str) -> None:
        raise StoppedError("enough")

    with pytest.raises(StoppedError, match="enough"):
        fast.encode(varied, stop)
    assert fast.encode(varied[:3]).shape == (3, 384)
    assert fast.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_threads_may_encode_with_one_encoder_at_once(
    fast: TransformerEncoder, varied: list[str]
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    texts = varied[::2]
    alone = fast.encode(texts)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(fast.encode, [texts] * 4):
            np.testing.assert_allclose(vectors, alone, atol=2e-6)


@pytest.mark.slow
def test_weights_that_ship_for_the_encoder_open(varied: list[str]) -> None:
    from leakscope.core.attacks.inversion import open_attack

    encoder = opened("bfloat16" if "bfloat16" in processor()[1] else "float32")
    attack = open_attack("probe_mlc", encoder)
    assert len(attack.invert(encoder, encoder.encode(varied[:5]))) == 5


@pytest.mark.slow
def test_openvino_tells_nobody_that_it_is_used(tmp_path: Path) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise SystemExit('it connects')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from leakscope.core.encoders import backends\n"
        "print(backends.processor()[1])\n"
        "from openvino.tools.ovc import telemetry_utils\n"
        "print(telemetry_utils.tm.__name__, sys.modules['openvino_telemetry'])"
    )
    finished = run_python(code, timeout=120, env={"HOME": str(tmp_path), "PATH": ""})
    assert finished.stdout.splitlines()[-1] == "openvino.tools.ovc.telemetry_stub None"
    assert list(tmp_path.rglob("*openvino*")) == [], finished.stderr


@pytest.mark.slow
def test_a_process_that_encoded_ends_well() -> None:
    """Its threads must not ask for the interpreter once all is done: half of the ends crashed."""
    code = (
        "from leakscope.core.encoders.minilm import load_minilm\n"
        "encoder = load_minilm(device='cpu', backend='openvino')\n"
        "encoder.encode([f'text {i} about the river' for i in range(60)])"
    )
    for _ in range(2):
        finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=False)
        assert finished.returncode == 0


def test_openvino_gets_no_callback() -> None:
    text = (ROOT / "core" / "encoders" / "backends.py").read_text()
    assert "AsyncInferQueue" not in text and "set_callback" not in text


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are bound on Linux alone")
def test_its_threads_are_bound_to_no_core_of_their_own() -> None:
    """Two processes side by side would share the first one, and leave the other idle."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one core")
    code = (
        "import os, threading\n"
        "from leakscope.core.encoders.minilm import load_minilm\n"
        "encoder = load_minilm(device='cpu', backend='openvino')\n"
        "free, looks, is_done = os.sched_getaffinity(0), [], threading.Event()\n"
        "def is_free(task):\n"
        "    try: return os.sched_getaffinity(int(task)) == free\n"
        "    except OSError: return True\n"
        "def watch():\n"
        "    while not is_done.wait(0.02):\n"
        "        looks.append(all(map(is_free, os.listdir('/proc/self/task'))))\n"
        "watcher = threading.Thread(target=watch)\n"
        "watcher.start()\n"
        "encoder.encode([f'text {i} about the river' for i in range(600)])\n"
        "is_done.set(), watcher.join()\n"
        "print(len(looks) > 3 and sum(looks) / len(looks))"
    )
    finished = run_python(code, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"})
    share = finished.stdout.splitlines()[-1]
    assert share != "False" and float(share) > 0.9, finished.stderr  # bound: a tenth of that
