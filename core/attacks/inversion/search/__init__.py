"""Re-embedding search: encode an answer, compare it with the vector, and correct it."""
