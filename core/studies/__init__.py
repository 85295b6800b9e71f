"""Studies: the measurements behind the documentation's tables and figures, one per module."""
