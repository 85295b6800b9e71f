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
    """Draw a case: an artifact with changed content or torn bytes, and the reader that loads it."""
    whole = kit.artefacts[name]
    changed = draw(damaged_artefact(whole))
    is_torn = draw(st.integers(0, 3)) == 0
    edit = draw(st.integers(0, 10_000))

    def read(folder: Path) -> object:
        """Write the damaged artifact into the folder, load it and use it."""
        _save_artefact(folder / "a", changed)
        if is_torn:
            _damage_file(folder / "a", edit)
        return read_artefact(name, folder / "a", kit)

    return Case(name, read=read)


def read_artefact(name: str, folder: Path, kit: Kit) -> object:
    """Load an artifact by the reader of its kind, use it and return what that gives."""
    return _OPENED[name if name in _OPENED else name.partition(" ")[0]](name, folder, kit)


def _save_artefact(folder: Path, artefact: Artefact) -> None:
    """Write an artifact to a folder, whether valid or not."""
    from leakscope.core.storage.artifacts import save_artifact, write_json

    meta = artefact.meta
    if isinstance(meta, dict):
        save_artifact(folder, artefact.arrays, meta)
    else:
        write_json(folder / "model.json", meta)


def _damage_file(folder: Path, edit: int) -> None:
    """Change a byte of one of the folder's files, or truncate the file."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    path = files[edit % len(files)]
    content = bytearray(path.read_bytes())
    at = edit % max(1, len(content))
    if edit % 3:
        content[at : at + 1] = b"\xff"
    else:
        del content[at:]
    path.write_bytes(content)


def _invert_with_attack(name: str, folder: Path, kit: Kit) -> object:
    """Load an inversion attack and invert two vectors by it."""
    from leakscope.core.attacks.inversion.shipped import load_attack

    attack, encoder = load_attack(folder), load_kit_encoder(kit.folder)
    return attack.invert(encoder, encoder.encode(_TEXTS))


def _encode_with_encoder(name: str, folder: Path, kit: Kit) -> object:
    """Load an encoder and encode two texts, with a patched fingerprint if it is refused."""
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


def _load_map(name: str, folder: Path, kit: Kit) -> object:
    """Load a map and return its layout."""
    from leakscope.core.projection.layout_cache import load_layout
    from leakscope.core.projection.spec import ProjectionSpec

    return load_layout(folder, map_vectors(), ProjectionSpec(method="pca"))


def _use_statistics(name: str, folder: Path, kit: Kit) -> object:
    """Load deniability statistics and look up a value of η."""
    from leakscope.core.defences.deniability.vocabulary import load_vocabulary

    found = load_vocabulary(folder)
    return found.at(20.0)


def _invert_with_borrower(name: str, folder: Path, kit: Kit) -> object:
    """Load an attack that borrows another's arrays, and invert two vectors by it."""
    shutil.copytree(kit.artefacts.place(name).with_name(LENDER), folder.with_name(LENDER))
    return _invert_with_attack(name, folder, kit)


def _encode_with_defence(name: str, folder: Path, kit: Kit) -> object:
    """Load a trained defence and encode two texts by it."""
    from leakscope.core.defences.stored import open_defended
    from leakscope.core.specs import EncoderSpec

    spec = EncoderSpec(name=f"defended:{folder}", precision="float32", device="cpu")
    return open_defended(spec, str(folder)).encode(_TEXTS)


def _answer_with_private_classifier(name: str, folder: Path, kit: Kit) -> object:
    """Load a private classifier and classify two texts by it."""
    from leakscope.core.defences.trained.private import load_training

    return load_training(folder).answer(load_kit_encoder(kit.folder), _TEXTS)


def _identify_with_shape(name: str, folder: Path, kit: Kit) -> object:
    """Load the shape of a known space and identify vectors with it."""
    from leakscope.core.audit.identification import KnownSpace, identify

    return identify(kit.making.vectors, [KnownSpace.load(folder)], n_rotations=2)


def _draw_map_of_vectors(name: str, folder: Path, kit: Kit) -> object:
    """Load vectors as they ship and draw a map of them."""
    from leakscope.core.projection import shipped
    from leakscope.core.projection.layout import project
    from leakscope.core.projection.spec import ProjectionSpec
    from leakscope.core.storage.artifacts import write_json

    place = folder.with_name("shipped") / "minilm"
    place.mkdir(parents=True)
    folder.rename(place / "vectors")
    points: Any = _StandInPoints()
    told = {"texts": points.content_hash, "fingerprint": "f"}
    (place / "layout").mkdir()
    write_json(place / "layout" / "model.json", told)
    with patch.object(shipped, "SHIPPED", place.parent):
        found = shipped.find_vectors(points, "minilm", "f")
    assert found is not None
    return project(found, ProjectionSpec(method="pca"))


class _StandInPoints:
    """Stands in for Points, with as many texts as there are vectors."""

    content_hash = "h"

    def __len__(self) -> int:
        """Return the number of shipped vectors."""
        return N_VECTORS


def _tabulate_names(name: str, folder: Path, kit: Kit) -> object:
    """Load a names experiment and compute its tables."""
    from leakscope.core.names.shipped import restore_experiment
    from leakscope.core.storage.artifacts import load_artifact

    found = restore_experiment(*load_artifact(folder))
    matrix = found.substitution
    told = [matrix.diagonal(), matrix.exchanged(), matrix.false_alarms(), matrix.ranked_first()]
    return found.table(), told, [probing.hits(1) for probing in found.probes.values()]


def _resume_from_checkpoint(name: str, folder: Path, kit: Kit) -> object:
    """Resume a run from its damaged checkpoint and finish it."""
    from leakscope.core.protocols import no_progress

    making = replace(kit.making, place=folder)
    return RUNS[name.removeprefix("checkpoint of ")].go(making, no_progress)


def _load_target_answers(name: str, folder: Path, kit: Kit) -> object:
    """Load a classifier target's answers, or train again; check their shape."""
    place = folder.with_name("answers")
    place.mkdir()
    folder.rename(place / "model-0")
    making = replace(kit.making, place=place)
    return _check_answers(ANSWERING[name.removeprefix("answers of ")](making), kit)


def _check_answers(answers: Any, kit: Kit) -> object:
    """Return answers unchanged; raise AssertionError if not of the kit's texts and classes."""
    wanted = (1, len(kit.texts), len(LABELS))
    if answers is not None and (answers.shape, answers.dtype.kind) != (wanted, "f"):
        raise AssertionError(f"answers have the shape {answers.shape}, not {wanted}")
    return answers


def _load_study_answers(name: str, folder: Path, kit: Kit) -> object:
    """Load a study cell's saved answers, and check their shape."""
    return _check_answers(load_without_training(name, folder, kit.texts), kit)


def _use_network(name: str, folder: Path, kit: Kit) -> object:
    """Load a tuned or adapted network and return its score or its weights."""
    found: Any = load_without_training(name, folder, kit.texts)
    return found and (found.hits.score() if name == "tuned network" else found.service)


_OPENED: dict[str, Callable[[str, Path, Kit], object]] = {
    "attack": _invert_with_attack,
    "attack that borrows": _invert_with_borrower,
    "encoder": _encode_with_encoder,
    "defence": _encode_with_defence,
    "private classifier": _answer_with_private_classifier,
    "map": _load_map,
    "vectors of the map": _draw_map_of_vectors,
    "statistics of tokens": _use_statistics,
    "example of names": _tabulate_names,
    "shape of an encoder's vectors": _identify_with_shape,
    "checkpoint": _resume_from_checkpoint,
    "answers": _load_target_answers,
    "answers of a study": _load_study_answers,
    "tuned network": _use_network,
    "adapted network": _use_network,
}
"""By what the report calls it, or by the first word of that."""
