"""What the cells of the trade-off hold, part by part.

A defence that is trained joins all its cells with what it is trained on, so that it is the same in
each. No cell of another defence holds more than it always did.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from core.attacks.inversion.shipped import shipped_digest
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.corpora.near_duplicates import THRESHOLD
from core.defences.entries import ChainEntry, settings_by_stage
from core.defences.registry import entry_of
from core.defences.trained.registry import TRAINED_DEFENCES
from core.errors import InvalidInputError, similar
from core.registry import make
from core.specs import DefenceSpec, EncoderSpec, settings_of
from core.studies.adversarial_texts import table_digest
from core.studies.cell_attacks import settings_for
from core.studies.defence_grid import (
    hides_attribute,
    is_of_model,
    is_of_network,
    sent_by,
    trained_stage,
)
from core.studies.named_texts import NamedTexts
from core.studies.rows import Cell
from core.studies.tradeoff_attack import (
    AS_SHIPPED,
    ATTACKERS,
    N_SENTENCE_QUERIES,
    N_SENTENCES,
    SENTENCES,
    releases_tokens,
    releases_vectors,
)
from core.studies.tradeoff_attribute import READER
from core.studies.tradeoff_said import FRESH, GRID, POSTERIOR
from core.studies.tradeoff_settings import TradeoffSettings
from core.studies.tradeoff_texts import auxiliary_digest
from core.studies.tradeoff_use import contents_of
from core.training.accounting import LEAST_EPSILON
from core.training.private_heads import HeadSettings

NOBODY = "none"
"""Named in the place of attackers, where usefulness alone is measured."""

__all__ = ["MEMBER_ATTACKS", "USUAL", "check_parts", "parts_of", "trained_part"]

USUAL: dict[str, Any] = {"vocabulary_size": 20_000, "epochs": 12, "hidden": 512,
                         "substitutions": 0}  # fmt: skip
"""Settings of a classifier that is trained anew, where none ships for the encoder."""

MEMBER_ATTACKS = ("feature", "lira_online", "lira_offline", "rmia_online", "rmia_offline",
                  "bavaria")  # fmt: skip
"""On samples of a classifier."""


def check_parts(asked: TradeoffSettings, defences: list[DefenceSpec]) -> None:
    """Check that what defences need of files is there.

    Raises
    ------
    InvalidInputError
        An attribute is to be hidden and no file tells it; a private classifier and no task is
        named, there is nothing to hold it against, or no noise can keep its ε; or an odd number of
        shadows.
    """
    for spec in defences:
        if hides_attribute(spec.name, dict(spec.settings)) and not asked.attributes:
            raise InvalidInputError(
                f"{spec.name} hides an attribute, and no file tells which text has which. Name one "
                "by --attributes NAME=FILE and its column by --label-column, or leave it out."
            )
        _check_model(asked, spec, defences)
        _check_network(asked, spec, defences)
    if asked.n_shadows % 2:
        raise InvalidInputError(f"--n-shadows must be even, got {asked.n_shadows}.")


def _check_model(asked: TradeoffSettings, spec: DefenceSpec, defences: list[DefenceSpec]) -> None:
    """Raise InvalidInputError where a private classifier has no task, no peer or no such ε."""
    if not is_of_model(spec.name):
        return
    if not asked.membership:
        raise InvalidInputError(
            f"{spec.name} protects the texts that a classifier was trained on. Name the task "
            "of that classifier by --membership, or leave it out."
        )
    if 0 < dict(spec.settings).get("epsilon", LEAST_EPSILON) < LEAST_EPSILON:
        raise InvalidInputError(
            f"{spec.name} takes an epsilon of 0, for no noise, or of {LEAST_EPSILON:g} and more."
        )
    if not any(entry_of(each.name).is_baseline for each in defences):
        raise InvalidInputError(
            f"{spec.name} leaves vectors as they are, so that its words are read as without a "
            "defence. Name `none` among --defences too."
        )


def _check_network(asked: TradeoffSettings, spec: DefenceSpec, defences: list[DefenceSpec]) -> None:
    """Raise InvalidInputError where nothing says what is read of a network's input, or no task."""
    if not is_of_network(spec.name):
        return
    settings = dict(spec.settings)
    sent = sent_by(settings)
    if settings["network"] == "bilstm" and sent.name == "sequence_representation":
        raise InvalidInputError(
            "The vector of a whole text is made by the encoder that a bilstm stands in for. Take "
            "network=transformer."
        )
    if sent not in defences:
        raise InvalidInputError(
            f"{spec.name} reads what {sent.name} releases: words are read as behind that. Name "
            f"`{sent.name}:eta={settings['eta']:g}` among --defences too."
        )
    if not asked.tasks:
        raise InvalidInputError(f"{spec.name} is fine-tuned on a task. Name one by --tasks.")


def parts_of(asked: TradeoffSettings, spec: DefenceSpec) -> dict[str, Cell]:
    """Return what is measured of a defence, by part.

    One that leaves vectors as they are is not attacked for what vectors tell, nor is a network
    that reads what another defence releases.
    """
    if is_of_network(spec.name):
        return {"use": {**_used(replace(asked, pairs=(), searches=())), **_network(asked, spec)}}
    is_attacked = asked.attackers != (NOBODY,) and not is_of_model(spec.name)
    found = _attacks(asked, spec) if is_attacked else {}
    if asked.tasks or asked.pairs or asked.searches:
        found["use"] = _used(asked)
        if is_of_model(spec.name):
            found["use"] |= _head(asked, spec)
    if asked.rounds_timed and not is_of_model(spec.name):
        found["time"] = {**_shared(asked, "time"), "rounds": asked.rounds_timed}
    if asked.attributes and not is_of_model(spec.name):
        found["attribute"] = _attribute(asked, spec)
    if asked.membership:
        found["membership"] = {**_members(asked), **_head(asked, spec)}
    return found


def _shared(asked: TradeoffSettings, part: str) -> Cell:
    return {"study": "tradeoff", "part": part, "encoder": asked.encoder,
            "encoder_precision": asked.precision}  # fmt: skip


def _attacks(asked: TradeoffSettings, spec: DefenceSpec) -> dict[str, Cell]:
    """Return the cells of those who read words: of the likeliest tokens is read in one of its own.

    It needs nothing of the others, and where no tokens are released nobody reads them.
    """
    others = tuple(name for name in asked.attackers if name != POSTERIOR)
    found = {"attack": _attacked(replace(asked, attackers=others), spec)} if others else {}
    if POSTERIOR in asked.attackers and releases_tokens(spec.name):
        also = (GRID,) if releases_vectors(spec.name) else ()
        found[POSTERIOR] = _attacked(replace(asked, attackers=(POSTERIOR, *also)), spec)
    return found or {"attack": _attacked(asked, spec)}


def _attacked(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    if asked.attack != "probe_mlc":
        raise InvalidInputError(
            f"--attack must be of probe_mlc here, which can be tuned, got {asked.attack!r}."
        )
    known = (*ATTACKERS, GRID, AS_SHIPPED, SENTENCES, *FRESH)
    for name in asked.attackers:
        if name not in known:
            raise InvalidInputError(
                f"--attackers must be of {', '.join(known)}, got {name!r}." + similar(name, known)
            )
    if AS_SHIPPED in asked.attackers and not _start(asked):
        raise InvalidInputError(
            f"--attackers {AS_SHIPPED} needs an encoder that weights ship for, such as minilm, and "
            "--auxiliary, a file that holds the sentences held out from them; got --encoder "
            f"{asked.encoder} and --auxiliary {asked.auxiliary or 'none'}."
        )
    attackers = list(asked.attackers)
    if trained_stage(spec.name) and attackers != [POSTERIOR]:
        attackers += [name for name in FRESH if name not in attackers]
    return {**_shared(asked, "attack"), "attack": asked.attack, **_reads_sentences(asked),
            "attackers": attackers, "auxiliary": asked.auxiliary,
            "contents": auxiliary_digest(asked.auxiliary), "start": _start(asked),
            "settings": USUAL | settings_for(asked.attack, asked.attack_settings),
            "n_auxiliary": asked.n_auxiliary, "n_targets": asked.n_targets,
            "near": asked.near}  # fmt: skip


def _reads_sentences(asked: TradeoffSettings) -> Cell:
    """Return what identifies the reconstruction, where it attacks: it comes as it ships."""
    if SENTENCES not in asked.attackers:
        return {}
    digest = shipped_digest(EncoderSpec(name=asked.encoder), SENTENCES)
    if not (asked.auxiliary and digest):
        raise InvalidInputError(
            f"--attackers {SENTENCES} comes with the weights that ship for the encoder, so it "
            "needs one that has them, such as minilm, and --auxiliary, a file that holds the "
            f"sentences held out from them; got --encoder {asked.encoder} and --auxiliary "
            f"{asked.auxiliary or 'none'}."
        )
    return {"reconstruct_weights": digest[:16], "n_sentences": N_SENTENCES,
            "n_sentence_queries": N_SENTENCE_QUERIES}  # fmt: skip


def _start(asked: TradeoffSettings) -> str:
    """Return what identifies the weights that the attackers begin with; empty: trained anew."""
    ships = EncoderSpec(name=asked.encoder)
    return shipped_digest(ships, asked.attack) if asked.auxiliary else ""


def _used(asked: TradeoffSettings) -> Cell:
    told = (asked.tasks, asked.pairs, asked.searches)
    return {**_shared(asked, "use"), "tasks": list(asked.tasks), "pairs": list(asked.pairs),
            "searches": list(asked.searches), "contents": contents_of(*told),
            "task_near": THRESHOLD, "n_train": asked.n_train, "n_test": asked.n_test,
            "n_searched": asked.n_searched}  # fmt: skip


def _attribute(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    reader = [READER] if releases_tokens(spec.name) else []
    return {**_shared(asked, "attribute"), "attackers": [*asked.attribute_attackers, *reader],
            "attribute_attack": "linear", "contents": _table(asked),
            **_sides(asked)}  # fmt: skip


def _sides(asked: TradeoffSettings) -> Cell:
    """Return what decides which texts with the attribute are whose."""
    return {"attributes": asked.attributes, "label": asked.label_column,
            "group": asked.group_column, "near": asked.near, "n_labels": asked.n_labels,
            "n_defence": asked.n_defence, "n_attribute_known": asked.n_attribute_known,
            "n_attribute_targets": asked.n_attribute_targets}  # fmt: skip


def _table(asked: TradeoffSettings) -> str:
    return table_digest(NamedTexts.of(asked.attributes).place)


def _members(asked: TradeoffSettings) -> Cell:
    told = _task_of(asked)
    later = {name: CLASSIFIER_ATTACKS[name].version for name in MEMBER_ATTACKS
             if CLASSIFIER_ATTACKS[name].version != 1}  # fmt: skip
    return {**_shared(asked, "membership"), "task": told, "contents": contents_of((told,), ()),
            "n_attacked": asked.n_attacked, "n_shadows": asked.n_shadows,
            "attacks": list(MEMBER_ATTACKS),
            **({"attack_versions": later} if later else {})}  # fmt: skip


def _task_of(asked: TradeoffSettings) -> str:
    names = {NamedTexts.of(told).name: told for told in asked.tasks}
    if asked.membership not in names:
        raise InvalidInputError(
            f"--membership must be the name of one of --tasks ({', '.join(names) or 'none'}), got "
            f"{asked.membership!r}." + similar(asked.membership, names)
        )
    return names[asked.membership]


def _head(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return how the classifier on the vectors is trained: without noise, unless that is it."""
    own = dict(spec.settings) if is_of_model(spec.name) else {"epsilon": 0.0}
    settings = asdict(HeadSettings(**{"hidden": asked.hidden, **own}))
    return {"classifier": "private", "classifier_settings": settings}


def _network(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return how a network is fine-tuned on what is sent, as its own study does it."""
    from core.defences.trained.constrained import ConstrainedClassifier, usual_rate

    told, aside = dict(spec.settings), ("mechanism", "eta", "reader", "encoder", "seed")
    rate = usual_rate(told["sends"], told["network"])
    made = ConstrainedClassifier(learning_rate=rate, releases=asked.releases)
    settings = {k: getattr(made, k) for k in settings_of(type(made)) if k not in aside}
    if asked.releases == "every_epoch":
        del settings["releases"]  # cells of earlier versions do not say it
    return {"reader": told["network"], "reader_settings": settings}


def trained_part(asked: TradeoffSettings, spec: DefenceSpec, seed: int) -> Cell:
    """Return what joins each cell of a defence that is trained; nothing for any other.

    Of `taught` follow the texts that it is trained on, apart from those of all attackers.
    """
    stage = trained_stage(spec.name)
    if not stage:
        return {}
    entry, own = entry_of(spec.name), dict(spec.settings)
    if isinstance(entry, ChainEntry):
        own = settings_by_stage(entry, own)[stage]
    known = settings_of(TRAINED_DEFENCES[stage].kind)
    made = make(TRAINED_DEFENCES[stage], stage,
                ({"seed": seed} if "seed" in known else {}) | own)  # fmt: skip
    contents = {"auxiliary": auxiliary_digest(asked.auxiliary)}
    taught: Cell = {"n_auxiliary": asked.n_auxiliary, "n_targets": asked.n_targets,
                    "near": asked.near, "start": _start(asked), "n_defence": asked.n_defence,
                    "contents": contents}  # fmt: skip
    found: Cell = {"trained_defence": stage, "auxiliary": asked.auxiliary, "taught": taught,
                   "trained_defence_settings": {name: getattr(made, name) for name in known
                                                if name != "device"}}  # fmt: skip
    if asked.attributes:
        sides = _sides(asked)
        found["attributes"] = sides.pop("attributes")
        taught |= sides
        contents["attributes"] = _table(asked)
    if asked.membership:
        found["task"] = _task_of(asked)
        contents["task"] = contents_of((found["task"],), ())[0]
    return found
