"""Write a story as a report: HTML, PDF or PowerPoint, by the suffix of the file."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.output import show_note
from core.errors import InvalidInputError
from core.tasks.names import USES

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."

SUFFIXES = (".html", ".pdf", ".pptx")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    parser.add_argument(
        "story",
        metavar="STORY",
        help="a story that was saved, or the name of one that ships (`python -m core list`)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        type=Path,
        help=f"what to write; its suffix says what it is: {', '.join(SUFFIXES)}",
    )
    parser.add_argument(
        "--use",
        choices=tuple(USES),
        help="what the vectors are for, in slides about that; as the story says by default",
    )


def run(arguments: argparse.Namespace) -> None:
    """Tell the story from what is measured now, and write it."""
    from core.durable import write_whole
    from core.store import check_folder, storage_errors
    from core.story.deck import make_deck, today
    from core.story.files import report_bytes
    from core.story.shipped import open_story, with_use

    out: Path = arguments.out
    if out.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(
            f"--out must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {out.name!r}."
        )
    check_folder(out)
    story = open_story(arguments.story)
    deck = make_deck(with_use(story, arguments.use) if arguments.use else story, today())
    for lack in deck.lacks:
        show_note(lack)
    content = report_bytes(deck, out.suffix.lower())
    with storage_errors(out):
        write_whole(out, content)
    notes = ", with the speaker's notes" if any(page.notes for page in deck.pages) else ""
    is_without = out.suffix.lower() == ".pdf"  # paper has no second window
    print(
        f"{out}: {len(deck.pages)} slides and a title{'' if is_without else notes}, "
        f"{len(content) / 1e6:.1f} MB"
    )
