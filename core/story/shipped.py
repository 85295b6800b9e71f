"""Stories that ship, and opening a story by name or path."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from leakscope.core.assets import ASSETS
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.story.format import Story
from leakscope.core.story.reading import read_story

STORIES = ASSETS / "stories"


@lru_cache(maxsize=1)
def shipped_stories() -> dict[str, Story]:
    """Read the shipped stories; return them by name, the shortest first."""
    found = {path.stem: read_story(path) for path in sorted(STORIES.glob("*.json"))}
    return dict(sorted(found.items(), key=lambda named: named[1].minutes))


def with_use(story: Story, use: str) -> Story:
    """Return a story in which every slide with a `use` parameter has the given use.

    Parameters
    ----------
    use : str
        One of `leakscope.core.tasks.names.USES`. Slides that name no use stay as they are.
    """
    pins = (
        replace(pin, parameters=tuple((k, use if k == "use" else v) for k, v in pin.parameters))
        for pin in story.pins
    )
    return replace(story, pins=tuple(pins))


def open_story(told: str) -> Story:
    """Open a shipped story by its name, or a story file by its path.

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
        f"There is no story {told!r}. Give a file, or one of {', '.join(stories)}."
        + similar(told, stories)
    )
