"""Packages that sell a secret rotation as protection, against the alignments."""

from __future__ import annotations

import numpy as np
import pytest
from test_alignment import D, Rows, bags, mean_cosine

from leakscope.core.audit.alignment.paired import fit_paired
from leakscope.core.audit.alignment.structured import hadamard_key
from leakscope.core.audit.alignment.unpaired import fit_unpaired


@pytest.fixture(scope="module")
def known() -> Rows:
    return bags(6_000, 0)


@pytest.fixture(scope="module")
def clear() -> Rows:
    return bags(4_000, 1)


def test_hadamask_falls_exactly(known: Rows, clear: Rows) -> None:
    transform = pytest.importorskip("hadamask.transform")
    keys = pytest.importorskip("hadamask.keys")
    secret = transform.OrthogonalTransform(keys.MasterKey.generate(), D, processing_dim=2 * D)
    stored = secret.encode(clear)
    found = fit_unpaired(known, stored)
    assert found.confidence.is_right
    assert mean_cosine(found.map.apply(stored), clear) > 0.98
    key = hadamard_key(found.map.weights)
    assert key.is_permutation
    assert stored @ key.rotation == pytest.approx(clear, abs=1e-5)


def test_turboquant_vectors_falls_without_pairs(known: Rows, clear: Rows) -> None:
    private = pytest.importorskip("turboquant_vectors.private")
    stored = private.PrivateEncoder.from_seed(D, 2**80 + 5).rotate(clear)
    found = fit_unpaired(known, stored)
    assert found.confidence.is_right
    assert mean_cosine(found.map.apply(stored), clear) > 0.98


def test_privrag_guard_falls_with_pairs_and_without(known: Rows, clear: Rows) -> None:
    guard = pytest.importorskip("privrag.core.guard")
    secret = guard.PrivRAGGuard(key_seed=2**90 + 7)
    stored = np.asarray(secret.protect_batch(clear), dtype=np.float32)
    most = 1 / np.sqrt(1 + secret.noise_fraction**2)  # of the noise that it adds
    paired = fit_paired(clear[:100], stored[:100])
    assert mean_cosine(paired.map.apply(stored[200:]), clear[200:]) > most - 0.01
    found = fit_unpaired(known, stored)
    assert found.confidence.is_right
    assert mean_cosine(found.map.apply(stored), clear) > most - 0.03
