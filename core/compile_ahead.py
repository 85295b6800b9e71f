"""Compile numba loops before a page needs them: `python -m leakscope.core.compile_ahead [NAME …]`.

Once after an installation it takes some seconds; then the machine code is on disk
(leakscope.core.compiled) and it takes the time of an import.
"""

from __future__ import annotations

import os
import sys


def _compile_deniability() -> None:
    """Compile the envelopes of the deniability engine."""
    import numpy as np

    from leakscope.core.defences.deniability.engine import DeniabilityEngine

    vectors = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    engine = DeniabilityEngine(vectors, np.arange(200), n_draws=16, n_threads=1)
    engine.envelopes(np.arange(2))
    engine.outcomes(np.arange(2), np.array([20.0, 40.0]))


def _compile_language_model() -> None:
    """Compile the loops that score words by the language model in reconstruction."""
    import numpy as np

    from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel

    model = LanguageModel.fit(["the ship left the harbour in the morning"] * 4)
    tokens = model.lexicon.ids(["the", "ship", "left", "the", "harbour"])
    model.log_probabilities([tokens])
    model.next_scores(np.array([[3, 4]], np.int32), tokens)
    model.edit_scores(tokens, tokens[:2])
    model.move_scores(tokens, np.array([[0, 1, 3]], np.int32))
    model.cut_scores(tokens, np.array([[0, 1]], np.int32))
    model.pair_scores(tokens, np.array([1], np.int32), np.array([[3, 4]], np.int32))


def _compile_map() -> None:
    """Compile the loops that move the points of a map."""
    import numpy as np

    from leakscope.core.projection.layout import project
    from leakscope.core.projection.spec import ProjectionSpec

    project(np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32), ProjectionSpec())


LOOPS = {
    "deniability": _compile_deniability,
    "reconstruct": _compile_language_model,
    "map": _compile_map,
}
"""What can be compiled, by running it on a few made-up rows."""


IN_BACKGROUND = "--background"
"""The option that gives way to every other process: a server's first page comes first."""


def compile_loops(*names: str) -> None:
    """Compile the numba loops of the named groups in `LOOPS`; all groups if none is named."""
    for name in names or LOOPS:
        LOOPS[name]()


if __name__ == "__main__":
    given = sys.argv[1:]
    if IN_BACKGROUND in given and hasattr(os, "nice"):
        os.nice(19)
    compile_loops(*(name for name in given if name != IN_BACKGROUND))
