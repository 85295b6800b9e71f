"""What the trained attacks that ship read from an encoder: they learnt from far more texts.

`assets/representations/more_texts.json` is made from the rows of the inversion study by COMMAND.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.attacks.inversion import shipped
from core.errors import ArtifactError
from core.store import META, read_json, write_json

__all__ = ["COMMAND", "STUDY", "collect", "main"]

STUDY = "more_texts"
COMMAND = (
    "python -m core.studies.more_texts --results docs/results/inversion-bbc.json "
    "--out assets/representations/more_texts.json"
)
_KEPT = ("attack", "n", "token_set_f1", "token_set_f1_ci95", "prior_f1", "seed")


def collect(results: Path, encoder: str = "minilm") -> list[dict[str, Any]]:
    """Return the rows of attacks that learn from texts, with how many texts they learnt from.

    Cross-domain, that is what the shipped weights say; in-domain, the row itself. An attack
    without shipped weights learns nothing and is left out.

    Parameters
    ----------
    results : Path
        What `python -m core.studies.inversion` wrote.
    encoder : str
        The encoder that it attacked; its rows do not say.

    Raises
    ------
    ArtifactError
        The file is damaged or holds something else.
    """
    try:
        rows = [row for row in read_json(results)["rows"] if _meta(encoder, row).exists()]
        if not rows:
            raise KeyError("no row of an attack with weights that ship")
        return [
            {
                **{name: row[name] for name in _KEPT},
                "encoder": encoder,
                "domain": row["auxiliary"],
                "target": row["texts"],
                "n_fitted_on": row["n_auxiliary"] or _n_texts(encoder, row["attack"]),
            }
            for row in rows
        ]
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"{results} does not hold rows of the inversion study ({error}). Make it: "
            "python -m core.studies.inversion --target FILE --out FILE"
        ) from error


def _meta(encoder: str, row: dict[str, Any]) -> Path:
    return Path(shipped.WEIGHTS) / encoder / str(row["attack"]) / META


def _n_texts(encoder: str, attack: str) -> int:
    """Return how many texts shipped weights learnt from: their own, or those they are built on."""
    training = read_json(_meta(encoder, {"attack": attack}))["training"]
    base = training.get("built_on")
    return max(int(training["n_texts"]), _n_texts(encoder, base) if base else 0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file that the page of representations reads."""
    parser = argparse.ArgumentParser(description="What trained attacks that ship read.")
    parser.add_argument("--results", type=Path, required=True, help="JSON of the inversion study")
    parser.add_argument("--encoder", default="minilm", help="that it attacked (default: minilm)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    rows = collect(options.results, options.encoder)
    write_json(options.out, {"study": STUDY, "from": options.results.name, "rows": rows})


if __name__ == "__main__":
    main()
