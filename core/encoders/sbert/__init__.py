"""Sentence-BERT, fine-tuned here on sentence pairs with similarity scores."""
