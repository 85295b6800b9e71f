"""An attack that knows nothing but its training texts by heart reads nothing in any study.

If it does, what is attacked was known: the split leaks. So it is with one that meets texts again
that differ by a word. Each study is also run with a split that leaks on purpose, which the attack
must find.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memorising_models import BY_NAME, OF_SETS, MemorisingReconstruction, entry_of

from leakscope.core.attacks.inversion import shipped
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.sparse import attack as sparse
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.protocols import Encoder
from leakscope.core.results.rows import Row
from leakscope.core.specs import AttackSpec
from leakscope.core.studies import decontaminate, domains
from leakscope.core.studies.inversion import attacks, layers, paragraphs, reconstruct
from leakscope.core.studies.inversion.eos import EosStudy
from leakscope.core.studies.inversion.layers import LayerStudy
from leakscope.core.studies.inversion.paragraphs import ParagraphStudy
from leakscope.core.studies.inversion.reconstruct import ReconstructStudy
from leakscope.core.studies.inversion.representations import EncoderStudy
from leakscope.core.studies.inversion.scaling import ScalingStudy
from leakscope.core.studies.inversion.tuning import TuningStudy
from leakscope.core.studies.inversion.tuning import run as search
from leakscope.core.studies.registry import run_study


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def leakscope_home(shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the vectors of the articles from test to test: all encode the same."""
    monkeypatch.setenv("LEAKSCOPE_HOME", str(shared_home))
    return shared_home


@pytest.fixture(autouse=True, scope="module")
def memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, kind in BY_NAME.items():
            patch.setitem(INVERSION_ATTACKS, name, entry_of(name, kind))
        yield


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory, bundled: list[str]) -> str:
    """Sixty articles of six sentences; a tenth of the sentences stands in two of them."""
    return written(tmp_path_factory.mktemp("articles"), bundled, lambda text: text)


@pytest.fixture(scope="module")
def nearly(tmp_path_factory: pytest.TempPathFactory, bundled: list[str]) -> str:
    """The same, but that the second copy says a word more."""
    return written(tmp_path_factory.mktemp("nearly"), bundled, lambda text: f"Still {text}")


def written(folder: Path, bundled: list[str], again: Callable[[str], str]) -> str:
    path = folder / "articles.csv"
    drawn = bundled[::40][:324]
    shared = [*drawn[:36], *map(again, drawn[:21])]
    bodies = [[*drawn[36 + 5 * i : 41 + 5 * i], shared[i]] for i in range(57)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "text", "label_name"])
        writer.writerows(
            [f"{sentences[0][:40]} {i}", " ".join(sentences), f"class {i % 2}"]
            for i, sentences in enumerate(bodies)
        )
    return str(path)


SETTINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "encoders": (EncoderStudy, {"domains": ("in",), "n_targets": 30}),
    "scaling": (ScalingStudy, {"sizes": (100, 200), "n_targets": 30}),
    "paragraphs": (
        ParagraphStudy,
        {
            "domains": ("in",),
            "trained_on": ("sentences",),
            "n_words": (20, 60),
            "n_auxiliary": 200,
            "n_targets": 8,
        },
    ),
    "eos": (EosStudy, {"sizes": (200,), "n_targets": 30}),
    "layers": (
        LayerStudy,
        {"domains": ("in",), "layers": (3,), "n_auxiliary": 200, "n_targets": 30},
    ),
}
"""The studies of one target and one other corpus, with small settings."""


def study_with(name: str, articles: str, folder: Path, attack: str, **more: Any) -> list[Row]:
    """Run a study of `SETTINGS` with the articles as target and as the other corpus."""
    kind, settings = SETTINGS[name]
    study = kind(target=articles, other=articles, **settings, **more)
    with pytest.MonkeyPatch.context() as patch:
        # MSP is planted in the study of [EOS]. What Eq. 7 learns from texts is a map; Eq. 5 learns
        # nothing.
        patch.setitem(INVERSION_ATTACKS, "msp", entry_of("msp", OF_SETS[attack]))
        patch.setattr(layers, "EQUATIONS", {"Eq. 7": "sparse"})
        patch.setattr(sparse, "SparseCodingAttack", lambda **_: BY_NAME[attack]())
        return run_study(name, study, folder)


def study_of_attack(name: str, articles: str, folder: Path, attack: str) -> list[Row]:
    return study_with(name, articles, folder, attack, encoders=("minilm",), attacks=(attack,))


def study_attacks(name: str, articles: str, folder: Path, attack: str) -> list[Row]:
    study = attacks.AttackStudy(target=articles, attacks=(attack,), auxiliary=("in",), n=30)
    return run_study(name, study, folder)


def study_tuning(name: str, articles: str, folder: Path, attack: str) -> list[Row]:
    given = {"target": articles, "other": articles, "encoder": "minilm", "attack": attack}
    return search(TuningStudy(**given, domain="in", n_auxiliary=200, n_trials=1), folder)


def study_reconstruct(name: str, articles: str, folder: Path, attack: str) -> list[Row]:
    """Every other sentence of the file is one that the weights were trained on."""
    texts = domains.open_corpus(articles).sentences().texts[::2]
    known = [f"Still {text}" for text in texts] if attack == "near" else list(texts)
    pool = folder / "pool.txt"
    pool.write_text("\n".join(known), encoding="utf-8")

    def opened(asked: AttackSpec | str, encoder: Encoder) -> Any:
        is_reader = isinstance(asked, AttackSpec)
        return MemorisingReconstruction(encoder, known if is_reader else known[:1], BY_NAME[attack])

    study = ReconstructStudy(
        target=articles, n=30, lengths=("1-60",), budgets=(0,), shipped_texts=str(pool)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconstruct, "open_attack", opened)
        rows = run_study(name, study, folder)
    return [row for row in rows if row.error or row["reader"] == "reconstruct"]


STUDIES: dict[str, Callable[[str, str, Path, str], list[Row]]] = {
    "encoders": study_of_attack,
    "scaling": study_of_attack,
    "paragraphs": study_of_attack,
    "attacks": study_attacks,
    "tuning": study_tuning,
    "eos": study_with,
    "layers": study_with,
    "reconstruct": study_reconstruct,
}


def run(study: str, articles: str, folder: Path, attack: str = "memory") -> list[Row]:
    """Run a study against an attack that knows its training texts by heart; no cell may fail."""
    rows = STUDIES[study](study, articles, folder, attack)
    assert rows and [row.error for row in rows if row.error] == []
    return rows


def read_of(row: Row) -> float:
    """Return the F1 of the words that were read, in order or not."""
    return row.scores["token_f1" if "token_f1" in row.scores else "token_set_f1"].value


@pytest.fixture(autouse=True)
def weights(
    minilm: TransformerEncoder, small_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", small_weights)
    monkeypatch.setattr(attacks, "_encoder", lambda precision: CachedEncoder(minilm))
    monkeypatch.setattr(attacks, "shipped_settings", lambda encoder, name: {})
    monkeypatch.setattr(domains, "load_encoder", lambda name: minilm)
    monkeypatch.setattr(layers, "load_encoder", lambda spec: minilm)
    monkeypatch.setattr(reconstruct, "_encoder", lambda precision: minilm)
    monkeypatch.setattr(reconstruct, "_N_PAIRS", 20)
    monkeypatch.setattr(reconstruct, "shipped_settings", lambda encoder, name: {})
    monkeypatch.setattr(reconstruct, "shipped_digest", lambda encoder, name: "0" * 16)
    monkeypatch.setattr(reconstruct, "shipped_held_out", lambda encoder: frozenset[str]())
    for cached in (domains.open_domain, paragraphs.open_passages, attacks.split_texts):
        cached.cache_clear()


pytestmark = pytest.mark.slow
NEAR = [study for study in STUDIES if study != "tuning"]


@pytest.mark.parametrize("study", STUDIES)
def test_what_is_known_by_heart_is_not_attacked(study: str, articles: str, tmp_path: Path) -> None:
    for row in run(study, articles, tmp_path):
        assert read_of(row) == 0.0, "it met a text that it knew"


@pytest.mark.parametrize("study", NEAR)
def test_what_nearly_repeats_a_known_text_is_not_attacked(
    study: str, nearly: str, tmp_path: Path
) -> None:
    for row in run(study, nearly, tmp_path, "near"):
        assert read_of(row) == 0.0, "it nearly met a text that it knew"
        assert row.facts["n_near_duplicates"] > 0


@pytest.fixture
def leaking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave texts that nearly repeat a known one among the targets."""
    monkeypatch.setattr(decontaminate, "near_duplicates", lambda texts, known, near: frozenset())


@pytest.mark.parametrize("study", NEAR)
def test_what_nearly_repeats_a_known_text_would_be_found(
    study: str, nearly: str, tmp_path: Path, leaking: None
) -> None:
    rows = run(study, nearly, tmp_path, "near")
    assert max(read_of(row) for row in rows) > 0.0
    assert {row.facts["n_near_duplicates"] for row in rows} == {0}


@pytest.mark.parametrize("study", [study for study in NEAR if study != "paragraphs"])
def test_sentences_that_stand_on_both_sides_would_be_found(
    study: str, articles: str, tmp_path: Path, leaking: None
) -> None:
    assert all(read_of(row) > 0.0 for row in run(study, articles, tmp_path))
