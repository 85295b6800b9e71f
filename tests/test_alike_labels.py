"""Labels that are alike but for blanks, case, Unicode form or a `.0`: one note that names them."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from core.corpora.labels import alike_labels, alike_note

BLANKS = Path(__file__).parent / "cases" / "labels" / "blanks.csv"


def test_alike_labels_are_grouped_and_others_are_not() -> None:
    composed, apart = (unicodedata.normalize(form, "Zoë") for form in ("NFC", "NFD"))
    labels = ["anna", "anna ", "Anna", "berta", composed, apart, "1", "1.0", "10", "1.5", "NA", ""]
    assert alike_labels(labels) == [("anna", "anna ", "Anna"), (composed, apart), ("1", "1.0")]
    assert alike_labels(["NA", "na ", "nan"]) == [("NA", "na ")], "NA is a name like any other"


def test_the_note_names_what_the_eye_does_not_see() -> None:
    note = alike_note(["Zoe\u0308", "Zo\u00eb"], what="labels")
    assert "Zoe\\u0308" in note and "separate" in note
    many = alike_note([f"{c}{end}" for c in "abcdef" for end in ("", " ")], what="labels")
    assert "and 3 more such groups" in many
    assert "read as one" in alike_note(["1", "1.0"], what="labels", are_merged=True)


def test_the_attributes_command_notes_them_once(core: Any, tiny_bert: Path) -> None:
    given = ("attributes", "--texts", BLANKS, "--encoder", f"mlm:{tiny_bert}", "--n-per-label", 5)
    done = core(*given, "--n-targets", 10, "--json")
    assert done.err.count("are alike but for blanks") == 1
    assert "'anna' and 'anna ' and 'Anna'" in done.err
    assert done.json()["labels_alike"] == [["anna", "anna ", "Anna"]]


def test_the_membership_command_notes_labels_that_it_reads_as_one(
    core: Any, tmp_path: Path
) -> None:
    def told(labels: list[str], names: tuple[str, str]) -> list[str]:
        path = tmp_path / "answers.jsonl"
        lines = [
            {"member": i % 2, "label": labels[i % len(labels)], f"p_{names[0]}": 0.6,
             f"p_{names[1]}": 0.4}
            for i in range(40)
        ]  # fmt: skip
        path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        notes = core("membership", "--probabilities", path, "--json").json()["notes"]
        return [note for note in notes if "alike" in note]

    (merged,) = told(["1", "1.0", "2"], ("1", "2"))
    assert "'1' and '1.0'" in merged and "read as one" in merged
    (apart,) = told(["anna", "Anna"], ("anna", "Anna"))
    assert "classes 'anna' and 'Anna'" in apart and "separate" in apart
    assert told(["NA", "b"], ("NA", "b")) == []
