r"""Collect the scores of shipped attacks, which were trained on far more texts.

python -m scripts.more_texts --results results/inversion-bbc.json \
    --out results/more-texts.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from leakscope.core.attacks.inversion import shipped
from leakscope.core.errors import ArtifactError
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import read_rows, rows_to_json
from leakscope.core.storage.artifacts import META, write_json
from leakscope.core.studies.inversion.more_texts import RECALLS, STUDY

SCORES = ("token_set_f1", "recall", "unrestricted_f1")
"""Rows of before hold the first alone; the last is of all words, also those out of reach."""
COUNTS = ("n_names", "n_numbers", "n_rare")
"""How many words each of these is of; rows of before hold none of them."""


def collect(results: Path, encoder: str = "minilm") -> list[Row]:
    """Read a study's rows; return those of shipped attacks, with their number of training texts.

    Cross-domain, that is what the shipped weights say; in-domain, the row itself. An attack
    without shipped weights learns nothing and is left out.

    Parameters
    ----------
    results : Path
        What `leakscope study attacks` wrote.
    encoder : str
        The encoder that it attacked; its rows do not say.

    Raises
    ------
    ArtifactError
        The file is damaged or holds something else.
    """
    try:
        measured = [row for row in read_rows(results, "attacks") if not row.error]
        rows = [row for row in measured if _metadata_path(encoder, row["attack"]).exists()]
        if not rows:
            raise KeyError("no row of an attack with weights that ship")
        return [_with_training_count(encoder, row) for row in rows]
    except (KeyError, TypeError, ArtifactError) as error:
        raise ArtifactError(
            f"{results} does not hold rows of the study of attacks ({error}). Make it: "
            "leakscope study attacks --target FILE --out FILE"
        ) from error


def _with_training_count(encoder: str, row: Row) -> Row:
    """Return an attack's row with the number of texts that it was trained on added."""
    n_texts = row["n_auxiliary"] or shipped.n_training_texts(
        _metadata_path(encoder, row["attack"]).parent
    )
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


def _metadata_path(encoder: str, attack: str) -> Path:
    """Return the path of the metadata file of an encoder's shipped attack."""
    return Path(shipped.WEIGHTS) / encoder / attack / META


def main(arguments: Sequence[str] | None = None) -> None:
    """Collect the scores of shipped attacks and write them for the representations page."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.more_texts", description="What trained attacks that ship recover."
    )
    parser.add_argument("--results", type=Path, required=True, help="JSON of the study of attacks")
    parser.add_argument("--encoder", default="minilm", help="that it attacked (default: minilm)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    rows = collect(options.results, options.encoder)
    table = {"from": options.results.name, **rows_to_json(STUDY, rows)}
    write_json(options.out, table, is_public=True)


if __name__ == "__main__":
    main()
