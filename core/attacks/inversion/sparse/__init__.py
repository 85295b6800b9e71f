"""Sparse coding: explain the mean of token vectors by few tokens."""
