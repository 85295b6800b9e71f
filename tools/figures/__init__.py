"""The figures of the documentation, written from the files that hold what was measured."""
