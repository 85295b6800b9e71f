"""Readers of artefacts, each given what is damaged: of its bytes, or sealed again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from tools.fuzz.damage import damaged_artefact
from tools.fuzz.kit import Kit, opened
from tools.fuzz.making import LABELS, LENDER, N_VECTORS, Artefact, map_vectors
from tools.fuzz.play import Case
from tools.fuzz.resuming import ANSWERING, RUNS, kept

__all__ = ["artefacts", "read_artefact"]

_TEXTS = ["The minister met the doctor.", "A letter from the river."]


@st.composite
def artefacts(draw: Callable[..., Any], kit: Kit, name: str) -> Case:
    """Draw a damaged artefact: of its bytes, or sealed again with other content."""
    whole = kit.artefacts[name]
    changed = draw(damaged_artefact(whole))
    is_torn = draw(st.integers(0, 3)) == 0
    edit = draw(st.integers(0, 10_000))

    def read(folder: Path) -> object:
        _save(folder / "a", changed)
        if is_torn:
            _tear(folder / "a", edit)
        return read_artefact(name, folder / "a", kit)

    return Case(name, read=read)


def read_artefact(name: str, folder: Path, kit: Kit) -> object:
    """Read the artefact of a folder as what calls itself so is read, and use it."""
    return _OPENED[name if name in _OPENED else name.partition(" ")[0]](name, folder, kit)


def _save(folder: Path, artefact: Artefact) -> None:
    from core.store import save_artifact, write_json

    meta = artefact.meta
    if isinstance(meta, dict):
        save_artifact(folder, artefact.arrays, meta)
    else:
        write_json(folder / "model.json", meta)


def _tear(folder: Path, edit: int) -> None:
    """Change a byte of one of the files, or cut it there."""
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
    from core.attacks.inversion.shipped import load_attack

    attack, encoder = load_attack(folder), opened(kit.folder)
    return attack.invert(encoder, encoder.encode(_TEXTS))


def _encoder(name: str, folder: Path, kit: Kit) -> object:
    """Read an encoder; where its fingerprint refuses it, as if that had been changed as well."""
    from core.encoders import bag_of_words, doc2vec, lsa, word_average
    from core.encoders.fitted import load_fitted
    from core.errors import ArtifactError
    from core.store import META, read_json

    try:
        return load_fitted(folder).encode(_TEXTS)
    except ArtifactError:
        meta = read_json(folder / META)
    told = meta.get("fingerprint") if isinstance(meta, dict) else None
    with ExitStack() as stack:
        for module in (bag_of_words, doc2vec, lsa, word_average):
            stack.enter_context(patch.object(module, "fingerprint_of", lambda *_: told))
        return load_fitted(folder).encode(_TEXTS)


def _layout(name: str, folder: Path, kit: Kit) -> object:
    from core.projection.cached import load_layout
    from core.projection.spec import ProjectionSpec

    return load_layout(folder, map_vectors(), ProjectionSpec(method="pca"))


def _statistics(name: str, folder: Path, kit: Kit) -> object:
    from core.defences.deniability.vocabulary import load_vocabulary

    found = load_vocabulary(folder)
    return found.at(20.0)


def _borrower(name: str, folder: Path, kit: Kit) -> object:
    shutil.copytree(kit.artefacts.place(name).with_name(LENDER), folder.with_name(LENDER))
    return _attack(name, folder, kit)


def _defence(name: str, folder: Path, kit: Kit) -> object:
    from core.defences.trained.opening import open_defended
    from core.specs import EncoderSpec

    spec = EncoderSpec(name=f"defended:{folder}", precision="float32", device="cpu")
    return open_defended(spec, str(folder)).encode(_TEXTS)


def _private(name: str, folder: Path, kit: Kit) -> object:
    from core.defences.trained.private import load_training

    return load_training(folder).answer(opened(kit.folder), _TEXTS)


def _shape(name: str, folder: Path, kit: Kit) -> object:
    from core.audit.identification import KnownSpace, identify

    return identify(kit.making.vectors, [KnownSpace.load(folder)], n_rotations=2)


def _vectors(name: str, folder: Path, kit: Kit) -> object:
    from core.projection import shipped
    from core.projection.layout import project
    from core.projection.spec import ProjectionSpec
    from core.store import write_json

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
    """As many texts as there are vectors."""

    content_hash = "h"

    def __len__(self) -> int:
        return N_VECTORS


def _names(name: str, folder: Path, kit: Kit) -> object:
    from core.names.shipped import unpacked
    from core.store import load_artifact

    found = unpacked(*load_artifact(folder))
    matrix = found.substitution
    told = [matrix.diagonal(), matrix.exchanged(), matrix.wrongly_said(), matrix.ranked_first()]
    return found.table(), told, [probing.hits(1) for probing in found.probes.values()]


def _checkpoint(name: str, folder: Path, kit: Kit) -> object:
    from core.protocols import no_progress

    making = replace(kit.making, place=folder)
    return RUNS[name.removeprefix("checkpoint of ")].go(making, no_progress)


def _answers(name: str, folder: Path, kit: Kit) -> object:
    place = folder.with_name("answers")
    place.mkdir()
    folder.rename(place / "model-0")
    making = replace(kit.making, place=place)
    return _fitting(ANSWERING[name.removeprefix("answers of ")](making), kit)


def _fitting(answers: Any, kit: Kit) -> object:
    """Raise what counts as a fault where answers are not of the texts and classes."""
    wanted = (1, len(kit.texts), len(LABELS))
    if answers is not None and (answers.shape, answers.dtype.kind) != (wanted, "f"):
        raise AssertionError(f"answers have the shape {answers.shape}, not {wanted}")
    return answers


def _kept_answers(name: str, folder: Path, kit: Kit) -> object:
    return _fitting(kept(name, folder, kit.texts), kit)


def _network(name: str, folder: Path, kit: Kit) -> object:
    found: Any = kept(name, folder, kit.texts)
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
    "answers of a study": _kept_answers,
    "tuned network": _network,
    "adapted network": _network,
}
"""By what the report calls it, or by the first word of that."""
