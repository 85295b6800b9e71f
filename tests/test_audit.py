"""Audits: whose vectors they are, what leaks from them, and whether a build may pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited import write_jsonl

from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.audit import identification
from leakscope.core.audit.audit import AuditReport, AuditSpec, audit
from leakscope.core.audit.expected import ExpectedF1, own_expectation
from leakscope.core.audit.gate import (
    Check,
    Measured,
    Outcome,
    check_baseline,
    check_limit,
    check_share,
    exit_status,
)
from leakscope.core.audit.identification import (
    KnownSpace,
    agreement_with_texts,
    identify,
    random_rotation,
)
from leakscope.core.audit.leakage import Recovered, mask_word, share_found
from leakscope.core.audit.sources import open_source
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError
from leakscope.core.results import Interval, RecoveredWord, Recovery, Score

FAST = "probe_mlc"
N = 120


@pytest.fixture(scope="module", autouse=True)
def rotations_drawn_once() -> Iterator[None]:
    """Draw each random rotation once for all tests: each identification draws the same 19."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identification, "random_rotation", cache(random_rotation))
        yield


@pytest.fixture(scope="module")
def texts(bundled: list[str]) -> list[str]:
    return bundled[5::140][:N]


@pytest.fixture(scope="module")
def vectors(minilm: TransformerEncoder, texts: list[str]) -> np.ndarray:
    return minilm.encode(texts)


@pytest.fixture(scope="module")
def reference(minilm: TransformerEncoder, bundled: list[str]) -> np.ndarray:
    return minilm.encode(bundled[::40][:800])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, vectors: np.ndarray, texts: list[str]) -> Path:
    """The vectors and texts as a file."""
    return write_jsonl(tmp_path_factory.mktemp("stored") / "letters.jsonl", texts, vectors)


@pytest.fixture(scope="module")
def defended(
    tmp_path_factory: pytest.TempPathFactory, vectors: np.ndarray, texts: list[str]
) -> Path:
    """The texts with their vectors under noise as a file."""
    noise = np.random.default_rng(0).standard_normal(vectors.shape).astype(np.float32)
    path = tmp_path_factory.mktemp("defended") / "defended.jsonl"
    return write_jsonl(path, texts, vectors + 0.04 * noise)


@pytest.fixture(scope="module")
def report(stored: Path) -> AuditReport:
    return report_of(stored)


def report_of(path: Path, **settings: Any) -> AuditReport:
    return audit(open_source(str(path)), AuditSpec(attack=FAST, **settings))


@pytest.mark.slow
def test_measured_leakage_is_that_of_evaluate(
    report: AuditReport, minilm: TransformerEncoder, texts: list[str], vectors: np.ndarray
) -> None:
    known = evaluate(open_attack(FAST, minilm), minilm, texts, vectors=vectors)
    assert report.leakage is not None and report.leakage.result is not None
    assert report.leakage.result.scores == known.scores
    assert report.leakage.result.baseline == known.baseline
    worst = [row.f1 for row in report.leakage.rows]
    assert 100 * np.mean(worst) == pytest.approx(known.scores.token_set_f1, abs=1e-9)
    assert worst == sorted(worst, reverse=True)


@pytest.mark.slow
def test_vectors_that_a_store_has_scaled_leak_the_same(
    report: AuditReport, tmp_path: Path, texts: list[str], vectors: np.ndarray
) -> None:
    scaled = report_of(write_jsonl(tmp_path / "scaled.jsonl", texts, 3 * vectors))
    assert scaled.f1 is not None and report.f1 is not None
    assert scaled.f1.value == pytest.approx(report.f1.value, abs=0.2)


@pytest.mark.slow
def test_only_names_and_numbers_that_can_be_named_are_counted(report: AuditReport) -> None:
    assert report.leakage is not None and report.leakage.result is not None
    scores, parts = report.leakage.result.scores, report.leakage.recovered
    assert parts["numbers"].share.value == pytest.approx(scores.number_recall)
    for part in parts.values():
        score = part.share
        assert 0 <= score.ci95.low <= score.value <= score.ci95.high <= 100 and score.n <= N
        assert 0 < part.n_listed < part.n_all
    untested = next(reason for reason in report.not_tested if "cannot name" in reason)
    assert f"{parts['names'].n_all - parts['names'].n_listed:,} of" in untested


def test_the_encoder_is_certain_where_a_text_is_known(
    minilm: TransformerEncoder, texts: list[str], vectors: np.ndarray
) -> None:
    known = agreement_with_texts(minilm, texts[:1], vectors[:1])
    assert known.encoder == "minilm" and known.is_certain
    others = agreement_with_texts(minilm, texts[:5], vectors[5:10])
    assert others.encoder is None and "belong to other rows" in others.reason
    assert agreement_with_texts(minilm, texts[:2], vectors[:2, :96]).encoder is None


@pytest.mark.slow
def test_the_shape_of_vectors_names_their_encoder_and_no_rotation_of_them(
    reference: np.ndarray, vectors: np.ndarray
) -> None:
    space = KnownSpace.measure("minilm", "", reference)
    assert identify(vectors[:100], [space]).encoder == "minilm"
    assert identify(3 * vectors[:100], [space]).encoder == "minilm"  # norms say nothing
    for seed in range(3):
        turned = vectors[:100] @ random_rotation(384, seed)
        assert identify(turned, [space]).encoder is None
        assert (
            identify(turned[:, np.random.default_rng(0).permutation(384)], [space]).encoder is None
        )
    shuffled = vectors[:100][:, np.random.default_rng(0).permutation(384)]
    assert identify(shuffled, [space]).encoder is None
    noise = np.random.default_rng(0).standard_normal((100, 384)).astype(np.float32)
    assert identify(noise, [space]).encoder is None
    assert identify(vectors[:20], [space]).encoder is None
    assert "96 dimensions" in identify(vectors[:, :96], [space]).reason


@pytest.mark.slow
def test_of_several_encoders_the_right_one_is_named(
    minilm: TransformerEncoder,
    bundled: list[str],
    texts: list[str],
    reference: np.ndarray,
    vectors: np.ndarray,
) -> None:
    from leakscope.core.encoders.minilm import load_minilm

    spaces, made = [KnownSpace.measure("minilm", "", reference)], {"minilm": vectors[:100]}
    for layer in (1, 3, 5):
        lower = load_minilm(layer=layer, device="cpu")
        spaces.append(KnownSpace.measure(lower.name, "", lower.encode(bundled[::40][:800])))
        made[lower.name] = lower.encode(texts[:100])
    for name, found in made.items():
        assert identify(found, spaces).encoder == name
        without = [space for space in spaces if space.encoder != name]
        if name == "minilm":  # layers of one model are alike; its output is like none of them
            assert identify(found, without).encoder is None


def test_vectors_of_an_unknown_encoder_are_not_attacked_and_pass_no_gate(
    core: Any, tmp_path: Path, vectors: np.ndarray
) -> None:
    source, path = tmp_path / "v.npy", tmp_path / "r.json"
    np.save(source, vectors @ random_rotation(384, 1))
    found = run_audit(core, source, "--max-f1", 100, "--json", path)
    assert found.status == 2 and "NOT MEASURED max-f1" in found.out
    told = json.loads(path.read_text())
    assert told["encoder"] == "unknown" and told["f1_by_row"] == {}
    assert told["token_set_f1"] is None and "nothing was attacked" in told["answer"]
    assert run_audit(core, source).status == 2


def test_what_an_attack_expects_of_itself_by_hand() -> None:
    words = (RecoveredWord("rain", 0.9), RecoveredWord("sea", 0.5))
    rest = (RecoveredWord("wind", 0.2),)
    assert own_expectation(Recovery(words, runners_up=rest)) == pytest.approx(2.8 / 3.6)
    assert own_expectation(Recovery(())) == 0.0


def line(f1: list[float]) -> ExpectedF1:
    rows = [
        {"corpus": str(i), "own": own, "f1": value}
        for i, (own, value) in enumerate(zip((0.5, 0.6, 0.7, 0.8), f1, strict=True))
    ]
    return ExpectedF1.of_rows("search", "digest", rows)


def test_the_expected_f1_by_hand() -> None:
    # Own expectations of 0.5 and 0.7 in equal numbers: mean 0.6, on the line 100·own − 10.
    answers = [Recovery((RecoveredWord("a", p),)) for p in (1 / 3, 7 / 13)] * 50
    assert [own_expectation(a) for a in answers[:2]] == pytest.approx([0.5, 0.7])
    exact = line([40, 50, 60, 70]).predict(answers)
    assert exact.value == pytest.approx(50)
    # Slope 100, standard error of the mean 0.1 · √(100/99) / 10, t of 2 degrees 4.3027.
    assert exact.ci95.high - exact.value == pytest.approx(4.3027 * 1.00504, rel=1e-4)
    # Residuals ±1: s² = 4/2; new point at 0.6: 1 + 1/4 + 0.05²/0.05.
    bent = line([41, 49, 59, 71]).predict(answers)
    half = 4.3027 * np.sqrt(2 * (1.25 + 0.05) + 1.00504**2)
    assert bent.ci95.high - bent.value == pytest.approx(half, rel=1e-4)


@pytest.mark.slow
def test_an_estimate_is_given_with_the_attack_that_it_was_measured_with_alone(
    tmp_path: Path, vectors: np.ndarray
) -> None:
    np.save(tmp_path / "v.npy", vectors)
    other = report_of(tmp_path / "v.npy")
    assert other.leakage is None and "no estimate was calibrated" in other.not_tested[0]
    assert other.identification.encoder == "minilm"
    found = audit(open_source(str(tmp_path / "v.npy")), AuditSpec(n=30))
    assert found.leakage is not None and found.leakage.result is None
    told = found.to_dict()
    assert told["is_estimate"] and told["n"] == 30 and "It is an estimate" in told["answer"]
    low, high = told["token_set_f1_ci95"]
    assert 0 <= low < told["token_set_f1"] < high <= 100


def test_a_damaged_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "line.json"
    for content in ('{"rows": []}', "[]", '{"attack": "a", "attack_sha256": "b", "rows": [{}]}'):
        path.write_text(content)
        with pytest.raises(ArtifactError, match="does not contain the F1 of corpora"):
            ExpectedF1.load(path)


@pytest.mark.parametrize(
    ("score", "outcome"),
    [
        (Score(40, Interval(31, 49), 50), Outcome.FAILED),
        (Score(40, Interval(29, 51), 50), Outcome.PASSED),  # the interval includes the limit
        (Score(20, Interval(15, 25), 50), Outcome.PASSED),
        (Score(40, n=1), Outcome.NOT_MEASURED),
        (Score(float("nan")), Outcome.NOT_MEASURED),
        (None, Outcome.NOT_MEASURED),
    ],
)
def test_a_limit_is_judged_by_the_lower_end(score: Score | None, outcome: Outcome) -> None:
    assert check_limit("max-f1", score, 30, "F1").outcome is outcome


def test_the_exit_status() -> None:
    checks = {outcome: Check("a", outcome, "b") for outcome in Outcome}
    assert exit_status([checks[Outcome.PASSED]]) == 0
    assert exit_status([checks[Outcome.PASSED], checks[Outcome.NOT_MEASURED]]) == 2
    assert exit_status(list(checks.values())) == 1


def test_an_estimate_decides_only_where_its_whole_interval_does() -> None:
    for low, high, outcome in (
        (31, 49, Outcome.FAILED),
        (15, 25, Outcome.PASSED),
        (20, 40, Outcome.NOT_MEASURED),
    ):
        score = Score((low + high) / 2, Interval(low, high), 50)
        found = check_limit("max-f1", score, 30, "F1", is_estimate=True)
        assert found.outcome is outcome and "estimate" in found.message


def test_a_share_of_words_that_are_mostly_untested_is_no_pass() -> None:
    low = Score(2, Interval(1, 3), 50)
    assert check_share("names", Recovered(low, 40, 60), 5).outcome is Outcome.PASSED
    few = check_share("names", Recovered(low, 40, 2_000), 5)
    assert (
        few.outcome is Outcome.NOT_MEASURED and "(40 of 2,000 are in the vocabulary)" in few.message
    )
    high = Score(20, Interval(10, 30), 50)
    assert check_share("names", Recovered(high, 40, 2_000), 5).outcome is Outcome.FAILED
    one = share_found(["Ada met Ben."], [1], [2], float("nan"), 0)
    assert check_share("names", Recovered(one, 2, 2), 5).outcome is Outcome.NOT_MEASURED


def of(rows: dict[str, float], attacker: str = "search", encoder: str = "minilm") -> Measured:
    return Measured(attacker, encoder, rows)


def test_a_baseline_is_compared_in_pairs_and_else_as_two_samples() -> None:
    rng = np.random.default_rng(0)
    rows = {f"r{i}": float(v) for i, v in enumerate(rng.uniform(0.1, 0.7, 200))}
    worse = {row: min(1.0, value + 0.03) for row, value in rows.items()}
    assert check_baseline(of(worse), of(rows)).outcome is Outcome.FAILED  # 3 points, in pairs
    assert check_baseline(of(rows), of(worse)).outcome is Outcome.PASSED
    assert "significantly better" in check_baseline(of(rows), of(worse)).message
    assert check_baseline(of(rows), of(rows)).outcome is Outcome.PASSED
    others = {f"s{row}": value for row, value in worse.items()}
    assert check_baseline(of(others), of(rows)).outcome is Outcome.PASSED  # of two samples, few
    much = {f"s{row}": min(1.0, value + 0.2) for row, value in rows.items()}
    assert check_baseline(of(much), of(rows)).outcome is Outcome.FAILED
    assert check_baseline(of({}), of(rows)).outcome is Outcome.NOT_MEASURED


def test_audits_by_other_attackers_or_of_other_encoders_are_not_compared() -> None:
    rows = {f"r{i}": 0.1 + i / 200 for i in range(50)}
    for other in (of(rows, attacker="prior"), of(rows, encoder="minilm@3")):
        found = check_baseline(of(rows), other)
        assert found.outcome is Outcome.NOT_MEASURED and "cannot be compared" in found.message


@pytest.mark.slow
def test_equal_leakage_seldom_fails_the_baseline() -> None:
    rng = np.random.default_rng(1)
    failed = 0
    for _ in range(200):
        one, two = (
            {f"{seed}{i}": v for i, v in enumerate(rng.beta(2, 3, 60))} for seed in ("a", "b")
        )
        failed += check_baseline(of(one), of(two)).outcome is Outcome.FAILED
    assert failed <= 12  # 2.5 % of 200 are 5; 12 or more come in 0.6 % of runs


def run_audit(core: Any, *arguments: object) -> Any:
    return core("audit", *arguments, "--attack", FAST, "--no-cache")


@pytest.mark.slow
def test_the_gate_and_its_files_hold_what_a_build_needs_and_no_text(
    core: Any, stored: Path, tmp_path: Path, texts: list[str]
) -> None:
    report, checks, results = (tmp_path / name for name in ("r.json", "c.xml", "c.sarif"))
    limits = ("--max-f1", 10, "--max-recovered", "names=0", "--max-recovered", "numbers=100")
    has_parsers = all(map(find_spec, ("junitparser", "sarif_pydantic")))
    files = ("--junit", checks, "--sarif", results) if has_parsers else ()
    tight = run_audit(core, stored, *limits, "--json", report, *files)
    assert tight.status == 1 and "FAILED max-f1" in tight.out
    told = json.loads(report.read_text())
    assert {
        "token_set_f1_ci95",
        "attacker",
        "access",
        "not_tested",
        "seed",
        "checks",
    } <= told.keys()
    assert told["encoder"] == "minilm" and told["n"] <= N
    assert told["token_set_f1_ci95"][0] <= told["token_set_f1"] <= told["token_set_f1_ci95"][1]
    written = tight.out + report.read_text()
    assert not any(text in written for text in texts)

    loose = run_audit(core, stored, "--max-f1", 100, "--json", "-", "--show-words")
    assert loose.status == 0
    shown = json.loads(loose.out)["rows_that_leak_most"]
    words = {word for row in shown for word in row["recovered"]}
    assert not any(f'"{word}"' in written for word in words if len(word) > 1)
    hidden = {word for row in told["rows_that_leak_most"] for word in row["recovered"]}
    assert {mask_word(word) for word in words} == hidden and any("•" in word for word in hidden)

    parser, sarif = map(pytest.importorskip, ("junitparser", "sarif_pydantic"))
    (suite,) = list(parser.JUnitXml.fromfile(str(checks)))
    cases = {case.name: case for case in suite}
    failed = {"max-f1", "max-recovered-names"}
    assert suite.failures == 2 and set(cases) == {*failed, "max-recovered-numbers"}
    assert all(isinstance(cases[name].result[0], parser.Failure) for name in failed)
    assert not cases["max-recovered-numbers"].result
    (run,) = sarif.Sarif.model_validate_json(results.read_text()).runs
    found = {result.rule_id: (result.kind, result.level) for result in run.results}
    assert found["max-f1"] == found["max-recovered-names"] == ("fail", "error")
    assert found["max-recovered-numbers"] == ("pass", "none")


def test_arguments_that_cannot_be_used_are_refused(core: Any, stored: Path, tmp_path: Path) -> None:
    assert "--attack must be one of" in core("audit", stored, "--attack", "magic").err
    for wrong in (
        ("--max-f1", "x"),
        ("--max-recovered", "shoes=1"),
        ("--json", tmp_path / "no folder" / "r.json"),
        ("--baseline", stored),
    ):
        assert run_audit(core, stored, *wrong).status == 2
    assert run_audit(core, tmp_path / "absent.npy").status == 2


@pytest.mark.slow
def test_changed_vectors_are_called_so_and_fail_the_baseline_only_where_noise_is_off(
    core: Any, stored: Path, defended: Path, tmp_path: Path
) -> None:
    before = tmp_path / "before.json"
    limited = ("--sample", 100, "--json", before, "--max-f1", 90)
    changed = run_audit(core, defended, *limited)
    assert changed.status == 2
    assert "The attack does not know how the vectors were changed" in changed.out
    told = json.loads(before.read_text())
    assert "They were changed after encoding" in told["encoder_evidence"]
    report = audit(open_source(str(defended)), AuditSpec(attack=FAST, n=100))
    assert report.identification.is_changed and not report.identification.is_certain
    assert any("an attacker who does may recover more" in reason for reason in told["not_tested"])
    off = run_audit(core, stored, "--sample", 100, "--baseline", before)
    assert off.status == 1 and "significantly worse" in off.out
    other = run_audit(core, defended, "--sample", 100, "--seed", 1, "--baseline", before)
    assert other.status == 0, "another seed draws other rows of the same vectors"


@pytest.mark.slow
def test_texts_from_elsewhere_are_those_of_the_rows(
    core: Any, tmp_path: Path, vectors: np.ndarray, texts: list[str]
) -> None:
    np.save(tmp_path / "v.npy", vectors)
    (tmp_path / "t.txt").write_text("\n".join(" ".join(text.split()) for text in texts))
    found = run_audit(core, tmp_path / "v.npy", "--texts", tmp_path / "t.txt", "--json", "-")
    assert json.loads(found.out)["n"] > 100
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    few = run_audit(core, tmp_path / "v.npy", "--texts", tmp_path / "t.txt")
    assert few.status == 2 and "120 vectors, but there are 2 texts" in few.err


@pytest.mark.slow
def test_nothing_of_an_audit_stays_on_disk(
    core: Any, stored: Path, leakscope_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    before = set(tmp_path.rglob("*"))
    assert core("audit", stored, "--attack", FAST).status == 0
    assert set(tmp_path.rglob("*")) == before
    assert not [path for path in leakscope_home.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_texts_of_other_rows_are_noticed(
    core: Any, tmp_path: Path, texts: list[str], vectors: np.ndarray
) -> None:
    late = texts[:60] + texts[61:] + texts[:1]  # off by one from row 60 on
    found = run_audit(core, write_jsonl(tmp_path / "v.jsonl", late, vectors), "--max-f1", 30)
    assert found.status == 2 and "belong to other rows" in found.out


@pytest.mark.slow
def test_the_candidate_that_fits_best_is_taken(
    tmp_path: Path, texts: list[str], vectors: np.ndarray
) -> None:
    from leakscope.core.encoders.minilm import load_minilm

    layer = load_minilm(layer=5, device="cpu")
    path = write_jsonl(tmp_path / "v.jsonl", texts, layer.encode(texts))
    opened = {"minilm": load_minilm(device="cpu"), "other": layer}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leakscope.core.encoders.load_encoder", lambda spec: opened[spec.name])
        found = audit(open_source(str(path)), AuditSpec(attack="prior", candidates=("other",)))
    assert found.identification.encoder == layer.name and not found.identification.is_changed


def test_answers_unlike_those_of_the_line_get_no_estimate() -> None:
    weak = [Recovery((RecoveredWord("a", 0.1),))] * 40
    usual = [Recovery((RecoveredWord("a", p),)) for p in (0.4, 0.6)] * 20
    shipped = line([40, 50, 60, 70])
    assert shipped.covers(usual) and not shipped.covers(weak)


@pytest.mark.slow
def test_odd_texts_and_names_end_no_audit(
    core: Any, tmp_path: Path, texts: list[str], vectors: np.ndarray
) -> None:
    odd: list[Any] = list(texts)
    odd[3:7] = [5, ["a list"], "x" * 30_000, ""]
    names = ["same"] * 40 + [None] * 40 + [f"a\n::error::forged \x1b[31m{i}" for i in range(N - 80)]
    path = write_jsonl(tmp_path / "v.jsonl", odd, vectors, id=names)
    found = run_audit(core, path, "--json", tmp_path / "r.json")
    assert found.status == 0, found.err
    assert "4 sampled rows without a text that can be encoded" in found.out
    assert "\n::error::" not in found.out and "\x1b" not in found.out
    told = json.loads((tmp_path / "r.json").read_text())
    assert len(told["f1_by_row"]) == told["n"]  # no row hides another of its name


@pytest.mark.parametrize("content", ["[]", "{}", '{"encoder": "a", "f1_by_row": [1]}', "no JSON"])
def test_a_baseline_that_is_none_is_told(
    content: str, core: Any, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "b.json").write_text(content)
    found = run_audit(core, stored, "--baseline", tmp_path / "b.json")
    assert found.status == 2 and "audit --json" in found.err
