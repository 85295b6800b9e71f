"""The tables and figures of the documentation, one study a module."""
