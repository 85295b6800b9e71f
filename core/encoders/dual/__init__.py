"""Dual encoders, trained here on sentences in context."""
