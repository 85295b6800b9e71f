"""The parts of the search for a sentence: what is foreseen, joined and learned."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from leakscope.core.attacks.inversion.reconstruct.edits import (
    Edit,
    Expansion,
    Prior,
    Step,
    _all_moves,
    apply_edits,
)
from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel
from leakscope.core.attacks.inversion.reconstruct.search import (
    Candidate,
    Plan,
    SearchState,
    combined_edits,
)
from leakscope.core.attacks.inversion.reconstruct.start import WordPosterior, expected_length
from leakscope.core.attacks.inversion.reconstruct.tokens import N_SPECIAL, tokens_of

TEXTS = [
    "the minister saw the bridge in london.",
    "a doctor lost the letter near the river.",
    "my cousin painted a violin on monday, in london.",
    "the teacher bought an orange near the bridge.",
]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel.fit(TEXTS, size=60, least=1)


@pytest.mark.parametrize("text", ["the doctor", "a cousin painted the letter in london near."])
def test_every_edit_of_one_token_every_move_and_every_cut_changes_what_is_foreseen(
    model: LanguageModel, text: str
):
    sentence = model.lexicon.ids(tokens_of(text))
    n, every = len(sentence), np.arange(N_SPECIAL, len(model.lexicon), dtype=np.int32)
    (before,) = model.log_probabilities([sentence])

    def changes(edits: list[Edit]) -> np.ndarray:
        return model.log_probabilities([edit.of(sentence) for edit in edits]) - before

    moves = _all_moves(n)
    moved = changes([Edit(int(a), int(b), to=int(to)) for a, b, to in moves])
    np.testing.assert_allclose(model.move_scores(sentence, moves), moved, atol=1e-4)
    cuts = [(a, b) for a in range(n) for b in range(a + 1, n + 1) if b - a < n]
    cut = changes([Edit(a, b) for a, b in cuts])
    found = model.cut_scores(sentence, np.array(cuts, np.int32))
    np.testing.assert_allclose(found, cut, atol=1e-4)
    scores = model.edit_scores(sentence, every)
    put_in = changes([Edit(i, i, (int(c),)) for i in range(n + 1) for c in every])
    np.testing.assert_allclose(scores.insert.ravel(), put_in, atol=1e-4)
    changed = changes([Edit(i, i + 1, (int(c),)) for i in range(n) for c in every])
    is_other = (sentence[:, None] != every).ravel()
    np.testing.assert_allclose(scores.replace.ravel()[is_other], changed[is_other], atol=1e-4)
    assert (scores.replace.ravel()[~is_other] < -1e5).all()
    deleted = changes([Edit(i, i + 1) for i in range(n)])
    np.testing.assert_allclose(scores.delete, deleted, atol=1e-4)


def test_all_moves_of_a_long_sentence_are_weighed_and_none_twice():
    sentence = np.arange(24, dtype=np.int32)
    moves = [Edit(int(a), int(b), to=int(to)) for a, b, to in _all_moves(24)]
    results = {move.of(sentence).tobytes() for move in moves}
    assert sentence.tobytes() not in results
    swaps = {
        np.concatenate([sentence[:p], sentence[q:r], sentence[p:q], sentence[r:]]).tobytes()
        for p, q, r in combinations(range(25), 3)
        if min(q - p, r - q) <= 5
    }
    assert results == swaps and len(moves) == len(results)


def test_edits_do_what_they_say_alone_and_several_at_once():
    sentence = np.array([10, 11, 12, 13], np.int32)
    for edit, changed in (
        (Edit(1, 1, (9,)), [10, 9, 11, 12, 13]),
        (Edit(1, 2, (9,)), [10, 9, 12, 13]),
        (Edit(1, 3), [10, 13]),
        (Edit(0, 2, to=2), [12, 13, 10, 11]),
    ):
        assert edit.of(sentence).tolist() == changed
    edits = [Edit(3, 4, (8,)), Edit(0, 0, (9,)), Edit(1, 3)]
    together = apply_edits(sentence, *edits)
    assert together is not None and together.tolist() == [9, 10, 8]
    assert apply_edits(sentence, *edits, Edit(2, 3, (7,))) is None
    assert apply_edits(sentence, Edit(1, 2, (8,)), Edit(1, 2, (9,))) is None
    assert apply_edits(sentence, Edit(0, 0, (9,)), Edit(3, 4), Edit(0, 0, (8,))) is None
    assert apply_edits(sentence, Edit(0, 0, (9,)), Edit(0, 2, to=1)) is None


def _step(tokens: list[int], parts: np.ndarray, target: np.ndarray) -> Step:
    vector = parts.sum(0) / np.linalg.norm(parts.sum(0))
    cosine = float(vector @ target)
    return Step(np.array(tokens, np.int32), vector.astype(np.float32), cosine, 0.0, cosine)


def test_edits_that_gain_are_joined_as_long_as_they_bring_it_further():
    axes = np.eye(8)
    target = axes[:5].sum(0) / np.sqrt(5)
    parent = _step([10, 11], axes[:1], target)
    helps = [(Edit(i, i, (20 + k,)), axes[[0, k]]) for i, k in ((0, 1), (1, 2), (2, 3))]
    same_place = (Edit(0, 0, (24,)), axes[[0, 4]] * [[1], [0.9]])
    children = [(e, _step([0], parts, target)) for e, parts in [*helps, same_place]]
    found = [(value, tokens.tolist()) for value, tokens in combined_edits(target, parent, children)]
    values, sentences = zip(*found, strict=True)
    assert [21, 10, 22, 11, 23] in sentences
    assert max(values) > max(child.value for _, child in children) + 0.05
    assert not any({21, 24} <= set(tokens) for tokens in sentences)


def test_a_token_costs_less_up_to_the_length_expected():
    prior = Prior(0.001, n_expected=10)
    assert prior.length_gain(4, 3) > prior.length_gain(9, 3) > prior.length_gain(12, 3) == 0
    for n, k in ((4, 3), (9, 2), (12, -5)):
        assert prior.length_gain(n, k) == pytest.approx(prior.of(-30, n + k) - prior.of(-30, n))
    assert Prior(0.0, 10).of(-30, 12) == 0


def test_the_more_words_are_half_believed_in_the_longer_is_what_is_expected():
    few, many = np.full(50, 0.01), np.full(50, 0.01)
    few[:2], many[:10] = 0.5, 0.5
    assert 3 < expected_length(few) < expected_length(many) < 40
    assert expected_length(np.full(5000, 0.5)) == 40  # where a defence leaves nothing to believe


def test_words_that_disappointed_wait_behind_others():
    plan = Plan(n_queries=100, width=4, n_states=4, patience=8)
    target = np.eye(4, dtype=np.float32)[0]
    start = np.array([10], np.int32)
    search = SearchState(target, [start], WordPosterior(start, np.ones(1)), Prior(0.0, 1.0))
    (first,) = search.next_round(plan)
    parent = Step(start, np.eye(4, dtype=np.float32)[1], 0.0, 0.0, 0.5)
    search.update([(first, parent)], plan)
    words = [20, 20, 21, 21]
    edits = [(0.1 - 0.001 * i, Edit(i % 2, i % 2, (word,))) for i, word in enumerate(words)]
    search.queue_edits(parent, Expansion(edits, []))
    narrow = Plan(n_queries=100, width=1, n_states=4, patience=8)
    (tried,) = search.next_round(narrow)
    assert tried.edit == Edit(0, 0, (20,)) and tried.foreseen == pytest.approx(0.6)
    failed = Step(tried.tokens, parent.vector, 0.0, 0.0, 0.3)
    search.update([(tried, failed)], narrow)
    order = [search.next_round(narrow)[0].edit for _ in range(3)]
    assert order == [Edit(0, 0, (21,)), Edit(1, 1, (21,)), Edit(1, 1, (20,))]
    assert isinstance(tried, Candidate)
