"""Who knows what a mechanism does reads the likeliest tokens, not those that it released."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from releases import release_in_float32

from leakscope.core.attacks.inversion.released_tokens import posterior
from leakscope.core.attacks.inversion.released_tokens.noisy_tokens import (
    NoisyTokenReader,
    Release,
    ReleasedTokenVectors,
)
from leakscope.core.attacks.inversion.released_tokens.posterior import (
    PosteriorReader,
    TokenPrior,
    candidates,
    decode,
)
from leakscope.core.attacks.inversion.released_tokens.released import ReleasedTokens
from leakscope.core.defences.metric_dp.audit.choice_laws import LAWS
from leakscope.core.defences.metric_dp.audit.choices import choice_plan, settings_at
from leakscope.core.defences.metric_dp.release import release_under_noise
from leakscope.core.defences.registry import make_defence
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec
from leakscope.core.text import Vocabulary


class Told:
    """A mechanism of three tokens whose law is written down."""

    ids = np.arange(3)
    law = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.1, 0.3, 0.6]])

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self.rng.choice(3, p=self.law[i]) for i in token_ids], np.int64)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return self.law[np.ix_(token_ids, released)]


class Silent:
    """The same, but it does not tell its law."""

    ids = Told.ids

    def __init__(self, seed: int = 0) -> None:
        self.tokens = Told(seed).tokens


ROWS = [[0, 0, 0, 1], [0, 2], [0, 0, 0, 0]]


def test_what_is_known_of_tokens_by_hand() -> None:
    prior = TokenPrior.of(ROWS, 3)
    assert prior.counts.tolist() == [8, 1, 1]
    assert np.exp(prior.log) == pytest.approx([0.8, 0.1, 0.1])
    # 0 is followed by 0 five times, by 1 and 2 once each, of eight times that it stands.
    after = np.exp(prior.log_after(np.array([0]), np.array([0, 1, 2])))
    assert after == pytest.approx(np.array([[0.7 * 5 / 8 + 0.24, 0.7 / 8 + 0.03, 0.7 / 8 + 0.03]]))
    with pytest.raises(InvalidInputError, match="no token"):
        TokenPrior.of([[]], 3)


def test_the_likeliest_token_is_not_the_released_one_by_hand() -> None:
    prior = TokenPrior.of(ROWS, 3)
    found = candidates(Told(), np.array([1, 1, 2]), prior)
    assert found.released.tolist() == [1, 2]
    # Of 1: .8 × .5 from 0, .1 × .8 from 1, .1 × .3 from 2. Of 2: from 2 alone.
    read = decode(found.tokens, found.log_law, prior, in_sequence=False)
    assert read.tolist() == [0, 2]
    chances = {int(t): np.exp(w) for t, w in zip(found.tokens[0], found.log_law[0], strict=True)}
    assert chances == pytest.approx({0: 0.5, 1: 0.8, 2: 0.3})


@pytest.mark.slow
def test_the_likeliest_sequence_is_that_of_an_enumeration() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 4, 9).tolist() for _ in range(30)]
    prior = TokenPrior.of(rows, 4)
    law = rng.dirichlet(np.ones(4), 4)
    tokens = np.tile(np.arange(4), (5, 1))
    for row in rng.integers(0, 4, (20, 5)):

        def chance(told: tuple[int, ...], row: NDArray[np.int64] = row) -> float:
            own = sum(np.log(law[x, y]) for x, y in zip(told, row, strict=True))
            steps = (np.array([x]) for x in told)
            before = next(steps)
            total = own + prior.log[told[0]]
            for now in steps:
                total += float(prior.log_after(before, now)[0, 0])
                before = now
            return float(total)

        best = max(product(range(4), repeat=5), key=chance)
        assert decode(tokens, np.log(law.T)[row], prior, in_sequence=True).tolist() == list(best)
    none = np.empty((0, 4), np.int64)
    assert decode(none, none.astype(float), prior, in_sequence=True).tolist() == []


def test_a_law_that_is_not_told_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posterior, "_SHARED_DRAWS", 1.0)
    prior = TokenPrior.of(ROWS, 3)
    told = candidates(Told(), np.arange(3), prior)
    counted = candidates(Silent(), np.arange(3), prior, n_simulated=30_000)
    for released in range(3):
        by_token = dict(zip(told.tokens[released], np.exp(told.log_law[released]), strict=True))
        for token, log in zip(counted.tokens[released], counted.log_law[released], strict=True):
            # At least 5,000 draws a token: four standard errors are 0.03 at most.
            assert np.exp(log) == pytest.approx(by_token[token], abs=0.03)


@pytest.mark.parametrize("name", ["santext", "santext_plus", "custext", "tem"])
@pytest.mark.parametrize("strength", [0.5, 2.0, 8.0])
def test_a_mechanism_tells_the_law_that_is_counted_out(name: str, strength: float) -> None:
    encoder = choice_plan(name, strength, 1).encoder
    settings = settings_at(name, strength)
    told = make_defence(DefenceSpec.of(name, settings)).privatizer(
        encoder, np.random.default_rng(0)
    )
    law = LAWS[name](encoder.table.astype(np.float64), strength, settings)
    tokens = np.arange(len(law))
    assert told.chances(tokens) == pytest.approx(law, abs=1e-6)
    asked = tokens[[1, 0, -1]]
    places = [*np.searchsorted(told.ids, asked)]
    assert told.chances(tokens[2:], asked) == pytest.approx(law[2:][:, places], abs=1e-6)
    none = len(encoder.tokens) + 5
    assert not told.chances(tokens, np.array([none])).any(), "what cannot be released never is"


def noisy_vectors(
    encoder: TransformerEncoder, eta: float, seed: int, release: Release = release_under_noise
) -> ReleasedTokenVectors:
    rng = np.random.default_rng(seed)
    return ReleasedTokenVectors(encoder, eta, rng, identity="test", release=release)


def noisy_reader(
    encoder: TransformerEncoder, eta: float, prior: TokenPrior, reading: str
) -> NoisyTokenReader:
    """Return a reader of noisy vectors with a reading that is given, not chosen."""
    vectors = noisy_vectors(encoder, eta, 0)
    reader = NoisyTokenReader(Vocabulary.count(["a word"])).fit(vectors, (), (), prior)
    reader.reading_ = reading
    return reader


def test_the_likeliest_token_under_a_noisy_vector_by_hand(
    tiny_encoder: TransformerEncoder,
) -> None:
    n = len(tiny_encoder.tokens)
    one, other = 10, 11
    counts = np.full(n, 1e-9)
    counts[one], counts[other] = 9.0, 1.0
    prior = TokenPrior(counts, TokenPrior.of([[one, other]], n).follows)
    vectors = tiny_encoder.token_vectors.detach().float().numpy()
    apart = float(np.linalg.norm(vectors[one] - vectors[other]))
    # Three quarters of the way to the other: log 9 outweighs η·apart/2 where that is less.
    noisy = (vectors[one] + 0.75 * (vectors[other] - vectors[one]))[None]
    for eta, told in ((2 * np.log(9) / apart * 0.9, one), (2 * np.log(9) / apart * 1.1, other)):
        reader = noisy_reader(tiny_encoder, float(eta), prior, "token")
        assert [row.tolist() for row in reader.read([noisy])] == [[told]]


def test_pairs_of_tokens_decide_between_noisy_vectors_by_hand(
    tiny_encoder: TransformerEncoder,
) -> None:
    n = len(tiny_encoder.tokens)
    before, one, other = 10, 11, 12
    rows = [[before, one]] * 5 + [[other]] * 5
    vectors = tiny_encoder.token_vectors.detach().float().numpy()
    between = (vectors[one] + vectors[other]) / 2 + 0.01 * (vectors[other] - vectors[one])
    noisy = np.stack([vectors[before], between])
    prior = TokenPrior.of(rows, n)
    for reading, told in (("token", other), ("sequence", one)):
        reader = noisy_reader(tiny_encoder, 20.0, prior, reading)
        assert reader.read([noisy])[0].tolist() == [before, told], reading


def recovered_share(
    encoder: TransformerEncoder,
    sides: tuple[list[str], ...],
    release: Release,
    eta: float,
    *,
    uses_grid: bool,
) -> float:
    """Return the share of the targets' tokens that a reader of noisy vectors recovers."""
    known, held, targets = sides
    own, theirs = (noisy_vectors(encoder, eta, seed, release) for seed in (1, 2))
    reader = NoisyTokenReader(Vocabulary.count(known), uses_grid=uses_grid)
    reader.fit(own, known, held)
    reader.encoder_fingerprint_ = theirs.fingerprint
    read = np.concatenate(reader.tokens(theirs, theirs.encode(targets)))
    truth = np.concatenate([np.array(row) for row in encoder.token_ids(targets)])
    return float((read == truth).mean())


def test_who_knows_the_density_reads_more_of_vectors(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], ...]
) -> None:
    targets = sides[2]
    truth = np.array([i for row in tiny_encoder.token_ids(targets) for i in row])
    kind = make_defence(DefenceSpec.of("text_to_text", {"eta": 40.0}))
    nearest = kind.privatizer(tiny_encoder, np.random.default_rng(1)).tokens(truth)
    share = float((nearest == truth).mean())
    assert 0.02 < share < 0.9, "neither lost nor plain"
    found = recovered_share(tiny_encoder, sides, release_under_noise, 40.0, uses_grid=False)
    assert found > 1.5 * share


@pytest.mark.slow
def test_the_grid_recovers_float32_sums_and_nothing_of_what_is_released(
    minilm: TransformerEncoder, sides: tuple[list[str], ...]
) -> None:
    small = (sides[0], sides[1][:5], sides[2][:12])
    shares = {
        (name, uses_grid): 100 * recovered_share(minilm, small, made, 38.0, uses_grid=uses_grid)
        for name, made in (("old", release_in_float32), ("new", release_under_noise))
        for uses_grid in (False, True)
    }
    assert shares["old", True] > shares["old", False] + 25, shares
    assert abs(shares["new", True] - shares["new", False]) <= 2, shares


@pytest.fixture(scope="module")
def sides(small_texts: list[str]) -> tuple[list[str], list[str], list[str]]:
    return small_texts[:300], small_texts[300:340], small_texts[340:]


def read_share(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], ...], told: str, strength: float
) -> tuple[PosteriorReader, float, float]:
    """Return the reader, the share of tokens that come back, and the share that it reads."""
    known, held, targets = sides
    kind = make_defence(DefenceSpec.of(told, settings_at(told, strength)))
    own, theirs = (kind.privatizer(tiny_encoder, np.random.default_rng(i)) for i in (1, 2))
    released = ReleasedTokens(tiny_encoder, theirs.tokens, identity=told)
    reader = PosteriorReader(Vocabulary.count(known), own, n_simulated=20_000)
    reader.fit(released, known, held)
    vectors = released.encode(targets)
    truth = np.concatenate([np.array(row) for row in tiny_encoder.token_ids(targets)])
    back = vectors.astype(np.int64)
    literal = np.concatenate([row[row >= 0] for row in back])
    read = np.concatenate(reader.tokens(released, vectors))
    return reader, float((literal == truth).mean()), float((read == truth).mean())


def test_a_reader_that_knows_the_mechanism_reads_more(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], ...]
) -> None:
    reader, literal, read = read_share(tiny_encoder, sides, "custext", 0.5)
    assert reader.reading_ in ("token", "sequence")
    assert read > 2 * literal, (literal, read)
    assert reader.shares_["literal"] == pytest.approx(literal, abs=0.05)


def test_the_law_is_drawn_once_and_for_all_tokens_that_are_asked(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], ...]
) -> None:
    known, held, targets = sides
    asked: list[NDArray[np.int64]] = []

    def draw(token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        asked.append(token_ids)
        return token_ids % 4 + 9  # every released token is one of four

    counted = Silent()
    counted.tokens = draw  # type: ignore[method-assign]
    released = ReleasedTokens(tiny_encoder, lambda ids: ids, identity="same")
    reader = PosteriorReader(Vocabulary.count(known), counted, n_simulated=2_000)
    reader.fit(released, known, held)
    by_fit = [np.unique(ids) for ids in asked if len(ids) > 1_000]
    assert len(by_fit) == 1 and set(by_fit[0]) == set(np.flatnonzero(reader.prior_.counts))
    reader.reading_, n_before = "token", len(asked)
    reader.tokens(released, released.encode(targets))
    again = np.unique(np.concatenate([*asked[n_before:], np.empty(0, np.int64)]))
    assert not set(again) & set(by_fit[0]), "what was drawn is not drawn again"


def test_where_tokens_come_back_they_are_read_as_they_are(
    tiny_encoder: TransformerEncoder, sides: tuple[list[str], ...]
) -> None:
    _, literal, read = read_share(tiny_encoder, sides, "santext", 500.0)
    assert literal == read == 1.0
    known, _, targets = sides
    same = ReleasedTokens(tiny_encoder, lambda ids: ids, identity="same")
    plain = PosteriorReader(Vocabulary.count(known), Silent())  # nothing to choose a reading by
    answers = plain.fit(same, known, []).invert(same, same.encode([*targets[:2], ""]))
    assert plain.reading_ == "literal" and answers[0].word_set and not answers[-1].word_set
