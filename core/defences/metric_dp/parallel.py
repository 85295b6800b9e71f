"""Parallel map over threads, one processor per piece of work.

A piece of many small steps, some of them sequential, would otherwise make processors wait for each
other at every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

_T = TypeVar("_T")
_U = TypeVar("_U")
_V = TypeVar("_V")
_FEW = 4
"""Pieces up to which threads are not worth their start."""
_AHEAD = 32
"""Pieces that wait, or are at work, at a time."""


def parallel_map(work: Callable[[_T], _U], pieces: Iterable[_T]) -> Generator[_U]:
    """Map `work` over pieces in as many threads as PyTorch uses; yield results in order.

    Pieces are drawn in the calling thread while the other threads work on earlier ones.

    Raises
    ------
    Exception
        What the work of a piece raised; the pieces after it may not have been done.
    """
    pieces = iter(pieces)
    first = list(islice(pieces, _FEW + 1))
    n = torch.get_num_threads()
    if n < 2 or len(first) <= _FEW:
        yield from map(work, chain(first, pieces))
        return
    coming: deque[Future[_U]] = deque()
    with ThreadPoolExecutor(n, initializer=_limit_to_one_processor) as pool:
        try:
            for piece in chain(first, pieces):
                coming.append(pool.submit(work, piece))
                if len(coming) == _AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def map_parts(
    run: Callable[[Iterable[_T]], Iterable[_U]],
    wholes: Iterable[_V],
    cut: Callable[[_V], Sequence[_T]],
) -> Generator[list[_U]]:
    """Cut each whole into parts, map `run` over the stream of parts, yield results by whole.

    Parts of the next whole may be drawn before one is complete.

    Parameters
    ----------
    run : callable
        Gives what is made of each part, in their order.
    cut : callable
        Gives the parts of a whole: at least one.

    Raises
    ------
    ValueError
        A whole has no parts.
    """
    counts: deque[int] = deque()

    def parts() -> Generator[_T]:
        for whole in wholes:
            cuts = cut(whole)
            if not cuts:  # what follows would be taken for another's
                raise ValueError("A whole without parts.")
            counts.append(len(cuts))
            yield from cuts

    found: list[_U] = []
    for made in run(parts()):
        found.append(made)
        if len(found) == counts[0]:
            counts.popleft()
            yield found
            found = []


def _limit_to_one_processor() -> None:
    """Limit this thread's own computations, and no other thread's, to one processor."""
    torch.get_num_threads()  # which would set it later
    threadpool_limits(1, user_api="openmp")
