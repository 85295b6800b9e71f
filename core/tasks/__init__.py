"""Utility tasks: they score how useful an encoder's vectors are, defended or not."""
