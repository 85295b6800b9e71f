"""Open damaged artifacts with the readers that load them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from tools.fuzz.damage import damaged_artefact
from tools.fuzz.kit import Kit, load_kit_encoder
from tools.fuzz.making import (
    ANSWERING,
    LABELS,
    LENDER,
    N_VECTORS,
    RUNS,
    Artefact,
    load_without_training,
    map_vectors,
)
from tools.fuzz.play import Case

_TEXTS = ["The minister met the doctor.", "A letter from the river."]


@st.composite
def artefacts(draw: Callable[..., Any], kit: Kit, name: str) -> Case:
    """Draw a case: an artifact with changed content under a valid checksum, or torn bytes."""
    whole = kit.artefacts[name]
    changed = draw(damaged_artefact(whole))
    is_torn = draw(st.integers(0, 3)) == 0
    edit = draw(st.integers(0, 10_000))

    def read(folder: Path) -> object:
        """Write the damaged artifact into the folder and load it."""
        _save(folder / "a", changed)
        if is_torn:
            _tear(folder / "a", edit)
        return read_artefact(name, folder / "a", kit)

    return Case(name, read=read)


def read_artefact(name: str, folder: Path, kit: Kit) -> object:
    """Load an artifact with the reader of its kind, and use it."""
    return _OPENED[name if name in _OPENED else name.partition(" ")[0]](name, folder, kit)


def _save(folder: Path, artefact: Artefact) -> None:
    """Save an artifact, valid or not."""
    from leakscope.core.storage.artifacts import save_artifact, write_json

    meta = artefact.meta
    if isinstance(meta, dict):
        save_artifact(folder, artefact.arrays, meta)
    else:
        write_json(folder / "model.json", meta)


def _tear(folder: Path, edit: int) -> None:
    """Change a byte of one of the folder's files, or truncate it."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    path = files[edit % len(files)]
    content = bytearray(path.read_bytes())
    at = edit % max(1, len(content))
    if edit % 3:
        content[at : at + 1] = b"\xff"
    else:
        del content[at:]
    path.write_bytes(content)


def _attack(name: str, folder: Path, kit: Kit) -> object:
    """Load an inversion attack and run it."""
    from leakscope.core.attacks.inversion.shipped import load_attack

    attack, encoder = load_attack(folder), load_kit_encoder(kit.folder)
    return attack.invert(encoder, encoder.encode(_TEXTS))


def _encoder(name: str, folder: Path, kit: Kit) -> object:
    """Load an encoder and encode; retry with a patched fingerprint if that refuses it."""
    from leakscope.core.encoders import fitted
    from leakscope.core.errors import ArtifactError
    from leakscope.core.storage.artifacts import META, read_json

    try:
        return fitted.load_fitted(folder).encode(_TEXTS)
    except ArtifactError:
        meta = read_json(folder / META)
    told = meta.get("fingerprint") if isinstance(meta, dict) else None
    with patch.object(fitted, "digest_of", lambda *_: told):
        return fitted.load_fitted(folder).encode(_TEXTS)


def _layout(name: str, folder: Path, kit: Kit) -> object:
    """Load a map."""
    from leakscope.core.projection.layout_cache import load_layout
    from leakscope.core.projection.spec import ProjectionSpec

    return load_layout(folder, map_vectors(), ProjectionSpec(method="pca"))


def _statistics(name: str, folder: Path, kit: Kit) -> object:
    """Load deniability statistics and use them."""
    from leakscope.core.defences.deniability.vocabulary import load_vocabulary

    found = load_vocabulary(folder)
    return found.at(20.0)


def _borrower(name: str, folder: Path, kit: Kit) -> object:
    """Load an attack that borrows another's arrays, and run it."""
    shutil.copytree(kit.artefacts.place(name).with_name(LENDER), folder.with_name(LENDER))
    return _attack(name, folder, kit)


def _defence(name: str, folder: Path, kit: Kit) -> object:
    """Load a trained defence and encode."""
    from leakscope.core.defences.stored import open_defended
    from leakscope.core.specs import EncoderSpec

    spec = EncoderSpec(name=f"defended:{folder}", precision="float32", device="cpu")
    return open_defended(spec, str(folder)).encode(_TEXTS)


def _private(name: str, folder: Path, kit: Kit) -> object:
    """Load a private classifier and use it."""
    from leakscope.core.defences.trained.private import load_training

    return load_training(folder).answer(load_kit_encoder(kit.folder), _TEXTS)


def _shape(name: str, folder: Path, kit: Kit) -> object:
    """Load a known space's shape and identify vectors with it."""
    from leakscope.core.audit.identification import KnownSpace, identify

    return identify(kit.making.vectors, [KnownSpace.load(folder)], n_rotations=2)


def _vectors(name: str, folder: Path, kit: Kit) -> object:
    """Load shipped vectors and draw a map of them."""
    from leakscope.core.projection import shipped
    from leakscope.core.projection.layout import project
    from leakscope.core.projection.spec import ProjectionSpec
    from leakscope.core.storage.artifacts import write_json

    place = folder.with_name("shipped") / "minilm"
    place.mkdir(parents=True)
    folder.rename(place / "vectors")
    points: Any = _Points()
    told = {"texts": points.content_hash, "fingerprint": "f"}
    (place / "layout").mkdir()
    write_json(place / "layout" / "model.json", told)
    with patch.object(shipped, "SHIPPED", place.parent):
        found = shipped.find_vectors(points, "minilm", "f")
    assert found is not None
    return project(found, ProjectionSpec(method="pca"))


class _Points:
    """Stands in for Points, with as many texts as there are vectors."""

    content_hash = "h"

    def __len__(self) -> int:
        return N_VECTORS


def _names(name: str, folder: Path, kit: Kit) -> object:
    """Load a names experiment and compute its tables."""
    from leakscope.core.names.shipped import restore_experiment
    from leakscope.core.storage.artifacts import load_artifact

    found = restore_experiment(*load_artifact(folder))
    matrix = found.substitution
    told = [matrix.diagonal(), matrix.exchanged(), matrix.false_alarms(), matrix.ranked_first()]
    return found.table(), told, [probing.hits(1) for probing in found.probes.values()]


def _checkpoint(name: str, folder: Path, kit: Kit) -> object:
    """Resume a run from its checkpoint."""
    from leakscope.core.protocols import no_progress

    making = replace(kit.making, place=folder)
    return RUNS[name.removeprefix("checkpoint of ")].go(making, no_progress)


def _answers(name: str, folder: Path, kit: Kit) -> object:
    """Load a classifier target's answers."""
    place = folder.with_name("answers")
    place.mkdir()
    folder.rename(place / "model-0")
    making = replace(kit.making, place=place)
    return _check_answers(ANSWERING[name.removeprefix("answers of ")](making), kit)


def _check_answers(answers: Any, kit: Kit) -> object:
    """Return answers; raise AssertionError if they are not of the kit's texts and classes."""
    wanted = (1, len(kit.texts), len(LABELS))
    if answers is not None and (answers.shape, answers.dtype.kind) != (wanted, "f"):
        raise AssertionError(f"answers have the shape {answers.shape}, not {wanted}")
    return answers


def _study_answers(name: str, folder: Path, kit: Kit) -> object:
    """Load a study cell's saved answers."""
    return _check_answers(load_without_training(name, folder, kit.texts), kit)


def _network(name: str, folder: Path, kit: Kit) -> object:
    """Load a tuned or adapted network."""
    found: Any = load_without_training(name, folder, kit.texts)
    return found and (found.hits.score() if name == "tuned network" else found.service)


_OPENED: dict[str, Callable[[str, Path, Kit], object]] = {
    "attack": _attack,
    "attack that borrows": _borrower,
    "encoder": _encoder,
    "defence": _defence,
    "private classifier": _private,
    "map": _layout,
    "vectors of the map": _vectors,
    "statistics of tokens": _statistics,
    "example of names": _names,
    "shape of an encoder's vectors": _shape,
    "checkpoint": _checkpoint,
    "answers": _answers,
    "answers of a study": _study_answers,
    "tuned network": _network,
    "adapted network": _network,
}
"""By what the report calls it, or by the first word of that."""
