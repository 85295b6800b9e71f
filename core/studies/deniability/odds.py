"""The odds that a setting guarantees on an example sentence, for tables, slides and commands.

They cover one sentence on the bundled encoder, whose distances are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leakscope.core.defences.metric_dp.distances import EXAMPLE
from leakscope.core.defences.metric_dp.exponential_guarantee import shipped_guarantees
from leakscope.core.defences.metric_dp.guarantee import HARDLY, Guarantees, format_odds
from leakscope.core.defences.setting import first_of
from leakscope.core.defences.trained.under_noise.registry import n_releases
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec

ODDS = "Odds up to: neighbour · median · sentence"
"""The title of a column of odds."""


def guarantees_of_setting(spec: DefenceSpec, encoder: str) -> Guarantees | None:
    """Return the shipped guarantees of a defence spec, or its chain's first stage; else None.

    None if it guarantees nothing, or if the distances on that encoder are unknown.
    """
    try:
        return shipped_guarantees(first_of(spec), encoder)
    except InvalidInputError:  # rows of other versions may have unknown settings
        return None


def format_odds_cell(spec: DefenceSpec, encoder: str, releases: int = 1) -> str:
    """Format a setting's odds for a table: nearest, median, sentence; "" if unknown.

    Parameters
    ----------
    releases : int
        Of the same text, whose odds multiply.

    Examples
    --------
    >>> format_odds_cell(DefenceSpec.of("int8", {}), "minilm")
    ''
    """
    found = guarantees_of_setting(spec, encoder)
    return "" if found is None else found.after(releases).short_odds


def describe_guarantee(spec: DefenceSpec, encoder: str, releases: int = 1) -> str:
    """Describe a setting's guarantee in a sentence; "" if it has none or it is unknown."""
    found = guarantees_of_setting(spec, encoder)
    if found is None:
        return ""
    found = found.after(releases)
    at = f"At {found.symbol} {found.nearest.eta:g}"
    also = f" {found.also}" if found.also else ""
    return f"{at}, the output can distinguish two inputs with odds of up to {found.all_odds}.{also}"


ONE_RELEASE = (
    "They cover one release of a text. k releases, for example in two columns or two files, raise "
    "them to the power k."
)
COMPOSED = (
    "They cover the number of releases of a text in the column beside them: k releases raise the "
    "odds of one release to the power k."
)
"""What a column of odds covers: one release, or those of another column."""


def odds_note(specs: Sequence[DefenceSpec], encoder: str, covers: str = ONE_RELEASE) -> str:
    """Explain a column of odds of defence specs in a few sentences; "" if it would be empty.

    Parameters
    ----------
    covers : str
        A sentence on the releases that the odds cover.
    """
    found = [each for spec in specs if (each := guarantees_of_setting(spec, encoder)) is not None]
    if not found:
        return ""
    kinds: list[tuple[str, Callable[[Guarantees], bool]]] = [
        (
            f"a token of “{EXAMPLE}” and its nearest neighbour · two words at the median "
            "distance · the whole sentence and any other sentence of {n} tokens",
            lambda each: not each.is_of_texts,
        ),
        (
            "for whole-text vectors, a typical (median) text and its nearest neighbour · two texts "
            "at the median distance",
            lambda each: each.is_of_texts,
        ),
    ]
    n = max(each.n_tokens for each in found)
    told = [text.format(n=n) for text, holds in kinds if any(map(holds, found))]
    return (
        "the largest odds at which an output may distinguish two inputs, exp(η · distance) to 1. "
        f"In order: {'; '.join(told)}. {covers} Above {format_odds(HARDLY)} they are practically "
        "no guarantee: η · distance corresponds to ε in ordinary differential privacy, where an ε "
        f"above {HARDLY:g} counts as weak or no guarantee."
    )


def noise_schedule(row: Mapping[str, Any]) -> str:
    """Return `once` or `every_epoch`: when the noise of a row's training texts was drawn.

    Rows of earlier versions do not record it: they drew it in every epoch.
    """
    return str(row.get("reader_settings", {}).get("releases", "every_epoch"))


def releases_of(row: Mapping[str, Any]) -> int:
    """Return how many noisy copies of each training text a row's network was trained on."""
    return n_releases(
        row["defence"],
        row.get("reader", "transformer"),
        epochs=row.get("reader_settings", {}).get("epochs", 0),
        releases=noise_schedule(row),
    )
