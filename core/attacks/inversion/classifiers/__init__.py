"""Multi-label word classifiers: one binary classifier per word, from a random or a probe start."""
