"""What is loaded once and shared by all sessions; never anything that a user typed."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.assets import ASSETS
from core.attacks.inversion.job import with_settings
from core.errors import CoreError, InvalidInputError
from core.jobs import Jobs
from core.protocols import Encoder, InversionAttack
from core.specs import AttackSpec, EncoderSpec
from dashboard import policy

if TYPE_CHECKING:
    from core.defences.deniability.engine import DeniabilityEngine
    from core.defences.deniability.geometry import Geometry
    from core.defences.deniability.vocabulary import VocabularyDeniability
    from core.results import Score
    from core.studies.membership_shipped import Measured
    from core.studies.memorisation_summary import Memorisation
    from core.studies.representation_summary import Representations
    from core.studies.rows import Row
    from core.studies.tradeoff_summary import Tradeoff
    from core.studies.training_summary import Summary

__all__ = [
    "attack",
    "attribute_corpora",
    "attribute_rows",
    "corpus_sentences",
    "deniability_engine",
    "encoder",
    "guess",
    "is_open",
    "jobs",
    "membership",
    "memorisation",
    "name_rows",
    "name_samples",
    "open_names",
    "opened",
    "opens_at_once",
    "representations",
    "samples",
    "shipped_records",
    "shipped_settings",
    "token_counts",
    "token_statistics",
    "tradeoff",
    "training",
]

_LOADING = threading.RLock()
"""Held while the encoder or a corpus loads: sessions that start at once must not do it twice."""


@st.cache_resource(show_spinner=False, max_entries=2)
def encoder(spec: EncoderSpec) -> Encoder:
    """Open an encoder that visitors may load.

    Raises
    ------
    InvalidInputError
        They may not.
    """
    from core.encoders import load_encoder

    if not policy.in_force().may_load(spec.name):
        raise InvalidInputError("Visitors of this server may not load this encoder.")
    with _LOADING:
        found = load_encoder(spec)
        _set_aside()
    return found


def _set_aside() -> None:
    """Take all that there is now out of the way of the garbage collector.

    Streamlit has it run after each script, and the half million objects of the libraries of an
    encoder would cost every page, and every look at a job, a third of a second of the processor.
    """
    gc.unfreeze()  # an encoder that was given up meanwhile goes
    gc.collect()
    gc.freeze()


@st.cache_resource(show_spinner=False, max_entries=16)
def opened(name: str, on: EncoderSpec) -> InversionAttack:
    """Open an attack with the settings that it has by itself."""
    from core.attacks.inversion import open_attack

    ready = open_attack(name, encoder(on))
    open_names().add((name, on))
    return ready


def attack(spec: AttackSpec, on: EncoderSpec) -> InversionAttack:
    """Return an attack with the settings of a spec; its arrays are shared, not copied.

    Raises
    ------
    InvalidInputError
        A value outside its range; the message names the range.
    """
    return with_settings(opened(spec.name, on), spec)


def opens_at_once(name: str, on: EncoderSpec) -> bool:
    """Return whether an attack need not encode a word list or a pool of sentences first."""
    from core.attacks.inversion import INVERSION_ATTACKS

    is_stored = _shipped_meta(name, on).exists()
    return (
        is_stored or (name, on) in open_names() or not hasattr(INVERSION_ATTACKS[name].kind, "open")
    )


@st.cache_resource(show_spinner=False)
def open_names() -> set[tuple[str, EncoderSpec]]:
    """Return the attacks that are open."""
    return set()


def is_open(on: EncoderSpec) -> bool:
    """Return whether an attack on an encoder is open, and so the encoder itself."""
    return any(own == on for _, own in open_names())


@st.cache_resource(show_spinner=False, max_entries=32)
def guess(name: str, on: EncoderSpec, stop_words: bool) -> frozenset[str]:
    """Return the words that the attacker who never sees the vector answers."""
    from core.attacks.inversion.reading import prior_words

    return prior_words(encoder(on), opened(name, on), stop_words)


@st.cache_data(show_spinner=False, max_entries=1)
def samples() -> list[dict[str, str]]:
    """Return the sample sentences: id, title, icon, text; people and events are invented."""
    text = (ASSETS / "samples" / "samples.json").read_text(encoding="utf-8")
    return list(json.loads(text))


@st.cache_data(show_spinner=False, max_entries=1)
def name_samples() -> dict[str, list[str]]:
    """Return names and sentences that hold them; people and events are invented."""
    text = (ASSETS / "samples" / "names.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


@st.cache_data(show_spinner=False, max_entries=1)
def name_rows() -> list[Row]:
    """Return what the study of names measured."""
    from core.studies.names_tables import load_rows

    return load_rows()


@st.cache_data(show_spinner=False, max_entries=1)
def attribute_rows() -> list[Row]:
    """Return what the study of attributes measured."""
    from core.studies import attribute_curves

    return attribute_curves.load_shipped(attribute_curves.SHIPPED)


@st.cache_data(show_spinner=False, max_entries=1)
def attribute_corpora() -> list[str]:
    """Return the corpora with an attribute that are on this machine."""
    from core.attacks.attributes.sources import ATTRIBUTE_CORPORA, is_at_hand

    return [name for name in ATTRIBUTE_CORPORA if is_at_hand(name)]


@st.cache_resource(show_spinner=False, max_entries=4)
def corpus_sentences(name: str) -> tuple[str, ...]:
    """Return the sentences of a corpus that is on this machine."""
    from core.corpora import load_corpus

    with _LOADING:
        return tuple(load_corpus(name).texts)


@st.cache_data(show_spinner=False, max_entries=4)
def shipped_records(on: EncoderSpec) -> dict[str, dict[str, Any]]:
    """Return what was measured when each shipped attack was trained, by attack."""
    from core.attacks.inversion import INVERSION_ATTACKS
    from core.store import read_record

    records = {}
    for name in INVERSION_ATTACKS:
        try:
            record = dict(read_record(_shipped_meta(name, on), training=dict)["training"])
        except CoreError:
            continue
        if record.get("held_out"):
            records[name] = record
    return records


@st.cache_data(show_spinner=False, max_entries=32)
def shipped_settings(attack: str, on: EncoderSpec) -> dict[str, Any]:
    """Return the settings of the weights that ship for an attack; none where none ship."""
    from core.store import read_record

    path = _shipped_meta(attack, on)
    return dict(read_record(path, settings=dict)["settings"]) if path.exists() else {}


def _shipped_meta(attack: str, on: EncoderSpec) -> Path:
    from core.attacks.inversion import shipped

    return shipped.WEIGHTS / on.name.replace(":", "_").replace("/", "_") / attack / "model.json"


@st.cache_resource(show_spinner=False, max_entries=2)
def deniability_engine(on: EncoderSpec) -> DeniabilityEngine:
    """Draw the noise that the statistics of every session share; about 300 MB."""
    from core.defences.deniability.engine import DeniabilityEngine
    from core.defences.deniability.vocabulary import eta_grid
    from core.defences.metric_dp.candidates import candidate_ids
    from core.encoders.white_box import require_white_box

    open_encoder = require_white_box(encoder(on), "deniability")
    with _LOADING:
        return DeniabilityEngine(
            open_encoder.token_vectors.detach().float().cpu().numpy(),
            candidate_ids(open_encoder),
            eta_min=float(eta_grid(open_encoder.dimension)[0]),
        )


def token_statistics(on: EncoderSpec) -> tuple[VocabularyDeniability, Geometry] | None:
    """Return the statistics of all tokens and their distances; None where not yet measured."""
    from core.defences.deniability.measured import find_statistics
    from core.encoders.white_box import require_white_box

    folder = find_statistics(require_white_box(encoder(on), "deniability"))
    return None if folder is None else _loaded_statistics(on, folder)


@st.cache_resource(show_spinner=False, max_entries=2)
def _loaded_statistics(on: EncoderSpec, folder: Path) -> tuple[VocabularyDeniability, Geometry]:
    from core.defences.deniability.geometry import load_geometry
    from core.defences.deniability.measured import GEOMETRY
    from core.defences.deniability.vocabulary import load_vocabulary
    from core.encoders.white_box import require_white_box

    open_encoder = require_white_box(encoder(on), "deniability")
    return load_vocabulary(folder, open_encoder), load_geometry(folder / GEOMETRY, open_encoder)


@st.cache_resource(show_spinner=False, max_entries=2)
def tradeoff(on: EncoderSpec) -> Tradeoff:
    """Return the shipped trade-off between usefulness and leakage."""
    from core.studies.tradeoff_files import shipped_tradeoff

    return shipped_tradeoff(on.name)


@st.cache_resource(show_spinner=False, max_entries=1)
def membership() -> list[Measured]:
    """Return what the studies of membership measured; empty where nothing ships."""
    from core.studies import membership_shipped

    return membership_shipped.load_measured(membership_shipped.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def representations() -> Representations:
    """Return what was measured of encoders: usefulness and leakage."""
    from core.studies import representation_summary

    return representation_summary.load_representations(representation_summary.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def memorisation() -> Memorisation:
    """Return what was measured of planted canaries."""
    from core.studies import memorisation_summary

    return memorisation_summary.load_memorisation(memorisation_summary.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def replaced_tokens() -> list[Row]:
    """Return what was measured of what replaces a token behind each mechanism."""
    from core.studies import replacements

    return replacements.load_replacements(replacements.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=4)
def training(study: str) -> Summary:
    """Return what one of the studies of training for privacy measured."""
    from core.studies import training_summary

    return training_summary.load_part(study, training_summary.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def read_under_noise() -> dict[tuple[str, float], Score]:
    """Return what is read of what users send to networks under noise, by mechanism and η."""
    from core.studies import read_under_noise as measured

    return measured.load_read_under_noise(measured.SHIPPED)


@st.cache_data(show_spinner=False, max_entries=8)
def token_counts(corpus: str, on: EncoderSpec) -> dict[int, int]:
    """Count the tokens of a corpus that is on this machine."""
    from core.defences.deniability.eta_choice import corpus_counts
    from core.encoders.white_box import require_white_box

    return corpus_counts(require_white_box(encoder(on), "counting"), corpus_sentences(corpus))


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Return the queue of slow work, one for the whole server."""
    return Jobs()
