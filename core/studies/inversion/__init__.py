"""Studies of inversion: attacks, encoders, sentences, paragraphs and candidate lists."""
