"""Names in texts: read, matched, exchanged, found, recovered and probed for; all names invented."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.figures.names import _INK, _SHADES, name_attackers, name_map
from leakscope.core.intervals import mean_rate, rate_by_document, rate_of
from leakscope.core.names import shipped
from leakscope.core.names.augmentation import insert_names
from leakscope.core.names.discovery import find_names, likely_names, names_in_column
from leakscope.core.names.experiment import MOST_NAMES, NOT_TESTABLE, NameAttacker, run_experiment
from leakscope.core.names.person import (
    PLACEHOLDER,
    PersonName,
    contains_name,
    parse_name,
    parse_names,
    replace_name,
)
from leakscope.core.names.probing import KNOWLEDGE, Probing, probe_names, ranks_of_truth
from leakscope.core.names.sentences import (
    NamedSentence,
    read_sentences,
    sentences_with_listed_names,
    units_of_sentences,
)
from leakscope.core.names.substitution import first_candidate, substitute_names
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.results.rows import Row
from leakscope.core.storage.artifacts import read_json, write_json
from leakscope.core.studies.domains import Domain
from leakscope.core.studies.names.study import matrix_row
from leakscope.core.studies.names.tables import PAPER, anonymise_names, load_rows, matrix_of
from leakscope.core.text import Vocabulary, words

ADA, TOM = PersonName("Quell", "Ada"), PersonName("Orrin", "Tom")


@pytest.mark.parametrize(
    ("written", "first", "surname"),
    [
        ("Ada Quell", "Ada", "Quell"),
        ("  Ada \t Mary  Quell ", "Ada Mary", "Quell"),
        ("Quell", "", "Quell"),
        ("Ada van der Quell", "Ada", "van der Quell"),
        ("van der Quell", "", "van der Quell"),
        ("De Tarrow, Ada", "Ada", "De Tarrow"),
        ("ada quell", "ada", "quell"),
        ("Ada O'Quell-Lind", "Ada", "O'Quell-Lind"),
        ("דנה קוול", "דנה", "קוול"),
    ],
)
def test_a_name_is_read_as_first_name_and_surname(written: str, first: str, surname: str) -> None:
    assert parse_name(written) == PersonName(surname, first)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", "empty"),
        ("🙂", "no surname"),
        ("Ada Q", "no surname"),
        ("x" * 100_000, "characters"),
        ("x" * 81, "at most 80"),
        ("a\0b", "null byte"),
        (",", "no surname"),
        ("+39 02 5550142", "not a person's name"),
        ("Ada Quell 555 0142", "not a person's name"),
        ("IT60X0542811101000000123456", "not a person's name"),
        ("ada@quell.org", "not a person's"),
    ],
)
def test_what_is_no_name_is_told(written: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        parse_name(written)


def test_a_list_of_names_has_no_surname_twice() -> None:
    assert parse_names(["Ada Quell", "", "Tom Orrin"]) == (ADA, TOM)
    with pytest.raises(InvalidInputError, match="same surname"):
        parse_names(["Ada Quell", "Tom QUELL"])
    with pytest.raises(InvalidInputError, match="no name"):
        parse_names([" ", ""])
    with pytest.raises(InvalidInputError, match="at most 1 "):
        parse_names(["Ada Quell", "Tom Orrin"], most=1)


@pytest.mark.parametrize(
    ("text", "surname", "holds"),
    [
        ("Quell's boat sank.", "Quell", True),
        ("A Quell-led mutiny, a pro-Quell crowd.", "Quell", True),
        ("QUELL WINS", "Quell", True),
        ("They quell it.", "Quell", False),
        ("They QUELL and quell.", "quell", True),
        ("The Quellers left.", "Quell", False),
        ("Ada Quell-Lind left.", "Quell", False),
        ("Ada Lind-Quell left.", "Quell", False),
        ("Ada O’Quell left.", "Quell", False),
        ("Ada O’Quell left.", "O'Quell", True),
        ("Ada van\u00a0der Quell left.", "van der Quell", True),
        ("Ａda Ｑuell", "Quell", True),
        ("Quéll left.", "Quell", False),
        ("Die Straße von Großquell", "Großquell", True),
        ("אמר קוול אתמול", "קוול", True),
        ("Quell (50) a.b*c", "Qu.ll", False),
    ],
)
def test_a_surname_is_found_as_whole_words(text: str, surname: str, holds: bool) -> None:
    assert contains_name(text, PersonName(surname)) is holds


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Ada Quell met Quell's aunt.", "Tom Orrin met Orrin's aunt."),
        ("Ada B. C. Quell left.", "Tom Orrin left."),
        ("Ada left, and so did Eve Quell.", "Ada left, and so did Eve Orrin."),
        ("Nothing here.", "Nothing here."),
    ],
)
def test_names_are_exchanged_in_full_and_alone(text: str, changed: str) -> None:
    assert replace_name(text, ADA, TOM) == changed
    assert replace_name(replace_name(text, ADA, TOM), TOM, ADA) == text.replace(" B. C.", "")


def test_the_placeholder_takes_whole_names() -> None:
    assert replace_name("[name]'s boat sank.", PLACEHOLDER, TOM) == "Tom Orrin's boat sank."
    assert replace_name("Ada Quell left.", ADA, PersonName("Orrin")) == "Orrin left."


def test_sentences_are_grouped_by_name() -> None:
    texts = ["Quell left.", "Orrin and Quell met.", "Nobody came."]
    assert sentences_with_listed_names(texts, [TOM, ADA]) == [
        NamedSentence(texts[1], TOM),
        NamedSentence(texts[0], ADA),
        NamedSentence(texts[1], ADA),
    ]


def test_typed_sentences_name_their_people() -> None:
    typed = "Ada Quell left.\n\n[Eve Lind] met Lind's aunt.\nThen [name] slept.\nOrrin came."
    sentences, names = read_sentences(typed, [TOM, ADA])
    assert names == (TOM, ADA, PersonName("Lind", "Eve"))
    assert sentences == [
        NamedSentence("Orrin came.", TOM),
        NamedSentence("Ada Quell left.", ADA),
        NamedSentence("Eve Lind met Lind's aunt.", names[2]),
        NamedSentence("Then [name] slept.", PLACEHOLDER),
    ]
    assert sentences[2].with_name(ADA) == "Ada Quell met Quell's aunt."
    assert sentences[2].with_name(names[2]) == sentences[2].text


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "no sentence"),
        ("Quell left.\nNobody came.", "Sentence 2 contains none"),
        ("[] left.", "empty brackets"),
        ("[Eve Lind] met [Eve Tarrow].", "different names"),
        ("[ada quell] left.", "differently from the list"),
        ("x" * 100_000, "at most 20,000"),
        ("Quell\0 left.", "null byte"),
        ("Quell left.\n" * 201, "at most 200"),
        ("🙂🙂", "Sentence 1 contains none"),
    ],
)
def test_sentences_that_cannot_be_used_are_told(typed: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        read_sentences(typed, [ADA, TOM])


NEWS = [
    "Yesterday Ada Quell spoke in New York.",
    "In New York the mayor met Ada Quell again.",
    "They left for New York, and Mr Quell slept.",
    "A new plan for the Prime Minister.",
    "The Prime Minister met Mr Orrin and later Tom Orrin.",
    "A minister said Orrin would go.",
    "The fans of Harbour City sang, and Harbour lost.",
    "We saw Tom Orrin sail in Harbour City.",
]


def test_people_are_found_and_places_and_posts_are_not() -> None:
    assert find_names(NEWS, 10) == (ADA, TOM)
    assert find_names(NEWS, 1) == (ADA,)
    assert find_names(["no capital at all"], 10) == ()
    shared = [f"We met {first} Orrin." for first in ("Eve", "Ida", "Max", "Ugo") for _ in "ab"]
    assert find_names([*NEWS, *shared], 10) == (ADA,), "Orrin is nobody's own"


@pytest.mark.parametrize(
    ("text", "unknown", "names"),
    [
        ("Call Ada Quell on 555 0142.", "quell 0142", ["Ada Quell"]),
        (
            "Mr Orrin's dog bit Ada van der Quell; she cried.",
            "orrin quell",
            ["Orrin", "Ada van der Quell"],
        ),
        ("Pay IBAN DE89 3704, BIC QUELLX.", "iban de89 3704 bic quellx", []),
        ("Write to quell@orrin.org or see quell.org/Orrin1.", "quell orrin org orrin1", []),
        ("Ring 0039 02 5550142 before noon.", "0039 5550142", []),
        ("Yesterday Quell left.", "quell", ["Quell"]),
        ("Quell left.", "quell", ["Quell"]),
        ("The factory in Leeds closed.", "quell", []),
        ("ada quell rang from 555 0142", "quell 0142", ["quell"]),
        ("We met Quell. Quell, Ada Quell's aunt, left.", "quell", ["Quell"]),
        ("Please call John Smith on 555-0142 about the refund.", "", ["John Smith"]),
        ("Please call John on Friday, 2 March.", "friday march", []),
        ("We were in Hamburg and in New York at the Grand Hotel.", "hamburg", []),
        ("Pay the rent in Ada Quell's flat.", "quell", ["Ada Quell"]),
        ("Please wait.", "", []),
        ("Bitte rufen Sie Frau Ada Quell an.", "bitte rufen quell", ["Ada Quell"]),
    ],
)
def test_likely_names_are_words_with_a_capital_and_no_numbers(
    text: str, unknown: str, names: list[str]
) -> None:
    found = likely_names(text, set(unknown.split()))
    assert [name.full for name in found] == names
    assert all(contains_name(text, name) for name in found)


def test_a_column_of_names_is_used(tmp_path: Path) -> None:
    path = tmp_path / "named.parquet"
    people = [["Ada Quell", "Ada"], [], ["Tom Orrin", "Ada Quell"], ["🙂 🙂"], None]
    pd.DataFrame({"text": list("abcde"), "person_names": people}).to_parquet(path)
    assert names_in_column(path, 10) == (ADA, TOM)
    pd.DataFrame({"text": ["a"]}).to_parquet(path)
    assert names_in_column(path, 10) == ()


def test_rates_have_wilsons_interval_and_resampled_ones_leave_gaps_out() -> None:
    rate = rate_of(8, 10)
    assert rate.value == 80 and rate.ci95.low == pytest.approx(49.0, abs=0.1)
    assert rate.ci95.high == pytest.approx(94.3, abs=0.1)
    assert np.isnan(rate_of(0, 0).value) and rate_of(0, 0).to_dict()["value"] is None
    mean = mean_rate(np.array([0.0, 1.0, np.nan, 1.0]))
    assert mean.n == 3 and mean.value == pytest.approx(200 / 3)


def test_what_never_happened_in_few_samples_may_yet_happen() -> None:
    never = mean_rate(np.zeros(15), n_trials=300)
    assert (never.value, never.n, never.n_trials) == (0.0, 15, 300)
    assert never.ci95 == rate_of(0, 15).ci95 and never.ci95.high > 15
    assert mean_rate(np.ones(15)).ci95.low < 85


def test_trials_of_one_document_are_not_independent() -> None:
    hits = np.repeat([True, False], 20)
    documents = [f"d{i // 4}" for i in range(40)]
    apart, together = rate_of(20, 40), rate_by_document(hits, documents)
    assert (together.value, together.n) == (50.0, 40)
    width = together.ci95.high - together.ci95.low
    assert width > 1.5 * (apart.ci95.high - apart.ci95.low), "ten documents, each of one kind"
    assert rate_by_document(hits, None) == rate_by_document(hits, [*map(str, range(40))]) == apart
    assert rate_by_document(hits[:20], documents[:20]).ci95 == rate_of(5, 5).ci95
    assert not rate_by_document(hits, ["d"] * 40).has_interval, "one document shows no spread"
    shares = np.linspace(0, 1, 40)
    assert mean_rate(shares, documents=documents).ci95 != mean_rate(shares).ci95


def test_sentences_know_their_documents() -> None:
    texts = ["Quell left.", "Orrin and Quell met."]
    found = sentences_with_listed_names(texts, [TOM, ADA], ["a", "b"])
    met, left = "orrin and quell met.", "quell left."
    assert units_of_sentences(found) == [met, left, met], "documents of one text are that text"
    assert units_of_sentences(sentences_with_listed_names(texts, [ADA])) == [left, met]
    many = sentences_with_listed_names([*texts, "Quell sang."], [ADA], ["a", "b", "b"])
    assert units_of_sentences(many) == ["a", "b", "b"]


class Listing:
    """An encoder whose vector of a text says where it stands in a list of what it encoded."""

    name, dimension, fingerprint = "listing", 1, "0" * 64

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        start = len(self.texts)
        self.texts += texts
        return np.arange(start, len(self.texts), dtype=np.float32)[:, None]


class Reader:
    """An attack that reads every word of a text but those it does not know."""

    def __init__(self, unknown: set[str], always: tuple[str, ...] = ()) -> None:
        self.unknown, self.always = unknown, always
        self.vocabulary_ = Vocabulary(("quell", "lind"), (7, 2), 20)

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        assert isinstance(encoder, Listing)
        return [self._read(encoder.texts[int(i)]) for (i,) in vectors]

    def _read(self, text: str) -> Recovery:
        found = [w for w in words(text) if w not in self.unknown]
        return Recovery(tuple(RecoveredWord(w, 1.0) for w in dict.fromkeys((*self.always, *found))))


LIND = PersonName("van Lind", "Eve")
SENTENCES = [
    NamedSentence(text, name)
    for text, name in (
        ("Ada Quell left the boat.", ADA),
        ("The boat of Quell sank.", ADA),
        ("Tom Orrin met Eve van Lind.", TOM),
    )
]


def test_the_matrix_is_that_by_hand() -> None:
    """Orrin is never read; van Lind needs both words, and `boat` hides nothing."""
    attack = Reader(unknown={"orrin"}, always=("quell",))
    found = substitute_names(attack, Listing(), SENTENCES, [ADA, TOM, LIND])  # type: ignore[arg-type]
    assert found.rows == (ADA, TOM)
    assert found.texts[0] == [
        "Ada Quell left the boat.",
        "Tom Orrin left the boat.",
        "Eve van Lind left the boat.",
    ]
    values = [[found.cell(row, column).value for column in found.names] for row in found.rows]
    assert values == [[100, 0, 100], [100, 0, 100]]
    assert found.cell(ADA, LIND).n == 2 and found.cell(TOM, LIND).n == 1
    assert (found.diagonal().value, found.diagonal().n) == (pytest.approx(200 / 3), 3)
    # By sentence: Orrin no, van Lind yes; the same; Quell yes, van Lind yes.
    assert found.exchanged().value == pytest.approx(100 * (0.5 + 0.5 + 1) / 3)
    same = np.array([[True, True, False]] * 3)
    assert found.exchanged(same).value == pytest.approx(100 * (0 + 0 + 1) / 3)
    # Quell is answered whether it is there or not; nothing else is said wrongly. Chances a
    # sentence: two absent names for each of three; in the third van Lind is there already.
    by_sentence = [2 / 6, 2 / 6, (0 + 1 + 1) / (1 + 1 + 2)]
    assert found.false_alarms().value == pytest.approx(100 * np.mean(by_sentence))
    assert found.ranked_first().value == pytest.approx(200 / 3)


def test_the_studys_intervals_are_of_documents(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text\nAda Quell left the boat.\n")
    cell = {"seed": 0, "n_targets": 9, "target": str(tmp_path / "t.csv"), "label": "label_name"}
    texts = tuple(s.text for s in SENTENCES[:2])
    for documents, n in ((("d", "d"), 1), (("d", "e"), 2)):
        domain = Domain((), texts, documents)
        row = matrix_row(Reader(set()), Listing(), domain, [ADA], cell)  # type: ignore[arg-type]
        assert (row.scores["diagonal"].value, row.scores["diagonal"].n) == (100, 2)
        found = row.scores["diagonal"], matrix_of(row)[0][0]
        if n == 1:
            assert not any(score.has_interval for score in found), "of one document"
        else:
            assert all(score.ci95 == rate_of(n, n).ci95 for score in found)


def test_a_multi_word_surname_is_read_in_whole_alone() -> None:
    attack = Reader(unknown={"van"})
    found = substitute_names(attack, Listing(), SENTENCES[:1], [ADA, LIND])  # type: ignore[arg-type]
    assert found.cell(ADA, LIND).value == 0 and found.cell(ADA, ADA).value == 100


def test_the_first_candidate_is_the_one_ranked_highest() -> None:
    ranked = [RecoveredWord(w, 0.0) for w in ("boat", "van", "orrin", "lind", "quell")]
    answer = Recovery(tuple(ranked[:2]), runners_up=tuple(ranked[2:]))
    assert first_candidate(answer, [ADA, LIND, TOM]) == 2
    assert first_candidate(answer, [ADA, LIND]) == 1
    assert first_candidate(answer, [PersonName("Nobody")]) is None


def test_nothing_to_substitute_is_told() -> None:
    with pytest.raises(InvalidInputError, match="at least one sentence"):
        substitute_names(Reader(set()), Listing(), [], [ADA])  # type: ignore[arg-type]


def test_ranks_count_ties_as_lost() -> None:
    scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.2], [0.0, 0.3, 0.1]], np.float32)
    assert ranks_of_truth(scores, np.array([0, 1, 0])).tolist() == [0, 2, 2]
    found = Probing(scores, np.array([0, 1, 0]))
    assert found.hits(1).value == pytest.approx(100 / 3) and found.hits(3).value == 100


def test_probing_finds_a_name_the_better_the_more_is_known(minilm: TransformerEncoder) -> None:
    people = [PersonName(s, "Eve") for s in ("Tarrowby", "Quenling", "Osterwick", "Pellamine")]
    texts = [
        "Ada Quell sold the {} to a museum.",
        "The court fined Ada Quell for the {}.",
        "Neighbours saw Ada Quell near the {}.",
    ]
    things = ("boat", "violin", "orchard", "chapel")
    sentences = [NamedSentence(text.format(thing), ADA) for text in texts for thing in things]
    truth = [i % 4 for i in range(len(sentences))]
    vectors = minilm.encode([s.with_name(people[i]) for s, i in zip(sentences, truth, strict=True)])
    answers = [
        Recovery(tuple(RecoveredWord(w, 1.0) for w in words(s.text) if w not in ("ada", "quell")))
        for s in sentences
    ]
    share = {
        knows: probe_names(knows, minilm, sentences, vectors, truth, people, answers=answers)
        .hits(1)
        .value
        for knows in KNOWLEDGE
    }
    assert share["sentence"] == 100, "with the rest known and the first name unknown"
    assert share["recovered"] >= 75 and share["alone"] >= 50


def test_probing_what_cannot_be_probed_is_told(minilm: TransformerEncoder) -> None:
    vectors = np.zeros((1, 384), np.float32)
    given = ([SENTENCES[0]], vectors, [0])
    with pytest.raises(InvalidInputError, match="one of sentence"):
        probe_names("nothing", minilm, *given, [ADA, TOM])
    with pytest.raises(InvalidInputError, match="two candidates"):
        probe_names("alone", minilm, *given, [ADA])
    with pytest.raises(InvalidInputError, match="answers are needed"):
        probe_names("recovered", minilm, *given, [ADA, TOM])


def test_training_sentences_get_the_names_equally_often() -> None:
    texts = ["She met Eve Lind in the harbour.", "nothing here", "They sail to Spain in June."]
    added = insert_names(texts, [ADA, TOM], 40, seed=1)
    assert (
        sum(contains_name(t, ADA) for t in added) == sum(contains_name(t, TOM) for t in added) == 20
    )
    assert sum("Ada Quell" in t for t in added) == 10
    assert added == insert_names(texts, [ADA, TOM], 40, seed=1)
    assert all(t.startswith(("She met ", "They sail to ")) for t in added)
    assert insert_names(texts, [ADA], 0) == []
    with pytest.raises(InvalidInputError, match="no such text"):
        insert_names(["nothing here"], [ADA], 1)


def test_an_experiment_knows_counts_and_refuses_too_much() -> None:
    class Axes(Listing):
        dimension = 8

        def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
            rows = super().encode(texts)
            return np.hstack([rows, np.random.default_rng(0).normal(size=(len(texts), 7))])

    class First(Reader):
        def invert(
            self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
        ) -> list[Recovery]:
            return super().invert(encoder, vectors[:, :1], on_progress)

    found = run_experiment(First(set()), Axes(), SENTENCES, [ADA, TOM])  # type: ignore[arg-type]
    assert found.training_counts == (7, 0) and len(found.probed) == 6
    assert set(found.probes) == set(KNOWLEDGE)
    assert [row["recovered, %"] for row in found.table()] == [100.0, None, 100.0, None]
    assert [row["note"] for row in found.table()] == ["", NOT_TESTABLE, "", NOT_TESTABLE]
    words = found.attackers()[0]
    assert (words.knows, words.n_found, words.n_asked) == ("", 2, 2), "Orrin is not counted"
    none = replace(found, training_counts=(0, 0)).attackers()[0]
    assert not none.is_testable and not none.beats_guessing and np.isnan(none.rate.value)

    def with_scores(**scores: float) -> str:
        """Return who is strongest where the probes score the right name so much higher."""
        probes = {
            knows: Probing(
                np.where(np.eye(2)[probe.truth] > 0, scores.get(knows, -1.0), 0.0).astype("f4"),
                probe.truth,
            )
            for knows, probe in found.probes.items()
        }
        other = replace(found, probes=probes, training_counts=(0, 0))
        return other.strongest().knows

    assert with_scores(sentence=1.0) == "sentence"
    assert with_scores(sentence=1.0, alone=1.0) == "alone", "of equals, the one that knows least"
    for sentences, names, told in (
        (SENTENCES, [ADA], "one name"),
        (SENTENCES, [PersonName(f"Quell{i}x") for i in range(MOST_NAMES + 1)], "at most 12"),
        (SENTENCES * 300, [ADA, TOM], "1,800 vectors"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            run_experiment(First(set()), Axes(), sentences, names)  # type: ignore[arg-type]


def test_what_is_written_names_nobody() -> None:
    rows = [
        {"names": ["Ada Quell"], "kind": "substitution", "people": ["Ada Quell", "Tom Orrin"]},
        {"names": ["Ada Quell"], "kind": "probing", "people": ["Eve Lind"]},
        {"names": [], "error": "InvalidInputError: 'Ada Quell' and …"},
    ]
    written = anonymise_names([Row.from_dict(row) for row in rows])
    assert written[0]["people"] == ["name 1", "name 2"]
    assert not any(part in str(written) for part in ("Quell", "Orrin", "Lind"))


def test_the_shipped_rows_are_checked(tmp_path: Path) -> None:
    for data in ({"study": "other", "rows": []}, [], {"study": "names", "rows": [{"a": 1}]}):
        write_json(tmp_path / "rows.json", data)
        with pytest.raises(ArtifactError, match="does not contain rows"):
            load_rows(tmp_path / "rows.json")


def example() -> tuple[list[shipped.NamedSentence], tuple[PersonName, ...]]:
    samples = read_json(shipped.SAMPLES)
    return read_sentences("\n".join(samples["sentences"]), parse_names(samples["names"]))


def test_the_example_ships_for_todays_weights(minilm: TransformerEncoder) -> None:
    found = shipped.find_example(shipped.ATTACK, minilm, *example())
    assert found is not None, "make it again: python -m scripts.names_example"
    assert len(found.substitution.sentences) == 15 and len(found.probes) == 3


@pytest.mark.slow
def test_it_is_what_would_be_computed(minilm: TransformerEncoder) -> None:
    sentences, names = example()
    stored = shipped.find_example(shipped.ATTACK, minilm, sentences, names)
    assert stored is not None
    attack = open_attack(shipped.ATTACK, minilm)
    fresh = run_experiment(attack, minilm, sentences, names)
    # Another processor may round a word over a threshold.
    assert (stored.substitution.is_answered == fresh.substitution.is_answered).mean() > 0.98
    assert stored.substitution.texts == fresh.substitution.texts
    assert stored.training_counts == fresh.training_counts and stored.probed == fresh.probed
    for knows, probe in fresh.probes.items():
        assert (stored.probes[knows].truth == probe.truth).all()
        np.testing.assert_allclose(stored.probes[knows].scores, probe.scores, atol=1e-4)


def test_nothing_else_is_answered_by_it(minilm: TransformerEncoder, tiny_encoder: object) -> None:
    sentences, names = example()
    assert shipped.find_example("msp", minilm, sentences, names) is None
    assert shipped.find_example(shipped.ATTACK, minilm, sentences[1:], names) is None
    assert shipped.find_example(shipped.ATTACK, minilm, sentences, names[1:]) is None
    assert shipped.find_example(shipped.ATTACK, tiny_encoder, sentences, names) is None  # type: ignore[arg-type]


def test_a_damaged_file_is_told(
    minilm: TransformerEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "EXAMPLE", tmp_path)
    assert shipped.find_example(shipped.ATTACK, minilm, *example()) is None, "nothing ships"
    with pytest.raises(ArtifactError, match="Make it again"):
        shipped.restore_experiment({}, {})


BACKGROUND = ("#FFFFFF", "#12161B")
"""Of the page, as in dashboard/.streamlit/config.toml."""


def rgb(colour: str) -> tuple[int, ...]:
    if colour.startswith("#"):
        return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return tuple(int(part) for part in re.findall(r"\d+", colour))


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [c / 255 for c in rgb(colour)]
    lin = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]


@pytest.mark.parametrize("is_dark", [False, True])
def test_nothing_read_looks_like_the_page_and_every_number_can_be_read(is_dark: bool) -> None:
    shades, ink = _SHADES[is_dark], luminance(_INK[is_dark])
    assert rgb(shades[0]) == rgb(BACKGROUND[is_dark])
    for shade in shades:
        high, low = max(ink, luminance(shade)), min(ink, luminance(shade))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_name_that_cannot_be_answered_has_no_number_and_is_hatched() -> None:
    cells = [[rate_of(0, 2), rate_of(1, 2), rate_of(0, 2)]]
    figure = name_map(["Quell"], ["Quell", "Orrin", "Lind"], cells, testable=[False, True, True])
    heat, hatched, points = figure.data
    assert list(heat.z[0]) == [None, 50, 0]
    assert list(hatched.x) == [0] and hatched.marker.pattern.shape == "/"
    assert NOT_TESTABLE in points.text[0] and NOT_TESTABLE not in points.text[2]
    assert len(name_map(["Quell"], ["Quell"], [[rate_of(0, 2)]]).data) == 2


def test_an_attacker_that_could_not_be_tested_has_no_bar_of_zero() -> None:
    found = [
        NameAttacker(knows="", rate=replace(rate_of(0, 0), chance=0.0), n_found=0, n_asked=0),
        NameAttacker(knows="alone", rate=replace(rate_of(2, 4), chance=25.0), n_found=2, n_asked=4),
    ]
    tested, hatched, guessing = name_attackers(found).data
    assert list(tested.x) == [50] and "2 of 4" in tested.text[0]
    assert list(hatched.text) == [NOT_TESTABLE] and hatched.marker.pattern.shape == "/"
    assert list(guessing.x) == [25]


def test_the_thesis_is_quoted_with_its_diagonal() -> None:
    assert [PAPER[i][i] for i in range(4)] == [77.27, 81.29, 88.54, 83.01]
