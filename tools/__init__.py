"""What the project's upkeep needs beside its tests and benchmarks."""
