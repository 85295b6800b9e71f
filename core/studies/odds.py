"""The odds of a setting, as tables, slides and the command line tell them beside its η.

They are of one sentence on the bundled encoder, of which the distances are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.defences.metric_dp.kept_distances import kept_promises
from core.defences.metric_dp.promise import HARDLY, Promises, odds_said
from core.defences.metric_dp.promised import EXAMPLE
from core.defences.trained.under_noise.registry import n_releases
from core.errors import InvalidInputError
from core.specs import DefenceSpec
from core.studies.tradeoff_setting import first_of

__all__ = [
    "COMPOSED",
    "ODDS",
    "ONE_RELEASE",
    "kept_odds",
    "odds_note",
    "odds_of",
    "odds_told",
    "arm_of",
    "releases_of",
]

ODDS = "Odds up to: neighbour · median · sentence"
"""What a column of odds is called."""


def odds_of(spec: DefenceSpec, encoder: str) -> Promises | None:
    """Return what a defence, or the first of a chain, promises at its settings.

    None where it promises nothing, or where the distances on that encoder are not known.
    """
    try:
        return kept_promises(first_of(spec), encoder)
    except InvalidInputError:  # rows of other versions may have settings that this one has not
        return None


def kept_odds(spec: DefenceSpec, encoder: str, releases: int = 1) -> str:
    """Return the odds for a cell of a table: nearest, median pair, sentence; empty for none.

    Parameters
    ----------
    releases : int
        Of the same text, whose odds multiply.

    Examples
    --------
    >>> kept_odds(DefenceSpec.of("int8", {}), "minilm")
    ''
    """
    found = odds_of(spec, encoder)
    return "" if found is None else found.after(releases).odds_in_turn


def odds_told(spec: DefenceSpec, encoder: str, releases: int = 1) -> str:
    """Return a sentence on what an η promises; empty where nothing is promised or known."""
    found = odds_of(spec, encoder)
    if found is None:
        return ""
    found = found.after(releases)
    return f"At {found.symbol} {found.nearest.eta:g} it promises {found.brief_and_also}"


ONE_RELEASE = (
    "They cover one release of a text; k releases, such as two columns or two files, put them to "
    "the power k."
)
COMPOSED = (
    "They cover as many releases of a text as are given beside them: k releases put the odds of "
    "one to the power k."
)
"""What a column of odds covers: one release, or those of another column."""


def odds_note(specs: Sequence[DefenceSpec], encoder: str, covers: str = ONE_RELEASE) -> str:
    """Return what a column of odds holds, in a few sentences; empty where it would hold nothing.

    Parameters
    ----------
    covers : str
        A sentence on the releases that the odds cover.
    """
    found = [each for spec in specs if (each := odds_of(spec, encoder)) is not None]
    if not found:
        return ""
    kinds: list[tuple[str, Callable[[Promises], bool]]] = [
        (f"of a token of “{EXAMPLE}” and its nearest neighbour · of a median pair of tokens · of "
         "that whole sentence and any other of {n} tokens", lambda each: not each.is_of_texts),
        ("of a vector, of a median text and its nearest neighbour · of a median pair of texts",
         lambda each: each.is_of_texts),
    ]  # fmt: skip
    n = max(each.n_tokens for each in found)
    told = [said.format(n=n) for said, holds in kinds if any(map(holds, found))]
    return (
        "by how much an output may tell two inputs apart at most, exp(η · distance) to 1: "
        f"{'; '.join(told)}. {covers} Above {odds_said(HARDLY)} they are almost no "
        "promise: η · distance is what ε is in ordinary differential privacy, where one above "
        f"{HARDLY:g} counts as weak or none."
    )


def arm_of(row: Mapping[str, Any]) -> str:
    """Return when the noise of a row's training texts was drawn: `once`, or in `every_epoch`.

    Rows of earlier versions do not say it: they drew it in every epoch.
    """
    return str(row.get("reader_settings", {}).get("releases", "every_epoch"))


def releases_of(row: Mapping[str, Any]) -> int:
    """Return how many noisy copies of each training text the network of a row was trained on."""
    return n_releases(
        row["defence"],
        row.get("reader", "transformer"),
        epochs=row.get("reader_settings", {}).get("epochs", 0),
        releases=arm_of(row),
    )
