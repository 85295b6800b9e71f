"""Each study has a test that a split which leaks would fail, or a reason why it needs none."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.studies.registry import STUDIES

_BY_HEART = "test_leaks.py::test_what_is_known_by_heart_is_not_attacked"
_UNDER_NOISE = (
    "test_under_noise_leaks.py::"
    "test_a_network_that_knows_its_texts_by_heart_is_worth_the_largest_class"
)

LEAK_TESTS = {
    "encoders": _BY_HEART,
    "attacks": _BY_HEART,
    "reconstruct": _BY_HEART,
    "paragraphs": _BY_HEART,
    "eos": _BY_HEART,
    "scaling": _BY_HEART,
    "layers": _BY_HEART,
    "classification":
        "test_classification_leaks.py::"
        "test_a_classifier_that_knows_its_texts_by_heart_is_at_the_baseline",
    "names": "test_names_leaks.py::test_who_knows_by_heart_reads_no_name",
    "memorisation":
        "test_memorisation_leaks.py::"
        "test_a_model_that_knows_its_texts_by_heart_exposes_what_was_planted_alone",
    "attributes":
        "test_attribute_leaks.py::test_who_knows_labelled_texts_by_heart_guesses",
    "constrained": _UNDER_NOISE,
    "adaptive": _UNDER_NOISE,
    "tradeoff": "test_tradeoff_leaks.py::test_who_knows_by_heart_reads_no_more_than_a_guess",
    "adversarial":
        "test_adversarial_leaks.py::test_who_knows_texts_by_heart_guesses",
    "membership-classifiers":
        "test_membership_leaks.py::"
        "test_who_knows_by_heart_whom_shadows_learnt_of_finds_no_member",
    "private-training":
        "test_private_training_leaks.py::test_heads_and_attacks_that_know_by_heart_guess",
    "membership-words":
        "test_membership_leaks.py::test_who_knows_labelled_documents_by_heart_finds_no_member",
    "membership-sentences":
        "test_membership_leaks.py::test_who_knows_labelled_documents_by_heart_finds_no_member",
}  # fmt: skip

NEEDS_NONE = {
    "deniability": "Nothing is learnt from texts: it counts what a mechanism, whose law is public, "
    "makes of each token.",
    "audit": "No text is attacked: mechanisms are run, and one half of the runs chooses what the "
    "other is tested on (test_audit_pairs.py).",
}


def test_every_study_has_a_leak_test_or_a_reason() -> None:
    assert LEAK_TESTS.keys() | NEEDS_NONE.keys() == STUDIES.keys()
    assert not LEAK_TESTS.keys() & NEEDS_NONE.keys()
    assert all(len(reason.split()) > 8 for reason in NEEDS_NONE.values())


@pytest.mark.parametrize("study", LEAK_TESTS)
def test_the_leak_test_is_there(study: str) -> None:
    file, _, name = LEAK_TESTS[study].partition("::")
    source = Path(__file__).with_name(file).read_text(encoding="utf-8")
    assert f"\ndef {name}(" in source
    if LEAK_TESTS[study] in (_BY_HEART, _UNDER_NOISE):
        assert f'    "{study}": study_' in source
