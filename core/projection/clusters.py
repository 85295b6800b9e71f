"""Clusters of a map, each labelled by the words that are frequent in it and rare elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.text import STOP_WORDS

_POINTS_PER_CLUSTER = 20
_MOST_CLUSTERS = 24
_MOST_TEXTS = 20_000
_N_WORDS = 2


@dataclass(frozen=True)
class ClusterLabel:
    """The label of a cluster, at the most central of the points whose texts hold its words."""

    text: str
    x: float
    y: float
    n: int


def cluster_labels(
    coordinates: NDArray[np.float32], texts: Sequence[str], seed: int = 0
) -> list[ClusterLabel]:
    """Divide a flat map into k-means clusters; label each by its most distinctive words.

    Words are ranked by p · ln(p / q), for a word in a share p of the cluster's texts and a share q
    of all: its part of the Kullback-Leibler divergence. More than 20,000 points are sampled.

    Parameters
    ----------
    coordinates : float32 array, shape (n, 2)
        Positions on the map.
    texts : sequence of n str
    seed : int
        Seed of k-means and of the sample.

    Returns
    -------
    list of ClusterLabel
        From the largest cluster to the smallest; clusters without a frequent word are left out.
    """
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import CountVectorizer

    rng = np.random.default_rng(seed)
    rows = np.arange(len(texts))
    if len(rows) > _MOST_TEXTS:
        rows = np.sort(rng.choice(len(texts), _MOST_TEXTS, replace=False))
    k = min(_MOST_CLUSTERS, len(rows) // _POINTS_PER_CLUSTER)
    if k < 2:
        return []
    places = coordinates[rows]
    means = KMeans(k, n_init=1, random_state=seed).fit(places)
    counter = CountVectorizer(
        binary=True,
        stop_words=sorted(STOP_WORDS),
        token_pattern=r"(?u)\b[^\W\d_]{3,}\b",
        min_df=3,
        dtype=np.float32,
    )
    try:
        words = counter.fit_transform([texts[int(i)] for i in rows])
    except ValueError:  # no word is in three texts
        return []
    names = counter.get_feature_names_out()
    of_all = np.asarray(words.sum(0)).ravel() / len(rows)
    labels = []
    for cluster in np.argsort(-np.bincount(means.labels_, minlength=k)):
        inside = np.flatnonzero(means.labels_ == cluster)
        counts = np.asarray(words[inside].sum(0)).ravel()
        share = np.where(counts >= 3, counts / len(inside), of_all)
        scores = share * np.log(share / of_all)
        best = [i for i in np.argsort(-scores, kind="stable")[:_N_WORDS] if scores[i] > 0]
        if not best:
            continue
        x, y = _central_place(places[inside], words[inside][:, best].toarray() > 0)
        labels.append(ClusterLabel(", ".join(names[best]), float(x), float(y), len(inside)))
    return labels


def _central_place(places: NDArray[np.float32], holds: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the place of the most central point whose text holds all words, or the first word.

    A cluster of k-means may hold several islands of the map. The median is the one that most of
    these points are near to.

    Parameters
    ----------
    places : float32 array, shape (n, 2)
    holds : bool array, shape (n, n_words)
        Whether each point's text holds each word, the most distinctive word first.
    """
    held = holds.all(1) if holds.all(1).any() else holds[:, 0]
    found = places[held]
    gaps = np.linalg.norm(found - np.median(found, axis=0), axis=1)
    middle: NDArray[np.float32] = found[int(gaps.argmin())]
    return middle
