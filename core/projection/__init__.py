"""Maps of vectors in two or three dimensions, and how well they preserve neighbours.

Reading order: `spec` (what to draw), `neighbours` (exact nearest vectors), `principal`,
`umap_method` and `tsne_method` (one method each, t-SNE in `tsne_process`), `quality` (what a map
keeps), `layout` (vectors → map, and new vectors onto it), `layout_cache` (maps on disk), then what
is drawn: `points` (texts with their columns), `grouping` (columns to colours and shapes), `shipped`
(the map that comes with the project), `displacement` (where a defence moves the points) and
`selection` (what was picked, as files).
"""

from __future__ import annotations

from leakscope.core.projection.layout import Layout, project
from leakscope.core.projection.spec import METHODS, ProjectionSpec

__all__ = ["METHODS", "Layout", "ProjectionSpec", "project"]
