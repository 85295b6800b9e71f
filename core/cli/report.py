"""Write a story or an audit as a report: HTML, PDF or PowerPoint, by the suffix of the file."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.output import progress_line, show_note
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.storage.artifacts import check_folder, read_json, storage_errors
from leakscope.core.storage.atomic_files import atomic_write
from leakscope.core.tasks.names import USES

if TYPE_CHECKING:
    from leakscope.core.story.deck import Deck

EXAMPLE = "leakscope report safe-to-store --out report.html"
WHEN_STOPPED = "Nothing was written."

SUFFIXES = (".html", ".pdf", ".pptx")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `report` to its parser."""
    parser.add_argument(
        "story",
        metavar="STORY",
        help="a saved story, the name of a shipped story (`leakscope list`), or a report of "
        "`audit --json` for one page",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        type=Path,
        help=f"file to write, in the format of its suffix: {', '.join(SUFFIXES)}",
    )
    parser.add_argument(
        "--use",
        choices=tuple(USES),
        help="use of the vectors, for slides that depend on it (default: the story's)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Build the slides of a story, or the page of an audit, and write them as a report."""
    out: Path = arguments.out
    check_report(out, "--out")
    with progress_line() as on_progress:
        on_progress(0.0, "Building the slides")
        deck = _build_deck(arguments)
        on_progress(0.5, f"Writing {out.name}")
        n_bytes = write_deck(deck, out)
    for lack in deck.lacks:
        show_note(lack)
    notes = ", with speaker notes" if any(page.notes for page in deck.pages) else ""
    is_without = out.suffix.lower() == ".pdf"  # PDFs have no speaker notes
    held = f"{len(deck.pages)} slides and a title{'' if is_without else notes}"
    print(f"{out}: {'one page' if deck.is_one_page else held}, {n_bytes / 1e6:.1f} MB")


def check_report(out: Path, option: str = "--report") -> None:
    """Raise InvalidInputError, before the work, if a report cannot be written to this file.

    Raises
    ------
    InvalidInputError
        Its suffix is not a report's, or its folder is missing.
    """
    if out.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(
            f"{option} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {out.name!r}."
        )
    check_folder(out)


def write_deck(deck: Deck, out: Path) -> int:
    """Write slides to a file in the format of its suffix; return the number of bytes."""
    from leakscope.core.story.files import report_bytes

    content = report_bytes(deck, out.suffix.lower())
    with storage_errors(out):
        atomic_write(out, content)
    return len(content)


def _build_deck(arguments: argparse.Namespace) -> Deck:
    """Build the slides of a story, or the page of an audit, from the file or name given."""
    from leakscope.core.story.deck import make_deck, today
    from leakscope.core.story.shipped import open_story, with_use

    if (stored := _read_audit(Path(arguments.story))) is not None:
        from leakscope.core.audit.summary import AuditSummary
        from leakscope.core.story.deck import audit_deck

        return audit_deck(AuditSummary.from_dict(stored, arguments.story), with_words=True)
    story = open_story(arguments.story)
    return make_deck(with_use(story, arguments.use) if arguments.use else story, today())


def _read_audit(path: Path) -> dict[str, Any] | None:
    """Read an audit's JSON report from a path; None if it is not such a file."""
    stored: Any = None
    with suppress(ArtifactError):
        stored = read_json(path) if path.is_file() else None
    return stored if isinstance(stored, dict) and "token_set_f1" in stored else None
