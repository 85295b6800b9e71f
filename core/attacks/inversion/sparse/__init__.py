"""Sparse coding: few tokens that explain the mean of token vectors."""
