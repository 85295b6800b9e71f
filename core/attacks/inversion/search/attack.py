"""Ours: re-embedding search, which encodes its answers and improves them by comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks import fitted
from leakscope.core.attacks.inversion import shared_settings as shared
from leakscope.core.attacks.inversion.augmentation import substitute_words
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.attacks.inversion.search.correction import CorrectionPlan, Corrections
from leakscope.core.attacks.inversion.search.evidence import (
    BagMap,
    Toggles,
    WordJudge,
    features,
    toggle_candidates,
)
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress, part_progress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting, setting_values
from leakscope.core.text import Vocabulary, check_texts

_BLOCK = 16
"""Vectors searched at once: enough to fill the encoder's batches, few enough to report often."""


@dataclass
class SearchAttack:
    """An attack that improves the answer of `probe_mlc` by encoding it and comparing the vectors.

    First the attacker encodes the whole answer: a corrector, which has learned what the
    difference of the two vectors says about every word of the vocabulary, ranks the words again.
    Then the likeliest words are tried one by one: the list is encoded with and without each, and
    a logistic regression turns how much nearer the vector comes, and the belief so far, into a
    new belief; a second round repeats that around the improved list. Black box: by default
    1 + 61 + 37 queries a vector.

    Correctors, regressions and the linear map from the vector of a word list to that of a
    sentence are learned on auxiliary texts that the classifier was not trained on or that have
    words exchanged, so that they know how far the classifier can be trusted outside its domain.
    """

    n_candidates: int = setting(
        60, "Words to try in the first round", low=2, high=100, search=Uniform(20, 100)
    )
    n_later_candidates: int = setting(
        36, "Words to try in each later round", low=2, high=100, search=Uniform(10, 60)
    )
    n_rounds: int = setting(
        2, "Number of rounds that improve the list", low=1, high=5, search=Categorical((1, 2, 3))
    )
    n_corrections: int = setting(
        1,
        "Number of rounds that encode the whole answer and rank all words again",
        low=0,
        high=5,
        search=Categorical((0, 1, 2)),
    )
    n_corrected: int = setting(
        150_000, "Auxiliary texts, with substituted words, to train the corrections on", low=20
    )
    corrector_hidden: int = setting(768, "Units of a corrector's network", low=1)
    corrector_epochs: int = setting(3, "Maximum epochs of a corrector", low=1)
    n_calibration: int = setting(
        2000, "Held-out auxiliary texts to calibrate the evidence on", low=20
    )
    n_mapped: int = setting(5000, "Auxiliary texts to fit the map on", low=20)
    size_factor: float = shared.SIZE_FACTOR(search=Uniform(0.75, 2.0))
    vocabulary_size: int = shared.VOCABULARY_SIZE(paper="C22")
    keep_stop_words: bool = shared.KEEP_STOP_WORDS()
    base_epochs: int = setting(4, "Epochs of the base classifier", low=1)
    base_substitutions: int = setting(
        1, "Copies of each text with substituted words, for the base classifier", low=0
    )
    seed: int = shared.SEED()

    vocabulary_: Vocabulary = field(init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train classifier, correctors and map on most of the texts, and the judges on the rest."""
        texts = check_texts(texts)
        if vectors is None:
            vectors = encoder.encode(texts, part_progress(on_progress, 0.0, 0.3))
        vectors = fitted.check_vectors(vectors, encoder.dimension, len(texts))
        order = np.random.default_rng([self.seed, 1]).permutation(len(texts))
        n_held = min(self.n_calibration, len(texts) // 5)
        held, kept = [texts[i] for i in order[:n_held]], [texts[i] for i in order[n_held:]]
        base = ProbeMLCAttack(
            vocabulary_size=self.vocabulary_size,
            keep_stop_words=self.keep_stop_words,
            epochs=self.base_epochs,
            substitutions=self.base_substitutions,
            seed=self.seed,
        ).fit(
            encoder,
            kept,
            vectors[order[n_held:]],
            on_progress=part_progress(on_progress, 0.3, 0.6),
            checkpoint_dir=checkpoint_dir,
        )
        self.fit_corrections(
            encoder,
            base,
            kept,
            on_progress=part_progress(on_progress, 0.6, 0.8),
            checkpoint_dir=checkpoint_dir,
        )
        report = part_progress(on_progress, 0.8, 1.0)
        return self.fit_judgement(encoder, held, kept[: self.n_mapped], report)

    def fit_corrections(
        self,
        encoder: Encoder,
        base: ProbeMLCAttack,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train the correctors on the answers that a trained classifier gives for texts.

        Parameters
        ----------
        texts : sequence of str
            Without `vectors`: auxiliary texts, whose words are exchanged first. With `vectors`:
            texts that `base` was not trained on, as they are.
        vectors : ndarray of float32, shape (n, d), optional
        """
        fitted.bind(self, encoder, base.vocabulary_)
        self.base_ = base
        if vectors is None:
            texts = substitute_words(
                texts[: self.n_corrected], base.vocabulary_, seed=self.seed + 101
            )
            vectors = encoder.encode(texts, part_progress(on_progress, 0.0, 0.4))
        plan = CorrectionPlan(
            n_rounds=self.n_corrections,
            hidden=self.corrector_hidden,
            epochs=self.corrector_epochs,
            seed=self.seed,
        )
        self.corrections_ = self._no_corrections().fit(
            encoder,
            texts,
            vectors,
            plan,
            checkpoint_dir=checkpoint_dir,
            on_progress=part_progress(on_progress, 0.4, 1.0),
        )
        return self

    def _no_corrections(self) -> Corrections:
        """Build the corrections of the trained classifier, without any corrector yet."""
        return Corrections(self.base_.model_, self.vocabulary_, self.size_factor)

    def fit_judgement(
        self,
        encoder: Encoder,
        held_out: Sequence[str],
        mapped: Sequence[str],
        on_progress: OnProgress = no_progress,
        *,
        attacked: Encoder | None = None,
    ) -> Self:
        """Fit the map from word lists to sentences, and each round's judge on held-out texts.

        Parameters
        ----------
        attacked : Encoder, optional
            The encoder of the vectors under attack, if it differs from the one that is queried,
            such as the same behind a defence.
        """
        base, attacked = self.base_, attacked or encoder
        targets = ((text, self.vocabulary_.targets(text)) for text in mapped)
        pairs = [(" ".join(sorted(words)), text) for text, words in targets if words]
        bags, sentences = zip(*pairs, strict=True)
        self.bag_map_ = BagMap.fit(encoder.encode(list(bags)), attacked.encode(list(sentences)))
        half = len(held_out) // 2
        changed = substitute_words(held_out[half:], base.vocabulary_, seed=self.seed + 11)
        texts = [t for t in [*held_out[:half], *changed] if base.vocabulary_.targets(t)]
        vectors = attacked.encode(texts)
        true = [base.vocabulary_.targets(t) for t in texts]
        self.judges_: list[WordJudge] = []
        starts = range(0, len(vectors), _BLOCK)
        blocks = [self._start_states(encoder, vectors[start : start + _BLOCK]) for start in starts]
        for number in range(self.n_rounds):
            tried = []
            for i, block in enumerate(blocks, 1):
                tried.append(self._gather_evidence(encoder, block, number))
                share = (number + i / len(blocks)) / self.n_rounds
                on_progress(share, f"Learning to judge evidence, round {number + 1}")
            steps = [step for block in tried for step in block]
            rows = np.concatenate([features(s) for s in steps])
            right = np.concatenate(
                [[s.words[i] in t for i in s.tried] for s, t in zip(steps, true, strict=True)]
            )
            self.judges_.append(WordJudge.fit(rows, right))
            # The next round begins where this one, judged, ends: nothing is tried again.
            blocks = [[self._judge(step, number) for step in block] for block in tried]
        return self

    def _start_states(self, encoder: Encoder, vectors: Vectors) -> list[Toggles]:
        """Answer each vector by classifier and correctors; return the search's start states."""
        found = self.corrections_.rank(encoder, vectors)
        prior = self.vocabulary_.log_odds
        return [
            Toggles(
                vector=vector,
                words=tuple(self.vocabulary_.words[w] for w in words),
                belief=p.astype(np.float64),
                prior=prior[words],
                chosen=np.arange(len(words)) < count,
                tail_mass=max(float(mass - p.sum()), 0.0),
                n_queries=len(self.corrections_.correctors),
            )
            for vector, words, p, count, mass in zip(
                vectors, found.words, found.likely, found.counts, found.mass, strict=True
            )
        ]

    def _gather_evidence(
        self, encoder: Encoder, block: list[Toggles], number: int
    ) -> list[Toggles]:
        """Encode each state's list with likely words toggled; return states with the evidence."""
        n = self.n_later_candidates if number else self.n_candidates
        return toggle_candidates(encoder, self.bag_map_, [s.try_likeliest(n) for s in block])

    def _judge(self, step: Toggles, number: int) -> Toggles:
        """Return a state with beliefs updated by a round's judge and words chosen again."""
        belief = step.belief.copy()
        belief[step.tried] = self.judges_[number](features(step))
        size = self.size_factor * (belief.sum() + step.tail_mass)
        count = int(best_counts(np.sort(belief)[None, ::-1], np.array([size]))[0])
        return step.choose(belief, count)

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: words chosen after all rounds, most probable first."""
        vectors = fitted.check_fitted(self, encoder, vectors)
        recoveries: list[Recovery] = []
        for start in range(0, len(vectors), _BLOCK):
            block = self._start_states(encoder, vectors[start : start + _BLOCK])
            for number in range(len(self.judges_)):
                done = (start + len(block) * number / len(self.judges_)) / len(vectors)
                on_progress(done, f"Re-encoding candidate lists, round {number + 1}")
                found = self._gather_evidence(encoder, block, number)
                block = [self._judge(step, number) for step in found]
            recoveries += [self._answer(step) for step in block]
        return recoveries

    def _answer(self, step: Toggles) -> Recovery:
        """Convert a search state to an answer: chosen words, then runners-up, by belief."""
        ranked = np.argsort(-step.belief, kind="stable")
        listed = [RecoveredWord(step.words[i], float(step.belief[i])) for i in ranked]
        chosen = {step.words[i] for i in np.flatnonzero(step.chosen)}
        return Recovery(
            tuple(w for w in listed if w.word in chosen),
            n_queries=step.n_queries,
            runners_up=tuple(w for w in listed if w.word not in chosen)[:25],
        )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: arrays of classifier, correctors and map; metadata with judges."""
        base_arrays, base_meta = self.base_.state()
        settings = setting_values(self.base_)
        arrays = {f"base.{name}": a for name, a in base_arrays.items()}
        arrays |= self.bag_map_.arrays() | self.corrections_.arrays()
        return arrays, fitted.bound_meta(self) | {
            "base": {"settings": settings, "state": base_meta | {"vocabulary": None}},
            "judges": [judge.to_list() for judge in self.judges_],
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        fitted.rebind(self, meta)
        fitted.check_shapes(self, arrays, {"bag_map.weight": "d d", "bag_map.intercept": "d"})
        base_arrays = fitted.arrays_of_part(arrays, "base.")
        if not base_arrays:
            raise ArtifactError("The file lacks the base classifier of the search.")
        stored = meta["base"]
        base_meta = stored["state"] | {"vocabulary": meta["vocabulary"]}
        self.base_ = ProbeMLCAttack(**stored["settings"]).load_state(base_arrays, base_meta)
        self.corrections_ = self._no_corrections().load(arrays)
        self.bag_map_ = BagMap.from_arrays(arrays)
        self.judges_ = [WordJudge.from_list(values) for values in meta["judges"]]
        return self
