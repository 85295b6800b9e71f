"""The name study: people's names substituted, recovered, and probed for (Corò 2022, §5.2.3).

Reproduces Tables 5.6 and 5.7 for any names, and counts the training sentences with each name.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.shipped import load_attack, save_attack
from leakscope.core.errors import ArtifactError
from leakscope.core.names.augmentation import insert_names
from leakscope.core.protocols import Encoder, InversionAttack, TrainedAttack
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, setting
from leakscope.core.storage.artifacts import META
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.domains import (
    DOMAINS,
    check_contents,
    content_of,
    open_domain,
    open_encoder,
)
from leakscope.core.studies.inversion.cell_attacks import fit_attack, settings_for
from leakscope.core.studies.names.parts import (
    choose_names,
    count_texts,
    matrix_row,
    probing_rows,
    without_names,
)
from leakscope.core.studies.names.tables import anonymise_names
from leakscope.core.studies.names.tables import markdown as markdown
from leakscope.core.studies.runner import cell_key


@dataclass(frozen=True, kw_only=True)
class NameStudy:
    """Settings of the name study: names, attacks, encoders and numbers of sentences.

    The next names on the list, as many as the greatest of `sizes`, are probed for and kept out of
    training. At most 200 sentences are probed.
    """

    target: str = setting(REQUIRED, "the collection to attack, a file")
    other: str = setting("wikipedia", "the corpus that the cross-domain attacker has")
    names: tuple[str, ...] = setting(
        (), "people, most interesting first, or a file with one per line; default: found in texts"
    )
    sizes: tuple[int, ...] = setting((4, 40), "people in each matrix", low=1)
    name_sentences: tuple[int, ...] = setting(
        (0, 4000), "training sentences into which the names are inserted", low=0
    )
    encoders: tuple[str, ...] = setting(("minilm",), "encoders by name")
    attacks: tuple[str, ...] = setting(("probe_mlc",), "attacks by name")
    domains: tuple[str, ...] = setting(
        tuple(DOMAINS), "whose texts the attacker has", choices=tuple(DOMAINS)
    )
    n_auxiliary: int = setting(40_000, "sentences to train on", low=1)
    n_targets: int = setting(300, "sentences per matrix, equally many per name", low=1)
    near: float = near_duplicate_setting()
    held_share: float = setting(0.2, "share of the documents under attack", low=0.01, high=0.99)
    label_column: str = setting("label_name", "column of each document's section, if any")
    seeds: tuple[int, ...] = setting((0,), "one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of every attack that has it", flag="set"
    )
    is_anonymous: bool = setting(True, "write name 1, name 2, …", flag="anonymous")

    def cells(self) -> list[Cell]:
        """Return one cell per setting for each matrix and for the probes."""
        shared = {
            "study": "names",
            "target": self.target,
            "other": self.other,
            "contents": [content_of(self.target), content_of(self.other)],
            "names": list(_read_names(self.names)),
            "sizes": list(self.sizes),
            "n_auxiliary": self.n_auxiliary,
            "n_targets": self.n_targets,
            "near": self.near,
            "held_share": self.held_share,
            "label": self.label_column,
        }
        return [
            {
                **shared,
                "encoder": encoder,
                "attack": attack,
                "domain": domain,
                "name_sentences": n,
                "seed": seed,
                "part": part,
                "settings": settings_for(attack, self.attack_settings),
            }
            for domain in self.domains
            for encoder in self.encoders
            for attack in self.attacks
            for n in self.name_sentences
            for seed in self.seeds
            for part in ("probing", *map(str, self.sizes))
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows with names replaced by numbers, unless names were requested."""
        return anonymise_names(rows) if self.is_anonymous else list(rows)


def _read_names(names: Sequence[str]) -> Sequence[str]:
    """Return the given names, or the lines of a single given file."""
    if len(names) == 1 and Path(names[0]).is_file():
        from leakscope.core.corpora.files import read_texts

        return read_texts(names[0])
    return names


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a matrix or the probes of a setting with its shared attack."""
    check_contents(cell)
    names = ("target", "other", "domain", "n_auxiliary", "seed", "held_share")
    place = {name: cell[name] for name in names}
    apart: dict[str, Any] = {"n_targets": 10**9, "near": cell["near"]}
    domain = open_domain(**place, **apart)
    inside = open_domain(**(place | {"domain": "in"}), **apart)
    seen, unseen = choose_names(cell, inside)
    known = without_names(domain.auxiliary, unseen)
    added = insert_names(known, seen, cell["name_sentences"], seed=cell["seed"])
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
    shared = {
        "n_fitted_on": len(known),
        "n_added": len(added),
        "n_near_duplicates": domain.n_near_duplicates,
    }
    return [replace(row, facts={**shared, **row.facts}) for row in rows]


def _fitted_attack(
    cell: Cell, encoder: Encoder, texts: Sequence[str], folder: Path
) -> InversionAttack:
    """Load or train the attack of a setting, without the names that are probed for."""
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
