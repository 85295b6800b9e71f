"""Names of people: substituted for each other, recovered, and probed for (Corò 2022, §5.2.3).

Reproduces Tables 5.6 and 5.7 for whatever names are given or found, with the training sentences
that hold each name beside them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.attacks.inversion.shipped import load_attack, save_attack
from core.errors import ArtifactError
from core.names.augmentation import sentences_with_names
from core.protocols import Encoder, InversionAttack, TrainedAttack
from core.specs import REQUIRED, setting
from core.store import META
from core.studies.apart import near_setting
from core.studies.cell_attacks import fit_attack, settings_for
from core.studies.domains import (
    DOMAINS,
    check_contents,
    content_of,
    open_domain,
    open_encoder,
)
from core.studies.names_parts import (
    choose_names,
    count_texts,
    matrix_row,
    probing_rows,
    without_names,
)
from core.studies.names_tables import anonymised, markdown
from core.studies.rows import Cell, Row
from core.studies.runner import cell_key

__all__ = ["NameStudy", "markdown", "measure"]


@dataclass(frozen=True, kw_only=True)
class NameStudy:
    """Names of people put into each other's sentences, and names that nobody trained on.

    As many names as the greatest of `sizes`, further down the list, are probed for: they are kept
    out of training. At most 200 sentences are probed.
    """

    target: str = setting(REQUIRED, "the collection under study, a file")
    other: str = setting("wikipedia", "the corpus that the cross-domain attacker has")
    names: tuple[str, ...] = setting(
        (), "people, the most interesting first, or a file with one a line; else found"
    )
    sizes: tuple[int, ...] = setting((4, 40), "people in each matrix", low=1)
    name_sentences: tuple[int, ...] = setting(
        (0, 4000), "training sentences into which the names are put", low=0
    )
    encoders: tuple[str, ...] = setting(("minilm",), "encoders by name")
    attacks: tuple[str, ...] = setting(("probe_mlc",), "attacks by name")
    domains: tuple[str, ...] = setting(
        tuple(DOMAINS), "whose texts the attacker has", choices=tuple(DOMAINS)
    )
    n_auxiliary: int = setting(40_000, "sentences to train on", low=1)
    n_targets: int = setting(300, "sentences of a matrix, as many of each name", low=1)
    near: float = near_setting()
    held_share: float = setting(0.2, "share of the documents under attack", low=0.01, high=0.99)
    label_column: str = setting("label_name", "column of a document's section, where it has one")
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of every attack that has it", flag="set"
    )
    is_anonymous: bool = setting(True, "write name 1, name 2, …", flag="anonymous")

    def cells(self) -> list[Cell]:
        """Return what is to be measured: each matrix, and the probes, of each setting."""
        shared = {"study": "names", "target": self.target, "other": self.other,
                  "contents": [content_of(self.target), content_of(self.other)],
                  "names": list(_listed(self.names)), "sizes": list(self.sizes),
                  "n_auxiliary": self.n_auxiliary, "n_targets": self.n_targets,
                  "near": self.near,
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

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows as they may be written: without names, unless they are asked for."""
        return anonymised(rows) if self.is_anonymous else list(rows)


def _listed(names: Sequence[str]) -> Sequence[str]:
    """Return the names, or the lines of the file that is given."""
    if len(names) == 1 and Path(names[0]).is_file():
        from core.corpora.files import read_texts

        return read_texts(names[0])
    return names


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a matrix, or the probes, with the attack that the cells of a setting share."""
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "seed", "held_share")
    place = {name: cell[name] for name in names}
    apart: dict[str, Any] = {"n_targets": 10**9, "near": cell["near"]}
    domain = open_domain(**place, **apart)
    inside = open_domain(**(place | {"domain": "in"}), **apart)
    seen, unseen = choose_names(cell, inside)
    known = without_names(domain.auxiliary, unseen)
    added = sentences_with_names(known, seen, cell["name_sentences"], seed=cell["seed"])
    fit_on = place | {"without": [name.surname for name in unseen]}
    encoder = open_encoder(
        cell["encoder"], fit_on, lambda: known, folder, contents=cell["contents"]
    )
    attack = _fitted_attack(cell, encoder, [*known, *added], folder)
    if cell["part"] == "probing":
        rows = probing_rows(attack, encoder, domain, seen, unseen, cell)
    else:
        these = seen[: int(cell["part"])]
        rows = [matrix_row(attack, encoder, domain, these, cell)]
        counted = {"training": count_texts(known, these), "added": count_texts(added, these)}
        rows = [replace(row, facts={**row.facts, **counted}) for row in rows]
    shared = {"n_fitted_on": len(known), "n_added": len(added),
              "n_near_duplicates": domain.n_near_duplicates}  # fmt: skip
    return [replace(row, facts={**shared, **row.facts}) for row in rows]


def _fitted_attack(
    cell: Cell, encoder: Encoder, texts: Sequence[str], folder: Path
) -> InversionAttack:
    """Return the attack of a setting: trained once, without the names that are probed for."""
    key = cell_key({k: v for k, v in cell.items() if k != "part"})
    place = folder / "attacks" / key
    if (place / META).exists():
        with suppress(ArtifactError):  # damaged: it is trained again
            return load_attack(place)
    checkpoint = folder / "training" / key
    attack = fit_attack(cell, encoder, texts, checkpoint_dir=str(checkpoint))
    assert isinstance(attack, TrainedAttack)
    save_attack(attack, place)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return attack
