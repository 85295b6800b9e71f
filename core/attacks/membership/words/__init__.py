"""Membership of word windows: which passages word vectors were trained on."""
