"""Maintenance tools of the project, beside its tests and benchmarks."""
