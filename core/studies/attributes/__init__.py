"""The study of attribute inference: what vectors reveal about a text, such as its author."""
