"""The study of people's names."""
