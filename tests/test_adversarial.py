"""Adversarial training and LEACE: the sign, the scale, the trap, and what a run that diverges."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from leakscope.core.attacks.attributes.linear import LinearProbe
from leakscope.core.defences.stored import load_defence, save_defence
from leakscope.core.defences.trained.adversarial import (
    AdapterNetwork,
    AdversarialAdapter,
    similarity_loss,
)
from leakscope.core.defences.trained.adversarial_dual import AdversarialLSTM
from leakscope.core.defences.trained.adversarial_game import AdversarialGame, WordAdversary
from leakscope.core.defences.trained.leace import Leace, fit_eraser
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import (
    ArtifactError,
    DivergedError,
    EncoderMismatchError,
    InvalidInputError,
    NotFittedError,
    StoppedError,
)
from leakscope.core.protocols import OnProgress, TrainedDefence, Vectors, no_progress
from leakscope.core.storage.artifacts import load_artifact, save_artifact
from leakscope.core.text import Vocabulary
from leakscope.core.training.adversary import (
    LabelAdversary,
    StandardScale,
    add_gradient_check,
    reverse,
)

DIMENSION = 12
WORDS = ("river", "doctor", "winter", "garden", "minister", "ticket")


class Planted:
    """An encoder of vectors in which words and a label stand plainly: 1 where a text holds them."""

    name, fingerprint, dimension = "planted", "f" * 64, DIMENSION

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[: len(WORDS)] = [word in text for word in WORDS]
            rng = np.random.default_rng(sum(map(ord, text)))
            row[len(WORDS) :] = rng.normal(size=DIMENSION - len(WORDS))
            row[-1] = 2.0 * ("!" in text) - 1
        on_progress(1.0, "encoded")
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def planted_texts(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts of two words and a number, half of which end in an exclamation mark: their label."""
    rng = np.random.default_rng(seed)
    texts = [
        f"{' '.join(rng.choice(WORDS, 2, replace=False))} {rng.integers(10**6)}{'!' * (i % 2)}"
        for i in range(n)
    ]
    return texts, ["loud" if text.endswith("!") else "calm" for text in texts]


def probed(encoder: Any, seed: int = 0) -> float:
    """Return how often a fresh linear probe, on new samples, is right about the label."""
    known, labels = planted_texts(400, 100 + seed)
    held, truth = planted_texts(400, 200 + seed)
    numbers, true = (
        np.array([label == "loud" for label in each], np.int64) for each in (labels, truth)
    )
    probe = LinearProbe(rate=1e-2).fit(known, numbers, encoder.encode(known), n_labels=2)
    return float((probe.scores(held, encoder.encode(held)).argmax(1) == true).mean())


# Gradient reversal


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_the_gradient_comes_back_turned_round_and_scaled_the_adversary_s_own_does_not(
    weight: float,
) -> None:
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    w = torch.tensor([[3.0], [-4.0]], requires_grad=True)
    out = reverse(x, weight) @ w
    assert out.item() == -5.0, "on the way there nothing changes"
    (2 * out).sum().backward()
    # d(2 x·w)/dx = 2 w, times −λ; d/dw = 2 x as without reversal.
    assert x.grad is not None and w.grad is not None
    assert x.grad.tolist() == [[-weight * 6.0, weight * 8.0]]
    assert w.grad.tolist() == [[2.0], [4.0]]


def sides(**more: Any) -> Any:
    given = {
        "against": "words",
        "weight": 1.0,
        "adversary_hidden": 0,
        "adversary_rate": 0.1,
        "n_words": 10,
    }
    return SimpleNamespace(**(given | more))


class Fixed(nn.Module):
    """An adversary whose loss is a·v: its gradient in v is a."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor([1.0, -2.0]))

    def loss(self, vectors: torch.Tensor, rows: NDArray[np.int64]) -> torch.Tensor:
        return (vectors @ self.a).mean()

    def hits(self, vectors: torch.Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros(len(rows))

    def chance(self, rows: NDArray[np.int64]) -> float:
        return 0.0


def test_a_step_lowers_the_main_loss_and_raises_the_adversary_s() -> None:
    network = nn.Linear(2, 2, bias=False)
    nn.init.eye_(network.weight)
    game = AdversarialGame(sides(weight=0.5), network, Fixed(), torch.device("cpu"))
    x = torch.tensor([[1.0, 1.0]])
    vectors = network(x)
    loss = game.loss((vectors**2).sum(), vectors, np.array([0]))
    assert loss.item() == pytest.approx(2.0 - 1.0)
    loss.backward()
    # By hand: d main/dv = 2v = (2, 2); the adversary's −λ a = (−.5, 1); outer product with x.
    assert network.weight.grad is not None
    assert network.weight.grad.tolist() == [[1.5, 1.5], [3.0, 3.0]]
    assert game.adversary.a.grad.tolist() == [1.0, 1.0]  # type: ignore[attr-defined]


# A run that diverges


def test_a_step_whose_gradient_is_not_finite_is_not_taken() -> None:
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = torch.optim.Adam([w], lr=0.1)
    add_gradient_check(optimizer, [w], clip=5.0, weight=7.0)
    for bad in (math.nan, math.inf, 1e30):  # the square of the last is no float32
        w.grad = torch.tensor([1.0, bad])
        with pytest.raises(DivergedError, match=r"weight 7.*nothing was stored"):
            optimizer.step()
        assert w.tolist() == [1.0, 2.0]
    w.grad = torch.tensor([30.0, 40.0])
    optimizer.step()
    assert w.grad.tolist() == pytest.approx([3.0, 4.0], rel=1e-4), "clipped to length 5"


@pytest.mark.parametrize("weight", [1e308, 1e39])
def test_a_weight_that_diverges_is_stopped_and_nothing_is_stored(
    weight: float, tmp_path: Path
) -> None:
    texts, _ = planted_texts(100, 0)
    adapter = AdversarialAdapter(weight=weight, epochs=2, batch_size=16, device="cpu")
    with pytest.raises(DivergedError, match="Lower weight"):
        adapter.fit(Planted(), texts, checkpoint_dir=str(tmp_path / "c"))
    assert not list((tmp_path / "c").glob("*")), "its checkpoint would only diverge again"
    with pytest.raises(NotFittedError):
        adapter.protect(Planted())
    with pytest.raises(NotFittedError):
        save_defence(adapter, tmp_path / "d")
    dual = AdversarialLSTM(**DUAL, weight=weight)
    with pytest.raises(DivergedError):
        dual.fit(texts, checkpoint_dir=str(tmp_path / "e"))
    assert not list((tmp_path / "e").glob("*"))
    with pytest.raises(NotFittedError):
        dual.encode(texts)


# Adversaries


def test_vectors_that_shrink_or_move_hide_nothing() -> None:
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    scale = StandardScale(5).train()
    np.testing.assert_allclose(scale(x), scale(100 + 30 * x), atol=1e-3)
    assert torch.isfinite(scale(x[:1])).all(), "a batch of one has no variance"


def test_the_words_an_adversary_reads_are_scored_by_hand() -> None:
    texts = ["river doctor", "river winter", "garden"]
    adversary = WordAdversary(texts, Vocabulary.count(texts), 2, hidden=0)
    assert adversary._vocabulary.words == ("river", "doctor", "garden", "winter")
    said = [np.array([0, 1]), np.array([0]), np.array([1, 2, 3])]
    scores = adversary._f1(said, np.arange(3))
    assert scores.tolist() == pytest.approx([100, 200 / 3, 200 / 4])
    # river alone: 2/3, 2/3, 0; three words: 4/5, 2/5, 2/4; all four: 4/6, 4/6, 2/5, the best.
    assert adversary.chance(np.arange(3)) == pytest.approx(100 * (4 / 6 + 4 / 6 + 2 / 5) / 3)


def test_a_label_adversary_is_held_against_the_most_frequent_label() -> None:
    adversary = LabelAdversary(np.array([0, 0, 1, 0], np.int64), 2, 3, hidden=0)
    assert adversary.chance(np.arange(4)) == 75.0
    assert adversary.chance(np.array([1, 2])) == 50.0
    assert set(adversary.hits(torch.randn(4, 3), np.arange(4))) <= {0.0, 100.0}


def test_the_loss_that_keeps_usefulness_by_hand() -> None:
    frozen = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    own = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])

    losses = []
    for a in range(3):
        others = [b for b in range(3) if b != a]
        wanted = np.array([math.exp(float(frozen[a] @ frozen[b]) / 0.5) for b in others])
        found = np.array([math.exp(float(own[a] @ own[b]) / 0.5) for b in others])
        losses.append(-(wanted / wanted.sum() * np.log(found / found.sum())).sum())
    expected = pytest.approx(sum(losses) / 3, rel=1e-5)
    assert similarity_loss(own, frozen, 0.5).item() == expected


# The trap, and the defence


def trained(weight: float, against: str = "attribute", **more: Any) -> AdversarialAdapter:
    texts, labels = planted_texts(600, 1)
    given = {
        "epochs": 25,
        "batch_size": 64,
        "hidden": 32,
        "learning_rate": 5e-3,
        "n_words": 10,
        "adversary_hidden": 32,
        "device": "cpu",
    }
    adapter = AdversarialAdapter(against=against, weight=weight, **(given | more))
    return adapter.fit(Planted(), texts, labels=labels)


def test_without_weight_the_adversary_reads_the_label_and_with_it_it_does_not() -> None:
    free, hidden = trained(0.0), trained(3.0)
    assert free.during_[-1].value > 95 and probed(free.protect(Planted())) > 0.95
    assert len(hidden.during_) == 25 and hidden.during_[-1].n == 60
    assert hidden.during_[-1].value <= hidden.during_[-1].chance < 75
    assert probed(hidden.protect(Planted())) < probed(free.protect(Planted()))


def test_words_are_hidden_too() -> None:
    free, hidden = trained(0.0, "words"), trained(3.0, "words")
    assert free.during_[-1].value > 80
    assert hidden.during_[-1].value < free.during_[-1].value - 10


def test_an_adapter_starts_as_what_it_stands_before() -> None:
    x = torch.nn.functional.normalize(torch.randn(5, 4))
    np.testing.assert_allclose(
        AdapterNetwork(np.eye(4, dtype=np.float32), 8)(x).detach(), x, atol=1e-6
    )


def test_fewer_numbers_are_the_principal_ones() -> None:
    adapter = trained(0.0, dimension=3, epochs=1)
    protected = adapter.protect(Planted())
    vectors = protected.encode(planted_texts(5, 3)[0])
    assert protected.dimension == 3 and vectors.shape == (5, 3)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    with pytest.raises(InvalidInputError, match=r"dimension must lie in \[0, 12\]"):
        trained(0.0, dimension=13)


# What is stored, stopped and refused


def test_stored_and_loaded_it_protects_identically(tmp_path: Path) -> None:
    texts, labels = planted_texts(80, 2)
    defences: list[Any] = [trained(1.0, epochs=1), Leace().fit(Planted(), texts, labels=labels)]
    for i, defence in enumerate(defences):
        assert isinstance(defence, TrainedDefence)
        folder = save_defence(defence, tmp_path / str(i), training={"encoder": "planted"})
        loaded: Any = load_defence(folder)
        one, other = defence.protect(Planted()), loaded.protect(Planted())
        assert one.fingerprint == other.fingerprint and loaded.training_ == {"encoder": "planted"}
        np.testing.assert_array_equal(one.encode(texts), other.encode(texts))
        stranger = Planted()
        stranger.fingerprint = "0" * 64  # type: ignore[misc]
        with pytest.raises(EncoderMismatchError, match="'planted'"):
            loaded.protect(stranger)
        meta = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(meta | {"state": {}}))
        with pytest.raises(ArtifactError, match="does not contain a trained defence"):
            load_defence(folder)
        assert {p.suffix for p in folder.iterdir()} == {".json", ".safetensors"}


def test_a_run_that_is_stopped_ends_as_one_that_was_not(tmp_path: Path) -> None:
    texts, labels = planted_texts(200, 4)
    given: dict[str, Any] = {"epochs": 4, "batch_size": 32, "device": "cpu", "weight": 0.5}
    whole = AdversarialAdapter(**given, against="attribute").fit(Planted(), texts, labels=labels)

    def stop(fraction: float, _: str) -> None:
        if fraction > 0.6 and "stopped" not in seen:
            seen.append("stopped")
            raise StoppedError("enough")

    seen: list[str] = ["encoding"]
    again = AdversarialAdapter(**given, against="attribute")
    fit: dict[str, Any] = {
        "vectors": Planted().encode(texts),
        "labels": labels,
        "checkpoint_dir": str(tmp_path),
    }
    with pytest.raises(StoppedError):
        again.fit(Planted(), texts, on_progress=stop, **fit)
    arrays, meta = load_artifact(tmp_path)
    meta["log"]["seconds"] = 1000.0  # as if what was done before it was stopped had taken long
    save_artifact(tmp_path, arrays, meta)
    again.fit(Planted(), texts, **fit)
    assert 1000 < again.seconds_ < 2000, "what it took before counts"
    assert 0 < whole.seconds_ < 1000
    assert again.during_ == whole.during_ and len(again.during_) == 4
    one, other = (each.protect(Planted()) for each in (whole, again))
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("labels", [None, ["one"], ["same"] * 80])
@pytest.mark.parametrize("defence", [AdversarialAdapter(against="attribute"), Leace()])
def test_an_attribute_needs_its_labels(defence: Any, labels: list[str] | None) -> None:
    texts, _ = planted_texts(80, 2)
    with pytest.raises(InvalidInputError, match="label"):
        defence.fit(Planted(), texts, labels=labels)


# LEACE


def test_leace_is_the_closed_form_worked_by_hand() -> None:
    # Four vectors at (±2, ±1), labels by the sign of the first number: Σ_xx is diagonal and Σ_xz
    # points along the first axis, so that W Σ_xz does, and the projection takes that axis off.
    x = np.array([[2.0, 1.0], [2.0, -1.0], [-2.0, 1.0], [-2.0, -1.0]]) + np.array([5.0, 7.0])
    p, mean = fit_eraser(x, np.array([1, 1, 0, 0]), 2)
    assert mean.tolist() == [5.0, 7.0]
    np.testing.assert_allclose(p, [[0, 0], [0, 1]], atol=1e-9)
    # Correlated: Σ_xx = [[2, 1], [1, 1]] (times 4/3), z along x₁. I − P = Σ_xz (Σ_xz'Σ_xx⁻¹Σ_xz)⁻¹
    # Σ_xz' Σ_xx⁻¹ with Σ_xz ∝ (a, b) = Σ (x − μ) z.
    x = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    z = np.array([1, 0, 1, 0])
    p, _ = fit_eraser(x, z, 2)
    sigma, cross = x.T @ x, x.T @ (2.0 * z - 1)
    assert cross.tolist() == [4.0, 2.0]
    inverse = np.linalg.inv(sigma)
    expected = np.eye(2) - np.outer(cross, cross @ inverse) / (cross @ inverse @ cross)
    np.testing.assert_allclose(p, expected, atol=1e-9)
    np.testing.assert_allclose((x @ p.T).T @ (2.0 * z - 1), 0, atol=1e-9)


def test_leace_moves_vectors_about_their_mean_and_no_more_than_it_must() -> None:
    texts, labels = planted_texts(600, 3)
    plain = Planted().encode(texts) + np.float32(2.0)  # a mean far from 0

    class Shifted(Planted):
        def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
            return super().encode(texts, on_progress) + np.float32(2.0)

    defence = Leace().fit(Shifted(), texts, labels=labels)
    erased = defence.protect(Shifted()).encode(texts)
    np.testing.assert_allclose(erased.mean(0), plain.mean(0), atol=1e-4)
    moved = np.linalg.svd(erased - plain, compute_uv=False)
    assert moved[1] < 1e-3 * moved[0], "two labels: along one direction alone"


def test_leace_leaves_a_fresh_linear_probe_at_chance() -> None:
    assert probed(Planted()) > 0.95
    texts, labels = planted_texts(4000, 1)
    defence = Leace().fit(Planted(), texts, labels=labels)
    found = [probed(defence.protect(Planted()), seed) for seed in range(3)]
    # Chance is .5; of 1,200 answers four standard deviations are .058.
    assert abs(np.mean(found) - 0.5) < 0.058


# Dual encoders


DUAL: dict[str, Any] = {
    "dimension": 16,
    "epochs": 2,
    "n_negatives": 15,
    "learning_rate": 0.01,
    "n_candidates": 5,
    "n_validation": 10,
    "word_dimension": 12,
    "n_words": 10,
    "adversary_hidden": 16,
    "device": "cpu",
}


def test_a_dual_encoder_is_trained_against_an_attribute_and_comes_back(tmp_path: Path) -> None:
    texts, labels = planted_texts(200, 5)
    one = AdversarialLSTM(**DUAL, against="attribute", weight=1.0).fit(texts, labels=labels)
    assert len(one.during_) == 2 and one.during_[0].n == 10 and one.seconds_ > 0
    again = AdversarialLSTM().load_state(*one.state())
    assert again.during_ == one.during_ and again.fingerprint == one.fingerprint
    np.testing.assert_array_equal(again.encode(texts[:3]), one.encode(texts[:3]))
    other = AdversarialLSTM(**DUAL, against="attribute", weight=0.0).fit(texts, labels=labels)
    assert other.fingerprint != one.fingerprint
    with pytest.raises(InvalidInputError, match="label"):
        AdversarialLSTM(**DUAL, against="attribute").fit(texts)
    with pytest.raises(InvalidInputError, match="one for each x_b"):
        AdversarialLSTM(**DUAL, against="attribute").fit(texts, labels=labels[:-1])


# The registry


def test_a_defended_encoder_is_opened_by_its_folder(
    tiny_bert: Path, tmp_path: Path, small_texts: list[str]
) -> None:
    base = load_encoder(f"mlm:{tiny_bert}")
    adapter = AdversarialAdapter(epochs=1, n_words=20, device="cpu").fit(base, small_texts[:60])
    save_defence(adapter, tmp_path / "d", training={"encoder": f"mlm:{tiny_bert}"})
    opened = load_encoder(f"defended:{tmp_path / 'd'}")
    assert opened.fingerprint == adapter.protect(base).fingerprint
    np.testing.assert_array_equal(
        opened.encode(small_texts[:3]), adapter.protect(base).encode(small_texts[:3])
    )
    save_defence(adapter, tmp_path / "e", training={})
    with pytest.raises(ArtifactError, match="does not name the encoder"):
        load_encoder(f"defended:{tmp_path / 'e'}")


# The command line


@pytest.fixture
def table(tmp_path: Path) -> Path:
    texts, labels = planted_texts(120, 9)
    path = tmp_path / "texts.csv"
    lines = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join(["text,mood", *lines]) + "\n")
    return path


@pytest.mark.parametrize("defence", ["adversarial", "leace"])
def test_a_defence_is_trained_and_used_from_the_command_line(
    core: Any, table: Path, tiny_bert: Path, tmp_path: Path, defence: str
) -> None:
    out = tmp_path / "d"
    more = "--set epochs=2" if defence == "adversarial" else ""
    given = (
        f"defend --defence {defence} --encoder mlm:{tiny_bert} --texts {table} "
        f"--label-column mood --out {out} {more}"
    )
    told = core(f"{given} --json").json()
    assert told["encoder"] == f"defended:{out}" and told["trained_for"] == f"mlm:{tiny_bert}"
    assert told["n_texts"] == 120 and len(told["during"]) == (2 if more else 0)
    assert told["nearest_kept"]["n"] == 120 and told["nearest_kept"]["value"] > 20
    assert {p.suffix for p in out.iterdir()} == {".json", ".safetensors"}
    found = core(
        f"attributes --texts {table} --label-column mood --encoder defended:{out} --json"
    ).json()
    assert found["encoder"] == f"defended:{out}"
    assert "already contains a defence" in core(given).refusal()
    assert defence in core("list", "--defence", defence).out


def test_a_weight_that_diverges_leaves_no_folder_behind(
    core: Any, table: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "d"
    given = ["defend", "--encoder", f"mlm:{tiny_bert}", "--texts", table, "--out", out]
    assert "Training diverged at weight 1e+308" in core(*given, "--set", "weight=1e308").refusal()
    assert not [path for path in tmp_path.rglob("model*") if path.parent != tmp_path]
    assert "weight must lie in" in core(*given, "--set", "weight=nan").refusal()
    assert "needs a label" in core(*given, "--set", "against=attribute").refusal()
    assert core(*given, "--set", "epochs=1", "--json").json()["n_texts"] == 120


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """Running text by two authors."""
    texts, _ = planted_texts(300, 7)
    path = tmp_path / "books.jsonl"
    with path.open("w") as file:
        for i in range(0, 300, 10):
            told = " ".join(f"The {text.rstrip('!')} is here." for text in texts[i : i + 10])
            file.write(json.dumps({"text": told, "author": "ab"[i // 10 % 2]}) + "\n")
    return path


def fitting(path: Path, out: Path, **settings: Any) -> list[object]:
    """Return the command that fits a small dual encoder."""
    told = [word for k, v in (DUAL | settings).items() for word in ("--set", f"{k}={v}")]
    return ["fit", "--encoder", "adversarial_lstm", "--corpus", path, "--out", out, *told]


def test_a_dual_encoder_is_fitted_against_an_attribute_from_the_command_line(
    core: Any, books: Path, tmp_path: Path
) -> None:
    given = fitting(books, tmp_path / "e", against="attribute", weight=0.5)
    assert "label" in core(*given).refusal()
    told = core(*given, "--label-column", "author", "--json").json()
    assert told["label_column"] == "author" and told["n_pairs"] > 200
    assert load_encoder(told["encoder"]).during_[-1].n == 10  # type: ignore[attr-defined]
    refused = core(
        f"fit --encoder tfidf --corpus {books} --out {tmp_path / 'f'} --label-column author"
    ).refusal()
    assert "tfidf does not hide an attribute" in refused
