"""Multi-set prediction: a recurrent network predicts the words one after another."""
