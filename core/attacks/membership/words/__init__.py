"""Membership of windows of words: which passages word vectors were trained on."""
