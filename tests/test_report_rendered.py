"""Reports as PowerPoint, rendered by LibreOffice: no text leaves its box, whatever the letters.

Where Calibri is missing a broader font stands for it, which is the harder case.
"""

from __future__ import annotations

import io
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from pptx import Presentation
from test_report_stories import STORIES, needs_browser, needs_reader, report

OFFICE = shutil.which("soffice")
PER_POINT = 12_700
"""Parts of a length, as PowerPoint counts them."""

pytestmark = [
    pytest.mark.browser,
    needs_browser,
    needs_reader,
    pytest.mark.skipif(OFFICE is None, reason="no LibreOffice renders the slides"),
]


def rendered(content: bytes, folder: Path) -> Path:
    """Return the slides as PDF, a page each."""
    (folder / "show.pptx").write_bytes(content)
    command = [
        str(OFFICE),
        "--headless",
        f"-env:UserInstallation=file://{folder}/profile",
        "--convert-to",
        "pdf",
        "--outdir",
        str(folder),
        "show.pptx",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=240)
    return folder / "show.pdf"


def letters(text: str) -> Counter[str]:
    """Return how often each letter stands there; hyphens are lost where a line breaks at them."""
    return Counter("".join(normalize("NFKC", text).replace("-", "").split()))


def seen(pdf: Path, page: int, box: tuple[int, int, int, int]) -> Counter[str]:
    """Return the letters within a box of a page, in points."""
    at = [part for name, n in zip("xyWH", box, strict=True) for part in (f"-{name}", str(n))]
    command = ["pdftotext", "-r", "72", "-enc", "UTF-8", "-f", str(page), "-l", str(page), *at]
    found = subprocess.run([*command, str(pdf), "-"], capture_output=True, check=True)
    return letters(found.stdout.decode())


def box_of(shape: Any, slide: Any) -> tuple[int, int, int, int]:
    """Return where a shape may write: a table as far as to what stands below it, or the foot."""
    left, top, width, height = (
        part // PER_POINT for part in (shape.left, shape.top, shape.width, shape.height)
    )
    if shape.has_table:
        others = [each.top // PER_POINT for each in slide.shapes]
        height = min([each for each in others if each > top], default=540) - top
    return left, top, width, height


def text_of(shape: Any) -> str:
    if shape.has_table:
        return " ".join(cell.text for row in shape.table.rows for cell in row.cells)
    return shape.text_frame.text if shape.has_text_frame else ""


def cut_off(content: bytes, pdf: Path) -> list[str]:
    """Return the texts of a show that are not seen whole within their box."""
    return [
        f"slide {n}: {text_of(shape)[:60]} ({''.join(missing.elements())[:40]})"
        for n, slide in enumerate(Presentation(io.BytesIO(content)).slides, 1)
        for shape in slide.shapes
        if (missing := letters(text_of(shape)) - seen(pdf, n, box_of(shape, slide)))
    ]


@pytest.mark.parametrize("name", STORIES)
def test_every_text_of_a_slide_is_seen_within_its_box(name: str, tmp_path: Path) -> None:
    content = report(name, ".pptx")
    assert cut_off(content, rendered(content, tmp_path)) == []


def test_a_text_that_is_too_large_for_its_box_is_found(tmp_path: Path) -> None:
    from pptx.util import Pt

    show = Presentation(io.BytesIO(report(STORIES[0], ".pptx")))
    box = show.slides[1].shapes[1]
    for paragraph in box.text_frame.paragraphs:
        for run in paragraph.runs:
            run.font.size = Pt(40)
    out = io.BytesIO()
    show.save(out)
    found = cut_off(out.getvalue(), rendered(out.getvalue(), tmp_path))
    assert found and found[0].startswith("slide 2: ")
