"""Studies of plausible deniability and of its mechanisms."""
