"""The limit on the number of labels, apart from the attacks so that it is quick to import."""

MOST_LABELS = 2_000
"""The most labels that one attack distinguishes; the paper tests up to 800."""
