"""All that is fuzzed, by what the report calls it, and how cases are drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import count

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError
from tools.fuzz.chains import chains
from tools.fuzz.commands import (
    CLASSIFIER,
    classifiers,
    command_lines,
    given_files,
    lines_of,
    specifications,
)
from tools.fuzz.kit import Kit
from tools.fuzz.opening import artefacts
from tools.fuzz.play import Case, Verdict, play
from tools.fuzz.readers import corpora, stored, tables
from tools.fuzz.sources import sources
from tools.fuzz.uploads import hostile_uploads

__all__ = ["chosen", "run_target", "shares", "targets"]

_FILES = ("texts.txt", "news.csv", "news.tsv", "news.jsonl", "news.parquet")
_MOST_ROUNDS = 5


def targets(kit: Kit) -> dict[str, st.SearchStrategy[Case]]:
    """Return every command and every reader, with the cases that there are of each."""
    of_models = {"file of answers": given_files(kit, "answers.csv"),
                 "file of a story": given_files(kit, "story.json")}  # fmt: skip
    if set(CLASSIFIER) <= set(kit.files):
        of_models["file onnx"] = classifiers(kit)
    files = {f"file {name.partition('.')[2]}": given_files(kit, name) for name in _FILES}
    read = {f"reader {name.partition('.')[2]}": corpora(kit, name) for name in _FILES}
    of_tasks = {f"reader {name.partition('.')[0]}": tables(kit, name)
                for name in ("pairs.csv", "searches.csv", "news.csv")}  # fmt: skip
    opened = {name: artefacts(kit, name) for name in kit.artefacts}
    return {
        **command_lines(kit), "specification": specifications(kit),
        "chain of defences": chains(kit, lines_of(kit)),
        **files, **of_models, **read, **of_tasks, **opened, **stored(kit),
        **hostile_uploads(), **sources(kit.making.vectors[:12]),
    }  # fmt: skip


def chosen(every: Collection[str], only: Collection[str] | None) -> list[str]:
    """Return the targets to play: all of them, or those that are named.

    Raises
    ------
    InvalidInputError
        There is no such target.
    """
    if unknown := sorted(set(only or ()) - set(every)):
        raise InvalidInputError(f"There is no target {', '.join(unknown)}: choose from "
                                f"{', '.join(every)}.")  # fmt: skip
    return [name for name in every if not only or name in only]


def shares(names: list[str], n: int) -> dict[str, int]:
    """Return how many cases each target gets of n, the first ones one more where it is uneven.

    Raises
    ------
    InvalidInputError
        There are fewer cases than targets: some would not be tried.
    """
    if n < len(names):
        raise InvalidInputError(
            f"--cases must be {len(names)} or more, one for each target, got {n}. Give more cases, "
            "or name fewer targets by --only."
        )
    each, more = divmod(n, len(names))
    return {name: each + (i < more) for i, name in enumerate(names)}


def run_target(
    strategy: st.SearchStrategy[Case],
    n: int,
    first_seed: int,
    *,
    judge: Callable[[Case], Verdict] = play,
) -> Iterator[Verdict]:
    """Play n cases; drawn in rounds, since a round draws no case twice and may run out of them."""
    n_done = 0
    for i in count(first_seed):
        found: list[Verdict] = []
        seed(i)(_drawing(strategy, n - n_done, partial(_keep, found, judge)))()
        yield from found[: n - n_done]
        n_done += len(found)
        if n_done >= n or i - first_seed >= _MOST_ROUNDS * n:
            return


def _keep(found: list[Verdict], judge: Callable[[Case], Verdict], case: Case) -> None:
    found.append(judge(case))


def _drawing(
    strategy: st.SearchStrategy[Case], n: int, take: Callable[[Case], None]
) -> Callable[[], None]:
    """Return what draws up to n different cases and hands each over."""

    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(case: Case) -> None:
        take(case)

    return draw
