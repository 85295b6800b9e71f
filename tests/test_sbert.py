from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.encoders.sbert.encoder import SentenceBERT, cosine_loss, warm_up_and_decay
from leakscope.core.encoders.sbert.pairs import ScoredPairs, format_spearman, spearman_score
from leakscope.core.errors import ArtifactError, InvalidInputError, NotFittedError, StoppedError
from leakscope.core.specs import AttackSpec
from leakscope.core.storage.artifacts import load_artifact, save_artifact

Pairs = tuple[list[str], list[str], list[float]]
WORDS = [
    "money",
    "river",
    "doctor",
    "garden",
    "winter",
    "letter",
    "bridge",
    "market",
    "teacher",
    "window",
    "engine",
    "forest",
]
SMALL: dict[str, Any] = {"epochs": 3, "learning_rate": 1e-3, "max_length": 32, "device": "cpu"}


def scored(n: int = 120, seed: int = 0) -> Pairs:
    """Pairs of five words; the score is how many of them are shared."""
    rng = np.random.default_rng(seed)
    one, two, scores = [], [], []
    for _ in range(n):
        words = rng.permutation(WORDS)
        shared = int(rng.integers(6))
        one.append("The " + " ".join(words[:5]))
        two.append("The " + " ".join(rng.permutation([*words[:shared], *words[5 : 10 - shared]])))
        scores.append(float(shared))
    return one, two, scores


@pytest.fixture(scope="module")
def trained(tiny_bert: Path) -> SentenceBERT:
    return SentenceBERT(base=str(tiny_bert), **SMALL).fit_pairs(*scored())


def test_loss_is_the_squared_error_of_the_cosine() -> None:
    one = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    two = torch.tensor([[0.0, 2.0], [4.0, 3.0]])
    # Cosines 0 and 24/25; scores 1 and 5 are 0.2 and 1.
    expected = ((0 - 0.2) ** 2 + (0.96 - 1) ** 2) / 2
    assert cosine_loss(one, two, torch.tensor([1.0, 5.0])).item() == pytest.approx(expected)


def test_rate_grows_over_a_tenth_and_falls_to_nothing() -> None:
    share = warm_up_and_decay(100, 0.1)
    assert [share(step) for step in (0, 9, 10, 55, 100)] == pytest.approx([0.1, 1, 1, 0.5, 0])
    assert warm_up_and_decay(10, 0.0)(0) == 1


def test_spearman_is_that_of_cosines_and_scores() -> None:
    class Known:
        def encode(self, texts: tuple[str, ...]) -> np.ndarray[Any, Any]:
            return np.array([[np.cos(float(t)), np.sin(float(t))] for t in texts], np.float32)

    pairs = ScoredPairs.of(["0"] * 4, ["0.1", "0.5", "0.9", "1.2"], [5, 2, 3, 0])
    score = spearman_score(Known(), pairs)  # type: ignore[arg-type]
    assert score.value == pytest.approx(80.0)  # ranks 4 3 2 1 and 4 2 3 1: 1 − 6·2/60
    assert score.ci95.low <= score.value <= score.ci95.high
    assert format_spearman(score) == f"Spearman {score.format()} on 4 pairs"


@pytest.mark.slow
def test_fine_tuning_teaches_what_the_scores_say(tiny_bert: Path) -> None:
    validation = scored(200, seed=5)
    before = SentenceBERT(base=str(tiny_bert), **SMALL | {"learning_rate": 1e-8})
    after = SentenceBERT(base=str(tiny_bert), **SMALL | {"epochs": 6})
    one, two = (e.fit_pairs(*scored(400), validation=validation) for e in (before, after))
    assert one.validation_.n == two.validation_.n == 200
    assert two.validation_.ci95.low > one.validation_.ci95.high
    assert two.validation_.value == max(two.log_.validation)


def test_state_comes_back_without_the_base(trained: SentenceBERT, tmp_path: Path) -> None:
    arrays, meta = trained.state()
    save_artifact(tmp_path, arrays, meta | {"settings": meta["settings"] | {"base": "gone"}})
    again = SentenceBERT().load_state(*load_artifact(tmp_path))
    texts = scored(20, seed=3)[0]
    np.testing.assert_array_equal(again.encode(texts), trained.encode(texts))
    assert again.fingerprint == trained.fingerprint
    assert again.validation_ == trained.validation_
    assert again.base == "gone"


def test_altered_states_are_refused(trained: SentenceBERT) -> None:
    arrays, meta = trained.state()
    name = "embeddings.word_embeddings.weight"
    with pytest.raises(ArtifactError, match="were altered"):
        SentenceBERT().load_state(arrays | {name: arrays[name] * 2}, meta)
    with pytest.raises(ArtifactError):
        SentenceBERT().load_state({k: v for k, v in arrays.items() if k != name}, meta)
    with pytest.raises(ArtifactError):
        SentenceBERT().load_state(arrays | {name: arrays[name][:5]}, meta)
    with pytest.raises(ArtifactError):
        SentenceBERT().load_state(arrays, meta | {"files": {}})
    files = meta["files"] | {"config.json": "{"}
    with pytest.raises(ArtifactError, match="cannot be loaded"):
        SentenceBERT().load_state(arrays, meta | {"files": files})
    with pytest.raises(ArtifactError, match="dual_lstm"):
        SentenceBERT().load_state(arrays, meta | {"encoder": "dual_lstm"})
    wrong = {"settings": meta["settings"] | {"epochs": 0}}
    with pytest.raises(ArtifactError, match="epochs must lie in"):
        SentenceBERT().load_state(arrays, meta | wrong)


def test_equal_seeds_give_equal_encoders(tiny_bert: Path) -> None:
    made = [
        SentenceBERT(base=str(tiny_bert), **SMALL | {"epochs": 1}, seed=s).fit_pairs(*scored(60))
        for s in (1, 1, 2)
    ]
    assert made[0].fingerprint == made[1].fingerprint != made[2].fingerprint


def test_a_stopped_training_resumes_to_the_same_weights(
    tiny_bert: Path, trained: SentenceBERT, tmp_path: Path
) -> None:
    calls = 0

    def stop(fraction: float, message: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 12:
            raise StoppedError("stopped")

    def new(**changes: Any) -> SentenceBERT:
        return SentenceBERT(base=str(tiny_bert), **SMALL | changes)

    with pytest.raises(StoppedError):
        new().fit_pairs(*scored(), on_progress=stop, checkpoint_dir=str(tmp_path))
    said: list[str] = []
    resumed = new().fit_pairs(
        *scored(), on_progress=lambda f, m: said.append(m), checkpoint_dir=str(tmp_path)
    )
    assert resumed.log_.n_resumed == 1
    assert resumed.fingerprint == trained.fingerprint
    assert resumed.validation_ == trained.validation_
    assert any("Epoch 3" in m and "on 12 pairs" in m and "pairs/s" in m for m in said)
    with pytest.raises(ArtifactError, match="another run"):
        new(seed=4).fit_pairs(*scored(), checkpoint_dir=str(tmp_path))


def test_unusable_input_is_refused_by_name(tiny_bert: Path) -> None:
    one, two, scores = scored(30)
    sbert = SentenceBERT(base=str(tiny_bert), **SMALL)
    with pytest.raises(InvalidInputError, match=r"fit_pairs\(pairs_a, pairs_b, scores\)"):
        sbert.fit(one)
    with pytest.raises(NotFittedError, match="not trained"):
        sbert.encode(["a"])
    with pytest.raises(InvalidInputError, match="at least 20 pairs, got 0"):
        sbert.fit_pairs([], [], [])
    with pytest.raises(InvalidInputError, match="got 30, 29"):
        sbert.fit_pairs(one, two[1:], scores)
    with pytest.raises(InvalidInputError, match=r"shape \(30, 1\)"):
        sbert.fit_pairs(one, two, np.array(scores)[:, None])  # type: ignore[arg-type]
    for bad in (float("nan"), 5.5, -1.0, float("inf")):
        with pytest.raises(InvalidInputError, match="score 3 is"):
            sbert.fit_pairs(one, two, [*scores[:2], bad, *scores[3:]])
    with pytest.raises(InvalidInputError, match="scores must be numbers"):
        sbert.fit_pairs(one, two, ["much"] * 30)  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="text 2 of pairs_b is empty"):
        sbert.fit_pairs(one, [two[0], "", *two[2:]], scores)
    with pytest.raises(InvalidInputError, match="validation: text 1 of pairs_a"):
        sbert.fit_pairs(one, two, scores, validation=(["\0"], ["a"], [1.0]))
    with pytest.raises(InvalidInputError, match="not single texts"):
        sbert.fit_pairs("one", "two", [1.0] * 3)
    with pytest.raises(InvalidInputError, match="epochs must lie in"):
        SentenceBERT(epochs=0).fit_pairs(one, two, scores)


def test_sparse_coding_runs_on_it(trained: SentenceBERT) -> None:
    texts = scored(50)[0]
    attack = make_attack(AttackSpec.of("sparse", {"penalty": 0.01})).fit(trained, texts)
    assert len(attack.invert(trained, trained.encode(texts[:3]))) == 3
