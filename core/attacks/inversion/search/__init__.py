"""Re-embedding search: answers are encoded, compared and corrected."""
