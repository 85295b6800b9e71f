"""Membership of pairs of sentences and of books: which ones an encoder was trained on."""
