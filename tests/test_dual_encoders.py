from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.corpora.document import Document
from leakscope.core.corpora.documents import Corpus
from leakscope.core.encoders.dual.context_pairs import ContextPairs, pairs_of
from leakscope.core.encoders.dual.encoder import (
    DualEncoder,
    LSTMDualEncoder,
    RetrievalAccuracy,
    TransformerDualEncoder,
    context_loss,
    rank_contexts,
    retrieval_accuracy,
    warm_up,
)
from leakscope.core.encoders.dual.network import pool
from leakscope.core.encoders.dual.word_tokens import UNK, WordTokens, split_tokens
from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.specs import AttackSpec

SMALL: dict[str, Any] = {
    "dimension": 16,
    "epochs": 3,
    "n_negatives": 15,
    "learning_rate": 0.01,
    "n_candidates": 10,
    "device": "cpu",
}
FAMILIES: dict[str, DualEncoder] = {
    "lstm": LSTMDualEncoder(**SMALL, word_dimension=12),
    "transformer": TransformerDualEncoder(
        **SMALL, n_layers=2, n_heads=2, feed_forward=32, dropout=0.1
    ),
}
TOPICS = [
    [f"{c}{i}" for i in range(4)]
    for c in "apple boat cloud drum elm fog gate hill ink jar kite lamp moon nail oak pond".split()  # noqa: SIM905
]


def chapters(n: int = 60, seed: int = 0) -> list[str]:
    """Sentences in runs of four that share the words of a topic."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        topic = TOPICS[rng.integers(len(TOPICS))]
        texts += [f"{' '.join(rng.choice(topic, 3))} n{rng.integers(10**9)}." for _ in range(4)]
    return texts


def new(family: str, **changes: Any) -> DualEncoder:
    known = FAMILIES[family]
    return type(known)(**(known.settings | {"device": "cpu"} | changes))


@pytest.fixture(scope="module", params=list(FAMILIES))
def trained(request: pytest.FixtureRequest) -> DualEncoder:
    return new(request.param).fit(chapters())


def test_loss_is_eq_2() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    b = torch.tensor([[1.0, 1.0], [3.0, 0.5]])
    # Φ(x_a)·Φ(x): row 0: 1, 3; row 1: 2, 1.
    first = -(1 - np.log(np.exp(1) + np.exp(3)))
    second = -(1 - np.log(np.exp(2) + np.exp(1)))
    nothing = torch.zeros(2, 2, dtype=torch.bool)
    assert context_loss(a, b, nothing).item() == pytest.approx((first + second) / 2)
    # A sentence in context is no negative: the second x_b is not held against the first x_a.
    in_context = torch.tensor([[True, True], [False, True]])
    assert context_loss(a, b, in_context).item() == pytest.approx((0 + second) / 2)


def test_negatives_are_not_in_context() -> None:
    texts = ["a b", "c d", "e f", "g h", "a b", "i j"] + [f"w{i} x{i}" for i in range(20)]
    pairs = ContextPairs.consecutive(texts)
    rows = np.array([0, 2, 3, 4, 10])
    # x_a: "a b", "e f", "g h", "a b", …; x_b: "c d", "g h", "a b", "i j", …
    expected = np.eye(5, dtype=bool)
    expected[0, 2] = expected[3, 2] = True  # "a b" itself
    expected[0, 1] = expected[3, 1] = True  # "g h" stands before the second "a b"
    expected[0, 3] = expected[3, 0] = True  # "c d" and "i j" follow an "a b"
    expected[1, 0] = True  # "c d" stands before "e f"
    expected[2, 1] = True  # "g h" itself
    np.testing.assert_array_equal(pairs.in_context(rows), expected)


def test_held_out_pairs_share_no_sentence_with_the_others() -> None:
    pairs = ContextPairs.consecutive(chapters())
    known, held = pairs.split(20, seed=1)
    sides = [set(pairs.first[r]) | set(pairs.second[r]) for r in (known, held)]
    assert len(held) == 20
    assert not sides[0] & sides[1]
    assert len(known) >= len(pairs) - 3 * len(held)


def test_warm_up_is_the_schedule_of_vaswani() -> None:
    share = warm_up(10)
    d, peak = 64, (64 * 10) ** -0.5
    for step in (1, 5, 10, 11, 400):
        rate = d**-0.5 * min(step**-0.5, step * 10**-1.5)
        assert share(step - 1) * peak == pytest.approx(rate)


def test_pooling_leaves_padding_out() -> None:
    states = torch.tensor([[[1.0], [5.0], [99.0]], [[2.0], [4.0], [-9.0]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert pool(states, mask, "mean").tolist() == [[3.0], [-1.0]]
    assert pool(states, mask, "last").tolist() == [[5.0], [-9.0]]
    assert pool(states, mask, "max").tolist() == [[5.0], [4.0]]


def test_tokens_are_words_and_signs_most_frequent_first() -> None:
    assert split_tokens("Ça va? Ｆｕｌｌ\u200bwidth 😀") == ["ça", "va", "?", "full", "width", "😀"]
    tokens = WordTokens.count(["b a b", "a b c!", "[UNK]"], size=6)
    assert tokens.tokens == ("[PAD]", "[UNK]", "b", "a", "!", "[")
    assert tokens.ids("b zebra a!", limit=3).tolist() == [2, UNK, 3]
    assert tokens.ids("\u2028").tolist() == [UNK]
    with pytest.raises(ArtifactError, match="each token once"):
        WordTokens(("[PAD]", "[UNK]", "a", "a"))


def test_ties_count_as_their_share() -> None:
    a = np.ones((4, 3), dtype=np.float32)
    assert rank_contexts(a, a).tolist() == [0.25] * 4
    score = RetrievalAccuracy.of(25.0, 400, 100)
    assert list(score.to_dict()) == ["accuracy", "accuracy_ci95", "n", "n_candidates", "chance"]
    assert (score.score.chance, score.to_dict()["n"]) == (1.0, 400)
    assert score.score.ci95.low == pytest.approx(21.0, abs=0.1)
    assert "in 25.0 % (95 % CI 21.0–29.5) of 400" in str(score)


def test_altered_states_are_refused(trained: DualEncoder) -> None:
    arrays, meta = trained.state()
    kind = type(trained)
    changed = arrays | {"words.weight": arrays["words.weight"] * 2}
    with pytest.raises(ArtifactError, match="were altered"):
        kind().load_state(changed, meta)
    for name, value in (("encoder", "other"), ("tokens", meta["tokens"][1:]), ("settings", {})):
        with pytest.raises(ArtifactError):
            kind().load_state(arrays, meta | {name: value})
    huge = {"settings": meta["settings"] | {"dimension": 8192}}
    with pytest.raises(ArtifactError, match="size mismatch"):
        kind().load_state(arrays, meta | huge)
    wide = {"settings": meta["settings"] | {"dimension": 10**9}}
    with pytest.raises(ArtifactError, match="dimension must lie in"):
        kind().load_state(arrays, meta | wide)
    with pytest.raises(ArtifactError):
        kind().load_state({}, meta)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stopped_training_resumes_to_the_same_weights(family: str, tmp_path: Path) -> None:
    texts = chapters(30)
    whole = new(family).fit(texts)
    calls = 0

    def stop(fraction: float, message: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        new(family).fit(texts, on_progress=stop, checkpoint_dir=str(tmp_path))
    said: list[str] = []
    resumed = new(family).fit(
        texts, on_progress=lambda f, m: said.append(m), checkpoint_dir=str(tmp_path)
    )
    assert resumed.log_.n_resumed == 1
    assert resumed.fingerprint == whole.fingerprint
    assert resumed.validation_ == whole.validation_
    assert "pairs of sentences/s" in said[1] and "min left" in said[1]
    assert any("Epoch 2" in m and "held-out cases (guessing: " in m for m in said)
    with pytest.raises(ArtifactError, match="another run"):
        new(family, seed=9).fit(texts, checkpoint_dir=str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_sentences_in_context_are_found_and_shuffled_ones_are_not(family: str) -> None:
    texts = chapters(150)
    pairs = [p for i, p in enumerate(pairwise(texts)) if i % 4 != 3]
    encoder = new(family, epochs=10).fit_pairs(pairs)
    found = encoder.validation_[-1]
    assert found.n_candidates == 10
    assert found.score.ci95.low > 2 * found.score.chance
    order = np.random.default_rng(0).permutation(len(pairs))
    shuffled = [(pairs[i][0], pairs[j][1]) for i, j in enumerate(order)]
    blind = new(family, epochs=10).fit_pairs(shuffled).validation_[-1].score
    assert blind.ci95.low <= blind.chance <= blind.ci95.high


def test_pairs_stay_within_documents() -> None:
    documents = (
        Document("1", "The boat left the quay. It was raining hard. Oh. Nobody waved at all."),
        Document("2", "A lamp stood on the table."),
    )
    corpus = Corpus("small", documents)
    assert pairs_of(corpus) == [("The boat left the quay.", "It was raining hard.")]
    with pytest.raises(InvalidInputError, match="no two consecutive sentences"):
        pairs_of(Corpus("split", documents, is_split=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_unusable_input_is_refused_by_name(family: str) -> None:
    encoder = new(family)
    with pytest.raises(InvalidInputError, match="at least 20 pairs"):
        encoder.fit([])
    with pytest.raises(InvalidInputError, match="text 2 of pair 1 must be a string"):
        encoder.fit_pairs([("apple", None)])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="pair 2 must be two texts"):
        encoder.fit_pairs([("apple", "boat"), ("apple",)])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="share no sentence"):
        encoder.fit(["apple boat"] * 30)
    with pytest.raises(InvalidInputError, match="layer must lie in"):
        encoder.fit(chapters(10)).encode_layer(["apple"], 9)


def test_heads_must_divide_the_dimension() -> None:
    with pytest.raises(InvalidInputError, match="multiple of n_heads"):
        new("transformer", n_heads=3).fit(chapters(10))


def test_training_that_runs_away_says_so() -> None:
    encoder = new("lstm", learning_rate=1.0, clip_norm=0.0)
    pairs = ContextPairs.consecutive(chapters(10))
    ids = [np.array([2, 3])] * len(pairs.texts)
    network = encoder.new_network(5)
    with torch.no_grad():
        network.words.weight[3] = torch.nan
    with pytest.raises(InvalidInputError, match="Lower learning_rate"):
        retrieval_accuracy(network, ids, pairs, np.arange(10), 5)


def test_token_vectors_lead_to_the_encoder_s_own_vectors(trained: DualEncoder) -> None:
    assert isinstance(trained, WhiteBoxEncoder)
    texts = ["apple0 boat1 zebra.", "oak2"]
    for text, ids in zip(texts, trained.token_ids(texts), strict=True):
        assert trained.text_of(ids).startswith(text[:4])
        vectors = trained.token_vectors[torch.tensor([ids])].clone().requires_grad_()
        embedded = trained.embed_token_vectors(vectors)
        np.testing.assert_allclose(embedded.detach().numpy(), trained.encode([text]), atol=1e-5)
        embedded.sum().backward()
        assert vectors.grad is not None and vectors.grad.abs().sum() > 0
        for layer in range(1, trained.n_layers + 1):
            np.testing.assert_allclose(
                trained.embed_token_vectors(vectors, layer).detach().numpy(),
                trained.encode_layer([text], layer),
                atol=1e-5,
            )
    known = [i for i in trained.token_ids(texts)[0] if i != UNK]
    mean = trained.token_vectors[known].mean(0, keepdim=True).numpy()
    np.testing.assert_allclose(trained.encode_layer(texts[:1], 0), mean, atol=1e-6)
    np.testing.assert_allclose(
        trained.encode_layer(texts, trained.n_layers), trained.encode(texts), atol=1e-6
    )


@pytest.mark.parametrize(
    ("attack", "settings"),
    [
        ("sparse", {"penalty": 0.01}),
        ("relaxation", {"n_steps": 5, "length": 4}),
        ("msp", {"epochs": 2, "hidden": 16, "n_negatives": 0, "shortlist": 10}),
    ],
)
def test_attacks_run_on_dual_encoders(
    trained: DualEncoder, attack: str, settings: dict[str, Any]
) -> None:
    texts = chapters(50)
    fitted = make_attack(AttackSpec.of(attack, settings)).fit(trained, texts)
    answers = fitted.invert(trained, trained.encode(texts[:3]))
    assert len(answers) == 3
    assert any(answer.words or answer.runners_up for answer in answers)
