"""Was a text classifier trained on this sample, or on this user's? What its answers tell."""
