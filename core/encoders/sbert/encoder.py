"""Sentence-BERT, fine-tuned here on sentence pairs with similarity scores.

Reading order: pairs, trainable, then this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from leakscope.core.encoders.fitted import TrainedEncoder
from leakscope.core.encoders.hub import must_be_local
from leakscope.core.encoders.minilm import minilm_folder
from leakscope.core.encoders.sbert.pairs import (
    MAX_SCORE,
    ScoredPairs,
    format_spearman,
    spearman_score,
)
from leakscope.core.encoders.sbert.trainable import TrainableTransformer
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import setting, validate_settings
from leakscope.core.training.devices import fast_dtype, seed_device
from leakscope.core.training.loop import Loop, TrainingLog, train

MIN_PAIRS = 20
_Triple = tuple[Sequence[str], Sequence[str], Sequence[float]]


def cosine_loss(one: Tensor, two: Tensor, scores: Tensor) -> Tensor:
    """Return the mean of (cos(u, v) − score/5)² over pairs of sentence vectors.

    Implements the regression objective of Reimers & Gurevych (2019), §3: mean squared error
    between the cosine of the sentence vectors and the score as a share of the highest.
    Differs from the paper: nothing.

    Parameters
    ----------
    one, two : Tensor of float32, shape (n, d)
    scores : Tensor of float32, shape (n,)
        In [0, 5].
    """
    return F.mse_loss(F.cosine_similarity(one, two), scores / MAX_SCORE)


def warm_up_and_decay(n_steps: int, warmup_share: float) -> Callable[[int], float]:
    """Return a function from step to share of the learning rate: linear warm-up, then decay."""
    n_warm = math.ceil(n_steps * warmup_share)

    def share(step: int) -> float:
        """Return the learning rate at a step as a share of the peak."""
        if step < n_warm:
            return (step + 1) / n_warm
        return max(0.0, (n_steps - step) / max(1, n_steps - n_warm))

    return share


@dataclass
class SentenceBERT(TrainedEncoder):
    """A masked language model, fine-tuned so that cosines match human similarity scores.

    Implements Reimers & Gurevych (2019), §3, with the settings that Corò (2022, §4.1.2) gives:
    mean pooling of the last layer, cosine regression, 4 epochs, batches of 16, learning rate 2e-5,
    10 % warm-up, AdamW with weight decay.
    Differs from the papers: the epoch with the best validation correlation is used; if the
    processor supports bfloat16, training multiplies in it. Vectors are not of unit length.

    Attributes
    ----------
    dimension : int
        After `fit_pairs`: the hidden size of the model.
    fingerprint : str
        After `fit_pairs`: SHA-256 over weights, vocabulary and pooling.
    validation_ : Score
        The validation score of the chosen epoch.
    log_ : TrainingLog
        Validation score ×100 after each epoch, and the time.
    """

    base: str = setting("minilm", "Folder or hub id of the language model; minilm is bundled")
    epochs: int = setting(4, "Passes over the pairs", low=1, high=100, paper="C22")
    batch_size: int = setting(16, "Pairs per step", low=1, high=4096, paper="C22")
    learning_rate: float = setting(
        2e-5, "Peak learning rate of AdamW", low=1e-8, high=1.0, paper="C22"
    )
    warmup_share: float = setting(
        0.1, "Share of the steps used for warm-up", low=0.0, high=1.0, paper="C22"
    )
    weight_decay: float = setting(
        0.01, "Decoupled L2 penalty, not on biases and norms", low=0.0, high=1.0
    )
    clip_norm: float = setting(1.0, "Maximum gradient norm; 0 for no clipping", low=0.0)
    max_length: int = setting(128, "Maximum word pieces, special ones included", low=4, high=8192)
    seed: int = setting(0, "Random seed of the order, dropout and held-out pairs", low=0)
    device: str = setting("auto", "Device: auto, cpu, cuda or mps")

    article = "an"
    sealed = "weights or the vocabulary"
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
        """Raise InvalidInputError in any case: training needs scored pairs, see `fit_pairs`.

        Raises
        ------
        InvalidInputError
            Always; the message names the required data.
        """
        raise InvalidInputError(
            "sbert needs pairs of sentences with a score from 0 to 5, such as the STS benchmark: "
            "call fit_pairs(pairs_a, pairs_b, scores). For plain texts, train a dual encoder."
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
        """Fine-tune the language model on sentence pairs with human scores; return the encoder.

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
            Unequal lengths, unusable texts or scores, fewer than 20 pairs, or diverging training.
        ModelUnavailableError
            The language model is neither on this machine nor reachable.
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
        on_progress(0.0, "Loading the language model")
        is_bundled = self.base == "minilm"
        source = minilm_folder() if is_bundled else self.base
        is_local = is_bundled or must_be_local(f"mlm:{self.base}", self.base)
        encoder = TrainableTransformer(source, **self._transformer_options(), is_local=is_local)
        run = FineTuning(self, encoder, known, held)
        self.log_ = run.train(on_progress, checkpoint_dir)
        self._set_weights(encoder)
        self.validation_ = spearman_score(encoder, held, self.seed)
        score_text = format_spearman(self.validation_)
        on_progress(1.0, f"Trained on {len(known):,} pairs: validation {score_text}")
        return self

    def _transformer_options(self) -> dict[str, Any]:
        """Return the keyword arguments with which to create this encoder's Transformer."""
        return {
            "name": self.name,
            "max_length": self.max_length,
            "device": self.device,
            "precision": "float32",
            "backend": "torch",  # converted weights would not follow the training
        }

    def _set_weights(self, encoder: TrainableTransformer) -> None:
        """Set the fine-tuned Transformer, with its dimension and fingerprint."""
        self._encoder = encoder.end_training()
        self.dimension, self.fingerprint = encoder.dimension, encoder.fingerprint
        self.device = str(encoder.device)

    @property
    def fitted(self) -> TrainableTransformer:
        """The fine-tuned Transformer, with white-box access.

        Raises
        ------
        NotFittedError
            Before `fit_pairs` or `load_state`.
        """
        encoder: TrainableTransformer | None = getattr(self, "_encoder", None)
        if encoder is None:
            raise NotFittedError(
                "SentenceBERT is not trained: call fit_pairs, or load a trained model."
            )
        return encoder

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts as (n, d) float32 vectors, not of unit length."""
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
        """Return the weights as arrays, and settings, files and validation for JSON."""
        arrays, files = self.fitted.pack()
        return arrays, {
            "encoder": self.name,
            "settings": self.settings,
            "files": files,
            "validation": {**self.validation_.to_record("spearman"), "n": self.validation_.n},
            "fingerprint": self.fingerprint,
        }

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        """Set what `state` returned; the base model is not needed."""
        if meta["encoder"] != self.name:
            raise ValueError(f"it is the state of {meta['encoder']!r}")
        for key in self.settings:
            setattr(self, key, meta["settings"][key])
        validate_settings(self)
        self.validation_ = Score.of_record(meta["validation"], "spearman")
        self._set_weights(
            TrainableTransformer.unpack(arrays, meta["files"], **self._transformer_options())
        )


class FineTuning:
    """One fine-tuning run of a SentenceBERT encoder on scored pairs."""

    def __init__(
        self,
        recipe: SentenceBERT,
        encoder: TrainableTransformer,
        known: ScoredPairs,
        held: ScoredPairs,
    ) -> None:
        self.recipe, self.encoder, self.known, self.held = recipe, encoder, known, held
        self.network = encoder.open_for_training()
        self.fast = fast_dtype(encoder.device)
        self.scores: dict[float, Score] = {}
        self.base = encoder.fingerprint

    def train(self, on_progress: OnProgress, checkpoint_dir: str | None) -> TrainingLog:
        """Run the training loop, keep the best epoch's weights, and return the log."""
        recipe = self.recipe
        loop = Loop(
            n=len(self.known),
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            seed=recipe.seed,
            identity={
                "encoder": recipe.name,
                "settings": recipe.settings,
                "base": self.base,
                "pairs": self.known.digest,
                "validation": self.held.digest,
            },
            clip_norm=recipe.clip_norm,
            patience=recipe.epochs + 1,
            is_half=False,
            say_score=self.format_score,
            unit="pairs",
            checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
        )
        loop.rate_share = warm_up_and_decay(loop.epochs * loop.n_batches, recipe.warmup_share)
        return train(self.network, self._optimizer(), self.loss, self.validate, loop, on_progress)

    def format_score(self, value: float) -> str:
        """Format a validation score, with its interval if it was measured in this process."""
        score = self.scores.get(value, Score(value, n=len(self.held)))
        return f"validation {format_spearman(score)}"

    def _optimizer(self) -> torch.optim.Optimizer:
        """Return AdamW with weight decay on matrices only."""
        named = list(self.network.parameters())
        groups = [
            {
                "params": [p for p in named if p.ndim > 1],
                "weight_decay": self.recipe.weight_decay,
            },
            {"params": [p for p in named if p.ndim <= 1], "weight_decay": 0.0},
        ]
        is_fused = self.encoder.device.type in ("cpu", "cuda")
        return torch.optim.AdamW(groups, lr=self.recipe.learning_rate, fused=is_fused)

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Encode a batch of pairs, given as row numbers, and return its cosine loss."""
        self.network.train()
        seed_device(self.encoder.device)
        batch = self.known.take(rows)
        with torch.autocast(
            self.encoder.device.type, self.fast, enabled=self.fast != torch.float32
        ):
            both = self.encoder.embed_batch(batch.one + batch.two)
        one, two = both.float().split(len(rows))
        return cosine_loss(one, two, torch.from_numpy(batch.scores).to(one.device))

    def validate(self) -> float:
        """Measure Spearman's correlation ×100 of cosines and scores on the validation pairs."""
        self.network.eval()
        score = spearman_score(self.encoder, self.held, self.recipe.seed)
        self.scores[score.value] = score
        return score.value
