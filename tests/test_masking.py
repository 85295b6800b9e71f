"""What pretraining under noise hides, sends and asks for, and that noise is drawn afresh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.defences.trained.under_noise.masking import Masking
from leakscope.core.defences.trained.under_noise.pieces import (
    Batch,
    Marks,
    Pieces,
    batch_by_length,
    tokenise_texts,
)
from leakscope.core.defences.trained.under_noise.user_side import TOKEN_MECHANISMS, UserSide
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError

ETA = 40.0


@pytest.fixture
def pieces(tiny_encoder: TransformerEncoder, small_texts: list[str]) -> Pieces:
    return tokenise_texts(tiny_encoder, small_texts[:60], max_length=40)


@pytest.mark.parametrize("mechanism", TOKEN_MECHANISMS)
def test_noise_is_drawn_afresh_at_every_step(
    tiny_encoder: TransformerEncoder, pieces: Pieces, mechanism: str
) -> None:
    side, rng = UserSide(tiny_encoder, mechanism, ETA), np.random.default_rng(0)
    batch = pieces.batch(np.arange(20))
    masking = Masking("denoising", rate=0.01, masked=0.0, replaced=0.0)
    one, two = (masking.task(batch, side, pieces.marks, rng).vectors for _ in range(2))
    user = batch.is_user
    assert (one[user] != two[user]).any(1).mean() > 0.9
    assert (one[user] != side.table[batch.ids][user]).any(1).mean() > 0.9
    assert (one[~user] == side.table[batch.ids][~user]).all(), "what the service sets has no noise"


def test_every_word_piece_of_the_user_is_covered_and_no_mark(
    tiny_encoder: TransformerEncoder,
) -> None:
    typed = ["[MASK] [CLS] unknownword", "[SEP]"]
    pieces = tokenise_texts(tiny_encoder, typed, ["[PAD] a", "b"], max_length=30)
    batch = pieces.batch(np.arange(2))
    marks = pieces.marks
    for row in range(2):
        inner = batch.ids[row][~batch.is_user[row] & batch.is_there[row]]
        assert inner.tolist() == [marks.first, marks.between, marks.between]
        assert batch.is_user[row].sum() == batch.is_there[row].sum() - 3
    assert batch.types[0].sum() == (batch.ids[0][batch.is_there[0]].size - pieces.n_first[0] - 2)


def test_gaps_are_chosen_and_hidden_by_their_shares(
    tiny_encoder: TransformerEncoder, pieces: Pieces
) -> None:
    side, rng = UserSide(tiny_encoder, "token_representation", ETA), np.random.default_rng(1)
    batch = pieces.batch(np.arange(60))
    mask = side.table[pieces.marks.mask]
    n_chosen = n_hidden = n = 0
    for _ in range(30):
        task = Masking("denoising").task(batch, side, pieces.marks, rng)
        sent = task.vectors.reshape(-1, side.dimension)[task.places]
        assert batch.is_user.reshape(-1)[task.places].all()
        n_chosen, n = n_chosen + len(task.places), n + int(batch.is_user.sum())
        n_hidden += int((sent == mask).all(1).sum())
        assert (task.targets[:, 0] == batch.ids.reshape(-1)[task.places]).all()
    assert n_chosen / n == pytest.approx(0.15, abs=0.01)
    assert n_hidden / n_chosen == pytest.approx(0.8, abs=0.03)


@dataclass
class Stepping:
    """A user's side to work by hand: token t has the vector (t,), and leaves as t + 20.

    Whatever is drawn apart from what leaves becomes t + 30, t + 31, …; any token is 5.
    """

    is_text: bool = True
    dimension = 1
    table = np.arange(60, dtype=np.float32)[:, None]

    def vectors(self, ids: NDArray[np.int64], rng: np.random.Generator) -> tuple[object, object]:
        return self.table[ids + 20].copy(), ids + 20 if self.is_text else None

    def nearest(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        return vectors[:, 0].astype(np.int64)

    def perturbed(
        self, ids: NDArray[np.int64], n: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        return ids[:, None] + 30 + np.arange(n)

    def any_tokens(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.full(n, 5)


BY_HAND = Batch(
    *(
        np.array([row])
        for row in ([1, 10, 11, 12, 2], [False, True, True, True, False], [True] * 5, [0] * 5)
    )
)
"""[CLS], three word pieces of the user, [SEP]."""
MARKS = Marks(pad=0, first=1, between=2, mask=3)
SHOWN = {"hidden": (1.0, 0.0), "exchanged": (0.0, 1.0), "kept": (0.0, 0.0)}
"""What the service sees at positions to predict, and the shares under which it is always that."""
SENT = {"hidden": [3, 3, 3], "exchanged": [25, 25, 25], "kept": [30, 31, 32]}
ASKED = {
    ("vanilla", "hidden"): [[40], [41], [42]],
    ("vanilla", "exchanged"): [[40], [41], [42]],
    ("vanilla", "kept"): [[30], [31], [32]],  # the very token that stands there
    **{("probability", shown): [[40, 41, 42], [41, 42, 43], [42, 43, 44]] for shown in SHOWN},
    **{("denoising", shown): [[10], [11], [12]] for shown in SHOWN},
}


@pytest.mark.parametrize("is_text", [True, False], ids=["text", "vectors"])
@pytest.mark.parametrize(("objective", "shown"), ASKED)
def test_what_each_loss_asks_for_by_hand(objective: str, shown: str, is_text: bool) -> None:
    """Equation 5 asks for what the noise made of a token, 6 for a set of such, 7 for the token."""
    masked, replaced = SHOWN[shown]
    masking = Masking(objective, rate=1.0, masked=masked, replaced=replaced, n_perturbations=3)
    side = Stepping(is_text)
    task = masking.task(BY_HAND, side, MARKS, np.random.default_rng(0))  # type: ignore[arg-type]
    assert task.places.tolist() == [1, 2, 3]
    assert task.vectors[0, :, 0].tolist() == [1, *SENT[shown], 2], "marks leave as they are"
    assert task.targets.tolist() == ASKED[objective, shown]


@pytest.mark.parametrize("mechanism", TOKEN_MECHANISMS)
def test_what_is_asked_for_at_a_mask_is_as_noisy_as_what_leaves(
    tiny_encoder: TransformerEncoder, pieces: Pieces, mechanism: str
) -> None:
    side, rng = UserSide(tiny_encoder, mechanism, ETA), np.random.default_rng(2)
    batch = pieces.batch(np.arange(60))
    original = batch.ids[batch.is_user]
    left, changed = side.vectors(original, rng)
    kept = np.mean((side.nearest(left) if changed is None else changed) == original)
    assert 0.05 < kept < 0.95
    for objective in ("vanilla", "probability"):
        masking = Masking(objective, rate=1.0, masked=1.0, replaced=0.0, n_perturbations=7)
        asked = masking.task(batch, side, pieces.marks, rng).targets
        assert asked.shape == (len(original), 7 if objective == "probability" else 1)
        share = np.mean(asked == original[:, None])
        assert share == pytest.approx(kept, abs=4 * np.sqrt(0.5 / len(original)))
    assert (asked != asked[:, :1]).any(1).mean() > 0.5, "each of a set is drawn for itself"


def test_vanilla_under_noisy_vectors_asks_for_the_nearest_token(
    tiny_encoder: TransformerEncoder, pieces: Pieces
) -> None:
    side = UserSide(tiny_encoder, "token_representation", ETA)
    told = Masking("vanilla", rate=0.5, masked=0.0, replaced=0.0)
    task = told.task(pieces.batch(np.arange(40)), side, pieces.marks, np.random.default_rng(3))
    sent = task.vectors.reshape(-1, side.dimension)[task.places]
    assert (side.nearest(sent) == task.targets[:, 0]).all()


def test_perturbations_come_as_often_as_noise_says(tiny_encoder: TransformerEncoder) -> None:
    """The same tokens as those of the mechanism that privatises texts, drawn apart."""
    from leakscope.core.defences.metric_dp.mechanisms import TextPrivatizer

    side, n = UserSide(tiny_encoder, "text_to_text", ETA), 4000
    token = np.array([side.any_tokens(1, np.random.default_rng(4))[0]])
    ours = side.perturbed(token, n, np.random.default_rng(5))[0]
    theirs = TextPrivatizer(tiny_encoder, ETA, rng=np.random.default_rng(6))
    other = theirs.tokens(np.repeat(token, n))
    kept = [(drawn == token).mean() for drawn in (ours, other)]
    assert kept[0] == pytest.approx(kept[1], abs=4 * np.sqrt(0.5 / n))
    assert 0.02 < kept[0] < 0.98


def test_without_noise_all_leaves_as_it_is(tiny_encoder: TransformerEncoder) -> None:
    side, ids = UserSide(tiny_encoder, "none", float("nan")), np.array([7, 9])
    vectors, changed = side.vectors(ids, np.random.default_rng(0))
    assert (vectors == side.table[ids]).all() and (changed == ids).all()
    assert side.perturbed(ids, 2, np.random.default_rng(0)).tolist() == [[7, 7], [9, 9]]


@pytest.mark.parametrize("eta", [0, -1.0, float("nan"), float("inf")])
def test_an_eta_that_is_none_is_refused(tiny_encoder: TransformerEncoder, eta: float) -> None:
    with pytest.raises(InvalidInputError, match="eta must be a positive number"):
        UserSide(tiny_encoder, "text_to_text", eta)


def test_batches_hold_each_text_once_and_no_more_than_their_places() -> None:
    lengths = np.random.default_rng(0).integers(3, 60, 500)
    found = batch_by_length(lengths, 400, np.random.default_rng(1), pool=200)
    assert sorted(np.concatenate(found).tolist()) == list(range(500))
    padded = [len(rows) * lengths[rows].max() for rows in found]
    assert max(padded) <= 400
    assert sum(padded) < 1.25 * lengths.sum(), "hardly any of it is padding"


def test_an_encoder_without_marks_is_refused(tiny_encoder: TransformerEncoder) -> None:
    class Other:
        name, tokens = "other", ["<s>", "</s>"]

    with pytest.raises(InvalidInputError, match=r"other has no \[PAD\]"):
        Marks.of(Other())  # type: ignore[arg-type]
