"""The decoder of vectors: what it computes, what it learns, and that the attack begins with it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leakscope.core.attacks.inversion import load_attack, save_attack
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.reconstruct.attack import ReconstructAttack
from leakscope.core.attacks.inversion.reconstruct.decoder import (
    ClassifierEvidence,
    Decoder,
    DecoderNetwork,
    DecoderPlan,
    TokenEvidence,
    train_decoder,
)
from leakscope.core.attacks.inversion.reconstruct.tokens import (
    BEGIN,
    END,
    N_SPECIAL,
    UNKNOWN,
    Lexicon,
    tokens_of,
)
from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError
from leakscope.core.protocols import Vectors
from leakscope.core.text import Vocabulary
from tests.test_reconstruct import TEXTS, OrderEncoder, read

HELD = [text for i, text in enumerate(TEXTS) if i % 8 == 0]
KNOWN = [text for i, text in enumerate(TEXTS) if i % 8]
LEXICON = Lexicon.count(map(tokens_of, KNOWN), 100)
PLAN = DecoderPlan(
    size=len(LEXICON),
    epochs=60,
    width=64,
    n_layers=2,
    longest=16,
    batch_size=32,
    warm_up=20,
    learning_rate=3e-3,
    dropout=0.0,
)


def small(size: int = 7, longest: int = 4) -> DecoderNetwork:
    torch.manual_seed(3)
    network = DecoderNetwork(size, 5, width=16, n_layers=2, n_first=2, longest=longest)
    with torch.no_grad():
        network.tokens.weight.mul_(8)  # so that it does prefer some tokens
    return network.eval()


VECTORS = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
TOLD = TokenEvidence(
    np.array([[4, 6], [5, 3], [3, 5]]), np.array([[3, 1], [2, 2], [5, 0]], np.float32)
)


def some(told: TokenEvidence, rows: slice) -> TokenEvidence:
    return TokenEvidence(told.tokens[rows], told.nats[rows])


@torch.inference_mode()
def logs_of(
    network: DecoderNetwork,
    vector: Vectors,
    ids: tuple[int, ...],
    told: TokenEvidence | None = None,
) -> NDArray[np.float64]:
    """Return log P of every token in each place of a sentence, all places at once."""
    known = network(torch.from_numpy(vector[None]), torch.tensor([ids]))[0]
    told = told or TokenEvidence.empty(1)
    rows = [0] * len(known)
    heard = torch.from_numpy(told.tokens[rows]), torch.from_numpy(told.nats[rows])
    scores = torch.log_softmax(network.scores(known, *heard).double(), -1)
    found: NDArray[np.float64] = scores.numpy()
    return found


def test_what_comes_later_changes_nothing_before():
    network = small()
    one, other = (logs_of(network, VECTORS[0], ids) for ids in ((3, 4, 5), (3, 4, 6)))
    np.testing.assert_allclose(one[:3], other[:3], atol=1e-6)
    assert np.abs(one[3] - other[3]).max() > 1e-3


@torch.inference_mode()
def test_token_by_token_it_knows_what_it_knows_of_all_at_once():
    network = small()
    given = torch.from_numpy(VECTORS)
    ids = torch.tensor([[3, 4, 5], [6, 6, 3], [4, 3, 3]])
    whole = network(given, ids)
    known, cache = network.advance(network.begin(given), 0, None)
    steps = [known[:, -1]]
    for place, column in enumerate(ids.T):
        known, cache = network.advance(network.tokens(column)[:, None], 2 + place, cache)
        steps.append(known[:, 0])
    np.testing.assert_allclose(torch.stack(steps, 1), whole, atol=1e-5)


def test_wide_enough_the_search_finds_the_best_of_all_sentences():
    network = small()
    best = []
    for i, vector in enumerate(VECTORS):
        worth = {}
        for length in (1, 2, 3):
            for ids in product(range(N_SPECIAL, 7), repeat=length):
                logs = logs_of(network, vector, ids, some(TOLD, slice(i, i + 1)))
                total = sum(logs[place, token] for place, token in enumerate((*ids, END)))
                worth[ids] = total / (length + 1) ** 0.8
        best.append(sorted(worth, key=lambda ids: -worth[ids])[:4])
    decoder = Decoder(network)
    found = decoder.write(VECTORS, TOLD, n_beams=64)
    assert [[tuple(ids) for ids in own[:4]] for own in found] == best
    (alone,) = decoder.write(VECTORS[1:2], some(TOLD, slice(1, 2)), n_beams=64)
    assert [tuple(ids) for ids in alone[:4]] == best[1], "neighbours change nothing"


def test_it_writes_no_unknown_word_and_never_nothing():
    network = small(longest=3)
    with torch.no_grad():  # now what it must not write is what it likes best
        network.leave.bias.copy_(network.tokens.weight[[BEGIN, END, UNKNOWN]].sum(0))
    for own in Decoder(network).write(VECTORS, TOLD, n_beams=3):
        assert 1 <= len(own) <= 3
        assert all(1 <= len(ids) <= 3 and ids.min() >= N_SPECIAL for ids in own)
    assert Decoder(network).write(VECTORS[:0], TokenEvidence.empty(0)) == []


def test_a_word_that_is_told_is_written_the_likelier_the_more_is_told():
    network = small()
    with torch.no_grad():
        network.listen.weight.zero_()
        network.listen.bias.fill_(0.25)
    for place in (0, 1):  # of 8 nats a quarter, at each place
        plain = logs_of(network, VECTORS[0], (3,))[place]
        one = TokenEvidence(np.array([[4, UNKNOWN]]), np.array([[8, 0]], np.float32))
        told = logs_of(network, VECTORS[0], (3,), one)[place]
        gain = (told - plain) - (told - plain)[3]
        np.testing.assert_allclose(gain, [0, 0, 0, 0, 2, 0, 0], atol=1e-5)


def test_what_is_told_is_what_the_vector_adds_to_how_usual_a_word_is():
    class Reader:
        def probabilities(self, vectors: Vectors) -> NDArray[np.float32]:
            return np.array([[0.5, 0.9, 0.01, 0.2]] * len(vectors), np.float32)

    base = ProbeMLCAttack()
    base.vocabulary_ = Vocabulary(("stone", "tree", "river", "zyx"), (40, 20, 10, 5), 100)
    base.model_ = Reader()  # type: ignore[assignment]
    lexicon = Lexicon(("<begin>", "<end>", "<unknown>", "the", "river", "tree", "stone"))
    told = ClassifierEvidence(base, lexicon, 7).of(VECTORS[:2])
    usual = dict(zip(base.vocabulary_.words, base.vocabulary_.log_odds, strict=True))
    assert told.tokens.tolist() == [[5, 6, 4]] * 2, "zyx is no token; the likeliest come first"
    wanted = [np.log(9) - usual["tree"], 0 - usual["stone"], 0.0]  # .01 is less than usual
    np.testing.assert_allclose(told.nats, [wanted] * 2, rtol=1e-4)
    assert ClassifierEvidence(base, lexicon, 6).of(VECTORS[:1]).tokens.tolist() == [[5, 4]]
    none = ClassifierEvidence(base, lexicon, 4).of(VECTORS)
    assert (none.tokens == UNKNOWN).all() and not none.nats.any()


def taught(sentences: list[str], vectors: Vectors, plan: DecoderPlan = PLAN) -> Decoder:
    return train_decoder([LEXICON.ids(tokens_of(text)) for text in sentences], vectors, plan)


def share_written(decoder: Decoder, texts: list[str]) -> float:
    vectors = OrderEncoder().encode(texts)
    found = decoder.write(vectors, TokenEvidence.empty(len(vectors)), n_beams=4)
    told = [tokens_of(LEXICON.text(own[0])) for own in found]
    return float(np.mean([a == tokens_of(b) for a, b in zip(told, texts, strict=True)]))


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return taught(KNOWN, OrderEncoder().encode(KNOWN))


@pytest.mark.slow
def test_it_writes_sentences_that_it_never_saw_from_their_vectors(decoder: Decoder):
    assert share_written(decoder, HELD) > 0.6


@pytest.mark.slow
def test_taught_with_vectors_of_other_texts_it_reads_nothing():
    turned = np.random.default_rng(0).permutation(len(KNOWN))
    astray = taught(KNOWN, OrderEncoder().encode(KNOWN)[turned])
    assert share_written(astray, HELD) < 0.1, "one in 256 by luck"


def test_a_sentence_too_long_or_with_an_unknown_word_is_no_obstacle():
    texts = [*KNOWN[:40], "the " * 30, "zyx saw the bridge."]
    plan = replace(PLAN, epochs=1)
    once = taught(texts, OrderEncoder().encode(texts), plan)
    assert once.write(VECTORS.repeat(52, 1)[:, :256], TokenEvidence.empty(3))
    with pytest.raises(InvalidInputError, match="decoder_epochs=0"):
        taught(["the " * 30] * 20, OrderEncoder().encode(["the"] * 20), plan)


@pytest.mark.slow
def test_one_seed_one_decoder_whatever_stops_it(tmp_path: Path):
    ids = [LEXICON.ids(tokens_of(text)) for text in KNOWN]
    vectors = OrderEncoder().encode(KNOWN)
    plan = replace(PLAN, epochs=3)
    whole = train_decoder(ids, vectors, plan).arrays()

    def stop(fraction: float, message: str) -> None:
        if fraction > 0.4:
            raise StoppedError("Stopped.")

    with pytest.raises(StoppedError):
        train_decoder(ids, vectors, plan, checkpoint_dir=tmp_path, on_progress=stop)
    resumed = train_decoder(ids, vectors, plan, checkpoint_dir=tmp_path).arrays()
    other = train_decoder(ids, vectors, replace(plan, seed=1)).arrays()
    assert all((whole[name] == resumed[name]).all() for name in whole)
    assert any((whole[name] != other[name]).any() for name in whole)
    with pytest.raises(ArtifactError, match="another run"):
        train_decoder(ids, vectors, plan, checkpoint_dir=tmp_path, identity={"texts": "others"})


@pytest.mark.slow
def test_kept_in_a_byte_each_it_writes_the_same(decoder: Decoder):
    arrays = decoder.arrays()
    assert all(arrays[n].dtype == np.int8 for n in arrays if n.endswith(".codes"))
    again = Decoder.from_arrays(arrays, 256)
    vectors, told = OrderEncoder().encode(HELD), TokenEvidence.empty(len(HELD))
    for one, other in zip(decoder.write(vectors, told), again.write(vectors, told), strict=True):
        assert [ids.tolist() for ids in one] == [ids.tolist() for ids in other]


@pytest.mark.parametrize("damage", ["missing", "shape", "nan", "width"])
def test_arrays_that_do_not_fit_are_refused(decoder: Decoder, damage: str):
    arrays = dict(decoder.arrays())
    match damage:
        case "missing":
            del arrays["blocks.1.widen.bias"]
        case "shape":
            arrays["enter.weight.codes"] = arrays["enter.weight.codes"][:-1]
        case "nan":
            arrays["leave.bias"] = np.full_like(arrays["leave.bias"], np.nan)
    with pytest.raises(InvalidInputError, match="Restore the file"):
        Decoder.from_arrays(arrays, 255 if damage == "width" else 256)


SMALL: dict[str, int] = {
    "n_queries": 40,
    "vocabulary_size": 60,
    "lexicon_size": 60,
    "base_epochs": 8,
    "n_beams": 4,
}


@pytest.fixture(scope="module")
def attack() -> ReconstructAttack:
    return ReconstructAttack(**SMALL, decoder_epochs=3).fit(OrderEncoder(), KNOWN)


@pytest.mark.slow
def test_the_attack_begins_with_what_the_decoder_writes(attack: ReconstructAttack, tmp_path: Path):
    encoder = OrderEncoder()
    vectors = encoder.encode(HELD[:8])
    answers = attack.invert(encoder, vectors)
    assert attack.decoder_ is not None
    told = ClassifierEvidence(attack.base_, attack.model_.lexicon, attack.decoder_.size).of(vectors)
    first = [own[0] for own in attack.decoder_.write(vectors, told, n_beams=4)]
    assert told.nats.max() > 1 and (told.tokens >= N_SPECIAL).all()
    for answer, tokens in zip(answers, first, strict=True):
        assert answer.sentence is not None
        assert answer.sentence.steps[0].text == attack.model_.lexicon.text(tokens)
    save_attack(attack, tmp_path / "kept")
    again = load_attack(tmp_path / "kept").invert(encoder, vectors)
    assert [read(a) for a in again] == [read(a) for a in answers]
    bare = ReconstructAttack(**SMALL).fit(encoder, KNOWN)
    assert bare.decoder_ is None and not any(n.startswith("decoder.") for n in bare.state()[0])
