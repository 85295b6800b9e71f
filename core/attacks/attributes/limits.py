"""How much is told apart at once: light to import, as helps name it."""

__all__ = ["MOST_LABELS"]

MOST_LABELS = 2_000
"""Labels that are told apart at once; the paper's most are 800."""
