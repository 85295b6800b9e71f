"""Training with differential privacy: what is spent is counted, said, and never less than that."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from torch import nn

from leakscope.core.defences.trained.private import (
    PRIVATE_TRAININGS,
    PrivateTraining,
    make_training,
)
from leakscope.core.errors import (
    ArtifactError,
    DivergedError,
    EncoderMismatchError,
    InvalidInputError,
    MissingDependencyError,
    NotFittedError,
)
from leakscope.core.protocols import Restorable
from leakscope.core.storage.artifacts import load_artifact, save_artifact
from leakscope.core.training import accounting, private
from leakscope.core.training.accounting import (
    Guarantee,
    compute_epsilons,
    epsilon_spent,
    group_epsilon,
    noise_multiplier_for,
)
from leakscope.core.training.noise_source import NoiseSource, seed_for
from leakscope.core.training.private import (
    CLIPPINGS,
    DPSettings,
    PoissonLoop,
    PrivacyLedger,
    train_private,
)
from leakscope.core.training.private_heads import HeadSettings, TrainedHead, fit_head, standardise

pytest.importorskip("opacus")

N, D, C = 400, 12, 3
SMALL = {"batch_size": 100, "steps": 20, "learning_rate": 0.05}


def problem(seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return vectors of three classes that a line can nearly tell apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, C, N)
    centres = rng.normal(size=(C, D))
    return (centres[labels] + rng.normal(size=(N, D))).astype(np.float32), labels


def fitted(folder: Path | None = None, **more: Any) -> TrainedHead:
    progress = more.pop("on_progress", lambda done, told: None)
    settings = HeadSettings(**{"epsilon": 4.0, **SMALL, **more})
    return fit_head(*problem(), C, settings, 3, checkpoint_dir=folder, on_progress=progress)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "rate", "n_steps"),
    [
        (0.7, 0.005, 2000),
        (1.0, 0.01, 1000),
        (2.0, 0.05, 500),
        (5.0, 0.1, 300),
        (4.0, 1.0, 10),
        (12.0, 0.03, 1000),
        (60.0, 0.05, 600),
        (2.7, 0.3, 200),
        (5.0, 0.5, 200),
    ],
)
def test_two_accountants_that_know_nothing_of_each_other_agree(
    noise: float, rate: float, n_steps: int
) -> None:
    pytest.importorskip("dp_accounting")
    found = compute_epsilons(noise, rate, n_steps)
    assert found.dp_accounting == pytest.approx(found.opacus, rel=0.01)
    assert 0.5 * found.opacus < found.tight < found.opacus, "Rényi's bound is the wider"


def test_the_epsilon_of_one_step_with_all_samples_is_that_of_the_formula() -> None:
    """ε = min over α of α / 2σ² + log((α − 1) / α) − (log δ + log α) / (α − 1)."""
    sigma, delta = 2.0, 1e-5
    orders = np.linspace(1.01, 60, 20_000)
    bound = orders / (2 * sigma**2) + np.log1p(-1 / orders)
    bound -= (math.log(delta) + np.log(orders)) / (orders - 1)
    assert epsilon_spent([(sigma, 1.0, 1)], delta) == pytest.approx(bound.min(), rel=1e-3)
    assert epsilon_spent([(sigma, 1.0, 1)] * 2, delta) == epsilon_spent([(sigma, 1.0, 2)], delta)
    assert epsilon_spent([], delta) == 0


def delta_of_steps_with_all(epsilon: float, distance: float) -> float:
    """δ = Φ(d/2 − ε/d) − e^ε Φ(−d/2 − ε/d), d the distance of two normal laws (Balle & Wang)."""
    lower, upper = -distance / 2 - epsilon / distance, distance / 2 - epsilon / distance
    return float(norm.cdf(upper) - math.exp(epsilon) * norm.cdf(lower))


@pytest.mark.slow
def test_the_copies_of_a_text_cost_more_than_their_number_times_epsilon() -> None:
    """With all texts in each of 200 steps, m copies move the sum m√200 / σ from where it was."""
    pytest.importorskip("dp_accounting")
    found = group_epsilon(57.5, 1.0, 200, 16)
    distance = 16 * math.sqrt(200) / 57.5
    assert delta_of_steps_with_all(found, distance) <= 1e-5
    assert delta_of_steps_with_all(found - 0.05, distance) > 1e-5, "and it is no more than needed"
    one, naive = epsilon_spent([(57.5, 1.0, 200)]), 16 * epsilon_spent([(57.5, 1.0, 200)])
    assert one == pytest.approx(0.99, abs=0.01) and naive == pytest.approx(15.9, abs=0.1)
    assert (
        naive + 7 < found < epsilon_spent([(57.5 / 16, 1.0, 200)]) == pytest.approx(25.4, abs=0.1)
    )
    assert delta_of_steps_with_all(naive, distance) > 50e-5, "m·ε does not hold at the same δ"
    assert group_epsilon(57.5, 1.0, 200, 1) == pytest.approx(
        compute_epsilons(57.5, 1.0, 200).tight, abs=0.02
    )


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rate", "n_copies"), [(1.0, 0.3, 3), (3.0, 0.12, 16)])
def test_copies_that_come_to_a_batch_by_lot_cost_what_an_integral_gives(
    noise: float, rate: float, n_copies: int
) -> None:
    """One step: Σ_k Binomial(k; m, q) N(k, σ²) against N(0, σ²), the worse of both directions."""
    pytest.importorskip("dp_accounting")
    x = np.linspace(-12 * noise, 12 * noise + n_copies, 400_001)
    without = norm.pdf(x, 0, noise)
    shares = [
        math.comb(n_copies, k) * rate**k * (1 - rate) ** (n_copies - k) for k in range(n_copies + 1)
    ]
    inside = sum(share * norm.pdf(x, k, noise) for k, share in enumerate(shares))

    def delta_of(epsilon: float) -> float:
        both = (inside - math.exp(epsilon) * without, without - math.exp(epsilon) * inside)
        return max(float(np.trapezoid(np.maximum(each, 0), x)) for each in both)

    found = group_epsilon(noise, rate, 1, n_copies)
    assert delta_of(found) <= 1e-5 < delta_of(found - 0.05)


def test_many_copies_are_counted_upwards(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dp_accounting")
    told = group_epsilon(40.0, 0.05, 10, 200)
    monkeypatch.setattr(accounting, "_MOST_MEANS", 200)
    exact = group_epsilon(40.0, 0.05, 10, 200)
    assert exact < told < 1.3 * exact
    monkeypatch.setattr(accounting, "_WIDEST", 0.0)
    assert told < group_epsilon(40.0, 0.05, 10, 200) < math.inf, "all of them in each batch"


@pytest.mark.parametrize(("noise", "rate"), [(2.7, 0.3), (1.0, 0.01), (0.8, 0.5), (5.0, 1.0)])
def test_opacus_gives_the_divergence_that_an_integral_gives(noise: float, rate: float) -> None:
    """D_α = log E[((1 − q) + q e^((2x − 1) / 2σ²))^α] / (α − 1), x ~ N(0, σ²)."""
    from opacus.accountants.analysis.rdp import compute_rdp

    for order in (1.5, 2.5, 4.3, 8.0, 20.0):
        x = np.linspace(-12 * noise, 12 * noise + 2 * order, 200_001)
        density = -(x**2) / (2 * noise**2) - math.log(noise * math.sqrt(2 * math.pi))
        odds = (2 * x - 1) / (2 * noise**2) + math.log(rate)
        ratio = odds if rate == 1 else np.logaddexp(math.log1p(-rate), odds)
        total = np.trapezoid(np.exp(density + order * ratio), x)
        found = compute_rdp(q=rate, noise_multiplier=noise, steps=1, orders=order)
        assert found == pytest.approx(math.log(total) / (order - 1), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [8.0, 4.0, 1.0, 0.5, 0.05])
def test_the_noise_is_the_least_that_keeps_the_promise(epsilon: float) -> None:
    promise = Guarantee(epsilon=epsilon, n_expected=5000)
    sigma = noise_multiplier_for(promise, 0.05, 200)
    assert 0.98 * epsilon <= epsilon_spent([(sigma, 0.05, 200)]) <= epsilon
    assert epsilon_spent([(0.97 * sigma, 0.05, 200)]) > epsilon, "with less noise it would break"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 1e308, 1e-9])
def test_an_epsilon_that_cannot_be_or_says_nothing_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match=r"epsilon must lie between 0\.01 and 1000, got"):
        noise_multiplier_for(Guarantee(epsilon=epsilon, n_expected=100), 0.1, 10)


@pytest.mark.parametrize("delta", [0.0, -1e-5, math.nan, 0.01, 1.0, 1e308])
def test_a_delta_of_one_in_n_or_more_is_refused(delta: float) -> None:
    with pytest.raises(InvalidInputError, match="delta must lie between 0 and 1/n"):
        noise_multiplier_for(Guarantee(epsilon=1.0, delta=delta, n_expected=100), 0.1, 10)


def test_what_no_noise_can_keep_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="with at least one step"):
        noise_multiplier_for(Guarantee(epsilon=1.0, n_expected=100), 0.1, 0)
    with pytest.raises(InvalidInputError, match="Use fewer steps"):
        noise_multiplier_for(Guarantee(epsilon=0.01, n_expected=100), 1.0, 10**13)


def test_a_missing_accountant_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingDependencyError, match=r"`dp-accounting`.*pip install opacus=="):
        compute_epsilons(1.0, 0.1, 10)
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(MissingDependencyError, match=r"`opacus`.*pip install opacus=="):
        noise_multiplier_for(Guarantee(epsilon=1.0, n_expected=100), 0.1, 10)


def stepped(clipping: str, sigma: float, n: int, C_: float = 0.5) -> tuple[Any, nn.Linear]:
    torch.manual_seed(0)
    network = nn.Linear(4, 2)
    noising = DPSettings(promise=None, learning_rate=0.1, clip_norm=C_, clipping=clipping)
    return private._wrap_with_opacus(network, noising, sigma, n, NoiseSource(0).generator), network


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_each_gradient_is_cut_to_its_length_before_they_are_added(clipping: str) -> None:
    """Equation 3.5 without noise, against gradients taken one by one."""
    (wrapped, optimizer, reduced), network = stepped(clipping, 0.0, 8)
    x = torch.randn(6, 4) * torch.tensor([0.01, 0.1, 1, 2, 5, 10])[:, None]
    y = torch.tensor([0, 1, 0, 1, 1, 0])
    cut = []
    for i in range(6):
        loss = nn.functional.cross_entropy(network(x[i : i + 1]), y[i : i + 1])
        own = torch.autograd.grad(loss, [network.weight, network.bias])
        flat = torch.cat([each.reshape(-1) for each in own])
        cut.append(flat * min(1.0, 0.5 / float(flat.norm())))
    assert any(c.norm() > 0.499 for c in cut) and any(c.norm() < 0.4 for c in cut)
    optimizer.zero_grad()
    reduced(nn.functional.cross_entropy(wrapped(x), y, reduction="none")).backward()
    optimizer.step()
    found = torch.cat([p.grad.reshape(-1) for p in (network.weight, network.bias)])
    assert torch.allclose(found, torch.stack(cut).sum(0) / 8, atol=1e-5)


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_noise_has_the_length_that_is_accounted_and_is_drawn_anew_at_every_step(
    clipping: str,
) -> None:
    (wrapped, optimizer, reduced), network = stepped(clipping, 3.0, 8)
    drawn = []
    for i in range(400):
        optimizer.zero_grad()
        x = torch.zeros(0 if i % 2 else 5, 4)  # an empty batch has noise like another
        reduced(0 * wrapped(x).sum(1)).backward()
        optimizer.step()
        drawn.append(torch.cat([p.grad.reshape(-1) for p in (network.weight, network.bias)]))
    noise = torch.stack(drawn).numpy()
    assert noise.std() == pytest.approx(3.0 * 0.5 / 8, rel=0.05)
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.08
    assert len(np.unique(noise[:, 0])) == 400


FAR = 5 + 7 * 2**32, 5 + 2**64, 5 + 2**200
"""Seeds that are 5 in their lowest 32 bits: torch's own generator reads no others."""


@pytest.mark.parametrize("other", FAR)
def test_noise_and_batches_follow_from_every_bit_of_the_seed(other: int) -> None:
    """At a rate of 1 the noise alone is secret: of 2³² of them, each can be tried."""
    vectors, labels = problem()
    settings = HeadSettings(epsilon=4.0, batch_size=N, steps=3)
    one, two = (fit_head(vectors, labels, C, settings, seed).weights for seed in (5, other))
    assert not np.allclose(one["last.weight"], two["last.weight"])
    again = fit_head(vectors, labels, C, settings, other).weights
    assert np.array_equal(two["last.weight"], again["last.weight"]), "studies repeat theirs"
    loops = [
        PoissonLoop(n=N, epochs=1, batch_size=9, seed=0, identity={}, rate=0.5, secret=seed)
        for seed in (5, other)
    ]
    assert not np.array_equal(loops[0].batches(0)[0], loops[1].batches(0)[0])


@pytest.mark.parametrize("seed", [5, FAR[-1]])
def test_the_generator_is_filled_whole_and_is_nobody_elses(seed: int) -> None:
    """Against MT19937 of another library, with the words that SHAKE-256 gives."""
    words = hashlib.shake_256(f"leakscope noise {seed}".encode()).digest(4 * 624)
    key = np.frombuffer(words, "<u4").astype(np.uint32)
    theirs = np.random.MT19937()
    theirs.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    ours = torch.rand(2000, generator=NoiseSource(seed).generator).numpy()
    assert np.array_equal(ours * 2**24, theirs.random_raw(2000) % 2**24)
    torch.manual_seed(seed_for(seed, "weights"))
    first = torch.rand(2000).numpy()
    assert (first == ours).sum() < 3, "first weights are of another stream than noise"


def test_noise_goes_on_where_a_checkpoint_says_and_an_older_one_is_refused() -> None:
    source = NoiseSource(1)
    torch.randn(7, generator=source.generator)
    kept, _ = source.state()
    kept = {name: array.copy() for name, array in kept.items()}
    then = torch.randn(40, generator=source.generator)
    back = NoiseSource(2).load_state(kept, {})
    assert torch.equal(torch.randn(40, generator=back.generator), then)
    with pytest.raises(ArtifactError, match="train again"):
        NoiseSource(2).load_state({}, {})


def test_batches_take_each_sample_by_itself_and_follow_from_seed_and_epoch() -> None:
    loop = PoissonLoop(n=2000, epochs=1, batch_size=100, seed=1, identity={}, rate=0.05)
    batches = loop.batches(0)
    sizes = np.array([len(rows) for rows in batches])
    assert len(batches) == 20 and 85 < sizes.mean() < 115 and sizes.std() > 4
    assert len(np.unique(np.concatenate(batches))) < 2000, "no epoch deals out all samples"
    assert all(np.array_equal(a, b) for a, b in zip(batches, loop.batches(0), strict=True))
    assert not np.array_equal(batches[0], loop.batches(1)[0])


@pytest.mark.slow
def test_the_training_spends_what_its_steps_cost_and_learns() -> None:
    vectors, labels = problem()
    found = fitted()
    privacy = found.privacy
    assert privacy is not None and privacy.n_steps == 20 and privacy.sample_rate == 0.25
    assert 3.9 < privacy.epsilon <= 4.0
    steps = [(privacy.noise_multiplier, 0.25, 20)]
    assert privacy.epsilon == epsilon_spent(steps)
    assert (found.probabilities(vectors).argmax(1) == labels).mean() > 0.6
    assert fitted(epsilon=0.0).privacy is None


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_private_training as told
def kill(done, said):
    if done > 0.55:
        os.kill(os.getpid(), signal.SIGKILL)
told.fitted(Path(sys.argv[1]), on_progress=kill)
"""


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_its_accountant_and_ends_alike(tmp_path: Path) -> None:
    """It is killed within an epoch, so that steps are lost with the weights that they made."""
    whole = fitted()
    here = Path(__file__).parent
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(here)], cwd=here.parent, check=False
    )
    assert died.returncode == -signal.SIGKILL
    _, meta = load_artifact(tmp_path)
    counted = sum(n for _, _, n in meta["extra"]["steps"])
    assert counted == 4 * meta["epoch"] + meta["batch"] > 0, "the steps that its weights hold"
    again = fitted(tmp_path)
    assert again.privacy == whole.privacy and again.privacy is not None
    assert again.privacy.n_steps == 20
    for name, weights in whole.weights.items():
        assert np.array_equal(again.weights[name], weights)


def stop_at(share: float) -> Callable[[float, str], None]:
    def report(done: float, told: str) -> None:
        if done > share:
            raise KeyboardInterrupt

    return report


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run that was stopped half-way."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        fitted(folder, on_progress=stop_at(0.5))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["before", "after"])
def test_steps_that_were_not_counted_are_found_out(
    lost: str, stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on must count what was before, and what it does itself."""
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    if lost == "before":
        monkeypatch.setattr(PrivacyLedger, "load_state", lambda self, arrays, meta: self)
    else:
        counting = PrivacyLedger.load_state

        def forget(self: Any, arrays: Any, meta: Any) -> Any:
            found = counting(self, arrays, meta)
            self.accountant.step = lambda **told: None
            return found

        monkeypatch.setattr(PrivacyLedger, "load_state", forget)
    with pytest.raises(ArtifactError, match="so its ε does not hold"):
        fitted(tmp_path)


def test_a_step_that_is_made_twice_is_counted_twice(tmp_path: Path) -> None:
    """Stopped between the noise and the note of it: more is told than was spent, never less."""
    ledger = PrivacyLedger()
    for _ in range(21):
        ledger.accountant.step(noise_multiplier=2.0, sample_rate=0.25)
    ledger.check(2.0, 0.25, 20)
    assert ledger.n_steps == 21
    with pytest.raises(ArtifactError):
        ledger.check(2.0, 0.25, 22)
    with pytest.raises(ArtifactError):
        ledger.check(2.1, 0.25, 20)


@pytest.mark.slow
def test_a_checkpoint_of_another_promise_is_refused(stopped: Path) -> None:
    with pytest.raises(ArtifactError, match="another run"):
        fitted(stopped, epsilon=8.0)


@pytest.mark.slow
@pytest.mark.parametrize("promise", [None, Guarantee(epsilon=4.0, n_expected=100)])
def test_a_training_that_diverges_is_stopped_and_leaves_nothing(
    promise: Guarantee | None, tmp_path: Path
) -> None:
    network, x = nn.Linear(4, 1), torch.randn(100, 4)
    loop = PoissonLoop(
        n=100,
        epochs=9,
        batch_size=50,
        seed=0,
        identity={},
        rate=0.5,
        keep_best=False,
        is_half=False,
        checkpoint_dir=tmp_path / "run",
    )
    noising = DPSettings(promise=promise, learning_rate=50.0)
    with pytest.raises(DivergedError, match=r"diverged.*nothing is stored.*learning_rate"):
        train_private(network, lambda net, rows: net(x[rows])[:, 0].exp(), noising, loop)
    assert not (tmp_path / "run").exists()


def test_texts_that_a_head_cannot_learn_from_are_refused() -> None:
    vectors, labels = problem()
    settings = HeadSettings(**SMALL)
    with pytest.raises(InvalidInputError, match="at least 20 texts, got 10"):
        fit_head(vectors[:10], labels[:10], C, settings, 0)
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        fit_head(np.where(vectors > 1, np.float32(np.nan), vectors), labels, C, settings, 0)
    with pytest.raises(InvalidInputError, match="numbers from 0 to 1"):
        fit_head(vectors, labels, 2, settings, 0)
    with pytest.raises(InvalidInputError, match="a class for each"):
        fit_head(vectors, labels[:-1], C, settings, 0)


def test_a_vector_is_standardised_by_itself() -> None:
    vectors, _ = problem()
    assert np.allclose(standardise(vectors)[:3], standardise(vectors[:3]))


TEXTS, LABELS = [str(i) for i in range(N)], [f"c{label}" for label in problem()[1]]


class _Toy:
    """An encoder of texts that are numbers."""

    name, dimension = "toy", D

    def __init__(self, fingerprint: str = "one") -> None:
        self.fingerprint = fingerprint

    def encode(self, texts: Any, on_progress: Any = None) -> NDArray[np.float32]:
        return problem()[0][[int(text) for text in texts]]


@pytest.mark.slow
def test_a_private_classifier_is_stored_without_its_seed_and_answers_alike(tmp_path: Path) -> None:
    made = make_training("head", {"epsilon": 8.0, **SMALL})
    assert isinstance(made, Restorable) and isinstance(made, PrivateTraining)
    with pytest.raises(NotFittedError):
        made.answer(_Toy(), TEXTS)
    with pytest.raises(InvalidInputError, match="epsilon must lie between"):
        make_training("head", {"epsilon": 0.0, **SMALL}).fit(_Toy(), TEXTS, LABELS)
    with pytest.raises(InvalidInputError, match="study private-training"):
        make_training("language_model", {})
    made.fit(_Toy(), TEXTS, LABELS)
    save_artifact(tmp_path / "kept", *made.state())
    back = PrivateTraining().load_state(*load_artifact(tmp_path / "kept"))
    assert back.privacy_ == made.privacy_ and back.classes_ == ("c0", "c1", "c2")
    assert np.array_equal(back.answer(_Toy(), TEXTS), made.answer(_Toy(), TEXTS))
    with pytest.raises(EncoderMismatchError):
        back.answer(_Toy("two"), TEXTS)
    other = make_training("head", {"epsilon": 8.0, **SMALL}).fit(_Toy(), TEXTS, LABELS)
    assert not np.array_equal(other.answer(_Toy(), TEXTS), made.answer(_Toy(), TEXTS))
    for entry in PRIVATE_TRAININGS.values():
        assert entry.title and entry.summary and entry.reference and entry.formula and entry.cost


@pytest.mark.slow
def test_a_killed_private_classifier_goes_on_with_the_seed_that_nobody_knows(
    tmp_path: Path,
) -> None:
    here, gone = tmp_path / "here", tmp_path / "gone"

    def fit(folder: Path, **more: Any) -> PrivateTraining:
        made = make_training("head", SMALL)
        return made.fit(_Toy(), TEXTS, LABELS, checkpoint_dir=str(folder), **more)

    with pytest.raises(KeyboardInterrupt):
        fit(here, on_progress=stop_at(0.5))
    assert (here / "seed.json").stat().st_mode & 0o077 == 0
    seed = str(json.loads((here / "seed.json").read_text())["seed"])
    assert len(seed) > 60, "256 bits"
    others = [path for path in files_of(here) if path.name != "seed.json"]
    assert len(others) == 2 and all(seed not in each.read_text("latin-1") for each in others)
    # As older releases left one that had ended: the checkpoint stayed, with all that it tells.
    shutil.copytree(here, gone)
    (gone / "seed.json").unlink()
    with pytest.raises(ArtifactError, match=r"without its seed.*Remove .*run"):
        fit(gone)
    assert not (gone / "seed.json").exists(), "no new seed is left for a run that is not its"
    done = fit(here)
    assert done.privacy_.n_steps == 20
    assert files_of(here) == [], "what can tell the noise goes with the training"
    shutil.rmtree(gone / "run")
    again = fit(gone)
    assert not np.array_equal(again.answer(_Toy(), TEXTS), done.answer(_Toy(), TEXTS))


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_private_classifier_needs_two_classes_and_a_seed_that_can_be() -> None:
    with pytest.raises(InvalidInputError, match="at least two classes"):
        make_training("head", SMALL).fit(_Toy(), TEXTS, ["one"] * N)
    with pytest.raises(InvalidInputError, match="seed must be 0 or more"):
        make_training("head", {**SMALL, "seed": -1}).fit(_Toy(), TEXTS, ["a", "b"] * (N // 2))


def test_a_private_classifier_that_diverges_leaves_neither_checkpoint_nor_seed(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.txt").write_text("not ours")
    made = make_training("head", {**SMALL, "learning_rate": 1e6, "hidden": 4, "clip_norm": 1e6})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "noise_multiplier_for", None)
        patch.setattr(private, "noise_multiplier_for", lambda *given: 1e36)
        with pytest.raises(DivergedError, match="Lower learning_rate"):
            made.fit(_Toy(), TEXTS, LABELS, checkpoint_dir=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(NotFittedError):
        made.state()
