"""Membership of sentence pairs and books: which ones an encoder was trained on."""
