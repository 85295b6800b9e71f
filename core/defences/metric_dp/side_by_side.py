"""Pieces of one computation on all processors, each piece on one of them.

Where a piece is many small steps, of which some are not shared out, processors would wait for each
other at every step; here they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

__all__ = ["ahead", "side_by_side"]

_T = TypeVar("_T")
_U = TypeVar("_U")
_FEW = 4
"""Pieces for which threads are not worth their start."""


def side_by_side(work: Callable[[_T], None], pieces: Sequence[_T]) -> None:
    """Do the work of every piece, on as many processors as PyTorch was given.

    Raises
    ------
    Exception
        What the work of a piece raised; the pieces after it may not have been done.
    """
    n = min(torch.get_num_threads(), len(pieces) // _FEW + 1)
    if n < 2:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(n, initializer=_on_one_processor) as pool:
        try:
            for done in [pool.submit(work, piece) for piece in pieces]:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _on_one_processor() -> None:
    """Have this thread's own computations, and no other thread's, on one processor."""
    torch.get_num_threads()  # which would set it later
    threadpool_limits(1, user_api="openmp")


def ahead(make: Callable[[_T], _U], pieces: Sequence[_T]) -> Generator[_U]:
    """Give what is made of each piece, in their order; the next is made while one is used."""
    if len(pieces) < 2:
        yield from map(make, pieces)
        return
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(make, pieces[0])
        for piece in pieces[1:]:
            made, coming = coming.result(), pool.submit(make, piece)
            yield made
        yield coming.result()
