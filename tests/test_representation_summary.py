from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders.registry import ENCODERS, FITTED_ENCODERS
from leakscope.core.errors import ArtifactError
from leakscope.core.results.tables import rows_to_json
from leakscope.core.studies.inversion import more_texts
from leakscope.core.studies.inversion.representation_order import (
    Verdict,
    compare_pairs,
    least_leaking,
    strongest,
)
from leakscope.core.studies.inversion.representation_summary import (
    FILES,
    MORE_TEXTS,
    SHIPPED,
    load_representations,
)
from scripts.more_texts import collect

BROKEN = ["{", "[]", "{}", '{"study": "x", "rows": [1]}', '{"rows": []}']


def scored(measure: str, value: float, half: float, guess: float, **row: Any) -> dict[str, Any]:
    """Return a flat row with a score, its interval and what guessing reaches."""
    score = {measure: value, f"{measure}_ci95": [value - half, value + half]}
    prior = {f"prior_{measure.removeprefix('token_set_')}": guess}
    return {"domain": "in", "seed": 0, "target": "news.parquet", **prior, **score, **row}


def leak(encoder: str, f1: float, half: float = 2.0, **more: Any) -> dict[str, Any]:
    row = {
        "encoder": encoder,
        "attack": "msp",
        "n_auxiliary": 100,
        "settings": {},
        "n_fitted_on": 100,
        "n": 50,
        "precision": 50.0,
        "recall": 40.0,
        "weighted_f1": 30.0,
        "own_vocabulary_f1": 20.0,
    }
    return scored("token_set_f1", f1, half, 5.0, **row | more)


def use(encoder: str, value: float, half: float = 2.0, **more: Any) -> dict[str, Any]:
    row = {"encoder": encoder, "view": "titles", "n": 60}
    return scored("macro_f1", value, half, 8.0, **row | more)


def taught(encoder: str, f1: float, n: int, **more: Any) -> dict[str, Any]:
    row = {"encoder": encoder, "attack": "msp", "n": 500, "n_fitted_on": n}
    return scored("token_set_f1", f1, 1.0, 4.0, **row | more)


TAUGHT = [taught("minilm", 85, 9000), taught("minilm", 95, 9000, attack="search")]
LEAKS = [
    leak("tfidf", 90),
    leak("hashing", 91),
    leak("lsa_tfidf", 60),
    leak("lsa_hashing", 58),
    leak("doc2vec", 59, 1.0),
    leak("minilm", 70),
    leak("tfidf", 40, attack="probe"),
    leak("minilm", 75, attack="probe", prior_f1=7.0),
]
USES = [
    use("tfidf", 80),
    use("hashing", 79),
    use("lsa_tfidf", 60),
    use("lsa_hashing", 77),
    use("minilm", 82, domain="cross"),
]


def written(
    folder: Path,
    leaks: list[dict[str, Any]],
    uses: list[dict[str, Any]],
    more: list[dict[str, Any]] = TAUGHT,
) -> Path:
    files = {**FILES, more_texts.STUDY: MORE_TEXTS}
    for (study, name), rows in zip(files.items(), (leaks, uses, more), strict=True):
        (folder / name).write_text(json.dumps({"study": study, "rows": rows}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path, LEAKS, USES)


def test_rows_are_joined_by_encoder_and_domain(folder: Path) -> None:
    found = load_representations(folder)
    names = [row["encoder"] for row in LEAKS[:6]]
    assert found.encoders == names and found.attacks == ["msp", "probe"] and found.n_failed == 0
    points = {p.leak.encoder: p for p in found.points(names, ["msp"], "in", "titles")}
    assert points["tfidf"].useful is not None and points["tfidf"].useful.value == 80
    assert points["tfidf"].leak.f1.ci95.high == 92 and points["tfidf"].leak.f1.chance == 5
    assert points["doc2vec"].useful is None, "its usefulness was not measured"
    # An encoder that is not fitted here is the same in both domains; a fitted one is not.
    assert points["minilm"].useful is not None and points["minilm"].useful.value == 82
    assert found.useful("tfidf", "cross", "titles") is None
    assert found.points(names, ["msp"], "cross", "titles") == []


def test_the_f1_of_every_word_is_kept_where_each_row_holds_it(tmp_path: Path) -> None:
    leaks = [
        leak("tfidf", 20, unrestricted_f1=16.0),
        leak("tfidf", 24, seed=1, unrestricted_f1=18.0),
        leak("hashing", 20, unrestricted_f1=16.0),
        leak("hashing", 24, seed=1),
    ]
    more = [taught("tfidf", 60, 9000, unrestricted_f1=51.0)]
    found = load_representations(written(tmp_path, leaks, USES, more))
    every = {
        p.leak.encoder: p.leak.all_words
        for p in found.points(["tfidf", "hashing"], ["msp"], "in", "titles")
    }
    assert every == {"tfidf": 17.0, "hashing": None}
    assert [score.all_words for score in found.more_texts] == [51.0]


def test_the_most_texts_count_without_variants_averaged_over_seeds(tmp_path: Path) -> None:
    leaks = [
        leak("tfidf", 10),
        leak("tfidf", 20, n_auxiliary=900, n_fitted_on=880),
        leak("tfidf", 24, n_auxiliary=900, n_fitted_on=880, seed=1),
        leak("tfidf", 99, n_auxiliary=900, settings={"end_token": 1}),
        leak("hashing", 1, error="MemoryError: x"),
    ]
    found = load_representations(written(tmp_path, leaks, USES))
    (point,) = found.points(["tfidf", "hashing"], ["msp"], "in", "titles")
    assert (point.leak.f1.value, point.leak.f1.n, point.leak.n_fitted_on) == (22, 100, 880)
    # Between the seeds the variance is 8, more than within: Student's t of one degree, 12.706.
    assert point.leak.f1.ci95.high == pytest.approx(22 + 12.706 * (8 / 2) ** 0.5, rel=1e-4)
    assert found.n_failed == 1


@pytest.mark.parametrize("study", FILES)
@pytest.mark.parametrize("content", [None, *BROKEN])
def test_a_missing_or_damaged_file_is_told_with_its_command(
    folder: Path, study: str, content: str | None
) -> None:
    path = folder / FILES[study]
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ArtifactError, match=f"leakscope study {study} --target FILE --out"):
        load_representations(folder)


def test_attacks_that_learnt_from_more_are_named_where_they_read_more(tmp_path: Path) -> None:
    # tf-idf: learnt from no more than the row itself, and intervals that overlap.
    more = [*TAUGHT, taught("tfidf", 99, 100), taught("hashing", 93, 9000)]
    found = load_representations(written(tmp_path, LEAKS, USES, more))
    told = {
        name: [(s.attack, s.f1.value, s.n_fitted_on) for s in found.better_trained(leak)]
        for (name, attack, _), leak in found.leaks.items()
        if attack == "msp"
    }
    assert told.pop("minilm") == [("msp", 85, 9000), ("search", 95, 9000)]
    assert not any(told.values())
    best = found.most_read("minilm", "in")
    assert best is not None and (best.attack, best.f1.value) == ("search", 95)
    assert found.most_read("minilm", "cross") is None


def test_what_ships_of_more_texts_is_what_was_measured() -> None:
    results = Path(__file__).parents[1] / "results" / "inversion-bbc.json"
    shipped = json.loads((SHIPPED / MORE_TEXTS).read_text())
    assert shipped["rows"] == rows_to_json(more_texts.STUDY, collect(results))["rows"]
    found = load_representations(SHIPPED)
    leak = found.leaks["minilm", "probe_mlc", "cross"]
    same, most = found.better_trained(leak)
    assert (same.attack, most.attack) == ("probe_mlc", "search")
    assert leak.f1.ci95.high < same.f1.ci95.low < most.f1.ci95.low
    assert leak.n_fitted_on < same.n_fitted_on == most.n_fitted_on
    assert not found.better_trained(found.leaks["glove", "probe_mlc", "cross"])


@pytest.mark.parametrize(
    "row",
    [
        leak("tfidf", float("nan")),
        leak("tfidf", 101),
        leak("nonsense", 50),
        leak("tfidf", 50, attack="nonsense"),
        leak("tfidf", 50, domain="elsewhere"),
        leak("tfidf", 50, token_set_f1_ci95=[1]),
        leak("tfidf", 50, n_auxiliary=None),
        leak("tfidf", 50, prior_f1="5"),
        leak("tfidf", 50, settings=None),
        {"encoder": "tfidf"},
    ],
    ids=str,
)
def test_rows_that_make_no_sense_are_refused(tmp_path: Path, row: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match=r"Create (it|them)"):
        load_representations(written(tmp_path, [row], USES))


def test_the_finding_is_the_least_leak_of_the_most_useful(folder: Path) -> None:
    found = load_representations(folder)
    points = found.points(found.encoders, found.attacks, "in", "titles")
    attacks = {p.leak.encoder: p.leak.attack for p in strongest(points)}
    assert attacks == dict.fromkeys(found.encoders, "msp") | {"minilm": "probe"}
    best = least_leaking(points)
    assert best is not None
    # 77 ± 2 does not reach 82 ± 2; tf-idf and hashing do.
    assert [p.leak.encoder for p in best.as_useful] == ["minilm", "tfidf", "hashing"]
    assert best.best.leak.f1.value == 75 and best.tied == ()
    # LSA reveals less and is worth less; Doc2Vec's usefulness was not measured.
    assert [p.leak.encoder for p in best.leak_less] == ["lsa_tfidf", "lsa_hashing"]
    assert best.n_compared == 5
    close = least_leaking(found.points(["tfidf", "hashing"], ["msp"], "in", "titles"))
    assert close is not None and [p.leak.encoder for p in close.tied] == ["hashing"]
    assert least_leaking(found.points(["doc2vec"], ["msp"], "in", "titles")) is None
    assert least_leaking([]) is None


def test_the_order_is_checked_step_by_step_on_the_rows_shown(folder: Path) -> None:
    found = load_representations(folder)
    steps = compare_pairs(found.points(found.encoders, ["msp"], "in", "titles"), "in")
    told = {(s.more.encoder, s.less.encoder): s.verdict for s in steps}
    assert told == {
        ("tfidf", "hashing"): Verdict.OPEN,
        ("hashing", "lsa_tfidf"): Verdict.HOLDS,
        ("hashing", "lsa_hashing"): Verdict.HOLDS,
        ("lsa_tfidf", "doc2vec"): Verdict.OPEN,
        ("lsa_hashing", "doc2vec"): Verdict.OPEN,
        ("doc2vec", "minilm"): Verdict.FAILS,
    }
    assert steps[0].paper == (89.05, 89.33)
    one = compare_pairs(found.points(["tfidf", "minilm"], ["msp"], "in", "titles"), "in")
    assert one == [], "the two do not follow each other"


def test_every_encoder_and_attack_has_a_look_of_its_own() -> None:
    shown = {name: ENCODERS[name] for name in (*FITTED_ENCODERS, "minilm")}
    assert all(entry.colour and entry.label for entry in shown.values())
    assert len({entry.colour for entry in shown.values()}) == len(shown)
    assert len({entry.symbol for entry in INVERSION_ATTACKS.values()}) == len(INVERSION_ATTACKS)


def test_what_ships_can_be_read_and_answers_the_question() -> None:
    found = load_representations(SHIPPED)
    assert {"tfidf", "hashing", "lsa_tfidf", "minilm"} <= set(found.encoders)
    for domain in ("in", "cross"):
        best = least_leaking(found.points(found.encoders, found.attacks, domain, "titles"))
        assert best is not None and best.best.leak.f1.ci95.low > best.best.leak.f1.chance
