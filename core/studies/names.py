"""Names of people: substituted for each other, recovered, and probed for (Corò 2022, §5.2.3).

Reproduces Tables 5.6 and 5.7 for whatever names are given or found, with the training sentences
that hold each name beside them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.attacks.inversion.shipped import load_attack, save_attack
from core.names.augmentation import sentences_with_names
from core.protocols import Encoder, InversionAttack, OnProgress, TrainedAttack, no_progress
from core.studies.cell_attacks import fit_attack, settings_for
from core.studies.domains import DOMAINS, content_of, open_domain, open_encoder
from core.studies.names_parts import (
    choose_names,
    count_texts,
    matrix_row,
    probing_rows,
    without_names,
)
from core.studies.names_tables import anonymised, markdown
from core.studies.runner import Cell, cell_key, run_cells

__all__ = ["NameStudy", "markdown", "measure", "run"]


@dataclass(frozen=True, kw_only=True)
class NameStudy:
    """What to measure.

    Parameters
    ----------
    target, other : str
        The attacked collection, and the one that the cross-domain attacker has.
    names : tuple of str
        One a person, the most interesting first; found in the collection where empty.
    sizes : tuple of int
        How many of them are substituted for each other; a matrix each. As many as the greatest,
        further down the list, are probed for: they are kept out of training.
    name_sentences : tuple of int
        Training sentences into which the names were put: what an attacker does who is after them.
    n_targets : int
        Sentences of a matrix, the same number of each name; at most 200 of them are probed.
    held_share : float
        Share of the documents that are attacked.
    label_column : str
        Section of a document, where the collection has it: names of one section, and of two.
    is_anonymous : bool
        Write `name 1`, `name 2`, … instead of the names.
    """

    target: str
    other: str = "wikipedia"
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (4, 40)
    name_sentences: tuple[int, ...] = (0, 4000)
    encoders: tuple[str, ...] = ("minilm",)
    attacks: tuple[str, ...] = ("probe_mlc",)
    domains: tuple[str, ...] = tuple(DOMAINS)
    n_auxiliary: int = 40_000
    n_targets: int = 300
    held_share: float = 0.2
    label_column: str = "label_name"
    seeds: tuple[int, ...] = (0,)
    attack_settings: tuple[tuple[str, Any], ...] = ()
    is_anonymous: bool = True

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each matrix, and the probes, of each setting."""
        shared = {"study": "names", "target": self.target, "other": self.other,
                  "contents": [content_of(self.target), content_of(self.other)],
                  "names": list(self.names), "sizes": list(self.sizes),
                  "n_auxiliary": self.n_auxiliary, "n_targets": self.n_targets,
                  "held_share": self.held_share, "label": self.label_column}  # fmt: skip
        return [
            {**shared, "encoder": encoder, "attack": attack, "domain": domain,
             "name_sentences": n, "seed": seed, "part": part,
             "settings": settings_for(attack, self.attack_settings)}
            for domain in self.domains
            for encoder in self.encoders
            for attack in self.attacks
            for n in self.name_sentences
            for seed in self.seeds
            for part in ("probing", *map(str, self.sizes))
        ]  # fmt: skip


def run(
    study: NameStudy, folder: Path, *, n_jobs: int = 1, on_progress: OnProgress = no_progress
) -> list[dict[str, Any]]:
    """Return a row for each matrix and each way to probe; see `run_cells`."""
    rows = run_cells(study.cells(), measure, folder, n_jobs=n_jobs, on_progress=on_progress)
    return anonymised(rows) if study.is_anonymous else rows


def measure(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """Measure a matrix, or the probes, with the attack that the cells of a setting share."""
    names = ("target", "other", "domain", "n_auxiliary", "seed", "held_share")
    place = {name: cell[name] for name in names}
    domain = open_domain(**place, n_targets=10**9)
    inside = open_domain(**(place | {"domain": "in"}), n_targets=10**9)
    seen, unseen = choose_names(cell, inside)
    known = without_names(domain.auxiliary, unseen)
    added = sentences_with_names(known, seen, cell["name_sentences"], seed=cell["seed"])
    fit_on = place | {"without": [name.surname for name in unseen]}
    encoder = open_encoder(cell["encoder"], fit_on, lambda: known, folder)
    attack = _fitted_attack(cell, encoder, [*known, *added], folder)
    if cell["part"] == "probing":
        rows = probing_rows(attack, encoder, domain.targets, seen, unseen, cell)
    else:
        these = seen[: int(cell["part"])]
        rows = [matrix_row(attack, encoder, domain.targets, these, cell)]
        rows[0]["training"] = count_texts(known, these)
        rows[0]["added"] = count_texts(added, these)
    return [{"n_fitted_on": len(known), "n_added": len(added), **row} for row in rows]


def _fitted_attack(
    cell: Cell, encoder: Encoder, texts: Sequence[str], folder: Path
) -> InversionAttack:
    """Return the attack of a setting: trained once, without the names that are probed for."""
    key = cell_key({k: v for k, v in cell.items() if k != "part"})
    place = folder / "attacks" / key
    if (place / "model.json").exists():
        return load_attack(place)
    checkpoint = folder / "training" / key
    attack = fit_attack(cell, encoder, texts, checkpoint_dir=str(checkpoint))
    assert isinstance(attack, TrainedAttack)
    save_attack(attack, place)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return attack
