"""The t-SNE process: reads vectors from standard input, writes coordinates to standard output.

`python -m leakscope.core.projection.tsne_process '{"n_components": 2, "perplexity": 30.0, "seed":
0}'`
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import numpy as np

N_ROUNDS = 1000
"""scikit-learn's default number of iterations."""


def main() -> None:
    """Read vectors from stdin, run t-SNE and write the coordinates; progress goes to stderr."""
    from sklearn.manifold import TSNE

    settings: dict[str, Any] = json.loads(sys.argv[1])
    vectors = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    out, sys.stdout = sys.stdout, sys.stderr  # scikit-learn prints its progress
    places = TSNE(
        n_components=settings["n_components"],
        perplexity=settings["perplexity"],
        random_state=settings["seed"],
        init="pca",
        learning_rate="auto",
        max_iter=N_ROUNDS,
        verbose=2,
    ).fit_transform(vectors)
    np.save(out.buffer, places.astype(np.float32), allow_pickle=False)
    out.buffer.flush()


if __name__ == "__main__":
    main()
