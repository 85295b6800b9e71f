"""t-SNE by scikit-learn in a separate process, which reports progress and can be stopped.

scikit-learn's t-SNE reports to nobody but the terminal and cannot be interrupted within a thread.
Vectors go through a pipe: nothing is written to disk.
"""

from __future__ import annotations

import io
import json
import os
import queue
import re
import subprocess
import sys
import threading
from typing import IO

import numpy as np
from numpy.typing import NDArray

from leakscope.core.assets import ROOT
from leakscope.core.errors import CoreError
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.projection.tsne_process import N_ROUNDS
from leakscope.core.protocols import OnProgress, Vectors, no_progress

_ROUND = re.compile(r"Iteration (\d+)")
_LOOK_EVERY = 0.25
"""Seconds between checks for a stop request."""


def tsne_places(
    vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress = no_progress
) -> NDArray[np.float32]:
    """Run t-SNE on vectors in a separate process; return (n, n_components) coordinates.

    Implements van der Maaten & Hinton (2008) with the Barnes-Hut approximation, by scikit-learn.
    Differs from scikit-learn's defaults: a perplexity above (n − 1)/3 counts as that.

    Raises
    ------
    StoppedError
        `on_progress` asked to stop; the process has ended.
    CoreError
        The process failed, such as for want of memory.
    """
    perplexity = min(spec.perplexity, (len(vectors) - 1) / 3)
    settings = {"n_components": spec.n_components, "perplexity": perplexity, "seed": spec.seed}
    process = subprocess.Popen(
        [sys.executable, "-m", "leakscope.core.projection.tsne_process", json.dumps(settings)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 2) - 1))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        return _follow(process, vectors, on_progress)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _follow(
    process: subprocess.Popen[bytes], vectors: Vectors, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Send vectors to the t-SNE process, report its progress and return its coordinates."""
    assert process.stdin and process.stdout and process.stderr
    answer: list[bytes] = []
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threads = [
        threading.Thread(target=_feed, args=(process.stdin, vectors), daemon=True),
        threading.Thread(target=_drain, args=(process.stdout, answer), daemon=True),
        threading.Thread(target=_listen, args=(process.stderr, lines), daemon=True),
    ]
    for thread in threads:
        thread.start()
    done, told = 0.0, "Finding neighbours for t-SNE"
    while True:
        on_progress(done, told)
        try:
            line = lines.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            continue
        if line is None:
            break
        if found := _ROUND.search(line):
            done = min(1.0, int(found[1]) / N_ROUNDS)
            told = f"t-SNE, round {found[1]} of {N_ROUNDS}"
    threads[1].join()
    if process.wait() != 0 or not answer[0]:
        raise CoreError(
            f"t-SNE of {len(vectors):,} points ended early, perhaps because memory ran out. Draw "
            "fewer points, or use UMAP."
        )
    places: NDArray[np.float32] = np.load(io.BytesIO(answer[0]), allow_pickle=False)
    return places


def _feed(pipe: IO[bytes], vectors: Vectors) -> None:
    """Write vectors to the t-SNE process's standard input and close it."""
    content = io.BytesIO()
    np.save(content, vectors, allow_pickle=False)
    try:
        pipe.write(content.getbuffer())
        pipe.close()
    except OSError:  # the process has ended; its exit status says why
        return


def _drain(pipe: IO[bytes], answer: list[bytes]) -> None:
    """Read all that the t-SNE process writes to standard output and append it to `answer`."""
    answer.append(pipe.read())


def _listen(pipe: IO[bytes], lines: queue.SimpleQueue[str | None]) -> None:
    """Put each line of the t-SNE process's standard error on a queue, and None at its end."""
    for line in pipe:
        lines.put(line.decode("utf-8", "replace"))
    lines.put(None)
