"""Findings on memorisation: how much a language model leaks of planted canaries."""

from __future__ import annotations

import math

from leakscope.core.figures.memorisation import (
    MODELS,
    describe_times,
    fewest_memorised,
    insertions_figure,
    memorisation_headline,
)
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Fact, Finding, Table
from leakscope.core.findings.shared import provenance_facts
from leakscope.core.formatting import join_words
from leakscope.core.studies.memorisation.summary import (
    SHIPPED,
    Memorisation,
    Planted,
    load_memorisation,
)


def canaries() -> Finding:
    """Read the shipped results; build the finding on the exposure of planted canaries."""
    return canaries_of(load_memorisation(SHIPPED))


def canaries_of(found: Memorisation) -> Finding:
    """Build the finding on the exposure of canaries by how often they were planted."""
    return Finding(
        title=memorisation_headline(found),
        body=f"The model ranks all {found.n_values:,} possible values of a secret (canary) by "
        "likelihood. The **exposure** says where the true one stands: 0 bits is last, "
        f"{found.law.most or 0:.1f} is first. "
        f"{_describe_exposures(found)} {_describe_fewer(found)}",
        figure=insertions_figure(found),
        alt="Exposure in bits by the number of times a canary was planted",
        table=Table(
            columns=("Model", "Planted", "Exposure, bits"),
            rows=tuple(
                (MODELS[p.model], describe_times(p.insertions), p.exposure.format())
                for p in found.planted
            ),
        ),
        facts=canary_facts(found),
        commands=(command_of("memorisation"),),
    )


def _describe_exposures(found: Memorisation) -> str:
    """Describe the exposure after the fewest insertions that leak, and the highest exposure."""
    most = max(found.planted, key=lambda point: point.exposure.value)
    points = dict.fromkeys([fewest_memorised(found) or most, most])
    first, *others = (_describe_exposure(p, found.law.most, found.n_values) for p in points)
    return " ".join([f"{first}; chance gives {found.law.mean:.2f}.", *(f"{o}." for o in others)])


def _describe_exposure(point: Planted, most_bits: float | None, n_values: int) -> str:
    """Return a clause on the mean exposure of the secrets planted one number of times."""
    planted = f"Secrets planted {describe_times(point.insertions)}"
    if most_bits is not None and math.isclose(point.exposure.value, most_bits):
        return f"{planted} all reach **{most_bits:.1f}**"
    place = max(1, round(n_values / 2**point.exposure.value))
    mean = point.exposure.in_text(is_bold=True)
    return (
        f"{planted} have a mean exposure of {mean} bits, which corresponds to place {place:,} of "
        f"{n_values:,}"
    )


def _describe_fewer(found: Memorisation) -> str:
    """Describe what was measured with fewer insertions than the fewest that leak."""
    fewest = fewest_memorised(found)
    if fewest is None:
        return "This does not prove that they are safe."
    tested = [
        describe_times(point.insertions)
        for point in found.planted
        if point.model == fewest.model and 0 < point.insertions < fewest.insertions
    ]
    if not tested:
        return "Fewer repetitions were not tested: that does not prove them safe."
    return (
        f"For secrets planted {join_words(tested)}, no memorisation was shown, which does not "
        "prove them safe."
    )


def canary_facts(found: Memorisation) -> tuple[Fact, ...]:
    """Return the canary study's facts as (name, text) pairs: data, n, attacker and cost."""
    most = max(found.planted, key=lambda point: point.exposure.value)
    return (
        ("Data", f"{found.n_texts:,} sentences, {found.epochs} passes"),
        ("n", f"{most.exposure.n:,} canaries for each number of times planted"),
        ("Interval", "95 %, in brackets, over canaries and seeds"),
        ("Attacker", "Ranks all possible values by their likelihood under the model"),
        ("Access", "the model's probabilities"),
        ("Cost", f"{found.n_values:,} values tried for each secret; no training"),
        *provenance_facts(found.provenances),
    )
