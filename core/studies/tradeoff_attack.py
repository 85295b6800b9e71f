"""The attackers of the trade-off: each knows the defence, its settings and the encoder.

All are judged by `evaluate` on the same targets and words:

- `tuned`: the classifier that ships for the encoder, or one trained anew, trained on with protected
  vectors of the auxiliary texts, which a linear map has led back to the encoder's own space; what
  ships answers to their unprotected vectors is what it learns by;
- `search`: the re-embedding search over that classifier, with the defence between it and the
  vectors: what is certain of the defence is applied to the words that it tries, noise is not;
- `shipped`: the re-embedding search as it ships, on vectors that the linear map has led back; only
  where it is named: what the others learned anew is held against it;
- `tokens`: the words of the released text, or of the tokens nearest to the released token vectors;
- `posterior`: those of the likeliest tokens under what is released, by what the mechanism does and
  how tokens, and pairs of tokens, are used in the attacker's own texts;
- `grid`: the same of noisy token vectors, without the tokens whose rounding grid a vector is off
  (see `core.defences.metric_dp.release`: it breaks the release of plain float32 sums);
- `reconstruct`: the words of the sentences that are read back, as that attack ships, turned on
  the defence as the search is; only where it is named, and of fewer texts, which its n says;
- `retrieval`: the words that known texts with the nearest protected vectors agree on. It comes to
  defences that are trained, whose adversary is a classifier, as one of another family that begins
  with nothing but protected vectors;
- `probe_mlc`: the classifier trained anew on protected vectors as they are. It comes to them too:
  what they do to vectors may be out of reach of every linear map.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.attacks.fitted import bind
from core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from core.attacks.inversion.classifiers.tuned import paired, taught, tune
from core.attacks.inversion.evaluation import evaluate
from core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from core.attacks.inversion.noisy_tokens import NoisyTokenReader, ReleasedTokenVectors
from core.attacks.inversion.posterior import PosteriorReader
from core.attacks.inversion.registry import make_attack
from core.attacks.inversion.released import ReleasedTokens, TokenReader
from core.attacks.inversion.search.attack import SearchAttack
from core.attacks.inversion.search.tuned import SearchPlan, tune_search
from core.attacks.inversion.shipped import load_attack, open_attack, shipped_folder
from core.defences.chain import Chain
from core.defences.metric_dp.mechanisms import ChainedPrivatizer, privatizer_of
from core.defences.metric_dp.release import release_under_noise
from core.defences.metric_dp.texts import TokenPrivatizer, privatised_texts
from core.defences.registry import entry_of, make_defence
from core.encoders.cache import CachedEncoder
from core.encoders.white_box import require_white_box
from core.intervals import wilson_interval
from core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from core.results import Recovery, Score
from core.specs import AttackSpec, DefenceSpec
from core.studies.cell_attacks import attack_of
from core.studies.rows import Cell
from core.studies.tradeoff_guards import Guard
from core.studies.tradeoff_said import FRESH, GRID, OF_TOKENS, POSTERIOR, attackers_told
from core.studies.tradeoff_summary import ALL_WORDS, TOKEN_INVERSION, leakage_measure
from core.studies.tradeoff_texts import LEAST_HELD, AttackersTexts
from core.studies.trained_defences import Remembered
from core.text import Vocabulary

__all__ = [
    "AS_SHIPPED",
    "ATTACKERS",
    "SENTENCES",
    "attack_scores",
    "draws_noise",
    "released_texts",
    "releases_tokens",
    "releases_vectors",
]

ATTACKERS = ("tuned", "search", *OF_TOKENS)
"""In the order in which they are met; the last two attack what releases tokens."""

AS_SHIPPED = "shipped"
"""Learns nothing of a defence but the way back from its vectors."""

SENTENCES = "reconstruct"
"""Takes seconds for each text, so that it comes where it is asked for."""

N_SENTENCES, N_SENTENCE_QUERIES = 30, 500
"""Texts that it attacks at most, and how often it may encode for each."""

N_COPIES = 6
"""Times that noise on vectors is drawn anew for every auxiliary text: that costs no query."""
N_CALIBRATION = 200
"""Texts that the search learns its judgement from."""
EPOCHS, LEARNING_RATE = 6, 2e-3
"""Of training on; copies count as epochs (docs/decisions/0015-the-trade-offs-attacker.md)."""


def draws_noise(defence: str) -> bool:
    """Whether a defence draws noise, so that a text never has the same vector twice."""
    return entry_of(defence).draws_noise


def attack_scores(
    cell: Cell, encoder: Encoder, texts: AttackersTexts, guard: Guard | None = None
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return what each attacker reads, beside guessing, and the seconds that each took.

    Parameters
    ----------
    guard : Guard, optional
        The cell's defence; needed where it was trained.
    """
    scores: dict[str, Score] = {}
    seconds: dict[str, float] = {}
    found: dict[str, tuple[InversionAttack, Encoder]] = {}
    start = time.perf_counter()
    ready = _ready(cell, encoder, texts, Guard(cell) if guard is None else guard)
    for name, attack, attacked, vectors in ready:
        result = evaluate(
            attack, attacked, texts.targets, vectors=vectors, documents=texts.documents,
            seed=cell["seed"], name="sentences", limit=N_SENTENCES if name == SENTENCES else None,
        )  # fmt: skip
        measured = result.scores.score("token_set_f1", result.baseline.token_set_f1)
        scores[leakage_measure(name)] = measured
        scores[leakage_measure(name, ALL_WORDS)] = result.unrestricted
        found[name] = attack, attacked
        seconds[name] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()
    if releases_tokens(cell["defence"]):
        scores[TOKEN_INVERSION] = _token_inversion(cell, encoder, texts.targets)
    told = attackers_told(found, len(texts.known))
    if "tokens" in told:
        told["tokens"]["n_known"] = 0  # nothing is trained
    for name in {POSTERIOR, GRID} & told.keys():
        reader: Any = found[name][0]
        told[name]["reading"] = reader.reading_
    return scores, {"attacker_seconds": seconds, "attackers_told": told}


def _ready(
    cell: Cell, encoder: Encoder, texts: AttackersTexts, guard: Guard
) -> Iterator[tuple[str, InversionAttack, Encoder, Vectors | None]]:
    """Yield each attacker that is asked for, with what it attacks and its vectors of the targets.

    Where released tokens alone are read no vector is needed: nothing is encoded and trained then.
    """
    asked = set(cell["attackers"])
    if cell["start"] and asked <= {*OF_TOKENS, GRID}:
        vocabulary = _shipped(encoder).vocabulary_
    else:
        scene = _Scene.of(guard, encoder, texts)
        base, seen = _tuned(cell, scene), (scene.protected, scene.target_vectors)
        vocabulary = base.vocabulary_
        if "tuned" in asked:
            yield "tuned", scene.on_protected(base, scene.own), *seen
        if "search" in asked:
            yield "search", _search(cell, scene, base), *seen
        if AS_SHIPPED in asked:
            search = load_attack(shipped_folder(scene.own, "search"))
            yield AS_SHIPPED, scene.on_protected(search, scene.queried), *seen
        if SENTENCES in asked:
            yield SENTENCES, _reconstruct(scene, vocabulary), *seen
        if FRESH[0] in asked:
            yield FRESH[0], _neighbours(scene, vocabulary), *seen
        if FRESH[1] in asked:
            anew = attack_of(cell).fit(scene.protected, scene.texts.known)
            yield FRESH[1], _JudgedBy(anew, vocabulary), *seen
    if releases_tokens(cell["defence"]):
        for name in (*OF_TOKENS, GRID):
            if name in asked:
                yield name, *_reader(name, cell, encoder, vocabulary, texts), None


@dataclass(frozen=True)
class _Scene:
    """The encoder, the encoder behind its defence, and the way back from its vectors."""

    own: Encoder
    """The encoder itself, what it has encoded remembered on disk."""
    protected: Encoder
    queried: Encoder
    """What the search encodes its own texts with."""
    lift: Lift
    texts: AttackersTexts
    copies: tuple[Vectors, ...]
    """Of the known texts: protected, led back; several where noise is drawn anew."""
    target_vectors: Vectors
    """Of the targets, as they are stored."""

    @classmethod
    def of(cls, guard: Guard, encoder: Encoder, texts: AttackersTexts) -> _Scene:
        name = guard.cell["defence"]
        own = CachedEncoder(encoder)
        is_noisy, is_last = draws_noise(name), entry_of(name).acts_on == "vector"
        protected = guard.over(encoder)
        target_vectors = protected.encode(texts.targets)
        n_copies = N_COPIES if is_noisy and is_last else 1
        changed = [protected.encode(texts.known) for _ in range(n_copies)]
        clean = own.encode(texts.known)
        lift = Lift.fit(np.concatenate(changed), np.concatenate([clean] * n_copies))
        recalled = Remembered(encoder)
        queried: Encoder = recalled
        defence = guard.defence
        if not is_noisy:
            queried = LiftedEncoder(own, defence.protect(recalled), lift)
        elif isinstance(defence, Chain) and defence.certain.stages:
            queried = LiftedEncoder(own, defence.certain.protect(recalled), lift)
        copies = tuple(lift(vectors) for vectors in changed)
        return cls(own, protected, queried, lift, texts, copies, target_vectors)

    @property
    def attacked(self) -> Encoder:
        """The protected encoder, in the encoder's own space."""
        return LiftedEncoder(self.own, self.protected, self.lift)

    def on_protected(self, attack: InversionAttack, queried: Encoder) -> LiftedAttack:
        """Turn an attack that reads the own space on protected vectors."""
        return LiftedAttack(attack, self.lift, queried, self.protected)


def _tuned(cell: Cell, scene: _Scene) -> ProbeMLCAttack:
    """Return the classifier for the protected vectors."""
    known, held = scene.texts.known, scene.texts.held
    if not cell["start"]:
        # Words are encoded without the defence: who knows the encoder can.
        fresh: Any = attack_of(cell)
        trained: ProbeMLCAttack = fresh.fit(scene.own, known, scene.copies[0])
        return trained
    shipped = _shipped(scene.own)
    pairs = paired(shipped.vocabulary_, (known, scene.copies), (held, scene.attacked.encode(held)))
    epochs = -(-EPOCHS // len(scene.copies))
    teacher = taught(shipped, known, scene.own.encode(known))
    return tune(shipped, scene.own, pairs, epochs=epochs, learning_rate=LEARNING_RATE,
                teacher=teacher)  # fmt: skip


def _shipped(encoder: Encoder) -> ProbeMLCAttack:
    """Return the classifier that ships for an encoder."""
    shipped = load_attack(shipped_folder(encoder, "probe_mlc"))
    assert isinstance(shipped, ProbeMLCAttack)
    return shipped


def _search(cell: Cell, scene: _Scene, base: ProbeMLCAttack) -> LiftedAttack:
    """Return the search over that classifier."""
    search: Any = SearchAttack()
    folder = shipped_folder(scene.own, "search")
    if cell["start"] and (folder / "model.json").exists():
        search = load_attack(folder)
    n = cell["n_auxiliary"] // 100  # a small run learns its judgement from few texts as well
    plan = SearchPlan(seed=cell["seed"], n_calibration=min(max(n, LEAST_HELD), N_CALIBRATION))
    texts = (scene.texts.known, scene.texts.held)
    tuned = tune_search(search, base, (scene.queried, scene.attacked), texts, plan)
    return scene.on_protected(tuned, scene.queried)


def _reconstruct(scene: _Scene, vocabulary: Vocabulary) -> LiftedAttack:
    """Return who reads whole sentences, of which the words are counted that all are judged by."""
    spec = AttackSpec.of(SENTENCES, {"n_queries": N_SENTENCE_QUERIES})
    attack: Any = open_attack(spec, scene.own)
    bind(attack, scene.own, vocabulary)
    return scene.on_protected(attack, scene.queried)


@dataclass(frozen=True)
class _JudgedBy:
    """A fitted attack that is judged by other words than those of its own texts."""

    attack: InversionAttack
    vocabulary_: Vocabulary

    def fit(self, *_: Any, **__: Any) -> _JudgedBy:
        """Return itself: it is fitted already."""
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return what the attack reads."""
        return self.attack.invert(encoder, vectors, on_progress)


def _neighbours(scene: _Scene, vocabulary: Vocabulary) -> InversionAttack:
    """Return an attacker that begins with nothing but protected vectors of known texts.

    It answers the words that all are judged by, not those of its own texts.
    """
    fresh: Any = make_attack(AttackSpec(name=FRESH[0])).fit(scene.protected, scene.texts.known)
    bind(fresh, scene.protected, vocabulary)
    fresh.words_ = vocabulary.matrix(scene.texts.known)
    attack: InversionAttack = fresh
    return attack


def releases_tokens(defence: str) -> bool:
    """Whether a text or the vectors of its tokens are what leaves the house."""
    return entry_of(defence).releases_tokens


def releases_vectors(defence: str) -> bool:
    """Whether the noisy vectors of a text's tokens are what is released."""
    return entry_of(defence).acts_on == "tokens"


def _privatizer(cell: Cell, encoder: Encoder, part: int) -> TokenPrivatizer:
    """Return what turns tokens into those that are released, or that an attacker reads."""
    opened = require_white_box(encoder, "Token inversion")
    defence: Any = make_defence(DefenceSpec.of(cell["defence"], cell["defence_settings"]))
    rng = np.random.default_rng([cell["seed"], part])
    if isinstance(defence, Chain):
        return ChainedPrivatizer(opened, [stage for _, stage in defence.stages], rng)
    return privatizer_of(defence, opened, rng)


def _reader(
    name: str, cell: Cell, encoder: Encoder, vocabulary: Vocabulary, texts: AttackersTexts
) -> tuple[InversionAttack, Encoder]:
    """Return who reads released tokens, and what is read: as they are, or knowing the mechanism."""
    identity = f"{cell['defence']}|{sorted(cell['defence_settings'].items())}|{cell['seed']}"
    opened = require_white_box(encoder, "The reader of tokens")
    if name != "tokens" and releases_vectors(cell["defence"]):
        eta, rng = float(cell["defence_settings"]["eta"]), np.random.default_rng([cell["seed"], 4])
        vectors = ReleasedTokenVectors(
            opened, eta, rng, identity=identity, release=release_under_noise
        )
        noisy: Any = NoisyTokenReader(vocabulary, uses_grid=name == GRID)
        return noisy.fit(vectors, texts.known, texts.held), vectors
    released = ReleasedTokens(opened, _privatizer(cell, encoder, 4).tokens, identity=identity)
    if name == "tokens":
        return TokenReader(vocabulary).fit(released), released
    knowing: Any = PosteriorReader(vocabulary, _privatizer(cell, encoder, 6))
    return knowing.fit(released, texts.known, texts.held), released


def released_texts(cell: Cell, encoder: Encoder, texts: Sequence[str]) -> list[str]:
    """Return the texts that are released, or those of the tokens nearest to released vectors."""
    return privatised_texts(_privatizer(cell, encoder, 5), texts, is_whole=False)


def _token_inversion(cell: Cell, encoder: Encoder, targets: Sequence[str]) -> Score:
    """Return the share of tokens that the nearest token to their noisy vectors gives back."""
    privatizer = _privatizer(cell, encoder, 3)
    ids = np.array([i for row in privatizer.encoder.token_ids(targets) for i in row])
    n_back = int((privatizer.tokens(ids) == ids).sum())
    return Score(100 * n_back / len(ids), wilson_interval(n_back, len(ids)), len(ids), 0.0)
