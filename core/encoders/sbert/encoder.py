"""Sentence-BERT, fine-tuned here on pairs of sentences with a score of their similarity.

Reading order: scored_pairs, trainable_transformer, sbert_training, then this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.encoders.hub import must_be_local
from core.encoders.minilm import minilm_folder
from core.encoders.sbert.pairs import ScoredPairs, say_spearman, spearman_score
from core.encoders.sbert.trainable import TrainableTransformer
from core.encoders.sbert.training import FineTuning, Recipe
from core.errors import ArtifactError, InvalidInputError, NotFittedError
from core.protocols import OnProgress, Vectors, no_progress
from core.results import Score
from core.specs import setting, settings_of, validate_settings
from core.training.loop import TrainingLog

__all__ = ["SentenceBERT"]

MIN_PAIRS = 20
_Triple = tuple[Sequence[str], Sequence[str], Sequence[float]]


@dataclass
class SentenceBERT:
    """A masked language model, fine-tuned so that cosines follow human scores of similarity.

    Implements Reimers & Gurevych (2019), §3, with the settings that Corò (2022, §4.1.2) gives:
    mean pooling of the last layer, cosine regression, 4 epochs, batches of 16, learning rate 2e-5,
    10 % warm-up, AdamW with weight decay.
    Differs from the papers: the epoch with the best validation correlation is kept; where the
    processor has bfloat16, products in training run in it. Vectors are not of unit length.

    Attributes
    ----------
    dimension : int
        After `fit_pairs`: the hidden size of the model.
    fingerprint : str
        After `fit_pairs`: SHA-256 over weights, vocabulary and pooling.
    validation_ : Score
        Of the epoch that was kept.
    log_ : TrainingLog
        Validation score ×100 after each epoch, and the time.
    """

    base: str = setting("minilm", "Folder or hub id of the language model; minilm is bundled")
    epochs: int = setting(4, "Passes over the pairs", low=1, high=100, paper="C22")
    batch_size: int = setting(16, "Pairs a step", low=1, high=4096, paper="C22")
    learning_rate: float = setting(2e-5, "Of AdamW, at its peak", low=1e-8, high=1.0, paper="C22")
    warmup_share: float = setting(
        0.1, "Share of the steps in which the rate grows", low=0.0, high=1.0, paper="C22"
    )
    weight_decay: float = setting(
        0.01, "Decoupled L2 penalty, not on biases and norms", low=0.0, high=1.0
    )
    clip_norm: float = setting(1.0, "Longest gradient; 0 for any", low=0.0)
    max_length: int = setting(128, "Word pieces read, special ones included", low=4, high=8192)
    seed: int = setting(0, "Of the order, of dropout and of the pairs set aside", low=0)
    device: str = setting("auto", "Where to compute: auto, cpu, cuda or mps")

    name: str = field(default="sbert", init=False)
    dimension: int = field(init=False, repr=False, compare=False)
    fingerprint: str = field(init=False, repr=False, compare=False)
    validation_: Score = field(init=False, repr=False, compare=False)
    log_: TrainingLog = field(init=False, repr=False, compare=False)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Refuse: texts alone cannot train it.

        Raises
        ------
        InvalidInputError
            Always; the message says what is needed.
        """
        raise InvalidInputError(
            "sbert learns from pairs of sentences with a score from 0 to 5, such as the STS "
            "benchmark: call fit_pairs(pairs_a, pairs_b, scores). For plain texts train a dual "
            "encoder."
        )

    def fit_pairs(
        self,
        pairs_a: Sequence[str],
        pairs_b: Sequence[str],
        scores: Sequence[float],
        *,
        validation: _Triple | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Fine-tune the language model.

        Parameters
        ----------
        pairs_a, pairs_b : sequence of str
            The two sentences of each pair.
        scores : sequence of float
            In [0, 5].
        validation : (pairs_a, pairs_b, scores), optional
            Not trained on; a tenth of the pairs is set aside by default.

        Raises
        ------
        InvalidInputError
            Unequal lengths, unusable texts or scores, fewer than 20 pairs, or training that runs
            away.
        ModelUnavailableError
            The language model is neither here nor reachable.
        ArtifactError
            The checkpoint is damaged or belongs to another run.
        StoppedError
            Raised by `on_progress` and passed on; the same call resumes from the checkpoint.
        """
        validate_settings(self)
        known = ScoredPairs.of(pairs_a, pairs_b, scores)
        if len(known) < MIN_PAIRS:
            raise InvalidInputError(f"sbert needs at least {MIN_PAIRS} pairs, got {len(known)}.")
        if validation is None:
            order = np.random.default_rng(self.seed).permutation(len(known))
            held, known = (
                known.take(order[: len(known) // 10]),
                known.take(order[len(known) // 10 :]),
            )
        else:
            held = ScoredPairs.of(*validation, name="validation")
            if len(held) < 2:
                raise InvalidInputError(f"validation needs at least 2 pairs, got {len(held)}.")
        on_progress(0.0, "Opening the language model")
        is_bundled = self.base == "minilm"
        source = minilm_folder() if is_bundled else self.base
        is_local = is_bundled or must_be_local(f"mlm:{self.base}", self.base)
        encoder = TrainableTransformer(source, **self._options(), is_local=is_local)
        run = FineTuning(self._recipe(), encoder, known, held)
        self.log_ = run.train(on_progress, checkpoint_dir)
        self._accept(encoder)
        self.validation_ = spearman_score(encoder, held, self.seed)
        said = say_spearman(self.validation_)
        on_progress(1.0, f"Trained on {len(known):,} pairs: validation {said}")
        return self

    def _recipe(self) -> Recipe:
        return Recipe(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            warmup_share=self.warmup_share,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
            seed=self.seed,
            identity={"encoder": self.name, "settings": self.settings},
        )

    def _options(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "max_length": self.max_length,
            "device": self.device,
            "precision": "float32",
            "backend": "torch",  # converted weights would not follow the training
        }

    def _accept(self, encoder: TrainableTransformer) -> None:
        """Become the encoder with these weights."""
        self._encoder = encoder.settle()
        self.dimension, self.fingerprint = encoder.dimension, encoder.fingerprint
        self.device = str(encoder.device)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a trained encoder depends on."""
        return {name: getattr(self, name) for name in settings_of(type(self)) if name != "device"}

    @property
    def fitted(self) -> TrainableTransformer:
        """The fine-tuned encoder, open to white-box attackers.

        Raises
        ------
        NotFittedError
            Before `fit_pairs` or `load_state`.
        """
        encoder: TrainableTransformer | None = getattr(self, "_encoder", None)
        if encoder is None:
            raise NotFittedError(
                "SentenceBERT is not trained: call fit_pairs, or load a trained one."
            )
        return encoder

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, d) float32 embeddings of n texts, in their order; not unit vectors."""
        return self.fitted.encode(texts, on_progress)

    n_layers = property(lambda self: self.fitted.n_layers)
    tokens = property(lambda self: self.fitted.tokens)
    special_token_ids = property(lambda self: self.fitted.special_token_ids)
    token_vectors = property(lambda self: self.fitted.token_vectors)
    token_ids = property(lambda self: self.fitted.token_ids)
    text_of = property(lambda self: self.fitted.text_of)
    encode_layer = property(lambda self: self.fitted.encode_layer)
    embed_token_vectors = property(lambda self: self.fitted.embed_token_vectors)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the weights; settings, shape, tokeniser and validation as JSON-able."""
        arrays, files = self.fitted.pack()
        return arrays, {
            "encoder": self.name,
            "settings": self.settings,
            "files": files,
            "validation": {**self.validation_.to_record("spearman"), "n": self.validation_.n},
            "fingerprint": self.fingerprint,
        }

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned, its settings included; the base is not needed.

        Raises
        ------
        ArtifactError
            The state is of another encoder, damaged, or was altered.
        """
        try:
            if meta["encoder"] != self.name:
                raise ValueError(f"it is the state of {meta['encoder']!r}")
            for key in self.settings:
                setattr(self, key, meta["settings"][key])
            validate_settings(self)
            self.validation_ = Score.of_record(meta["validation"], "spearman")
            self._accept(TrainableTransformer.unpack(arrays, meta["files"], **self._options()))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArtifactError(
                f"This is not the state of an sbert encoder, or it is damaged "
                f"({type(error).__name__}: {str(error)[:200]}). Restore the file or train again."
            ) from error
        if self.fingerprint != meta["fingerprint"]:
            raise ArtifactError(
                "The weights or the vocabulary of this sbert encoder were altered: their "
                "fingerprint is another. Restore the file or train again."
            )
        return self
