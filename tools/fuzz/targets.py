"""All fuzzing targets, and how their cases are drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import count

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from leakscope.core.errors import InvalidInputError
from tools.fuzz.commands import (
    CLASSIFIER,
    chains,
    classifiers,
    command_lines,
    given_files,
    lines_of,
    specifications,
)
from tools.fuzz.kit import Kit
from tools.fuzz.opening import artefacts
from tools.fuzz.play import Case, Verdict, play
from tools.fuzz.readers import corpora, hostile_uploads, sources, stored, tables

_FILES = ("texts.txt", "news.csv", "news.tsv", "news.jsonl", "news.parquet")
_MOST_ROUNDS = 5


def targets(kit: Kit) -> dict[str, st.SearchStrategy[Case]]:
    """Return the strategy that draws the cases of every command and reader, by target name."""
    of_models = {
        "file of answers": given_files(kit, "answers.csv"),
        "file of a story": given_files(kit, "story.json"),
    }
    if set(CLASSIFIER) <= set(kit.files):
        of_models["file onnx"] = classifiers(kit)
    files = {f"file {name.partition('.')[2]}": given_files(kit, name) for name in _FILES}
    read = {f"reader {name.partition('.')[2]}": corpora(kit, name) for name in _FILES}
    of_tasks = {
        f"reader {name.partition('.')[0]}": tables(kit, name)
        for name in ("pairs.csv", "searches.csv", "news.csv")
    }
    opened = {name: artefacts(kit, name) for name in kit.artefacts}
    return {
        **command_lines(kit),
        "specification": specifications(kit),
        "chain of defences": chains(kit, lines_of(kit)),
        **files,
        **of_models,
        **read,
        **of_tasks,
        **opened,
        **stored(kit),
        **hostile_uploads(),
        **sources(kit.making.vectors[:12]),
    }


def chosen(every: Collection[str], only: Collection[str] | None) -> list[str]:
    """Return the names of the targets to run: all, or those named; raise for unknown ones.

    Raises
    ------
    InvalidInputError
        There is no such target.
    """
    if unknown := sorted(set(only or ()) - set(every)):
        raise InvalidInputError(
            f"There is no target {', '.join(unknown)}: choose from {', '.join(every)}."
        )
    return [name for name in every if not only or name in only]


def shares(names: list[str], n: int) -> dict[str, int]:
    """Return how many of n cases each target gets, by name.

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
    """Draw n cases of a target, run them and yield their verdicts, in rounds without repetition."""
    n_done = 0
    for i in count(first_seed):
        found: list[Verdict] = []
        seed(i)(_make_drawing(strategy, n - n_done, partial(_judge_case, found, judge)))()
        yield from found[: n - n_done]
        n_done += len(found)
        if n_done >= n or i - first_seed >= _MOST_ROUNDS * n:
            return


def _judge_case(found: list[Verdict], judge: Callable[[Case], Verdict], case: Case) -> None:
    """Run a case by `judge` and append its verdict to `found`."""
    found.append(judge(case))


def _make_drawing(
    strategy: st.SearchStrategy[Case], n: int, take: Callable[[Case], None]
) -> Callable[[], None]:
    """Return a function that draws up to n different cases and passes each to `take`."""

    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(case: Case) -> None:
        """Pass a drawn case to `take`."""
        take(case)

    return draw
