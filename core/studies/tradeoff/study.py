"""The trade-off study: utility against leakage of each defence.

Every defence at every strength is measured under several seeds, in two cells or more: how many
words attackers who know the defence recover (`attack`), and the utility of its vectors (`use`);
where files for it are given, what attackers infer of an attribute, and the membership of a
classifier's training texts. The texts of a cell are read from the files that it names. All cells of
a trained defence hold what it is trained on, so that it is the same in each; cells of other
defences are unchanged by that.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.shipped import shipped_digest
from leakscope.core.corpora import bundled_sentences
from leakscope.core.corpora.near_duplicates import THRESHOLD
from leakscope.core.defences.entries import ChainEntry, settings_by_stage
from leakscope.core.defences.registry import entry_of
from leakscope.core.defences.setting import input_mechanism
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, is_of_model, is_of_network
from leakscope.core.defences.trained.under_noise.registry import RELEASES
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.protocols import Encoder
from leakscope.core.registry import make
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import DefenceSpec, EncoderSpec, setting, settings_of
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.inversion.cell_attacks import settings_for
from leakscope.core.studies.named_texts import NamedTexts, contents_of, parse_named_texts
from leakscope.core.studies.runner import cell_key
from leakscope.core.studies.tradeoff.attack import (
    AS_SHIPPED,
    ATTACKERS,
    N_SENTENCE_QUERIES,
    N_SENTENCES,
    READER,
    SENTENCES,
    attack_scores,
    inferred_scores,
    releases_tokens,
    releases_vectors,
)
from leakscope.core.studies.tradeoff.defence_grid import (
    GRID,
    chosen_defences,
    hides_attribute,
    trained_stage,
)
from leakscope.core.studies.tradeoff.guards import Guard, draw_word_texts, guard_of
from leakscope.core.studies.tradeoff.summary import FRESH, POSTERIOR, ROUNDING_GRID
from leakscope.core.studies.tradeoff.tables import markdown as markdown
from leakscope.core.studies.tradeoff.texts import auxiliary_digest
from leakscope.core.studies.tradeoff.trained_defences import check_unchanged
from leakscope.core.studies.tradeoff.use import (
    Found,
    HeadUse,
    NetworkUse,
    member_scores,
    use_scores,
)
from leakscope.core.studies.training.adversarial_attack import ATTRIBUTE_ATTACKERS
from leakscope.core.studies.training.adversarial_texts import table_digest
from leakscope.core.studies.training.private_training import attack_entries
from leakscope.core.training.accounting import LEAST_EPSILON
from leakscope.core.training.private_heads import HeadSettings
from leakscope.core.training.record import hardware


@dataclass(frozen=True, kw_only=True)
class TradeoffSettings:
    """The settings of the trade-off study."""

    tasks: tuple[str, ...] = setting(
        (), "tasks that measure utility: NAME=FILE of texts with a `label`", holds="labelled"
    )
    pairs: tuple[str, ...] = setting(
        (), "tasks with scored pairs: NAME=FILE like the STS benchmark", holds="pairs"
    )
    searches: tuple[str, ...] = setting(
        (),
        "search tasks: NAME=FILE, or NAME=FILE:COLUMN=VALUE, with question1 and question2; or "
        "NAME=FILE of texts with a `label`, to be found by texts with the same label",
        holds="searches",
    )
    encoder: str = setting("minilm", "the encoder that is defended")
    precision: str = setting("auto", "precision of the encoder's matrix products")
    defences: tuple[str, ...] = setting(
        tuple(dict.fromkeys(spec.name for spec in GRID)),
        "defences by name, at all strengths, or one as NAME:SETTING=VALUE; includes trained "
        "defences, and private_head, which protects a classifier's training texts",
    )
    attackers: tuple[str, ...] = setting(
        ATTACKERS,
        "attackers of each defence, which they know; trained defences also face `retrieval`; "
        "`shipped` adds the shipped search, and `reconstruct` the reconstruction of some "
        "sentences; `none` alone measures only utility",
    )
    attack: str = setting("probe_mlc", "the attack classifier, tuned on each defence")
    auxiliary: str = setting(
        "",
        "auxiliary texts of the attacker, and the targets: a file with the sentences held out "
        "from the shipped weights; by default, bundled sentences, and attackers trained from "
        "scratch",
        holds="corpus",
    )
    n_auxiliary: int = setting(20_000, "sentences to train the attackers on", low=20)
    n_targets: int = setting(300, "sentences under attack", low=1)
    near: float = near_duplicate_setting()
    n_train: int = setting(0, "most training texts per task; 0: all", low=0)
    n_test: int = setting(0, "most test texts, or pairs, per task; 0: all", low=0)
    n_searched: int = setting(2000, "number of texts in a search task", low=2)
    seeds: tuple[int, ...] = setting((0, 1, 2), "random seeds, one run each", low=0)
    attack_settings: tuple[tuple[str, Any], ...] = setting(
        (), "a setting of the attackers that are trained from scratch", flag="set"
    )
    releases: str = setting(
        "once",
        "noisy copies of each training text of a network under noise: one, as attackers have, or "
        "a fresh one per epoch, as in the paper, whose odds compose",
        choices=RELEASES,
    )
    rounds_timed: int = setting(
        0,
        "timings of a defence, in turn with the encoder alone, of which the least counts; 0: one "
        "timing, together with utility",
        low=0,
        high=50,
    )
    attributes: str = setting(
        "",
        "texts with an attribute to infer: NAME=FILE, a table in reading order; without a file, no "
        "attribute is attacked",
        holds="attributes",
    )
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting("", "column of the source of each text, such as a book")
    attribute_attackers: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKERS),
        "attackers that infer the attribute",
        choices=tuple(ATTRIBUTE_ATTACKERS),
    )
    n_labels: int = setting(20, "values of the attribute to distinguish, drawn at random", low=2)
    n_attribute_known: int = setting(
        8000, "training texts of the attackers on the attribute", low=40
    )
    n_attribute_targets: int = setting(600, "texts whose attribute is inferred", low=20)
    n_defence: int = setting(
        8000, "training texts of a trained defence, separate from the attackers'", low=40
    )
    membership: str = setting(
        "",
        "name of the task whose classifier is attacked for its training texts; by default, none",
    )
    hidden: int = setting(256, "units of that classifier's hidden layer; 0: none", low=0, high=4096)
    n_attacked: int = setting(4000, "texts attacked for membership, half of them members", low=40)
    n_shadows: int = setting(16, "shadow models on random halves; an even number", low=2)


NOBODY = "none"
"""Given instead of attackers if only utility is measured."""

USUAL: dict[str, Any] = {"vocabulary_size": 20_000, "epochs": 12, "hidden": 512, "substitutions": 0}
"""Settings of a classifier that is trained from scratch because none ships for the encoder."""


def check_parts(asked: TradeoffSettings, defences: list[DefenceSpec]) -> None:
    """Raise InvalidInputError unless the files and tasks that the defences need are named.

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
    """Return, by part (`attack`, `use`, …), the cell entries to measure of a defence.

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
    """Return the cell entries of the word attackers by part; `posterior` has a part of its own.

    It needs nothing from the others, and runs only if tokens are released.
    """
    others = tuple(name for name in asked.attackers if name != POSTERIOR)
    found = {"attack": _attack_entries(replace(asked, attackers=others), spec)} if others else {}
    if POSTERIOR in asked.attackers and releases_tokens(spec.name):
        also = (ROUNDING_GRID,) if releases_vectors(spec.name) else ()
        found[POSTERIOR] = _attack_entries(replace(asked, attackers=(POSTERIOR, *also)), spec)
    return found or {"attack": _attack_entries(asked, spec)}


def _attack_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the cell entries of an attack on words, after checking the attackers."""
    if asked.attack != "probe_mlc":
        raise InvalidInputError(
            f"--attack must be probe_mlc here, which can be tuned, got {asked.attack!r}."
        )
    known = (*ATTACKERS, ROUNDING_GRID, AS_SHIPPED, SENTENCES, *FRESH)
    for name in asked.attackers:
        if name not in known:
            raise InvalidInputError(
                f"--attackers must be among {', '.join(known)}, got {name!r}."
                + similar(name, known)
            )
    for name, weights in ((AS_SHIPPED, asked.attack), (SENTENCES, SENTENCES)):
        ships = asked.auxiliary and shipped_digest(EncoderSpec(name=asked.encoder), weights)
        if name in asked.attackers and not ships:
            raise InvalidInputError(
                f"--attackers {name} needs an encoder with shipped weights, such as minilm, and "
                "--auxiliary, a file with the sentences held out from their training; got "
                f"--encoder {asked.encoder} and --auxiliary {asked.auxiliary or 'none'}."
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
        **_copied(asked, "n_auxiliary", "n_targets", "near"),
    }


def _reconstruction_entries(asked: TradeoffSettings) -> Cell:
    """Return the cell entries of the reconstruction attack, if it is requested."""
    if SENTENCES not in asked.attackers:
        return {}
    digest = shipped_digest(EncoderSpec(name=asked.encoder), SENTENCES)
    return {
        "reconstruct_weights": digest[:16],
        "n_sentences": N_SENTENCES,
        "n_sentence_queries": N_SENTENCE_QUERIES,
    }


def _start_digest(asked: TradeoffSettings) -> str:
    """Return a digest of the weights that attackers start from; "" if trained from scratch."""
    spec = EncoderSpec(name=asked.encoder)
    return shipped_digest(spec, asked.attack) if asked.auxiliary else ""


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
        **_copied(asked, "n_train", "n_test", "n_searched"),
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
    sizes = ("n_labels", "n_defence", "n_attribute_known", "n_attribute_targets")
    return {
        "label": asked.label_column,
        "group": asked.group_column,
        **_copied(asked, "attributes", "near", *sizes),
    }


def _copied(asked: TradeoffSettings, *names: str) -> Cell:
    """Return the named settings as cell entries with the same names."""
    return {name: getattr(asked, name) for name in names}


def _table_digest(asked: TradeoffSettings) -> str:
    """Return a digest of the table with the attribute."""
    return table_digest(NamedTexts.of(asked.attributes).place)


def _membership_entries(asked: TradeoffSettings) -> Cell:
    """Return the cell entries of membership inference."""
    told = _membership_task(asked)
    return {
        **_shared_entries(asked, "membership"),
        "task": told,
        "contents": contents_of((told,), ()),
        **_copied(asked, "n_attacked", "n_shadows"),
        **attack_entries(),
    }


def _membership_task(asked: TradeoffSettings) -> str:
    """Return the reference of the task whose classifier is attacked; raise if it is not named."""
    names = {NamedTexts.of(told).name: told for told in asked.tasks}
    if asked.membership not in names:
        raise InvalidInputError(
            f"--membership must be the name of one of --tasks ({', '.join(names) or 'none'}), got "
            f"{asked.membership!r}." + similar(asked.membership, names)
        )
    return names[asked.membership]


def _head_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the cell entries of the classifier on vectors, noisy only if that is the defence."""
    own = dict(spec.settings) if is_of_model(spec.name) else {"epsilon": 0.0}
    settings = asdict(HeadSettings(**{"hidden": asked.hidden, **own}))
    return {"classifier": "private", "classifier_settings": settings}


def _network_entries(asked: TradeoffSettings, spec: DefenceSpec) -> Cell:
    """Return the cell entries by which a network is fine-tuned on what a mechanism sends."""
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
        **_copied(asked, "n_auxiliary", "n_targets", "near", "n_defence"),
        "start": _start_digest(asked),
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


PARTS = ("attack", POSTERIOR, "use", "attribute", "membership", "time")
"""The parts of a defence that are measured, each in a cell."""


@dataclass(frozen=True, kw_only=True)
class TradeoffStudy(TradeoffSettings):
    """The trade-off study: utility and the strongest attacker's score for each defence."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table of the attribute must have."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return one cell per seed, part and setting of a defence.

        Raises
        ------
        InvalidInputError
            No such defence or attacker, two tasks of one name, a file that cannot be read, or one
            that is missing for a defence.
        """
        defences = chosen_defences(self.defences)
        parse_named_texts([*self.tasks, *self.pairs, *self.searches])
        check_parts(self, defences)
        parts = [part_entries(self, spec) for spec in defences]
        told = [{"defence": s.name, "defence_settings": dict(s.settings)} for s in defences]
        return [
            {
                **own[part],
                **told[i],
                "seed": seed,
                **trained_defence_entries(self, defences[i], seed),
            }
            for seed in self.seeds
            for part in PARTS
            for i, own in enumerate(parts)
            if part in own
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Measure a cell, one part of a defence at one strength under one seed; return one row.

    Raises
    ------
    InvalidInputError
        A file has changed since the study was started, or too few.
    DivergedError
        The training of the defence diverged.
    """
    encoder = _open_encoder(cell["encoder"], cell["encoder_precision"])
    facts = {
        "encoder_precision": str(getattr(encoder, "precision", "float32")),
        "encoder_backend": str(getattr(encoder, "backend", "torch")),
        "machine": _describe_machine(encoder),
    }
    guard = guard_of(cell, encoder, folder)
    checkpoint = folder / "training" / cell_key(cell)
    scores: dict[str, Score] = {}
    if cell["part"] == "use":
        scores, found = _measure_use(cell, encoder, guard, checkpoint)
    elif cell["part"] == "time":
        # Without caches.
        behind, alone = compare_milliseconds(
            guard.protect(encoder).encode, encoder.encode, cell["rounds"]
        )
        found = {"milliseconds_a_text": behind, "milliseconds_alone": alone, "n_timed": N_TIMED}
    elif cell["part"] == "attribute":
        scores, found = inferred_scores(cell, encoder, guard)
    elif cell["part"] == "membership":
        scores, found = member_scores(cell, guard.over(encoder), checkpoint)
    else:
        check_unchanged(auxiliary_digest(cell["auxiliary"]) == cell["contents"])
        texts = draw_word_texts(cell, encoder)
        scores, found = attack_scores(cell, encoder, texts, guard)
        found |= texts.facts
    shutil.rmtree(checkpoint, ignore_errors=True)
    return [Row(scores=scores, facts=facts | found | guard.facts)]


def _measure_use(cell: Cell, encoder: Encoder, guard: Guard, checkpoint: Path) -> Found:
    """Measure utility, training time and time per text behind a defence; return scores, facts."""
    check_unchanged(contents_of(cell["tasks"], cell["pairs"], cell["searches"]) == cell["contents"])
    if is_of_model(cell["defence"]) or is_of_network(cell["defence"]):
        use: HeadUse | NetworkUse = (
            HeadUse(cell, encoder)
            if is_of_model(cell["defence"])
            else NetworkUse(cell, encoder, checkpoint)
        )
        scores, found = use.scores()
        minutes, timed = use.minutes, use.answer
    else:
        scores, found = use_scores(cell, encoder, guard.over(encoder))
        minutes, timed = guard.training_minutes, guard.protect(encoder).encode
    return scores, found | {
        "training_minutes": minutes,
        "milliseconds_a_text": milliseconds_per_text(timed),
        "n_timed": N_TIMED,
    }


@lru_cache(maxsize=1)
def _open_encoder(name: str, precision: str) -> Encoder:
    """Load the encoder of a cell, once per process."""
    return load_encoder(EncoderSpec(name=name, precision=precision))


def _describe_machine(encoder: Encoder) -> str:
    """Describe the hardware that a cell is measured on."""
    found = hardware(encoder)
    is_gpu = str(found["device"]).startswith("cuda")
    return str(found["chip"]) if is_gpu else f"{found['n_cpus']} {found['chip']} cores"


N_TIMED = 200
"""Texts in a timed batch."""


def milliseconds_per_text(encode: Callable[[Sequence[str]], Any]) -> float:
    """Measure the encoding time per text, in ms, on a batch of `N_TIMED` uncached sentences.

    Bundled sentences, of 8 to 40 words, none of them twice: a mechanism that draws ahead for a
    token would else hand out what it has. What is made once, such as a table of distances, is made
    before, on other sentences.
    """
    known = bundled_sentences()
    encode(known[:8])
    return _time_batch(encode, known[8 : 8 + N_TIMED])


def compare_milliseconds(
    encode: Callable[[Sequence[str]], Any], beside: Callable[[Sequence[str]], Any], rounds: int
) -> tuple[float, float]:
    """Time two encoders in alternating rounds; return the least ms per text of each.

    What else a machine does slows either: the least of some rounds is nearest to what it takes, and
    one tells what the machine was good for when the other was timed. Each round has other
    sentences, the same for both.
    """
    known = bundled_sentences()
    both = (encode, beside)
    for each in both:
        each(known[:8])
    taken: list[list[float]] = [[], []]
    for i in range(rounds):
        texts = known[8 + i * N_TIMED : 8 + (i + 1) * N_TIMED]
        for each, own in zip(both, taken, strict=True):
            own.append(_time_batch(each, texts))
    return min(taken[0]), min(taken[1])


def _time_batch(encode: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> float:
    """Encode a batch of texts; return the milliseconds that it took per text."""
    start = time.perf_counter()
    encode(texts)
    return round(1000 * (time.perf_counter() - start) / len(texts), 3)
