"""Generative memorisation: how much a language model leaks of canaries in its training texts.

Reading order: canaries, tokens, network, perplexity, exposure; then extraction,
training and experiment; one_run, private and model_audit for the one-run audit.
"""
