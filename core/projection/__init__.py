"""Maps: vectors drawn in two or three dimensions, and how much of them survives the drawing.

Reading order: `spec` (what to draw), `neighbours` (exact nearest vectors), `principal`,
`umap_method` and `tsne_method` (one method each, t-SNE in `tsne_process`), `quality` (what a map
keeps), `layout` (vectors → map, and new vectors onto it), `cached` (maps on disk), then what is
drawn: `points` (texts with their columns), `looks` (columns to colours and shapes), `shipped` (the
map that comes with the project), `moves` (where a defence moves the points) and `selection` (what
was picked, as files).
"""

from __future__ import annotations

from core.projection.layout import Layout, project
from core.projection.spec import METHODS, ProjectionSpec

__all__ = ["METHODS", "Layout", "ProjectionSpec", "project"]
