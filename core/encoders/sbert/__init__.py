"""Sentence-BERT, fine-tuned here on pairs of sentences with scores."""
