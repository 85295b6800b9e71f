"""The server around the pages: hosts, headers, limits, compiled loops."""
