"""Generative memorisation: canaries in a language model's texts, and what it gives away of them.

Reading order: canaries, tokens, network, perplexity, exposure; then samplers, rankings and
extraction; then training and experiment; one_run, private and audit for the audit in one run.
"""
