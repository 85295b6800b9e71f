"""The attackers of the trade-off study; each knows the defence, its settings and the encoder.

All are scored by `evaluate` on the same targets and words:

- `tuned`: the classifier that ships for the encoder, or one trained from scratch, fine-tuned on
  protected vectors of the auxiliary texts, mapped back linearly to the encoder's space; the shipped
  classifier's answers to the unprotected vectors are the training targets;
- `search`: the re-embedding search over that classifier, with the defence between it and the
  vectors: its deterministic part is applied to the words that the search tries, noise is not;
- `shipped`: the re-embedding search as it ships, on vectors mapped back linearly; only if named, as
  a reference for the attackers that are trained on the defence;
- `tokens`: the words of the released text, or of the tokens nearest to the released token vectors;
- `posterior`: the words of the most likely original tokens, given the released ones, the mechanism,
  and the frequencies of tokens and pairs of tokens in the attacker's texts;
- `grid`: the same for noisy token vectors, excluding tokens whose rounding grid a vector is not on
  (see `leakscope.core.defences.metric_dp.release`: it breaks the release of plain float32 sums);
- `reconstruct`: the words of reconstructed sentences, by that attack as it ships, adapted to the
  defence like the search; only if named, and on fewer texts (see its n);
- `retrieval`: the words that known texts with the nearest protected vectors share. It is added for
  trained defences, whose adversary is a classifier, as an attacker of another family that sees only
  protected vectors;
- `probe_mlc`: the classifier trained from scratch on protected vectors. It is also added for
  trained defences, whose change of vectors may not be undone by any linear map.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope.core.attacks.attributes.answers import Answers, label_ranks
from leakscope.core.attacks.attributes.words import WordsAttack
from leakscope.core.attacks.fitted import bind
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.classifiers.tuned import (
    fine_tune,
    pairs_in_vocabulary,
    teacher_for,
)
from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.attacks.inversion.released_tokens.noisy_tokens import (
    NoisyTokenReader,
    ReleasedTokenVectors,
)
from leakscope.core.attacks.inversion.released_tokens.posterior import PosteriorReader
from leakscope.core.attacks.inversion.released_tokens.released import ReleasedTokens, TokenReader
from leakscope.core.attacks.inversion.search.attack import SearchAttack
from leakscope.core.attacks.inversion.search.tuned import SearchPlan, tune_search
from leakscope.core.attacks.inversion.shipped import load_attack, open_attack, shipped_folder
from leakscope.core.defences.chain import Chain
from leakscope.core.defences.metric_dp.mechanisms import ChainedPrivatizer, make_privatizer
from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.metric_dp.texts import TokenPrivatizer, privatise_texts
from leakscope.core.defences.registry import entry_of, make_defence
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.intervals import wilson_interval
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from leakscope.core.results import Recovery, Score
from leakscope.core.results.rows import Cell
from leakscope.core.specs import AttackSpec, DefenceSpec
from leakscope.core.studies.inversion.cell_attacks import make_cell_attack
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.tradeoff.guards import Guard, attribute_texts
from leakscope.core.studies.tradeoff.summary import (
    ALL_WORDS,
    ATTRIBUTE,
    FRESH,
    OF_TOKENS,
    POSTERIOR,
    ROUNDING_GRID,
    TOKEN_INVERSION,
    leakage_measure,
)
from leakscope.core.studies.tradeoff.tables import attacker_facts
from leakscope.core.studies.tradeoff.texts import LEAST_HELD, AttackersTexts
from leakscope.core.studies.tradeoff.trained_defences import MemoizedEncoder
from leakscope.core.studies.training.adversarial_attack import attribute_scores
from leakscope.core.studies.training.adversarial_texts import Sides
from leakscope.core.text import Vocabulary
from leakscope.core.units import units_of

ATTACKERS = ("tuned", "search", *OF_TOKENS)
"""The default attackers in order; the last two attack mechanisms that release tokens."""

AS_SHIPPED = "shipped"
"""The search attack as it ships: it learns only a linear map back from the protected vectors."""

SENTENCES = "reconstruct"
"""Reconstructs sentences; takes seconds per text, so it runs only on request."""

N_SENTENCES, N_SENTENCE_QUERIES = 30, 500
"""The most texts that it attacks, and its queries per text."""

N_COPIES = 6
"""Noisy copies of every auxiliary vector; drawing them costs no query."""
N_CALIBRATION = 200
"""The texts that the search is calibrated on."""
EPOCHS, LEARNING_RATE = 6, 2e-3
"""Of fine-tuning; copies count as epochs (docs/decisions/0015-the-trade-offs-attacker.md)."""


def draws_noise(defence: str) -> bool:
    """Return whether a defence, given by name, draws noise: the same text gets new vectors."""
    return entry_of(defence).draws_noise


def attack_scores(
    cell: Cell, encoder: Encoder, texts: AttackersTexts, guard: Guard | None = None
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Run each attacker on the targets; return F1 scores with chance levels, and facts.

    Parameters
    ----------
    guard : Guard, optional
        The cell's defence; needed where it was trained.
    """
    scores: dict[str, Score] = {}
    seconds: dict[str, float] = {}
    found: dict[str, tuple[InversionAttack, Encoder]] = {}
    start = time.perf_counter()
    ready = _train_attackers(cell, encoder, texts, Guard(cell) if guard is None else guard)
    for name, attack, attacked, vectors in ready:
        result = evaluate(
            attack,
            attacked,
            texts.targets,
            vectors=vectors,
            documents=texts.documents,
            seed=cell["seed"],
            name="sentences",
            limit=N_SENTENCES if name == SENTENCES else None,
        )
        measured = result.scores.score("token_set_f1", result.baseline.token_set_f1)
        scores[leakage_measure(name)] = measured
        scores[leakage_measure(name, ALL_WORDS)] = result.unrestricted
        found[name] = attack, attacked
        seconds[name] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()
    if releases_tokens(cell["defence"]):
        scores[TOKEN_INVERSION] = _token_inversion(cell, encoder, texts.targets)
    told = attacker_facts(found, len(texts.known))
    if "tokens" in told:
        told["tokens"]["n_known"] = 0  # nothing is trained
    for name in {POSTERIOR, ROUNDING_GRID} & told.keys():
        reader: Any = found[name][0]
        told[name]["reading"] = reader.reading_
    return scores, {"attacker_seconds": seconds, "attackers_told": told}


def _train_attackers(
    cell: Cell, encoder: Encoder, texts: AttackersTexts, guard: Guard
) -> Iterator[tuple[str, InversionAttack, Encoder, Vectors | None]]:
    """Train the requested attackers; yield name, fitted attack, encoder and target vectors.

    If only attackers on released tokens are requested, nothing is encoded or trained.
    """
    asked = set(cell["attackers"])
    if cell["start"] and asked <= {*OF_TOKENS, ROUNDING_GRID}:
        vocabulary = _shipped_classifier(encoder).vocabulary_
    else:
        scene = _AttackSetup.of(guard, encoder, texts)
        base, seen = _tuned_classifier(cell, scene), (scene.protected, scene.target_vectors)
        vocabulary = base.vocabulary_
        if "tuned" in asked:
            yield "tuned", scene.on_protected(base, scene.own), *seen
        if "search" in asked:
            yield "search", _tuned_search(cell, scene, base), *seen
        if AS_SHIPPED in asked:
            search = load_attack(shipped_folder(scene.own, "search"))
            yield AS_SHIPPED, scene.on_protected(search, scene.queried), *seen
        if SENTENCES in asked:
            yield SENTENCES, _load_reconstruction(scene, vocabulary), *seen
        if FRESH[0] in asked:
            yield FRESH[0], _retrieval_attack(scene, vocabulary), *seen
        if FRESH[1] in asked:
            retrained = make_cell_attack(cell).fit(scene.protected, scene.texts.known)
            yield FRESH[1], _WithVocabulary(retrained, vocabulary), *seen
    if releases_tokens(cell["defence"]):
        for name in (*OF_TOKENS, ROUNDING_GRID):
            if name in asked:
                yield name, *_token_reader(name, cell, encoder, vocabulary, texts), None


@dataclass(frozen=True)
class _AttackSetup:
    """The encoder with and without the defence, and the linear map back from protected vectors."""

    own: Encoder
    """The undefended encoder, with its vectors cached on disk."""
    protected: Encoder
    queried: Encoder
    """The encoder that the search queries with its own texts."""
    lift: Lift
    texts: AttackersTexts
    copies: tuple[Vectors, ...]
    """Protected vectors of the known texts, mapped back; several copies if noise is drawn."""
    target_vectors: Vectors
    """The protected vectors of the targets, as stored."""

    @classmethod
    def of(cls, guard: Guard, encoder: Encoder, texts: AttackersTexts) -> _AttackSetup:
        """Encode the texts with and without the defence, and fit the linear map back."""
        name = guard.cell["defence"]
        own = CachedEncoder(encoder)
        is_noisy, is_last = draws_noise(name), entry_of(name).acts_on == "vector"
        protected = guard.over(encoder)
        target_vectors = protected.encode(texts.targets)
        n_copies = N_COPIES if is_noisy and is_last else 1
        changed = [protected.encode(texts.known) for _ in range(n_copies)]
        clean = own.encode(texts.known)
        lift = Lift.fit(np.concatenate(changed), np.concatenate([clean] * n_copies))
        recalled = MemoizedEncoder(encoder)
        queried: Encoder = recalled
        defence = guard.defence
        if not is_noisy:
            queried = LiftedEncoder(own, defence.protect(recalled), lift)
        elif isinstance(defence, Chain) and defence.deterministic.stages:
            queried = LiftedEncoder(own, defence.deterministic.protect(recalled), lift)
        copies = tuple(lift(vectors) for vectors in changed)
        return cls(own, protected, queried, lift, texts, copies, target_vectors)

    def on_protected(self, attack: InversionAttack, queried: Encoder) -> LiftedAttack:
        """Wrap an attack on undefended vectors, so that it attacks protected vectors."""
        return LiftedAttack(attack, self.lift, queried, self.protected)


def _tuned_classifier(cell: Cell, scene: _AttackSetup) -> ProbeMLCAttack:
    """Fine-tune the shipped classifier on protected vectors, or train one if none ships."""
    known, held = scene.texts.known, scene.texts.held
    if not cell["start"]:
        # Words are encoded without the defence, as the attacker knows the encoder.
        fresh: Any = make_cell_attack(cell)
        trained: ProbeMLCAttack = fresh.fit(scene.own, known, scene.copies[0])
        return trained
    attacked = LiftedEncoder(scene.own, scene.protected, scene.lift)
    return tune_shipped_classifier(scene.own, attacked, (known, scene.copies), held)


def tune_shipped_classifier(
    own: Encoder,
    attacked: Encoder,
    known: tuple[Sequence[str], Sequence[Vectors]],
    held: Sequence[str],
) -> ProbeMLCAttack:
    """Fine-tune an encoder's shipped classifier on protected vectors, mapped back to its space.

    Parameters
    ----------
    own, attacked : Encoder
        The encoder without the defence, and with it and the map back.
    known : tuple of (sequence of str, sequence of ndarray)
        The texts to train on, and copies of their protected vectors, mapped back.
    held : sequence of str
        The texts by which the epoch is chosen.
    """
    shipped, (texts, copies) = _shipped_classifier(own), known
    return fine_tune(
        shipped,
        own,
        pairs_in_vocabulary(shipped.vocabulary_, (texts, copies), (held, attacked.encode(held))),
        epochs=-(-EPOCHS // len(copies)),
        learning_rate=LEARNING_RATE,
        teacher=teacher_for(shipped, texts, own.encode(texts)),
    )


def _shipped_classifier(encoder: Encoder) -> ProbeMLCAttack:
    """Load the classifier that ships for an encoder."""
    shipped = load_attack(shipped_folder(encoder, "probe_mlc"))
    assert isinstance(shipped, ProbeMLCAttack)
    return shipped


def _tuned_search(cell: Cell, scene: _AttackSetup, base: ProbeMLCAttack) -> LiftedAttack:
    """Tune the re-embedding search over a classifier to the defence, and return it."""
    search: Any = SearchAttack()
    folder = shipped_folder(scene.own, "search")
    if cell["start"] and (folder / "model.json").exists():
        search = load_attack(folder)
    n = cell["n_auxiliary"] // 100  # a small run is calibrated on few texts as well
    plan = SearchPlan(seed=cell["seed"], n_calibration=min(max(n, LEAST_HELD), N_CALIBRATION))
    texts = (scene.texts.known, scene.texts.held)
    tuned = tune_search(
        search,
        base,
        (scene.queried, LiftedEncoder(scene.own, scene.protected, scene.lift)),
        texts,
        plan,
    )
    return scene.on_protected(tuned, scene.queried)


def _load_reconstruction(scene: _AttackSetup, vocabulary: Vocabulary) -> LiftedAttack:
    """Load the sentence reconstruction, to be scored on the words of the other attackers."""
    spec = AttackSpec.of(SENTENCES, {"n_queries": N_SENTENCE_QUERIES})
    attack: Any = open_attack(spec, scene.own)
    bind(attack, scene.own, vocabulary)
    return scene.on_protected(attack, scene.queried)


@dataclass(frozen=True)
class _WithVocabulary:
    """A fitted attack that is scored on the words of another vocabulary."""

    attack: InversionAttack
    vocabulary_: Vocabulary

    def fit(self, *_: Any, **__: Any) -> _WithVocabulary:
        """Return itself: the attack is already fitted."""
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the words that the attack recovers from vectors."""
        return self.attack.invert(encoder, vectors, on_progress)


def _retrieval_attack(scene: _AttackSetup, vocabulary: Vocabulary) -> InversionAttack:
    """Fit the retrieval attack on protected vectors of known texts.

    It answers words of the shared vocabulary, not of its own texts.
    """
    fresh: Any = make_attack(AttackSpec(name=FRESH[0])).fit(scene.protected, scene.texts.known)
    bind(fresh, scene.protected, vocabulary)
    fresh.words_ = vocabulary.matrix(scene.texts.known)
    attack: InversionAttack = fresh
    return attack


def releases_tokens(defence: str) -> bool:
    """Return whether a defence, given by name, releases a text or the vectors of its tokens."""
    return entry_of(defence).releases_tokens


def releases_vectors(defence: str) -> bool:
    """Return whether a defence, given by name, releases noisy vectors of a text's tokens."""
    return entry_of(defence).acts_on == "tokens"


def _privatizer(cell: Cell, encoder: Encoder, part: int) -> TokenPrivatizer:
    """Build the cell's token privatizer; `part` selects its independent random stream."""
    opened = require_white_box(encoder, "Token inversion")
    defence: Any = make_defence(DefenceSpec.of(cell["defence"], cell["defence_settings"]))
    rng = np.random.default_rng([cell["seed"], part])
    if isinstance(defence, Chain):
        return ChainedPrivatizer(opened, [stage for _, stage in defence.stages], rng)
    return make_privatizer(defence, opened, rng)


def _token_reader(
    name: str, cell: Cell, encoder: Encoder, vocabulary: Vocabulary, texts: AttackersTexts
) -> tuple[InversionAttack, Encoder]:
    """Fit an attacker on released tokens; return it, and the encoder that releases them."""
    identity = f"{cell['defence']}|{sorted(cell['defence_settings'].items())}|{cell['seed']}"
    opened = require_white_box(encoder, "The token decoder")
    if name != "tokens" and releases_vectors(cell["defence"]):
        eta, rng = float(cell["defence_settings"]["eta"]), np.random.default_rng([cell["seed"], 4])
        vectors = ReleasedTokenVectors(
            opened, eta, rng, identity=identity, release=release_under_noise
        )
        noisy: Any = NoisyTokenReader(vocabulary, uses_grid=name == ROUNDING_GRID)
        return noisy.fit(vectors, texts.known, texts.held), vectors
    released = ReleasedTokens(opened, _privatizer(cell, encoder, 4).tokens, identity=identity)
    if name == "tokens":
        return TokenReader(vocabulary).fit(released), released
    knowing: Any = PosteriorReader(vocabulary, _privatizer(cell, encoder, 6))
    return knowing.fit(released, texts.known, texts.held), released


def _token_inversion(cell: Cell, encoder: Encoder, targets: Sequence[str]) -> Score:
    """Add noise to the targets' tokens; return the per cent that the nearest token recovers."""
    privatizer = _privatizer(cell, encoder, 3)
    ids = np.array([i for row in privatizer.encoder.token_ids(targets) for i in row])
    n_back = int((privatizer.tokens(ids) == ids).sum())
    return Score(100 * n_back / len(ids), wilson_interval(n_back, len(ids)), len(ids), 0.0)


READER = "tokens"
"""The attacker that infers the attribute from released words, if tokens are released."""


def inferred_scores(
    cell: Cell, encoder: Encoder, guard: Guard
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Train attackers on the attribute; return their top-1 accuracy in per cent, and facts.

    Each attacker learns from protected known texts, which may share groups but no text with the
    targets. If a text or its tokens are released, one attacker uses these.

    Raises
    ------
    InvalidInputError
        The file has changed since the study was started, or too few.
    """
    sides = attribute_texts(cell)
    fresh = [name for name in cell["attackers"] if name != READER]
    found = attribute_scores({**cell, "attackers": fresh}, guard.over(encoder), sides)
    scores = {f"{ATTRIBUTE}: {name}": own["top1"] for name, (own, _) in found.items()}
    if READER in cell["attackers"]:
        scores[f"{ATTRIBUTE}: {READER}"] = _words_accuracy(cell, encoder, sides)
    facts = {
        "attribute": NamedTexts.of(cell["attributes"]).name,
        "n_near_duplicates": sides.n_near_duplicates,
        "n_groups": len(set(sides.target_groups)) if cell["group"] else 0,
        "attackers_told": attacker_facts(cell["attackers"], len(sides.known)),
    }
    return scores, facts


def _words_accuracy(cell: Cell, encoder: Encoder, sides: Sides) -> Score:
    """Train a linear classifier on words of released texts; return its accuracy in per cent."""
    labels, truth = sides.label_ids
    texts = [*sides.known, *sides.targets]
    both = privatise_texts(_privatizer(cell, encoder, 5), texts, is_whole=False)
    known, held = both[: len(sides.known)], both[len(sides.known) :]
    attack = WordsAttack().fit(known, labels, n_labels=len(sides.names), seed=cell["seed"])
    ranks = label_ranks(attack.scores(held), truth)
    units = units_of(sides.targets, sides.target_groups)
    return Answers(ranks, truth, units).top(1, cell["seed"]).in_percent()
