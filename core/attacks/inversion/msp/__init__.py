"""Multi-set prediction: one word after another, by a recurrent network."""
