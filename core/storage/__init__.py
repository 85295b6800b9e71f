"""File storage: atomic writes, checksummed artifacts, the cache on disk and its encryption."""
