"""Multi-set prediction: the loss against Eq. 9 written out, decoding, stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from leakscope.core.attacks.inversion.msp import network as msp_network
from leakscope.core.attacks.inversion.msp.attack import StepCalibration
from leakscope.core.attacks.inversion.msp.network import (
    Candidates,
    MSPNetwork,
    all_candidates,
    decode,
    draw_candidates,
    msp_loss,
    stored_network,
)
from leakscope.core.attacks.inversion.sparse_input import input_layer, network_input, to_stored

V, D, H = 12, 6, 8
TARGETS = [np.array([0, 3, 7]), np.array([5]), np.array([1, 2])]


@pytest.fixture
def network(monkeypatch) -> MSPNetwork:
    monkeypatch.setattr(msp_network, "fast_dtype", lambda device: torch.float32)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(V, H)).astype(np.float32)
    return MSPNetwork(D, table, rng.normal(size=V).astype(np.float32), dropout=0.0).eval()


@pytest.fixture
def vectors() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).normal(size=(3, D)).astype(np.float32))


def eq_9(network: MSPNetwork, vector: torch.Tensor, target: set[int], n_steps: int) -> float:
    """Eq. 9 of Song & Raghunathan (2020) for one text, word by word."""
    u, h, c = network.start(vector[None])
    left, named, loss = set(target), set(), 0.0
    for _ in range(n_steps):
        h, c = network.cell(u, (h, c))
        logits = (h @ network.words.T + network.bias)[0]
        if left:
            log_p = torch.log_softmax(logits, 0)
            loss -= sum(log_p[w].item() for w in left) / len(left)
        best = max((w for w in range(V) if w not in named), key=lambda w: logits[w].item())
        named.add(best)
        left.discard(best)
        u = network.words[best][None]
    return loss


def test_loss_is_eq_9(network, vectors):
    loss = msp_loss(network, vectors, TARGETS, all_candidates(V), n_steps=4)
    expected = [eq_9(network, x, set(t.tolist()), 4) for x, t in zip(vectors, TARGETS, strict=True)]
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.slow
def test_sampled_normaliser_is_unbiased(network, vectors):
    """Mean of Z over many draws equals the full Z at the first step."""
    u, h, c = network.start(vectors)
    h, _ = network.advance(u, h, c)
    logits = (h @ network.words.T + network.bias).detach()
    full = logits.exp().sum(1)
    share = np.zeros(V)
    rng = np.random.default_rng(0)
    sums = []
    for _ in range(4000):
        drawn = draw_candidates(TARGETS, share, 4, rng)
        inclusion = drawn.log_inclusion.exp()
        for i, t in enumerate(TARGETS):
            own = np.isin(drawn.ids.numpy(), t)
            others = np.isin(drawn.ids.numpy(), np.concatenate(TARGETS)) & ~own
            # With share 0 the other texts' words are drawn by the uniform draw alone.
            kept = ~others | (rng.random(len(own)) < 4 / V)
            weight = torch.where(torch.from_numpy(own), 1.0, 1 / inclusion)
            weight = weight * torch.from_numpy(kept)
            sums.append((i, (logits[i, drawn.ids].exp() * weight).sum().item()))
    for i in range(3):
        mean = np.mean([s for j, s in sums if j == i])
        assert mean == pytest.approx(full[i].item(), rel=0.05)


def test_candidates_hold_the_batch_and_its_inclusion(network):
    drawn = draw_candidates(TARGETS, np.full(V, 0.5), 0, np.random.default_rng(0))
    assert drawn.ids.tolist() == [0, 1, 2, 3, 5, 7]
    # In a batch of three, a word held by half of all texts is brought by the others with 3/4.
    assert np.allclose(drawn.log_inclusion.exp(), 0.75)


def test_decoding_is_greedy_without_repetition(network, vectors):
    named, probability = decode(network, vectors, 5, shortlist=V)
    u, h, c = network.start(vectors)
    seen = [set() for _ in vectors]
    for step in range(5):
        h, c = network.advance(u, h, c)
        logits = (h @ network.words.T + network.bias).detach().numpy()
        for i, words in enumerate(seen):
            free = [w for w in range(V) if w not in words]
            best = max(free, key=lambda w, i=i: logits[i, w])
            assert named[i, step] == best
            words.add(best)
        u = network.words[torch.from_numpy(named[:, step])]
    assert ((probability > 0) & (probability <= 1)).all()
    short, _ = decode(network, vectors, 1, shortlist=3)
    assert np.array_equal(short, named[:, :1]), "a shortlist holds the first choices"


def test_rare_words_can_weigh_more(network, vectors):
    weights = torch.ones(V)
    plain = msp_loss(network, vectors, TARGETS, all_candidates(V), 3)
    same = msp_loss(network, vectors, TARGETS, all_candidates(V), 3, weights)
    weights[7] = 5.0
    other = msp_loss(network, vectors, TARGETS, all_candidates(V), 3, weights)
    assert plain.item() == pytest.approx(same.item())
    assert other.item() != pytest.approx(plain.item())


def first_choices(network: MSPNetwork, vectors: Any) -> np.ndarray:
    rows = network_input(network.first, vectors, torch.device("cpu"))
    named, _ = decode(network.eval(), rows, 1, shortlist=len(network.words))
    return named[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [384, 512], ids=["the vectors' width", "another width"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_start_as_probe_ranks_words_by_similarity(hidden, kind):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    words = rng.normal(size=(500, 384)).astype(np.float32)
    if kind == "sparse":  # each word in a column of its own, as in a bag of words
        words = csr_array(np.eye(500, dtype=np.float32))
    else:
        words /= np.linalg.norm(words, axis=1, keepdims=True)
    table = rng.normal(0, hidden**-0.5, (501, hidden)).astype(np.float32)
    layer = input_layer(words, hidden)
    network = MSPNetwork(words.shape[1], table, np.zeros(501, np.float32), dropout=0.0, first=layer)
    before = first_choices(network, words)
    network.start_as_probe(words, np.zeros(500, np.float32), 3.0, 8.0)
    assert (before == np.arange(500)).mean() < 0.1
    assert (first_choices(network, words) == np.arange(500)).mean() > 0.9
    assert np.array_equal(network.words[500].detach(), table[500])  # [EOS] says nothing yet


def test_what_all_vectors_share_hides_nothing():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    words = rng.normal(size=(500, 384)).astype(np.float32)
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    vectors = words + np.float32(5)
    table = rng.normal(0, 384**-0.5, (500, 384)).astype(np.float32)

    def share_right(centre: torch.Tensor | None) -> float:
        network = MSPNetwork(384, table, np.zeros(500, np.float32), dropout=0.0, centre=centre)
        network.start_as_probe(words - words.mean(0), np.zeros(500, np.float32), 3.0, 8.0)
        again = stored_network({n: to_stored(t) for n, t in network.state_dict().items()}, 0.0)
        choices = first_choices(again, vectors)
        assert np.mean(choices == first_choices(network, vectors)) > 0.95
        return float(np.mean(choices == np.arange(500)))

    assert share_right(torch.from_numpy(vectors.mean(0))) > 0.9
    assert share_right(None) < 0.1


def test_calibration_finds_how_often_a_step_is_right():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, size=(3000, 3))
    calibration = StepCalibration.fit(p, rng.random(p.shape) < p / 2)
    assert calibration(np.full((1, 3), 0.8)) == pytest.approx(0.4, abs=0.06)
    one_sided = StepCalibration.fit(p, np.ones(p.shape, bool))
    assert one_sided(np.full((1, 3), 0.5)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "targets",
    [TARGETS, [np.array([0]), np.array([1, 2, 5]), np.array([0, 3])]],
    ids=["padding beside other words", "padding beside the first word"],
)
def test_a_drawn_words_logit_is_corrected_by_how_likely_it_was_and_an_own_words_is_not(
    network, vectors, targets
):
    """At the first step Z is Σ_own exp z_w + Σ_others exp z_w / P(w is drawn)."""
    ids, p = [0, 1, 2, 3, 5, 7, 9], [0.9, 0.4, 0.5, 0.8, 0.6, 0.7, 0.25]
    drawn = Candidates(torch.tensor(ids), torch.tensor(p).log())
    loss = msp_loss(network, vectors, targets, drawn, n_steps=1)
    u, h, c = network.start(vectors)
    h, _ = network.advance(u, h, c)
    logits = (h @ network.words.T + network.bias).detach().double().numpy()
    expected = [
        np.log(sum(np.exp(row[w]) / (1.0 if w in t else q) for w, q in zip(ids, p, strict=True)))
        - np.mean([row[w] for w in t])
        for row, t in zip(logits, targets, strict=True)
    ]
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-5)
