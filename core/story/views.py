"""Views that are told from the rows that ship: a name and parameters in, a slide out.

A story that ships names views, so that no number of it is typed; each view reads the file that its
page reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.errors import InvalidInputError, similar
from core.registry import imported
from core.story.caveats import CAVEATS
from core.story.format import Slide

__all__ = ["VIEWS", "View", "told"]


@dataclass(frozen=True)
class View:
    """A view that can be told from rows.

    Attributes
    ----------
    page : str
        Where the same is seen live.
    summary : str
        What it shows.
    path : str
        module:function; it takes the parameters of the page's address.
    parameters : tuple of str
        Those that it understands.
    """

    page: str
    summary: str
    path: str
    parameters: tuple[str, ...] = ()
    closes: bool = False
    """It ends a story: a slide that is added later stands before it."""


_READ, _MANY = "core.story.views_read", "core.story.views_many"
_DEFEND, _TOLD = "core.story.views_defend", "core.story.views_told"

VIEWS: Mapping[str, View] = {
    "shipped": View(
        "overview",
        "What each attack that ships reads of sentences kept from it",
        f"{_READ}:shipped",
    ),
    "example": View(
        "inversion",
        "An invented sentence, with the words marked that are read from its vector",
        "core.story.example:example",
    ),
    "news": View(
        "inversion", "What the strongest attacks read of news, strange to them", f"{_MANY}:news"
    ),
    "unnamed": View("inversion", "Which words no figure counts", f"{_MANY}:unnamed"),
    "sentences": View(
        "inversion",
        "How much of whole sentences is read back, words in order",
        "core.story.views_sentences:sentences",
    ),
    "names": View("names", "How often surnames are read from news", f"{_READ}:names"),
    "encoders": View(
        "representations",
        "Which encoder leaks least at equal usefulness",
        f"{_READ}:encoders",
        ("domain", "view"),
    ),
    "authors": View(
        "attributes", "How many authors a vector gives away, and by what", f"{_TOLD}:authors"
    ),
    "members": View(
        "membership", "Whose texts a model was trained on, as far as it tells", f"{_TOLD}:members"
    ),
    "canaries": View(
        "memorisation", "How soon a language model keeps a secret", f"{_TOLD}:canaries"
    ),
    "pages": View("overview", "Why the pages' figures differ", f"{_READ}:pages"),
    "defences": View(
        "tradeoff",
        "What a defence saves and costs, and which leaks the fewest words of the useful settings",
        f"{_DEFEND}:defences",
        ("task", "use", "keep"),
    ),
    "mechanism": View(
        "tradeoff",
        "What a mechanism leaves and what is read, at each η measured",
        "core.story.views_eta:mechanism",
        ("task", "defence", "keep"),
    ),
    "etas": View(
        "tradeoff",
        "Which η of each mechanism has less read and stays useful",
        "core.story.views_eta:etas",
        ("task", "keep"),
        closes=True,
    ),
    "attackers": View(
        "tradeoff", "Who attacked, with what access, taught by how much", f"{_DEFEND}:attackers"
    ),
    "remedies": View(
        "tradeoff",
        "What stops attackers without changing a vector: access, encryption, retention",
        "core.story.remedies:remedies",
        closes=True,
    ),
    "words": View("glossary", "What the words of the pages mean", "core.story.words:words"),
}


def told(name: str, parameters: Mapping[str, str]) -> Slide:
    """Return the slide of a view, told from the rows that are here now.

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

    slide: Slide = imported(view.path)(**parameters)
    return slide if slide.caveat else replace(slide, caveat=CAVEATS[view.page])


def chosen(name: str, value: str, offered: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return a value that is offered.

    Raises
    ------
    InvalidInputError
        It is not.
    """
    if value not in offered:
        raise InvalidInputError(f"{name} must be one of {', '.join(offered)}, got {value[:60]!r}.")
    return value
