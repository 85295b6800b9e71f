"""Classifiers that only see noise: the user's part is frozen, noise is fresh, runs resume."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.defences.trained.constrained import (
    ConstrainedClassifier,
    _NoisyPieces,
    _NoisyVectors,
)
from leakscope.core.defences.trained.under_noise.readers import Received
from leakscope.core.defences.trained.under_noise.registry import n_releases
from leakscope.core.defences.trained.under_noise.user_side import MECHANISMS, UserSide
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.tasks.examples import Examples, read_examples

ALL = np.arange(80)


@pytest.fixture(scope="module")
def examples(small_texts: list[str]) -> Examples:
    """Texts whose class is told by a word that half of them begin with."""
    labels = tuple("ab"[i % 2] for i in range(120))
    words = {"a": "the minister", "b": "a doctor"}
    texts = tuple(f"{words[labels[i]]} {small_texts[i]}" for i in range(120))
    return Examples("toy", texts, (), labels)


def classifier(tiny: Path, **settings: Any) -> ConstrainedClassifier:
    given = {
        "mechanism": "none",
        "eta": 5.0,
        "encoder": f"mlm:{tiny}",
        "epochs": 4,
        "batch_size": 16,
        "learning_rate": 3e-3,
        "max_length": 24,
    }
    return ConstrainedClassifier(**(given | settings))


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["transformer", "bilstm"])
def test_it_learns_without_noise_and_nothing_under_all_of_it(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, reader: str
) -> None:
    def accuracy(**settings: Any) -> float:
        steep = {"learning_rate": 2e-2, "epochs": 15} if reader == "bilstm" else {"epochs": 8}
        found = classifier(tiny_bert, reader=reader, **steep, **settings)
        found.fit(tiny_encoder, examples, ALL)
        held = np.arange(80, 120)
        said = found.predict(tiny_encoder, examples, held)
        return float((said == examples.class_ids[held]).mean())

    assert accuracy() > 0.9
    assert 0.2 < accuracy(mechanism="text_to_text", eta=1e-3) < 0.8


@pytest.mark.parametrize("mechanism", ["token_representation", "text_to_text"])
def test_noise_is_fresh_at_every_step_and_the_table_stays_as_it_is(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    examples: Examples,
    mechanism: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[np.ndarray] = []
    whole = UserSide.vectors

    def noted(self: UserSide, ids: Any, rng: Any) -> Any:
        found = whole(self, ids, rng)
        sent.append(found[0][:5].copy())
        return found

    monkeypatch.setattr(UserSide, "vectors", noted)
    before = tiny_encoder.token_vectors.clone()
    found = classifier(tiny_bert, mechanism=mechanism, batch_size=80, epochs=3, eta=3.0)
    found.fit(tiny_encoder, examples, ALL)
    found.predict(tiny_encoder, examples, ALL)
    assert len(sent) == 4
    assert len({part.tobytes() for part in sent}) == 4, "a draw was used twice"
    assert torch.equal(tiny_encoder.token_vectors, before)
    names = dict(found.network_.named_parameters())
    assert not any("word_embeddings" in name for name in names), "the user's part can be trained"


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize(("releases", "n"), [("once", 1), ("every_epoch", 3)])
def test_a_text_is_released_as_often_as_stated(
    tiny_bert: Path,
    tiny_encoder: TransformerEncoder,
    examples: Examples,
    mechanism: str,
    releases: str,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What reaches the network of each training text, over three epochs whose batches differ."""
    seen: dict[int, set[bytes]] = {}
    kind = _NoisyVectors if mechanism == "sequence_representation" else _NoisyPieces
    whole = kind.logits

    def noted(self: Any, network: torch.nn.Module, rows: Any, rng: Any) -> Any:
        def reading(*given: Any) -> torch.Tensor:
            for i, row in enumerate(rows.tolist()):
                if isinstance(given[0], Received):
                    is_user = self.pieces.batch(rows).is_user[i]
                    vectors = given[0].vectors[i][is_user]
                else:
                    vectors = np.stack([side[i].numpy() for side in given])
                seen.setdefault(row, set()).add(np.asarray(vectors).tobytes())
            return network(*given)

        return whole(self, reading, rows, rng)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "logits", noted)
    found = classifier(tiny_bert, mechanism=mechanism, epochs=3, eta=3.0, releases=releases)
    found.fit(tiny_encoder, examples, ALL)
    assert {len(copies) for copies in seen.values()} == {n} and len(seen) == len(ALL)
    assert len(set.union(*seen.values())) == n * len(ALL), "two texts have one noise"
    assert n == n_releases(mechanism, "transformer", epochs=3, releases=releases)


def test_a_network_says_how_often_a_text_is_released() -> None:
    told = {"releases": "every_epoch"}
    assert n_releases("sequence_representation", "transformer", **told) == 20
    assert n_releases("token_representation", "bilstm", **told) == 8
    assert n_releases("none", "bilstm", **told) == 0
    assert n_releases("text_to_text", "transformer", releases="once", epochs=9) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_seed_repeats_every_mechanism_and_pairs_are_read(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, mechanism: str
) -> None:
    paired = Examples("pairs", examples.first, examples.first[::-1], examples.labels)
    said = [
        classifier(tiny_bert, mechanism=mechanism, epochs=1)
        .fit(tiny_encoder, paired, ALL)
        .predict(tiny_encoder, paired, ALL)
        for _ in range(2)
    ]
    assert said[0].tolist() == said[1].tolist()


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_without_noise_eta_is_nothing(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, mechanism: str
) -> None:
    def weights(**settings: Any) -> list[np.ndarray]:
        found = classifier(tiny_bert, mechanism=mechanism, epochs=1, **settings)
        found.fit(tiny_encoder, examples, ALL)
        return [value.numpy() for value in found.network_.state_dict().values()]

    few, many = (weights(is_noisy=False, eta=eta) for eta in (1.0, 30.0))
    assert all((one == other).all() for one, other in zip(few, many, strict=True))
    noisy = weights(eta=1.0)
    assert any((one != other).any() for one, other in zip(few, noisy, strict=True))


def stop_at(share: float) -> Callable[[float, str], None]:
    def report(fraction: float, message: str) -> None:
        if fraction > share:
            raise StoppedError("stopped")

    return report


@pytest.mark.parametrize("eta", [0.0, -3.0, float("nan"), 1e308])
def test_an_eta_that_is_none_is_refused_before_anything_is_trained(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples, eta: float
) -> None:
    with pytest.raises(InvalidInputError, match="eta must lie in"):
        classifier(tiny_bert, eta=eta).fit(tiny_encoder, examples, ALL)


def test_what_cannot_be_is_refused(
    tiny_bert: Path, tiny_encoder: TransformerEncoder, examples: Examples
) -> None:
    of_texts = classifier(tiny_bert, mechanism="sequence_representation", reader="bilstm")
    with pytest.raises(InvalidInputError, match="Choose the transformer"):
        of_texts.fit(tiny_encoder, examples, ALL)
    one = replace(examples, labels=("a",) * 120)
    with pytest.raises(InvalidInputError, match="has one class"):
        classifier(tiny_bert).fit(tiny_encoder, one, ALL)
    with pytest.raises(InvalidInputError, match="Choose `minilm`"):
        classifier(tiny_bert, encoder="tfidf").fit(tiny_encoder, examples, ALL)


def test_a_table_of_pairs_is_read_with_its_official_split(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [(f"one {i}", f"two {i}", i % 2, "test" if i < 10 else "train") for i in range(40)]
    rows += [("one 3", "two 3", 1, "train"), ("one 9", "another", 1, "train")]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label", "split"), *rows])
    found = read_examples("pairs", str(path))
    known, held = found.parts(seed=0)
    assert found.is_paired and found.classes == ("0", "1")
    assert sorted(held.tolist()) == list(range(10))
    assert 40 not in known and 41 in known, "a pair that is tested is not trained on"
    alone = read_examples("alone", f"{path}#sentence2")
    assert not alone.is_paired and alone.first[0] == "two 0"
    path.write_text("sentence1,sentence2,label\na,,1\n")
    with pytest.raises(InvalidInputError, match="lacks a text of its pair"):
        read_examples("pairs", str(path))
