"""Encoders, attacks and results that are loaded once and shared by all sessions; no user input."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from leakscope.core.assets import ASSETS
from leakscope.core.attacks.inversion.job import with_settings
from leakscope.core.errors import CoreError, InvalidInputError
from leakscope.core.jobs import Jobs
from leakscope.core.protocols import Encoder, InversionAttack
from leakscope.core.specs import AttackSpec, EncoderSpec
from leakscope.dashboard.server import policy

if TYPE_CHECKING:
    from leakscope.core.defences.deniability.engine import DeniabilityEngine
    from leakscope.core.defences.deniability.geometry import Geometry
    from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
    from leakscope.core.results import Score
    from leakscope.core.results.rows import Row
    from leakscope.core.studies.inversion.representation_summary import Representations
    from leakscope.core.studies.membership.shipped import Measured
    from leakscope.core.studies.memorisation.summary import Memorisation
    from leakscope.core.studies.training.summary import Summary

_LOADING = threading.RLock()
"""Held while an encoder or a corpus loads, so that parallel sessions load it only once."""


@st.cache_resource(show_spinner=False, max_entries=2)
def encoder(spec: EncoderSpec) -> Encoder:
    """Load an encoder by its spec, cached; raise if the server's policy forbids it to visitors.

    Raises
    ------
    InvalidInputError
        The policy forbids this encoder.
    """
    from leakscope.core.encoders import load_encoder

    if not policy.current_policy().may_load(spec.name):
        raise InvalidInputError("Visitors of this server may not load this encoder.")
    with _LOADING:
        found = load_encoder(spec)
        _freeze_garbage_collector()
    return found


def _freeze_garbage_collector() -> None:
    """Exclude all present objects from garbage collection.

    Streamlit collects garbage after each script run. The half million objects of an encoder's
    libraries would cost each run, also of a progress bar, a third of a second of CPU time.
    """
    gc.unfreeze()  # so that an encoder dropped from the cache is collected
    gc.collect()
    gc.freeze()


@st.cache_resource(show_spinner=False, max_entries=16)
def open_attack_once(name: str, on: EncoderSpec) -> InversionAttack:
    """Load an attack on an encoder with default settings, cached for all sessions."""
    from leakscope.core.attacks.inversion import open_attack

    ready = open_attack(name, encoder(on))
    opened_attacks().add((name, on))
    return ready


def attack(spec: AttackSpec, on: EncoderSpec) -> InversionAttack:
    """Return a loaded attack with a spec's settings; its arrays are shared with the cached one.

    Raises
    ------
    InvalidInputError
        A setting is outside its range; the message states the range.
    """
    return with_settings(open_attack_once(spec.name, on), spec)


def opens_fast(name: str, on: EncoderSpec) -> bool:
    """Return whether an attack opens without encoding a word list or a pool of sentences."""
    from leakscope.core.attacks.inversion import INVERSION_ATTACKS

    is_stored = _shipped_meta(name, on).exists()
    return (
        is_stored
        or (name, on) in opened_attacks()
        or not hasattr(INVERSION_ATTACKS[name].kind, "open")
    )


@st.cache_resource(show_spinner=False)
def opened_attacks() -> set[tuple[str, EncoderSpec]]:
    """Return the shared set of (attack name, encoder) pairs that are loaded; callers add to it."""
    return set()


def is_open(on: EncoderSpec) -> bool:
    """Return whether any attack on an encoder is loaded."""
    return any(own == on for _, own in opened_attacks())


@st.cache_resource(show_spinner=False, max_entries=32)
def prior_answer(name: str, on: EncoderSpec, stop_words: bool) -> frozenset[str]:
    """Return the words that an attack's prior-only baseline (no vector) answers, cached."""
    from leakscope.core.attacks.inversion.reading import prior_words

    return prior_words(encoder(on), open_attack_once(name, on), stop_words)


@st.cache_data(show_spinner=False, max_entries=1)
def samples() -> list[dict[str, str]]:
    """Read the invented sample sentences as dictionaries (id, title, icon, text), cached."""
    text = (ASSETS / "samples" / "samples.json").read_text(encoding="utf-8")
    return list(json.loads(text))


@st.cache_data(show_spinner=False, max_entries=1)
def name_samples() -> dict[str, list[str]]:
    """Read the invented names, and sentences that contain them, as lists by key; cached."""
    text = (ASSETS / "samples" / "names.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


@st.cache_data(show_spinner=False, max_entries=1)
def name_rows() -> list[Row]:
    """Load the shipped result rows of the study of names."""
    from leakscope.core.studies.names.tables import load_rows

    return load_rows()


@st.cache_data(show_spinner=False, max_entries=1)
def attribute_rows() -> list[Row]:
    """Load the shipped result rows of the attribute-inference study."""
    from leakscope.core.studies.attributes import curves as attribute_curves

    return attribute_curves.load_shipped(attribute_curves.SHIPPED)


@st.cache_data(show_spinner=False, max_entries=1)
def attribute_corpora() -> list[str]:
    """Return the names of corpora on this computer that have an attribute label."""
    from leakscope.core.attacks.attributes.sources import ATTRIBUTE_CORPORA, is_available

    return [name for name in ATTRIBUTE_CORPORA if is_available(name)]


@st.cache_resource(show_spinner=False, max_entries=4)
def corpus_sentences(name: str) -> tuple[str, ...]:
    """Read the sentences of a named corpus that is on this computer, cached."""
    from leakscope.core.corpora import load_corpus

    with _LOADING:
        return tuple(load_corpus(name).texts)


@st.cache_data(show_spinner=False, max_entries=4)
def shipped_records(on: EncoderSpec) -> dict[str, dict[str, Any]]:
    """Load the training record of each shipped attack on an encoder, by attack name."""
    from leakscope.core.attacks.inversion import INVERSION_ATTACKS
    from leakscope.core.storage.artifacts import read_record

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
    """Read the settings stored with an attack's shipped weights; {} if none ship."""
    from leakscope.core.storage.artifacts import read_record

    path = _shipped_meta(attack, on)
    return dict(read_record(path, settings=dict)["settings"]) if path.exists() else {}


def _shipped_meta(attack: str, on: EncoderSpec) -> Path:
    """Return the path of the metadata of an attack's shipped weights."""
    from leakscope.core.attacks.inversion import shipped

    return shipped.WEIGHTS / on.name.replace(":", "_").replace("/", "_") / attack / "model.json"


@st.cache_resource(show_spinner=False, max_entries=2)
def deniability_engine(on: EncoderSpec) -> DeniabilityEngine:
    """Sample the noise for all deniability statistics of an encoder; cached, about 300 MB."""
    from leakscope.core.defences.deniability.engine import DeniabilityEngine
    from leakscope.core.defences.metric_dp.candidates import candidate_ids
    from leakscope.core.defences.metric_dp.eta_grid import eta_grid
    from leakscope.core.encoders.white_box import require_white_box

    open_encoder = require_white_box(encoder(on), "deniability")
    with _LOADING:
        return DeniabilityEngine(
            open_encoder.token_vectors.detach().float().cpu().numpy(),
            candidate_ids(open_encoder),
            eta_min=float(eta_grid(open_encoder.dimension)[0]),
        )


def token_statistics(on: EncoderSpec) -> tuple[VocabularyDeniability, Geometry] | None:
    """Load the deniability statistics and distances of all tokens; None if not measured yet."""
    from leakscope.core.defences.deniability.measured import find_statistics
    from leakscope.core.encoders.white_box import require_white_box

    folder = find_statistics(require_white_box(encoder(on), "deniability"))
    return None if folder is None else _loaded_statistics(on, folder)


@st.cache_resource(show_spinner=False, max_entries=2)
def _loaded_statistics(on: EncoderSpec, folder: Path) -> tuple[VocabularyDeniability, Geometry]:
    """Load the deniability statistics and distances from a folder."""
    from leakscope.core.defences.deniability.geometry import load_geometry
    from leakscope.core.defences.deniability.measured import GEOMETRY
    from leakscope.core.defences.deniability.vocabulary import load_vocabulary
    from leakscope.core.encoders.white_box import require_white_box

    open_encoder = require_white_box(encoder(on), "deniability")
    return load_vocabulary(folder, open_encoder), load_geometry(folder / GEOMETRY, open_encoder)


@st.cache_resource(show_spinner=False, max_entries=1)
def membership() -> list[Measured]:
    """Load the shipped results of the membership studies; empty if none ship."""
    from leakscope.core.studies.membership import shipped as membership_shipped

    return membership_shipped.load_measured(membership_shipped.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def representations() -> Representations:
    """Load the shipped results of the encoder comparison: utility and leakage."""
    from leakscope.core.studies.inversion import representation_summary

    return representation_summary.load_representations(representation_summary.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def memorisation() -> Memorisation:
    """Load the shipped results of the study of planted canaries."""
    from leakscope.core.studies.memorisation import summary as memorisation_summary

    return memorisation_summary.load_memorisation(memorisation_summary.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def token_replacements() -> list[Row]:
    """Load the shipped rows on which tokens replace a token under each mechanism."""
    from leakscope.core.studies.deniability import replacements

    return replacements.load_replacements(replacements.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=4)
def training(study: str) -> Summary:
    """Load the shipped results of one study of privacy-preserving training."""
    from leakscope.core.studies.training import summary as training_summary

    return training_summary.load_part(study, training_summary.SHIPPED)


@st.cache_resource(show_spinner=False, max_entries=1)
def recall_under_noise() -> dict[tuple[str, float], Score]:
    """Load the shipped scores of words recovered from noisy network inputs, by mechanism and η."""
    from leakscope.core.studies.training import summary as training_summary

    return training_summary.load_read_under_noise(training_summary.RECOVERED)


@st.cache_data(show_spinner=False, max_entries=8)
def token_counts(corpus: str, on: EncoderSpec) -> dict[int, int]:
    """Count each token of a named corpus with an encoder's tokenizer; return counts by token id."""
    from leakscope.core.defences.deniability.eta_choice import corpus_counts
    from leakscope.core.encoders.white_box import require_white_box

    return corpus_counts(require_white_box(encoder(on), "counting"), corpus_sentences(corpus))


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Return the queue of background jobs that the whole server shares."""
    return Jobs()
