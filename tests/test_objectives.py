"""The losses of privacy-adaptive pretraining against values worked by hand."""

from __future__ import annotations

import math

import pytest
import torch

from leakscope.core.defences.trained.under_noise.objectives import probability_loss, token_loss

LOGITS = torch.tensor([[math.log(1), math.log(2), math.log(5)], [0.0, 0.0, 0.0]])
"""Softmax: 1/8, 2/8, 5/8; and a third each."""


def test_one_token_is_predicted_as_in_equations_5_and_7() -> None:
    found = float(token_loss(LOGITS, torch.tensor([[1], [2]])))
    assert found == pytest.approx((-math.log(2 / 8) - math.log(1 / 3)) / 2)


def test_a_set_is_predicted_by_how_often_each_comes_as_in_equation_6() -> None:
    drawn = torch.tensor([[2, 2, 0, 2], [1, 1, 1, 1]])  # n_2 = 3 and n_0 = 1 of |C| = 4
    by_hand = -(3 / 4) * math.log(5 / 8) - (1 / 4) * math.log(1 / 8)
    found = float(probability_loss(LOGITS, drawn))
    assert found == pytest.approx((by_hand + math.log(3)) / 2)


def test_a_set_of_one_token_is_the_one_token() -> None:
    drawn = torch.tensor([[2], [0]])
    assert float(probability_loss(LOGITS, drawn)) == float(token_loss(LOGITS, drawn))


def test_its_gradient_is_the_softmax_less_the_shares() -> None:
    logits = LOGITS[:1].clone().requires_grad_(True)
    probability_loss(logits, torch.tensor([[2, 2, 0, 2]])).backward()
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([1 / 8 - 1 / 4, 2 / 8, 5 / 8 - 3 / 4])
