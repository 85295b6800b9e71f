from __future__ import annotations

import numpy as np
import pytest

from leakscope.core.attacks.inversion.lifted import Lift
from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.release import release, release_under_noise
from leakscope.core.defences.setting import read_setting
from leakscope.core.defences.tried import defend_sentence, fit_inverse_map
from leakscope.core.encoders.transformer import TransformerEncoder

TEXT = "The minister and the doctor near Berlin."


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "gaussian:sigma=0.1",
        "int8",
        "token_representation:eta=50",
        "text_to_text:eta=20",
        "text_to_text:eta=20+int8",
        "santext:epsilon=3+gaussian",
        "truncation:dimension=8+int8",
        "random_projection:dimension=8",
    ],
)
def test_the_same_draw_gives_the_same_and_another_seed_another(
    tiny_encoder: TransformerEncoder, name: str
) -> None:
    spec = read_setting(name)
    one, again, other = (defend_sentence(tiny_encoder, spec, TEXT, seed) for seed in (3, 3, 4))
    assert np.array_equal(one.vector, again.vector) and one.text == again.text
    is_certain = name in ("none", "int8", "truncation:dimension=8+int8")
    assert np.array_equal(one.vector, other.vector) == is_certain
    assert (one.text is not None) == name.startswith(("text_to_text", "santext"))


def test_the_vector_is_that_of_the_text_that_is_released(tiny_encoder: TransformerEncoder) -> None:
    found = defend_sentence(tiny_encoder, read_setting("text_to_text:eta=20"), TEXT, 3)
    assert found.text is not None
    assert np.allclose(found.vector, tiny_encoder.encode([found.text]), atol=1e-6)
    (ids,) = tiny_encoder.token_ids([TEXT])
    assert [old for old, _ in found.tokens] == [tiny_encoder.tokens[i] for i in ids]
    assert found.text.split() == [new for _, new in found.tokens]
    assert [new for _, new in found.tokens] != [old for old, _ in found.tokens]


@pytest.mark.parametrize("eta", [20, 1e6])
def test_of_noisy_token_vectors_the_nearest_tokens_are_told_under_the_noise_that_they_have(
    tiny_encoder: TransformerEncoder, eta: float
) -> None:
    found = defend_sentence(tiny_encoder, read_setting(f"token_representation:eta={eta}"), TEXT, 3)
    (ids,) = tiny_encoder.token_ids([TEXT])
    table = tiny_encoder.token_vectors.numpy()
    released = release_under_noise(table[ids], eta, np.random.default_rng(3))
    regular = candidate_ids(tiny_encoder)
    far = np.linalg.norm(released[:, None] - table[regular][None], axis=2)
    nearest = [tiny_encoder.tokens[i] for i in regular[far.argmin(1)]]
    assert [new for _, new in found.tokens] == nearest
    assert found.text is None and (found.told or "").replace(".", " .").split() == nearest
    assert (nearest == [old for old, _ in found.tokens]) == (eta > 20)


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("none", False),
        ("gaussian", False),
        ("text_to_text", True),
        ("text_to_text+int8", False),
        ("token_representation", True),
        ("token_representation+int8", False),
    ],
)
def test_tokens_are_read_off_where_they_are_what_is_released(
    tiny_encoder: TransformerEncoder, name: str, is_told: bool
) -> None:
    assert (defend_sentence(tiny_encoder, read_setting(name), TEXT, 3).told is not None) is is_told


def test_two_changes_of_the_text_leave_no_pairs_of_tokens(tiny_encoder: TransformerEncoder) -> None:
    found = defend_sentence(tiny_encoder, read_setting("santext:epsilon=3+text_to_text"), TEXT, 3)
    assert found.text and found.tokens == ()


@pytest.mark.parametrize(
    "name", ["random_projection:dimension=24", "random_projection:dimension=24+int8", "int8"]
)
def test_a_map_learnt_behind_the_defence_leads_a_vector_back(
    tiny_encoder: TransformerEncoder, small_texts: list[str], name: str
) -> None:
    spec, known = read_setting(name), tiny_encoder.encode(small_texts)
    back = fit_inverse_map(tiny_encoder, spec, known, seed=5)
    assert back is not None
    text = "Letter with doctor from Vienna and silver."
    (own,) = tiny_encoder.encode([text])
    (led,) = back(defend_sentence(tiny_encoder, spec, text, 5).vector)
    mean = known.mean(0)
    assert np.linalg.norm(led - own) < 0.5 * np.linalg.norm(own - mean)
    strange = fit_inverse_map(tiny_encoder, spec, known, seed=6)  # another matrix leads elsewhere
    if name != "int8":
        assert strange is not None
        (far,) = strange(defend_sentence(tiny_encoder, spec, text, 5).vector)
        assert np.linalg.norm(far - own) > 2 * np.linalg.norm(led - own)


def test_an_attacker_draws_noise_of_their_own(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    spec, known = read_setting("gaussian:sigma=0.3"), tiny_encoder.encode(small_texts)
    back = fit_inverse_map(tiny_encoder, spec, known, seed=5)
    assert back is not None

    def learnt_with(seed: int) -> np.ndarray:
        noise = np.random.default_rng(seed).standard_normal(known.shape)
        return Lift.fit(release(known, 0.3 * noise, 0.3), known).weight

    assert np.allclose(back.weight, learnt_with(6), atol=1e-6)
    assert not np.allclose(back.weight, learnt_with(5), atol=1e-6), "not the target's own"
    assert fit_inverse_map(tiny_encoder, read_setting("text_to_text+int8"), known, 5) is None
