"""Benchmarks of a running server, its pages and their exports."""
