"""Membership inference on text classifiers, for samples and for users, from their outputs."""
