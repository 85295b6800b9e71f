"""What an audit may be asked beside F1: a known defence, personal data, resuming, reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from audited import learn_briefly, write_jsonl

from leakscope.core.audit.gate import Measured, Outcome, check_baseline, check_confirmable
from leakscope.core.audit.identification import random_rotation
from leakscope.core.audit.summary import AuditSummary
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.results import Interval, Score

FAST = "probe_mlc"
N = 60
PHONES = ("+49 30 901820", "+44 20 7946 0958", "+33 1 42 68 53 00")


@pytest.fixture(scope="module")
def texts(bundled: list[str]) -> list[str]:
    found = bundled[7::150][:N]
    return [f"{text} Call {PHONES[i % 3]}." if i < 6 else text for i, text in enumerate(found)]


@pytest.fixture(scope="module")
def vectors(minilm: TransformerEncoder, texts: list[str]) -> np.ndarray:
    return minilm.encode(texts)


@pytest.fixture(scope="module")
def letters(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], vectors: np.ndarray
) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("letters") / "letters.jsonl", texts, vectors)


@pytest.fixture(scope="module", autouse=True)
def briefly_trained() -> Iterator[None]:
    """Have an attacker learn a defence from fewer sentences: by default it takes half a minute."""
    with pytest.MonkeyPatch.context() as patch:
        learn_briefly(patch, 1_000)
        yield


def run_audit(core: Any, source: Path, *more: Any) -> Any:
    return core("audit", source, "--attack", FAST, *more)


@pytest.mark.slow
def test_an_attacker_who_knows_the_defence_recovers_more_and_one_that_is_off_fails_the_gate(
    core: Any, tmp_path: Path, letters: Path, texts: list[str], vectors: np.ndarray
) -> None:
    noise = np.random.default_rng(0).standard_normal(vectors.shape).astype(np.float32)
    behind = write_jsonl(tmp_path / "behind.jsonl", texts, vectors + 0.05 * noise)
    known, unknown = tmp_path / "known.json", tmp_path / "unknown.json"
    defence = ("--defence", "gaussian:sigma=0.05")
    assert run_audit(core, behind, *defence, "--json", known).status == 0
    assert run_audit(core, behind, "--json", unknown).status == 0
    aware, blind = (json.loads(path.read_text()) for path in (known, unknown))
    assert aware["token_set_f1"] > blind["token_set_f1"]
    assert aware["defence"] == "gaussian:sigma=0.05" and blind["defence"] is None
    assert any("an attacker who does may recover more" in reason for reason in blind["not_tested"])
    off = run_audit(core, letters, *defence, "--baseline", known)
    assert off.status == 1 and "defence is off" in off.out and "significantly worse" in off.out
    np.save(tmp_path / "v.npy", vectors)
    without = run_audit(core, tmp_path / "v.npy", *defence)
    assert without.status == 2 and "only be checked against the texts" in without.err


@pytest.mark.slow
def test_personal_data_is_tested_and_decides(core: Any, letters: Path, tmp_path: Path) -> None:
    pytest.importorskip("presidio_analyzer")
    path = tmp_path / "r.json"
    found = run_audit(
        core,
        letters,
        "--personal",
        12,
        "--among",
        50,
        "--max-confirmable",
        "phone=0",
        "--max-confirmable",
        "iban=0",
        "--json",
        path,
        "--sarif",
        tmp_path / "c.sarif",
    )
    told = json.loads(path.read_text())
    kinds = told["personal_data"]["kinds"]
    assert kinds["phone"]["n_found"] >= 6 and told["personal_data"]["n_tested"] == 12
    checks = {check["name"]: check for check in told["checks"]}
    assert checks["max-confirmable-phone"]["outcome"] == "failed" and found.status == 1
    assert checks["max-confirmable-iban"]["outcome"] == "not measured"
    assert "max-confirmable-phone" in (tmp_path / "c.sarif").read_text()
    rows = {each["row"] for each in told["personal_data"]["findings"]}
    assert rows <= {str(i) for i in range(N)}
    assert not any(phone in path.read_text() + found.out + found.err for phone in PHONES)
    assert run_audit(core, letters, "--max-confirmable", "shoes=1").status == 2


def test_what_was_not_found_or_not_tested_is_no_pass() -> None:
    assert check_confirmable("iban", None, 100).outcome is Outcome.NOT_MEASURED

    def kind(learned: Score, untested: float, recovered: float = 0.0) -> Any:
        return SimpleNamespace(
            learned=learned, not_testable=Score(untested), recovered=Score(recovered)
        )

    low = Score(0.0, Interval(0, 5), 80)
    assert check_confirmable("phone", kind(low, 10), 10).outcome is Outcome.PASSED
    assert check_confirmable("phone", kind(low, 90), 10).outcome is Outcome.NOT_MEASURED
    blind = kind(low, 10, float("nan"))
    assert check_confirmable("phone", blind, 10).outcome is Outcome.NOT_MEASURED
    high = Score(50.0, Interval(40, 60), 80)
    assert check_confirmable("phone", kind(high, 90), 10).outcome is Outcome.FAILED


@pytest.mark.slow
def test_a_resumed_audit_and_one_of_two_processes_report_the_same(
    core: Any, letters: Path, tmp_path: Path
) -> None:
    first, second, beside = (tmp_path / name for name in ("1.json", "2.json", "3.json"))
    folder, page = tmp_path / "parts", tmp_path / "page.html"
    assert run_audit(core, letters, "--resume", folder, "--json", first).status == 0
    assert list(folder.glob("answers-*.json"))
    resumed = run_audit(core, letters, "--resume", folder, "--json", second, "--report", page)
    assert resumed.status == 0
    found = run_audit(core, letters, "--jobs", 2, "--json", beside)
    assert found.status == 0, found.err
    one, same, two = (json.loads(path.read_text()) for path in (first, second, beside))
    assert one == same
    assert one["token_set_f1"] == pytest.approx(two["token_set_f1"], abs=1e-6)
    assert one["f1_by_row"] == pytest.approx(two["f1_by_row"], abs=1e-6)

    again = core("report", first, "--out", tmp_path / "again.html")
    assert again.status == 0 and "one page" in again.out
    for path in (page, tmp_path / "again.html"):
        assert "What to do" in path.read_text() and "letters.jsonl" in path.read_text()
    assert run_audit(core, letters, "--report", tmp_path / "page.doc").status == 2


@pytest.mark.slow
def test_pairs_map_another_encoders_vectors_onto_a_known_one(
    core: Any,
    tmp_path: Path,
    texts: list[str],
    vectors: np.ndarray,
    bundled: list[str],
    minilm: TransformerEncoder,
) -> None:
    turned = random_rotation(384, 1).astype(np.float32)
    source = write_jsonl(tmp_path / "turned.jsonl", texts, vectors @ turned)
    assert run_audit(core, source).status == 2  # unknown, and not attacked
    known = bundled[11::35][:400]
    pairs = write_jsonl(
        tmp_path / "pairs.jsonl",
        known + texts[:5],
        np.concatenate([minilm.encode(known) @ turned, vectors[:5] @ turned]),
    )
    path = tmp_path / "r.json"
    found = run_audit(core, source, "--pairs", pairs, "--json", path)
    assert found.status == 0, found.err
    told, plain = json.loads(path.read_text()), tmp_path / "plain.json"
    assert told["alignment"]["n_pairs"] == 405 and told["alignment"]["agreement"]["value"] > 0.99
    assert told["n"] == N - 5, "rows that are pairs are not scored"
    run_audit(core, write_jsonl(tmp_path / "v.jsonl", texts[5:], vectors[5:]), "--json", plain)
    assert told["token_set_f1"] == pytest.approx(
        json.loads(plain.read_text())["token_set_f1"], abs=2
    )
    late = write_jsonl(tmp_path / "late.jsonl", known[::-1], minilm.encode(known) @ turned)
    useless = run_audit(core, source, "--pairs", late, "--max-f1", 90)
    assert useless.status == 2 and "do not map the vectors onto" in useless.out
    same = write_jsonl(tmp_path / "same.jsonl", known[:1] * 20, minilm.encode(known[:1] * 20))
    assert "different pairs are needed" in run_audit(core, source, "--pairs", same).err
    few = write_jsonl(tmp_path / "few.jsonl", known[:5], minilm.encode(known[:5]))
    assert "10 or more are needed" in run_audit(core, source, "--pairs", few).err
    narrow = write_jsonl(tmp_path / "narrow.jsonl", known[:20], minilm.encode(known[:20])[:, :96])
    assert "96 dimensions" in run_audit(core, source, "--pairs", narrow).err


def test_texts_alike_that_are_too_few_are_refused(
    core: Any, tmp_path: Path, letters: Path, bundled: list[str]
) -> None:
    like = tmp_path / "like.txt"
    like.write_text("\n".join(" ".join(text.split()) for text in bundled[:50]))
    found = run_audit(core, letters, "--like", like)
    assert found.status == 2 and "at least 1,000 vectors" in found.err


def test_copies_of_a_text_are_one_unit_in_the_comparison_with_a_baseline() -> None:
    rng = np.random.default_rng(0)
    now, before = rng.uniform(0.4, 0.6, 40), rng.uniform(0.4, 0.6, 40)
    now += 0.015 - (now - before).mean()  # a little worse, within chance of 40 texts
    names = [[f"{i}-{copy}" for copy in range(10)] for i in range(40)]
    copies = {name: group[0] for group in names for name in group[1:]}

    def measured(values: np.ndarray, same_text: dict[str, str]) -> Measured:
        rows = {n: float(v) for group, v in zip(names, values, strict=True) for n in group}
        return Measured("a", "e", rows, same_text)

    fooled = check_baseline(measured(now, {}), measured(before, {}))
    assert fooled.outcome is Outcome.FAILED  # as if 400 texts were independent
    fair = check_baseline(measured(now, copies), measured(before, copies))
    assert fair.outcome is Outcome.PASSED


@pytest.mark.slow
def test_a_strong_noise_that_is_off_is_noticed_and_passes_no_gate(
    core: Any, letters: Path, texts: list[str], vectors: np.ndarray, tmp_path: Path
) -> None:
    strong = ("--defence", "gaussian:sigma=0.4", "--max-f1", 90)
    off = run_audit(core, letters, *strong)
    assert "defence is off" in off.out and off.status == 0
    other = np.random.default_rng(0).standard_normal(vectors.shape).astype(np.float32)
    found = run_audit(core, write_jsonl(tmp_path / "other.jsonl", texts, other), *strong)
    assert found.status == 2, "what cannot be compared passes nothing"


def test_aligning_with_texts_alike_keeps_nothing_on_disk(
    leakscope_home: Path, minilm: TransformerEncoder, texts: list[str], vectors: np.ndarray
) -> None:
    from leakscope.core.audit.aligned import align_without_pairs
    from leakscope.core.audit.sources import read_sample
    from leakscope.core.audit.sources.arrays import ArraySource
    from leakscope.core.errors import InvalidInputError

    source = ArraySource(vectors)
    with pytest.raises(InvalidInputError, match="1,000"):
        align_without_pairs(read_sample(source), source, texts, minilm)
    assert not [path for path in leakscope_home.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_what_would_leak_otherwise_is_in_the_report(
    core: Any, letters: Path, tmp_path: Path
) -> None:
    pytest.importorskip("presidio_analyzer")
    path = tmp_path / "r.json"
    found = run_audit(core, letters, "--what-if", "redaction", "rotation", "--json", path)
    assert found.status == 0, found.err
    told = json.loads(path.read_text())
    read = {each.kind: each.alternatives for each in AuditSummary.from_dict(told).what_if}
    assert read.keys() == {"redaction", "rotation"}
    assert [each.title for each in read["redaction"]][1] == "texts without personal data"
    assert read["redaction"][1].recall is not None and read["rotation"][0].recall is None
    points = {point["k"]: point["f1"]["value"] for point in told["what_if"]["rotation"]["points"]}
    assert points[0] < 10 < points[1000]
    assert "What if (rotation)" in found.out
    assert not any(phone in path.read_text() for phone in PHONES)


def test_the_kinds_of_personal_data_are_those_of_the_engine() -> None:
    pytest.importorskip("presidio_analyzer")
    from leakscope.core.audit.personal.kinds import KINDS
    from leakscope.core.cli.audit import PERSONAL_KINDS

    assert tuple(KINDS) == PERSONAL_KINDS


@pytest.mark.slow
def test_a_chain_of_defences_is_known_to_the_attacker(
    core: Any, minilm: TransformerEncoder, texts: list[str], tmp_path: Path
) -> None:
    from leakscope.core.defences.registry import make_defence
    from leakscope.core.defences.spec_parser import read_defence

    chain = "gaussian:sigma=0.02+int8"
    vectors = make_defence(read_defence(chain)).protect(minilm).encode(texts)
    source, path = write_jsonl(tmp_path / "chain.jsonl", texts, vectors), tmp_path / "r.json"
    found = run_audit(core, source, "--defence", chain, "--json", path)
    assert found.status == 0, found.err
    assert read_defence(json.loads(path.read_text())["defence"]) == read_defence(chain)
