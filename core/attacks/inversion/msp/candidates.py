"""Candidate words of a training step in multi-set prediction, and the weights of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.text import Vocabulary


@dataclass(frozen=True)
class Candidates:
    """The words scored in one training step, with their inclusion probabilities."""

    ids: Tensor
    """(C,) positions in V, sorted."""
    log_inclusion: Tensor
    """(C,) log of the probability that the word is a candidate of a text that lacks it."""


def draw_candidates(
    targets: list[NDArray[np.int32]],
    share: NDArray[np.float64],
    n_negatives: int,
    rng: np.random.Generator,
    always: tuple[int, ...] = (),
) -> Candidates:
    """Draw the candidates of a batch: its own words and `n_negatives` random ones.

    Parameters
    ----------
    targets : list of int arrays
        The words of each text of the batch.
    share : ndarray, shape (|V|,)
        Share of training texts that hold each word: it gives the chance that another text of
        the batch brought the word in.
    """
    size = len(share)
    drawn = rng.choice(size, min(n_negatives, size), replace=False)
    ids = np.unique(np.concatenate([*targets, drawn, np.array(always, dtype=np.int64)]))
    missed = (1 - share[ids]) ** (len(targets) - 1) * (1 - len(drawn) / size)
    inclusion = np.log(np.clip(1 - missed, 1e-6, 1.0))
    return Candidates(
        torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(inclusion.astype(np.float32))
    )


def all_candidates(size: int) -> Candidates:
    """Return every word as a candidate, as in the papers' full softmax."""
    return Candidates(torch.arange(size), torch.zeros(size))


def rare_word_weights(vocabulary: Vocabulary, power: float, *, end_token: bool) -> Tensor:
    """Return loss weights that favour rare words: (N/df)^power, with mean 1 over a text's words.

    C22 §6.1 proposes to weight rare words in the loss; the formula is ours. [EOS] weighs 1.
    """
    counts = np.asarray(vocabulary.document_frequency, dtype=np.float64)
    weight = (vocabulary.n_texts / counts) ** power
    weight /= (weight * counts).sum() / counts.sum()
    if end_token:
        weight = np.append(weight, 1.0)
    return torch.from_numpy(weight.astype(np.float32))
