"""What the trained attacks that ship read from an encoder: they learnt from far more texts.

`assets/representations/more_texts.json` is made from the rows of the study of attacks by COMMAND.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from core.attacks.inversion import shipped
from core.errors import ArtifactError
from core.store import META, write_json
from core.studies.rows import Row
from core.studies.tables import read_rows, table_of

__all__ = ["COMMAND", "COUNTS", "RECALLS", "SCORES", "STUDY", "collect", "main"]

STUDY = "more_texts"
COMMAND = (
    "python -m core.studies.more_texts --results docs/results/inversion-bbc.json "
    "--out assets/representations/more_texts.json"
)

RECALLS = ("name_recall", "number_recall", "rare_recall")
"""Of names and numbers, of numbers, and of rare words; rows of before hold the first alone."""
SCORES = ("token_set_f1", "recall", "unrestricted_f1")
"""Rows of before hold the first alone; the last is of all words, also those out of reach."""
COUNTS = ("n_names", "n_numbers", "n_rare")
"""How many words each of these is of; rows of before hold none of them."""


def collect(results: Path, encoder: str = "minilm") -> list[Row]:
    """Return the rows of attacks that learn from texts, with how many texts they learnt from.

    Cross-domain, that is what the shipped weights say; in-domain, the row itself. An attack
    without shipped weights learns nothing and is left out.

    Parameters
    ----------
    results : Path
        What `python -m core study attacks` wrote.
    encoder : str
        The encoder that it attacked; its rows do not say.

    Raises
    ------
    ArtifactError
        The file is damaged or holds something else.
    """
    try:
        measured = [row for row in read_rows(results, "attacks") if not row.error]
        rows = [row for row in measured if _meta(encoder, row["attack"]).exists()]
        if not rows:
            raise KeyError("no row of an attack with weights that ship")
        return [_row(encoder, row) for row in rows]
    except (KeyError, TypeError, ArtifactError) as error:
        raise ArtifactError(
            f"{results} does not hold rows of the study of attacks ({error}). Make it: "
            "python -m core study attacks --target FILE --out FILE"
        ) from error


def _row(encoder: str, row: Row) -> Row:
    n_texts = row["n_auxiliary"] or shipped.n_taught_by(_meta(encoder, row["attack"]).parent)
    facts = {
        "attack": row["attack"],
        "encoder": encoder,
        "domain": row["auxiliary"],
        "target": row["texts"],
        "seed": row["seed"],
        "n": row["n"],
        "n_fitted_on": n_texts,
    }
    facts |= {name: row[name] for name in (*COUNTS, *RECALLS) if name in row}
    scores = {name: row.scores[name] for name in SCORES if name in row.scores}
    return Row(scores=scores, facts=facts, provenance=row.provenance)


def _meta(encoder: str, attack: str) -> Path:
    return Path(shipped.WEIGHTS) / encoder / attack / META


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file that the page of representations reads."""
    parser = argparse.ArgumentParser(description="What trained attacks that ship read.")
    parser.add_argument("--results", type=Path, required=True, help="JSON of the study of attacks")
    parser.add_argument("--encoder", default="minilm", help="that it attacked (default: minilm)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    rows = collect(options.results, options.encoder)
    told = {"from": options.results.name, **table_of(STUDY, rows)}
    write_json(options.out, told, is_public=True)


if __name__ == "__main__":
    main()
