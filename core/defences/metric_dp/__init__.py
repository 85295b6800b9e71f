"""d_χ-privacy: its mechanisms, their noise and candidates, and the test of their guarantee."""
