"""Readers of files: tables, raw text, encodings, and limits on memory."""
