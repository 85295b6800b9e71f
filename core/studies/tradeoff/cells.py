"""The cells of the trade-off study, by part.

All cells of a trained defence hold what it is trained on, so that it is the same in each. Cells of
other defences are unchanged by that.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from leakscope.core.attacks.inversion.shipped import shipped_digest
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.corpora.near_duplicates import THRESHOLD
from leakscope.core.defences.entries import ChainEntry, settings_by_stage
from leakscope.core.defences.registry import entry_of
from leakscope.core.defences.setting import input_mechanism
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, is_of_model, is_of_network
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.registry import make
from leakscope.core.results.rows import Cell
from leakscope.core.specs import DefenceSpec, EncoderSpec, settings_of
from leakscope.core.studies.inversion.cell_attacks import settings_for
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.tradeoff.attack import (
    AS_SHIPPED,
    ATTACKERS,
    N_SENTENCE_QUERIES,
    N_SENTENCES,
    SENTENCES,
    releases_tokens,
    releases_vectors,
)
from leakscope.core.studies.tradeoff.attribute import READER
from leakscope.core.studies.tradeoff.captions import FRESH, GRID, POSTERIOR
from leakscope.core.studies.tradeoff.defence_grid import hides_attribute, trained_stage
from leakscope.core.studies.tradeoff.settings import TradeoffSettings
from leakscope.core.studies.tradeoff.texts import auxiliary_digest
from leakscope.core.studies.tradeoff.use import contents_of
from leakscope.core.studies.training.adversarial_texts import table_digest
from leakscope.core.training.accounting import LEAST_EPSILON
from leakscope.core.training.private_heads import HeadSettings

NOBODY = "none"
"""Given instead of attackers if only utility is measured."""

USUAL: dict[str, Any] = {"vocabulary_size": 20_000, "epochs": 12, "hidden": 512, "substitutions": 0}
"""Settings of a classifier that is trained from scratch because none ships for the encoder."""

MEMBER_ATTACKS = (
    "feature",
    "lira_online",
    "lira_offline",
    "rmia_online",
    "rmia_offline",
    "bavaria",
)
"""The membership attacks on samples of a classifier."""


def check_parts(asked: TradeoffSettings, defences: list[DefenceSpec]) -> None:
    """Check that the settings name the files and tasks that the defences need.

    Raises
    ------
    InvalidInputError
        A defence hides an attribute, but no file has it; a private classifier has no task, no
        baseline, or an ε too small for any noise; or the number of shadow models is odd.
    """
    for spec in defences:
        if hides_attribute(spec.name, dict(spec.settings)) and not asked.attributes:
            raise InvalidInputError(
                f"{spec.name} hides an attribute, but no file has the attribute. Name a file by "
                "--attributes NAME=FILE and its column by --label-column, or omit the defence."
            )
        _check_model(asked, spec, defences)
        _check_network(asked, spec, defences)
    if asked.n_shadows % 2:
        raise InvalidInputError(f"--n-shadows must be even, got {asked.n_shadows}.")


def _check_model(asked: TradeoffSettings, spec: DefenceSpec, defences: list[DefenceSpec]) -> None:
    """Raise InvalidInputError if a private classifier lacks task or reference, or ε is too low."""
    if not is_of_model(spec.name):
        return
    if not asked.membership:
        raise InvalidInputError(
            f"{spec.name} protects the texts that a classifier was trained on. Name the task "
            "of that classifier by --membership, or omit the defence."
        )
    if 0 < dict(spec.settings).get("epsilon", LEAST_EPSILON) < LEAST_EPSILON:
        raise InvalidInputError(
            f"{spec.name} takes an epsilon of 0, for no noise, or of at least {LEAST_EPSILON:g}."
        )
    if not any(entry_of(each.name).is_baseline for each in defences):
        raise InvalidInputError(
            f"{spec.name} leaves vectors unchanged, so words leak as without a defence. Add `none` "
            "to --defences."
        )


def _check_network(asked: TradeoffSettings, spec: DefenceSpec, defences: list[DefenceSpec]) -> None:
    """Raise InvalidInputError if a network lacks a task, or its mechanism is not measured."""
    if not is_of_network(spec.name):
        return
    settings = dict(spec.settings)
    sent = input_mechanism(settings)
    if settings["network"] == "bilstm" and sent.name == "sequence_representation":
        raise InvalidInputError(
            "A bilstm replaces the encoder, which makes the vector of a whole text. Use "
            "network=transformer."
        )
    if sent not in defences:
        raise InvalidInputError(
            f"{spec.name} reads the output of {sent.name}, which decides its leakage. Add "
            f"`{sent.name}:eta={settings['eta']:g}` to --defences."
        )
    if not asked.tasks:
        raise InvalidInputError(f"{spec.name} is fine-tuned on a task. Name one by --tasks.")


def part_entries(asked: TradeoffSettings, spec: DefenceSpec) -> dict[str, Cell]:
    """Return the cell entries of each part that is measured of a defence.

    A defence that leaves vectors unchanged has no attacks on vectors, nor has a network that reads
    what another defence releases.
    """
    if is_of_network(spec.name):
        return {
            "use": {
                **_use_entries(replace(asked, pairs=(), searches=())),
                **_network_entries(asked, spec),
            }
        }
    is_attacked = asked.attackers != (NOBODY,) and not is_of_model(spec.name)
    found = _attack_parts(asked, spec) if is_attacked else {}
    if asked.tasks or asked.pairs or asked.searches:
        found["use"] = _use_entries(asked)
        if is_of_model(spec.name):
            found["use"] |= _head_entries(asked, spec)
    if asked.rounds_timed and not is_of_model(spec.name):
        found["time"] = {**_shared_entries(asked, "time"), "rounds": asked.rounds_timed}
    if asked.attributes and not is_of_model(spec.name):
        found["attribute"] = _attribute_entries(asked, spec)
    if asked.membership:
        found["membership"] = {**_membership_entries(asked), **_head_entries(asked, spec)}
    return found


def _shared_entries(asked: TradeoffSettings, part: str) -> Cell:
    """Return the cell entries that every part has."""
    return {
        "study": "tradeoff",
        "part": part,
        "encoder": asked.encoder,
        "encoder_precision": asked.precision,
    }


def _attack_parts(asked: TradeoffSettings, spec: DefenceSpec) -> dict[str, Cell]:
    """Return the cells of the word attackers; `posterior` has a cell of its own.

    It needs nothing from the others, and runs only if tokens are released.
    """
    others = tuple(name for name in asked.attackers if name != POSTERIOR)
    found = {"attack": _attack_entries(replace(asked, attackers=others), spec)} if others else {}
    if POSTERIOR in asked.attackers and releases_tokens(spec.name):
        also = (GRID,) if releases_vectors(spec.name) else ()
        found[POSTERIOR] = _attack_entries(replace(asked, attackers=(POSTERIOR, *also)), spec)
    return found or {"attack": _attack_entries(asked, spec)}


def _attack_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the cell entries of an attack on words, after checking the attackers."""
    if asked.attack != "probe_mlc":
        raise InvalidInputError(
            f"--attack must be probe_mlc here, which can be tuned, got {asked.attack!r}."
        )
    known = (*ATTACKERS, GRID, AS_SHIPPED, SENTENCES, *FRESH)
    for name in asked.attackers:
        if name not in known:
            raise InvalidInputError(
                f"--attackers must be among {', '.join(known)}, got {name!r}."
                + similar(name, known)
            )
    if AS_SHIPPED in asked.attackers and not _start_digest(asked):
        raise InvalidInputError(
            f"--attackers {AS_SHIPPED} needs an encoder with shipped weights, such as minilm, and "
            "--auxiliary, a file with the sentences held out from their training; got --encoder "
            f"{asked.encoder} and --auxiliary {asked.auxiliary or 'none'}."
        )
    attackers = list(asked.attackers)
    if trained_stage(spec.name) and attackers != [POSTERIOR]:
        attackers += [name for name in FRESH if name not in attackers]
    return {
        **_shared_entries(asked, "attack"),
        "attack": asked.attack,
        **_reconstruction_entries(asked),
        "attackers": attackers,
        "auxiliary": asked.auxiliary,
        "contents": auxiliary_digest(asked.auxiliary),
        "start": _start_digest(asked),
        "settings": USUAL | settings_for(asked.attack, asked.attack_settings),
        "n_auxiliary": asked.n_auxiliary,
        "n_targets": asked.n_targets,
        "near": asked.near,
    }


def _reconstruction_entries(asked: TradeoffSettings) -> Cell:
    """Return the cell entries of the reconstruction attack, if it is requested."""
    if SENTENCES not in asked.attackers:
        return {}
    digest = shipped_digest(EncoderSpec(name=asked.encoder), SENTENCES)
    if not (asked.auxiliary and digest):
        raise InvalidInputError(
            f"--attackers {SENTENCES} needs an encoder with shipped weights, such as minilm, and "
            "--auxiliary, a file with the sentences held out from their training; got --encoder "
            f"{asked.encoder} and --auxiliary {asked.auxiliary or 'none'}."
        )
    return {
        "reconstruct_weights": digest[:16],
        "n_sentences": N_SENTENCES,
        "n_sentence_queries": N_SENTENCE_QUERIES,
    }


def _start_digest(asked: TradeoffSettings) -> str:
    """Return a digest of the weights that attackers start from; "" if trained from scratch."""
    ships = EncoderSpec(name=asked.encoder)
    return shipped_digest(ships, asked.attack) if asked.auxiliary else ""


def _use_entries(asked: TradeoffSettings) -> Cell:
    """Return the cell entries of the tasks that measure utility."""
    told = (asked.tasks, asked.pairs, asked.searches)
    return {
        **_shared_entries(asked, "use"),
        "tasks": list(asked.tasks),
        "pairs": list(asked.pairs),
        "searches": list(asked.searches),
        "contents": contents_of(*told),
        "task_near": THRESHOLD,
        "n_train": asked.n_train,
        "n_test": asked.n_test,
        "n_searched": asked.n_searched,
    }


def _attribute_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the cell entries of attribute inference."""
    reader = [READER] if releases_tokens(spec.name) else []
    return {
        **_shared_entries(asked, "attribute"),
        "attackers": [*asked.attribute_attackers, *reader],
        "attribute_attack": "linear",
        "contents": _table_digest(asked),
        **_attribute_text_entries(asked),
    }


def _attribute_text_entries(asked: TradeoffSettings) -> Cell:
    """Return the cell entries that decide how texts with the attribute are split."""
    return {
        "attributes": asked.attributes,
        "label": asked.label_column,
        "group": asked.group_column,
        "near": asked.near,
        "n_labels": asked.n_labels,
        "n_defence": asked.n_defence,
        "n_attribute_known": asked.n_attribute_known,
        "n_attribute_targets": asked.n_attribute_targets,
    }


def _table_digest(asked: TradeoffSettings) -> str:
    """Return a digest of the table with the attribute."""
    return table_digest(NamedTexts.of(asked.attributes).place)


def _membership_entries(asked: TradeoffSettings) -> Cell:
    """Return the cell entries of membership inference."""
    told = _membership_task(asked)
    later = {
        name: CLASSIFIER_ATTACKS[name].version
        for name in MEMBER_ATTACKS
        if CLASSIFIER_ATTACKS[name].version != 1
    }
    return {
        **_shared_entries(asked, "membership"),
        "task": told,
        "contents": contents_of((told,), ()),
        "n_attacked": asked.n_attacked,
        "n_shadows": asked.n_shadows,
        "attacks": list(MEMBER_ATTACKS),
        **({"attack_versions": later} if later else {}),
    }


def _membership_task(asked: TradeoffSettings) -> str:
    """Return the task whose classifier is attacked; raise if it is not among the tasks."""
    names = {NamedTexts.of(told).name: told for told in asked.tasks}
    if asked.membership not in names:
        raise InvalidInputError(
            f"--membership must be the name of one of --tasks ({', '.join(names) or 'none'}), got "
            f"{asked.membership!r}." + similar(asked.membership, names)
        )
    return names[asked.membership]


def _head_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the settings of the classifier on vectors, noisy only if that is the defence."""
    own = dict(spec.settings) if is_of_model(spec.name) else {"epsilon": 0.0}
    settings = asdict(HeadSettings(**{"hidden": asked.hidden, **own}))
    return {"classifier": "private", "classifier_settings": settings}


def _network_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the settings by which a network is fine-tuned on what is sent."""
    from leakscope.core.defences.trained.constrained import ConstrainedClassifier, default_rate

    told, aside = dict(spec.settings), ("mechanism", "eta", "reader", "encoder", "seed")
    rate = default_rate(told["sends"], told["network"])
    made = ConstrainedClassifier(learning_rate=rate, releases=asked.releases)
    settings = {k: getattr(made, k) for k in settings_of(type(made)) if k not in aside}
    if asked.releases == "every_epoch":
        del settings["releases"]  # cells of earlier versions lack it
    return {"reader": told["network"], "reader_settings": settings}


def trained_defence_entries(asked: TradeoffSettings, spec: DefenceSpec, seed: int) -> Cell:
    """Return the cell entries of a trained defence and its training texts; else none.

    The entries under `taught` decide its training texts, which no attacker has.
    """
    stage = trained_stage(spec.name)
    if not stage:
        return {}
    entry, own = entry_of(spec.name), dict(spec.settings)
    if isinstance(entry, ChainEntry):
        own = settings_by_stage(entry, own)[stage]
    known = settings_of(TRAINED_DEFENCES[stage].kind)
    made = make(TRAINED_DEFENCES[stage], stage, ({"seed": seed} if "seed" in known else {}) | own)
    contents = {"auxiliary": auxiliary_digest(asked.auxiliary)}
    taught: Cell = {
        "n_auxiliary": asked.n_auxiliary,
        "n_targets": asked.n_targets,
        "near": asked.near,
        "start": _start_digest(asked),
        "n_defence": asked.n_defence,
        "contents": contents,
    }
    found: Cell = {
        "trained_defence": stage,
        "auxiliary": asked.auxiliary,
        "taught": taught,
        "trained_defence_settings": {
            name: getattr(made, name) for name in known if name != "device"
        },
    }
    if asked.attributes:
        sides = _attribute_text_entries(asked)
        found["attributes"] = sides.pop("attributes")
        taught |= sides
        contents["attributes"] = _table_digest(asked)
    if asked.membership:
        found["task"] = _membership_task(asked)
        contents["task"] = contents_of((found["task"],), ())[0]
    return found
