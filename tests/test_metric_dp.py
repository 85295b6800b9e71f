from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from randomgen import AESCounter
from scipy import stats

from leakscope.core.defences.metric_dp.audit.pairs import audit_pair, half_spaces
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.custext import CusText
from leakscope.core.defences.metric_dp.exponential_mechanism import TEM, SanText, SanTextPlus
from leakscope.core.defences.metric_dp.mechanisms import (
    SequenceRepresentation,
    TextPrivatizer,
    TextToText,
    TextToTextRanked,
    TokenRepresentation,
)
from leakscope.core.defences.metric_dp.neighbours.nearest import (
    Format,
    NearestCandidate,
    _multiplies_int8,
)
from leakscope.core.defences.metric_dp.noise import draw_noise, secure_generator
from leakscope.core.defences.trained.under_noise import user_side
from leakscope.core.defences.trained.under_noise.user_side import (
    UserSide,
    device_identity,
    draw_noise_on_device,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError

TEXT = "The harbour master counted 12 ships. 😀 [SEP] naïve zzqx"


def draw_on_device(*given: Any, rng: np.random.Generator) -> np.ndarray:
    """Draw noise as a GPU does."""
    return draw_noise_on_device(*given, rng=rng, device="cpu").numpy()


@pytest.mark.parametrize("draw", [draw_noise, draw_on_device])
@pytest.mark.parametrize(("dimension", "eta"), [(2, 0.5), (32, 10.0), (384, 75.0)])
def test_noise_has_gamma_norms_and_uniform_directions(
    draw: Callable[..., np.ndarray], dimension: int, eta: float
) -> None:
    noise = draw(20_000, dimension, eta, rng=np.random.default_rng(1)).astype(np.float64)
    norms = np.linalg.norm(noise, axis=1)
    assert stats.kstest(norms, stats.gamma(dimension, scale=1 / eta).cdf).pvalue > 0.001
    assert norms.mean() == pytest.approx(dimension / eta, rel=0.02)
    directions = noise / norms[:, None]
    # A coordinate of a uniform direction: its square is Beta(1/2, (n − 1)/2).
    squares = stats.beta(0.5, (dimension - 1) / 2)
    assert stats.kstest(directions[:, 0] ** 2, squares.cdf).pvalue > 0.001
    # Rayleigh's test: n·m·‖mean direction‖² is χ² with n degrees of freedom.
    rayleigh = dimension * len(noise) * (directions.mean(0) ** 2).sum()
    assert 0.001 < stats.chi2(dimension).cdf(rayleigh) < 0.999
    # Norm and direction are independent.
    assert abs(stats.spearmanr(norms, directions[:, 0])[0]) < 0.03


@pytest.mark.parametrize(
    ("has_aes", "n_bits", "known"),
    [
        # A block of zeros under a key of zeros: FIPS 197, in counter mode.
        (True, 128, "66e94bd4ef8a2c3b884cfa59ca342b2e"),
        # The key stream under a key of zeros: RFC 8439, A.1, test vector 1.
        (False, 256, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"),
    ],
)
def test_what_is_released_is_drawn_from_a_cipher(
    has_aes: bool, n_bits: int, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Counter(AESCounter):
        use_aesni = has_aes

    monkeypatch.setattr("leakscope.core.defences.metric_dp.noise.AESCounter", Counter)
    monkeypatch.setattr("secrets.randbits", lambda n: asked.append(n) or 0)
    stream = secure_generator().bit_generator.random_raw(len(known) // 16)
    assert stream.astype("<u8").tobytes().hex() == known and asked[-1] == n_bits


def test_secure_generators_differ_and_seeds_repeat() -> None:
    first, second = (secure_generator().integers(2**63, size=4).tolist() for _ in range(2))
    assert first != second
    draws = [draw_noise(3, 4, rng=np.random.default_rng(9)) for _ in range(2)]
    assert (draws[0] == draws[1]).all()


@pytest.mark.parametrize("draw", [draw_noise, draw_on_device])
@pytest.mark.parametrize("eta", [0.0, -1.0, float("nan"), float("inf"), "75"])
def test_eta_must_be_a_positive_number(draw: Callable[..., np.ndarray], eta: object) -> None:
    with pytest.raises(InvalidInputError, match="eta must be a positive number"):
        draw(1, 2, eta, rng=np.random.default_rng(0))


def test_every_piece_is_replaced_independently(minilm: TransformerEncoder) -> None:
    (ids,) = minilm.token_ids([TEXT])
    assert {100, 102} <= set(ids)  # [UNK], and [SEP] typed by hand
    privatizer = TextPrivatizer(minilm, 15.0, rng=np.random.default_rng(0))
    changed = privatizer.tokens(np.array(ids * 40)).reshape(40, len(ids))
    assert (changed != np.array(ids)).mean() > 0.95
    assert not np.isin(changed, [0, 100, 101, 102, 103]).any()
    # The same token at two places gets noise of its own.
    twice = privatizer.tokens(np.array([ids[1]] * 50))
    assert len(set(twice.tolist())) > 10


def test_a_token_becomes_the_nearest_to_its_vector_under_the_noise_of_eta(
    minilm: TransformerEncoder,
) -> None:
    table, eta = minilm.token_vectors.numpy().astype(np.float64), 60.0
    words = np.array([minilm.tokens.index(t) for t in ("harbour", "insulin", "twelve")] * 40)
    found = TextPrivatizer(minilm, eta, rng=np.random.default_rng(3)).tokens(words)
    noisy = table[words] + draw_noise(120, 384, eta, rng=np.random.default_rng(3))
    allowed = candidate_ids(minilm, "regular")
    distances = (table[allowed] ** 2).sum(1) - 2 * noisy @ table[allowed].T
    assert 0.1 < (found == words).mean() < 0.9  # so much noise that its scale is seen
    assert (found == allowed[distances.argmin(1)]).mean() > 0.98  # but for ties in float32


def test_without_noise_nothing_changes(minilm: TransformerEncoder) -> None:
    text = "the harbour master counted 12 ships."
    privatizer = TextPrivatizer(minilm, 1e7, rng=np.random.default_rng(0))
    assert privatizer.texts([text]) == [text]
    plain = minilm.encode([text])
    for defence in (TextToText(eta=1e7), TokenRepresentation(eta=1e7)):
        assert defence.protect(minilm).encode([text]) == pytest.approx(plain, abs=2e-4)
    noisy = SequenceRepresentation(eta=1e7).protect(minilm).encode([text])
    assert noisy == pytest.approx(plain, abs=1e-3)


def test_long_texts_are_privatised_to_the_end(minilm: TransformerEncoder) -> None:
    text = "rain " * 700 + "insulin"
    (private,) = TextPrivatizer(minilm, 1e7, rng=np.random.default_rng(0)).texts([text])
    assert private.split()[-1] == "insulin" and len(private.split()) == 701


def test_token_representation_is_the_encoder_on_noisy_token_vectors(
    minilm: TransformerEncoder,
) -> None:
    texts = ["rain fell on the harbour", "a doctor", "the minister spoke to the press today"]
    found = TokenRepresentation(eta=90.0, seed=1).protect(minilm).encode(texts)
    ids = minilm.token_ids(texts)
    noise = draw_noise(sum(map(len, ids)), 384, 90.0, rng=np.random.default_rng(1))
    for row, text_ids, moves in zip(
        found, ids, np.split(noise, np.cumsum([len(i) for i in ids])[:-1]), strict=True
    ):
        moved = minilm.token_vectors[text_ids] + torch.from_numpy(moves)
        assert row == pytest.approx(minilm.embed_token_vectors(moved[None])[0].numpy(), abs=1e-4)


class Zeros:
    """An encoder of which nothing but its vectors is known, which are zero."""

    name, dimension, fingerprint = "zeros", 8, "f"

    def encode(self, texts: list[str], on_progress: object = None) -> np.ndarray:
        return np.zeros((len(texts), 8), np.float32)


def test_black_boxes_take_the_sequence_mechanism_only() -> None:
    box = Zeros()
    assert SequenceRepresentation(eta=5.0).protect(box).encode(["a b"]).shape == (1, 8)
    for kind in (
        TextToText,
        TextToTextRanked,
        TokenRepresentation,
        SanText,
        SanTextPlus,
        TEM,
        CusText,
    ):
        with pytest.raises(InvalidInputError, match="white-box"):
            kind().protect(box)


# The audit ----------------------------------------------------------------------------------

ETA = 6.0
PAIRS = [(1, 2), (3, 7), (20, 11)]


class Tokens:
    """Twenty-five tokens in five dimensions, so near that the mechanisms mix them up."""

    def __init__(self) -> None:
        self.vectors = (0.12 * np.random.default_rng(0).standard_normal((25, 5))).astype(np.float32)
        self.nearest = NearestCandidate(self.vectors)

    def promised(self, x: int, other: int, eta: float = ETA) -> float:
        return eta * float(np.linalg.norm(self.vectors[x] - self.vectors[other]))

    def text_to_text(
        self, x: int, rng: np.random.Generator, eta: float = ETA
    ) -> Callable[[int], np.ndarray]:
        return lambda m: self.nearest(self.vectors[x] + draw_noise(m, 5, eta, rng=rng))

    def representation(
        self, x: int, other: int, start: int, rng: np.random.Generator, eta: float = ETA
    ) -> Callable[[int], np.ndarray]:
        def run(m: int) -> np.ndarray:
            noisy = self.vectors[start] + draw_noise(m, 5, eta, rng=rng)
            return half_spaces(noisy, self.vectors[x], self.vectors[other])

        return run


@pytest.mark.parametrize("format", ["int8", "bfloat16", "float32"])
def test_the_candidate_of_a_rank_is_the_one_that_exact_distances_put_there(
    format: Format,
) -> None:
    """Of near and of far ranks, and of vectors of which no product can be bounded."""
    if format == "int8" and not _multiplies_int8():
        pytest.skip("this processor has no products of int8")
    rng = np.random.default_rng(5)
    known = rng.standard_normal((2100, 24)).astype(np.float32)
    known[7] = known[1900]  # of equals the first comes first
    nearest = NearestCandidate(known, format=format)
    assert (nearest._quantized is not None) is (format != "float32")
    queries = (known[rng.integers(0, 2100, 700)] + 0.5 * rng.standard_normal((700, 24))).astype(
        np.float32
    )
    queries[0] = known[7]
    ranks = rng.integers(0, 20, 700)
    ranks[:3], ranks[600:610] = (1, 0, 0), rng.integers(31, 2100, 10)
    far = np.linalg.norm(queries[:, None].astype(np.float64) - known[None], axis=2)
    true = np.take_along_axis(np.argsort(far, axis=1, kind="stable"), ranks[:, None], 1)[:, 0]
    found = nearest.of_ranks(queries, ranks)
    assert int(found[0]) in ({7, 1900} if format == "float32" else {1900})
    assert (found[1:] == true[1:]).all()
    assert (nearest.of_ranks(queries, np.zeros(700, np.int64)) == nearest(queries)).all()
    huge = np.full((2, 24), 3e38, np.float32)
    assert (nearest.of_ranks(huge, np.array([0, 0])) < 2100).all()


@pytest.mark.slow
def test_batches_draw_what_the_same_tokens_draw_one_call_after_the_other(
    minilm: TransformerEncoder,
) -> None:
    """A seed gives the same texts, however far ahead the noise is drawn."""
    batches = [np.arange(1000 + n, 1000 + 2 * n) for n in (0, 3, 9000, 0, 700)]
    one, other = (TextPrivatizer(minilm, 75.0, rng=np.random.default_rng(3)) for _ in range(2))
    found = list(one.token_batches(batches))
    for tokens, changed in zip(batches, found, strict=True):
        assert (other.tokens(tokens) == changed).all() and len(changed) == len(tokens)
    drawn = iter(range(1000))
    blank = one.token_batches(np.empty(0, np.int64) for _ in drawn)
    assert len(next(blank)) == 0 and next(drawn) < 50, "none pile up, though they have no token"


@pytest.mark.parametrize(("x", "other"), PAIRS)
def test_the_mechanisms_pass_the_audit(x: int, other: int) -> None:
    world, rng = Tokens(), np.random.default_rng(x)
    promised = world.promised(x, other)
    text = audit_pair(
        world.text_to_text(x, rng), world.text_to_text(other, rng), promised, alpha=1e-4
    )
    assert not text.is_refuted
    vector = audit_pair(
        world.representation(x, other, x, rng),
        world.representation(x, other, other, rng),
        promised,
        n_runs=400_000,
        alpha=1e-4,
    )
    assert not vector.is_refuted
    # The bound is worth something: on half-spaces the true ratio comes near the promise.
    assert vector.lower_bound > 0.3 * promised


@pytest.mark.parametrize(("x", "other"), PAIRS)
@pytest.mark.parametrize("flaw", ["half the noise", "Gaussian noise", "passes through at times"])
def test_broken_mechanisms_fail_the_audit(x: int, other: int, flaw: str) -> None:
    world, rng = Tokens(), np.random.default_rng(x)
    promised = world.promised(x, other)

    def broken(start: int) -> Callable[[int], np.ndarray]:
        if flaw == "half the noise":
            return world.representation(x, other, start, rng, eta=2 * ETA)

        def run(m: int) -> np.ndarray:
            if flaw == "Gaussian noise":
                noise = rng.normal(0, 1 / ETA, (m, 5)).astype(np.float32)
                return half_spaces(
                    world.vectors[start] + noise, world.vectors[x], world.vectors[other]
                )
            answer = world.text_to_text(start, rng, eta=0.5)(m)
            return np.where(rng.random(m) < 0.9, start, answer)

        return run

    if flaw == "passes through at times":
        promised = world.promised(x, other, eta=0.5)
    found = audit_pair(broken(x), broken(other), promised, n_runs=100_000, alpha=1e-4)
    assert found.is_refuted and found.estimate > promised


def test_the_audit_refuses_too_few_runs() -> None:
    with pytest.raises(InvalidInputError, match="at least 100"):
        audit_pair(np.zeros, np.zeros, 1.0, n_runs=10)


def test_candidates_of_a_mechanism_are_a_choice(minilm: TransformerEncoder) -> None:
    whole = set(candidate_ids(minilm, "whole").tolist())
    privatizer = TextPrivatizer(minilm, 20.0, candidates="whole", rng=np.random.default_rng(0))
    assert set(privatizer.tokens(np.arange(5000, 5200)).tolist()) <= whole


def test_the_noise_on_a_texts_vector_has_the_norms_of_its_eta() -> None:
    found = SequenceRepresentation(eta=5.0, seed=2).protect(Zeros()).encode(["a b"] * 4000)
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    assert stats.kstest(norms, stats.gamma(8, scale=1 / 5.0).cdf).pvalue > 0.001
    assert norms.mean() == pytest.approx(8 / 5.0, rel=0.03)


def test_a_seed_gives_the_same_tokens_however_many_blocks_they_take(
    minilm: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise of the next block is drawn while one is searched: in the order of the blocks."""
    monkeypatch.setattr("leakscope.core.defences.metric_dp.mechanisms._BLOCK", 50)
    privatizer = TextPrivatizer(minilm, 75.0, rng=np.random.default_rng(3))
    tokens = np.arange(2000, 2130)
    vectors, rng = minilm.token_vectors.float().numpy(), np.random.default_rng(3)
    nearest = NearestCandidate(vectors[privatizer.ids], format="float32")
    blocks = np.split(tokens, [50, 100])
    drawn = [vectors[each] + draw_noise(len(each), 384, 75.0, rng=rng) for each in blocks]
    expected = np.concatenate([privatizer.ids[nearest(each)] for each in drawn])
    assert (privatizer.tokens(tokens) == expected).all()


def test_the_generator_alone_decides_what_is_drawn() -> None:
    rng = np.random.default_rng(5)
    first, second = (draw_noise_on_device(9, 4, rng=rng, device="cpu") for _ in range(2))
    again = draw_noise_on_device(9, 4, rng=np.random.default_rng(5), device="cpu")
    assert torch.equal(first, again) and not torch.equal(first, second)


def sides(encoder: TransformerEncoder, mechanism: str, eta: float) -> tuple[UserSide, UserSide]:
    """Return one that draws as a processor does, and one that draws as a GPU does."""
    here, there = (UserSide(encoder, mechanism, eta) for _ in range(2))
    there.__dict__["_device"] = "cpu:0"
    return here, there


def test_vectors_are_moved_by_the_noise_of_eq_3(tiny_encoder: TransformerEncoder) -> None:
    here, there = sides(tiny_encoder, "token_representation", 3.0)
    ids = np.full(3000, 7)
    law = stats.gamma(here.dimension, scale=1 / 3.0)
    for side in (here, there):
        moved, changed = side.vectors(ids, np.random.default_rng(1))
        assert changed is None and moved.dtype == np.float32
        norms = np.linalg.norm((moved - side.table[ids]).astype(np.float64), axis=1)
        assert stats.kstest(norms, law.cdf).pvalue > 1e-3


def test_tokens_are_exchanged_as_often_wherever_it_is_drawn(
    tiny_encoder: TransformerEncoder,
) -> None:
    eta = 60.0
    here, there = sides(tiny_encoder, "text_to_text", eta)
    ids, n = np.full(4000, 7), 4000
    counts = []
    for side in (here, there):
        vectors, changed = side.vectors(ids, np.random.default_rng(2))
        assert changed is not None and np.array_equal(vectors, side.table[changed])
        counts.append(int((changed == 7).sum()))
    table = [[each, n - each] for each in counts]
    assert 0 < counts[0] < n, "else nothing is told"
    assert stats.chi2_contingency(table).pvalue > 1e-3
    perturbed = there.perturbed(np.array([7, 9]), 50, np.random.default_rng(3))
    assert perturbed.shape == (2, 50) and len(np.unique(perturbed)) > 1


def test_a_run_tells_where_its_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_side, "pick_device", lambda: torch.device("cpu"))
    assert device_identity() == {}
    monkeypatch.setattr(user_side, "pick_device", lambda: torch.device("cuda"))
    assert device_identity() == {"noise_device": "cuda"}


def test_sequences_compose() -> None:
    # Two tokens privatised one by one: the log-ratio of a pair of outputs is the sum of the two.
    world, rng = Tokens(), np.random.default_rng(5)
    promised = world.promised(1, 2) + world.promised(3, 7)

    def pair(first: int, second: int) -> Callable[[int], np.ndarray]:
        one, two = world.text_to_text(first, rng), world.text_to_text(second, rng)
        return lambda m: one(m) * 25 + two(m)

    both = audit_pair(pair(1, 3), pair(2, 7), promised, alpha=1e-4)
    assert not both.is_refuted
    single = max(world.promised(1, 2), world.promised(3, 7))
    assert both.lower_bound < promised and promised > single
    n = 40_000
    joint = pair(1, 3)(n)
    first, second = joint // 25, joint % 25
    table = stats.contingency.crosstab(first, second).count
    common = table[np.ix_(table.sum(1) > 400, table.sum(0) > 400)]
    assert stats.chi2_contingency(common).pvalue > 0.001  # drawn independently


def test_the_audit_of_the_shipped_mechanisms(minilm: TransformerEncoder) -> None:
    vectors = minilm.token_vectors.numpy()
    good, bad = (minilm.tokens.index(t) for t in ("good", "bad"))
    eta = 6.0  # η·d is about 6: small enough for both tokens to reach the same outputs
    promised = eta * float(np.linalg.norm(vectors[good] - vectors[bad]))
    privatizer = TextPrivatizer(minilm, eta, rng=np.random.default_rng(0))
    found = audit_pair(
        lambda m: privatizer.tokens(np.full(m, good)),
        lambda m: privatizer.tokens(np.full(m, bad)),
        promised,
        n_runs=2000,
        alpha=1e-4,
    )
    assert not found.is_refuted
    plain = SequenceRepresentation(eta=3.0, seed=0).protect(minilm)
    x, other = minilm.encode(["good"])[0], minilm.encode(["bad"])[0]
    sequence = audit_pair(
        lambda m: half_spaces(plain.encode(["good"] * m), x, other),
        lambda m: half_spaces(plain.encode(["bad"] * m), x, other),
        3.0 * float(np.linalg.norm(x - other)),
        n_runs=400,
        alpha=1e-4,
    )
    assert not sequence.is_refuted
