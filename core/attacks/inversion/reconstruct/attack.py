"""Ours: the sentence itself, read back from its vector by proposing, encoding and comparing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.fitted import bind, bound_meta, check_fitted, check_shapes, check_vectors, rebind
from core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from core.attacks.inversion.reconstruct.confidence import Answer, Confidence
from core.attacks.inversion.reconstruct.decoder import Decoder
from core.attacks.inversion.reconstruct.decoder_training import DecoderPlan, train_decoder
from core.attacks.inversion.reconstruct.edits import Proposer
from core.attacks.inversion.reconstruct.effects import Effects
from core.attacks.inversion.reconstruct.evidence import Evidence
from core.attacks.inversion.reconstruct.language_model import LanguageModel
from core.attacks.inversion.reconstruct.prior import Prior
from core.attacks.inversion.reconstruct.progress import reporter
from core.attacks.inversion.reconstruct.search import Plan, Quest, climb, directions
from core.attacks.inversion.reconstruct.start import Heard, first_sentences, heard_in
from core.attacks.inversion.reconstruct.tokens import tokens_of
from core.corpora.documents import digest_fields
from core.encoders.transformer import TransformerEncoder
from core.errors import ArtifactError, StoppedError, StoppedSearch
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.ranges import Between, OneOf
from core.results import RecoveredWord, Recovery, Sentence, SentenceStep
from core.specs import setting, settings_of
from core.text import STOP_WORDS, Vocabulary, check_texts, words
from core.vectors import unit

__all__ = ["ReconstructAttack"]

_BLOCK = 16
"""Vectors searched at once: enough to fill the encoder's batches, few enough to report often."""


@dataclass
class ReconstructAttack:
    """Reads the sentence itself, words in order, and asks the encoder how near each guess comes.

    The words that `probe_mlc` reads, set in a likely order by a language model, are the start.
    Then the sentence is edited: a token put in, exchanged or left out, a phrase moved, edits that
    help apart made together. Which are worth a query is foreseen from what each token does to a
    vector, learned once, and from the language model; what is encoded is kept where cosine +
    prior · (log P + what its length is worth) is higher. The true sentence has the cosine 1. Black
    box: as many queries a vector as `n_queries` says, and none where it says 0, when the start is
    the answer. Calibrated, a word's score is how often such words are right; before, the cosine.
    """

    n_queries: int = setting(
        1000, "Texts that may be encoded for each vector", low=0, high=100_000, at="answer"
    )
    prior: float = setting(
        0.0008,
        "What a nat of the language model's log-probability counts beside the cosine",
        low=0.0,
        high=1.0,
        at="answer",
        search=Between(3e-4, 3e-3, is_log=True),
    )
    width: int = setting(
        32, "Sentences encoded at once for each vector", low=1, high=1000, at="answer"
    )
    n_states: int = setting(
        4,
        "Sentences that are improved side by side",
        low=1,
        high=100,
        at="answer",
        search=OneOf((2, 4, 8)),
    )
    patience: int = setting(
        8, "Rounds without gain after which the search ends", low=1, high=1000, at="answer"
    )
    vocabulary_size: int = setting(20_000, "Content words of the attack underneath", low=10)
    lexicon_size: int = setting(30_000, "Tokens of the language model", low=10, high=60_000)
    least_count: int = setting(
        2, "How often three tokens must stand together to be kept", low=1, high=1000
    )
    n_effects: int = setting(
        60_000, "Auxiliary texts to learn from what each token does to a vector", low=20
    )
    decoder_epochs: int = setting(
        0, "Epochs of a decoder that writes sentences to begin with; 0 for none", low=0, high=100
    )
    decoder_tokens: int = setting(
        16_384, "Tokens that the decoder knows: the most frequent", low=10, high=60_000
    )
    n_beams: int = setting(8, "Sentences that the decoder writes for each vector", low=1, high=100)
    base_epochs: int = setting(4, "Epochs of the classifier underneath", low=1)
    base_substitutions: int = setting(1, "Its copies of texts with words exchanged", low=0)
    seed: int = setting(0, "Of training the classifier underneath, and the decoder", low=0)

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
        """Train the classifier underneath, count the language model, and learn the effects."""
        texts = check_texts(texts)
        if vectors is None:
            vectors = encoder.encode(texts, lambda f, m: on_progress(0.4 * f, m))
        vectors = check_vectors(vectors, encoder.dimension, len(texts))
        base = ProbeMLCAttack(
            vocabulary_size=self.vocabulary_size,
            epochs=self.base_epochs,
            substitutions=self.base_substitutions,
            seed=self.seed,
        ).fit(
            encoder,
            texts,
            vectors,
            on_progress=lambda f, m: on_progress(0.4 + 0.4 * f, m),
            checkpoint_dir=checkpoint_dir,
        )
        return self.fit_on(
            encoder,
            base,
            texts,
            vectors,
            lambda f, m: on_progress(0.8 + 0.2 * f, m),
            checkpoint_dir=checkpoint_dir,
        )

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
        """Learn all but the classifier underneath, which is trained already.

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
        self.effects_ = Effects.fit(
            ids[:n],
            vectors[:n],
            len(self.model_.lexicon),
            alone=self._alone(encoder),
            on_progress=lambda f, m: on_progress(0.2 + (last - 0.2) * f, m),
        )
        self.base_, self.confidence_, self.decoder_ = base, None, None
        if self.decoder_epochs:
            self.decoder_ = train_decoder(
                ids,
                vectors,
                self._decoder_plan(),
                tell=Evidence(base, self.model_.lexicon, self._decoder_plan().size).of,
                identity={"encoder": encoder.fingerprint, "texts": digest_fields(texts)},
                checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir, "decoder"),
                on_progress=lambda f, m: on_progress(last + (1 - last) * f, m),
            )
        bind(self, encoder, self._answerable(texts))
        return self

    def _alone(self, encoder: Encoder) -> Vectors:
        """Return the encoding of each token alone, shape (V, d)."""
        tokens = self.model_.lexicon.tokens
        vectors = check_vectors(encoder.encode(list(tokens)), encoder.dimension, len(tokens))
        return unit(vectors).astype(np.float32)

    def _decoder_plan(self) -> DecoderPlan:
        size = min(self.decoder_tokens, len(self.model_.lexicon))
        return DecoderPlan(size=size, epochs=self.decoder_epochs, seed=self.seed)

    def calibrate(
        self, encoder: Encoder, texts: Sequence[str], found: Sequence[Recovery] | None = None
    ) -> Self:
        """Learn how often its words and sentences are right, from texts that it never saw.

        Each is read once, unless `found` holds what was read; what stood there after a twentieth,
        a sixth and half of the queries, and before any, is learned from too.
        """
        vectors = check_vectors(encoder.encode(texts), encoder.dimension, len(texts))
        budgets = (0, *(self.n_queries // share for share in (20, 6, 2, 1)))
        read, answers, true = found or self.invert(encoder, vectors), [], []
        for text, answer, heard in zip(texts, read, self._heard(vectors), strict=True):
            assert answer.sentence is not None
            answers += [Answer(answer.sentence.after(n), self._believed(heard)) for n in budgets]
            true += [text] * len(budgets)
        self.confidence_ = Confidence.fit(answers, true)
        return self

    def _answerable(self, texts: Sequence[str]) -> Vocabulary:
        """Return the content words that the lexicon's tokens hold, with the texts' counts."""
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
        """Return the sentence read from each vector, and its words in their order.

        Raises
        ------
        InvalidInputError
            A vector of length zero, or one that the encoder cannot have made.
        StoppedSearch
            `on_progress` asked to stop; its `answers` are the best so far.
        """
        vectors = check_fitted(self, encoder, vectors)
        if isinstance(encoder, TransformerEncoder):  # and nothing around it, such as a defence
            encoder = encoder.quick()
        units = directions(vectors)
        recoveries: list[Recovery] = []
        for start in range(0, len(vectors), _BLOCK):
            end = start + _BLOCK
            quests = self._quests(vectors[start:end], units[start:end])
            try:
                if self.n_queries:
                    on_round = reporter(on_progress, quests, self._text, start, len(vectors))
                    self._search(encoder, quests, on_round)
            except (StoppedError, KeyboardInterrupt) as stopped:
                left = quests + self._quests(vectors[end:], units[end:])
                answers = recoveries + [self._answer(quest) for quest in left]
                raise StoppedSearch(str(stopped) or "Stopped.", answers) from stopped
            recoveries += [self._answer(quest) for quest in quests]
        return recoveries

    def beliefs(self, vectors: Vectors) -> list[dict[str, float]]:
        """Return for each vector the words that the classifier underneath reads, with P(word)."""
        return [self._believed(heard) for heard in self._heard(vectors)]

    def _text(self, tokens: NDArray[np.int32]) -> str:
        return self.model_.lexicon.text(tokens)

    def _quests(self, vectors: Vectors, units: Vectors) -> list[Quest]:
        """Return where the search begins for each vector, of which `units` are the directions."""
        written: list[list[NDArray[np.int32]]] = [[] for _ in vectors]
        if self.decoder_ is not None:
            told = Evidence(self.base_, self.model_.lexicon, self.decoder_.size).of(units)
            written = self.decoder_.write(units, told, n_beams=self.n_beams)
        return [
            Quest(vector, [*own, *first_sentences(heard, self.model_)], heard, self._prior(heard))
            for vector, own, heard in zip(units, written, self._heard(vectors), strict=True)
        ]

    def _prior(self, heard: Heard) -> Prior:
        return Prior(self.prior, heard.n_expected)

    def _believed(self, heard: Heard) -> dict[str, float]:
        known = self.model_.lexicon.tokens
        return {known[i]: float(p) for i, p in zip(heard.tokens, heard.likely, strict=True)}

    def _heard(self, vectors: Vectors) -> list[Heard]:
        """Return the words that the classifier underneath reads, as tokens of the lexicon."""
        likely = self.base_.model_.probabilities(vectors)
        return heard_in(likely, self.base_.vocabulary_.words, self.model_.lexicon)

    def _search(
        self, encoder: Encoder, quests: list[Quest], on_round: Callable[[Plan], None]
    ) -> None:
        plan = Plan(self.n_queries, self.width, self.n_states, self.patience)
        proposer = Proposer(self.model_, self.effects_)
        climb(encoder, self.model_, proposer, quests, plan, lambda: on_round(plan))

    def _answer(self, quest: Quest) -> Recovery:
        steps = [SentenceStep(0, self._text(quest.first), math.nan)]
        steps += [SentenceStep(n, self._text(s.tokens), s.cosine) for n, s in quest.trail]
        last = steps[-1]
        answer = Answer(last, self._believed(quest.heard))
        sentence = Sentence(last.text, last.cosine, steps=tuple(steps))
        near = 0.0 if math.isnan(last.cosine) else last.cosine
        sure: dict[str, float] = {}
        if self.confidence_ is not None:
            sentence = self.confidence_.told(sentence, answer)
            for token in sentence.words:
                sure |= {w: max(token.score, sure.get(w, 0.0)) for w in words(token.word)}
        said = [w for w in dict.fromkeys(words(last.text)) if w in self.vocabulary_.index]
        return Recovery(
            tuple(RecoveredWord(word, sure.get(word, near)) for word in said),
            n_queries=quest.n_queries,
            sentence=sentence,
        )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the classifier, the language model, the effects and the decoder."""
        base_arrays, base_meta = self.base_.state()
        settings = {name: getattr(self.base_, name) for name in settings_of(ProbeMLCAttack)}
        arrays = {f"base.{name}": a for name, a in base_arrays.items()}
        arrays |= {f"model.{name}": a for name, a in self.model_.arrays().items()}
        arrays |= {f"effects.{name}": a for name, a in self.effects_.arrays().items()}
        if self.decoder_ is not None:
            arrays |= {f"decoder.{name}": a for name, a in self.decoder_.arrays().items()}
        return arrays, bound_meta(self) | {
            "base": {"settings": settings, "state": base_meta},
            "tokens": list(self.model_.lexicon.tokens),
            "confidence": self.confidence_ and self.confidence_.to_dict(),
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        rebind(self, meta)
        check_shapes(self, arrays, {"effects.scale": "t", "effects.centre": "d"})

        def part(name: str) -> dict[str, NDArray[Any]]:
            head = f"{name}."
            return {k.removeprefix(head): a for k, a in arrays.items() if k.startswith(head)}

        if not part("base"):
            raise ArtifactError("The classifier under the reconstruction is missing from the file.")
        stored = meta["base"]
        base = ProbeMLCAttack(**stored["settings"]).load_state(part("base"), stored["state"])
        self.base_ = base
        self.model_ = LanguageModel.from_arrays(part("model"), meta["tokens"])
        d = self.encoder_dimension_
        self.effects_ = Effects.from_arrays(part("effects"), len(meta["tokens"]), d)
        written = part("decoder")
        self.decoder_ = Decoder.from_arrays(written, d) if written else None
        sure = meta.get("confidence")
        self.confidence_ = None if sure is None else Confidence.from_dict(sure)
        return self
