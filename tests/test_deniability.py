from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from threadpoolctl import threadpool_info

from leakscope.core.defences.deniability.engine import DeniabilityEngine, Envelopes
from leakscope.core.defences.deniability.sentence import DeniableSentence
from leakscope.core.defences.deniability.vocabulary import (
    eta_grid,
    load_vocabulary,
    measure_vocabulary,
    save_vocabulary,
)
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.eta_grid import NAMED_ETAS
from leakscope.core.defences.metric_dp.neighbours import nearest as search
from leakscope.core.defences.metric_dp.neighbours.nearest import (
    Format,
    NearestCandidate,
    map_parts,
    parallel_map,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import (
    ArtifactError,
    EncoderMismatchError,
    InvalidInputError,
    StoppedError,
)


def brute_force(
    vectors: np.ndarray, nearest: NearestCandidate, draws: np.ndarray, eta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the nearest candidate to every noisy vector, (T, S), and the noisy
    vectors themselves, (T·S, n)."""
    noisy = (vectors[:, None].astype(np.float64) + draws.astype(np.float64) / eta).reshape(
        -1, vectors.shape[1]
    )
    return nearest(noisy.astype(np.float32)).reshape(len(vectors), len(draws)), noisy


def gaps(noisy: np.ndarray, known: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return by how much, relative to the distance, two answers differ, in float64."""
    first = ((noisy - known[one].astype(np.float64)) ** 2).sum(1)
    second = ((noisy - known[other].astype(np.float64)) ** 2).sum(1)
    return np.abs(first - second) / first


@pytest.fixture(scope="module")
def minilm_engine(minilm: TransformerEncoder) -> DeniabilityEngine:
    vectors = minilm.token_vectors.numpy()
    return DeniabilityEngine(vectors, candidate_ids(minilm), n_draws=200, seed=7)


@pytest.fixture(scope="module")
def minilm_tokens(minilm_engine: DeniabilityEngine) -> np.ndarray:
    return np.random.default_rng(1).choice(minilm_engine.candidates, 200, replace=False)


@pytest.fixture(scope="module")
def envelopes(minilm_engine: DeniabilityEngine, minilm_tokens: np.ndarray) -> Envelopes:
    return minilm_engine.envelopes(minilm_tokens)


def skip_unless_right(format: Format) -> None:
    if format == "int8" and not search._multiplies_int8():
        pytest.skip("this processor has no products of int8")


@pytest.mark.slow
def test_the_nearest_candidate_is_the_nearest() -> None:
    rng = np.random.default_rng(0)
    known = rng.standard_normal((3000, 16)).astype(np.float32)
    queries = (3 * rng.standard_normal((2000, 16))).astype(np.float32)
    distances = ((queries[:, None].astype(np.float64) - known) ** 2).sum(2)
    assert (NearestCandidate(known)(queries) == distances.argmin(1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("format", ["int8", "bfloat16"])
def test_the_sieve_misses_no_nearest_candidate(
    format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_unless_right(format)
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((50, 24))
    # Close together, where rounding decides; two alike, of which the first is the answer.
    known = (np.repeat(centres, 61, 0) + 0.01 * rng.standard_normal((3050, 24))).astype(np.float32)
    known[2000] = known[7]
    far = 10.0 ** rng.uniform(-3, 4, (4000, 1)) * rng.standard_normal((4000, 24))
    queries = (known[rng.integers(0, 3050, 4000)] + far).astype(np.float32)
    queries[0] = known[7]
    exact = queries.astype(np.float64) @ known.T.astype(np.float64)
    exact -= (known.astype(np.float64) ** 2).sum(1) / 2
    found = NearestCandidate(known, format=format)
    assert found._quantized is not None
    places = found(queries)
    assert places[0] == 7
    chosen = exact[np.arange(4000), places]
    np.testing.assert_allclose(chosen, exact.max(1), rtol=1e-12, atol=1e-12)
    assert (places == exact.argmax(1)).mean() > 0.999, "but for what float64 cannot tell"
    bounds = search._Scores.bounds.fget
    assert bounds is not None

    def without(scores: search._Scores) -> tuple[np.ndarray, ...]:
        return *bounds(scores)[:2], np.zeros(len(scores.unit))

    monkeypatch.setattr(search._Scores, "bounds", property(without))
    assert (found(queries) != places).mean() > 0.02, "without the bound it would"


@pytest.mark.parametrize("format", ["int8", "bfloat16"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_products_err_by_no_more_than_is_stated(format: Format, scale: float) -> None:
    """Of candidates far from the origin, with a coordinate much greater than the others."""
    skip_unless_right(format)
    rng = np.random.default_rng(2)
    known = 0.1 * rng.standard_normal((500, 32)) + 0.4
    known[:, 3] *= 9
    queries = torch.from_numpy(known[:64] + scale * rng.standard_normal((64, 32))).float()
    u = torch.from_numpy(known).float()
    halves = u.double().square().sum(1) / 2
    scores = search.QuantizedNearest(u, halves, format)._products(queries)
    products, less = (torch.cat(each).double() for each in zip(*scores.pieces, strict=True))
    assert len(products) % search.GROUP == 0 and (less[500:] == torch.inf).all()
    told = products[:500].T * scores.unit[:, None] - less[:500] - scores.offset[:, None]
    exact = queries.double() @ u.double().T - halves
    off = (told - exact).abs()
    assert (off <= scores.error[:, None]).all()
    assert (off / scores.error[:, None]).max() > 0.01, "nor is far more allowed than is lost"


@pytest.mark.slow
@pytest.mark.parametrize("format", ["int8", "bfloat16", "float32"])
def test_numbers_beyond_every_bound_are_answered(format: Format) -> None:
    skip_unless_right(format)
    known = np.random.default_rng(0).standard_normal((3000, 8)).astype(np.float32)
    nearest = NearestCandidate(known, format=format)
    for far in (3e38, np.inf, np.nan):
        places = nearest(np.full((3, 8), far, dtype=np.float32))
        assert ((places >= 0) & (places < 3000)).all()


@pytest.mark.parametrize("format", ["int8", "bfloat16"])
@pytest.mark.parametrize("scale", [1e-25, 1e-20, 1e-12, 1e12, 3e38])
def test_numbers_of_any_size_have_the_nearest_candidate(format: Format, scale: float) -> None:
    """Candidates that small; queries that large, in all directions: one that points away too."""
    skip_unless_right(format)
    rng = np.random.default_rng(0)
    known = (min(scale, 1.0) * rng.uniform(0.1, 1, (3000, 8))).astype(np.float32)
    queries = (scale * rng.uniform(-1, 1, (300, 8))).astype(np.float32)
    queries[0] = -np.float32(scale)
    exact = queries.astype(np.float64) @ known.T.astype(np.float64)
    exact -= (known.astype(np.float64) ** 2).sum(1) / 2
    places = NearestCandidate(known, format=format)(queries)
    if scale < 1e-15:  # the squares are none in float32
        assert ((places >= 0) & (places < 3000)).all()
        return
    np.testing.assert_allclose(exact[np.arange(300), places], exact.max(1), rtol=1e-12)


@pytest.mark.parametrize("format", ["int8", "bfloat16"])
def test_candidates_that_are_all_one_have_the_first_as_the_nearest(format: Format) -> None:
    skip_unless_right(format)
    for known in (np.ones((2049, 8)), np.full((2100, 3), 0.1), np.zeros((2049, 4))):
        nearest = NearestCandidate(known.astype(np.float32), format=format)
        assert nearest(known[:2].astype(np.float32)).tolist() == [0, 0]


def test_pieces_side_by_side_are_all_done_and_what_they_raise_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    done: list[int] = []
    limits: list[int] = []

    def work(i: int) -> int:
        done.append(i)
        assert threading.current_thread() is not threading.main_thread()
        limits.extend(
            each["num_threads"] for each in threadpool_info() if each["user_api"] == "openmp"
        )
        return i

    drawn: list[int] = []

    def pieces() -> Iterator[int]:
        for i in range(100):
            drawn.append(i)
            yield i

    given = parallel_map(work, pieces())
    assert next(given) == 0 and len(drawn) < 50, "drawn as they are needed"
    assert list(given) == list(range(1, 100))
    assert sorted(done) == list(range(100)) and set(limits) == {1}
    with pytest.raises(ZeroDivisionError):
        list(parallel_map(lambda i: 1 // (i - 30), range(40)))


@pytest.mark.parametrize("counts", [[], [1], [1, 3, 1, 1], [40, 1, 2]])
def test_what_is_made_of_parts_is_given_whole_by_whole(counts: list[int]) -> None:
    made = map_parts(lambda parts: (i * i for i in parts), counts, lambda n: range(n))
    assert list(made) == [[i * i for i in range(n)] for n in counts]


def test_a_whole_without_parts_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="without parts"):
        list(map_parts(lambda parts: parts, [2, 0, 1], lambda n: range(n)))


@pytest.mark.slow
def test_equals_brute_force_on_200_tokens_200_draws_7_eta(
    minilm: TransformerEncoder,
    minilm_engine: DeniabilityEngine,
    minilm_tokens: np.ndarray,
    envelopes: Envelopes,
) -> None:
    """Each η has every third token: all of them in turn, and every token at two η or three."""
    vectors = minilm.token_vectors.numpy()
    known = vectors[minilm_engine.candidates]
    nearest, n_ties = NearestCandidate(known), 0
    for i, eta in enumerate(NAMED_ETAS):
        chosen = slice(i % 3, None, 3)
        expected, noisy = brute_force(
            vectors[minilm_tokens[chosen]], nearest, minilm_engine.draws, eta
        )
        found = envelopes.places(eta)[chosen]
        wrong = np.flatnonzero(found.ravel() != expected.ravel())
        # float32 may take two candidates for each other only where they are equally near.
        differ = gaps(noisy[wrong], known, found.ravel()[wrong], expected.ravel()[wrong])
        assert (differ < 2e-6).all()
        n_ties += len(wrong)
        if len(wrong) == 0:
            its_own = expected == envelopes.tokens[chosen, None]
            assert (envelopes.n_w(eta)[chosen] == its_own.sum(1)).all()
            several = [len(set(row.tolist())) for row in expected]
            assert envelopes.s_w(eta)[chosen].tolist() == several
    assert n_ties <= 3  # of 93,000


@pytest.mark.slow
def test_n_w_from_eta_star_equals_the_grids(
    envelopes: Envelopes, minilm_engine: DeniabilityEngine, minilm_tokens: np.ndarray
) -> None:
    # Which tokens walk together may change the last bit of a product, and η* is made of
    # differences of products, which processors sum in orders of their own.
    found = minilm_engine.eta_star(minilm_tokens)
    np.testing.assert_allclose(found, envelopes.eta_star, rtol=1e-5)
    for eta in (*NAMED_ETAS, 17.3, 199.0):
        assert ((envelopes.eta_star <= eta).sum(1) == envelopes.n_w(eta)).all()


@pytest.mark.slow
def test_the_envelope_is_exact_between_the_grids_eta(
    minilm: TransformerEncoder,
    minilm_engine: DeniabilityEngine,
    minilm_tokens: np.ndarray,
    envelopes: Envelopes,
) -> None:
    vectors = minilm.token_vectors.numpy()
    known, chosen = vectors[minilm_engine.candidates], slice(0, 3)
    nearest = NearestCandidate(known)
    for eta in np.exp(np.random.default_rng(2).uniform(np.log(15), np.log(200), 50)):
        expected, noisy = brute_force(
            vectors[minilm_tokens[chosen]], nearest, minilm_engine.draws, eta
        )
        found = envelopes.places(eta)[chosen]
        wrong = np.flatnonzero(found.ravel() != expected.ravel())
        assert (
            gaps(noisy[wrong], known, found.ravel()[wrong], expected.ravel()[wrong]) < 2e-6
        ).all()
        if len(wrong) == 0:
            for row, token, s_w, replacements in zip(
                expected,
                minilm_tokens[chosen],
                envelopes.s_w(eta)[chosen],
                envelopes.replacements(eta)[chosen],
                strict=True,
            ):
                tokens, counts = np.unique(minilm_engine.candidates[row], return_counts=True)
                order = np.lexsort((tokens, -counts))[:10]
                assert s_w == len(tokens)
                assert replacements == [(int(tokens[i]), int(counts[i])) for i in order]
                assert int(token) in tokens or envelopes.n_w(eta)[0] < 200


def test_by_hand_in_one_dimension() -> None:
    # Tokens at 0, 1 and 3; a draw z moves 0 to z/η, nearer to 1 than to 0 beyond ½, to 3 beyond 2.
    vectors = np.array([[0.0], [1.0], [3.0]], np.float32)
    engine = DeniabilityEngine(vectors, np.arange(3), n_draws=400, seed=0, eta_min=0.05)
    found, z = engine.envelopes([0]), engine.draws[:, 0]
    for eta in (0.05, 0.1, 0.4, 1.0, 3.0):
        at = z / eta
        expected = np.where(at < 0.5, 0, np.where(at < 2, 1, 2))
        assert (found.returned(eta)[0] == expected).all()
        assert found.n_w(eta)[0] == (expected == 0).sum()
        assert found.s_w(eta)[0] == len(set(expected.tolist()))
    star = np.maximum(2 * z, 0.05)
    assert found.eta_star[0] == pytest.approx(star, rel=1e-5)


def test_a_token_that_is_no_candidate_starts_at_its_nearest(minilm: TransformerEncoder) -> None:
    vectors = minilm.token_vectors.numpy()
    whole = candidate_ids(minilm, "whole")
    engine = DeniabilityEngine(vectors, whole, n_draws=60, seed=0)
    pieces = np.setdiff1d(candidate_ids(minilm), whole)[:8]
    found, nearest = engine.envelopes(pieces), NearestCandidate(vectors[engine.candidates])
    for eta in (40.0, 90.0, 1e6):
        expected, _ = brute_force(vectors[pieces], nearest, engine.draws, eta)
        assert (found.places(eta) != expected).sum() <= 1
        assert (found.n_w(eta) == 0).all()


def test_walks_that_cross_often_are_not_cut_short(minilm: TransformerEncoder) -> None:
    vectors = minilm.token_vectors.numpy()
    engine = DeniabilityEngine(vectors, candidate_ids(minilm), n_draws=50, seed=0)
    tokens = engine.candidates[:6]
    whole = engine.envelopes(tokens)
    engine.capacity = 1
    again = engine.envelopes(tokens)
    assert (again.places(15.0) == whole.places(15.0)).all()


@pytest.mark.slow
def test_each_token_keeps_its_binomial_distribution(minilm: TransformerEncoder) -> None:
    vectors, candidates = minilm.token_vectors.numpy(), candidate_ids(minilm)
    tokens = np.random.default_rng(3).choice(candidates, 150, replace=False)
    sets = np.array(
        [
            DeniabilityEngine(vectors, candidates, n_draws=100, seed=seed, eta_min=60)
            .envelopes(tokens)
            .n_w(75)
            for seed in range(12)
        ]
    )
    share = sets.mean(0) / 100
    ratio = sets.var(0, ddof=1).mean() / (100 * share * (1 - share)).mean()
    # 150 × 11 degrees of freedom, tokens hardly correlated: the ratio's deviation is about 0.04.
    assert 0.85 < ratio < 1.15


def test_tensor_arithmetic_gives_the_same_envelopes(minilm: TransformerEncoder) -> None:
    vectors, candidates = minilm.token_vectors.numpy(), candidate_ids(minilm)
    engine = DeniabilityEngine(vectors, candidates, n_draws=40, seed=2)
    tokens = np.concatenate([candidates[8000:8006], [101, 102]])  # two that are no candidates
    compiled = engine.envelopes(tokens)
    engine._on_device = torch.as_tensor(engine._products)
    plain = engine.envelopes(tokens)
    for eta in (*NAMED_ETAS, 15.0, 180.0):
        # A processor may round a tie otherwise.
        assert (plain.places(eta) != compiled.places(eta)).sum() <= 1
    assert plain.eta_star == pytest.approx(compiled.eta_star, rel=1e-4)


def test_threads_and_repetition_change_nothing(minilm: TransformerEncoder) -> None:
    vectors, candidates = minilm.token_vectors.numpy(), candidate_ids(minilm)
    tokens = candidates[5000:5020]
    one = DeniabilityEngine(vectors, candidates, n_draws=50, seed=4, n_threads=1)
    two = DeniabilityEngine(vectors, candidates, n_draws=50, seed=4, n_threads=3)
    for eta in (20.0, 70.0):
        assert (one.envelopes(tokens).places(eta) == two.envelopes(tokens).places(eta)).all()


def test_may_be_entered_by_several_threads_at_once(minilm_engine: DeniabilityEngine) -> None:
    tokens = minilm_engine.candidates[100:120]
    expected = minilm_engine.envelopes(tokens).places(50.0)
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(minilm_engine.envelopes(tokens).places(50.0)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all((one == expected).all() for one in found)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (np.zeros((0, 4), np.float32), "matrix"),
        (np.zeros(4, np.float32), "matrix"),
        (np.full((9, 4), np.nan, np.float32), "finite"),
    ],
)
def test_refuses_vectors_that_are_none(vectors: np.ndarray, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        DeniabilityEngine(vectors, np.arange(2))


def test_refuses_tokens_and_eta_that_do_not_exist(envelopes: Envelopes) -> None:
    engine = DeniabilityEngine(np.eye(3, dtype=np.float32), np.arange(3), n_draws=5)
    with pytest.raises(InvalidInputError, match="rows 0 to 2"):
        engine.envelopes([3])
    with pytest.raises(InvalidInputError, match="at least 15"):
        envelopes.n_w(14.9)
    with pytest.raises(InvalidInputError, match="positive"):
        envelopes.n_w(float("nan"))
    with pytest.raises(InvalidInputError, match="two candidates"):
        DeniabilityEngine(np.eye(3, dtype=np.float32), np.arange(1))
    assert engine.envelopes([]).n_w(20.0).shape == (0,)


def test_the_vocabularys_counts_are_the_envelopes(tiny_encoder: TransformerEncoder) -> None:
    etas = np.array([4.0, 9.0, 20.0, 60.0])
    found = measure_vocabulary(tiny_encoder, etas=etas, n_draws=300, seeds=(5, 6))
    engine = DeniabilityEngine(
        tiny_encoder.token_vectors.numpy(), found.tokens, n_draws=300, seed=5, eta_min=4.0
    )
    envelopes = engine.envelopes(found.tokens)
    for g, eta in enumerate(etas):
        assert (found.n_w[:, g] == envelopes.n_w(eta)).all()
        assert (found.s_w[:, g] == envelopes.s_w(eta)).all()
    assert found.mean_n_w[0] == pytest.approx(found.n_w.mean(0))
    assert (found.mean_n_w[0] != found.mean_n_w[1]).any()
    ordered = np.sort(envelopes.eta_star, axis=1)
    np.testing.assert_allclose(found.eta_at_rank, ordered[:, found.ranks - 1], rtol=1e-6)


def test_statistics_survive_the_disk_and_refuse_another_encoder(
    tiny_encoder: TransformerEncoder, minilm: TransformerEncoder, tmp_path: Path
) -> None:
    etas = np.array([5.0, 50.0])
    found = measure_vocabulary(tiny_encoder, etas=etas, n_draws=50)
    again = load_vocabulary(save_vocabulary(tmp_path / "d", found), tiny_encoder)
    assert (again.n_w == found.n_w).all() and again.seeds == found.seeds
    with pytest.raises(EncoderMismatchError, match="mlm:tiny"):
        load_vocabulary(tmp_path / "d", minilm)
    (arrays,) = (tmp_path / "d").glob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match="truncated"):
        load_vocabulary(tmp_path / "d")


def test_measuring_can_be_stopped_and_reports(tiny_encoder: TransformerEncoder) -> None:
    seen: list[float] = []

    def stop(fraction: float, message: str) -> None:
        seen.append(fraction)
        raise StoppedError("Stopped.")

    with pytest.raises(StoppedError):
        measure_vocabulary(tiny_encoder, n_draws=50, on_progress=stop)
    assert 0 < seen[0] <= 1


def test_the_grid_scales_with_the_dimension() -> None:
    grid = eta_grid(384)
    assert grid[0] == 15 and grid[-1] == 200 and set(NAMED_ETAS) <= set(grid)
    assert eta_grid(768) == pytest.approx(2 * grid)


def test_candidates_are_what_their_name_says(minilm: TransformerEncoder) -> None:
    tokens = minilm.tokens
    regular = {tokens[i] for i in candidate_ids(minilm)}
    assert len(regular) == 29_523
    assert not regular & {"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[unused5]"}
    assert "##ing" in regular
    assert "##ing" not in {tokens[i] for i in candidate_ids(minilm, "whole")}
    assert len(candidate_ids(minilm, "all")) == len(tokens)
    with pytest.raises(InvalidInputError, match="regular, whole, all"):
        candidate_ids(minilm, "some")


def test_shipped_and_live_statistics_agree(minilm: TransformerEncoder) -> None:
    from leakscope.core.defences.deniability.vocabulary import SHIPPED

    found = load_vocabulary(SHIPPED / "minilm", minilm)
    engine = DeniabilityEngine(
        minilm.token_vectors.numpy(), found.tokens, n_draws=found.n_draws, seed=found.seeds[0]
    )
    some = np.random.default_rng(0).integers(0, len(found.tokens), 20)
    envelopes = engine.envelopes(found.tokens[some])
    for g in (0, len(found.etas) // 2, len(found.etas) - 1):
        eta = float(found.etas[g])
        # Another processor may round otherwise at a tie.
        assert (np.abs(envelopes.n_w(eta) - found.n_w[some, g].astype(int)) <= 1).all()
        assert (np.abs(envelopes.s_w(eta) - found.s_w[some, g].astype(int)) <= 1).all()
    spread = found.mean_n_w.std(0, ddof=1)
    assert len(found.seeds) >= 3 and spread.max() < 6
    assert stats.spearmanr(found.etas, found.mean_n_w[0])[0] == pytest.approx(1)


def test_each_draw_counts_once_however_many_tokens_share_it() -> None:
    """Of 3 tokens come back 3, 2, 0 and 0: 41.7 ± 1.96 · 50 / √4, by hand."""
    star = np.float32([[1, 1, 9, 9], [1, 9, 9, 9]])  # of token 5, which stands twice, and of 7
    encoder = SimpleNamespace(token_ids=lambda _: [[5, 5, 7]], tokens=["?"] * 8)
    engine = SimpleNamespace(n_draws=4, envelopes=lambda _: SimpleNamespace(eta_star=star))
    found = DeniableSentence(encoder, engine, "a text").unchanged(2.0)  # type: ignore[arg-type]
    assert found.value == pytest.approx(125 / 3) and found.n == 4
    assert found.ci95.low == 0 and found.ci95.high == pytest.approx(125 / 3 + 49)
