"""The stories that ship, and how a story is opened: by the name of one of them, or from a file."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from core.assets import ASSETS
from core.errors import InvalidInputError, similar
from core.story.format import Story
from core.story.reading import read_story

__all__ = ["STORIES", "open_story", "shipped_stories", "with_use"]

STORIES = ASSETS / "stories"


@lru_cache(maxsize=1)
def shipped_stories() -> dict[str, Story]:
    """Return the stories that ship by name, the shortest first."""
    found = {path.stem: read_story(path) for path in sorted(STORIES.glob("*.json"))}
    return dict(sorted(found.items(), key=lambda named: named[1].minutes))


def with_use(story: Story, use: str) -> Story:
    """Return a story whose slides about a use of the vectors are about this use.

    Parameters
    ----------
    use : str
        One of `core.tasks.names.USES`. Slides that name no use stay as they are.
    """
    pins = (
        replace(pin, parameters=tuple((k, use if k == "use" else v) for k, v in pin.parameters))
        for pin in story.pins
    )
    return replace(story, pins=tuple(pins))


def open_story(told: str) -> Story:
    """Return a story that ships under a name, or lies in a file.

    Raises
    ------
    InvalidInputError
        Neither; the message names those that ship.
    ArtifactError
        The file holds no story.
    """
    stories = shipped_stories()
    if told in stories:
        return stories[told]
    path = Path(told)
    if path.suffix or path.exists():
        return read_story(path)
    raise InvalidInputError(
        f"There is no story {told!r}: name a file, or one of {', '.join(stories)}."
        + similar(told, stories)
    )
