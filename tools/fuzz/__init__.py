"""Fuzzing: damaged inputs of every kind must be answered with a clear error."""
