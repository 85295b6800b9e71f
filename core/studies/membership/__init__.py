"""Studies of membership inference: classifiers, word vectors and dual encoders."""
