"""Registry of views that stories name: each builds a finding from shipped rows and parameters.

Shipped stories name views instead of numbers; each view reads the same file as its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.findings.finding import Finding
from leakscope.core.pages import PAGES
from leakscope.core.registry import import_object


@dataclass(frozen=True)
class View:
    """A view that can be built from shipped rows.

    Attributes
    ----------
    page : str
        The page that shows the same live.
    summary : str
        What it shows.
    path : str
        module:function; it takes the parameters of the page's URL.
    parameters : tuple of str
        The parameters that the function takes.
    """

    page: str
    summary: str
    path: str
    parameters: tuple[str, ...] = ()
    closes: bool = False
    """Whether it ends a story: slides that are added later are placed before it."""


_HERE = "leakscope.core.findings"

VIEWS: Mapping[str, View] = {
    "shipped": View(
        "overview",
        "What each shipped attack recovers from held-out sentences",
        f"{_HERE}.overview:shipped",
    ),
    "example": View(
        "inversion",
        "An invented sentence with the recovered words marked",
        f"{_HERE}.reading:example",
    ),
    "news": View(
        "inversion",
        "What the strongest attacks recover from unseen news",
        f"{_HERE}.inversion:news",
    ),
    "unnamed": View(
        "inversion", "Which words are not counted in any figure", f"{_HERE}.inversion:unnamed"
    ),
    "sentences": View(
        "inversion",
        "How much of a sentence is recovered in its word order",
        f"{_HERE}.sentences:sentences",
    ),
    "names": View("names", "How often surnames are recovered from news", f"{_HERE}.names:names"),
    "encoders": View(
        "representations",
        "Which encoder leaks least at equal utility",
        f"{_HERE}.representations:encoders",
        ("domain", "view"),
    ),
    "authors": View(
        "attributes",
        "How often a vector reveals its author, and through what",
        f"{_HERE}.attributes:authors",
    ),
    "members": View(
        "membership",
        "Whether a model reveals whose texts it was trained on",
        f"{_HERE}.membership:members",
    ),
    "canaries": View(
        "memorisation",
        "How soon a language model memorises a secret",
        f"{_HERE}.memorisation:canaries",
    ),
    "pages": View("overview", "Why the pages' figures differ", f"{_HERE}.overview:pages"),
    "defences": View(
        "tradeoff",
        "What each defence protects and costs, and which useful setting leaks least",
        f"{_HERE}.tradeoff:defences",
        ("task", "use", "keep"),
    ),
    "mechanism": View(
        "tradeoff",
        "What survives a mechanism and what is recovered, at each measured η",
        f"{_HERE}.mechanisms:mechanism",
        ("task", "defence", "keep"),
    ),
    "etas": View(
        "tradeoff",
        "Which η of each mechanism reduces leakage and keeps utility",
        f"{_HERE}.mechanisms:etas",
        ("task", "keep"),
        closes=True,
    ),
    "attackers": View(
        "tradeoff",
        "The attackers, their access and their training texts",
        f"{_HERE}.tradeoff:attackers",
    ),
    "remedies": View(
        "tradeoff",
        "What stops attackers without changing a vector: access, encryption, retention",
        f"{_HERE}.remedies:remedies",
        closes=True,
    ),
    "words": View("glossary", "What the terms on the pages mean", f"{_HERE}.words:words"),
}


def build_view(name: str, parameters: Mapping[str, str]) -> Finding:
    """Build the finding of a named view from the shipped rows, with the view's parameters.

    Raises
    ------
    InvalidInputError
        No such view, or a parameter that it does not have.
    ArtifactError
        The rows are missing or damaged.
    """
    view = VIEWS.get(name)
    if view is None:
        raise InvalidInputError(f"There is no view {name!r}.{similar(name, VIEWS)}")
    for parameter in parameters:
        if parameter not in view.parameters:
            known = ", ".join(view.parameters) or "none"
            raise InvalidInputError(
                f"The view {name!r} has no parameter {parameter[:40]!r}; it has {known}."
            )

    slide: Finding = import_object(view.path)(**parameters)
    slide = slide.with_plain_figure()
    return slide if slide.caveat else replace(slide, caveat=PAGES[view.page].caveat)


def check_choice(name: str, value: str, offered: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return a value unchanged, or raise InvalidInputError if it is not one of those offered.

    Raises
    ------
    InvalidInputError
        The value is not offered.
    """
    if value not in offered:
        raise InvalidInputError(f"{name} must be one of {', '.join(offered)}, got {value[:60]!r}.")
    return value
