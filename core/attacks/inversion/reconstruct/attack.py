"""Ours: reconstruct a sentence from its vector by editing, encoding and comparing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks import fitted
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.reconstruct.confidence import Answer, Confidence
from leakscope.core.attacks.inversion.reconstruct.decoder import (
    ClassifierEvidence,
    Decoder,
    DecoderPlan,
    train_decoder,
)
from leakscope.core.attacks.inversion.reconstruct.edits import Prior, Proposer
from leakscope.core.attacks.inversion.reconstruct.effects import Effects
from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel
from leakscope.core.attacks.inversion.reconstruct.progress import format_step
from leakscope.core.attacks.inversion.reconstruct.search import (
    Plan,
    SearchState,
    hill_climb,
    unit_vectors,
)
from leakscope.core.attacks.inversion.reconstruct.start import (
    WordPosterior,
    start_sentences,
    word_posteriors,
)
from leakscope.core.attacks.inversion.reconstruct.tokens import tokens_of
from leakscope.core.corpora.documents import digest_fields
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, StoppedError, StoppedSearch
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress, part_progress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.results import RecoveredWord, Recovery, Sentence, SentenceStep
from leakscope.core.specs import setting, setting_values
from leakscope.core.text import STOP_WORDS, Vocabulary, check_texts, words
from leakscope.core.vectors import unit

_BLOCK = 16
"""Vectors searched at once: enough to fill the encoder's batches, few enough to report often."""


@dataclass
class ReconstructAttack:
    """An attack that reconstructs the sentence of a vector by a search that queries the encoder.

    It starts from the words that `probe_mlc` recovers, put into a likely order by a language model.
    Then the sentence is edited: a token inserted, replaced or deleted, a phrase moved, and edits
    that help separately combined. The gain of an edit is predicted from each token's effect on a
    vector, learned once, and from the language model; the best edits are encoded. An edited
    sentence is kept where cosine + prior · (log P + length bonus) is higher. The true sentence has
    the cosine 1. Black box: at most `n_queries` queries a vector; with 0 the start is the answer.
    After calibration a word's score is the probability that it is right; before, the cosine.
    """

    n_queries: int = setting(
        1000, "Maximum number of texts to encode per vector", low=0, high=100_000, at="answer"
    )
    prior: float = setting(
        0.0008,
        "Weight of a nat of the language model's log-probability, relative to the cosine",
        low=0.0,
        high=1.0,
        at="answer",
        search=Uniform(3e-4, 3e-3, is_log=True),
    )
    width: int = setting(
        32, "Sentences to encode at once per vector", low=1, high=1000, at="answer"
    )
    n_states: int = setting(
        4,
        "Sentences to improve in parallel",
        low=1,
        high=100,
        at="answer",
        search=Categorical((2, 4, 8)),
    )
    patience: int = setting(
        8, "Rounds without improvement before the search ends", low=1, high=1000, at="answer"
    )
    vocabulary_size: int = setting(20_000, "Vocabulary size of the base classifier", low=10)
    lexicon_size: int = setting(
        30_000, "Number of tokens of the language model", low=10, high=60_000
    )
    least_count: int = setting(2, "Minimum count of a trigram to be kept", low=1, high=1000)
    n_effects: int = setting(
        60_000, "Auxiliary texts to learn the effect of each token on a vector", low=20
    )
    decoder_epochs: int = setting(
        0, "Epochs of a decoder that writes start sentences; 0 for no decoder", low=0, high=100
    )
    decoder_tokens: int = setting(
        16_384, "Number of tokens of the decoder, the most frequent ones", low=10, high=60_000
    )
    n_beams: int = setting(8, "Sentences that the decoder writes per vector", low=1, high=100)
    base_epochs: int = setting(4, "Epochs of the base classifier", low=1)
    base_substitutions: int = setting(
        1, "Copies of each text with substituted words, for the base classifier", low=0
    )
    seed: int = setting(0, "Random seed of the training of base classifier and decoder", low=0)

    answers_in_order = True

    vocabulary_: Vocabulary = field(init=False, repr=False, compare=False)
    encoder_dimension_: int = field(init=False, repr=False, compare=False)
    decoder_: Decoder | None = field(default=None, init=False, repr=False, compare=False)
    confidence_: Confidence | None = field(default=None, init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train the word classifier, the language model, the token effects and the decoder."""
        texts = check_texts(texts)
        if vectors is None:
            vectors = encoder.encode(texts, part_progress(on_progress, 0.0, 0.4))
        vectors = fitted.check_vectors(vectors, encoder.dimension, len(texts))
        base = ProbeMLCAttack(
            vocabulary_size=self.vocabulary_size,
            epochs=self.base_epochs,
            substitutions=self.base_substitutions,
            seed=self.seed,
        ).fit(
            encoder,
            texts,
            vectors,
            on_progress=part_progress(on_progress, 0.4, 0.8),
            checkpoint_dir=checkpoint_dir,
        )
        report = part_progress(on_progress, 0.8, 1.0)
        return self.fit_on(encoder, base, texts, vectors, report, checkpoint_dir=checkpoint_dir)

    def fit_on(
        self,
        encoder: Encoder,
        base: ProbeMLCAttack,
        texts: Sequence[str],
        vectors: Vectors,
        on_progress: OnProgress = no_progress,
        *,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train everything except the word classifier, which is given as `base`.

        Parameters
        ----------
        texts : sequence of str
            For the language model.
        vectors : ndarray of float32, shape (n, d)
            Of the first n texts, n ≤ their number: effects and decoder are learned of these.
        """
        on_progress(0.0, "Counting the language model")
        self.model_ = LanguageModel.fit(texts, size=self.lexicon_size, least=self.least_count)
        n, last = min(self.n_effects, len(vectors)), 0.3 if self.decoder_epochs else 1.0
        ids = [self.model_.lexicon.ids(tokens_of(text)) for text in texts[: len(vectors)]]
        tokens = self.model_.lexicon.tokens
        alone = fitted.check_vectors(encoder.encode(list(tokens)), encoder.dimension, len(tokens))
        self.effects_ = Effects.fit(
            ids[:n],
            vectors[:n],
            len(tokens),
            alone=unit(alone).astype(np.float32),
            on_progress=part_progress(on_progress, 0.2, last),
        )
        self.base_, self.confidence_, self.decoder_ = base, None, None
        if self.decoder_epochs:
            size = min(self.decoder_tokens, len(tokens))
            self.decoder_ = train_decoder(
                ids,
                vectors,
                DecoderPlan(size=size, epochs=self.decoder_epochs, seed=self.seed),
                evidence_of=ClassifierEvidence(base, self.model_.lexicon, size).of,
                identity={"encoder": encoder.fingerprint, "texts": digest_fields(texts)},
                checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir, "decoder"),
                on_progress=part_progress(on_progress, last, 1.0),
            )
        fitted.bind(self, encoder, self._answerable(texts))
        return self

    def calibrate(
        self, encoder: Encoder, texts: Sequence[str], found: Sequence[Recovery] | None = None
    ) -> Self:
        """Reconstruct held-out texts, and fit how confident to be in words and sentences.

        Each text is reconstructed once, unless `found` holds the results. The best sentences before
        any query and after a twentieth, a sixth and half of the queries are learned from, too.
        """
        vectors = fitted.check_vectors(encoder.encode(texts), encoder.dimension, len(texts))
        budgets = (0, *(self.n_queries // share for share in (20, 6, 2, 1)))
        read, answers, true = found or self.invert(encoder, vectors), [], []
        for text, answer, posterior in zip(texts, read, self._posteriors(vectors), strict=True):
            assert answer.sentence is not None
            answers += [
                Answer(answer.sentence.after(n), self._word_probabilities(posterior))
                for n in budgets
            ]
            true += [text] * len(budgets)
        self.confidence_ = Confidence.fit(answers, true)
        return self

    def _answerable(self, texts: Sequence[str]) -> Vocabulary:
        """Return a vocabulary of the content words that lexicon tokens spell, counted in texts."""
        held = frozenset(word for token in self.model_.lexicon.index for word in words(token))
        counted = Vocabulary.count(texts, size=10 * self.lexicon_size, stop_words=STOP_WORDS)
        pairs = zip(counted.words, counted.document_frequency, strict=True)
        kept = [(word, n) for word, n in pairs if word in held]
        return Vocabulary(
            tuple(word for word, _ in kept), tuple(n for _, n in kept), counted.n_texts, STOP_WORDS
        )

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Search for the sentence of each vector; return an answer each, with its words in order.

        Raises
        ------
        InvalidInputError
            A vector of length zero, or one that the encoder cannot have made.
        StoppedSearch
            `on_progress` asked to stop; its `answers` are the best so far.
        """
        vectors = fitted.check_fitted(self, encoder, vectors)
        if isinstance(encoder, TransformerEncoder):  # and nothing around it, such as a defence
            encoder = encoder.quick()
        units = unit_vectors(vectors)
        recoveries: list[Recovery] = []
        for start in range(0, len(vectors), _BLOCK):
            end = start + _BLOCK
            searches = self._start_searches(vectors[start:end], units[start:end])
            try:
                if self.n_queries:
                    report = partial(self._report_round, on_progress, searches, start, len(vectors))
                    plan = Plan(self.n_queries, self.width, self.n_states, self.patience)
                    proposer = Proposer(self.model_, self.effects_)
                    hill_climb(encoder, self.model_, proposer, searches, plan, report)
            except (StoppedError, KeyboardInterrupt) as stopped:
                left = searches + self._start_searches(vectors[end:], units[end:])
                answers = recoveries + [self._answer(search) for search in left]
                raise StoppedSearch(str(stopped) or "Stopped.", answers) from stopped
            recoveries += [self._answer(search) for search in searches]
        return recoveries

    def beliefs(self, vectors: Vectors) -> list[dict[str, float]]:
        """Return, for each vector, the word classifier's probabilities of likely words, by word."""
        return [self._word_probabilities(posterior) for posterior in self._posteriors(vectors)]

    def _text(self, tokens: NDArray[np.int32]) -> str:
        """Convert the token numbers of a sentence to a readable text."""
        return self.model_.lexicon.text(tokens)

    def _start_searches(self, vectors: Vectors, units: Vectors) -> list[SearchState]:
        """Write start sentences for each vector and build its search; `units` are unit vectors."""
        written: list[list[NDArray[np.int32]]] = [[] for _ in vectors]
        if self.decoder_ is not None:
            evidence = ClassifierEvidence(self.base_, self.model_.lexicon, self.decoder_.size)
            written = self.decoder_.write(units, evidence.of(units), n_beams=self.n_beams)
        searches = []
        for vector, own, known in zip(units, written, self._posteriors(vectors), strict=True):
            starts = [*own, *start_sentences(known, self.model_)]
            prior = Prior(self.prior, known.n_expected)
            searches.append(SearchState(vector, starts, known, prior))
        return searches

    def _word_probabilities(self, posterior: WordPosterior) -> dict[str, float]:
        """Convert a posterior to a dict from each likely word to its probability."""
        known = self.model_.lexicon.tokens
        return {known[i]: float(p) for i, p in zip(posterior.tokens, posterior.likely, strict=True)}

    def _posteriors(self, vectors: Vectors) -> list[WordPosterior]:
        """Compute the word classifier's likely words of each vector, as lexicon tokens."""
        likely = self.base_.model_.probabilities(vectors)
        return word_posteriors(likely, self.base_.vocabulary_.words, self.model_.lexicon)

    def _report_round(
        self, on_progress: OnProgress, searches: Sequence[SearchState], n_done: int, n_all: int
    ) -> None:
        """Report the searches' progress, with the first vector's best sentence as the message."""
        spent = [1.0 if q.is_over else q.n_queries / self.n_queries for q in searches]
        best = searches[0].best
        message = "Writing the first sentence"
        if best is not None:
            step = SentenceStep(searches[0].n_queries, self._text(best.tokens), best.cosine)
            message = format_step(step, with_text=n_all == 1)
        on_progress((n_done + sum(spent)) / n_all, message)

    def _answer(self, search: SearchState) -> Recovery:
        """Convert a search's best sentence to an answer, with confidences if calibrated."""
        steps = [SentenceStep(0, self._text(search.first), math.nan)]
        steps += [SentenceStep(n, self._text(s.tokens), s.cosine) for n, s in search.trail]
        last = steps[-1]
        answer = Answer(last, self._word_probabilities(search.posterior))
        sentence = Sentence(last.text, last.cosine, steps=tuple(steps))
        near = 0.0 if math.isnan(last.cosine) else last.cosine
        confidences: dict[str, float] = {}
        if self.confidence_ is not None:
            sentence = self.confidence_.annotate(sentence, answer)
            pairs = [(w, token.score) for token in sentence.words for w in words(token.word)]
            confidences = dict(sorted(pairs, key=lambda pair: pair[1]))  # the highest of each
        answered = [w for w in dict.fromkeys(words(last.text)) if w in self.vocabulary_.index]
        return Recovery(
            tuple(RecoveredWord(word, confidences.get(word, near)) for word in answered),
            n_queries=search.n_queries,
            sentence=sentence,
        )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: all models' arrays; metadata with tokens and confidence."""
        base_arrays, base_meta = self.base_.state()
        parts = {
            "base": base_arrays,
            "model": self.model_.arrays(),
            "effects": self.effects_.arrays(),
            "decoder": {} if self.decoder_ is None else self.decoder_.arrays(),
        }
        arrays = {f"{part}.{name}": a for part, own in parts.items() for name, a in own.items()}
        return arrays, fitted.bound_meta(self) | {
            "base": {"settings": setting_values(self.base_), "state": base_meta},
            "tokens": list(self.model_.lexicon.tokens),
            "confidence": self.confidence_ and self.confidence_.to_dict(),
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        fitted.rebind(self, meta)
        fitted.check_shapes(self, arrays, {"effects.scale": "t", "effects.centre": "d"})
        base, model, effects, written = (
            fitted.arrays_of_part(arrays, prefix)
            for prefix in ("base.", "model.", "effects.", "decoder.")
        )
        if not base:
            raise ArtifactError("The file lacks the base classifier of the reconstruction.")
        stored = meta["base"]
        self.base_ = ProbeMLCAttack(**stored["settings"]).load_state(base, stored["state"])
        self.model_ = LanguageModel.from_arrays(model, meta["tokens"])
        d = self.encoder_dimension_
        self.effects_ = Effects.from_arrays(effects, len(meta["tokens"]), d)
        self.decoder_ = Decoder.from_arrays(written, d) if written else None
        confidence = meta.get("confidence")
        self.confidence_ = None if confidence is None else Confidence.from_dict(confidence)
        return self
