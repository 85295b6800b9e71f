"""Each study has a test that a split which leaks would fail, or a reason why it needs none.

In the former an attack or a classifier of `memorising_models` is planted, and guesses; in a second
test of the same file it meets what it knows, and does not.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from leakscope.core.studies.registry import STUDIES

_BY_HEART = (
    "test_leaks",
    "test_what_is_known_by_heart_is_not_attacked",
    "test_sentences_that_stand_on_both_sides_would_be_found",
)
_NEARLY = (
    "test_leaks",
    "test_what_nearly_repeats_a_known_text_is_not_attacked",
    "test_what_nearly_repeats_a_known_text_would_be_found",
)
_UNDER_NOISE = (
    "test_under_noise_leaks",
    "test_a_network_that_knows_its_texts_by_heart_is_worth_the_largest_class",
    "test_texts_that_stand_on_both_sides_would_be_found",
)

LEAK_TESTS = {
    "encoders": _BY_HEART,
    "attacks": _BY_HEART,
    "reconstruct": _BY_HEART,
    "paragraphs": _NEARLY,
    "eos": _BY_HEART,
    "scaling": _BY_HEART,
    "layers": _BY_HEART,
    "classification": (
        "test_classification_leaks",
        "test_a_classifier_that_knows_its_texts_by_heart_is_at_the_baseline",
        "test_articles_that_are_nearly_known_would_be_sorted",
    ),
    "names": (
        "test_names_leaks",
        "test_who_knows_by_heart_reads_no_name",
        "test_sentences_on_both_sides_would_be_found",
    ),
    "memorisation": (
        "test_memorisation_leaks",
        "test_a_model_that_knows_its_texts_by_heart_exposes_what_was_planted_alone",
        "test_a_control_that_was_planted_would_be_exposed",
    ),
    "attributes": (
        "test_attribute_leaks",
        "test_who_knows_labelled_texts_by_heart_guesses",
        "test_texts_that_are_nearly_labelled_would_be_found",
    ),
    "constrained": _UNDER_NOISE,
    "adaptive": _UNDER_NOISE,
    "tradeoff": (
        "test_tradeoff_leaks",
        "test_who_knows_by_heart_reads_no_more_than_a_guess",
        "test_texts_that_are_nearly_known_would_be_read",
    ),
    "listed": (
        "test_listed",
        "test_who_knows_by_heart_finds_no_candidate",
        "test_texts_that_are_nearly_known_would_be_found",
    ),
    "adversarial": (
        "test_adversarial_leaks",
        "test_who_knows_texts_by_heart_guesses",
        "test_texts_that_are_nearly_known_would_be_read",
    ),
    "membership-classifiers": (
        "test_membership_leaks",
        "test_who_knows_by_heart_whom_shadows_learnt_of_finds_no_member",
        "test_shadows_that_learn_of_the_targets_members_would_tell_them",
    ),
    "private-training": (
        "test_private_training_leaks",
        "test_heads_and_attacks_that_know_by_heart_guess",
        "test_texts_that_are_trained_on_and_tested_would_be_known",
    ),
    "membership-words": (
        "test_membership_leaks",
        "test_who_knows_labelled_documents_by_heart_finds_no_member",
        "test_windows_that_are_labelled_and_scored_would_be_found",
    ),
    "membership-sentences": (
        "test_membership_leaks",
        "test_who_knows_labelled_documents_by_heart_finds_no_member",
        "test_pairs_that_are_learnt_of_and_scored_would_be_found",
    ),
}
"""By study: a file of tests, the test in which who knows by heart guesses, and the one in which a
leak is planted that they find."""

NEEDS_NONE = {
    "deniability": "Nothing is learnt from texts: it counts what a mechanism, whose law is public, "
    "makes of each token.",
    "audit": "No text is attacked: mechanisms are run, and one half of the runs chooses what the "
    "other is tested on (test_audit_pairs.py).",
    "replacements": "Nothing is learnt from texts: it counts how near to each token comes out what "
    "a mechanism, whose law is public, makes of it.",
}

MEASURES = {"run_study", "measure", "attack_scores"}
"""What measures a study, or the part of the trade-off that attacks texts."""


def named(source: str, test: str) -> set[str]:
    """Return the names that a test uses, by itself or in what it uses of its own file.

    Fixtures count by their names, and those of every test of the file as well; words in strings,
    such as those of a parametrisation, do not.
    """
    own = {}
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                own[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                own[name] = node
    everywhere = [name for name, node in own.items() if "autouse=True" in _decorated(node)]
    found: set[str] = set()
    left = [test, *everywhere]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for node in ast.walk(own[name]) if name in own else ():
            match node:
                case ast.Name(id=used) | ast.Attribute(attr=used) | ast.arg(arg=used):
                    left.append(used)
    return found


def _decorated(node: ast.stmt) -> str:
    return " ".join(map(ast.unparse, getattr(node, "decorator_list", [])))


def planted(source: str) -> set[str]:
    """Return what a file of tests takes from `memorising_models` that knows something by heart."""
    judges = {"is_at_chance", "match_rows", "NEARLY", "UNKNOWN_BITS", "MemorisingWordEncoder"}
    return {
        alias.name
        for node in ast.parse(source).body
        if isinstance(node, ast.ImportFrom) and node.module == "memorising_models"
        for alias in node.names
    } - judges


def faults(source: str, test: str, *, leaks: bool) -> list[str]:
    """Return in what a test of a file falls short of planting somebody in what is measured."""
    names = named(source, test)
    found = [] if f"\ndef {test}(" in source else ["is not there"]
    found += [] if names & planted(source) else ["plants nobody who knows by heart"]
    found += [] if names & MEASURES else ["measures nothing"]
    if leaks and not names & {"setattr", "leaks"}:
        found.append("changes nothing of the study")
    return found


def test_every_study_has_a_leak_test_or_a_reason() -> None:
    assert LEAK_TESTS.keys() | NEEDS_NONE.keys() == STUDIES.keys()
    assert not LEAK_TESTS.keys() & NEEDS_NONE.keys()
    assert all(len(reason.split()) > 8 for reason in NEEDS_NONE.values())


@pytest.mark.parametrize("study", LEAK_TESTS)
def test_who_knows_by_heart_is_planted_in_what_the_study_measures(study: str) -> None:
    file, guesses, finds = LEAK_TESTS[study]
    source = Path(__file__).with_name(f"{file}.py").read_text(encoding="utf-8")
    assert faults(source, guesses, leaks=False) == []
    assert faults(source, finds, leaks=True) == []
    assert guesses != finds
    if LEAK_TESTS[study] in (_BY_HEART, _NEARLY, _UNDER_NOISE):
        assert f'    "{study}": study_' in source
    else:
        subject, module = STUDIES[study].path.partition(":")[0].split(".")[-2:]
        called = {module, f"{subject}_{module}".removesuffix("_study")}
        assert (called | {f"{name}_attack" for name in called}) & named(source, guesses)
