"""The finding of the map: whether neighbours share a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import strength
from leakscope.core.findings.finding import Fact, Finding
from leakscope.core.projection.displacement import Displacement
from leakscope.core.projection.layout import Layout
from leakscope.core.projection.points import Points
from leakscope.core.projection.quality import NeighbourScore
from leakscope.core.projection.spec import METHODS
from leakscope.core.results import Score
from leakscope.core.specs import DefenceSpec


def map_neighbours(
    points: Points,
    layout: Layout,
    shared: Mapping[str, NeighbourScore],
    *,
    source: str,
    commands: Sequence[str],
    moved: tuple[DefenceSpec, Displacement] | None = None,
) -> Finding:
    """Build the finding on how many of a map's neighbours share a label, compared with chance.

    Parameters
    ----------
    shared : mapping
        Shared property to its neighbour score; the title states the one furthest above chance.
    source : str
        Origin of the texts.
    commands : sequence of str
        Commands that draw the map again.
    moved : tuple of DefenceSpec and Displacement, optional
        The active defence, and how it moves points.
    """
    ranked = sorted(shared.items(), key=lambda named: named[1].above_chance, reverse=True)
    title, body = _title_and_body(points, layout, ranked)
    return Finding(
        title=title,
        body=body,
        facts=(
            *_facts(points, layout, source, moved),
            *((f"Same {name}", _describe_shared(name, found)) for name, found in ranked[1:]),
        ),
        commands=tuple(commands),
    )


def _title_and_body(
    points: Points, layout: Layout, ranked: Sequence[tuple[str, NeighbourScore]]
) -> tuple[str, str]:
    """Return the headline and the paragraph on the neighbours of a map."""
    if not ranked:
        return (
            f"{len(points):,} texts, placed by their vectors",
            "The vectors alone decide where a point is: the encoder considers the texts of "
            "neighbouring points similar.",
        )
    name, first = ranked[0]
    share, k = first.score, first.k
    value, interval = share.parts()
    by_chance = f"{share.chance:.2g}"
    if share.ci95.low > share.chance:
        title = (
            f"Of the {k} points nearest to a text on the map, {value} on average "
            f"{_have_same(name)} (by chance: {by_chance})"
        )
        means = (
            "Anyone with the vectors can draw this map and find texts that belong together. The "
            f"{value} has a 95 % CI of {interval} (n = {share.n:,} points)."
        )
    else:
        than = "less often than" if share.ci95.high < share.chance else "no more often than"
        title = f"On this map, a text's nearest neighbours {_have_same(name)} {than} by chance"
        means = (
            f"On average, {value} of {k} do (95 % CI {interval}, n = {share.n:,} points); by "
            f"chance it would be {by_chance}."
        )
    return title, (
        f"Each point is a text, placed by its vector alone ({METHODS[layout.spec.method].title}). "
        f"{means}"
    )


def _have_same(name: str) -> str:
    """Return "have the same LABEL" or "come from the same LABEL", to continue a sentence."""
    return f"{'come from' if name in ('document', 'collection') else 'have'} the same {name}"


def _describe_shared(name: str, found: NeighbourScore) -> str:
    """Describe how many of a text's map neighbours share one more label, compared with chance."""
    value, interval = found.score.parts()
    return (
        f"on average, {value} of {found.k} {_have_same(name)} (95 % CI {interval}); by chance, "
        f"{found.score.chance:.2g}"
    )


def link_sentence(linked: Score) -> str:
    """Describe in a sentence what share of protected vectors is still nearest to its original."""
    value, interval = linked.parts(0)
    return (
        f"{value} % of {linked.n:,} protected vectors are still nearest to their own original "
        f"(95 % CI {interval}; by guessing {linked.chance:.2f} %)"
    )


def _facts(
    points: Points,
    layout: Layout,
    source: str,
    moved: tuple[DefenceSpec, Displacement] | None,
) -> tuple[Fact, ...]:
    """Return a map's (name, text) facts: data, n, trustworthiness, method and displacement."""
    trust = layout.trustworthiness.score
    value, interval = trust.parts(3)
    facts = (
        ("Data", f"{len(points):,} {points.unit}s of {points.n_available:,}: {source}"),
        ("n", f"{trust.n:,} points whose neighbours were compared"),
        ("Interval", f"trustworthiness {value} (95 % CI {interval})"),
        ("Attacker", "none: no text is recovered; anyone with the vectors can draw this map"),
        ("Access", "the vectors; colours and shapes need labels of the texts"),
        ("Cost", f"drawn in {layout.seconds:.1f} s, without training"),
        ("Method", METHODS[layout.spec.method].title),
    )
    if moved is None:
        return facts
    defence, moves = moved
    title = DEFENCES[defence.name].title
    setting = strength(defence.name, dict(defence.settings))
    return (
        *facts,
        (
            "Moved",
            f"{f'{title}, {setting}' if setting else title}: {link_sentence(moves.linked)}",
        ),
    )
