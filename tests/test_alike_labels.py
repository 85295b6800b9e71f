"""Labels that are alike but for blanks, case, Unicode form or a `.0`: one note that names them."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from leakscope.core.corpora.labels import near_identical_labels, near_identical_note


def test_alike_labels_are_grouped_and_others_are_not() -> None:
    composed, apart = (unicodedata.normalize(form, "Zoë") for form in ("NFC", "NFD"))
    labels = ["anna", "anna ", "Anna", "berta", composed, apart, "1", "1.0", "10", "1.5", "NA", ""]
    assert near_identical_labels(labels) == [
        ("anna", "anna ", "Anna"),
        (composed, apart),
        ("1", "1.0"),
    ]
    assert near_identical_labels(["NA", "na ", "nan"]) == [("NA", "na ")], (
        "NA is a name like any other"
    )


def test_the_note_names_what_the_eye_does_not_see() -> None:
    note = near_identical_note(["Zoe\u0308", "Zo\u00eb"], what="labels")
    assert "Zoe\\u0308" in note and "separate" in note
    many = near_identical_note([f"{c}{end}" for c in "abcdef" for end in ("", " ")], what="labels")
    assert "and 3 more such groups" in many
    assert "treated as one" in near_identical_note(["1", "1.0"], what="labels", are_merged=True)


def test_the_membership_command_notes_labels_that_it_reads_as_one(
    core: Any, tmp_path: Path
) -> None:
    def told(labels: list[str], names: tuple[str, str]) -> list[str]:
        path = tmp_path / "answers.jsonl"
        lines = [
            {
                "member": i % 2,
                "label": labels[i % len(labels)],
                f"p_{names[0]}": 0.6,
                f"p_{names[1]}": 0.4,
            }
            for i in range(40)
        ]
        path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        notes = core("membership", "--probabilities", path, "--json").json()["notes"]
        return [note for note in notes if "differ only in" in note]

    (merged,) = told(["1", "1.0", "2"], ("1", "2"))
    assert "'1' and '1.0'" in merged and "treated as one" in merged
    (apart,) = told(["anna", "Anna"], ("anna", "Anna"))
    assert "classes 'anna' and 'Anna'" in apart and "separate" in apart
    assert told(["NA", "b"], ("NA", "b")) == []
